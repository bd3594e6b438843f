"""The JUnit report: one test suite per suite; a test for its verdict, one per criterion and one per case.

A suite whose verdict fails the gate has at least one failure or error: a reader of JUnit alone is never shown green.
Criteria and worse cases against further references, such as the anchor, stand under a class of their name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from junit_xml import TestCase, TestSuite, to_xml_report_string
from msgspec.structs import replace

from gate.errors import ExitCode
from gate.model import CaseResult, CaseStatus, CriterionResult, Result, SuiteResult, Verdict, acceptable
from gate.reports import explanation
from gate.reports import labels as words
from gate.reports.formatting import change_interval, change_sample, evidence, interval, judge_line, sample, threshold
from gate.reports.reasons import reason, why_apart
from gate.reports.trajectory_diff import differences
from gate.security.escape import xml_text
from gate.security.limits import MAX_ID_CHARS, shorten

_MESSAGE_CHARS = 1_000
_OUTPUT_CHARS = 20_000
MOST_INDENTED = 500
"""Tests of a report that is indented for people; a larger one is for programs, and indenting takes the longest."""
_FAILURES = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD)
_PASSED = (CaseStatus.OK, CaseStatus.FLAKY, CaseStatus.SUSPECT)
_ERRORS = (Verdict.ERROR, Verdict.NOT_MEASURED)


def render(result: Result) -> str:
    """A JUnit document that parses regardless of what agents wrote: what XML forbids is shown, lengths are bounded."""
    suites = [_suite(suite, result) for suite in result.suites]
    small = sum(len(suite.test_cases) for suite in suites) <= MOST_INDENTED
    return str(to_xml_report_string(suites, prettyprint=small, encoding="utf-8"))


def _suite(suite: SuiteResult, result: Result) -> TestSuite:
    undecided_fails = result.exit_code is ExitCode.FAILED and not any(_fails(s) for s in result.suites)
    tests = [
        _verdict(suite, undecided_fails, words.explain_line(result, suite)),
        *(_criterion(suite, c, undecided_fails) for c in suite.criteria),
        *(_case(suite, c) for c in suite.cases),
        *(test for one in suite.further for test in _further(suite, one, undecided_fails)),
    ]
    properties = {
        "verdict": suite.verdict.value,
        "exit_code": int(result.exit_code),
        "commit": suite.commit or "",
        "baseline": words.baseline_line(suite.baseline),
        "stored": words.stored_line(suite),
        "cost": words.cost_line(suite),
        "seed": suite.seed,
        "command": " && ".join(words.command_lines(result.command)),
    }
    named = {key: _attribute(str(value)) for key, value in properties.items() if key != "stored" or value}
    return TestSuite(_classname(suite.suite_id), tests, properties=named)


def _fails(suite: SuiteResult) -> bool:
    """Whether something of it fails the gate that nobody accepted."""
    found = [suite.verdict, *(c.verdict for one in (suite, *suite.further) for c in one.criteria if _blocks(c))]
    return any(verdict in _FAILURES and not _is_accepted(suite, verdict) for verdict in found)


def _is_accepted(suite: SuiteResult, verdict: Verdict) -> bool:
    return bool(suite.accepted) and verdict in acceptable(suite)


def _blocks(found: CriterionResult) -> bool:
    if words.shown(found) is Verdict.REGRESSED:
        return found.criterion.blocks_regression
    return found.criterion.blocking


def _attribute(text: str, limit: int = _MESSAGE_CHARS) -> str:
    """One bounded line; white space in attributes does not survive XML anyway."""
    return " ".join(xml_text(shorten(text, limit)).split())


@lru_cache(maxsize=1)
def _classname(suite_id: str) -> str:
    return _attribute(suite_id, MAX_ID_CHARS) or "suite"


def _output(lines: Sequence[str]) -> str:
    return xml_text(shorten("\n".join(line for line in lines if line), _OUTPUT_CHARS))


def _test(suite: SuiteResult, name: str, group: str = "") -> TestCase:
    classname = _classname(suite.suite_id)
    return TestCase(_attribute(name, MAX_ID_CHARS) or "(no name)", f"{classname}.{group}" if group else classname)


def _judge(
    test: TestCase, suite: SuiteResult, verdict: Verdict, message: str, *, blocking: bool, undecided_fails: bool
) -> None:
    """Puts the verdict into JUnit's four outcomes; what does not block, or was accepted, is skipped."""
    text = _attribute(f"{words.VERDICTS[verdict]}: {message}")
    if verdict is Verdict.PASS:
        return
    if _is_accepted(suite, verdict):
        test.add_skipped_info(_attribute(f"{text} (accepted: {suite.accepted})"))
    elif verdict in _ERRORS and blocking:
        test.add_error_info(text, error_type=verdict.value)
    elif blocking and (verdict in _FAILURES or undecided_fails):
        test.add_failure_info(text, failure_type=verdict.value)
    else:
        test.add_skipped_info(text)


