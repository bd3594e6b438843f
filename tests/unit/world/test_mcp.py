"""What an MCP server offers, read from its answers, and which tool changed in which words."""

from __future__ import annotations

import json
from typing import Any

from gate.world.mcp import listed, tool_changes, tools_in
from gate.world.outbound import OutboundRequest

FIND: dict[str, Any] = {"name": "find", "description": "Finds an order.", "inputSchema": {"type": "object"}}
SEND: dict[str, Any] = {"name": "send", "description": "Sends a mail."}


def said(result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()


def asked(method: str) -> OutboundRequest:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode()
    return OutboundRequest("orders", "mcp", "POST", "", {}, body, 0.0)


def test_each_tool_that_changed_is_named_with_its_words() -> None:
    for now, told in [
        ([FIND, SEND], []),
        ([{**FIND, "description": "Finds any."}, SEND], ['find: description: "Finds an order." → "Finds any."']),
        ([FIND], ["send is no longer offered"]),
        ([FIND, SEND, {"name": "pay"}], ["pay is new"]),
        ([SEND, FIND], ["they are listed in another order"]),
        ([{**FIND, "inputSchema": {"type": "x"}}, SEND], ['find: inputSchema.type: "object" → "x"']),
        (
            [{**FIND, "title": "F", "description": "D"}, {**SEND, "description": "S"}],
            [
                'find: description: "Finds an order." → "D"',
                'find: title: not there → "F"',
                'send: description: "Sends a mail." → "S"',
            ],
        ),
        ([1], ['tools[0]: {"name": "find", "description": "Finds an order.", "inputSchema"… → 1']),
    ]:
        found = tool_changes([FIND, SEND], now)
        assert [one[:60] for one in found] == [one[:60] for one in told], (now, told)


def test_tools_are_read_from_whole_answers_and_from_streams() -> None:
    whole = said({"tools": [FIND]})
    assert listed(whole) == listed(b"event: message\r\ndata: " + whole + b"\r\n\r\n") == [FIND]
    assert tools_in(asked("tools/list"), whole) == [FIND]


def test_an_answer_without_a_list_has_no_tools() -> None:
    for body in [b"", b"garbage", said({"tools": 1}), said([]), said(None), b'{"error": {"code": 1}}']:
        assert listed(body) is None, body


def test_another_question_lists_no_tools() -> None:
    assert tools_in(asked("tools/call"), said({"tools": [FIND]})) is None
