"""Worlds in which trials depend on one another, against the whole decision: caches, determinism, shared fixtures.

    python benchmarks/dependent.py [--runs 200] [--only TEXT] [--write docs/dev/evidence/dependent.md]

Each run draws a suite, the runs that its baseline was stored by and a candidate, and follows `next_step` to the
verdict. What differs between worlds is how an answer is drawn: anew for every trial, once for each run and case
(a cache or a reused session) or for each process of it, or once for all. Same seed, same table.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

sys.path.insert(0, str(Path(__file__).parent))
import page

from gate.decision import Comparison, Settings, next_step, verdict_on
from gate.model import Case, Criterion, Scale, Score, Side, Trial, Verdict

CRITERION = Criterion("answer", "response_match_score", Scale.UNIT, pass_threshold=0.5)
TYPICAL = ((0.45, 1.0, 1.0), (0.25, 0.95, 1.0), (0.25, 0.5, 0.95), (0.05, 0.0, 0.0))
"""Share of the cases, and the range of their pass rates, as in `simulate.py`."""
STABLE = ((0.85, 1.0, 1.0), (0.10, 0.97, 1.0), (0.05, 0.0, 0.0))


@dataclass(frozen=True)
class World:
    """The way in which trials are drawn, and the cases that a change broke."""

    name: str
    cases: int = 100
    stored: int = 5
    """Stored trials a case, of each stored run."""
    runs: int = 1
    """Stored runs."""
    draw: Literal["trial", "process", "run", "once"] = "trial"
    """The draws of answers: one for each trial, for each process or run and case, or once for all. The first
    trial of a stored run is of one process, the others of another, as those of a run that was topped up are."""
    cached: float = 1.0
    """Share of the cases that are drawn once for each run, if any are."""
    words: int = 10**9
    """Different texts of a passing or of a failing answer; 1: the answer says no more than whether it passes."""
    broken: int = 0
    """Cases that fail each time from now on, always with the same words."""
    reworded: bool = False
    """True if the change words every answer in another way."""
    cluster: int = 1
    """Cases to a cluster, which share a fixture."""
    shared: float = 0.0
    """Correlation of the outcomes of a cluster's cases within an epoch."""
    stated: bool = True
    """True if the suite says which cases form a cluster."""
    wanted: tuple[str, ...] = ("pass", "inconclusive")
    base: bool = False
    """True if the base's agent can be run."""
    suite: tuple[tuple[float, float, float], ...] = TYPICAL


BROKEN = ("regressed",)
OPEN = ("inconclusive", "regressed")
"""Where what is known cannot tell: anything but a pass."""
WORLDS = (
    World("fresh answers, unchanged"),
    World("fresh answers, one case broke with constant words", broken=1, wanted=BROKEN),
    World("the same, stored by five runs of one trial", broken=1, stored=1, runs=5, wanted=BROKEN),
    World("frozen within a run, unchanged", draw="run"),
    World("the same, N = 30", cases=30, draw="run"),
    World("the same, stored by three runs", draw="run", runs=3),
    World("the same, stored by five runs of one trial", draw="run", runs=5, stored=1),
    World("the same, N = 30", draw="run", cases=30, runs=5, stored=1),
    World("frozen within a process, unchanged", draw="process"),
    World("the same, N = 30", cases=30, draw="process"),
    World("the same, stored by three runs", draw="process", runs=3),
    World("the same, the base can be run", draw="process", base=True),
    World("frozen within a process, one word an outcome, unchanged", draw="process", words=1),
    World("half of the cases frozen, unchanged", draw="run", cached=0.5),
    World("frozen, one word an outcome, unchanged", draw="run", words=1),
    World("the same, N = 30", draw="run", words=1, cases=30),
    World("the same, stored by three runs", draw="run", words=1, runs=3),
    World("the same, N = 30", draw="run", words=1, cases=30, runs=3),
    World("frozen, one word, hardly a case that varies, unchanged", draw="run", words=1, suite=STABLE),
    World("the same, stored by three runs", draw="run", words=1, suite=STABLE, runs=3),
    World("frozen, hardly a case that varies, unchanged", draw="run", suite=STABLE),
    World("frozen within a run, the base can be run, unchanged", draw="run", base=True),
    World("frozen, 20 of 100 cases broke", draw="run", broken=20, wanted=BROKEN),
    World("deterministic, unchanged", draw="once"),
    World("deterministic, one case broke", draw="once", broken=1, wanted=BROKEN),
    World("the same, N = 30", draw="once", cases=30, broken=1, wanted=BROKEN),
    World("deterministic, one case broke, the others reworded", draw="once", broken=1, reworded=True, wanted=OPEN),
    World("the same, the base can be run", draw="once", broken=1, reworded=True, base=True, wanted=BROKEN),
    World("the same, stored by two runs", draw="once", broken=1, runs=2, reworded=True, wanted=BROKEN),
    World("deterministic, reworded, unchanged", draw="once", reworded=True),
    World("deterministic, one word an outcome, unchanged", draw="once", words=1),
    World("deterministic, one word an outcome, one case broke", draw="once", words=1, broken=1, wanted=BROKEN),
    World("the same, N = 30", draw="once", words=1, broken=1, cases=30, wanted=BROKEN),
    World("one word an outcome, unchanged", words=1),
    World("one word an outcome, one case broke", words=1, broken=1, wanted=BROKEN),
    World("few words (temperature 0), one case broke", words=2, broken=1, wanted=BROKEN),
    World("clusters of 5, correlation .3, not stated", cluster=5, shared=0.3, stated=False),
    World("clusters of 5, correlation .3", cluster=5, shared=0.3),
    World("clusters of 5, correlation .8, not stated", cluster=5, shared=0.8, stated=False),
    World("clusters of 5, correlation .8", cluster=5, shared=0.8),
    World("clusters of 5, correlation .3, one case broke", cluster=5, shared=0.3, broken=1, wanted=BROKEN),
    World("clusters of 5, correlation .3, 10 cases broke", cluster=5, shared=0.3, broken=10, wanted=BROKEN),
)


