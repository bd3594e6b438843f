"""Each dialect's own words for the same conversation, and the traps that are its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gate.formats import messages
from gate.formats.reading import Ignored
from gate.traces import TracedTurn, TraceReader, conversations_of
from gate.traces.said import calls_in, message, results_in, texts_in
from tests.unit.traces.spans import agent, asks, chat, gave, log, only, request, said, span, text, tool
from tests.unit.traces.spans import read as read_requests

ARGS = {"order": "A100"}
ARGS_TEXT = json.dumps(ARGS)
RESULT_TEXT = '{"status": "shipped"}'


def openinference() -> list[dict[str, Any]]:
    kind = "openinference.span.kind"
    asked = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Where?"}
    call = "llm.output_messages.0.message.tool_calls.0.tool_call"
    first = {
        **asked,
        "llm.output_messages.0.message.role": "assistant",
        f"{call}.id": "c1",
        f"{call}.function.name": "lookup",
        f"{call}.function.arguments": ARGS_TEXT,
    }
    said = "llm.output_messages.0.message.contents.0.message_content.text"
    last = {**asked, "llm.output_messages.0.message.role": "assistant", said: "Shipped."}
    counts = {"llm.token_count.prompt": 10, "llm.token_count.completion": 5, "llm.cost.total": 0.5}
    message = {"type": "tool", "data": {"content": RESULT_TEXT, "tool_call_id": "c1"}}
    return [
        span(1, 0, "LangGraph", **{kind: "CHAIN", "session.id": "s", "input.value": '{"messages": []}'}),
        span(2, 1, "LLM", **{kind: "LLM", **first, **counts}),
        span(3, 1, "lookup", **{kind: "TOOL", "tool.name": "lookup", "input.value": "A100"},
             **{"output.value": json.dumps(message)}),
        span(4, 1, "LLM", **{kind: "LLM", **last, **counts}),
    ]  # fmt: skip


def openllmetry() -> list[dict[str, Any]]:
    kind, asked = "traceloop.span.kind", {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Where?"}
    call = "gen_ai.completion.0.tool_calls.0"
    first = {f"{call}.id": "c1", f"{call}.name": "lookup", f"{call}.arguments": ARGS_TEXT}
    counts = {"llm.request.type": "chat", "gen_ai.usage.prompt_tokens": 10, "gen_ai.usage.completion_tokens": 5}
    inputs = json.dumps({"input_str": "x", "inputs": ARGS})
    return [
        span(1, 0, "support.workflow", **{kind: "workflow", "traceloop.association.properties.session_id": "s"}),
        span(2, 1, "openai.chat", **asked, **first, **counts),
        span(3, 1, "lookup.tool", **{kind: "tool", "traceloop.entity.name": "lookup"},
             **{"traceloop.entity.input": inputs, "traceloop.entity.output": RESULT_TEXT}),
        span(4, 1, "openai.chat", **asked, **{"gen_ai.completion.0.content": "Shipped."}, **counts),
    ]  # fmt: skip


def ai_sdk() -> list[dict[str, Any]]:
    operation, counts = "ai.operationId", {"ai.usage.promptTokens": 10, "ai.usage.completionTokens": 5}
    prompt = {"ai.prompt.messages": json.dumps([{"role": "user", "content": [{"type": "text", "text": "Where?"}]}])}
    called = json.dumps([{"type": "tool-call", "toolCallId": "c1", "toolName": "lookup", "input": ARGS}])
    inner = {operation: "ai.generateText.doGenerate", **prompt, **counts}
    return [
        span(1, 0, "ai.generateText", **{operation: "ai.generateText", "ai.telemetry.metadata.sessionId": "s"},
             **{"ai.usage.promptTokens": 20, "ai.response.text": "Shipped."}),
        span(2, 1, "ai.generateText.doGenerate", **inner, **{"ai.response.toolCalls": called}),
        span(3, 1, "ai.toolCall", **{operation: "ai.toolCall", "ai.toolCall.name": "lookup", "ai.toolCall.id": "c1"},
             **{"ai.toolCall.args": ARGS_TEXT, "ai.toolCall.result": RESULT_TEXT}),
        span(4, 1, "ai.generateText.doGenerate", **inner, **{"ai.response.text": "Shipped."}),
    ]  # fmt: skip


def strands() -> list[dict[str, Any]]:
    """Content in span events, as blocks of Bedrock; cycles between agent and calls."""
    counts = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5}
    asked = ("gen_ai.user.message", {"content": json.dumps([{"text": "Where?"}])})
    use = json.dumps([{"toolUse": {"toolUseId": "c1", "name": "lookup", "input": ARGS}}])
    done = ("gen_ai.choice", {"message": json.dumps([{"text": "Shipped."}]), "finish_reason": "end_turn"})
    gave = [
        ("gen_ai.tool.message", {"role": "tool", "content": ARGS_TEXT, "id": "c1"}),
        ("gen_ai.choice", {"message": json.dumps([{"text": RESULT_TEXT}]), "id": "c1"}),
    ]
    return [
        agent(1, events=[asked, done], **{"session.id": "s"}),
        span(2, 1, "execute_event_loop_cycle"),
        span(3, 2, "chat", events=[asked, ("gen_ai.choice", {"message": use, "finish_reason": "tool_use"})], **counts),
        tool(4, 2, events=gave, **{"gen_ai.tool.call.id": "c1", "gen_ai.tool.status": "success"}),
        span(5, 2, "chat", events=[asked, done], **counts),
    ]


def adk() -> list[dict[str, Any]]:
    user = {"role": "user", "parts": [{"text": "Where?"}]}
    asking = {"gcp.vertex.agent.llm_request": json.dumps({"contents": [user]})}
    counts = {"prompt_token_count": 10, "candidates_token_count": 5}

    def answered(*parts: Any) -> dict[str, Any]:
        response = {"content": {"role": "model", "parts": parts}, "usage_metadata": counts}
        return {"gcp.vertex.agent.llm_response": json.dumps(response), "gcp.vertex.agent.invocation_id": "i"}

    call = {"function_call": {"id": "c1", "name": "lookup", "args": ARGS}}
    marks = {"gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": RESULT_TEXT}
    return [
        span(1, 0, "invocation", **{"gcp.vertex.agent.session_id": "s", "gcp.vertex.agent.invocation_id": "i"}),
        agent(2, 1),
        span(3, 2, "call_llm", **asking, **answered(call)),
        tool(4, 3, **marks, **{"gen_ai.tool.call.id": "c1"}),
        tool(5, 3, "(merged tools)", **marks),
        span(6, 2, "call_llm", **asking, **answered({"text": "Shipped."})),
    ]


@pytest.mark.parametrize("dialect", [openinference, openllmetry, ai_sdk, strands, adk], ids=lambda one: one.__name__)
def test_every_dialect_tells_the_same(dialect: Any) -> None:
    found = only(*dialect())
    (turn,) = found.turns
    (call,) = turn.invocation.tool_calls
    assert (call.name, call.args, call.result) == ("lookup", ARGS, {"status": "shipped"})
    assert call.id in ("c1", None)
    assert (turn.invocation.user, turn.invocation.text) == ("Where?", "Shipped.")
    assert turn.invocation.usage is not None
    assert (turn.invocation.usage.input_tokens, turn.invocation.usage.output_tokens) == (20, 10)
    assert found.session == "s"
    assert turn.invocation.unseen == ()


def one_turn(*spans: dict[str, Any]) -> TracedTurn:
    (turn,) = only(*spans).turns
    return turn


def test_costs_are_summed() -> None:
    usage = one_turn(*openinference()).invocation.usage
    assert usage is not None
    assert usage.cost_usd == 1.0


def test_a_value_without_its_name_is_not_arguments() -> None:
    """OpenInference writes the value of a single argument alone."""
    kind = {"openinference.span.kind": "TOOL", "tool.name": "lookup"}
    turn = one_turn(agent(), span(2, 1, **kind, **{"input.value": "A100"}))
    assert turn.invocation.tool_calls[0].args is None
    assert "arguments" in turn.invocation.unseen
    printed = one_turn(agent(), span(2, 1, **kind, **{"input.value": "{'order': 'A100'}"}))
    assert printed.invocation.tool_calls[0].args == ARGS


def test_adk_without_content_is_not_an_empty_mapping() -> None:
    marks = {"gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": "{}"}
    turn = one_turn(agent(), tool(2, **marks))
    assert {"arguments", "results"} <= set(turn.invocation.unseen)


def test_an_event_of_details_on_the_span_is_read() -> None:
    messages = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Shipped."}]}])
    event = ("gen_ai.client.inference.operation.details", {"gen_ai.output.messages": messages})
    turn = one_turn(agent(), span(2, 1, events=[event], **{"gen_ai.operation.name": "chat"}))
    assert turn.invocation.text == "Shipped."


def test_a_resource_may_name_the_session() -> None:
    (found,) = read_requests(request(agent(), tool(2), resource={"session.id": "of the resource"}))
    assert found.session == "of the resource"


# --- what a value is, is told by what is in it ----------------------------------------------------


def test_null_is_absent() -> None:
    """ADK writes every key of a part, with null."""
    part = {"text": "Shipped.", "function_call": None, "function_response": None, "thought": None}
    answer = {"content": {"role": "model", "parts": [part]}}
    request = {"contents": [{"role": "user", "parts": [{"text": "Where?", "function_call": None, "type": None}]}]}
    attributes = {
        "gcp.vertex.agent.llm_request": json.dumps(request),
        "gcp.vertex.agent.llm_response": json.dumps(answer),
    }
    (turn,) = only(span(1, 0, "call_llm", **{"gen_ai.operation.name": "chat", **attributes})).turns
    assert (turn.invocation.user, turn.invocation.text) == ("Where?", "Shipped.")


def test_a_part_of_an_unknown_type_is_not_what_the_user_says() -> None:
    read = [said("user", {"type": "compaction", "content": "They talked."}, text("Where?"))]
    (turn,) = only(agent(1), chat(2, read=read, wrote=[said("assistant", text("Shipped."))])).turns
    assert turn.invocation.user == "Where?"


def test_the_wrapper_of_langchain_is_taken_off_wherever_it_stands() -> None:
    wrapped = {"input_str": "x", "tags": [], "metadata": {}, "inputs": ARGS, "kwargs": {"name": "lookup"}}
    message = {"id": ["ToolMessage"], "kwargs": {"content": "shipped", "tool_call_id": "c1"}}
    given = tool(2, arguments=wrapped, result={"output": message, "kwargs": {}})
    (turn,) = only(agent(1), given).turns
    (call,) = turn.invocation.tool_calls
    assert (call.args, call.result) == (ARGS, "shipped")


def test_results_belong_to_the_calls_whose_ids_they_name() -> None:
    asked = said("assistant", asks("lookup", {"order": "A"}, "c1"), asks("lookup", {"order": "B"}, "c2"))
    where, told = said("user", text("Where?")), said("tool", gave("second", "c2"), gave("first", "c1"))
    last = chat(3, read=[where, asked, told], wrote=[said("assistant", text("Shipped."))])
    (turn,) = only(agent(1), chat(2, read=[where], wrote=[asked]), last).turns
    found = [(call.args, call.result) for call in turn.invocation.tool_calls]
    assert found == [({"order": "A"}, "first"), ({"order": "B"}, "second")]


@pytest.mark.parametrize(
    "handed",
    [
        span(3, 1, "handoff to Billing Agent", **{"openinference.span.kind": "TOOL"}),
        span(3, 1, "Triage → Billing", **{"gen_ai.handoff.to_agent": "Billing Agent"}),
    ],
)
def test_a_handoff_is_one_call_however_often_it_is_told(handed: dict[str, Any]) -> None:
    asked = chat(2, read=[said("user", text("Pay"))], wrote=[said("assistant", asks("transfer_to_billing_agent", {}))])
    for spans in ([agent(1), asked, handed, tool(4)], [agent(1), handed, tool(4)]):
        (turn,) = only(*spans).turns
        assert [call.name for call in turn.invocation.tool_calls] == ["transfer_to_billing_agent", "lookup"]


def test_a_failed_model_call_without_output_used_nothing() -> None:
    failed = chat(2, read=[said("user", text("Where?"))], tokens=None, error="429")
    answered = chat(3, read=[said("user", text("Where?"))], wrote=[said("assistant", text("Shipped."))])
    (turn,) = only(agent(1), failed, answered).turns
    assert turn.invocation.reports_calls
    assert turn.invocation.usage is not None
    assert turn.invocation.usage.tokens == 15


def test_log_records_without_a_span_are_of_the_only_model_call() -> None:
    lone = log(2, "gen_ai.choice", body={"message": {"role": "assistant", "content": "Shipped."}})
    lone["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]["spanId"] = ""
    asked = chat(2, read=[said("user", text("Where?"))])
    (conversation,) = read_requests(request(agent(1), asked), lone)
    assert conversation.turns[0].invocation.text == "Shipped."


def test_a_call_that_langchain_repeats_beside_its_content_is_one_call() -> None:
    use = {"type": "tool_use", "id": "c1", "name": "lookup", "input": ARGS}
    spoken = {"role": "assistant", "content": [use], "tool_calls": [{"id": "c1", "name": "lookup", "args": ARGS}]}
    (turn,) = only(agent(1), chat(2, wrote=[spoken])).turns
    assert [(call.name, call.args) for call in turn.invocation.tool_calls] == [("lookup", ARGS)]


@pytest.mark.parametrize("kind", [{"name": "text"}, ["text"]])
def test_a_part_whose_type_is_no_text_is_listed_as_unread(kind: Any) -> None:
    odd = {"type": kind, "text": "?"}
    spans = [agent(1), chat(2, read=[said("user", odd, text("Where?"))], wrote=[said("assistant", odd, text("Here."))])]
    reader = TraceReader(Ignored({}))
    (conversation,) = conversations_of(reader.line(json.dumps(request(*spans)).encode()))
    assert [(turn.invocation.user, turn.invocation.text) for turn in conversation.turns] == [("Where?", "Here.")]
    assert reader.unread[f"a part of type {kind!r}"] == 2


@pytest.mark.parametrize(
    ("use", "result"),
    [
        (
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": ARGS},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": "found"},
        ),
        (
            {"type": "server_tool_call", "id": "s1", "name": "web_search", "args": ARGS},
            {"type": "server_tool_result", "tool_call_id": "s1", "output": "found"},
        ),
    ],
)
def test_a_tool_that_the_provider_ran_is_a_call_as_in_messages(use: dict[str, Any], result: dict[str, Any]) -> None:
    answer = {"role": "assistant", "content": [use, result, {"type": "text", "text": "Shipped."}]}
    (turn,) = only(agent(1), chat(2, read=[said("user", text("Where?"))], wrote=[answer])).turns
    (call,) = turn.invocation.tool_calls
    assert (call.name, call.args, call.result) == ("web_search", ARGS, "found")
    assert (call, turn.invocation.text) == (messages.to_invocation([answer]).tool_calls[0], "Shipped.")


def test_items_are_joined_by_their_call_id_and_not_by_their_own() -> None:
    asked = [
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "one", "arguments": "{}"},
        {"type": "function_call", "id": "fc_2", "call_id": "b", "name": "two", "arguments": "{}"},
    ]
    given = [
        {"type": "function_call_output", "id": "fco_1", "call_id": "b", "output": "of two"},
        {"type": "function_call_output", "id": "fco_2", "call_id": "a", "output": "of one"},
    ]
    calls, results = {"role": "assistant", "content": asked}, {"role": "user", "content": given}
    where = said("user", text("Where?"))
    last = chat(3, read=[where, calls, results], wrote=[said("assistant", text("Shipped."))])
    (turn,) = only(agent(1), chat(2, read=[where], wrote=[calls]), last).turns
    assert [(call.name, call.result) for call in turn.invocation.tool_calls] == [("one", "of one"), ("two", "of two")]


CALLED = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "lookup", "arguments": ARGS_TEXT}
GIVEN = {"type": "function_call_output", "call_id": "c1", "output": "shipped"}
CONSTRUCTED = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "AIMessage"]}


@pytest.mark.parametrize(
    "messages_of_a_model",
    [
        [CALLED, GIVEN, {"role": "assistant", "content": "Shipped."}],
        [{"role": "assistant", "content": [CALLED]}, {"role": "user", "content": [GIVEN]}],
        [{"role": "assistant", "function_call": {"name": "lookup", "arguments": ARGS_TEXT}}],
        [{"role": "assistant", "content": None, "refusal": "I cannot."}],
        [{"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]}],
        [{**CONSTRUCTED, "kwargs": {"content": "Hi", "tool_calls": [{"name": "lookup", "args": ARGS, "id": "c1"}]}}],
        [{"type": "ai", "data": {"content": "Hi", "tool_calls": [{"name": "lookup", "args": ARGS, "id": "c1"}]}}],
        [{"type": "tool_use", "id": "c1", "name": "lookup", "input": ARGS}],
    ],
)
def test_messages_in_a_span_are_read_like_those_of_an_answer(messages_of_a_model: list[dict[str, Any]]) -> None:
    read = messages.to_invocation(messages_of_a_model)
    found = list(map(message, messages_of_a_model))
    assert [(call.name, call.args, call.id or None) for call in calls_in(found)] == [
        (call.name, call.args, call.id) for call in read.tool_calls
    ]
    assert texts_in([one for one in found if one.role == "assistant"])[-1:] == list(filter(None, [read.text]))
    assert [one.result for one in results_in(found)] == [call.result for call in read.tool_calls if call.result]
    assert not [one.unread for one in found if one.unread]
