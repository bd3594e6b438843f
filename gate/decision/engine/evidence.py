"""The evidence of the trials so far: suite looks, case e-values, the certificate. Replays the rounds; decides
nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from statistics import NormalDist, fmean, variance

from msgspec import Struct, field
from msgspec.structs import replace

from gate.decision.engine.clusters import grouped, log_es_of, units_of
from gate.decision.engine.coupled import ComparedTrials, apart_from, compared, linked, paired_difference, with_pairs
from gate.decision.engine.repeats import LEAST_SUITE, AskedAgain, Failing
from gate.decision.engine.state import (
    CONCURRENT,
    CONFIRM,
    FULL,
    TINY,
    Config,
    Metric,
    Partner,
    Round,
    Row,
    State,
    margin_of,
)
from gate.model import Direction, Side, Stage, StageKind
from gate.statistics.agreement import corrected_change
from gate.statistics.evalues import case_log_e, e_bh, suite_e
from gate.statistics.intervals import (
    detectable_drop,
    detectable_rate_drop,
    excluded_change,
    paired_change,
    stratified_fisher_less,
    t_quantile,
)
from gate.statistics.paired import Coupled, coupled_log_e
from gate.statistics.permutation import FINE, JointTest, PerMetricTest, joint_permutation
from gate.statistics.repeats import Repeated, repeats_p
from gate.statistics.sequential import combined_p, nominal_level
from gate.statistics.shift import change_sd

_NORMAL = NormalDist()

LOOK_SHARES = (0.45, 0.14, 0.05)
"""Share of alpha that the suite look after epoch 1, 2 and 3 adds to what is spent."""
ALONE_SHARES = (0.45, 0.20, 0.10)
"""The shares if no failing cases are asked again together: the looks have that share, too."""
ONE_LOOK_SHARE = sum(ALONE_SHARES)
"""The share of a design that looks once."""
CASES_SHARE = 0.15
"""Share of alpha for the case e-values, at any time. With looks and repeats 0.90: the rest is for the confirmation of
crashes.
An unchanged agent is blocked less often, since most such agents pass at the first look."""
BESIDE = 1.3
"""Looks with the baseline's trials of this job beside the stored ones have so many times the share of alpha. They count
only where the baseline agrees with its record, which is independent of them and comes about in .65 of unchanged
agents: so they add no more to the error than the looks do whose place they take."""
FALSE_DISCOVERY = 0.10
ZERO_TRIALS = 11
"""Failing trials in a row, of a case that always passed, that keep a suite from PASS even where its baseline is too
thin for a proof. One that passes half the time does so once in two thousand."""
COLLAPSED_FROM, COLLAPSED_P = 0.5, 0.05
"""A metric of which all values are the worst has collapsed, if the baseline's mean is at least this, or chance alone
shows so much as seldom as this."""
TINY_BY_CHANCE = 0.2
"""The bound for so few cases that the interval says nothing. They pass unless chance alone shows as much less often
than this."""


class CaseEvidence(Struct):
    """The trials of one paired case, larger values better."""

    id: str
    before: list[Row]
    """Baseline trials of whole epochs: stored, and run now. With ``full`` they are all that enters suite looks and
    certificate."""
    full: list[Row] = field(default_factory=list)
    """Candidate trials of epochs: run regardless of earlier results, so they are a fair sample."""
    stored: int = 0
    """The trials of ``before`` whose success is known."""
    stored_passed: int = 0
    now: list[Row] = field(default_factory=list)
    """Trials of the baseline's agent run in this job, of whole epochs and of checks for drift."""
    again: list[Row] = field(default_factory=list)
    """The candidate's trials of checks for drift."""
    baseline_trials: int = 0
    baseline_passed: int = 0
    trials: int = 0
    passed: int = 0
    newest_failed: bool = False
    before_job: int = 0
    """Number of ``before`` that were stored."""
    looked_before: int = 0
    """Number of ``before`` that earlier looks have seen."""
    looked_full: int = 0
    looked_at: list[int] = field(default_factory=list)
    """Number of ``full`` that each look so far has seen."""
    links: list[Partner | None] = field(default_factory=list)
    """The trial of ``before`` that each of ``full`` was coupled with."""
    coupled: Coupled = Coupled()
    """The outcomes of all coupled trials, reruns included."""
    stored_at: dict[int, int] = field(default_factory=dict)
    """Position in the baseline's trials → position in ``before``, of those that were measured."""
    whole: int = 0
    """The candidate's trials that were answered wholly from recordings, reruns included."""
    others: int = 0
    """The trials that asked the real model or tools for anything, or may have."""

    @property
    def live(self) -> bool:
        """True if a drift could show in it: not everything was answered from recordings."""
        return self.others > 0 or not self.whole

    @property
    def reruns(self) -> int:
        """The candidate's trials beside those of epochs whose success is known."""
        return self.trials - sum(row[0] is not None for row in self.full)

    @property
    def log_e(self) -> float:
        """Every trial counts, reruns too: an e-value may be fed by a schedule that looks at it."""
        return self.log_e_after()

    @property
    def seems_worse(self) -> bool:
        """True if its passes and failures speak for a break, were all trials draws of their own: worth a rerun, and no
        proof. Pairs need more failures for the same evidence, and would have to be asked for them first."""
        return case_log_e(self.baseline_passed, self.baseline_trials, self.passed, self.trials) >= 0

    def log_e_after(self, failing: int = 0, passing_before: int = 0) -> float:
        """Return the evidence with so many further failing trials of the candidate, and passing ones of the
        baseline."""
        passed_before, before = self.baseline_passed + passing_before, self.baseline_trials + passing_before
        return coupled_log_e(self.coupled, passed_before, before, self.passed, self.trials + failing)

    @property
    def e_value(self) -> float:
        return math.exp(min(self.log_e, 700.0))

    @property
    def stored_outcomes(self) -> tuple[int, int]:
        """Passes and trials of what was stored before this job."""
        known = [row[0] >= 0.5 for row in self.before[: self.before_job] if row[0] is not None]
        return sum(known), len(known)

    @property
    def never_passes(self) -> bool:
        """True if it passed in each baseline trial and fails in each of the candidate's."""
        return 0 < self.baseline_trials == self.baseline_passed and not self.passed and self.trials > 0

    @property
    def log_gain(self) -> float:
        """Return the evidence with the sides exchanged: that the baseline passes less often than the candidate."""
        sides = (self.passed, self.trials), (self.baseline_passed, self.baseline_trials)
        return coupled_log_e(self.coupled.exchanged, *sides[0], *sides[1])


