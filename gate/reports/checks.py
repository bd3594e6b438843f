"""A result as a list of tests, for the formats of test runners: JUnit and CTRF.

There is one test for each suite's verdict, one per criterion and one per case; criteria and worse cases against further
references, such as the anchor, are in a group with the reference's name. A suite whose verdict fails the gate has at
least one failure or error, and any other suite has none, so that the file alone agrees with the exit code. Text is raw;
each format escapes and bounds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from gate.errors import ExitCode
from gate.model import CaseResult, CaseStatus, CriterionResult, Result, SuiteResult, Verdict
from gate.reports import replayed
from gate.reports.cases import tally
from gate.reports.labels import STATUSES, VERDICTS
from gate.reports.rows import RowView
from gate.reports.trajectory_diff import differences
from gate.reports.view import View, says_verdict

_FAILURES = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD, Verdict.NOT_COMPARED)
_PASSED = (CaseStatus.OK, CaseStatus.FLAKY, CaseStatus.SUSPECT)
_ERRORS = (Verdict.ERROR, Verdict.NOT_MEASURED)
NO_SUITE = "gate"
"""The class name of the test for a result without suites."""
MOST_SECONDS = 1e10
"""About 300 years in seconds: above any time since 1970, yet its milliseconds are exact in every reader."""
_DIGITS = 4
"""Decimal digits of a second. More digits, or larger sums, would be written with exponents, which JUnit forbids."""


class Outcome(str, Enum):
    """The outcomes of test runners. Skipped never means passed: nothing was judged, or the test does not block."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"


class ReportItem(Struct, frozen=True):
    """One test of a report."""

    name: str
    group: tuple[str, ...] = ()
    """The path below the suite: ``("criteria",)``, ``("anchor", "criteria")``; empty for its verdict and its cases."""
    outcome: Outcome = Outcome.PASSED
    kind: str = ""
    """The verdict or the case's status, for machines."""
    message: str = ""
    """The reason why the test did not pass; empty if it did."""
    details: tuple[str, ...] = ()
    """Lines that belong to the message."""
    output: tuple[str, ...] = ()
    """Lines to show for any outcome."""
    case: CaseResult | None = None

    @property
    def case_id(self) -> str | None:
        """The id of the case; None for a verdict or a criterion."""
        if self.case is None:
            return None
        return self.case.id


def told_seconds(seconds: float | None) -> float | None:
    """Return a time that the formats can express; None if it is unknown or impossible.

    Agents and traces report times of any size; the limit keeps the sum over all cases finite.
    """
    if seconds is None or not 0 <= seconds <= MOST_SECONDS:
        return None
    return round(seconds, _DIGITS)


def checks_of(view: View, result: Result) -> list[ReportItem]:
    """Return the tests of a suite: its verdict, its criteria, its cases, then those against further references."""
    suite = view.suite
    undecided_fails = result.exit_code is ExitCode.FAILED and not any(s.standing in _FAILURES for s in result.suites)
    found = [_verdict(view, undecided_fails)]
    found += [_criterion(suite, row, undecided_fails) for row in view.rows]
    found += [_case(view, case) for case in suite.cases]
    for one in suite.further:
        found += _further(suite, one, undecided_fails)
    if suite.standing is Verdict.PASS or (suite.standing is Verdict.INCONCLUSIVE and not undecided_fails):
        return [_beside_a_pass(check, suite) for check in found]
    return found


def unjudged(result: Result) -> ReportItem:
    """Return the only test of a result without suites: a run that ended without a verdict. It never passes."""
    why = "; ".join(result.problems) or "no suite was judged"
    return ReportItem("verdict", outcome=Outcome.ERROR, kind=result.verdict.value, message=why)


def _beside_a_pass(check: ReportItem, suite: SuiteResult) -> ReportItem:
    """Return a failure as skipped, with a note, because it does not fail the suite."""
    if check.outcome not in (Outcome.FAILED, Outcome.ERROR):
        return check
    why = f"does not block: the suite's verdict is {VERDICTS[suite.verdict]}"
    return replace(check, outcome=Outcome.SKIPPED, message=f"{check.message} ({why})")


def _is_accepted(suite: SuiteResult, verdict: Verdict) -> bool:
    return bool(suite.accepted) and verdict in (Verdict.REGRESSED, Verdict.NOT_COMPARED)


def _blocks(found: CriterionResult) -> bool:
    if found.verdict is Verdict.REGRESSED:
        return found.criterion.blocks_regression
    return found.criterion.blocking


