"""Shares of unchanged agents that miss a threshold, and the epochs that sampling on while it is open costs.

    python benchmarks/thresholds.py [--runs 1000] [--write docs/dev/evidence/thresholds.md]

Suites of typical cases: 45 % that always pass, 25 % at .97 to .995, 25 % at .5 to .95, 5 % that never do. The threshold
lies so far below the suite's true mean; nothing is stored. Epochs are run as the gate runs them (`may_turn`, three at
most), and the mean decides. The second table is of thresholds as `gate ratchet` proposes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from statistics import fmean

import page

from gate.decision.comparison import Comparison
from gate.decision.settings import Settings
from gate.decision.thresholds import may_turn, quiet_threshold
from gate.model import Case, Criterion, Scale, Score, Trial
from gate.statistics.intervals import wilson

CASES = (5, 10, 30, 100)
ROOM = (0.0, 0.02, 0.05, 0.10, 0.15)
EPOCHS = 3
STORED = (1, 3, 5)
RIGHT = Criterion("right", "right", Scale.BINARY, pass_threshold=1.0)


def typical(cases: int, rng: Random) -> list[float]:
    """Return the true pass rates of a typical suite."""
    steady, nearly, flaky = round(0.45 * cases), round(0.25 * cases), round(0.25 * cases)
    rates = [1.0] * steady + [rng.uniform(0.97, 0.995) for _ in range(nearly)]
    rates += [rng.uniform(0.5, 0.95) for _ in range(flaky)]
    return (rates + [0.0] * cases)[:cases]


def measured(rates: Sequence[float], threshold: float, rng: Random) -> tuple[bool, int]:
    """Return whether a run of an unchanged agent misses the threshold, and its epochs."""
    criterion = Criterion("right", "right", Scale.BINARY, threshold=threshold, pass_threshold=1.0)
    cases = tuple(Case(f"c{number}", ()) for number in range(len(rates)))
    trials: list[Trial] = []
    for epoch in range(1, EPOCHS + 1):
        for case, rate in zip(cases, rates, strict=True):
            score = Score(float(rng.random() < rate))
            trials.append(Trial(case.id, epoch, epoch, scores={"right": score}))
        comparison = Comparison(cases, (criterion,), tuple(trials), (), Settings())
        if not may_turn(comparison, criterion, EPOCHS):
            break
    scores = [[t.scores["right"].value or 0.0 for t in comparison.measured(case.id)] for case in cases]
    return fmean(map(fmean, scores)) < threshold - 1e-9, len(trials) // len(rates)


def by_room(runs: int, seed: int) -> Iterator[str]:
    columns = ["at the mean" if room == 0 else f"{100 * room:.0f} points below" for room in ROOM]
    yield from page.head(f"cases ({runs} runs a cell)", columns)
    for cases in CASES:
        cells = []
        for room in ROOM:
            rng = Random(f"{seed} {cases} {room}")
            missed = epochs = 0
            for _ in range(runs):
                rates = typical(cases, rng)
                misses, took = measured(rates, fmean(rates) - room, rng)
                missed, epochs = missed + misses, epochs + took
            cells.append(f"{_shown(missed, runs)}, {epochs / runs:.2f} epochs")
        yield f"| {cases} | " + " | ".join(cells) + " |"


def proposed(runs: int, seed: int) -> Iterator[str]:
    columns = [f"proposed from {epochs} {'epoch' if epochs == 1 else 'epochs'}" for epochs in STORED]
    yield from page.head(f"cases ({runs} runs a cell)", columns)
    for cases in CASES:
        cells = []
        for epochs in STORED:
            rng = Random(f"{seed} proposed {cases} {epochs}")
            missed = 0
            for _ in range(runs):
                rates = typical(cases, rng)
                seen = [[float(rng.random() < rate) for _ in range(epochs)] for rate in rates]
                threshold = quiet_threshold(seen, RIGHT)
                assert threshold is not None
                missed += measured(rates, int(100 * threshold) / 100, rng)[0]
            cells.append(_shown(missed, runs))
        yield f"| {cases} | " + " | ".join(cells) + " |"


def _shown(k: int, n: int) -> str:
    low, high = wilson(k, n)
    return f"{k / n:.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    given = page.parser(__doc__, seed=1, runs=1000).parse_args()
    sections = {"room": by_room(given.runs, given.seed), "proposed": proposed(given.runs, given.seed)}
    page.publish(sections, given.write)


if __name__ == "__main__":
    main()
