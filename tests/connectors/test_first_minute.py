"""`gate init` in repositories of real frameworks: the file that it writes asks the agent, and the answer is read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.acceptance.conftest import Project
from tests.acceptance.test_first_minute import SAMPLES
from tests.connectors.models import scripted_model

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
    (record,) = (project.root / ".gate" / "records").rglob("*.jsonl")
    (line,) = [line for line in map(json.loads, record.read_text().splitlines()) if "turns" in line]
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


def check(turn: dict[str, object]) -> None:
    (call,) = turn["calls"]  # type: ignore[misc]
    assert call["name"] == "lookup"
    assert "shipped" in str(turn["response"])
    assert turn["usage"]
