"""Worlds of known truth against the decision rule, and the rules of other gates beside it.

    python benchmarks/simulate.py [--runs 1000] [--only TEXT] [--write docs/evidence/decision.md]

Each run draws a suite, a stored baseline and a candidate, then lets the rule ask for trials until it answers. Seeds are
fresh for every cell and printed; the same seed gives the same table.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import fmean, stdev

from msgspec.structs import replace

from gate.decision.engine.evidence import Looks
from gate.decision.engine.rule import decide
from gate.decision.engine.state import Config, Continue, Metric, Round, State
from gate.model import Direction, Outcome, Side
from gate.statistics.intervals import binomial_at_least, t_quantile, wilson
from gate.statistics.permutation import joint_permutation

# --- worlds ---------------------------------------------------------------------------------------

SUITES: Mapping[str, Sequence[tuple[float, float, float]]] = {
    "typical": ((0.45, 1, 1), (0.25, 0.95, 1), (0.25, 0.5, 0.95), (0.05, 0, 0)),
    "stable": ((0.85, 1, 1), (0.10, 0.97, 1), (0.05, 0, 0)),
    "flaky": ((0.20, 1, 1), (0.15, 0.9, 1), (0.60, 0.3, 0.95), (0.05, 0, 0)),
}
"""Per suite: the share of its cases, and the range that their true pass rates are drawn from."""
BREAKABLE = 0.8
"""A case that breaks is drawn from those that passed at least so often."""


@dataclass(frozen=True)
class World:
    """What is true of one simulated change."""

    name: str
    suite: str = "typical"
    cases: int = 100
    baseline: int = 5
    broken: int = 0
    """Cases that never pass any more."""
    halved: int = 0
    """Cases that pass half as often."""
    drop: float = 0.0
    """Fall of the mean pass rate, every case losing the same share of its own."""
    better: float = 0.0
    """Share of each case's failures that the change repairs."""
    drift: float = 0.0
    """Fall of the mean pass rate of both commits since the baseline was stored."""
    metrics: int = 1
    """Gating metrics: success, ROUGE, judge, cost, latency."""
    shifts: Mapping[str, float] = field(default_factory=dict)
    config: Config = field(default_factory=Config)


EXTRA = (
    Metric("rouge", "bounded", margin=0.05),
    Metric("judge", "bounded", margin=0.4),
    Metric("cost", "positive", Direction.LOWER, 0.2),
    Metric("latency", "positive", Direction.LOWER, 0.3),
)


class Agent:
    """Draws trials of both sides of a world; trials of a case are independent."""

    def __init__(self, world: World, rng: Random) -> None:
        self.world, self.rng = world, rng
        before = _rates(SUITES[world.suite], world.cases, rng)
        stored, now = before, list(before)
        breakable = [i for i, p in enumerate(before) if p >= BREAKABLE]
        for i in rng.sample(breakable, min(world.broken, len(breakable))):
            now[i] = 0.0
        for i in rng.sample(breakable, min(world.halved, len(breakable))):
            now[i] /= 2
        mean = fmean(before) or 1.0
        now = [p * (1 - world.drop / mean) + (1 - p) * world.better for p in now]
        moved = 1 - world.drift / mean
        self.ids = [f"c{i:04d}" for i in range(world.cases)]
        self.stored = dict(zip(self.ids, stored, strict=True))
        self.rates = {
            Side.CANDIDATE: {c: p * moved for c, p in zip(self.ids, now, strict=True)},
            Side.BASELINE: {c: p * moved for c, p in zip(self.ids, before, strict=True)},
        }
        self.level = {
            c: [rng.uniform(0.4, 0.8), rng.uniform(3, 4.5), rng.gauss(-4, 0.5), rng.gauss(1, 0.4)] for c in self.ids
        }

    def trial(self, case: str, rate: float, shifts: Mapping[str, float]) -> list[float]:
        row = [float(self.rng.random() < rate)]
        if self.world.metrics == 1:
            return row
        gauss, level = self.rng.gauss, self.level[case]
        luck = 0.05 * (row[0] - rate)  # a failing trial also reads worse
        rouge = min(1.0, max(0.0, gauss(level[0] + luck, 0.12) + shifts.get("rouge", 0)))
        judge = min(5.0, max(1.0, float(round(gauss(level[1] + 4 * luck, 0.7) + shifts.get("judge", 0)))))
        cost = math.exp(gauss(level[2], 0.25)) * (1 + shifts.get("cost", 0))
        latency = math.exp(gauss(level[3], 0.35)) * (1 + shifts.get("latency", 0))
        return [*row, rouge, judge, cost, latency][: self.world.metrics]

    def baseline(self) -> dict[str, list[list[float]]]:
        return {c: [self.trial(c, self.stored[c], {}) for _ in range(self.world.baseline)] for c in self.ids}

    def run(self, side: Side, cases: Iterable[str], n: int) -> dict[str, list[list[float]]]:
        shifts = self.world.shifts if side is Side.CANDIDATE else {}
        return {c: [self.trial(c, self.rates[side][c], shifts) for _ in range(n)] for c in cases}


