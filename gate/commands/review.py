"""What can be said of suites, baselines and records besides a verdict: explain, power, history, differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from gate.baselines import RecordDiff, diff
from gate.baselines.pairing import Reference
from gate.config.load import Config, load_config
from gate.config.resolve import CALIBRATION_FILE, Plan, make_plans
from gate.config.settings import now, settings_of
from gate.decision.comparison import with_outcomes
from gate.decision.consistency import compared
from gate.decision.history import case_history
from gate.decision.power import PowerRow, power_table
from gate.errors import ConfigError, MeasureError, nearest
from gate.judges.calibration import calibrate, describe, read_labels, save
from gate.judges.client import open_judge
from gate.metrics.base import TrialOutput
from gate.metrics.judged import JudgedMetric
from gate.model import Case, CaseResult, Criterion, Direction, Scale, Score, SuiteResult, Trial, kind_of
from gate.pipeline.reference import git_context, nearest_stored, store_of
from gate.pipeline.stored import found_again, named, read, read_baseline
from gate.pipeline.verdict import NO_REFERENCE, Terms, cases_of, judge, own_terms
from gate.records import Header, Record
from gate.reports.formatting import (
    change_interval,
    count,
    dimensions,
    dollars,
    evidence,
    figure,
    interval,
    sample,
    threshold,
)
from gate.reports.labels import further_line, improved_cases, improvement
from gate.reports.labels import standing as standing_of
from gate.reports.table import table
from gate.reports.trajectory_diff import call_text
from gate.security.escape import console
from gate.suites import distribution
from gate.system.git import Git

BAR = 40
"""Columns of the widest bar of a plot."""


def describe_suites(config: Config, environment: Mapping[str, str]) -> str:
    """What a run would measure: cases by complexity, tag and turns, and the criteria with what they demand."""
    return "\n\n".join(_describe(plan) for plan in make_plans(config, environment))


def _describe(plan: Plan) -> str:
    found = distribution(plan.suite)
    lines = [f"{console(plan.suite.id)}: {count(found.cases, 'case')}, {count(found.turns, 'turn')}"]
    if found.recorded:
        lines[0] += f", {count(found.recorded, 'recorded trial')}"
    lines.append("  complexity  " + _counts(found.by_complexity))
    lines.append("  tags        " + _counts({tag or "(none)": n for tag, n in found.by_tag.items()}))
    lines.append("  turns       " + _counts({f"{turns}-turn": n for turns, n in found.by_turns.items()}))
    stated = {"calls": found.expects_calls, "no call": found.expects_no_call, "nothing of calls": found.states_no_calls}
    lines.append("  expects     " + _counts({**stated, "a response": found.expects_response}))
    lines.append("  criteria    " + "\n              ".join(_demand(plan)))
    lines += [f"  note: {note}" for note in plan.notes]
    return "\n".join(lines)


def _counts(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{console(str(name))} {n}" for name, n in counts.items() if n) or "–"


def _demand(plan: Plan) -> list[str]:
    return [f"{console(c.name)}: {threshold(c)}{'' if c.blocking else ' (informational)'}" for c in plan.criteria]


# --- differences ----------------------------------------------------------------------------------


def diff_records(old: Path, new: Path) -> str:
    """What differs between two records, case by case."""
    found = diff(read(old), read(new))
    lines = [f"{name}: {a!r} → {b!r}" for name, (a, b) in found.header.items()]
    lines += [f"criterion {name}: {a or 'absent'} → {b or 'absent'}" for name, (a, b) in found.criteria.items()]
    rows = [("criterion", "old", "new")]
    rows += [(name, _mean(a), _mean(b)) for name, (a, b) in found.means.items()]
    return "\n".join(["\n".join(map(console, lines)) or "same plan and criteria", table(rows), *_case_diffs(found)])


def _mean(mean: Any) -> str:
    return "–" if mean.value is None else f"{mean.value:.3f} (n = {mean.n})"


def _case_diffs(found: RecordDiff) -> Iterable[str]:
    for case in found.cases:
        if case.status == "same" and not case.old_only and not case.new_only:
            continue
        yield f"{console(case.id)}: {case.status}, {case.old_trials} → {count(case.new_trials, 'trial')}"
        for sign, ways in (("-", case.old_only), ("+", case.new_only)):
            for way in ways[:3]:
                calls = " | ".join(", ".join(call_text(c) for c in turn) or "(no call)" for turn in way.turns)
                yield f"  {sign} {way.count}× {calls}"


# --- explaining -----------------------------------------------------------------------------------


def explain_record(
    path: Path, baseline: str | None, config_path: Path, environment: Mapping[str, str], case_id: str | None
) -> str:
    """How the verdict on a record comes about; or one case's trials on both sides."""
    record = read(path)
    if baseline is None and config_path.exists():
        config = load_config(config_path)
        terms = own_terms(record, settings_of(config, now()))
        references = found_again(record.header, terms, config, environment).all
    else:
        path_of_baseline = named(baseline or "none")
        references = (NO_REFERENCE if path_of_baseline is None else read_baseline(path_of_baseline),)
        terms = own_terms(record)
    if case_id is not None:
        return _explain_case(record, references, terms, case_id)
    suite = judge(record, references, terms)
    lines = [
        f"{console(suite.suite_id)}: {suite.verdict.value}: {console(suite.headline)}",
        *map(console, suite.story),
        "",
    ]
    for result in suite.criteria:
        scale = result.criterion.scale
        lines.append(f"{console(result.criterion.name)}: {standing_of(result)}: {console(result.reason)}")
        lines.append(f"  candidate {interval(result.candidate, scale)} {sample(result.candidate)}")
        lines.append(f"  baseline  {interval(result.baseline, scale)} {sample(result.baseline)}")
        lines.append(f"  change    {change_interval(result.change, scale)} {sample(result.change)}")
        if note := evidence(result):
            lines.append(f"  evidence  {console(note)}")
        lines += [f"  of which  {console(name, 80)} {said}" for name, said in dimensions(result)]
    lines += [console(further_line(one)) for one in suite.further]
    lines += ["", *_explain_rule(suite), *_suspects(suite), *_improved(suite), *_tools(suite)]
    return "\n".join(lines)


