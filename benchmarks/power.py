"""A check of `gate power`: its answers about a record, beside independent changes of the same agent.

    python benchmarks/power.py [--runs 400] [--records 10] [--simulations 40] [--only TEXT]
        [--write docs/dev/evidence/decision.md]
    python benchmarks/power.py --seconds [--write docs/dev/evidence/decision.md]

Ten suites of known rates are run five times a case, `--records` times over; `gate power` sees the trials of one such
record alone. The truth is `--runs` changes with other seeds, drawn from the true rates and not from what trials say.
With `--seconds`, the command as users call it, on records of typical suites: processor time, and the wall beside it.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent))
import page
import run as bench
from simulate import MATCH, SUITES, Agent, World, _rates

from gate.decision.engine.rule import follow
from gate.decision.engine.state import Config, Metric, State
from gate.decision.power import Rates
from gate.insight.power import Design, KnownSuite, Scores, power_of
from gate.model import Side
from gate.statistics.intervals import mean_interval, wilson

PLAIN = Config()


@dataclass(frozen=True)
class Configuration:
    """A suite, how it is decided, and the drop that is asked for."""

    suite: str
    cases: int
    stored: int
    drop: float
    config: Config = PLAIN
    criteria: int = 0
    """Criteria beside success: what an answer is scored, which the change leaves alone."""

    @property
    def name(self) -> str:
        base = ", base can be run" if self.config.rerun == "match" else ""
        beside = f", {self.criteria} criteria beside success" if self.criteria else ""
        return f"{self.suite}, N = {self.cases}, kb = {self.stored}, −{100 * self.drop:g} points{base}{beside}"


CONFIGURATIONS = (
    Configuration("typical", 20, 5, 0.2),
    Configuration("stable", 30, 1, 0.15),
    Configuration("flaky", 30, 15, 0.2),
    Configuration("typical", 30, 5, 0.15, criteria=2),
    Configuration("typical", 50, 3, 0.1, MATCH),
    Configuration("typical", 100, 1, 0.1),
    Configuration("typical", 100, 5, 0.05),
    Configuration("flaky", 100, 5, 0.08),
    Configuration("stable", 200, 5, 0.02),
    Configuration("typical", 300, 15, 0.03),
)
EXTRA = (Metric("rouge", "bounded"), Metric("steps", "bounded"), Metric("rubric", "bounded"))


class Known:
    """An agent of known rates, whose answers are scored, too: a little lower where they fail."""

    def __init__(self, asked: Configuration, seed: int) -> None:
        rng = Random(f"rates {seed}")
        self.asked = asked
        self.rates = _rates(SUITES[asked.suite], asked.cases, rng)
        self.levels = [[rng.uniform(0.4, 0.8) for _ in range(asked.criteria)] for _ in self.rates]
        self.metrics = (Metric("success", "binary"), *EXTRA[: asked.criteria])

    def trial(self, rng: Random, case: int, rate: float) -> list[float]:
        passes = rng.random() < rate
        scored = (rng.gauss(level - 0.1 * (not passes), 0.12) for level in self.levels[case])
        return [float(passes), *(min(1.0, max(0.0, value)) for value in scored)]

    def recorded(self, rng: Random) -> KnownSuite:
        """Return the counts of a record with five trials a case."""
        rows = [[self.trial(rng, case, rate) for _ in range(5)] for case, rate in enumerate(self.rates)]
        counts = tuple((int(sum(row[0] for row in trials)), len(trials)) for trials in rows)
        if not self.asked.criteria:
            return KnownSuite(Rates(counts))
        passing, failing = (
            tuple(tuple(row[1:] for row in trials if row[0] == side) for trials in rows) for side in (1.0, 0.0)
        )
        return KnownSuite(Rates(counts), Scores(self.metrics[1:], passing, failing))


class Changed(Agent):
    """Both sides of a change of a known agent."""

    def __init__(self, known: Known, rng: Random) -> None:
        asked = known.asked
        super().__init__(World("", cases=asked.cases, baseline=asked.stored, drop=asked.drop), rng)
        self.known, mean = known, fmean(known.rates)
        self.stored = dict(zip(self.ids, known.rates, strict=True))
        now = {case: max(0.0, p * (1 - asked.drop / mean)) for case, p in self.stored.items()}
        self.rates = {Side.CANDIDATE: now, Side.BASELINE: self.stored}

    def trial(self, case: str, rate: float, _: Mapping[str, float]) -> list[float]:
        return self.known.trial(self.rng, int(case[1:]), rate)


def found(known: Known, seed: int) -> bool:
    """True if one change is found."""
    agent = Changed(known, Random(f"truth {known.asked.name} {seed}"))
    state = State(known.metrics, agent.baseline(), (), known.asked.config, seed)
    return follow(state, agent.run)[0].verdict == "REGRESSION"


def said(known: Known, simulations: int | None, record: int) -> float:
    """Return the power for this drop by `gate power`, which sees one record."""
    asked = known.asked
    design = Design(asked.cases, asked.stored, asked.config)
    power = power_of(known.recorded(Random(f"record {record}")), design, runs=simulations, seed=record)
    return power.curve.at(asked.drop, power.runs).share


def table(pool: ProcessPoolExecutor, given: Namespace) -> Iterator[str]:
    yield "| suite | `gate power`, on average | of single records | independent changes | difference |"
    yield "|---|---|---|---|---|"
    differences = []
    for seed, asked in enumerate(CONFIGURATIONS):
        if given.only not in asked.name:
            continue
        known = Known(asked, seed)
        claims = pool.map(partial(said, known, given.simulations or None), range(given.records))
        count = sum(pool.map(partial(found, known), range(given.runs), chunksize=20))
        shares, true = list(claims), count / given.runs
        (low, high), (least, most) = wilson(count, given.runs), mean_interval(shares)
        least, most = max(0.0, least), min(1.0, most)
        differences.append(fmean(shares) - true)
        yield (
            f"| {asked.name} | {fmean(shares):.2f} ({least:.2f}–{most:.2f}) | {min(shares):.2f}–{max(shares):.2f} "
            f"| {true:.2f} ({low:.2f}–{high:.2f}) | {differences[-1]:+.3f} |"
        )
    within = sum(abs(difference) <= 0.05 for difference in differences)
    yield ""
    yield (
        f"{given.records} records a suite, {given.runs} independent changes. On average over the records within .05: "
        f"{within} of {len(differences)}; {fmean(map(abs, differences)):.3f} apart."
    )


AGENT = """\
from random import Random

