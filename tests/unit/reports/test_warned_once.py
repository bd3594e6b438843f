"""Tests that whatever weakens a verdict is told exactly once: as a reason or as a warning."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gate.decision import Comparison, Settings, verdict_on
from gate.model import Case, Criterion, Scale, Score, SuiteResult, Trial, Verdict
from gate.reports.view import View

RIGHT = Criterion("right", "right", Scale.BINARY, threshold=0.9, pass_threshold=1.0)
NOTED = Criterion("noted", "response", Scale.UNIT, blocking=False)
LOST = Score(None, error="judge down")


def judged(
    criteria: Sequence[Criterion], trials: Sequence[Trial], cases: int, stored: Sequence[Trial] = (), **options: bool
) -> SuiteResult:
    suite = [Case(f"c{number}", ()) for number in range(cases)]
    return verdict_on(Comparison(suite, criteria, trials, stored, Settings(confirm_after=None), seed=1, **options))


def test_lost_scores_are_told_beside_the_threshold_that_the_others_miss() -> None:
    trials = [Trial(f"c{n}", k, scores={"right": LOST if k == 2 else Score(0.0)}) for n in range(6) for k in (1, 2)]
    result = judged([RIGHT], trials, 6)
    assert result.verdict is Verdict.BELOW_THRESHOLD
    assert sum("6 of 12 answers" in text for text in View(result).all_warnings) == 1


def test_unchecked_cases_are_named_if_they_are_all() -> None:
    result = judged([RIGHT], [Trial(f"c{n}", 1, scores={"right": Score(None)}) for n in range(3)], 3)
    assert any("(c0, c1, c2)" in text for text in View(result).all_warnings)


@pytest.mark.parametrize("rate", [(), (Criterion("pass_rate", "pass_rate", Scale.BINARY, threshold=0.9),)])
def test_a_selection_to_which_nothing_applies_is_not_measured(rate: tuple[Criterion, ...]) -> None:
    trials = [Trial(f"c{n}", 1, scores={"right": Score(None)}) for n in range(5)]
    assert judged([RIGHT, *rate], trials, 5, selected=True).verdict is Verdict.ERROR


def test_a_warning_is_no_part_of_the_reason() -> None:
    trials = [Trial(f"c{n}", 1, scores={"right": Score(1.0), "noted": Score(0.5)}) for n in range(4)]
    trials[0] = Trial("c0", 1, scores={"right": Score(1.0), "noted": LOST})
    trials.append(Trial("c0", 2, scores={"right": Score(1.0), "noted": Score(0.4)}))
    view = View(judged([RIGHT, NOTED], trials, 4))
    told = [*view.all_warnings, *[row.reason for row in view.rows]]
    assert sum("could not be scored" in text for text in told) == 1


def test_criteria_that_only_report_stand_behind_the_warnings_on_the_suite() -> None:
    only = [Criterion(f"only-{n}", "response", Scale.UNIT, threshold=0.9, blocking=False) for n in range(3)]
    scores = {"right": Score(1.0), **{one.name: Score(0.1) for one in only}}
    trials = [Trial(f"c{n}", 1, scores=scores) for n in range(4)]
    before = {"right": Score(1.0), **{one.name: Score(1.0) for one in only}}
    stored = [Trial(f"c{n}", 1, scores=before) for n in range(4)]
    warnings = View(judged([RIGHT, *only], trials, 4, stored=stored)).all_warnings
    only_reports = ["threshold 0.90" in text for text in warnings]
    assert only_reports == sorted(only_reports)
    assert sum(only_reports) == len(only) < len(warnings)
