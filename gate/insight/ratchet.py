"""Proposes stricter thresholds that the agent already reaches in a record, as edits of the configuration.

Nothing is ever relaxed. An unchanged agent misses a proposed threshold in at most 1 % of runs, counting the error of
the record's own trials, and few trials that pass today would fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gate.baselines.pairing import as_baseline
from gate.config.load import Config
from gate.config.resolve import Plan, make_plans, stated_criteria
from gate.config.schema import NO_STORE
from gate.config.settings import settings_of
from gate.decision.outcomes import PASS_RATE, RATE_METRIC, as_values, measured_values, outcomes_of
from gate.decision.thresholds import quiet_threshold
from gate.errors import BaselineError, ConfigError, nearest
from gate.formats.documents import parse_document
from gate.formats.edits import Edit, edited
from gate.insight.nearest import nearest_by_suite
from gate.model import FULL, Case, Criterion, CriterionResult, Direction, Estimate, Scale, Side, Trial, Verdict
from gate.pipeline.store import store_kind
from gate.pipeline.terms import terms_of_plan
from gate.pipeline.verdict import NO_REFERENCE, judge_record
from gate.records import Record, cases_of, read_record
from gate.reports.formatting import figure, interval, sample
from gate.reports.table import table
from gate.reports.view import View
from gate.security import files
from gate.security.escape import console
from gate.system.clock import now

Epochs = Sequence[tuple[Case, Sequence[Trial]]]
"""The trials of whole epochs, by case."""
HEADERS = ("criterion", "limit", "now", "proposed", "measured")


class Raised(Struct, frozen=True):
    """A limit that can be stricter."""

    name: str
    key: str
    """``threshold``, or a quantile such as ``p95``."""
    before: float
    after: float
    scale: Scale
    estimate: Estimate


class Proposal(Struct, frozen=True):
    """The limits that one suite's record supports."""

    suite_id: str
    raised: tuple[Raised, ...]
    kept: tuple[str, ...]
    """The reasons other limits stay unchanged, one line each."""
    pass_rate: tuple[float, float] = (0.0, 0.0)
    """The record's pass rate under the present and under the proposed thresholds."""


def ratchet(config: Config, record: Path | None, environment: Mapping[str, str], *, write: bool = False) -> str:
    """Return proposals for a record's suite, or for each suite by its newest baseline; ``write`` edits the file.

    Raises:
        BaselineError: no baseline is stored, and no record is named.
        ConfigError: the record belongs to another suite, or the file cannot be edited in place.
    """
    plans = make_plans(config, environment)
    found = _records(config, plans, record, environment)
    proposals = [propose(known, plan, config) for plan, known in found]
    told = [_told(one) for one in proposals]
    changed = _by_file(config, [plan for plan, _ in found], proposals, len(plans))
    for path, keys, raised in changed:
        told.append(_edit(path, keys, raised, write=write))
    if not changed and any(one.raised for one in proposals):
        why = "no file states the criteria (ADK's defaults)"
        if len(found) < len(plans):
            why = "other suites share the criteria, and this record does not cover them"
        if write:
            raise ConfigError(f"nothing to edit: {why}", where=str(config.path), hint="leave --write out")
        told.append(f"not shown as a change of a file: {why}")
    return "\n\n".join(filter(None, told))


def _records(
    config: Config, plans: Sequence[Plan], path: Path | None, environment: Mapping[str, str]
) -> list[tuple[Plan, Record]]:
    by_id = {plan.suite.id: plan for plan in plans}
    if path is not None:
        record = read_record(path)
        suite_id = record.header.suite_id
        if suite_id not in by_id:
            hint = nearest(suite_id, list(by_id))
            raise ConfigError(f"the record belongs to suite {suite_id!r}", where=str(config.path), hint=hint)
        return [(by_id[suite_id], record)]
    if store_kind(config, environment) == NO_STORE:
        raise ConfigError("baseline.store is none", where=str(config.path), hint="name a record")
    known = nearest_by_suite(config, plans, environment)
    found = []
    for plan in plans:
        if plan.suite.id not in known:
            what = f"no baseline of {plan.suite.id!r} is stored"
            raise BaselineError(what, where=str(config.path), hint="name a record: gate ratchet RECORD")
        found.append((plan, known[plan.suite.id].records[0]))
    return found


# --- limits that can be stricter ------------------------------------------------------------------


