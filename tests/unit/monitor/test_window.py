"""The status of a window: exact intervals, no single noisy value, and the error rate that it states."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.config.production import MonitorSection
from gate.monitor.window import ALPHA, WORSE, Status, after_silence, decide, parts

LIMITS = MonitorSection()


def outcomes(passed: int, failed: int) -> list[bool | None]:
    """Evenly mixed, the failures from the end backwards."""
    total = passed + failed
    return [(i * failed) // total == ((i + 1) * failed) // total for i in range(total)]


def test_the_status_follows_from_the_interval() -> None:
    for window, status in [
        ([], Status.INSUFFICIENT_DATA),
        (outcomes(29, 0), Status.INSUFFICIENT_DATA),
        (outcomes(30, 0), Status.HEALTHY),
        (outcomes(24, 6), Status.HEALTHY),  # 80 % of 30 shows nothing yet
        (outcomes(140, 60), Status.WARNING),
        (outcomes(100, 100), Status.CRITICAL),
        (outcomes(0, 30), Status.CRITICAL),
    ]:
        assert decide(window, Status.INSUFFICIENT_DATA, LIMITS).status is status, (window, status)


def test_the_rate_itself_decides_if_that_is_asked_for() -> None:
    limits = MonitorSection(rule="rate")
    for window, status in [
        (outcomes(29, 0), Status.INSUFFICIENT_DATA),
        (outcomes(85, 15), Status.HEALTHY),
        (outcomes(84, 16), Status.WARNING),
        (outcomes(69, 31), Status.CRITICAL),
    ]:
        assert decide(window, Status.CRITICAL, limits).status is status, (window, status)
    assert decide(outcomes(84, 16), Status.HEALTHY, limits).why == "84 of the last 100 passed: 84 %, below 85 %"


@given(st.lists(st.booleans(), max_size=400), st.sampled_from(Status))
def test_one_more_trace_never_moves_a_healthy_agent_to_critical(window: list[bool], before: Status) -> None:
    found = decide(window, before, LIMITS)
    if found.status is Status.HEALTHY and len(window) > LIMITS.min_samples:
        assert decide([*window, False], Status.HEALTHY, LIMITS).status is not Status.CRITICAL


@given(st.lists(st.one_of(st.none(), st.booleans()), max_size=300), st.sampled_from(Status))
def test_a_status_that_is_entered_rests_on_a_part_that_excludes_the_limit(
    window: list[bool | None], before: Status
) -> None:
    found = decide(window, before, LIMITS)
    limit = {Status.CRITICAL: LIMITS.critical, Status.WARNING: LIMITS.warning}.get(found.status)
    if limit is not None and WORSE.index(before) < WORSE.index(found.status):
        assert found.evidence is not None
        assert found.evidence.high < limit
        assert found.evidence.passed / found.evidence.measured < limit


def test_traces_that_could_not_be_measured_are_neither_good_nor_bad() -> None:
    window = [*outcomes(88, 0), *[None] * 12]
    found = decide(window, Status.HEALTHY, LIMITS)
    assert (found.status, found.unmeasured, found.share.measured) == (Status.INSUFFICIENT_DATA, 12, 88)


def test_a_warning_stays_until_the_newest_traces_are_good_or_the_rate_is_reached() -> None:
    bad = outcomes(130, 70)
    assert decide(bad, Status.HEALTHY, LIMITS).status is Status.WARNING
    mixed = [*bad[-150:], *outcomes(46, 4)]  # the last 50 are better, and prove nothing yet
    assert decide(mixed, Status.WARNING, LIMITS).status is Status.WARNING
    assert decide([*bad, *outcomes(60, 0)], Status.WARNING, LIMITS).status is Status.HEALTHY
    around = outcomes(172, 28)  # 86 % of a full window: reached, though no interval excludes 85 %
    assert decide(around, Status.WARNING, LIMITS).status is Status.HEALTHY
    assert decide(outcomes(168, 32), Status.WARNING, LIMITS).status is Status.WARNING


def test_the_parts_double_up_to_the_window() -> None:
    assert parts(MonitorSection()) == (30, 60, 120, 200)
    assert parts(MonitorSection(window=30)) == (30,)
    assert parts(MonitorSection(window=50, min_samples=10)) == (10, 20, 40, 50)


@pytest.mark.parametrize("looks", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_single_look_at_an_agent_at_the_limit_is_wrong_no_more_often_than_it_says(looks: int) -> None:
    """Windows of an agent whose pass rate is the limit itself; 4 standard errors above the bound."""
    draw = random.Random(5)
    wrong = sum(
        decide([draw.random() < LIMITS.warning for _ in range(200)], Status.HEALTHY, LIMITS).status
        is not Status.HEALTHY
        for _ in range(looks)
    )
    assert wrong / looks <= ALPHA + 4 * (ALPHA / looks) ** 0.5


@pytest.mark.parametrize("agents", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_a_drop_is_seen_within_the_window(agents: int) -> None:
    draw = random.Random(6)
    seen = 0
    for _ in range(agents):
        window: list[bool | None] = [True] * 200
        status = Status.HEALTHY
        for _ in range(100):
            window = [*window[1:], draw.random() < 0.4]
            status = decide(window, status, LIMITS).status
        seen += status is Status.CRITICAL
    assert seen >= 0.9 * agents


def test_a_window_to_which_nothing_is_added_is_not_healthy_for_ever() -> None:
    good = decide([True] * 200, Status.HEALTHY, MonitorSection())
    assert after_silence(good, 60.0, 3600.0) is good
    silent = after_silence(good, 90_000.0, 86_400.0)
    assert (silent.status, silent.blind) == (Status.INSUFFICIENT_DATA, True)
    warned = decide(outcomes(140, 60), Status.HEALTHY, MonitorSection())
    silent = after_silence(warned, 90_000.0, 86_400.0)
    assert (warned.status, silent.status, silent.blind) == (Status.WARNING, Status.INSUFFICIENT_DATA, True)
    bad = decide([False] * 200, Status.HEALTHY, MonitorSection())
    assert after_silence(bad, 90_000.0, 86_400.0) is bad, "critical stays critical"


def test_how_long_nothing_came_is_said_in_a_unit_that_fits() -> None:
    good = decide([True] * 200, Status.HEALTHY, MonitorSection())
    for silent, said in ((0.2, "second"), (3.0, "3 s"), (119.0, "119 s"), (600.0, "10 min"), (90_000.0, "25 h")):
        assert said in after_silence(good, silent, 0.1).why
    assert "7 days" in after_silence(good, 7 * 86_400.0, 0.1).why


def test_traces_that_could_not_be_measured_are_told_from_traces_that_are_not_there() -> None:
    few = decide([True] * 10, Status.HEALTHY, MonitorSection())
    assert (few.status, few.blind) == (Status.INSUFFICIENT_DATA, False)
    down = decide([None] * 40, Status.HEALTHY, MonitorSection())
    assert (down.status, down.blind, down.unmeasured) == (Status.INSUFFICIENT_DATA, True, 40)
