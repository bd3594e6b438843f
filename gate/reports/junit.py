"""The JUnit report: one test suite per suite, with the tests of `checks`."""

from __future__ import annotations

from collections.abc import Sequence

from junit_xml import TestCase, TestSuite, to_xml_report_string

from gate.model import Result
from gate.reports.checks import NO_SUITE, Outcome, ReportItem, checks_of, told_seconds, unjudged
from gate.reports.labels import command_lines
from gate.reports.view import View, views_of
from gate.security.escape import xml_text
from gate.security.limits import MAX_ID_CHARS, shorten

_MESSAGE_CHARS = 1_000
_OUTPUT_CHARS = 20_000
MOST_INDENTED = 500
"""Maximum number of tests in a report that is indented; larger ones are for programs, and indentation is slow."""


_WHERE_KNOWN = ("uncommitted_changes", "stored", "replayed", "calls")
"""Properties that are omitted if empty."""


def render(result: Result) -> str:
    """Return a valid JUnit document, whatever agents wrote: characters that XML forbids are shown, lengths bounded."""
    suites = [_suite(view, result) for view in views_of(result)] or [_no_suite(result)]
    small = sum(len(suite.test_cases) for suite in suites) <= MOST_INDENTED
    return str(to_xml_report_string(suites, prettyprint=small, encoding="utf-8"))


def _suite(view: View, result: Result) -> TestSuite:
    suite, facts = view.suite, view.facts
    uncommitted = ""
    if suite.dirty:
        uncommitted = "true"
    properties = {
        "verdict": suite.verdict.value,
        "exit_code": int(result.exit_code),
        "commit": suite.commit or "",
        "uncommitted_changes": uncommitted,
        "baseline": facts["Baseline"],
        "stored": facts["Stored"],
        "replayed": facts["Replayed"],
        "calls": facts["Calls"],
        "cost": facts["Cost"],
        "seed": suite.seed,
        "command": " && ".join(command_lines(result.command)),
    }
    named = {key: _attribute(str(value)) for key, value in properties.items() if key not in _WHERE_KNOWN or value}
    tests = [_test(suite.suite_id, check) for check in checks_of(view, result)]
    return TestSuite(_attribute(suite.suite_id, MAX_ID_CHARS) or "suite", tests, properties=named)


def _no_suite(result: Result) -> TestSuite:
    properties = {"verdict": result.verdict.value, "exit_code": str(int(result.exit_code))}
    return TestSuite(NO_SUITE, [_test(NO_SUITE, unjudged(result))], properties=properties)


def _attribute(text: str, limit: int = _MESSAGE_CHARS) -> str:
    """Return one bounded line; XML does not preserve white space in attributes anyway."""
    return " ".join(xml_text(shorten(text, limit)).split())


def _output(lines: Sequence[str]) -> str:
    return xml_text(shorten("\n".join(filter(None, lines)), _OUTPUT_CHARS))


def _test(suite_id: str, check: ReportItem) -> TestCase:
    classname = ".".join((_attribute(suite_id, MAX_ID_CHARS) or "suite", *check.group))
    test = TestCase(_attribute(check.name, MAX_ID_CHARS) or "(no name)", classname)
    message, details = _attribute(check.message), _output(check.details) or None
    match check.outcome:
        case Outcome.FAILED:
            test.add_failure_info(message, details, check.kind)
        case Outcome.ERROR:
            test.add_error_info(message, details, check.kind)
        case Outcome.SKIPPED:
            test.add_skipped_info(message, details)
        case Outcome.PASSED:
            pass
    if check.output:
        test.stdout = _output(check.output)
    if check.case is not None:
        test.elapsed_sec = told_seconds(check.case.duration)
        if check.case.location is not None:
            test.file, test.line = _attribute(check.case.location.path), check.case.location.line
    return test
