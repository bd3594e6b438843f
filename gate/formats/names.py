"""The words by which formats from outside name the parts of a conversation. Every reader of messages looks here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

ROLES = {
    **{role: role for role in ("system", "user", "assistant", "tool")},
    "developer": "system",
    "function": "tool",
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
}
"""Each role, with OpenAI's current name: LangChain has types instead, and OpenAI used other names before."""
CALLS = frozenset(
    {
        *("tool_use", "server_tool_use", "mcp_tool_use"),  # Anthropic; the provider ran those of a server
        *("tool-call", "tool_call", "server_tool_call"),  # the AI SDK, OpenTelemetry, LangChain
        *("function_call", "toolUse"),  # OpenAI's items, Bedrock
    }
)
"""The types of the parts that hold calls."""
_RESULTS = ("tool_result", "tool-result", "toolResult", "tool_call_response", "function_call_output")
"""The ends of the types of the parts that hold results: ``web_search_tool_result``."""
NAME = ("name", "toolName")
ARGUMENTS = ("arguments", "args", "input")
RESULT = ("content", "output", "result", "response")
CALL_ID = ("call_id", "tool_call_id", "tool_use_id", "toolCallId", "toolUseId")
"""The keys that join a call and its result; a call's ``id`` does so in formats that have none of these."""


def is_result(kind: str) -> bool:
    """True for the type of a part that holds the result of a tool."""
    return kind.endswith(_RESULTS)


def first_value(body: Mapping[str, Any], *keys: str) -> Any:
    """Return the value of the first of these keys that has one; None if none has."""
    for key in keys:
        if key in body:
            value = body[key]
            if value is not None:
                return value
    return None


@lru_cache(maxsize=1_000)
def camel(name: str) -> str:
    """Return ``snake_case`` as ``camelCase``."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
