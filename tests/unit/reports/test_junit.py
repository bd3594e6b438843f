"""The JUnit report keeps the common structure, and is never greener than the verdict."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from gate.decision import Settings, exit_code
from gate.errors import ExitCode
from gate.model import CaseResult, CaseStatus, Result, Verdict, accepted_by
from gate.model.finding import Finding
from gate.pipeline.verdict import result_of
from gate.reports.checks import MOST_SECONDS
from gate.reports.junit import render

from .samples import ACCEPTED, INCONCLUSIVE, PASSED, REGRESSED, RESULTS, result

CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "properties": {"property"},
    "testcase": {"failure", "error", "skipped", "system-out"},
}
REQUIRED = {"testsuite": {"name", "tests", "failures", "errors", "skipped"}, "testcase": {"name", "classname"}}


def document(found: object) -> ElementTree.Element:
    return ElementTree.fromstring(render(found).encode())


def outcome(root: ElementTree.Element, name: str) -> str:
    (test,) = (t for t in root.iter("testcase") if t.get("name") == name)
    kinds = [child.tag for child in test if child.tag != "system-out"]
    assert len(kinds) <= 1
    return kinds[0] if kinds else "pass"


@pytest.mark.parametrize("name", RESULTS)
def test_the_structure_that_readers_expect(name: str) -> None:
    root = document(RESULTS[name])
    assert root.tag == "testsuites"
    for element in root.iter():
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set())
        assert REQUIRED.get(element.tag, set()) <= set(element.attrib)
    for suite in root:
        tests = suite.findall("testcase")
        assert int(suite.get("tests", "")) == len(tests)
        for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.get(attribute, "")) == sum(t.find(kind) is not None for t in tests)


def test_a_verdict_stands_once_before_its_reason() -> None:
    (first, *_) = PASSED.criteria
    never = replace(first, findings=(Finding.of("not_judged", why="no_yardstick"),), checked=False)
    told = [child.get("message", "") for child in document(result(replace(PASSED, criteria=(never,)))).iter("skipped")]
    assert "not judged: no threshold and no baseline value to compare with" in told


@pytest.mark.parametrize("verdict", Verdict)
def test_a_bad_verdict_is_never_green_even_without_criteria_or_cases(verdict: Verdict) -> None:
    suite = document(result(replace(PASSED, verdict=verdict, criteria=(), cases=()))).find("testsuite")
    assert suite is not None
    bad = int(suite.get("failures", "")) + int(suite.get("errors", ""))
    assert (bad > 0) == (verdict not in (Verdict.PASS, Verdict.INCONCLUSIVE))


def test_an_accepted_regression_is_skipped_with_who_accepted_it() -> None:
    regressed = tuple(found for found in ACCEPTED.criteria if found.verdict is not Verdict.BELOW_THRESHOLD)
    suite = document(result(replace(ACCEPTED, criteria=regressed))).find("testsuite")
    assert suite is not None
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    assert "ann accepted this" in (suite.find("testcase/skipped").get("message") or "")  # type: ignore[union-attr]


def test_an_accepted_regression_that_could_not_be_measured_besides_is_an_error_as_its_exit_code_is() -> None:
    suite = replace(ACCEPTED, if_accepted=Verdict.ERROR)
    found = result_of([suite], Settings(), command="")
    root = document(found)
    assert (found.exit_code, root.get("failures"), root.get("errors")) == (ExitCode.NOT_MEASURED, "0", "1")
    assert outcome(root, "verdict") == "error"


def test_an_accepted_regression_hides_nothing_else_that_fails() -> None:
    """Neither another suite that blocks while undecided, nor a missed threshold of the suite itself."""
    undecided = replace(PASSED, suite_id="other", verdict=Verdict.INCONCLUSIVE, criteria=(), cases=())
    blocked = document(Result((ACCEPTED, undecided), Verdict.REGRESSED, ExitCode.FAILED))
    assert any(test.find("failure") is not None for test in blocked.iter("testcase"))
    suite = accepted_by(REGRESSED, "ann")
    assert exit_code([suite], Settings()) is ExitCode.FAILED
    below = document(result_of([suite], Settings(), command=""))
    assert any(test.find("failure") is not None for test in below.iter("testcase"))


def test_inconclusive_fails_only_where_it_blocks() -> None:
    assert outcome(document(result(INCONCLUSIVE)), "verdict") == "skipped"
    assert outcome(document(replace(result(INCONCLUSIVE), exit_code=ExitCode.FAILED)), "verdict") == "failure"


def test_a_criterion_that_applies_to_no_selected_case_fails_nothing() -> None:
    """Not even where an undecided suite blocks."""
    idle = replace(INCONCLUSIVE.criteria[0], verdict=Verdict.NOT_APPLIED)
    blocks = result(replace(INCONCLUSIVE, criteria=(idle,)))
    assert outcome(document(replace(blocks, exit_code=ExitCode.FAILED)), idle.criterion.name) == "skipped"


@pytest.mark.parametrize("status", [CaseStatus.FAILED, CaseStatus.ERROR])
@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.INCONCLUSIVE])
def test_a_case_that_fails_beside_a_verdict_that_does_not_is_skipped_with_its_text(
    status: CaseStatus, verdict: Verdict
) -> None:
    case = CaseResult("always", status, passed=0, trials=3, errors=2, reasons=("look was expected and never called",))
    found = result(replace(PASSED, verdict=verdict, cases=(case,)))
    root = document(found)
    assert outcome(root, "always") == "skipped"
    assert "look was expected and never called" in ElementTree.tostring(root, encoding="unicode")
    assert (root.get("failures"), root.get("errors")) == ("0", "0")
    blocked = document(replace(found, exit_code=ExitCode.FAILED))
    assert (outcome(blocked, "always") == "skipped") == (verdict is Verdict.PASS)


@pytest.mark.parametrize("name", RESULTS)
def test_a_report_is_red_exactly_where_the_exit_code_is(name: str) -> None:
    root, found = document(RESULTS[name]), RESULTS[name]
    bad = int(root.get("failures", "")) + int(root.get("errors", ""))
    assert (bad > 0) == (found.exit_code is not ExitCode.PASS)


@pytest.mark.parametrize("seconds", [1e-5, 4.9e-5, 6e-5, 0.1, 3e9, MOST_SECONDS, 1e300])
@pytest.mark.parametrize("cases", [1, 16, 100])
def test_times_are_decimals_without_an_exponent(seconds: float, cases: int) -> None:
    timed = [replace(PASSED.cases[0], id=f"case-{n}", duration=seconds) for n in range(cases)]
    root = document(result(replace(PASSED, cases=tuple(timed))))
    times = [element.get("time", "0") for element in root.iter() if element.tag != "properties"]
    assert all(re.fullmatch(r"\d+(\.\d+)?", time) for time in times), times
