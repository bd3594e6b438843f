"""The rules of other gates in the worlds of simulate.py: as they are commonly written, and as they install.

    python benchmarks/rules.py [--runs 1000] [--only TEXT] [--installed] [--write docs/dev/evidence/decision.md]

The first table has the rules that teams write down. ``--installed`` asks other gates themselves instead (others.py),
with ours beside them on worlds of the same seeds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean, stdev

sys.path.insert(0, str(Path(__file__).parent))
import others
import page
from simulate import Agent, Answer, Cell, World, play, simulate

from gate.decision.engine.state import Config
from gate.model import Side
from gate.statistics.intervals import binomial_at_least, t_quantile
from gate.statistics.permutation import ComparedTrials, joint_permutation

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
    cases = [ComparedTrials([[v] for v in c], [[v] for v in b]) for b, c in zip(before, now, strict=True)]
    return joint_permutation(cases, 1, seed="peer").p <= 0.02


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


def outcomes(world: World, seed: int, k: int) -> tuple[Outcomes, Outcomes]:
    """The stored outcomes of a simulated change, and ``k`` new ones a case."""
    agent = Agent(world, Random(f"{world.name}:{seed}"))
    before = [[row[0] for row in rows] for rows in agent.baseline().values()]
    return before, [[row[0] for row in rows] for rows in agent.run(Side.CANDIDATE, agent.ids, k).values()]


def play_peer(rule: str, world: World, seed: int) -> Answer:
    decide_peer, k = PEERS[rule]
    before, now = outcomes(world, seed, k)
    return Answer("REGRESSION" if decide_peer(before, now) else "PASS", k)


PEER_WORLDS = (
    World("typical, N = 100, unchanged"),
    World("typical, N = 100, 5 cases broke", broken=5),
    World("typical, N = 100, 1 case broke", broken=1),
    World("typical, N = 100, 10 cases half-broke", halved=10),
    World("typical, N = 100, −5 points", drop=0.05),
    World("typical, N = 100, −10 points", drop=0.10),
)


def peer_table(pool: ProcessPoolExecutor, runs: int, seed: int, only: str) -> Iterator[str]:
    names = [world.name.split(", ")[-1] for world in PEER_WORLDS]
    yield from page.head("rule, trials a case", names)
    for rule, (_, k) in PEERS.items():
        if only in rule:
            cells = [simulate(pool, partial(play_peer, rule, world), runs, seed) for world in PEER_WORLDS]
            yield f"| {rule}, {k} | " + " | ".join(map(blocked, cells)) + " |"


def blocked(cell: Cell) -> str:
    """Share blocked with its interval, and beside it how much stays inconclusive."""
    low, high = cell.interval
    undecided = cell.share("INCONCLUSIVE")
    beside = f", {undecided:.2f} inconclusive" if undecided else ""
    return f"{cell.share('REGRESSION'):.3f} ({low:.3f}–{high:.3f}){beside}"


INSTALLED_TRIALS = 3
"""New trials a case that the other gates are given, against five stored ones."""


def installed_table(pool: ProcessPoolExecutor, runs: int, seed: int, folder: Path) -> Iterator[str]:
    """The gates themselves on the worlds of the rules above, ours beside them on the same draws of suite and change."""
    names = [world.name.split(", ")[-1] for world in PEER_WORLDS]
    yield from page.head("gate", names)
    cells = [simulate(pool, partial(play, world), runs, seed) for world in PEER_WORLDS]
    yield "| Agent Gate, runs as it needs | " + " | ".join(map(blocked, cells)) + " |"
    asked = [[outcomes(world, s, INSTALLED_TRIALS) for s in range(seed, seed + runs)] for world in PEER_WORLDS]
    for gate in others.GATES:
        said = list(pool.map(partial(others.ask, gate, alpha=Config().alpha, folder=folder), asked))
        if None in said:
            yield f"| {gate} | does not install here |" + " |" * (len(names) - 1)
            continue
        words = {"blocked": "REGRESSION", "inconclusive": "INCONCLUSIVE", "pass": "PASS"}
        cells = [Cell([Answer(words[one], INSTALLED_TRIALS) for one in answers or ()]) for answers in said]
        yield f"| {others.GATES[gate].package} | " + " | ".join(map(blocked, cells)) + " |"


def main(argv: Sequence[str] | None = None) -> int:
    parser = page.parser(__doc__, runs=1000, seed=20_000)
    parser.add_argument("--installed", action="store_true", help="Other gates themselves.")
    parser.add_argument("--peers", type=Path, default=others.FOLDER, help="Where their environments are.")
    given = parser.parse_args(argv)
    with ProcessPoolExecutor(given.processes) as pool:
        if given.installed:
            lines = page.show(installed_table(pool, given.runs, given.seed, given.peers))
        else:
            lines = page.show(peer_table(pool, given.runs, given.seed, given.only))
    if given.write:
        page.write(given.write, "installed" if given.installed else "rules", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
