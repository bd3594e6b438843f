"""A case whose user a model plays: what it says, when it stops, and that its failures are never the agent's."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.conftest import Project, first_of
from tests.integration.judges.judge_stub import JudgeStub, Reply, Request, chat, failure

AGENT = """
import json, sys
request = json.load(sys.stdin)
said = [m["content"] for m in request["messages"] if m["role"] == "user"]
print(json.dumps({"output": f"answer {len(said)} to {said[-1]}", "tool_calls": []}))
"""
EVALSET = {
    "eval_set_id": "shop",
    "eval_cases": [
        {
            "eval_id": "refund",
            "conversation_scenario": {
                "starting_prompt": "My kettle is broken.",
                "conversation_plan": "Get the money back for order A100.",
                "user_persona": "NOVICE",
            },
            "session_input": {"app_name": "shop", "user_id": "u", "state": {}},
        }
    ],
}
KEPT = "per_turn_user_simulator_quality_v1"


@pytest.fixture
def stub() -> Iterator[JudgeStub]:
    with JudgeStub() as judge:
        yield judge


def prepared(project: Project, stub: JudgeStub, criteria: Any = None, **more: Any) -> Project:
    project.write("agent.py", AGENT)
    project.write("shop.evalset.json", EVALSET)
    config = {
        "suite": "shop.evalset.json",
        "agent": {"command": [sys.executable, "agent.py"]},
        "criteria": criteria or {"contains": {"values": ["answer"]}},
        "trials": 1,
        "simulated_user": {"model": "player", "base_url": stub.url, "price": {"input": 1000, "output": 0}},
        **more,
    }
    project.write("gate.yaml", json.dumps(config))
    return project


def turns(project: Project) -> list[tuple[str, str]]:
    """User and agent, turn by turn, of the one trial in the record."""
    (path,) = (project.root / ".gate" / "records").rglob("*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    (trial,) = [line for line in lines if line.get("type") == "trial" or "turns" in line]
    return [(turn["user"], turn["response"][0]) for turn in trial["turns"]]


def test_the_user_says_the_prompt_then_what_a_model_says_until_it_stops(project: Project, stub: JudgeStub) -> None:
    stub.script(chat("It is order A100."), chat("Thank you. </Finished>"))
    code, result = prepared(project, stub).result("run")
    assert (code, result["verdict"]) == (0, "pass")
    assert turns(project) == [
        ("My kettle is broken.", "answer 1 to My kettle is broken."),
        ("It is order A100.", "answer 2 to It is order A100."),
    ]
    first, second = stub.requests
    assert first.json["model"] == "player"
    assert "Get the money back for order A100." in first.text
    assert "Does not quite understand the problem" in first.text
    assert "agent: answer 2 to It is order A100." in second.text
    assert "response_format" not in first.json


@pytest.mark.slow
def test_the_conversation_ends_at_the_limit_of_turns(project: Project, stub: JudgeStub) -> None:
    stub.script(chat("Go on."))
    ready = prepared(project, stub, simulated_user={"model": "player", "base_url": stub.url, "max_turns": 3})
    assert ready.result("run")[0] == 0
    assert [user for user, _ in turns(project)] == ["My kettle is broken.", "Go on.", "Go on."]
    assert len(stub.requests) == 2


@pytest.mark.parametrize(
    "reply",
    first_of(
        [
            failure(400, "no such model"),
            chat(""),
            chat("\u200b"),
            chat("<think>I am done. </finished></think>"),
            chat(None, refusal="I will not"),
            chat("It is", finish="length"),
        ]
    ),
)
def test_a_simulator_that_fails_leaves_the_trial_unmeasured(project: Project, stub: JudgeStub, reply: Reply) -> None:
    stub.script(reply)
    code, result = prepared(project, stub).result("run")
    assert code == 3
    assert result["verdict"] != "pass"
    said = json.dumps(result)
    assert "the simulated user could not be asked" in said
    assert not any(case["crashes"] for case in result["suites"][0]["cases"])


def test_a_simulator_that_never_answers_ends_the_run_and_not_as_the_agents_failure(
    project: Project, stub: JudgeStub
) -> None:
    stub.script(failure(401, "no such key"))
    ready = prepared(project, stub, agent={"command": [sys.executable, "agent.py"], "concurrency": 1})
    ready.write(
        "shop.evalset.json",
        {
            **EVALSET,
            "eval_cases": [
                {**EVALSET["eval_cases"][0], "eval_id": f"refund-{number}"}
                for number in range(30)  # type: ignore[dict-item]
            ],
        },
    )
    ran = ready.gate("run")
    assert ran.code == 3
    assert "simulated_user: none of the first 10 trials has an answer: simulator: the simulated user could" in ran.err


def test_what_the_simulated_user_costs_is_bounded_and_told(project: Project, stub: JudgeStub) -> None:
    """1,000 tokens at $1,000 a million are a dollar an answer; the budget of $2 allows two."""
    stub.script(chat("Go on."))
    paid = AGENT.replace('"tool_calls": []', '"tool_calls": [], "cost_usd": 0.001')
    ready = prepared(project, stub, budget={"usd": 2.5})
    ready.write("agent.py", paid)
    code, result = ready.result("run")
    assert code == 3
    assert len(stub.requests) == 2
    assert result["suites"][0]["judge_cost_usd"] == 2.0
    assert "budget spent" in json.dumps(result)


def test_nobody_to_play_the_user_is_said_before_the_run(project: Project, stub: JudgeStub) -> None:
    ready = prepared(project, stub)
    config = json.loads((project.root / "gate.yaml").read_text())
    del config["simulated_user"]
    ready.write("gate.yaml", json.dumps(config))
    ran = ready.gate("run")
    assert ran.code == 2
    assert "needed by the simulated user" in ran.err


@pytest.mark.slow
def test_what_is_done_with_a_record_needs_no_key_of_the_user(project: Project, stub: JudgeStub) -> None:
    stub.script(chat("</finished>"))
    user = {"model": "player", "base_url": stub.url, "api_key_env": "USERS_KEY"}
    ready = prepared(project, stub, simulated_user=user)
    for shard in ("1", "2"):
        record = f".gate/{shard}.jsonl"
        assert ready.gate("run", "--shard", f"{shard}/2", "--record", record, USERS_KEY="k").code == 0
    merged = ready.gate("merge", ".gate/1.jsonl", ".gate/2.jsonl", "-o", ".gate/all.jsonl", "--config", "gate.yaml")
    assert merged.code == 0, merged.err
    assert ready.gate("rescore", ".gate/all.jsonl", "-o", ".gate/again.jsonl").code == 0


@pytest.mark.slow
def test_a_forbidden_call_counts_although_the_user_fails_right_after_it(project: Project, stub: JudgeStub) -> None:
    """Only once: the trial would be run again, and pass."""
    cases = [{"id": f"case {n}", "scenario": {"start": f"hello {n}", "plan": "get it"}} for n in range(1, 6)]
    criteria = {"forbidden_tools": {"tools": ["drop"]}, "contains": {"values": ["answer"], "threshold": 0.5}}
    ready = prepared(project, stub, criteria, suite="evals.json", agent={"python": "support:answer"})
    ready.write("evals.json", {"cases": cases})
    ready.write("support.py", FORBIDDEN)
    stub.answer = lambda request: failure(400) if "dropped" in request.text else chat("</finished>")
    code, result = ready.result("run")
    assert (project.root / "dropped").exists()
    assert (code, result["verdict"]) == (1, "below_threshold")


FORBIDDEN = """
from pathlib import Path
def answer(messages):
    if messages[0]["content"] == "hello 3" and not Path("dropped").exists():
        Path("dropped").touch()
        return {"output": "dropped it", "tool_calls": [{"name": "drop", "args": {}}]}
    return {"output": "answer", "tool_calls": []}
