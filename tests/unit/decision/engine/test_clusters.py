"""Cases that share a fixture are one unit: in looks, in the suite's e-value, in the interval."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.decision.engine.clusters import grouped, log_es_of, units_of
from gate.decision.engine.evidence import gather
from gate.decision.engine.state import Metric, Round, State
from gate.model import FULL, Side
from gate.statistics.evalues import suite_e
from gate.statistics.permutation import ComparedTrials

IDS = [f"c{n}" for n in range(20)]
PAIRS = {case: f"pair {n // 2}" for n, case in enumerate(IDS)}


def state(clusters: dict[str, str], seed: int = 1) -> State:
    rng = Random(seed)
    draw = lambda n: [[float(rng.random() < 0.8)] for _ in range(n)]  # noqa: E731
    baseline = {case: draw(5) for case in IDS}
    return State(
        (Metric("pass rate", "binary"),),
        baseline,
        (Round(FULL, Side.CANDIDATE, {case: draw(1) for case in IDS}),),
        clusters=clusters,
    )


def test_a_row_is_the_mean_over_the_cases_of_the_epoch() -> None:
    cases = [
        ComparedTrials([[1.0, None]], [[1.0, 2.0], [0.0, 2.0]]),
        ComparedTrials([[0.0, 4.0]], [[0.0, 4.0], [0.0, 4.0]]),
    ]
    assert units_of(cases, [[0, 1]]) == [ComparedTrials([[0.5, 4.0]], [[0.5, 3.0], [0.0, 3.0]])]


def test_a_unit_is_coupled_as_its_cases_are_and_left_out_where_they_are_coupled_differently() -> None:
    free, coupled, otherwise = (ComparedTrials([[1.0]], [[0.0], [1.0]], links) for links in ((), ((0, 1),), ((0, 0),)))
    assert units_of([free, coupled], [[0, 1]]) == [coupled]
    assert units_of([coupled, otherwise], [[0, 1]]) == [ComparedTrials((), ())]


def test_a_case_without_trials_on_a_side_is_left_out_of_its_unit() -> None:
    whole, empty = ComparedTrials([[1.0]], [[1.0]]), ComparedTrials([], [[0.0]])
    assert units_of([whole, empty], [[0, 1]]) == [whole]


def test_clusters_and_cases_of_the_same_name_are_apart() -> None:
    assert grouped(["a", "b", "c"], {"b": "a", "c": "a"}) == [[0], [1, 2]]


def test_without_clusters_nothing_changes() -> None:
    alone, single = gather(state({})), gather(state({case: f"own {case}" for case in IDS}))
    assert alone.looks == single.looks
    assert alone.bounds == single.bounds
    assert alone.suite_e == pytest.approx(single.suite_e)


def test_the_interval_is_over_units_and_the_count_over_cases() -> None:
    apart, paired = gather(state({})).bounds[0], gather(state(PAIRS)).bounds[0]
    assert paired.change == pytest.approx(apart.change)
    assert (paired.cases, paired.margin) == (apart.cases, apart.margin)
    assert paired.low != apart.low


@given(st.lists(st.floats(-20, 20), min_size=2, max_size=12))
def test_a_unit_counts_as_one_case_of_the_mean_e_value(log_es: list[float]) -> None:
    (mean,) = log_es_of(log_es, [list(range(len(log_es)))])
    assert min(log_es) - 1e-9 <= mean <= max(log_es) + 1e-9
    assert math.exp(mean) == pytest.approx(sum(map(math.exp, log_es)) / len(log_es), rel=1e-6)
    assert suite_e(log_es_of([log_es[0]] * 5, [[0, 1, 2, 3, 4]])) == pytest.approx(suite_e([log_es[0]]))
