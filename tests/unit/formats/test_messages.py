"""Messages and items of OpenAI, and LangChain's spelling, as one invocation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.formats import answers
from gate.formats.endings import FILTER, LENGTH, cut_off_by, is_cut_off
from gate.formats.messages import (
    FormatError,
    after_last_question,
    attached,
    to_call,
    to_invocation,
    to_usage,
    usage_of,
    with_attached,
)
from gate.formats.reading import Ignored, carried, unread, with_read_marks
from gate.model import Invocation, Part, ToolCall, Usage
from gate.system.prices import turn_cost
from tests.patience import steps

CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Where is A1?"},
    {"role": "assistant", "content": "Let me look."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"id": "A1"}'}},
            {"id": "2", "type": "function", "function": {"name": "log", "arguments": ""}},
        ],
    },
    {"role": "tool", "tool_call_id": "2", "content": "logged"},
    {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "on its way"}]},
    {"role": "user", "content": "Thanks"},
    {"role": "assistant", "content": "It is on its way."},
]
CALLS = (
    ToolCall("find", {"id": "A1"}, "1", "on its way"),
    ToolCall("log", {}, "2", "logged"),
)


def test_chat_completions() -> None:
    assert to_invocation(CHAT) == Invocation(
        user="Where is A1?",
        response=(Part("It is on its way."),),
        tool_calls=CALLS,
        intermediate=(Part("Let me look."),),
        reports_calls=True,
    )


def test_given_user_text_wins() -> None:
    assert to_invocation(CHAT, user="asked").user == "asked"


def test_responses_items() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "Where is A1?"}]},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "id": "fc_9", "call_id": "1", "name": "find", "arguments": '{"id": "A1"}'},
        {"type": "function_call", "id": "fc_8", "call_id": "2", "name": "log", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "2", "output": "logged"},
        {"type": "function_call_output", "call_id": "1", "output": "on its way"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is on its way."}]},
    ]
    read = to_invocation(items)
    assert read.tool_calls == (*CALLS, ToolCall("web_search", None, "ws_1"))
    assert (read.user, read.text) == ("Where is A1?", "It is on its way.")


def test_langchain_messages() -> None:
    usage = {"input_tokens": 5, "output_tokens": 2}
    calls = [{"name": "find", "args": {"id": "A1"}, "id": "1"}]
    messages = [
        {"type": "human", "content": "Where is A1?"},
        {"type": "ai", "content": "", "tool_calls": calls, "usage_metadata": usage},
        {"type": "tool", "content": "no such order", "tool_call_id": "1", "status": "error"},
        {"type": "ai", "content": "Sorry.", "usage_metadata": {"input_tokens": 5, "output_tokens": 3}},
    ]
    assert to_invocation(messages) == Invocation(
        user="Where is A1?",
        response=(Part("Sorry."),),
        tool_calls=(ToolCall("find", {"id": "A1"}, "1", "no such order", "no such order"),),
        usage=Usage(10, 5),
        reports_calls=True,
    )


def test_results_without_ids_join_by_name_else_in_order() -> None:
    call = {"role": "assistant", "tool_calls": [{"function": {"name": n, "arguments": "{}"}} for n in ("a", "b", "a")]}
    results = [
        {"role": "tool", "name": "b", "content": "B"},
        {"role": "tool", "content": "A1"},
        {"role": "tool", "tool_call_id": "x", "content": "A2"},
        {"role": "tool", "content": "belongs to nothing"},
    ]
    assert [c.result for c in to_invocation([call, *results]).tool_calls] == ["A1", "B", "A2"]


def test_a_result_with_a_foreign_id_is_not_joined_to_a_call_with_another() -> None:
    call = {"role": "assistant", "tool_calls": [{"id": "1", "name": "a"}]}
    read = to_invocation([call, {"role": "tool", "tool_call_id": "2", "content": "x"}])
    assert read.tool_calls == (ToolCall("a", None, "1"),)


@pytest.mark.parametrize(
    ("arguments", "args"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        (None, None),
        ("", {}),
        ('{"a": ', '{"a": '),
        ('{"a": NaN}', '{"a": NaN}'),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ("[" * 500 + "]" * 500, "[" * 500 + "]" * 500),
    ],
)
def test_arguments(arguments: Any, args: Any) -> None:
    assert to_call({"function": {"name": "f", "arguments": arguments}}).args == args


def test_absent_arguments_are_not_empty_arguments() -> None:
    assert to_call({"name": "f"}) != to_call({"name": "f", "arguments": {}})


@pytest.mark.parametrize("key", ["kwargs", "parameters", "params", "tool_input", "tool_args", "inputs"])
def test_arguments_under_another_name_are_not_dropped_in_silence(key: str) -> None:
    with pytest.raises(FormatError, match=f"the call of f has '{key}': name its arguments 'arguments'"):
        to_call({"function": {"name": "f", key: {"a": 1}}})
    assert to_call({"name": "f", "args": {"a": 1}, key: "more"}).args == {"a": 1}
    for empty in (None, {}, [], ""):
        assert to_call({"name": "f", "arguments": None, key: empty}).args is None


@pytest.mark.parametrize(
    "answer",
    [
        {"output": "part", "finish_reason": "length"},
        {"messages": [{"role": "assistant", "content": "part"}], "stop_reason": "max_tokens"},
        {"messages": [{"role": "assistant", "content": "part", "stop_reason": "max_tokens", "usage": {}}]},
        {"messages": [{"type": "ai", "content": "part", "response_metadata": {"finish_reason": "length"}}]},
        [{"author": "agent", "content": {"parts": [{"text": "part"}]}, "finish_reason": "MAX_TOKENS"}],
        {"output": "part", "choices": [{"finish_reason": "length"}], "usage": {"input_tokens": 1}},
        {"output": "part", "finish_reason": ["tool_calls", "length"]},
        {"messages": [{"role": "assistant", "content": "part", "type": "message", "status": "incomplete"}]},
        {"output": "part", "response_metadata": {"incomplete_details": {"reason": "max_tokens"}}},
    ],
)
def test_an_answer_that_was_cut_off_says_so(answer: Any) -> None:
    usage = answers.to_invocation(answer, user="q").usage
    assert usage is not None and usage.cut_off
    text = json.dumps(answer)
    for reason in ("length", "max_tokens", "MAX_TOKENS", "incomplete"):
        text = text.replace(f'"{reason}"', '"stop"')
    usage = answers.to_invocation(json.loads(text), user="q").usage
    assert usage is None or not usage.cut_off


@pytest.mark.parametrize(
    ("reason", "cut_off"),
    [
        ("length", LENGTH),
        ("MAX_TOKENS", LENGTH),
        ("FinishReason.MAX_TOKENS", LENGTH),
        ("model_context_window_exceeded", LENGTH),
        ("content-filter", FILTER),
        ("SAFETY", FILTER),
        ("guardrail_intervened", FILTER),
        *[(whole, "") for whole in ("stop", "STOP", "end_turn", "tool_calls", "COMPLETE", "eos_token", "", None, 3)],
    ],
)
def test_one_table_says_which_endings_cut_an_answer_off(reason: Any, cut_off: str) -> None:
    assert cut_off_by(reason) == cut_off


def test_one_answer_that_was_cut_off_is_enough() -> None:
    cut, whole = Usage(1, 2, model="m", cut_off=True), Usage(3, 4, model="m")
    assert usage_of([cut, whole]) == Usage(4, 6, model="m", cut_off=True)
    assert answers.overlaid(cut, whole) == Usage(3, 4, model="m", cut_off=True)


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
PDF = {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk=", "filename": "bill.pdf"}}


@pytest.mark.parametrize(
    ("part", "found"),
    [
        (IMAGE, {"inline_data": {"mime_type": "image/png", "data": "aGk="}}),
        (PDF, {"inline_data": {"mime_type": "application/pdf", "data": "aGk=", "display_name": "bill.pdf"}}),
        (
            {"type": "input_image", "image_url": "https://example.com/a.png"},
            {"file_data": {"file_uri": "https://example.com/a.png", "mime_type": "image/png"}},
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
            {"inline_data": {"mime_type": "audio/wav", "data": "aGk="}},
        ),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            {"inline_data": {"mime_type": "image/png", "data": "aGk="}},
        ),
        ({"type": "image", "source": {"type": "url", "url": "https://example.com/a"}},
         {"file_data": {"file_uri": "https://example.com/a", "mime_type": "image/*"}}),
    ],
)  # fmt: skip
def test_files_in_a_question(part: Any, found: Any) -> None:
    gave_back = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}]}
    asked = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, part]}
    assert attached([gave_back, asked]) == (found,)
    if part in (IMAGE, PDF):
        assert with_attached("What is it?", [found]) == asked["content"]


def test_refusals_and_legacy_function_calls() -> None:
    read = to_invocation(
        [
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "done"},
            {"role": "assistant", "content": None, "refusal": "I cannot."},
        ]
    )
    assert (read.tool_calls, read.text) == ((ToolCall("f", {}, None, "done"),), "I cannot.")


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ("hello", "messages must be a list, not text"),
        (None, "messages must be a list, not null"),
        ({"role": "user"}, "messages must be a list, not an object"),
        ([1], "message 0 must be an object, not a number"),
        ([{}], "message 0: no role"),
        ([{"role": 7}], "message 0: no role"),
        ([{"role": "boss", "content": ""}], "message 0: unknown role 'boss'"),
        ([{"role": "user", "content": "x"}, {"role": "assistant", "content": 3}], "message 1: content must be text"),
        ([{"role": "assistant", "tool_calls": {}}], "message 0: tool_calls must be a list"),
        ([{"role": "assistant", "tool_calls": [{"function": {}}]}], "message 0: a tool call must have a name"),
        ([{"role": "assistant", "tool_calls": ["x"]}], "message 0: a tool call must be an object"),
        ([{"role": "assistant", "content": "", "usage": {"input_tokens": -1}}], "message 0: input_tokens must be"),
    ],
)
def test_malformed(messages: Any, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        to_invocation(messages)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("value", [-1, True, "3", float("nan"), float("inf"), 10**400])
def test_amounts_that_cannot_be(value: Any) -> None:
    with pytest.raises(FormatError):
        to_usage({"input_tokens": value})
    with pytest.raises(FormatError):
        to_usage(None, cost_usd=value)


def test_usage_spellings() -> None:
    assert to_usage({"prompt_tokens": 3, "completion_tokens": 4}, cost_usd=0.5) == Usage(3, 4, 0.5)
    assert to_usage({"input_tokens": 3, "total_tokens": 3, "model": "m"}) == Usage(3, model="m")
    assert to_usage({}) is None


def test_input_beside_the_cache_of_anthropic_counts_whole() -> None:
    cached = {"cache_creation_input_tokens": 100, "cache_read_input_tokens": 1_000}
    assert to_usage({"input_tokens": 3, **cached, "output_tokens": 4}) == Usage(1_103, 4)
    assert to_usage({"prompt_tokens": 1_103, **cached}) == Usage(1_103), "other gateways count it in"
    assert to_usage(dict.fromkeys(cached, None) | {"input_tokens": 3}) == Usage(3)
    assert to_usage(None) is None


class Id(str):
    """Comparing it is a step that is counted."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def many_open_calls(n: int) -> list[dict[str, Any]]:
    """So many calls at once, answered from the last to the first."""
    calls = [{"id": Id(i), "name": "f"} for i in range(n)]
    results = [{"role": "tool", "tool_call_id": Id(n - 1 - i), "content": str(i)} for i in range(n)]
    return [{"role": "assistant", "tool_calls": calls}, *results]