def _rates(mixture: Sequence[tuple[float, float, float]], n: int, rng: Random) -> list[float]:
    parts = rng.choices(mixture, weights=[share for share, _, _ in mixture], k=n)
    return [rng.uniform(low, high) for _, low, high in parts]


# --- one run --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    verdict: str
    runs_per_case: float
    named: int = 0
    named_wrongly: int = 0


def play(world: World, seed: int) -> Answer:
    """One simulated change, from the stored baseline to the verdict."""
    rng = Random(f"{world.name}:{seed}")
    agent = Agent(world, rng)
    metrics = (Metric("success", "binary", margin=0.1), *EXTRA)[: world.metrics]
    state = State(metrics, agent.baseline(), (), world.config, seed)
    known: Looks = {}
    runs = 0
    while True:
        step = decide(state, known)
        if isinstance(step, Outcome):
            now, before = agent.rates[Side.CANDIDATE], agent.rates[Side.BASELINE]
            wrong = sum(now[c] >= before[c] for c in step.cases)
            return Answer(step.verdict, runs / world.cases, len(step.cases), wrong)
        rounds = [Round(r.tag, r.side, agent.run(r.side, r.cases, r.n)) for r in step.requests]
        runs += sum(r.runs for r in step.requests)
        state = replace(state, rounds=(*state.rounds, *rounds))


# --- the rules of other gates ---------------------------------------------------------------------

Outcomes = Sequence[Sequence[float]]
Rule = Callable[[Outcomes, Outcomes], bool]


def snapshot(before: Outcomes, now: Outcomes) -> bool:
    """Blocks when a case whose stored trial passed fails in any trial."""
    return any(b[0] and not all(c) for b, c in zip(before, now, strict=True))


def every_case(_: Outcomes, now: Outcomes) -> bool:
    """Blocks unless every case's mean over its trials is 1."""
    return any(not all(c) for c in now)


def two_thirds(before: Outcomes, now: Outcomes) -> bool:
    """Blocks when a case that passed two thirds of its trials no longer does."""
    return any(fmean(b) >= 0.66 > fmean(c) for b, c in zip(before, now, strict=True))


def threshold(before: Outcomes, now: Outcomes) -> bool:
    """Blocks when the mean is below the baseline's, rounded down to 5 points (what a team would write down)."""
    return fmean(map(fmean, now)) < math.floor(20 * fmean(map(fmean, before))) / 20


def mean_drop(points: float, before: Outcomes, now: Outcomes) -> bool:
    return fmean(map(fmean, before)) - fmean(map(fmean, now)) > points / 100


def mcnemar(before: Outcomes, now: Outcomes) -> bool:
    """One-sided mid-p at 2 % on one trial of each side."""
    lost = sum(bool(b[0]) and not c[0] for b, c in zip(before, now, strict=True))
    won = sum(bool(c[0]) and not b[0] for b, c in zip(before, now, strict=True))
    n = lost + won
    return bool(n) and binomial_at_least(lost, n, 0.5) - math.comb(n, lost) / 2 ** (n + 1) <= 0.02


