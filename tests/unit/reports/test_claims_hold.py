"""Every kind of claim in a report against the known truth: suites are simulated through the whole of the pipeline."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from random import Random

import pytest
from msgspec import Struct
from msgspec.structs import replace

from gate.baselines.reference import Reference
from gate.decision import Settings
from gate.model import BaselineInfo, Case, Criterion, Result, Scale, Score, Side, SuiteResult, Trial, Verdict
from gate.pipeline.terms import Terms
from gate.pipeline.verdict import judge_record, result_of
from gate.records import Footer, Header, PlannedCase, Record
from gate.reports import load_report
from gate.reports.console import render as console
from gate.reports.formatting import NAMED
from gate.statistics.intervals import wilson
from tests.unit.decision.records import follow

HELD = Criterion("answer", "contains", Scale.BINARY, pass_threshold=1.0)
CHANGES = ("unchanged", "broken", "drop", "traded", "improved")
FEW = 5
"""Worlds of the quick run: one of each change."""


class World(Struct, frozen=True):
    """A suite whose rates are known, and what the gate said of it."""

    change: str
    before: Mapping[str, float]
    now: Mapping[str, float]
    trials: tuple[Trial, ...]
    stored: tuple[Trial, ...]
    suite: SuiteResult
    result: Result

    @property
    def drop(self) -> float:
        return sum(self.before.values()) / len(self.before) - sum(self.now.values()) / len(self.now)

    def passes(self, case_id: str) -> tuple[int, int, int, int]:
        """Passed and run at the baseline, then now, counted from the trials themselves."""
        before = [t for t in (*self.stored, *self.trials) if t.side is Side.BASELINE or t in self.stored]
        sides = ([t for t in before if t.case_id == case_id], [t for t in self.trials if t.case_id == case_id])
        counts = [(sum(bool(t.scores["answer"].value) for t in side), len(side)) for side in sides]
        return (*counts[0], *counts[1])


def rates(rng: Random, kind: str, n: int) -> list[float]:
    """As agents' are: most cases steady, some flaky, a few that never pass."""
    steady = {"stable": 0.85, "typical": 0.6, "flaky": 0.25}[kind]
    return [1.0 if (u := rng.random()) < steady else 0.0 if u > 0.95 else rng.uniform(0.3, 0.98) for _ in range(n)]


def changed(change: str, before: list[float]) -> list[float]:
    good = sorted(range(len(before)), key=lambda i: -before[i])
    now = list(before)
    if change in ("broken", "traded"):
        for i in good[:3]:
            now[i] = 0.0
    if change in ("traded", "improved"):
        for i in good[-5:]:
            now[i] = 1.0
    return [0.88 * rate for rate in now] if change == "drop" else now


def simulate(seed: int) -> World:
    rng = Random(seed)
    kind, n, kb = rng.choice(["stable", "typical", "flaky"]), rng.choice([12, 24, 40]), rng.choice([1, 3, 5])
    change = CHANGES[seed % len(CHANGES)]
    before = rates(rng, kind, n)
    if change in ("traded", "improved"):
        before[-5:] = [0.0] * 5
    ids = [f"case-{i:02d}" for i in range(n)]
    old, new = dict(zip(ids, before, strict=True)), dict(zip(ids, changed(change, before), strict=True))

    def score(case_id: str, side: Side) -> dict[str, float]:
        return {"answer": float(rng.random() < (new if side is Side.CANDIDATE else old)[case_id])}

    stored = [
        Trial(c, k, k, scores={"answer": Score(score(c, Side.BASELINE)["answer"])})
        for k in range(1, kb + 1)
        for c in ids
    ]
    _, trials = follow([Case(c, ()) for c in ids], [HELD], score, stored)
    plan = tuple(PlannedCase(c, f"content {c}") for c in ids)
    header = Header("suite", plan, (HELD,))
    reference = Reference(BaselineInfo("abc", trials_per_case=kb), (Record(header, tuple(stored), None),))
    terms = Terms((HELD,), Settings(), scheduled=True)
    record = Record(replace(header, run_id="now"), tuple(trials), Footer(len(trials), 0, max(t.round for t in trials)))
    suite = judge_record(record, [reference], terms)
    shown = result_of([suite], Settings(), command="gate run")
    return World(change, old, new, tuple(trials), tuple(stored), suite, shown)


@cache
def some(count: int) -> tuple[World, ...]:
    return tuple(map(simulate, range(count)))