def _explain_rule(suite: SuiteResult) -> list[str]:
    found = suite.evidence
    if not found:
        why = suite.baseline.missing if suite.baseline else ""
        return [f"no pairing: nothing was tested against a baseline{f' ({console(why)})' if why else ''}"]
    lines = [f"stage: {found['stage']}; seed {suite.seed}"]
    for look in found["looks"]:
        lines.append(f"look after pass {look['passes']}: p = {look['p']:.4f}, blocks at {look['threshold']:.4f}")
    e_value = "beyond all bounds" if found["e_value"] is None else f"{found['e_value']:.3g}"
    lines.append(f"broken cases together: e = {e_value}, blocks at {found['e_threshold']:.0f}")
    return lines


def _suspects(suite: SuiteResult) -> list[str]:
    cases = sorted((c for c in suite.cases if (c.e_value or 0) >= 2), key=lambda c: -(c.e_value or 0))
    return ["", *(_case_line(case) for case in cases[:20])] if cases else []


def _improved(suite: SuiteResult) -> list[str]:
    cases = improved_cases(suite)[:20]
    lines = [f"{console(case.id)}: {improvement(case)}" for case in cases]
    return ["", "passing more often than at the baseline", *lines] if lines else []


def _tools(suite: SuiteResult) -> list[str]:
    rows = [("tool", "calls", "timed", "seconds", "seconds per call")]
    for one in suite.tools:
        mean = "–" if one.seconds_per_call is None else f"{one.seconds_per_call:.3g}"
        rows.append((one.name, str(one.calls), str(one.timed), f"{one.seconds:.3g}", mean))
    return ["", "time per tool, over the turns in which the agent times its tools", table(rows)] if suite.tools else []


