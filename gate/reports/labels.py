"""The words that all reports share: verdicts, exit codes, which cases to show first, costs, baseline."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from gate.decision.comparison import PASS_RATE
from gate.decision.trade import GOT_WORSE, badness
from gate.errors import ExitCode
from gate.model import (
    BaselineInfo,
    CaseResult,
    CaseStatus,
    CriterionResult,
    Direction,
    Estimate,
    Result,
    Scale,
    SuiteResult,
    Verdict,
)
from gate.reports import reasons, replayed
from gate.reports.by_tag import in_named
from gate.reports.explanation import headline
from gate.reports.formatting import (
    change_interval,
    count,
    dollars,
    figures,
    finer_sides,
    interval,
    listing,
    seconds,
    with_means,
)
from gate.reports.sparkline import sparkline
from gate.reports.words import NOT_COMPARED
from gate.security.escape import console, one_line

VERDICTS = {
    Verdict.NOT_APPLIED: "not applied",
    Verdict.PASS: "pass",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.NOT_MEASURED: "not measured",
    Verdict.NOT_COMPARED: "not compared",
    Verdict.BELOW_THRESHOLD: "below threshold",
    Verdict.REGRESSED: "regressed",
    Verdict.ERROR: "error",
}
EXIT_MEANINGS = {
    ExitCode.PASS: "pass",
    ExitCode.FAILED: "the check failed",
    ExitCode.CONFIGURATION: "bad configuration or suite",
    ExitCode.NOT_MEASURED: "could not measure",
    ExitCode.BASELINE: "baseline missing or damaged",
    ExitCode.PUBLISH: "passed, but could not publish",
    ExitCode.BASELINE_WRITE: "the baseline could not be written",
    ExitCode.UNTRUSTED: "an untrusted artifact was refused",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.TERMINATED: "terminated",
}
STATUSES = {
    CaseStatus.BROKEN: "broken",
    CaseStatus.FAILED: "failed",
    CaseStatus.ERROR: "error",
    CaseStatus.SUSPECT: "suspect",
    CaseStatus.FLAKY: "flaky",
    CaseStatus.NEW: "new",
    CaseStatus.NEVER_PASSED: "never passed",
    CaseStatus.OK: "ok",
    CaseStatus.QUARANTINED: "quarantined",
    CaseStatus.UNCHECKED: "unchecked",
    CaseStatus.REMOVED: "removed",
}
MOST_ID = 200
"""Characters of a case's id in a command that is printed."""


def exit_line(code: ExitCode, verdict: Verdict, accepted: str = "") -> str:
    """``exit code 1: the check failed``; of a verdict short of a pass, whether it blocks where that is configured.

    ``accepted``: who accepted it, if somebody did.
    """
    if code is ExitCode.PASS and verdict is not Verdict.PASS:
        if accepted and verdict is not Verdict.INCONCLUSIVE:
            return f"exit code 0: {VERDICTS[verdict]}, and accepted by {accepted}"
        return f"exit code 0: {VERDICTS[verdict]}, which does not block here"
    if code is ExitCode.FAILED and verdict is Verdict.INCONCLUSIVE:
        return "exit code 1: inconclusive, which blocks here (`gate.on_inconclusive`)"
    return f"exit code {int(code)}: {EXIT_MEANINGS[code]}"


MOST_BY = 100
"""Characters of who accepted a verdict, in the line of the exit code."""


def end_line(result: Result, verdict: Verdict, escape: Callable[[str, int], str] = one_line) -> str:
    """The exit code, its verdict, and who accepted the suites that have it."""
    by = dict.fromkeys(suite.accepted for suite in result.suites if suite.verdict is verdict and suite.accepted)
    return exit_line(result.exit_code, verdict, escape("; ".join(by), MOST_BY))


def left(suite: SuiteResult) -> str:
    """Return what is left of an accepted suite that could not be measured: that, and by whom the rest was accepted."""
    return f"what was lost is accepted by {suite.accepted}, but not all could be measured"


