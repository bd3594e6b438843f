"""Pairs the trials of both sides, case by case, into the numbers that the engine decides on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from gate.decision import all_pass, consistency
from gate.decision.correction import PLAIN, Correction, correction_for
from gate.decision.coupling import CoupledTrials, coupling
from gate.decision.engine.state import FULL, Config, Metric, Partner, Rerun, Round, Row, State
from gate.decision.repeats import Repeats, repeats
from gate.model import PROBE, REPEAT, Case, Criterion, Direction, Scale, Score, Side, Trial
from gate.model.defaults import (
    ALPHA,
    CONFIRM_AFTER,
    MAX_ERROR_RATE,
    MOST_EPOCHS,
    ON_INCONCLUSIVE,
    POWER_DROP,
    POWER_FIND,
    STORED_TRIALS,
)
from gate.model.finding import Finding

PASS_RATE = "pass rate"  # noqa: S105 - no password
"""The name of metric 0: whether a trial holds every blocking criterion."""
RATE_METRIC = "pass_rate"
"""The metric of a criterion that demands something of metric 0."""
_OF_OUTCOMES = frozenset({all_pass.METRIC, RATE_METRIC})
"""The metrics that count which trials pass."""
_OF_SEVERAL = _OF_OUTCOMES | {consistency.METRIC}
"""The metrics that say nothing of a single trial."""
UNKNOWN = "whether the trial passes is not known: a blocking criterion could not be measured"


AtLeastOne = Annotated[int, Meta(ge=1)]


class Incomparable(str, Enum):
    """The reason why the baseline's score of a criterion on a case cannot be compared with this one."""

    EDITED = "edited"
    """The case's content differs, so no criterion is comparable on it."""
    CHANGED = "changed"
    """The criterion's options, scorer or judge changed."""
    NEW = "new"
    """The criterion is new."""


MOST_STORED = 25
"""Stored trials of each case beyond which more add little: a change's own few trials are what is uncertain then."""
NEWEST_STORED = 7
"""The most that further runs are added up to, to those against which a drop of the whole suite has to show by
themselves: a week of nights. Docs/decisions/0004."""


class Goal(Struct, frozen=True, forbid_unknown_fields=True):
    """The power of the stored trials: to find a drop of the pass rate in so many changes."""

    drop: float = POWER_DROP
    """0 to 1."""
    find: float = POWER_FIND
    """Share of changes."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """The rules by which a suite is judged. Three fields keep the keys that terms in records were first written
    with."""

    alpha: float = ALPHA
    """Bound on P(regressed | unchanged agent), over all that the job compares."""
    threshold_alpha: float = 0.005
    """Bound on P(a case misses its own threshold, or a quantile its limit, by chance), over the whole job. The suite's
    thresholds are apart: there the mean decides."""
    max_epochs: int = field(default=MOST_EPOCHS, name="max_passes")
    exact_epochs: int | None = field(default=None, name="exact_passes")
    """Exactly this many epochs and one look."""
    rerun: Rerun = "never"
    pass_rate_margin: float | None = None
    max_error_rate: float = MAX_ERROR_RATE
    """Share of the candidate's trials that may end in infrastructure errors."""
    confirm_after: float | None = CONFIRM_AFTER
    """Seconds until failures of the agent that a block needs are asked for again. None: of recordings, never."""
    on_inconclusive: Literal["warn", "block"] = ON_INCONCLUSIVE
    quarantine: Mapping[str, str] = field(default_factory=dict)
    """Case id → owner, reason and expiry, of the entries in force."""
    runs: int | None = None
    """The most agent runs, both sides together."""
    kept_epochs: int = 0
    """Epochs of the candidate that the run makes in any case, for later changes to compare with."""
    comparisons: AtLeastOne = 1
    """The comparisons of one job that share ``alpha``: of each suite with each of its references."""
    suites: AtLeastOne = 1
    """The suites of one job, which share ``threshold_alpha``."""
    family: AtLeastOne = 1
    """The jobs of one matrix, which share both."""
    stored_trials: int = STORED_TRIALS
    """Trials of each case that a run on the default branch leaves for later changes; 0: as many as it needs."""
    goal: Goal | None = None
    """The power that the trials of several such runs are to add up to; None: no more than one leaves."""

    @property
    def own_alpha(self) -> float:
        """The part of ``alpha`` that one comparison may spend."""
        return self.alpha / (self.family * self.comparisons)

    @property
    def own_threshold_alpha(self) -> float:
        """The part of ``threshold_alpha`` that one suite may spend."""
        return self.threshold_alpha / (self.family * self.suites)

    @property
    def looks(self) -> int:
        return 1 if self.exact_epochs is not None else self.max_epochs


