"""A total of usages is unknown if a part of it is."""

from __future__ import annotations

from random import Random

import pytest

from gate.model import Invocation, Trial, Usage, total_usage

COUNTS = ("input_tokens", "output_tokens", "cost_usd", "model_calls")


def drawn(chance: Random) -> Usage | None:
    if chance.random() < 0.2:
        return None
    return Usage(**{name: chance.randrange(9) for name in COUNTS if chance.random() < 0.8})


@pytest.mark.parametrize("seed", range(200))
def test_a_total_is_the_sum_of_all_parts_or_unknown(seed: int) -> None:
    chance = Random(seed)
    parts = [drawn(chance) for _ in range(chance.randrange(1, 5))]
    total = total_usage(parts) or Usage()
    for name in COUNTS:
        values = [getattr(part or Usage(), name) for part in parts]
        assert getattr(total, name) == (None if None in values else sum(values))


@pytest.mark.parametrize(
    ("parts", "total"),
    [
        ([], None),
        ([None, None], None),
        ([Usage()], None),
        ([Usage(3, 4, model="m"), Usage(1, 0, model="m")], Usage(4, 4, model="m")),
        ([Usage(3, 4, model="m"), Usage(1, 1, model="n")], Usage(4, 5)),
        ([Usage(3, 4, 0.5, 1), None], None),
        ([Usage(3, 4, cut_off=True), None], Usage(cut_off=True)),
        ([Usage(3, 4), Usage(3)], Usage(6)),
        ([Usage(0, 0, 0.0), Usage(3, 4, 0.5)], Usage(3, 4, 0.5)),  # a turn that a cache answers costs nothing
    ],
)
def test_what_one_part_does_not_report_is_unknown(parts: list[Usage | None], total: Usage | None) -> None:
    assert total_usage(parts) == total


def test_a_trial_with_a_turn_without_usage_has_no_total() -> None:
    turns = (Invocation("a", usage=Usage(3, 4, 0.5)), Invocation("b"))
    assert Trial("c", 0, invocations=turns).usage is None
    assert Trial("c", 0, invocations=turns[:1]).usage == Usage(3, 4, 0.5)
