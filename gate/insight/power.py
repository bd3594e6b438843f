"""Computes how large a change of an agent the rule finds, by running the engine on simulated trials of a record's
cases.

Each case's rate is drawn from those its trials leave possible, so that steady cases fail now and then, too. A design of
the suite's size takes every case once; any other draws its cases from them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from random import Random
from statistics import NormalDist, fmean

from msgspec import Struct
from msgspec.structs import replace

from gate.decision.consistency import cluster_of
from gate.decision.engine.clusters import grouped
from gate.decision.engine.rule import follow
from gate.decision.engine.state import Config, Metric, Row, State
from gate.decision.outcomes import RATE_METRIC, measured_values, trials_by_outcome, value_of
from gate.decision.power import GRID, WANTED, Rates
from gate.decision.sequential import metric_of
from gate.decision.thresholds import chance_of_miss
from gate.model import Case, Criterion, Side, Trial
from gate.model.defaults import STORED_TRIALS
from gate.statistics.intervals import wilson

TYPICAL = ((0.45, 1.0, 1.0), (0.25, 0.95, 1.0), (0.25, 0.5, 0.95), (0.05, 0.0, 0.0))
"""The rates in a suite without known rates: the share of cases, and the range of their rates."""
BREAKABLE = 0.8
"""A case that breaks in a simulation passed at least this often."""
SECONDS = 4.0
"""Approximate default duration of a simulation in seconds; the number of runs follows from the size of the design."""
LEAST_RUNS, MOST_RUNS = 8, 400
BOTH_SIDES = 2.0
"""Factor on the duration if the base's agent runs, too."""
FINENESS = 2
"""Fineness of the tests in a simulated change: many changes make up for less precise p-values."""
DESIGNS = (10, 20, 30, 50, 75, 100, 150, 200, 300, 500)
"""Numbers of cases to try for a wanted drop."""
SAID_FIRST, NEARLY_ALWAYS = 0.2, 0.95
STORED = (5, 15)
NONE_BREAKS = "NONE"
"""Replaces the verdict if no case passes often enough to break."""

Tick = Callable[[], None]
"""Called after each simulated run."""


class Design(Struct, frozen=True):
    """A suite and the way it is decided."""

    cases: int
    stored: int = STORED_TRIALS
    """Stored trials of each case."""
    config: Config = Config()
    margin: float | None = None
    """The margin of the pass rate."""


class Scores(Struct, frozen=True):
    """Further scores of a trial that share the error rate with its success; drawn from recorded trials."""

    metrics: tuple[Metric, ...]
    passing: tuple[tuple[Row, ...], ...]
    """The values of passing trials, by case."""
    failing: tuple[tuple[Row, ...], ...]

    def draw(self, rng: Random, case: int, passed: bool) -> Row:
        """Return a drawn trial with this outcome: of the same case, else of any case, else with the other outcome."""
        sides = (self.passing, self.failing) if passed else (self.failing, self.passing)
        for side in sides:
            known = side[case] or list(chain.from_iterable(side))
            if known:
                return rng.choice(known)
        return [None] * len(self.metrics)


class Drawn(Struct, frozen=True):
    """A case of a simulated suite."""

    like: int
    """Position of the known case that it resembles."""
    rate: float
    cluster: str = ""


class KnownSuite(Struct, frozen=True):
    """The cases of a record, from which simulated ones are drawn."""

    rates: Rates
    scores: Scores | None = None
    """None to simulate only success."""
    clusters: tuple[str, ...] = ()
    """The cluster of each case, which the rule treats as one unit; empty if the case is in none."""

    @property
    def units(self) -> int:
        """Number of clusters and of cases without one."""
        named = list(filter(None, self.clusters))
        return len(self.rates.counts) - len(named) + len(set(named))

    def draw(self, rng: Random, cases: int) -> list[Drawn]:
        """Return a suite of ``cases`` cases. Cases of a cluster are drawn independently, though they may depend on each
        other: a few trials do not show how much."""
        if not self.rates.counts:
            parts = rng.choices(TYPICAL, weights=[share for share, _, _ in TYPICAL], k=cases)
            return [Drawn(0, rng.uniform(low, high)) for _, low, high in parts]
        posteriors = self.rates.posteriors
        chosen = self._chosen(rng, cases)
        return [Drawn(i, rng.choices(GRID, weights=posteriors[i])[0], cluster) for i, cluster in chosen]

    def _chosen(self, rng: Random, cases: int) -> list[tuple[int, str]]:
        """Return the known cases that the drawn ones resemble, with their clusters; whole clusters if there are any."""
        known = range(len(self.rates.counts))
        if cases == len(known):
            return list(enumerate(self.clusters or [""] * cases))
        if not any(self.clusters):
            return [(place, "") for place in rng.choices(known, k=cases)]
        units = grouped(map(str, known), {str(i): cluster for i, cluster in enumerate(self.clusters)})
        found: list[tuple[int, str]] = []
        while len(found) < cases:
            found += [(i, f"{len(found)}") for i in rng.choice(units)]
        return found[:cases]


