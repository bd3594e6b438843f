"""The result of each case: its status, the reasons why its trials failed, and the trajectories that show it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, inf

from msgspec import Struct

from gate.decision.comparison import Comparison, Incomparable, all_unchecked, full_values, holds, mark, passed
from gate.decision.replayed import difference, same_world
from gate.model import Case, CaseResult, CaseStatus, Criterion, Direction, Outcome, Part, ToolCall, Trial, text_of
from gate.model.finding import Finding, Wording
from gate.security.limits import cut, shorten, tail
from gate.statistics.evalues import case_log_e
from gate.statistics.intervals import mean, stratified_fisher_less

SUSPECT_E = 2.0
"""From here on a case is shown as suspected."""
MOST_LOST = 0.1
"""Share of the baseline's cases that may be removed. A drop over the whole suite shows from ten points on (the default
margin): were every one of these cases a regression, it would have shown no more than that."""
LEAST_LOST = 2
"""This many of them at least: one case that is fixed is no reason to doubt a suite of nine, if the rest is compared."""
MAX_REASONS = 5
MAX_REASON_CHARS = 500
MAX_LOG_SHOWN = 1_000
MAX_TEXT_CHARS = 2_000
"""Characters of an expected or an actual response."""


def case_results(comparison: Comparison, outcome: Outcome | None) -> tuple[CaseResult, ...]:
    """Every case of the suite in its order, then those that only the baseline has."""
    known = [_case_result(comparison, case, outcome) for case in comparison.cases]
    return (*known, *(CaseResult(case_id, CaseStatus.REMOVED) for case_id in removed(comparison)))


def removed(comparison: Comparison) -> tuple[str, ...]:
    """The cases that the baseline measured and the suite no longer has."""
    return tuple(sorted(set(comparison.baseline) - set(comparison.by_id)))


def edited(comparison: Comparison) -> tuple[str, ...]:
    """The cases that the baseline measured with another content."""
    found = {case_id for (case_id, _), why in comparison.not_comparable.items() if why is Incomparable.EDITED}
    return tuple(sorted(found.intersection(comparison.baseline, comparison.by_id)))


def too_many_gone(comparison: Comparison) -> Finding | None:
    """Return the removed cases that passed at the base, if they are too many; cases in quarantine aside."""
    passed_before = [
        case_id
        for case_id, trials in comparison.baseline.items()
        if case_id not in comparison.settings.quarantine and _mostly_passed(comparison, case_id, trials)
    ]
    gone = tuple(sorted(case_id for case_id in passed_before if case_id not in comparison.by_id))
    if are_few(len(gone), len(passed_before)):
        return None
    return Finding.of("too_many_cases_gone", cases=gone, of=len(passed_before))


def _mostly_passed(comparison: Comparison, case_id: str, trials: Sequence[Trial]) -> bool:
    """True if at least half of the baseline's trials of a case passed; a case that is gone has no thresholds."""
    case = comparison.by_id.get(case_id) or Case(case_id, ())
    outcomes = _outcomes(trials, case, comparison.criteria)
    return 2 * sum(outcomes) >= len(outcomes) > 0


def edited_and_missing(comparison: Comparison) -> Finding | None:
    """Return the edited cases that passed at the base and miss now; cases in quarantine aside.

    Each by itself, if fewer than half of its trials pass and at least half did, or a score without a mark fell by half
    of its scale; and all that fell, if chance does not explain how much they fell together.
    """
    sides: dict[str, tuple[list[bool], list[bool]]] = {}
    for case_id in edited(comparison):
        if case_id in comparison.settings.quarantine:
            continue
        case = comparison.by_id[case_id]
        now = _outcomes(comparison.measured(case_id), case, comparison.criteria)
        before = _outcomes(comparison.baseline[case_id], case, comparison.criteria)
        if now and before:
            sides[case_id] = now, before
    fell = [case_id for case_id, (now, before) in sides.items() if mean(now) < mean(before)]
    counts = [(sum(now), len(now), sum(before), len(before)) for now, before in sides.values()]
    if not (fell and stratified_fisher_less(counts) <= comparison.settings.own_alpha):
        fell = [case_id for case_id in fell if 2 * sum(sides[case_id][0]) < len(sides[case_id][0])]
        fell = [case_id for case_id in fell if 2 * sum(sides[case_id][1]) >= len(sides[case_id][1])]
    fell += [case_id for case_id in sides if case_id not in fell and _fell_by_half(comparison, case_id)]
    return Finding.of("edited_cases_miss", cases=tuple(fell)) if fell else None


