"""The stored runs of one agent over time: since when it scores otherwise, and what of them is still pooled."""

from __future__ import annotations

from random import Random

import pytest

from gate.baselines.union import run_ids, unite
from gate.model import Criterion, Scale, Score, Trial
from gate.pipeline.references import since_last_move
from gate.records import Footer, Header, PlannedCase, Record

OK = Criterion("ok", "ok", Scale.BINARY, pass_threshold=1.0)
CASES = [f"c{n}" for n in range(40)]
DAY = 86_400.0


def record(day: int, rate: float, *, agent: str = "a", commit: str | None = None) -> Record:
    rng = Random(day)
    trials = tuple(
        Trial(case, n, scores={"ok": Score(float(rng.random() < rate))}) for case in CASES for n in (1, 2, 3)
    )
    plan = tuple(PlannedCase(case, "f") for case in CASES)
    header = Header("s", plan, (OK,), run_id=f"r{day}", created=DAY * day, agent=agent, commit=commit or f"{day:040d}")
    return Record(header, trials, Footer(len(trials), 0, 1))


@pytest.mark.slow
def test_the_runs_before_the_point_are_no_longer_pooled() -> None:
    records = [record(day, 0.9 if day < 4 else 0.6) for day in reversed(range(8))]
    kept, fact = since_last_move(records)
    assert fact is not None
    assert (fact["since"], fact["commit"], fact["metric"], fact["runs"]) == (4 * DAY, f"{4:040d}", "pass rate", 8)
    assert fact["change"] < 0
    assert [one.header.run_id for one in kept] == ["r7", "r6", "r5", "r4"]


@pytest.mark.slow
def test_nightly_runs_of_one_commit_are_runs_of_one_record() -> None:
    whole = record(0, 0.9, commit="c" * 40)
    for day in range(1, 8):
        whole, _ = unite(whole, record(day, 0.9 if day < 4 else 0.6, commit="c" * 40))
    (kept,), fact = since_last_move([whole])
    assert fact is not None
    assert run_ids(kept.header) == ("r4", "r5", "r6", "r7")


def test_what_did_not_move_stays_whole() -> None:
    records = [record(day, 0.9) for day in reversed(range(8))]
    assert since_last_move(records) == (records, None)


def test_records_of_another_agent_say_nothing() -> None:
    records = [record(day, 0.9 if day < 4 else 0.6, agent="a" if day >= 4 else "b") for day in reversed(range(8))]
    assert since_last_move(records) == (records, None)


def test_of_an_unknown_agent_only_the_runs_of_one_commit_are_compared() -> None:
    records = [record(day, 0.9 if day < 4 else 0.6, agent="") for day in reversed(range(8))]
    assert since_last_move(records) == (records, None)