class Look(Struct, frozen=True):
    """One joint test of the whole suite."""

    epochs: int
    names: tuple[str, ...]
    """The metrics tested, as in ``test.metrics``."""
    test: JointTest
    """The test of all looks so far, combined."""
    threshold: float
    """The p-value from which on it blocks."""
    spent: float
    """Its possible addition to the probability of blocking an unchanged agent."""

    @property
    def blocks(self) -> bool:
        return self.test.p <= self.threshold


class LookPart(Struct, frozen=True):
    """The test of what was new at a look against all that was there before."""

    weight: float
    metrics: Mapping[str, PerMetricTest]
    test: JointTest


class Checked(Struct, frozen=True):
    """A step of a check for drift."""

    cases: int
    """The cases in which the check has run the baseline's agent so far."""
    rounds: int
    """Number of times that every case of which anything was not replayed was asked."""
    paired: bool
    """True if the step is of both sides."""
    test: JointTest
    """The candidate's trials against those."""
    moved: JointTest
    """The moves against the stored trials."""


class Beside(Struct, frozen=True):
    """The evidence of the record once the baseline's agent was asked every case in this job."""

    look: Look
    """The looks so far, with the baseline's trials of this job among those that were there before."""
    moved: PerMetricTest
    """The test of the baseline's agent against its record, in the metric in which ``look`` is clearest."""
    rounds: int
    """Number of times that the baseline's agent was asked every case."""


class Bound(Struct, frozen=True):
    """The bound that is certified for one metric. Values are oriented: a loss is negative; positive metrics are
    logarithms."""

    metric: Metric
    cases: int
    trials: int
    change: float
    low: float
    high: float
    margin: float
    detectable: float | None
    excluded: float
    """The loss below which the change lies in at most 5 % of runs, early stopping included: what reports rule out."""
    by_chance: bool = False
    """True if chance alone often shows as much, for so few cases that the interval says nothing."""

    @property
    def holds(self) -> bool:
        return self.low >= -self.margin or self.by_chance


class Evidence(Struct, dict=True):
    """Everything that the rule looks at."""

    state: State
    cases: dict[str, CaseEvidence]
    wanted: tuple[str, ...]
    """The cases of an epoch."""
    epochs: int = 0
    waves: int = 0
    """Confirming rounds since the last epoch."""
    naming_waves: int = 0
    """The waves since a regression was proven."""
    looks: list[Look] = field(default_factory=list)
    parts: list[LookPart] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    """The weight of what was new in each look."""
    spent: list[float] = field(default_factory=list)
    """The possible addition to the error by each look with something new in it."""
    repeats: AskedAgain = field(default_factory=AskedAgain)
    """The test of the cases that failed in an epoch and are asked again together."""
    repeats_now: float | None = None
    """The p-value of those repeats against as many of the baseline's agent in this job, from when they proved one."""
    suite_e: float = 1.0
    highest_suite_e: float = 1.0
    proof: Stage | None = None
    """The stage that first proved a regression; it stays, regardless of what was run afterwards."""
    case_proof: Stage | None = None
    """The stage at which the cases' own evidence first proved one."""
    checks: list[Checked] = field(default_factory=list)
    """After each step of a check for drift."""
    beside: list[Beside] = field(default_factory=list)
    """After each of those steps, and each later look, from when the baseline's agent was asked every case."""
    fresh: dict[Side, dict[str, list[Row]]] = field(default_factory=dict)
    """The trials of checks by side; of a record of ``rerun: concurrent`` they stand alone."""
    runs: dict[Side, int] = field(default_factory=lambda: dict.fromkeys(Side, 0))
    ended: bool = False
    """True if no further epoch follows."""

    @cached_property
    def named(self) -> tuple[str, ...]:
        ids = list(self.cases)
        return tuple(ids[i] for i in e_bh([self.cases[c].log_e for c in ids], FALSE_DISCOVERY))

    @cached_property
    def gained(self) -> tuple[str, ...]:
        """Cases that are better than at the baseline, named as the broken ones are, with the sides exchanged."""
        ids = list(self.cases)
        return tuple(ids[i] for i in e_bh([self.cases[c].log_gain for c in ids], FALSE_DISCOVERY))

    @cached_property
    def gain_p(self) -> float:
        """The joint test of success with the sides exchanged: whether the candidate passes more often in some cases."""
        exchanged = [
            ComparedTrials(case.before, case.full, [(there, here) for here, there in linked(case.links)])
            for case in self.cases.values()
        ]
        return test_rows(exchanged, [0], f"{self.state.seed}:gain", self.state.config.alpha, self.units).p

    @cached_property
    def units(self) -> list[list[int]]:
        """The positions of the cases that are one unit: a cluster, or a single case."""
        return grouped(self.cases, self.state.clusters)

    def end(self) -> None:
        """Take the next bounds for the last, which are certified of these very cases: see `bound`."""
        self.ended = True
        self.__dict__.pop("bounds", None)

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        return tuple(b for m in range(len(self.state.metrics)) if (b := bound(self, m)) is not None)

    @property
    def last_look(self) -> Look | None:
        return self.looks[-1] if self.looks else None

    @property
    def e_threshold(self) -> float:
        """The suite's e-value that proves a regression."""
        return 1 / (self.state.config.alpha * CASES_SHARE)

    @cached_property
    def unproven(self) -> tuple[str, ...]:
        """Cases that always passed and now never do, and that are not proven broken: a pass would hide them."""
        return tuple(c.id for c in self.cases.values() if c.never_passes and c.trials >= ZERO_TRIALS)