def suite_of(trials: Sequence[Trial], criteria: Sequence[Criterion], cases: Mapping[str, Case]) -> KnownSuite:
    """Return the cases of the candidate's trials in a record; ``cases`` provide clusters and thresholds of their
    own."""
    groups = trials_by_outcome(trials, criteria, cases)
    counts, clusters = [], []
    for case_id, group in groups.items():
        counts.append((sum([outcome for _, outcome in group]), len(group)))
        clusters.append(cluster_of(cases[case_id]) if case_id in cases else "")
    return KnownSuite(Rates(tuple(counts)), _scores([*groups.values()], criteria), tuple(clusters))


def _scores(groups: Sequence[Sequence[tuple[Trial, bool]]], criteria: Sequence[Criterion]) -> Scores | None:
    """Return the scores that are tested besides success."""
    trials = [trial for trial, _ in chain.from_iterable(groups)]
    tested = []
    for criterion in criteria:
        blocks = criterion.blocking and criterion.blocks_regression and not criterion.hard
        if blocks and criterion.metric != RATE_METRIC and measured_values(trials, criterion):
            tested.append(criterion)
    if not tested:
        return None
    passing, failing = [], []
    for group in groups:
        rows: dict[bool, list[Row]] = {True: [], False: []}
        for trial, outcome in group:
            rows[outcome].append([value_of(trial, criterion) for criterion in tested])
        passing.append(tuple(rows[True]))
        failing.append(tuple(rows[False]))
    return Scores(tuple([metric_of(criterion, trials) for criterion in tested]), tuple(passing), tuple(failing))


# --- the answer ------------------------------------------------------------------------------------


class Share(Struct, frozen=True):
    """The share of simulated runs with some result, with a 95 % interval."""

    share: float
    low: float
    high: float
    runs: int


def share_of(count: int, runs: int) -> Share:
    if not runs:
        return Share(0.0, 0.0, 1.0, 0)
    low, high = wilson(count, runs)
    return Share(count / runs, max(0.0, low), min(1.0, high), runs)


class Drop(Struct, frozen=True):
    """A fall of the pass rate in which every case loses the same share of its rate, and how often it is found."""

    drop: float
    """0–1."""
    found: Share
    """Share read from one curve through all simulated drops, so that neighbouring drops add to its precision."""
    simulated: Share
    """Share in the simulated runs of this drop alone."""


_NORMAL = NormalDist()


class Curve(Struct, frozen=True):
    """The share found as a function of the drop, Φ(a + b·√drop): a smooth curve through simulated shares."""

    a: float
    b: float
    errors: tuple[float, float, float]
    """Variances of a and b, and their covariance."""

    @classmethod
    def fitted(cls, points: Sequence[tuple[float, int, int]]) -> Curve:
        """Fit the curve by Fisher scoring, with a weak prior in case all or none are found."""
        a, b = -2.0, 8.0
        aa = ab = bb = 0.0
        for _ in range(60):
            aa, ab, bb = 0.05, 0.0, 0.002
            ga, gb = 0.05 * (-2.0 - a), 0.002 * (8.0 - b)
            for drop, found, runs in points:
                x = math.sqrt(drop)
                z = max(-5.0, min(5.0, a + b * x))
                p = min(1 - 1e-6, max(1e-6, _NORMAL.cdf(z)))
                slope = _NORMAL.pdf(z) / (p * (1 - p))
                weight = runs * _NORMAL.pdf(z) * slope
                ga, gb = ga + (found - runs * p) * slope, gb + (found - runs * p) * slope * x
                aa, ab, bb = aa + weight, ab + weight * x, bb + weight * x * x
            size = aa * bb - ab * ab
            da, db = (bb * ga - ab * gb) / size, (aa * gb - ab * ga) / size
            least = min(1.0, 2.0 / max(abs(da), abs(db) / 4, 1e-12))
            a, b = a + least * da, max(0.0, b + least * db)
        size = aa * bb - ab * ab
        return cls(a, b, (bb / size, aa / size, -ab / size))

    def at(self, drop: float, runs: int) -> Share:
        x = math.sqrt(drop)
        centre = self.a + self.b * x
        half = 1.96 * math.sqrt(max(0.0, self.errors[0] + 2 * x * self.errors[2] + x * x * self.errors[1]))
        return Share(_NORMAL.cdf(centre), _NORMAL.cdf(centre - half), _NORMAL.cdf(centre + half), runs)

    def reaches(self, share: float, within: Sequence[float]) -> float | None:
        """Return the smallest drop of which this share is found, or None if it is beyond the simulated drops."""
        if self.b <= 0:
            return None
        drop = max(0.0, (_NORMAL.inv_cdf(share) - self.a) / self.b) ** 2
        if drop > max(within):
            return None
        return drop


