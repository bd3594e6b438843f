"""A loss and what was not compared can be accepted, a missed threshold never; what is left counts as without it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gate.decision import Settings, exit_code
from gate.errors import ExitCode
from gate.model import SuiteResult, Verdict, accepted_by
from gate.model.finding import Finding, HeldMean

from .records import TRAJECTORY, cases, judge, once, stored

BLOCK = Settings(on_inconclusive="block")


def suite(verdict: Verdict, *, below: tuple[str, ...] = (), left: Verdict = Verdict.PASS) -> SuiteResult:
    return SuiteResult(
        "s",
        verdict,
        Finding.of("not_run"),
        (),
        (),
        below=below,
        if_accepted=left,
    )


@pytest.mark.parametrize(
    ("found", "before", "after"),
    [
        (suite(Verdict.REGRESSED), ExitCode.FAILED, ExitCode.PASS),
        (suite(Verdict.NOT_COMPARED), ExitCode.FAILED, ExitCode.PASS),
        (suite(Verdict.REGRESSED, left=Verdict.ERROR), ExitCode.FAILED, ExitCode.NOT_MEASURED),
        (suite(Verdict.NOT_COMPARED, left=Verdict.ERROR), ExitCode.FAILED, ExitCode.NOT_MEASURED),
        (suite(Verdict.BELOW_THRESHOLD), ExitCode.FAILED, ExitCode.FAILED),
        (suite(Verdict.REGRESSED, left=Verdict.BELOW_THRESHOLD), ExitCode.FAILED, ExitCode.FAILED),
        (suite(Verdict.ERROR), ExitCode.NOT_MEASURED, ExitCode.NOT_MEASURED),
        (suite(Verdict.INCONCLUSIVE), ExitCode.PASS, ExitCode.PASS),
        (suite(Verdict.PASS), ExitCode.PASS, ExitCode.PASS),
    ],
)
def test_what_can_be_accepted(found: SuiteResult, before: ExitCode, after: ExitCode) -> None:
    accepted = accepted_by(found, "wendy")
    assert (exit_code([found], Settings()), exit_code([accepted], Settings())) == (before, after)
    assert bool(accepted.accepted) is (before is not after)


def test_nobody_accepts_what_is_only_inconclusive() -> None:
    accepted = accepted_by(suite(Verdict.INCONCLUSIVE), "wendy")
    assert (accepted.accepted, exit_code([accepted], BLOCK)) == ("", ExitCode.FAILED)


@pytest.mark.parametrize("verdict", [Verdict.REGRESSED, Verdict.NOT_COMPARED, Verdict.BELOW_THRESHOLD])
def test_a_missed_threshold_beside_it_is_named_and_stays(verdict: Verdict) -> None:
    said = accepted_by(suite(verdict, below=("c",)), "wendy")
    assert (said.accepted, said.warnings) == ("", (Finding.of("not_accepted", by="wendy", criteria=("c",)),))
    assert exit_code([said], Settings()) is ExitCode.FAILED


def test_one_accepted_suite_does_not_excuse_another() -> None:
    others = [accepted_by(suite(Verdict.REGRESSED), "wendy"), suite(Verdict.REGRESSED)]
    assert exit_code(others, Settings()) is ExitCode.FAILED


# --- what is left of a measured suite -------------------------------------------------------------

SUITE = cases(20)
FELL = once(SUITE, {case.id: {"trajectory": 0.0} for case in SUITE[:10]}, trajectory=1.0)


def test_a_loss_above_the_threshold_leaves_a_pass() -> None:
    held = replace(TRAJECTORY, threshold=0.4)
    found = judge(SUITE, [held], FELL, stored(SUITE, trajectory=1.0))
    assert (found.verdict, found.if_accepted, found.below) == (Verdict.REGRESSED, Verdict.PASS, ())
    assert found.is_acceptable


def test_a_loss_below_the_threshold_leaves_the_missed_threshold() -> None:
    held = replace(TRAJECTORY, threshold=0.8)
    found = judge(SUITE, [held], FELL, stored(SUITE, trajectory=1.0))
    assert (found.verdict, found.if_accepted) == (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD)
    assert found.below == ("trajectory",)
    assert not found.is_acceptable


def test_a_mean_that_was_below_before_is_excused_only_while_no_loss_is_proven() -> None:
    """The base is at 0.95 and below 0.99; accepting the fall to 0.45 would lift that threshold."""
    held = replace(TRAJECTORY, threshold=0.99)
    low = {SUITE[-1].id: {"trajectory": 0.0}}
    before = [replace(t, number=n) for n in range(1, 6) for t in once(SUITE, low, trajectory=1.0)]
    same = judge(SUITE, [held], once(SUITE, low, trajectory=1.0), before)
    assert (same.verdict, same.if_accepted) == (Verdict.PASS, Verdict.PASS)
    fell = judge(SUITE, [held], once(SUITE, {c.id: {"trajectory": 0.0} for c in SUITE[9:]}, trajectory=1.0), before)
    assert (fell.verdict, fell.if_accepted) == (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD)
    assert not fell.is_acceptable
    excused = replace(
        fell,
        below=(),
        criteria=(replace(fell.criteria[1], findings=(Finding.of("mean", mean=HeldMean(0.5, 0.9, 9, before=0.5)),)),),
    )
    assert Finding.of("not_accepted", by="wendy", criteria=("trajectory",)) in accepted_by(excused, "wendy").warnings


def test_what_is_left_of_a_loss_is_an_error_if_nothing_was_measured_besides() -> None:
    criteria = [TRAJECTORY, replace(TRAJECTORY, name="other", threshold=0.5)]
    down = [
        replace(t, scores={**t.scores, "other": replace(t.scores["trajectory"], value=None, error="x")}) for t in FELL
    ]
    before = stored(SUITE, trajectory=1.0, other=1.0)
    regressed = judge(
        SUITE, [TRAJECTORY], FELL, before, stopped="the budget is spent", settings=Settings(exact_epochs=2)
    )
    assert (regressed.verdict, regressed.if_accepted) == (Verdict.REGRESSED, Verdict.ERROR)
    silent = judge(SUITE, criteria, down, before)
    assert silent.if_accepted is Verdict.ERROR
