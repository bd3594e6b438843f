"""A check of `gate prove`: its claims about recorded agents beside fresh changes of the same agents.

    python benchmarks/prove.py [--runs 2000] [--changes 50] [--write docs/dev/evidence/decision.md]

Ten recorded agents, on twenty of their tasks each. What was recorded of an agent is taken for the truth of it: each
task passes as often as it did. `gate prove` sees five trials a task of twenty such records, and draws `--changes` from
each; beside it stand `--runs` changes whose stored trials and own ones are drawn from the truth. The threshold takes
no run of the rule, so it always has a hundred records and 10,000 changes on both sides, drawn alike. Seven are coding
agents (terminal-bench); two are the airline agent (tau-bench, MIT), by its reward and by its calls; the last is
the support agent in `examples/`.
"""

from __future__ import annotations

import sys
from argparse import Namespace
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
from gate.decision.outcomes import outcomes_by_case
from gate.insight.power import Drawn
from gate.insight.prove import BLOCKS, Source, _change, is_below, prove, source_of, threshold_of
from gate.model import Case, Criterion, Scale, Score, Trial
from gate.records import cases_of, read_record

RIGHT = Criterion("right", "right", Scale.BINARY, pass_threshold=0.5)
TASKS, STORED, RECORDS = 20, 5, 20
SINGLE, SINGLE_RECORDS = 10_000, 100
"""Changes and records for the threshold."""
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


def drawn_of(rates: Sequence[float]) -> list[Drawn]:
    return [Drawn(index, rate) for index, rate in enumerate(rates)]


def blocked(rates: Sequence[float], seed: int) -> bool:
    """Return whether the gate blocks one unchanged change."""
    rng = Random(f"fresh {seed}")
    known = source(rates, rng)
    _, verdict, _ = _change(known, SETTINGS, drawn_of(rates), rng)
    return verdict in BLOCKS


def missed(rates: Sequence[float], seed: int) -> bool:
    """Return whether one run of each task misses a threshold that another record set."""
    rng = Random(f"single {seed}")
    stored = [fmean(rng.random() < rate for _ in range(STORED)) for rate in rates]
    return is_below(fmean(rng.random() < rate for rate in rates), threshold_of(fmean(stored)))


def said(rates: Sequence[float], changes: int, record: int) -> float:
    """Return what `gate prove` says of the gate by one record."""
    known = source(rates, Random(f"record {record}"))
    return prove("agent", known, SETTINGS, changes=changes, seed=record).blocked.share


def said_of_threshold(rates: Sequence[float], record: int) -> float:
    """Return what `gate prove` says of the threshold by one record."""
    known = source(rates, Random(f"record {record}"))
    rng = Random(f"threshold {record}")
    drawn = [[one.rate for one in known.suite.draw(rng, len(rates))] for _ in range(SINGLE // SINGLE_RECORDS)]
    return fmean(missed(one, 1000 * record + number) for number, one in enumerate(drawn))


def table(pool: ProcessPoolExecutor, given: Namespace) -> Iterator[str]:
    columns = ["passes", "the gate: `gate prove`", "fresh changes"]
    columns += ["one run, a threshold: `gate prove`", "fresh changes"]
    yield from page.head("agent", columns)
    apart: list[tuple[float, float]] = []
    for name, rates in agents(given.data).items():
        if given.only not in name:
            continue
        gate = fmean(pool.map(partial(said, rates, given.changes), range(RECORDS)))
        fresh = sum(pool.map(partial(blocked, rates), range(given.runs), chunksize=20))
        single = fmean(pool.map(partial(said_of_threshold, rates), range(SINGLE_RECORDS)))
        fresh_single = sum(pool.map(partial(missed, rates), range(SINGLE), chunksize=500))
        cells = [f"{fmean(rates):.2f}", f"{gate:.3f}", page.share(fresh, given.runs)]
        cells += [f"{single:.3f}", page.share(fresh_single, SINGLE)]
        apart.append((gate - fresh / given.runs, single - fresh_single / SINGLE))
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""
    within = [sum(abs(one[side]) <= 0.02 for one in apart) for side in (0, 1)]
    most = [max((abs(one[side]) for one in apart), default=0.0) for side in (0, 1)]
    records = f"{RECORDS} records and {RECORDS * given.changes} changes of theirs an agent"
    ours = f"the gate in {within[0]} of {len(apart)} (at most {most[0]:.3f} apart)"
    yield f"{records}. Within .02: {ours}, the threshold in {within[1]} (at most {most[1]:.3f})."


def main(argv: Sequence[str] | None = None) -> int:
    parser = page.parser(__doc__, runs=2000, seed=0)
    parser.add_argument("--data", type=Path, default=SHARED, help="Folder of the recorded trials.")
    parser.add_argument("--changes", type=int, default=50, help="Of each record.")
    given = parser.parse_args(argv)
    if not read(given.data):
        print(f"no recorded trials in {given.data}")
        return 0
    with ProcessPoolExecutor(given.processes) as pool:
        page.publish({"prove": table(pool, given)}, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
