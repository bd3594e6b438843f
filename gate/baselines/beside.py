"""The base commit's agent in place of a stored baseline: its trials are in the very record they are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from gate.baselines.reference import Reference, reference_to
from gate.model import BASE, FULL, Side, Trial
from gate.records import Header, Record

EPOCHS = 3
"""Trials per case run with the base commit's agent: enough to prove the regression of a single case."""
SOURCE = "its agent, run beside this change"


def with_base(header: Header, trials: Iterable[Trial], references: Sequence[Reference]) -> tuple[Reference, ...]:
    """Return the references; the first gets the trials of the base's agent in the record, if they can replace a
    baseline."""
    if not references or not references[0].beside:
        return tuple(references)
    own = tuple([replace(trial, tag=FULL, side=Side.CANDIDATE) for trial in trials if trial.tag == BASE])
    if not own or useless(header, own):
        return tuple(references)
    of_base = replace(header, commit=header.base_commit, dirty=False, run_id=f"{header.run_id} base")
    found = reference_to([Record(of_base, own, None)], distance=0, source=SOURCE)
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
    for criterion in header.criteria:
        scores = [trial.scores[criterion.name] for trial in answered if criterion.name in trial.scores]
        if not criterion.blocking or any(score.value is not None for score in scores):
            continue
        for score in scores:
            if score.error is not None:
                return f"{criterion.name} could not be measured there: {score.error}"
    return ""
