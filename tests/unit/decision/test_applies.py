"""An agent that gives a criterion nothing to check any more does not pass by the few answers that are left."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from gate.decision.outcomes import PASS_RATE
from gate.model import Criterion, Scale, Trial, Verdict
from gate.model.finding import Finding

from .records import TRAJECTORY, by_name, cases, findings, judge, once, stored, trial

SUITE = cases(10)
CLAIMS = Criterion("claims", "factual_accuracy", Scale.UNIT, threshold=0.9, pass_threshold=0.9)
SILENT = [case.id for case in SUITE[1:]]


def test_an_agent_that_goes_silent_does_not_pass() -> None:
    now = once(SUITE, {case_id: {"claims": None} for case_id in SILENT}, claims=1.0)
    result = judge(SUITE, [CLAIMS], now, stored(SUITE, claims=1.0))
    assert result.verdict is Verdict.NOT_COMPARED
    fell = Finding.of("not_compared", why="nothing_to_check", criterion="claims", cases=tuple(SILENT), of=10)
    assert result.cause == Finding.of("incomplete", gaps=(fell,))
    assert by_name(result) == {PASS_RATE: Verdict.NOT_COMPARED, "claims": Verdict.NOT_COMPARED}, "no row has a tick"
    assert findings(result, "claims") == [fell]
    assert Finding.of("not_judged", why="answers_unchecked", cases=tuple(SILENT)) in result.criteria[0].findings


def test_another_criterion_that_still_applies_does_not_hide_it() -> None:
    now = once(SUITE, {case_id: {"claims": None} for case_id in SILENT}, claims=1.0, trajectory=1.0)
    result = judge(SUITE, [TRAJECTORY, CLAIMS], now, stored(SUITE, claims=1.0, trajectory=1.0))
    assert result.verdict is Verdict.NOT_COMPARED
    assert result.cause == Finding.of(
        "incomplete",
        gaps=(Finding.of("not_compared", why="nothing_to_check", criterion="claims", cases=tuple(SILENT), of=10),),
    )
    aside = replace(CLAIMS, blocking=False, blocks_regression=False)
    assert judge(SUITE, [TRAJECTORY, aside], now, stored(SUITE, claims=1.0, trajectory=1.0)).verdict is Verdict.PASS


def test_of_two_criteria_that_fall_silent_neither_has_a_tick() -> None:
    sources = replace(CLAIMS, name="sources")
    mute = {case_id: {"claims": None, "sources": None} for case_id in SILENT}
    mute[SILENT[0]] = {"claims": None, "sources": 1.0}
    now, before = once(SUITE, mute, claims=1.0, sources=1.0), stored(SUITE, claims=1.0, sources=1.0)
    result = judge(SUITE, [CLAIMS, sources], now, before)
    both = (
        Finding.of("not_compared", why="nothing_to_check", criterion="claims", cases=tuple(SILENT), of=10),
        Finding.of("not_compared", why="nothing_to_check", criterion="sources", cases=tuple(SILENT[1:]), of=10),
    )
    assert result.cause == Finding.of("incomplete", gaps=both)
    assert set(by_name(result).values()) == {Verdict.NOT_COMPARED}


def test_a_single_case_is_named_and_is_no_part_of_what_was_compared() -> None:
    now = once(SUITE, {"case-03": {"claims": None}}, claims=1.0)
    result = judge(SUITE, [CLAIMS], now, stored(SUITE, claims=1.0))
    assert result.verdict is Verdict.PASS
    assert result.cause.kind == "passes"
    assert result.cause["compared"] == 9
    assert Finding.of("not_judged", why="answers_unchecked", cases=("case-03",)) in result.criteria[0].findings


def test_what_never_applied_is_not_missed() -> None:
    mute = {case_id: {"claims": None} for case_id in SILENT}
    before = [replace(t, number=n) for n in (1, 2, 3) for t in once(SUITE, mute, claims=1.0)]
    result = judge(SUITE, [CLAIMS], once(SUITE, mute, claims=1.0), before)
    assert result.verdict is not Verdict.NOT_COMPARED
    assert Finding.of("not_judged", why="cases_unchecked", cases=tuple(SILENT)) in result.criteria[0].findings


@pytest.mark.parametrize(
    ("applies", "runs"), [(0.8, 10), *(pytest.param(rate, 200, marks=pytest.mark.slow) for rate in (0.5, 0.8, 0.95))]
)
def test_an_agent_that_is_silent_by_chance_is_seldom_blocked(applies: float, runs: int) -> None:
    random, suite, blocked = Random(7), cases(20), 0
    for _ in range(runs):

        def drawn(case_id: str, number: int) -> Trial:
            return trial(case_id, number, trajectory=1.0, claims=1.0 if random.random() < applies else None)

        before = [drawn(case.id, n) for case in suite for n in (1, 2, 3, 4, 5)]
        now = [drawn(case.id, 1) for case in suite]
        blocked += judge(suite, [TRAJECTORY, CLAIMS], now, before).verdict is Verdict.NOT_COMPARED
    assert blocked <= runs * 0.02
