"""An agent as the tool of an MCP server made with the SDK, over stdio, or over streamable HTTP with `http`.

With `stateless` it refuses, as the SDK does of a version that it does not know, to begin a session of the protocol.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.inbound import unsupported_protocol_version_rejection
from starlette.requests import Request
from starlette.responses import JSONResponse

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


class Stateless:
    """The server, to which the greeting is a version that it does not speak."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            body = await Request(scope, receive).body()
            asked = json.loads(body or b"{}")
            if asked.get("method") == "initialize":
                refused = unsupported_protocol_version_rejection(asked["params"]["protocolVersion"])
                error = {"code": refused.code, "message": refused.message, "data": refused.data}
                answer = {"jsonrpc": "2.0", "id": asked["id"], "error": error}
                await JSONResponse(answer, status_code=400)(scope, receive, send)
                return
            whole = iter([{"type": "http.request", "body": body}])

            async def again() -> Any:
                return next(whole, None) or await receive()

            await self.app(scope, again, send)
            return
        await self.app(scope, receive, send)


def main() -> None:
    if not sys.argv[1:]:
        server.run(transport="stdio")
        return
    app = server.streamable_http_app()
    app = Stateless(app) if sys.argv[1] == "stateless" else app
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main()
