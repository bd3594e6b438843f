"""The evidence from the trials so far: looks at the suite, e-values of cases, checks for drift. Replays the rounds and
decides nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from gate.decision.engine.bounds import bound_of, collapsed_metrics
from gate.decision.engine.case import CaseEvidence, is_measured, outcomes_in
from gate.decision.engine.clusters import grouped, log_es_of
from gate.decision.engine.coupled import apart_from, compared, linked, uncoupled
from gate.decision.engine.looks import LookPart, NewTrials, comparable_metrics, look_of, test_rows, weight_of
from gate.decision.engine.orientation import oriented
from gate.decision.engine.repeats import LEAST_SUITE, AskedAgain
from gate.decision.engine.state import CONCURRENT, Config, Round, Row, State, epochs_spent
from gate.model import CONFIRM, FULL, NARROW, Side, Stage, StageKind
from gate.model.evidence import LookTest, MetricChange, MetricTest
from gate.statistics.evalues import e_bh, suite_e
from gate.statistics.permutation import ComparedTrials, JointTest
from gate.statistics.repeats import Repeated, repeats_p
from gate.statistics.sequential import nominal_level
from gate.statistics.shift import fall_p

LOOK_SHARES = (0.45, 0.14, 0.05)
"""Share of alpha that the suite look after epochs 1, 2 and 3 may spend."""
ALONE_SHARES = (0.45, 0.20, 0.10)
"""The shares if no failing cases are rerun together; the looks then get the share of those reruns, too."""
ONE_LOOK_SHARE = sum(ALONE_SHARES)
"""The share of the only look in a design with one look."""
CASES_SHARE = 0.15
"""Share of alpha for the case e-values, at any time. With looks and reruns the sum is 0.90; the rest is for confirming
crashes. An unchanged agent is blocked less often than that, since most such agents pass at the first look."""
BESIDE = 2.2
"""Factor on the share of alpha for looks that add the baseline's trials of this job to the stored ones: the first may
spend all of it. Their proof counts only if that agent confirms it, by agreeing with its record or by being better than
the change, which an unchanged agent's seldom does."""
NEVER_PASSED = 3
"""Stored trials that must all have failed for a check to leave a case out: with fewer it may well pass often."""
ZERO_TRIALS = 11
"""Consecutive failing trials of a case that always passed that prevent PASS even if its baseline is too thin for a
proof. A case that passes half the time fails that often once in two thousand times."""


KnownTests = dict[tuple[str, int], JointTest]
"""Earlier computed tests of the suite, by seed and number of trials; only saves time."""


class Checked(Struct, frozen=True):
    """A step of a check for drift."""

    cases: int
    """Number of cases in which the check has run the baseline's agent so far."""
    rounds: int
    """Minimum number of times a case was run, over all cases with a live trial."""
    test: JointTest
    """The test of the candidate's trials against those of the baseline's agent in this job."""
    fall_p: float
    """The chance that as many of the baseline's trials in this job fail if every case passes as often as stored."""


class Beside(Struct, frozen=True):
    """The evidence against the record once the baseline's agent has run every case in this job."""

    look: LookTest
    """The looks so far, with the baseline's trials of this job added to the stored ones."""
    moved: MetricTest
    """The test of the baseline's agent against its record, in the metric in which ``look`` is clearest."""


