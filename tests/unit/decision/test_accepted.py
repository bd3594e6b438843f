"""Only a regression can be accepted; whatever else is wrong counts as before."""

from __future__ import annotations

import pytest

from gate.decision import Settings, exit_code
from gate.errors import ExitCode
from gate.model import Criterion, CriterionResult, Scale, SuiteResult, Verdict
from gate.model.facts import Doubted


def suite(verdict: Verdict, *criteria: Verdict, accepted: str = "wendy") -> SuiteResult:
    made = Criterion("c", "c", Scale.UNIT)
    results = tuple(CriterionResult(made, found) for found in criteria)
    return SuiteResult("s", verdict, Doubted(), results, (), accepted=accepted)


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (suite(Verdict.REGRESSED, Verdict.REGRESSED), ExitCode.PASS),
        (suite(Verdict.REGRESSED, Verdict.REGRESSED, accepted=""), ExitCode.FAILED),
        (suite(Verdict.REGRESSED), ExitCode.PASS),
        (suite(Verdict.REGRESSED, Verdict.REGRESSED, Verdict.BELOW_THRESHOLD), ExitCode.FAILED),
        (suite(Verdict.BELOW_THRESHOLD, Verdict.BELOW_THRESHOLD), ExitCode.FAILED),
        (suite(Verdict.ERROR, Verdict.REGRESSED), ExitCode.NOT_MEASURED),
    ],
)
def test_acceptance(found: SuiteResult, code: ExitCode) -> None:
    assert exit_code([found], Settings()) is code


def test_one_accepted_suite_does_not_excuse_another() -> None:
    others = [suite(Verdict.REGRESSED), suite(Verdict.REGRESSED, accepted="")]
    assert exit_code(others, Settings()) is ExitCode.FAILED
