"""Distinguishes a drop of the whole suite that the change caused from a move of both sides since the baseline was
stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from msgspec import Struct

from gate.decision.engine.case import CaseEvidence
from gate.decision.engine.evidence import (
    Beside,
    Evidence,
    answers_now,
    blocking_metrics,
    live_cases,
    look_part,
)
from gate.decision.engine.looks import test_rows
from gate.decision.engine.state import CONCURRENT, More, Request, Row, round_of
from gate.model import CONFIRM, Side
from gate.statistics.intervals import stratified_fisher_less
from gate.statistics.permutation import ComparedTrials


class Check(Struct, frozen=True):
    """One step of the check for drift, as the bounds of its test."""

    share: float
    """Share of the check's error budget; the shares add up to 1."""
    futile: float
    """With this p-value or more, a drop against the baseline's current agent is out of reach and no further step runs,
    unless that agent agrees with its record."""


QUARTERS = (
    Check(0.05, 1.1),
    Check(0.10, 0.8),
    Check(0.05, 0.6),
    Check(0.25, 0.35),
)
"""Runs the baseline's agent alone on a quarter of the cases at a time, beginning with those that were steadiest when
stored. The first step alone clears nothing."""
WHOLE = (Check(0.45, 0.35),)
"""The only step in a suite too small to be divided."""
AGAIN = Check(0.10, 0.3)
"""Runs the baseline's agent alone once more on every case, if its agreement with the record is unclear."""
BOTH = Check(0.45, 0.0)
"""Runs both sides once more if the baseline's agent fell."""
LEAST_CLEAR = 0.1
"""A smaller p-value never clears a suite."""
DOUBTED = 0.65
"""Factor on ``futile`` for a suite that nothing proves worse and only a test keeps from PASS."""
SUSPECTED = 4.0
"""The baseline's agent is run if a look's p-value is at most this many times the one at which it blocks."""
AGREES, LEANS, AGREES_TWICE = 0.9, 0.05, 0.35
"""The baseline's agent agrees with its record if the p-value of its fall is above the first number, or after a second
run above the third. Above the second number it is unclear, so it is run again before anything blocks."""
AGREES_IN_PARTS = 0.05
"""The bound for the other statistics: a few cases that fell far, or a fall shared by steady cases."""
REPEATED_SHARE, REPEATED_FUTILE = 0.2, 0.15
"""The bounds for rerun cases that together proved a drop, tested on the reruns of both sides without further trials."""
LEVEL = 2.5
"""Maximum rate, in multiples of alpha, at which the steps of the check confirm a drop of a change no worse than the
baseline's *current* agent, whatever happened since the baseline was stored. Reruns of both sides may add
``REPEATED_SHARE`` of it; if they leave the question open, the steps follow."""
NAMED_NOW = 3
"""Trials of the baseline's agent in each broken case: if it fails there, too, the change broke nothing."""
LEAST_PART = 10
"""With fewer cases it is not clear that the baseline's agent runs at all."""
ASKING_BASE = "asking the base commit's agent, too"
LEAST_DIVIDED = 20
"""With fewer cases a part of them says little."""


def next_check(evidence: Evidence) -> More | None:
    """Return the trials of the next step; None if none is needed, possible or affordable."""
    config, step = evidence.config, _next_step(evidence)
    if not config.can_run or config.rerun != "match" or step is None:
        return None
    cases = live_cases(evidence)
    if step not in (AGAIN, BOTH):
        cases = _unasked(evidence)
    if not cases:
        return None
    requests = [Request(Side.BASELINE, CONCURRENT, cases, 1)]
    if step is BOTH:
        requests.append(Request(Side.CANDIDATE, CONCURRENT, cases, 1))
    if not config.affords(requests):
        return None
    return round_of(requests, ASKING_BASE)


def _next_step(evidence: Evidence) -> Check | None:
    """Return the step that may settle the question: parts of the suite until every case was run, then all of it."""
    if not _asked_all(evidence):
        return parts_of(evidence)[len(evidence.checks)]
    if not _record_proves(evidence):
        return None  # only a further epoch of the change could prove a drop
    if evidence.checks[-1].rounds == 1 and evidence.beside and agrees(evidence.beside[-1], leaning=True):
        return AGAIN
    if any(found.paired for found in evidence.checks):
        return None
    return BOTH


def _asked_all(evidence: Evidence) -> bool:
    return bool(evidence.checks) and evidence.checks[-1].rounds > 0


