"""The clients that agents are built with, as released: what they asked at the baseline they are told again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gate.records import read_record
from tests.acceptance.conftest import Project
from tests.acceptance.test_world import texts
from tests.connectors.world_provider import providing_all

CLIENTS = Path(__file__).with_name("agents") / "world_clients.py"
pytestmark = pytest.mark.connectors
ASKED = {
    "openai_chat": 2,
    "openai_responses": 2,
    "anthropic_messages": 2,
    "gemini": 2,
    "litellm_both": 2,
    "agents_sdk": 1,
    "pydantic_ai": 1,
    "langchain": 1,
}
"""Function → model calls of one answer."""
CASES, TRIALS = 3, 2


@pytest.fixture
def world_clients() -> Path:
    """The interpreter with the clients of models."""
    named = os.environ.get("GATE_WORLD_PYTHON")
    if not named:
        pytest.skip("GATE_WORLD_PYTHON names no environment: run `make connectors`")
    return Path(named)


@pytest.mark.parametrize("client", ASKED)
def test_a_client_is_answered_again_without_a_call(project: Project, world_clients: Path, client: str) -> None:
    project.write("clients.py", CLIENTS.read_text(encoding="utf-8"))
    suite = [{"id": f"c{n}", "input": f"item {n}", "response": "drawn"} for n in range(CASES)]
    project.write("evals.jsonl", "".join(json.dumps(case) + "\n" for case in suite))
    project.write(".gitignore", ".gate/\n__pycache__/\n")
    keys = {"OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none", "GEMINI_API_KEY": "none"}
    agent = {"python": f"clients:{client}", "executable": str(world_clients), "timeout": "120s", "concurrency": 2}
    recordings = project.root.parent / f"{project.root.name}-recordings"
    configuration = {"suite": "evals.jsonl", "agent": {**agent, "env": keys}, "world": {"store": str(recordings)}}
    project.write("gate.yaml", {**configuration, "criteria": {"response_match_score": 0.01}})
    project.commit()
    with providing_all() as (address, calls):
        upstreams = {"OPENAI_BASE_URL": f"{address}/v1", "ANTHROPIC_BASE_URL": address}
        upstreams |= {"GOOGLE_GEMINI_BASE_URL": address}
        project.store(trials=TRIALS, **upstreams)
        assert len(calls) == CASES * TRIALS * ASKED[client]
        project.write("clients.py", CLIENTS.read_text(encoding="utf-8") + "# a comment\n")
        path = project.root / ".gate" / "change.jsonl"
        ran = project.gate("run", "-q", "--trials", str(TRIALS), "--record", str(path), **upstreams)
        assert ran.code == 0, ran.out + ran.err
        assert len(calls) == CASES * TRIALS * ASKED[client]
    trials = list(read_record(path).trials)
    assert all(trial.replay is not None and trial.replay.whole and not trial.replay.difference for trial in trials)
    assert texts(trials) == texts(list(read_record(project.root / ".gate/base.jsonl").trials))
    assert all(len(set(said)) == TRIALS for said in texts(trials).values())
