"""The rule's error rate and power, by simulation with fixed seeds; and on recorded conversations of a real agent."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gate.decision.engine.state import Config
from gate.model import Case, Criterion, Scale, Score, Trial, Verdict
from gate.statistics.intervals import wilson

from .numbers import bernoulli, drive, ids, state
from .records import judge

RATES = (1.0,) * 9 + (0.95,) * 5 + (0.9, 0.8, 0.7, 0.6, 0.55, 0.0)


def worlds(
    runs: int, cases: int, *, broken: int = 0, drop: float = 0.0, config: Config | None = None
) -> Iterator[tuple[Any, float, set[str]]]:
    """Simulated changes: (answer, agent runs per case, the cases that truly broke)."""
    for seed in range(runs):
        rng = Random(f"{seed}:{cases}:{broken}:{drop}")
        before = {c: rng.choice(RATES) for c in ids(cases)}
        down = set(rng.sample([c for c in before if before[c] >= 0.9], broken))
        now = {c: 0.0 if c in down else max(0.0, rate - drop) for c, rate in before.items()}
        stored = {c: [[float(rng.random() < rate)] for _ in range(5)] for c, rate in before.items()}
        answer, requests = drive(state(stored, config=config), bernoulli(rng, now, before))
        yield answer, sum(r.runs for r in requests) / cases, down


def blocked(found: Sequence[tuple[Any, float, set[str]]]) -> int:
    return sum(answer.verdict == "REGRESSION" for answer, _, _ in found)


@pytest.mark.parametrize(
    ("runs", "cases", "config"),
    [
        (20, 12, None),
        pytest.param(100, 12, None, marks=pytest.mark.slow),
        pytest.param(100, 40, None, marks=pytest.mark.slow),
        pytest.param(100, 20, Config(rerun="match"), marks=pytest.mark.slow),
        pytest.param(100, 40, Config(exact_epochs=2), marks=pytest.mark.slow),
    ],
)
def test_an_unchanged_agent_is_blocked_at_most_as_often_as_promised(
    runs: int, cases: int, config: Config | None
) -> None:
    found = list(worlds(runs, cases, config=config))
    assert wilson(blocked(found), len(found))[0] <= 0.02
    assert sum(runs for _, runs, _ in found) / len(found) <= (2 if config and config.exact_epochs else 2.2)


@pytest.mark.parametrize("n", [4, pytest.param(30, marks=pytest.mark.slow)])
def test_broken_cases_are_found_and_named_at_little_more_than_one_run_a_case(n: int) -> None:
    found = list(worlds(n, 60, broken=3))
    assert blocked(found) >= n - 1
    named = [(set(answer.cases), down) for answer, _, down in found]
    assert sum(len(names & down) for names, down in named) >= 0.6 * 3 * n
    assert sum(len(names - down) / max(1, len(names)) for names, down in named) / n <= 0.10
    assert sum(runs for _, runs, _ in found) / n <= 1.7


@pytest.mark.parametrize(
    ("runs", "cases", "broken", "drop", "least"),
    [
        (2, 60, 1, 0.0, 1),
        (2, 100, 0, 0.15, 1),
        pytest.param(25, 60, 1, 0.0, 22, marks=pytest.mark.slow),
        pytest.param(20, 100, 0, 0.15, 18, marks=pytest.mark.slow),
    ],
)
def test_one_broken_case_and_a_broad_fall_are_found(
    runs: int, cases: int, broken: int, drop: float, least: int
) -> None:
    assert blocked(list(worlds(runs, cases, broken=broken, drop=drop))) >= least


# --- recorded conversations -----------------------------------------------------------------------

SHARED = Path(os.environ.get("GATE_SHARED_DATA") or Path(__file__).parents[4] / "shared" / "data")
AIRLINE = SHARED / "tau-bench" / "gpt-4o-airline.json"
airline = pytest.mark.skipif(not AIRLINE.exists(), reason="the recorded airline conversations are not here")
CRITERION = Criterion("trajectory", "tool_trajectory_avg_score", Scale.UNIT, pass_threshold=1.0)


@pytest.fixture(scope="module")
def recorded() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(AIRLINE.read_text(encoding="utf-8"))
    return rows


def in_order(row: dict[str, Any], *, without: str | None = None) -> float:
    """Whether the expected calls are a subsequence of those made, leaving out one tool's."""
    made = [c["function"] for m in row["traj"] for c in m.get("tool_calls") or ()]
    calls = iter([(c["name"], json.loads(c["arguments"])) for c in made if c["name"] != without])
    return float(all((e["name"], e["kwargs"]) in calls for e in row["info"]["task"]["actions"]))


def split(rows: list[dict[str, Any]], chosen: Sequence[int], *, damage: bool = False) -> list[Trial]:
    trials = []
    for row in rows:
        expected = row["info"]["task"]["actions"]
        without = expected[0]["name"] if damage and expected and row["task_id"] % 2 == 0 else None
        if row["trial"] in chosen:
            value = Score(in_order(row, without=without))
            trials.append(Trial(f"task-{row['task_id']}", chosen.index(row["trial"]) + 1, scores={"trajectory": value}))
    return trials


@pytest.mark.slow
@airline
@pytest.mark.parametrize("before", list(combinations(range(4), 2)))
def test_the_same_airline_agent_is_not_blocked_and_a_damaged_one_is(
    recorded: list[dict[str, Any]], before: tuple[int, int]
) -> None:
    suite = [Case(f"task-{i}", ()) for i in sorted({row["task_id"] for row in recorded})]
    now = [i for i in range(4) if i not in before]
    stored = split(recorded, before)
    assert judge(suite, [CRITERION], split(recorded, now), stored).verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)
    damaged = judge(suite, [CRITERION], split(recorded, now, damage=True), stored)
    assert damaged.verdict is Verdict.REGRESSED


@airline
@pytest.mark.slow
def test_worlds_drawn_from_the_airline_agents_own_rates_are_blocked_as_rarely_as_promised(
    recorded: list[dict[str, Any]],
) -> None:
    scores: dict[str, list[float]] = {}
    for row in recorded:
        scores.setdefault(str(row["task_id"]), []).append(in_order(row))
    rates = {case: sum(values) / len(values) for case, values in scores.items()}
    count = 0
    for seed in range(80):
        rng = Random(seed)
        stored = {c: [[float(rng.random() < rate)] for _ in range(5)] for c, rate in rates.items()}
        answer, _ = drive(state(stored), bernoulli(rng, rates, rates))
        count += answer.verdict == "REGRESSION"
    assert wilson(count, 80)[0] <= 0.02