Looks = dict[tuple[int, Side], JointTest]
"""Suite tests already computed for this state's rounds, by epochs and what was new: only saves time."""


def gather(state: State, known: Looks | None = None) -> Evidence:
    """Replays the rounds in order, looking where the schedule looks."""
    orient = Orientation(state)
    evidence = _paired(state, orient)
    shares = look_shares(state.config, repeated=_repeats_failing(evidence))
    whole = _one_look(state)
    for round_, following in zip_longest(state.rounds, state.rounds[1:]):
        before = evidence.epochs
        trials = {c: [orient(row) for row in t] for c, t in round_.trials.items()}
        _add(evidence, round_.tag, round_.side, trials, round_.links)
        if evidence.epochs > before and not whole:
            share = sum(shares.get(j, 0.0) for j in range(before + 1, evidence.epochs + 1))
            if share:
                _look(evidence, share, known)
                _look_beside(evidence, known)
            _pick(evidence)
        if round_.tag == CONFIRM:
            if round_.side is Side.CANDIDATE:
                _repeat(evidence, trials, round_.links)
            elif evidence.repeats_now is None and evidence.proof and evidence.proof.kind is StageKind.REPEATS:
                evidence.repeats_now = _repeated_now(evidence)
        if round_.tag == CONCURRENT and not _awaits_candidate(round_, following):
            _check(evidence, known, paired=round_.side is Side.CANDIDATE)
        _weigh(evidence)
    if whole and evidence.epochs:
        _look(evidence, ONE_LOOK_SHARE, known)
        _look_beside(evidence, known)
    return evidence


def _awaits_candidate(round_: Round, following: Round | None) -> bool:
    """True if this is the baseline's half of a step of a check, and the candidate's comes next."""
    paired = following is not None and following.tag == CONCURRENT and following.side is Side.CANDIDATE
    return paired and round_.side is Side.BASELINE


def _one_look(state: State) -> bool:
    """True if nothing is looked at before the end: trials of one round, or a fixed design that was cut short."""
    if state.config.can_run:
        return state.config.exact_epochs is not None and state.config.runs_left == 0
    return sum(r.side is Side.CANDIDATE for r in state.rounds) <= 1


def _repeats_failing(evidence: Evidence) -> bool:
    """True if failing cases of this suite may be asked again together; known before anything is run."""
    state = evidence.state
    return not state.clusters and state.config.exact_epochs is None and len(evidence.wanted) >= LEAST_SUITE


def look_shares(config: Config, *, repeated: bool = True) -> dict[int, float]:
    """Epoch → share of alpha for the look after it; with the repeats they add up to the same in every design."""
    if config.exact_epochs is not None:
        return {config.exact_epochs: ONE_LOOK_SHARE}
    last, whole = config.max_epochs, LOOK_SHARES if repeated else ALONE_SHARES
    shares = list(whole[: min(2, last - 1)])
    rest = sum(whole) - sum(shares)
    spread = max(1, last - len(shares))
    return dict(enumerate(shares + [rest / spread] * spread, start=1))


def look_part(evidence: Evidence) -> float:
    """The newest look's part of what all looks of this design share; the parts add up to 1."""
    config = evidence.state.config
    shares = look_shares(config, repeated=_repeats_failing(evidence)).values()
    whole = ONE_LOOK_SHARE if _one_look(evidence.state) else sum(shares)
    return evidence.last_look.spent / (config.alpha * whole) if evidence.last_look else 0.0


class Orientation:
    """Turns values so that larger is better; positive metrics into logarithms, so that a change is a ratio."""

    def __init__(self, state: State) -> None:
        self.metrics = state.metrics
        rows = [row for trials in state.baseline.values() for row in trials]
        rows += [row for r in state.rounds if r.tag == FULL for trials in r.trials.values() for row in trials]
        self.floors = [
            _stands_for_zero(rows, m) if metric.kind == "positive" else 0.0 for m, metric in enumerate(state.metrics)
        ]

    def __call__(self, row: Row) -> Row:
        return [self._value(m, row[m] if m < len(row) else None) for m in range(len(self.metrics))]

    def _value(self, m: int, value: float | None) -> float | None:
        if value is None or not math.isfinite(value):
            return None
        metric = self.metrics[m]
        if metric.kind == "positive":
            value = math.log(max(value, self.floors[m]))
        return float(value) if metric.direction is Direction.HIGHER else -float(value)


