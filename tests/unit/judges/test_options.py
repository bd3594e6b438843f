from __future__ import annotations

import pytest
from pydantic import ValidationError

from gate.errors import ConfigError
from gate.judges.options import (
    NO_KEY,
    JudgeModelOptions,
    JudgeOptions,
    Juror,
    SimulatedUserOptions,
    check,
    fingerprint,
    fingerprint_of_user,
    members,
)

KEY = {"OPENAI_API_KEY": "k"}


def test_key_and_defaults_from_the_environment() -> None:
    [member] = members(JudgeOptions(), KEY)
    assert (member.model, member.base_url, member.api_key) == ("gpt-5-mini", "https://api.openai.com/v1", "k")
    own = {"GATE_JUDGE_API_KEY": "mine", "GATE_JUDGE_BASE_URL": "http://h/v1", "GATE_JUDGE_MODEL": "m", **KEY}
    [member] = members(JudgeOptions(), own)
    assert (member.model, member.base_url, member.api_key) == ("m", "http://h/v1", "mine")
    [member] = members(JudgeOptions(model="x", base_url="http://other", api_key_env="K"), {"K": "third", **own})
    assert (member.model, member.base_url, member.api_key) == ("x", "http://other", "third")


def test_a_key_never_shows() -> None:
    [member] = members(JudgeOptions(), {"OPENAI_API_KEY": "sk-hidden"})
    assert "sk-hidden" not in repr(member)


def test_an_endpoint_of_ones_own_needs_no_key_but_a_model() -> None:
    [member] = members(JudgeOptions(base_url="http://localhost:11434/v1", model="llama"), {})
    assert member.api_key == NO_KEY
    with pytest.raises(ConfigError, match="no judge model"):
        members(JudgeOptions(base_url="http://localhost:11434/v1"), {})


def test_jurors_inherit_what_they_leave_out() -> None:
    jury = (Juror(model="b"), Juror(model="c", base_url="http://c", api_key_env="C"))
    options = JudgeOptions(model="a", base_url="http://a", api_key_env="A", jury=jury)
    found = members(options, {"A": "ka", "C": "kc"})
    assert [(one.model, one.base_url, one.api_key) for one in found] == [
        ("a", "http://a", "ka"),
        ("b", "http://a", "ka"),
        ("c", "http://c", "kc"),
    ]


def test_no_key_is_an_error_that_names_who_asks_and_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"key is not set .*safety_v1, relevance"):
        check(None, {}, needed_by=["safety_v1", "relevance"])
    check(None, {}, needed_by=[])
    check(None, KEY, needed_by=["relevance"])


def test_a_named_variable_that_is_empty_is_an_error() -> None:
    with pytest.raises(ConfigError, match="MY_KEY"):
        check(JudgeOptions(api_key_env="MY_KEY"), KEY, needed_by=["relevance"])


def test_a_budget_in_dollars_needs_a_price() -> None:
    check(None, KEY, needed_by=["relevance"], usd=5)
    with pytest.raises(ConfigError, match="price is unknown"):
        check(JudgeOptions(model="unheard-of"), KEY, needed_by=["relevance"], usd=5)
    priced = JudgeOptions.model_validate({"model": "unheard-of", "price": {"input": 0, "output": 0}})
    check(priced, KEY, needed_by=["relevance"], usd=5)


def test_the_fingerprint_is_of_what_decides_an_answer() -> None:
    base = fingerprint(JudgeOptions(), KEY)
    assert base == fingerprint(None, {"OPENAI_API_KEY": "another"})
    for same in (JudgeOptions(concurrency=2), JudgeOptions(retries=0), JudgeOptions(timeout=5)):
        assert fingerprint(same, KEY) == base
    changed = [
        JudgeOptions(model="m"),
        JudgeOptions(temperature=0),
        JudgeOptions(num_samples=3),
        JudgeOptions(jury=(Juror(model="m"),)),
        JudgeOptions(model="gpt-5-mini", base_url="http://elsewhere"),
    ]
    assert len({base, *(fingerprint(one, KEY) for one in changed)}) == len(changed) + 1


def test_the_fingerprints_are_those_of_older_records() -> None:
    """If one has to change, the scores of every stored record stop being comparable."""
    judge = JudgeOptions(model="m", base_url="http://j.example", temperature=0.5, num_samples=3)
    assert fingerprint(None, KEY) == "judge:3399f55b13ef5d11"
    assert fingerprint(judge, KEY) == "judge:8c427da7d9c459ce"
    user = SimulatedUserOptions(model="u", temperature=1, max_turns=4)
    assert fingerprint_of_user(None, None, KEY) == "user:14c81f6491e2fdab"
    assert fingerprint_of_user(user, judge, KEY) == "user:0e307f9837201ce4"


def test_timeouts_are_written_as_elsewhere() -> None:
    for text in ["90s", "1.5m", 90]:
        assert JudgeOptions.model_validate({"timeout": text}).timeout == 90, text


def test_wrong_options_are_refused() -> None:
    for raw in [{"modle": "x"}, {"num_samples": 0}, {"temperature": 3}, {"timeout": "soon"}]:
        with pytest.raises(ValidationError):
            JudgeOptions.model_validate(raw)


def test_adk_options_unknown_keys_refused() -> None:
    raw = {"judge_model": "m", "num_samples": 5, "judge_model_config": {"temperature": 0, "max_output_tokens": 9}}
    options = JudgeModelOptions.model_validate(raw)
    assert (options.judge_model, options.num_samples) == ("m", 5)
    for wrong in ({"judge": "m"}, {"judge_model_config": {"tools": []}}):
        with pytest.raises(ValidationError):
            JudgeModelOptions.model_validate(wrong)
