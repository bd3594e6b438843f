"""Completes a suite before it is judged: adds scores that no single trial has, and detects an outage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gate.decision import all_pass
from gate.decision.comparison import Comparison, Incomparable
from gate.decision.consistency import compared
from gate.decision.outages import base_gone, with_outage
from gate.decision.outcomes import COUNT_PASSES, RATE_METRIC, passed, unchecked
from gate.decision.stored_epochs import with_stored_epochs
from gate.decision.unseen import without_unseen
from gate.model import Case, Criterion, Score, Trial

UNKNOWN = "whether the trial passes is not known: a blocking criterion could not be measured"


def prepared(comparison: Comparison) -> Comparison:
    """Return the comparison with the scores computed across several trials, and with failures in an outage set
    aside."""
    known = comparison
    now = with_stored_epochs(known.trials, [case.id for case in known.judged], known.blocking)
    now = without_unseen(known.criteria, now, reported=known.reported)
    now = _with_scores_across_trials(known, now, {})
    before = _with_scores_across_trials(known, known.stored, known.not_comparable)
    found = with_outage(replace(known, trials=now, stored=before))
    if known.settings.rerun in ("match", "beside") and base_gone(found):
        return replace(found, settings=replace(known.settings, rerun="never"))
    return found


def _with_scores_across_trials(
    comparison: Comparison, trials: Sequence[Trial], not_comparable: Mapping[tuple[str, str], Incomparable]
) -> tuple[Trial, ...]:
    """Return one side's trials with the scores of consistency, pass rate and pass^k, as far as criteria use them."""
    criteria, by_id = comparison.criteria, comparison.by_id

    def outcome_of(trial: Trial) -> bool | None:
        return _outcome_of(trial, by_id, _others(trial, criteria, not_comparable))

    found = compared(comparison.cases, criteria, trials, comparison.settings.quarantine)
    found = with_outcomes(found, by_id, criteria, not_comparable)
    return all_pass.scored(found, by_id, criteria, outcome_of)


def _outcome_of(trial: Trial, cases: Mapping[str, Case], criteria: Sequence[Criterion]) -> bool | None:
    return passed(trial, cases.get(trial.case_id) or Case(trial.case_id, ()), criteria)  # removed since the baseline


def _others(
    trial: Trial, criteria: Sequence[Criterion], not_comparable: Mapping[tuple[str, str], Incomparable]
) -> list[Criterion]:
    """Return the criteria that do not count passes; for the baseline, those that are comparable on this case, or all if
    none is."""
    others = [criterion for criterion in criteria if criterion.metric not in COUNT_PASSES]
    return [criterion for criterion in others if (trial.case_id, criterion.name) not in not_comparable] or others


def with_outcomes(
    trials: tuple[Trial, ...],
    cases: Mapping[str, Case],
    criteria: Sequence[Criterion],
    not_comparable: Mapping[tuple[str, str], Incomparable],
) -> tuple[Trial, ...]:
    """Return the trials with the score of `RATE_METRIC` if a criterion uses it: 1 if a trial passes, else 0.

    ``not_comparable``: the baseline's criteria that cannot be compared, by case; a trial there passes by the others.
    """
    names = [criterion.name for criterion in criteria if criterion.metric == RATE_METRIC]
    if not names:
        return trials
    found = []
    for trial in trials:
        others = _others(trial, criteria, not_comparable)
        outcome = _outcome_of(trial, cases, others)
        if outcome is None and trial.error is not None:
            found.append(trial)
            continue
        score = Score(None, error=UNKNOWN)
        if outcome is not None:
            score = Score(float(outcome))
        elif unchecked(trial, others):
            score = Score(None)
        found.append(replace(trial, scores={**trial.scores, **dict.fromkeys(names, score)}))
    return tuple(found)