def _stands_for_zero(rows: Iterable[Row], m: int) -> float:
    """Return the stand-in for zero in a logarithm: the same for both sides, so a relabelling does not see it.

    Half of the smallest positive value, but no more than the mean: where nearly all are zero, a few that are not would
    be twice as much, however large they are, and would vanish among the others.
    """
    values = [v for row in rows if m < len(row) and (v := row[m]) is not None and 0 <= v < math.inf]
    positive = [value for value in values if value]
    if not positive:
        return 1.0
    return min(min(positive) / 2, sum(value / len(values) for value in positive))


def _paired(state: State, orient: Orientation) -> Evidence:
    """The cases with a baseline whose success is known; once something ran, those that ran."""
    wanted = tuple(c for c, trials in state.baseline.items() if any(row and row[0] is not None for row in trials))
    ran = {c for r in state.rounds if r.side is Side.CANDIDATE for c in r.trials}
    cases = {}
    for case_id in wanted:
        if ran and case_id not in ran:
            continue
        rows = [orient(row) for row in state.baseline[case_id]]
        before = _measured(rows)
        places = [place for place, row in enumerate(rows) if _is_measured(row)]
        outcomes = [row[0] >= 0.5 for row in before if row[0] is not None]
        case = CaseEvidence(case_id, before, stored=len(outcomes), stored_passed=sum(outcomes), before_job=len(before))
        case.baseline_trials, case.baseline_passed = case.stored, case.stored_passed
        case.stored_at = {place: position for position, place in enumerate(places)}
        cases[case_id] = case
    return Evidence(state, cases, wanted)


def _add(
    evidence: Evidence,
    tag: str,
    side: Side,
    trials: Mapping[str, Sequence[Row]],
    links: Mapping[str, Sequence[Partner | None]],
) -> None:
    evidence.runs[side] += sum(map(len, trials.values()))
    if tag == CONCURRENT:
        fresh = evidence.fresh.setdefault(side, {})
        for case_id, rows in trials.items():
            fresh.setdefault(case_id, []).extend(rows)
            if case_id in evidence.cases:
                case = evidence.cases[case_id]
                (case.now if side is Side.BASELINE else case.again).extend(_measured(rows))
        return
    if side is Side.CANDIDATE:
        evidence.epochs += max(map(len, trials.values()), default=0) if tag == FULL else 0
        evidence.waves = 0 if tag == FULL else evidence.waves + 1
        evidence.naming_waves += tag == CONFIRM and evidence.proof is not None
    for case_id, rows in trials.items():
        if case_id in evidence.cases:
            known = links.get(case_id) or (None,) * len(rows)
            found = [(row, link) for row, link in zip(rows, known, strict=True) if _is_measured(row)]
            _add_case(evidence.cases[case_id], tag, side, [row for row, _ in found], [link for _, link in found])


def _add_case(case: CaseEvidence, tag: str, side: Side, rows: Sequence[Row], links: Sequence[Partner | None]) -> None:
    outcomes = [row[0] >= 0.5 for row in rows if row[0] is not None]
    if side is Side.BASELINE:
        case.baseline_trials += len(outcomes)
        case.baseline_passed += sum(outcomes)
        if tag == FULL:
            case.before.extend(rows)
            case.now.extend(rows)
            case.stored += len(outcomes)
            case.stored_passed += sum(outcomes)
        return
    case.trials += len(outcomes)
    case.passed += sum(outcomes)
    whole = sum(link is not None and link.whole for link in links)
    case.whole, case.others = case.whole + whole, case.others + len(links) - whole
    partners = [None if link is None else case.stored_at.get(link.stored) for link in links]
    case.coupled = with_pairs(case.coupled, rows, [None if p is None else case.before[p] for p in partners])
    if tag == FULL:
        case.full.extend(rows)
        placed = zip(links, partners, strict=True)
        case.links.extend(None if link is None or p is None else Partner(p, link.whole) for link, p in placed)
        case.newest_failed = bool(outcomes) and not outcomes[-1] and not _failed_alike(case)


def _failed_alike(case: CaseEvidence) -> bool:
    """True if the newest trial was answered wholly from the recording of one that failed, too: that is no news."""
    link = case.links[-1] if case.links else None
    return link is not None and link.whole and case.before[link.stored][0] == 0


def _is_measured(row: Row) -> bool:
    return any(value is not None for value in row)


def _measured(rows: Sequence[Row]) -> list[Row]:
    """Without the trials that ended in an error: they count as run, not as seen."""
    return [row for row in rows if _is_measured(row)]