def shown(found: CriterionResult) -> Verdict:
    """The criterion's verdict; a criterion that was never measured does not pass, even if a record says so."""
    if found.verdict is Verdict.PASS and found.candidate is None:
        return Verdict.NOT_MEASURED
    return found.verdict


def is_ticked(found: CriterionResult) -> bool:
    """True if it gets a tick: it passes, and it was judged by something that it could have failed."""
    return shown(found) is Verdict.PASS and found.checked and not found.not_compared


def standing(found: CriterionResult) -> str:
    """The verdict in a word or two; that it was not compared, or not judged, in its place."""
    verdict = shown(found)
    if found.not_compared and verdict in (Verdict.PASS, Verdict.INCONCLUSIVE):
        return "not compared"
    return VERDICTS[verdict] if verdict is not Verdict.PASS or found.checked else "not judged"


def candidate_figure(found: CriterionResult) -> str:
    """The candidate's mean with its interval, told apart from the baseline's and from the threshold."""
    return interval(found.candidate, found.criterion.scale, finer=finer_sides(found))


def baseline_figure(found: CriterionResult) -> str:
    """The baseline's mean with its interval likewise, or that it is not compared."""
    if found.not_compared and found.baseline is None:
        return "not compared"
    return interval(found.baseline, found.criterion.scale, finer=finer_sides(found))


def change_shown(found: CriterionResult) -> Estimate | None:
    """The change with its interval; alone where single cases prove a loss, and the interval has room for a gain."""
    worse = (one for one in found.findings if one.kind == "change" and one.verdict is Verdict.REGRESSED)
    if found.change is None or all(reasons.excludes_gain(one["change"], found.criterion) for one in worse):
        return found.change
    return replace(found.change, level=0.0)


def change_figure(found: CriterionResult) -> str:
    """`change_shown` in figures; and the change of the means, where that is another."""
    return with_means(change_interval(change_shown(found), found.criterion.scale), found)


def moved_with(found: CriterionResult, suite: SuiteResult) -> tuple[str, ...]:
    """The parts of a composite criterion that do not hold either: they are the cause, and it is told with them."""
    fine = (Verdict.PASS, Verdict.NOT_APPLIED)
    if found.verdict in fine or not found.criterion.parts:
        return ()
    parts = (row for row in suite.criteria if row.criterion.name in found.criterion.parts)
    return tuple(row.criterion.name for row in parts if row.verdict not in fine)


def same_cause(found: CriterionResult, suite: SuiteResult) -> str:
    """Return the criterion that a worse one moved with, if that is told already: its parts, or the pass rate's
    cases."""
    if parts := moved_with(found, suite):
        return f"moved with {listing(parts)}"
    if found.verdict is not Verdict.REGRESSED or found.criterion.metric == PASS_RATE:
        return ""
    rate = next((row for row in suite.criteria if row.criterion.name == PASS_RATE), None)
    if rate is None or rate.verdict is not Verdict.REGRESSED:
        return ""
    failing = {c.id for c in suite.cases if passes_less(c)}
    sign = 1.0 if found.criterion.direction is Direction.HIGHER else -1.0
    sides = ((case.id, *case.scores.get(found.criterion.name, (None, None))) for case in suite.cases)
    fell = {i for i, now, before in sides if now is not None and before is not None and sign * (before - now) > 1e-9}
    return "in the same cases" if fell and fell <= failing else ""


def told_once(case: CaseResult, suite: SuiteResult) -> CaseResult:
    """The case without reasons of a composite criterion beside those of its parts."""
    whole = {row.criterion.name: row.criterion.parts for row in suite.criteria if row.criterion.parts}
    if not whole or len(case.reasons) < 2:
        return case
    named = {reason.partition(": ")[0] for reason in case.reasons}
    kept = [r for r in case.reasons if named.isdisjoint(whole.get(r.partition(": ")[0], ()))]
    return replace(case, reasons=tuple(kept)) if kept else case


