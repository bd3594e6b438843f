"""Scores of tool calls without evidence that the agent reports any. Pure; changes no record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from gate.model import Criterion, Score, Trial
from gate.model.finding import Finding

UNSEEN = "the answers report no tool calls: return `tool_calls` ([] for none), or set `agent.reports_calls: true`"
"""The reason why a criterion that looks at tool calls is not measured, with the line to add."""


def shows_calls(trials: Iterable[Trial]) -> bool:
    """True if any answer is evidence that the agent reports its calls."""
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
    """The trials of this run; a score that depends on tool calls which nobody could see counts as not measured.

    ``reported``: there is other evidence, a baseline of the same agent definition.
    """
    names = frozenset() if reported else blind(criteria)
    if not names or shows_calls(trials):
        return trials
    parts = {criterion.name: criterion.parts for criterion in criteria if not criterion.reads_tools}
    return [_blinded(trial, names, parts) for trial in trials]


def _blinded(trial: Trial, names: frozenset[str], parts: Mapping[str, tuple[str, ...]]) -> Trial:
    """Return the trial without scores that lack evidence. A score that does not apply needs none, nor does a composite
    of the other criteria alone."""
    rests = {
        name
        for name, score in trial.scores.items()
        if name in names and score.value is not None and _rests_on_calls(name, trial, names, parts)
    }
    if not rests:
        return trial
    unseen = Score(None, error=UNSEEN)
    return replace(trial, scores={name: unseen if name in rests else score for name, score in trial.scores.items()})


def _rests_on_calls(name: str, trial: Trial, names: frozenset[str], parts: Mapping[str, tuple[str, ...]]) -> bool:
    """True if a score is one of calls, or one of its parts that are has a value here."""
    found = [trial.scores.get(part) for part in parts.get(name, ()) if part in names]
    return name not in parts or any(score is not None and score.value is not None for score in found)


def fell_silent(criteria: Sequence[Criterion], own: Sequence[Trial], before: Sequence[Trial]) -> list[Finding]:
    """A warning if only the baseline shows that calls are reported: the change may have stopped reporting them."""
    names = blind(criteria)
    if not names or not own or shows_calls(own) or not shows_calls(before):
        return []
    read = tuple(criterion.name for criterion in criteria if criterion.name in names)
    return [Finding.of("calls_not_reported", criteria=read)]


# --- answers that say nothing ---------------------------------------------------------------------


def silence(criteria: Sequence[Criterion], trials: Sequence[Trial]) -> list[Finding]:
    """Return a warning if criteria of absence hold for answers that are all the same."""
    names = tuple(criterion.name for criterion in criteria if criterion.absence)
    turns = [turn for trial in trials for turn in trial.invocations] if names else []
    cases = {trial.case_id for trial in trials}
    if len(cases) > 1 and len(turns) > 1 and len({turn.digest or turn.text for turn in turns} - {""}) == 1:
        return [Finding.of("one_answer", answers=len(turns), cases=len(cases), criteria=names)]
    return []
