"""What the gate takes for a score: on its scale, or not measured."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.metrics.base import Metric, NoOptions, TrialOutput
from gate.metrics.weighted import WeightedOptions, WeightedScore
from gate.model import (
    RESPONSE,
    Case,
    Criterion,
    ErrorKind,
    Invocation,
    Part,
    Scale,
    Score,
    ToolCall,
    Trial,
    TrialError,
    Turn,
)
from gate.scoring.score import Scorer, score_recorded
from tests.unit.metrics.build import metric

CASE = Case("c", (Turn("go"),))


class Fixed(Metric[Any]):
    """Returns what it was given."""

    def __init__(self, value: float | None) -> None:
        super().__init__(NoOptions())
        self.value = value

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return Score(self.value, "as given")


def scored(value: float | None, scale: Scale, *more: Scorer, hard: bool = False) -> dict[str, Score]:
    own = Scorer(Criterion("own", "m:own", scale, hard=hard), Fixed(value), {})
    return dict(
        score_recorded(
            (own, *more), CASE, Trial("c", 1, invocations=(Invocation("go", response=(Part("gone"),)),))
        ).scores
    )


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("scale", list(Scale))
@given(value=st.floats())
def test_a_score_is_on_its_scale_or_not_measured(scale: Scale, value: float, hard: bool) -> None:
    score = scored(value, scale, hard=hard)["own"]
    low, high = scale.range
    if low <= value <= high and value < math.inf:
        assert (score.value, score.error) == (value, None)
    elif score.value is None:
        assert "outside its scale" in (score.error or "")
    else:
        assert low <= score.value <= high
        assert abs(score.value - value) <= 1e-9


@pytest.mark.parametrize(
    ("value", "scale", "ends"),
    [(7.0, Scale.UNIT, "unit: 0 to 1"), (0.5, Scale.LIKERT, "likert: 1 to 5"), (-1.0, Scale.COUNT, "count: 0 and up")],
)
def test_the_error_names_the_score_and_the_scale(value: float, scale: Scale, ends: str) -> None:
    score = scored(value, scale)["own"]
    assert score.value is None
    assert score.error == f"the score {value:g} is outside its scale ({ends})"


def test_rounding_at_the_end_of_a_scale_is_its_end() -> None:
    assert scored(1.0 + 1e-12, Scale.UNIT)["own"].value == 1.0
    assert scored(-1e-12, Scale.UNIT)["own"].value == 0.0


def test_a_composite_does_not_count_what_was_off_its_scale() -> None:
    sum_ = Scorer(
        Criterion("sum", "weighted_score", Scale.UNIT), WeightedScore(WeightedOptions(weights={"own": 1.0})), {}
    )
    found = scored(7.0, Scale.UNIT, sum_)["sum"]
    assert found.value is None
    assert "own could not be measured" in (found.error or "")


def test_what_does_not_apply_stays_so() -> None:
    assert scored(None, Scale.UNIT)["own"] == Score(None, "as given")


def after_a_turn(kind: ErrorKind, **criterion: bool) -> Trial:
    """A trial that fails after a turn in which the criterion was broken."""
    own = Scorer(Criterion("own", "m:own", Scale.BINARY, **criterion), Fixed(0.0), {})
    said = (Invocation("go", response=(Part("gone"),)),)
    return score_recorded((own,), CASE, Trial("c", 1, invocations=said, error=TrialError(kind, "as told")))


@pytest.mark.parametrize("kind", [ErrorKind.SIMULATOR, ErrorKind.UNREACHABLE])
def test_what_is_forbidden_and_was_done_decides_a_trial_that_something_else_ended(kind: ErrorKind) -> None:
    trial = after_a_turn(kind, hard=True, absence=True)
    assert (trial.error, trial.scores["own"].value) == (None, 0.0)


@pytest.mark.parametrize(
    "criterion", [{"hard": True}, {"absence": True}, {"hard": True, "absence": True, "blocking": False}]
)
def test_nothing_else_decides_a_trial_that_did_not_come_to_its_end(criterion: dict[str, bool]) -> None:
    trial = after_a_turn(ErrorKind.SIMULATOR, **criterion)
    assert (trial.answered, trial.scores) == (False, {})


def test_what_is_forbidden_counts_although_another_turn_was_not_recorded() -> None:
    said = Invocation("go", response=(Part("shut up"),))
    unseen = Invocation("on", unseen=(RESPONSE,))
    options = {"safety_v1": {"backend": "patterns"}, "not_contains": {"values": ["shut"]}}
    for name, stated in options.items():
        own = Scorer(Criterion(name, name, Scale.BINARY, hard=True, absence=True), metric(name, **stated), {})
        found = score_recorded((own,), CASE, Trial("c", 1, invocations=(said, unseen))).scores[name]
        assert found.value is not None and found.value < 1.0, name
        found = score_recorded((own,), CASE, Trial("c", 1, invocations=(unseen,))).scores[name]
        assert (found.value, "not recorded" in (found.error or "")) == (None, True), name


class Forbidding(Metric[Any]):
    """Passes a trial that calls nothing."""

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return Score(float(not performance.tool_calls), "calls" if performance.tool_calls else "")


@pytest.mark.parametrize(
    ("last", "kind"), [(None, None), (ErrorKind.UNREACHABLE, None), (ErrorKind.CRASH, ErrorKind.CRASH)]
)
def test_what_is_forbidden_and_was_done_in_an_earlier_attempt_decides_the_trial(
    last: ErrorKind | None, kind: ErrorKind | None
) -> None:
    """However the last attempt ended; what is demanded counts in the last attempt alone."""
    hard = Scorer(Criterion("forbidden", "m:f", Scale.BINARY, hard=True, absence=True), Forbidding(NoOptions()), {})
    demanded = Scorer(Criterion("demanded", "m:d", Scale.BINARY, hard=True), Fixed(1.0), {})
    fine, called = Invocation("go", response=(Part("gone"),)), Invocation("go", tool_calls=(ToolCall("drop"),))
    error = None if last is None else TrialError(last, "as told")
    trial = Trial("c", 1, invocations=(fine,), error=error, earlier=((fine,), (fine, called)))
    found = score_recorded((hard, demanded), CASE, trial)
    assert (found.error and found.error.kind) == kind
    assert found.scores == {"forbidden": Score(0.0, "calls (in an earlier attempt, which infrastructure ended)")}


@pytest.mark.parametrize(
    "unseen",
    ["", " \n\t", "\u200b\u200b", "\ufeff", "\u00ad\u2060", "\u3164", "\u2800", "\ufe0f", "\x00", "\u202e"],
)
def test_an_answer_in_which_nothing_can_be_seen_is_no_answer(unseen: str) -> None:
    found = score_recorded((), CASE, Trial("c", 1, invocations=(Invocation("go", response=(Part(unseen),)),)))
    assert found.error is not None
    assert "neither text nor tool calls" in found.error.message


@pytest.mark.parametrize("seen", [".", "\U0001f600", "\u200b.", "0", "\u0645", "\u0e33"])
def test_one_visible_character_is_an_answer(seen: str) -> None:
    found = score_recorded((), CASE, Trial("c", 1, invocations=(Invocation("go", response=(Part(seen),)),)))
    assert found.error is None


def test_a_thought_alone_is_no_answer() -> None:
    turn = Invocation("go", response=(Part("The user wants to go.", thought=True),))
    assert score_recorded((), CASE, Trial("c", 1, invocations=(turn,))).error is not None
