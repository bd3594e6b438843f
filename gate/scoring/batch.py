"""Scores recorded trials in batches: one function for this process, worker processes and a cluster.

`gate.pipeline.trials` and `executor` decide where and when batches are scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter, time
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gate.agents.base import AgentFailure
from gate.agents.replay import answer_of
from gate.model import Case, Invocation, Trial, TrialError, total_duration
from gate.records import bare, to_record
from gate.scoring.score import Scorer, score_recorded
from gate.security.redact import Redactor
from gate.system.serialize import pack, pack_invocations, unpack, unpack_invocations


class Recording(NamedTuple):
    """A recorded trial to be scored."""

    case: int
    """Index of its case in the batch."""
    number: int
    invocations: Sequence[Invocation] | bytes
    """The turns, or a packed tuple of them."""
    error: str | None


class Scored(NamedTuple):
    """A trial that was scored."""

    trial: Trial
    """The part of it that stays in memory: `bare`."""
    line: bytes
    """Its line in the record."""


class Batch(Struct, frozen=True):
    """Recorded trials with their cases."""

    cases: Sequence[Case]
    recordings: Sequence[Recording]


class ScoredBatch(Struct, frozen=True):
    """A scored batch, in its order."""

    scored: Sequence[Scored]
    seconds: float
    """Seconds spent on scoring."""


class ScoringSetup(Struct, frozen=True):
    """The parts of scoring that are the same for all trials."""

    scorers: Sequence[Scorer]
    transient: Sequence[str] = ()
    """Texts in a recorded error that mark it as infrastructure rather than the agent's own failure."""


def score_batch(setup: ScoringSetup, batch: Batch, redactor: Redactor) -> ScoredBatch:
    """Score, redact and encode every trial of the batch."""
    began = perf_counter()
    scored = [_score(setup, batch.cases[recording.case], recording, redactor) for recording in batch.recordings]
    return ScoredBatch(scored, perf_counter() - began)


def score_packed(setup: ScoringSetup, data: bytes) -> bytes:
    """Return the packed `ScoredBatch` of a packed `Batch`, for use if no secret values are known."""
    return pack(score_batch(setup, unpack(data), Redactor()))


def pack_batch(batch: Batch) -> bytes:
    """Return the batch as bytes; conversations already packed are used as they are."""
    recordings = [one._replace(invocations=_packed(one.invocations)) for one in batch.recordings]
    return pack(Batch([replace(case, content=None) for case in batch.cases], recordings))


def _score(setup: ScoringSetup, case: Case, recording: Recording, redactor: Redactor) -> Scored:
    trial = score_recorded(setup.scorers, case, _replayed(case, recording, setup.transient))
    trial, line = to_record(trial, redactor)
    return Scored(bare(trial), line)


def _replayed(case: Case, recording: Recording, transient: Sequence[str]) -> Trial:
    """Return the trial as the replay agent would have served it, turn by turn."""
    kept = recording.invocations
    said = unpack_invocations(kept) if isinstance(kept, bytes) else tuple(kept)
    invocations: list[Invocation] = []
    error = None
    try:
        for turn in range(len(case.turns if case.scenario is None else said) or 1):
            invocations.append(answer_of(said, recording.error, trial=recording.number, turn=turn))
    except AgentFailure as raised:
        failure = raised.under(transient)
        error = TrialError(failure.kind, failure.message)
    return Trial(
        case.id,
        recording.number,
        invocations=tuple(invocations),
        error=error,
        duration=total_duration(invocations),
        started=time(),
    )


def _packed(said: Sequence[Invocation] | bytes) -> bytes:
    if isinstance(said, bytes):
        return said
    ready: bytes | None = getattr(said, "packed", None)
    return ready or pack_invocations(tuple(said))
