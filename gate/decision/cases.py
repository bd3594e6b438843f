"""The result of each case: its status, the failures of its trials, and the trajectories that show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, inf

from msgspec import Struct

from gate.decision.comparison import Comparison, Incomparable
from gate.decision.course import difference, same_world
from gate.decision.gaps import removed_cases
from gate.decision.outcomes import all_unchecked, holds, measured_values, outcomes_of, passed
from gate.model import Case, CaseResult, CaseStatus, Criterion, Direction, Outcome, Part, ToolCall, Trial, text_of
from gate.model.finding import Wording
from gate.security.limits import cut, shorten, tail
from gate.statistics.evalues import case_log_e
from gate.statistics.intervals import mean

SUSPECT_E = 2.0
"""A case with at least this e-value is shown as suspected."""
MAX_REASONS = 5
MAX_REASON_CHARS = 500
MAX_LOG_SHOWN = 1_000
MAX_TEXT_CHARS = 2_000
"""Maximum length of an expected or actual response, in characters."""
MAX_WORDING_CHARS = 300
"""Maximum length, in characters, of the one answer shown for all answers that got worse."""


def case_results(comparison: Comparison, outcome: Outcome | None) -> tuple[CaseResult, ...]:
    """Return every case of the suite in order, then the cases that only the baseline has."""
    known = [_case_result(comparison, case, outcome) for case in comparison.cases]
    gone = [CaseResult(case_id, CaseStatus.REMOVED) for case_id in removed_cases(comparison)]
    return (*known, *gone)


def _e_value(passed_before: int, before: int, passed_now: int, now: int) -> float | None:
    """Return the evidence that the case passes less often now; None if a side has no trial."""
    if not before or not now:
        return None
    return exp(min(case_log_e(passed_before, before, passed_now, now), 700.0))


class _Seen(Struct, frozen=True):
    """The outcomes of a case's trials, on both sides."""

    now: Sequence[bool]
    before: Sequence[bool]
    decided: float | None = None
    """The e-value used in the decision if trials are coupled: these are weaker evidence than independent draws."""

    @property
    def e_value(self) -> float | None:
        """The evidence for passing less often than in the baseline."""
        if self.decided is not None:
            return self.decided
        return _e_value(sum(self.before), len(self.before), sum(self.now), len(self.now))

    @property
    def improvement(self) -> float | None:
        """The evidence for passing more often than in the baseline: the same test with the sides exchanged."""
        return _e_value(sum(self.now), len(self.now), sum(self.before), len(self.before))


def _decided(comparison: Comparison, case_id: str, outcome: Outcome | None) -> float | None:
    if outcome is None or not comparison.coupling.partners:
        return None
    known = outcome.evidence.cases.get(case_id)
    return None if known is None else known.e_value


def _case_result(comparison: Comparison, case: Case, outcome: Outcome | None) -> CaseResult:
    criteria = comparison.deciding(case.id)
    measured = comparison.measured(case.id)
    counted = comparison.counted(measured)
    of_base = comparison.of_base(case.id)
    now = outcomes_of(counted, case, criteria)
    before = outcomes_of(comparison.counted(of_base), case, criteria)
    seen = _Seen(now, before, _decided(comparison, case.id, outcome))
    is_clean = len(criteria) == len(comparison.criteria) and len(now) == len(counted) and all(now)
    failing = [] if is_clean else [trial for trial in measured if _fails(trial, case, comparison.criteria)]
    attempts = comparison.candidate.get(case.id, ())
    worst = min(failing, key=_sum_of_scores, default=None)
    expected, actual = _responses(case, worst, comparison.criteria)
    return CaseResult(
        case.id,
        _status(comparison, case, outcome, seen, failing),
        location=case.location,
        passed=sum(now),
        trials=len(now),
        errors=len(attempts) - len(measured),
        crashes=sum([trial.failed for trial in measured]),
        baseline_passed=sum(before),
        baseline_trials=len(before),
        baseline_crashes=sum([trial.failed for trial in of_base]),
        e_value=seen.e_value,
        reasons=_reasons(comparison, case, failing, attempts),
        expected=tuple([turn.tools for turn in case.turns]),
        actual=_calls(worst),
        reference=_calls(_first_passing(of_base, case, criteria)),
        scores={criterion.name: _means(comparison, case.id, criterion) for criterion in comparison.criteria},
        quarantine=comparison.settings.quarantine.get(case.id, ""),
        expected_text=expected,
        actual_text=actual,
        duration=_duration(measured),
        improvement=seen.improvement,
        tags=tuple(sorted(case.tags)),
        complexity=case.complexity,
        log=tail(worst.log, MAX_LOG_SHOWN) if worst is not None else "",
        same_world=same_world(comparison, attempts),
        difference=difference(attempts),
        thresholds=case.thresholds,
    )


