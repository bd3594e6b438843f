"""Distinguishes a drop of the whole suite that the change caused from a move of both sides since the baseline was
stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from gate.decision.engine.case import CaseEvidence
from gate.decision.engine.evidence import (
    Evidence,
    answers_now,
    blocking_metrics,
    checked_cases,
    look_part,
)
from gate.decision.engine.looks import test_rows
from gate.decision.engine.state import CONCURRENT, More, Request, Row, round_of
from gate.model import CONFIRM, Side
from gate.statistics.intervals import stratified_fisher_less
from gate.statistics.permutation import ComparedTrials

PARTS = 4
"""The baseline's agent runs the suite in so many parts, beginning with the cases that were steadiest when stored."""
FUTILE = (1.1, 0.8, 0.6, 0.3, 0.15)
"""With this p-value or more, a drop against that agent is out of reach, and no further trial is run: after one, two and
three parts, once that agent has run every case, and once it has run every case twice. The first part alone settles
nothing, unless that agent fell."""
FELL, AFTER_FALL = 0.1, 0.4
"""If the p-value of that agent's fall since it was stored is at most the first number, its record will hardly count, so
the limits above are multiplied by the second."""
LEAST_CLEAR = 0.1
"""A smaller p-value never clears a suite."""
SUSPECTED = 4.0
"""The baseline's agent is run if a look's p-value is at most this many times the one at which it blocks."""
AGREES = 0.7
"""The baseline's agent agrees with its record if every p-value of its fall is larger once it has run every case."""
EARLY_LEVEL, LEVEL = 0.05, 2.5
"""The p-values, in multiples of alpha, at which trials of the baseline's *current* agent confirm a drop: before it has
run every case twice, and from then on. A check that ends without a proof adds nothing to the error, and most checks of
unchanged agents do. In simulations at most 3 alpha of these are blocked, however far the provider moved."""
REPEATED_LEVEL, REPEATED_FUTILE = 0.2, 0.15
"""The bounds for rerun cases that together proved a drop, tested on the reruns of both sides without further trials;
the first in multiples of alpha. If they leave the question open, the check follows."""
NAMED_NOW = 3
"""Trials of the baseline's agent in each broken case: if it fails there, too, the change broke nothing."""
LEAST_PART = 10
"""With fewer cases it is not clear that the baseline's agent runs at all."""
ASKING_BASE = "asking the base commit's agent, too"
LEAST_DIVIDED = 20
"""With fewer cases a part of them says little."""


def next_check(evidence: Evidence) -> More | None:
    """Return the next trials of the baseline's agent: a part of the suite until every case was run, then all of it once
    more. None if only a further epoch of the change could settle the check, or they are not possible or affordable."""
    config = evidence.config
    if not config.can_run or config.rerun != "match":
        return None
    if not evidence.checks or not evidence.checks[-1].rounds:
        cases = _unasked(evidence)
    elif evidence.checks[-1].rounds == 1 and _record_proves(evidence):
        cases = checked_cases(evidence)
    else:
        return None
    requests = [Request(Side.BASELINE, CONCURRENT, cases, 1)]
    if not cases or not config.affords(requests):
        return None
    return round_of(requests, ASKING_BASE)


def went_live(evidence: Evidence) -> bool:
    """True if any measured trial could show a drift."""
    return any(case.live for case in evidence.cases.values())


def _unasked(evidence: Evidence) -> tuple[str, ...]:
    """Return the cases for a step of the baseline's agent alone, chosen by stored trials, never by the change's
    results."""
    order = list(checked_cases(evidence))
    left = [case_id for case_id in order if case_id not in evidence.asked_now]
    if len(order) < LEAST_DIVIDED or evidence.state.clusters:
        return tuple(left)
    Random(f"{evidence.state.seed}:check").shuffle(order)  # noqa: S311 - reproducible, not secret
    order.sort(key=lambda case_id: -_stored_rate(evidence, case_id))
    waiting = [case_id for case_id in order if case_id not in evidence.asked_now]
    part = frozenset(waiting[: max(LEAST_PART, math.ceil(len(order) / PARTS))])
    return tuple([case_id for case_id in left if case_id in part])


def _stored_rate(evidence: Evidence, case_id: str) -> float:
    known = [row[0] for row in evidence.state.baseline[case_id] if row and row[0] is not None]
    return sum(known) / len(known)  # a compared case has a known outcome