def _case_line(case: CaseResult) -> str:
    e_value = f", e = {case.e_value:.3g}" if case.e_value is not None else ""
    before = f"baseline {case.baseline_passed} of {case.baseline_trials}"
    return f"{console(case.id)}: {case.status.value}, {case.passed} of {case.trials} passed, {before}{e_value}"


def _explain_case(record: Record, references: Sequence[Reference], terms: Terms, case_id: str) -> str:
    known = [case.id for case in record.header.plan]
    if case_id not in known:
        raise ConfigError(f"no case {case_id!r} in the record", hint=nearest(case_id, known))
    sides = (
        ("candidate", _compared(record)),
        *((one.name, [trial for stored in one.records for trial in _compared(stored)]) for one in references),
    )
    case = next(one for one in cases_of(record.header, terms.thresholds) if one.id == case_id)
    demanded = {criterion.name: (criterion, _demanded(criterion, case)) for criterion in terms.criteria}
    lines = [console(case_id)]
    for name, trials in sides:
        for trial in (t for t in trials if t.case_id == case_id):
            lines += _trial_lines(name if trial.side.value == "candidate" else "baseline, run now", trial, demanded)
    return "\n".join(lines)


def _demanded(criterion: Criterion, case: Case) -> str:
    """What a criterion demands of a case, met or not; the case's own limit where it has one."""
    own = case.thresholds.get(criterion.name)
    if own is None:
        return threshold(criterion)
    word = "at most" if criterion.direction is Direction.LOWER else "at least"
    return f"{word} {figure(own, criterion.scale)}, this case's own limit"


def _compared(record: Record) -> Sequence[Trial]:
    """The record's trials with what is found by comparing them with one another, and whether each passes."""
    cases, criteria = cases_of(record.header), record.header.criteria
    return with_outcomes(compared(cases, criteria, record.trials), {case.id: case for case in cases}, criteria)


def _trial_lines(side: str, trial: Trial, demanded: Mapping[str, tuple[Criterion, str]]) -> list[str]:
    lines = [f"{side} trial {trial.number}, round {trial.round} ({trial.tag})"]
    if trial.error is not None:
        return [*lines, f"  not measured: {trial.error.kind.value}: {console(trial.error.message, 500)}"]
    for turn, invocation in enumerate(trial.invocations, 1):
        calls = ", ".join(call_text(call) for call in invocation.tool_calls) or "(no call)"
        lines.append(f"  turn {turn}: {calls}")
        if invocation.text:
            lines.append(f"    {console(invocation.text, 300)}")
    for name, score in trial.scores.items():
        criterion, limit = demanded.get(name, (None, ""))
        shown = f" ({limit})" if limit and score.value is not None else ""
        said = console(score.error or score.reason, 300)
        lines.append(f"  {console(name)} {_value(score, criterion)}{shown} {said}".rstrip())
        lines += [f"    {console(part, 80)} {value:.3f}" for part, value in score.dimensions.items()]
    return lines


def _value(score: Score, criterion: Criterion | None) -> str:
    if score.value is None:
        return "not measured" if score.error else "does not apply"
    if criterion is not None and kind_of(criterion.scale) == "positive":
        return figure(score.value, criterion.scale)
    return f"{score.value:.3f}"


def power_of_record(path: Path) -> str:
    """What this record's agent and suite could find: a table and a plot of the detectable drop."""
    return _power(read(path))


def power_of_suites(config: Config, environment: Mapping[str, str]) -> str:
    """The same for each suite of a configuration, by its stored baseline; without one, at the widest spread."""
    where = git_context(config, Git(config.root, environment=environment))
    parts, store = [], store_of(config, environment)
    with store if store is not None else nullcontext():
        for plan in make_plans(config, environment):
            stored = None if store is None else nearest_stored(store, plan.suite.id, where)
            header = Header(plan.suite.id, plan.planned, plan.criteria)
            parts.append(_power(Record(header, (), None) if stored is None else stored.records[0]))
    return "\n\n".join(parts)