def _first_passing(trials: Iterable[Trial], case: Case, criteria: Sequence[Criterion]) -> Trial | None:
    for trial in trials:
        if passed(trial, case, criteria):
            return trial
    return None


def _sum_of_scores(trial: Trial) -> float:
    return sum(score.value for score in trial.scores.values() if score.value is not None)


def _duration(trials: Sequence[Trial]) -> float | None:
    """Return the total duration of the trials in seconds; None if any is unknown."""
    known = [trial.duration for trial in trials if trial.duration is not None]
    return sum(known) if known and len(known) == len(trials) else None


def _calls(trial: Trial | None) -> tuple[tuple[ToolCall, ...], ...]:
    return () if trial is None else tuple([turn.tool_calls for turn in trial.invocations])


def _means(comparison: Comparison, case_id: str, criterion: Criterion) -> tuple[float | None, float | None]:
    now = measured_values(comparison.measured(case_id), criterion)
    before = comparison.stored_values(criterion).get(case_id)
    return (mean(now) if now else None), (mean(before) if before else None)


# --- the status -----------------------------------------------------------------------------------


def _status(
    comparison: Comparison, case: Case, outcome: Outcome | None, seen: _Seen, failing: Sequence[Trial]
) -> CaseStatus:
    """Return the first status that applies."""
    trials = comparison.measured(case.id)
    if failing and _fails_hard(comparison, case, failing):
        return CaseStatus.FAILED
    if case.id in comparison.settings.quarantine:
        return CaseStatus.QUARANTINED
    if not trials:
        return CaseStatus.ERROR
    if all_unchecked(trials, comparison.criteria):
        return CaseStatus.UNCHECKED
    if outcome is not None and case.id in outcome.cases:
        return CaseStatus.BROKEN
    if failing and _below_its_own(comparison, case):
        return CaseStatus.FAILED
    if comparison.baseline and _is_new(comparison, case):
        return CaseStatus.NEW
    if seen.e_value is not None and seen.e_value >= SUSPECT_E:
        return CaseStatus.SUSPECT
    first = seen.before or seen.now
    if 0 < sum(first) < len(first) or (failing and any(seen.now)):
        return CaseStatus.FLAKY
    if failing and not any(seen.now) and not (seen.now and seen.before):
        return CaseStatus.FAILED
    if not seen.now:
        return CaseStatus.ERROR
    if not any(seen.now):  # nor at the baseline: it would be suspected
        return CaseStatus.NEVER_PASSED
    return CaseStatus.OK


def _is_new(comparison: Comparison, case: Case) -> bool:
    """True if the baseline does not have the case with this content."""
    reasons = [comparison.not_comparable.get((case.id, criterion.name)) for criterion in comparison.criteria]
    return case.id not in comparison.baseline or Incomparable.EDITED in reasons


def _fails_hard(comparison: Comparison, case: Case, failing: Sequence[Trial]) -> bool:
    for criterion in comparison.criteria:
        if criterion.hard and criterion.blocking and any(_misses(criterion, case, trial) for trial in failing):
            return True
    return False


def _below_its_own(comparison: Comparison, case: Case) -> bool:
    """True if every trial misses a threshold that the author set for this case."""
    for criterion in comparison.criteria:
        if criterion.name in case.thresholds and criterion.blocking:
            trials = comparison.measured(case.id)
            if all(trial.failed or _misses(criterion, case, trial) for trial in trials):
                return True
    return False


def _fails(trial: Trial, case: Case, criteria: Iterable[Criterion]) -> bool:
    """True if the agent failed or a blocking criterion is missed, even if another criterion could not be measured."""
    return trial.failed or any(criterion.blocking and _misses(criterion, case, trial) for criterion in criteria)


def _misses(criterion: Criterion, case: Case, trial: Trial) -> bool:
    return holds(criterion, case, trial.scores.get(criterion.name)) is False


