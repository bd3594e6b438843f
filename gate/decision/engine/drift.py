"""Tells a drop of the whole suite by the change from a move of both sides since the baseline was stored."""

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
from gate.decision.engine.state import CONCURRENT, CONFIRM, Config, Request, Row
from gate.model import Side
from gate.statistics.intervals import stratified_fisher_less
from gate.statistics.permutation import ComparedTrials


class Check(Struct, frozen=True):
    """One step of the check: so many more trials of each case on each side, and what they are tested at."""

    candidate: int
    baseline: int
    share: float
    """Its share of the check's error budget; the shares add up to 1."""
    futile: float
    """From this p-value on a drop against the baseline's agent as it is now is out of sight, and no further step is
    run; not where that agrees with its record."""


QUARTERS = (
    Check(0, 1, 0.05, 1.1),
    Check(0, 1, 0.10, 0.8),
    Check(0, 1, 0.05, 0.6),
    Check(0, 1, 0.25, 0.35),
)
"""The baseline's agent alone, a quarter of the cases at a time: first those that were steadiest when they were stored.
The first of them alone lets nothing go."""
WHOLE = (Check(0, 1, 0.45, 0.35),)
"""The bound for all at once, in a suite that is too small to be divided."""
AGAIN = Check(0, 1, 0.10, 0.3)
"""The baseline's agent alone in every case once more, where it may agree with its record, or may not."""
BOTH = Check(1, 1, 0.45, 0.0)
"""Both sides once more, where it fell."""
LEAST_CLEAR = 0.1
"""Nothing is cleared by a smaller p-value."""
DOUBTED = 0.65
"""A suite that nothing proves worse, and that a test alone keeps from PASS, is let go at this share of ``futile``."""
SUSPECTED = 4.0
"""The baseline's agent is asked from so many times the p-value on from which a look blocks."""
AGREES, LEANS, AGREES_TWICE = 0.9, 0.05, 0.35
"""The baseline's agent agrees with its record, if the p-value of its having fallen is above this: asked once, or asked
twice. In between it leans away from its record, and is asked a second time, before that may block."""
AGREES_IN_PARTS = 0.05
"""The bound for the other statistics: a few cases that fell far, or a fall that steady cases share."""
REPEATED_SHARE, REPEATED_FUTILE = 0.2, 0.15
"""The bounds for cases that were asked again and proved a drop together, by repeats of both sides: no trial is
added."""
LEVEL = 2.5
"""In shares of alpha: the most often that the steps of the check confirm a drop of a change which is no worse than the
baseline's agent is *now*, whatever happened since the baseline was stored. Repeats of both sides have
``REPEATED_SHARE`` of it beside them, and go on to the steps where they leave it open."""
NAMED_NOW = 3
"""Trials of the baseline's agent in each case that broke: where it fails there, too, the change broke nothing."""
LEAST_PART = 10
"""Fewer cases do not show whether the baseline's agent is there at all."""
LEAST_DIVIDED = 20
"""Below this many cases a part of them says little."""


def next_check(evidence: Evidence, config: Config) -> tuple[Request, ...]:
    """The trials of the next step; empty where none is needed, can be run, or is affordable."""
    step = _next_step(evidence)
    if not config.can_run or config.rerun != "match" or step is None:
        return ()
    cases = _unasked(evidence) if step not in (AGAIN, BOTH) else live_cases(evidence)
    if not cases:
        return ()
    sides = ((Side.BASELINE, step.baseline), (Side.CANDIDATE, step.candidate))
    requests = tuple(Request(side, CONCURRENT, cases, n) for side, n in sides if n)
    affordable = config.runs_left is None or sum(r.runs for r in requests) <= config.runs_left
    return requests if affordable else ()


def _next_step(evidence: Evidence) -> Check | None:
    """The step that may tell more: parts of the suite until every case was asked, then all of it."""
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
    """The step that this one of the evidence was."""
    found = evidence.checks[number]
    if found.paired:
        return BOTH
    parts = parts_of(evidence)
    return parts[number] if number < len(parts) else AGAIN


def parts_of(evidence: Evidence) -> Sequence[Check]:
    """The steps until every case was asked; where those of a record are larger, as by earlier versions, so many."""
    cases = len(live_cases(evidence))
    if evidence.checks[0].cases >= cases if evidence.checks else not _is_divided(evidence):
        return WHOLE
    asked_all = (i for i, check in enumerate(evidence.checks[: len(QUARTERS)]) if check.cases >= cases)
    last = next(asked_all, math.ceil(cases / _part(cases)) - 1)
    return (*QUARTERS[:last], QUARTERS[-1])


def _part(cases: int) -> int:
    """Return the number of these cases that make a step of the baseline's agent alone."""
    return max(LEAST_PART, math.ceil(cases / len(QUARTERS)))


def went_live(evidence: Evidence) -> bool:
    """True if anything was measured in which a drift could show."""
    return any(case.live for case in evidence.cases.values())


def _is_divided(evidence: Evidence) -> bool:
    return len(live_cases(evidence)) >= LEAST_DIVIDED and not evidence.state.clusters


def _unasked(evidence: Evidence) -> tuple[str, ...]:
    """The cases of a step of the baseline's agent alone: chosen by what was stored, never by what the change did."""
    asked = evidence.fresh.get(Side.BASELINE, {})
    order = list(live_cases(evidence))
    left = [case_id for case_id in order if case_id not in asked]
    if not _is_divided(evidence):
        return tuple(left)
    Random(f"{evidence.state.seed}:check").shuffle(order)  # noqa: S311 - reproducible, not secret
    order.sort(key=lambda case_id: -_stored_rate(evidence, case_id))
    waiting = [case_id for case_id in order if case_id not in asked]
    part = frozenset(waiting[: _part(len(order))])
    return tuple(case_id for case_id in left if case_id in part)


