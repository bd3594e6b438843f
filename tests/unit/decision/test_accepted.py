"""Only a regression can be accepted, and only if no threshold is missed besides; the rest counts as before."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gate.decision import Settings, exit_code
from gate.errors import ExitCode
from gate.model import Criterion, CriterionResult, Scale, SuiteResult, Verdict, accepted_by, missed
from gate.model.facts import Doubted, NotAccepted
from gate.model.findings import AnyFinding, Change, GotWorse, HeldMean, MeanMisses, MeanProvenShort, NoTrialReached

MADE = Criterion("c", "c", Scale.UNIT)


def suite(verdict: Verdict, *criteria: Verdict, accepted: str = "wendy") -> SuiteResult:
    results = tuple(CriterionResult(MADE, found) for found in criteria)
    return SuiteResult("s", verdict, Doubted(), results, (), accepted=accepted)


def test_acceptance() -> None:
    for found, code in [
        (suite(Verdict.REGRESSED, Verdict.REGRESSED), ExitCode.PASS),
        (suite(Verdict.REGRESSED, Verdict.REGRESSED, accepted=""), ExitCode.FAILED),
        (suite(Verdict.REGRESSED), ExitCode.PASS),
        (suite(Verdict.REGRESSED, Verdict.REGRESSED, Verdict.BELOW_THRESHOLD), ExitCode.FAILED),
        (suite(Verdict.BELOW_THRESHOLD, Verdict.BELOW_THRESHOLD), ExitCode.FAILED),
        (suite(Verdict.ERROR, Verdict.REGRESSED), ExitCode.NOT_MEASURED),
    ]:
        assert exit_code([found], Settings()) is code, (found, code)


@pytest.mark.parametrize("found", [MeanMisses(HeldMean(0.49, 0.5, 3)), NoTrialReached(HeldMean(0.4, 0.5, 1), 3)])
def test_what_a_sample_alone_misses_cannot_be_accepted(found: AnyFinding) -> None:
    """A strict threshold is a plain comparison, and that none of three trials reached one is a plain rule."""
    row = CriterionResult(MADE, Verdict.BELOW_THRESHOLD, (found,))
    said = accepted_by(replace(suite(Verdict.BELOW_THRESHOLD, accepted=""), criteria=(row,)), "wendy")
    assert (said.accepted, said.warnings) == ("", (NotAccepted("wendy", ("c",)),))


SHORT = MeanProvenShort(HeldMean(0.0, 0.5, 24), 0.2)
LOST = GotWorse(Change(-1.0, -1.0, -0.9, 24), ())


@pytest.mark.parametrize(
    ("criterion", "code", "names"),
    [
        (CriterionResult(MADE, Verdict.REGRESSED, (LOST,)), ExitCode.PASS, ()),
        (CriterionResult(MADE, Verdict.REGRESSED, (SHORT, LOST)), ExitCode.FAILED, ("c",)),
        (CriterionResult(replace(MADE, blocking=False), Verdict.REGRESSED, (SHORT, LOST)), ExitCode.PASS, ()),
        (CriterionResult(MADE, Verdict.INCONCLUSIVE, (SHORT,)), ExitCode.PASS, ()),
    ],
)
def test_a_regression_hides_no_missed_threshold(criterion: CriterionResult, code: ExitCode, names: tuple[str]) -> None:
    """In one and the same criterion, whose verdict is the worse of the two; also against a further reference."""
    plain = suite(Verdict.REGRESSED, accepted="")
    for found in (
        replace(plain, criteria=(criterion,)),
        replace(plain, further=(replace(plain, criteria=(criterion,)),)),
    ):
        said = accepted_by(found, "wendy")
        assert (exit_code([said], Settings()), missed(found)) == (code, names)
        assert said.warnings == ((NotAccepted("wendy", names),) if names else ())
        assert said.accepted == ("" if names else "wendy")


def test_nor_one_that_is_missed_under_the_rules_that_are_not_shown() -> None:
    found = replace(suite(Verdict.REGRESSED, accepted=""), missed_besides=("c",))
    assert accepted_by(found, "wendy").warnings == (NotAccepted("wendy", ("c",)),)


def test_one_accepted_suite_does_not_excuse_another() -> None:
    others = [suite(Verdict.REGRESSED), suite(Verdict.REGRESSED, accepted="")]
    assert exit_code(others, Settings()) is ExitCode.FAILED
