"""The assumptions that the error rate rests on, each broken in turn: luck, drift, sessions, repeats, many suites.

    python benchmarks/assumptions.py [--runs 400] [--only TEXT] [--write docs/dev/evidence/decision.md]

All agents are unchanged unless a row says otherwise, so that whatever is blocked is a false alarm. A row that is held
to a target has all the runs, others a quarter.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parent))
import page
from msgspec.structs import replace
from simulate import BREAKABLE, SUCCESS, SUITES, Answer, Cell, World, _rates, play, simulate

from gate.decision import Comparison, Request, Settings, next_step
from gate.decision.engine.rule import follow
from gate.decision.engine.state import Config, Row, State
from gate.histories.moves import newest_move
from gate.model import FULL, Case, Criterion, Scale, Score, Side, Trial, Verdict

Trials = Mapping[str, Sequence[Row]]
MATCH = Config(rerun="match")


def ids(cases: int) -> list[str]:
    return [f"c{n:04d}" for n in range(cases)]


def drawn(rng: Random, rates: Mapping[str, float], cases: Sequence[str], n: int) -> Trials:
    """Independent trials."""
    return {c: [[float(rng.random() < rates[c])] for _ in range(n)] for c in cases}


def typical(rng: Random, cases: int) -> dict[str, float]:
    return dict(zip(ids(cases), _rates(SUITES["typical"], cases, rng), strict=True))


def lower(rates: Mapping[str, float], drop: float) -> dict[str, float]:
    """The rates, so much lower on average, each in proportion."""
    mean = fmean(rates.values())
    return {c: p * (1 - drop / mean) for c, p in rates.items()}


def unchanged(rng: Random, rates: Mapping[str, float], stored: Trials, config: Config, seed: int) -> Answer:
    """One change that changes nothing, against trials that are stored."""
    outcome, runs = follow(State((SUCCESS,), stored, (), config, seed), lambda _, c, n: drawn(rng, rates, c, n))
    return Answer(outcome.verdict, runs / len(rates))


# --- trials that repeat each other ----------------------------------------------------------------

CRITERION = Criterion("answer", "response_match_score", Scale.UNIT, pass_threshold=0.5)
Answering = Callable[[str, str, Side], tuple[bool, str]]
"""Case, job and side → whether the next answer is right, and its digest."""


def recorded(cases: int, config: Settings, answer: Answering, seed: int) -> Answer:
    """A change against five trials a case that one job stored, decided as records are, answers and all."""
    listed = [Case(c, ()) for c in ids(cases)]
    numbers: Counter[tuple[str, str, Side]] = Counter()

    def run(case: str, job: str, side: Side, tag: str) -> Trial:
        numbers[case, job, side] += 1
        right, digest = answer(case, job, side)
        score = {CRITERION.name: Score(float(right))}
        stored = job if job == STORED else ""
        return Trial(case, numbers[case, job, side], 1, tag, side, scores=score, answer=digest, run=stored)

    stored = [run(c, STORED, Side.CANDIDATE, FULL) for _ in range(5) for c in ids(cases)]
    trials: list[Trial] = []
    known = Comparison(listed, [CRITERION], trials, stored, config, seed=seed)

    def ran(r: Request) -> list[Trial]:
        return [run(c, "now", r.side, r.tag) for c in r.cases for _ in range(r.n)]

    return decided(known, trials, ran)


def decided(known: Comparison, trials: list[Trial], run: Callable[[Request], list[Trial]]) -> Answer:
    """``trials``: the list that ``known`` holds, which grows with what is run."""
    while not isinstance(step := next_step(known), Verdict):
        trials += [replace(trial, round=step.round) for request in step.requests for trial in run(request)]
    verdicts = {"pass": "PASS", "regressed": "REGRESSION", "inconclusive": "INCONCLUSIVE"}
    return Answer(verdicts.get(step.value, step.name), len(trials) / len(known.cases))


STORED = "stored"


def frozen(cases: int, cached: float, seed: int) -> Answer:
    """Every job has a cache that gives a case's first answer again, for this share of the cases."""
    rng = Random(f"frozen:{cases}:{cached}:{seed}")
    rates = typical(rng, cases)
    held = {c for c in rates if rng.random() < cached}
    first: dict[tuple[str, str], tuple[bool, str]] = {}

    def answer(case: str, job: str, _: Side) -> tuple[bool, str]:
        right = rng.random() < rates[case]
        drawn = right, f"{right} {rng.randrange(10**6)}"
        return first.setdefault((case, job), drawn) if case in held else drawn

    return recorded(cases, Settings(), answer, seed)