def _judged(
    check: ReportItem, suite: SuiteResult, verdict: Verdict, message: str, *, blocking: bool, undecided_fails: bool
) -> ReportItem:
    """Return the check with the verdict as an outcome; a verdict that does not block, or was accepted, is skipped."""
    check = replace(check, kind=verdict.value)
    if verdict is Verdict.PASS:
        return check
    text = message
    if not says_verdict(message, verdict):
        text = f"{VERDICTS[verdict]}: {message}"
    if _is_accepted(suite, verdict):
        return replace(check, outcome=Outcome.SKIPPED, message=f"{text} (accepted: {suite.accepted})")
    if verdict in _ERRORS and blocking:
        return replace(check, outcome=Outcome.ERROR, message=text)
    if blocking and (verdict in _FAILURES or undecided_fails):
        return replace(check, outcome=Outcome.FAILED, message=text)
    return replace(check, outcome=Outcome.SKIPPED, message=text)


def _verdict(view: View, undecided_fails: bool) -> ReportItem:
    suite = view.suite
    met = (*view.from_recordings[:1], *view.differences())
    told = [view.headline, *view.opening, *met, *view.whole_story, *view.changes]
    told += [f"warning: {warning}" for warning in view.all_warnings]
    if view.explain:
        told.append(f"details: {view.explain}")
    check = ReportItem("verdict", output=tuple(told))
    if suite.accepted and suite.standing in _ERRORS:
        left = f"what was lost is accepted by {suite.accepted}, but not all could be measured"
        text = f"{VERDICTS[suite.standing]}: {left} ({view.verdict}: {view.headline})"
        return replace(check, outcome=Outcome.ERROR, kind=suite.standing.value, message=text)
    return _judged(check, suite, suite.verdict, view.headline, blocking=True, undecided_fails=undecided_fails)


def _further(suite: SuiteResult, one: SuiteResult, undecided_fails: bool) -> Iterator[ReportItem]:
    """Yield the checks against another reference: its verdict, its criteria, and the cases that got worse since."""
    group = one.reference or "further"
    one = replace(one, accepted=suite.accepted)
    view = View(one)
    check = ReportItem("verdict", (group,), output=(view.line, *view.whole_story))
    yield _judged(check, one, one.verdict, view.headline, blocking=True, undecided_fails=undecided_fails)
    for row in view.rows:
        yield _criterion(one, row, undecided_fails, (group, "criteria"))
    for case in view.worse:
        yield _case(view, case, (group,))


def _criterion(
    suite: SuiteResult, row: RowView, undecided_fails: bool, group: tuple[str, ...] = ("criteria",)
) -> ReportItem:
    found, criterion = row.found, row.found.criterion
    told = [
        f"wanted: {row.wanted}",
        f"candidate: {row.candidate.line}",
        f"baseline: {row.baseline.line}",
        f"change: {row.change.line}",
        row.judge,
        row.evidence,
    ]
    if row.needs_words:
        told.append(row.reason)
    check = ReportItem(row.name, group, output=tuple(told))
    fails = undecided_fails and row.verdict is Verdict.INCONCLUSIVE and criterion.blocks_regression
    check = _judged(check, suite, row.verdict, row.reason, blocking=_blocks(found), undecided_fails=fails)
    if row.tone == "mute" and row.verdict is Verdict.PASS:
        return replace(check, outcome=Outcome.SKIPPED, message=row.standing_before(row.not_compared or row.reason))
    return check


def _case(view: View, case: CaseResult, group: tuple[str, ...] = ()) -> ReportItem:
    suite, scores = view.suite, ", ".join(view.scores(case))
    kind = case.status.value
    if replayed.is_same(case):
        kind = replayed.SAME
    check = ReportItem(case.id, group, kind=kind, case=case)
    if case.status in _PASSED and case.passed >= case.trials:
        return replace(check, output=tuple(filter(None, (scores, replayed.of_case(case)))))
    message = "; ".join([f"{STATUSES[case.status]}: {tally(case)}", *case.reasons[:3]])
    details = (scores, *case.reasons, *_diff(case))
    outcome, more = Outcome.SKIPPED, ""
    match case.status:
        case CaseStatus.BROKEN | CaseStatus.FAILED if not suite.accepted:
            outcome = Outcome.FAILED
        case CaseStatus.BROKEN | CaseStatus.FAILED:
            more = f" (accepted: {suite.accepted})"
        case CaseStatus.ERROR:
            outcome = Outcome.ERROR
        case CaseStatus.NEW | CaseStatus.EDITED | CaseStatus.REMOVED | CaseStatus.UNCHECKED:
            details = ()  # nothing to compare it with: neither passed nor failed
        case CaseStatus.QUARANTINED:
            more = f" ({case.quarantine})"
        case CaseStatus.OK | CaseStatus.FLAKY | CaseStatus.SUSPECT | CaseStatus.NEVER_PASSED:
            return replace(check, output=(message, *details))
    return replace(check, outcome=outcome, message=message + more, details=details)


def _diff(case: CaseResult) -> Sequence[str]:
    lines = []
    for turn in differences(case):
        lines.append(turn.title)
        lines += [f"{mark} {text}" for mark, text in turn.lines]
    return lines
