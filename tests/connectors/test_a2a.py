"""A2A servers as the SDK and google-adk ship them: bindings, versions, states of tasks, contexts that do not mix."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Project
from tests.connectors.models import USAGE, scripted_model
from tests.connectors.servers import (
    EXACT,
    FROM_MODEL,
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
ONE = {"id": "a", "input": "A1", "response": "x"}


@pytest.fixture(scope="module")
def server(frameworks: Path) -> Iterator[str]:
    with served(frameworks, "a2a_server.py") as url:
        yield url


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"stream": False},
        {"path": "/rest"},
        {"path": "/rest", "stream": False},
        {"path": "/old.json"},
        {"path": "/old.json", "stream": False},
        {"path": "/elsewhere.json", "endpoint": "/rpc", "context": "gate"},
    ],
    ids=str,
)
def test_contexts_do_not_mix(project: Project, server: str, told: dict[str, Any]) -> None:
    """Sixty-four contexts of two turns at once, over each binding and version."""
    options = {key: value for key, value in told.items() if key != "path"}
    agent = {"url": server + told.get("path", ""), "tool_calls": "metadata.calls", "usage": "metadata.usage", **options}
    ran = ask(project, {"a2a": agent}, [two_turns(order, FROM_SERVER) for order in ORDERS], criteria=EXACT)
    assert ran.code == 0, ran.out + ran.err
    turns = turns_of(project)
    assert set(turns) == set(ORDERS)
    for order in ORDERS:
        said = ["".join(one["response"]) for one in turns[order]]
        assert said == [text.format(order) for text in FROM_SERVER]
        assert [call["result"] for one in turns[order] for call in one["calls"]] == ["shipped", "shipped"]
        assert turns[order][1]["usage"]["input_tokens"] == 7


def test_a_task_that_asks_is_continued(project: Project, server: str) -> None:
    case = {"id": "a", "turns": [{"input": "which", "response": "which: of what?"}, {"input": "A1"}, {"input": "A2"}]}
    ran = ask(project, {"a2a": server}, [case])
    assert ran.code == 0, ran.out + ran.err
    said = ["".join(one["response"]) for one in turns_of(project)["a"]]
    assert said == [
        "which: of what?",
        "It has shipped: A1 after which.",
        "It has shipped: A2 after which+A1.",
    ]


def test_a_message_is_an_answer(project: Project, server: str) -> None:
    ran = ask(project, {"a2a": server}, [{"id": "a", "input": "hello", "response": "Hi."}])
    assert ran.code == 0, ran.out + ran.err


WITHOUT_ANSWER = {
    "fail": "the task failed: fail: of what?",
    "reject": "the agent rejected the task: reject: of what?",
    "cancel": "the task was canceled: cancel: of what?",
    "login": "the task waits for credentials, which go with every request under agent.a2a.headers: login: of what?",
    "raise": "the agent reports an error: no stock today (-32603)",
}


@pytest.mark.parametrize("stream", [False, True])
def test_states_without_an_answer(project: Project, server: str, *, stream: bool) -> None:
    cases = [{"id": asked, "input": asked, "response": "x"} for asked in WITHOUT_ANSWER]
    ran = ask(project, {"a2a": {"url": server, "stream": stream}}, cases)
    assert ran.code != 0
    assert errors_of(project) == WITHOUT_ANSWER
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"path": "/nowhere"}, "no agent card at"),
        ({"path": "/elsewhere.json"}, "is another server than agent.a2a.url: agent.a2a.endpoint: /rpc sends them here"),
        ({"path": "/wrong.json"}, "it offers only GRPC; the gate speaks JSONRPC and HTTP+JSON"),
        ({"endpoint": "/nowhere"}, "HTTP 307"),
    ],
    ids=str,
)
def test_an_address_that_does_not_lead_to_the_agent(
    project: Project, server: str, told: dict[str, str], message: str
) -> None:
    options = {key: value for key, value in told.items() if key != "path"}
    ran = ask(project, {"a2a": {"url": server + told.get("path", ""), **options}}, [ONE])
    assert ran.code != 0
    assert message in errors_of(project)["a"]


def test_a_server_that_is_down(project: Project) -> None:
    down = ask(project, {"a2a": "http://127.0.0.1:9"}, [ONE])
    assert down.code == 3
    assert "127.0.0.1:9: Connection refused" in errors_of(project)["a"]


def test_calls_are_those_of_the_agents_spans(project: Project, frameworks: Path) -> None:
    """Where the task does not tell what was called, the trace of each message does."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        receiver = free.getsockname()[1]
    cases = [{"id": order, **turn(order, "It has shipped."), "input": f"traced {order}"} for order in ORDERS]
    exports = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver}"}
    with served(frameworks, "a2a_server.py", exports) as url:
        ran = ask(project, {"a2a": url, "traces": {"port": receiver}}, cases, criteria=EXACT)
    assert ran.code == 0, ran.out + ran.err
    assert turns_of(project)["A7"][0]["calls"][0]["result"] == "shipped"


@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_of_google_adk_shows_its_calls(project: Project, adk: Path, *, stream: bool) -> None:
    with scripted_model() as model:
        environment = {"GOOGLE_GEMINI_BASE_URL": model, "GOOGLE_API_KEY": "none"}
        with served(adk, "adk_a2a_server.py", environment) as url:
            told = {"a2a": {"url": url, "stream": stream}}
            ran = ask(project, told, [two_turns(order, FROM_MODEL) for order in ORDERS], criteria=EXACT)
    assert ran.code == 0, ran.out + ran.err
    second = turns_of(project)["A7"][1]
    assert second["response"] == ["A7+A7x: A7x has shipped"]
    assert second["calls"][0]["result"] == {"result": "A7x has shipped"}
    assert second.get("usage", {}).get("input_tokens") == (2 * USAGE[0] if stream else None)
