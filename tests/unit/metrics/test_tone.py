from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gate.metrics.base import Performance
from gate.metrics.tone import ToneMatch, ToneOptions, detect_tone
from gate.model import Case, Invocation, Part, Score, Turn


@pytest.mark.parametrize(
    ("text", "tone"),
    [
        ("Hi Anna! Happy to help, hope you enjoy your trip :)", "friendly"),
        ("Thanks! Great choice 😀", "friendly"),
        ("We regret the delay. Please confirm the request so that we can assist accordingly.", "professional"),
        ("Dear customer, regarding your inquiry, kindly provide the number.", "professional"),
        ("The train leaves at 10:04 from platform 3.", "neutral"),
        ("", "neutral"),
        ("Thanks. Please.", "neutral"),  # one of each
        ("THANKS", "friendly"),
        ("Thanksgiving greatness", "neutral"),  # whole words alone
    ],
)
def test_keywords(text: str, tone: str) -> None:
    assert detect_tone(text) == tone


def measure(*answers: str, **options: Any) -> Score:
    metric = ToneMatch(ToneOptions.model_validate({"backend": "keywords", **options}))
    performance = Performance(tuple(Invocation("hi", (Part(text),)) for text in answers))
    return asyncio.run(metric.judge_score(Case("c", (Turn("hi"),)), performance, None))


def test_share_of_turns_with_the_expected_tone() -> None:
    score = measure("Thanks!", "It is 10:04.", expected="friendly")
    assert (score.value, score.per_turn) == (0.5, (1.0, 0.0))
    assert "no irony" in score.reason


def test_no_expectation_does_not_apply() -> None:
    assert (measure("Thanks!").value, measure("Thanks!").error) == (None, None)


def test_the_judge_is_needed_only_where_it_is_asked() -> None:
    assert ToneMatch(ToneOptions(expected="neutral")).needs_judge
    assert not ToneMatch(ToneOptions(expected="neutral", backend="keywords")).needs_judge
