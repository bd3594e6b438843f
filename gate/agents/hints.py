"""Recognises the product behind an unreadable answer or a refusal, and says what to write instead.

Each entry was tried against the released framework: tests/connectors/test_hints.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gate.formats.messages import OBJECT

LOOKED_AT = 20_000
"""Characters of a refusal to look at."""
FRAMEWORKS: tuple[tuple[frozenset[str], str, str, str], ...] = tuple(
    (frozenset(keys.split()), name, returned, mapped or returned)
    for keys, name, returned, mapped in (
        (
            "choices object",
            "Chat Completions",
            'return {"messages": [choices[0].message], "usage": usage}',
            'use openai:, or KEY: {output: "choices[0].message.content", '
            'tool_calls: "choices[0].message.tool_calls?", usage: usage}',
        ),
        (
            "object output",
            "OpenAI's Responses",
            'return {"messages": output, "usage": usage}',
            "use openai: with api: responses, or KEY: {messages: output, usage: usage}",
        ),
        ("author content", "events of google-adk", "return the whole list of events", "use adk:"),
        ("jsonrpc result", "a server of A2A or MCP", "use a2a: or mcp:", ""),
        ("jsonrpc error", "a server of A2A or MCP", "use a2a: or mcp:", ""),
        ("supportedInterfaces", "the card of an A2A agent", "use a2a:", ""),
        (
            "candidates",
            "Gemini",
            "return the text of candidates[0].content.parts",
            "KEY.output: candidates[0].content.parts[0].text",
        ),
        (
            "role content stop_reason",
            "Anthropic's Messages",
            'return {"messages": [message], "usage": usage}',
            'KEY: {output: "content[type=text][0].text", '
            'tool_calls: {path: "content[type=tool_use]", name: name, args: input}, usage: usage}',
        ),
        ("thread_id created_at", "a LangGraph server", "use langgraph:", ""),
        ("run_id attempt", "a LangGraph server's stream", "use langgraph:, or ask for the stream_mode values", ""),
        (
            "stop_reason message metrics",
            "Strands",
            "return str(result), export its spans (StrandsTelemetry), and set agent.traces: true for its calls",
            "",
        ),
    )
)
"""The keys of an answer, the product they belong to, what to return, and what to write instead; KEY is the key that
maps the answer."""
LANGCHAIN = {"content", "additional_kwargs", "response_metadata"}
"""Keys of a LangChain message."""
REFUSALS = (
    (re.compile(r'"(threadId|runId)"'), "agui", "AG-UI"),
    (re.compile(r'"(appName|app_name|newMessage|new_message|userId)"'), "adk", "an ADK server"),
    (re.compile(r"\bassistant_id\b"), "langgraph", "a LangGraph server"),
    (re.compile(r'"jsonrpc"'), "mcp", "an MCP server"),
)
"""The part that a server says is missing, the kind of agent that would send it, and the name of the server."""
LACKS = re.compile(r'"loc": ?\[ ?"body", ?"(\w{1,40})"\]')
"""The part of a JSON body that FastAPI and pydantic say is missing."""
EXPECTED = {
    "http": "agent.http.url is the whole address of the agent, with its path",
    "openai": "agent.openai.url is what comes before /chat/completions or /responses, such as http://localhost:8000/v1",
    "agui": "agent.agui is the whole address of an AG-UI endpoint, with its path",
    "adk": "agent.adk.url is the address of an ADK server (adk api_server)",
    "langgraph": "agent.langgraph.url is the address of a LangGraph server (langgraph dev)",
    "mcp": "agent.mcp.url is the whole address of an MCP server over HTTP, with its path",
}
"""The address that each kind of agent needs."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}\Z")
"""A name that is itself a path."""
MOST_TEXTS = 3
"""The most names that a hint offers."""
_NOWHERE = re.compile(
    r'(?i)(?:|not found|method not allowed|\{"detail": ?"(?:not found|method not allowed)"\}|<(?:!doc|html).*)',
    re.DOTALL,
)
"""Answers of a server to an unknown path; any other answer states the problem itself."""