def test_many_open_calls_are_joined_in_linear_time() -> None:
    few, many = many_open_calls(500), many_open_calls(2000)
    assert steps(lambda: to_invocation(many)) < 4.5 * steps(lambda: to_invocation(few))
    calls = to_invocation(many).tool_calls
    assert (calls[0].result, calls[-1].result) == ("1999", "0")


WORDS = st.sampled_from(
    [
        "role",
        "user",
        "assistant",
        "tool",
        "type",
        "content",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
        "call_id",
        "tool_call_id",
        "text",
        "function_call",
        "function_call_output",
        "output",
        "usage",
        "message",
        "{}",
    ]
)
SCRAPS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=25,
)


@settings(deadline=None)
@given(SCRAPS)
def test_anything_is_an_invocation_or_a_format_error(value: Any) -> None:
    try:
        read = to_invocation(value)
    except FormatError as error:
        assert "\n" not in str(error)
        return
    assert all(isinstance(call.name, str) and call.name for call in read.tool_calls)
    assert isinstance(read.text, str)


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(min_size=1), st.dictionaries(st.text(), st.integers())), max_size=5))
def test_calls_survive_the_trip_through_json_arguments(calls: list[tuple[str, dict[str, int]]]) -> None:
    raw = [{"function": {"name": name, "arguments": json.dumps(args)}} for name, args in calls]
    read = to_invocation([{"role": "assistant", "content": "x", "tool_calls": raw}])
    assert [(call.name, call.args) for call in read.tool_calls] == calls


