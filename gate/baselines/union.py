"""Unites the measurements of several runs of one commit: a stored record is never replaced by less. Pure.

The result does not depend on the order in which runs are saved, and saving a run again adds nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gate.model import Trial
from gate.records import Footer, Header, Record, Run, difference, footer_of
from gate.records.lines import trial_line

MOST_PER_CASE = 1_000
"""Average trials per case beyond which a commit is known well enough, so that further runs are not added."""
MOST = 200_000
"""Trials of one record beyond which further runs are not added."""


class RunPart(Struct, frozen=True):
    """One run of a stored record, with its own trials."""

    run: Run
    trials: tuple[Trial, ...]


def run_ids(header: Header) -> tuple[str, ...]:
    """Return the runs whose trials a record holds, oldest first.

    A run without an id is identified by the time it began.
    """
    if header.runs:
        return tuple(run.id for run in header.runs)
    return (header.run_id or f"unnamed {header.created}",)


def parts_of(record: Record) -> tuple[RunPart, ...]:
    """Return the record's trials, run by run."""
    header = record.header
    runs = header.runs or (Run(run_ids(header)[0], header.created, len(record.trials)),)
    parts, start = [], 0
    for run in runs:
        parts.append(RunPart(run, record.trials[start : start + run.trials]))
        start += run.trials
    return tuple(parts)


def trials_of(record: Record) -> tuple[Trial, ...]:
    """Return the record's trials; if they are from several runs, each names its run."""
    if not record.header.runs:
        return record.trials
    found: list[Trial] = []
    for part in parts_of(record):
        found += [replace(trial, run=part.run.id) for trial in part.trials]
    return tuple(found)


def is_sound(record: Record) -> bool:
    """True if the runs that the header lists account for every trial."""
    runs = record.header.runs
    return not runs or sum(run.trials for run in runs) == len(record.trials)


def without(record: Record, ids: Set[str]) -> Record | None:
    """Return the record without the trials of some runs; None if nothing is left."""
    parts = parts_of(record)
    kept = [part for part in parts if part.run.id not in ids]
    if not kept:
        return None
    if len(kept) == len(parts):
        return record
    return _joined(record.header, kept, record.footer)


def unite(stored: Record, new: Record) -> tuple[Record, str]:
    """Return the record of a commit once ``new`` is saved in addition to ``stored``, and why part of it was not added.

    Both are of one suite and commit; the reason is empty if all of it was added. Records that do not fit together,
    because the criteria, the cases or the agent's environment differ, cannot share a header. Then the one that measured
    more stays, or the newer one if they measured the same.
    """
    why = difference(new.header, stored.header)
    if why:
        if _rank(new) > _rank(stored):
            return new, f"it takes the place of a record of the same commit that measured no more, for {why}"
        why = difference(stored.header, new.header)
        return stored, f"not added, for a record of the same commit that measured more stays: {why}"
    merged = {part.run.id: part for part in parts_of(stored)}
    left_out = ""
    for part in parts_of(new):
        known = merged.get(part.run.id)
        if known is not None:
            merged[part.run.id] = _same_run(known, part)
        elif _is_full(merged.values(), stored):
            left_out = "the record of this commit holds enough trials already, so none were added"
        else:
            merged[part.run.id] = part
    parts = sorted(merged.values(), key=lambda part: part.run.age)
    for record in (stored, new):
        if tuple(parts) == parts_of(record):
            return record, left_out
    older, newer = sorted((stored, new), key=lambda record: (record.header.created, record.header.run_id))
    return _joined(newer.header, parts, _footer(newer.footer, older.footer, parts)), left_out


def _rank(record: Record) -> tuple[Any, ...]:
    measured = sum(trial.measured for trial in record.trials)
    header = record.header
    return len(header.plan), len(header.criteria), measured, header.created, header.run_id, _digest(record.trials)


def _is_full(parts: Iterable[RunPart], record: Record) -> bool:
    trials = sum(len(part.trials) for part in parts)
    return trials >= min(MOST, MOST_PER_CASE * max(len(record.header.plan), 1))


def _same_run(one: RunPart, other: RunPart) -> RunPart:
    """Return the version of a run that contains the other, as a continued run contains its beginning.

    If neither does, for instance because two jobs continued one record, return each trial of either, as often as one of
    them has it.
    """
    lines = trial_lines(one.trials), trial_lines(other.trials)
    have, more = Counter(lines[0]), Counter(lines[1])
    if more <= have:
        return one
    if have <= more:
        return other
    missing = more - have
    extra = []
    for line, trial in zip(lines[1], other.trials, strict=True):
        if missing[line] > 0:
            missing[line] -= 1
            extra.append(trial)
    trials = (*one.trials, *extra)
    created = max(one.run.created, other.run.created)
    return RunPart(Run(one.run.id, created, len(trials)), trials)


def trial_lines(trials: Sequence[Trial]) -> list[bytes]:
    """Return the trials as lines, without their numbers, which are assigned again when records are united."""
    return [trial_line(replace(trial, number=1)) for trial in trials]


def _digest(trials: Sequence[Trial]) -> str:
    digest = hashlib.sha256()
    for line in sorted(trial_lines(trials)):
        digest.update(line)
    return digest.hexdigest()[:32]


def _joined(header: Header, parts: Sequence[RunPart], footer: Footer | None) -> Record:
    """Return the parts as one record, with trials numbered from 1 per case."""
    numbers = Counter[str]()
    trials = []
    runs = []
    for part in parts:
        runs.append(replace(part.run, trials=len(part.trials)))
        for trial in part.trials:
            numbers[trial.case_id] += 1
            trials.append(replace(trial, number=numbers[trial.case_id]))
    newest = max(run.created for run in runs)
    head = replace(header, runs=tuple(runs), run_id=runs[-1].id, created=newest)
    closing = footer_of(tuple(trials))
    if footer is not None:
        counts = {"trials": closing.trials, "errors": closing.errors, "rounds": closing.rounds}
        closing = replace(footer, stopped="", **counts)
    return Record(head, tuple(trials), closing)


def _footer(one: Footer | None, other: Footer | None, parts: Sequence[RunPart]) -> Footer | None:
    """Return durations and costs of both, with the terms of the newer; for one run saved twice, those of the longer."""
    if one is None or other is None:
        return one or other
    if len(parts) == 1:
        return max(one, other, key=lambda footer: (footer.trials, footer.duration))
    costs = [footer.judge_cost_usd for footer in (one, other) if footer.judge_cost_usd is not None]
    return replace(
        one,
        duration=one.duration + other.duration,
        judge_cost_usd=sum(costs) if costs else None,
    )
