"""Scores each case by whether k of its trials all pass (pass^k), which no metric of a single trial can do. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec.structs import replace

from gate.model import FULL, Case, Criterion, Score, Side, Trial
from gate.statistics.intervals import all_pass

METRIC = "pass_k"
OTHERS = "counted over the trials of the case"


def too_few(k: int) -> str:
    """Return the reason a case has no score, and how to fix it."""
    return f"pass^{k} takes {k} trials of a case: write `trials: {k}` or more"


def scored(
    trials: Sequence[Trial],
    cases: Mapping[str, Case],
    criteria: Sequence[Criterion],
    outcome_of: Callable[[Trial], bool | None],
) -> tuple[Trial, ...]:
    """Return the trials with the scores of `METRIC` if a criterion uses it.

    Only measured trials of epochs count. One trial per case and side carries the score, so that each case has one.
    """
    asked = [criterion for criterion in criteria if criterion.metric == METRIC]
    if not asked:
        return tuple(trials)
    groups: dict[tuple[str, Side], list[int]] = {}
    for position, trial in enumerate(trials):
        if trial.tag == FULL and trial.measured and trial.case_id in cases:
            groups.setdefault((trial.case_id, trial.side), []).append(position)
    scores: dict[int, dict[str, Score]] = {}
    for positions in groups.values():
        outcomes = [outcome_of(trials[position]) for position in positions]
        known = [outcome for outcome in outcomes if outcome is not None]
        answered = [position for position in positions if trials[position].answered]
        bearer = (answered or positions)[-1]
        for criterion in asked:
            for position in positions:
                scores.setdefault(position, {})[criterion.name] = Score(None, OTHERS)
            scores[bearer][criterion.name] = _score(known, criterion.k)
    found = list(trials)
    for position, own in scores.items():
        found[position] = replace(trials[position], scores={**trials[position].scores, **own})
    return tuple(found)


def _score(outcomes: Collection[bool], k: int) -> Score:
    if not outcomes:
        return Score(None, "no trial of the case was checked")
    if len(outcomes) < k:
        return Score(None, error=too_few(k))
    passed = sum(outcomes)
    return Score(all_pass(passed, len(outcomes), k), f"{passed} of {len(outcomes)} trials passed")