class Evidence(Struct, dict=True):
    """All evidence that the rule uses."""

    state: State
    cases: dict[str, CaseEvidence]
    wanted: tuple[str, ...]
    """The cases of an epoch."""
    epochs: int = 0
    narrowing: int = 0
    """Number of trials that narrow the interval of the change."""
    waves: int = 0
    """Number of confirming rounds since the last epoch."""
    naming_waves: int = 0
    """Number of waves since a regression was proven."""
    looks: list[LookTest] = field(default_factory=list)
    parts: list[LookPart] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    """The weight of the new trials in each look."""
    spent: list[float] = field(default_factory=list)
    """The error that each look with new trials may add."""
    repeats: AskedAgain = field(default_factory=AskedAgain)
    """The joint test of the cases that failed in an epoch and are rerun together."""
    repeats_now: float | None = None
    """The p-value of those reruns against as many of the baseline's agent in this job, once they proved a
    regression."""
    suite_e: float = 1.0
    highest_suite_e: float = 1.0
    proof: Stage | None = None
    """The stage that first proved a regression; later trials do not change it."""
    case_proof: Stage | None = None
    """The stage at which the evidence of single cases first proved a regression."""
    checks: list[Checked] = field(default_factory=list)
    """The results after each step of a check for drift."""
    beside: list[Beside] = field(default_factory=list)
    """The results after each of those steps and each later look, once the baseline's agent has run every case."""
    asked_now: Counter[str] = field(default_factory=Counter)
    """Number of trials in which checks ran the baseline's agent, by case."""
    runs: dict[Side, int] = field(default_factory=lambda: dict.fromkeys(Side, 0))
    ended: bool = False
    """True if no further epoch follows."""
    known: KnownTests | None = None
    """The tests computed in earlier steps of this schedule; this step adds its own."""

    @property
    def config(self) -> Config:
        """The error rate and the number of runs that the decision may cost."""
        return self.state.config

    @cached_property
    def named(self) -> tuple[str, ...]:
        """Cases that are worse than at the baseline, as named by `e_bh`."""
        places, ids = e_bh([case.log_e for case in self.cases.values()]), list(self.cases)
        return tuple([ids[place] for place in places])

    @cached_property
    def gained(self) -> tuple[str, ...]:
        """Cases proven better than at the baseline, by the same test with the sides exchanged."""
        places, ids = e_bh([case.log_gain for case in self.cases.values()]), list(self.cases)
        return tuple([ids[place] for place in places])

    @cached_property
    def gain_p(self) -> float:
        """The p-value for the candidate passing more often in some cases: the joint test with the sides exchanged."""
        exchanged = []
        for case in self.cases.values():
            links = [(there, here) for here, there in linked(case.links)]
            exchanged.append(ComparedTrials(case.before, case.full, links))
        return test_rows(exchanged, [0], f"{self.state.seed}:gain", self.config.alpha, self.units).p

    @cached_property
    def units(self) -> list[list[int]]:
        """The positions of the cases in each unit: a cluster, or a single case."""
        return grouped(self.cases, self.state.clusters)

    def end(self) -> None:
        """Treat the next bounds as the last ones, which certify only these cases: see `bound_of`."""
        self.ended = True
        self.__dict__.pop("bounds", None)

    @cached_property
    def bounds(self) -> tuple[MetricChange | None, ...]:
        """The bound of each metric; None for one that cannot be compared."""
        cases = list(self.cases.values())
        return tuple([bound_of(cases, self.state, m, ended=self.ended) for m in range(len(self.state.metrics))])

    @property
    def open_metrics(self) -> list[int]:
        """The positions of the blocking metrics whose loss is not bounded by their margin."""
        found = []
        for m, bound in enumerate(self.bounds):
            if bound is not None and bound.blocks_regression and not bound.holds:
                found.append(m)
        return found

    @property
    def collapsed(self) -> tuple[str, ...]:
        """The metrics whose values are all the worst: no suite passes with one."""
        return collapsed_metrics(self.cases.values(), self.state)

    @property
    def epochs_spent(self) -> int:
        """Number of epochs that have run or were replaced."""
        return epochs_spent(self.epochs, self.narrowing, len(self.wanted))

    @property
    def last_look(self) -> LookTest | None:
        """The newest look."""
        if not self.looks:
            return None
        return self.looks[-1]

    @property
    def e_threshold(self) -> float:
        """The suite's e-value that proves a regression."""
        return 1 / (self.config.alpha * CASES_SHARE)

    @cached_property
    def unproven(self) -> tuple[str, ...]:
        """Cases that always passed and now never do, but are not proven broken: a pass would hide them."""
        cases = self.cases.values()
        return tuple([case.id for case in cases if case.never_passes and case.trials >= ZERO_TRIALS])


