"""Worlds in which a part of the trials is answered from recordings, against the whole decision.

    python benchmarks/world_statistics.py [--runs 200] [--only TEXT] [--write docs/dev/evidence/same-world.md]

Each run draws a suite, five stored trials a case and a candidate, and follows `next_step` to the verdict. A case is
answered wholly from its recordings, or shares a part of its randomness with them, or goes live from its first request.
What goes live is drawn anew, from the rates that the provider has now. Same seed, same table.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

sys.path.insert(0, str(Path(__file__).parent))
import page
from msgspec.structs import replace

from gate.decision import Comparison, Settings, next_step
from gate.model import Case, Criterion, Replay, Scale, Score, Side, Trial, Verdict

CRITERION = Criterion("answer", "response_match_score", Scale.UNIT, pass_threshold=0.5)
TYPICAL = ((0.45, 1.0, 1.0), (0.25, 0.95, 1.0), (0.25, 0.5, 0.95), (0.05, 0.0, 0.0))
"""Share of the cases, and the range of their pass rates, as in `simulate.py`."""
STORED = 5

Met = Literal["whole", "part", "live"]
"""The answers that a case's requests find: all recorded ones, those of the first half, or none."""


@dataclass(frozen=True)
class World:
    name: str
    live: int
    """Cases of 100 in which something the model sees changed."""
    part: float = 0.0
    """Share of those whose first requests are still the recorded ones."""
    drift: float = 0.0
    """By how much each live trial passes less often since the baseline was stored."""
    broken: int = 0
    """Cases that fail each time from now on; of those that changed, where any did."""
    base: bool = False
    """True if the base's agent can be run."""
    wanted: tuple[str, ...] = ("pass", "inconclusive")
    cases: int = 100


BROKEN = ("regressed",)
WORLDS = (
    World("nothing replayed, unchanged", 100),
    World("50 % replayed, unchanged", 50),
    World("50 % replayed, the others share their first requests", 50, part=1.0),
    World("90 % replayed, unchanged", 10),
    World("100 % replayed (a code-only change)", 0),
    World("all share their first requests, unchanged", 100, part=1.0),
    World("nothing replayed, the provider drifts by 2 points", 100, drift=0.02),
    World("90 % replayed, the provider drifts by 2 points", 10, drift=0.02),
    World("50 % replayed, the provider drifts by 4 points", 50, drift=0.04),
    World("90 % replayed, the provider drifts by 4 points", 10, drift=0.04),
    World("100 % replayed, the provider drifts by 4 points", 0, drift=0.04),
    World("50 % replayed, a drift of 4 points, the base can be run", 50, drift=0.04, base=True),
    World("the description of a tool of 16 cases changed, unchanged", 16),
    World("the same, one case broke", 16, broken=1, wanted=BROKEN),
    World("the same, the base can be run", 16, broken=1, base=True, wanted=BROKEN),
    World("16 cases share their first requests, one case broke", 16, part=1.0, broken=1, wanted=BROKEN),
    World("the description of a tool of 16 cases changed, three cases broke", 16, broken=3, wanted=BROKEN),
    World("100 % replayed, the code broke one case", 0, broken=1, wanted=BROKEN),
    World("nothing replayed, one case broke", 100, broken=1, wanted=BROKEN),
)


class Lab:
    """Draws the trials of one world."""

    def __init__(self, world: World, rng: Random) -> None:
        self.world, self.rng = world, rng
        self.ids = [f"c{i:03d}" for i in range(world.cases)]
        parts = [part for part in TYPICAL for _ in range(round(part[0] * world.cases))]
        rng.shuffle(parts)
        self.rates = {c: rng.uniform(*parts[i % len(parts)][1:]) for i, c in enumerate(self.ids)}
        live = rng.sample(self.ids, world.live)
        self.met: dict[str, Met] = dict.fromkeys(self.ids, "whole")
        self.met |= {c: "part" if i < world.part * world.live else "live" for i, c in enumerate(live)}
        steady = [c for c in live or self.ids if self.rates[c] >= 0.9]
        self.broken = set(rng.sample(steady, min(world.broken, len(steady))))
        self.stored = [self._stored(c, n) for n in range(1, STORED + 1) for c in self.ids]
        self.outcomes = {(t.case_id, t.number): t.scores[CRITERION.name].value == 1 for t in self.stored}

    def _stored(self, case_id: str, number: int) -> Trial:
        passed = self.rng.random() < self.rates[case_id]
        replay = Replay("", 0, 4, recording=f"base:{number}")
        return self._trial(Trial(case_id, number, replay=replay, run="base"), passed)

    def _trial(self, trial: Trial, passed: bool) -> Trial:
        text = f"{passed}{self.rng.random()}"
        return replace(trial, scores={CRITERION.name: Score(float(passed))}, answer=text)

    def drawn(self, case_id: str, number: int, round_: int, tag: str, side: Side) -> Trial:
        """A trial of this job. The baseline's agent is asked live, and so is what has no recording left."""
        met: Met = "live" if side is Side.BASELINE or number > STORED else self.met[case_id]
        rate = max(0.0, self.rates[case_id] - self.world.drift)
        recorded = self.outcomes.get((case_id, number), False)
        is_shared = met == "whole" or (met == "part" and self.rng.random() < 0.5)
        passed = recorded if is_shared else self.rng.random() < rate
        passed = passed and not (case_id in self.broken and side is Side.CANDIDATE)
        replayed, live = {"whole": (4, 0), "part": (2, 2), "live": (0, 4)}[met]
        replay = Replay(f"base:{number}" if number <= STORED else "", replayed, live, recording=f"now:{number}")
        return self._trial(Trial(case_id, number, round_, tag, side, replay=replay), passed)


def play(world: World, seed: int) -> tuple[str, int, int]:
    """Verdict, all agent runs, and those of them that asked a model for anything."""
    lab = Lab(world, Random(f"{world}:{seed}"))
    cases = [Case(c, ()) for c in lab.ids]
    trials: list[Trial] = []
    numbers: Counter[tuple[Side, str]] = Counter()
    settings = Settings(rerun="match" if world.base else "never")
    while True:
        known = Comparison(cases, [CRITERION], trials, lab.stored, settings, seed=seed)
        step = next_step(known)
        if isinstance(step, Verdict):
            return step.value, len(trials), sum(t.replay is None or t.replay.live > 0 for t in trials)
        for request in step.requests:
            for case_id in request.cases * request.n:
                numbers[request.side, case_id] += 1
                number = numbers[request.side, case_id]
                trials.append(lab.drawn(case_id, number, step.round, request.tag, request.side))


COLUMNS = {"trials a case": page.per_case(1), "live": page.per_case(2), "n": page.how_many}


def main(argv: Sequence[str] | None = None) -> int:
    return page.simulated(__doc__, argv, "same-world", WORLDS, play, COLUMNS)


if __name__ == "__main__":
    sys.exit(main())
