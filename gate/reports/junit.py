"""The JUnit report: one test suite per suite, with the tests of `checks`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from xml.etree.ElementTree import Element, SubElement, indent, tostring

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


_COUNTS = ("disabled", "errors", "failures", "tests")
_WHERE_KNOWN = ("uncommitted_changes", "stored", "replayed", "calls")
"""Properties that are omitted if empty."""


def render(result: Result) -> str:
    """Return a valid JUnit document, whatever agents wrote: characters that XML forbids are shown, lengths bounded."""
    suites = [_suite(view, result) for view in views_of(result)] or [_no_suite(result)]
    root = Element("testsuites", {name: str(sum([int(suite.get(name, 0)) for suite in suites])) for name in _COUNTS})
    root.set("time", str(sum([float(suite.get("time", 0)) for suite in suites])))
    root.extend(suites)
    if int(root.get("tests", 0)) <= MOST_INDENTED:
        indent(root, "\t")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, encoding="unicode")}\n'


def _suite(view: View, result: Result) -> Element:
    suite, facts = view.suite, view.facts
    uncommitted = ""
    if suite.dirty:
        uncommitted = "true"
    properties = {
        "verdict": suite.verdict.value,
        "exit_code": str(int(result.exit_code)),
        "commit": suite.commit or "",
        "uncommitted_changes": uncommitted,
        "baseline": facts["Baseline"],
        "stored": facts["Stored"],
        "replayed": facts["Replayed"],
        "calls": facts["Calls"],
        "cost": facts["Cost"],
        "seed": str(suite.seed),
        "command": " && ".join(command_lines(result.command)),
    }
    stated = {key: value for key, value in properties.items() if key not in _WHERE_KNOWN or value}
    return _of_tests(suite.suite_id, stated, checks_of(view, result))


def _no_suite(result: Result) -> Element:
    properties = {"verdict": result.verdict.value, "exit_code": str(int(result.exit_code))}
    return _of_tests(NO_SUITE, properties, [unjudged(result)])


def _of_tests(suite_id: str, properties: Mapping[str, str], checks: Sequence[ReportItem]) -> Element:
    """Return a suite with its counts and tests."""
    outcomes = [check.outcome for check in checks]
    known = [seconds for seconds in map(_seconds, checks) if seconds]
    attributes = {
        "disabled": "0",
        "errors": str(outcomes.count(Outcome.ERROR)),
        "failures": str(outcomes.count(Outcome.FAILED)),
        "name": _classname(suite_id),
        "skipped": str(outcomes.count(Outcome.SKIPPED)),
        "tests": str(len(checks)),
        "time": str(sum(known)),
    }
    suite = Element("testsuite", attributes)
    listed = SubElement(suite, "properties")
    for name, value in properties.items():
        SubElement(listed, "property", {"name": name, "value": _attribute(value)})
    suite.extend([_test(suite_id, check) for check in checks])
    return suite


def _attribute(text: str, limit: int = _MESSAGE_CHARS) -> str:
    """Return one bounded line; XML does not preserve white space in attributes anyway."""
    if len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip(" ")  # most texts, which need no change
    return " ".join(xml_text(shorten(text, limit)).split())


@lru_cache(maxsize=1)
def _classname(suite_id: str) -> str:
    return _attribute(suite_id, MAX_ID_CHARS) or "suite"


def _output(lines: Sequence[str]) -> str:
    return xml_text(shorten("\n".join(filter(None, lines)), _OUTPUT_CHARS))


_TAGS = {Outcome.FAILED: "failure", Outcome.ERROR: "error", Outcome.SKIPPED: "skipped"}


def _test(suite_id: str, check: ReportItem) -> Element:
    classname = ".".join((_classname(suite_id), *map(_attribute, check.group)))
    test = Element("testcase", {"name": _attribute(check.name, MAX_ID_CHARS) or "(no name)"})
    seconds = _seconds(check)
    if seconds:
        test.set("time", f"{seconds:f}")
    test.set("classname", classname)
    if check.case is not None and check.case.location is not None:
        path = _attribute(check.case.location.path)
        if path:
            test.set("file", path)
        if check.case.location.line:
            test.set("line", str(check.case.location.line))
    tag = _TAGS.get(check.outcome)
    if tag is not None:
        problem = SubElement(test, tag, {"type": tag})
        if check.kind and check.outcome is not Outcome.SKIPPED:
            problem.set("type", check.kind)
        message = _attribute(check.message)
        if message:
            problem.set("message", message)
        problem.text = _output(check.details)
    output = _output(check.output)
    if output:
        SubElement(test, "system-out").text = output
    return test


def _seconds(check: ReportItem) -> float | None:
    """Return how long the agent took for a case; None if that is unknown, or it is no case."""
    if check.case is None:
        return None
    return told_seconds(check.case.duration)
