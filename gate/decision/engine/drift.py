"""Whether a drop of the whole suite is the change's, or both sides moved since the baseline was stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from msgspec import Struct

from gate.decision.engine.coupled import ComparedTrials
from gate.decision.engine.evidence import CaseEvidence, Checked, Evidence, blocking_metrics, look_part, test_rows
from gate.decision.engine.state import CONCURRENT, Config, Request, Row
from gate.model import Side


class Check(Struct, frozen=True):
    """One step of the check: so many more trials of each case on each side, and what they are tested at."""

    candidate: int
    baseline: int
    share: float
    """Of the check's error budget; the shares add up to 1."""
    futile: float
    """From this p-value on a drop of the candidate alone is out of sight, and no further step is run."""
    futile_moved: float
    """The same where the baseline's agent itself is worse than it was when it was stored."""


QUARTERS = (
    Check(0, 1, 0.05, 1.1, 0.8),
    Check(0, 1, 0.10, 0.6, 0.4),
    Check(0, 1, 0.05, 0.5, 0.35),
    Check(0, 1, 0.30, 0.35, 0.25),
)
"""The baseline's agent alone, a quarter of the cases at a time: first those that were steadiest when they were stored.
The first of them alone lets nothing go that is proven."""
WHOLE = (Check(0, 1, 0.5, 0.35, 0.25),)
"""The same at once, in a suite that is too small to be divided."""
BOTH = (Check(1, 1, 0.25, 0.1, 0.08), Check(1, 1, 0.25, 0.0, 0.0))
DOUBTED = 0.33
"""A suite that nothing proves worse, and that a test alone keeps from PASS, is let go at this share of ``futile``."""
REPEATED_SHARE, REPEATED_FUTILE = 0.2, 0.15
"""The same of cases that were asked again and proved a drop together, by repeats of both sides: no trial is added."""
LEVEL = 2.5
"""In shares of alpha: the most often that the steps of the check confirm a drop of a change which is no worse than the
baseline's agent is *now*, whatever happened since the baseline was stored. Repeats of both sides have
``REPEATED_SHARE`` of it beside them, and go on to the steps where they leave it open: 3 alpha together. With nothing
happened a block has to come through both tests."""
MOVED = 0.05
"""From this p-value down the baseline's agent is taken to be worse than it was. It only ends a check early."""
LEAST_PART = 10
"""Fewer cases do not show whether the baseline's agent is there at all."""
LEAST_DIVIDED = 20
"""Below this many cases a part of them says little."""


def next_check(evidence: Evidence, config: Config, *, alone: bool = False) -> tuple[Request, ...]:
    """The trials of the next step; empty where none can be run, or is affordable.

    ``alone``: only a step of the baseline's agent alone.
    """
    done, steps = len(evidence.checks), steps_of(evidence)
    if not config.can_run or config.rerun != "match" or done >= len(steps) - (len(BOTH) if alone else 0):
        return ()
    step = steps[done]
    cases = _live(evidence) if step.candidate else _unasked(evidence)
    if not cases:
        return ()
    sides = ((Side.BASELINE, step.baseline), (Side.CANDIDATE, step.candidate))
    requests = tuple(Request(side, CONCURRENT, cases, n) for side, n in sides if n)
    affordable = config.runs_left is None or sum(r.runs for r in requests) <= config.runs_left
    return requests if affordable else ()


def steps_of(evidence: Evidence) -> Sequence[Check]:
    """All steps of a check of this suite; one of larger parts, as in records of earlier versions, goes on so."""
    cases = len(_live(evidence))
    if evidence.checks[0].cases >= cases if evidence.checks else not _is_divided(evidence):
        return (*WHOLE, *BOTH)
    asked_all = (i for i, check in enumerate(evidence.checks[: len(QUARTERS)]) if check.cases >= cases)
    last = next(asked_all, math.ceil(cases / _part(cases)) - 1)
    return (*QUARTERS[:last], QUARTERS[-1], *BOTH)


def _part(cases: int) -> int:
    """How many of so many cases are a step of the baseline's agent alone."""
    return max(LEAST_PART, math.ceil(cases / len(QUARTERS)))


def went_live(evidence: Evidence) -> bool:
    """Whether anything was measured in which a drift could show."""
    return any(case.live for case in evidence.cases.values())


def _live(evidence: Evidence) -> tuple[str, ...]:
    """The cases that a drift can show in: not everything of them was answered from recordings."""
    return tuple(case.id for case in evidence.cases.values() if case.live)


def _is_divided(evidence: Evidence) -> bool:
    return len(_live(evidence)) >= LEAST_DIVIDED and not evidence.state.clusters


def _unasked(evidence: Evidence) -> tuple[str, ...]:
    """The cases of a step of the baseline's agent alone: chosen by what was stored, never by what the change did."""
    asked = evidence.fresh.get(Side.BASELINE, {})
    order = list(_live(evidence))
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


def answers_now(evidence: Evidence) -> bool:
    """Whether the baseline's agent was measured in this job in most of the cases that it was asked: one that is down
    says nothing of a drift."""
    asked = evidence.fresh.get(Side.BASELINE, {})
    return 2 * sum(bool(case.now) for case in evidence.cases.values() if case.id in asked) > len(asked)


def confirmed(evidence: Evidence, *, doubted: bool = False) -> bool | None:
    """Whether the drop shows against what the baseline's agent does now; None while that is open.

    ``doubted``: nothing proved one.
    """
    level = LEVEL * evidence.state.config.alpha
    for check, found in zip(steps_of(evidence), evidence.checks, strict=False):
        if found.test.p <= level * check.share:
            return True
        if found.test.p >= _futile(check, found) * (DOUBTED if doubted else 1):
            return False
    return None


def repeats_confirmed(evidence: Evidence) -> bool | None:
    """Whether a drop that repeats of failing cases proved shows in the same repeats of the baseline's agent now."""
    p = evidence.repeats_now
    if p is None or REPEATED_FUTILE > p > LEVEL * evidence.state.config.alpha * REPEATED_SHARE:
        return None
    return p < REPEATED_FUTILE


def moved_before(evidence: Evidence, *, clearly: bool = False) -> bool:
    """Whether a drop of the whole suite may be older than the change: against the newest of the stored runs alone it
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


def _futile(check: Check, found: Checked) -> float:
    return check.futile_moved if found.moved.p <= MOVED else check.futile