def distinct(texts: Sequence[str]) -> tuple[str, ...]:
    """The first of reasons that differ in figures alone, or in a word or two."""
    kept: list[tuple[str, frozenset[str]]] = []
    for reason in texts:
        wording = _wording(reason)
        if not any(_is_alike(wording, other) for _, other in kept):
            kept.append((reason, wording))
    return tuple(reason for reason, _ in kept)


def kinds(cases: Sequence[CaseResult], most: int) -> tuple[tuple[CaseResult, ...], bool]:
    """The first case of each distinct reason, ``most`` at most, and whether all others fail for one of these."""
    found: list[CaseResult] = []
    known: list[frozenset[str]] = []
    complete = True
    for case in cases:
        wording = _wording(case.reasons[0] if case.reasons else "")
        if any(_is_alike(wording, other) for other in known):
            continue
        complete = len(found) < most
        if not complete:
            break
        found.append(case)
        known.append(wording)
    return tuple(found), complete


def _wording(reason: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d]+", reason.lower())) or frozenset([reason])


def _is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= 0.8 * len(one | other)


def explain_line(result: Result, suite: SuiteResult) -> str:
    """The command that shows a case's trials; empty without such cases, or without one record of the suite."""
    cases = worse_cases(suite) or failing_cases(suite)
    paths = result.record_paths if len(result.record_paths) == len(result.suites) else ()
    path = next((path for held, path in zip(result.suites, paths, strict=False) if held is suite), "")
    if not cases or not path:
        return ""
    shown = one_line(cases[0].id, MOST_ID)
    case_id = shlex.quote(shown) if shown == cases[0].id and shown and not shown.startswith("-") else "ID"
    return f"gate explain {shlex.quote(from_here(path))} --case {case_id}"


def from_here(path: str) -> str:
    """The path as it is typed in the folder of the run: a job's clone is at another place for who reads its report."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return path


def worse_cases(suite: SuiteResult) -> tuple[CaseResult, ...]:
    """The cases that got worse or could not be measured, worst first; the order does not depend on the input's."""
    found = (told_once(c, suite) for c in suite.cases if c.status in GOT_WORSE)
    return tuple(sorted(found, key=lambda case: _badness(case, suite)))


def failing_cases(suite: SuiteResult) -> tuple[CaseResult, ...]:
    """Further cases of which trials failed: nothing says that they got worse, yet they keep the score down."""
    known = (*GOT_WORSE, CaseStatus.REMOVED)
    found = (told_once(c, suite) for c in suite.cases if c.status not in known and c.passed < c.trials)
    return tuple(sorted(found, key=lambda case: _badness(case, suite)))


IMPROVED_E = 2.0
"""From here on a case is listed as passing more often; the bar of a suspected one, the other way."""


def improved_cases(suite: SuiteResult) -> tuple[CaseResult, ...]:
    """The cases that pass more often than in the baseline, the strongest evidence first."""
    known = [case for case in suite.cases if case.improvement is not None and case.improvement >= IMPROVED_E]
    return tuple(sorted(known, key=lambda case: (-(case.improvement or 0.0), case.id)))


def improvement(case: CaseResult, suite: SuiteResult) -> str:
    """``0/5 → 3/3``: how often it passed at the baseline and now; and that it may be chance, where it may."""
    before = f"{case.baseline_passed:,}/{case.baseline_trials:,}"
    proven = suite.outcome is not None and case.id in suite.outcome.evidence.gained
    traded = suite.trade is not None and any(case.id == one.case_id for one in suite.trade["gained"])
    alone = "" if proven else ", not proven alone" if traded else ", perhaps by chance"
    return f"{before} → {case.passed:,}/{case.trials:,}{alone}"


def _badness(case: CaseResult, suite: SuiteResult) -> tuple[float | str, ...]:
    """Worst status first; then the cases of a tag that the loss is concentrated in, before a noisy one elsewhere."""
    elsewhere = bool(suite.concentrated) and not in_named(suite, case.tags, case.complexity.value)
    return badness(case, elsewhere=elsewhere)


