"""Finds whether the same agent scores otherwise than it did, over its stored runs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from gate.decision.outcomes import PASS_RATE, measured_values, passed
from gate.model import FULL, STORED, Case, Criterion, Scale, Side, Trial
from gate.statistics.changepoint import LEAST_RUNS, Move, largest_move

LEVEL = 0.01
"""P(a move is found | nothing moved), over all metrics."""
MOST_POINTS = 5
EPOCHS = (FULL, STORED)


class Moved(Struct, frozen=True):
    """Since which run the same agent scores otherwise."""

    metric: str
    run: int
    """The position of the first run after it."""
    change: float
    """In the metric's unit; of the pass rate 0–1."""
    p: float


def newest_move(
    runs: Sequence[Sequence[Trial]], cases: Mapping[str, Case], criteria: Sequence[Criterion]
) -> Moved | None:
    """The newest point at which the pass rate or a blocking criterion moved; ``runs`` in the order of their time."""
    if len(runs) < 2 * LEAST_RUNS:
        return None
    metrics = [Criterion(PASS_RATE, PASS_RATE, Scale.BINARY)]
    metrics += [c for c in criteria if c.blocking and c.blocks_regression and not c.hard and not c.scale.is_relative]
    found: Moved | None = None
    for metric in metrics:
        sums = [_sums(metric, run, cases, criteria) for run in runs]
        move = _newest(sums, metric.name, LEVEL / len(metrics))
        if move is not None and (found is None or move.run > found.run):
            found = Moved(metric.name, move.run, move.change, move.p)
    return found


def _newest(sums: Sequence[Mapping[str, tuple[float, int]]], seed: str, level: float) -> Move | None:
    """The last of the points that are found one after the other, each in the runs after the one before."""
    start, found = 0, None
    for _ in range(MOST_POINTS):
        left = sums[start:]
        ids = sorted({case_id for run in left for case_id in run})
        cases = [{n: run[case_id] for n, run in enumerate(left) if case_id in run} for case_id in ids]
        move = largest_move(cases, len(left), seed=f"{seed}:{start}", level=level)
        if move is None:
            return found
        start += move.run
        found = Move(start, move.change, move.p)
    return found


def _sums(
    metric: Criterion, trials: Sequence[Trial], cases: Mapping[str, Case], criteria: Sequence[Criterion]
) -> dict[str, tuple[float, int]]:
    """Sum and number of a run's values, by case; reruns, which were picked by outcomes, are left out."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.side is Side.CANDIDATE and trial.measured and trial.tag in EPOCHS and trial.case_id in cases:
            groups.setdefault(trial.case_id, []).append(trial)
    found = {}
    for case_id, group in groups.items():
        if metric.name == PASS_RATE:
            outcomes = (passed(trial, cases[case_id], criteria) for trial in group)
            values = [float(outcome) for outcome in outcomes if outcome is not None]
        else:
            values = measured_values(group, metric)
        if values:
            found[case_id] = (sum(values), len(values))
    return found
