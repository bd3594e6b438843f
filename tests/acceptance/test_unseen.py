"""What the gate did not see is never taken for what did not happen."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from .conftest import Project

pytestmark = pytest.mark.slow

CASES = [{"id": "a", "input": "one"}, {"id": "b", "input": "two"}, {"id": "c", "input": "three"}]
FORBIDDEN = {"forbidden_tools": {"tools": ["delete_account"]}}


def set_up(project: Project, agent: dict[str, Any], criteria: dict[str, Any], **more: Any) -> None:
    project.write("evals/cases.json", CASES)
    project.write("gate.yaml", {"suite": "evals", "agent": agent, "criteria": criteria, **more})


def answering(project: Project, expression: str) -> dict[str, Any]:
    project.write("agent.py", f"def answer(message):\n    return {expression}\n")
    return {"python": "agent:answer"}


def verdicts(result: dict[str, Any]) -> dict[str, str]:
    return {found["criterion"]["name"]: found["verdict"] for found in result["suites"][0]["criteria"]}


@pytest.mark.parametrize("metric", ["forbidden_tools", "tool_selection_accuracy", "tool_calls", "weighted_score"])
def test_an_agent_that_returns_text_only_is_not_measured_on_calls(project: Project, metric: str) -> None:
    criteria: dict[str, Any] = {metric: {}}
    if metric == "forbidden_tools":
        criteria = FORBIDDEN
    if metric == "weighted_score":
        criteria = {
            "tool_calls": {"blocking": False},
            "weighted_score": {"weights": {"tool_calls": 1.0}, "threshold": 0.5},
        }
        criteria["weighted_score"]["ranges"] = {"tool_calls": [-1, 1]}
    cases = [{**case, "tools": []} for case in CASES]
    set_up(project, answering(project, '"Deleted " + message'), criteria)
    project.write("evals/cases.json", cases)
    code, result = project.result("run")
    assert (code, result["verdict"], verdicts(result)[metric]) == (3, "error", "not_measured")
    assert "reports_calls: true" in project.gate("run").out.replace("\n  ", " ").replace("\n", " ")


def test_a_case_explained_says_what_the_verdict_says(project: Project) -> None:
    set_up(project, answering(project, '"Deleted " + message'), FORBIDDEN, trials=1)
    project.gate("run", "--record", "record.jsonl")
    silent = project.gate("explain", "record.jsonl", "--case", "a").out
    assert "forbidden_tools not measured the answers report no tool calls" in silent
    assert "turn 1: (calls not reported)" in silent
    set_up(project, answering(project, '{"output": message, "tool_calls": []}'), FORBIDDEN, trials=1)
    project.gate("run", "--record", "told.jsonl")
    told = project.gate("explain", "told.jsonl", "--case", "a").out
    assert "forbidden_tools 1.000" in told
    assert "turn 1: (no call)" in told


@pytest.mark.parametrize(
    "expression",
    [
        '{"output": message, "tool_calls": []}',
        '{"messages": [{"role": "assistant", "content": message}]}',
        '{"output": message, "tool_calls": [{"name": "find", "arguments": {}}]} if message == "three" else message',
    ],
)
def test_answers_that_report_calls_are_evidence(project: Project, expression: str) -> None:
    set_up(project, answering(project, expression), FORBIDDEN)
    code, result = project.result("run")
    assert (code, verdicts(result)["forbidden_tools"]) == (0, "pass")


def test_a_word_in_the_configuration_is_evidence(project: Project) -> None:
    set_up(project, {**answering(project, "message"), "reports_calls": True}, FORBIDDEN)
    assert project.result("run")[0] == 0


def test_every_command_reaches_the_same_answer_of_the_record(project: Project) -> None:
    set_up(project, answering(project, "message"), {**FORBIDDEN, "latency": {"max": 60}})
    assert project.gate("run", "--record", "r.jsonl").code == 3
    assert project.gate("report", "r.jsonl").code == 3
    assert project.gate("run", "--record", "other.jsonl").code == 3
    assert project.gate("compare", "r.jsonl", "other.jsonl", "-c", "gate.yaml").code == 3
    for shard in ("1/2", "2/2"):
        project.gate("run", "--shard", shard, "--record", f"s{shard[0]}.jsonl")
    merged = project.gate("merge", "s1.jsonl", "s2.jsonl", "-o", "m.jsonl", "-c", "gate.yaml")
    assert merged.code == 3, merged.out + merged.err


def test_the_baseline_of_the_same_agent_definition_is_evidence(project: Project) -> None:
    agent = answering(project, '{"output": message, "tool_calls": [{"name": "find", "arguments": {}}]}')
    set_up(project, agent, FORBIDDEN, trials=5, baseline={"store": "file"})
    assert project.gate("run", "--record", "base.jsonl").code == 0
    saved = project.gate("baseline", "save", "base.jsonl")
    assert saved.code == 0, saved.err
    answering(project, "message")
    assert project.result("run")[0] == 0
    set_up(project, {**agent, "env": ["LANG"]}, FORBIDDEN, trials=5, baseline={"store": "file"})
    assert project.result("run")[0] == 3


@contextmanager
def serving(media: str, body: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("media", ["text/event-stream", "text/plain", "application/x-ndjson"])
def test_a_stream_that_tells_of_no_calls_passes_nothing(project: Project, media: str) -> None:
    lines = (
        b'{"output": "hi"}\n{"output": "ho"}\n' if "json" in media else b'data: {"output": "hi"}\n\ndata: [DONE]\n\n'
    )
    with serving(media, lines) as url:
        set_up(project, {"http": url, "retries": 0}, {**FORBIDDEN, "not_contains": {"values": ["secret"]}})
        code, result = project.result("run")
    assert (code, result["verdict"]) == (3, "error")
    told = "several of its events are answers" if "json" in media else "the answers report no tool calls"
    assert told in str(result["suites"][0])


def test_a_banner_before_the_answer_is_refused(project: Project) -> None:
    project.write(
        "agent.py",
        "import json\nprint('starting up')\n"
        "print(json.dumps({'output': 'ok', 'tool_calls': [{'name': 'delete_account', 'arguments': {}}]}))\n",
    )
    set_up(project, {"command": [sys.executable, "agent.py"], "retries": 0}, FORBIDDEN)
    code, result = project.result("run")
    assert (code, result["verdict"]) == (3, "error")
    assert "print the JSON alone" in str(result["suites"][0])


def test_empty_answers_are_failures_of_the_agent_under_criteria_of_absence_too(project: Project) -> None:
    set_up(project, answering(project, '""'), {"pii": {}, "not_contains": {"values": ["secret"]}})
    code, result = project.result("run")
    assert (code, result["verdict"]) == (3, "error")
    assert "neither text nor tool calls" in result["suites"][0]["headline"]


def test_answers_that_were_cut_off_are_counted(project: Project) -> None:
    message = {"role": "assistant", "content": "Once upon", "stop_reason": "max_tokens"}
    agent = answering(project, f'{{"messages": [{message}]}} if message == "one" else "The whole story"')
    set_up(project, agent, {"not_contains": {"values": ["secret"]}}, trials=1)
    result = project.gate("run")
    assert result.code == 0
    assert "1 of 3 answers ended early, at the model's limit of length" in " ".join(result.out.split())


@pytest.mark.parametrize(("cut", "named"), [(("one",), False), (("one", "two"), True)])
def test_the_headline_names_cut_off_answers_if_they_are_most(
    project: Project, cut: tuple[str, ...], named: bool
) -> None:
    message = {"role": "assistant", "content": "Once upon", "stop_reason": "max_tokens"}
    agent = answering(project, f'{{"messages": [{message}]}} if message in {cut} else "The whole story"')
    set_up(project, agent, {"not_contains": {"values": ["secret"]}}, trials=1)
    _, result = project.result("run")
    assert ("ended early" in result["suites"][0]["headline"]) is named


# --- nothing to check, and selections -------------------------------------------------------------

STATING = [
    {"id": "greets", "input": "one", "contains": "one", "tags": ["text"]},
    {"id": "free", "input": "two", "tags": ["free"]},
    {"id": "worded", "input": "three", "response": "three", "tags": ["words"]},
]


def stating(project: Project) -> None:
    set_up(project, answering(project, "message"), {"contains": {}, "response_match_score": 0.5})
    project.write("evals/cases.json", STATING)


def test_a_case_that_states_nothing_is_unchecked(project: Project) -> None:
    stating(project)
    code, result = project.result("run")
    assert {case["id"]: case["status"] for case in result["suites"][0]["cases"]} == {
        "greets": "ok",
        "free": "unchecked",
        "worded": "ok",
    }
    assert code == 0
    assert "unchecked" in project.gate("run").out


@pytest.mark.parametrize("how", [("--case", "worded"), ("--tag", "words")])
def test_a_criterion_of_cases_that_are_not_selected_is_not_applied(project: Project, how: tuple[str, str]) -> None:
    stating(project)
    code, result = project.result("run", *how)
    assert (code, verdicts(result)["contains"], verdicts(result)["response_match_score"]) == (0, "not_applied", "pass")
    out = project.gate("run", "-v", *how, "--markdown", "r.md").out
    assert "✓ contains" not in out
    row = next(line for line in (project.root / "r.md").read_text(encoding="utf-8").splitlines() if "contains" in line)
    assert "✅" not in row
    assert "not applied" in out


def test_a_selection_to_which_no_blocking_criterion_applies_measured_nothing(project: Project) -> None:
    stating(project)
    code, result = project.result("run", "--tag", "free")
    assert (code, result["verdict"]) == (3, "error")
