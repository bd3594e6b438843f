"""Graphs behind `langgraph dev`: threads that do not mix, config, interrupts, a state of one's own, what goes wrong."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Project
from tests.connectors.models import USAGE, scripted_model
from tests.connectors.servers import (
    AGENTS,
    EXACT,
    FROM_MODEL,
    ORDERS,
    ask,
    commanded,
    errors_of,
    turn,
    turns_of,
    two_turns,
)

pytestmark = pytest.mark.connectors
PATHS = {"output": "reply.text", "tool_calls": "reply.calls"}
OWN = {"assistant": "custom", "input": {"question": "{{message}}"}, "response": PATHS}


@pytest.fixture(scope="module")
def server(frameworks: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("langgraph") / "app"
    shutil.copytree(AGENTS / "langgraph_app", folder)  # the server writes beside the graphs
    bin = frameworks.parent
    command = [
        str(bin / "langgraph"),
        "dev",
        "--no-browser",
        "--no-reload",
        "--port",
        "{port}",
        "--n-jobs-per-worker",
        "64",
    ]
    with scripted_model() as model:
        environment = {"MODEL_URL": model, "PATH": f"{bin}:/usr/bin:/bin", "LANGSMITH_TRACING": "false"}
        with commanded(command, folder, environment, "/ok") as url:
            yield url


def test_threads_do_not_mix(project: Project, server: str) -> None:
    """Sixty-four threads of two turns at once, each answered from its own history."""
    cases = [two_turns(order, FROM_MODEL) for order in ORDERS]
    ran = ask(project, {"langgraph": {"url": server, "assistant": "shop"}}, cases, criteria=EXACT)
    assert ran.code == 0, ran.out + ran.err
    second = turns_of(project)["A7"][1]
    assert second["calls"][0]["result"] == "A7x has shipped"
    assert second["usage"]["input_tokens"] == 2 * USAGE[0]


def test_config_and_a_state_of_its_own(project: Project, server: str) -> None:
    """Each turn asks with a template, and the answer and the calls are at paths of the state."""
    told = {**OWN, "url": server, "config": {"configurable": {"style": "{{state.style}}"}}}
    turns = [turn("A1", "A1 (short)"), turn("A2", "A1+A2 (short)")]
    ran = ask(project, {"langgraph": told}, [{"id": "a", "turns": turns, "state": {"style": "short"}}], criteria=EXACT)
    assert ran.code == 0, ran.out + ran.err


def test_interrupts_are_answered_by_case_configuration_or_the_next_turn(project: Project, server: str) -> None:
    desk = {"url": server, "assistant": "desk"}
    own = {"id": "own", "input": "A1", "response": "A1: maybefine", "metadata": {"resume": ["maybe", "fine"]}}
    usual = {"id": "usual", "input": "A2", "response": "A2: yes"}
    ran = ask(project, {"langgraph": {**desk, "resume": ["yes"]}}, [own, usual])
    assert ran.code == 0, ran.out + ran.err
    asked = {"input": "A1", "response": '{"question": "Refund A1?"}'}
    turns = [asked, {"input": "maybe", "response": "Really?"}, {"input": "no", "response": "A1: maybeno"}]
    ran = ask(project, {"langgraph": {**desk, "interrupts": "ask"}}, [{"id": "a", "turns": turns}])
    assert ran.code == 0, ran.out + ran.err


def test_a_tool_that_interrupts(project: Project, server: str) -> None:
    """The call is of the turn that made it, whichever turn allows it."""
    gated = {"url": server, "assistant": "gated"}
    case = {"id": "a", **turn("A1", "A1: A1 has shipped, allowed"), "metadata": {"resume": "allowed"}}
    ran = ask(project, {"langgraph": gated}, [case], criteria=EXACT)
    assert ran.code == 0, ran.out + ran.err
    turns = [
        turn("A1", "May I look A1 up?"),
        {"input": "allowed", "response": "A1: A1 has shipped, allowed", "tools": []},
    ]
    ran = ask(project, {"langgraph": {**gated, "interrupts": "ask"}}, [{"id": "a", "turns": turns}], criteria=EXACT)
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize(
    ("told", "asked", "message"),
    [
        (
            {"assistant": "desk"},
            "A1",
            'nobody answers the graph\'s interrupt: {"question": "Refund A1?"}; metadata: {resume',
        ),
        (OWN, "raise", "the run failed: {'error': 'RuntimeError', 'message': 'no stock today'}"),
        ({**OWN, "response": None}, "A1", "the state has nothing at 'messages'; "),
        ({"assistant": "shpo"}, "A1", "HTTP 422"),
        ({"assistant": "shop", "url": "/wrong"}, "A1", "HTTP 404"),
        ({"assistant": "shop"}, "no model today", "the run failed"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_brings_no_answer(project: Project, server: str, told: dict[str, Any], asked: str, message: str) -> None:
    agent = {**told, "url": server + told.get("url", "")}
    ran = ask(project, {"langgraph": agent}, [{"id": "a", "input": asked, "response": "x"}])
    assert ran.code != 0
    assert message in errors_of(project)["a"]
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ({"http": {"url": "/threads", "request": {}}}, "this looks like a LangGraph server: use langgraph:"),
        ({"http": {"url": "/runs/stream"}}, "this looks like a LangGraph server: use langgraph:"),
        ({"a2a": {"url": ""}}, "this looks like a LangGraph server: use langgraph:"),
        ({"adk": {"url": "", "app": "shop"}}, "agent.adk.url is the address of an ADK server (adk api_server)"),
        ({"agui": {"url": ""}}, "agent.agui is the whole address of an AG-UI endpoint"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_another_kind_of_agent_is_told_whose_server_it_is(
    project: Project, server: str, agent: dict[str, dict[str, Any]], message: str
) -> None:
    ((kind, told),) = agent.items()
    ask(project, {kind: {**told, "url": server + told["url"]}}, [{"id": "a", "input": "A1", "response": "x"}])
    assert message in errors_of(project)["a"]