def _look(evidence: Evidence, share: float, known: Looks | None) -> None:
    """Tests what is new since the last look against all that was there before, and adds it to what earlier looks found.

    Under "unchanged" every order of a case's trials is equally likely. Given which trials there are, which of them came
    last says nothing of the order of the rest: so the p-values of successive looks are independent, and may be
    combined with their joint law known. Nothing of the budget is lost to looks that overlap.
    """
    spent = level = share * evidence.state.config.alpha
    added = _new_parts(evidence)
    if added:
        evidence.weights.append(math.hypot(*(part.weight for part in added)))
        evidence.spent.append(spent)
        level = nominal_level(tuple(evidence.spent), tuple(evidence.weights))
    for part in added:
        key = evidence.epochs, part.side
        test = known.get(key) if known is not None else None
        if test is None:
            seed = f"{evidence.state.seed}:{evidence.epochs}" + ":baseline" * (part.side is Side.BASELINE)
            test = test_rows(part.pairs, part.blocking, seed, level, evidence.units, evidence.state.config.fineness)
            if known is not None:
                known[key] = test
        tested = (evidence.state.metrics[m].name for m in part.blocking)
        evidence.parts.append(LookPart(part.weight, dict(zip(tested, test.metrics, strict=True)), test))
    names = tuple(evidence.state.metrics[m].name for m in blocking_metrics(evidence))
    look = Look(evidence.epochs, names, _combined(evidence.parts, names), level, spent)
    evidence.looks.append(look)
    if look.blocks and not evidence.proof:
        evidence.proof = Stage(StageKind.SUITE_LOOK, look.epochs)


def _pick(evidence: Evidence) -> None:
    """The cases that failed in the newest epoch, to be asked again; not where trials of cases depend on one another."""
    look = evidence.last_look
    if look is None or not _repeats_failing(evidence):
        return
    failing = [case for case in evidence.cases.values() if case.newest_failed and not any(case.links)]
    evidence.repeats.pick([Failing(case.id, *case.stored_outcomes) for case in failing], look.test.p, evidence.epochs)


def _repeat(
    evidence: Evidence, trials: Mapping[str, Sequence[Row]], links: Mapping[str, Sequence[Partner | None]]
) -> None:
    """A repeat that was answered from a recording shares its luck with a stored trial, and counts as not measured."""
    outcomes = {
        case_id: [
            None if row[0] is None or link is not None else row[0] >= 0.5
            for row, link in zip(rows, links.get(case_id) or (None,) * len(rows), strict=True)
        ]
        for case_id, rows in trials.items()
    }
    test = evidence.repeats.add(outcomes, evidence.epochs, evidence.state.config.alpha)
    if test is not None and test.blocks and not evidence.proof:
        evidence.proof = Stage(StageKind.REPEATS, evidence.epochs)


def _repeated_now(evidence: Evidence) -> float | None:
    """Test whether the cases that were asked again fail more often than with the baseline's agent, asked in this job.

    If the change is no worse than that is now, the repeats of both are draws of one law, whatever was stored: who was
    picked is decided by other trials. None where the cases were not asked alike: outcomes may be why.
    """
    cases = []
    for case_id, asked in evidence.repeats.cases.items():
        case = evidence.cases[case_id]
        passed, trials = case.baseline_passed - case.stored_passed, case.baseline_trials - case.stored
        cases.append(Repeated(passed, trials, asked.passed, asked.trials, 0))
    alike = len({(case.before, case.trials) for case in cases}) == 1 and cases[0].before > 0
    return repeats_p(tuple(cases)) if alike else None


def _check(evidence: Evidence, known: Looks | None, *, paired: bool) -> None:
    """A test of the candidate against what the baseline's agent does in this job, once a step of the check is complete.

    No case was picked for it by what the change did, so with a provider that moved both, or a baseline that was stored
    on a lucky day, every labelling is equally likely. Labels of stored trials stay: they say which cases are steady.
    """
    step = len(evidence.checks) + 1
    keys = (-step, Side.BASELINE), (-step, Side.CANDIDATE)
    tests = [known.get(key) for key in keys] if known is not None else [None, None]
    found = tests[0] or _against_now(evidence, step)
    moved = tests[1] or _against_stored(evidence, step)
    if known is not None:
        known.update(zip(keys, (found, moved), strict=True))
    asked = evidence.fresh.get(Side.BASELINE, {})
    rounds = min((len(asked.get(case_id, ())) for case_id in live_cases(evidence)), default=0)
    evidence.checks.append(Checked(len(asked), rounds, paired, found, moved))
    _look_beside(evidence, known)


def _against_now(evidence: Evidence, step: int) -> JointTest:
    cases, config = evidence.cases.values(), evidence.state.config
    pairs = [
        ComparedTrials(
            [row for row, link in zip(c.full, c.links, strict=True) if link is None or not link.whole] + c.again,
            c.now,
            held=apart_from(c.links, c.before[: c.before_job]),
        )
        for c in cases
    ]
    seed = f"{evidence.state.seed}:check {step}"
    return test_rows(pairs, blocking_metrics(evidence), seed, config.alpha, evidence.units, config.fineness)


def _against_stored(evidence: Evidence, step: int) -> JointTest:
    """Test whether the baseline's agent itself is worse now."""
    pairs = [ComparedTrials(c.now, c.before[: c.before_job]) for c in evidence.cases.values()]
    seed = f"{evidence.state.seed}:moved {step}"
    config = evidence.state.config
    return test_rows(pairs, blocking_metrics(evidence), seed, config.alpha, evidence.units, config.fineness)


def live_cases(evidence: Evidence) -> tuple[str, ...]:
    """The cases that a drift can show in: not everything of them was answered from recordings."""
    return tuple(case.id for case in evidence.cases.values() if case.live)


def answers_now(evidence: Evidence) -> bool:
    """True if the baseline's agent was measured in this job in most of the cases that it was asked: one that is down
    says nothing of a drift."""
    asked = evidence.fresh.get(Side.BASELINE, {})
    return 2 * sum(bool(case.now) for case in evidence.cases.values() if case.id in asked) > len(asked)