class Unmatched(Struct, frozen=True):
    """The cases and criteria of the baseline that are no longer measured, or have another name now."""

    removed: tuple[Criterion, ...] = ()
    """The baseline's criteria that are no longer measured."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Case id → the id of the same content at the baseline."""


class Comparison(Struct, frozen=True, dict=True):
    """Everything that is known of a suite, arranged for judging."""

    cases: tuple[Case, ...]
    criteria: tuple[Criterion, ...]
    trials: tuple[Trial, ...]
    """This run's, both sides, with the rounds they were run in."""
    stored: tuple[Trial, ...]
    """The baseline's."""
    settings: Settings
    not_comparable: Mapping[tuple[str, str], Incomparable] = field(default_factory=dict)
    """(case id, criterion name) → why the baseline's score of it says nothing about this one."""
    selected: bool = False
    """True if a selection left cases of the suite out: a criterion may then apply to those alone."""
    unmatched: Unmatched = Unmatched()
    stored_runs: tuple[str, ...] = ()
    """The runs that ``stored`` is of, the oldest first, where age matters."""
    excuses: bool = True
    """True if a mean that the base's record misses too is excused: on changes, if the record can be believed."""
    base_ran_now: bool = False
    """True if this job ran the base's agent for ``stored``."""

    @cached_property
    def incomparable_criteria(self) -> Mapping[str, Finding]:
        """Criterion → why the baseline's scores of it are not comparable, though the baseline measured it."""
        if not self.stored:
            return {}
        pairs = self.not_comparable.items()
        found = {
            name: Finding.of("not_compared", criterion=name, why="changed")
            for (_, name), why in pairs
            if why is Incomparable.CHANGED
        }
        return {**self.without_cases, **found}

    @cached_property
    def without_cases(self) -> Mapping[str, Finding]:
        """The criteria whose baseline cases are all gone, edited or removed, so that none of them is compared.

        A criterion may apply to a tenth of the cases only. Empty if nothing at all is paired: then criteria are not the
        reason.
        """
        judged = {case.id for case in self.judged}
        found = {}
        by_another = {c.stands_for for c in self.criteria if c.stands_for and self.stored_values(c)}
        for criterion in self.criteria if self.paired else ():
            if criterion.name in by_another:  # its previous version is compared in its place
                continue
            groups = self.baseline.items()
            cases = {c for c, group in groups if c not in self.settings.quarantine and full_values(group, criterion)}
            if cases and not judged & self.stored_values(criterion).keys():
                found[criterion.name] = Finding.of(
                    "not_compared", criterion=criterion.name, why="cases_gone", cases=len(cases)
                )
        return found

    outage: Finding | None = None
    """The reason to take the agent for down; its failures are excused then."""

    @cached_property
    def judged(self) -> tuple[Case, ...]:
        """The cases that can change the verdict: those not in quarantine."""
        return tuple(case for case in self.cases if case.id not in self.settings.quarantine)

    @cached_property
    def by_id(self) -> Mapping[str, Case]:
        return {case.id: case for case in self.cases}

    @cached_property
    def candidate(self) -> Mapping[str, tuple[Trial, ...]]:
        """The candidate's trials by case, errors included."""
        return _by_case(t for t in self.trials if t.side is Side.CANDIDATE)

    @cached_property
    def errors(self) -> tuple[Trial, ...]:
        """The candidate's trials that brought no answer. Mostly none, and then nothing failed and nothing was lost."""
        return tuple([t for t in self.trials if t.error is not None and t.side is Side.CANDIDATE])

    @cached_property
    def retries(self) -> frozenset[int]:
        """The rounds that ran again what had no measured trial yet: these trials stand for those that were lost.

        So it was in records before trials said of themselves that they were run ``again``.
        """
        rounds: dict[int, list[Trial]] = {}
        for trial in self.trials:
            if trial.side is Side.CANDIDATE and trial.tag == FULL:
                rounds.setdefault(trial.round, []).append(trial)
        tried: set[str] = set()
        measured: set[str] = set()
        found = set()
        for number in sorted(rounds):
            ids = {t.case_id for t in rounds[number]}
            if ids <= tried - measured:
                found.add(number)
            tried |= ids
            measured |= {t.case_id for t in rounds[number] if t.measured}
        return frozenset(found)

    def scheduled(self, case_id: str) -> tuple[Trial, ...]:
        """The candidate's trials of a case, lost ones included, without those that were run in place of a lost one."""
        return tuple([t for t in self.candidate.get(case_id, ()) if not self.is_replacement(t)])

    def is_replacement(self, trial: Trial) -> bool:
        """True if a trial was run in place of one that could not be measured."""
        return trial.again or (trial.side is Side.CANDIDATE and trial.tag == FULL and trial.round in self.retries)

    def lost(self, trials: Iterable[Trial]) -> list[Trial]:
        """The trials that could not be measured, and in whose place none was."""
        left: dict[tuple[int, str, str], list[Trial]] = {}
        trials = list(trials)
        for trial in trials:
            if not trial.measured and not self.is_replacement(trial):
                left.setdefault(self._place(trial), []).append(trial)
        for trial in trials if left else ():
            if trial.measured and self.is_replacement(trial) and left.get(self._place(trial)):
                left[self._place(trial)].pop(0)
        return [trial for group in left.values() for trial in group]

    def _place(self, trial: Trial) -> tuple[int, str, str]:
        """Round, tag and case; old records' retries are of a later round than what they stand for."""
        return (0 if self.retries and trial.tag == FULL else trial.round, trial.tag, trial.case_id)

    @cached_property
    def baseline(self) -> Mapping[str, tuple[Trial, ...]]:
        """The baseline's measured trials of epochs, by case: stored, and run now beside the candidate's.

        Its reruns were picked by their outcomes.
        """
        now = (t for t in self.trials if t.side is Side.BASELINE)
        return _by_case(t for t in (*self.stored, *now) if t.measured and t.tag == FULL)

    @cached_property
    def reruns(self) -> Mapping[str, tuple[Trial, ...]]:
        """The baseline's measured trials that were run now and are not of whole epochs, by case."""
        return _by_case(t for t in self.trials if t.side is Side.BASELINE and t.measured and t.tag != FULL)

    @cached_property
    def repeats(self) -> Repeats:
        """Return the trials that are no draws of their own, but repeat another of their run."""
        return repeats(self.stored, self.trials, self.passes)

    @cached_property
    def coupling(self) -> CoupledTrials:
        """Return the trials that share their random part with a stored one, or repeat a draw that counts."""
        return coupling((t for t in self.stored if t.measured and t.tag == FULL), self.trials)

    @cached_property
    def dropped(self) -> frozenset[int]:
        """The trials (by ``id``) that are no draws of their own."""
        return self.repeats.dropped | self.coupling.dropped

    def outcome_of(self, trial: Trial) -> bool | None:
        """Return whether a trial satisfies every blocking criterion, or None if that is not known."""
        case = self.by_id.get(trial.case_id)
        return None if case is None else passed(trial, case, self.criteria)

    def passes(self, trial: Trial) -> bool:
        """True if a trial holds every blocking criterion that can be compared; of all, where none can."""
        case = self.by_id.get(trial.case_id)
        return case is not None and bool(passed(trial, case, self.comparable(case.id) or self.criteria))

    def counted(self, trials: Iterable[Trial]) -> tuple[Trial, ...]:
        """Return the trials that are draws of their own."""
        dropped = self.dropped
        return tuple([trial for trial in trials if id(trial) not in dropped] if dropped else trials)

    def measured(self, case_id: str, *, full: bool = False) -> tuple[Trial, ...]:
        """The candidate's trials of a case that count: answered, or failed by the agent; ``full``: of epochs."""
        return (self._full if full else self._measured).get(case_id, ())

    @cached_property
    def judged_trials(self) -> tuple[Trial, ...]:
        """The measured trials of all judged cases."""
        return tuple([trial for case in self.judged for trial in self.measured(case.id)])

    @cached_property
    def answers(self) -> tuple[Trial, ...]:
        """Return the trials that have an answer, and so scores."""
        return tuple([t for t in self.judged_trials if t.answered]) if self.errors else self.judged_trials

    @cached_property
    def hard_failures(self) -> Mapping[str, Sequence[Trial]]:
        """Return the candidate's trials that a hard criterion fails, by criterion; of any case, quarantined or not."""
        found = {criterion.name: list[Trial]() for criterion in self.criteria if criterion.hard}
        hard = [criterion for criterion in self.criteria if criterion.hard]
        for case in self.cases if hard else ():
            for trial in self.measured(case.id):
                for criterion in hard:
                    if holds(criterion, case, trial.scores.get(criterion.name)) is False:
                        found[criterion.name].append(trial)
        return found

    @cached_property
    def has_failed_hard(self) -> bool:
        """True if a blocking hard criterion fails: the trial's other scores were not computed."""
        return any(self.hard_failures[c.name] for c in self.criteria if c.hard and c.blocking)

    @cached_property
    def unchecked(self) -> tuple[str, ...]:
        """The judged cases that ran without anything to fail by."""
        return tuple([c.id for c in self.judged if all_unchecked(self.measured(c.id), self.criteria)])

    @cached_property
    def full_passes(self) -> Sequence[int]:
        """Trials of epochs by judged case, infrastructure errors included."""
        if not self.errors and not self.retries and not any(t.again for t in self.trials):
            return [len(self.measured(case.id, full=True)) for case in self.judged]
        return [sum([t.tag == FULL for t in self.scheduled(case.id)]) for case in self.judged]

    @cached_property
    def _measured(self) -> Mapping[str, tuple[Trial, ...]]:
        if not self.errors:
            return self.candidate
        return {case_id: tuple([t for t in group if t.measured]) for case_id, group in self.candidate.items()}

    @cached_property
    def _full(self) -> Mapping[str, tuple[Trial, ...]]:
        return {case_id: tuple([t for t in group if t.tag == FULL]) for case_id, group in self._measured.items()}

    def values(self, criterion: Criterion) -> Mapping[str, Sequence[float]]:
        """Return the candidate's values of a criterion in its epochs, by judged case; of cases that have a value."""
        found = self._values.get(criterion.name)
        if found is None:
            groups = {case.id: full_values(self.measured(case.id, full=True), criterion) for case in self.judged}
            found = self._values[criterion.name] = {case_id: group for case_id, group in groups.items() if group}
        return found

    def stored_values(self, criterion: Criterion) -> Mapping[str, Sequence[float]]:
        """Return the baseline's values that can be compared with those, by case; of cases that have a value."""
        found = self._stored_values.get(criterion.name)
        if found is None:
            groups = {
                case_id: full_values(trials, criterion)
                for case_id, trials in self.baseline.items()
                if (case_id, criterion.name) not in self.not_comparable
            }
            found = self._stored_values[criterion.name] = {case_id: group for case_id, group in groups.items() if group}
        return found

    @cached_property
    def samples(self) -> dict[str, Any]:
        """By criterion, what `thresholds` has worked out of all judged cases."""
        return {}

    @cached_property
    def _stored_values(self) -> dict[str, Mapping[str, Sequence[float]]]:
        return {}

    @cached_property
    def _values(self) -> dict[str, Mapping[str, Sequence[float]]]:
        return {}

    def comparable(self, case_id: str) -> tuple[Criterion, ...]:
        if not self.not_comparable:
            return self.criteria
        return tuple([c for c in self.criteria if (case_id, c.name) not in self.not_comparable])

    @cached_property
    def paired(self) -> tuple[str, ...]:
        """The judged cases that have a baseline to be compared with."""
        return tuple(
            c.id for c in self.judged if self.baseline.get(c.id) and any(not k.hard for k in self.comparable(c.id))
        )

    @cached_property
    def with_baseline(self) -> frozenset[str]:
        """The cases of ``paired``."""
        return frozenset(self.paired)

    @cached_property
    def metrics(self) -> tuple[Criterion, ...]:
        """Metric 0, then every criterion that is measured on a scale. A hard one is no statistics."""
        rate = pass_rate(self.settings.pass_rate_margin, self.rate)
        return (rate, *(c for c in self.criteria if not c.hard and c.metric != RATE_METRIC))

    @cached_property
    def demanding(self) -> tuple[Criterion, ...]:
        """The blocking criteria that have a threshold for the suite."""
        return tuple(c for c in self.criteria if c.blocking and c.threshold is not None)

    @cached_property
    def rate(self) -> Criterion | None:
        """The criterion that limits metric 0, where one does."""
        return next((c for c in self.criteria if c.metric == RATE_METRIC and c.blocking), None)


