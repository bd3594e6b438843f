"""Finds the operation in an OpenAPI description that takes a message and returns an answer.

Servers of frameworks are recognised by operations that only they have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from gate.commands.setup.found import FoundAgent
from gate.formats.shapes import as_list, as_mapping, as_text, mappings_in

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
    "thread",
)
CALLS = ("tool_calls", "toolCalls", "tools", "steps", "calls", "tools_called", "actions", "intermediate_steps")
PARTS: Mapping[str, tuple[str, ...]] = {
    "name": ("name", "tool", "tool_name", "toolName", "function"),
    "args": ("args", "arguments", "parameters", "input", "tool_input", "params"),
    "result": ("result", "output", "observation", "response"),
}
"""Part of a call → its possible names."""
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
"""Words in the paths of operations that are not chats but may also take a text."""
PORT = 8000
NODE = "Node"
"""The framework of an agent in JavaScript or TypeScript."""
DEFAULT_SERVER = f"http://127.0.0.1:{PORT}"
MOST_PATHS, MOST_STEPS = 500, 5
JSON, EVENTS = "application/json", "text/event-stream"
HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,60}")
MOST_EXAMPLE = 500
"""Maximum number of characters in an example's JSON to copy."""
KEY_VARIABLE = "AGENT_API_KEY"
"""The variable that holds the server's key in a proposal."""

Schema = Mapping[str, Any]


