"""Traces instead of an agent: `gate run --replay`, expectations by session, tag or words, and what was not recorded."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.acceptance.conftest import Project, first_of
from tests.unit.traces.spans import agent, asks, chat, gave, request, said, text, tool

QUESTION = "Where is A100?"


def conversation(number: int, answer: str = "It has shipped.", *, order: str = "A100", **more: Any) -> dict[str, Any]:
    trace = {"trace": f"{number + 1:032x}"}
    asked = said("user", text(QUESTION))
    called = said("assistant", asks("lookup", {"order": order}))
    return request(
        agent(1, **trace, **more),
        chat(2, read=[asked], wrote=[called], **trace),
        tool(3, arguments={"order": order}, result={"status": "shipped"}, **{"gen_ai.tool.call.id": "c1"}, **trace),
        chat(4, read=[asked, called, said("tool", gave("shipped"))], wrote=[said("assistant", text(answer))], **trace),
    )


def traces(*requests: dict[str, Any]) -> str:
    return "\n".join(map(json.dumps, requests)) + "\n"


def suite(**more: Any) -> list[dict[str, Any]]:
    tools = [{"name": "lookup", "args": {"order": "A100"}}]
    return [{"id": "order", "input": QUESTION, "tools": tools, "response": "It has shipped.", **more}]


CONFIG = {
    "suite": "cases.json",
    "agent": {"http": "http://localhost:1"},
    "criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8},
}


def notes(result: dict[str, Any]) -> str:
    return json.dumps(result["suites"][0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "marks"),
    [
        ({}, {}),
        ({"input": "other words", "metadata": {"session": "s-1"}}, {"gen_ai.conversation.id": "s-1"}),
        ({"input": "other words", "metadata": {"session": ["s-0", "s-1"]}}, {"session.id": "s-1"}),
        ({"input": "other words", "id": "s-1"}, {"session.id": "s-1"}),
        ({"input": "other words", "tags": ["orders"]}, {"tag.tags": ["orders", "beta"]}),
    ],
    ids=["words", "session", "sessions", "id", "tag"],
)
def test_a_conversation_is_a_trial_of_the_case_that_expects_it(
    project: Project, case: dict[str, Any], marks: dict[str, Any]
) -> None:
    project.write("gate.yaml", CONFIG)
    project.write("cases.json", suite(**case))
    project.write("traces.jsonl", traces(conversation(1, **marks)))
    code, result = project.result("run", "--replay", "traces.jsonl")
    assert code == 0
    project.write("traces.jsonl", traces(conversation(1, order="B7", **marks)))
    code, result = project.result("run", "--replay", "traces.jsonl")
    assert code == 1
    assert result["suites"][0]["verdict"] == "below_threshold"


def test_conversations_with_one_tag_are_trials_of_one_case(project: Project) -> None:
    project.write("gate.yaml", CONFIG | {"agent": {"replay": ["one.jsonl", "two.jsonl"]}})
    project.write("cases.json", suite(tags=["orders"]))
    project.write("one.jsonl", traces(conversation(1, **{"tag.tags": ["orders"]}), conversation(2)))
    project.write("two.jsonl", traces(conversation(3)))
    ran = project.gate("run", "--record", "r.jsonl")
    assert ran.code == 0, ran.out
    assert len([line for line in (project.root / "r.jsonl").read_text().splitlines() if '"case":"order"' in line]) == 3


def test_what_belongs_to_no_case_and_what_is_broken_is_said(project: Project) -> None:
    project.write("gate.yaml", CONFIG)
    project.write("cases.json", suite(metadata={"session": "s-1"}, input="other"))
    kept = conversation(1, **{"session.id": "s-1"})
    project.write("traces.jsonl", "not json\n" + traces(kept, conversation(2, **{"session.id": "s-2"})))
    code, result = project.result("run", "--replay", "traces.jsonl")
    assert code == 0
    assert "lines that are not JSON (1)" in notes(result)
    assert "s-2" in notes(result)


def test_traces_of_no_case_measure_nothing(project: Project) -> None:
    project.write("gate.yaml", CONFIG)
    project.write("cases.json", suite(input="other words"))
    project.write("traces.jsonl", traces(conversation(1)))
    ran = project.gate("run", "--replay", "traces.jsonl")
    assert ran.code == 3
    assert "none of 1 conversations belongs to a case" in ran.err
    project.write("traces.jsonl", "")
    assert project.gate("run", "--replay", "traces.jsonl").code == 3
    missing = project.gate("run", "--replay", "nowhere.jsonl")
    assert (missing.code, "does not exist" in missing.err) == (2, True)


def test_without_a_suite_each_conversation_is_a_case(project: Project) -> None:
    project.write("gate.yaml", {"agent": {"replay": "traces.jsonl"}, "criteria": {"forbidden_tools": {"tools": ["x"]}}})
    project.write(
        "traces.jsonl", traces(conversation(1, **{"session.id": "a"}), conversation(2, **{"session.id": "b"}))
    )
    code, result = project.result("run")
    assert code == 0
    assert {case["id"] for case in result["suites"][0]["cases"]} == {"a", "b"}


def test_a_failed_agent_in_a_trace_is_a_failed_trial(project: Project) -> None:
    project.write("gate.yaml", CONFIG | {"trials": 1})
    project.write("cases.json", [case for n in range(6) for case in suite(id=f"s-{n}")])
    failed = conversation(9, error="out of cheese", **{"session.id": "s-5"})
    good = [conversation(n, **{"session.id": f"s-{n}"}) for n in range(5)]
    project.write("traces.jsonl", traces(*good, failed))
    ran = project.gate("run", "--replay", "traces.jsonl")
    assert ran.code == 1  # its only trial brought no answer, which is a miss
    assert "out of cheese" in ran.out


def test_a_conversation_that_failed_before_its_last_turn_is_a_failed_trial(project: Project) -> None:
    """It has fewer turns than its case because the agent failed: left out, the good ones alone would pass."""
    project.write("gate.yaml", CONFIG | {"criteria": {"response_match_score": 0.8}})
    turn = {"input": QUESTION, "response": "It has shipped."}
    project.write("cases.json", [{"id": "s-1", "turns": [turn, turn]}])
    one, other = conversation(1, **{"session.id": "s-1"}), conversation(2, **{"session.id": "s-1"})
    project.write("traces.jsonl", traces(one, other))
    assert project.gate("run", "--replay", "traces.jsonl").code == 0
    project.write("traces.jsonl", traces(conversation(1, error="out of cheese", **{"session.id": "s-1"})))
    ran = project.gate("run", "--replay", "traces.jsonl")
    assert ran.code != 0
    assert "out of cheese" in ran.out


def test_content_that_was_not_recorded_is_not_measured(project: Project) -> None:
    """Tool spans without arguments, model spans without messages: names are known and nothing else."""
    bare = request(agent(1), chat(2), tool(3), chat(4))
    project.write("cases.json", suite(metadata={"session": "0af7651916cd43dd8448eb211c80319c"}))
    project.write("traces.jsonl", traces(bare))
    for criteria, code in (
        ({"tool_trajectory_avg_score": 1.0}, 3),
        ({"response_match_score": 0.1}, 3),
        ({"regex": {"patterns": ["x"]}}, 3),
        ({"tool_trajectory_avg_score": {"threshold": 1.0, "ignore_args": True}}, 0),
        ({"sequence_correctness": 1.0}, 0),
        ({"forbidden_tools": {"tools": ["lookup"]}}, 1),
    ):
        project.write("gate.yaml", CONFIG | {"criteria": criteria})
        ran = project.gate("run", "--replay", "traces.jsonl")
        assert ran.code == code, (criteria, ran.out, ran.err)


def test_calls_that_the_trace_would_not_show_are_not_measured(project: Project) -> None:
    project.write("gate.yaml", CONFIG | {"criteria": {"forbidden_tools": {"tools": ["lookup"]}}})
    project.write("cases.json", suite(metadata={"session": "0af7651916cd43dd8448eb211c80319c"}))
    project.write("traces.jsonl", traces(request(agent(1), chat(2))))
    ran = project.gate("run", "--replay", "traces.jsonl")
    assert ran.code == 3
    assert "whether tools were called" in " ".join(ran.out.split())


# --- received during the run ----------------------------------------------------------------------

AGENT = '''
import json, os, sys, urllib.request


def export(traceparent, endpoint, order):
    """What an instrumented agent exports, from the standard library alone."""
    _, trace, parent, _ = traceparent.split("-")

    def keyed(attributes):
        return [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]

    def span(place, under, **attributes):
        named = {"gen_ai." + key.replace("__", "."): value for key, value in attributes.items()}
        return {"traceId": trace, "spanId": f"{place:016x}", "parentSpanId": under, "name": "s",
                "startTimeUnixNano": str(place), "endTimeUnixNano": str(place + 1), "attributes": keyed(named)}

    spans = [
        span(1, parent, operation__name="invoke_agent"),
        span(2, f"{1:016x}", operation__name="execute_tool", tool__name="lookup",
             tool__call__arguments=json.dumps({"order": order})),
    ]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    request = urllib.request.Request(endpoint + "/v1/traces", body, {"Content-Type": "application/json"})
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).read()


def answer(request):
    order = request["messages"][-1]["content"].split()[-1].rstrip("?")
    if order != "S1":
        export(request["traceparent"], os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"], order)
    return "It has shipped."


if __name__ == "__main__":
    request = json.load(sys.stdin)
    request["traceparent"] = os.environ["TRACEPARENT"]
    print(answer(request))
'''
KINDS = {
    "python": {"python": "traced_agent:answer"},
    "command": {"command": f"{sys.executable} traced_agent.py"},
}


@pytest.mark.parametrize("kind", first_of(KINDS))
def test_an_agent_that_returns_text_is_judged_by_its_spans(project: Project, kind: str) -> None:
    project.write("traced_agent.py", AGENT)
    project.write("cases.json", suite())
    criteria = {"tool_trajectory_avg_score": 1.0, "forbidden_tools": {"tools": ["delete"]}}
    config = {"suite": "cases.json", "agent": KINDS[kind] | {"traces": True}, "criteria": criteria, "trials": 2}
    project.write("gate.yaml", config)
    assert project.gate("run").code == 0
    project.write("cases.json", suite(tools=[{"name": "lookup", "args": {"order": "B7"}}]))
    assert project.gate("run").code == 1


def test_a_trace_that_does_not_come_measures_no_calls(project: Project) -> None:
    project.write("traced_agent.py", AGENT)
    project.write("cases.json", suite(input="Where is S1?"))
    receiving = {"python": "traced_agent:answer", "traces": {"wait": "100ms"}}
    criteria = {"forbidden_tools": {"tools": ["delete"]}}
    project.write("gate.yaml", {"suite": "cases.json", "agent": receiving, "criteria": criteria, "trials": 1})
    ran = project.gate("run")
    assert ran.code == 3
    assert "no span came" in ran.out


def test_an_agent_that_is_not_started_needs_a_port(project: Project) -> None:
    project.write("cases.json", suite())
    project.write("gate.yaml", CONFIG | {"agent": {"http": "http://localhost:1", "traces": True}})
    ran = project.gate("run")
    assert ran.code == 2
    assert "traces: {port: 4318}" in ran.err


@pytest.mark.slow
def test_a_forbidden_call_fails_though_the_rest_of_its_trace_never_came(project: Project) -> None:
    """Half a trace: what is forbidden and seen fails, and what is not seen passes nothing."""
    half = 'spans = spans[1:]\n    spans[0]["parentSpanId"] = "f" * 16\n    body = json.dumps'
    project.write("traced_agent.py", AGENT.replace("body = json.dumps", half))
    project.write("cases.json", suite())
    agent = {"python": "traced_agent:answer", "traces": {"wait": "300ms"}}
    for name, code in (("lookup", 1), ("delete", 3)):
        criteria = {"forbidden_tools": {"tools": [name]}}
        project.write("gate.yaml", {"suite": "cases.json", "agent": agent, "criteria": criteria, "trials": 1})
        ran = project.gate("run")
        assert ran.code == code, ran.out


def test_an_answer_hides_no_call_that_its_trace_shows(project: Project) -> None:
    project.write(
        "traced_agent.py",
        AGENT.replace('return "It', 'return {"tool_calls": [], "output": "It').replace('shipped."', 'shipped."}'),
    )
    project.write("cases.json", suite())
    criteria = {"forbidden_tools": {"tools": ["lookup"]}}
    agent = {"python": "traced_agent:answer", "traces": True}
    project.write("gate.yaml", {"suite": "cases.json", "agent": agent, "criteria": criteria, "trials": 1})
    ran = project.gate("run")
    assert ran.code == 1
    assert "does not name" in ran.out