def gather(state: State, known: KnownTests | None = None) -> Evidence:
    """Return the evidence of all rounds, replayed in order, with looks where the schedule has them."""
    orient = oriented(state)
    evidence = _paired(state, orient)
    evidence.known = known
    shares = look_shares(state.config, repeated=_repeats_failing(evidence))
    looks_once = _one_look(state)
    for round_ in state.rounds:
        before = evidence.epochs
        trials = {case_id: [orient(row) for row in rows] for case_id, rows in round_.trials.items()}
        _add(evidence, round_, trials)
        if evidence.epochs > before and not looks_once:
            share = sum([shares.get(epoch, 0.0) for epoch in range(before + 1, evidence.epochs + 1)])
            if share:
                _look(evidence, share)
                if evidence.checks and evidence.checks[-1].rounds:
                    _check(evidence)
            _pick(evidence)
        if round_.tag == CONFIRM and round_.side is Side.CANDIDATE:
            _repeat(evidence, round_, trials)
        elif round_.tag == CONFIRM and evidence.repeats_now is None:
            evidence.repeats_now = _repeated_now(evidence)
        if round_.tag == CONCURRENT and round_.side is Side.BASELINE:
            _check(evidence)
        _weigh(evidence)
    if looks_once and evidence.epochs:
        _look(evidence, ONE_LOOK_SHARE)
        _look_beside(evidence)
    return evidence


def _one_look(state: State) -> bool:
    """True if the only look is at the end: trials of one round, or a fixed design that was cut short."""
    if state.config.can_run:
        return state.config.exact_epochs is not None and state.config.runs_left == 0
    return sum([round_.side is Side.CANDIDATE for round_ in state.rounds]) <= 1


def _repeats_failing(evidence: Evidence) -> bool:
    """True if failing cases of this suite may be rerun together; known before anything runs."""
    state = evidence.state
    return not state.clusters and state.config.exact_epochs is None and len(evidence.wanted) >= LEAST_SUITE


def look_shares(config: Config, *, repeated: bool = True) -> dict[int, float]:
    """Return the share of alpha for the look after each epoch; with the reruns the sum is the same in every design."""
    if config.exact_epochs is not None:
        return {config.exact_epochs: ONE_LOOK_SHARE}
    whole = ALONE_SHARES
    if repeated:
        whole = LOOK_SHARES
    shares = list(whole[: min(2, config.max_epochs - 1)])
    rest = sum(whole) - sum(shares)
    spread = max(1, config.max_epochs - len(shares))
    return dict(enumerate(shares + [rest / spread] * spread, start=1))


def look_part(evidence: Evidence) -> float:
    """Return the newest look's part of the budget of all looks in this design; the parts add up to 1."""
    if evidence.last_look is None:
        return 0.0
    config, whole = evidence.config, ONE_LOOK_SHARE
    if not _one_look(evidence.state):
        whole = sum(look_shares(config, repeated=_repeats_failing(evidence)).values())
    return evidence.last_look.spent / (config.alpha * whole)


def _paired(state: State, orient: Callable[[Row], Row]) -> Evidence:
    """Return the cases whose baseline has a known outcome; once trials have run, only cases that ran."""
    ran: set[str] = set()
    for round_ in state.rounds:
        if round_.side is Side.CANDIDATE:
            ran.update(round_.trials)
    wanted = []
    cases = {}
    for case_id, stored in state.baseline.items():
        if not any(row and row[0] is not None for row in stored):
            continue
        wanted.append(case_id)
        if not ran or case_id in ran:
            cases[case_id] = _stored_case(case_id, [orient(row) for row in stored])
    return Evidence(state, cases, tuple(wanted))


def _stored_case(case_id: str, rows: Sequence[Row]) -> CaseEvidence:
    """Return a case with only its stored trials."""
    case = CaseEvidence(case_id, [])
    for place, row in enumerate(rows):
        if is_measured(row):
            case.stored_at[place] = len(case.before)
            case.before.append(row)
    case.before_job = len(case.before)
    case.stored_passed, case.stored = case.stored_outcomes
    case.baseline_passed, case.baseline_trials = case.stored_passed, case.stored
    return case