RATES = {rates!r}


def answer(message):
    number = int(message.split()[-1])
    return f"found {{message}}" if Random(f"{{number}}").random() < RATES[number] else "no idea at all"
"""
CONFIG = 'suite: suite.json\nagent: {python: "agent:answer"}\ncriteria: {response_match_score: 0.6}\n'


def project(folder: Path, cases: int) -> None:
    """Write a typical suite with a record of one run."""
    rates = _rates(SUITES["typical"], cases, Random(cases))
    listed = [{"id": f"c{n}", "input": f"item {n}", "response": f"found item {n}"} for n in range(cases)]
    (folder / "suite.json").write_text(json.dumps({"cases": listed}))
    (folder / "agent.py").write_text(AGENT.format(rates=rates))
    (folder / "gate.yaml").write_text(CONFIG)
    bench.timed(bench.gate("run", "--quiet", "--record", "record.jsonl"), folder=folder)


def seconds() -> Iterator[str]:
    yield from page.head("cases of a typical suite, five stored trials each", ["processor time", "wall"])
    for cases in (10, 30, 100):
        with TemporaryDirectory() as name:
            project(Path(name), cases)
            used = bench.timed(bench.gate("power", "record.jsonl"), folder=Path(name))
        assert used.code == 0, f"gate power ended with {used.code}"
        yield f"| {cases} | {used.cpu:.1f} s | {used.wall:.1f} s |"
    yield ""
    yield f"The load average was {os.getloadavg()[0]:.1f} at the end, on {os.cpu_count()} cores."


def main(argv: Sequence[str] | None = None) -> int:
    parser = page.parser(__doc__, runs=400, seed=0)
    parser.add_argument("--records", type=int, default=10, help="Of each suite, at least two.")
    parser.add_argument("--simulations", type=int, default=40, help="Of each kind of change; 0: the command's default.")
    parser.add_argument("--seconds", action="store_true", help="Measure how long the command takes, and nothing else.")
    given = parser.parse_args(argv)
    if given.seconds:
        page.publish({"seconds": seconds()}, given.write)
        return 0
    with ProcessPoolExecutor(given.processes) as pool:
        page.publish({"power": table(pool, given)}, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
