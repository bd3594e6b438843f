"""Inputs are read as they are meant, or refused with what is meant."""

from __future__ import annotations

from typing import Any

import pytest

from gate.action.inputs import INPUTS, overrides_of, read_inputs, values_to_mask
from gate.errors import ConfigError


def read(**given: str) -> dict[str, Any]:
    return read_inputs({f"INPUT_{name.upper()}": value for name, value in given.items()} | {"PATH": "/bin"})


def test_without_any_input_there_are_the_defaults() -> None:
    found = read()
    assert found["config"] == "gate.yaml"
    assert found["comment"] is True
    assert found["shard"] == (1, 1)
    assert overrides_of(found) == {}


def test_defaults_are_what_their_own_reader_takes() -> None:
    for name, kind in INPUTS.items():
        assert read(**{name: kind.default})[name] == read()[name]


def test_inputs_become_keys_of_the_configuration() -> None:
    found = read(tags="smoke, refund\nslow", trials="5", on_inconclusive="block", on_missing_baseline="fail")
    assert overrides_of(found) == {
        "select.tags": ["smoke", "refund", "slow"],
        "trials": 5,
        "gate.on_inconclusive": "block",
        "baseline.on_missing": "fail",
    }


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("comment", "yes", "true"),
        ("comment", "True", "true"),
        ("on_inconclusive", "blok", "block"),
        ("on_missing_baseline", "warm", "warn"),
        ("on_publish_error", "error", "fail"),
        ("trials", "-1", "auto"),
        ("trials", "²", "auto"),
        ("trials", "9" * 5_000, "more characters"),
        ("shard", "²/4", "2/5"),
        ("shard", "1/" + "9" * 5_000, "more characters"),
        ("config", "a" * 5_000, "too long"),
        ("config", "a/" * 2_000, "too long"),
        ("shards", "a" * 256, "too long"),
        ("setup_cache", "a" * 256, "too long"),
        ("shard", "0/3", "2/5"),
        ("shard", "3", "2/5"),
        ("shard", "2/1", "2/5"),
        ("shards_", "x", "shards"),
        ("on-inconclusive", "warn", "on_inconclusive"),
        ("tag", "smoke", "tags"),
        ("env", "A=1\nsecret", "line 2 is not of the form NAME=value"),
        ("env", "not a name=1", "line 1 is not"),
        ("env", "GITHUB_SHA=1", "belongs to the runner"),
        ("env", "INPUT_TOKEN=1", "belongs to the runner"),
    ],
)
def test_what_is_not_known_is_refused_with_what_is_meant(name: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(**{name: value})
    assert said in str(caught.value)
    assert caught.value.where.startswith("with")


def test_an_input_of_an_earlier_version_is_refused_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match="check_run was removed") as caught:
        read_inputs({"INPUT_CHECK_RUN": "false"})
    assert caught.value.hint.startswith("leave it out")


def test_variables_are_read_line_by_line_and_empty_ones_stay_unset() -> None:
    given = " OPENAI_API_KEY=sk-1=2 \n\nGITHUB_TOKEN=of the workflow\nMISSING=\n"
    assert read(env=given)["env"] == {"OPENAI_API_KEY": "sk-1=2", "GITHUB_TOKEN": "of the workflow"}


def test_values_of_variables_are_masked_unless_they_are_too_short_to_be_secret() -> None:
    given = {"INPUT_ENV": "KEY=a-long-secret\nDEBUG=1\nnot a line"}
    assert values_to_mask(given) == ["a-long-secret"]


def test_no_trials_at_all_is_left_to_the_configuration_to_refuse() -> None:
    assert overrides_of(read(trials="0")) == {"trials": 0}


def test_white_space_around_a_value_is_not_part_of_it() -> None:
    assert read(shard=" 2/5\n")["shard"] == (2, 5)