class Power(Struct, frozen=True):
    """The power of a design."""

    design: Design
    known: bool
    """True if the rates are from a record; else they are those of a typical suite."""
    criteria: int
    """Number of criteria that are tested besides success."""
    units: int
    """Number of units compared: clusters of the record, and cases without one; 0 if no rates are known."""
    runs: int
    """Number of simulated runs for all questions together."""
    drops: tuple[Drop, ...]
    curve: Curve
    finds: float | None
    """The smallest drop found in 80 % of runs, 0–1; None if no simulated drop is found that often."""
    broken: Share | None
    """Share of runs that find one case that always fails from now on; None if no case passes often enough to break."""
    blocked: Share
    """The share of unchanged agents that are blocked."""
    inconclusive: Share
    runs_per_case: float
    """Agent runs per case for an unchanged agent, both sides."""
    cost_per_run: float | None = None


def telling_drop(power: Power) -> Drop:
    """Return the most informative drop: the largest that is not nearly always found, at most 20 points."""
    asked = [one for one in power.drops if one.drop <= SAID_FIRST]
    for one in reversed(asked):
        if one.found.share < NEARLY_ALWAYS:
            return one
    return asked[0]


class Wanted(Struct, frozen=True):
    """The smallest of the tried suites that finds a wanted drop in 80 % of runs."""

    drop: float
    stored: int
    cases: int | None
    """None if even the largest does not."""
    found: Share


# --- simulations -----------------------------------------------------------------------------------


def power_of(
    suite: KnownSuite, design: Design, *, runs: int | None = None, seed: int = 0, tick: Tick = lambda: None
) -> Power:
    """Simulate changes of an agent with this suite. ``runs``: per kind of change; None for about `SECONDS` in all."""
    ladder = drops_of(design)
    questions = len(ladder) + 2
    criteria = len(suite.scores.metrics) if suite.scores else 0
    n = runs or runs_of(design, questions, criteria)
    rng = Random(seed)  # noqa: S311 - reproducible, not secret
    unchanged, spent = _verdicts(suite, design, n, rng, tick)
    counts = []
    for drop in ladder:
        verdicts, _ = _verdicts(suite, design, n, rng, tick, drop=drop)
        counts.append((drop, verdicts["REGRESSION"], n))
    curve = Curve.fitted(counts)
    drops = [Drop(drop, curve.at(drop, n * len(ladder)), share_of(count, n)) for drop, count, _ in counts]
    breaks, _ = _verdicts(suite, design, n, rng, tick, broken=True)
    tried, broken = n - breaks[NONE_BREAKS], None
    if tried:
        broken = share_of(breaks["REGRESSION"], tried)
    return Power(
        design,
        known=bool(suite.rates.counts),
        criteria=criteria,
        units=suite.units if suite.rates.counts else 0,
        runs=n * questions,
        drops=tuple(drops),
        curve=curve,
        finds=curve.reaches(WANTED, ladder),
        broken=broken,
        blocked=share_of(unchanged["REGRESSION"], n),
        inconclusive=share_of(unchanged["INCONCLUSIVE"], n),
        runs_per_case=spent / n / design.cases,
    )


def wanted_designs(
    suite: KnownSuite, design: Design, drop: float, *, runs: int = 40, tick: Tick = lambda: None
) -> tuple[Wanted, ...]:
    """Return the number of cases that find a drop in 80 % of runs, per number of stored trials, by bisection of the
    designs."""
    answers = []
    for stored in STORED:
        rng = Random(f"0:{stored}")  # noqa: S311 - reproducible, not secret
        low, high, best = 0, len(DESIGNS), share_of(0, 0)
        while low < high:
            middle = (low + high) // 2
            tried = replace(design, cases=DESIGNS[middle], stored=stored)
            verdicts, _ = _verdicts(suite, tried, runs, rng, tick, drop=drop)
            share = share_of(verdicts["REGRESSION"], runs)
            if share.share >= WANTED:
                high, best = middle, share
            else:
                low = middle + 1
        cases = None
        if low < len(DESIGNS):
            cases = DESIGNS[low]
        answers.append(Wanted(drop, stored, cases, best))
    return tuple(answers)