def passes_less(case: CaseResult) -> bool:
    """True if it passes less often than at the baseline."""
    return case.passed * case.baseline_trials < case.baseline_passed * case.trials


def worse_title(cases: Sequence[CaseResult]) -> str:
    """Return the name of `worse_cases`: one that holds of each of them, since one may fail as it did at the
    baseline."""
    if all(map(passes_less, cases)):
        return "Cases that got worse"
    unmeasured = sum(case.status is CaseStatus.ERROR for case in cases)
    if unmeasured == len(cases):
        return "Cases that could not be measured"
    return "Cases to look at" if unmeasured else "Cases that failed"


def score(case: CaseResult) -> str:
    """``0/4, was 5/5``, the short form of `tally`; with errors if there were any."""
    parts = [f"{case.passed:,}/{case.trials:,}"] if case.trials else ["no trial measured"]
    if case.baseline_trials:
        parts.append(f"was {case.baseline_passed:,}/{case.baseline_trials:,}")
    if case.errors:
        parts.append(count(case.errors, "error"))
    return ", ".join(parts)


def tally(case: CaseResult) -> str:
    """``0 of 4 trials passed, baseline 5 of 5``, with errors if there were any."""
    parts = [f"{case.passed:,} of {count(case.trials, 'trial')} passed"] if case.trials else ["no trial measured"]
    if case.baseline_trials:
        parts.append(f"baseline {case.baseline_passed:,} of {case.baseline_trials:,}")
    if case.errors:
        parts.append(count(case.errors, "error"))
    return ", ".join(parts)


def command_lines(command: str) -> tuple[str, ...]:
    """The lines of the command that reproduces a result, each to be shown on a line of its own."""
    return tuple(line for line in command.split("\n") if line.strip())[:5]


def verdict_line(suite: SuiteResult) -> str:
    """The verdict and why, in a line."""
    verdict, text = VERDICTS[suite.verdict], headline(suite)
    return text if says_verdict(text, suite.verdict) else f"{verdict}: {text}"


def says_verdict(text: str, verdict: Verdict) -> bool:
    """True if a headline or a reason says in words what would be put before it."""
    said = NOT_COMPARED in text or text.startswith(f"{VERDICTS[verdict]}: ")
    return verdict is Verdict.NOT_COMPARED and said


def further_line(suite: SuiteResult) -> str:
    """Return the result against another reference, in a line: its commit, the verdict and why."""
    commit = suite.baseline.commit if suite.baseline else None
    return verdict_line(suite) + (f" (commit {commit[:12]})" if commit else "")


def status(case: CaseResult) -> str:
    """The status in a word or two."""
    return replayed.SAME if replayed.is_same(case) else STATUSES[case.status]


def status_counts(suite: SuiteResult) -> str:
    """``40 cases: 3 broken, 2 flaky, 1 never passed, 34 ok``."""
    known = Counter(map(status, suite.cases))
    order = dict.fromkeys([*STATUSES.values(), replayed.SAME, *known])
    last = STATUSES[CaseStatus.OK]
    names = [*(name for name in order if known[name] and name != last), *([last] if known[last] else [])]
    named = ", ".join(f"{known[name]:,} {name}" for name in names)
    return f"{count(len(suite.cases), 'case')}: {named}" if named else "no cases"


def cost_line(suite: SuiteResult) -> str:
    """Return the costs of the verdict: runs, errors, money for agent and judge, time."""
    parts = [count(suite.agent_runs, "agent run")]
    if suite.errors:
        parts.append(count(suite.errors, "infrastructure error"))
    parts.append(_agent_cost(suite))
    if suite.judge_cost_usd is not None:
        parts.append(f"{dollars(suite.judge_cost_usd)} judge")
    return " · ".join([*parts, seconds(suite.duration)])


def cost(suite: SuiteResult) -> str:
    """Money and runs: ``$0.024 by list price · 24 runs``."""
    money = " ".join(filter(None, (spent(suite), basis(suite))))
    return " · ".join(filter(None, (money, *runs(suite))))