def _fell_by_half(comparison: Comparison, case_id: str) -> bool:
    """True if the mean of a blocking score that has no mark fell by at least half of its scale, content aside."""
    case = comparison.by_id[case_id]
    for criterion in comparison.criteria:
        if not (criterion.blocking and criterion.blocks_regression and criterion.scale.is_bounded):
            continue
        now = full_values(comparison.measured(case_id), criterion)
        before = full_values(comparison.baseline[case_id], criterion)
        if mark(criterion, case) is not None or not now or not before:
            continue
        low, high = criterion.scale.range
        fall = mean(before) - mean(now)
        if (fall if criterion.direction is Direction.HIGHER else -fall) >= (high - low) / 2:
            return True
    return False


def are_few(gone: int, known: int) -> bool:
    """True if so many of the baseline's cases may be missing under a pass."""
    return gone < LEAST_LOST or gone <= MOST_LOST * known


class _Seen(Struct, frozen=True):
    """The outcomes of a case's trials, on both sides."""

    now: Sequence[bool]
    before: Sequence[bool]
    decided: float | None = None
    """The e-value that the decision had, where trials are coupled; they are less evidence than draws of their own."""

    @property
    def e_value(self) -> float | None:
        if self.decided is not None:
            return self.decided
        if not self.now or not self.before:
            return None
        return exp(min(case_log_e(sum(self.before), len(self.before), sum(self.now), len(self.now)), 700.0))

    @property
    def improvement(self) -> float | None:
        """Return the evidence for passing more often: with the sides exchanged."""
        if not self.now or not self.before:
            return None
        return exp(min(case_log_e(sum(self.now), len(self.now), sum(self.before), len(self.before)), 700.0))


def _decided(comparison: Comparison, case_id: str, outcome: Outcome | None) -> float | None:
    known = outcome.evidence.cases.get(case_id) if outcome is not None and comparison.coupling.partners else None
    return None if known is None else known.e_value


def _case_result(comparison: Comparison, case: Case, outcome: Outcome | None) -> CaseResult:
    paired = case.id in comparison.with_baseline
    criteria = comparison.comparable(case.id) if paired else comparison.criteria
    measured = comparison.measured(case.id)
    counted = comparison.counted(measured)
    now = _outcomes(counted, case, criteria)
    stored = (*comparison.baseline.get(case.id, ()), *comparison.reruns.get(case.id, ())) if paired else ()
    before = _outcomes(comparison.counted(stored), case, criteria)
    seen = _Seen(now, before, _decided(comparison, case.id, outcome))
    clean = len(criteria) == len(comparison.criteria) and len(now) == len(counted) and all(now)
    failing = [] if clean else [t for t in measured if _fails(t, case, comparison.criteria)]
    attempts = comparison.candidate.get(case.id, ())
    worst = min(failing, key=_quality, default=None)
    said = _texts(case, worst, comparison.criteria)
    return CaseResult(
        case.id,
        _status(comparison, case, outcome, seen, failing),
        location=case.location,
        passed=sum(now),
        trials=len(now),
        errors=len(attempts) - len(measured),
        crashes=sum([t.failed for t in measured]),
        baseline_passed=sum(before),
        baseline_trials=len(before),
        baseline_crashes=sum([t.failed for t in stored]),
        e_value=seen.e_value,
        reasons=_reasons(comparison, case, failing, attempts),
        expected=tuple([turn.tools for turn in case.turns]),
        actual=_calls(worst),
        reference=_calls(next((t for t in stored if passed(t, case, criteria)), None)) if stored else (),
        scores={c.name: _means(comparison, case.id, c) for c in comparison.criteria},
        quarantine=comparison.settings.quarantine.get(case.id, ""),
        expected_text=said[0],
        actual_text=said[1],
        duration=_duration(measured),
        improvement=seen.improvement,
        tags=tuple(sorted(case.tags)),
        complexity=case.complexity,
        log=tail(worst.log, MAX_LOG_SHOWN) if worst is not None else "",
        same_world=same_world(comparison, attempts),
        difference=difference(attempts),
        thresholds=case.thresholds,
    )


