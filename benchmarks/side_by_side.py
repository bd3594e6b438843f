"""The share of runs in which all intervals of differences of `gate compare A B C …` cover the truth.

    python benchmarks/side_by_side.py [--runs 2000] [--agents 4] [--seed 1] [--write docs/dev/evidence/side-by-side.md]

Agents answer the same cases. Four things are measured of each: whether a trial passes, a score between 0 and 1 that is
1 most of the time, a latency and a cost, both log-normal with a common effect of the case. Either all agents are alike,
or each passes ten points less than the one before. A run is missed if one interval of any pair in any row does not hold
the true difference.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parent))
import page

from gate.statistics.intervals import simultaneous_change

CASES = (5, 10, 20, 50)
TRIALS = (1, 3)
WORLDS = (("2 % fail", 0.02, 0.0), ("10 % fail", 0.1, 0.0), ("40 % fail", 0.4, 0.0), ("each 10 points worse", 0.1, 0.1))
Row = tuple[list[list[float]], list[float], bool]
"""Means of each agent by case, the true means, and whether trials are zeros and ones."""


def rows(rng: Random, agents: int, cases: int, trials: int, fails: float, step: float) -> Iterator[Row]:
    """One suite, measured by all agents."""
    rates = [rng.betavariate(2 * (1 - fails), 2 * fails) for _ in range(cases)]
    shares = [1 - step * agent for agent in range(agents)]
    passed = [[fmean(rng.random() < rate * share for _ in range(trials)) for rate in rates] for share in shares]
    yield passed, [(1 - fails) * share for share in shares], True
    effects = [rng.random() for _ in range(cases)]

    def score(effect: float) -> float:
        return 1.0 if rng.random() < 0.5 + 0.4 * effect else rng.random()

    scored = [[fmean(score(effect) for _ in range(trials)) for effect in effects] for _ in range(agents)]
    yield scored, [0.85] * agents, False
    sizes = [rng.gauss(0, 0.8) for _ in range(cases)]
    for spread in (0.5, 0.3):
        spent = [
            [fmean(math.exp(size + rng.gauss(0, spread)) for _ in range(trials)) for size in sizes]
            for _ in range(agents)
        ]
        yield spent, [math.exp((0.64 + spread**2) / 2)] * agents, False


def is_missed(found: Sequence[Row], agents: int, trials: int) -> bool:
    """True if an interval of any pair in any row lacks the true difference."""
    pairs = list(combinations(range(agents), 2))
    for means, truth, binary in found:
        for one, other in pairs:
            differences = [a - b for a, b in zip(means[one], means[other], strict=True)]
            step = 1 / trials if binary else 0.0
            _, low, high = simultaneous_change(differences, comparisons=len(found) * len(pairs), step=step)
            if not low - 1e-12 <= truth[one] - truth[other] <= high + 1e-12:
                return True
    return False


def table(runs: int, agents: int, seed: int) -> Iterator[str]:
    names = [name for name, _, _ in WORLDS]
    yield from page.head("cases, trials", names)
    for cases in CASES:
        for trials in TRIALS:
            cells = []
            for name, fails, step in WORLDS:
                rng = Random(f"{seed} {cases} {trials} {name}")
                missed = sum(
                    is_missed(list(rows(rng, agents, cases, trials, fails, step)), agents, trials) for _ in range(runs)
                )
                cells.append(page.share(missed, runs))
            yield f"| {cases}, {trials} | " + " | ".join(cells) + " |"


def main() -> int:
    parser = page.parser(__doc__, seed=1, runs=2000)
    parser.add_argument("--agents", type=int, default=4)
    given = parser.parse_args()
    page.publish({"coverage": table(given.runs, given.agents, given.seed)}, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
