"""Tools of an MCP server made with the SDK, over stdio and streamable HTTP: arguments, sessions, errors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Project
from tests.connectors.servers import (
    AGENTS,
    EXACT,
    FROM_SERVER,
    ORDERS,
    ask,
    errors_of,
    served,
    turn,
    turns_of,
    two_turns,
)

pytestmark = pytest.mark.connectors
SERVER = "mcp_server.py"


@pytest.fixture(scope="module")
def server(frameworks: Path) -> Iterator[str]:
    with served(frameworks, "mcp_server.py", arguments=["http"]) as url:
        yield f"{url}/mcp"


def test_sessions_do_not_mix_over_http(project: Project, server: str) -> None:
    """Sixty-four conversations of two turns at once, in one server."""
    arguments = {"question": "{{message}}", "thread": "{{session_id}}"}
    agent = {"mcp": {"url": server, "tool": "ask", "arguments": arguments}}
    ran = ask(project, agent, [two_turns(order, FROM_SERVER) for order in ORDERS], criteria=EXACT)
    assert ran.code == 0, ran.out + ran.err
    assert turns_of(project)["A7"][1]["usage"]["input_tokens"] == 7


def test_sessions_do_not_mix_without_sessions_of_the_protocol(project: Project, frameworks: Path) -> None:
    """Version 2026-07-28, which the server speaks alone."""
    arguments = {"question": "{{message}}", "thread": "{{session_id}}"}
    with served(frameworks, SERVER, arguments=["stateless"]) as url:
        agent = {"mcp": {"url": f"{url}/mcp", "tool": "ask", "arguments": arguments}}
        ran = ask(project, agent, [two_turns(order, FROM_SERVER) for order in ORDERS], criteria=EXACT)
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize("reuse", [False, True])
def test_sessions_do_not_mix_over_stdio(project: Project, frameworks: Path, *, reuse: bool) -> None:
    """A process of its own keeps what was said without being told of a session."""
    shutil.copy(AGENTS / SERVER, project.root)
    arguments = {"question": "{{message}}"} | ({"thread": "{{session_id}}"} if reuse else {})
    mcp = {"command": [str(frameworks), SERVER], "tool": "ask", "arguments": arguments, "reuse": reuse}
    cases = [two_turns(order, FROM_SERVER) for order in ORDERS[:12]]
    ran = ask(project, {"mcp": mcp, "concurrency": 4}, cases, criteria=EXACT)
    assert ran.code == 0, ran.out + ran.err


def test_text_and_results_of_another_form(project: Project, server: str) -> None:
    """Without a word about arguments the only required one gets the message."""
    plain = ask(
        project, {"mcp": {"url": server, "tool": "plain"}}, [{"id": "a", "input": "A1", "response": "A1 has shipped."}]
    )
    assert plain.code == 0, plain.out + plain.err
    paths = {"output": "reply.words", "tool_calls": {"path": "steps", "name": "tool", "args": "with"}}
    arguments = {"order": "{{message}}", "depth": 3}
    told = {"mcp": {"url": server, "tool": "shaped", "arguments": arguments, "response": paths}}
    case = {"id": "a", **turn("A1", "A1 at 3")}
    ran = ask(project, told, [case], criteria=EXACT)
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"tool": "aks"}, "the server has no tool 'aks': did you mean 'ask'?"),
        ({"tool": "shaped"}, "which of the tool's arguments the message is cannot be told (order, depth)"),
        (
            {"tool": "shaped", "arguments": {"order": "x"}},
            "the tool reports an error: Error executing tool shaped: 1 valid",
        ),
        ({"tool": "ask", "path": "/wrong"}, "HTTP 404"),
    ],
    ids=str,
)
def test_what_cannot_be_called(project: Project, server: str, told: dict[str, Any], message: str) -> None:
    options = {key: value for key, value in told.items() if key != "path"}
    url = server + told.get("path", "")
    ran = ask(project, {"mcp": {"url": url, **options}}, [{"id": "a", "input": "A1", "response": "x"}])
    assert ran.code != 0
    assert message in errors_of(project)["a"]
    assert "Traceback" not in ran.err


def test_errors_of_the_tool_and_of_the_process(
    project: Project, frameworks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(AGENTS / SERVER, project.root)
    monkeypatch.setenv("SHOP_API_KEY", "secret")
    mcp = {"command": [str(frameworks), SERVER], "tool": "ask"}
    cases = [{"id": asked, "input": asked, "response": "x"} for asked in ("raise", "key", "exit")]
    ran = ask(project, {"mcp": mcp, "concurrency": 2}, cases)
    assert ran.code != 0
    errors = errors_of(project)
    assert errors["raise"].startswith("the tool reports an error: Error executing tool ask: no stock today")
    assert errors["key"].endswith("agent.env: [SHOP_API_KEY])")
    assert errors["exit"] == "the server exited with status 3: out of memory"
    down = ask(project, {"mcp": {"url": "http://127.0.0.1:9/mcp", "tool": "ask"}}, cases[:1])
    assert down.code == 3
    assert "Connection refused" in errors_of(project)["raise"]
    missing = ask(project, {"mcp": {"command": "./no-such-program", "tool": "ask"}}, cases[:1])
    assert missing.code == 2
    assert "cannot run './no-such-program'" in missing.err