@pytest.mark.parametrize("count", [2**53 + 2, 10**30, 1e300])
def test_a_count_beyond_any_is_refused(count: float) -> None:
    with pytest.raises(FormatError, match=r"input_tokens .* is too large"):
        to_usage({"input_tokens": count})


def test_a_sum_of_counts_beyond_any_is_refused() -> None:
    said = {"role": "assistant", "content": "hi", "usage": {"input_tokens": 2**53}}
    assert to_invocation([said]).usage == Usage(2**53)
    with pytest.raises(FormatError, match="the sum of input_tokens"):
        to_invocation([said, said])


@pytest.mark.parametrize("count", [2**53 + 2, 1e300, -1, True, "7", float("nan")])
@pytest.mark.parametrize("key", ["prompt_tokens", "output_tokens", "model_calls"])
def test_no_count_beyond_what_readers_agree_on(key: str, count: Any) -> None:
    with pytest.raises(FormatError):
        to_usage({key: count})
    assert to_usage({key: 2**53}) is not None


USED = {"input_tokens": 3, "output_tokens": 4}


@pytest.mark.parametrize(
    ("further", "usage"),
    [
        ({"role": "assistant", "content": "more"}, None),
        ({"role": "assistant", "content": "more", "usage": {"input_tokens": 3}}, Usage(6)),
        ({"role": "assistant", "content": "more", "usage": USED}, Usage(6, 8)),
        ({"type": "ai", "content": "more", "response_metadata": {"model_name": "m"}}, None),
        ({"type": "ai", "content": "more", "response_metadata": {"finish_reason": "stop"}}, None),
        ({"type": "ai", "content": "handing over", "response_metadata": {}}, Usage(3, 4)),
        ({"type": "ai", "content": "back", "response_metadata": {"__is_handoff_back": True}}, Usage(3, 4)),
        ({"role": "tool", "content": "{}", "tool_call_id": "1"}, Usage(3, 4)),
        ({"role": "user", "content": "go on"}, Usage(3, 4)),
    ],
)
def test_a_message_of_a_model_without_usage_leaves_the_total_unknown(
    further: dict[str, Any], usage: Usage | None
) -> None:
    """A graph writes some messages itself, and no model is asked for them."""
    told = {"role": "assistant", "content": "hi", "usage": USED}
    assert to_invocation([told, further]).usage == usage
    assert to_invocation([further, told]).usage == usage


