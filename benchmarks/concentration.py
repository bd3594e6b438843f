"""The shares of runs that name a tag which has nothing to do with a loss, and that name the right one.

    python benchmarks/concentration.py [--runs N] [--write FILE]

Each world is a suite whose cases pass at rates of their own, five stored trials and one or three new ones a case. In
the first five worlds what is lost has nothing to do with tags, though in some of them the tags have much to do with how
steady cases are; there any name is wrong. In the others one tag is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from random import Random

from gate.statistics.concentration import concentrated
from gate.statistics.intervals import wilson

STORED = 5
RATES = (0.98,) * 7 + (0.8, 0.8, 0.4)


@dataclass(frozen=True)
class Suite:
    before: list[float]
    """The pass rate of each case."""
    now: list[float]
    groups: list[frozenset[int]]
    right: frozenset[int] = frozenset()
    """The groups that a name is right for."""
    epochs: int = 1


World = Callable[[Random], Suite]


def _rates(rng: Random, n: int) -> list[float]:
    return [rng.choice(RATES) for _ in range(n)]


def _tags(rng: Random, n: int, tags: int = 10) -> list[frozenset[int]]:
    """Tags of a twentieth to a third of the cases, which overlap."""
    return [frozenset(rng.sample(range(n), rng.randint(n // 20, n // 3))) for _ in range(tags)]


def _by_rate(rates: list[float], rng: Random) -> list[frozenset[int]]:
    """Tags that hold mostly cases of one rate: `flaky` is one, and so is `smoke`."""
    kinds = [frozenset(i for i, rate in enumerate(rates) if rate == kind) for kind in sorted(set(RATES))]
    mixed = [frozenset(i for i in range(len(rates)) if (i in kind) == (rng.random() < 0.9)) for kind in kinds]
    return [*kinds, *mixed]


def unchanged(rng: Random, n: int = 200) -> Suite:
    rates = _rates(rng, n)
    return Suite(rates, rates, [*_tags(rng, n), *_by_rate(rates, rng)])


def small(rng: Random) -> Suite:
    return unchanged(rng, 30)


def random_breaks(rng: Random, n: int = 200) -> Suite:
    rates = _rates(rng, n)
    broken = set(rng.sample(range(n), n // 10))
    return Suite(rates, [0.0 if i in broken else rate for i, rate in enumerate(rates)], _tags(rng, n))


def few_breaks(rng: Random) -> Suite:
    """Three of two hundred: a tag that holds two of them is likely to be there, and says nothing."""
    rates, n = _rates(rng, 200), 200
    broken = set(rng.sample(range(n), 3))
    return Suite(rates, [0.0 if i in broken else rate for i, rate in enumerate(rates)], _tags(rng, n, 40))


def all_lower(rng: Random) -> Suite:
    """Every case loses ten points; tags hold steady or flaky cases."""
    rates = _rates(rng, 200)
    return Suite(rates, [rate - 0.1 for rate in rates], [*_tags(rng, 200), *_by_rate(rates, rng)], epochs=3)


def one_tag(rng: Random, n: int = 1200, size: int = 100, broken: float = 1 / 3) -> Suite:
    rates = _rates(rng, n)
    members = rng.sample(range(n), size)
    gone = set(members[: round(broken * size)])
    now = [0.0 if i in gone else rate for i, rate in enumerate(rates)]
    return Suite(rates, now, [frozenset(members), *_tags(rng, n, 20)], frozenset([0]))


def one_small_tag(rng: Random) -> Suite:
    return one_tag(rng, 100, 12, 0.5)


def nested(rng: Random) -> Suite:
    """A tag within a larger one, in which nothing else broke: only the inner one is right."""
    rates, n = _rates(rng, 400), 400
    outer = rng.sample(range(n), 120)
    inner, gone = frozenset(outer[:40]), set(outer[:16])
    now = [0.0 if i in gone else rate for i, rate in enumerate(rates)]
    return Suite(rates, now, [frozenset(outer), inner, *_tags(rng, n)], frozenset([1]))


WORLDS: dict[str, World] = {
    "unchanged, 200 cases, tags of flaky and of steady cases among them": unchanged,
    "unchanged, 30 cases, likewise": small,
    "a tenth of 200 cases broken at random": random_breaks,
    "3 of 200 cases broken at random, 40 tags": few_breaks,
    "every case 10 points lower, tags of flaky and of steady cases": all_lower,
    "a third of one tag's 100 cases broken, of 1,200": one_tag,
    "half of one tag's 12 cases broken, of 100": one_small_tag,
    "16 of a tag's 40 cases broken, within a tag of 120, of 400": nested,
}


def measure(world: World, runs: int, seed: str) -> tuple[int, int]:
    """In how many runs the right tag was named first, and in how many any wrong one was."""
    right = wrong = 0
    for run in range(runs):
        rng = Random(f"{seed}: {run}")
        suite = world(rng)
        trials = [
            (_passed(rng, b, STORED), _passed(rng, a, suite.epochs))
            for b, a in zip(suite.before, suite.now, strict=True)
        ]
        losses = [before / STORED - now / suite.epochs for before, now in trials]
        chance = [_by_chance(before + now, suite.epochs) for before, now in trials]
        named = [one.group for one in concentrated(losses, suite.groups, chance, seed=str(run))]
        right += bool(named) and named[0] in suite.right
        wrong += any(group not in suite.right for group in named)
    return right, wrong


def _passed(rng: Random, rate: float, trials: int) -> int:
    return sum(rng.random() < rate for _ in range(trials))


@cache
def _by_chance(passed: int, epochs: int) -> list[float]:
    """The losses of a case under every relabelling of its trials."""
    trials = [1] * passed + [0] * (STORED + epochs - passed)
    drawn = map(sum, combinations(trials, epochs))
    return [(passed - now) / STORED - now / epochs for now in drawn]


def table(runs: int, seed: int = 0, only: str = "") -> Iterator[str]:
    yield f"| world ({runs} runs each) | the right tag first | a wrong tag named |"
    yield "|---|---|---|"
    for name, world in WORLDS.items():
        if only not in name:
            continue
        right, wrong = measure(world, runs, f"{seed} {name}")
        is_there = world in (one_tag, one_small_tag, nested)
        yield f"| {name} | {_shown(right, runs) if is_there else '–'} | {_shown(wrong, runs)} |"


def _shown(k: int, n: int) -> str:
    low, high = wilson(k, n)
    return f"{k / n:.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    import page  # beside this program, which a test imports from elsewhere

    given = page.parser(__doc__, seed=0, runs=100).parse_args()
    page.publish({"concentration": table(given.runs, given.seed, given.only)}, given.write)


if __name__ == "__main__":
    main()