def fisher(before: Outcomes, now: Outcomes) -> bool:
    """One-sided Fisher at 2 % on all trials pooled."""
    b, c = [int(v) for t in before for v in t], [int(v) for t in now for v in t]
    total, passes = len(b) + len(c), sum(b) + sum(c)
    ways = math.comb(total, len(c))
    tail = sum(math.comb(passes, k) * math.comb(total - passes, len(c) - k) for k in range(sum(c) + 1) if k <= passes)
    return tail / ways <= 0.02


def paired_t(before: Outcomes, now: Outcomes) -> bool:
    differences = [fmean(c) - fmean(b) for b, c in zip(before, now, strict=True)]
    spread = stdev(differences)
    return bool(spread) and fmean(differences) / spread * math.sqrt(len(differences)) < -t_quantile(
        0.95, len(differences) - 1
    )


def permutation(before: Outcomes, now: Outcomes) -> bool:
    pairs = [([[v] for v in c], [[v] for v in b]) for b, c in zip(before, now, strict=True)]
    return joint_permutation(pairs, 1, seed="peer").p <= 0.02


PEERS: Mapping[str, tuple[Rule, int]] = {
    "any case flips (snapshot)": (snapshot, 3),
    "every case must pass": (every_case, 3),
    "two-thirds rule": (two_thirds, 3),
    "mean ≥ written threshold": (threshold, 3),
    "mean drop > 2 points": (partial(mean_drop, 2), 3),
    "mean drop > 5 points": (partial(mean_drop, 5), 3),
    "McNemar mid-p": (mcnemar, 1),
    "pooled Fisher": (fisher, 3),
    "paired t, 5 %": (paired_t, 5),
    "permutation, mean + concentrated": (permutation, 5),
}


def play_peer(rule: str, world: World, seed: int) -> Answer:
    decide_peer, k = PEERS[rule]
    agent = Agent(world, Random(f"{world.name}:{seed}"))
    before = [[row[0] for row in rows] for rows in agent.baseline().values()]
    now = [[row[0] for row in rows] for rows in agent.run(Side.CANDIDATE, agent.ids, k).values()]
    return Answer("REGRESSION" if decide_peer(before, now) else "PASS", k)


# --- the tables -----------------------------------------------------------------------------------

MATCH, CONCURRENT = Config(rerun="match"), Config(rerun="concurrent")


def worlds() -> Iterator[World]:
    """Every cell of the evidence."""
    for n in (10, 30, 100, 300):
        yield World(f"typical, N = {n}, unchanged", cases=n)
    yield World("typical, N = 100, improved", better=0.3)
    for suite in ("stable", "flaky"):
        for n in (10, 30, 100):
            yield World(f"{suite}, N = {n}, unchanged", suite=suite, cases=n)
    yield World("typical, N = 100, 5 cases broke", broken=5)
    yield World("typical, N = 100, 1 case broke", broken=1)
    yield World("typical, N = 100, 10 cases half-broke", halved=10)
    yield World("typical, N = 100, −5 points", drop=0.05)
    yield World("typical, N = 100, −10 points", drop=0.10)
    yield World("typical, N = 10, 1 case broke", cases=10, broken=1)
    yield World("typical, N = 30, 1 case broke", cases=30, broken=1)
    yield World("typical, N = 30, −10 points", cases=30, drop=0.10)
    yield World("typical, N = 300, −5 points", cases=300, drop=0.05)
    yield World("flaky, N = 100, 1 case broke", suite="flaky", broken=1)
    yield World("stable, N = 100, 1 case broke", suite="stable", broken=1)
    for kb in (1, 3, 10):
        yield World(f"kb = {kb}, unchanged", baseline=kb)
        yield World(f"kb = {kb}, 1 case broke", baseline=kb, broken=1)
    for kb in (1, 3, 5):
        yield World(f"match, kb = {kb}, unchanged", baseline=kb, config=MATCH)
        yield World(f"match, kb = {kb}, 1 case broke", baseline=kb, broken=1, config=MATCH)
    yield World("match, kb = 5, 10 cases half-broke", halved=10, config=MATCH)
    for points in (2, 4):
        yield World(f"drift −{points} points, stored only", drift=points / 100)
        yield World(f"drift −{points} points, concurrent", drift=points / 100, config=CONCURRENT)
    yield World("concurrent, 1 case broke", broken=1, config=CONCURRENT)
    yield World("concurrent, −10 points", drop=0.1, config=CONCURRENT)
    yield World("3 blocking metrics, unchanged", metrics=3)
    yield World("5 blocking metrics, unchanged", metrics=5)
    yield World("5 blocking metrics, N = 30, unchanged", metrics=5, cases=30)
    yield World("5 blocking metrics, cost +20 %", metrics=5, shifts={"cost": 0.2})
    yield World("5 blocking metrics, ROUGE −.05", metrics=5, shifts={"rouge": -0.05})
    yield World("5 blocking metrics, judge −.3", metrics=5, shifts={"judge": -0.3})
    yield World("5 blocking metrics, 1 case broke", metrics=5, broken=1)
    yield World("exactly 5 trials, unchanged", config=Config(exact_epochs=5))
    yield World("exactly 5 trials, 1 case broke", broken=1, config=Config(exact_epochs=5))
    yield World("exactly 5 trials, −5 points", drop=0.05, config=Config(exact_epochs=5))