def _by_case(trials: Iterable[Trial]) -> dict[str, tuple[Trial, ...]]:
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        found.setdefault(trial.case_id, []).append(trial)
    return {case_id: tuple(sorted(group, key=lambda t: (t.round, t.number))) for case_id, group in found.items()}


def pass_rate(margin: float | None = None, own: Criterion | None = None) -> Criterion:
    """Metric 0, with the limit that the criterion ``own`` sets to it."""
    if own is None:
        return Criterion(PASS_RATE, PASS_RATE, Scale.BINARY, margin=margin)
    return replace(own, name=PASS_RATE, metric=PASS_RATE, margin=margin, blocks_regression=True, fingerprint="")


def with_outcomes(
    trials: Sequence[Trial],
    cases: Mapping[str, Case],
    criteria: Sequence[Criterion],
    not_comparable: Mapping[tuple[str, str], Incomparable] | None = None,
) -> tuple[Trial, ...]:
    """The trials with the score of `RATE_METRIC` where a criterion asks for it: 1 where a trial passes, else 0.

    ``not_comparable``: of the baseline, which criteria say nothing of which case; there it passes by the others.
    """
    names = [criterion.name for criterion in criteria if criterion.metric == RATE_METRIC]
    if not names:
        return tuple(trials)
    others = [criterion for criterion in criteria if criterion.metric not in _OF_OUTCOMES]
    found = []
    for trial in trials:
        case = cases.get(trial.case_id)
        held = [c for c in others if (trial.case_id, c.name) not in (not_comparable or {})]
        outcome = None if case is None else passed(trial, case, held)
        if outcome is None and trial.error is not None:
            found.append(trial)
            continue
        none = Score(None) if unchecked(trial, held) else Score(None, error=UNKNOWN)
        score = none if outcome is None else Score(float(outcome))
        found.append(replace(trial, scores={**trial.scores, **dict.fromkeys(names, score)}))
    return tuple(found)


