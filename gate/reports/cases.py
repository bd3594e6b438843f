"""The cases that a report shows, worst first, and their results in words. Escapes nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from msgspec.structs import replace

from gate.decision.causes import GOT_WORSE, badness
from gate.model import CaseResult, CaseStatus, SuiteResult
from gate.reports import replayed
from gate.reports.behaviour import differences_of
from gate.reports.by_tag import in_named
from gate.reports.formatting import count
from gate.reports.labels import STATUSES

IMPROVED_E = 2.0
"""The minimum e-value for listing a case as improved: the bar for a suspected one, in the other direction."""
ALIKE = 0.8
"""The minimum share of common words for two reasons to count as the same."""


# --- the cases ------------------------------------------------------------------------------------


def worse_cases(suite: SuiteResult) -> tuple[CaseResult, ...]:
    """Return the cases that got worse or could not be measured, worst first, whatever the order of the input."""
    return _worst_first([case for case in suite.cases if case.status in GOT_WORSE], suite)


def failing_cases(suite: SuiteResult) -> tuple[CaseResult, ...]:
    """Return further cases with failed trials: nothing shows that they got worse, yet they lower the score."""
    others = (*GOT_WORSE, CaseStatus.REMOVED)
    failing = [case for case in suite.cases if case.passed < case.trials and case.status not in others]
    return _worst_first(failing, suite)


def improved_cases(suite: SuiteResult) -> tuple[CaseResult, ...]:
    """Return the cases that pass more often than in the baseline, strongest evidence first."""
    known = [case for case in suite.cases if case.improvement is not None and case.improvement >= IMPROVED_E]
    return tuple(sorted(known, key=lambda case: (-(case.improvement or 0.0), case.id)))


def _worst_first(cases: Sequence[CaseResult], suite: SuiteResult) -> tuple[CaseResult, ...]:
    """Sort by status; then cases of a tag in which the loss is concentrated before others."""

    def rank(case: CaseResult) -> tuple[float | str, ...]:
        elsewhere = bool(suite.concentrated) and not in_named(suite, case.tags, case.complexity.value)
        return badness(case, elsewhere=elsewhere)

    told = [told_once(case, suite) for case in cases]
    return tuple(sorted(told, key=rank))


def told_once(case: CaseResult, suite: SuiteResult) -> CaseResult:
    """Return the case without a composite criterion's reasons if it has those of its parts."""
    if len(case.reasons) < 2:
        return case
    criteria = [reason.partition(": ")[0] for reason in case.reasons]
    named, repeated = set(criteria), set()
    for row in suite.criteria:
        if not named.isdisjoint(row.criterion.parts):
            repeated.add(row.criterion.name)
    kept = [reason for reason, name in zip(case.reasons, criteria, strict=True) if name not in repeated]
    if not repeated or not kept:
        return case
    return replace(case, reasons=tuple(kept))


def passes_less(case: CaseResult) -> bool:
    """True if it passes less often than in the baseline."""
    return case.passed * case.baseline_trials < case.baseline_passed * case.trials


# --- similar reasons ------------------------------------------------------------------------------


def distinct(reasons: Sequence[str]) -> tuple[str, ...]:
    """Return the reasons without those that differ from an earlier one only in figures, or in a word or two."""
    kept: list[str] = []
    for reason in reasons:
        if not any(_is_alike(reason, other) for other in kept):
            kept.append(reason)
    return tuple(kept)


def one_of_each_reason(cases: Sequence[CaseResult], most: int) -> tuple[tuple[CaseResult, ...], bool]:
    """Return the first case of each distinct cause, ``most`` at most, and True if these are all the causes."""
    found: list[CaseResult] = []
    for case in cases:
        if any(_has_same_cause(case, other) for other in found):
            continue
        if len(found) == most:
            return tuple(found), False
        found.append(case)
    return tuple(found), True


def _has_same_cause(case: CaseResult, other: CaseResult) -> bool:
    """True if the agent's behaviour changed in the same way in both, or both fail for the same reason."""
    if not differences_of(case).keys().isdisjoint(differences_of(other)):
        return True
    if not case.reasons or not other.reasons:
        return case.reasons == other.reasons
    return _is_alike(case.reasons[0], other.reasons[0])


def _is_alike(one: str, other: str) -> bool:
    words, others = _words(one), _words(other)
    return len(words & others) >= ALIKE * len(words | others)


@lru_cache(maxsize=1_000)
def _words(reason: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d]+", reason.lower())) or frozenset([reason])


# --- in words -------------------------------------------------------------------------------------


def status(case: CaseResult) -> str:
    """Return the status in a word or two."""
    if replayed.is_same(case):
        return replayed.SAME
    return STATUSES[case.status]


def status_counts(suite: SuiteResult) -> str:
    """Return text such as ``40 cases: 3 broken, 2 flaky, 1 never passed, 34 ok``; empty if no case was judged."""
    if not suite.cases:
        return ""
    known = Counter(map(status, suite.cases))
    ok = STATUSES[CaseStatus.OK]
    order = [*STATUSES.values(), replayed.SAME]
    order.remove(ok)
    named = [f"{known[name]:,} {name}" for name in (*order, ok) if known[name]]
    return f"{count(len(suite.cases), 'case')}: {', '.join(named)}"


def tally(case: CaseResult) -> str:
    """Return text such as ``0/4 passed, was 5/5``, with errors if there were any."""
    said = "no trial measured"
    if case.trials:
        said = f"{case.passed:,}/{case.trials:,} passed"
    if case.baseline_trials:
        said += f", was {case.baseline_passed:,}/{case.baseline_trials:,}"
    if case.errors:
        said += f", {count(case.errors, 'error')}"
    return said


def improvement(case: CaseResult, suite: SuiteResult) -> str:
    """Return the passes in the baseline and now, such as ``0/5 → 3/3``, and a note if that may be chance."""
    said = f"{case.baseline_passed:,}/{case.baseline_trials:,} → {case.passed:,}/{case.trials:,}"
    if suite.outcome is not None and case.id in suite.outcome.evidence.gained:
        return said
    if any(case.id == one.case_id for one in suite.gained):
        return f"{said}, not proven alone"
    return f"{said}, perhaps by chance"


def worse_title(cases: Sequence[CaseResult]) -> str:
    """Return a title that is true of each of these `worse_cases`: some may fail just as in the baseline."""
    if all(map(passes_less, cases)):
        return "Cases that got worse"
    statuses = {case.status for case in cases}
    if statuses == {CaseStatus.ERROR}:
        return "Cases that could not be measured"
    if CaseStatus.ERROR in statuses:
        return "Cases to look at"
    return "Cases that failed"