def _step_of(evidence: Evidence, number: int) -> Check:
    """Return the step to which this check of the evidence belongs."""
    found = evidence.checks[number]
    if found.paired:
        return BOTH
    parts = parts_of(evidence)
    if number < len(parts):
        return parts[number]
    return AGAIN


def parts_of(evidence: Evidence) -> Sequence[Check]:
    """Return the steps until every case was run; as many as in the record if its steps are larger (earlier
    versions)."""
    cases = len(live_cases(evidence))
    if evidence.checks:
        is_whole = evidence.checks[0].cases >= cases
    else:
        is_whole = not _is_divided(evidence)
    if is_whole:
        return WHOLE
    last = math.ceil(cases / _part(cases)) - 1
    for number, check in enumerate(evidence.checks[: len(QUARTERS)]):
        if check.cases >= cases:
            last = number
            break
    return (*QUARTERS[:last], QUARTERS[-1])


def _part(cases: int) -> int:
    """Return the number of cases in one step of the baseline's agent alone."""
    return max(LEAST_PART, math.ceil(cases / len(QUARTERS)))


def went_live(evidence: Evidence) -> bool:
    """True if any measured trial could show a drift."""
    return any(case.live for case in evidence.cases.values())


def _is_divided(evidence: Evidence) -> bool:
    return len(live_cases(evidence)) >= LEAST_DIVIDED and not evidence.state.clusters


def _unasked(evidence: Evidence) -> tuple[str, ...]:
    """Return the cases for a step of the baseline's agent alone, chosen by stored trials, never by the change's
    results."""
    order = list(live_cases(evidence))
    left = [case_id for case_id in order if case_id not in evidence.asked_now]
    if not _is_divided(evidence):
        return tuple(left)
    Random(f"{evidence.state.seed}:check").shuffle(order)  # noqa: S311 - reproducible, not secret
    order.sort(key=lambda case_id: -_stored_rate(evidence, case_id))
    waiting = [case_id for case_id in order if case_id not in evidence.asked_now]
    part = frozenset(waiting[: _part(len(order))])
    return tuple([case_id for case_id in left if case_id in part])


def _stored_rate(evidence: Evidence, case_id: str) -> float:
    known = [row[0] for row in evidence.state.baseline[case_id] if row and row[0] is not None]
    return sum(known) / len(known)  # a compared case has a known outcome


def confirmed(evidence: Evidence, *, doubted: bool = False) -> bool | None:
    """True if the drop shows against the baseline's current agent; None while that is open.

    If that agent agrees with its record, the record counts as well. If it fell, the change must be worse than it is
    now.

    ``doubted``: nothing proved a drop.
    """
    proven = _record_proves(evidence)
    if proven and any(agrees(known) for known in evidence.beside):
        return True
    level = LEVEL * evidence.config.alpha
    near = DOUBTED if doubted else 1.0
    for number, found in enumerate(evidence.checks):
        step = _step_of(evidence, number)
        if proven and found.test.p <= level * step.share:
            return True
        if found.rounds and evidence.beside and agrees(evidence.beside[-1], leaning=True):
            continue
        if found.test.p >= step.futile * near:
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
    return confirmed(evidence, doubted=not suspected(evidence)) is False


def agrees(known: Beside, *, leaning: bool = False) -> bool:
    """True if the baseline's agent still behaves as it did when stored, as far as its trials can show.

    ``leaning``: also True if that is unclear and a second trial of each case would settle it.
    """
    moved = known.moved
    if known.rounds > 1:
        least = AGREES_TWICE
    elif leaning:
        least = LEANS
    else:
        least = AGREES
    if moved.p_shift is not None and moved.p_shift <= AGREES_IN_PARTS:
        return False
    return moved.p_mean > least and moved.p_concentrated > AGREES_IN_PARTS


def _record_proves(evidence: Evidence) -> bool:
    """True if the change is proven worse than the record, with or without the baseline's trials of this job."""
    return evidence.proof is not None or any(known.look.blocks for known in evidence.beside)


def repeats_confirmed(evidence: Evidence) -> bool | None:
    """True if a drop proven by reruns of failing cases also shows against reruns of the baseline's current agent."""
    p = evidence.repeats_now
    if p is None or REPEATED_FUTILE > p > LEVEL * evidence.config.alpha * REPEATED_SHARE:
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
        return p >= QUARTERS[-1].futile
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