def _duration(trials: Sequence[Trial]) -> float | None:
    known = [trial.duration for trial in trials if trial.duration is not None]
    return sum(known) if known and len(known) == len(trials) else None


def _status(
    comparison: Comparison, case: Case, outcome: Outcome | None, seen: _Seen, failing: Sequence[Trial]
) -> CaseStatus:
    """The first that holds."""
    trials = comparison.measured(case.id)
    first = seen.before or seen.now
    rules = (
        (CaseStatus.FAILED, bool(failing) and _fails_hard(comparison, case, failing)),
        (CaseStatus.QUARANTINED, case.id in comparison.settings.quarantine),
        (CaseStatus.ERROR, not trials),
        (CaseStatus.UNCHECKED, all_unchecked(trials, comparison.criteria)),
        (CaseStatus.BROKEN, outcome is not None and case.id in outcome.cases),
        (CaseStatus.FAILED, bool(failing) and _below_its_own(comparison, case)),
        (CaseStatus.NEW, bool(comparison.baseline) and _is_new(comparison, case)),
        (CaseStatus.SUSPECT, seen.e_value is not None and seen.e_value >= SUSPECT_E),
        (CaseStatus.FLAKY, 0 < sum(first) < len(first) or (bool(failing) and any(seen.now))),
        (CaseStatus.FAILED, bool(failing) and not any(seen.now) and not (seen.now and seen.before)),
        (CaseStatus.ERROR, not seen.now),
        (CaseStatus.NEVER_PASSED, not any(seen.now)),  # nor at the baseline: it would be suspected
    )
    return next((status for status, holds_ in rules if holds_), CaseStatus.OK)


def _is_new(comparison: Comparison, case: Case) -> bool:
    """True if the baseline does not have the case with this content."""
    reasons = [comparison.not_comparable.get((case.id, criterion.name)) for criterion in comparison.criteria]
    return case.id not in comparison.baseline or Incomparable.EDITED in reasons


def _fails_hard(comparison: Comparison, case: Case, failing: Sequence[Trial]) -> bool:
    hard = [c for c in comparison.criteria if c.hard and c.blocking]
    return any(holds(c, case, t.scores.get(c.name)) is False for c in hard for t in failing)


def _below_its_own(comparison: Comparison, case: Case) -> bool:
    """True if no trial holds a threshold that the author gave to this very case."""
    own = [c for c in comparison.criteria if c.name in case.thresholds and c.blocking]
    trials = comparison.measured(case.id)
    return any(all(t.failed or holds(c, case, t.scores.get(c.name)) is False for t in trials) for c in own)


def _fails(trial: Trial, case: Case, criteria: Iterable[Criterion]) -> bool:
    """True if the agent failed, or a blocking criterion does not hold, even if another could not be measured."""
    return trial.failed or any(c.blocking and holds(c, case, trial.scores.get(c.name)) is False for c in criteria)


def _outcomes(trials: Iterable[Trial], case: Case, criteria: Sequence[Criterion]) -> list[bool]:
    return [outcome for t in trials if (outcome := passed(t, case, criteria)) is not None]


