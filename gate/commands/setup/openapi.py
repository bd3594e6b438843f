"""Finds the operation of an OpenAPI description that takes a message and gives an answer, as an agent's configuration.

Versions 3.x and 2.0 are read. Servers of frameworks are known by operations that only they have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from gate.formats.positions import Key

MESSAGE = ("message", "question", "query", "prompt", "user_message", "input", "text", "user_input", "content")
OUTPUT = ("answer", "output", "response", "reply", "text", "message", "result", "content", "completion")
SESSION = (
    "session_id",
    "sessionId",
    "thread_id",
    "threadId",
    "conversation_id",
    "conversationId",
    "chat_id",
    "session",
)
CALLS = ("tool_calls", "toolCalls", "tools", "steps", "calls", "tools_called", "actions", "intermediate_steps")
PARTS: Mapping[str, tuple[str, ...]] = {
    "name": ("name", "tool", "tool_name", "toolName", "function"),
    "args": ("args", "arguments", "parameters", "input", "tool_input", "params"),
    "result": ("result", "output", "observation", "response"),
}
"""Part of a call → names under which it is given."""
CHATTY = (
    "chat",
    "ask",
    "agent",
    "invoke",
    "query",
    "message",
    "assist",
    "answer",
    "respond",
    "run",
    "complet",
    "convers",
)
OTHERWISE = ("login", "token", "auth", "feedback", "upload", "embed", "search", "user", "health", "webhook", "batch")
"""Words in a path of operations that talk, and of those that merely take a text."""
DEFAULT_SERVER = "http://127.0.0.1:8000"
MOST_PATHS, MOST_STEPS = 500, 5
JSON, EVENTS = "application/json", "text/event-stream"
HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,60}")
MOST_EXAMPLE = 500
"""Characters of an example's JSON that is taken over."""
KEY_VARIABLE = "AGENT_API_KEY"
"""The variable that a proposal takes a server's key from."""

Schema = Mapping[str, Any]


class DescribedAgent(Struct, frozen=True):
    """A way to ask a described server."""

    why: str
    agent: dict[str, Any]
    """The section ``agent`` in gate.yaml."""
    framework: str = "an HTTP server"
    notes: tuple[str, ...] = ()
    """The parts that only somebody who knows the server can fill in."""