def _power(record: Record) -> str:
    header = record.header
    cases = {case.id: case for case in cases_of(header)}
    found = power_table(record.trials, header.criteria, cases=cases)
    if not found.within_sd:
        return f"{console(header.suite_id)}: no case gave two answers over its trials: any case that flips is a change"
    rows: list[Sequence[str]] = [
        ("cases", "trials", "detectable drop", "", "agent runs", "cost", "reruns to prove one broken case")
    ]
    rows += [_power_row(row) for row in found.rows]
    spread = "at most " if found.estimated else ""
    head = f"{console(header.suite_id)}: spread of one case over its trials {spread}{found.within_sd:.3f}; 80 % power, "
    return f"{head}baseline of {found.rows[0].baseline_trials} trials a case\n{table(rows)}"


def _power_row(row: PowerRow) -> tuple[str, ...]:
    bar = "█" * max(1, round(BAR * row.detectable / 0.5)) if row.detectable < 0.5 else "█" * BAR
    cost = "–" if row.cost_usd is None else dollars(row.cost_usd)
    reruns = "over 200" if row.reruns is None else str(row.reruns)
    return (str(row.cases), str(row.trials), figure(row.detectable, Scale.BINARY), bar, str(row.runs), cost, reruns)


def history_of_records(paths: Sequence[Path]) -> str:
    """Pass rates by case over records in the order of their creation; flaky cases are flagged."""
    found = [read(path, complete=False) for path in paths]
    records = sorted((r for r in found if r.footer is not None and r.trials), key=lambda record: record.header.created)
    if not records:
        raise MeasureError("none of these records is finished", hint="continue a run with --resume")
    skipped = f"\n{len(found) - len(records)} unfinished records are left out" if len(records) < len(found) else ""
    newest = records[-1].header
    other = next((r.header.suite_id for r in records if r.header.suite_id != newest.suite_id), None)
    if other is not None:
        raise MeasureError(f"records of two suites: {other!r} and {newest.suite_id!r}", hint="name one suite's records")
    cases = {case.id: case for case in cases_of(newest)}
    rows = [("case", "pass rate", "95 % interval", "trials", "", "by record")]
    for case in case_history([record.trials for record in records], newest.criteria, cases):
        by_record = " ".join(f"{passed}/{trials}" for passed, trials in case.by_record)
        bounds = f"{case.low:.2f}–{case.high:.2f}"
        rows.append((case.id, f"{case.rate:.2f}", bounds, str(case.trials), "flaky" if case.flaky else "", by_record))
    return table(rows) + skipped


async def calibrate_judge(config: Config, labels: Path, metric: str, environment: Mapping[str, str]) -> str:
    """Scores labelled answers with a judged criterion and keeps its agreement with people beside the configuration."""
    scorer = next(
        (
            scorer
            for plan in make_plans(config, environment, calibrating=True)
            for scorer in plan.scorers
            if scorer.criterion.name == metric
        ),
        None,
    )
    if scorer is None or not isinstance(scorer.metric, JudgedMetric):
        raise ConfigError(f"{metric!r} is no judged criterion of this configuration", where=str(config.path))
    judged, mark = scorer.metric, scorer.criterion.pass_threshold
    if mark is None:
        raise ConfigError(f"{metric!r} has no threshold that tells pass from fail", where=str(config.path))
    cache = config.output / "judge.sqlite"
    async with open_judge(config.file.judge, environment=environment, cache_path=cache) as judge:
        found = await calibrate(
            read_labels(labels),
            lambda case, invocation: judged.judge_score(case, TrialOutput((invocation,)), judge),
            lambda value: value >= mark,
        )
    path = config.root / CALIBRATION_FILE
    save(path, scorer.criterion.fingerprint, found)
    return f"{describe(found)}\nkept in {path}"
