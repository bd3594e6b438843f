"""The stored records of a comparison, and their origin."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from gate.baselines.union import run_ids, without
from gate.model import BASE, FULL, BaselineInfo, Score, Side, Trial
from gate.records import Header, Record


class Reference(Struct, frozen=True):
    """The records of one agent that a candidate is compared with, and their origin."""

    info: BaselineInfo
    records: tuple[Record, ...] = ()
    """The nearest first; the others, pooled with it, are earlier records of the same agent."""
    name: str = "baseline"
    """Its name in reports, used if a suite has several references."""
    of_change: bool = False
    """True if it is the reference of a change: a drop that its newest runs already show is then not the change's."""
    beside: bool = False
    """True if a change is judged and has no stored baseline: trials of the base commit's agent in the change's own
    record take its place."""

    @property
    def commit(self) -> str | None:
        """Return the commit of the nearest record."""
        return self.info.commit

    def with_records(self, records: Sequence[Record]) -> Reference:
        """Return the same reference with only these of its records, or parts of them; at least one."""
        nearest = records[0].header
        info = replace(
            self.info,
            commit=nearest.commit,
            trials_per_case=_trials_per_case(records),
            records=len(records),
            dirty=nearest.dirty,
        )
        return replace(self, info=info, records=tuple(records))

    def without_runs(self, runs: Set[str]) -> Reference:
        """Return the reference without the trials of these runs: a record compared with itself always passes."""
        if runs.isdisjoint(_runs_of(self.records)):
            return self
        kept = []
        for record in self.records:
            left = without(record, runs)
            if left is not None:
                kept.append(left)
        if kept:
            return self.with_records(kept)
        itself = BaselineInfo(None, missing="the stored baseline is this very record", of_itself=True)
        return replace(self, info=itself, records=())


def reference_to(records: Sequence[Record], *, distance: int | None = None, source: str = "") -> Reference:
    """Return the records of one agent, at least one and the nearest first, as a reference."""
    nearest = records[0].header
    info = BaselineInfo(nearest.commit, distance, _trials_per_case(records), len(records), source, dirty=nearest.dirty)
    return Reference(info, tuple(records))


def _runs_of(records: Sequence[Record]) -> set[str]:
    """Return the runs whose trials the records hold."""
    found: set[str] = set()
    for record in records:
        found.update(run_ids(record.header))
    return found


def _trials_per_case(records: Sequence[Record]) -> float:
    """Return the mean number of trials per case; reruns were picked by their outcomes, so they do not count."""
    cases: set[str] = set()
    measured = 0
    for record in records:
        cases |= record.header.contents.keys()
        measured += sum(trial.measured and trial.is_of_epoch for trial in record.trials)
    return measured / (len(cases) or 1)


def identity(reference: Reference) -> str:
    """Return the commit of a reference and a digest of its runs: equal for two only if their trials are the same."""
    runs = _runs_of(reference.records)
    if not runs:
        return "no baseline"
    digest = hashlib.sha256("\n".join(sorted(runs)).encode()).hexdigest()[:12]
    return f"{(reference.commit or 'no commit')[:12]} (runs {digest})"


# --- the base commit's agent in place of a stored baseline -------------------------------------------
# Its trials are in the very record that is compared with them.

BASE_EPOCHS = 3
"""Trials per case run with the base commit's agent: enough to prove the regression of a single case."""
BESIDE = "its agent, run beside this change"


def with_base(header: Header, trials: Iterable[Trial], references: Sequence[Reference]) -> tuple[Reference, ...]:
    """Return the references; the first gets the trials of the base's agent in the record, if they can replace a
    baseline."""
    if not references or not references[0].beside:
        return tuple(references)
    own = tuple([replace(trial, tag=FULL, side=Side.CANDIDATE) for trial in trials if trial.tag == BASE])
    if not own or useless(header, own):
        return tuple(references)
    lost = unmeasured(header, own)
    own = tuple([replace(trial, scores=_without(lost, trial.scores)) for trial in own])
    criteria = tuple([criterion for criterion in header.criteria if criterion.name not in lost])
    of_base = replace(header, commit=header.base_commit, dirty=False, run_id=f"{header.run_id} base", criteria=criteria)
    found = reference_to([Record(of_base, own, None)], distance=0, source=BESIDE)
    return (replace(found, beside=True), *references[1:])


def useless(header: Header, trials: Sequence[Trial]) -> str:
    """Return the reason why these trials of the base's agent could not become a baseline; empty if they can."""
    answered = [trial for trial in trials if trial.answered]
    if not answered:
        failed = f"it answered in none of {len(trials)} trials"
        for trial in trials:
            if trial.error is not None:
                return f"{failed}: {trial.error.message}"
        return failed
    lost = unmeasured(header, answered)
    blocking = [criterion.name for criterion in header.criteria if criterion.blocking]
    if lost and lost.keys() >= set(blocking):
        return f"{blocking[0]} could not be measured there: {lost[blocking[0]]}"
    return ""


def unmeasured(header: Header, trials: Iterable[Trial]) -> dict[str, str]:
    """Return the blocking criteria that could not be measured in any of these trials, each with the reason."""
    lost: dict[str, str] = {}
    for criterion in header.criteria:
        scores = [trial.scores[criterion.name] for trial in trials if criterion.name in trial.scores]
        if not criterion.blocking or any(score.value is not None for score in scores):
            continue
        for score in scores:
            if score.error is not None:
                lost[criterion.name] = score.error
                break
    return lost


def _without(names: Container[str], scores: Mapping[str, Score]) -> dict[str, Score]:
    return {name: score for name, score in scores.items() if name not in names}