def agent_of(document: Any, *, origin: str = "", path: str = "") -> DescribedAgent | None:
    """The operation that seems to be the agent; None where no operation takes a message.

    ``origin`` is where the server was reached, in place of the address in the description; ``path`` is that of the
    operation, if it is known.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("paths"), Mapping):
        return None
    base = _base(document, origin)
    known = _framework(document["paths"], base)
    if known is not None and not path:
        return known
    found = [one for one in _operations(document) if not path or base.path(one.path) == path]
    best = min(found, key=lambda one: one.rank, default=None)
    return None if best is None else best.proposal(base)


# --- where it is ----------------------------------------------------------------------------------


class _Base(Struct, frozen=True):
    origin: str
    prefix: str
    """Path that stands before those of the operations."""

    def path(self, path: str) -> str:
        return f"{self.prefix}/{path.lstrip('/')}"

    def url(self, path: str) -> str:
        return self.origin + self.path(path)


def _base(document: Schema, origin: str) -> _Base:
    servers = document.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else None
    host = document.get("host")  # 2.0
    old = f"{f'http://{host}' if isinstance(host, str) else ''}{document.get('basePath') or ''}"
    told = first.get("url") if isinstance(first, Mapping) else old
    told = told if isinstance(told, str) and "{" not in told else ""
    try:
        parts = urlsplit(urljoin((origin or DEFAULT_SERVER) + "/", told))
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        usable = False
    if not usable:
        return _Base(origin or DEFAULT_SERVER, "")
    return _Base(origin or f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/"))


def _framework(paths: Schema, base: _Base) -> DescribedAgent | None:
    """A server whose protocol is spoken by a kind of its own."""
    if "/run" in paths and "/list-apps" in paths:
        agent: dict[str, Any] = {"adk": {"url": base.origin + base.prefix, "app": "my_app"}}
        return DescribedAgent(
            "it serves /list-apps and /run", agent, "an ADK server", ("agent.adk.app: its app's name",)
        )
    if "/threads/{thread_id}/runs/wait" in paths:
        agent = {"langgraph": {"url": base.origin + base.prefix, "assistant": "agent"}}
        notes = ("agent.langgraph.assistant: the graph's name",)
        return DescribedAgent("it serves /threads/{thread_id}/runs/wait", agent, "a LangGraph server", notes)
    chat = next((path for path in paths if isinstance(path, str) and path.endswith("/chat/completions")), None)
    if chat is not None and "{" not in chat:
        url = base.url(chat).removesuffix("/chat/completions")
        agent = {"openai": {"url": url, "model": "my-model"}}
        return DescribedAgent(
            f"it serves {chat}", agent, "a server of Chat Completions", ("agent.openai.model: its model",)
        )
    return None


# --- operations -----------------------------------------------------------------------------------


class _Operation(Struct):
    """One that takes a message."""

    path: str
    rank: tuple[int, ...]
    """The one with the least is proposed."""
    message: str
    request: dict[str, Any]
    response: dict[str, Any]
    streams: bool
    """True if it answers with events alone."""
    guess: tuple[str, ...]
    """Keys of the request whose values are made up."""
    headers: dict[str, str]
    is_agui: bool = False

    def proposal(self, base: _Base) -> DescribedAgent:
        url = base.url(self.path)
        if self.is_agui:
            return DescribedAgent(
                f"POST {self.path} takes threadId, runId and messages", {"agui": url}, "an AG-UI server"
            )
        options: dict[str, Any] = {"url": url, **({"headers": self.headers} if self.headers else {})}
        options |= {"request": self.request, **({"response": self.response} if self.response else {})}
        notes = [f"agent.http.request.{name}: a value that the server accepts" for name in self.guess]
        notes += [f"{KEY_VARIABLE}: the variable that holds the server's key"] if self.headers else []
        stream = ", and answers with a stream of events" if self.streams else ""
        return DescribedAgent(f"POST {self.path} takes {self.message!r}{stream}", {"http": options}, notes=tuple(notes))


def _operations(document: Schema) -> Iterator[_Operation]:
    posts = (
        (path, item["post"])
        for path, item in list(document["paths"].items())[:MOST_PATHS]
        if isinstance(path, str) and "{" not in path and isinstance(item, Mapping)
        if isinstance(item.get("post"), Mapping)
    )
    for number, (path, operation) in enumerate(posts):
        asked = _asked(document, operation)
        request = _properties(document, asked)
        if request.keys() >= {"threadId", "runId", "messages"}:
            yield _Operation(path, (-1, number), "messages", {}, {}, True, (), {}, is_agui=True)
            continue
        name = "messages" if "messages" in request else next((one for one in MESSAGE if one in request), None)
        if name is None:
            continue
        template, guess = _template(document, asked, request, name)
        response, streams = _answer(document, operation)
        rank = (*_liking(path, operation), number)
        yield _Operation(path, rank, name, template, response, streams, guess, _key(document, operation))


def _liking(path: str, operation: Schema) -> tuple[int, int]:
    words = f"{path} {operation.get('operationId') or ''}".lower()
    talks = next((place for place, word in enumerate(CHATTY) if word in words), len(CHATTY))
    other = any(word in words for word in OTHERWISE)
    return 2 * (operation.get("deprecated") is True) + other, talks


def _asked(document: Schema, operation: Schema) -> Any:
    """The schema of the JSON that a request holds."""
    body = _resolved(document, operation.get("requestBody"))
    if body is None:  # 2.0
        told = operation.get("parameters")
        listed = [_resolved(document, one) for one in told] if isinstance(told, list) else []
        held = next((one for one in listed if isinstance(one, Mapping) and one.get("in") == "body"), None)
        return None if held is None else _resolved(document, held.get("schema"))
    return _schema(document, body, JSON)


def _template(document: Schema, asked: Any, request: Schema, name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The request, and the keys in it whose values are made up."""
    template: dict[str, Any] = {name: "{{messages}}" if name == "messages" else _said(document, request[name])}
    template |= dict.fromkeys((one for one in SESSION if one in request), "{{session_id}}")
    template |= {"stream": False} if "stream" in request else {}
    wanted = asked.get("required") if isinstance(asked, Mapping) else None
    guess = []
    for key in wanted if isinstance(wanted, list) else []:
        if not isinstance(key, str) or key in template:
            continue
        stated, value = _example(_resolved(document, request.get(key)))
        template[key] = value
        guess += [] if stated else [key]
    return template, tuple(guess)


def _said(document: Schema, schema: Any) -> Any:
    """The message in the form that a key takes it: a text, or an object with one, as chats have."""
    fields = _properties(document, schema)
    inner = next((one for one in ("content", "text", *MESSAGE) if one in fields), None)
    if "parts" in fields and inner is None:
        return {"role": "user", "parts": [{"type": "text", "text": "{{message}}"}]}
    if inner is None:
        return "{{message}}"
    return {**({"role": "user"} if "role" in fields else {}), inner: "{{message}}"}


