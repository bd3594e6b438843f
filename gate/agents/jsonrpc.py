"""Reads responses of JSON-RPC, which A2A and MCP speak."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gate.agents.base import AgentFailure
from gate.formats.shapes import as_mapping
from gate.model import ErrorKind
from gate.security.limits import shorten

INTERNAL_ERROR = -32_603
"""The code for an error inside the server: a crash of the agent."""


def result_in(answer: Any, asked: str, *, key: str) -> Any:
    """Return the result in the response to a request. Raises AgentFailure if there is none.

    Args:
        answer: the response.
        asked: the request's id.
        key: the configuration key that leads to the server.
    """
    if not isinstance(answer, Mapping) or answer.get("jsonrpc") != "2.0":
        raise AgentFailure(ErrorKind.PROTOCOL, f"the answer is not JSON-RPC: is {key} correct?")
    refuse_stated(answer)
    if answer.get("id") != asked:
        raise AgentFailure(ErrorKind.PROTOCOL, "the response answers another request")
    return answer.get("result")


def refuse_stated(answer: Any) -> None:
    """Raise AgentFailure for an answer that states an error."""
    error = as_mapping(answer).get("error")
    if not error:
        return
    told = as_mapping(error)
    code, said, data = told.get("code"), told.get("message"), told.get("data")
    if not isinstance(said, str):
        said = json.dumps(error, ensure_ascii=False, default=repr)
    text = f"the agent reports an error: {shorten(said, 1000)}"
    if code is not None:
        text += f" ({code})"
    if data:
        text += f" ({shorten(json.dumps(data, ensure_ascii=False, default=repr), 300)})"
    if code in (INTERNAL_ERROR, None):
        raise AgentFailure(ErrorKind.CRASH, text)
    raise AgentFailure(ErrorKind.PROTOCOL, text)
