"""Builders of numeric states, and a driver that runs simulated trials until the engine answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from msgspec.structs import replace

from gate.decision.engine.evidence import KnownTests
from gate.decision.engine.rule import decide
from gate.decision.engine.state import Config, Metric, Request, Round, Row, State
from gate.model import Outcome, Side

SUCCESS = Metric("success", "binary")


def ids(n: int) -> list[str]:
    return [f"c{i:04d}" for i in range(n)]


def rows(*outcomes: float) -> list[Row]:
    return [[float(outcome)] for outcome in outcomes]


def state(
    baseline: Mapping[str, list[Row]],
    *rounds: Round,
    config: Config | None = None,
    metrics: tuple[Metric, ...] = (SUCCESS,),
) -> State:
    return State(metrics, baseline, rounds, config or Config(), 7)


def full(trials: Mapping[str, list[Row]], side: Side = Side.CANDIDATE) -> Round:
    return Round("full", side, trials)


def confirm(trials: Mapping[str, list[Row]], side: Side = Side.CANDIDATE) -> Round:
    return Round("confirm", side, trials)


def drive(start: State, trial: Callable[[Side, str], Row], *, limit: int = 100) -> tuple[Outcome, list[Request]]:
    """Answers every request until a verdict; returns it with all requests, in order."""
    asked: list[Request] = []
    current = start
    known: KnownTests = {}
    for _ in range(limit):
        step = decide(current, known)
        if isinstance(step, Outcome):
            return step, asked
        assert step.requests, "an undecided engine must ask for something"
        asked += step.requests
        new = [
            Round(r.tag, r.side, {c: [trial(r.side, c) for _ in range(r.n)] for c in r.cases}) for r in step.requests
        ]
        current = replace(current, rounds=(*current.rounds, *new))
    raise AssertionError("no verdict")


def bernoulli(rng: Random, now: Mapping[str, float], before: Mapping[str, float]) -> Callable[[Side, str], Row]:
    return lambda side, case: [float(rng.random() < (now if side is Side.CANDIDATE else before)[case])]