def confirmed(evidence: Evidence) -> bool | None:
    """True if the drop shows against the baseline's current agent; None while that is open.

    If that agent agrees with its record when it has run every case, the record counts as well. Otherwise the change
    must be worse than it is now.
    """
    proven = _record_proves(evidence)
    if proven and any(known.moved.smallest > AGREES for known in evidence.beside):
        return True
    for number, found in enumerate(evidence.checks):
        level = EARLY_LEVEL
        place = min(number, PARTS - 2)
        if found.rounds == 1:
            place = PARTS - 1
        elif found.rounds > 1:
            level, place = LEVEL, PARTS
        if proven and found.test.p <= level * evidence.config.alpha:
            return True
        fell = found.fall_p <= FELL
        if found.test.p >= FUTILE[place] * (AFTER_FALL if fell else 1.0):
            return False
    return None


def suspected(evidence: Evidence) -> bool:
    """True if the newest look is close to a proof."""
    look = evidence.last_look
    return look is not None and look.p <= SUSPECTED * look.threshold


def cleared(evidence: Evidence) -> bool:
    """True if a drop that a test suggests but no look proves can be ignored: the change is no worse than the baseline's
    current agent."""
    if not evidence.checks or not answers_now(evidence) or evidence.checks[-1].test.p < LEAST_CLEAR:
        return False
    return confirmed(evidence) is False


def _record_proves(evidence: Evidence) -> bool:
    """True if the change is proven worse than the record, with or without the baseline's trials of this job."""
    return evidence.proof is not None or any(known.look.blocks for known in evidence.beside)


def repeats_confirmed(evidence: Evidence) -> bool | None:
    """True if a drop proven by reruns of failing cases also shows against reruns of the baseline's current agent."""
    p = evidence.repeats_now
    if p is None or REPEATED_FUTILE > p > REPEATED_LEVEL * evidence.config.alpha:
        return None
    return p < REPEATED_FUTILE


def next_named(evidence: Evidence) -> More | None:
    """Return trials of the baseline's agent in the named cases that it has not run yet; None if none can be run."""
    asked: set[str] = set()
    for done in evidence.state.rounds:
        if done.side is Side.BASELINE:
            asked.update(done.trials)
    cases = tuple([case_id for case_id in evidence.named if case_id not in asked])
    requests = [Request(Side.BASELINE, CONFIRM, cases, NAMED_NOW)]
    if not cases or not evidence.config.can_run or not evidence.config.affords(requests):
        return None
    return round_of(requests, ASKING_BASE)


def named_confirmed(evidence: Evidence) -> bool | None:
    """True if the named cases pass less often than with the baseline's current agent; None if unknown."""
    counts = []
    for case_id in evidence.named:
        case = evidence.cases[case_id]
        passed_before, before = case.stored_outcomes
        now = case.baseline_trials - before
        if now:
            counts.append((case.passed, case.trials, case.baseline_passed - passed_before, now))
    if not counts:
        return None
    return stratified_fisher_less(counts) <= REPEATED_FUTILE


def moved_before(evidence: Evidence, *, clearly: bool = False) -> bool:
    """True if a drop of the whole suite may predate the change: it does not show against the newest stored runs alone.

    If the provider moved before those runs, they and the candidate's trials are exchangeable, whatever was stored
    earlier. Each look has its part of ``alpha``, so such a drop shows in at most ``alpha`` of unchanged agents. Always
    False if trials were recorded: replays do not drift.

    ``clearly``: require that the drop is far from showing.
    """
    state = evidence.state
    if not state.newest or state.recorded:
        return False
    pairs = [_newest_and_old(case, state.newest.get(case.id, ())) for case in evidence.cases.values()]
    level = state.config.alpha * look_part(evidence)
    seed = f"{state.seed}:newest {evidence.epochs}"
    p = test_rows(pairs, blocking_metrics(evidence), seed, level, evidence.units).p
    if clearly:
        return p >= FUTILE[PARTS - 1]
    return p > level


def _newest_and_old(case: CaseEvidence, newest: Sequence[int]) -> ComparedTrials:
    """Return the candidate's trials, to compare with the baseline's of its newest runs and of this job; the older ones
    are held."""
    places = {case.stored_at.get(place) for place in newest}
    new: list[Row] = []
    old: list[Row] = []
    for place, row in enumerate(case.before):
        if place in places or place >= case.before_job:
            new.append(row)
        else:
            old.append(row)
    return ComparedTrials(case.full, new, held=old)
