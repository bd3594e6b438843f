"""The power that stored trials give a small suite, by their number per case.

    python benchmarks/stored.py [--runs 400] [--only stored|unchanged|wanted] [--write docs/dev/evidence/decision.md]

Typical suites, held to stored trials alone. A merge stores five trials a case, and each night adds five, until they are
enough for the drop that `baseline.power` states: that number, which the gate estimates from the trials themselves,
stands in the second table beside what simulated changes say of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parent))
import page
from simulate import SUITES, Cell, World, _rates, is_null, play, simulate

from gate.decision.power import Rates, chance_of_finding, stored_wanted
from gate.decision.settings import Goal

STORED = (5, 10, 15, 25)
ALPHA, EPOCHS = 0.02, 3
GOAL = Goal()
RECORDS = 20
"""Records of which the gate's estimate is taken."""
WORLDS = (
    World("5 cases, −30 points", cases=5, drop=0.3),
    World("10 cases, −20 points", cases=10, drop=0.2),
    World("20 cases, −10 points", cases=20, drop=0.1),
    World("5 cases, 1 broke", cases=5, broken=1),
    World("10 cases, 1 broke", cases=10, broken=1),
    World("20 cases, 1 broke", cases=20, broken=1),
    World("5 cases, unchanged", cases=5),
    World("10 cases, unchanged", cases=10),
    World("20 cases, unchanged", cases=20),
    World("30 cases, unchanged", cases=30),
    World("flaky, 10 cases, unchanged", suite="flaky", cases=10),
    World("flaky, 30 cases, unchanged", suite="flaky", cases=30),
)
GOALS = (("typical", 5), ("typical", 10), ("typical", 20), ("stable", 10), ("flaky", 20))
"""Suites, and their cases, of which the estimate is compared with simulated changes."""


def cell(pool: ProcessPoolExecutor, world: World, stored: int, runs: int, seed: int) -> Cell:
    return simulate(pool, partial(play, World(**{**vars(world), "baseline": stored})), runs, seed)


def by_stored(pool: ProcessPoolExecutor, worlds: Sequence[World], runs: int, seed: int) -> Iterator[str]:
    yield from page.head(f"change ({runs} a cell)", [f"{stored} stored trials a case" for stored in STORED])
    for world in worlds:
        cells = []
        for stored in STORED:
            found = cell(pool, world, stored, runs, seed)
            more = f", {found.share('INCONCLUSIVE'):.3f} inconclusive" if is_null(world) else ""
            cells.append(f"{page.share(found.blocked, runs)}{more}, {found.runs:.2f} runs")
        yield f"| {world.name} | {' | '.join(cells)} |"


def recorded(suite: str, cases: int, stored: int, seed: int) -> Rates:
    """Return what a record with so many trials a case says of a suite."""
    rng = Random(f"{suite} {cases} {seed}")
    rates = _rates(SUITES[suite], cases, rng)
    return Rates(tuple((sum(rng.random() < rate for _ in range(stored)), stored) for rate in rates))


def by_estimate(pool: ProcessPoolExecutor, runs: int, seed: int) -> Iterator[str]:
    columns = ["wanted trials by records of 5 (middle, range)"]
    columns += [f"{stored} stored: estimate, simulated" for stored in (5, 15)]
    yield from page.head(f"suite, −{100 * GOAL.drop:.0f} points ({runs} changes, {RECORDS} records)", columns)
    for suite, cases in GOALS:
        wanted = sorted(
            stored_wanted(recorded(suite, cases, 5, n), GOAL, alpha=ALPHA, epochs=EPOCHS) for n in range(RECORDS)
        )
        cells = [f"{wanted[RECORDS // 2]} ({wanted[0]}–{wanted[-1]})"]
        for stored in (5, 15):
            records = [recorded(suite, cases, stored, n) for n in range(RECORDS)]
            said = fmean(chance_of_finding(r, GOAL.drop, stored, alpha=ALPHA, epochs=EPOCHS) for r in records)
            world = World(f"{suite} {cases}", suite=suite, cases=cases, drop=GOAL.drop)
            found = cell(pool, world, stored, runs, seed)
            cells.append(f"{said:.2f}, {page.share(found.blocked, runs, 2)}")
        yield f"| {suite}, {cases} cases | {' | '.join(cells)} |"


def main(argv: Sequence[str] | None = None) -> int:
    given = page.parser(__doc__, runs=400, seed=0).parse_args(argv)
    with ProcessPoolExecutor(given.processes) as pool:
        changed, same = ([one for one in WORLDS if is_null(one) is null] for null in (False, True))
        sections = {
            "stored": by_stored(pool, changed, given.runs, given.seed),
            "unchanged": by_stored(pool, same, given.runs, given.seed),
            "wanted": by_estimate(pool, given.runs, given.seed),
        }
        page.publish({name: lines for name, lines in sections.items() if given.only in name}, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
