"""Compares several records; cases are paired by content, criteria by fingerprint. Runs nothing, decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, combinations
from math import fsum
from pathlib import Path

from msgspec import Struct

from gate.baselines.pairing import as_baseline, match_cases
from gate.decision.outcomes import PASS_RATE, RATE_METRIC, passed
from gate.decision.own_models import OwnModels, moved, own_models_of
from gate.errors import ConfigError, MeasureError, nearest
from gate.insight.lineup_figures import Measured, count_comparisons, dominated, measures_of, preferences_of
from gate.model import FULL, Case, Direction, Scale, Side, Trial
from gate.model.lineup import Lineup, LineupEntry, OrderedVote
from gate.pipeline.terms import Terms, own_terms
from gate.pipeline.verdict import load_to_judge
from gate.records import Record, cases_of
from gate.reports.formatting import count, listing
from gate.system.prices import turn_cost

MOST_ENTRIES = 26
"""Maximum number of entries: each has a letter."""
COST, LATENCY, TOKENS = "cost of a trial", "latency of a trial", "tokens of a trial"
_SAME_AS = ("cost", "latency", "tokens")
"""Criteria that measure what is compared in any case."""
OTHER_WAY = "measured in another way"
NOT_MEASURED = "not measured"


class Contender(Struct, frozen=True, dict=True):
    """A record to compare, with its name."""

    name: str
    record: Record
    source: str = ""

    @cached_property
    def models(self) -> OwnModels:
        """By criterion, the models that shaped its scores."""
        return own_models_of(self.record.trials)


class SharedCases(Struct, frozen=True):
    """The cases that all contenders share."""

    cases: tuple[Case, ...]
    """The cases as in the first entry."""
    trials: tuple[Mapping[str, tuple[Trial, ...]], ...]
    """By contender: case → its trials of whole epochs, including lost ones, under the ids of the first entry."""


def read_contenders(named: Sequence[tuple[str, Path]]) -> list[Contender]:
    """Return the records in these files. Raises `MeasureError` for one that is missing, unfinished, damaged or a
    shard."""
    found = []
    for name, path in named:
        record = load_to_judge(path)
        if record.header.shard != (1, 1):
            raise MeasureError("the record is a shard", where=str(path), hint="`gate merge` joins the shards")
        found.append(Contender(name, record, str(path)))
    return found


def check_contenders(names: Sequence[str]) -> None:
    """Raise `ConfigError` for too few names, too many, or duplicates."""
    if len(names) < 2:
        raise ConfigError("a table compares two or more", hint="name further records or configurations")
    if len(names) > MOST_ENTRIES:
        raise ConfigError(f"{len(names)} are too many to compare: {MOST_ENTRIES} at most")
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two are named {name!r}", hint="give them different names: NAME=FILE")


def line_up(
    contenders: Sequence[Contender],
    terms: Terms | None = None,
    *,
    quality: str = PASS_RATE,
    votes: Sequence[OrderedVote] = (),
    judge_cost_usd: float | None = None,
) -> Lineup:
    """Return the comparison of these records; ``terms`` decide if a trial passes, the first record's own by default.

    Raises:
        MeasureError: the records have no case in common.
        ConfigError: nothing that is compared has the name in ``quality``.
    """
    terms = terms or own_terms(contenders[0].record)
    common = common_cases(contenders, terms)
    measured = list(_measured(contenders, common, terms))
    voted = {frozenset((vote.first, vote.second)) for vote in votes}
    pairs = [(one, other) for other, one in combinations(range(len(contenders)), 2) if {one, other} in voted]
    comparisons = count_comparisons(measured, len(pairs))
    measures = measures_of(measured, comparisons)
    names = [one.name for one in measures]
    if quality not in names:
        raise ConfigError(f"nothing is measured of {quality!r}", where="--quality", hint=nearest(quality, names))
    axes = [one for one in measures if one.name in (quality, COST, LATENCY)]
    entries = list(map(_entry, contenders, common.trials))
    return Lineup(
        entries=tuple(entries),
        measures=measures,
        cases=len(common.cases),
        comparisons=comparisons,
        quality=quality,
        cost=COST if COST in names else "",
        latency=LATENCY if LATENCY in names else "",
        dominated=dominated(axes, len(contenders)),
        preferences=preferences_of(votes, pairs, comparisons),
        votes=tuple(votes),
        judge_cost_usd=judge_cost_usd,
        notes=(*_notes(contenders, common, measured), *_drift(entries)),
    )


# --- common cases and trials ----------------------------------------------------------------------


def common_cases(contenders: Sequence[Contender], terms: Terms) -> SharedCases:
    """Return the cases that all have with the same content, and each contender's trials of them."""
    first = contenders[0].record.header
    shared = {case.id for case in first.plan}
    matches = []
    for one in contenders:
        match = match_cases(first.plan, one.record.header.plan)
        matches.append(match)
        shared &= {match.ids[old] for old in match.same}
    cases = [case for case in cases_of(first, terms.thresholds) if case.id in shared]
    if not cases:
        raise MeasureError(
            "they have no case in common",
            where=", ".join(one.source or one.name for one in contenders[:5]),
            hint="they are records of different suites, or every case was edited",
        )
    trials = []
    for one, match in zip(contenders, matches, strict=True):
        ids = {old: match.ids[old] for old in match.same if match.ids[old] in shared}
        trials.append(_epochs(one.record, ids))
    return SharedCases(tuple(cases), tuple(trials))


