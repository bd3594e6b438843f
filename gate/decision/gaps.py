"""The parts of the base that were not compared: removed cases, edited cases that now miss, and criteria that no longer
apply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gate.decision.comparison import Comparison, Incomparable
from gate.decision.outcomes import PASS_RATE, mark, measured_values, outcomes_of
from gate.decision.own_models import moved, own_models_of
from gate.model import Case, Criterion, CriterionResult, Trial, Verdict
from gate.model.finding import Finding
from gate.statistics.intervals import mean, stratified_fisher_less

MOST_GONE = 0.1
"""Maximum share of the baseline's cases that may be removed, or left without a check. A drop of the whole suite shows
from ten points on (the default margin): even if every one of these cases regressed, it would have shown no more than
that."""
LEAST_GONE = 2
"""Fewer removed cases are always allowed: one fixed case is no reason to doubt a suite of nine if the rest is
compared."""
MOST_CASES = 200
"""Maximum number of cases in a test, the first of the suite: these are enough for a proof."""


def gaps_of(comparison: Comparison, blocking: Sequence[CriterionResult]) -> list[Finding]:
    """Return the contents of the base that were not compared; ``blocking``: the rows that can fail the suite.

    Empty if the trials are the base's own.
    """
    found: list[Finding] = []
    if comparison.same_as:
        return found
    for row in blocking:
        if row.not_compared is not None and row.criterion.name != PASS_RATE:
            found.append(row.not_compared)
    expected = comparison.baseline.keys() - comparison.settings.quarantine.keys()
    if expected and not any(case.id in expected and comparison.comparable(case.id) for case in comparison.judged):
        edited = len(expected.intersection(edited_cases(comparison)))
        found.append(Finding.of("cases_changed", Verdict.NOT_COMPARED, how="all", of=len(expected), edited=edited))
    for finding in (too_many_gone(comparison), edited_and_missing(comparison), cut_off(comparison)):
        if finding is not None:
            found.append(finding)
    return found


def are_few(gone: int, known: int) -> bool:
    """True if a suite may pass with this many of the baseline's cases missing."""
    return gone < LEAST_GONE or gone <= MOST_GONE * known


# --- cases ----------------------------------------------------------------------------------------


def new_cases(comparison: Comparison) -> tuple[str, ...]:
    """Return the judged cases that the baseline does not have under any name."""
    return tuple([case.id for case in comparison.judged if case.id not in comparison.baseline])


def removed_cases(comparison: Comparison) -> tuple[str, ...]:
    """Return the cases that the baseline measured and the suite no longer has."""
    return tuple(sorted(set(comparison.baseline) - set(comparison.by_id)))


def edited_cases(comparison: Comparison) -> tuple[str, ...]:
    """Return the cases whose content differs at the baseline."""
    found = set()
    for (case_id, _), why in comparison.not_comparable.items():
        if why is Incomparable.EDITED:
            found.add(case_id)
    return tuple(sorted(found.intersection(comparison.baseline, comparison.by_id)))


def too_many_gone(comparison: Comparison) -> Finding | None:
    """Return a finding if too many cases that passed at the base were removed, or edited so that nothing checks their
    answers; cases in quarantine do not count."""
    passed, gone, criteria = 0, [], _known_at_base(comparison)
    emptied = set(edited_cases(comparison)).intersection(comparison.unchecked)
    for case_id in sorted(comparison.baseline):
        case = comparison.by_id.get(case_id) or Case(case_id, ())  # a removed one has no thresholds of its own
        outcomes = outcomes_of(comparison.baseline[case_id], case, criteria)
        if case_id in comparison.settings.quarantine or not outcomes or 2 * sum(outcomes) < len(outcomes):
            continue
        passed += 1
        if case_id not in comparison.by_id or case_id in emptied:
            gone.append(case_id)
    if are_few(len(gone), passed):
        return None
    return Finding.of(
        "cases_changed",
        Verdict.NOT_COMPARED,
        how="removed",
        cases=tuple(gone),
        of=passed,
        selected=comparison.selected,
        unchecked=not emptied.isdisjoint(gone),
    )


def _known_at_base(comparison: Comparison) -> list[Criterion]:
    """Return the criteria that the base measured, too. No trial there would have passed a new criterion."""
    names: set[str] = set()
    for trial in comparison.stored:
        names.update(trial.scores)
    return [criterion for criterion in comparison.criteria if criterion.name in names]


