"""Streams of every dialect that is read: what they add up to, their errors, and that half of one is no answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.formats.messages import FormatError
from gate.formats.streams import error_ending, error_in, events_of, so_far, to_invocation
from gate.model import Invocation, Usage

CALL = ("search", {"q": "cats"}, "3 found")


def sse(*events: Any, names: bool = False) -> str:
    lines = []
    for event in events:
        if names:
            lines.append(f"event: {event['type']}")
        lines += [f"data: {event if isinstance(event, str) else json.dumps(event)}", ""]
    return "\n".join(lines)


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }


def piece(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": more.pop("name")} if "name" in more else {})}
    return chunk({"tool_calls": [{"index": index, "function": function, **more}]})


CHAT = sse(
    chunk({"role": "assistant", "content": ""}, model="gpt-x"),
    piece(0, "", name="search", id="c1"),
    piece(0, '{"q": '),
    piece(0, '"cats"}'),
    chunk({"content": "It "}),
    chunk({"content": "is done."}),
    chunk({}, "stop"),
    {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
    "[DONE]",
)
RESPONSES = sse(
    {"type": "response.created", "response": {"id": "r"}},
    {"type": "response.output_text.delta", "delta": "It"},
    {
        "type": "response.completed",
        "response": {
            "model": "gpt-x",
            "output": [
                {"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"q": "cats"}'},
                {"type": "function_call_output", "call_id": "c1", "output": "3 found"},
                {"type": "message", "content": [{"type": "output_text", "text": "It is done."}]},
            ],
            "usage": {"input_tokens": 7, "output_tokens": 3},
        },
    },
    names=True,
)
ANTHROPIC = sse(
    {"type": "message_start", "message": {"model": "claude-x", "usage": {"input_tokens": 7, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c1", "name": "search"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"q": "ca'}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": 'ts"}'}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "It is "}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "done."}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
    names=True,
)
AGUI = sse(
    {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Let me look."},
    {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "search"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"q": '},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '"cats"}'},
    {"type": "TOOL_CALL_END", "toolCallId": "c1"},
    {"type": "TOOL_CALL_RESULT", "toolCallId": "c1", "messageId": "m2", "content": "3 found"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m3", "delta": "It is "},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m3", "delta": "done."},
    {
        "type": "RUN_FINISHED",
        "usage": [{"model": "m", "inputTokens": 5, "outputTokens": 2}, {"inputTokens": 2, "outputTokens": 1}],
    },
)
AGUI_SNAPSHOT = sse(
    {"type": "RUN_STARTED"},
    {
        "type": "MESSAGES_SNAPSHOT",
        "messages": [
            {"role": "user", "content": "earlier"},
            {"role": "assistant", "content": "before"},
            {"role": "user", "content": "now"},
            {
                "role": "assistant",
                "toolCalls": [{"id": "c1", "function": {"name": "search", "arguments": '{"q": "cats"}'}}],
            },
            {"role": "tool", "toolCallId": "c1", "content": "3 found"},
            {"role": "assistant", "content": "It is done."},
        ],
    },
    {"type": "RUN_FINISHED"},
)
UI = sse(
    {"type": "start"},
    {"type": "text-delta", "id": "0", "delta": "Let me look."},
    {"type": "tool-input-available", "toolCallId": "c1", "toolName": "search", "input": {"q": "cats"}},
    {"type": "tool-output-available", "toolCallId": "c1", "output": "3 found"},
    {"type": "text-delta", "id": "1", "delta": "It is "},
    {"type": "text-delta", "id": "1", "delta": "done."},
    {"type": "finish"},
    "[DONE]",
)
CLAUDE = "\n".join(
    json.dumps(line)
    for line in (
        {"type": "system", "subtype": "init"},
        {
            "type": "assistant",
            "message": {"content": [{"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "cats"}}]},
        },
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "c1", "content": "3 found"}]}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "It is done."}]}},
        {
            "type": "result",
            "result": "It is done.",
            "total_cost_usd": 0.01,
            "usage": {"input_tokens": 7, "output_tokens": 3},
        },
    )
)
DIALECTS = {
    "chat": CHAT,
    "responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "agui": AGUI,
    "agui snapshot": AGUI_SNAPSHOT,
    "ui messages": UI,
    "claude": CLAUDE,
}
ENDS = {
    "chat": '"finish_reason": "stop"',
    "responses": "completed",
    "anthropic": "message_stop",
    "claude": '"result"',
    "ui messages": '"finish"',
}
SHOW_RESULTS = {"responses", "agui", "agui snapshot", "ui messages", "claude"}
COUNTED = {"chat", "responses", "anthropic", "claude", "agui"}


def text_of(invocation: Invocation) -> str:
    return "".join(part.text for part in invocation.response)


@pytest.mark.parametrize("name", DIALECTS)
def test_what_a_stream_adds_up_to(name: str) -> None:
    found = to_invocation(DIALECTS[name], user="now")
    assert text_of(found) == "It is done."
    (call,) = found.tool_calls
    assert (call.name, call.args) == CALL[:2]
    assert call.result == (CALL[2] if name in SHOW_RESULTS else None)
    assert found.reports_calls
    if name in COUNTED:
        assert found.usage is not None
        assert (found.usage.input_tokens, found.usage.output_tokens) == (7, 3)


@pytest.mark.parametrize("name", DIALECTS)
def test_half_a_stream_is_no_answer(name: str) -> None:
    """Cut anywhere before the event that ends it: never an answer that a whole one could be taken for."""
    lines = DIALECTS[name].splitlines()
    end = next(n for n, line in enumerate(lines) if ENDS.get(name, '"RUN_FINISHED"') in line)
    for cut in range(1, end):
        with pytest.raises(FormatError):
            to_invocation("\n".join(lines[:cut]), user="now")


@given(st.sampled_from(sorted(DIALECTS)), st.sampled_from(["\n", "\r\n"]))
def test_line_ends_and_remarks_say_nothing(name: str, end: str) -> None:
    text = DIALECTS[name]
    if name != "claude":
        text = ": ping\n\n" + text
    assert to_invocation(text.replace("\n", end), user="now") == to_invocation(DIALECTS[name], user="now")


@pytest.mark.parametrize(
    ("stream", "error"),
    [
        (sse({"type": "RUN_STARTED"}, {"type": "RUN_ERROR", "message": "no key"}), "no key"),
        (sse({"type": "error", "error": {"message": "overloaded"}}, names=True), {"message": "overloaded"}),
        (sse({"type": "response.failed", "response": {"error": {"code": "x"}}}), {"code": "x"}),
        (sse({"type": "error", "errorText": "boom"}), "boom"),
        (sse(chunk({"content": "a"}), {"error": {"message": "m"}}), {"message": "m"}),
        (sse(chunk({"content": "a"}), chunk({}, "error"), "[DONE]"), "the choice ended in an error"),
        (sse({"choices": [{"delta": {"content": "a"}, "error": {"code": 502}}]}), {"code": 502}),
        (sse({"type": "text-delta", "id": "0", "delta": "a"}, {"type": "abort"}, "[DONE]"), {"type": "abort"}),
        (
            sse({"type": "text-delta", "id": "0", "delta": "a"}, {"type": "finish", "finishReason": "error"}),
            {"type": "finish", "finishReason": "error"},
        ),
        (
            sse({"type": "RUN_FINISHED", "outcome": {"type": "interrupt", "interrupts": ["sure?"]}}),
            'nobody answers the run\'s interrupt: ["sure?"]',
        ),
        (sse({"type": "result", "subtype": "error_max_turns", "is_error": False}), "error_max_turns"),
        (
            'event: values\ndata: {"messages": [], "__interrupt__": ["sure?"]}\n\n',
            'the run ended with __interrupt__: ["sure?"]',
        ),
        (sse({"type": "result", "is_error": True}), "an error"),
        (sse(chunk({"content": "a"}), {"object": "error", "message": "no model"}, "[DONE]"), "no model"),
        (sse({"type": "result", "result": "a"}, {"type": "result", "is_error": True, "result": "b"}), "b"),
        (sse({"type": "result", "is_error": True, "result": "a"}, {"type": "result", "result": "b"}), None),
        (sse({"type": "error", "message": "a tool failed"}, chunk({"content": "a"})), None),
        (sse(chunk({"content": "a"}), {"error": {"code": 0, "message": ""}}, "[DONE]"), None),
        (sse(chunk({"content": "a"}), {"error": {"code": 502}}, "[DONE]"), {"code": 502}),
        (sse(chunk({"content": "a"}), {"type": ["error"], "status": {"code": 1}, "output": []}), None),
        ("event: error\ndata: the model is down\n\n", "the model is down"),
        ("data: Your order\n\nevent: failed\n\n", "the event 'failed'"),
        (CHAT, None),
    ],
)
def test_an_error_in_a_stream_is_found(stream: str, error: Any) -> None:
    assert error_in(stream) == error


FAILING = (
    *("error", "Error", "failed", "run_failed", "RUN_ERROR", "response.cancelled", "ThrottlingException", "fatal"),
    *("thread.run.expired", "request-timeout", "crewKickoffFailed", "userAborted", "on_model_error", "RunFailedEvent"),
)
BEGINS_ANOTHER = ("RUN_ERROR", "response.cancelled")


@pytest.mark.parametrize("named", FAILING)
@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_every_dialect_fails_by_an_event_that_says_so(name: str, named: str) -> None:
    """By its name or type, whatever its data are; text that follows means that the agent went on."""
    stream = f"{DIALECTS[name]}\n\n"
    events = [json.dumps({"type": named, "message": "boom"}), json.dumps({"event": named})]
    if name != "claude":  # its events are lines of JSON
        events = [f"event: {named}\ndata: boom", *(f"data: {event}" for event in events)]
    for event in events:
        assert error_in(stream + event), event
        if named not in BEGINS_ANOTHER:
            assert error_in(f"{event}\n\n{stream}") is None, event


@pytest.mark.parametrize(
    "named",
    [
        *("tool_failed", "tool-output-error", "response.mcp_call.failed", "error_free", "terror", "no_error"),
        *("order_cancelled", "payment_failed", "subscription.canceled", "retrieval.failed", "session_expired_notice"),
    ],
)
def test_an_event_of_another_name_is_no_failure(named: str) -> None:
    assert error_in(f"{CHAT}\n\n{sse({'type': named, 'message': 'boom'})}") is None


def test_plain_text_fails_by_an_event_that_says_so_and_leaves_its_data_out() -> None:
    assert error_in("data: Your order\n\nevent: exception\ndata: boom\n\n") == "boom"
    went_on = "data: Your\n\nevent: exception\ndata: boom\n\ndata:  order\n\n"
    assert error_in(went_on) is None
    assert text_of(to_invocation(went_on, user="")) == "Your order"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('Your order\n{"error": "boom"}\n', "boom"),
        ('Your order is{"code": 1, "error": {"message": "boom"}}', {"message": "boom"}),
        ('One {"a": 1}\n{\n "errors": ["boom"]\n}', ["boom"]),
        ('Your order\n{"error": null}', None),
        ('Your order\n```\n{"error": "boom"}\n```', None),
        ('A missing order gives:\n\n{"error": "not found"}', None),
        ('**A missing order:**\n{"error": "not found"}', None),
        ('Your order\nError: {"error": "boom"}', "boom"),
        ('It failed with {"error": "boom"}, then worked', None),
        ('{"error"}' * 1000, None),
    ],
)
def test_a_text_may_end_with_an_error(text: str, error: Any) -> None:
    assert error_ending(text) == error


def test_plain_text_in_events() -> None:
    assert text_of(to_invocation("data: Hel\n\ndata: lo\n\ndata: [DONE]\n\n", user="")) == "Hello"


def test_data_of_several_lines_is_one_event() -> None:
    assert [event.data for event in events_of('event: x\ndata: {"a":\ndata: 1}\n\n')] == [{"a": 1}]


def test_events_of_an_adk_server_and_values_of_a_graph() -> None:
    partial = {"author": "a", "partial": True, "content": {"role": "model", "parts": [{"text": "It "}]}}
    whole = {"author": "a", "content": {"role": "model", "parts": [{"text": "It is done."}]}}
    assert text_of(to_invocation(sse(partial, whole), user="")) == "It is done."
    state = {"messages": [{"type": "human", "content": "now"}, {"type": "ai", "content": "It is done."}]}
    assert text_of(to_invocation(f"event: values\n{sse(state)}", user="now")) == "It is done."


def test_events_of_nobody_are_shown() -> None:
    with pytest.raises(FormatError, match=r"no known dialect.*\"kind\": 1.*http\.response\.events"):
        to_invocation(sse({"kind": 1}), user="", mapping="http.response")


@given(st.text(alphabet='abc{}[]":,\n 01.dt:evn', max_size=200))
def test_garbage_is_an_error_or_an_answer_and_nothing_else(text: str) -> None:
    try:
        to_invocation(text, user="")
    except FormatError:
        return


HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "type", "id"]), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = [
    "choices",
    "delta",
    "message",
    "content_block",
    "index",
    "usage",
    "response",
    "output",
    "toolCallId",
    "messages",
]
KINDS = [
    "response.completed",
    "TOOL_CALL_ARGS",
    "content_block_delta",
    "MESSAGES_SNAPSHOT",
    "assistant",
    "result",
    "finish",
]


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), HOSTILE), max_size=4), st.sampled_from(KINDS))
def test_events_of_the_wrong_shape_raise_nothing_else(events: list[dict[str, Any]], kind: str) -> None:
    try:
        to_invocation(sse(*({"type": kind, **event} for event in events)), user="")
    except FormatError:
        return


def plain(text: str) -> Any:
    return to_invocation(text, user="")


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("letter", ["\u2028", "\u2029", "\x85"])
def test_a_separator_within_a_text_ends_no_line(name: str, letter: str) -> None:
    """Servers in JavaScript send these letters as they are: cut there, the stream would be a text without calls."""
    text = DIALECTS[name].replace('done."', f'do{letter}ne."')
    assert text != DIALECTS[name]
    found = plain(text)
    assert len(found.tool_calls) == 1
    assert text_of(found) == f"It is do{letter}ne."


@pytest.mark.parametrize("name", DIALECTS)
def test_a_stream_cut_anywhere_is_never_an_answer_without_its_call(name: str) -> None:
    whole = DIALECTS[name]
    for cut in range(10, len(whole)):
        try:
            found = plain(whole[:cut])
        except FormatError:
            continue
        assert [call.name for call in found.tool_calls] == [CALL[0]], whole[:cut]


def test_an_event_that_is_broken_hides_no_call() -> None:
    broken = 'data: {"choices": [{"delta": {"tool_calls": [{"function": {"name": "wipe"}]}}]}\n\n'
    with pytest.raises(FormatError, match="not valid JSON"):
        plain(broken + CHAT)


def test_a_line_that_is_no_field_is_passed_over() -> None:
    assert plain("a warning of the proxy\n" + CHAT) == plain(CHAT)


def test_a_chat_stream_without_calls_does_not_say_that_there_were_none() -> None:
    found = plain(sse(chunk({"content": "hello"}), {"choices": [{"delta": {}, "finish_reason": "stop"}]}))
    assert text_of(found) == "hello"
    assert not found.shows_calls


def test_calls_that_only_the_snapshot_holds_are_seen() -> None:
    call = {"id": "c9", "function": {"name": "wipe", "arguments": "{}"}}
    messages = [{"role": "user", "content": "now"}, {"role": "assistant", "content": "Done.", "toolCalls": [call]}]
    found = plain(
        sse(
            {"type": "RUN_STARTED"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Done."},
            {"type": "MESSAGES_SNAPSHOT", "messages": messages},
            {"type": "RUN_FINISHED"},
        )
    )
    assert text_of(found) == "Done."
    assert [call.name for call in found.tool_calls] == ["wipe"]


def test_arguments_that_only_the_snapshot_holds_are_those_of_the_streamed_call() -> None:
    """As an adapter sends them where the model gave them in one piece."""
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "cats"}'}}
    messages = [{"role": "user", "content": "now"}, {"role": "assistant", "content": "", "toolCalls": [call]}]
    found = plain(
        sse(
            {"type": "RUN_STARTED"},
            {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "search"},
            {"type": "TOOL_CALL_END", "toolCallId": "c1"},
            {"type": "TOOL_CALL_RESULT", "toolCallId": "c1", "content": "3 found"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Done."},
            {"type": "MESSAGES_SNAPSHOT", "messages": messages},
            {"type": "RUN_FINISHED", "usage": "none"},
        )
    )
    assert [(one.name, one.args, one.result) for one in found.tool_calls] == [("search", {"q": "cats"}, "3 found")]
    assert text_of(found) == "Done."
    assert found.usage is None


def test_items_that_the_last_event_leaves_out_are_seen() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "wipe", "arguments": "{}"}
    last = {"type": "response.completed", "response": {"output": []}}
    assert [c.name for c in plain(sse({"type": "response.output_item.done", "item": item}, last)).tool_calls] == [
        "wipe"
    ]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container in a value with each of its keys or indexes."""
    for key, held in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(held, dict | list):
            yield from places(held)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("strange", [None, 5, "text", ["text"], {"a": 1}], ids=repr)