def deterministic(cases: int, broken: int, seed: int) -> Answer:
    """An agent that always says the same of a case; some cases break."""
    rng = Random(f"deterministic:{cases}:{seed}")
    right = {c: rng.random() < 0.9 for c in ids(cases)}
    down = set(rng.sample([c for c in right if right[c]], broken))

    def answer(case: str, job: str, side: Side) -> tuple[bool, str]:
        lost = job != STORED and side is Side.CANDIDATE and case in down
        return right[case] and not lost, f"{case} {lost}"

    return recorded(cases, Settings(), answer, seed)


def same_words(cases: int, broken: int, seed: int) -> Answer:
    """An agent that draws anew each time, but has one wording where it is right, and few where it is wrong."""
    rng = Random(f"same words:{cases}:{broken}:{seed}")
    rates = typical(rng, cases)
    down = set(rng.sample([c for c in rates if rates[c] >= BREAKABLE], broken))

    def answer(case: str, job: str, side: Side) -> tuple[bool, str]:
        lost = job != STORED and side is Side.CANDIDATE and case in down
        right = not lost and rng.random() < rates[case]
        return right, f"{case} {right} {0 if right else rng.randrange(3)}"

    return recorded(cases, Settings(), answer, seed)


# --- several suites in one job --------------------------------------------------------------------


def job(suites: int, broken: int, seed: int) -> Answer:
    """A job of several suites, which share its error budget: blocked if any of them is, green only if all are."""
    config = Config(alpha=Settings(comparisons=suites).own_alpha)
    worlds = [World(f"job of {suites}: {n}", broken=broken if n == 0 else 0, config=config) for n in range(suites)]
    said = [play(world, seed) for world in worlds]
    verdicts = [answer.verdict for answer in said]
    worst = next((v for v in ("REGRESSION", "INCONCLUSIVE") if v in verdicts), "PASS")
    return Answer(worst, fmean(answer.runs_per_case for answer in said))


# --- one baseline, many changes -------------------------------------------------------------------

CHANGES = 40


def by_baseline(kb: int, seed: int) -> float:
    """The share of unchanged changes that one stored baseline blocks."""
    rng = Random(f"baseline:{kb}:{seed}")
    rates = typical(rng, 100)
    stored = drawn(rng, rates, list(rates), kb)
    said = [unchanged(rng, rates, stored, Config(), n) for n in range(CHANGES)]
    return sum(a.verdict == "REGRESSION" for a in said) / CHANGES


def baselines_table(pool: ProcessPoolExecutor, runs: int, only: str) -> Iterator[str]:
    yield "| stored trials a case | baselines | blocked on average | block > 5 % of changes | > 10 % | most |"
    yield "|---|---|---|---|---|---|"
    for kb in (1, 5, 15):
        if only in f"kb = {kb}":
            shares = list(pool.map(partial(by_baseline, kb), range(runs)))
            more = [page.share(sum(s > limit for s in shares), len(shares), 2) for limit in (0.05, 0.10)]
            yield f"| {kb} | {runs} | {fmean(shares):.3f} | {more[0]} | {more[1]} | {max(shares):.3f} |"


# --- worlds that break an assumption --------------------------------------------------------------


def lucky(cases: int, config: Config, seed: int) -> Answer:
    """A baseline that was kept because it was perfect, of an agent that passes 97 % of the time."""
    rng = Random(f"lucky:{cases}:{config.rerun}:{seed}")
    rates = dict.fromkeys(ids(cases), 0.97)
    return unchanged(rng, rates, {c: [[1.0]] * 5 for c in rates}, config, seed)


def lucky_among(others: int, seed: int) -> Answer:
    """The same of 100 cases, pooled with further runs of that agent, which nobody chose."""
    rng = Random(f"lucky among:{others}:{seed}")
    rates = dict.fromkeys(ids(100), 0.97)
    rest = drawn(rng, rates, list(rates), 5 * others)
    return unchanged(rng, rates, {c: [[1.0]] * 5 + list(rest[c]) for c in rates}, Config(), seed)


def across_agents(others: int, config: Config, seed: int) -> Answer:
    """A baseline pooled with those of so many agents before, since which a merge broke one case of 100."""
    rng = Random(f"across agents:{others}:{seed}")
    before = typical(rng, 100)
    now = before | {rng.choice([c for c, p in before.items() if p >= BREAKABLE]): 0.0}
    old, new = drawn(rng, before, list(before), 5 * others), drawn(rng, now, list(now), 5)
    return unchanged(rng, now, {c: [*old[c], *new[c]] for c in now}, config, seed)


