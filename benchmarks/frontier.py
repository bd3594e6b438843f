"""Frontiers that the rule stands on: one part of it is another in each row, and every row meets the same changes.

    python benchmarks/frontier.py [--runs 400] [--table drift|small] [--only TEXT]
        [--write docs/dev/evidence/decision.md]

``drift``: power and drift where the base can be run, by how readily the record counts beside the base's agent now. In
the first row it never counts, and in the last the base is not asked. ``small``: what small suites find, leave
inconclusive and cost, by how the looks share the error and by the interval that lets a change pass.
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

from gate.decision.engine import bounds, drift, evidence
from gate.decision.engine.case import CaseEvidence
from gate.decision.engine.state import Config, State
from gate.model import MetricChange
from gate.statistics.intervals import wilson


@dataclass(frozen=True)
class Point:
    """One rule on the frontier: how well the base has to agree with its record, and when a check gives up."""

    name: str
    agrees: float
    """The base agrees with its record if every p-value of its having fallen is higher."""
    after_fall: float = drift.AFTER_FALL
    """Factor on the p-values that end a check, once the base fell."""
    beside: float = evidence.BESIDE
    """Factor on the error of looks that add the base's trials of the job to its record."""


ALWAYS = "always: stored trials only"
CHOSEN = Point(f"**p > {drift.AGREES}: the rule**", drift.AGREES)
POINTS = (
    Point("never", 2.0),
    CHOSEN,
    replace(CHOSEN, name="the same, and a fall of the base does not end a check sooner", after_fall=1.0),
    replace(CHOSEN, name="the same, and a proof with the base's trials takes as much as one by the record", beside=1.0),
    Point("p > 0.4", 0.4),
    replace(CHOSEN, name=ALWAYS),
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
    drift.AGREES, drift.AFTER_FALL, evidence.BESIDE = point.agrees, point.after_fall, point.beside
    return play(replace(world, config=Config()) if point.name == ALWAYS else world, seed)


def by_record(pool: ProcessPoolExecutor, runs: int, seed: int, only: str) -> Iterator[str]:
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


# --- small suites ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Looking:
    """One rule for suites in which nothing is repeated."""

    name: str
    shares: tuple[float, ...]
    """Share of alpha of the look after epoch 1, 2 and 3."""
    is_tight: bool = False
    """True if the interval from the spread within cases is taken at every look, and not at the last alone."""


SHARES, bound_at = evidence.ALONE_SHARES, bounds.bound_of
LOOKING = (
    Looking(f"**{', '.join(f'{share:.2f}'.lstrip('0') for share in SHARES)}: the rule**", SHARES),
    Looking(".25, .20, .30", (0.25, 0.20, 0.30)),
    Looking(".15, .20, .40", (0.15, 0.20, 0.40)),
    Looking("the rule, the last look's interval at every look", SHARES, is_tight=True),
)
COARSE = Config(fineness=2)
"""Many changes make up for what a single p-value lacks in digits."""
SMALL = (
    World("10 cases, −20 points, 15 stored", cases=10, baseline=15, drop=0.2, config=COARSE),
    World("20 cases, −10 points, 12 stored", cases=20, baseline=12, drop=0.1, config=COARSE),
    World("30 cases, −10 points, 5 stored", cases=30, drop=0.1, config=COARSE),
    World("20 cases, unchanged, 12 stored", cases=20, baseline=12, config=COARSE),
    World("30 cases, flaky, unchanged, 15 stored", suite="flaky", cases=30, baseline=15, config=COARSE),
)


def play_looking(looking: Looking, world: World, seed: int) -> Answer:
    """One change by the rule that looks so."""

    def bound_of(cases: Sequence[CaseEvidence], state: State, m: int, *, ended: bool) -> MetricChange | None:
        return bound_at(cases, state, m, ended=ended or looking.is_tight)

    evidence.ALONE_SHARES, evidence.bound_of = looking.shares, bound_of
    return play(world, seed)


def by_looks(pool: ProcessPoolExecutor, runs: int, seed: int, only: str) -> Iterator[str]:
    yield from page.head(f"shares of the looks ({runs} changes a cell)", [world.name for world in SMALL])
    for looking in LOOKING:
        if only in looking.name:
            cells = [simulate(pool, partial(play_looking, looking, world), runs, seed) for world in SMALL]
            shown = [f"{said(cell)}, {cell.share('INCONCLUSIVE'):.3f} inconclusive" for cell in cells]
            yield f"| {looking.name} | {' | '.join(shown)} |"


TABLES = {"drift": ("frontier", by_record), "small": ("small", by_looks)}


def main(argv: Sequence[str] | None = None) -> int:
    parser = page.parser(__doc__, runs=400, seed=20_000)
    parser.add_argument("--table", choices=tuple(TABLES), default="drift")
    given = parser.parse_args(argv)
    section, rows = TABLES[given.table]
    with ProcessPoolExecutor(given.processes) as pool:
        page.publish({section: rows(pool, given.runs, given.seed, given.only)}, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
