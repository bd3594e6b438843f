"""Scores of tool calls without evidence that the agent reports them. Pure; changes no record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from gate.model import Criterion, Score, Trial
from gate.model.finding import Finding

NONE = Score(None)
UNSEEN = "the answers report no tool calls: return `tool_calls` ([] for none), or set `agent.reports_calls: true`"
"""The reason a criterion on tool calls is not measured, with the line to add."""


def shows_calls(trials: Iterable[Trial]) -> bool:
    """True if any answer is evidence that the agent reports its calls."""
    return any(turn.shows_calls for trial in trials for turn in trial.invocations)


def needs_calls(criteria: Sequence[Criterion]) -> frozenset[str]:
    """Return the criteria that are meaningless without reported calls: those on calls, and those computed from them. A
    composite may be part of another one."""
    found = {criterion.name for criterion in criteria if criterion.reads_tools}
    has_grown = bool(found)
    while has_grown:
        has_grown = False
        for criterion in criteria:
            if criterion.name not in found and not found.isdisjoint(criterion.parts):
                found.add(criterion.name)
                has_grown = True
    return frozenset(found)


def without_unseen(criteria: Sequence[Criterion], trials: Sequence[Trial], *, reported: bool) -> Sequence[Trial]:
    """Return the trials of this run; scores that depend on unreported tool calls count as not measured.

    ``reported``: there is other evidence, such as a baseline of the same agent definition.
    """
    names = needs_calls(criteria)
    if reported or not names or shows_calls(trials):
        return trials
    parts = {criterion.name: criterion.parts for criterion in criteria if not criterion.reads_tools}
    return [_without_scores_of_calls(trial, names, parts) for trial in trials]


def _without_scores_of_calls(trial: Trial, names: frozenset[str], parts: Mapping[str, tuple[str, ...]]) -> Trial:
    """Return the trial without scores that lack evidence. A score that does not apply needs none, nor does a composite
    of other criteria only."""
    scores = dict(trial.scores)
    for name in names.intersection(trial.scores):
        of_calls = [trial.scores.get(part, NONE).value for part in names.intersection(parts.get(name, ()))]
        rests_on_calls = name not in parts or any(value is not None for value in of_calls)
        if rests_on_calls and trial.scores[name].value is not None:
            scores[name] = Score(None, error=UNSEEN)
    return trial if scores == trial.scores else replace(trial, scores=scores)


def fell_silent(criteria: Sequence[Criterion], own: Sequence[Trial], before: Sequence[Trial]) -> list[Finding]:
    """Return a warning if only the baseline shows that calls are reported: the change may have stopped reporting
    them."""
    names = needs_calls(criteria)
    if not names or not own or shows_calls(own) or not shows_calls(before):
        return []
    read = tuple([criterion.name for criterion in criteria if criterion.name in names])
    return [Finding.of("answers_say_little", why="no_calls", criteria=read)]


# --- answers without content ----------------------------------------------------------------------


def silence(criteria: Sequence[Criterion], trials: Sequence[Trial]) -> list[Finding]:
    """Return a warning if criteria that require absence hold for answers that are all the same."""
    names = tuple([criterion.name for criterion in criteria if criterion.absence])
    cases = {trial.case_id for trial in trials}
    if not names or len(cases) < 2:
        return []
    answers = [turn.digest or turn.text for trial in trials for turn in trial.invocations]
    if len(answers) > 1 and len(set(answers) - {""}) == 1:
        found = Finding.of(
            "answers_say_little", why="one_answer", criteria=names, answers=len(answers), cases=len(cases)
        )
        return [found]
    return []