def wandering(spread: float, config: Config, seed: int) -> Answer:
    """Since the baseline was stored, the pass rate of every case moved by itself, on average by nothing."""
    rng = Random(f"wandering:{spread}:{config.rerun}:{seed}")
    before = typical(rng, 100)
    now = {c: min(1.0, max(0.0, p + rng.gauss(0, spread))) if 0 < p < 1 else p for c, p in before.items()}
    return unchanged(rng, now, drawn(rng, before, list(before), 5), config, seed)


NIGHTS_BEFORE = 5


def nights(drift: float, since: int, settings: Settings, seed: int) -> Answer:
    """The provider moved so many nights ago; a merge stored five trials a case, and each night since then added one.

    What is pooled, and what a drop has to show against, is worked out as for a change on any other day.
    """
    rng = Random(f"nights:{drift}:{since}:{seed}")
    before = typical(rng, 100)
    now = lower(before, drift)
    rates = [before] * (1 + NIGHTS_BEFORE) + [now] * since
    runs = [trials_of(drawn(rng, p, list(p), 5 if n == 0 else 1), f"run {n}") for n, p in enumerate(rates)]
    cases = [Case(c, ()) for c in now]
    found = newest_move(runs, {case.id: case for case in cases}, [CRITERION])
    kept = runs[found[1].run if found is not None else 0 :]
    stored, trials = [trial for run in kept for trial in run], list[Trial]()
    known = Comparison(
        cases, [CRITERION], trials, stored, settings, seed=seed, stored_runs=[run[0].run for run in kept]
    )
    return decided(known, trials, lambda r: trials_of(drawn(rng, now, r.cases, r.n), "", r.tag, r.side))


def trials_of(rows: Trials, run: str, tag: str = FULL, side: Side = Side.CANDIDATE) -> list[Trial]:
    """Return the part of them that a record holds."""
    scores = [(c, Score(row[0])) for c, drawn in rows.items() for row in drawn]
    return [Trial(c, n, 1, tag, side, scores={CRITERION.name: score}, run=run) for n, (c, score) in enumerate(scores)]


def sessions(correlation: float, config: Config, seed: int) -> Answer:
    """The trials of a case within one job share a mood: their outcomes correlate."""
    rng = Random(f"sessions:{correlation}:{seed}")
    rates = typical(rng, 100)

    def moods() -> dict[str, float]:
        k = 1 / correlation - 1
        return {c: rng.betavariate(p * k, (1 - p) * k) if 0 < p < 1 else p for c, p in rates.items()}

    return unchanged(rng, moods(), drawn(rng, moods(), list(rates), 5), config, seed)


CLUSTER, FIXTURE_DOWN = 5, 0.1


def fixtures(declared: bool, seed: int) -> Answer:
    """Five cases each share a fixture, which is down in one epoch of ten: then all five fail together."""
    rng = Random(f"fixtures:{declared}:{seed}")
    rates = typical(rng, 100)
    cluster = {c: f"f{n // CLUSTER}" for n, c in enumerate(rates)}

    def run(_: Side, cases: Sequence[str], n: int) -> Trials:
        down = [{f for f in dict.fromkeys(cluster.values()) if rng.random() < FIXTURE_DOWN} for _ in range(n)]
        return {c: [[float(cluster[c] not in now and rng.random() < rates[c])] for now in down] for c in cases}

    stored = run(Side.BASELINE, list(rates), 5)
    known = State((SUCCESS,), stored, (), Config(), seed, clusters=cluster if declared else {})
    outcome, runs = follow(known, run)
    return Answer(outcome.verdict, runs / len(rates))