def propose(record: Record, plan: Plan, config: Config) -> Proposal:
    """Return thresholds that an unchanged agent misses in at most 1 % of runs, and limits of quantiles by interval.

    A higher threshold makes more trials fail, so it is raised only as far as the record's pass rate falls by at most
    its margin, and not below the required pass rate if the record reaches it today.
    """
    record = as_baseline(record)
    terms = terms_of_plan(plan, config, settings_of(config, now()))
    suite = judge_record(record, [NO_REFERENCE], terms)
    epochs, criteria = _epochs(record, plan), list(plan.criteria)
    before = _pass_rate(epochs, criteria)
    if suite.verdict not in (Verdict.PASS, Verdict.INCONCLUSIVE):
        why = f"all: the record itself does not pass: {View(suite).headline}"
        return Proposal(plan.suite.id, (), (why,), (before, before))
    rate = next((one for one in criteria if one.metric == RATE_METRIC), None)
    margin = config.file.gate.pass_rate_margin
    if margin is None:
        margin = Scale.BINARY.default_margin
    least = before - margin
    if rate is not None and rate.blocking and rate.threshold is not None and rate.threshold <= before:
        least = max(least, rate.threshold)
    results = {row.criterion.name: row for row in suite.criteria}
    found: list[Raised | str] = []
    for place, criterion in enumerate(plan.criteria):
        if criterion.hard or criterion.metric == RATE_METRIC:
            continue
        if record.header.measures.get(criterion.name) != criterion.fingerprint:
            found.append(f"{criterion.name}: measured by other options, another metric or judge, or not at all")
            continue

        def holds(value: float, place: int = place) -> bool:
            return _pass_rate(epochs, _with_threshold(criteria, place, value)) >= least - 1e-9

        result = results[criterion.name]
        found += _quantiles(result)
        room = quiet_threshold([measured_values(trials, criterion) for _, trials in epochs], criterion)
        found.append(_threshold(criterion, result.candidate, room, holds))
        if isinstance(found[-1], Raised):
            criteria[:] = _with_threshold(criteria, place, found[-1].after)
    if rate is not None:
        judged = judge_record(record, [NO_REFERENCE], replace(terms, criteria=tuple(criteria))).criteria
        row = next(row for row in judged if row.criterion.name in (PASS_RATE, rate.name))
        if row.candidate is not None:
            room = quiet_threshold(_outcomes(epochs, criteria), rate)
            found.append(_threshold(rate, row.candidate, room, lambda _: True))
    raised = [one for one in found if isinstance(one, Raised)]
    kept = [one for one in found if isinstance(one, str) and one]
    return Proposal(plan.suite.id, tuple(raised), tuple(kept), (before, _pass_rate(epochs, criteria)))


def _with_threshold(criteria: Sequence[Criterion], place: int, value: float) -> list[Criterion]:
    changed = replace(criteria[place], threshold=value, pass_threshold=value)
    return [*criteria[:place], changed, *criteria[place + 1 :]]


def _epochs(record: Record, plan: Plan) -> Epochs:
    """Return the record's own trials of epochs, by case, each with its planned thresholds."""
    cases = {case.id: plan.cases.get(case.id, case) for case in cases_of(record.header)}
    groups: dict[str, list[Trial]] = {}
    for trial in record.trials:
        if trial.side is Side.CANDIDATE and trial.tag == FULL and trial.case_id in cases:
            groups.setdefault(trial.case_id, []).append(trial)
    return [(cases[case_id], trials) for case_id, trials in groups.items()]


def _outcomes(epochs: Epochs, criteria: Sequence[Criterion]) -> list[list[float]]:
    """Return 1 for each trial that passes these criteria, else 0, case by case."""
    return [as_values(outcomes_of(trials, case, criteria)) for case, trials in epochs]


def _pass_rate(epochs: Epochs, criteria: Sequence[Criterion]) -> float:
    """Return the mean over cases of their share of passing trials."""
    means = [sum(known) / len(known) for known in _outcomes(epochs, criteria) if known]
    if not means:
        return 0.0
    return sum(means) / len(means)


def _threshold(
    criterion: Criterion, estimate: Estimate | None, room: float | None, holds: Callable[[float], bool]
) -> Raised | str:
    """Return the highest threshold up to ``room`` under which enough trials pass, or the reason it stays; empty if
    there is nothing to say."""
    name, least, step = criterion.name, criterion.threshold, criterion.scale.step
    if least is None or step is None or criterion.direction is Direction.LOWER:
        return ""
    if estimate is None or room is None:
        return f"{name}: too few trials to say how much it varies"
    low, high = math.floor(least / step + 1e-9), math.floor(room / step + 1e-9)
    if round(high * step, 10) <= least:
        limit, most = figure(least, criterion.scale), figure(room, criterion.scale)
        return f"{name}: at {limit}; above {most} an unchanged agent would miss it in more than 1 % of runs"
    while low < high:
        middle = (low + high + 1) // 2
        if holds(round(middle * step, 10)):
            low = middle
        else:
            high = middle - 1
    after = round(high * step, 10)
    if after <= least:
        return f"{name}: a trial passes at the threshold, and above {least:g} too many would fail"
    return Raised(name, "threshold", least, after, criterion.scale, estimate)


def _quantiles(result: CriterionResult) -> list[Raised | str]:
    """Return limits of quantiles that can be lowered to the upper end of their interval, rounded up to two digits."""
    criterion, limits = result.criterion, dict(result.criterion.quantiles)
    found: list[Raised | str] = []
    for q, estimate in result.quantiles:
        key = f"p{q * 100:g}"
        if estimate.level == 0.0:
            found.append(f"{criterion.name}: too few trials for an interval of {key}")
        elif estimate.high > 0:
            digits = 1 - math.floor(math.log10(estimate.high))
            after = round(math.ceil(estimate.high * 10**digits - 1e-9) / 10**digits, 10)
            if after < limits[q]:
                found.append(Raised(criterion.name, key, limits[q], after, criterion.scale, estimate))
    return found


