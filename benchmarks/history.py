"""The answers of `gate history` to histories whose truth is known, and the time that reading them takes.

    python benchmarks/history.py [--runs 400] [--write docs/dev/evidence/history.md]
    python benchmarks/history.py --speed [--write docs/dev/evidence/history.md]

A simulated history is a suite of cases with rates of their own, each run three trials of each; runs differ by the
trials' chance and, in some worlds, by a wobble that all cases of a run share, which may resemble that of the run
before. Every history is put through the product's own `suite_history`.
"""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parent))
import page

from gate.decision.outcomes import PASS_RATE
from gate.histories.runs import RunValues
from gate.histories.trends import PastRun, Series, suite_history
from gate.model import Criterion, Direction, Invocation, Scale, Score, ToolCall, Trial, Usage
from gate.records import Header, PlannedCase, Record, write_record
from gate.records.model import footer_of
from gate.statistics.intervals import wilson
from gate.statistics.trend import Sums

TRIALS = 3
DAY = 86_400.0
START = 1_767_225_600.0
HEAD = (
    "| world | runs | a move is stated | its interval holds the run | at that very run "
    "| a trend is stated | early warning | its interval holds the run |"
)
GAP = 0.05
"""The distance of a threshold below the rate of a flat history."""


class World(Struct, frozen=True):
    """The course of a suite's rate."""

    name: str
    runs: int = 30
    cases: int = 50
    steady: float = 0.5
    """Share of cases that pass 99.5 % of the time; the others 50 to 95 %."""
    wobble: float = 0.0
    """Standard deviation of what the cases of a run share."""
    alike: float = 0.0
    """Correlation of neighbouring runs' wobble."""
    slope: float = 0.0
    """A run."""
    step: float = 0.0
    at: int = 0
    meets: float | None = None
    """The run, counted from the newest, in which a declining rate meets its threshold."""


WORLDS = (
    World("nothing happens, 12 runs", runs=12),
    World("nothing happens"),
    World("nothing happens, 100 runs", runs=100),
    World("nothing happens, all cases steady", steady=1.0),
    World("nothing happens, 8 cases", cases=8),
    World("runs wobble by 2 points", wobble=0.02),
    World("runs wobble by 2 points and resemble their neighbours (0.6)", wobble=0.02, alike=0.6),
    World("falls by 10 points at once", step=-0.10, at=18),
    World("falls by 6 points at once, runs wobble by 2", step=-0.06, at=18, wobble=0.02),
    World("falls by 15 points at once, 10 runs", step=-0.15, at=5, runs=10),
    World("declines by 0.4 points a run, the threshold 6 runs off", slope=-0.004, meets=6),
    World("declines by 0.4 points a run, runs wobble by 2", slope=-0.004, meets=6, wobble=0.02),
    World("declines by 0.2 points a run, the threshold 6 runs off", slope=-0.002, meets=6),
)


class Found(Struct, frozen=True):
    """The answers about one history."""

    moved: bool
    held: bool
    """True if the interval of a move holds the true run."""
    exact: bool
    trend: bool
    warned: bool
    met: bool
    """True if the interval of the early warning holds the run in which the threshold is truly met."""


def simulated(world: World, seed: int) -> Found:
    """One history of a world."""
    rng = Random(f"{world.name}:{seed}")
    rates = [0.995 if rng.random() < world.steady else rng.uniform(0.5, 0.95) for _ in range(world.cases)]
    shared, runs, truth = 0.0, [], 0.0
    for number in range(world.runs):
        shared = world.alike * shared + rng.gauss(0, world.wobble * math.sqrt(1 - world.alike**2))
        moved = world.slope * number + (world.step if world.step and number >= world.at else 0.0)
        held = [min(1.0, max(0.0, rate + shared + moved)) for rate in rates]
        truth = sum(min(1.0, max(0.0, rate + moved)) for rate in rates) / world.cases
        runs.append((number, [sum(rng.random() < p for _ in range(TRIALS)) for p in held]))
    threshold = truth - GAP
    if world.meets is not None:
        threshold = sum(min(1.0, rate + world.slope * (world.runs - 1 + world.meets)) for rate in rates) / world.cases
    own = Criterion("pass_rate", "pass_rate", Scale.BINARY, threshold=threshold, blocking=True)
    suite = suite_history("s", [past_run(number, passed, own) for number, passed in runs])
    return judged(world, next(series for series in suite.whole if series.name == PASS_RATE))


def past_run(number: int, passed: list[int], own: Criterion) -> PastRun:
    values = {f"c{n}": Sums(TRIALS, float(p), float(p), float(p == TRIALS), float(p > 0)) for n, p in enumerate(passed)}
    cases = dict.fromkeys(values, "same")
    measured = RunValues(TRIALS * len(passed), 0, 0, {PASS_RATE: values}, {})
    return PastRun(str(number), START + number * DAY, measured, (own,), cases, {}, agent=str(number))


def judged(world: World, series: Series) -> Found:
    ahead = series.ahead
    return Found(
        moved=bool(series.moves),
        held=any(move.first <= world.at <= move.last for move in series.moves),
        exact=any(move.run == world.at for move in series.moves),
        trend=series.going is not None and series.going.found,
        warned=ahead is not None,
        met=ahead is not None
        and world.meets is not None
        and ahead.first <= world.meets + 1
        and world.meets <= ahead.last,
    )