def test_langchain_names_its_models_and_each_is_priced_by_itself() -> None:
    def said(model: str) -> dict[str, Any]:
        return {
            "type": "ai",
            "content": "hello",
            "usage_metadata": {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100},
            "response_metadata": {"model_name": model},
        }

    one = to_invocation([said("gpt-4o"), said("gpt-4o")]).usage
    assert one == Usage(2000, 200, model="gpt-4o")
    two = to_invocation([said("gpt-4o"), said("gpt-4o-mini")]).usage
    assert two is not None
    assert two.model is None
    parts = [turn_cost(said_usage(model)) for model in ("gpt-4o", "gpt-4o-mini")]
    assert two.cost_usd == pytest.approx(sum(part or 0.0 for part in parts)) != 0.0
    unknown = to_invocation([said("gpt-4o"), said("nobody-knows-this")]).usage
    assert unknown is not None
    assert unknown.cost_usd is None


def said_usage(model: str) -> Usage:
    return Usage(1000, 100, model=model)


def test_calls_in_the_parts_of_a_message_are_calls() -> None:
    """As Anthropic and the AI SDK have them."""
    spoken = [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": [{"type": "text", "text": "One moment."}, USE]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "shipped"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Shipped."}]},
    ]
    found = to_invocation(spoken)
    assert (found.user, found.text) == ("Where?", "Shipped.")
    assert [(call.name, call.args, call.result) for call in found.tool_calls] == [("find", {"id": 1}, "shipped")]


