"""How results by tag and criteria of one cause are laid out in the comment and on the console."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from gate.model import (
    CaseStatus,
    Concentration,
    Criterion,
    CriterionResult,
    Estimate,
    GroupKind,
    GroupResult,
    Scale,
    SuiteResult,
    Verdict,
)
from gate.reports import console, markdown
from gate.reports.cases import told_once, worse_cases
from gate.reports.rows import RowView
from gate.reports.words import causes

from .harmless import findings
from .hostile import SOME_AND_ALL
from .samples import BROKEN, FLAKY, REGRESSED, estimate, result


def group(name: str, change: float, lost: int = 0, kind: GroupKind = GroupKind.TAG) -> GroupResult:
    ends = Estimate(change, change - 0.05, change + 0.05, 20, 20, level=0.9)
    return GroupResult(kind, name, 20, estimate(0.9 + change, 0.5, 0.99, 20), estimate(0.9, 0.8, 0.95, 20), ends, lost)


REFUND = Concentration(GroupKind.TAG, "refund", "pass_rate", 20, 40, 0.9, 0.5, 0.9, 0.9, 8, 1, 0.001)
TAGGED = replace(
    REGRESSED, groups=(group("noisy", -0.5, 1), group("refund", -0.4, 8), group("faq", 0.0)), concentrated=(REFUND,)
)


@pytest.mark.slow
@SOME_AND_ALL
def test_a_hostile_tag_is_harmless_and_bounded(texts: tuple[str, ...]) -> None:
    ours = len(re.findall(r"^#{2,3} ", markdown.render(result(TAGGED)), re.MULTILINE))
    for name in texts:
        bad = replace(REFUND, name=name * 40)
        hostile = replace(TAGGED, groups=(group(name * 40, -0.4, 8), group("x", 0.0, 1)), concentrated=(bad,))
        page = markdown.render(result(hostile))
        assert findings(page, headings=ours) == []
        text = console.render(result(hostile), verbose=True)
        assert "\x1b" not in text and max(map(len, text.splitlines())) <= 200


def test_worse_cases_of_the_tag_come_before_a_noisy_one() -> None:
    noisy = replace(BROKEN[0], id="noisy", e_value=1e9, tags=("noisy",))
    quiet = replace(BROKEN[0], id="quiet", e_value=5.0, tags=("refund",))
    assert [c.id for c in worse_cases(replace(TAGGED, cases=(noisy, quiet)))] == ["quiet", "noisy"]
    assert [c.id for c in worse_cases(replace(TAGGED, cases=(noisy, quiet), concentrated=()))] == ["noisy", "quiet"]


# --- one cause once -------------------------------------------------------------------------------

PART = Criterion("trajectory", "tool_trajectory_avg_score", Scale.UNIT, threshold=0.5)
WHOLE = Criterion("overall", "weighted_score", Scale.UNIT, threshold=0.5, parts=("trajectory", "response"))


def composite(part: Verdict, whole: Verdict = Verdict.BELOW_THRESHOLD) -> SuiteResult:
    rows = (
        CriterionResult(PART, part, candidate=estimate(0.3, 0.2, 0.4)),
        CriterionResult(WHOLE, whole, candidate=estimate(0.4, 0.3, 0.5)),
    )
    case = replace(
        BROKEN[0],
        reasons=("overall: 0.3 of 1, for trajectory", "trajectory: lookup() is missing"),
        status=CaseStatus.FAILED,
    )
    return replace(REGRESSED, verdict=Verdict.BELOW_THRESHOLD, criteria=rows, cases=(case,))


def test_a_composite_does_not_repeat_its_part() -> None:
    suite = composite(Verdict.BELOW_THRESHOLD)
    assert PART.name in RowView(suite.criteria[1], suite).same_cause
    assert told_once(suite.cases[0], suite).reasons == suite.cases[0].reasons[1:]
    one = composite(Verdict.PASS)
    assert RowView(one.criteria[1], one).same_cause == ""
    suite = composite(Verdict.REGRESSED)
    assert causes(suite, (WHOLE.name, PART.name)) == [PART.name]
    assert causes(suite, (WHOLE.name,)) == [WHOLE.name], "parts that hold explain nothing"


def test_a_criterion_that_fell_in_the_broken_cases_alone_is_told_with_them() -> None:
    row = CriterionResult(PART, Verdict.REGRESSED, candidate=estimate(0.3, 0.2, 0.4))
    broken = replace(BROKEN[0], scores={"trajectory": (0.0, 1.0)})
    steady = {"passed": 1, "trials": 1, "baseline_passed": 5, "baseline_trials": 5}
    fine = replace(FLAKY, scores={"trajectory": (1.0, 1.0)}, **steady)
    rate = CriterionResult(replace(PART, name="pass rate", metric="pass rate"), Verdict.REGRESSED)
    suite = replace(REGRESSED, criteria=(rate, row), cases=(broken, fine))
    assert RowView(row, suite).same_cause
    fell = replace(fine, scores={"trajectory": (0.8, 1.0)})
    assert RowView(row, replace(suite, cases=(broken, fell))).same_cause == ""
    assert RowView(row, replace(suite, criteria=(row,))).same_cause == ""
    assert RowView(rate, suite).same_cause == ""


# --- pictures and plain terminals -----------------------------------------------------------------


def test_no_interval_stands_beside_a_tag_since_none_is_corrected_for_the_number_of_tags() -> None:
    alone = replace(TAGGED, criteria=(), cases=(), concentrated=())
    for text in (markdown.render(result(alone)), console.render(result(alone), width=100, verbose=True)):
        lines = [line for line in text.splitlines() if "noisy" in line]
        assert lines
        assert not any("[" in line or "●" in line for line in lines)


def test_both_sides_of_a_tag_are_told_as_one_movement_only_where_they_are_of_the_same_cases() -> None:
    same = group("refund", -0.4, 8)
    more = replace(same, candidate=estimate(0.5, 0.2, 0.8, 30))
    for one, rates in ((more, "50 %"), (same, "90 % → 50 %")):
        page = console.render(result(replace(TAGGED, groups=(one,))), width=100, verbose=True)
        [line] = [line for line in page.splitlines() if line.startswith("  ✗ refund ")]
        assert line.split("20", 1)[1].strip().startswith(rates)