def _epochs(record: Record, ids: Mapping[str, str]) -> dict[str, tuple[Trial, ...]]:
    """Return the candidate's trials of whole epochs by the first entry's case id; reruns were picked by outcome."""
    found: dict[str, list[Trial]] = {}
    for trial in sorted(as_baseline(record).trials, key=lambda trial: (trial.round, trial.number)):
        if trial.side is Side.CANDIDATE and trial.tag == FULL and trial.case_id in ids:
            found.setdefault(ids[trial.case_id], []).append(trial)
    return {case_id: tuple(group) for case_id, group in found.items()}


def _entry(one: Contender, trials: Mapping[str, Sequence[Trial]]) -> LineupEntry:
    measured = failed = lost = 0
    times = []
    for trial in chain.from_iterable(trials.values()):
        measured += trial.measured
        failed += trial.failed
        lost += not trial.measured
        if trial.started is not None:
            times.append(trial.started)
    return LineupEntry(
        one.name,
        one.source,
        one.record.header.suite_id,
        one.record.header.commit,
        trials=measured,
        failed=failed,
        lost=lost,
        started=min(times, default=0.0),
        ended=max(times, default=0.0),
    )


# --- their measurements ---------------------------------------------------------------------------


Value = Callable[[Case, Trial], float | None]
"""Returns the value of a measured trial; None if it has none."""


def _measured(contenders: Sequence[Contender], common: SharedCases, terms: Terms) -> Iterator[Measured]:
    """Yield the pass rate, each criterion, and cost, latency and tokens of answered trials.

    A trial passes by the criteria that all contenders measured in the same way; a criterion has values of those that
    measured it like the first one that did.
    """

    def measure(name: str, scale: Scale, direction: Direction, value: Value, apart: tuple[str, ...] = ()) -> Measured:
        values = []
        for place, trials in enumerate(common.trials):
            if apart and apart[place]:
                trials = {}  # noqa: PLW2901
            values.append(_values(common.cases, trials, value))
        return Measured(name, scale, direction, tuple(values), apart)

    passing, first = [], contenders[0].record.header.measures
    for criterion in terms.criteria:
        is_same = first.get(criterion.name) == criterion.fingerprint and not any(_apart(contenders, criterion.name))
        if is_same and criterion.metric != RATE_METRIC:
            passing.append(criterion)
    known = {criterion.name: criterion for criterion in terms.criteria}  # these take precedence
    for one in contenders:
        known = {**{criterion.name: criterion for criterion in one.record.header.criteria}, **known}
    yield measure(PASS_RATE, Scale.BINARY, Direction.HIGHER, lambda case, trial: passed(trial, case, passing))
    for name, criterion in known.items():
        if criterion.metric != RATE_METRIC and criterion.metric not in _SAME_AS:
            apart = _apart(contenders, name)
            yield measure(name, criterion.scale, criterion.direction, partial(_score, name), apart)
    yield measure(COST, Scale.USD, Direction.LOWER, _cost)
    yield measure(LATENCY, Scale.SECONDS, Direction.LOWER, _latency)
    yield measure(TOKENS, Scale.COUNT, Direction.LOWER, _tokens)