def with_all_pass(
    trials: Sequence[Trial],
    cases: Mapping[str, Case],
    criteria: Sequence[Criterion],
    not_comparable: Mapping[tuple[str, str], Incomparable] | None = None,
) -> tuple[Trial, ...]:
    """The trials with the scores of pass^k, where a criterion asks for it; ``not_comparable`` as above."""
    others = [criterion for criterion in criteria if criterion.metric not in _OF_OUTCOMES]

    def outcome_of(trial: Trial) -> bool | None:
        held = [c for c in others if (trial.case_id, c.name) not in (not_comparable or {})]
        return passed(trial, cases[trial.case_id], held)

    return all_pass.scored(trials, cases, criteria, outcome_of)


def mark(criterion: Criterion, case: Case) -> float | None:
    """Return the bar that a single trial has to reach, or stay below if lower is better; None: trials are not judged
    singly."""
    if criterion.metric in _OF_SEVERAL:
        return None
    own = case.thresholds.get(criterion.name)
    if own is not None:
        return own
    if criterion.direction is Direction.LOWER:
        return criterion.limit
    return criterion.threshold if criterion.threshold is not None else criterion.pass_threshold


def holds(criterion: Criterion, case: Case, score: Score | None) -> bool | None:
    """True if a trial holds the criterion: True also where it does not apply, None where it could not be measured."""
    limit = mark(criterion, case)
    if criterion.hard and limit is None:
        limit = 1.0
    if limit is None:
        return True
    if score is None:
        return None
    if score.value is None:
        return None if score.error else True
    return score.value <= limit if criterion.direction is Direction.LOWER else score.value >= limit