"""
TALKER = """
def answer(messages):
    said = [message["content"] for message in messages if message["role"] == "user"]
    return "fine" if len(said) < 2 or not BROKEN else "broken"
BROKEN = False
"""


def changed(project: Project, stub: JudgeStub, user: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Measure a change that breaks the second turn, under another user than the base's."""
    cases = [
        {"id": f"case {n}", "scenario": {"start": f"hello {n}", "plan": "get the money back"}} for n in range(1, 11)
    ]
    project.write("evals/suite.yaml", {"cases": cases})
    project.write("support.py", TALKER)
    player = {"model": "player", "base_url": stub.url, "max_turns": 2, "price": {"input": 0, "output": 0}}
    config = {
        "suite": "evals",
        "agent": {"python": "support:answer"},
        "simulated_user": player,
        "criteria": {"not_contains": {"values": ["broken"]}},
    }
    project.write("gate.yaml", config)
    project.commit()
    stub.answer = lambda request: chat("Go on." if request.json["model"] == "player" else "</finished>")
    project.store()
    project.git("checkout", "-qb", "change")
    project.write("gate.yaml", {**config, "simulated_user": {**player, **user}})
    project.write("support.py", TALKER.replace("= False", "= True"))
    project.commit("change")
    return project.result("run")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("user", "expected"),
    [({}, "regressed"), ({"model": "lazy"}, "not_compared"), ({"max_turns": 1}, "not_compared")],
    ids=["the same", "another model", "fewer turns"],
)
def test_another_user_makes_it_another_case(
    project: Project, stub: JudgeStub, user: dict[str, Any], expected: str
) -> None:
    code, result = changed(project, stub, user)
    assert (code, result["verdict"]) == (1, expected)
    told = [line for line in result["suites"][0]["changes"] if line.startswith("edited")]
    assert bool(told) == (expected == "not_compared")


def named(model: str | None) -> Any:
    """A simulator that answers under this name."""

    def answer(request: Request) -> Reply:
        reply = chat("</finished>" if "Go on." in request.text else "Go on.")
        reply.body.update({} if model is None else {"model": model})
        return reply

    return answer