PEER_WORLDS = (
    World("typical, N = 100, unchanged"),
    World("typical, N = 100, 5 cases broke", broken=5),
    World("typical, N = 100, 1 case broke", broken=1),
    World("typical, N = 100, 10 cases half-broke", halved=10),
    World("typical, N = 100, −5 points", drop=0.05),
    World("typical, N = 100, −10 points", drop=0.10),
)

TARGETS: Mapping[str, tuple[float | None, float | None, float | None]] = {
    "typical, N = 100, unchanged": (0.02, None, 1.6),
    "flaky, N = 100, unchanged": (0.02, None, 2.0),
    "stable, N = 100, unchanged": (0.02, None, 1.3),
    "typical, N = 100, 5 cases broke": (None, 0.99, 1.3),
    "typical, N = 100, 1 case broke": (None, 0.93, 1.6),
    "typical, N = 100, −10 points": (None, 0.92, None),
}
"""World → the most that may be blocked, the least that must be, the most runs a case. "Unchanged" is held to 2 %."""


@dataclass(frozen=True)
class Cell:
    """What many runs of one world came to."""

    answers: Sequence[Answer]

    @property
    def blocked(self) -> int:
        return sum(a.verdict == "REGRESSION" for a in self.answers)

    @property
    def row(self) -> tuple[float, float, float, float, float, float]:
        """Blocked with Wilson's interval, inconclusive, runs a case, named wrongly."""
        n = len(self.answers)
        named = [a for a in self.answers if a.named]
        false = sum(a.named_wrongly / a.named for a in named) / n
        inconclusive = Counter(a.verdict for a in self.answers)["INCONCLUSIVE"] / n
        return (
            self.blocked / n,
            *wilson(self.blocked, n),
            inconclusive,
            fmean(a.runs_per_case for a in self.answers),
            false,
        )


