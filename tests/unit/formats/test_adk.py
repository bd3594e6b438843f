"""ADK's invocations and events, in either case."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.formats.adk import camel, events_to_invocation, failure_of, to_invocation, to_rubric
from gate.formats.messages import FormatError
from gate.model import Invocation, Part, Rubric, ToolCall, Usage

INVOCATION: dict[str, Any] = {
    "invocation_id": "i-1",
    "user_content": {
        "role": "user",
        "parts": [{"text": "Where is"}, {"text": "A1?"}, {"inline_data": {"data": "AA=="}}],
    },
    "final_response": {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "Here."}, {"text": None}]},
    "intermediate_data": {
        "tool_uses": [
            {"id": "1", "name": "find_order", "args": {"order_id": "A1", "deepArg": {"x_y": 1}}},
            {"name": "log", "args": None},
        ],
        "tool_responses": [
            {"id": "1", "name": "find_order", "response": {"error": "not found"}},
            {"name": "log", "response": {"ok": True}},
        ],
        "intermediate_responses": [["sub_agent", [{"text": "Looking."}]]],
    },
    "duration": 1.5,
    "creation_timestamp": 0.0,
}
READ = Invocation(
    user="Where is\nA1?",
    response=(Part("hm", thought=True), Part("Here.")),
    tool_calls=(
        ToolCall("find_order", {"order_id": "A1", "deepArg": {"x_y": 1}}, "1", {"error": "not found"}, "not found"),
        ToolCall("log", None, None, {"ok": True}),
    ),
    intermediate=(Part("Looking."),),
    duration=1.5,
    reports_calls=True,
)


def in_camel(value: Any) -> Any:
    """The same in camelCase, but for what a tool took and gave."""
    if isinstance(value, dict):
        return {camel(k): v if k in ("args", "response") else in_camel(v) for k, v in value.items()}
    return [in_camel(item) for item in value] if isinstance(value, list) else value


def test_invocation_in_either_case() -> None:
    assert to_invocation(INVOCATION) == READ
    assert to_invocation(in_camel(INVOCATION)) == READ


def test_mixed_case() -> None:
    mixed = {**INVOCATION, "intermediate_data": in_camel(INVOCATION["intermediate_data"])}
    assert to_invocation(mixed) == READ


@pytest.mark.parametrize("data", [None, {}, {"tool_uses": None}, {"invocation_events": []}])
def test_missing_intermediate_data_is_an_empty_trajectory(data: Any) -> None:
    read = to_invocation({"user_content": {"parts": [{"text": "x"}]}, "intermediate_data": data})
    assert (read.tool_calls, read.response, read.usage) == ((), (), None)


EVENTS: list[dict[str, Any]] = [
    {"author": "user", "content": {"parts": [{"text": "Where is A1?"}], "role": "user"}},
    {"author": "root", "partial": True, "content": {"parts": [{"function_call": {"name": "find", "args": {}}}]}},
    {
        "author": "root",
        "content": {
            "parts": [{"text": "Let me look."}, {"function_call": {"id": "1", "name": "find", "args": {"a": 1}}}]
        },
        "usage_metadata": {"prompt_token_count": 10, "candidates_token_count": 4, "thoughts_token_count": 2},
        "model_version": "gemini-x",
    },
    {
        "author": "root",
        "content": {"parts": [{"function_response": {"id": "1", "name": "find", "response": {"r": 1}}}]},
    },
    {"author": "root", "content": {"parts": [{"function_call": {"id": "2", "name": "transfer_to_agent", "args": {}}}]}},
    {
        "author": "sub",
        "content": {"parts": [{"text": "Found."}]},
        "usage_metadata": {"prompt_token_count": 20, "candidates_token_count": 1},
        "model_version": "gemini-x",
    },
    {"author": "sub", "actions": {"state_delta": {}}},
]


@pytest.mark.parametrize("spell", [lambda value: value, in_camel])
def test_events(spell: Any) -> None:
    assert events_to_invocation(spell(EVENTS)) == Invocation(
        user="Where is A1?",
        response=(Part("Found."),),
        tool_calls=(ToolCall("find", {"a": 1}, "1", {"r": 1}), ToolCall("transfer_to_agent", {}, "2")),
        intermediate=(Part("Let me look."),),
        usage=Usage(30, 7, None, 2, "gemini-x"),
        reports_calls=True,
    )


def test_an_event_of_adk_without_counts_adds_none_to_those_of_others() -> None:
    """As in google-adk's metrics: live sessions report the counts in events of their own, and Gemini leaves out a 0."""
    said = {"author": "root", "content": {"parts": [{"text": "Found."}]}, "model_version": "gemini-x"}
    counted = {"author": "root", "usage_metadata": {"prompt_token_count": 10, "candidates_token_count": 4}}
    blocked = {"author": "root", "usage_metadata": {"prompt_token_count": 5}, "model_version": "gemini-x"}
    assert events_to_invocation([said, {**counted, "model_version": "gemini-x"}]).usage == Usage(
        10, 4, None, 2, "gemini-x"
    )
    assert events_to_invocation([blocked, counted, said]).usage == Usage(15, 4, None, 3)
    assert events_to_invocation([said]).usage == Usage(model_calls=1, model="gemini-x")
    assert events_to_invocation([blocked]).usage == Usage(5, None, None, 1, "gemini-x")


