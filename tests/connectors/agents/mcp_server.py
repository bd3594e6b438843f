"""An agent as the tool of an MCP server made with the SDK, over stdio, or over streamable HTTP with `http`."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("shop")
TURNS: dict[str, list[str]] = {}


@server.tool()
def ask(question: str, thread: str = "none") -> dict[str, Any]:
    """Answers questions about orders; the calls that it made are in its answer."""
    if question == "raise":
        raise ToolError("no stock today")
    if question == "key" and "SHOP_API_KEY" not in os.environ:
        raise ToolError("SHOP_API_KEY is not set")
    if question == "exit":
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(3)
    turns = TURNS.setdefault(thread, [])
    turns.append(question)
    call = {"name": "lookup", "arguments": {"order": question}, "result": "shipped"}
    text = f"It has shipped: {question} after {'+'.join(turns[:-1]) or 'nothing'}."
    return {"output": text, "tool_calls": [call], "usage": {"input_tokens": 7, "output_tokens": 3}}


@server.tool()
def plain(question: str) -> str:
    """Answers with text."""
    return f"{question} has shipped."


@server.tool()
def shaped(order: str, depth: int) -> dict[str, Any]:
    """Answers in words of its own."""
    return {"reply": {"words": f"{order} at {depth}"}, "steps": [{"tool": "lookup", "with": {"order": order}}]}


def main() -> None:
    if sys.argv[1:] != ["http"]:
        server.run(transport="stdio")
        return
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main()
