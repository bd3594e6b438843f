"""What was not seen: scores of tool calls without evidence that the agent reports any. Pure; changes no record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from gate.model import Criterion, Score, Trial

UNSEEN = (
    "no answer shows that this agent reports its tool calls, so a call could not have been seen: "
    "return `tool_calls` with every answer (also an empty list), "
    "or write `reports_calls: true` under `agent:` if every call is reported"
)
"""Why a criterion that looks at tool calls is not measured, with the line to add."""


def shows_calls(trials: Iterable[Trial]) -> bool:
    """Whether any answer is evidence that the agent reports its calls."""
    return any(turn.shows_calls for trial in trials for turn in trial.invocations)


def blind(criteria: Sequence[Criterion]) -> frozenset[str]:
    """The criteria that mean nothing without reported calls: those that look at calls, and what is computed from them.

    A composite may be part of another one.
    """
    found = {criterion.name for criterion in criteria if criterion.reads_tools}
    while more := {c.name for c in criteria if c.name not in found and not found.isdisjoint(c.parts)}:
        found |= more
    return frozenset(found)


def without_unseen(criteria: Sequence[Criterion], trials: Sequence[Trial], *, reported: bool) -> Sequence[Trial]:
    """The trials of this run, in which a score that rests on calls nobody could see is not measured.

    ``reported``: there is evidence from elsewhere, a baseline of the same agent definition.
    """
    names = frozenset() if reported else blind(criteria)
    if not names or shows_calls(trials):
        return trials
    return [_blinded(trial, names) for trial in trials]


def _blinded(trial: Trial, names: frozenset[str]) -> Trial:
    if names.isdisjoint(trial.scores):
        return trial
    scores = {name: _unseen(score) if name in names else score for name, score in trial.scores.items()}
    return replace(trial, scores=scores)


def _unseen(score: Score) -> Score:
    """Not measured; what does not apply to the case needs no evidence."""
    return score if score.value is None else Score(None, error=UNSEEN)