def test_calls_and_results_of_the_ai_sdk() -> None:
    asked = {"type": "tool-call", "toolCallId": "c1", "toolName": "find", "input": {"id": 1}}
    gave = {"type": "tool-result", "toolCallId": "c1", "toolName": "find", "output": "shipped"}
    found = to_invocation([{"role": "assistant", "content": [asked]}, {"role": "tool", "content": [gave]}])
    assert [(call.name, call.args, call.result) for call in found.tool_calls] == [("find", {"id": 1}, "shipped")]


def test_null_is_absent() -> None:
    call = {"id": "c1", "name": "find", "arguments": None, "args": {"id": 1}, "function": None}
    message = {
        "role": None,
        "type": "ai",
        "content": "So.",
        "tool_calls": [call],
        "usage": None,
        "usage_metadata": None,
    }
    found = to_invocation([message])
    assert (found.text, [(one.name, one.args) for one in found.tool_calls]) == ("So.", [("find", {"id": 1})])


USE = {"type": "tool_use", "id": "c1", "name": "find", "input": {"id": 1}}


def test_messages_that_langchain_serializes_are_read_by_what_is_in_them() -> None:
    called = {"content": "", "tool_calls": [{"name": "find", "args": {"n": 1}, "id": "c", "type": "tool_call"}]}
    found = to_invocation(
        [
            {"lc": 1, "type": "constructor", "id": ["schema", "HumanMessage"], "kwargs": {"content": "Hi"}},
            {"lc": 1, "type": "constructor", "id": ["schema", "AIMessage"], "kwargs": called},
            {"type": "tool", "data": {"content": "42", "tool_call_id": "c", "type": "tool"}},
            {"type": "ai", "data": {"content": "It is 42.", "type": "ai"}},
        ]
    )
    assert (found.user, found.text) == ("Hi", "It is 42.")
    assert [(call.name, call.args, call.result) for call in found.tool_calls] == [("find", {"n": 1}, "42")]


@pytest.mark.parametrize(
    "message",
    [
        {"type": "ai", "content": [USE], "tool_calls": [{"id": "c1", "name": "find", "args": {"id": 1}}]},
        {"role": "assistant", "content": [USE], "tool_calls": []},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c1", "function": {"name": "find", "arguments": '{"id": 1}'}}],
            "function_call": {"name": "find", "arguments": '{"id": 1}'},
        },
    ],
)
def test_a_call_that_a_message_has_in_two_places_is_one_call(message: dict[str, Any]) -> None:
    """As LangChain repeats Anthropic's, and some servers OpenAI's."""
    found = to_invocation([message, {"type": "tool", "tool_call_id": "c1", "content": "shipped"}])
    assert [(call.name, call.args, call.result) for call in found.tool_calls] == [("find", {"id": 1}, "shipped")]


def test_calls_of_one_message_with_the_same_id_are_several() -> None:
    call = {"id": "find", "function": {"name": "find", "arguments": "{}"}}
    assert len(to_invocation([{"role": "assistant", "tool_calls": [call, call]}]).tool_calls) == 2


def test_results_of_tools_that_the_provider_ran() -> None:
    """Anthropic has them in the assistant's own message."""
    pages = [{"type": "web_search_result", "url": "u"}]
    parts = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": pages},
        {"type": "mcp_tool_use", "id": "m1", "name": "pay", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "m1", "is_error": True, "content": [{"type": "text", "text": "no"}]},
    ]
    found = to_invocation([{"role": "assistant", "content": parts}])
    assert [(call.name, call.result, call.error) for call in found.tool_calls] == [
        ("web_search", pages, None),
        ("pay", "no", "no"),
    ]