UNCONNECTED = (
    (re.compile(r"certificate", re.IGNORECASE), "SSL_CERT_FILE names the file with the certificate of who signed it"),
    (re.compile(r"no TLS connection"), "does its address begin with http://?"),
    (re.compile(r"^through the proxy"), "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY say which is taken"),
    (re.compile(r"^the connection closed|^the server closed"), "the server's own log says why"),
)
"""Connection errors, each with its remedy."""


def unconnected(message: str, kind: str, *, reached: bool) -> str:
    """Return the remedy for a connection that failed or broke; empty if none is known."""
    found = next((remedy for pattern, remedy in UNCONNECTED if pattern.search(message)), "")
    if not found and not reached:
        found = f"is the server started, and is agent.{kind}.url right?"
    if not found:
        return ""
    return f"; {found}"


def looks_like(answer: Any, mapping: str = "") -> str:
    """Return a hint on the framework that answers in this form, and how to read it; empty if none is known.

    ``mapping``: the configuration key that gives the paths of the answer's parts, such as ``http.response``; empty for
    an agent without one, such as a function.
    """
    if isinstance(answer, list):
        answer = next(iter(answer), None)
        if _are_langchains(answer) or (isinstance(answer, OBJECT) and _are_langchains(answer.get("messages"))):
            return "; this looks like the stream of a LangGraph graph: return what invoke gives"
    if not isinstance(answer, OBJECT):
        return ""
    for keys, name, returned, mapped in FRAMEWORKS:
        if keys <= answer.keys() and mapping:
            return f"; this looks like {name}: {mapped.replace('KEY', mapping)}"
        if keys <= answer.keys():
            return f"; this looks like {name}: {returned}"
    return _state_of_a_graph(answer, mapping)


def says_elsewhere(answer: Any, mapping: str = "") -> str:
    """Return `looks_like`, or else where the answer has a text that nothing reads; empty if there is none."""
    known = looks_like(answer, mapping)
    if known or not isinstance(answer, OBJECT) or {"output", "messages"} & answer.keys():
        return known
    texts = [name for name, value in answer.items() if isinstance(value, str) and value.strip() and _PLAIN.match(name)]
    if not texts:
        return ""
    shown = ", ".join(map(repr, texts[:MOST_TEXTS]))
    told = f"; return {shown} as output"
    if mapping:
        told += f", or set {mapping}.output: {texts[0]}"
    return told


def _state_of_a_graph(answer: Mapping[str, Any], mapping: str) -> str:
    """Return a hint if LangChain messages are under another name, or in the output of one node; empty otherwise."""
    for name, value in answer.items():
        if _are_langchains(value):
            if name == "messages":
                return ""
            remedy = f'return {{"messages": state["{name}"]}}'
            if mapping:
                remedy += f", or {mapping}.messages: {name}"
            return f"; this looks like the state of a LangGraph graph: {remedy}"
        if isinstance(value, Mapping) and _are_langchains(value.get("messages")):
            return "; this looks like the updates of a LangGraph graph: return what invoke gives, or use langgraph:"
    return ""


def _are_langchains(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], OBJECT) and value[0].keys() >= LANGCHAIN


def refused_by(status: int, body: bytes, kind: str) -> str:
    """Return a hint on the kind of agent from a server's refusal; empty if there is none."""
    said = body[:LOOKED_AT].decode("utf-8", "replace")
    if status in (404, 405) and _NOWHERE.fullmatch(said.strip()):
        if kind not in EXPECTED:
            return ""
        return f"; {EXPECTED[kind]}"
    if status in (400, 406, 415, 422):
        found = next(((other, name) for pattern, other, name in REFUSALS if pattern.search(said)), None)
        if found is not None and found[0] != kind:
            return f"; this looks like {found[1]}: use {found[0]}:"
        lacks = LACKS.search(said)
        if lacks is not None and kind == "http":
            return f'; send it: agent.http.request: {{{lacks[1]}: "{{{{message}}}}"}}'
    return ""
