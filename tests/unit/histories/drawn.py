"""Runs of a suite over time, drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from gate.histories.runs import reduced
from gate.histories.trends import PastRun
from gate.model import (
    FULL,
    Case,
    Criterion,
    Invocation,
    MeasuredTrial,
    MeasuredTurn,
    Scale,
    Score,
    Trial,
    Usage,
)

QUALITY = Criterion("quality", "quality", Scale.UNIT, threshold=0.5, fingerprint="q1")
WEEK = 604_800.0
START = 1_767_225_600.0
"""2026-01-01."""


def in_numbers(trial: Trial) -> MeasuredTrial:
    """What a history reads of a trial."""
    return MeasuredTrial(
        trial.case_id,
        trial.number,
        None if trial.tag == FULL else trial.tag,
        trial.side,
        trial.scores,
        None if trial.error is None else (trial.error.kind, trial.error.message),
        trial.duration,
        [MeasuredTurn(turn.usage) for turn in trial.invocations],
    )


def drawn_run(
    number: int,
    rate: Callable[[str], float],
    *,
    ids: Sequence[str],
    criteria: Sequence[Criterion] = (QUALITY,),
    trials: int = 3,
    agent: str = "",
    content: str = "",
    verdict: str = "",
    seed: int = 0,
) -> PastRun:
    """One run; ``rate``: of each case, how often its trials score 0.9 rather than 0.1."""
    rng = Random(f"{seed}:{number}")
    made = [
        Trial(
            case_id,
            trial,
            scores={c.name: Score(0.9 if rng.random() < rate(case_id) else 0.1) for c in criteria},
            duration=rng.uniform(1, 2),
            invocations=(Invocation(usage=Usage(900, 100, cost_usd=rng.uniform(0.01, 0.02))),),
        )
        for case_id in ids
        for trial in range(1, trials + 1)
    ]
    return PastRun(
        f"run-{number}",
        START + number * WEEK / 7,
        reduced(map(in_numbers, made), criteria, {case_id: Case(case_id, ()) for case_id in ids}),
        tuple(criteria),
        {case_id: f"{case_id}{content}" for case_id in ids},
        {case_id: frozenset({"refund" if n % 3 == 0 else "order"}) for n, case_id in enumerate(ids)},
        f"{number:07x}{'a' * 33}",
        agent=agent or f"agent {number}",
        verdict=verdict,
    )


def drawn_runs(
    count: int, rate: Callable[[int], float], *, cases: int = 40, seed: int = 0, **options: object
) -> list[PastRun]:
    """Runs whose cases all pass at one rate, which may depend on the run's number."""
    ids = [f"case-{n:02d}" for n in range(cases)]
    return [drawn_run(n, lambda _, n=n: rate(n), ids=ids, seed=seed, **options) for n in range(count)]  # type: ignore[arg-type,misc]
