"""Computes how large a change of an agent the rule finds, by running the engine on simulated trials of a record's
cases.

Each case's rate is drawn from those its trials leave possible, under a prior fitted to all cases, so that steady cases
fail now and then, too. A design of the suite's size takes every case once; any other draws its cases from them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import mul
from random import Random
from statistics import NormalDist, fmean

from msgspec import Struct
from msgspec.structs import replace

from gate.decision.consistency import cluster_of
from gate.decision.engine.clusters import grouped
from gate.decision.engine.evidence import CASES_SHARE
from gate.decision.engine.schedule import LONG_E, LONG_WAVES, WAVES
from gate.decision.engine.state import Config, Metric, Row, State, margin_of
from gate.decision.outcomes import RATE_METRIC, measured_values, passed, value_of
from gate.decision.sequential import metric_of
from gate.decision.settings import MOST_STORED, Goal, Settings
from gate.decision.thresholds import chance_of_miss
from gate.model import Case, Criterion, Side, Trial
from gate.model.defaults import ALPHA, POWER_FIND, STORED_TRIALS
from gate.statistics.evalues import case_log_e, suite_e
from gate.statistics.intervals import wilson

GRID = (0.0, 0.02, 0.05, *(n / 20 for n in range(2, 19)), 0.93, 0.95, 0.97, 0.98, 0.99, 0.995, 1.0)
"""The possible pass rates of a case."""
FIRST = (2.0, *[1.0] * (len(GRID) - 2), 10.0)
"""Initial weights of the fit: in most suites many cases always pass and some never do. With equal weights the steady
cases of a stable suite would fail twice as often as they do."""
STEPS = 40
"""Number of iterations of the fit. More would put all steady cases at exactly 1, which a few trials do not show."""
TYPICAL = ((0.45, 1.0, 1.0), (0.25, 0.95, 1.0), (0.25, 0.5, 0.95), (0.05, 0.0, 0.0))
"""The rates in a suite without known rates: the share of cases, and the range of their rates."""
BREAKABLE = 0.8
"""A case that breaks in a simulation passed at least this often."""
WANTED = POWER_FIND
"""Share of changes that a design should find."""
PASSES = 0.94
"""Share of unchanged agents that should pass with the stored trials."""
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
MOST_RERUNS = 200
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


class Rates(Struct, frozen=True, dict=True):
    """The pass rates of the cases, estimated from their trials."""

    counts: tuple[tuple[int, int], ...]
    """(passed, trials) by case. Empty if nothing is known: the rates are then those of a typical suite."""
    scores: Scores | None = None
    """None to simulate only success."""
    clusters: tuple[str, ...] = ()
    """The cluster of each case, which the rule treats as one unit; empty if the case is in none."""

    @property
    def units(self) -> int:
        """Number of clusters and of cases without one."""
        named = list(filter(None, self.clusters))
        return len(self.counts) - len(named) + len(set(named))

    @cached_property
    def posteriors(self) -> tuple[tuple[float, ...], ...]:
        """The weights of the rates on the grid, by case."""
        whole = sum(FIRST)
        weights = [weight / whole for weight in FIRST]
        distinct = Counter(self.counts)
        for _ in range(STEPS):
            total = [0.0] * len(GRID)
            for count, cases in distinct.items():
                for place, share in enumerate(_posterior(weights, *count)):
                    total[place] += cases * share
            weights = [sum_of_shares / len(self.counts) for sum_of_shares in total]
        known = {count: _posterior(weights, *count) for count in distinct}
        return tuple([known[count] for count in self.counts])

    def draw(self, rng: Random, cases: int) -> list[Drawn]:
        """Return a suite of ``cases`` cases. Cases of a cluster are drawn independently, though they may depend on each
        other: a few trials do not show how much."""
        if not self.counts:
            parts = rng.choices(TYPICAL, weights=[share for share, _, _ in TYPICAL], k=cases)
            return [Drawn(0, rng.uniform(low, high)) for _, low, high in parts]
        chosen = self._chosen(rng, cases)
        return [Drawn(i, rng.choices(GRID, weights=self.posteriors[i])[0], cluster) for i, cluster in chosen]

    def _chosen(self, rng: Random, cases: int) -> list[tuple[int, str]]:
        """Return the known cases that the drawn ones resemble, with their clusters; whole clusters if there are any."""
        known = range(len(self.counts))
        if cases == len(known):
            return list(enumerate(self.clusters or [""] * cases))
        if not any(self.clusters):
            return [(place, "") for place in rng.choices(known, k=cases)]
        units = grouped(map(str, known), {str(i): cluster for i, cluster in enumerate(self.clusters)})
        found: list[tuple[int, str]] = []
        while len(found) < cases:
            found += [(i, f"{len(found)}") for i in rng.choice(units)]
        return found[:cases]


def _posterior(weights: Sequence[float], passed_trials: int, trials: int) -> tuple[float, ...]:
    found = []
    for weight, rate in zip(weights, GRID, strict=True):
        found.append(weight * rate**passed_trials * (1 - rate) ** (trials - passed_trials))
    total = sum(found)
    if not total:
        return tuple(weights)
    return tuple([share / total for share in found])


class Share(Struct, frozen=True):
    """The share of simulated runs with some result, with a 95 % interval."""

    share: float
    low: float
    high: float
    runs: int


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


def power_of(
    rates: Rates, design: Design, *, runs: int | None = None, seed: int = 0, tick: Tick = lambda: None
) -> Power:
    """Simulate changes of an agent with these rates. ``runs``: per kind of change; None for about `SECONDS` in all."""
    ladder = drops_of(design)
    questions = len(ladder) + 2
    criteria = len(rates.scores.metrics) if rates.scores else 0
    n = runs or runs_of(design, questions, criteria)
    rng = Random(seed)  # noqa: S311 - reproducible, not secret
    unchanged, spent = _verdicts(rates, design, n, rng, tick)
    counts = []
    for drop in ladder:
        verdicts, _ = _verdicts(rates, design, n, rng, tick, drop=drop)
        counts.append((drop, verdicts["REGRESSION"], n))
    curve = Curve.fitted(counts)
    drops = [Drop(drop, curve.at(drop, n * len(ladder)), share_of(count, n)) for drop, count, _ in counts]
    breaks, _ = _verdicts(rates, design, n, rng, tick, broken=True)
    tried, broken = n - breaks[NONE_BREAKS], None
    if tried:
        broken = share_of(breaks["REGRESSION"], tried)
    return Power(
        design,
        known=bool(rates.counts),
        criteria=criteria,
        units=rates.units if rates.counts else 0,
        runs=n * questions,
        drops=tuple(drops),
        curve=curve,
        finds=curve.reaches(WANTED, ladder),
        broken=broken,
        blocked=share_of(unchanged["REGRESSION"], n),
        inconclusive=share_of(unchanged["INCONCLUSIVE"], n),
        runs_per_case=spent / n / design.cases,
    )


def _verdicts(
    rates: Rates, design: Design, changes: int, rng: Random, tick: Tick, *, drop: float = 0.0, broken: bool = False
) -> tuple[Counter[str], int]:
    """Return the number of simulated changes by the rule's answer, and the agent runs used for all of them."""
    found, spent = Counter[str](), 0
    for _ in range(changes):
        verdict, runs = _run(rates, design, rng, drop=drop, broken=broken)
        found[verdict] += 1
        spent += runs
        tick()
    return found, spent