# --- the reasons ----------------------------------------------------------------------------------


def _reasons(
    comparison: Comparison, case: Case, failing: Sequence[Trial], attempts: Sequence[Trial]
) -> tuple[str, ...]:
    """Return the reasons trials failed, the most frequent first; then the reasons trials were not measured."""
    counts: dict[str, int] = {}
    for trial in failing:
        for text in _why_it_failed(comparison, case, trial):
            counts[text] = counts.get(text, 0) + 1
    for trial in attempts:
        for text in _why_it_was_not_measured(trial):
            counts.setdefault(text, 0)
    order = sorted(counts, key=lambda text: -counts[text])
    return tuple([shorten(text, MAX_REASON_CHARS) for text in order[:MAX_REASONS]])


def _why_it_failed(comparison: Comparison, case: Case, trial: Trial) -> list[str]:
    found = []
    if trial.error is not None:
        found.append(f"{trial.error.kind.value}: {trial.error.message}")
    for criterion in comparison.criteria:
        score = trial.scores.get(criterion.name)
        if criterion.blocking and score is not None and holds(criterion, case, score) is False:
            found.append(f"{criterion.name}: {score.reason or score.value}")
    return found


def _why_it_was_not_measured(trial: Trial) -> list[str]:
    found = []
    if trial.error is not None and not trial.failed:
        found.append(f"{trial.error.kind.value}: {trial.error.message}")
    for name, score in trial.scores.items():
        if score.unmeasured:
            found.append(f"{name}: not measured: {score.error}")
    return found


# --- the words of answers -------------------------------------------------------------------------

Responses = tuple[str | None, ...]


def _responses(case: Case, trial: Trial | None, criteria: Iterable[Criterion]) -> tuple[Responses, Responses]:
    """Return the expected and actual responses if the trial fails a criterion that reads text; empty if unknown."""
    if trial is None or not any(reads_text(criterion) and _fails(trial, case, [criterion]) for criterion in criteria):
        return (), ()
    wanted = [None if turn.response is None else _cut(turn.response) for turn in case.turns]
    made = [_cut(turn.response) or None for turn in trial.invocations]
    return (tuple(wanted) if any(wanted) else ()), (tuple(made) if any(made) else ())


def worst_wording(comparison: Comparison, criterion: Criterion) -> Wording | None:
    """Return the current wording of the case that got most worse; None if its text is unknown."""
    now, before = comparison.values(criterion), comparison.stored_values(criterion)
    sign = 1.0 if criterion.direction is Direction.HIGHER else -1.0
    falls = {}
    for case_id in comparison.paired:
        if now.get(case_id) and before.get(case_id):
            falls[case_id] = sign * (mean(before[case_id]) - mean(now[case_id]))
    for case_id in sorted(falls, key=lambda case_id: (-falls[case_id], case_id)):
        wording = _wording(comparison, case_id, criterion, sign)
        if wording is not None:
            return wording
    return None


def _wording(comparison: Comparison, case_id: str, criterion: Criterion, sign: float) -> Wording | None:
    """Return the worst answer of a case now next to its best before; None if a text is unknown."""

    def quality(trial: Trial) -> float:
        score = trial.scores.get(criterion.name)
        return inf if score is None or score.value is None else sign * score.value

    worst = min(comparison.measured(case_id, full=True), key=quality, default=None)
    answer = _last_text(worst)
    if worst is None or not answer:
        return None
    best = max(comparison.baseline[case_id], key=quality)
    wanted = comparison.by_id[case_id].turns[-1].response
    expected = "" if wanted is None else shorten(_cut(wanted), MAX_WORDING_CHARS)
    reason = shorten(worst.scores[criterion.name].reason, MAX_WORDING_CHARS)
    return Wording(case_id, _last_text(best), answer, expected, reason)


def _last_text(trial: Trial | None) -> str:
    """Return the text of a trial's last turn, as far as it is known."""
    texts = [turn.text for turn in trial.invocations if turn.text] if trial is not None else []
    return shorten(texts[-1], MAX_WORDING_CHARS) if texts else ""


def reads_text(criterion: Criterion) -> bool:
    """True if a criterion reads the text of the answer."""
    return not criterion.reads_tools and not criterion.scale.is_relative


def _cut(response: tuple[Part, ...]) -> str:
    return cut(text_of(response, thoughts=False), MAX_TEXT_CHARS)
