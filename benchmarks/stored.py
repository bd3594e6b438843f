"""The power that stored trials give a small suite, by their number per case.

    python benchmarks/stored.py [--runs 400] [--only stored|unchanged|nights|wanted]
        [--write docs/dev/evidence/decision.md]

Typical suites, held to stored trials alone. A merge stores five trials a case, and each night adds up to ten, until
they are enough for the drop that `baseline.power` states: that number, which the gate estimates from the trials
themselves, stands in the last table beside what simulated changes say of it. The third table plays a merge and two
nights by that default, and then the change.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parent))
import page
from simulate import SUCCESS, SUITES, Agent, Answer, Cell, World, _rates, is_null, play, simulate

from gate.decision.engine.rule import follow
from gate.decision.engine.state import State
from gate.decision.power import Rates, chance_of_finding, stored_enough, stored_wanted
from gate.decision.settings import MOST_ADDED, Goal, Settings
from gate.model import Side
from gate.model.defaults import STORED_TRIALS

STORED = (5, 10, 15, 25)
SETTINGS = Settings()
GOAL = Goal()
NIGHTS = 2
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
    World("every case at .9, 10 cases, unchanged", suite="nine of ten", cases=10),
    World("every case at .9, 30 cases, unchanged", suite="nine of ten", cases=30),
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


def after_nights(world: World, seed: int) -> tuple[Answer, float]:
    """Play a merge, the nights, and then the change. Returns what came of it, and the stored trials a case."""
    agent = Agent(world, Random(f"nights {world.name}:{seed}"))
    stored = agent.baseline()
    for night in range(NIGHTS):
        epochs: list[Mapping[str, list[list[float]]]] = []

        def run(_: Side, cases: Sequence[str], n: int) -> Mapping[str, list[list[float]]]:
            found = {case: [agent.trial(case, agent.stored[case], {}) for _ in range(n)] for case in cases}
            if len(cases) == world.cases:
                epochs.append(found)  # noqa: B023 - called within this turn of the loop alone
            return found

        state = State((SUCCESS,), stored, (), world.config, seed + night)
        if follow(state, run)[0].verdict == "REGRESSION":
            continue  # it fell short, so nothing is stored
        short = wanted(stored) - trials_each(stored) - len(epochs)
        for _ in range(short):
            run(Side.CANDIDATE, agent.ids, 1)
        stored = {case: [*rows, *(row for epoch in epochs for row in epoch[case])] for case, rows in stored.items()}
    outcome, runs = follow(State((SUCCESS,), stored, (), world.config, seed), agent.run)
    return Answer(outcome.verdict, runs / world.cases), trials_each(stored)


def trials_each(stored: Mapping[str, Sequence[Sequence[float]]]) -> int:
    return min(map(len, stored.values()))


def wanted(stored: Mapping[str, Sequence[Sequence[float]]]) -> int:
    """Return the trials a case that a night brings a baseline to, as `gate.pipeline.rounds` counts them."""
    rates = Rates(tuple((int(sum(row[0] for row in rows)), len(rows)) for rows in stored.values()))
    enough = stored_enough(rates, GOAL, SETTINGS)
    return max(STORED_TRIALS, min(trials_each(stored) + MOST_ADDED, enough))


def by_nights(pool: ProcessPoolExecutor, runs: int, seed: int, rows: str = "") -> Iterator[str]:
    columns = ["blocked", "inconclusive", "runs a case", "stored trials a case: mean, range"]
    yield from page.head(f"after a merge and {NIGHTS} nights ({runs} changes a row)", columns)
    for world in (one for one in WORLDS if rows in one.name):
        played = list(pool.map(partial(after_nights, world), range(seed, seed + runs), chunksize=max(1, runs // 16)))
        found, stored = Cell([answer for answer, _ in played]), [trials for _, trials in played]
        cells = [page.share(found.blocked, runs), page.share(round(found.share("INCONCLUSIVE") * runs), runs)]
        cells += [f"{found.runs:.2f}", f"{fmean(stored):.1f}, {min(stored):.0f}–{max(stored):.0f}"]
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
        wanted = sorted(stored_wanted(recorded(suite, cases, 5, n), GOAL, SETTINGS) for n in range(RECORDS))
        cells = [f"{wanted[RECORDS // 2]} ({wanted[0]}–{wanted[-1]})"]
        for stored in (5, 15):
            records = [recorded(suite, cases, stored, n) for n in range(RECORDS)]
            said = fmean(chance_of_finding(r, GOAL.drop, stored, SETTINGS) for r in records)
            world = World(f"{suite} {cases}", suite=suite, cases=cases, drop=GOAL.drop)
            found = cell(pool, world, stored, runs, seed)
            cells.append(f"{said:.2f}, {page.share(found.blocked, runs, 2)}")
        yield f"| {suite}, {cases} cases | {' | '.join(cells)} |"


def main(argv: Sequence[str] | None = None) -> int:
    parser = page.parser(__doc__, runs=400, seed=0)
    parser.add_argument("--rows", default="", help="Of the nights, the rows whose name holds this text.")
    given = parser.parse_args(argv)
    with ProcessPoolExecutor(given.processes) as pool:
        changed, same = ([one for one in WORLDS if is_null(one) is null] for null in (False, True))
        sections = {
            "stored": by_stored(pool, changed, given.runs, given.seed),
            "unchanged": by_stored(pool, same, given.runs, given.seed),
            "nights": by_nights(pool, given.runs, given.seed, given.rows),
            "wanted": by_estimate(pool, given.runs, given.seed),
        }
        page.publish({name: lines for name, lines in sections.items() if given.only in name}, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
