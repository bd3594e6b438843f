"""Traces of many shapes for the comparison with another evaluator: what is asked, called and expected is drawn."""

from __future__ import annotations

import base64
import json
from random import Random
from typing import Any

from tests.unit.traces.spans import agent, asks, chat, gave, keyed, log, request, said, span, text, tool

TOOLS = ("lookup", "refund", "search", "billing")
Call = tuple[str, dict[str, Any]]
SOMETHING = said("assistant", text("Let me see."))
"""Without it a trace without spans of tools would not show whether there were calls."""


def calls(draw: Random) -> list[Call]:
    return [(draw.choice(TOOLS), {"order": draw.randrange(3)}) for _ in range(draw.randrange(4))]


def words(number: int) -> str:
    return f"Question number {number}?"


def plain(draw: Random, number: int, made: list[Call], *, spans: bool = True, arguments: bool = True) -> list[Any]:
    """An agent, a model call before and after each tool; spans of tools may lack their arguments, or be missing."""
    where = {"trace": f"{number + 1:032x}"}
    messages = [said("user", text(words(number)))]
    found, place = [agent(1, **where)], 2
    for at, (name, args) in enumerate(made):
        wrote = said("assistant", asks(name, args, f"c{at}"))
        found.append(chat(place, read=list(messages), wrote=[wrote], **where))
        if spans:
            given = args if arguments else None
            identity = {"gen_ai.tool.call.id": f"c{at}"}
            found.append(tool(place + 1, name=name, arguments=given, result={"ok": at}, **identity, **where))
        messages += [wrote, said("tool", gave({"ok": at}, f"c{at}"))]
        place += 2
    found.append(chat(place, read=list(messages), wrote=[said("assistant", text("Done."))], **where))
    draw.shuffle(found)
    return [request(*found)]


def unspanned(draw: Random, number: int, made: list[Call]) -> list[Any]:
    return plain(draw, number, made, spans=False)


def without_arguments(draw: Random, number: int, made: list[Call]) -> list[Any]:
    return plain(draw, number, made, arguments=False)


def mcp(draw: Random, number: int, made: list[Call]) -> list[Any]:
    """Each call three times: the framework's span, the MCP client's and the server's."""
    where = {"trace": f"{number + 1:032x}"}
    found = [agent(1, **where), chat(2, read=[said("user", text(words(number)))], wrote=[SOMETHING], **where)]
    for at, (name, args) in enumerate(made):
        place = 10 * (at + 1)
        marks = {"mcp.method.name": "tools/call"}
        found.append(tool(place, name=name, **{"gen_ai.tool.call.id": f"c{at}"}, **where))
        found.append(tool(place + 1, place, name, arguments=args, **marks, **where))
        found.append(tool(place + 2, place + 1, name, arguments=args, **{"gen_ai.tool.call.id": "1"}, **marks, **where))
    found.append(chat(99, wrote=[said("assistant", text("Done."))], **where))
    return [request(one) for one in found]


def delegated(draw: Random, number: int, made: list[Call]) -> list[Any]:
    """Each tool is an agent with a model call of its own, wrapped by a provider's span."""
    where = {"trace": f"{number + 1:032x}"}
    found = [agent(1, **where), chat(2, read=[said("user", text(words(number)))], wrote=[SOMETHING], **where)]
    for at, (name, args) in enumerate(made):
        place = 10 * (at + 1)
        found.append(tool(place, name=name, arguments=args, **where))
        found.append(agent(place + 1, place, name, **where))
        found.append(chat(place + 2, place + 1, wrote=[said("assistant", text("inner"))], **where))
        found.append(chat(place + 3, place + 2, wrote=[said("assistant", text("inner"))], **where))
    found.append(chat(99, wrote=[said("assistant", text("Done."))], **where))
    return [request(*found)]