def _verdict(suite: SuiteResult, undecided_fails: bool, explain: str) -> TestCase:
    test = _test(suite, "verdict")
    _judge(test, suite, suite.verdict, explanation.headline(suite), blocking=True, undecided_fails=undecided_fails)
    warnings = (f"warning: {warning}" for warning in explanation.warnings(suite))
    details = [f"details: {explain}"] if explain else []
    test.stdout = _output(
        [
            explanation.headline(suite),
            *explanation.story(suite),
            *explanation.changes(suite),
            *warnings,
            *details,
        ]
    )
    return test


def _further(suite: SuiteResult, one: SuiteResult, undecided_fails: bool) -> Iterator[TestCase]:
    """The same record against another reference: its verdict, its criteria, and the cases that got worse since."""
    group = one.reference or "further"
    one = replace(one, accepted=suite.accepted)
    verdict = _test(suite, "verdict", group)
    _judge(verdict, one, one.verdict, explanation.headline(one), blocking=True, undecided_fails=undecided_fails)
    verdict.stdout = _output([words.further_line(one), *explanation.story(one)])
    yield verdict
    yield from (_criterion(one, found, undecided_fails, f"{group}.criteria") for found in one.criteria)
    yield from (_case(one, case, group) for case in words.worse_cases(one))


def _criterion(suite: SuiteResult, found: CriterionResult, undecided_fails: bool, group: str = "criteria") -> TestCase:
    criterion = found.criterion
    test, verdict = _test(suite, criterion.name, group), words.shown(found)
    undecided_fails = undecided_fails and criterion.blocks_regression
    _judge(test, suite, verdict, reason(found), blocking=_blocks(found), undecided_fails=undecided_fails)
    if verdict is Verdict.PASS and not words.is_ticked(found):
        why = why_apart(found.not_compared) if found.not_compared else reason(found)
        test.add_skipped_info(_attribute(f"{words.standing(found)}: {why}"))
    test.stdout = _output(
        [
            f"wanted: {threshold(criterion)}",
            f"candidate: {interval(found.candidate, criterion.scale)} {sample(found.candidate)}",
            f"baseline: {words.baseline_figure(found)} {sample(found.baseline)}",
            f"change: {change_interval(found.change, criterion.scale)} {change_sample(found)}",
            judge_line(found),
            evidence(found),
            reason(found) if words.needs_words(found) else "",
        ]
    )
    return test


def _case(suite: SuiteResult, case: CaseResult, group: str = "") -> TestCase:
    test = _test(suite, case.id, group)
    test.elapsed_sec = case.duration
    if case.location is not None:
        test.file, test.line = _attribute(case.location.path), case.location.line
    if case.status in _PASSED and case.passed >= case.trials:
        return test
    status = words.STATUSES[case.status]
    message = _attribute("; ".join([f"{status}: {words.tally(case)}", *case.reasons[:3]]))
    output = _output([*case.reasons, *_diff(case)])
    match case.status:
        case CaseStatus.BROKEN if suite.trade is not None and suite.trade.policy != "block":
            test.add_skipped_info(_attribute(f"{message} (a trade, which does not block here)"), output)
        case CaseStatus.BROKEN | CaseStatus.FAILED if not suite.accepted:
            test.add_failure_info(message, output, case.status.value)
        case CaseStatus.BROKEN | CaseStatus.FAILED:
            test.add_skipped_info(_attribute(f"{message} (accepted: {suite.accepted})"), output)
        case CaseStatus.ERROR:
            test.add_error_info(message, output, case.status.value)
        case CaseStatus.NEW | CaseStatus.REMOVED | CaseStatus.UNCHECKED:
            test.add_skipped_info(message)  # nothing to compare it with: neither passed nor failed
        case CaseStatus.QUARANTINED:
            test.add_skipped_info(_attribute(f"{message} ({case.quarantine})"), output)
        case CaseStatus.OK | CaseStatus.FLAKY | CaseStatus.SUSPECT:
            test.stdout = _output([message, output])
    return test


def _diff(case: CaseResult) -> list[str]:
    return [
        line for turn in differences(case) for line in (turn.title, *(f"{mark} {text}" for mark, text in turn.lines))
    ]
