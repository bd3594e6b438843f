"""An unknown key in an ADK file is refused exactly where google-adk 2.13 refuses it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.config.adk_criteria import criteria_of
from gate.config.criteria import Setting
from gate.config.specs import read_specs
from gate.errors import ConfigError
from gate.formats.adk import camel
from gate.suites import load
from tests.properties import examples
from tests.unit.config.build import scorers_of

RUBRIC = {"rubric_id": "r", "rubric_content": {"text_property": "Is short."}, "type": "FINAL_RESPONSE_QUALITY"}
CALL = {"id": "1", "name": "find", "args": {"free": {"any_key": 1}}}
RESPONSE = {"id": "1", "name": "find", "response": {"any_key": 1}}
PARTS = [{"text": "hm", "thought": True}, {"inline_data": {"mime_type": "a/b", "data": ""}}]
TURN: dict[str, Any] = {
    "invocation_id": "i",
    "user_content": {"role": "user", "parts": [{"text": "hi"}]},
    "final_response": {"role": "model", "parts": [{"text": "ho"}]},
    "intermediate_data": {
        "tool_uses": [CALL],
        "tool_responses": [RESPONSE],
        "intermediate_responses": [["agent", PARTS]],
    },
    "rubrics": [RUBRIC],
    "app_details": {"agent_details": {"a": {"name": "a", "instructions": "", "tool_declarations": [{"any": 1}]}}},
}
EVENT = {
    "author": "a",
    "content": {"parts": [{"function_call": CALL}, {"function_response": RESPONSE}]},
    "usage_metadata": {"prompt_token_count": 1},
}
EVENTS_TURN = {"user_content": TURN["user_content"], "intermediate_data": {"invocation_events": [EVENT]}}
FILE: dict[str, Any] = {
    "eval_set_id": "s",
    "eval_cases": [
        {
            "eval_id": "c",
            "conversation": [TURN, EVENTS_TURN],
            "rubrics": [{**RUBRIC, "rubric_id": "q"}],
            "session_input": {"app_name": "a", "user_id": "u", "state": {"any_key": 1}},
        }
    ],
}
CASE = ("eval_cases", 0)
FIRST, SECOND = (*CASE, "conversation", 0), (*CASE, "conversation", 1)
DATA = (*FIRST, "intermediate_data")
OF_EVENT = (*SECOND, "intermediate_data", "invocation_events", 0)
REFUSING: list[tuple[Any, ...]] = [
    FIRST,
    (*FIRST, "user_content"),
    (*FIRST, "user_content", "parts", 0),
    (*FIRST, "final_response"),
    (*FIRST, "final_response", "parts", 0),
    DATA,
    (*DATA, "tool_uses", 0),
    (*DATA, "tool_responses", 0),
    (*DATA, "intermediate_responses", 0, 1, 0),
    (*DATA, "intermediate_responses", 0, 1, 1, "inline_data"),
    (*FIRST, "rubrics", 0),
    (*FIRST, "rubrics", 0, "rubric_content"),
    (*FIRST, "app_details"),
    (*FIRST, "app_details", "agent_details", "a"),
    (*SECOND, "intermediate_data"),
    (*OF_EVENT, "content"),
    (*OF_EVENT, "content", "parts", 0),
    (*OF_EVENT, "content", "parts", 0, "function_call"),
    (*OF_EVENT, "content", "parts", 1, "function_response"),
    (*OF_EVENT, "usage_metadata"),
    (*CASE, "rubrics", 0),
]
ALLOWING: list[tuple[Any, ...]] = [
    (),
    CASE,
    (*CASE, "session_input"),
    (*CASE, "session_input", "state"),
    OF_EVENT,
    (*DATA, "tool_uses", 0, "args"),
    (*DATA, "tool_uses", 0, "args", "free"),
    (*DATA, "tool_responses", 0, "response"),
    (*FIRST, "app_details", "agent_details", "a", "tool_declarations", 0),
]
FREE = ("args", "response", "state", "agent_details", "tool_declarations")
"""Keys below which everything is the user's."""


def in_camel(value: Any, *, free: bool = False) -> Any:
    if isinstance(value, dict):
        return {
            k if free else camel(k): in_camel(v, free=k in FREE and k != "tool_declarations") for k, v in value.items()
        }
    return [in_camel(item) for item in value] if isinstance(value, list) else value