def passed(trial: Trial, case: Case, criteria: Iterable[Criterion]) -> bool | None:
    """Metric 0: every blocking criterion holds. None if one could not be measured, even if another fails: while a
    judge is down, only failures would be left. A hard failure decides alone: nothing else is scored. None also if no
    criterion applies: nothing was checked. A trial in which the agent failed is a failed trial, regardless of the
    criteria.
    """
    if trial.error is not None:
        return False if trial.failed else None
    asked = checked = False
    found: bool | None = True
    for criterion in criteria:
        if not criterion.blocking:
            continue
        score = trial.scores.get(criterion.name)
        asked, checked = True, checked or _is_checked(score)
        outcome = holds(criterion, case, score)
        if outcome is False and criterion.hard:
            return False
        if not outcome and found is not None:
            found = outcome
    return found if checked or not asked else None


def marks(case: Case, criteria: Iterable[Criterion]) -> tuple[tuple[str, float, bool], ...]:
    """Return the bars for the scores of an answered trial: name, bar, and whether it is the most rather than the least.

    Where every criterion named has a value, `passed` says whether all of them keep to their marks.
    """
    held = [(c, 1.0 if c.hard and mark(c, case) is None else mark(c, case)) for c in criteria if c.blocking]
    return tuple([(c.name, limit, c.direction is Direction.LOWER) for c, limit in held if limit is not None])


