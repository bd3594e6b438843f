"""The base commit's agent in place of a stored baseline: its trials stand in the record that they are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from gate.baselines.pairing import Reference, reference_to
from gate.model import BASE, FULL, Side, Trial
from gate.records import Header, Record

EPOCHS = 3
"""Trials of each case that the base commit's agent is run for: with so many a single case that breaks can be proven."""
SOURCE = "its agent, run beside this change"


def with_base(header: Header, trials: Iterable[Trial], references: Sequence[Reference]) -> tuple[Reference, ...]:
    """Return the references, the first with what the record has of the base's agent, if it may stand in for it.

    An agent that never answered is no yardstick.
    """
    if not references or not references[0].beside:
        return tuple(references)
    own = tuple([replace(trial, tag=FULL, side=Side.CANDIDATE) for trial in trials if trial.tag == BASE])
    if not any(trial.answered for trial in own):
        return tuple(references)
    of_base = replace(header, commit=header.base_commit, dirty=False, run_id=f"{header.run_id} base")
    found = reference_to([Record(of_base, own, None)], header.base_commit, distance=0, source=SOURCE)
    return (replace(found, beside=True), *references[1:])