def _add(evidence: Evidence, round_: Round, trials: Mapping[str, Sequence[Row]]) -> None:
    """Add the oriented trials of a round."""
    tag, side = round_.tag, round_.side
    evidence.runs[side] += sum(map(len, trials.values()))
    if side is Side.CANDIDATE and tag == FULL:
        evidence.epochs += max(map(len, trials.values()), default=0)
        evidence.waves = 0
    elif side is Side.CANDIDATE and tag == NARROW:
        evidence.narrowing += sum(map(len, trials.values()))
        evidence.waves = 0
    elif side is Side.CANDIDATE and tag != CONCURRENT:
        evidence.waves += 1
        evidence.naming_waves += tag == CONFIRM and evidence.proof is not None
    for case_id, rows in trials.items():
        if side is Side.BASELINE and tag == CONCURRENT:
            evidence.asked_now[case_id] += len(rows)
        if case_id in evidence.cases:
            evidence.cases[case_id].add(tag, side, rows, round_.links_of(case_id))


# --- looks ----------------------------------------------------------------------------------------


def _look(evidence: Evidence, share: float) -> None:
    """Test the new trials since the last look against all earlier ones, and combine the result with earlier looks.

    If nothing changed, every order of a case's trials is equally likely. Given the set of trials, the choice of the
    last ones says nothing about the order of the rest: so the p-values of successive looks are independent, and can be
    combined by their known joint law. No budget is lost to overlapping looks.
    """
    spent = level = share * evidence.config.alpha
    added = _new_parts(evidence)
    if added:
        evidence.weights.append(math.hypot(*[part.weight for part in added]))
        evidence.spent.append(spent)
        level = nominal_level(tuple(evidence.spent), tuple(evidence.weights))
    for new in added:
        seed = str(evidence.epochs)
        if new.side is Side.BASELINE:
            seed += ":baseline"
        evidence.parts.append((new, _tested(evidence, new.pairs, new.blocking, seed, level)))
    metrics = {m: evidence.state.metrics[m].name for m in blocking_metrics(evidence)}
    look = look_of(evidence.parts, metrics, epochs=evidence.epochs, threshold=level, spent=spent)
    evidence.looks.append(look)
    if look.blocks and not evidence.proof:
        evidence.proof = Stage(StageKind.SUITE_LOOK, look.epochs)


def _tested(
    evidence: Evidence, pairs: Sequence[ComparedTrials], blocking: Sequence[int], seed: str, level: float
) -> JointTest:
    """Return the joint test of the suite, computed only once."""
    state, known = evidence.state, evidence.known
    key = seed, sum([len(pair.now) + len(pair.before) for pair in pairs])
    if known is not None and key in known:
        return known[key]
    test = test_rows(pairs, blocking, f"{state.seed}:{seed}", level, evidence.units, state.config.fineness)
    if known is not None:
        known[key] = test
    return test


def _pick(evidence: Evidence) -> None:
    """Pick the cases that failed in the newest epoch for reruns, unless their trials are coupled."""
    look = evidence.last_look
    if look is None or not _repeats_failing(evidence):
        return
    failing = {}
    for case in evidence.cases.values():
        if case.newest_failed and not any(case.links):
            failing[case.id] = case.stored_outcomes
    evidence.repeats.pick(failing, look.p, evidence.epochs)


def _repeat(evidence: Evidence, round_: Round, trials: Mapping[str, Sequence[Row]]) -> None:
    """Add a round of reruns. A rerun answered from a recording shares its luck with a stored trial, so it counts as not
    measured."""
    outcomes = {}
    for case_id, rows in trials.items():
        of_case: list[bool | None] = []
        for row, link in zip(rows, round_.links_of(case_id), strict=True):
            outcome = None
            if row[0] is not None and link is None:
                outcome = row[0] >= 0.5
            of_case.append(outcome)
        outcomes[case_id] = of_case
    test = evidence.repeats.add(outcomes, evidence.epochs, evidence.config.alpha)
    if test is not None and test.blocks and not evidence.proof:
        evidence.proof = Stage(StageKind.REPEATS, evidence.epochs)


