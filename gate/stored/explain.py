"""The text of `gate explain`: the numbers behind a verdict, or one case's trials on both sides."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from gate.baselines.pairing import reported_before
from gate.baselines.reference import Reference
from gate.config.load import load_config
from gate.config.settings import settings_of
from gate.decision.consistency import compared
from gate.decision.engine.evidence_json import stage_name
from gate.decision.prepare import with_outcomes
from gate.decision.unseen import shows_calls, without_unseen
from gate.errors import ConfigError, nearest
from gate.model import Case, CaseResult, Criterion, Invocation, Scale, Score, Side, SuiteResult, Trial
from gate.pipeline.terms import Terms, own_terms
from gate.pipeline.verdict import NO_REFERENCE, judge_record
from gate.records import Record, cases_of, read_record
from gate.reports import replayed
from gate.reports.cases import improvement
from gate.reports.console import SIGNS
from gate.reports.formatting import (
    count,
    demand,
    figure,
    percentage,
    threshold,
)
from gate.reports.labels import baseline_line, commit_line, log_lines, reference_name
from gate.reports.rows import RowView
from gate.reports.table import table
from gate.reports.trajectory_diff import call_text
from gate.reports.view import View
from gate.reports.wording import sentence
from gate.security.escape import console
from gate.stored.judging import find_as_run_did, path_of_baseline, read_baseline
from gate.system.clock import now

# --- explaining -----------------------------------------------------------------------------------


def explain_record(
    path: Path,
    baseline: str | None,
    config_path: Path,
    environment: Mapping[str, str],
    case_id: str | None,
    width: int | None = None,
    *,
    verbose: bool = False,
) -> str:
    """Return an explanation of the verdict on a record, or one case's trials on both sides.

    ``verbose`` adds every figure and test.
    """
    record = read_record(path)
    references: Sequence[Reference] = (NO_REFERENCE,)
    if baseline is None and config_path.exists():
        config = load_config(config_path)
        terms = own_terms(record, settings_of(config, now()))
        references = find_as_run_did(record.header, terms, config, environment).all
    else:
        terms = own_terms(record)
        other = path_of_baseline(baseline or "none")
        if other is not None:
            references = (read_baseline(other),)
    if case_id is not None:
        return _explain_case(record, references, terms, case_id)
    view = View(judge_record(record, references, terms))
    lines = _page(view, width)
    if verbose:
        lines += _figures(view, width)
    else:
        lines += ["", "More: gate explain -v (all figures), gate explain --case ID (one case's trials)"]
    return "\n".join(lines)


# --- the page -------------------------------------------------------------------------------------


def _page(view: View, width: int | None) -> list[str]:
    """Return the verdict, what was compared with what, a row for each criterion, and how it was decided."""
    suite = view.suite
    lines = [f"{console(suite.suite_id)}: {console(view.verdict_line)}"]
    lines += map(_sentence, view.opening)
    lines += ["", f"baseline     {console(baseline_line(suite.baseline, source=False))}"]
    measured = commit_line(suite)
    if measured:
        lines.append(f"this change  {console(measured)}")
    lines += ["", table(_criteria(view), width)]
    if any(row.worst_change for row in view.rows):
        lines.append(
            "At worst: the bad end of the 90 % interval of the change. A pass keeps it within what is allowed."
        )
    lines += [_why(row) for row in view.rows if row.needs_words]
    story = [*view.whole_story, *view.from_recordings]
    if story:
        lines += ["", *map(_sentence, story)]
    lines += [f"  {console(told)}" for told in view.differences()]
    lines += [console(one.line) for one in view.further]
    return lines


def _sentence(text: str) -> str:
    return console(sentence(text))


def _criteria(view: View) -> list[tuple[str, ...]]:
    """Return the table of criteria with its head."""
    rows: list[tuple[str, ...]] = [("  criterion", "before", "now", "at worst", "allowed", "threshold")]
    for row in view.rows:
        sign, _ = SIGNS[row.tone]
        before, now = row.means
        at_worst, allowed = row.worst_change or ("–", "–")
        wanted = "–"
        if row.criterion.has_threshold:
            wanted = row.wanted
        rows.append((f"{sign} {row.name}", before, now, at_worst, allowed, wanted))
    return rows


def _why(row: RowView) -> str:
    """Return the reason for a criterion's verdict."""
    return f"{console(row.name)}: {console(row.standing_before(row.reason))}"