def wanted_designs(
    rates: Rates, design: Design, drop: float, *, runs: int = 40, tick: Tick = lambda: None
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
            verdicts, _ = _verdicts(rates, tried, runs, rng, tick, drop=drop)
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


def _run(rates: Rates, design: Design, rng: Random, *, drop: float, broken: bool) -> tuple[str, int]:
    """Return the rule's answer on one simulated change, and the number of agent runs used."""
    from gate.decision.engine.rule import follow  # weight: only a simulation needs it

    drawn = rates.draw(rng, design.cases)
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
                others = rates.scores.draw(rng, drawn[place].like, passes) if rates.scores else ()
                trials.append([float(passes), *others])
        return found

    metrics = [Metric("success", "binary", margin=design.margin)]
    if rates.scores is not None:
        metrics += rates.scores.metrics
    stored, seed = run(Side.BASELINE, places, design.stored), rng.randrange(1 << 30)
    clusters = {case_id: drawn[place].cluster for case_id, place in places.items() if drawn[place].cluster}
    start = State(tuple(metrics), stored, (), replace(design.config, fineness=FINENESS), seed, clusters)
    outcome, spent = follow(start, run)
    return outcome.verdict, spent


def share_of(count: int, runs: int) -> Share:
    if not runs:
        return Share(0.0, 0.0, 1.0, 0)
    low, high = wilson(count, runs)
    return Share(count / runs, max(0.0, low), min(1.0, high), runs)


# --- estimates from a record's trials -------------------------------------------------------------


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


def rates_of(trials: Sequence[Trial], criteria: Sequence[Criterion], cases: Mapping[str, Case] | None = None) -> Rates:
    """Return the pass rates of the candidate's trials in a record; ``cases`` provide the thresholds of single cases."""
    groups = _by_outcome(trials, criteria, cases)
    known, counts, clusters = cases or {}, [], []
    for case_id, group in groups.items():
        counts.append((sum([outcome for _, outcome in group]), len(group)))
        cluster = ""
        if case_id in known:
            cluster = cluster_of(known[case_id])
        clusters.append(cluster)
    return Rates(tuple(counts), _scores([*groups.values()], criteria), tuple(clusters))


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


def cost_per_run(trials: Sequence[Trial]) -> float | None:
    """Return the agent's average cost per run in US dollars; None if no trial reports it."""
    costs = []
    for trial in trials:
        usage = trial.usage
        if usage is not None and usage.cost_usd is not None:
            costs.append(usage.cost_usd)
    return fmean(costs) if costs else None


def outcomes_by_case(
    trials: Sequence[Trial], criteria: Sequence[Criterion], cases: Mapping[str, Case] | None = None
) -> dict[str, list[bool]]:
    """Return True or False per candidate trial for pass or fail, by case, without trials that could not be measured."""
    groups = _by_outcome(trials, criteria, cases)
    return {case_id: [outcome for _, outcome in group] for case_id, group in groups.items()}


def _by_outcome(
    trials: Sequence[Trial], criteria: Sequence[Criterion], cases: Mapping[str, Case] | None
) -> dict[str, list[tuple[Trial, bool]]]:
    groups: dict[str, list[tuple[Trial, bool]]] = {}
    known = cases or {}
    for trial in trials:
        if trial.side is not Side.CANDIDATE:
            continue
        outcome = passed(trial, known.get(trial.case_id) or Case(trial.case_id, ()), criteria)
        if outcome is not None:
            groups.setdefault(trial.case_id, []).append((trial, outcome))
    return groups


# --- how many trials to store ---------------------------------------------------------------------


LEVEL_SHARE, LEVEL_SHARE_OF_FEW, FEW = 0.52, 0.2, 15
"""Share of alpha at which one test of the mean finds about as much as the whole rule: the first number, or the second
with fewer cases than the third. Fitted to simulations: docs/evidence/decision.md."""


def stored_wanted(rates: Rates, goal: Goal, settings: Settings) -> int:
    """Return the stored trials per case that find the goal's drop as often as the goal demands, between 5 and 25."""
    for stored in range(STORED_TRIALS, MOST_STORED):
        if chance_of_finding(rates, goal.drop, stored, settings) >= goal.find:
            return stored
    return MOST_STORED


def stored_enough(rates: Rates, goal: Goal, settings: Settings) -> int:
    """Return the stored trials per case that reach the goal and let an unchanged agent pass, between 5 and 25."""
    for stored in range(stored_wanted(rates, goal, settings), MOST_STORED):
        if chance_of_passing(rates, stored, settings) >= PASSES:
            return stored
    return MOST_STORED


def chance_of_passing(rates: Rates, stored: int, settings: Settings) -> float:
    """Return the approximate probability that the bad end of an unchanged suite's interval lies within the pass-rate
    margin."""
    cases = len(rates.counts)
    if not cases:
        return 0.0
    spread = 0.0
    for weights in rates.posteriors:
        for weight, rate in zip(weights, GRID, strict=True):
            spread += weight * rate * (1 - rate)
    sd = math.sqrt(spread * (1 / settings.most_epochs + 1 / stored)) / cases
    if sd == 0:
        return 1.0
    room = margin_of(Metric("success", "binary", margin=settings.pass_rate_margin), cases)
    return _NORMAL.cdf(room / sd - _NORMAL.inv_cdf(0.95))


def smallest_found(rates: Rates, stored: float, settings: Settings) -> float | None:
    """Return the smallest drop in whole points, 0 to 1, that is found in four of five changes; None if none is."""
    for points in range(1, 100):
        if chance_of_finding(rates, points / 100, stored, settings) >= WANTED:
            return points / 100
    return None


def chance_of_finding(rates: Rates, drop: float, stored: float, settings: Settings) -> float:
    """Return the approximate probability of finding a drop of the pass rate that all cases share, without a simulation.

    Uses one test of the mean, at a level that accounts for the other tests of the rule. The spread of a case is
    computed over the rates its trials leave possible; under "unchanged" the trials of both sides are pooled.
    """
    cases, epochs = len(rates.counts), settings.most_epochs
    if not cases:
        return 0.0
    mean = fmean([sum(map(mul, weights, GRID)) for weights in rates.posteriors])
    if mean <= 0:
        return 0.0
    left = max(0.0, 1 - drop / mean)
    unchanged = changed = 0.0
    for weights, number in Counter(rates.posteriors).items():
        for weight, before in zip(weights, GRID, strict=True):
            now = before * left
            pooled = (epochs * now + stored * before) / (epochs + stored)
            unchanged += number * weight * pooled * (1 - pooled) * (1 / epochs + 1 / stored)
            changed += number * weight * (now * (1 - now) / epochs + before * (1 - before) / stored)
    share = LEVEL_SHARE
    if cases < FEW:
        share = LEVEL_SHARE_OF_FEW
    beyond = cases * min(drop, mean) - _NORMAL.inv_cdf(1 - share * settings.own_alpha) * math.sqrt(unchanged)
    if changed == 0:
        return float(beyond > 0)
    return _NORMAL.cdf(beyond / math.sqrt(changed))


# --- one broken case ------------------------------------------------------------------------------


def provable(cases: int, baseline_trials: int, alpha: float = ALPHA, *, recorded: bool = False) -> bool:
    """True if the schedule's reruns can prove that a case broke if it always passed and now always fails."""
    most = 1 + sum(WAVES)
    if case_log_e(baseline_trials, baseline_trials, 0, most) >= math.log(LONG_E):
        most += sum(LONG_WAVES)
    needed = reruns_to_prove(cases, baseline_trials, alpha, recorded=recorded)
    return needed is not None and needed <= most


def reruns_to_prove(cases: int, baseline_trials: int, alpha: float = ALPHA, *, recorded: bool = False) -> int | None:
    """Return the number of consecutive failing trials after which one of ``cases`` cases blocks if all others still
    pass."""
    quiet = case_log_e(baseline_trials, baseline_trials, 1, 1)

    def proves(n: int) -> bool:
        broken = case_log_e(baseline_trials, baseline_trials, 0, n)
        return suite_e([broken, *[quiet] * (cases - 1)], recorded=recorded) >= 1 / (alpha * CASES_SHARE)

    least = 1 + bisect_left(range(1, MOST_RERUNS + 1), True, key=proves)  # each failure adds evidence
    if least > MOST_RERUNS:
        return None
    return least