# --- text and edits -------------------------------------------------------------------------------


def _told(proposal: Proposal) -> str:
    title, lines = f"{console(proposal.suite_id)}: no limit can be stricter", []
    if proposal.raised:
        title = f"{console(proposal.suite_id)}:"
        rows = [HEADERS]
        for one in proposal.raised:
            limits = (figure(one.before, one.scale), figure(one.after, one.scale))
            rows.append((one.name, one.key, *limits, f"{interval(one.estimate, one.scale)} {sample(one.estimate)}"))
        lines = table(rows).splitlines()
        before, after = proposal.pass_rate
        present = f"{figure(before, Scale.BINARY)} under the present thresholds"
        lines.append(f"pass rate of this record: {present}, {figure(after, Scale.BINARY)} under the proposed")
    lines += [f"stays: {console(why)}" for why in proposal.kept]
    return "\n  ".join([title, *lines])


def _by_file(
    config: Config, plans: Sequence[Plan], proposals: Sequence[Proposal], suites: int
) -> list[tuple[Path, tuple[str, ...], list[Raised]]]:
    """Return the edits of each file of criteria. A file shared by several suites gets only edits that all support."""
    by_file: dict[str, tuple[tuple[str, ...], list[Proposal]]] = {}
    for plan, proposal in zip(plans, proposals, strict=True):
        stated = stated_criteria(config, plan.suite)
        if not stated.note:
            keys: tuple[str, ...] = ("criteria",)
            if config.file.criteria is not None:
                keys = stated.place.keys
            by_file.setdefault(stated.place.file, (keys, []))[1].append(proposal)
    if config.file.criteria is not None and len(plans) < suites:
        return []  # they are shared with suites that are unknown here
    edits = []
    for where, (keys, found) in by_file.items():
        edits.append((Path(where), keys, _shared(found)))
    return edits


def _shared(proposals: Sequence[Proposal]) -> list[Raised]:
    """Return the least strict value of each limit, if all suites support it."""
    by_limit: dict[tuple[str, str], list[Raised]] = {}
    for proposal in proposals:
        for one in proposal.raised:
            by_limit.setdefault((one.name, one.key), []).append(one)
    shared = []
    for found in by_limit.values():
        if len(found) == len(proposals):
            least = min if found[0].key == "threshold" else max
            shared.append(least(found, key=lambda raised: raised.after))
    return shared


def _edit(path: Path, keys: tuple[str, ...], raised: Sequence[Raised], *, write: bool) -> str:
    """Return the diff of a file with the proposed limits; ``write`` also writes the file.

    Raises:
        ConfigError: the file should be written but cannot be edited in place.
    """
    if not raised:
        return ""
    text = path.read_text(encoding="utf-8")
    edits = [Edit((*keys, _spelt(text, keys, one.name, path)), one.key, one.after) for one in raised]
    new = edited(text, edits)
    if new is None or not _only(text, new, edits, str(path)):
        if write:
            what = "the criteria cannot be edited in place"
            raise ConfigError(what, where=str(path), hint="they use anchors or another form: edit them by hand")
        return f"{console(str(path))}: edit by hand; it cannot be edited in place"
    diff = unified_diff(text.splitlines(), new.splitlines(), str(path), str(path), lineterm="", n=1)
    lines = list(map(_shown, diff))
    if not write:
        return "\n".join([*lines, "nothing is written; --write edits the file"])
    _replace(path, new)
    return "\n".join([*lines, f"wrote {console(str(path))}"])


def _shown(line: str) -> str:
    """Return a line of a diff for a terminal, with its indentation."""
    mark, rest = line[:1], line[1:]
    return mark + " " * (len(rest) - len(rest.lstrip(" "))) + console(rest, 300)


def _spelt(text: str, keys: tuple[str, ...], name: str, path: Path) -> str:
    """Return a criterion's name as spelt in the file: ADK-TS uses upper case."""
    stated: Any = parse_document(text, str(path))
    for key in keys:
        if not isinstance(stated, dict):
            return name
        stated = stated.get(key, {})
    for key in stated:
        if name in (str(key), str(key).lower()):
            return str(key)
    return name


def _only(text: str, new: str, edits: Sequence[Edit], where: str) -> bool:
    """True if the new text differs from the old one only in these numbers."""
    expected, found = parse_document(text, where), parse_document(new, where)
    for edit in edits:
        inner: Any = expected
        for key in edit.path[:-1]:
            inner = inner[key]
        stated = inner[edit.path[-1]]
        if isinstance(stated, dict):
            stated[edit.key] = edit.value
        else:
            inner[edit.path[-1]] = edit.value
    return bool(expected == found)


def _replace(path: Path, text: str) -> None:
    """Write the file completely or not at all. Links are refused: their target could be anything."""
    if path.is_symlink():
        raise ConfigError("is a link", where=str(path), hint="name the file itself with --config")
    try:
        files.write_text(path, text)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", where=str(path)) from None