# --- every figure ---------------------------------------------------------------------------------


def _figures(view: View, width: int | None) -> list[str]:
    """Return every estimate and test behind the page."""
    suite, lines = view.suite, [""]
    for row in view.rows:
        lines += _of_criterion(row)
    return [*lines, "", *rule_lines(suite), *_suspects(suite), *_improved(view), *_tools(suite, width)]


def _of_criterion(row: RowView) -> list[str]:
    """Return the reason for a criterion's verdict, and every figure behind it."""
    result = row.found
    lines = [
        _why(row),
        f"  before    {row.baseline.line}",
        f"  now       {row.candidate.line}",
        f"  change    {row.change.line}",
    ]
    if row.evidence:
        lines.append(f"  evidence  {console(row.evidence)}")
    if result.spent is not None:
        lines.append(f"  spent     {percentage(result.spent)} of this comparison's error budget")
    for name, said in row.dimensions:
        lines.append(f"  of which  {console(name, 80)} {said}")
    return lines


def _e(value: float) -> str:
    """Return an e-value to three digits, written out if short enough: ``1.25``, ``10,200``, ``3.1e+12``."""
    if 100 <= value < 1e9:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"


def rule_lines(suite: SuiteResult) -> list[str]:
    """Return each test that the decision rule made, with the level at which it blocks."""
    if suite.outcome is None:
        line = "no pairing: nothing was tested against a baseline"
        if suite.baseline and suite.baseline.missing:
            line += f" ({console(suite.baseline.missing)})"
        return [line]
    found = suite.outcome.evidence
    lines = [f"stage: {stage_name(suite.outcome.stage)}; seed {suite.seed}"]
    for look in found.looks:
        lines.append(f"look after epoch {look.epochs}: p = {look.p:.4f}, blocks at {look.threshold:.4f}")
    for test in found.repeats:
        asked = f"repeats of {count(test.cases, 'case')} that failed, after epoch {test.epochs}"
        lines.append(f"{asked}: p = {test.p:.2g}, blocks at {test.threshold:.2g}")
    e_value = "beyond all bounds"
    if found.e_value is not None:
        e_value = _e(found.e_value)
    lines.append(f"broken cases together: e = {e_value}, blocks at {found.e_threshold:.0f}")
    return lines


def _suspects(suite: SuiteResult) -> list[str]:
    suspects = [case for case in suite.cases if case.e_value is not None and case.e_value >= 2]
    if not suspects:
        return []
    suspects.sort(key=lambda case: -(case.e_value or 0.0))
    return ["", *map(_case_line, suspects[:20])]


def _improved(view: View) -> list[str]:
    if not view.improved:
        return []
    lines = ["", "passed more often than in the baseline"]
    for case in view.improved[:20]:
        lines.append(f"{console(case.id)}: {improvement(case, view.suite)}, e = {_e(case.improvement or 0.0)}")
    return lines


def _tools(suite: SuiteResult, width: int | None) -> list[str]:
    if not suite.tools:
        return []
    rows = [("tool", "calls", "timed", "seconds", "seconds per call")]
    for one in suite.tools:
        mean = "–"
        if one.seconds_per_call is not None:
            mean = f"{one.seconds_per_call:.3g}"
        rows.append((one.name, str(one.calls), str(one.timed), f"{one.seconds:.3g}", mean))
    return ["", "time per tool, over the turns in which the agent times its tools", table(rows, width)]


def _case_line(case: CaseResult) -> str:
    before = f"baseline {case.baseline_passed} of {case.baseline_trials}"
    line = f"{console(case.id)}: {case.status.value}, {case.passed} of {case.trials} passed, {before}"
    if case.e_value is not None:
        line += f", e = {_e(case.e_value)}"
    return line


