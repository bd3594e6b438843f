"""An agent of google-adk behind `adk api_server`: sessions that do not mix, the case's state, what goes wrong."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


@contextmanager
def adk_server(adk: Path, folder: Path, *options: str) -> Iterator[str]:
    shutil.copytree(AGENTS / "adk_apps", folder / "apps")
    start = [str(adk.parent / "adk"), "api_server", "--host", "127.0.0.1", "--port", "{port}"]
    with scripted_model() as model:
        environment = {"GOOGLE_GEMINI_BASE_URL": model, "GOOGLE_API_KEY": "none"}
        with commanded([*start, *options, "apps"], folder, environment, "/list-apps") as url:
            yield url


@pytest.fixture(scope="module")
def server(adk: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with adk_server(adk, tmp_path_factory.mktemp("adk"), "--session_service_uri", "memory://") as url:
        yield url


def test_sessions_do_not_mix(project: Project, server: str) -> None:
    """Sixty-four sessions of two turns at once, each answered from its own history."""
    cases = [two_turns(order, FROM_MODEL) for order in ORDERS]
    ran = ask(project, {"adk": {"url": server, "app": "shop"}}, cases, criteria=EXACT)
    assert ran.code == 0, ran.out + ran.err
    second = turns_of(project)["A7"][1]
    assert second["calls"][0]["result"] == {"result": "A7x has shipped"}
    assert second["usage"]["input_tokens"] == 2 * USAGE[0]


def test_sessions_of_a_server_that_keeps_them_in_a_file(project: Project, adk: Path, tmp_path: Path) -> None:
    """As it is started by default."""
    folder = tmp_path / "adk"
    folder.mkdir()
    cases = [{"id": order, **turn(order, f"{order}: {order} has shipped")} for order in ORDERS[:4]]
    with adk_server(adk, folder) as url:
        ran = ask(project, {"adk": {"url": url, "app": "shop"}, "concurrency": 1}, cases, criteria=EXACT)
        assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize(
    ("told", "asked", "message"),
    [
        ({"app": "shpo"}, "A1", "HTTP 404"),
        ({"app": "shop", "url": "/wrong"}, "A1", "HTTP 404"),
        ({"app": "shop"}, "no model today", "HTTP 500"),
    ],
    ids=str,
)
def test_what_brings_no_answer(project: Project, server: str, told: dict[str, str], asked: str, message: str) -> None:
    agent = {**told, "url": server + told.get("url", "")}
    ran = ask(project, {"adk": agent}, [{"id": "a", "input": asked, "response": "x"}])
    assert ran.code != 0
    assert message in errors_of(project)["a"]
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ({"http": {"url": "/run"}}, "this looks like an ADK server: use adk:"),
        ({"langgraph": {"url": "", "assistant": "shop"}}, "agent.langgraph.url is the address of a LangGraph server"),
        ({"openai": {"url": "", "model": "m"}}, "agent.openai.url is what comes before /chat/completions"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_another_kind_of_agent_is_told_whose_server_it_is(
    project: Project, server: str, agent: dict[str, dict[str, str]], message: str
) -> None:
    ((kind, told),) = agent.items()
    ask(project, {kind: {**told, "url": server + told["url"]}}, [{"id": "a", "input": "A1", "response": "x"}])
    assert message in errors_of(project)["a"]