def simulate(pool: ProcessPoolExecutor, job: Callable[[int], Answer], runs: int, seed: int) -> Cell:
    return Cell(list(pool.map(job, range(seed, seed + runs), chunksize=max(1, runs // 16))))


def missed(name: str, cell: Cell) -> str:
    """Which target this cell proves missed: an interval that lies on the wrong side, or too many runs."""
    _, low, high, _, runs, false = cell.row
    most, least, cost = TARGETS.get(name, (None, None, None))
    if "drift" not in name and name.endswith(("unchanged", "improved")):
        most = 0.02
    problems = [
        *(["blocks too often"] if most is not None and low > most else []),
        *(["misses too often"] if least is not None and high < least else []),
        *(["too many runs"] if cost is not None and runs > cost else []),
        *(["names wrongly"] if false > 0.10 else []),
    ]
    return ", ".join(problems) or ("met" if name in TARGETS or most is not None else "")


def rule_table(pool: ProcessPoolExecutor, runs: int, seed: int, only: str) -> Iterator[str]:
    yield "| world | blocked | 95 % interval | inconclusive | runs a case | false share of named | target |"
    yield "|---|---|---|---|---|---|---|"
    for world in worlds():
        if only in world.name:
            cell = simulate(pool, partial(play, world), runs, seed)
            share, low, high, inconclusive, cost, false = cell.row
            target = missed(world.name, cell)
            yield (
                f"| {world.name} | {share:.3f} | {low:.3f}–{high:.3f} | {inconclusive:.3f} "
                f"| {cost:.2f} | {false:.3f} | {target} |"
            )


def peer_table(pool: ProcessPoolExecutor, runs: int, seed: int, only: str) -> Iterator[str]:
    names = [world.name.split(", ")[-1] for world in PEER_WORLDS]
    yield "| rule, trials a case | " + " | ".join(names) + " |"
    yield "|---|" + "---|" * len(names)
    for rule, (_, k) in PEERS.items():
        if only in rule:
            cells = [simulate(pool, partial(play_peer, rule, world), runs, seed) for world in PEER_WORLDS]
            shares = (f"{c.row[0]:.3f} ({c.row[1]:.3f}–{c.row[2]:.3f})" for c in cells)
            yield f"| {rule}, {k} | " + " | ".join(shares) + " |"


# --- recorded conversations -----------------------------------------------------------------------

AIRLINE = "tau-bench/gpt-4o-airline.json"
"""200 recorded conversations of gpt-4o as an airline agent, 50 tasks with four trials each (Sierra, MIT)."""
SPLITS = tuple(combinations(range(4), 2))


@dataclass(frozen=True)
class Recorded:
    """Per task: whether each trial made the expected calls in order; the same without the first expected tool."""

    whole: Mapping[str, Sequence[float]]
    without: Mapping[str, Sequence[float]]
    damageable: Sequence[str]
    """Tasks that expect a call."""


def read_airline(folder: Path) -> Recorded:
    whole: dict[str, list[float]] = {}
    without: dict[str, list[float]] = {}
    expecting = set()
    for row in json.loads((folder / AIRLINE).read_text(encoding="utf-8")):
        task, expected = f"task-{row['task_id']:02d}", row["info"]["task"]["actions"]
        wanted = [(call["name"], call["kwargs"]) for call in expected]
        made = [c["function"] for m in row["traj"] for c in m.get("tool_calls") or ()]
        calls = [(c["name"], json.loads(c["arguments"])) for c in made]
        whole.setdefault(task, []).append(_in_order(wanted, calls))
        kept = [c for c in calls if not wanted or c[0] != wanted[0][0]]
        without.setdefault(task, []).append(_in_order(wanted, kept))
        expecting |= {task} if wanted else set()
    return Recorded(whole, without, sorted(expecting))


def _in_order(wanted: Sequence[object], calls: Sequence[object]) -> float:
    rest = iter(calls)
    return float(all(call in rest for call in wanted))


def play_recorded(data: Recorded, damaged: int, seed: int) -> Answer:
    """Two recorded trials a task against the other two, in one look; ``damaged`` tasks lose their first tool."""
    down = set(Random(f"airline:{damaged}:{seed}").sample(data.damageable, damaged))
    before = SPLITS[seed % len(SPLITS)]
    now = [i for i in range(4) if i not in before]
    stored = {t: [[v[i]] for i in before] for t, v in data.whole.items()}
    fresh = {t: [[(data.without if t in down else data.whole)[t][i]] for i in now] for t in data.whole}
    rounds = (Round("full", Side.CANDIDATE, fresh),)
    step = decide(State((Metric("success", "binary"),), stored, rounds, Config(can_run=False), seed))
    assert isinstance(step, Outcome)
    return Answer(step.verdict, 2)


def play_resampled(data: Recorded, damaged: int, seed: int) -> Answer:
    """The same from the tasks' own rates: five baseline trials, and the rule asks for what it wants."""
    rng = Random(f"airline:{damaged}:{seed}")
    down = set(rng.sample(data.damageable, damaged))
    before = {t: fmean(v) for t, v in data.whole.items()}
    now = {t: fmean(data.without[t]) if t in down else rate for t, rate in before.items()}
    stored = {t: [[float(rng.random() < rate)] for _ in range(5)] for t, rate in before.items()}
    state = State((Metric("success", "binary"),), stored, (), Config(), seed)
    known: Looks = {}
    runs = 0
    while isinstance(step := decide(state, known), Continue):
        runs += sum(r.runs for r in step.requests)
        rounds = [
            Round(r.tag, r.side, {t: [[float(rng.random() < now[t])] for _ in range(r.n)] for t in r.cases})
            for r in step.requests
        ]
        state = replace(state, rounds=(*state.rounds, *rounds))
    wrong = sum(now[t] >= before[t] for t in step.cases)
    return Answer(step.verdict, runs / len(before), len(step.cases), wrong)


def airline_table(pool: ProcessPoolExecutor, runs: int, folder: Path) -> Iterator[str]:
    if not (folder / AIRLINE).exists():
        return
    data = read_airline(folder)
    failing = [fmean(data.whole[t]) - fmean(data.without[t]) for t in data.damageable]
    yield (
        f"{sum(loss > 0 for loss in failing)} of the {len(data.damageable)} tasks that expect a call ever succeed: "
        "only damage to those can show."
    )
    yield ""
    yield "| tasks damaged of 50 | 2 recorded trials against 2: blocked | resampled, live: blocked | runs a case |"
    yield "|---|---|---|---|"
    for damaged in (0, 1, 2, 4, 7, 10, 15, 20, 25, 30, 43):
        once = simulate(pool, partial(play_recorded, data, damaged), 6 if not damaged else min(runs, 300), 0)
        live = simulate(pool, partial(play_resampled, data, damaged), runs, 0)
        cells = [f"{c.row[0]:.3f} ({c.row[1]:.3f}–{c.row[2]:.3f}, n = {len(c.answers)})" for c in (once, live)]
        yield f"| {damaged} | {cells[0]} | {cells[1]} | {live.row[4]:.2f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", type=Path)
    shared = Path(os.environ.get("GATE_SHARED_DATA") or Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--data", type=Path, default=shared, help="Folder of the recorded conversations.")
    given = parser.parse_args()
    start = time.monotonic()
    lines: list[str] = []
    with ProcessPoolExecutor(given.processes) as pool:
        tables = {
            "The rule": rule_table(pool, given.runs, given.seed, given.only),
            "Other gates' rules in the same worlds: share blocked": peer_table(
                pool, given.runs, given.seed, given.only
            ),
            "Recorded airline conversations": airline_table(pool, given.runs, given.data),
        }
        for title, table in tables.items():
            lines += ["", f"## {title}", ""]
            for line in table:
                print(line, flush=True)
                lines.append(line)
    if given.write:
        given.write.parent.mkdir(parents=True, exist_ok=True)
        given.write.write_text(_page(lines, given.runs, given.seed, time.monotonic() - start), encoding="utf-8")
    return int(any(problem in line for line in lines for problem in ("too often", "too many", "names wrongly")))


def _page(lines: Sequence[str], runs: int, seed: int, seconds: float) -> str:
    head = (
        "# Evidence for the decision rule\n\n"
        f"Written by `python benchmarks/simulate.py --runs {runs} --seed {seed}` in {seconds / 60:.0f} minutes; "
        f"{runs:,} simulated changes a row, Wilson's 95 % intervals. What the worlds are is said in that file: "
        "a typical suite has 45 % of cases that always pass, 25 % that nearly always do, 25 % that pass "
        "50–95 % of the time and 5 % that never do; five baseline trials unless said otherwise. "
        "Named cases are wrong when their pass rate did not fall.\n"
    )
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
