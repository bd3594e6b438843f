"""The command line's texts as keys and numbers."""

from __future__ import annotations

import pytest

from gate.commands.common_options import overrides_of
from gate.errors import ConfigError
from gate.pipeline.session import parse_shard


def test_a_number_of_trials_is_written_in_digits() -> None:
    assert overrides_of({"trials": "3"}) == {"trials": 3}
    assert overrides_of({"trials": "²"}) == {"trials": "²"}  # a digit to str.isdigit, and no number to int


def test_a_shard_is_a_part_of_a_number_of_parts() -> None:
    assert parse_shard("2/5") == (2, 5)
    assert parse_shard("10000/10000") == (10_000, 10_000)


@pytest.mark.parametrize("text", ["", "2", "0/3", "3/2", "²/3", "1/10001", "1/99999999999", " 1/2"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(ConfigError, match="not of the form 2/5"):
        parse_shard(text, where="--shard")
