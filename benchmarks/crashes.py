"""Worlds in which agents fail instead of answering, against the whole decision: blips, crashes, outages.

    python benchmarks/crashes.py [--runs 100] [--only TEXT] [--write docs/dev/evidence/crashes.md]

Each run draws a suite with its stored baseline and a candidate, and follows `next_step` on a simulated clock until the
verdict: a trial takes two seconds, sixteen run at once, and a confirmation waits a minute. A provider's failures carry
no signature here, so only the confirmation can tell them from the agent's own. Same seed, same table.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))
import page

from gate.decision import Comparison, Settings, next_step, verdict_on
from gate.model import Case, Criterion, ErrorKind, Scale, Score, Side, Trial, TrialError, Verdict

CRITERION = Criterion("answer", "response_match_score", Scale.UNIT, pass_threshold=0.5)
SECONDS, AT_ONCE = 2.0, 16


@dataclass(frozen=True)
class World:
    """One simulated change, and the provider while it is measured."""

    name: str
    cases: int = 100
    stored: int = 5
    crashing: int = 0
    """Cases in which the change crashes, and how often."""
    crash_rate: float = 0.6
    provider: float = 0.0
    """Share of requests that fail while the provider is in trouble."""
    trouble: float = 120.0
    """The seconds that this lasts, from the beginning of the run."""
    both_sides: bool = False
    """True if the base commit's agent can be run too."""
    exact: int | None = None
    wanted: tuple[str, ...] = ("pass",)
    broken: int = field(default=0, repr=False)
    """Cases that the change answers wrongly each time."""
    ever: float = field(default=0.0, repr=False)
    """Share of all requests that fail, of the baseline's too."""


NOT_BLAMED = ("pass", "inconclusive", "error")
"""The change is not said to be worse, whatever a provider's trouble leads to."""
WORLDS = (
    World("unchanged, nothing fails"),
    World("unchanged, provider fails 10 % for two minutes", provider=0.1, wanted=NOT_BLAMED),
    World("the same, base run beside it", provider=0.1, both_sides=True, wanted=NOT_BLAMED),
    World("the same, 30 cases", cases=30, provider=0.1, wanted=NOT_BLAMED),
    World("the same, provider fails 30 %", provider=0.3, wanted=NOT_BLAMED),
    World("the same, one stored trial a case", provider=0.1, stored=1, wanted=NOT_BLAMED),
    World("the same, `trials: 3`", provider=0.1, exact=3, wanted=NOT_BLAMED),
    World("crashes 3 of 100 cases in 60 % of runs", crashing=3, wanted=("regressed",)),
    World("the same, base run beside it", crashing=3, both_sides=True, wanted=("regressed",)),
    World("the same, one stored trial a case", crashing=3, stored=1, wanted=("regressed", "error")),
    World("the same, three stored trials a case", crashing=3, stored=3, wanted=("regressed",)),
    World("the same, `trials: 3`", crashing=3, exact=3, wanted=("regressed", "error")),
    World("crashes 3 of 100 cases each time", crashing=3, crash_rate=1.0, wanted=("regressed",)),
    World("crashes 48 of 500 cases each time", cases=500, crashing=48, crash_rate=1.0, wanted=("regressed",)),
    World("crashes every case in 60 % of runs", crashing=100, wanted=("error", "regressed")),
    World("crashes every case in 20 % of runs", crashing=100, crash_rate=0.2, wanted=("error", "regressed")),
    World("unchanged, 3 % of all requests fail, before and now", ever=0.03, wanted=("pass", "inconclusive", "error")),
    World("the same, and 1 of 100 cases broke in its answers", broken=1, ever=0.03, wanted=("regressed",)),
    World("provider is down", provider=1.0, trouble=1e9, wanted=("error",)),
)


class Lab:
    """Runs trials of one world on a simulated clock."""

    def __init__(self, world: World, rng: Random) -> None:
        self.world, self.rng, self.clock, self.trials = world, rng, 0.0, 0
        self.ids = [f"c{i:03d}" for i in range(world.cases)]
        self.rates = {c: rng.choice((1.0, 1.0, 0.97, rng.uniform(0.5, 0.95))) for c in self.ids}
        steady = [c for c in self.ids if self.rates[c] >= 0.9]
        self.crashes = set(rng.sample(steady, min(world.crashing, len(steady))))
        if world.crashing >= world.cases:
            self.crashes = set(self.ids)
        self.broken = set(rng.sample(steady, world.broken)) if world.broken else set()

    def run(self, case_id: str, number: int, side: Side, round_: int, tag: str, *, now: bool = True) -> Trial:
        world, draw = self.world, self.rng.random
        if now:
            self.clock += SECONDS / AT_ONCE
        troubled = now and self.clock < world.trouble and draw() < world.provider
        own = now and side is Side.CANDIDATE and case_id in self.crashes and draw() < world.crash_rate
        failed = world.ever > 0 and draw() < world.ever
        if troubled or own or failed:
            message = "KeyError: 'order'" if own else "APIError: the connection broke"
            return Trial(case_id, number, round_, tag, side, error=TrialError(ErrorKind.CRASH, message))
        wrong = now and side is Side.CANDIDATE and case_id in self.broken
        score = Score(float(not wrong and draw() < self.rates[case_id]))
        return Trial(case_id, number, round_, tag, side, scores={CRITERION.name: score}, duration=SECONDS)


def play(world: World, seed: int) -> tuple[str, int, int]:
    """Verdict, agent runs, and trials in which the agent failed."""
    lab = Lab(world, Random(f"{world}:{seed}"))
    cases = [Case(c, ()) for c in lab.ids]
    stored = [lab.run(c, n, Side.CANDIDATE, 1, "full", now=False) for c in lab.ids for n in range(1, world.stored + 1)]
    settings = Settings(exact_epochs=world.exact, rerun="match" if world.both_sides else "never")
    trials: list[Trial] = []
    numbers: Counter[tuple[str, Side]] = Counter()
    while True:
        known = Comparison(cases, [CRITERION], trials, stored, settings, seed=seed)
        step = next_step(known)
        if isinstance(step, Verdict):
            crashes = verdict_on(known, scheduled=True).crashes
            return step.value, len(trials), crashes.failed if crashes else 0
        lab.clock += step.pause
        for request in step.requests:
            for case_id in request.cases * request.n:
                numbers[case_id, request.side] += 1
                number = numbers[case_id, request.side]
                trials.append(lab.run(case_id, number, request.side, step.round, request.tag))


def main(argv: Sequence[str] | None = None) -> int:
    names, columns = (*page.VERDICTS, "error"), {"runs a case": page.per_case(1)}
    return page.simulated(__doc__, argv, "crashes", WORLDS, play, columns, runs=100, names=names)


if __name__ == "__main__":
    sys.exit(main())