def edited_and_missing(comparison: Comparison) -> Finding | None:
    """Return a finding on edited cases that passed at the base and now miss; cases in quarantine do not count.

    A single case counts if fewer than half of its trials pass and at least half did, or if a score without a pass mark
    fell by half of its scale. All cases that fell count if chance does not explain their joint fall.
    """
    criteria = _known_at_base(comparison)
    fell, missing, by_half, counts = [], [], [], []
    for case_id in edited_cases(comparison):
        if case_id in comparison.settings.quarantine:
            continue
        case = comparison.by_id[case_id]
        now = outcomes_of(comparison.measured(case_id), case, criteria)
        before = outcomes_of(comparison.baseline[case_id], case, criteria)
        if not now or not before:
            continue
        counts.append((sum(now), len(now), sum(before), len(before)))
        if mean(now) < mean(before):
            fell.append(case_id)
            if 2 * sum(now) < len(now) and 2 * sum(before) >= len(before):
                missing.append(case_id)
        if _fell_by_half(comparison, case_id):
            by_half.append(case_id)
    found = missing
    if fell and stratified_fisher_less(counts) <= comparison.settings.own_alpha:
        found = fell
    cases = tuple(dict.fromkeys([*found, *by_half]))
    if not cases:
        return None
    return Finding.of("cases_changed", Verdict.NOT_COMPARED, how="edited", cases=cases)


def _fell_by_half(comparison: Comparison, case_id: str) -> bool:
    """True if the mean of a blocking score without a pass mark fell by at least half of its scale, unless the score
    cannot block a regression."""
    case = comparison.by_id[case_id]
    for criterion in comparison.blocking:
        if not criterion.blocks_regression or not criterion.scale.is_bounded:
            continue
        now = measured_values(comparison.measured(case_id), criterion)
        before = measured_values(comparison.baseline[case_id], criterion)
        if mark(criterion, case) is not None or not now or not before:
            continue
        low, high = criterion.scale.range
        fall = criterion.direction.sign * (mean(before) - mean(now))
        if fall >= (high - low) / 2:
            return True
    return False


def cut_off(comparison: Comparison) -> Finding | None:
    """Return a finding on cases that had whole answers at the base and have none now, if they are more than may be
    removed and chance does not explain it: scores of a beginning are compared with those of the whole."""
    gone, mixed = [], []
    for case_id in comparison.paired:
        now, of_now = _whole(comparison.counted(comparison.measured(case_id, full=True)))
        before, of_before = _whole(comparison.counted(comparison.baseline[case_id]))
        if before == of_before and not now:
            gone.append(case_id)
        if now + before < of_now + of_before:
            mixed.append((now, of_now, before, of_before))
    known = len(comparison.paired)
    if are_few(len(gone), known) or stratified_fisher_less(mixed[:MOST_CASES]) > comparison.settings.own_alpha:
        return None
    return Finding.of("cases_changed", Verdict.NOT_COMPARED, how="cut_off", cases=tuple(gone), of=known)


def _whole(trials: Iterable[Trial]) -> tuple[int, int]:
    """Return the numbers of answered trials whose model ended no answer at its limit of length, and of all."""
    answered = [trial for trial in trials if trial.answered]
    cut = [any(turn.usage is not None and turn.usage.cut_off for turn in trial.invocations) for trial in answered]
    return len(answered) - sum(cut), len(answered)


# --- criteria that cannot be compared -------------------------------------------------------------


def incomparable_criteria(comparison: Comparison) -> dict[str, Finding]:
    """Return the reason why a criterion's baseline scores cannot be compared, for each one that has some."""
    found: dict[str, Finding] = {}
    if not comparison.stored:
        return found
    reasons: dict[str, set[Incomparable]] = {}
    for (_, name), why in comparison.not_comparable.items():
        reasons.setdefault(name, set()).add(why)
    for criterion in comparison.criteria:
        name = criterion.name
        told = reasons.get(name, set())
        if Incomparable.CHANGED in told:
            found[name] = Finding.of("not_compared", criterion=name, why="changed")
        elif Incomparable.OTHER_MODEL in told:
            found[name] = _measured_by_another(comparison, name)
        else:
            gone = without_cases(comparison, criterion)
            if gone is not None:
                found[name] = gone
    return found


