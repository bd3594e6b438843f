"""`gate monitor` with a judge: a scripted model behind a real socket that judges, refuses, raves, and costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.conftest import Project, first_of
from tests.acceptance.test_monitor import append, once, receiver, row, stored
from tests.integration.judges.judge_stub import JudgeStub, Reply, Request, chat, failure

__all__ = ["receiver"]
METRIC = "rubric_based_final_response_quality_v1"
RUBRIC = {"rubric_id": "helps", "rubric_content": {"text_property": "The answer helps."}}
NOBODY = "http://127.0.0.1:9/hook"


def verdict(request: Request) -> Reply:
    vote = {"id": "helps", "rationale": "as told", "verdict": "yes" if "on its way" in request.text else "no"}
    return chat({"verdicts": [vote]})


@pytest.fixture
def judge() -> Iterator[JudgeStub]:
    with JudgeStub() as stub:
        stub.answer = verdict
        yield stub


@pytest.fixture
def shop(project: Project, judge: JudgeStub) -> Project:
    configure(project, judge)
    project.write("evals/a.yaml", "cases:\n  - {id: a, input: hello}\n")
    (project.root / "traces").mkdir()
    return project


def configure(project: Project, judge: JudgeStub, **more: Any) -> None:
    document = {
        "name": "shop",
        "suite": "evals/",
        "agent": {"python": "agent:answer"},
        "criteria": {METRIC: {"threshold": 0.5, "rubrics": [RUBRIC]}},
        "judge": {"model": "judge-1", "base_url": judge.url, "num_samples": 1, "price": {"input": 0, "output": 0}},
        "monitor": {"traces": "traces/", "sample_rate": 1.0, "alerts": {"webhook": "HOOK_URL"}},
    }
    project.write("gate.yaml", {**document, **more})


def test_a_sample_is_judged_and_each_trace_once(shop: Project, judge: JudgeStub) -> None:
    append(shop, *(row(f"t{n}", good=n % 20 > 0) for n in range(40)))
    code, found, text = once(shop, HOOK_URL=NOBODY)
    assert (code, found["status"], found["pass_rate"]["rate"], found["sample_count"]) == (0, "healthy", 0.95, 40), text
    assert found["criteria"][0]["window"]["mean"] == 0.95
    assert len(judge.requests) == 40
    assert "The answer helps" in json.dumps(found["failures"][0])
    assert once(shop, HOOK_URL=NOBODY)[1]["counts"] == found["counts"]
    assert len(judge.requests) == 40, "what was scored is not judged again"


def test_only_the_sample_is_judged(shop: Project, judge: JudgeStub) -> None:
    append(shop, *(row(f"t{n}") for n in range(300)))
    _, found, _ = once(shop, "--sample-rate", "0.1", HOOK_URL=NOBODY)
    assert 10 < found["sample_count"] == len(judge.requests) < 60


@pytest.mark.parametrize("reply", first_of([failure(401, "no such key"), chat("no JSON"), chat({"verdicts": []})]))
def test_a_judge_that_is_down_or_raves_is_never_counted_as_good_and_somebody_is_told(
    shop: Project, judge: JudgeStub, receiver: Any, reply: Reply
) -> None:
    judge.script(reply)
    append(shop, *(row(f"t{n}") for n in range(40)))
    code, found, text = once(shop, HOOK_URL=f"{receiver.address}/hook")
    assert (code, found["status"], found["blind"], found["pass_rate"]["measured"]) == (3, "insufficient_data", True, 0)
    assert "40 of 40 traces could not be measured" in text
    assert f"the newest trace that could not be measured: {METRIC}" in text
    assert [outcome for _, outcome in stored(shop)] == [None] * 40
    assert [(body["before"], body["status"]) for _, body in receiver.got] == [("healthy", "insufficient_data")]
    assert once(shop, HOOK_URL=f"{receiver.address}/hook")[0] == 3
    assert len(receiver.got) == 1, "told once"


@pytest.mark.slow
def test_once_the_judge_is_back_newer_traces_make_the_status(shop: Project, judge: JudgeStub, receiver: Any) -> None:
    judge.script(failure(401, "no such key"))
    append(shop, *(row(f"t{n}") for n in range(40)))
    assert once(shop, HOOK_URL=f"{receiver.address}/hook")[0] == 3
    judge.answer = verdict
    append(shop, *(row(f"u{n}") for n in range(200)))
    code, found, text = once(shop, HOOK_URL=f"{receiver.address}/hook")
    assert (code, found["status"]) == (0, "healthy"), text
    assert [body["status"] for _, body in receiver.got] == ["insufficient_data", "healthy"]


def test_what_the_budget_does_not_cover_is_not_measured(shop: Project, judge: JudgeStub, receiver: Any) -> None:
    configure(shop, judge, budget={"judge_calls": 12})
    append(shop, *(row(f"t{n}") for n in range(40)))
    code, found, text = once(shop, HOOK_URL=f"{receiver.address}/hook")
    assert (code, found["status"], found["unmeasured"]) == (3, "insufficient_data", 28), text
    assert len(judge.requests) == 12
    assert "budget" in text


def answering_as(model: str) -> Any:
    def answer(request: Request) -> Reply:
        reply = verdict(request)
        reply.body["model"] = model
        return reply

    return answer


@pytest.mark.parametrize(("model", "code"), [("judge-1-2026-01", 0), ("judge-1-2026-09", 3)])
def test_a_window_that_another_model_judged_is_no_yardstick(
    shop: Project, judge: JudgeStub, model: str, code: int
) -> None:
    """Nor is such a record."""
    shop.write("agent.py", "def answer(message):\n    return 'It is on its way.'\n")
    judge.answer = answering_as("judge-1-2026-01")
    assert shop.gate("run", "--trials", "1", "--record", "r.jsonl").code in (0, 1)
    for name, answers in (("stable", "judge-1-2026-01"), ("canary", model)):
        (shop.root / f"{name}.jsonl").write_text("".join(row(f"{name}{n}", good=n % 20 > 0) for n in range(60)))
        judge.answer = answering_as(answers)
        watched = ("monitor", f"{name}.jsonl", "--once", "--quiet", "--state", f"{name}.sqlite")
        assert shop.gate(*watched, HOOK_URL=NOBODY).code == 0
    told = (
        "not measured: stable: for rubric_based_final_response_quality_v1, another model answered as the judge judge-1"
    )
    ran = shop.gate("monitor", "--status", "--state", "canary.sqlite", "--versus", "stable.sqlite", HOOK_URL=NOBODY)
    assert (ran.code, told in ran.out) == (code, code == 3), ran.out