def drops_of(design: Design) -> tuple[float, ...]:
    """Return the drops to simulate: between those that no design of this size finds and those that each finds."""
    if design.cases >= 200:
        return (0.01, 0.02, 0.05, 0.1)
    if design.cases >= 60:
        return (0.02, 0.05, 0.1, 0.2)
    return (0.05, 0.1, 0.2, 0.3, 0.5)


def runs_of(design: Design, questions: int, criteria: int = 0) -> int:
    """Return the runs per question that together take `SECONDS`; ``criteria``: number tested besides success."""
    one = (0.009 + 0.00025 * design.cases) * (1 + 0.6 * criteria)
    if design.config.rerun == "match":
        one *= BOTH_SIDES
    return max(LEAST_RUNS, min(MOST_RUNS, int(SECONDS / questions / one)))


def _verdicts(
    suite: KnownSuite, design: Design, changes: int, rng: Random, tick: Tick, *, drop: float = 0.0, broken: bool = False
) -> tuple[Counter[str], int]:
    """Return the number of simulated changes by the rule's answer, and the agent runs used for all of them."""
    found, spent = Counter[str](), 0
    for _ in range(changes):
        verdict, runs = _run(suite, design, rng, drop=drop, broken=broken)
        found[verdict] += 1
        spent += runs
        tick()
    return found, spent


def _run(suite: KnownSuite, design: Design, rng: Random, *, drop: float, broken: bool) -> tuple[str, int]:
    """Return the rule's answer on one simulated change, and the number of agent runs used."""
    drawn = suite.draw(rng, design.cases)
    before = [case.rate for case in drawn]
    mean, left = fmean(before), 1.0
    if mean:
        left = max(0.0, 1 - drop / mean)
    now = [rate * left for rate in before]
    if broken:
        able = [place for place, rate in enumerate(before) if rate >= BREAKABLE]
        if not able:
            return NONE_BREAKS, 0
        now[rng.choice(able)] = 0.0
    places = {f"{place:04d}": place for place in range(design.cases)}

    def run(side: Side, cases: Iterable[str], n: int) -> dict[str, list[Row]]:
        true_rates = before if side is Side.BASELINE else now
        found: dict[str, list[Row]] = {}
        for case_id in cases:
            place = places[case_id]
            trials = found[case_id] = []
            for _ in range(n):
                passes = rng.random() < true_rates[place]
                others = suite.scores.draw(rng, drawn[place].like, passes) if suite.scores else ()
                trials.append([float(passes), *others])
        return found

    metrics = [Metric("success", "binary", margin=design.margin)]
    if suite.scores is not None:
        metrics += suite.scores.metrics
    stored, seed = run(Side.BASELINE, places, design.stored), rng.randrange(1 << 30)
    clusters = {case_id: drawn[place].cluster for case_id, place in places.items() if drawn[place].cluster}
    start = State(tuple(metrics), stored, (), replace(design.config, fineness=FINENESS), seed, clusters)
    outcome, spent = follow(start, run)
    return outcome.verdict, spent


# --- thresholds ------------------------------------------------------------------------------------


def missed_thresholds(
    trials: Sequence[Trial], criteria: Sequence[Criterion], epochs: int, own: Mapping[str, Case]
) -> dict[str, float]:
    """Return how often an unchanged agent misses each blocking threshold in a run of ``epochs`` epochs, 0 to 1.

    By criterion, without those whose rate the trials do not show. ``own``: the cases; those with their own threshold do
    not count in the suite's mean.
    """
    by_case: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.side is Side.CANDIDATE:
            by_case.setdefault(trial.case_id, []).append(trial)
    found = {}
    for criterion in criteria:
        if not criterion.blocking or criterion.hard or criterion.threshold is None:
            continue
        groups = []
        for case_id, group in by_case.items():
            if case_id not in own or criterion.name not in own[case_id].thresholds:
                groups.append(measured_values(group, criterion))
        chance = chance_of_miss(groups, criterion, epochs)
        if chance is not None:
            found[criterion.name] = chance
    return found
