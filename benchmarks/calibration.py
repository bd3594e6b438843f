"""A judge that errs, held to people's labels: how true corrected figures and verdicts are, beside uncorrected ones.

    python benchmarks/calibration.py [--draws 10000] [--runs 60] [--write docs/dev/evidence/judges.md]

The first table draws verdicts and labels of a judge with known rates and asks the intervals of
`gate.statistics.agreement` for the truth. The second follows the whole decision, `next_step`, on suites that such a
judge scores. Same seed, same tables.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parent))
import page

from gate.decision import Comparison, Settings, next_step, verdict_on
from gate.model import Case, Criterion, Scale, Score, Side, Trial, Verdict
from gate.model.calibration import JudgeCalibration
from gate.statistics.agreement import corrected_interval, is_usable
from gate.statistics.intervals import wilson

STORED = 5
CASES = 100
RATES = (1.0, 0.95, 0.9, 0.67)
"""The share of the base's trials that people would pass, by case in turn: .88 on average."""


@dataclass(frozen=True)
class Judge:
    """The share that it passes of what people pass, and that it fails of what people fail."""

    name: str
    sensitivity: float
    specificity: float

    def verdict(self, people: bool, rng: Random) -> bool:
        return rng.random() < (self.sensitivity if people else 1 - self.specificity)

    def labelled(self, labels: int, rng: Random) -> JudgeCalibration:
        """Labels of which people pass three in five."""
        passed = round(0.6 * labels)
        both_pass = sum(self.verdict(True, rng) for _ in range(passed))
        only_judge = sum(self.verdict(False, rng) for _ in range(labels - passed))
        return JudgeCalibration(both_pass, labels - passed - only_judge, only_judge, passed - both_pass)


LENIENT = Judge("lenient", 0.9, 0.7)
HARSH = Judge("harsh", 0.7, 0.95)
GOOD = Judge("good", 0.95, 0.95)


# --- intervals ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    judge: Judge
    share: float
    answers: int = 100
    labels: int = 100


WORLDS = (
    World(LENIENT, 0.8),
    World(LENIENT, 0.8, answers=300),
    World(LENIENT, 0.8, labels=40),
    World(LENIENT, 0.8, labels=400),
    World(LENIENT, 0.95),
    World(HARSH, 0.9),
    World(HARSH, 0.6, answers=300, labels=400),
    World(GOOD, 0.8),
)


def drawn(world: World, draws: int) -> Counter[str]:
    """Return the share of runs in which each of the figures was true."""
    rng, found = Random(f"{world}"), Counter[str]()
    for _ in range(draws):
        known, n = world.judge.labelled(world.labels, rng), world.answers
        passes = sum(world.judge.verdict(rng.random() < world.share, rng) for _ in range(n))
        low, high = wilson(passes, n)
        found["plain covers"] += low <= world.share <= high
        if not is_usable(known):
            continue
        found["usable"] += 1
        low, high = corrected_interval(passes / n, n, known)
        found["covers"] += low <= world.share <= high
    return found


def interval_rows(draws: int) -> Iterable[str]:
    yield (
        "| judge (sensitivity, specificity) | true share | answers | labels | usable "
        "| 95 % interval holds the truth: corrected | plain |"
    )
    yield "|---|---|---|---|---|---|---|"
    for world in WORLDS:
        found, judge = drawn(world, draws), world.judge
        usable = found["usable"]
        cells = [
            f"{judge.name} ({judge.sensitivity:g}, {judge.specificity:g})",
            f"{world.share:g}",
            str(world.answers),
            str(world.labels),
            f"{usable / draws:.3f}",
            _share(found["covers"], usable),
            f"{found['plain covers'] / draws:.3f}",
        ]
        yield f"| {' | '.join(cells)} |"


def _share(count: int, n: int, places: int = 3) -> str:
    low, high = wilson(count, n)
    return f"{count / n:.{places}f} [{low:.{places}f}, {high:.{places}f}]" if n else "–"


# --- the whole decision ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A candidate that people would pass less often by ``drop``, in each case alike; the base's share is .88."""

    name: str
    drop: float = 0.0
    threshold: float | None = None


CHANGES = (
    Change("unchanged"),
    Change("unchanged, threshold .88 just met", threshold=0.88),
    Change("−12 points, margin 10", drop=0.12),
)
VERDICTS = (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.REGRESSED, Verdict.BELOW_THRESHOLD)


def play(change: Change, judge: Judge, seed: int, *, corrected: bool) -> Verdict:
    rng = Random(f"{change}:{judge}:{seed}")
    known = judge.labelled(200, rng)
    criterion = Criterion("solved", "task_completion", Scale.BINARY, threshold=change.threshold, pass_threshold=1.0)
    criterion = replace(criterion, ratchet=False, calibration=known if corrected else None)
    rates = {f"c{n:03d}": RATES[n % len(RATES)] for n in range(CASES)}

    def run(case_id: str, number: int, drop: float, round_: int = 1, tag: str = "full") -> Trial:
        value = judge.verdict(rng.random() < rates[case_id] - drop, rng)
        return Trial(case_id, number, round_, tag, scores={criterion.name: Score(float(value))})

    cases = [Case(case_id, ()) for case_id in rates]
    stored = [run(case_id, n, 0.0) for case_id in rates for n in range(1, STORED + 1)]
    trials: list[Trial] = []
    counts: Counter[str] = Counter()
    while True:
        known = Comparison(cases, [criterion], trials, stored, Settings(), seed=seed)
        step = next_step(known)
        if isinstance(step, Verdict):
            rows = verdict_on(known, scheduled=True).criteria
            return next(row.verdict for row in rows if row.criterion.name == criterion.name)
        for request in step.requests:
            assert request.side is Side.CANDIDATE
            for case_id in request.cases * request.n:
                counts[case_id] += 1
                trials.append(run(case_id, counts[case_id], change.drop, step.round, request.tag))


def decision_rows(first: int, runs: int) -> Iterable[str]:
    yield f"| change | judge | scores | {' | '.join(v.value for v in VERDICTS)} |"
    yield "|---|---|---|---|---|---|---|"
    for change in CHANGES:
        for judge in (LENIENT, HARSH):
            for corrected in (False, True):
                found = Counter(play(change, judge, seed, corrected=corrected) for seed in range(first, first + runs))
                shares = [_share(found[v], runs, 2) if found[v] else "–" for v in VERDICTS]
                how = "corrected" if corrected else "plain"
                yield f"| {change.name} | {judge.name} | {how} | {' | '.join(shares)} |"


def main(argv: Sequence[str] | None = None) -> int:
    parser = page.parser(__doc__, seed=0, runs=60)
    parser.add_argument("--draws", type=int, default=10_000)
    given = parser.parse_args(argv)
    tables = {"intervals": interval_rows(given.draws), "decision": decision_rows(given.seed, given.runs)}
    page.publish({mark: rows for mark, rows in tables.items() if given.only in mark}, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
