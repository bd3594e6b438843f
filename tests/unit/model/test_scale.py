"""What is known of each scale, said once."""

from __future__ import annotations

import math

from gate.model import Direction, Scale


def test_a_scale_without_an_upper_end_is_compared_by_shares() -> None:
    for scale in Scale:
        low, high = scale.range
        assert low < high, scale
        assert scale.is_bounded is math.isfinite(high), scale
        assert scale.is_relative is not scale.is_bounded, scale
        assert scale.is_relative is (scale.kind == "positive"), scale


def test_a_margin_is_less_than_the_scale_and_a_step_less_than_the_margin() -> None:
    for scale in Scale:
        low, high = scale.range
        assert 0 < scale.default_margin < high - low, scale
        assert scale.step is None or 0 < scale.step < scale.default_margin, scale


def test_a_change_is_a_loss_in_one_direction_and_none_is_none() -> None:
    for direction in Direction:
        assert [direction.is_loss(change) for change in (-direction.sign, 0.0, direction.sign)] == [True, False, False]


def test_the_margins_are_those_that_the_documents_name() -> None:
    assert {scale.value: scale.default_margin for scale in Scale} == {
        "binary": 0.10,
        "share": 0.10,
        "unit": 0.10,
        "likert": 0.4,
        "percent": 10.0,
        "seconds": 0.30,
        "usd": 0.20,
        "count": 0.20,
    }