class Lab:
    """Draws the trials of one world."""

    def __init__(self, world: World, rng: Random) -> None:
        self.world, self.rng = world, rng
        self.ids = [f"c{i:03d}" for i in range(world.cases)]
        parts = [part for part in world.suite for _ in range(round(part[0] * world.cases))]
        rng.shuffle(parts)
        self.rates = {c: rng.uniform(*parts[i % len(parts)][1:]) for i, c in enumerate(self.ids)}
        self.frozen = {c for c in self.ids if rng.random() < world.cached}
        self.drawn: dict[tuple[str, str], tuple[bool, int]] = {}
        self.shocks: dict[tuple[str, int, int], float] = {}
        steady = [c for c in self.ids if self.rates[c] >= 0.9]
        if world.draw == "once":  # what fails for ever cannot break
            steady = [c for c in steady if self._answer(c, 0, "")[0]]
        self.broken = set(rng.sample(steady, min(world.broken, len(steady))))

    def cluster_of(self, case_id: str) -> int:
        return int(case_id[1:]) // self.world.cluster

    def trial(
        self, case_id: str, number: int, run: str, round_: int = 1, tag: str = "full", side: Side = Side.CANDIDATE
    ) -> Trial:
        world, now = self.world, not run and side is Side.CANDIDATE
        if now and case_id in self.broken:
            passed, word = False, -1
        else:
            passed, word = self._answer(case_id, number, run, side)
        text = f"{passed}{word}{now and world.reworded}"
        score = {CRITERION.name: Score(float(passed))}
        process = _process(run, number, side) if world.draw == "process" else ""
        return Trial(case_id, number, round_, tag, side, scores=score, answer=text, process=process, run=run)

    def _answer(self, case_id: str, number: int, run: str, side: Side = Side.CANDIDATE) -> tuple[bool, int]:
        world = self.world
        if world.draw == "trial" or (world.draw == "run" and case_id not in self.frozen):
            return self._draw(case_id, number, run)
        source = {"run": run, "process": _process(run, number, side), "once": ""}
        key = (case_id, source[world.draw])
        if key not in self.drawn:
            self.drawn[key] = self._draw(case_id, number, run)
        return self.drawn[key]

    def _draw(self, case_id: str, number: int, run: str) -> tuple[bool, int]:
        rate, world = self.rates[case_id], self.world
        chance = self.rng.random()
        if world.shared:  # a Gaussian copula: what the fixture does in this epoch moves all of its cases
            key = (run, number, self.cluster_of(case_id))
            shock = self.shocks.setdefault(key, self.rng.gauss(0, 1))
            mixed = math.sqrt(world.shared) * shock + math.sqrt(1 - world.shared) * self.rng.gauss(0, 1)
            chance = 0.5 * math.erfc(-mixed / math.sqrt(2))
        return chance < rate, self.rng.randrange(world.words)


def _process(run: str, number: int, side: Side) -> str:
    return f"{run} {number > 0}" if run else side.value


def play(world: World, seed: int) -> tuple[str, int, bool]:
    """Verdict, agent runs, and whether repeats were counted once."""
    lab = Lab(world, Random(f"{world}:{seed}"))
    metadata = {c: {"cluster": str(lab.cluster_of(c))} if world.stated and world.cluster > 1 else {} for c in lab.ids}
    cases = [Case(c, (), metadata=metadata[c]) for c in lab.ids]
    stored = [lab.trial(c, n, f"run {r}") for r in range(world.runs) for n in range(world.stored) for c in lab.ids]
    trials: list[Trial] = []
    numbers: Counter[tuple[Side, str]] = Counter()
    settings = Settings(rerun="match" if world.base else "never")
    while True:
        known = Comparison(cases, [CRITERION], trials, stored, settings, seed=seed)
        step = next_step(known)
        if isinstance(step, Verdict):
            alike = verdict_on(known, scheduled=True).warning("answers_say_little")
            once = alike is not None and alike["why"] == "other_runs_differ"
            return step.value, len(trials), once
        for request in step.requests:
            for case_id in request.cases * request.n:
                numbers[request.side, case_id] += 1
                number = numbers[request.side, case_id]
                trials.append(lab.trial(case_id, number, "", step.round, request.tag, request.side))


COLUMNS = {"runs a case": page.per_case(1), "counted once": page.mean(2), "n": page.how_many}


def main(argv: Sequence[str] | None = None) -> int:
    return page.simulated(__doc__, argv, "dependent", WORLDS, play, COLUMNS)


if __name__ == "__main__":
    sys.exit(main())