def test_invocation_events_of_an_eval_result() -> None:
    read = to_invocation({"user_content": {}, "intermediate_data": {"invocation_events": EVENTS[2:5]}})
    assert [call.name for call in read.tool_calls] == ["find", "transfer_to_agent"]
    assert read.usage == Usage(10, 6, None, 1, "gemini-x")


def test_the_last_final_event_with_text_is_the_response() -> None:
    events = [
        {"author": "a", "content": {"parts": [{"text": "first"}]}},
        {"author": "a", "content": {"parts": [{"text": "second"}]}},
        {"author": "a", "content": {"parts": [{"inline_data": {"data": "AA=="}}]}},
        {"author": "a", "content": {"parts": [{"text": "ran"}, {"code_execution_result": {"output": "1"}}]}},
    ]
    assert events_to_invocation(events).text == "second"


def test_a_long_running_call_is_final() -> None:
    event = {
        "author": "a",
        "longRunningToolIds": ["1"],
        "content": {"parts": [{"functionCall": {"id": "1", "name": "f"}}]},
    }
    read = events_to_invocation([event])
    assert (read.tool_calls, read.response) == ((ToolCall("f", None, "1"),), ())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"intermediate_dta": {}},
            "unknown key 'intermediate_dta' in an invocation, did you mean 'intermediate_data'?",
        ),
        (
            {"intermediate_data": {"tool_use": []}},
            "unknown key 'tool_use' in intermediate_data, did you mean 'tool_uses'?",
        ),
        (
            {"intermediate_data": {"invocation_events": [{"contents": {}}]}},
            "unknown key 'contents' in an event, did you mean 'content'?",
        ),
        ({"intermediate_data": {"tool_uses": {}}}, "tool_uses must be a list"),
        ({"intermediate_data": {"tool_uses": ["x"]}}, "a function call must be an object"),
        ({"intermediate_data": {"tool_uses": [{"name": "f", "args": [1]}]}}, "the args of 'f' must be an object"),
        ({"intermediate_data": {"tool_uses": [{"name": 3}]}}, "the name of a function call must be text"),
        ({"intermediate_data": {"tool_uses": [], "invocation_events": []}}, "intermediate_data has either"),
        ({"finalResponse": {}}, "both final_response and finalResponse are given"),
        ({"final_response": "hello"}, "a content must be an object"),
        ({"final_response": {"parts": [{"text": 3}]}}, "the text of a part must be text"),
        ({"duration": -1}, "duration must be a number"),
    ],
)
def test_malformed(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError) as caught:
        to_invocation({**INVOCATION, **change})
    assert str(caught.value).startswith(message)


def test_rubrics() -> None:
    raw = {"rubric_id": "r", "rubric_content": {"text_property": "Is kind."}, "type": "FINAL_RESPONSE_QUALITY"}
    assert to_rubric(raw) == to_rubric(in_camel(raw)) == Rubric("r", "Is kind.", "FINAL_RESPONSE_QUALITY")
    for broken in ({}, {"rubric_id": "r"}, {**raw, "rubric_id": 1}, {**raw, "type": 2}, {**raw, "rubric_content": {}}):
        with pytest.raises(FormatError):
            to_rubric(broken)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(*path, key), *places(value[key], (*path, key))]]


SAID: dict[str, Any] = {"author": "bot", "content": {"role": "model", "parts": [{"text": "One moment."}]}}
FAILED: dict[str, Any] = {"author": "bot", "errorCode": "MALFORMED_FUNCTION_CALL", "errorMessage": "no such tool"}


@pytest.mark.parametrize(
    ("events", "error"),
    [
        ([SAID, FAILED], "MALFORMED_FUNCTION_CALL: no such tool"),
        ([SAID, FAILED, {"author": "bot", "actions": {"stateDelta": {}}}], "MALFORMED_FUNCTION_CALL: no such tool"),
        ([{"author": "bot", "error_code": "SAFETY"}], "SAFETY"),
        ([FAILED, SAID], ""),
        ([{**SAID, "errorCode": "MAX_TOKENS"}], ""),
        ([SAID, {"author": "user", "errorCode": "X"}], ""),
        ([], ""),
    ],
)
def test_the_error_that_a_run_ended_with(events: list[Any], error: str) -> None:
    assert failure_of(events) == error


@settings(deadline=None)
@given(st.data())
def test_mutants_are_invocations_or_format_errors(data: st.DataObject) -> None:
    junk = st.sampled_from([None, True, -1, "x", [], {}, [None], ["x"], {"x": 1}, {"parts": [3]}, 1e400])
    mutant: Any = {"i": copy.deepcopy(INVOCATION), "e": copy.deepcopy(EVENTS)}
    for place in data.draw(st.lists(st.sampled_from(places(mutant)), min_size=1, max_size=3)):
        target = mutant
        try:
            for key in place[:-1]:
                target = target[key]
            target[place[-1]] = copy.deepcopy(data.draw(junk))
        except (KeyError, IndexError, TypeError):
            continue
    for read, raw in ((to_invocation, mutant["i"]), (events_to_invocation, mutant["e"])):
        try:
            assert isinstance(read(raw), Invocation)
        except FormatError as error:
            assert "\n" not in str(error)