def _look_beside(evidence: Evidence, known: Looks | None) -> None:
    """The looks anew, with the baseline's trials of this job beside the stored ones; once it was asked every case.

    If nothing changed and nothing moved, the order of stored trials and those of this job says nothing of whether the
    candidate's are worse than both. So these looks are independent of the test whether the baseline moved.
    """
    rounds = evidence.checks[-1].rounds if evidence.checks else 0
    if not rounds or not evidence.looks or not answers_now(evidence):
        return
    cases = list(evidence.cases.values())
    before = [[*case.before[: case.before_job], *case.now] for case in cases]
    parts: list[LookPart] = []
    weights: list[float] = []
    spent: list[float] = []
    for j, look in enumerate(evidence.looks):
        start, end = [case.looked_at[j - 1] if j else 0 for case in cases], [case.looked_at[j] for case in cases]
        sizes = [(e - s, len(rows), s) for s, e, rows in zip(start, end, before, strict=True)]
        pairs = [
            compared(case.full[:e], case.links[:e], s, rows)
            for case, s, e, rows in zip(cases, start, end, before, strict=True)
        ]
        weight, blocking = _weight(sizes), _comparable(evidence, pairs)
        if not weight or not blocking:
            continue
        weights.append(weight)
        spent.append(look.spent * BESIDE)
        level = nominal_level(tuple(spent), tuple(weights))
        key = (-1000 * rounds - j, Side.CANDIDATE)
        test = known.get(key) if known is not None else None
        if test is None:
            seed = f"{evidence.state.seed}:beside {rounds} {j}"
            test = test_rows(pairs, blocking, seed, level, evidence.units, evidence.state.config.fineness)
        if known is not None:
            known[key] = test
        tested = (evidence.state.metrics[m].name for m in blocking)
        parts.append(LookPart(weight, dict(zip(tested, test.metrics, strict=True)), test))
    names = evidence.looks[-1].names
    moved = evidence.checks[-1].moved.metrics
    if not parts or len(moved) != len(names):
        return
    test = _combined(parts, names)
    clearest = min(range(len(names)), key=lambda m: test.metrics[m].p_adjusted)
    look = Look(evidence.epochs, names, test, level, spent[-1])
    evidence.beside.append(Beside(look, moved[clearest], rounds))


class NewTrials(Struct, frozen=True):
    """The trials of one side since the last look."""

    side: Side
    weight: float
    pairs: Sequence[ComparedTrials]
    """The new trials of each case and those to compare them with."""
    blocking: Sequence[int]


def _new_parts(evidence: Evidence) -> list[NewTrials]:
    """Return the new trials since the last look, of the baseline and then of the candidate.

    New trials of the baseline are compared with all that was there before, of both sides: if the candidate is worse,
    they pass more often.
    """
    found = [_new_baseline(evidence), _new_candidate(evidence)]
    for case in evidence.cases.values():
        case.looked_before, case.looked_full = len(case.before), len(case.full)
        case.looked_at.append(case.looked_full)
    return [part for part in found if part.weight > 0 and part.blocking]


def _new_baseline(evidence: Evidence) -> NewTrials:
    pairs: list[ComparedTrials] = []
    sizes = []
    for case in evidence.cases.values():
        old, full = case.before[: case.looked_before], case.full[: case.looked_full]
        new = case.before[case.looked_before :] if full else []
        links = case.links[: case.looked_full]
        free = [row for row, link in zip(full, links, strict=True) if link is None]
        pairs.append(ComparedTrials([*free, *apart_from(links, old)], new))
        sizes.append((len(new), len(full), len(old)))
    return NewTrials(Side.BASELINE, _weight(sizes), pairs, _comparable(evidence, pairs))


def _new_candidate(evidence: Evidence) -> NewTrials:
    pairs: list[ComparedTrials] = []
    sizes = []
    for case in evidence.cases.values():
        old, new = case.full[: case.looked_full], case.full[case.looked_full :]
        pairs.append(compared(case.full, case.links, case.looked_full, case.before))
        sizes.append((len(new), len(case.before), len(old)))
    return NewTrials(Side.CANDIDATE, _weight(sizes), pairs, _comparable(evidence, pairs))


def _weight(sizes: Sequence[tuple[int, int, int]]) -> float:
    """Return how clearly a drop that all cases share would show, from the numbers of trials alone.

    Args:
        sizes: of each case, new trials of one side, earlier ones of the other, earlier ones of the same.
    """
    known = [size for size in sizes if size[0] and size[1]]
    if not known:
        return 0.0
    new, other, same = (fmean(column) for column in zip(*known, strict=True))
    share = other / (other + same)
    return round(share / math.sqrt(1 / new + 1 / (other + same)) * math.sqrt(len(known) / len(sizes)), 3)


def _combined(parts: Sequence[LookPart], names: Sequence[str]) -> JointTest:
    """The parts so far as one test."""
    if not parts:
        return JointTest(1.0, tuple(PerMetricTest(1.0, 1.0, 1.0) for _ in names), 0)
    metrics = tuple(
        _combined_metric([(p.metrics[name], p.weight) for p in parts if name in p.metrics]) for name in names
    )
    whole = combined_p([(part.test.p, part.weight) for part in parts])
    return JointTest(whole, metrics, parts[-1].test.relabelings)


def _combined_metric(tests: Sequence[tuple[PerMetricTest, float]]) -> PerMetricTest:
    if not tests:
        return PerMetricTest(1.0, 1.0, 1.0)
    shifts = [(test.p_shift, weight) for test, weight in tests if test.p_shift is not None]
    return PerMetricTest(
        combined_p([(test.p_mean, weight) for test, weight in tests]),
        combined_p([(test.p_concentrated, weight) for test, weight in tests]),
        combined_p([(test.p_adjusted, weight) for test, weight in tests]),
        combined_p(shifts) if shifts else None,
    )