def spent(suite: SuiteResult) -> str:
    """``at least $0.024``; empty where nothing is known."""
    if suite.cost_usd is not None:
        least = "at least " if suite.cost_unknown else ""
        return least + dollars(suite.cost_usd + (suite.judge_cost_usd or 0.0))
    if suite.judge_cost_usd:  # what the agent cost is not known, which is not nothing
        return f"{dollars(suite.judge_cost_usd)} for the judge alone"
    return ""


def runs(suite: SuiteResult) -> list[str]:
    """Runs, and infrastructure errors if there were any."""
    errors = [count(suite.errors, "infrastructure error")] if suite.errors else []
    return [count(suite.agent_runs, "run"), *errors]


def basis(suite: SuiteResult) -> str:
    """``by list price``, where the agent does not report what it cost but tells tokens and model."""
    return {"list price": "by list price", "partly list price": "partly by list price"}.get(suite.cost_basis, "")


def _agent_cost(suite: SuiteResult) -> str:
    if suite.cost_usd is None:
        return "agent cost not reported"
    told = " ".join(filter(None, (f"{dollars(suite.cost_usd)} agent", basis(suite))))
    return f"{told}, without {count(suite.cost_unknown, 'run')} of unknown cost" if suite.cost_unknown else told


UNCOMMITTED = "with uncommitted changes"


def commit_line(suite: SuiteResult, most: int = 12) -> str:
    """The commit that was measured, and that the work tree differed from it; empty where none is known."""
    return at_commit(suite.commit[:most], dirty=suite.dirty) if suite.commit else ""


def at_commit(commit: str, *, dirty: bool) -> str:
    """A commit as it is shown, and whether what was measured differed from it."""
    return f"{commit} {UNCOMMITTED}" if dirty else commit


def trend_line(suite: SuiteResult) -> tuple[str, str]:
    """Pass rates of the stored runs before and of this one: the picture, and words; empty where none are known."""
    if len(suite.trend) < 3:
        return "", ""
    first, before, now = figures([suite.trend[place] for place in (0, -2, -1)], Scale.BINARY)
    runs = count(len(suite.trend) - 1, "stored run")
    low = min(0.5, *suite.trend)
    return sparkline(suite.trend, low=low, high=1.0), f"pass rate {first} … {before} in {runs} before, {now} now"


def log_lines(log: str, most: int) -> list[str]:
    """The last lines of what an agent wrote, harmless for a terminal, with the indentation that tracebacks live by."""
    lines = log.splitlines()[-most:]
    return [" " * min(len(text) - len(text.lstrip(" ")), 16) + console(text, 300) for text in lines]


def stored_line(suite: SuiteResult) -> str:
    """Return the runs for later changes, and their price; empty if there were none."""
    if suite.stored is None:
        return ""
    trials, epochs, runs = suite.stored.trials, suite.stored.epochs, suite.stored.runs
    further = f"{count(epochs, 'further epoch')}, {count(runs, 'run')}"
    return f"{count(trials, 'trial')} a case for later changes: {further}"


def baseline_line(baseline: BaselineInfo | None, *, source: bool = True) -> str:
    """Return the reference of the candidate and its place, or the reason why there is none."""
    if baseline is None:
        return "none"
    if baseline.missing:
        return f"{'nothing to compare with yet' if baseline.of_itself else 'none'}: {baseline.missing}"
    parts = [at_commit(baseline.commit[:12] if baseline.commit else "no commit", dirty=baseline.dirty)]
    if baseline.distance:
        parts.append(f"{count(baseline.distance, 'commit')} before the one measured against")
    if baseline.trials_per_case:
        trials = f"{baseline.trials_per_case:.3g}"
        parts.append(f"{trials} {'trial' if trials == '1' else 'trials'} per case")
    if baseline.records > 1:
        parts.append(f"{baseline.records:,} records pooled")
    return ", ".join([*parts, *([from_here(baseline.source)] if source and baseline.source else [])])
