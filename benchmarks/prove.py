"""Whether `gate prove` is right: what it says of recorded agents, beside fresh changes of the same agents.

    python benchmarks/prove.py [--runs 2000] [--write docs/dev/evidence/decision.md]

Ten recorded agents, on twenty of their tasks each. What was recorded of an agent is taken for the truth of it: each
task passes as often as it did. `gate prove` sees five trials a task of twenty such records, and draws 50 changes from
each; beside it stand `--runs` changes whose stored trials and own ones are drawn from the truth. Seven are coding
agents (terminal-bench); two are the airline agent (tau-bench, MIT), by its reward and by its calls; the last is the
support agent in `examples/`.
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
from recorded import SHARED, read, read_damage

from gate.baselines.pairing import as_baseline
from gate.decision import Settings
from gate.decision.power import Drawn, outcomes_by_case
from gate.insight.prove import BLOCKS, Source, _change, _first, is_below, pass_rate, prove, source_of, threshold_of
from gate.model import Case, Criterion, Scale, Score, Trial
from gate.records import cases_of, read_record

RIGHT = Criterion("right", "right", Scale.BINARY, pass_threshold=0.5)
TASKS, STORED, RECORDS, CHANGES = 20, 5, 20, 50
SETTINGS = Settings()
EXAMPLE = Path(__file__).parents[1] / "examples" / "support-agent" / "baselines"


def agents(folder: Path) -> Mapping[str, Sequence[float]]:
    """Return how often each of twenty tasks passed, by agent."""
    found = {name: [fmean(trials) for trials in tasks.values()] for name, tasks in read(folder).items()}
    found["airline, by its calls"] = [fmean(trials) for trials in read_damage(folder).whole.values()]
    [path] = EXAMPLE.rglob("*.jsonl")
    record = read_record(path)
    cases = {case.id: case for case in cases_of(record.header)}
    outcomes = outcomes_by_case(as_baseline(record).trials, record.header.criteria, cases)
    found["support agent"] = [fmean(passed) for passed in outcomes.values()]
    return {name: rates[:: max(1, len(rates) // TASKS)][:TASKS] for name, rates in found.items()}


def source(rates: Sequence[float], rng: Random) -> Source:
    """Return a record of an agent: five trials a task."""
    cases = [Case(f"task-{number:02d}", ()) for number in range(len(rates))]
    trials = [
        Trial(case.id, number, scores={RIGHT.name: Score(float(rng.random() < rate))})
        for case, rate in zip(cases, rates, strict=True)
        for number in range(1, STORED + 1)
    ]
    return source_of(cases, [RIGHT], trials)


def fresh(rates: Sequence[float], seed: int) -> tuple[bool, bool]:
    """Return whether one unchanged change is blocked by the gate, and by one run against a threshold."""
    rng = Random(f"fresh {seed}")
    known = source(rates, rng)
    drawn = [Drawn(index, rate) for index, rate in enumerate(rates)]
    stored, result, trials = _change(known, SETTINGS, drawn, rng)
    single = is_below(pass_rate(known, _first(trials)), threshold_of(pass_rate(known, stored)))
    return result.verdict in BLOCKS, single


def said(rates: Sequence[float], record: int) -> tuple[float, float]:
    """Return what `gate prove` says by one record."""
    proof = prove("agent", source(rates, Random(f"record {record}")), SETTINGS, changes=CHANGES, seed=record)
    return proof.blocked.share, proof.single.share


def table(pool: ProcessPoolExecutor, runs: int, folder: Path, only: str) -> Iterator[str]:
    columns = [
        "passes",
        "the gate: `gate prove`",
        "fresh changes",
        "one run, a threshold: `gate prove`",
        "fresh changes",
    ]
    yield from page.head(f"agent ({runs} fresh changes)", columns)
    apart: list[tuple[float, float]] = []
    for name, rates in agents(folder).items():
        if only not in name:
            continue
        claims = list(pool.map(partial(said, rates), range(RECORDS)))
        found = list(pool.map(partial(fresh, rates), range(runs), chunksize=20))
        cells = [f"{fmean(rates):.2f}"]
        for side in (0, 1):
            claim, count = fmean(one[side] for one in claims), sum(one[side] for one in found)
            cells += [f"{claim:.3f}", page.share(count, runs)]
        apart.append(
            (
                fmean(one[0] for one in claims) - fmean(one[0] for one in found),
                fmean(one[1] for one in claims) - fmean(one[1] for one in found),
            )
        )
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""
    within = [sum(abs(one[side]) <= 0.02 for one in apart) for side in (0, 1)]
    most = [max((abs(one[side]) for one in apart), default=0.0) for side in (0, 1)]
    yield (
        f"Within .02: the gate in {within[0]} of {len(apart)} (at most {most[0]:.3f} apart), "
        f"the threshold in {within[1]} (at most {most[1]:.3f})."
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = page.parser(__doc__, runs=2000, seed=0)
    parser.add_argument("--data", type=Path, default=SHARED, help="Folder of the recorded trials.")
    given = parser.parse_args(argv)
    if not read(given.data):
        print(f"no recorded trials in {given.data}")
        return 0
    with ProcessPoolExecutor(given.processes) as pool:
        page.publish({"prove": table(pool, given.runs, given.data, given.only)}, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