def _repeated_now(evidence: Evidence) -> float | None:
    """Return the p-value that the rerun cases fail more often than with the baseline's agent in this job.

    If the change is no worse than that agent, the reruns of both have the same law, whatever was stored, since other
    trials decided which cases were picked. None if the cases were not all run equally often: outcomes may be the
    reason.
    """
    if evidence.proof is None or evidence.proof.kind is not StageKind.REPEATS:
        return None
    cases = []
    for case_id, asked in evidence.repeats.cases.items():
        case = evidence.cases[case_id]
        passed, trials = case.baseline_passed - case.stored_passed, case.baseline_trials - case.stored
        cases.append(Repeated(passed, trials, asked.passed, asked.trials, 0))
    sizes = {(case.before, case.trials) for case in cases}
    if len(sizes) != 1 or not cases[0].before:
        return None
    return repeats_p(tuple(cases))


# --- checks for drift -----------------------------------------------------------------------------


def _check(evidence: Evidence) -> None:
    """Test the candidate against the baseline's agent in this job, once a step of the check is complete.

    The change's results picked no case for it. So even if the provider moved both sides, or the baseline was stored on
    a lucky day, every labelling is equally likely. Labels of stored trials stay fixed: they show which cases are
    steady.
    """
    pairs = [_against_now(case) for case in evidence.cases.values()]
    seed = f"check {len(evidence.checks) + 1}"
    found = _tested(evidence, pairs, blocking_metrics(evidence), seed, evidence.config.alpha)
    asked = evidence.asked_now
    rounds = min([asked[case_id] for case_id in checked_cases(evidence)], default=0)
    counts = []
    for case in evidence.cases.values():
        now = outcomes_in(case.now)
        counts.append((sum(now), len(now), *case.stored_outcomes))
    fallen = fall_p(counts)
    evidence.checks.append(Checked(len(asked), rounds, found, fallen))
    _look_beside(evidence)


def _against_now(case: CaseEvidence) -> ComparedTrials:
    """Return the candidate's trials that ran live, to compare with the baseline's agent in this job."""
    live = [row for row, link in zip(case.full, case.links, strict=True) if link is None or not link.whole]
    return ComparedTrials(live, case.now, held=apart_from(case.links, case.before[: case.before_job]))


def checked_cases(evidence: Evidence) -> tuple[str, ...]:
    """Return the cases in which a check runs the baseline's agent: not all their trials were answered entirely from
    recordings, and they could show a drop. A case that never passed when stored could not, unless its trials are few or
    another metric blocks, too."""
    live = [case for case in evidence.cases.values() if case.live]
    telling = live
    if len(blocking_metrics(evidence)) == 1:
        telling = []
        for case in live:
            passed, trials = case.stored_outcomes
            if passed or trials < NEVER_PASSED:
                telling.append(case)
    return tuple([case.id for case in telling or live])


def answers_now(evidence: Evidence) -> bool:
    """True if the baseline's agent was measured in most of the cases it ran in this job: one that is down says nothing
    about drift."""
    answering = [case for case in evidence.cases.values() if case.now and case.id in evidence.asked_now]
    return 2 * len(answering) > len(evidence.asked_now)


def _look_beside(evidence: Evidence) -> None:
    """Repeat the looks with the baseline's trials of this job added to the stored ones, once it has run every case.

    If nothing changed and nothing moved, the order of stored trials and those of this job is independent of the
    candidate being worse than both. So these looks are independent of the test for a move of the baseline.
    """
    if not evidence.checks or not evidence.looks or not answers_now(evidence):
        return
    rounds = evidence.checks[-1].rounds
    if not rounds:
        return
    pairs = [ComparedTrials(case.now, case.before[: case.before_job]) for case in evidence.cases.values()]
    seed = f"moved {len(evidence.checks)}"
    moved = _tested(evidence, pairs, blocking_metrics(evidence), seed, evidence.config.alpha).metrics
    parts: list[LookPart] = []
    spent: list[float] = []
    level = 0.0
    weights: list[float] = []
    for number, look in enumerate(evidence.looks):
        new = _new_candidate(evidence, number, beside=True)
        if new is None:
            continue
        spent.append(look.spent * BESIDE)
        weights.append(new.weight)
        level = nominal_level(tuple(spent), tuple(weights))
        parts.append((new, _tested(evidence, new.pairs, new.blocking, f"beside {rounds} {number}", level)))
    names = list(evidence.looks[-1].metrics)
    if not parts or len(moved) != len(names):
        return
    metrics = {m: metric.name for m, metric in enumerate(evidence.state.metrics) if metric.name in names}
    look = look_of(parts, metrics, epochs=evidence.epochs, threshold=level, spent=spent[-1])
    clearest = min(range(len(names)), key=lambda place: look.metrics[names[place]].p_adjusted)
    evidence.beside.append(Beside(look, moved[clearest]))


