"""What designs could find, and cases over time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gate.decision.history import case_history
from gate.decision.power import power_table, reruns_to_prove
from gate.model import Invocation, Usage

from .records import TRAJECTORY, cases, stored, trial


def test_more_cases_and_trials_find_smaller_drops_at_a_price() -> None:
    trials = [trial(c.id, n, trajectory=float((n + i) % 4 > 0)) for i, c in enumerate(cases(20)) for n in range(1, 5)]
    paid = [replace(t, invocations=(Invocation(usage=Usage(cost_usd=0.01)),)) for t in trials]
    power = power_table(paid, [TRAJECTORY])
    assert power.within_sd == pytest.approx(0.5)
    assert not power.estimated
    assert power.cost_per_run == pytest.approx(0.01)
    assert {row.cases for row in power.rows} == {10, 20, 30, 50, 100, 200, 300}
    small, large = power.rows[0], power.rows[-1]
    assert small.detectable > large.detectable
    assert (small.runs, large.runs) == (10, 3000)
    assert large.cost_usd == pytest.approx(30)


def test_the_spread_is_bounded_where_no_case_was_run_twice() -> None:
    trials = [trial(c.id, trajectory=float(i < 10)) for i, c in enumerate(cases(20))]
    power = power_table(trials, [TRAJECTORY])
    assert (power.within_sd, power.estimated, power.cost_per_run) == (0.5, True, None)


def test_a_thin_baseline_needs_more_failures_to_prove_a_break() -> None:
    needed = [reruns_to_prove(100, kb) for kb in (1, 3, 5, 10)]
    assert needed[0] is None
    assert needed[1] > needed[2] > needed[3] > 3


def test_history_counts_each_record_and_flags_what_flips() -> None:
    suite = cases(3)
    first = stored(suite, 2, trajectory=1.0)
    second = [trial("case-00", n, trajectory=float(n == 1)) for n in (1, 2)] + [trial("case-01", 1, trajectory=0.0)]
    third = [trial("case-01", 1, trajectory=1.0), trial("case-02", 1, trajectory=0.0)]
    found = {c.id: c for c in case_history([first, second, third], [TRAJECTORY])}
    assert found["case-00"].by_record == ((2, 2), (1, 2), (0, 0))
    assert found["case-00"].flaky, "two answers of one agent"
    assert found["case-01"].flaky, "failed, and passed again"
    assert not found["case-02"].flaky, "one change is a change"
    assert found["case-02"].rate == pytest.approx(2 / 3)
    assert found["case-02"].low < 2 / 3 < found["case-02"].high