def _measured_by_another(comparison: Comparison, criterion: str) -> Finding:
    """Return the finding on a criterion whose judge or simulated user is another model under the same name."""
    now = own_models_of(comparison.trials).get(criterion, set())
    before = own_models_of(comparison.stored).get(criterion, set())
    asked = moved(now, before)
    users = set()
    for trial in comparison.trials:
        users.update([name for name, _ in trial.users])
    why = "other_judge"
    if not users.isdisjoint(asked):  # the conversations are other ones, which weighs more than their judge
        why, asked = "other_user", [name for name in asked if name in users]
    return Finding.of(
        "not_compared",
        criterion=criterion,
        why=why,
        models=tuple(asked),
        now=tuple(sorted([answered for name, answered in now if name in asked])),
        before=tuple(sorted([answered for name, answered in before if name in asked])),
    )


def without_cases(comparison: Comparison, criterion: Criterion) -> Finding | None:
    """Return the finding on a criterion whose baseline cases were all removed or edited, so that none is compared.

    A criterion may apply to only a tenth of the cases. None if no case is paired at all: then the criterion is not the
    cause.
    """
    known = comparison.stored_values(criterion)
    if not comparison.paired or any(case.id in known for case in comparison.judged):
        return None
    cases = 0
    for case_id, trials in comparison.baseline.items():
        if case_id not in comparison.settings.quarantine and measured_values(trials, criterion):
            cases += 1
    if not cases:
        return None
    return Finding.of("not_compared", criterion=criterion.name, why="cases_gone", of=cases)


# --- criteria that no longer have anything to check -----------------------------------------------


def silent_criteria(comparison: Comparison) -> tuple[Finding, ...]:
    """Return the blocking criteria that lost too much of what they checked at the baseline for a pass.

    A score that does not apply is neither a failure nor a pass. If an agent goes silent, a criterion on its answers
    would compare only the few remaining cases and find them no worse. An edit that takes an expectation out of cases
    which met it leaves as little to compare as one that removes them.

    The loss is too much if more cases stopped applying than may be removed. Unless edits explain that, chance must not:
    if both sides shared one rate per case, the trials without anything to check would be drawn from all trials of the
    case, and that has a probability below this criterion's part of the error rate.
    """
    found = []
    for criterion in comparison.blocking:
        known = comparison.values(criterion)
        if sum(case.id not in known for case in comparison.judged) < LEAST_GONE:
            continue
        applied, gone, edited, mixed = 0, [], [], []
        for case in comparison.judged:
            trials = comparison.baseline.get(case.id, ())
            before, of_before = _applies_to(comparison.counted(trials), criterion)
            now, of_now = _applies_to(comparison.counted(comparison.measured(case.id, full=True)), criterion)
            why = comparison.not_comparable.get((case.id, criterion.name))
            if not before or not of_now or why not in (None, Incomparable.EDITED):
                continue
            applied += 1
            if why is None and before + now < of_before + of_now:
                mixed.append((now, of_now, before, of_before))
            if before < of_before or now:
                continue
            if why is None:
                gone.append(case.id)
                continue
            outcomes = outcomes_of(trials, case, [criterion])
            if 2 * sum(outcomes) >= len(outcomes):
                edited.append(case.id)
        if are_few(len(gone) + len(edited), applied):
            continue
        by_chance = stratified_fisher_less(mixed[:MOST_CASES])
        level = comparison.settings.own_alpha / len(comparison.blocking)
        if by_chance <= level or not are_few(len(edited), applied):
            cases = (*edited, *gone)
            found.append(
                Finding.of("not_compared", criterion=criterion.name, why="nothing_to_check", cases=cases, of=applied)
            )
    return tuple(found)


def _applies_to(trials: Iterable[Trial], criterion: Criterion) -> tuple[int, int]:
    """Return the numbers of trials that have a value, and that have one or need none; unmeasured trials count in
    neither."""
    with_value = without = 0
    for trial in trials:
        score = trial.scores.get(criterion.name)
        if score is None:
            continue
        if score.value is not None:
            with_value += 1
        elif not score.error:
            without += 1
    return with_value, with_value + without
