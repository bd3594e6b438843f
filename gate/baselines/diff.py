"""The differences between two records, as data: cases, means per criterion, and trajectories. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gate.model import FULL, STORED, Criterion, Side, ToolCall, Trial
from gate.records import PlannedCase, Record, strip

EPOCHS = (FULL, STORED)
"""Tags of the trials that means are made of."""


class Mean(Struct, frozen=True):
    """A mean over the trials of a case, or over cases; ``value`` is None if there is no score."""

    value: float | None
    n: int
    """Trials, or cases."""


class Trajectory(Struct, frozen=True):
    """A way that trials went, and how many went it."""

    turns: tuple[tuple[ToolCall, ...], ...]
    count: int


class CaseDiff(Struct, frozen=True):
    """One case in both records; ``old`` or ``new`` figures are empty if it is in one only."""

    id: str
    status: str
    """``added``, ``removed``, ``changed`` (another content, so not comparable) or ``same``."""
    old_trials: int
    new_trials: int
    means: Mapping[str, tuple[Mean, Mean]]
    """By criterion: old and new, without reruns, which were picked by outcome."""
    old_only: tuple[Trajectory, ...] = ()
    """Trajectories that only the old record has, most frequent first."""
    new_only: tuple[Trajectory, ...] = ()


class RecordDiff(Struct, frozen=True):
    """Everything that differs, and the figures of what does not."""

    header: Mapping[str, tuple[Any, Any]]
    """Suite, commit, agent, gate version: those that differ, old and new."""
    criteria: Mapping[str, tuple[str, str]]
    """By criterion, what of it differs, old and new, in words; empty text if it is in one record only."""
    means: Mapping[str, tuple[Mean, Mean]]
    """By criterion, over all cases that are comparable, each once."""
    cases: tuple[CaseDiff, ...]
    """In the new record's order, then those that are gone."""


def diff(old: Record, new: Record) -> RecordDiff:
    """Compares two records in their stripped form; only trials of each record's own agent count."""
    old, new = _own(old), _own(new)
    names = ("suite_id", "commit", "agent", "gate_version", "dirty")
    header = {name: (getattr(old.header, name), getattr(new.header, name)) for name in names}
    before, after = _by_case(old), _by_case(new)
    plans = {case.id: case for case in old.header.plan}, {case.id: case for case in new.header.plan}
    ids = dict.fromkeys([case.id for case in (*new.header.plan, *old.header.plan)])
    criteria = _criteria(old, new)
    cases = [_case(plans[0].get(i), plans[1].get(i), before.get(i, []), after.get(i, []), criteria) for i in ids]
    shared = [case for case in cases if case.status == "same"]
    return RecordDiff(
        header={name: pair for name, pair in header.items() if pair[0] != pair[1]},
        criteria={name: words for name, words in criteria.items() if words[0] != words[1]},
        means={
            name: (_over([c.means[name][0] for c in shared]), _over([c.means[name][1] for c in shared]))
            for name in criteria
        },
        cases=tuple(cases),
    )


def _own(record: Record) -> Record:
    return strip(replace(record, trials=tuple(trial for trial in record.trials if trial.side is Side.CANDIDATE)))


def _by_case(record: Record) -> dict[str, list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for trial in record.trials:
        found.setdefault(trial.case_id, []).append(trial)
    return found


def _criteria(old: Record, new: Record) -> dict[str, tuple[str, str]]:
    before = {criterion.name: criterion for criterion in old.header.criteria}
    after = {criterion.name: criterion for criterion in new.header.criteria}
    return {name: _words(before.get(name), after.get(name)) for name in dict.fromkeys([*after, *before])}


def _words(one: Criterion | None, other: Criterion | None) -> tuple[str, str]:
    """The fields in which the two differ, spelled out for each."""
    if one is None or other is None:
        return ("" if one is None else one.metric, "" if other is None else other.metric)
    pairs = [(name, getattr(one, name), getattr(other, name)) for name in Criterion.__struct_fields__]
    different = [(name, first, second) for name, first, second in pairs if first != second]
    return (
        ", ".join(f"{_label(name)} {_plain(first)}" for name, first, _ in different),
        ", ".join(f"{_label(name)} {_plain(second)}" for name, _, second in different),
    )


def _label(name: str) -> str:
    return name.replace("_", " ")


def _plain(value: Any) -> str:
    """A value as people write it, not as the language does."""
    if isinstance(value, Enum):
        return str(value.value)
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, tuple | list):
        return " ".join(map(_plain, value)) or "none"
    return str(value) or "none"


def _case(
    old: PlannedCase | None, new: PlannedCase | None, before: list[Trial], after: list[Trial], criteria: Iterable[str]
) -> CaseDiff:
    status = "same"
    if old is None or new is None:
        status = "added" if old is None else "removed"
    elif old.fingerprint != new.fingerprint:
        status = "changed"
    known = new or old
    ways_before, ways_after = _trajectories(before), _trajectories(after)
    return CaseDiff(
        id=known.id if known else "",
        status=status,
        old_trials=len(before),
        new_trials=len(after),
        means={name: (_mean(before, name), _mean(after, name)) for name in criteria},
        old_only=tuple(way for key, way in ways_before.items() if key not in ways_after),
        new_only=tuple(way for key, way in ways_after.items() if key not in ways_before),
    )


def _mean(trials: Iterable[Trial], criterion: str) -> Mean:
    """Return the mean over the epochs that ran every case, as reports have it."""
    scores = [trial.scores[criterion].value for trial in trials if trial.tag in EPOCHS and criterion in trial.scores]
    return _mean_of([value for value in scores if value is not None])


def _over(cases: Iterable[Mean]) -> Mean:
    """The mean over cases, each by its own."""
    return _mean_of([case.value for case in cases if case.value is not None])


def _mean_of(values: Sequence[float]) -> Mean:
    return Mean(sum(values) / len(values) if values else None, len(values))


def _trajectories(trials: list[Trial]) -> dict[str, Trajectory]:
    """The distinct trajectories of trials that could be measured, most frequent first."""
    found: dict[str, Trajectory] = {}
    for trial in trials:
        if trial.error is not None:
            continue
        turns = tuple(tuple(replace(c, duration=None) for c in turn.tool_calls) for turn in trial.invocations)
        key = json.dumps([[(call.name, call.args) for call in turn] for turn in turns], sort_keys=True)
        earlier = found.get(key)
        found[key] = Trajectory(turns, 1 if earlier is None else earlier.count + 1)
    return dict(sorted(found.items(), key=lambda item: -item[1].count))
