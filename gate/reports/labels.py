"""The words for a whole result: verdicts, statuses, exit codes, the measured commit and its cost."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from gate.errors import ExitCode
from gate.model import BaselineInfo, CaseStatus, Result, Scale, SuiteResult, Verdict
from gate.reports.formatting import count, dollars, figures, seconds
from gate.reports.sparkline import sparkline
from gate.security.escape import console, one_line

TONES = {
    Verdict.NOT_APPLIED: "mute",
    Verdict.PASS: "good",
    Verdict.INCONCLUSIVE: "warn",
    Verdict.NOT_MEASURED: "warn",
    Verdict.NOT_COMPARED: "bad",
    Verdict.BELOW_THRESHOLD: "bad",
    Verdict.REGRESSED: "bad",
    Verdict.ERROR: "error",
}
"""The tone of a verdict, the worst last; each format has its signs and colours for them."""
VERDICTS = {verdict: verdict.value.replace("_", " ") for verdict in TONES}
_IN_ORDER = (
    CaseStatus.BROKEN,
    CaseStatus.FAILED,
    CaseStatus.ERROR,
    CaseStatus.SUSPECT,
    CaseStatus.FLAKY,
    CaseStatus.NEW,
    CaseStatus.EDITED,
    CaseStatus.NEVER_PASSED,
    CaseStatus.OK,
    CaseStatus.QUARANTINED,
    CaseStatus.UNCHECKED,
    CaseStatus.REMOVED,
)
STATUSES = {status: status.value.replace("_", " ") for status in _IN_ORDER}
"""The words for a case, in the order in which cases are counted."""
CASE_TONES = {
    CaseStatus.BROKEN: "bad",
    CaseStatus.FAILED: "bad",
    CaseStatus.ERROR: "error",
    CaseStatus.SUSPECT: "warn",
    CaseStatus.FLAKY: "shaky",
    CaseStatus.NEVER_PASSED: "warn",
    CaseStatus.OK: "good",
}
"""The tone of a case; no other status is good."""
EXIT_MEANINGS = {
    ExitCode.PASS: "pass",
    ExitCode.FAILED: "the check failed",
    ExitCode.CONFIGURATION: "bad configuration or suite",
    ExitCode.NOT_MEASURED: "could not decide",
    ExitCode.BASELINE: "baseline missing or damaged",
    ExitCode.PUBLISH: "passed, but could not publish",
    ExitCode.BASELINE_WRITE: "the baseline could not be written",
    ExitCode.UNTRUSTED: "an untrusted artifact was refused",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.TERMINATED: "terminated",
}
UNCOMMITTED = "with uncommitted changes"
BASES = {"list price": "by list price", "partly list price": "partly by list price"}
"""The basis of a cost computed from the reported tokens and model."""
MOST_ID = 200
"""Maximum number of characters in a case's id in a printed command."""
MOST_BY = 100
"""Maximum number of characters in the names of those who accepted a verdict, in the line of the exit code."""
LEAST_TREND = 3
"""Minimum number of runs that make a trend."""


# --- the end of a run -----------------------------------------------------------------------------


def exit_line(code: ExitCode, verdict: Verdict, accepted: str = "") -> str:
    """Return ``exit code 1: the check failed``, with a note if a verdict short of a pass does or does not block.

    ``accepted``: the person who accepted it, if any.
    """
    if code is ExitCode.PASS and verdict is not Verdict.PASS:
        if accepted and verdict is not Verdict.INCONCLUSIVE:
            return f"exit code 0: {VERDICTS[verdict]}, and accepted by {accepted}"
        return f"exit code 0: {VERDICTS[verdict]}, which does not block here"
    if code is ExitCode.FAILED and verdict is Verdict.INCONCLUSIVE:
        return "exit code 1: inconclusive, which blocks here (`gate.on_inconclusive`)"
    return f"exit code {int(code)}: {EXIT_MEANINGS[code]}"


def end_line(result: Result, verdict: Verdict, escape: Callable[[str, int], str] = one_line) -> str:
    """Return the exit code, the verdict, and the persons who accepted the suites with this verdict."""
    by = dict.fromkeys(suite.accepted for suite in result.suites if suite.verdict is verdict)
    return exit_line(result.exit_code, verdict, escape("; ".join(filter(None, by)), MOST_BY))


def command_lines(command: str) -> tuple[str, ...]:
    """Return the command that reproduces a result, split into lines."""
    return tuple(line for line in command.split("\n") if line.strip())[:5]


REFERENCES = {"anchor": "long-term baseline"}
"""The names of references in reports for people; files for programs have the short ones."""


def reference_name(reference: str) -> str:
    """Return the name of a reference for people."""
    return REFERENCES.get(reference, reference)