def in_logs(draw: Random, number: int, made: list[Call]) -> list[Any]:
    """Split telemetry: names and times in spans, all content in log records."""
    trace = f"{number + 1:032x}"
    event = "gen_ai.client.inference.operation.details"
    found = [request(agent(1, trace=trace), chat(2, trace=trace), chat(3, trace=trace))]
    asked = [said("user", text(words(number)))]
    asked_for = [asks(name, args, f"c{at}") for at, (name, args) in enumerate(made)]
    wrote = said("assistant", *asked_for, text("Let me see."))
    first = {"gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps([wrote])}
    last = {"gen_ai.output.messages": json.dumps([said("assistant", text("Done."))])}
    return [log(2, event, trace=trace, **first), *found, log(3, event, trace=trace, **last)]


def in_events(draw: Random, number: int, made: list[Call]) -> list[Any]:
    """Messages as span events, the older way."""
    where = {"trace": f"{number + 1:032x}"}
    functions = [
        {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        for at, (name, args) in enumerate(made)
    ]
    user = ("gen_ai.user.message", {"content": words(number)})
    choice = ("gen_ai.choice", {"finish_reason": "tool_calls", "message": {"tool_calls": functions, "content": ""}})
    done = ("gen_ai.choice", {"finish_reason": "stop", "message": {"content": "Done."}})
    first = chat(2, events=[user, choice] if made else [user, done], **where)
    return [request(agent(1, **where), first, chat(3, events=[done], **where))]


def indexed(draw: Random, number: int, made: list[Call]) -> list[Any]:
    """OpenLLMetry's attributes, one for each part of a message."""
    trace = f"{number + 1:032x}"
    attributes: dict[str, Any] = {
        "gen_ai.request.model": "m",
        "gen_ai.system": "openai",
        "llm.request.type": "chat",
        "gen_ai.usage.prompt_tokens": 3,
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": words(number),
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Done.",
    }
    for at, (name, args) in enumerate(made):
        key = f"gen_ai.completion.0.tool_calls.{at}"
        attributes |= {f"{key}.id": f"c{at}", f"{key}.name": name, f"{key}.arguments": json.dumps(args)}
    return [request(agent(1, trace=trace), span(2, 1, "openai.chat", trace=trace, **attributes))]


def adk(draw: Random, number: int, made: list[Call]) -> list[Any]:
    """ADK's own attributes."""
    where = {"trace": f"{number + 1:032x}"}
    invocation = {"gcp.vertex.agent.invocation_id": f"i{number}"}

    def asking(*contents: Any, answer: Any) -> dict[str, Any]:
        said_to = {"model": "gemini", "contents": list(contents)}
        told = {"content": {"role": "model", "parts": answer}}
        return {
            "gen_ai.system": "gcp.vertex.agent",
            "gen_ai.request.model": "gemini",
            "gcp.vertex.agent.llm_request": json.dumps(said_to),
            "gcp.vertex.agent.llm_response": json.dumps(told),
            **invocation,
        }

    user = {"role": "user", "parts": [{"text": words(number)}]}
    wanted = [{"function_call": {"id": f"c{at}", "name": name, "args": args}} for at, (name, args) in enumerate(made)]
    spans = [span(1, 0, "invocation", **where), agent(2, 1, **where)]
    spans.append(span(3, 2, "call_llm", **asking(user, answer=wanted or [{"text": "Done."}]), **where))
    for at, (name, args) in enumerate(made):
        place = 10 + at
        marks = {"gcp.vertex.agent.tool_call_args": json.dumps(args), "gcp.vertex.agent.tool_response": '{"ok": 1}'}
        spans.append(tool(place, 3, name, **marks, **{"gen_ai.tool.call.id": f"c{at}"}, **invocation, **where))
    spans.append(span(99, 2, "call_llm", **asking(user, answer=[{"text": "Done."}]), **where))
    return [request(*spans, scope="gcp.vertex.agent")]


def in_base64(draw: Random, number: int, made: list[Call]) -> list[Any]:
    """What a plain conversion of protobuf to JSON writes."""
    (one,) = plain(draw, number, made)
    for raw in one["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for key in ("traceId", "spanId", "parentSpanId"):
            raw[key] = base64.b64encode(bytes.fromhex(raw[key])).decode()
        raw["status"] = {"code": "STATUS_CODE_OK"}
    return [one]


def server_around(draw: Random, number: int, made: list[Call]) -> list[Any]:
    """A server's span around the agent's, and attributes that are lists and maps."""
    (one,) = plain(draw, number, made)
    spans = one["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for raw in spans:
        raw["parentSpanId"] = raw["parentSpanId"] or f"{0xAA:016x}"
    spans.append(span(0xAA, 0, "POST /chat", trace=f"{number + 1:032x}", seconds=(0.5, 200)))
    spans[0]["attributes"] += keyed({"list": ["a", 1, {"b": True}], "map": {"a": [1.5]}})
    return [one]


SHAPES = (
    *(plain, unspanned, without_arguments, mcp, delegated, in_logs, in_events, indexed, adk, in_base64),
    server_around,
)


def wanted(draw: Random, made: list[Call]) -> list[Call]:
    """What a case expects: what was called, or nearly."""
    found = list(made)
    if draw.random() < 0.5:
        return found
    if found and draw.random() < 0.5:
        found.pop(draw.randrange(len(found)))
    elif len(found) > 1 and draw.random() < 0.5:
        draw.shuffle(found)
    else:
        found.insert(draw.randrange(len(found) + 1), (draw.choice(TOOLS), {"order": 0}))
    return found


def eval_set(expected: list[list[Call]]) -> dict[str, Any]:
    """An eval set of ADK with one case for each trace."""

    def content(role: str, words: str) -> dict[str, Any]:
        return {"role": role, "parts": [{"text": words}]}

    def case(number: int, tools: list[Call]) -> dict[str, Any]:
        uses = [{"name": name, "args": args} for name, args in tools]
        turn = {
            "invocation_id": f"i{number}",
            "user_content": content("user", words(number)),
            "final_response": content("model", "Done."),
            "intermediate_data": {"tool_uses": uses, "intermediate_responses": []},
        }
        session = {"app_name": "app", "user_id": "user", "state": {}}
        return {"eval_id": f"case-{number}", "conversation": [turn], "session_input": session}

    return {"eval_set_id": "set", "eval_cases": [case(number, tools) for number, tools in enumerate(expected)]}
