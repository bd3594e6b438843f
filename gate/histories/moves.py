"""Points at which the scores of an unchanged agent moved, over its stored runs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gate.decision.outcomes import PASS_RATE, as_values, measured_values, outcomes_of
from gate.model import Case, Criterion, Scale, Trial
from gate.statistics.changepoint import LEAST_RUNS, Move, largest_move

LEVEL = 0.01
"""P(a move is found | nothing moved), over all metrics."""
MOST_POINTS = 5


def newest_move(
    runs: Sequence[Sequence[Trial]], cases: Mapping[str, Case], criteria: Sequence[Criterion]
) -> tuple[Criterion, Move] | None:
    """Return the newest move of the pass rate or of a blocking criterion; ``runs`` are in time order.

    The change is in the criterion's unit; for the pass rate, 0–1.
    """
    if len(runs) < 2 * LEAST_RUNS:
        return None
    metrics = [Criterion(PASS_RATE, PASS_RATE, Scale.BINARY)]
    metrics += [c for c in criteria if c.blocking and c.blocks_regression and not c.hard and not c.scale.is_relative]
    newest: tuple[Criterion, Move] | None = None
    for metric in metrics:
        sums = [_sums(metric, run, cases, criteria) for run in runs]
        move = _newest(sums, metric.name, LEVEL / len(metrics))
        if move is not None and (newest is None or move.run > newest[1].run):
            newest = metric, move
    return newest


def _newest(sums: Sequence[Mapping[str, tuple[float, int]]], seed: str, level: float) -> Move | None:
    """Return the last of the moves found one after the other, each in the runs after the previous one."""
    start, found = 0, None
    for _ in range(MOST_POINTS):
        left = sums[start:]
        by_case: dict[str, dict[int, tuple[float, int]]] = {}
        for number, run in enumerate(left):
            for case_id, values in run.items():
                by_case.setdefault(case_id, {})[number] = values
        cases = [by_case[case_id] for case_id in sorted(by_case)]
        move = largest_move(cases, len(left), seed=f"{seed}:{start}", level=level)
        if move is None:
            return found
        start += move.run
        found = Move(start, move.change, move.p)
    return found


def _sums(
    metric: Criterion, trials: Sequence[Trial], cases: Mapping[str, Case], criteria: Sequence[Criterion]
) -> dict[str, tuple[float, int]]:
    """Return the sum and number of a run's values by case, without reruns, which were picked by outcome."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.is_of_epoch and trial.measured and trial.case_id in cases:
            groups.setdefault(trial.case_id, []).append(trial)
    found = {}
    for case_id, group in groups.items():
        if metric.name == PASS_RATE:
            values = as_values(outcomes_of(group, cases[case_id], criteria))
        else:
            values = measured_values(group, metric)
        if values:
            found[case_id] = (sum(values), len(values))
    return found
