"""The forms in which an agent may answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from gate.formats.answers import to_invocation
from gate.formats.messages import FormatError
from gate.model import Invocation, Part, ToolCall, Usage
from tests.unit.formats.test_messages import CALLS, CHAT, SCRAPS


def test_plain_text() -> None:
    assert to_invocation("Hello.", user="hi") == Invocation(user="hi", response=(Part("Hello."),))
    assert to_invocation("", user="hi") == Invocation(user="hi")


def test_output_with_tool_calls() -> None:
    answer = {
        "v": 1,
        "output": "It is on its way.",
        "tool_calls": [
            {"name": "find", "arguments": {"id": "A1"}, "result": {"at": "sea"}, "error": None, "duration": 0.2},
            {"name": "log", "arguments": '{"n": 1}', "error": "disk full"},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 4, "model_calls": 2, "model": "m"},
        "cost_usd": 0.01,
    }
    assert to_invocation(answer, user="Where?") == Invocation(
        user="Where?",
        response=(Part("It is on its way."),),
        tool_calls=(
            ToolCall("find", {"id": "A1"}, None, {"at": "sea"}, None, 0.2),
            ToolCall("log", {"n": 1}, None, None, "disk full"),
        ),
        usage=Usage(3, 4, 0.01, 2, "m"),
        reports_calls=True,
    )


def test_output_that_is_no_text_is_kept_as_json() -> None:
    assert to_invocation({"output": {"ort": "Köln"}}, user="").text == '{"ort": "Köln"}'
    called = {"output": None, "tool_calls": [{"name": "t", "arguments": {}}]}
    assert to_invocation(called, user="").response == ()
    assert to_invocation({"output": "", "tool_calls": []}, user="").response == ()


def test_messages_count_from_the_last_user_message_on() -> None:
    read = to_invocation({"messages": CHAT}, user="Thanks")
    assert (read.user, read.text, read.tool_calls) == ("Thanks", "It is on its way.", ())
    assert to_invocation(CHAT[2:6], user="Where?").tool_calls == CALLS


def test_stated_usage_completes_what_the_messages_add_up_to() -> None:
    message = {"role": "assistant", "content": "x", "usage": {"prompt_tokens": 5, "completion_tokens": 1}}
    read = to_invocation({"messages": [message, message], "cost_usd": 0.5}, user="")
    assert read.usage == Usage(10, 2, 0.5)
    assert to_invocation({"messages": [message], "usage": {"input_tokens": 7}}, user="").usage == Usage(7, 1)


def test_lone_surrogates_are_replaced() -> None:
    assert to_invocation({"output": "a\ud800"}, user="").text == "a\ufffd"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "an answer must be text or an object"),
        (3, "an answer must be text or an object"),
        ({}, 'no "output" or "messages"'),
        ({"tool_call": []}, "unknown key 'tool_call', did you mean 'tool_calls'?"),
        ({"output": "x", "tool_call": []}, "unknown key 'tool_call', did you mean 'tool_calls'?"),
        ({"output": "x", "toolCalls": []}, "unknown key 'toolCalls', did you mean 'tool_calls'?"),
        ({"output": "x", "Tool-Calls": []}, "unknown key 'Tool-Calls', did you mean 'tool_calls'?"),
        ({"output": "x", "costUsd": 1}, "unknown key 'costUsd', did you mean 'cost_usd'?"),
        ({"output": "x", "messages": []}, "an answer has either"),
        ({"output": "x", "tool_calls": {}}, "tool_calls must be a list"),
        ({"output": "x", "cost_usd": "much"}, "cost_usd must be a number"),
        ({"output": "x", "usage": 3}, "usage must be an object"),
        ({"messages": "x"}, "messages must be a list"),
        ({"messages": []}, "there is no message"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "no message follows the user's"),
        ([], "there is no message"),
        ({"output": None}, "no output and no tool call"),
        ({"output": None, "tool_calls": []}, "no output and no tool call"),
        ([1], "message 0 must be an object"),
    ],
)
def test_malformed(answer: Any, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        to_invocation(answer, user="")
    assert str(caught.value).startswith(message)


def test_nesting_is_bounded() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(FormatError, match="nested more than"):
        to_invocation({"output": deep}, user="")


@settings(deadline=None)
@given(SCRAPS)
def test_anything_is_an_invocation_or_a_format_error(value: Any) -> None:
    for answer in (value, {"output": "x", "tool_calls": value}, {"messages": value}, {"output": value, "usage": value}):
        try:
            assert isinstance(to_invocation(answer, user="u"), Invocation)
        except FormatError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("Hello.", False),
        ({"output": "Hello."}, False),
        ({"output": {"a": 1}, "usage": {"input_tokens": 1}}, False),
        ({"output": "Hello.", "tool_calls": []}, True),
        ({"output": "Hello.", "tool_calls": None}, True),
        ({"messages": [{"role": "assistant", "content": "Hello."}]}, True),
        ([{"role": "assistant", "content": "Hello."}], True),
    ],
)
def test_which_answers_show_that_calls_are_reported(answer: Any, told: bool) -> None:
    assert to_invocation(answer, user="hi").shows_calls is told


# --- answers in a wrapping ------------------------------------------------------------------------


def test_an_answer_object_in_a_text_is_read_as_one() -> None:
    """Or a forbidden call in it would be words."""
    found = to_invocation('{"output": "hi", "tool_calls": [{"name": "delete", "arguments": {}}]}', user="u")
    assert (found.text, [call.name for call in found.tool_calls], found.reports_calls) == ("hi", ["delete"], True)


@pytest.mark.parametrize(
    "text", ['{"output": "hi"}', '{"tool_calls": "none"}', '{"output": 1, "tool_calls": [], "total": 2}', "{", "[1]"]
)
def test_any_other_json_is_what_the_agent_said(text: str) -> None:
    assert to_invocation(text, user="u").text == text


def test_events_of_adk_are_read_whoever_returns_them() -> None:
    called = {
        "author": "a",
        "content": {"parts": [{"text": None, "function_call": {"name": "find", "args": {"id": 1}}}]},
    }
    told = {"author": "a", "content": {"parts": [{"text": "Here.", "function_call": None}]}}
    found = to_invocation([called, told], user="u")
    assert (found.text, [(call.name, call.args) for call in found.tool_calls]) == ("Here.", [("find", {"id": 1})])


def test_a_result_of_a_tool_begins_no_turn() -> None:
    """In Anthropic's history it is a message of the user; the calls before it belong to the same turn."""
    history = [
        {"role": "user", "content": "Delete it."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "delete", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "gone"}]},
        {"role": "assistant", "content": "Done."},
    ]
    read = to_invocation({"messages": history}, user="")
    assert (read.text, [(call.name, call.result) for call in read.tool_calls]) == ("Done.", [("delete", "gone")])