def _stored_rate(evidence: Evidence, case_id: str) -> float:
    known = [row[0] for row in evidence.state.baseline[case_id] if row and row[0] is not None]
    return sum(known) / len(known) if known else 0.0


def confirmed(evidence: Evidence, *, doubted: bool = False) -> bool | None:
    """True if the drop shows against what the baseline's agent does now; None while that is open.

    Where that agent agrees with its record, the record counts beside it. Where it fell, the change has to be worse than
    it is now.

    ``doubted``: nothing proved a drop.
    """
    proven = _record_proves(evidence)
    if proven and any(agrees(known) for known in evidence.beside):
        return True
    level = LEVEL * evidence.state.config.alpha
    for number, found in enumerate(evidence.checks):
        step = _step_of(evidence, number)
        if proven and found.test.p <= level * step.share:
            return True
        if found.rounds and evidence.beside and agrees(evidence.beside[-1], leaning=True):
            continue
        if found.test.p >= step.futile * (DOUBTED if doubted else 1):
            return False
    return None


def suspected(evidence: Evidence) -> bool:
    """True if the newest look comes near to a proof."""
    look = evidence.last_look
    return look is not None and look.p <= SUSPECTED * look.threshold


def cleared(evidence: Evidence) -> bool:
    """True if what no look proves, but a test suggests, is no matter: the change is not worse than the baseline's agent
    is now."""
    known = bool(evidence.checks) and answers_now(evidence) and evidence.checks[-1].test.p >= LEAST_CLEAR
    return known and confirmed(evidence, doubted=not suspected(evidence)) is False


def agrees(known: Beside, *, leaning: bool = False) -> bool:
    """True if the baseline's agent does now what it did when it was stored, as far as its trials can tell.

    ``leaning``: or may, and a second trial of each case would tell.
    """
    moved = known.moved
    if known.rounds > 1:
        least = AGREES_TWICE
    elif leaning:
        least = LEANS
    else:
        least = AGREES
    parts = (moved.p_concentrated, 1.0 if moved.p_shift is None else moved.p_shift)
    return moved.p_mean > least and min(parts) > AGREES_IN_PARTS


def _record_proves(evidence: Evidence) -> bool:
    """True if the change is proven worse than the record, alone or with the baseline's trials of this job beside it."""
    return evidence.proof is not None or any(known.look.blocks for known in evidence.beside)


def repeats_confirmed(evidence: Evidence) -> bool | None:
    """True if a drop that repeats of failing cases proved shows in the same repeats of the baseline's agent now."""
    p = evidence.repeats_now
    if p is None or REPEATED_FUTILE > p > LEVEL * evidence.state.config.alpha * REPEATED_SHARE:
        return None
    return p < REPEATED_FUTILE


def next_named(evidence: Evidence, config: Config) -> tuple[Request, ...]:
    """Return trials of the baseline's agent in the named cases that it was not asked in; empty if none can be run."""
    asked: set[str] = set()
    for done in evidence.state.rounds:
        if done.side is Side.BASELINE:
            asked.update(done.trials)
    cases = tuple([case_id for case_id in evidence.named if case_id not in asked])
    if not cases or not config.can_run:
        return ()
    request = Request(Side.BASELINE, CONFIRM, cases, NAMED_NOW)
    return (request,) if config.runs_left is None or request.runs <= config.runs_left else ()


def named_confirmed(evidence: Evidence) -> bool | None:
    """True if the named cases pass less often than with the baseline's agent as it is now; None if it is not known."""
    counts = []
    for case_id in evidence.named:
        case = evidence.cases[case_id]
        passed_before, before = case.stored_outcomes
        now = case.baseline_trials - before
        if now:
            counts.append((case.passed, case.trials, case.baseline_passed - passed_before, now))
    return stratified_fisher_less(counts) <= REPEATED_FUTILE if counts else None


def moved_before(evidence: Evidence, *, clearly: bool = False) -> bool:
    """True if a drop of the whole suite may be older than the change: against the newest of the stored runs alone it
    does not show.

    If the provider moved before those, they and the candidate's are exchangeable, whatever was stored earlier. Each
    look has its part of ``alpha``, so such a drop shows in at most ``alpha`` of unchanged agents. Never where trials
    were recorded: what is replayed does not drift.

    ``clearly``: and is out of sight.
    """
    state = evidence.state
    if not state.newest or state.recorded:
        return False
    cases = [(case, *_by_age(case, state.newest.get(case.id, ()))) for case in evidence.cases.values()]
    pairs = [ComparedTrials(case.full, new, held=old) for case, new, old in cases]
    level = state.config.alpha * look_part(evidence)
    seed = f"{state.seed}:newest {evidence.epochs}"
    p = test_rows(pairs, blocking_metrics(evidence), seed, level, evidence.units).p
    return p >= QUARTERS[-1].futile if clearly else p > level


def _by_age(case: CaseEvidence, newest: Sequence[int]) -> tuple[list[Row], list[Row]]:
    """The baseline's trials of its newest runs, with those of this job, and the older ones."""
    places = {case.stored_at[place] for place in newest if place in case.stored_at}
    places.update(range(case.before_job, len(case.before)))
    new = [row for place, row in enumerate(case.before) if place in places]
    return new, [row for place, row in enumerate(case.before) if place not in places]
