"""The shards of a run: the cases that each runs, and the record of all of them together."""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, islice
from typing import Any

from msgspec.structs import replace

from gate.errors import MeasureError
from gate.model import Side, Trial
from gate.records.model import Footer, Header, PlannedCase, Record, difference, footer_of

OTHER_TERMS = "the shards ran under different criteria or settings: judge them by one configuration (gate merge -c)"
"""The reason why a merged record is not passed without another judgement."""


def assign_shards(plan: Sequence[PlannedCase], shards: int) -> tuple[PlannedCase, ...]:
    """Return the plan with every case assigned to one of ``shards``, so that their expected durations are about equal.

    The longest cases are assigned first, each to the shard with the least so far; a case without a hint counts as the
    mean of the others. Depends on the plan alone, so that every machine makes the same assignment.
    """
    hints = [case.hint for case in plan if case.hint is not None]
    usual = 1.0
    if hints:
        usual = math.fsum([hint / len(hints) for hint in hints])  # a stored record may claim any duration
    expected = {}
    for case in plan:
        expected[case.id] = usual if case.hint is None else case.hint
    loads = [(0.0, 0, shard) for shard in range(1, shards + 1)]
    chosen: dict[str, int] = {}
    for case_id in sorted(expected, key=lambda case_id: (-expected[case_id], case_id)):
        seconds, cases, shard = heapq.heappop(loads)
        heapq.heappush(loads, (seconds + expected[case_id], cases + 1, shard))
        chosen[case_id] = shard
    return tuple([replace(case, shard=chosen[case.id]) for case in plan])


def merge(records: Sequence[Record]) -> Record:
    """Return the record that one run over all shards would have produced.

    Raises `MeasureError` if a shard is missing, duplicated, not closed, of another plan, commit or version, or has
    trials of cases that are not its own.
    """
    if not records:
        raise MeasureError("no shards to merge")
    first, total = records[0].header, records[0].header.shard[1]
    by_shard: dict[int, Record] = {}
    for record in records:
        index = record.header.shard[0]
        _check_shard(record, first, by_shard)
        by_shard[index] = record
    if len(by_shard) < total:
        absent = islice((str(index) for index in range(1, total + 1) if index not in by_shard), 20)
        raise MeasureError(f"shards are missing: {', '.join(absent)} of {total}", hint="run them, then merge")
    ordered = [by_shard[index] for index in sorted(by_shard)]
    trials = tuple(chain.from_iterable([record.trials for record in ordered]))
    plan = tuple([replace(case, shard=1) for case in first.plan])
    created = min(record.header.created for record in ordered)
    header = replace(first, plan=plan, shard=(1, 1), epochs=0, created=created, run_id=_run_of(ordered))
    return Record(header, trials, _joined(ordered, trials))


def _run_of(shards: Sequence[Record]) -> str:
    """Return the run id of the shards together, which changes if any of them is run anew."""
    ids = [record.header.run_id for record in shards]
    return ids[0] if len(set(ids)) == 1 else blake2b("\n".join(ids).encode(), digest_size=16).hexdigest()


def _check_shard(record: Record, first: Header, earlier: dict[int, Record]) -> None:
    header = record.header
    name = f"shard {header.shard[0]} of {header.shard[1]}"
    if header.shard[1] != first.shard[1]:
        raise MeasureError(f"{name} belongs to another run: the others are of {first.shard[1]}")
    if header.shard[0] in earlier:
        raise MeasureError(f"{name} occurs twice", hint="merge each shard's newest record once")
    if record.footer is None:
        raise MeasureError(f"{name} is truncated: it was not closed", hint="continue it with --resume")
    different = difference(replace(header, shard=first.shard), first)
    if not different and header.gate_version != first.gate_version:
        different = f"it was written by version {header.gate_version!r}, not {first.gate_version!r}"
    if different:
        raise MeasureError(f"{name} belongs to another run: {different}", hint="merge shards of one run only")
    own = set(header.own_cases)
    missing = _missing(record, own)
    if missing:
        what = f"{name} lacks {missing} of {len(own) * header.epochs} planned trials"
        raise MeasureError(what, hint="continue it with --resume")
    for trial in record.trials:
        if trial.case_id not in own:
            what = f"it has trials of case {trial.case_id[:60]!r}, which is another shard's"
            raise MeasureError(f"{name} belongs to another run: {what}")


def _missing(record: Record, own: Iterable[str]) -> int:
    """Return the number of planned trials that a shard lacks, failed ones included; 0 if it states why it stopped."""
    if record.footer is None or record.footer.stopped:
        return 0
    ran = Counter(trial.case_id for trial in record.trials if trial.side is Side.CANDIDATE)
    return sum(max(0, record.header.epochs - ran[case_id]) for case_id in own)


def _joined(records: list[Record], trials: tuple[Trial, ...]) -> Footer:
    """Return the footer of all shards. They run in parallel, so costs are added and durations are not."""
    found = footer_of(trials)
    costs, reasons, terms = [], dict[str, None](), []
    for record in records:
        footer = record.footer
        if footer is None:
            continue
        terms.append(footer.terms)
        if footer.judge_cost_usd is not None:
            costs.append(footer.judge_cost_usd)
        if footer.stopped:
            reasons[footer.stopped] = None
        found = replace(found, duration=max(found.duration, footer.duration))
    cost = sum(costs) if costs else None
    return replace(found, judge_cost_usd=cost, stopped="; ".join(reasons), terms=_joined_terms(terms))


def _joined_terms(terms: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the terms of the first shard with the notes of all; the command ran one shard alone.

    If the shards' terms differ, those of the first are a guess, and a pass by them is not trusted.
    """
    first = next(filter(None, terms), {})
    if len(terms) < 2 or not first:
        return first
    notes = {}
    for one in terms:
        told = one.get("notes")
        if isinstance(told, list | tuple):
            for note in told:  # a text, or a finding with its fields
                notes[json.dumps(note, sort_keys=True)] = note
    joined = {**first, "notes": list(notes.values()), "command": ""}
    if any(_rules(one) != _rules(first) for one in terms):
        joined["doubts"] = [*first.get("doubts", ()), OTHER_TERMS]
    return joined


def _rules(terms: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in terms.items() if name not in ("notes", "command")}
