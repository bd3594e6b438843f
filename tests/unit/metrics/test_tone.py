from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gate.metrics.base import TrialOutput
from gate.metrics.tone import ToneMatch, ToneOptions, detect_tone
from gate.model import Case, Invocation, Part, Score, Turn


def test_keywords() -> None:
    for text, tone in [
        ("Hi Anna! Happy to help, hope you enjoy your trip :)", "friendly"),
        ("Thanks! Great choice 😀", "friendly"),
        ("We regret the delay. Please confirm the request so that we can assist accordingly.", "professional"),
        ("Dear customer, regarding your inquiry, kindly provide the number.", "professional"),
        ("The train leaves at 10:04 from platform 3.", "neutral"),
        ("", "neutral"),
        ("Thanks. Regarding the fee:", "neutral"),  # one of each
        ("Please wait.", "friendly"),
        ("Thank you for waiting", "friendly"),
        ("I am happy to help", "friendly"),
        ("Consequently the order was cancelled.", "professional"),
        ("Furthermore, the fee is due.", "professional"),
        ("THANKS", "friendly"),
        ("Thanksgiving greatness", "neutral"),  # whole words alone
    ]:
        assert detect_tone(text) == tone, (text, tone)


def measure(*answers: str, **options: Any) -> Score:
    metric = ToneMatch(ToneOptions.model_validate({"backend": "keywords", **options}))
    performance = TrialOutput(tuple(Invocation("hi", (Part(text),)) for text in answers))
    assert not metric.needs_judge
    return metric.score(Case("c", (Turn("hi"),)), performance)


@pytest.mark.slow
def test_share_of_turns_with_the_expected_tone() -> None:
    score = measure("Thanks!", "It is 10:04.", expected="friendly")
    assert (score.value, score.per_turn) == (0.5, (1.0, 0.0))
    assert "no irony" in score.reason


def test_words_of_the_users_own_stand_in_place_of_the_shipped_ones_tone_by_tone() -> None:
    own = {"words": {"friendly": ["Servus"]}}
    assert measure("Servus!", "Please wait.", expected="friendly", **own).per_turn == (1.0, 0.0)
    assert measure("Consequently it is late.", expected="professional", **own).value == 1.0
    for words in ({"neutral": ["so"]}, {"friendly": [" "]}):
        with pytest.raises(ValidationError):
            measure("Hi", expected="friendly", words=words)
    with pytest.raises(ValidationError, match="backend: keywords"):
        ToneOptions.model_validate({"words": {"friendly": ["Servus"]}})


def test_no_expectation_does_not_apply() -> None:
    assert (measure("Thanks!").value, measure("Thanks!").error) == (None, None)


def test_the_judge_is_needed_only_where_it_is_asked() -> None:
    assert ToneMatch(ToneOptions(expected="neutral")).needs_judge
    assert not ToneMatch(ToneOptions(expected="neutral", backend="keywords")).needs_judge