def test_a_value_of_any_other_type_is_read_or_refused(name: str, strange: Any) -> None:
    events = [event.data for event in events_of(DIALECTS[name])]
    for container, key in places(events):
        held, container[key] = container[key], strange
        stream = sse(*events)
        for read in (error_in, so_far, plain):
            with suppress(FormatError):
                read(stream)
        container[key] = held


@pytest.mark.parametrize("name", ["anthropic", "claude"])
def test_input_that_anthropic_has_cached_is_input(name: str) -> None:
    more = '"input_tokens": 7, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000, "other": null'
    stream = DIALECTS[name].replace('"input_tokens": 7', more)
    assert more in stream
    usage = to_invocation(stream, user="q").usage
    assert usage is not None
    assert usage.input_tokens == 1_107


def test_a_run_of_an_adk_server_that_ended_in_an_error_states_it() -> None:
    said = {"author": "a", "content": {"role": "model", "parts": [{"text": "One moment."}]}}
    assert error_in(sse(said, {"author": "a", "errorCode": "SAFETY"})) == "SAFETY"
    assert error_in(sse({"author": "a", "errorCode": "SAFETY"}, said)) is None


def test_half_an_answer_of_an_adk_server_is_none() -> None:
    partial = {"author": "a", "partial": True, "content": {"role": "model", "parts": [{"text": "It "}]}}
    call = {"author": "a", "content": {"role": "model", "parts": [{"functionCall": {"name": "wipe"}}]}}
    for events in ([partial], [call]):
        with pytest.raises(FormatError, match="broke off"):
            plain(sse(*events))


