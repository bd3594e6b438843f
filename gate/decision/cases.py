"""The result of each case: its status, the failures of its trials, and the trajectories that show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from gate.decision.comparison import Comparison, Incomparable
from gate.decision.course import difference, same_world
from gate.decision.crashes import count_failed
from gate.decision.gaps import removed_cases
from gate.decision.outcomes import all_unchecked, holds, measured_values, outcomes_of, passed, value_of
from gate.model import Case, CaseResult, CaseStatus, Criterion, Outcome, Part, ToolCall, Trial, text_of
from gate.model.finding import Wording
from gate.security.limits import cut, shorten, tail
from gate.statistics.evalues import case_log_e, e_of
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


def _e_value(before: Sequence[bool], now: Sequence[bool]) -> float | None:
    """Return the evidence that the case passes less often now; None if a side has no trial."""
    if not before or not now:
        return None
    return e_of(case_log_e(sum(before), len(before), sum(now), len(now)))


def _case_result(comparison: Comparison, case: Case, outcome: Outcome | None) -> CaseResult:
    criteria = comparison.deciding(case.id)
    measured = comparison.measured(case.id)
    counted = comparison.counted(measured)
    of_base = comparison.of_base(case.id)
    now = outcomes_of(counted, case, criteria)
    before = outcomes_of(comparison.counted(of_base), case, criteria)
    e_value, is_broken = _e_value(before, now), False
    if outcome is not None:
        is_broken = case.id in outcome.cases
        if comparison.coupling.partners and case.id in outcome.evidence.cases:
            # coupled trials are weaker evidence than independent draws
            e_value = outcome.evidence.cases[case.id].e_value
    is_clean = len(criteria) == len(comparison.criteria) and len(now) == len(counted) and all(now)
    failing: list[Trial] = []
    if not is_clean:
        failing = [trial for trial in measured if _fails(trial, case, comparison.criteria)]
    attempts = comparison.candidate.get(case.id, ())
    worst, log = min(failing, key=_sum_of_scores, default=None), ""
    if worst is not None:
        log = tail(worst.log, MAX_LOG_SHOWN)
    scores = {}
    for criterion in comparison.criteria:
        scores[criterion.name] = _means(comparison, case.id, criterion)
    expected, actual = _responses(case, worst, comparison.criteria)
    return CaseResult(
        case.id,
        _status(comparison, case, now, before, failing, e_value, is_broken=is_broken),
        location=case.location,
        passed=sum(now),
        trials=len(now),
        errors=len(attempts) - len(measured),
        crashes=count_failed(measured),
        baseline_passed=sum(before),
        baseline_trials=len(before),
        baseline_crashes=count_failed(of_base),
        e_value=e_value,
        reasons=_reasons(comparison, case, failing, attempts),
        expected=tuple([turn.tools for turn in case.turns]),
        actual=_calls(worst),
        reference=_calls(next((trial for trial in of_base if passed(trial, case, criteria)), None)),
        scores=scores,
        quarantine=comparison.settings.quarantine.get(case.id, ""),
        expected_text=expected,
        actual_text=actual,
        duration=_duration(measured),
        improvement=_e_value(now, before),
        tags=tuple(sorted(case.tags)),
        complexity=case.complexity,
        log=log,
        same_world=same_world(comparison, attempts),
        difference=difference(attempts),
        thresholds=case.thresholds,
    )


def _sum_of_scores(trial: Trial) -> float:
    return sum(score.value for score in trial.scores.values() if score.value is not None)


def _duration(trials: Sequence[Trial]) -> float | None:
    """Return the total duration of the trials in seconds; None if any is unknown."""
    known = [trial.duration for trial in trials if trial.duration is not None]
    if not known or len(known) < len(trials):
        return None
    return sum(known)


def _calls(trial: Trial | None) -> tuple[tuple[ToolCall, ...], ...]:
    if trial is None:
        return ()
    return tuple([turn.tool_calls for turn in trial.invocations])


def _means(comparison: Comparison, case_id: str, criterion: Criterion) -> tuple[float | None, float | None]:
    """Return the means of a criterion in a case, of the candidate and of the baseline."""
    now = measured_values(comparison.measured(case_id), criterion)
    before = comparison.stored_values(criterion).get(case_id, ())
    return mean(now) if now else None, mean(before) if before else None


# --- the status -----------------------------------------------------------------------------------


def _status(
    comparison: Comparison,
    case: Case,
    now: Sequence[bool],
    before: Sequence[bool],
    failing: Sequence[Trial],
    e_value: float | None,
    *,
    is_broken: bool,
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
    if is_broken:
        return CaseStatus.BROKEN
    if failing and _below_its_own(comparison, case):
        return CaseStatus.FAILED
    if comparison.baseline and case.id not in comparison.baseline:
        return CaseStatus.NEW
    reasons = [comparison.not_comparable.get((case.id, criterion.name)) for criterion in comparison.criteria]
    if Incomparable.EDITED in reasons:
        return CaseStatus.EDITED
    if e_value is not None and e_value >= SUSPECT_E:
        return CaseStatus.SUSPECT
    first = before or now
    if 0 < sum(first) < len(first) or (failing and any(now)):
        return CaseStatus.FLAKY
    if failing and not any(now) and not (now and before):
        return CaseStatus.FAILED
    if not now:
        return CaseStatus.ERROR
    if not any(now):  # nor at the baseline: it would be suspected
        return CaseStatus.NEVER_PASSED
    return CaseStatus.OK


def _fails_hard(comparison: Comparison, case: Case, failing: Sequence[Trial]) -> bool:
    for criterion in comparison.blocking:
        if criterion.hard and any(_misses(criterion, case, trial) for trial in failing):
            return True
    return False


def _below_its_own(comparison: Comparison, case: Case) -> bool:
    """True if every trial misses a threshold that the author set for this case."""
    for criterion in comparison.blocking:
        if criterion.name in case.thresholds:
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
        texts = []
        if trial.error is not None:
            texts.append(f"{trial.error.kind.value}: {trial.error.message}")
        for criterion in comparison.criteria:
            score = trial.scores.get(criterion.name)
            if criterion.blocking and score is not None and holds(criterion, case, score) is False:
                texts.append(f"{criterion.name}: {score.reason or score.value}")
        for text in texts:
            counts[text] = counts.get(text, 0) + 1
    for trial in attempts:
        if trial.error is not None and not trial.failed:
            counts.setdefault(f"{trial.error.kind.value}: {trial.error.message}", 0)
        for name, score in trial.scores.items():
            if score.unmeasured:
                counts.setdefault(f"{name}: not measured: {score.error}", 0)
    order = sorted(counts, key=lambda text: -counts[text])
    return tuple([shorten(text, MAX_REASON_CHARS) for text in order[:MAX_REASONS]])


# --- the words of answers -------------------------------------------------------------------------

Responses = tuple[str | None, ...]


def _responses(case: Case, trial: Trial | None, criteria: Iterable[Criterion]) -> tuple[Responses, Responses]:
    """Return the expected and actual responses if the trial fails a criterion that reads text; empty if unknown."""
    if trial is None or not any(reads_text(criterion) and _fails(trial, case, [criterion]) for criterion in criteria):
        return (), ()
    wanted = tuple([None if turn.response is None else _cut(turn.response) for turn in case.turns])
    made = tuple([_cut(turn.response) or None for turn in trial.invocations])
    if not any(wanted):
        wanted = ()
    if not any(made):
        made = ()
    return wanted, made


def worst_wording(comparison: Comparison, criterion: Criterion) -> Wording | None:
    """Return the current wording of the case that got most worse; None if its text is unknown."""
    gains = []
    for case_id, (now, before) in comparison.values_of_both(criterion).items():
        gains.append((criterion.direction.sign * (mean(now) - mean(before)), case_id))
    for _, case_id in sorted(gains):
        wording = _wording(comparison, case_id, criterion)
        if wording is not None:
            return wording
    return None


def _wording(comparison: Comparison, case_id: str, criterion: Criterion) -> Wording | None:
    """Return the worst answer of a case now next to its best before; None if a text is unknown."""

    def quality(trial: Trial) -> float:
        value = value_of(trial, criterion)
        if value is None:
            return inf
        return criterion.direction.sign * value

    worst = min(comparison.measured(case_id, full=True), key=quality, default=None)
    answer = _last_text(worst)
    if worst is None or not answer:
        return None
    best = max(comparison.baseline[case_id], key=quality)
    wanted = comparison.by_id[case_id].turns[-1].response
    expected = ""
    if wanted is not None:
        expected = shorten(_cut(wanted), MAX_WORDING_CHARS)
    reason = shorten(worst.scores[criterion.name].reason, MAX_WORDING_CHARS)
    return Wording(case_id, _last_text(best), answer, expected, reason)


def _last_text(trial: Trial | None) -> str:
    """Return the text of a trial's last turn, as far as it is known."""
    text = ""
    if trial is not None:
        for turn in trial.invocations:
            text = turn.text or text
    return shorten(text, MAX_WORDING_CHARS)


def reads_text(criterion: Criterion) -> bool:
    """True if a criterion reads the text of the answer."""
    return not criterion.reads_tools and not criterion.scale.is_relative


def _cut(response: tuple[Part, ...]) -> str:
    return cut(text_of(response, thoughts=False), MAX_TEXT_CHARS)