def agent_of(document: Any, *, origin: str = "", path: str = "") -> FoundAgent | None:
    """Return the operation that is most likely the agent; None if no operation takes a message.

    ``origin`` is the address where the server was reached, which replaces that in the description; ``path`` is that of
    the operation, if known.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("paths"), Mapping):
        return None
    root = _root(document, origin)
    if not path:
        known = _framework(document["paths"], root)
        if known is not None:
            return known
    best = None
    for rank, url, agent in _operations(_Description(document), root):
        if path and url != origin + path:
            continue
        if best is None or rank < best[0]:
            best = rank, agent
    return None if best is None else best[1]


def _first(names: Iterable[str], held: Container[str]) -> str | None:
    """Return the first of the names that ``held`` contains."""
    for name in names:
        if name in held:
            return name
    return None


# --- the address ----------------------------------------------------------------------------------


def _root(document: Schema, origin: str) -> str:
    """Return the address before the paths of the operations."""
    servers = mappings_in(document.get("servers"))
    told = as_text(servers[0].get("url")) if servers else ""
    if "{" in told:
        told = ""
    try:
        parts = urlsplit(urljoin((origin or DEFAULT_SERVER) + "/", told))
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        usable = False
    if not usable:
        return origin or DEFAULT_SERVER
    return (origin or f"{parts.scheme}://{parts.netloc}") + parts.path.rstrip("/")


def _at(root: str, path: str) -> str:
    return f"{root}/{path.lstrip('/')}"


def _framework(paths: Schema, root: str) -> FoundAgent | None:
    """Return the agent of a server whose protocol has its own kind of agent; None for any other."""
    if "/run" in paths and "/list-apps" in paths:
        agent: dict[str, Any] = {"adk": {"url": root, "app": "my_app"}}
        notes = ("agent.adk.app: its app's name",)
        return FoundAgent("an ADK server", "it serves /list-apps and /run", agent, notes)
    if "/threads/{thread_id}/runs/wait" in paths:
        agent = {"langgraph": {"url": root, "assistant": "agent"}}
        notes = ("agent.langgraph.assistant: the graph's name",)
        return FoundAgent("a LangGraph server", "it serves /threads/{thread_id}/runs/wait", agent, notes)
    for path in paths:
        if isinstance(path, str) and path.endswith("/chat/completions") and "{" not in path:
            url = _at(root, path).removesuffix("/chat/completions")
            agent = {"openai": {"url": url, "model": "my-model"}}
            notes = ("agent.openai.model: its model",)
            return FoundAgent("a Chat Completions server", f"it serves {path}", agent, notes)
    return None


# --- operations -----------------------------------------------------------------------------------


def _operations(description: _Description, root: str) -> Iterator[tuple[tuple[int, ...], str, FoundAgent]]:
    """Yield the rank, the address and the agent of each operation that takes a message; the lowest rank is proposed."""
    number = 0
    for path, item in list(description.document["paths"].items())[:MOST_PATHS]:
        operation = as_mapping(item).get("post")
        if not isinstance(path, str) or "{" in path or not isinstance(operation, Mapping):
            continue
        number += 1
        url = _at(root, path)
        asked = description.asked(operation)
        request = description.properties(asked)
        if request.keys() >= {"threadId", "runId", "messages"}:
            why = f"POST {path} takes threadId, runId and messages"
            yield (-1, number), url, FoundAgent("an AG-UI server", why, {"agui": url})
            continue
        name = _first(("messages", *MESSAGE), request)
        if name is None:
            continue
        template, guess = description.template(asked, request, name)
        response, streams = description.answer(operation)
        headers = description.key(operation)
        notes = [f"agent.http.request.{key}: a value that the server accepts" for key in guess]
        options: dict[str, Any] = {"url": url}
        if headers:
            options["headers"] = headers
            notes.append(f"{KEY_VARIABLE}: the variable that holds the server's key")
        options["request"] = template
        if response:
            options["response"] = response
        why = f"POST {path} takes {name!r}"
        if streams:
            why += ", and answers with a stream of events"
        rank = (*_unlikeliness(path, operation), number)
        yield rank, url, FoundAgent("an HTTP server", why, {"http": options}, tuple(notes))


def _unlikeliness(path: str, operation: Schema) -> tuple[int, int]:
    """Return how unlikely an operation is to be a chat; lower is likelier."""
    words = f"{path} {operation.get('operationId') or ''}".lower()
    talks = len(CHATTY)
    for place, word in enumerate(CHATTY):
        if word in words:
            talks = place
            break
    other = any(word in words for word in OTHERWISE)
    return 2 * (operation.get("deprecated") is True) + other, talks


class _Description(Struct, frozen=True):
    """A document whose schemas refer to each other."""

    document: Schema

    # --- requests ---

    def asked(self, operation: Schema) -> Any:
        """Return the schema of the request's JSON."""
        return self._schema(self._resolved(operation.get("requestBody")))

    def template(self, asked: Any, request: Schema, name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the request, and its keys whose values are placeholders."""
        template: dict[str, Any] = {name: "{{messages}}" if name == "messages" else self._message(request[name])}
        for key in SESSION:
            if key in request:
                template[key] = "{{session_id}}"
        if "stream" in request:
            template["stream"] = False
        guess = []
        for key in as_list(as_mapping(asked).get("required")):
            if not isinstance(key, str) or key in template:
                continue
            stated, template[key] = _example(self._resolved(request.get(key)))
            if not stated:
                guess.append(key)
        return template, tuple(guess)

    def _message(self, schema: Any) -> Any:
        """Return the message in the form that its key expects: a text, or an object that contains it, as in chats."""
        fields = self.properties(schema)
        inner = _first(("content", "text", *MESSAGE), fields)
        if inner is None:
            if "parts" in fields:
                return {"role": "user", "parts": [{"type": "text", "text": "{{message}}"}]}
            return "{{message}}"
        if "role" in fields:
            return {"role": "user", inner: "{{message}}"}
        return {inner: "{{message}}"}

    def key(self, operation: Schema) -> dict[str, str]:
        """Return the header in which an operation expects a key; empty if it needs none."""
        needs = operation.get("security", self.document.get("security"))
        schemes = as_mapping(as_mapping(self.document.get("components")).get("securitySchemes"))
        if {} in as_list(needs):
            return {}
        for one in mappings_in(needs):
            for name in one:
                scheme = as_mapping(self._resolved(schemes.get(name)))
                header = as_text(scheme.get("name"))
                if scheme.get("type") == "apiKey" and scheme.get("in") == "header" and HEADER.fullmatch(header):
                    return {header: f"${{{KEY_VARIABLE}}}"}
                if scheme.get("type") in ("http", "oauth2"):
                    return {"Authorization": f"Bearer ${{{KEY_VARIABLE}}}"}
        return {}

    # --- answers ---

    def answer(self, operation: Schema) -> tuple[dict[str, Any], bool]:
        """Return the paths to the parts of an answer, and True if it can only be streamed."""
        body = None
        for status, response in as_mapping(operation.get("responses")).items():
            if str(status).startswith("2"):
                body = self._resolved(response)
                break
        content = as_mapping(as_mapping(body).get("content"))
        if EVENTS in content and JSON not in content:
            return {}, True
        schema = self._schema(body)
        fields = self.properties(schema)
        needed = as_list(as_mapping(schema).get("required"))
        output = self._output(fields)
        if output is None:
            return ({"messages": "messages"} if "messages" in fields else {}), False
        found: dict[str, Any] = {"output": output}
        calls = _first(CALLS, fields)
        if calls is not None:
            found["tool_calls"] = self._calls(calls if calls in needed else f"{calls}?", fields[calls])
        if "usage" in fields:
            found["usage"] = "usage" if "usage" in needed else "usage?"
        return found, False

    def _output(self, fields: Schema) -> str | None:
        """Return the path of the answer's text, inside an object if its field holds one."""
        name = _first(OUTPUT, fields)
        if name is None:
            return None
        inner = _first(("content", *OUTPUT), self.properties(fields[name]))
        return name if inner is None else f"{name}.{inner}"

    def _calls(self, path: str, schema: Any) -> Any:
        """Return the path of the calls, with the names of their parts if the description has them."""
        listed = as_mapping(self._resolved(schema))
        for one in mappings_in(listed.get("anyOf")):
            if one.get("type") == "array":
                listed = one
        held = self.properties(listed.get("items"))
        told = {"path": path}
        for part, names in PARTS.items():
            name = _first(names, held)
            if name is not None:
                told[part] = name
        return told if "name" in told else path

    # --- schemas ---

    def _schema(self, body: Any) -> Any:
        """Return the schema of a body in JSON, whatever the parameters of its media type."""
        for kind, found in as_mapping(as_mapping(body).get("content")).items():
            if str(kind).partition(";")[0].strip() == JSON:
                return self._resolved(as_mapping(found).get("schema"))
        return None

    def properties(self, schema: Any, depth: int = 0) -> Schema:
        """Return the properties of an object, including those of the schemas that it is composed of."""
        schema = self._resolved(schema)
        if not isinstance(schema, Mapping) or depth > MOST_STEPS:
            return {}
        found: dict[str, Any] = {}
        for key in ("allOf", "anyOf", "oneOf"):
            for part in as_list(schema.get(key))[:MOST_STEPS]:
                found = {**self.properties(part, depth + 1), **found}
        for name, held in as_mapping(schema.get("properties")).items():
            found[str(name)] = held
        return found

    def _resolved(self, node: Any) -> Any:
        """Return the target of a ``$ref`` within the document; follows only a few steps, since they may be circular."""
        for _ in range(MOST_STEPS):
            reference = as_text(as_mapping(node).get("$ref"))
            if not reference.startswith("#/"):
                return node
            node = self.document
            for part in reference[2:].split("/"):
                node = as_mapping(node).get(part.replace("~1", "/").replace("~0", "~"))
        return node


PLAIN_VALUES: Schema = {"integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}


def _example(schema: Any) -> tuple[bool, Any]:
    """Return True and the value that a schema states, or False and a placeholder of its type."""
    schema = as_mapping(schema)
    stated = []
    for key in ("const", "default", "example"):
        if key in schema:
            stated.append(schema[key])
    for key in ("enum", "examples"):
        stated += as_list(schema.get(key))[:1]
    for value in stated[:1]:
        text = json.dumps(value, default=repr)
        if len(text) <= MOST_EXAMPLE and "{{" not in text:  # a field in braces would be filled in
            return True, json.loads(text)
    return False, PLAIN_VALUES.get(as_text(schema.get("type")), "gate")