def unchecked(trial: Trial, criteria: Iterable[Criterion]) -> bool:
    """True if no blocking criterion applies to an answered trial: nothing that it holds could fail."""
    asked = False
    for criterion in criteria:
        if criterion.blocking:
            asked = True
            if _is_checked(trial.scores.get(criterion.name)):
                return False
    return asked


def _is_checked(score: Score | None) -> bool:
    """True if a criterion applies: else it has a score that says neither a value nor why there is none."""
    return score is None or score.value is not None or bool(score.error)


def all_unchecked(trials: Sequence[Trial], criteria: Sequence[Criterion]) -> bool:
    """True if nothing was checked in any of a case's trials."""
    own = [criterion for criterion in criteria if criterion.metric not in _OF_OUTCOMES]
    return bool(trials) and all(unchecked(trial, own) for trial in trials)


def to_state(comparison: Comparison, *, seed: int, can_run: bool, stopped: bool) -> State:
    """The numbers of the pairing."""
    settings = comparison.settings
    left = 0 if stopped else None if settings.runs is None else max(0, settings.runs - len(comparison.trials))
    metrics = tuple(_metric(comparison, criterion) for criterion in comparison.metrics)
    config = Config(
        settings.own_alpha,
        settings.max_epochs,
        settings.exact_epochs,
        settings.rerun,
        can_run,
        left,
        settings.kept_epochs,
    )
    measured = _by_case(t for t in comparison.stored if t.measured and t.tag == FULL)
    stored = {case_id: comparison.counted(measured.get(case_id, ())) for case_id in comparison.paired}
    baseline = {case_id: [_row(comparison, t) for t in trials] for case_id, trials in stored.items()}
    rounds = _rounds(comparison, stored)
    frozen, recorded = comparison.repeats.frozen, is_recorded(comparison)
    newest = _newest(stored, comparison.stored_runs)
    return State(metrics, baseline, rounds, config, seed, _clusters(comparison), frozen, newest, recorded)