def _reasons(
    comparison: Comparison, case: Case, failing: Sequence[Trial], attempts: Sequence[Trial]
) -> tuple[str, ...]:
    """Return the reasons why trials failed, the most frequent first; then those why they were not measured."""
    counts: dict[str, int] = {}
    for trial in failing:
        if trial.error is not None:
            text = f"{trial.error.kind.value}: {trial.error.message}"
            counts[text] = counts.get(text, 0) + 1
        for criterion in comparison.criteria:
            score = trial.scores.get(criterion.name)
            if criterion.blocking and score is not None and holds(criterion, case, score) is False:
                text = f"{criterion.name}: {score.reason or score.value}"
                counts[text] = counts.get(text, 0) + 1
    for trial in attempts:
        errors = [f"{trial.error.kind.value}: {trial.error.message}"] if trial.error and not trial.failed else []
        errors += [
            f"{name}: not measured: {s.error}" for name, s in trial.scores.items() if s.value is None and s.error
        ]
        for text in errors:
            counts.setdefault(text, 0)
    if not counts:
        return ()
    order = sorted(counts, key=lambda text: -counts[text])
    return tuple(shorten(text, MAX_REASON_CHARS) for text in order[:MAX_REASONS])


def _quality(trial: Trial) -> float:
    return sum(score.value for score in trial.scores.values() if score.value is not None)


_Texts = tuple[str | None, ...]


def _texts(case: Case, trial: Trial | None, criteria: Iterable[Criterion]) -> tuple[_Texts, _Texts]:
    """Expected and actual responses where the trial fails a criterion that looks at them; empty where none is known."""
    if trial is None or not any(reads_text(c) and _fails(trial, case, [c]) for c in criteria):
        return (), ()
    wanted = [None if turn.response is None else _cut(turn.response) for turn in case.turns]
    made = [_cut(invocation.response) or None for invocation in trial.invocations]
    return (tuple(wanted) if any(wanted) else ()), (tuple(made) if any(made) else ())


MAX_WORDING_CHARS = 300
"""Characters of an answer that stands for all that fell."""


def worst_wording(comparison: Comparison, criterion: Criterion) -> Wording | None:
    """Return how the case that lost most of a criterion is worded now; None if no text of it is known."""
    now, before = comparison.values(criterion), comparison.stored_values(criterion)
    sign = 1.0 if criterion.direction is Direction.HIGHER else -1.0
    falls = {
        case_id: sign * (mean(before[case_id]) - mean(now[case_id]))
        for case_id in comparison.paired
        if now.get(case_id) and before.get(case_id)
    }
    for case_id in sorted(falls, key=lambda c: (-falls[c], c)):
        worst = min(comparison.measured(case_id, full=True), key=lambda t: _value(t, criterion, sign), default=None)
        best = max(comparison.baseline[case_id], key=lambda t: _value(t, criterion, sign))
        answer = _last_text(worst)
        if worst is not None and answer:
            wanted = comparison.by_id[case_id].turns[-1].response
            expected = "" if wanted is None else shorten(_cut(wanted), MAX_WORDING_CHARS)
            reason = shorten(worst.scores[criterion.name].reason, MAX_WORDING_CHARS)
            return Wording(case_id, _last_text(best), answer, expected, reason)
    return None


def _last_text(trial: Trial | None) -> str:
    """Return what the last turn of a trial says, as far as it is known here."""
    texts = [turn.text for turn in trial.invocations if turn.text] if trial is not None else []
    return shorten(texts[-1], MAX_WORDING_CHARS) if texts else ""


def _value(trial: Trial, criterion: Criterion, sign: float) -> float:
    score = trial.scores.get(criterion.name)
    return inf if score is None or score.value is None else sign * score.value


def reads_text(criterion: Criterion) -> bool:
    """True if a criterion looks at what is answered."""
    return not criterion.reads_tools and not criterion.scale.is_relative


def _cut(response: tuple[Part, ...]) -> str:
    return cut(text_of(response, thoughts=False), MAX_TEXT_CHARS)


def _calls(trial: Trial | None) -> tuple[tuple[ToolCall, ...], ...]:
    return () if trial is None else tuple(invocation.tool_calls for invocation in trial.invocations)


def _means(comparison: Comparison, case_id: str, criterion: Criterion) -> tuple[float | None, float | None]:
    now = full_values(comparison.measured(case_id), criterion)
    before = comparison.stored_values(criterion).get(case_id)
    return (mean(now) if now else None), (mean(before) if before else None)
