"""Which path of an OpenAPI description takes a message and gives an answer, as configuration of an `http:` agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MESSAGE = ("message", "question", "query", "prompt", "input", "text", "user_input", "content")
OUTPUT = ("answer", "output", "response", "reply", "text", "message", "result", "content")
SESSION = ("session_id", "sessionId", "thread_id", "threadId", "conversation_id", "conversationId", "session")
DEFAULT_SERVER = "http://127.0.0.1:8000"
MOST_PATHS = 500


def agent_of(document: Any) -> tuple[str, dict[str, Any]] | None:
    """Why, and the agent's section of a configuration; None where no operation takes a message."""
    if not isinstance(document, Mapping) or not isinstance(document.get("paths"), Mapping):
        return None
    for path, operation in _posts(document["paths"]):
        request = _properties(document, operation.get("requestBody"))
        message = next((name for name in MESSAGE if name in request), None)
        if message is None:
            continue
        responses = operation.get("responses")
        answer = _properties(document, next(iter(_successes(responses)), None))
        return f"POST {path} takes {message!r}", {"http": _options(document, path, message, request, answer)}
    return None


def _posts(paths: Mapping[Any, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path, item in list(paths.items())[:MOST_PATHS]:
        operation = item.get("post") if isinstance(item, Mapping) else None
        if isinstance(operation, Mapping) and isinstance(path, str) and "{" not in path:
            yield path, operation


def _successes(responses: Any) -> Iterator[Any]:
    if isinstance(responses, Mapping):
        yield from (response for status, response in responses.items() if str(status).startswith("2"))


def _options(
    document: Mapping[str, Any], path: str, message: str, request: Mapping[str, Any], answer: Mapping[str, Any]
) -> dict[str, Any]:
    servers = document.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else None
    url = first.get("url") if isinstance(first, Mapping) else None
    server = url if isinstance(url, str) and url.startswith(("http://", "https://")) else DEFAULT_SERVER
    session = {name: "{{session_id}}" for name in SESSION if name in request}
    options: dict[str, Any] = {"url": server.rstrip("/") + path, "request": {message: "{{message}}", **session}}
    output = next((name for name in OUTPUT if name in answer), None)
    return {**options, "response": {"output": output}} if output else options


def _properties(document: Mapping[str, Any], body: Any) -> Mapping[str, Any]:
    """The properties of the JSON that a body holds; empty where there are none."""
    body = _resolved(document, body)
    content = body.get("content") if isinstance(body, Mapping) else None
    media = content.get("application/json") if isinstance(content, Mapping) else None
    schema = _resolved(document, media.get("schema")) if isinstance(media, Mapping) else None
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _resolved(document: Mapping[str, Any], node: Any) -> Any:
    """What a ``$ref`` within the document leads to; a few steps, since references may go round."""
    for _ in range(5):
        reference = node.get("$ref") if isinstance(node, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return node
        node = document
        for part in reference[2:].split("/"):
            node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
    return node