def _newest(stored: Mapping[str, Sequence[Trial]], runs: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of the trials of the newest runs that measured STORED_TRIALS of each case, and of as many more
    as fit into NEWEST_STORED; empty if those are all runs."""
    if len(runs) < 2:  # most calls: no trial need be looked at
        return {}
    sizes = Counter(trial.run for trials in stored.values() for trial in trials)
    newest: set[str] = set()
    have = 0
    for run in reversed([run for run in runs if sizes[run]]):
        if have >= STORED_TRIALS * len(stored) and have + sizes[run] > NEWEST_STORED * len(stored):
            return {c: [at for at, trial in enumerate(trials) if trial.run in newest] for c, trials in stored.items()}
        newest.add(run)
        have += sizes[run]
    return {}


def is_recorded(comparison: Comparison) -> bool:
    """True if the baseline's trials were recorded: a matter of its configuration, and of no outcome."""
    return any(trial.replay is not None and trial.replay.recording for trial in comparison.stored)


def _clusters(comparison: Comparison) -> dict[str, str]:
    named = {case_id: consistency.cluster_of(comparison.by_id[case_id]) for case_id in comparison.paired}
    return {case_id: cluster for case_id, cluster in named.items() if cluster}


def _metric(comparison: Comparison, criterion: Criterion) -> Metric:
    """Scores that are all 0 or 1 are judged as successes, even if the scale allows other values."""
    trials = (*comparison.trials, *comparison.stored)
    zero_one = criterion.scale.is_zero_to_one and set(full_values(trials, criterion)) <= {0.0, 1.0}
    scale = Scale.BINARY if zero_one else criterion.scale
    margin = scale.default_margin if criterion.margin is None else criterion.margin
    blocks = criterion.blocking and criterion.blocks_regression
    correction = correction_of(comparison, criterion)
    by = PLAIN if correction is None else correction.slope
    return Metric(criterion.name, scale.kind, criterion.direction, margin, blocks, *by)


def correction_of(comparison: Comparison, criterion: Criterion) -> Correction | None:
    """Return the correction of a criterion's scores, alike on both sides; None without one."""
    if criterion.calibration is None:
        return None
    return correction_for(criterion, set(full_values((*comparison.trials, *comparison.stored), criterion)))


def _rounds(comparison: Comparison, stored: Mapping[str, Sequence[Trial]]) -> tuple[Round, ...]:
    """The rounds in the order they were asked for. A trial with an infrastructure error is a row of nothing, unless it
    was run again: then the newer one takes its place. In a round the baseline's come first: it is looked at when the
    candidate's are there, too. One that repeats a draw is a row of nothing, too: it was run, and says nothing new.
    """
    lost = [None] * len(comparison.metrics)
    repeated: Row = tuple(lost)  # unlike a lost one, nothing stands in for it
    groups: dict[tuple[int, str, Side], dict[str, list[Row]]] = {}
    owners: dict[int, list[Trial]] = {}  # of the rows of a case in a group, the trials that they are of
    for trial in sorted(comparison.trials, key=lambda t: (t.round, t.side is Side.CANDIDATE, t.tag, t.number)):
        if trial.case_id not in comparison.with_baseline:
            continue
        if trial.tag in (PROBE, REPEAT):
            continue  # asked of cases picked by their outcomes, for another question than the one decided here
        row = repeated if id(trial) in comparison.dropped else _row(comparison, trial)
        rows = _rows_of(groups, trial, is_replacement=comparison.is_replacement(trial))
        if rows is not None and lost in rows:
            place = rows.index(lost)
            rows[place], owners[id(rows)][place] = row, trial
        elif rows is None:
            rows = groups.setdefault((trial.round, trial.tag, trial.side), {}).setdefault(trial.case_id, [])
            rows.append(row)
            owners.setdefault(id(rows), []).append(trial)

    def links(rows_of: Mapping[str, Sequence[Row]]) -> dict[str, tuple[Partner | None, ...]]:
        found = {c: comparison.coupling.links(owners[id(rows)], stored[c]) for c, rows in rows_of.items()}
        return {case_id: known for case_id, known in found.items() if known}

    return tuple(Round(tag, side, trials, links(trials)) for (_, tag, side), trials in groups.items())


def _rows_of(
    groups: Mapping[tuple[int, str, Side], dict[str, list[Row]]], trial: Trial, *, is_replacement: bool
) -> list[Row] | None:
    """The rows that include the one which a trial replaces; in old records it belongs to an earlier round.

    None for a trial that has a row of its own.
    """
    if not is_replacement:
        return None
    if trial.again:
        return groups.get((trial.round, trial.tag, trial.side), {}).get(trial.case_id)
    return next((g[trial.case_id] for (_, tag, _), g in groups.items() if tag == FULL and trial.case_id in g), None)


def _row(comparison: Comparison, trial: Trial) -> Row:
    """Metric 0 and the scores. Where criteria are not comparable, both sides are judged by the others alone.

    Where the agent failed metric 0 is 0 and the rest is missing; a trial that was lost is a row of nothing.
    """
    comparable = comparison.comparable(trial.case_id)
    outcome = passed(trial, comparison.by_id[trial.case_id], comparable)
    names = {c.name for c in comparable}
    values = [_value(trial, c) if c.name in names else None for c in comparison.metrics[1:]]
    return [None if outcome is None else float(outcome), *values]


def _value(trial: Trial, criterion: Criterion) -> float | None:
    score = trial.scores.get(criterion.name)
    return None if score is None else score.value


def full_values(trials: Sequence[Trial], criterion: Criterion) -> list[float]:
    """The values that were measured in these trials."""
    name = criterion.name
    scores = [t.scores.get(name) for t in trials]
    return [score.value for score in scores if score is not None and score.value is not None]


def passes(comparison: Comparison) -> int:
    """Epochs so far, infrastructure errors included."""
    return max(comparison.full_passes, default=0)


def whole_epochs(comparison: Comparison) -> int:
    """Epochs that covered every judged case."""
    return min(comparison.full_passes, default=0)


def error_share(comparison: Comparison) -> float:
    """Share of the candidate's trials that were lost to infrastructure, and in whose place none could be measured."""
    if not comparison.errors:
        return 0.0
    trials = [t for group in comparison.candidate.values() for t in group]
    planned = sum(not comparison.is_replacement(t) for t in trials)
    return len(comparison.lost(trials)) / planned if planned else 0.0
