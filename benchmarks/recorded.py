"""Real noise: recorded trials of real agents against each other, judged by our rule and by other gates.

    python benchmarks/recorded.py [--only agents|noise|damage] [--ours] [--write docs/dev/evidence/decision.md]

The trials are recorded, so everybody has one look and no reruns. Eight agents: seven coding agents on 80 tasks with
five trials each (terminal-bench), and one airline agent on 50 tasks with four (tau-bench, MIT). The airline agent is
damaged, too: some tasks lose their first tool.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import combinations, permutations
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parent))
from functools import partial
from random import Random

import others
import page
from rules import blocked
from simulate import SUCCESS, Answer, simulate

from gate.decision import Comparison, Settings, verdict_on
from gate.decision.engine.rule import decide, follow
from gate.decision.engine.state import Config, Round, Row, State
from gate.model import Case, Criterion, Outcome, Scale, Score, Side, SuiteResult, Trial

SHARED = Path(os.environ.get("GATE_SHARED_DATA") or Path(__file__).parents[2] / "shared" / "data")
AIRLINE, TERMINAL = "tau-bench/gpt-4o-airline.json", "terminal-bench/seven-agents.jsonl.gz"
CRITERION = Criterion("reward", "reward", Scale.BINARY, pass_threshold=0.5)
ALPHA = 0.02
Agent = Mapping[str, Sequence[float]]
"""Task → whether each of its recorded trials earned the reward."""


def read(folder: Path) -> dict[str, Agent]:
    """The recorded agents, those that are there."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    if (folder / TERMINAL).exists():
        for line in gzip.decompress((folder / TERMINAL).read_bytes()).decode().splitlines():
            row = json.loads(line)
            tasks = found.setdefault(f"{row['agent']}, {row['model']}", {})
            tasks.setdefault(row["task"], {})[row["trial"]] = float(row["reward"])
    if (folder / AIRLINE).exists():
        for row in json.loads((folder / AIRLINE).read_text(encoding="utf-8")):
            tasks = found.setdefault("airline, gpt-4o", {})
            tasks.setdefault(f"task-{row['task_id']:02d}", {})[row["trial"]] = float(row["reward"])
    return {
        agent: {task: [trials[n] for n in sorted(trials)] for task, trials in sorted(tasks.items())}
        for agent, tasks in found.items()
    }


@dataclass(frozen=True)
class Pair:
    """One comparison of stored with new trials, of tasks in the same order."""

    kind: str
    label: str
    before: Sequence[Sequence[float]]
    now: Sequence[Sequence[float]]

    @property
    def change(self) -> float:
        return 100 * (fmean(map(fmean, self.now)) - fmean(map(fmean, self.before)))


SAME = "the same agent"
WORSE, SLIGHTLY, BETTER = (
    "another agent, ≥ 5 points worse",
    "another agent, less worse",
    "another agent, as good or better",
)


