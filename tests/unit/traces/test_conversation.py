"""Spans → turns: calls counted once, usage summed once, and what was not recorded said so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.model import ToolCall
from gate.traces import Conversation, TracedTurn, TraceReader, conversation_of, conversations_of, failure_of
from tests.properties import examples
from tests.unit.traces.spans import (
    TRACE,
    agent,
    asks,
    chat,
    gave,
    log,
    only,
    read,
    request,
    said,
    span,
    text,
    tool,
)

ASKED = said("user", text("Where is A100?"))
CALLED = said("assistant", asks("lookup", {"order": "A100"}))
TOLD = said("tool", gave({"status": "shipped"}))
ANSWERED = said("assistant", text("It has shipped."))


def turn(*spans: dict[str, Any], **options: Any) -> TracedTurn:
    (found,) = only(*spans, **options).turns
    return found


def names(found: TracedTurn) -> list[str]:
    return [call.name for call in found.invocation.tool_calls]


def test_a_turn_has_its_texts_calls_and_usage() -> None:
    found = turn(
        agent(),
        chat(2, read=[ASKED], wrote=[CALLED]),
        tool(3, arguments={"order": "A100"}, result={"status": "shipped"}, **{"gen_ai.tool.call.id": "c1"}),
        chat(4, read=[ASKED, CALLED, TOLD], wrote=[ANSWERED]),
    )
    assert found.invocation.user == "Where is A100?"
    assert found.invocation.text == "It has shipped."
    assert found.invocation.tool_calls == (
        ToolCall("lookup", {"order": "A100"}, "c1", {"status": "shipped"}, duration=0.5),
    )
    usage = found.invocation.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.model_calls) == (20, 10, 2)
    assert found.invocation.unseen == ()
    assert found.error is None


def test_an_outer_agents_totals_are_not_added_to_its_model_calls() -> None:
    totals = {"gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 10}
    found = turn(agent(**totals), chat(2, wrote=[ANSWERED]), chat(3, wrote=[ANSWERED]))
    assert found.invocation.usage is not None
    assert found.invocation.usage.input_tokens == 20


def test_a_wrapper_around_a_providers_span_is_one_model_call() -> None:
    found = turn(agent(), chat(2, wrote=[ANSWERED]), chat(3, parent=2, wrote=[ANSWERED]))
    assert found.invocation.usage is not None
    assert (found.invocation.usage.input_tokens, found.invocation.usage.model_calls) == (10, 1)
    assert found.invocation.intermediate == ()


def test_the_usage_of_a_wrapper_counts_if_the_spans_in_it_have_none() -> None:
    found = turn(agent(), chat(2), chat(3, parent=2, wrote=[ANSWERED], tokens=None))
    assert found.invocation.usage is not None
    assert found.invocation.usage.input_tokens == 10


def test_usage_that_one_model_call_does_not_tell_is_not_captured() -> None:
    found = turn(agent(), chat(2, wrote=[ANSWERED]), chat(3, wrote=[ANSWERED], tokens=None))
    assert found.invocation.usage is None
    assert found.invocation.usage is None


def test_three_spans_of_one_mcp_call_are_one_call() -> None:
    mcp = {"mcp.method.name": "tools/call"}
    found = turn(
        agent(),
        chat(2, read=[ASKED], wrote=[CALLED]),
        tool(3, **{"gen_ai.tool.call.id": "c1"}),
        tool(4, parent=3, arguments={"order": "A100"}, result="shipped", **mcp),
        tool(5, parent=4, arguments={"order": "A100"}, **{"gen_ai.tool.call.id": "rpc-7"}, **mcp),
        chat(6, wrote=[ANSWERED]),
    )
    (call,) = found.invocation.tool_calls
    assert (call.name, call.args, call.id, call.result) == ("lookup", {"order": "A100"}, "c1", "shipped")


def test_two_calls_of_one_tool_beside_each_other_are_two() -> None:
    assert names(turn(agent(), chat(2), tool(3), tool(4))) == ["lookup", "lookup"]


def test_an_agent_that_is_used_as_a_tool_is_one_call_and_says_nothing_to_the_user() -> None:
    found = turn(
        agent(1, name="support"),
        chat(2, read=[ASKED], wrote=[said("assistant", asks("billing", {}))]),
        tool(3, name="billing", arguments={}, **{"gen_ai.tool.call.id": "c1"}),
        agent(4, parent=3, name="billing"),
        chat(5, parent=4, read=[said("user", text("inner"))], wrote=[said("assistant", text("inner answer"))]),
        tool(6, parent=4, name="invoices"),
        chat(7, wrote=[ANSWERED]),
    )
    assert names(found) == ["billing", "invoices"]
    assert found.invocation.user == "Where is A100?"
    assert found.invocation.text == "It has shipped."
    assert found.invocation.intermediate == ()
    assert found.invocation.usage is not None
    assert found.invocation.usage.model_calls == 3


def test_a_call_without_a_span_is_taken_from_what_the_model_asked_for() -> None:
    found = turn(
        agent(),
        chat(2, read=[ASKED], wrote=[CALLED]),
        chat(3, read=[ASKED, CALLED, TOLD], wrote=[ANSWERED]),
    )
    assert found.invocation.tool_calls == (ToolCall("lookup", {"order": "A100"}, "c1", {"status": "shipped"}),)


def test_a_call_without_a_span_stands_behind_the_one_before_it() -> None:
    wrote = [said("assistant", asks("first", {}, "a"), asks("second", {}, "b"), asks("third", {}, "c"))]
    spans = [tool(3, name="first"), tool(4, name="third")]
    assert names(turn(agent(), chat(2, wrote=wrote), *spans)) == ["first", "second", "third"]


def test_arguments_that_a_span_lacks_come_from_the_messages() -> None:
    found = turn(
        agent(),
        chat(2, wrote=[CALLED]),
        tool(3, **{"gen_ai.tool.call.id": "other"}),
        chat(4, read=[CALLED, TOLD], wrote=[ANSWERED]),
    )
    (call,) = found.invocation.tool_calls
    assert (call.args, call.result) == ({"order": "A100"}, {"status": "shipped"})


@pytest.mark.parametrize("placeholder", ["<REDACTED>", "<elided>", "", "<not specified>"])
def test_a_placeholder_is_not_content(placeholder: str) -> None:
    hidden = [said("assistant", text(placeholder))]
    found = turn(agent(), chat(2, wrote=hidden), tool(3, arguments=placeholder, result=placeholder))
    assert found.invocation.text == ""
    assert found.invocation.tool_calls[0].args is None
    assert not found.invocation.user
    assert found.invocation.unseen == ("response", "arguments", "results")


def test_without_content_nothing_is_known_of_calls() -> None:
    found = turn(agent(), chat(2))
    assert {"calls", "response"} <= set(found.invocation.unseen)
    assert not found.invocation.reports_calls


def test_why_models_ended_tells_that_there_was_no_call() -> None:
    ended = {"gen_ai.response.finish_reasons": ["stop"]}
    assert turn(agent(), chat(2, **ended)).invocation.reports_calls
    assert not turn(agent(), chat(2, **{"gen_ai.response.finish_reasons": ["tool_calls"]})).invocation.reports_calls


def test_a_model_that_said_nothing_is_an_answer_without_text() -> None:
    found = turn(agent(), chat(2, wrote=[CALLED]), tool(3))
    assert found.invocation.text == ""
    assert "response" not in found.invocation.unseen


def test_a_failed_tool_does_not_fail_the_turn() -> None:
    found = turn(
        agent(),
        chat(2, wrote=[CALLED]),
        tool(3, error="no such order", **{"error.type": "LookupError"}),
        chat(4, wrote=[ANSWERED]),
    )
    assert found.invocation.tool_calls[0].error == "LookupError: no such order"
    assert found.error is None


def test_a_failed_agent_fails_the_turn() -> None:
    raised = ("exception", {"exception.type": "ValueError", "exception.message": "no"})
    assert turn(agent(error="down"), chat(2)).error == "down"
    assert turn(agent(error=" ", events=[raised]), chat(2)).error is not None


BUSY: dict[str, Any] = {"tokens": None, "error": "429"}
WAIT = said("assistant", text("One moment"), asks("f", {}))
TELLS = {"gen_ai.output.messages": json.dumps([said("assistant", text("Sorry, try later"))])}
ONE_MOMENT = {"gen_ai.output.messages": json.dumps([said("assistant", text("One moment"))])}


@pytest.mark.parametrize(
    ("spans", "error"),
    [
        ([agent(), chat(2, 1, [ASKED], None, **BUSY)], "429"),
        ([agent(), chat(2, 1, [ASKED], [WAIT]), tool(3, 1, "f", {}, "r"), chat(4, 1, [ASKED], None, **BUSY)], "429"),
        ([agent(**ONE_MOMENT), chat(2, 1, [ASKED], [WAIT]), chat(4, 1, [ASKED], None, **BUSY)], "429"),
        ([agent(), chat(2, 1, [ASKED], None, **BUSY), chat(3, 1, [ASKED], [ANSWERED])], None),
        ([agent(), chat(2, 1, [ASKED], None, **BUSY), chat(3, 1, [ASKED], None)], None),
        ([agent(**TELLS), chat(2, 1, [ASKED], None, **BUSY)], None),
        ([agent(), chat(2, 1, [ASKED], [said("assistant", text("Half of"))], error="closed")], None),
        ([agent(), tool(2, 1, "expert"), agent(3, 2), chat(4, 3, [ASKED], None, **BUSY)], None),
    ],
    ids=["alone", "after a call", "said before", "again", "not captured", "told", "broken off", "in a tool"],
)
def test_a_last_model_call_in_an_error_fails_a_turn_that_has_no_answer_after_it(
    spans: list[dict[str, Any]], error: str | None
) -> None:
    (turn,) = only(*spans).turns
    assert turn.error == error


def test_a_model_call_that_another_was_faster_than_fails_nothing() -> None:
    answer = chat(2, 1, [ASKED], [ANSWERED], seconds=(2.0, 3.0))
    (turn,) = only(agent(), answer, chat(3, 1, [ASKED], None, **BUSY, seconds=(2.1, 3.1))).turns
    assert turn.error is None


@pytest.mark.parametrize(
    ("spans", "error"),
    [
        ([agent(2, 1)], "500"),
        ([agent(2, 1), chat(3, 2, [ASKED], None)], "500"),
        ([agent(2, 1), chat(3, 2, [ASKED], [CALLED])], "500"),
        ([agent(2, 1), chat(3, 2, [ASKED], [ANSWERED])], None),
    ],
)
def test_a_root_in_an_error_fails_an_agent_in_it_that_has_no_answer(spans: list[Any], error: str | None) -> None:
    (turn,) = only(span(1, 0, "POST /chat", error="500"), *spans).turns
    assert turn.error == error


def test_turns_of_one_session_are_in_order_whatever_trace_they_are_in() -> None:
    other = "1af7651916cd43dd8448eb211c80319c"
    session = {"gen_ai.conversation.id": "s1"}
    conversations = read(
        request(agent(3, trace=other, **session), chat(4, parent=3, trace=other, wrote=[ANSWERED])),
        request(agent(1, **session), chat(2, read=[ASKED], wrote=[ANSWERED])),
    )
    assert [c.session for c in conversations] == ["s1"]
    assert [turn.invocation.user for turn in conversations[0].turns] == ["Where is A100?", ""]


def test_a_workflow_with_several_agents_is_one_turn() -> None:
    flow = span(1, name="flow", **{"gen_ai.operation.name": "invoke_workflow"})
    found = turn(flow, agent(2, 1, "a"), chat(3, 2, wrote=[ANSWERED]), agent(4, 1, "b"), chat(5, 4, wrote=[ANSWERED]))
    assert found.invocation.text == "It has shipped."


def test_a_servers_own_span_around_agents_is_no_turn() -> None:
    server = span(1, name="POST /chat")
    found = only(server, agent(2, 1), chat(3, 2, wrote=[ANSWERED]))
    assert [turn.invocation.text for turn in found.turns] == ["It has shipped."]


def test_model_calls_without_an_agent_that_bring_back_results_are_one_turn() -> None:
    session = {"session.id": "s"}
    other = "1af7651916cd43dd8448eb211c80319c"
    (conversation,) = read(
        request(chat(1, 0, read=[ASKED], wrote=[CALLED], **session)),
        request(chat(2, 0, trace=other, read=[ASKED, CALLED, TOLD], wrote=[ANSWERED], **session)),
    )
    (found,) = conversation.turns
    assert names(found) == ["lookup"]
    assert found.invocation.text == "It has shipped."
    assert found.invocation.tool_calls[0].result == {"status": "shipped"}


def test_content_in_log_records_is_joined_to_its_span() -> None:
    """Split telemetry: spans have no text, the log records do."""
    event = "gen_ai.client.inference.operation.details"
    messages = {"gen_ai.input.messages": json.dumps([ASKED]), "gen_ai.output.messages": json.dumps([ANSWERED])}
    (conversation,) = read(log(2, event, **messages), request(agent(), chat(2)))
    (found,) = conversation.turns
    assert (found.invocation.user, found.invocation.text) == ("Where is A100?", "It has shipped.")
    assert found.invocation.unseen == ()


def test_messages_that_are_log_records_of_their_own_are_joined() -> None:
    body = {"message": {"role": "assistant", "content": "It has shipped."}, "finish_reason": "stop"}
    conversations = read(
        request(agent(), chat(2)),
        log(2, "gen_ai.user.message", body={"content": "Where is A100?"}),
        log(2, "gen_ai.choice", body=body),
    )
    found = conversations[0].turns[0].invocation
    assert (found.user, found.text) == ("Where is A100?", "It has shipped.")


def test_parents_in_a_circle_are_read() -> None:
    assert names(turn(agent(1, parent=3), chat(2, parent=1), tool(3, parent=2))) == ["lookup"]


@pytest.mark.slow
def test_a_deep_trace_does_not_exhaust_the_stack() -> None:
    spans = [agent(1), *(chat(place, place - 1, wrote=[ANSWERED]) for place in range(2, 5_000))]
    found = turn(*spans)
    assert found.invocation.usage is not None
    assert found.invocation.usage.model_calls == 1


# --- any order ------------------------------------------------------------------------------------

SPANS = [
    agent(1, **{"session.id": "s"}),
    chat(2, read=[ASKED], wrote=[CALLED]),
    tool(3, arguments={"order": "A100"}),
    tool(4, parent=3, result="x"),
    chat(5, read=[ASKED, CALLED, TOLD], wrote=[ANSWERED]),
    agent(6, **{"session.id": "s"}),
    chat(7, parent=6, read=[ASKED], wrote=[ANSWERED]),
    tool(8, parent=99, name="orphan", error="broken"),
    chat(9, parent=99, tokens=None),
]


def conversations(order: list[int]) -> list[Conversation]:
    reader = TraceReader()
    return conversations_of([p for index in order for p in reader.line(json.dumps(request(SPANS[index])).encode())])


@given(st.permutations(range(len(SPANS))), st.lists(st.integers(0, len(SPANS) - 1), max_size=5))
@settings(max_examples=examples(200))
def test_neither_order_nor_repetition_changes_a_conversation(order: list[int], again: list[int]) -> None:
    assert conversations([*order, *again]) == conversations(list(range(len(SPANS))))


@given(st.sets(st.integers(0, len(SPANS) - 1)))
@settings(max_examples=examples(200))
def test_spans_that_never_came_are_survived(kept: set[int]) -> None:
    for conversation in conversations(sorted(kept)):
        for found in conversation.turns:
            assert found.invocation.usage is None or found.invocation.usage.input_tokens


def test_one_trace_alone_is_read_as_a_conversation() -> None:
    pieces = TraceReader().value(request(agent(), chat(2, wrote=[ANSWERED])))
    found = conversation_of(pieces)
    assert (found.session, len(found.turns)) == (TRACE, 1)
    assert conversation_of([]).turns == ()


def test_a_trace_fails_by_its_outermost_span() -> None:
    def failure(*spans: dict[str, Any]) -> str:
        return failure_of(TraceReader().value(request(*spans)))

    assert failure(span(2, 1, error="no route"), span(1, 0, "POST /chat", error="500")) == "500"
    assert failure(span(2, 1, error="no route"), span(1, 0, "POST /chat")) == ""
    assert failure(span(2, 7, error="its parent is elsewhere")) == "its parent is elsewhere"
    assert failure(span(1, 2, error="a"), span(2, 1, error="b")) == "a"
    assert failure() == ""
