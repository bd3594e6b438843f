"""The recipes of the guide for an upgrade of the judge and of the agent's model: every command is run as it stands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.acceptance.conftest import REPOSITORY, Project
from tests.integration.judges.judge_stub import JudgeStub, Reply, Request, chat

AGENT = """
def answer(message):
    return {"output": "ANSWER"}
"""
CONFIG = """
suite: suite.json
agent: {python: agent:answer, concurrency: 8}
criteria: {final_response_match_v2: {}}
judge: {model: MODEL, base_url: 'URL', num_samples: 1}
"""


def answer(request: Request) -> Reply:
    """Both judges find `good` valid; the new one is stricter about `fair`."""
    text, new = " ".join(request.fenced.values()), request.json["model"] == "judge-2"
    valid = "good" in text or ("fair" in text and not new)
    return chat({"reasoning": "said so", "is_the_agent_response_valid": "valid" if valid else "invalid"})


@pytest.fixture
def judged(project: Project) -> Project:
    cases = [{"id": f"c{n}", "input": f"question {n}", "response": "right"} for n in range(12)]
    project.write("suite.json", {"cases": cases})
    project.write("agent.py", AGENT.replace("ANSWER", "fair"))
    project.write(".gitignore", ".gate\n__pycache__/\n")
    return project


def configure(project: Project, stub: JudgeStub, model: str) -> None:
    text = CONFIG.replace("URL", stub.url).replace("MODEL", model)
    project.write("gate.yaml", text)
    project.commit(model)


def commands(title: str) -> list[list[str]]:
    """The shell commands of a recipe in the guide."""
    text = (REPOSITORY / "docs" / "how-to" / "upgrade-a-model.md").read_text(encoding="utf-8")
    section = text.partition(f"## {title}\n")[2].partition("\n#")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)
    return [shlex.split(line, comments=True) for block in blocks for line in block.splitlines() if line.strip()]


def run(project: Project, command: list[str]) -> int:
    assert command[0] == "gate"
    ran = project.gate(*command[1:])
    assert ran.code in (0, 1), ran.err
    return ran.code


@pytest.mark.slow
def test_a_judge_upgrade_is_compared_once_the_kept_record_is_scored_again(judged: Project) -> None:
    with JudgeStub() as stub:
        stub.answer = answer
        configure(judged, stub, "judge-1")
        keep, *upgrade = commands("A new judge")
        assert run(judged, keep) == 0
        assert run(judged, ["gate", "baseline", "save", keep[-1]]) == 0

        configure(judged, stub, "judge-2")
        code, found = judged.result("run", "--trials", "5")
        assert (code, found["verdict"]) == (1, "not_compared")
        assert "final_response_match_v2" in found["suites"][0]["headline"]
        assert "✅" not in judged.gate("run", "--trials", "5", "--markdown", "/dev/stdout", "-q").out

        *rescore, last = upgrade
        for command in rescore:
            assert run(judged, command) == 0
        judged.write("agent.py", AGENT.replace("ANSWER", "bad"))
        code, found = judged.result(*last[1:], "--trials", "5")
        rate = found["suites"][0]["criteria"][1]
        assert (found["verdict"], rate["not_compared"], rate["baseline"]["value"]) != ("pass", "", 1.0)
        assert rate["not_compared"] == ""


def test_a_baseline_cannot_be_scored_again_and_says_so(judged: Project) -> None:
    with JudgeStub() as stub:
        stub.answer = answer
        configure(judged, stub, "judge-1")
        judged.store(trials=2, record=".gate/a.jsonl")
        [stored] = (judged.root / ".gate" / "baselines").rglob("*.jsonl")
        ran = judged.gate("rescore", str(stored), "-o", ".gate/b.jsonl")
        assert ran.code == 3
        assert "keeps no messages" in ran.err
        assert len(ran.err.splitlines()) <= 2
        assert not Path(judged.root / ".gate/b.jsonl").exists()


@pytest.mark.slow
def test_a_new_model_of_the_agent_is_compared_case_by_case(judged: Project) -> None:
    with JudgeStub() as stub:
        stub.answer = answer
        configure(judged, stub, "judge-1")
        measure, save, last = commands("A new model of the agent")
        assert run(judged, measure) == 0
        assert run(judged, save) == 0
        judged.write("agent.py", AGENT.replace("ANSWER", "bad"))
        code, found = judged.result(*last[1:])
        assert (code, found["verdict"]) == (1, "regressed")
