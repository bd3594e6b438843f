"""The program behind docs/dev/evidence/monitor.md: it follows the rule trace by trace, and counts what it says."""

from __future__ import annotations

import random

import pytest

from benchmarks import monitor
from gate.config.production import MonitorSection
from gate.monitor.window import Status

LIMITS = MonitorSection()


def test_an_agent_that_never_fails_stays_healthy_and_one_that_always_fails_does_not() -> None:
    good = list(monitor.statuses(1.0, 50, LIMITS, random.Random(1), []))
    bad = list(monitor.statuses(0.0, 50, LIMITS, random.Random(1), []))
    assert set(good) == {Status.HEALTHY}
    assert bad[:29] == [Status.HEALTHY] * 29, "before there are enough traces nothing is said"
    assert set(bad[29:]) == {Status.CRITICAL}


@pytest.mark.slow
def test_alarms_are_counted_per_agent() -> None:
    rows = list(monitor.false_alarms(LIMITS, 2, 1, traces=40))
    assert rows[-1] == "| 95% | 0.000 (0.000–0.658) | 0.000 (0.000–0.658) | 2 |"
    assert len(rows) == 7


@pytest.mark.slow
def test_a_total_failure_is_seen_after_as_many_traces_as_the_shortest_part_needs() -> None:
    rows = list(monitor.delays(LIMITS, 2, 1, most=60))
    median = int(rows[-1].split("|")[3])
    assert median <= LIMITS.min_samples
