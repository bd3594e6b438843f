"""Whether `gate power` is right: what it says of records, beside what independent worlds with the same rates show.

    python -m benchmarks.power [RUNS]

Ten suites of known rates are run five times a case; `gate power` sees these trials alone. The truth is simulated with
other seeds and `benchmarks.simulate`'s own driver.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from random import Random
from statistics import fmean

from benchmarks.simulate import SUITES, _rates
from gate.decision.engine.rule import follow
from gate.decision.engine.state import Config, Metric, Row, State
from gate.decision.power import Design, Rates, power_of
from gate.model import Side
from gate.statistics.intervals import wilson

CONFIGURATIONS = (
    ("typical", 20, 5, 0.2),
    ("stable", 30, 1, 0.15),
    ("flaky", 30, 15, 0.2),
    ("typical", 30, 5, 0.15),
    ("typical", 50, 3, 0.1),
    ("typical", 100, 1, 0.1),
    ("typical", 100, 5, 0.05),
    ("flaky", 100, 5, 0.08),
    ("stable", 200, 5, 0.02),
    ("typical", 300, 15, 0.03),
)
"""Suite, cases, stored trials a case, and the drop that is asked for."""


def truth(rates: list[float], stored: int, drop: float, runs: int, seed: int) -> int:
    """How often the drop is found among worlds with these rates."""
    found = 0
    mean = fmean(rates)
    ids = [f"c{i:04d}" for i in range(len(rates))]
    before = dict(zip(ids, rates, strict=True))
    now = {c: max(0.0, p * (1 - drop / mean)) for c, p in before.items()}
    for number in range(runs):
        rng = Random(f"truth {seed} {number}")

        def run(side: Side, cases: Iterable[str], n: int, rng: Random = rng) -> dict[str, list[Row]]:
            held = now if side is Side.CANDIDATE else before
            return {c: [[float(rng.random() < held[c])] for _ in range(n)] for c in cases}

        state = State((Metric("success", "binary"),), run(Side.BASELINE, ids, stored), (), Config(), number)
        found += follow(state, run)[0].verdict == "REGRESSION"
    return found


def main(runs: int = 200) -> None:
    print("suite    N    kb  drop   gate power          independent worlds   difference")
    for seed, (suite, cases, stored, drop) in enumerate(CONFIGURATIONS):
        rng = Random(f"rates {seed}")
        rates = _rates(SUITES[suite], cases, rng)
        seen = Rates(tuple((sum(rng.random() < p for _ in range(5)), 5) for p in rates))
        said = power_of(seen, Design(cases, stored), runs=runs // 4, seed=seed).curve.at(drop, runs)
        found = truth(rates, stored, drop, runs, seed)
        low, high = wilson(found, runs)
        print(
            f"{suite:8} {cases:<4} {stored:<3} {drop:<6} {said.share:.2f} [{said.low:.2f}, {said.high:.2f}]   "
            f"{found / runs:.2f} [{low:.2f}, {high:.2f}]   {said.share - found / runs:+.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