@pytest.mark.parametrize(
    ("model", "expected"),
    [("player-2026-01", "pass"), ("player-2026-09", "not_compared"), (None, "pass")],
    ids=["the same", "another", "a server that does not tell"],
)
def test_another_model_under_the_users_name_is_another_user(
    project: Project, stub: JudgeStub, model: str | None, expected: str
) -> None:
    cases = [{"id": f"case {n}", "scenario": {"start": f"hello {n}", "plan": "get it"}} for n in range(1, 11)]
    project.write("evals/suite.yaml", {"cases": cases})
    project.write("support.py", TALKER)
    player = {"model": "player", "base_url": stub.url, "price": {"input": 0, "output": 0}}
    config = {
        "suite": "evals",
        "agent": {"python": "support:answer"},
        "simulated_user": player,
        "criteria": {"contains": {"values": ["fine"]}},
        "trials": 3,
    }
    project.write("gate.yaml", config)
    project.commit()
    stub.answer = named("player-2026-01")
    project.store()
    project.git("checkout", "-qb", "change")
    project.write("support.py", f"{TALKER}# changed\n")
    project.commit("change")
    stub.answer = named(model)
    code, result = project.result("run")
    assert (code, result["verdict"]) == (0 if expected == "pass" else 1, expected)
    if expected == "not_compared":
        told = "the simulated user player is another model now: player-2026-09 answered, and player-2026-01"
        assert told in json.dumps(result)


def judged(valid: Any) -> Any:
    """A simulator that says two things, and a judge that finds messages valid as told."""
    spoken = iter(["It is order A100.", "</finished>"])

    def answer(request: Request) -> Reply:
        if request.question == KEPT:
            return chat({"reasoning": "so", "is_valid": valid(request.fenced["the user's next message"])})
        return chat(next(spoken))

    return answer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("valid", "score"),
    first_of(
        [
            (lambda text: "valid", 1.0),
            (lambda text: False, 0.5),  # the first turn is the prompt
            (lambda text: text != "</finished>", 0.5),
        ],
        2,
    ),
)
def test_whether_the_user_kept_to_the_scenario_is_measured_as_adk_does(
    project: Project, stub: JudgeStub, valid: Any, score: float
) -> None:
    stub.answer = judged(valid)
    judge = {"model": "judge", "base_url": stub.url}
    ready = prepared(project, stub, {KEPT: {"threshold": 0.4, "judge_model_options": {"num_samples": 1}}}, judge=judge)
    _, result = ready.result("run")
    (path,) = (project.root / ".gate" / "records").rglob("*.jsonl")
    assert f'"{KEPT}"' in path.read_text()
    (criterion,) = [c for c in result["suites"][0]["criteria"] if c["criterion"]["name"] == KEPT]
    assert criterion["candidate"]["value"] == score


def test_a_scenario_is_imported_and_comes_back(project: Project, stub: JudgeStub) -> None:
    prepared(project, stub)
    assert project.gate("import", "shop.evalset.json", "--to", "native.json").code == 0
    (case,) = json.loads((project.root / "native.json").read_text())["cases"]
    assert case["scenario"]["start"] == "My kettle is broken."
    stub.script(chat("</finished>"))
    config = json.loads((project.root / "gate.yaml").read_text())
    project.write("gate.yaml", json.dumps({**config, "suite": "native.json"}))
    assert project.result("run")[0] == 0


@pytest.mark.slow
def test_recorded_conversations_of_a_simulated_user_are_judged_whole(project: Project, stub: JudgeStub) -> None:
    """All turns of each run, though nobody says how many there are; nobody is asked to play the user."""

    def turn(said: str, answer: str) -> dict[str, Any]:
        user, model = {"parts": [{"text": said}]}, {"role": "model", "parts": [{"text": answer}]}
        return {"actual_invocation": {"user_content": user, "final_response": model}, "eval_metric_results": []}

    runs = [[turn("Hi", "a"), turn("A1", "the end")], [turn("Hi", "a"), turn("So?", "b"), turn("A1", "the end")]]
    held = [
        {"eval_id": "one", "final_eval_status": 1, "overall_eval_metric_results": [],
         "eval_metric_result_per_invocation": run} for run in runs
    ]  # fmt: skip
    project.write("r.json", {"eval_set_id": "s", "eval_case_results": held})
    criteria = {"contains": {"values": ["the end"]}}
    config = {"suite": "r.json", "agent": {"replay": True}, "criteria": criteria, "trials": 2}
    project.write("gate.yaml", json.dumps(config))
    code, result = project.result("run")
    assert (code, result["suites"][0]["cases"][0]["passed"]) == (0, 2)
    stub.answer = lambda request: chat({"verdicts": [{"id": "ends", "rationale": "so", "verdict": "yes"}]})
    rubrics = [{"rubric_id": "ends", "rubric_content": {"text_property": "ends"}}]
    asked = {"rubric_based_final_response_quality_v1": {"threshold": 0.5, "rubrics": rubrics}}
    judge = {"model": "judge", "base_url": stub.url, "num_samples": 1}
    project.write("gate.yaml", json.dumps({**config, "criteria": asked, "judge": judge}))
    code, result = project.result("run")
    assert code == 0, result["suites"][0]["headline"]
    assert len({request.text for request in stub.requests}) == 3  # first and last turns are alike
    assert sum("the end" in request.text for request in stub.requests) >= 1