def explain_command(record: str, case_id: str) -> str:
    """Return the command that shows a case's trials; ``ID`` replaces an id that cannot be typed."""
    shown = one_line(case_id, MOST_ID)
    if not shown or shown != case_id or shown.startswith("-"):
        shown = "ID"
    return f"gate explain {shlex.quote(from_here(record))} --case {shlex.quote(shown)}"


def from_here(path: str) -> str:
    """Return a path relative to the run's folder, because the reader of a job's report has it in another place."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return path


# --- the measured commit --------------------------------------------------------------------------


def at_commit(commit: str, *, dirty: bool) -> str:
    """Return a commit, with a note if the measured state had uncommitted changes."""
    if dirty:
        return f"{commit} {UNCOMMITTED}"
    return commit


def commit_line(suite: SuiteResult, most: int = 12) -> str:
    """Return the measured commit; empty if unknown."""
    if not suite.commit:
        return ""
    return at_commit(suite.commit[:most], dirty=suite.dirty)


def baseline_line(baseline: BaselineInfo | None, *, source: bool = True) -> str:
    """Return the baseline's commit and origin, or the reason why there is none."""
    if baseline is None:
        return "none"
    if baseline.missing and baseline.of_itself:
        return f"nothing to compare with yet: {baseline.missing}"
    if baseline.missing:
        return f"none: {baseline.missing}"
    parts = [at_commit((baseline.commit or "no commit")[:12], dirty=baseline.dirty)]
    if baseline.distance:
        parts.append(f"{count(baseline.distance, 'commit')} before the one measured against")
    if baseline.trials_per_case:
        trials, noun = f"{baseline.trials_per_case:.3g}", "trials"
        if trials == "1":
            noun = "trial"
        parts.append(f"{trials} {noun} per case")
    if baseline.records > 1:
        parts.append(f"{baseline.records:,} records pooled")
    if source and baseline.source:
        parts.append(from_here(baseline.source))
    return ", ".join(parts)


def trend_line(suite: SuiteResult) -> tuple[str, str]:
    """Return the pass rates of the stored runs and this one, as a picture and in words; empty if there are too few."""
    if len(suite.trend) < LEAST_TREND:
        return "", ""
    first, before, now = figures([suite.trend[place] for place in (0, -2, -1)], Scale.BINARY)
    runs = count(len(suite.trend) - 1, "stored run")
    low = min(0.5, *suite.trend)
    return sparkline(suite.trend, low=low, high=1.0), f"pass rate {first} … {before} in {runs} before, {now} now"


def stored_line(suite: SuiteResult) -> str:
    """Return the number of trials stored for later changes; empty if none were."""
    if suite.stored is None:
        return ""
    stored = suite.stored
    epochs, runs = count(stored.epochs, "further epoch"), count(stored.runs, "run")
    return f"{count(stored.trials, 'trial')} per case for later changes: {epochs}, {runs}"


def log_lines(log: str, most: int) -> list[str]:
    """Return the last lines of an agent's log, made safe for a terminal, with the indentation of a traceback."""
    lines = []
    for text in log.splitlines()[-most:]:
        indent = len(text) - len(text.lstrip(" "))
        lines.append(" " * min(indent, 16) + console(text, 300))
    return lines


# --- cost ------------------------------------------------------------------------------------------


def cost_line(suite: SuiteResult) -> str:
    """Return the cost of the verdict: money, runs, errors, the judge's part, and time."""
    parts = [cost(suite)]
    if suite.cost_usd is None:
        parts.insert(0, "agent cost not reported")
    elif suite.judge_cost_usd:
        parts.append(f"{dollars(suite.judge_cost_usd)} of it for the judge")
    return " · ".join([*parts, seconds(suite.duration)])


def cost(suite: SuiteResult) -> str:
    """Return money and runs: ``$0.024 by list price · 24 runs``."""
    money = f"{spent(suite)} {basis(suite)}".strip()
    return " · ".join(filter(None, (money, *runs(suite))))


def spent(suite: SuiteResult) -> str:
    """Return text like ``at least $0.024``; empty if no cost is known."""
    if suite.cost_usd is not None:
        known = dollars(suite.cost_usd + (suite.judge_cost_usd or 0.0))
        if suite.cost_unknown:
            return f"at least {known}"
        return known
    if suite.judge_cost_usd:  # the agent's cost is unknown, not zero
        return f"{dollars(suite.judge_cost_usd)} for the judge alone"
    return ""


def runs(suite: SuiteResult) -> list[str]:
    """Return the number of runs, and of infrastructure errors if there were any."""
    said = [count(suite.agent_runs, "run")]
    if suite.errors:
        said.append(count(suite.errors, "infrastructure error"))
    return said


def basis(suite: SuiteResult) -> str:
    """Return text like ``by list price``; empty if the agent reports its cost."""
    return BASES.get(suite.cost_basis, "")
