"""A name for a judge that leads to another model than it did: what was scored by one is not compared with the other."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gate.records import read_record
from tests import warm
from tests.acceptance.conftest import Project
from tests.acceptance.test_calibration import configure, verdict
from tests.integration.judges.judge_stub import JudgeStub, Reply, Request, chat
from tests.patience import eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def stub() -> Iterator[JudgeStub]:
    with JudgeStub() as judge:
        yield judge


def answering_as(model: str | None) -> Callable[[Request], Reply]:
    def answer(request: Request) -> Reply:
        reply = verdict(request)
        reply.body.update({} if model is None else {"model": model})
        return reply

    return answer


def measured(project: Project, stub: JudgeStub, model: str | None, said: str) -> tuple[int, dict[str, Any]]:
    stub.answer = answering_as(model)
    project.write("support.py", f"def answer(message):\n    return 'fine{said}'\n")
    project.git("commit", "-qam", f"say fine{said}")
    return project.result("run", "--trials", "1")


def prepared(project: Project, stub: JudgeStub, criteria: dict[str, Any] | None = None) -> None:
    """Twenty cases with a stored baseline, and a branch for the change."""
    cases = [{"id": f"case {n}", "input": f"case {n}", "response": "fine"} for n in range(1, 21)]
    project.write("evals/suite.yaml", {"cases": cases})
    project.write("support.py", "def answer(message):\n    return 'fine'\n")
    configure(project, stub)
    if criteria is not None:
        document = json.loads((project.root / "gate.yaml").read_text(encoding="utf-8"))
        project.write("gate.yaml", {**document, "criteria": criteria})
    project.commit()
    assert project.gate("run", "--trials", "5").code == 0
    assert project.gate("baseline", "save").code == 0
    project.git("checkout", "-qb", "change")


@pytest.mark.parametrize(
    ("model", "expected"),
    [("judge-1-2026-01", "pass"), ("judge-1-2026-09", "not_compared"), (None, "pass")],
    ids=["the same", "another", "a server that does not tell"],
)
def test_another_model_under_the_judges_name_is_another_judge(
    project: Project, stub: JudgeStub, model: str | None, expected: str
) -> None:
    stub.answer = answering_as("judge-1-2026-01")
    prepared(project, stub)
    code, found = measured(project, stub, model, "!")
    assert (code, found["verdict"]) == (0 if expected == "pass" else 1, expected)


@pytest.mark.parametrize(("model", "expected"), [("omni-2024", "pass"), ("omni-2026", "not_compared")])
def test_another_model_under_the_moderators_name_is_another_judge(
    project: Project, stub: JudgeStub, model: str, expected: str
) -> None:
    moderation = {"results": [{"flagged": False, "categories": {}}], "model": "omni-2024"}
    stub.answer = lambda request: Reply(moderation)
    prepared(project, stub, {"safety_v1": {"backend": "moderation"}})
    project.write("support.py", "def answer(message):\n    return 'fine!'\n")
    project.git("commit", "-qam", "say fine!")
    moderation["model"] = model
    code, result = project.result("run", "--trials", "1")
    assert (code, result["verdict"]) == (0 if expected == "pass" else 1, expected)


def test_a_juror_that_is_asked_only_after_a_disagreement_is_no_other_judge(project: Project, stub: JudgeStub) -> None:
    """Neither is the judge of another criterion, which is asked only where that criterion applies."""
    cases = [{"id": f"case {n}", "input": f"case {n}", "response": "fine"} for n in range(1, 11)]
    rubric = {"id": "helps", "text": "The answer helps.", "type": "FINAL_RESPONSE_QUALITY"}
    cases[3]["rubrics"] = [rubric]
    project.write("evals/suite.yaml", {"cases": cases})
    project.write("support.py", "def answer(message):\n    return 'fine'\n")
    configure(project, stub)
    document = json.loads((project.root / "gate.yaml").read_text(encoding="utf-8"))
    document["judge"]["jury"] = [{"model": "judge-2"}, {"model": "judge-3"}]
    rubrics = {"threshold": 0.5, "judge_model_options": {"judge_model": "judge-4"}}
    document["criteria"]["rubric_based_final_response_quality_v1"] = rubrics
    project.write("gate.yaml", document)
    project.commit()

    def answer(request: Request) -> Reply:
        model = request.json["model"]
        if model == "judge-4":
            reply = chat({"verdicts": [{"id": "helps", "rationale": "as told", "verdict": "yes"}]})
        else:
            disagrees = "fine!" in request.text and model == "judge-2" and "case 7" in request.text
            said = "invalid" if disagrees else "valid"
            reply = chat({"reasoning": "as told", "is_the_agent_response_valid": said})
        reply.body["model"] = model
        return reply

    stub.answer = answer
    assert project.gate("run", "--trials", "5").code == 0
    assert project.gate("baseline", "save").code == 0
    project.git("checkout", "-qb", "change")
    project.write("support.py", "def answer(message):\n    return 'fine!'\n")
    project.commit("change")
    code, found = project.result("run", "--trials", "1")
    assert "judge-3" in {request.json["model"] for request in stub.requests}
    assert (code, found["verdict"]) == (0, "pass"), found["suites"][0]["facts"]["cause"]
    assert project.gate("run", "--trials", "1", "--case", "case 1").code == 0


def killed(project: Project, stub: JudgeStub, model: str) -> int:
    """Kill a run of the change whose judge answers under this name ten times; return the trials that it recorded."""
    record = project.root / ".gate" / "killed.jsonl"
    project.write("support.py", "def answer(message):\n    return 'fine!'\n")
    project.git("commit", "-qam", "say fine!")
    asked = len(stub.requests)

    def answer(request: Request) -> Reply:
        reply = answering_as(model)(request)
        return reply if len(stub.requests) <= asked + 10 else Reply(reply.body, delay=300.0)

    stub.answer = answer
    words = ["-m", "gate", "run", "--trials", "1", "--record", str(record)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GATE_", "OPENAI_"))}
    run = warm.Started(words, cwd=project.root, environment=environment)
    assert eventually(lambda: record.exists() and record.read_bytes().count(b'"scores":') >= 5)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    kept = read_record(record, complete=False)
    assert kept.footer is None
    return len(kept.trials)


@pytest.mark.parametrize(("model", "expected"), [("judge-1-2026-01", "pass"), ("judge-1-2026-09", "not_compared")])
def test_a_killed_run_still_knows_who_judged_its_trials(
    project: Project, stub: JudgeStub, model: str, expected: str
) -> None:
    stub.answer = answering_as("judge-1-2026-01")
    prepared(project, stub)
    assert 0 < killed(project, stub, model) < 20
    stub.answer = answering_as("judge-1-2026-01")
    code, found = project.result("run", "--trials", "1", "--record", ".gate/killed.jsonl")
    assert found["suites"][0]["agent_runs"] == 20
    assert (code, found["verdict"]) == (0 if expected == "pass" else 1, expected)
    assert project.gate("report", ".gate/killed.jsonl").code == code
    (project.root / ".gate" / "judge.sqlite").unlink()  # else what the first judge said is known
    assert project.gate("rescore", ".gate/killed.jsonl", "-o", ".gate/scored.jsonl").code == 0
    stored = next((project.root / ".gate" / "baselines").rglob("*.jsonl"), None)
    assert stored is not None
    assert project.gate("compare", ".gate/scored.jsonl", str(stored)).code == 0, "one judge scored all of it"