def share(held: int, of: int) -> str:
    if not of:
        return "–"
    low, high = wilson(held, of)
    return f"{held / of:.3f} [{low:.3f}, {high:.3f}]"


def trend_table(runs: int, seed: int, only: str, processes: int) -> Iterator[str]:
    yield f"n = {runs} histories a row; shares with 95 % intervals."
    yield ""
    yield HEAD
    yield "|---|---|---|---|---|---|---|---|"
    with ProcessPoolExecutor(processes) as pool:
        for world in WORLDS:
            if only in world.name:
                found = list(pool.map(partial(simulated, world), range(seed, seed + runs), chunksize=20))
                moved, warned = [f for f in found if f.moved], [f for f in found if f.warned]
                stepped = moved if world.step else []
                cells = (
                    share(len(moved), runs),
                    share(sum(f.held for f in stepped), len(stepped)),
                    share(sum(f.exact for f in stepped), len(stepped)),
                    share(sum(f.trend for f in found), runs),
                    share(len(warned), runs),
                    share(sum(f.met for f in warned), len(warned) if world.meets is not None else 0),
                )
                yield f"| {world.name} | {world.runs} | {' | '.join(cells)} |"


# --- speed ------------------------------------------------------------------------------------------


def stored_record(number: int, cases: int, trials: int, rng: Random, said: int) -> Record:
    """A record as a run leaves it; ``said``: characters of a response."""
    criteria = (
        Criterion("tool_trajectory_avg_score", "tool_trajectory_avg_score", Scale.UNIT, threshold=0.8, fingerprint="a"),
        Criterion("response_match_score", "response_match_score", Scale.UNIT, threshold=0.5, fingerprint="b"),
        Criterion("latency", "latency", Scale.SECONDS, Direction.LOWER, blocks_regression=False, fingerprint="c"),
    )
    tags = ("refund", "order", "shipping")
    plan = tuple(PlannedCase(f"case-{n:05d}", f"f{n}", (tags[n % 3],)) for n in range(cases))
    calls = (ToolCall("find_order", {"id": "A-17"}, result="x" * said), ToolCall("refund", {"id": "A-17"}))
    made = []
    for trial in range(1, trials + 1):
        for case in plan:
            scores = {
                "tool_trajectory_avg_score": Score(float(rng.random() < 0.9), per_turn=(1.0,)),
                "response_match_score": Score(round(rng.uniform(0.5, 1), 4), reason="close" if said else ""),
                "latency": Score(rng.uniform(1, 2)),
            }
            turn = Invocation("", tool_calls=calls, usage=Usage(1200, 200, 0.003, 3), duration=1.2)
            made.append(Trial(case.id, trial, round=trial, scores=scores, duration=1.2, invocations=(turn,)))
    header = Header(
        "evals",
        plan,
        criteria,
        f"run-{number}",
        "1",
        f"{number:040x}",
        agent=f"{number // 5}",
        created=START + number * DAY,
    )
    return Record(header, tuple(made), footer_of(tuple(made)))


COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def speed_table() -> Iterator[str]:
    yield f"The fastest of two, with a load average of {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores as it began."
    yield ""
    yield "| what | measured | at most |"
    yield "|---|---|---|"
    rows = (
        ("stored records of 100 cases and 5 trials", 200, 100, 5, 0, "2 s"),
        ("the same with 2 kB of tool results a trial", 200, 100, 5, 2_000, ""),
        ("stored records of 1,000 cases and 5 trials", 40, 1_000, 5, 0, ""),
    )
    for name, records, cases, trials, said, most in rows:
        with tempfile.TemporaryDirectory() as folder:
            rng = Random(1)
            for number in range(records):
                write_record(Path(folder) / f"{number}.jsonl", stored_record(number, cases, trials, rng, said))
            size = sum(path.stat().st_size for path in Path(folder).iterdir())
            for kind in (("history",), ("site", f"{folder}-site")):
                cpu, wall, memory = best_of(2, (*kind, folder))
                what = f"`gate {kind[0]}` of {records} {name}, {size / 1e6:.0f} MB"
                yield f"| {what} | {cpu:.1f} s CPU, {wall:.1f} s wall, {memory:.0f} MB | {most} |"


def best_of(times: int, arguments: tuple[str, ...]) -> tuple[float, float, float]:
    """CPU and wall seconds of the fastest process, and the most memory."""
    found = []
    for number in range(times + 1):
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-m", "gate", *arguments], check=True, stdout=subprocess.DEVNULL, env=COMPILED)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if number:  # the first compiles what an installed package has compiled
            found.append((cpu, time.perf_counter() - begun, after.ru_maxrss / 1024))
    return min(cpu for cpu, _, _ in found), min(wall for _, wall, _ in found), max(memory for _, _, memory in found)


def main() -> None:
    options = page.parser(__doc__, seed=1, runs=400)
    options.add_argument("--speed", action="store_true", help="How long it takes, instead.")
    given = options.parse_args()
    made: dict[str, Callable[[], Iterator[str]]] = {
        "speed": speed_table,
        "trends": partial(trend_table, given.runs, given.seed, given.only, given.processes),
    }
    name = "speed" if given.speed else "trends"
    page.publish({name: made[name]()}, given.write)


if __name__ == "__main__":
    main()
