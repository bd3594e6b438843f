"""`gate init` in repositories of real frameworks: the file that it writes asks the agent, and the answer is read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.acceptance.conftest import Project
from tests.acceptance.test_first_minute import SAMPLES
from tests.connectors.models import scripted_model
from tests.connectors.servers import served
from tests.connectors.test_adk import adk_server

pytestmark = pytest.mark.connectors


def first_turn(project: Project, name: str, interpreter: Path) -> dict[str, object]:
    """What the first case's turn came to, in a repository with a virtual environment of its own."""
    shutil.copytree(SAMPLES / name, project.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (project.root / ".venv").symlink_to(interpreter.parent.parent, target_is_directory=True)
    with scripted_model() as address:
        keys = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{address}/v1", "GOOGLE_API_KEY": "x", "CI": "1"}
        keys["OPENAI_API_BASE"] = keys["OPENAI_BASE_URL"]
        ran = project.gate("init", **keys, GOOGLE_GEMINI_BASE_URL=address, OPENAI_AGENTS_DISABLE_TRACING="1")
    assert ran.code == 0, ran.out + ran.err
    return turn_of(project)


def turn_of(project: Project) -> dict[str, object]:
    """The one turn of the first case of the one record."""
    (record,) = (project.root / ".gate" / "records").rglob("*.jsonl")
    line = next(line for line in map(json.loads, record.read_text().splitlines()) if "turns" in line)
    (turn,) = line["turns"]
    assert isinstance(turn, dict)
    return turn


@pytest.mark.parametrize("name", ["agents_sdk", "pydantic_ai", "langgraph"])
def test_the_first_case_is_answered(project: Project, frameworks: Path, name: str) -> None:
    check(first_turn(project, name, frameworks))


def test_the_first_case_of_adk_is_answered(project: Project, adk: Path) -> None:
    check(first_turn(project, "adk", adk))


def test_the_first_case_of_crewai_is_answered(project: Project, crewai: Path) -> None:
    turn = first_turn(project, "crewai", crewai)
    assert "shipped" in str(turn["response"])
    assert turn["usage"]


@pytest.mark.parametrize(
    ("path", "kind"), [("", "POST /v1/chat takes 'prompt'"), ("/v1/chat/stream", "answers with a stream of events")]
)
def test_a_server_of_fastapi_is_asked_by_its_description(project: Project, adk: Path, path: str, kind: str) -> None:
    """Its framework writes the description; decoys, a key without a value and calls in words of its own are in it."""
    with served(adk, "chat_server.py") as url:
        ran = project.gate("init", "--url", url + path, CI="1")
    assert ran.code == 0, ran.out + ran.err
    assert kind in ran.out
    assert "to fill in: agent.http.request.locale" in ran.out
    turn = turn_of(project)
    if path:
        assert turn["response"] == ["It has shipped."]
    else:
        (call,) = turn["calls"]  # type: ignore[misc]
        assert (call["name"], call["result"], turn["usage"]["input_tokens"]) == ("lookup", "shipped", 3)  # type: ignore[index]


def test_servers_of_frameworks_are_known_by_what_they_serve(project: Project, adk: Path, frameworks: Path) -> None:
    """`adk api_server` names its app; an A2A server has a card; the case is then asked by the protocol."""
    with adk_server(adk, project.root.parent / "served", "--session_service_uri", "memory://") as url:
        ran = project.gate("init", "--url", url, CI="1")
    assert (ran.code, "an ADK server" in ran.out) == (0, True), ran.out + ran.err
    assert "shipped" in str(turn_of(project)["response"])
    other = Project(project.root / "other")
    other.root.mkdir()
    with served(frameworks, "a2a_server.py") as url:
        ran = other.gate("init", "--url", url, CI="1")
    assert (ran.code, "an A2A agent" in ran.out) == (0, True), ran.out + ran.err
    assert "shipped" in str(turn_of(other)["response"])


def check(turn: dict[str, object]) -> None:
    (call,) = turn["calls"]  # type: ignore[misc]
    assert call["name"] == "lookup"
    assert "shipped" in str(turn["response"])
    assert turn["usage"]