# --- new trials since the last look ---------------------------------------------------------------


def _new_parts(evidence: Evidence) -> list[NewTrials]:
    """Return the new trials since the last look, of the baseline and then of the candidate.

    New trials of the baseline are compared with all earlier trials of both sides: if the candidate is worse, they pass
    more often.
    """
    of_baseline = _new_baseline(evidence)
    for case in evidence.cases.values():
        case.looked_before = len(case.before)
        case.looked_at.append(len(case.full))
    found = [of_baseline, _new_candidate(evidence, len(evidence.looks))]
    return [new for new in found if new is not None]


def _new_trials(
    evidence: Evidence, side: Side, pairs: Sequence[ComparedTrials], sizes: Sequence[tuple[int, int, int]]
) -> NewTrials | None:
    """Return the new trials of a side, with the arguments of `weight_of`; None if there is nothing to compare."""
    weight, blocking = weight_of(sizes), comparable_metrics(evidence.state.metrics, pairs)
    if not weight or not blocking:
        return None
    return NewTrials(side, weight, pairs, blocking)


def _new_baseline(evidence: Evidence) -> NewTrials | None:
    pairs: list[ComparedTrials] = []
    sizes = []
    for case in evidence.cases.values():
        looked = case.looked_at[-1]
        old, full, links = case.before[: case.looked_before], case.full[:looked], case.links[:looked]
        new: list[Row] = []
        if full:
            new = case.before[case.looked_before :]
        pairs.append(ComparedTrials([*uncoupled(full, links), *apart_from(links, old)], new))
        sizes.append((len(new), len(full), len(old)))
    return _new_trials(evidence, Side.BASELINE, pairs, sizes)


def _new_candidate(evidence: Evidence, number: int, *, beside: bool = False) -> NewTrials | None:
    """Return the candidate's new trials of a look; ``beside``: with the baseline's trials of this job among the earlier
    ones."""
    pairs: list[ComparedTrials] = []
    sizes = []
    for case in evidence.cases.values():
        start, end = case.looked_at[number : number + 2]
        before: Sequence[Row] = case.before
        if beside:
            before = [*case.before[: case.before_job], *case.now]
        pairs.append(compared(case.full[:end], case.links[:end], start, before))
        sizes.append((end - start, len(before), start))
    return _new_trials(evidence, Side.CANDIDATE, pairs, sizes)


def blocking_metrics(evidence: Evidence) -> list[int]:
    """Return the blocking metrics with values on both sides."""
    pairs = [ComparedTrials(case.full, case.before) for case in evidence.cases.values()]
    return comparable_metrics(evidence.state.metrics, pairs)


def _weigh(evidence: Evidence) -> None:
    """Update the suite's e-value, and the proof by single cases if it is reached."""
    log_es = log_es_of([case.log_e for case in evidence.cases.values()], evidence.units)
    evidence.suite_e = suite_e(log_es, recorded=evidence.state.recorded)
    evidence.highest_suite_e = max(evidence.highest_suite_e, evidence.suite_e)
    if evidence.suite_e >= evidence.e_threshold and not evidence.case_proof:
        evidence.case_proof = Stage(StageKind.CASES_AT_PASS, evidence.epochs)
        if evidence.waves:
            evidence.case_proof = Stage(StageKind.CASE_RERUNS)
        evidence.proof = evidence.proof or evidence.case_proof