def test_calls_in_bedrocks_form() -> None:
    """Strands keeps its messages in it."""
    spoken = [
        {"role": "user", "content": [{"text": "Delete it."}]},
        {
            "role": "assistant",
            "content": [{"text": "So."}, {"toolUse": {"toolUseId": "1", "name": "wipe", "input": {}}}],
        },
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "1", "status": "error", "content": [{"text": "locked"}]}}],
        },
        {"role": "assistant", "content": [{"text": "I could not."}]},
    ]
    found = to_invocation(after_last_question(spoken))
    assert (found.text, [(call.name, call.args, call.error) for call in found.tool_calls]) == (
        "I could not.",
        [("wipe", {}, "locked")],
    )


def test_keys_in_bedrocks_form_that_nobody_reads_are_listed() -> None:
    use = {"toolUse": {"toolUseId": "1", "name": "wipe", "input": {}, "odd": "x"}}
    lost = {"toolResult": {"toolUseId": "2", "content": "of an unknown call"}}
    spoken = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [lost]}]
    marked = with_read_marks(spoken, Ignored({}))
    assert [call.name for call in to_invocation(marked).tool_calls] == ["wipe"]
    assert [key.path for key in unread(marked, Ignored({}))] == ["content.toolUse.odd", "content.toolResult.content"]


def test_parts_of_a_message_without_the_message() -> None:
    parts = [{"type": "text", "text": "One moment."}, USE, {"type": "tool_result", "tool_use_id": "c1", "content": "x"}]
    found = to_invocation([*parts, {"type": "text", "text": "Done."}])
    assert (found.text, [(call.name, call.args, call.result) for call in found.tool_calls]) == (
        "Done.",
        [("find", {"id": 1}, "x")],
    )


@pytest.mark.parametrize("content", [None, "", " ", {"text": "Now."}, [], [{"type": "text", "text": "Now."}]])
def test_any_message_of_the_user_but_results_begins_a_turn(content: Any) -> None:
    """Some applications keep its text beside the content, in ``parts``."""
    before = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    after = {"role": "assistant", "content": "Done."}
    assert after_last_question([*before, {"role": "user", "content": content, "parts": ["Now."]}, after]) == [after]


@pytest.mark.parametrize("kind", ["invalid_tool_call", "web_tool_call"])
def test_a_part_of_another_type_is_no_call(kind: str) -> None:
    part = {"type": kind, "id": "c1", "name": None, "args": "{"}
    found = to_invocation([{"role": "assistant", "content": [part, {"type": "text", "text": "Done."}]}])
    assert (found.text, found.tool_calls) == ("Done.", ())


@pytest.mark.parametrize(
    ("part", "result"),
    [
        ({"type": "code_execution_tool_result", "tool_use_id": "c1", "content": [1, 2]}, [1, 2]),
        ({"type": "server_tool_result", "tool_call_id": "c1", "output": {"rows": 2}}, {"rows": 2}),
        (
            {"type": "tool-result", "toolCallId": "c1", "output": {"type": "json", "value": 1}},
            {"type": "json", "value": 1},
        ),
        ({"type": "tool-result", "toolCallId": "c1", "result": "x"}, "x"),
    ],
)
def test_forms_of_a_result_in_the_message_of_its_call(part: dict[str, Any], result: Any) -> None:
    use = {"type": "server_tool_call", "id": "c1", "name": "run", "args": {}}
    (call,) = to_invocation([{"role": "assistant", "content": [use, part]}]).tool_calls
    assert (call.name, call.result) == ("run", result)


REMINDER = {"type": "text", "text": "<reminder>Be brief.</reminder>"}