def _explain_case(record: Record, references: Sequence[Reference], terms: Terms, case_id: str) -> str:
    cases = {case.id: case for case in cases_of(record.header, terms.thresholds)}
    if case_id not in cases:
        raise ConfigError(f"no case {case_id!r} in the record", hint=nearest(case_id, list(cases)))
    demanded = {}
    for criterion in terms.criteria:
        demanded[criterion.name] = criterion, _demanded(criterion, cases[case_id])
    reported = any(reported_before(record.header, one) for one in references)
    no_call = "(no call)" if reported or shows_calls(record.trials) else "(calls not reported)"
    own = without_unseen(terms.criteria, _compared(record), reported=reported)
    shown = [("this change", trial, no_call) for trial in own]
    for reference in references:
        for stored in reference.records:
            name = reference_name(reference.name)
            if len(reference.records) > 1 and stored.header.commit:
                name += f" of {stored.header.commit[:7]}"
            shown += [(name, trial, "(no call)") for trial in _compared(stored)]
    lines = [console(case_id)]
    for name, trial, instead in shown:
        if trial.case_id == case_id:
            lines += _trial_lines(name, trial, demanded, instead)
    return "\n".join(lines)


def _demanded(criterion: Criterion, case: Case) -> str:
    """Return the demands of a criterion on a case, satisfied or not; the case's own limit if it has one."""
    own = case.thresholds.get(criterion.name)
    if own is None:
        return threshold(criterion)
    return f"{demand(criterion, own)}, this case's own limit"


def _compared(record: Record) -> Sequence[Trial]:
    """Return the record's trials, each marked as passing or not, with the scores that compare trials with one
    another."""
    cases, criteria = cases_of(record.header), record.header.criteria
    by_id = {case.id: case for case in cases}
    return with_outcomes(compared(cases, criteria, record.trials), by_id, criteria, {})


def _trial_lines(name: str, trial: Trial, demanded: Mapping[str, tuple[Criterion, str]], no_call: str) -> list[str]:
    if trial.side is Side.BASELINE:
        name = "baseline, run now"
    lines = [f"{name}, trial {trial.number}, round {trial.round} ({trial.tag})"]
    replay = replayed.of_trial(trial)
    if replay:
        lines.append(f"  {console(replay, 600)}")
    for turns in trial.earlier:
        lines.append("  an earlier attempt, which infrastructure ended:")
        lines += [f"  {line}" for line in _turn_lines(turns, no_call)]
    if trial.earlier:
        lines.append("  the last attempt:")
    if trial.error is not None:
        ended = "failed" if trial.failed else "not measured"
        lines.append(f"  {ended}: {trial.error.kind.value}: {console(trial.error.message, 500)}")
    lines += _turn_lines(trial.invocations, no_call)
    for criterion, score in trial.scores.items():
        lines += _score_lines(criterion, score, *demanded.get(criterion, (None, "")))
    return [*lines, *_log_lines(trial)]


def _turn_lines(turns: Sequence[Invocation], no_call: str) -> list[str]:
    lines = []
    for number, turn in enumerate(turns, 1):
        calls = ", ".join(call_text(call) for call in turn.tool_calls)
        lines.append(f"  turn {number}: {calls or no_call}")
        if turn.text:
            lines.append(f"    {console(turn.text, 300)}")
    return lines


def _score_lines(name: str, score: Score, criterion: Criterion | None, limit: str) -> list[str]:
    """Return a score with its limit and its reason, and its parts."""
    line = f"  {console(name)} {_value(score, criterion)}"
    if limit and score.value is not None:
        line += f" ({limit})"
    reason = score.reason
    if criterion is not None and criterion.scale in (Scale.USD, Scale.SECONDS):
        reason = _FIGURE.sub("", reason)
    lines = [f"{line} {console(score.error or reason, 300)}".rstrip()]
    for part, value in score.dimensions.items():
        lines.append(f"    {console(part, 80)} {value:.3f}")
    return lines


_FIGURE = re.compile(r"\A(?:\$\d[\d.,]*\d|\d[\d.]* s)(?:, |$)")
"""The start of the reason for a cost or a time: the value, which is already shown before it, in another unit."""


def _log_lines(trial: Trial) -> list[str]:
    """Return the agent's output other than its answers."""
    written = log_lines(trial.log, len(trial.log))
    if not written:
        return []
    return ["  the agent wrote:", *(f"    {line}" for line in written)]


def _value(score: Score, criterion: Criterion | None) -> str:
    if score.value is None and score.error:
        return "not measured"
    if score.value is None:
        return "does not apply"
    if criterion is not None and criterion.scale.is_relative:
        return figure(score.value, criterion.scale)
    return f"{score.value:.3f}"
