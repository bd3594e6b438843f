"""A name for a judge that leads to another model than it did: what was scored by one is not compared with the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.acceptance.conftest import Project
from tests.acceptance.test_calibration import configure, verdict
from tests.integration.judges.judge_stub import JudgeStub, Reply, Request

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


@pytest.mark.parametrize(
    ("model", "expected"),
    [("judge-1-2026-01", "pass"), ("judge-1-2026-09", "not_compared"), (None, "pass")],
    ids=["the same", "another", "a server that does not tell"],
)
def test_another_model_under_the_judges_name_is_another_judge(
    project: Project, stub: JudgeStub, model: str | None, expected: str
) -> None:
    cases = [{"id": f"case {n}", "input": f"case {n}", "response": "fine"} for n in range(1, 21)]
    project.write("evals/suite.yaml", {"cases": cases})
    project.write("support.py", "def answer(message):\n    return 'fine'\n")
    configure(project, stub)
    project.commit()
    stub.answer = answering_as("judge-1-2026-01")
    assert project.gate("run", "--trials", "5").code == 0
    assert project.gate("baseline", "save").code == 0
    project.git("checkout", "-qb", "change")
    code, found = measured(project, stub, model, "!")
    assert (code, found["verdict"]) == (0 if expected == "pass" else 1, expected)