def _comparable(evidence: Evidence, pairs: Sequence[ComparedTrials]) -> list[int]:
    blocking = [m for m, metric in enumerate(evidence.state.metrics) if metric.blocks_regression]
    return [m for m in blocking if any(_has(pair.now, m) and _has(pair.before, m) for pair in pairs)]


def blocking_metrics(evidence: Evidence) -> list[int]:
    """Return the blocking metrics that can be compared: one that a side lacks everywhere would only keep labels from
    changing hands."""
    return _comparable(evidence, [ComparedTrials(case.full, case.before) for case in evidence.cases.values()])


def _has(rows: Sequence[Row], m: int) -> bool:
    return any(row[m] is not None for row in rows)


def test_rows(
    pairs: Iterable[ComparedTrials],
    blocking: Sequence[int],
    seed: str,
    level: float,
    units: Sequence[Sequence[int]] = (),
    fineness: int = FINE,
) -> JointTest:
    """The joint test on the blocking metrics alone, fine enough for ``level``.

    ``units``: the positions of cases that are relabelled together.
    """

    def chosen(rows: Sequence[Row]) -> list[Row]:
        return [[row[m] for m in blocking] for row in rows]

    pairs = list(pairs)
    sides = [(chosen(pair.now), chosen(pair.before)) for pair in pairs]
    cases = [_level(*side) for side in sides] if blocking[:1] == [0] else sides
    links = [pair.links for pair in pairs]
    if units and len(units) < len(cases):
        cases, links = units_of(cases, units, links)
        return joint_permutation(cases, len(blocking), seed=seed, level=level, links=links, fineness=fineness)
    held = [chosen(pair.held) for pair in pairs]
    return joint_permutation(cases, len(blocking), seed=seed, level=level, held=held, links=links, fineness=fineness)