@pytest.mark.parametrize("beside", [[], [REMINDER]])
def test_a_result_with_a_text_beside_it_begins_no_turn(beside: list[Any]) -> None:
    use = {"type": "tool_use", "id": "c1", "name": "wipe", "input": {}}
    given = {"type": "tool_result", "tool_use_id": "c1", "content": "done"}
    turn = [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [given, *beside]},
        {"role": "assistant", "content": "Done."},
    ]
    question = {"role": "user", "content": "Now?"}
    assert after_last_question([question, *turn]) == turn
    (call,) = to_invocation(turn).tool_calls
    assert (call.name, call.result) == ("wipe", "done")


INVOCATION = {"toolCallId": "c1", "toolName": "find", "args": {"q": 1}, "state": "result", "result": "x"}
PART = {"toolCallId": "c1", "input": {"q": 1}, "state": "output-available", "output": "x"}
SAID = {"type": "text", "text": "Done."}


@pytest.mark.parametrize(
    "message",
    [
        {"parts": [{"type": "step-start"}, {**PART, "type": "tool-find"}, SAID]},
        {"content": [{**PART, "type": "dynamic-tool", "toolName": "find"}, SAID]},
        {"content": "Done.", "toolInvocations": [INVOCATION]},
        {
            "content": "Done.",
            "parts": [{"type": "tool-invocation", "toolInvocation": INVOCATION}, SAID],
            "toolInvocations": [INVOCATION],
        },
    ],
)
def test_calls_in_messages_of_the_ai_sdks_interface(message: dict[str, Any]) -> None:
    found = to_invocation([{"role": "assistant", **message}])
    calls = [(call.name, call.args, call.result, call.error) for call in found.tool_calls]
    assert (found.text, calls) == ("Done.", [("find", {"q": 1}, "x", None)])


def test_a_call_that_failed_in_a_message_of_the_ai_sdks_interface() -> None:
    part = {"type": "tool-find", "toolCallId": "c1", "input": {}, "state": "output-error", "errorText": "down"}
    (call,) = to_invocation([{"role": "assistant", "parts": [part]}]).tool_calls
    assert (call.name, call.error) == ("find", "down")


@pytest.mark.parametrize("question", ["Wipe it", [{"type": "text", "text": "Wipe it"}]])
@pytest.mark.parametrize("aside", ["Observation: done", "Critique: be brief", ""])
def test_what_an_application_says_in_the_users_name_begins_no_turn(question: Any, aside: str) -> None:
    before = [{"role": "user", "content": "Wipe it"}, {"role": "assistant", "content": "What?"}]
    turn = [
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "wipe", "arguments": "{}"}}]},
        {"role": "user", "content": aside},
        {"role": "assistant", "content": "Done."},
    ]
    told = [*before, {"role": "user", "content": question}, *turn]
    assert after_last_question(told, " Wipe it ") == turn
    assert after_last_question(told, "something else") == turn[2:]
    found = answers.to_invocation({"messages": told}, user="Wipe it")
    assert (found.text, [call.name for call in found.tool_calls], found.user) == ("Done.", ["wipe"], "Wipe it")


@pytest.mark.parametrize(
    "answer",
    [
        {"finish_reason": "length"},
        {"finishReason": "MAX_TOKENS"},
        {"stop_reason": "max_tokens"},
        {"stopReason": "max_tokens"},
        {"done_reason": "length"},
        {"response_metadata": {"finish_reason": "length"}},
        {"choices": [{"finish_reason": "length"}]},
        {"candidates": [{"finishReason": "MAX_TOKENS"}]},
        {"incomplete_details": {"reason": "max_output_tokens"}},
        {"type": "message", "status": "incomplete"},
        {"object": "response", "status": "incomplete"},
    ],
)
def test_an_answer_is_cut_off_wherever_it_tells_its_end(answer: dict[str, Any]) -> None:
    assert is_cut_off(answer)
    assert is_cut_off({"role": "assistant", "content": "so it", **answer})


def test_everything_inside_a_value_that_is_kept_counts_as_read() -> None:
    ignored = Ignored({})
    row = with_read_marks({"kept": [{"a": {"b": 1}}, [{"c": 2}]], "left": {"a": 1}}, ignored)
    assert carried(row["kept"]) == row["kept"]
    assert [one.path for one in unread(row, ignored)] == ["left"]