def _values(cases: Sequence[Case], trials: Mapping[str, Sequence[Trial]], value: Value) -> dict[str, list[float]]:
    """Return the values of the measured trials, by case."""
    found: dict[str, list[float]] = {}
    for case in cases:
        for trial in trials.get(case.id, ()):
            known = value(case, trial) if trial.measured else None
            if known is not None:
                found.setdefault(case.id, []).append(float(known))
    return found


def _apart(contenders: Sequence[Contender], name: str) -> tuple[str, ...]:
    """Return for each contender the reason its scores of a criterion are not compared; empty if they were measured like
    those of the first that has any, by the same models."""
    first: Contender | None = None
    apart = []
    for one in contenders:
        fingerprint = one.record.header.measures.get(name)
        if fingerprint is None:
            apart.append(NOT_MEASURED)
            continue
        first = first or one
        is_other_model = moved(one.models.get(name, ()), first.models.get(name, ()))
        if is_other_model or fingerprint != first.record.header.measures[name]:
            apart.append(OTHER_WAY)
        else:
            apart.append("")
    return tuple(apart)


def _score(name: str, _: Case, trial: Trial) -> float | None:
    found = trial.scores.get(name)
    if found is None:
        return None
    return found.value


def _cost(_: Case, trial: Trial) -> float | None:
    """Return US dollars, as reported or by list price; None if a turn has neither."""
    if not trial.answered or not trial.invocations:
        return None
    costs = []
    for turn in trial.invocations:
        cost = turn_cost(turn.usage)
        if cost is None:
            return None
        costs.append(cost)
    return fsum(costs)


def _latency(_: Case, trial: Trial) -> float | None:
    if not trial.answered:
        return None
    return trial.duration


def _tokens(_: Case, trial: Trial) -> float | None:
    """Return the tokens of all turns; None if one does not report them."""
    if not trial.answered or trial.usage is None:
        return None
    return trial.usage.tokens


# --- notes for readers ----------------------------------------------------------------------------


def _notes(contenders: Sequence[Contender], common: SharedCases, measured: Sequence[Measured]) -> list[str]:
    notes = []
    for one in contenders:
        left = len(one.record.header.plan) - len(common.cases)
        if left:
            notes.append(f"{one.name}: {count(left, 'case')} left out, which others do not have with the same content")
    suites = dict.fromkeys(one.record.header.suite_id for one in contenders)
    if len(suites) > 1:
        notes.append(f"records of {count(len(suites), 'suite')} ({listing(suites)}): cases are paired by their content")
    for row in measured:
        other = [one.name for one, why in zip(contenders, row.apart, strict=False) if why == OTHER_WAY]
        if other:
            notes.append(f"{row.name}: {OTHER_WAY} (options, metric or judge) by {listing(other)}: left out")
    for one in contenders:
        if one.record.footer is not None and one.record.footer.stopped:
            notes.append(f"{one.name}: ended early ({one.record.footer.stopped})")
    return notes


def _drift(entries: Sequence[LineupEntry]) -> list[str]:
    """Return a note if records were made at different times: the differences then include moves of the provider."""
    started = [one.started for one in entries if one.started]
    ended = [one.ended for one in entries if one.started]
    if len(started) < 2 or max(started) <= min(ended):
        return []
    return ["not run side by side: what moved the provider between these runs is in the differences, too"]


def worse_than_first(lineup: Lineup) -> list[str]:
    """Return the entries that are shown to be worse than the first, whatever they cost."""
    judged = [one for one in lineup.measures if one.name not in (COST, LATENCY, TOKENS)]
    worse = []
    for place, entry in enumerate(lineup.entries):
        if place and any(one.better(0, place) for one in judged):
            worse.append(entry.name)
    return worse


def incomparable(lineup: Lineup) -> list[str]:
    """Return the entries whose quality cannot be compared with the first's, so that they may be worse."""
    row, compared = lineup.measure(lineup.quality), {0}
    if row is not None:
        for one in row.differences:
            if 0 in (one.one, one.other):
                compared |= {one.one, one.other}
    return [entry.name for place, entry in enumerate(lineup.entries) if place not in compared]