def texts(world: World) -> Iterator[str]:
    yield " ".join(console(world.result, width=500).split())
    yield load_report("markdown")(world.result)
    yield json.dumps(json.loads(load_report("json")(world.result)), ensure_ascii=False)


def check_bounds(found: tuple[World, ...]) -> None:
    """What is ruled out is wrong in at most 5 % of runs; the number is the same in every report."""
    wrong = 0
    for world in found:
        said = {
            m for text in texts(world) for m in re.findall(r"a drop of more than ([\d.]+) points is ruled out", text)
        }
        assert len(said) <= 1
        assert bool(said) <= (world.suite.verdict is Verdict.PASS)
        wrong += any(100 * world.drop > float(points) for points in said)
    assert wilson(wrong, len(found))[0] <= 0.05, wrong


def check_names(found: tuple[World, ...]) -> None:
    """Of the cases that are named broken, or improved, at most a tenth are not, on average over reports."""
    for name, wrong_if in (
        ("lost", lambda w, c: w.now[c] >= w.before[c]),
        ("gained", lambda w, c: w.now[c] <= w.before[c]),
    ):
        shares = []
        for world in found:
            named = _named(world, name)
            shares.append(sum(wrong_if(world, c) for c in named) / len(named) if named else 0.0)
        assert sum(shares) / len(shares) <= 0.10, (name, sum(shares))


def _named(world: World, side: str) -> list[str]:
    cause = world.suite.cause
    if cause.kind == "cases_broke" and (side == "lost" or cause["gained"]):
        parts = ("cases", "named") if side == "lost" else ("gained", "gained_named")
        tallies, certain = (cause[part] for part in parts)
        return [one.case_id for one in tallies] if certain else []
    return list(world.suite.outcome.evidence.gained) if side == "gained" and world.suite.outcome else []


def check_blocks(found: tuple[World, ...]) -> None:
    """An agent that is no worse in any case is blocked in at most 2 % of runs."""
    fine = [world for world in found if all(world.now[c] >= world.before[c] for c in world.now)]
    blocked = sum(world.suite.verdict is Verdict.REGRESSED for world in fine)
    assert wilson(blocked, len(fine))[0] <= 0.02, blocked


CHECKS = (check_bounds, check_names, check_blocks)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_claims_hold_in_many_simulations(check: object) -> None:
    """A claim that is wrong in a fifth of the worlds, and not in a twentieth, is found with a probability of 0.92."""
    check(some(40))  # type: ignore[operator]


def test_the_cases_of_a_headline_and_their_numbers_are_those_of_the_trials() -> None:
    seen = 0
    for world in some(FEW):
        cause = world.suite.cause
        if cause.kind != "cases_broke":
            continue
        groups = (cause["cases"], cause["gained"])
        for one in chain.from_iterable(groups):
            assert (one.passed_before, one.trials_before, one.passed, one.trials) == world.passes(one.case_id)
        counted = [f"{len(cause['cases'])} of {len(world.now)} cases broke"] if not cause["gained"] else []
        named = [one.case_id for group in groups for one in group[:NAMED]]
        for text in texts(world):
            assert all(said in text for said in (*counted, *named)), (counted, named, text[:600])
            seen += 1
    assert seen


def test_an_interval_with_room_for_a_gain_never_stands_beside_a_proven_loss() -> None:
    for world in some(FEW):
        row = world.suite.criteria[0]
        if row.verdict is Verdict.REGRESSED and row.change is not None and row.change.low < 0 < row.change.high:
            markdown = load_report("markdown")(world.result)
            line = next(line for line in markdown.splitlines() if line.startswith("- ❌ `pass rate`"))
            assert "[" not in line.partition(", change ")[2].partition("<br>")[0]


def test_nothing_is_claimed_of_a_comparison_that_did_not_take_place() -> None:
    for world in some(FEW):
        header = Header("suite", tuple(PlannedCase(c, f"content {c}") for c in world.now), (HELD,))
        record = Record(header, world.trials, Footer(len(world.trials), 0, 1))
        suite = judge_record(record, [Reference(BaselineInfo(None, missing="none"))], Terms((HELD,)))
        assert not (suite.cause.kind == "passes" and suite.cause["compared"])
        shown = result_of([suite], Settings(), command="gate run")
        for text in texts(replace(world, suite=suite, result=shown)):
            assert not re.search(r"✅ \|| ✓ |ruled out|no worse than the baseline over|broke|improved", text), text[
                :500
            ]
