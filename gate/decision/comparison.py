"""One suite against one reference: the trials of both sides, and the requirements on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from gate.decision.copies import Copies, copies_among
from gate.decision.correction import Correction, correction_for
from gate.decision.coupling import CoupledTrials, coupling
from gate.decision.engine.state import Request, epochs_spent, runs_of
from gate.decision.outcomes import RATE_METRIC, all_unchecked, holds, measured_values, pass_rate, passed
from gate.decision.settings import Settings
from gate.model import FULL, NARROW, Case, Criterion, Side, Trial, Verdict
from gate.model.finding import Finding


class Incomparable(str, Enum):
    """The reason the baseline's score cannot be compared with this one."""

    EDITED = "edited"
    """The content of the case differs, so no criterion can be compared on it."""
    CHANGED = "changed"
    """The criterion's options, scorer or judge changed."""
    OTHER_MODEL = "other_model"
    """The name of its judge, or of the model that plays the user, leads to another model."""
    NEW = "new"
    """The criterion is new."""


ByCase = Mapping[str, tuple[Trial, ...]]
T = TypeVar("T")


class Comparison(Struct, frozen=True, dict=True):
    """Everything known about a suite; determines the next trials or the verdict."""

    cases: Sequence[Case]
    criteria: Sequence[Criterion]
    trials: Sequence[Trial]
    """Trials of this run, both sides, including errors, with their rounds. Whole rounds only, so that a resumed run
    derives the same requests."""
    stored: Sequence[Trial]
    """Trials of the baseline; empty if there is none."""
    settings: Settings
    not_comparable: Mapping[tuple[str, str], Incomparable] = field(default_factory=dict)
    """(case id, criterion name) → the reason the baseline's score cannot be compared."""
    removed: Sequence[Criterion] = ()
    """The baseline's criteria that are no longer measured."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Case id → id of the same content in the baseline."""
    selected: bool = False
    """True if a selection left out cases of the suite: a criterion may then apply only to those."""
    stored_runs: Sequence[str] = ()
    """The runs in ``stored``, the oldest first, if age matters."""
    reported: bool = False
    """True if the baseline shows that this agent reports its tool calls."""
    excuses: bool = True
    """True to excuse a mean that the base's record also misses: on changes, if the record can be trusted."""
    base_ran_now: bool = False
    """True if this job ran the base's agent for ``stored``, so that provider drift cannot explain a difference."""
    gaps: Sequence[Finding] = ()
    """Further contents of the base that were not compared."""
    earlier: Sequence[Verdict] = ()
    """Verdicts of earlier measurements of this change under the current rules, the newest first."""
    same_as: str = ""
    """The commit whose agent this is, if its stored trials are the candidate's: nothing is left to compare."""
    same_verdict: str = ""
    """The stored verdict on those trials if they fell short and nobody accepted it; it still holds."""
    stopped: str = ""
    """The reason the run ends early (budget, clock), so that no more trials are requested; empty if it does not."""
    outage: Finding | None = None
    """The reason to consider the agent down; its failures are then excused."""
    seed: int = 0
    suite_id: str = ""

    # --- cases ------------------------------------------------------------------------------------

    @cached_property
    def judged(self) -> tuple[Case, ...]:
        """The cases that can change the verdict: all except those in quarantine."""
        return tuple([case for case in self.cases if case.id not in self.settings.quarantine])

    @cached_property
    def by_id(self) -> Mapping[str, Case]:
        """Every case by its id."""
        return {case.id: case for case in self.cases}

    @cached_property
    def paired(self) -> tuple[str, ...]:
        """The judged cases that have a baseline to compare with."""
        found = []
        for case in self.judged:
            if self.baseline.get(case.id) and any(not criterion.hard for criterion in self.comparable(case.id)):
                found.append(case.id)
        return tuple(found)

    @cached_property
    def with_baseline(self) -> frozenset[str]:
        """The cases of ``paired``."""
        return frozenset(self.paired)

    @cached_property
    def unchecked(self) -> tuple[str, ...]:
        """The judged cases that ran without any criterion they could fail."""
        return tuple([case.id for case in self.judged if all_unchecked(self.measured(case.id), self.criteria)])

    # --- criteria ---------------------------------------------------------------------------------

    @cached_property
    def metrics(self) -> tuple[Criterion, ...]:
        """Metric 0, then every criterion measured on a scale. Hard criteria are not tested statistically."""
        rate = pass_rate(self.settings.pass_rate_margin, self.rate)
        others = [criterion for criterion in self.criteria if not criterion.hard and criterion.metric != RATE_METRIC]
        return (rate, *others)

    @cached_property
    def rate(self) -> Criterion | None:
        """The criterion that limits metric 0, if any."""
        for criterion in self.blocking:
            if criterion.metric == RATE_METRIC:
                return criterion
        return None

    @cached_property
    def blocking(self) -> tuple[Criterion, ...]:
        """The criteria that can fail the suite."""
        return tuple([criterion for criterion in self.criteria if criterion.blocking])

    def comparable(self, case_id: str) -> Sequence[Criterion]:
        """Return the criteria by which a case can be compared with the baseline."""
        if not self.not_comparable:
            return self.criteria
        return [criterion for criterion in self.criteria if (case_id, criterion.name) not in self.not_comparable]

    def deciding(self, case_id: str) -> Sequence[Criterion]:
        """Return the criteria that decide if a case passes: those compared, or all if the case is not paired."""
        if case_id in self.with_baseline:
            return self.comparable(case_id)
        return self.criteria

    def correction_of(self, criterion: Criterion) -> Correction | None:
        """Return the correction of a criterion's scores, the same on both sides; None without one."""
        if criterion.calibration is None:
            return None
        return correction_for(criterion, set(measured_values((*self.trials, *self.stored), criterion)))

    # --- the candidate's trials -------------------------------------------------------------------

    @cached_property
    def own(self) -> tuple[Trial, ...]:
        """The candidate's trials, errors included."""
        return tuple([trial for trial in self.trials if trial.side is Side.CANDIDATE])

    @cached_property
    def candidate(self) -> ByCase:
        """The candidate's trials by case, errors included."""
        return _by_case(self.own)

    @cached_property
    def errors(self) -> tuple[Trial, ...]:
        """The candidate's trials without an answer. Usually there are none: then nothing failed and nothing was
        lost."""
        return tuple([trial for trial in self.own if trial.error is not None])

    @property
    def has_failures(self) -> bool:
        """True if the agent failed in any of the candidate's trials."""
        return any(trial.failed for trial in self.errors)

    def measured(self, case_id: str, *, full: bool = False) -> tuple[Trial, ...]:
        """Return the candidate's trials of a case that count: answered, or failed by the agent. ``full``: only those
        that ran whatever the results: of epochs, or in place of the last one."""
        if full:
            return self._full.get(case_id, ())
        return self._measured.get(case_id, ())

    @cached_property
    def _measured(self) -> ByCase:
        if not self.errors:
            return self.candidate
        return _by_case([trial for trial in self.own if trial.measured])

    @cached_property
    def _full(self) -> ByCase:
        return _by_case([trial for trial in self.own if trial.measured and trial.tag in (FULL, NARROW)])

    @cached_property
    def judged_trials(self) -> tuple[Trial, ...]:
        """The measured trials of all judged cases."""
        return tuple(chain.from_iterable([self.measured(case.id) for case in self.judged]))

    @cached_property
    def answers(self) -> tuple[Trial, ...]:
        """The trials that have an answer and therefore scores."""
        if not self.errors:
            return self.judged_trials
        return tuple([trial for trial in self.judged_trials if trial.answered])

    @cached_property
    def hard_failures(self) -> Mapping[str, Sequence[Trial]]:
        """The candidate's trials that fail a hard criterion, by criterion; of all cases, even in quarantine."""
        hard = [criterion for criterion in self.criteria if criterion.hard]
        found: dict[str, list[Trial]] = {criterion.name: [] for criterion in hard}
        if not hard:
            return found
        for case in self.cases:
            for trial in self.measured(case.id):
                for criterion in hard:
                    if holds(criterion, case, trial.scores.get(criterion.name)) is False:
                        found[criterion.name].append(trial)
        return found

    @cached_property
    def has_failed_hard(self) -> bool:
        """True if a blocking hard criterion fails: the trial's other scores were then not computed."""
        return any(criterion.hard and self.hard_failures[criterion.name] for criterion in self.blocking)

    # --- rounds and epochs, and trials that were lost ---------------------------------------------

    @property
    def next_round(self) -> int:
        """The number of the next round."""
        return max([trial.round for trial in self.trials], default=0) + 1

    def affords(self, requests: Iterable[Request]) -> bool:
        """True if the maximum number of runs allows these requests."""
        most = self.settings.runs
        return most is None or len(self.trials) + runs_of(requests) <= most

    @property
    def epochs(self) -> int:
        """Number of epochs so far, including infrastructure errors."""
        return max(self._trials_in_epochs, default=0)

    @property
    def whole_epochs(self) -> int:
        """Number of epochs that covered every judged case."""
        return min(self._trials_in_epochs, default=0)

    @cached_property
    def in_epochs(self) -> Comparison:
        """The comparison without trials in place of the last epoch: these repeat some cases more often than others, and
        a quantile over all trials would follow those cases."""
        kept = tuple([trial for trial in self.trials if trial.tag != NARROW])
        if len(kept) == len(self.trials):
            return self
        return replace(self, trials=kept)

    @property
    def epochs_spent(self) -> int:
        """Number of epochs that ran or were replaced."""
        narrowing = [trial for trial in self.own if trial.tag == NARROW and not trial.again]
        return epochs_spent(self.epochs, len(narrowing), len(self.paired))

    @cached_property
    def _trials_in_epochs(self) -> Sequence[int]:
        """Number of trials in epochs by judged case, including infrastructure errors."""
        counts = Counter([trial.case_id for trial in self.own if trial.tag == FULL and not trial.again])
        return [counts[case.id] for case in self.judged]

    def scheduled(self, case_id: str) -> tuple[Trial, ...]:
        """Return the candidate's trials of a case, including lost ones, but not those that replaced a lost one."""
        return tuple([trial for trial in self.candidate.get(case_id, ()) if not trial.again])

    def lost(self, trials: Iterable[Trial]) -> list[Trial]:
        """Return the trials that could not be measured and were not replaced."""
        left: dict[tuple[int, str, str], list[Trial]] = {}
        trials = list(trials)
        for trial in trials:
            if not trial.measured and not trial.again:
                left.setdefault((trial.round, trial.tag, trial.case_id), []).append(trial)
        for trial in trials:
            replaced = left.get((trial.round, trial.tag, trial.case_id))
            if replaced and trial.measured and trial.again:
                replaced.pop(0)
        return list(chain.from_iterable(left.values()))

    @property
    def error_share(self) -> float:
        """Share of the candidate's trials that were lost to infrastructure and not replaced."""
        if not self.errors:
            return 0.0
        planned = sum([not trial.again for trial in self.own])
        return len(self.lost(self.own)) / max(1, planned)

    # --- the baseline's trials --------------------------------------------------------------------

    @cached_property
    def base_now(self) -> tuple[Trial, ...]:
        """The trials of the baseline's agent in this run."""
        return tuple([trial for trial in self.trials if trial.side is Side.BASELINE])

    @cached_property
    def baseline(self) -> ByCase:
        """The baseline's measured trials of epochs by case: stored ones, and ones run now alongside the candidate's.

        Reruns are left out, since they were picked by outcome.
        """
        return _by_case([trial for trial in (*self.stored, *self.base_now) if trial.measured and trial.tag == FULL])

    @cached_property
    def base_reruns(self) -> ByCase:
        """The baseline's measured trials run now outside whole epochs, by case."""
        return _by_case([trial for trial in self.base_now if trial.measured and trial.tag != FULL])

    def of_base(self, case_id: str) -> tuple[Trial, ...]:
        """Return the measured trials of the base commit's agent, both stored and run now; none if the case is not
        paired."""
        if case_id not in self.with_baseline:
            return ()
        return (*self.baseline[case_id], *self.base_reruns.get(case_id, ()))

    @property
    def is_recorded(self) -> bool:
        """True if the baseline's trials were recorded: this depends on its configuration, not on any outcome."""
        return any(trial.replay is not None and trial.replay.recording for trial in self.stored)

    # --- independent draws ----------------------------------------------------------------------------

    @cached_property
    def copies(self) -> Copies:
        """The trials that are not independent draws because they repeat another of their run."""
        return copies_among(self.stored, self.trials, self.passes)

    @cached_property
    def coupling(self) -> CoupledTrials:
        """The trials that share their randomness with a stored one, or repeat a draw that already counts."""
        stored = [trial for trial in self.stored if trial.measured and trial.tag == FULL]
        return coupling(stored, self.trials)

    @cached_property
    def dropped(self) -> frozenset[int]:
        """The trials (by ``id``) that are not independent draws."""
        return self.copies.dropped | self.coupling.dropped

    def counted(self, trials: Iterable[Trial]) -> tuple[Trial, ...]:
        """Return the trials that are independent draws."""
        dropped = self.dropped
        if not dropped:
            return tuple(trials)
        return tuple([trial for trial in trials if id(trial) not in dropped])

    # --- outcomes and values ----------------------------------------------------------------------

    def outcome_of(self, trial: Trial) -> bool | None:
        """Return True if a trial satisfies every blocking criterion, or None if that is unknown."""
        case = self.by_id.get(trial.case_id)
        if case is None:
            return None
        return passed(trial, case, self.criteria)

    def passes(self, trial: Trial) -> bool:
        """True if a trial meets every blocking criterion that can be compared, or all of them if none can."""
        case = self.by_id.get(trial.case_id)
        return case is not None and bool(passed(trial, case, self.comparable(case.id) or self.criteria))

    def values(self, criterion: Criterion) -> Mapping[str, Sequence[float]]:
        """Return the candidate's values of a criterion in its epochs, by judged case; cases without a value are left
        out."""

        def by_case() -> dict[str, list[float]]:
            return _values_by_case({case.id: self.measured(case.id, full=True) for case in self.judged}, criterion)

        return self.once(f"now: {criterion.name}", by_case)

    def stored_values(self, criterion: Criterion) -> Mapping[str, Sequence[float]]:
        """Return the baseline's values that can be compared with those, by case; cases without a value are left out."""

        def by_case() -> dict[str, list[float]]:
            trials = {}
            for case_id, group in self.baseline.items():
                if (case_id, criterion.name) not in self.not_comparable:
                    trials[case_id] = group
            return _values_by_case(trials, criterion)

        return self.once(f"stored: {criterion.name}", by_case)

    def values_of_both(self, criterion: Criterion) -> dict[str, tuple[Sequence[float], Sequence[float]]]:
        """Return the values of the candidate and of the baseline, by paired case that has both."""
        now, before = self.values(criterion), self.stored_values(criterion)
        both = [case_id for case_id in self.paired if case_id in now and case_id in before]
        return {case_id: (now[case_id], before[case_id]) for case_id in both}

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """Return the value with this name, computed at the first call for this comparison."""
        if name not in self._known:
            self._known[name] = compute()
        found: T = self._known[name]
        return found

    @cached_property
    def _known(self) -> dict[str, Any]:
        return {}


def _values_by_case(trials: ByCase, criterion: Criterion) -> dict[str, list[float]]:
    """Return the measured values of a criterion, without cases that have none."""
    found = {}
    for case_id, group in trials.items():
        values = measured_values(group, criterion)
        if values:
            found[case_id] = values
    return found


def _by_case(trials: Iterable[Trial]) -> dict[str, tuple[Trial, ...]]:
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        found.setdefault(trial.case_id, []).append(trial)
    for group in found.values():
        group.sort(key=lambda trial: (trial.round, trial.number))
    return {case_id: tuple(group) for case_id, group in found.items()}