def at(document: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        document = document[step] if isinstance(step, int) or step in document else document[camel(step)]
    return document


def read(folder: Path, document: Any) -> None:
    path = folder / "a.evalset.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    load([path], root=folder)


@pytest.mark.parametrize("spelling", [copy.deepcopy, in_camel])
def test_the_file_itself_loads_in_either_spelling(tmp_path: Path, spelling: Any) -> None:
    read(tmp_path, spelling(FILE))


@pytest.mark.parametrize("place", REFUSING, ids=lambda place: ".".join(map(str, place)))
@settings(max_examples=examples(100, quick=6))
@given(data=st.data())
def test_an_unknown_key_is_refused(tmp_path_factory: pytest.TempPathFactory, place: Any, data: st.DataObject) -> None:
    document = data.draw(st.sampled_from([copy.deepcopy, in_camel]))(FILE)
    body = at(document, place)
    near = data.draw(st.sampled_from([*(key[:-1] + "z" for key in body), "argz", "x"]))
    if near in body:
        return
    body[near] = data.draw(st.sampled_from([None, 1, {}, []]))
    with pytest.raises(ConfigError, match=r"unknown key|has either"):
        read(tmp_path_factory.getbasetemp(), document)


@pytest.mark.parametrize("place", ALLOWING, ids=lambda place: ".".join(map(str, place)) or "file")
@pytest.mark.parametrize("key", ["initial_state", "zzz"])
def test_where_google_adk_takes_any_key_it_loads(tmp_path: Path, place: Any, key: str) -> None:
    document = copy.deepcopy(FILE)
    at(document, place)[key] = {}
    read(tmp_path, document)


@pytest.mark.parametrize(
    ("place", "key"),
    [
        (FIRST, "user_content"),
        (FIRST, "final_response"),
        (DATA, "tool_uses"),
        ((*FIRST, "rubrics", 0), "rubric_id"),
        ((*FIRST, "rubrics", 0, "rubric_content"), "text_property"),
        ((*OF_EVENT, "content", "parts", 0), "function_call"),
        (FIRST, "app_details"),
    ],
)
def test_one_key_in_both_spellings_is_refused(tmp_path: Path, place: Any, key: str) -> None:
    document = copy.deepcopy(FILE)
    at(document, place)[camel(key)] = at(document, place)[key]
    with pytest.raises(ConfigError, match=f"both {key} and {camel(key)} are given"):
        read(tmp_path, document)


def test_what_googles_own_legacy_files_hold_loads(tmp_path: Path) -> None:
    call = {"tool_name": "t", "tool_input": {}, "mock_tool_output": {"status": "on"}}
    row = {"query": "q", "expected_tool_use": [call], "reference": "r", "initial_state": {}}
    for document in ([row], [{"name": "n", "data": [row], "initial_session": {}, "initial_state": {"a": 1}}]):
        path = tmp_path / "old.test.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        (suite,) = load([path], root=tmp_path)
        assert suite.cases[0].turns[0].tools is not None


@pytest.mark.parametrize("wrong", ["mock_tool_ouput", "argz", "tool_inputs"])
def test_a_misspelt_key_of_a_legacy_call_is_refused(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "old.test.json"
    path.write_text(
        json.dumps([{"query": "q", "expected_tool_use": [{"tool_name": "t", wrong: {}}]}]), encoding="utf-8"
    )
    with pytest.raises(ConfigError, match="unknown key"):
        load([path], root=tmp_path)


def test_a_test_config_may_hold_a_live_model_config() -> None:
    assert criteria_of({"criteria": {"safety_v1": 0.8}, "live_model_config": {}}, "f") == {"safety_v1": 0.8}
    with pytest.raises(ConfigError, match="both custom_metrics and customMetrics are given"):
        criteria_of({"criteria": {}, "custom_metrics": {}, "customMetrics": {}}, "f")


def test_a_share_of_safe_answers_in_an_adk_file_means_all_of_them() -> None:
    (scorer,) = scorers_of({"safety_v1": 0.8}, (), Setting(), adk=True)
    assert (scorer.criterion.threshold, scorer.criterion.hard) == (1.0, True)
    with pytest.raises(ConfigError, match="one occurrence fails the gate"):
        scorers_of({"safety_v1": 0.8}, (), Setting())


def test_one_option_in_both_spellings_is_refused() -> None:
    both = {"tool_trajectory_avg_score": {"threshold": 1, "match_type": "EXACT", "matchType": "IN_ORDER"}}
    with pytest.raises(ConfigError, match="both match_type and matchType are given"):
        read_specs(both, lambda *_: "f", adk=True)
