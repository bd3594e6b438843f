"""Shares of changes found and of drift blocked, by how readily the record counts beside the base's agent now.

    python benchmarks/frontier.py [--runs 400] [--only TEXT] [--write docs/dev/evidence/decision.md]

Each row lets the record count while the base agrees with it to another degree; in the first it never counts, and in the
last the base is not asked. All other parts of the rule stay, and every row meets the same changes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import page
from simulate import Answer, Cell, World, play, simulate, worlds

from gate.decision.engine import drift, evidence
from gate.decision.engine.state import Config
from gate.statistics.intervals import wilson


@dataclass(frozen=True)
class Point:
    """One rule on the frontier: from which p-value of its having fallen on the base agrees with its record."""

    name: str
    agrees: float
    leans: float
    agrees_twice: float
    beside: float
    """Part of a look's share of alpha that the look beside the base, which takes its place, has."""


ALWAYS = "always: stored trials only"
CHOSEN = Point(
    "**p > .9 asked once, > .35 twice: the rule**", drift.AGREES, drift.LEANS, drift.AGREES_TWICE, evidence.BESIDE
)
POINTS = (
    Point("never", 2.0, 2.0, 2.0, 1.0),
    CHOSEN,
    Point("p > .6 asked once, > .25 twice", 0.6, 0.05, 0.25, 1.2),
    Point("p > .2 asked once", 0.2, 0.2, 0.2, 1.2),
    Point(ALWAYS, drift.AGREES, drift.LEANS, drift.AGREES_TWICE, evidence.BESIDE),
)
CHANGED = ("kb = 5, base can be run, −5 points", "kb = 5, N = 30, base can be run, −10 points")
UNCHANGED = (
    "kb = 5, base can be run, unchanged",
    "drift −2 points, base can be run",
    "drift −4 points, base can be run",
    "drift −8 points, base can be run",
)


def play_at(point: Point, world: World, seed: int) -> Answer:
    """One change by the rule at this point."""
    drift.AGREES, drift.LEANS, drift.AGREES_TWICE = point.agrees, point.leans, point.agrees_twice
    evidence.BESIDE = point.beside
    return play(replace(world, config=Config()) if point.name == ALWAYS else world, seed)


def table(pool: ProcessPoolExecutor, runs: int, seed: int, only: str) -> Iterator[str]:
    by_name = {world.name: world for world in worlds()}
    heads = ["−5 points", "−10 points, N = 30", "unchanged", "drift −2", "drift −4", "drift −8"]
    yield f"| the record counts | {' | '.join(heads)} |"
    yield f"|---{'|---' * len(heads)}|"
    for point in POINTS:
        if only in point.name:
            played = (partial(play_at, point, by_name[name]) for name in (*CHANGED, *UNCHANGED))
            yield f"| {point.name} | {' | '.join(said(simulate(pool, one, runs, seed)) for one in played)} |"


def said(cell: Cell) -> str:
    """The share that is blocked, with its interval, and the runs a case."""
    low, high = wilson(cell.blocked, len(cell.answers))
    return f"{cell.share('REGRESSION'):.3f} ({low:.3f}–{high:.3f}) at {cell.runs:.2f}"


def main(argv: Sequence[str] | None = None) -> int:
    given = page.parser(__doc__, runs=400, seed=20_000).parse_args(argv)
    with ProcessPoolExecutor(given.processes) as pool:
        page.publish({"frontier": table(pool, given.runs, given.seed, given.only)}, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