def pairs(agents: Mapping[str, Agent]) -> Iterator[Pair]:
    """Every split of one agent's trials into 2 and 3 (or 2 and 2), both ways; and any two agents, all their trials."""
    for name, tasks in agents.items():
        trials = range(min(map(len, tasks.values())))
        for size in sorted({len(trials) // 2, len(trials) - len(trials) // 2}):
            for chosen in combinations(trials, size):
                rest = [n for n in trials if n not in chosen]
                before, now = ([[t[n] for n in part] for t in tasks.values()] for part in (chosen, rest))
                yield Pair(SAME, name, before, now)
    for (one, tasks), (other, theirs) in permutations(agents.items(), 2):
        if tasks.keys() == theirs.keys():
            found = Pair("", f"{one} → {other}", list(tasks.values()), list(theirs.values()))
            kind = BETTER if found.change >= 0 else WORSE if found.change <= -5 else SLIGHTLY
            yield Pair(kind, found.label, found.before, found.now)


def judge(pair: Pair) -> SuiteResult:
    """Our verdict on the recorded trials."""

    def trials(side: Sequence[Sequence[float]]) -> list[Trial]:
        return [
            Trial(f"task-{case:02d}", n, scores={CRITERION.name: Score(value)})
            for case, values in enumerate(side)
            for n, value in enumerate(values, 1)
        ]

    cases = [Case(f"task-{n:02d}", ()) for n in range(len(pair.now))]
    settings = Settings(alpha=ALPHA, confirm_after=None)
    return verdict_on(Comparison(cases, [CRITERION], trials(pair.now), trials(pair.before), settings))


def ours(pair: Pair) -> str:
    found = judge(pair)
    blocked = found.verdict.value not in ("pass", "inconclusive")
    if blocked and found.trade is not None:
        return "trade"
    return "blocked" if blocked else found.verdict.value


# --- the table ------------------------------------------------------------------------------------


def counted(count: int, n: int) -> str:
    return f"{count} of {n}, {page.share(count, n)}"


def table(pool: ProcessPoolExecutor, agents: Mapping[str, Agent], peers: Path | None) -> Iterator[str]:
    compared = list(pairs(agents))
    said = {"Agent Gate": list(pool.map(ours, compared, chunksize=8))}
    asked = [(pair.before, pair.now) for pair in compared]
    for name in others.GATES if peers else ():
        answers = others.ask(name, asked, ALPHA, peers or Path())
        if answers is None:
            yield f"{name} does not install here."
            yield ""
        else:
            said[name] = answers
    yield "| gate | compared | blocked | of these a trade | inconclusive |"
    yield "|---|---|---|---|---|"
    for kind in (SAME, WORSE, SLIGHTLY, BETTER):
        for name, answers in said.items():
            counts = Counter(a for a, pair in zip(answers, compared, strict=True) if pair.kind == kind)
            n, trades = counts.total(), counts["trade"]
            if n:
                cells = [counted(counts["blocked"] + trades, n), str(trades or "–"), counted(counts["inconclusive"], n)]
                yield f"| {name} | {kind} | {' | '.join(cells)} |"


def by_agent(agents: Mapping[str, Agent]) -> Iterator[str]:
    yield "| agent | tasks never passed | always | passed of all trials | the same agent blocked | inconclusive |"
    yield "|---|---|---|---|---|---|"
    for name, tasks in agents.items():
        rates = [fmean(trials) for trials in tasks.values()]
        said = Counter(ours(pair) for pair in pairs({name: tasks}))
        never, always = sum(rate == 0 for rate in rates), sum(rate == 1 for rate in rates)
        yield (
            f"| {name} | {never} of {len(rates)} | {always} | {fmean(rates):.2f} "
            f"| {said['blocked'] + said['trade']} of {said.total()} | {said['inconclusive']} |"
        )


# --- the airline agent, damaged -------------------------------------------------------------------

SPLITS = tuple(combinations(range(4), 2))


@dataclass(frozen=True)
class Recorded:
    """Per task: whether each trial made the expected calls in order; the same without the first expected tool."""

    whole: Mapping[str, Sequence[float]]
    without: Mapping[str, Sequence[float]]
    damageable: Sequence[str]
    """Tasks that expect a call."""


def read_damage(folder: Path) -> Recorded:
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
    step = decide(State((SUCCESS,), stored, rounds, Config(can_run=False), seed))
    assert isinstance(step, Outcome)
    return Answer(step.verdict, 2)


def play_resampled(data: Recorded, damaged: int, seed: int) -> Answer:
    """The same from the tasks' own rates: five baseline trials, and the rule asks for what it wants."""
    rng = Random(f"airline:{damaged}:{seed}")
    down = set(rng.sample(data.damageable, damaged))
    before = {t: fmean(v) for t, v in data.whole.items()}
    now = {t: fmean(data.without[t]) if t in down else rate for t, rate in before.items()}
    stored = {t: [[float(rng.random() < rate)] for _ in range(5)] for t, rate in before.items()}

    def run(_: Side, cases: Sequence[str], n: int) -> Mapping[str, Sequence[Row]]:
        return {t: [[float(rng.random() < now[t])] for _ in range(n)] for t in cases}

    outcome, runs = follow(State((SUCCESS,), stored, (), Config(), seed), run)
    wrong = sum(now[t] >= before[t] for t in outcome.cases)
    return Answer(outcome.verdict, runs / len(before), len(outcome.cases), wrong)


def damage_table(pool: ProcessPoolExecutor, runs: int, folder: Path) -> Iterator[str]:
    if not (folder / AIRLINE).exists():
        return
    data = read_damage(folder)
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
        cells = [f"{blocked(c)}, n = {len(c.answers)}" for c in (once, live)]
        yield f"| {damaged} | {cells[0]} | {cells[1]} | {live.runs:.2f} |"


def main(argv: Sequence[str] | None = None) -> int:
    parser = page.parser(__doc__, runs=1000, seed=0)
    parser.add_argument("--data", type=Path, default=SHARED, help="Folder of the recorded trials.")
    parser.add_argument("--peers", type=Path, default=others.FOLDER, help="Where the other gates' environments are.")
    parser.add_argument("--ours", action="store_true", help="Without the other gates.")
    given = parser.parse_args(argv)
    agents = read(given.data)
    if not agents:
        print(f"no recorded trials in {given.data}")
        return 0
    with ProcessPoolExecutor(given.processes) as pool:
        sections = {
            "agents": by_agent(agents),
            "noise": table(pool, agents, None if given.ours else given.peers),
            "damage": damage_table(pool, given.runs, given.data),
        }
        page.publish({name: lines for name, lines in sections.items() if given.only in name}, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