def _example(schema: Any) -> tuple[bool, Any]:
    """A value that a schema states, or one of its type, and which of the two it is."""
    schema = schema if isinstance(schema, Mapping) else {}
    stated = [schema[key] for key in ("const", "default", "example") if key in schema]
    stated += [schema[key][0] for key in ("enum", "examples") if isinstance(schema.get(key), list) and schema[key]]
    for value in stated[:1]:
        text = json.dumps(value, default=repr)
        if len(text) <= MOST_EXAMPLE and "{{" not in text:  # a field of ours would be replaced
            return True, json.loads(text)
    plain = {"integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}
    kind = schema.get("type")
    return False, plain.get(kind, "gate") if isinstance(kind, str) else "gate"


def _key(document: Schema, operation: Schema) -> dict[str, str]:
    """The header that an operation wants a key in."""
    needs = operation.get("security", document.get("security"))
    components = document.get("components")
    schemes = components.get("securitySchemes") if isinstance(components, Mapping) else None
    schemes = schemes if isinstance(schemes, Mapping) else document.get("securityDefinitions")
    if not isinstance(needs, list) or not isinstance(schemes, Mapping) or {} in needs:
        return {}
    for name in (name for one in needs if isinstance(one, Mapping) for name in one):
        scheme = _resolved(document, schemes.get(name))
        scheme = scheme if isinstance(scheme, Mapping) else {}
        header = scheme.get("name")
        if scheme.get("type") == "apiKey" and scheme.get("in") == "header" and HEADER.fullmatch(str(header)):
            return {str(header): f"${{{KEY_VARIABLE}}}"}
        if scheme.get("type") in ("http", "oauth2"):
            return {"Authorization": f"Bearer ${{{KEY_VARIABLE}}}"}
    return {}


# --- answers --------------------------------------------------------------------------------------


def _answer(document: Schema, operation: Schema) -> tuple[dict[str, Any], bool]:
    """Return the paths to the parts of an answer, and whether it is a stream and nothing else."""
    responses = operation.get("responses")
    said = (
        [one for status, one in responses.items() if str(status)[:1] == "2"] if isinstance(responses, Mapping) else []
    )
    body = _resolved(document, said[0]) if said else None
    content = body.get("content") if isinstance(body, Mapping) else None
    if isinstance(content, Mapping) and EVENTS in content and JSON not in content:
        return _events(document, _resolved(document, content[EVENTS])), True
    schema = _schema(document, body, JSON)
    fields = _properties(document, schema)
    needed = schema.get("required") if isinstance(schema, Mapping) else None
    needed = needed if isinstance(needed, list) else []
    output = _output(document, fields)
    if output is None:
        return ({"messages": "messages"} if "messages" in fields else {}), False
    found: dict[str, Any] = {"output": output}
    calls = next((one for one in CALLS if one in fields), None)
    if calls is not None:
        found["tool_calls"] = _calls(document, calls if calls in needed else f"{calls}?", fields[calls])
    if "usage" in fields:
        found["usage"] = "usage" if "usage" in needed else "usage?"
    return found, False


def _output(document: Schema, fields: Schema) -> str | None:
    """The path of the text; within an object where an object holds it."""
    name = next((one for one in OUTPUT if one in fields), None)
    if name is None:
        return None
    held = _properties(document, fields[name])
    inner = next((one for one in ("content", *OUTPUT) if one in held), None)
    return name if inner is None else f"{name}.{inner}"


def _events(document: Schema, media: Any) -> dict[str, Any]:
    """Return the path to the piece of text in each event, if the description has it; else the events tell the
    dialect."""
    told = _resolved(document, media.get("itemSchema") or media.get("schema")) if isinstance(media, Mapping) else None
    fields = _properties(document, told)
    data = _properties(document, fields.get("data"))
    name = next((one for one in ("delta", "token", "chunk", *OUTPUT) if one in (data or fields)), None)
    return {} if name is None else {"events": {"output": name}}


def _calls(document: Schema, path: str, schema: Any) -> Any:
    """The places of calls: with those of their parts, if they have names that are not the usual ones."""
    listed = _resolved(document, schema)
    for one in listed.get("anyOf") or () if isinstance(listed, Mapping) else ():
        listed = one if isinstance(one, Mapping) and one.get("type") == "array" else listed
    held = _properties(document, listed.get("items")) if isinstance(listed, Mapping) else {}
    parts = {part: next((one for one in names if one in held), None) for part, names in PARTS.items()}
    told = {part: name for part, name in parts.items() if name is not None}
    return {"path": path, **told} if "name" in told else path


# --- schemas --------------------------------------------------------------------------------------


def _schema(document: Schema, body: Any, media: str) -> Any:
    """The schema of a body's JSON, whatever its parameters."""
    if not isinstance(body, Mapping):
        return None
    content = body.get("content")
    if not isinstance(content, Mapping):
        return _resolved(document, body.get("schema"))  # 2.0
    found = next((one for kind, one in content.items() if str(kind).partition(";")[0].strip() == media), None)
    return _resolved(document, found.get("schema")) if isinstance(found, Mapping) else None


def _properties(document: Schema, schema: Any, depth: int = 0) -> Schema:
    """The properties of an object, with those of the parts that it is composed of; empty where there are none."""
    schema = _resolved(document, schema)
    if not isinstance(schema, Mapping) or depth > MOST_STEPS:
        return {}
    found = dict[Key, Any]()
    for key in ("allOf", "anyOf", "oneOf"):
        parts = schema.get(key)
        for part in parts[:MOST_STEPS] if isinstance(parts, list) else []:
            found |= {name: held for name, held in _properties(document, part, depth + 1).items() if name not in found}
    own = schema.get("properties")
    return {str(name): held for name, held in {**found, **(own if isinstance(own, Mapping) else {})}.items()}


def _resolved(document: Schema, node: Any) -> Any:
    """Return the target of a ``$ref`` within the document; a few steps, since references may go round."""
    for _ in range(MOST_STEPS):
        reference = node.get("$ref") if isinstance(node, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return node
        node = document
        for part in reference[2:].split("/"):
            node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
    return node