def _level(now: Sequence[Row], before: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """The trials of a case, with the mean of both sides' values for what a failed trial lacks.

    Labels change hands only among trials that lack the same values, so a crash beside answers would never enter the
    test. The mean is the same under every relabelling, which keeps the test exact, and it says nothing of the metric.
    A trial whose success is known lacks a blocking score only where the agent failed or a hard rule ended it.
    """
    rows = [*now, *before]
    if not any(map(_fell, rows)):
        return now, before
    columns = list(zip(*rows, strict=True))
    means = [fmean(known) if (known := [v for v in column if v is not None]) else None for column in columns]

    def filled(row: Row) -> Row:
        return [m if v is None else v for v, m in zip(row, means, strict=True)] if _fell(row) else row

    return [filled(row) for row in now], [filled(row) for row in before]


def _fell(row: Row) -> bool:
    return row[0] == 0 and None in row


def _weigh(evidence: Evidence) -> None:
    log_es = log_es_of([case.log_e for case in evidence.cases.values()], evidence.units)
    evidence.suite_e = suite_e(log_es, recorded=evidence.state.recorded)
    evidence.highest_suite_e = max(evidence.highest_suite_e, evidence.suite_e)
    if evidence.suite_e >= evidence.e_threshold and not evidence.case_proof:
        kind = StageKind.CASE_RERUNS if evidence.waves else StageKind.CASES_AT_PASS
        evidence.case_proof = Stage(kind, 0 if evidence.waves else evidence.epochs)
        evidence.proof = evidence.proof or evidence.case_proof


# --- collapse -------------------------------------------------------------------------------------


def collapsed(evidence: Evidence) -> tuple[str, ...]:
    """The blocking metrics from 0 to 1 of which every value of the candidate's epochs is the worst, where the
    baseline's were not: no suite passes with one, however few its cases are."""
    return tuple(
        metric.name
        for m, metric in enumerate(evidence.state.metrics)
        if metric.blocks_regression and metric.kind != "positive" and _has_collapsed(evidence, m)
    )


def _has_collapsed(evidence: Evidence, m: int) -> bool:
    worst = 0.0 if evidence.state.metrics[m].direction is Direction.HIGHER else -1.0
    pairs = [
        ([v for row in case.full if (v := row[m]) is not None], [v for row in case.before if (v := row[m]) is not None])
        for case in evidence.cases.values()
    ]
    now, before = ([value for pair in pairs for value in pair[side]] for side in (0, 1))
    if not now or not before or max(now) > worst:
        return False
    counts = [
        (0, len(here), sum(value > worst for value in there), len(there)) for here, there in pairs if here and there
    ]
    return fmean(before) - worst >= COLLAPSED_FROM or stratified_fisher_less(counts) <= COLLAPSED_P


# --- the certificate ------------------------------------------------------------------------------


def bound(evidence: Evidence, m: int) -> Bound | None:
    """The paired mean change of a metric with its 90 % interval (low end missed in 5 %); None where nothing pairs.

    While epochs may follow, the interval is taken over the cases. At the end, of zeros and ones, it is that of these
    very cases, from the spread within each, where that is the tighter one: what else would keep an unchanged small
    suite inconclusive are differences between its cases, which it does not have. Not so where a case seems broken, or
    the tighter interval shows a fall: then cases differ.
    """
    ids, pairs, changes = [], [], []
    for case in evidence.cases.values():
        now, before = ([row[m] for row in rows if row[m] is not None] for rows in (case.full, case.before))
        if now and before:
            ids.append(case.id)
            pairs.append((now, before))
            changes.append(paired_difference(case.full, case.links, case.before, m))
    if not pairs:
        return None
    metric, units = evidence.state.metrics[m], grouped(ids, evidence.state.clusters)
    suspect = any(case.seems_worse for case in evidence.cases.values())
    by_chance = not (suspect and m == 0) and _few_by_chance(metric, pairs)  # type: ignore[arg-type]
    found = replace(_bound(metric, pairs, changes, units), by_chance=by_chance)  # type: ignore[arg-type]
    alone = len(units) == len(pairs) > TINY and not any(link for case in evidence.cases.values() for link in case.links)
    if evidence.ended and alone and not suspect and metric.kind == "binary" and metric.slope == 1.0:
        return _of_these_cases(found, pairs)  # type: ignore[arg-type]
    return found


def _of_these_cases(found: Bound, pairs: Sequence[tuple[list[float], list[float]]]) -> Bound:
    half = _NORMAL.inv_cdf(0.95) * change_sd([_passes(pair, found.metric) for pair in pairs])
    low, high = max(found.low, found.change - half), min(found.high, found.change + half)
    return replace(found, low=low, high=high) if high >= 0 else found


def _few_by_chance(metric: Metric, pairs: Sequence[tuple[list[float], list[float]]]) -> bool:
    """True if passes as these are common where both sides are alike, exactly; of few cases and of shares alone."""
    if metric.kind != "binary" or len(pairs) > TINY:
        return False
    return stratified_fisher_less([_passes(pair, metric) for pair in pairs]) > TINY_BY_CHANCE


def _passes(pair: tuple[list[float], list[float]], metric: Metric) -> tuple[int, int, int, int]:
    """The passed trials and the trials of both sides."""
    middle = 0.5 if metric.direction is Direction.HIGHER else -0.5
    now, before = ([value > middle for value in values] for values in pair)
    return sum(now), len(now), sum(before), len(before)


def _bound(
    metric: Metric,
    pairs: Sequence[tuple[list[float], list[float]]],
    changes: Sequence[tuple[float, float]],
    units: Sequence[Sequence[int]],
) -> Bound:
    """``units``: the positions of the pairs that are one unit, over which the interval is taken."""
    n = len(units)
    of_cases = [change for change, _ in changes]
    differences = [fmean(of_cases[position] for position in members) for members in units]
    inverse = fmean(inverse for _, inverse in changes)
    extra = inverse / 2 / n**2 if metric.kind == "binary" else 0.0
    change, low, high = paired_change(differences, extra_variance=extra)
    within = _within_sd(pairs, of_cases, inverse)
    if len(pairs) == 1 and within is not None:
        low, high = _one_case(*pairs[0])
    if metric.slope != 1.0 and math.isfinite(low):
        by = (metric.slope, metric.slope_error)
        change, low, high = corrected_change(change, low, high, by, t_quantile(0.95, max(1, n - 1)))
    floor = -1.0 if metric.kind == "binary" else -math.inf
    trials = sum(len(now) for now, _ in pairs)
    before_trials = sum(len(before) for _, before in pairs)
    return Bound(
        metric,
        len(pairs),
        trials,
        change,
        max(low, floor),
        min(high, -floor),
        margin_of(metric, len(pairs)),
        None if within is None else _detectable(metric, within, n, before_trials / n, trials / n),
        max(min(low, _excluded(pairs, differences, extra) / metric.slope), floor),
    )


def _detectable(metric: Metric, within: float, cases: int, before: float, now: float) -> float:
    drop = detectable_rate_drop if metric.kind == "binary" else detectable_drop
    return drop(within, cases, before, now) / metric.slope


def _excluded(pairs: Sequence[tuple[list[float], list[float]]], differences: Sequence[float], extra: float) -> float:
    """Return the metrics with values between 0 and 1, most of which are often the same; others vary enough to show
    their spread."""
    values = [value for pair in pairs for side in pair for value in side]
    if min(values) < 0 or max(values) > 1:
        return math.inf
    trials = fmean(len(now) for now, _ in pairs)
    return excluded_change(differences, trials=trials, worst=-1.0, extra_variance=extra)


def _one_case(now: list[float], before: list[float]) -> tuple[float, float]:
    """A single case has no spread over cases: Student's interval from the spread over its trials."""
    df = len(now) + len(before) - 2
    pooled = (_squares(now) + _squares(before)) / df
    half = t_quantile(0.95, df) * math.sqrt(pooled * (1 / len(now) + 1 / len(before)))
    change = fmean(now) - fmean(before)
    return change - half, change + half


def _within_sd(
    pairs: Sequence[tuple[list[float], list[float]]], differences: Sequence[float], inverse: float
) -> float | None:
    """The spread of one case's trials, pooled; from the differences where no case has two trials on a side."""
    repeated = [side for pair in pairs for side in pair if len(side) > 1]
    freedom = sum(len(side) - 1 for side in repeated)
    if freedom:
        return math.sqrt(sum(map(_squares, repeated)) / freedom)
    if len(differences) > 1:
        return math.sqrt(variance(differences) / inverse)
    return None


def _squares(values: Sequence[float]) -> float:
    """Sum of squares around the mean; `statistics.variance` is exact, and thirty times as slow."""
    centre = math.fsum(values) / len(values)
    return math.fsum((value - centre) ** 2 for value in values)