def test_parallel_calls_under_one_index_are_several() -> None:
    """Gemini's compatible server sends every call whole, each with index 0."""
    first, second = piece(0, '{"q": 1}', name="find", id="a"), piece(0, '{"q": 2}', name="find", id="b")
    found = plain(sse(first, second, chunk({}, "tool_calls"), "[DONE]"))
    assert [(call.id, call.args) for call in found.tool_calls] == [("a", {"q": 1}), ("b", {"q": 2})]


def test_pieces_of_one_call_that_repeat_its_id_or_give_another_are_one_call() -> None:
    pieces = [piece(0, '{"q"', name="find", id="a"), piece(0, ": 1", id="a"), piece(0, "}", id="other")]
    (call,) = plain(sse(*pieces, chunk({}, "tool_calls"))).tool_calls
    assert (call.name, call.args) == ("find", {"q": 1})


def test_chunks_of_an_agui_message_belong_together_and_the_users_are_no_answer() -> None:
    found = plain(
        sse(
            {"type": "RUN_STARTED"},
            {"type": "TEXT_MESSAGE_START", "messageId": "u", "role": "user"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "u", "delta": "What is it?"},
            {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": "It is "},
            {"type": "TEXT_MESSAGE_CHUNK", "delta": "done."},
            {"type": "RUN_FINISHED", "outcome": {"type": "success"}},
        )
    )
    assert (text_of(found), found.intermediate) == ("It is done.", ())


def test_what_anthropic_says_of_a_message_in_one_event_or_twice() -> None:
    result = {"type": "web_search_tool_result", "tool_use_id": "c1", "content": [{"url": "u"}]}
    use = {"type": "server_tool_use", "id": "c1", "name": "web_search", "input": {"query": "x"}}
    found = plain(
        sse(
            {"type": "message_start", "message": {"usage": {"input_tokens": 7}}},
            {"type": "content_block_start", "index": 0, "content_block": use},
            {"type": "content_block_start", "index": 1, "content_block": result},
            {"type": "message_delta", "usage": {"output_tokens": 2}},
            {"type": "message_delta", "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        )
    )
    assert [(call.args, call.result) for call in found.tool_calls] == [({"query": "x"}, [{"url": "u"}])]
    assert found.usage is not None
    assert found.usage.output_tokens == 5, "each event counts the message so far"


@pytest.mark.parametrize(
    ("head", "end", "usage"),
    [
        ({"input_tokens": 7}, {"output_tokens": 3}, Usage(14, 6)),
        ({"input_tokens": 7}, {}, Usage(14)),
        ({}, {"output_tokens": 3}, Usage(output_tokens=6)),
        ({"input_tokens": 0}, {"output_tokens": 0}, Usage(7, 3)),
    ],
)
def test_a_message_of_anthropic_without_a_count_leaves_the_total_unknown(
    head: dict[str, int], end: dict[str, int], usage: Usage
) -> None:
    def message(head: dict[str, int], end: dict[str, int]) -> list[dict[str, Any]]:
        return [
            {"type": "message_start", "message": {"usage": head}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": end},
            {"type": "message_stop"},
        ]

    assert plain(sse(*message({"input_tokens": 7}, {"output_tokens": 3}), *message(head, end))).usage == usage


def test_a_model_of_agui_without_a_count_leaves_the_total_unknown() -> None:
    def usage(*models: dict[str, Any]) -> Usage | None:
        said = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "1", "role": "assistant", "delta": "hi"}
        return plain(sse({"type": "RUN_STARTED"}, said, {"type": "RUN_FINISHED", "usage": list(models)})).usage

    both = {"inputTokens": 7, "outputTokens": 3}
    assert usage(both, both) == Usage(14, 6)
    assert usage(both, {"inputTokens": 7}) == Usage(14)


def test_pieces_of_one_call_with_an_id_and_name_each_are_one_call() -> None:
    """As vLLM sent them."""
    texts = ['{"q"', ": 1", "}", ""]
    pieces = [piece(0, text, name="find", id=f"c{number}") for number, text in enumerate(texts)]
    (call,) = plain(sse(*pieces, chunk({}, "tool_calls"))).tool_calls
    assert (call.name, call.args) == ("find", {"q": 1})


def test_a_call_without_arguments_before_another_under_its_index() -> None:
    pieces = [piece(0, "", name="wipe", id="a"), piece(0, "{}", name="find", id="b")]
    assert [call.name for call in plain(sse(*pieces, chunk({}, "tool_calls"))).tool_calls] == ["wipe", "find"]


@pytest.mark.parametrize("pieces", [[], [""], ["", '{"q"', ": 1}"]])
def test_arguments_that_anthropic_sends_whole_and_in_pieces_count_once(pieces: list[str]) -> None:
    block = {"type": "tool_use", "id": "c1", "name": "find", "input": {"q": 1}}
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}
        for text in pieces
    ]
    start = {"type": "content_block_start", "index": 0, "content_block": block}
    (call,) = plain(sse({"type": "message_start", "message": {}}, start, *deltas, {"type": "message_stop"})).tool_calls
    assert call.args == {"q": 1}


@pytest.mark.parametrize("role", ["assistant", "agent", "ai", "model", None])
def test_an_agui_answer_under_the_id_of_the_users_message(role: str | None) -> None:
    start = {"type": "TEXT_MESSAGE_START", "messageId": "m"}
    found = plain(
        sse(
            {**start, "role": "user"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "What is it?"},
            {**start, "role": role},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Done."},
            {"type": "RUN_FINISHED"},
        )
    )
    assert (text_of(found), found.intermediate) == ("Done.", ())


CUT_OFF = {
    "chat": sse(chunk({"content": "It is"}), chunk({}, "length"), "[DONE]"),
    "responses": sse(
        {
            "type": "response.incomplete",
            "response": {
                "incomplete_details": {"reason": "max_output_tokens"},
                "output": [{"type": "message", "content": [{"type": "output_text", "text": "It is"}]}],
            },
        }
    ),
    "anthropic": sse(
        {"type": "message_start", "message": {"role": "assistant", "usage": {"input_tokens": 3}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "It is"}},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ),
}


@pytest.mark.parametrize("name", list(CUT_OFF))
def test_an_answer_that_was_cut_off_says_so(name: str) -> None:
    found = plain(CUT_OFF[name])
    assert text_of(found) == "It is"
    assert found.usage is not None and found.usage.cut_off
    usage = plain(CUT_OFF[name].replace('"length"', '"stop"').replace("max_", "")).usage
    assert usage is None or not usage.cut_off