def rows() -> Iterator[tuple[str, Callable[[int], Answer], str]]:
    for cases in (20, 50, 100):
        yield f"baseline kept for its luck, true .97, N = {cases}", partial(lucky, cases, Config()), ""
    yield "kept for its luck, N = 100, base can be run", partial(lucky, 100, MATCH), "≤ .05"
    for others in (1, 2, 4):
        name = f"kept for its luck, N = 100, pooled with {others} other run{'s' if others > 1 else ''} of the agent"
        yield name, partial(lucky_among, others), "≤ .05" if others == 4 else ""
    for others in (2, 4):
        name = f"pooled with {others} other agents, since which a merge broke one case"
        yield name, partial(across_agents, others, Config()), ""
        yield f"{name}, in looks at the suite alone", partial(across_agents, others, Config(exact_epochs=3)), ""
    for spread in (0.1, 0.2):
        yield f"every case drifts by itself, sd {spread}", partial(wandering, spread, Config()), ""
        yield f"the same, base can be run, sd {spread}", partial(wandering, spread, MATCH), ""
    for points, wanted in ((2, "≤ .02"), (4, "≤ .03")):
        for since in (0, 3, 7):
            when = f"{since} nights since" if since else "since last night"
            name = f"drift −{points} points, base cannot be run, {when}"
            yield name, partial(nights, points / 100, since, Settings()), wanted if since == 7 else ""
        name = f"drift −{points} points, base can be run, 3 nights since"
        yield name, partial(nights, points / 100, 3, Settings(rerun="match")), "≤ .065"
    for correlation in (0.05, 0.1, 0.2):
        yield f"trials of one job correlate, {correlation}", partial(sessions, correlation, Config()), ""

    yield "five cases each share a fixture", partial(fixtures, False), ""
    yield "the same, with `cluster:`", partial(fixtures, True), "≤ .02"
    for cases in (30, 100):
        yield f"every job caches its answers, N = {cases}", partial(frozen, cases, 1.0), "≤ .02"
    yield "every job caches half of its cases, N = 100", partial(frozen, 100, 0.5), "≤ .02"
    yield "deterministic, N = 100", partial(deterministic, 100, 0), "≤ .02"
    yield "**changed:** deterministic, one case of 100 broke", partial(deterministic, 100, 1), "≥ .99"
    yield "one wording of what is right, N = 100", partial(same_words, 100, 0), "≤ .02"
    yield "**changed:** one wording, one case of 100 broke", partial(same_words, 100, 1), "≥ .95"
    for suites in (1, 2, 5, 10):
        yield f"{suites} suites in one job", partial(job, suites, 0), "≤ .02"
    yield "**changed:** 5 suites in one job, one case of one broke", partial(job, 5, 1), ""


def worlds_table(pool: ProcessPoolExecutor, runs: int, seed: int, only: str) -> Iterator[str]:
    yield "| unchanged agent, and … | n | blocked | inconclusive | runs a case | wanted |"
    yield "|---|---|---|---|---|---|"
    for name, job, wanted in rows():
        if only in name:
            n = runs if wanted else max(1, runs // 4)
            cell: Cell = simulate(pool, job, n, seed)
            blocked = page.share(cell.blocked, n)
            yield f"| {name} | {n} | {blocked} | {cell.share('INCONCLUSIVE'):.3f} | {cell.runs:.2f} | {wanted} |"


# --- twenty small losses --------------------------------------------------------------------------

MERGES = 20


def creep(anchored: bool, seed: int) -> tuple[float, int]:
    """Points lost after twenty changes of −1 point that merge unless they are blocked, and how many were blocked."""
    rng = Random(f"creep:{anchored}:{seed}")
    rates = first = typical(rng, 100)
    anchor = stored = drawn(rng, rates, list(rates), 5)
    blocked = 0
    for n in range(MERGES):
        lost = lower(rates, 0.01)
        references = [stored, anchor] if anchored and n else [stored]
        config = Config(alpha=0.02 / len(references))
        said = [unchanged(rng, lost, reference, config, seed * MERGES + n).verdict for reference in references]
        if "REGRESSION" in said:
            blocked += 1
            continue
        rates, stored = lost, drawn(rng, lost, list(lost), 5)
    return 100 * (fmean(first.values()) - fmean(rates.values())), blocked


def creep_table(pool: ProcessPoolExecutor, runs: int) -> Iterator[str]:
    yield "| compared with | points lost after 20 merges of −1 | at most, in 95 % | chains never blocked | wanted |"
    yield "|---|---|---|---|---|"
    for anchored in (False, True):
        chains = list(pool.map(partial(creep, anchored), range(runs)))
        lost = sorted(loss for loss, _ in chains)
        never = page.share(sum(not blocked for _, blocked in chains), runs, 2)
        name = "the last merge and the anchor" if anchored else "the last merge alone"
        most = lost[int(0.95 * (len(lost) - 1))]
        yield f"| {name} | {fmean(lost):.1f} | {most:.1f} | {never} | {'≤ 7' if anchored else ''} |"


def main(argv: Sequence[str] | None = None) -> int:
    given = page.parser(__doc__, runs=400, seed=30_000).parse_args(argv)
    with ProcessPoolExecutor(given.processes) as pool:
        sections = {
            "assumptions": worlds_table(pool, given.runs, given.seed, given.only),
            "baselines": baselines_table(pool, max(1, given.runs // 20), given.only),
            "creep": creep_table(pool, max(1, given.runs // 40)),
        }
        page.publish(sections, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
