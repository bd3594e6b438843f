"""`gate doctor`: what the agent reports and what each criterion needs, a line each, with what to do."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.acceptance.conftest import Project, first_of

Answer = Callable[[dict[str, Any]], Any]
CASES = {"cases": [{"id": "a", "input": "hi", "response": "hello", "tools": []}, {"id": "b", "input": "ho"}]}
WORD = "code word: "


@contextmanager
def served(answer: Answer, status: int = 200) -> Iterator[str]:
    """The address of a server on loopback that answers each JSON request by a function."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.reply(answer(body))

        def do_GET(self) -> None:
            self.reply({"data": []})

        def reply(self, content: Any) -> None:
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def remembering(history: Callable[[dict[str, Any]], list[str]]) -> Answer:
    """An agent that names the code word of the history that it is given."""

    def answer(body: dict[str, Any]) -> Any:
        told = [text.split(WORD)[1].split(".")[0] for text in history(body) if WORD in text]
        usage = {"input_tokens": 10, "output_tokens": 2, "cost_usd": 0.001}
        return {"output": f"hello {' '.join(told)}", "tool_calls": [], "usage": usage}

    return answer


def said(body: dict[str, Any]) -> list[str]:
    return [message["content"] for message in body["messages"]]


LINE = re.compile(r"(ok|--|!!) (\w+: .+?): (.*?)(?: \(to do: (.*)\))?")
STATES = {"ok": "ok", "--": "note", "!!": "problem"}


def examine(
    project: Project, agent: dict[str, Any], criteria: dict[str, Any], **more: Any
) -> dict[str, dict[str, Any]]:
    """The checks by area and name, with the exit code under ``exit``."""
    environment = more.pop("environment", {})
    words = more.pop("words", ())
    project.write("cases.json", CASES)
    project.write("gate.yaml", {"suite": "cases.json", "agent": agent, "criteria": criteria} | more)
    ran = project.gate("doctor", *words, **environment)
    *lines, empty, last = ran.out.splitlines()
    assert (empty, last.partition(":")[0]) == ("", f"exit code {ran.code}"), ran.err
    found: dict[str, dict[str, Any]] = {"exit": {"code": ran.code}}
    for line in lines:
        match = LINE.fullmatch(line)
        assert match is not None, line
        state, name, told, remedy = match.groups()
        found[name.replace(": ", " ", 1)] = {"state": STATES[state], "found": told, "remedy": remedy}
    return found


def test_a_good_agent_has_no_problem(project: Project) -> None:
    with served(remembering(said)) as url:
        agent = {"http": url, "version": "7"}
        found = examine(
            project, agent, {"response_match_score": 0.5, "cost": {"max": 1}, "forbidden_tools": {"tools": ["x"]}}
        )
    assert found["exit"]["code"] == 0
    states = {name: check["state"] for name, check in found.items() if name.startswith(("agent", "criteria"))}
    assert states.pop("agent traces") == "note"
    assert set(states.values()) == {"ok"}, found
    assert "none were made" in found["agent tool calls"]["found"]
    assert "10 tokens in, 2 out" in found["agent usage"]["found"]
    assert "$0.001" in found["agent cost"]["found"]
    assert found["criteria cost"]["found"].endswith(": $0.001"), "with its unit"
    assert found["agent version"]["found"] == "7"
    assert "kept separate" in found["agent sessions"]["found"]
    assert "1 with an expected answer, 1 with expected calls" in found["configuration suite cases.json"]["found"]
    assert not (project.root / ".gate").exists() or not list((project.root / ".gate").rglob("*.jsonl"))


def test_sessions_that_mix_are_a_problem(project: Project) -> None:
    heard: list[str] = []

    def history(body: dict[str, Any]) -> list[str]:
        heard.extend(said(body))
        return heard

    with served(remembering(history)) as url:
        found = examine(project, {"http": url}, {"response_match_score": 0.5})
    assert (found["exit"]["code"], found["agent sessions"]["state"]) == (3, "problem")
    assert found["agent sessions"]["remedy"] == "keep one history per session_id"


def test_what_an_agent_does_not_report_is_said_with_what_lacks_it(project: Project) -> None:
    with served(lambda body: {"output": "hello"}) as url:
        found = examine(project, {"http": url}, {"cost": {"max": 1}, "tool_trajectory_avg_score": 0.5})
    assert found["exit"]["code"] == 3
    assert found["agent tool calls"]["state"] == found["agent cost"]["state"] == "note"
    assert "agent memory" not in found, "no case has a second turn"
    assert found["criteria cost"]["state"] == "problem"
    calls = found["criteria tool_trajectory_avg_score"]
    assert calls["state"] == "note"
    assert calls["found"].endswith("needs reported tool calls; the answers to the first case report none")


def test_memory_is_missed_only_if_a_case_needs_it(project: Project) -> None:
    turns = [{"input": "Hello"}, {"input": "Again", "response": "hello"}]
    project.write("turns.json", {"cases": [{"id": "two", "turns": turns}]})
    with served(lambda body: {"output": "hello", "tool_calls": []}) as url:
        found = examine(project, {"http": url}, {"response_match_score": 0.5}, suite="turns.json")
    assert found["agent memory"]["state"] == "note"


def test_an_agent_whose_files_are_not_committed_is_a_note(project: Project) -> None:
    project.commit("nothing yet")
    project.write("bot.py", "def answer(message):\n    return {'output': 'hello', 'tool_calls': []}\n")
    found = examine(project, {"python": "bot:answer", "sources": ["bot.py"]}, {"response_match_score": 0.5})
    assert (found["files agent"]["state"], found["files agent"]["remedy"]) == ("note", "commit the agent's files")


def test_an_agent_that_cannot_be_asked_is_one_line_with_the_remedy(project: Project) -> None:
    found = examine(project, {"http": "http://127.0.0.1:9/ask", "retries": 0}, {"response_match_score": 0.5})
    assert found["exit"]["code"] == 3
    assert "Connection refused" in found["agent answers"]["found"]
    assert found["agent answers"]["remedy"].startswith("start the server")
    project.write("bot.py", "import nothing_like_it\n")
    found = examine(project, {"python": "bot:answer"}, {"response_match_score": 0.5})
    assert "agent.executable" in found["agent answers"]["remedy"]


def test_secrets_are_never_printed(project: Project) -> None:
    code = "import os\ndef answer(message):\n    raise ValueError('401 for key ' + os.environ['ACME_API_KEY'])\n"
    project.write("bot.py", code)
    agent = {"python": "bot:answer", "env": ["ACME_API_KEY", "OTHER_API_KEY"]}
    project.write("cases.json", CASES)
    project.write("gate.yaml", {"suite": "cases.json", "agent": agent, "criteria": {"response_match_score": 0.5}})
    ran = project.gate("doctor", ACME_API_KEY="hunter2-hunter2")
    assert ran.code == 3
    assert "hunter2" not in ran.out + ran.err
    assert "[redacted]" in ran.out
    assert "OTHER_API_KEY" in ran.out, "no such variable is set"


@pytest.mark.parametrize(
    ("status", "state", "words"), first_of([(401, "problem", "refuses the key"), (200, "ok", "answers")])
)
def test_the_judge_is_reached_for(project: Project, status: int, state: str, words: str) -> None:
    project.write("bot.py", "def answer(message):\n    return 'hello'\n")
    criteria = {"final_response_match_v2": 0.5}
    with served(lambda body: {}, status) as url:
        judge = {"model": "m", "base_url": f"{url}/v1"}
        found = examine(project, {"python": "bot:answer"}, criteria, judge=judge, words=["--no-ask"])
    assert (found["judge m"]["state"], words in found["judge m"]["found"]) == (state, True)
    gone = examine(project, {"python": "bot:answer"}, criteria, judge=judge, words=["--no-ask"])
    assert "cannot be reached" in gone["judge m"]["found"]
    keyless = examine(project, {"python": "bot:answer"}, criteria)
    assert keyless["exit"]["code"] == 2
    assert "OPENAI_API_KEY" in keyless["judge suites and criteria"]["remedy"]
    assert keyless["agent answers"]["found"] == "not called before this problem is solved"


def test_the_job_and_its_history(project: Project) -> None:
    project.write("bot.py", "def answer(message):\n    return 'hello'\n")
    project.write("cases.json", CASES)
    agent, criteria = {"python": "bot:answer"}, {"response_match_score": 0.1}
    for number in range(3):
        project.commit(f"commit {number}")
    clone = project.root / "clone"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{project.root}", str(clone)], check=True)
    shallow = examine(
        Project(clone), agent, criteria, words=["--no-ask"], environment={"GITHUB_ACTIONS": "true", "CI": "1"}
    )
    assert shallow["job CI"]["found"] == "GitHub Actions"
    assert (shallow["job git"]["state"], shallow["job git"]["remedy"][:14]) == ("problem", "fetch-depth: 0")
    assert shallow["exit"]["code"] == 4
    whole = examine(project, agent, criteria, words=["--no-ask"])
    assert "full history" in whole["job git"]["found"]
    assert whole["baseline cases.json"]["state"] == "note"


def test_what_cannot_be_read_is_one_line(project: Project) -> None:
    ran = project.gate("doctor")
    assert (ran.code, ran.out.count("!!")) == (2, 1)
    assert "gate init" in ran.out
    project.write("gate.yaml", "suite: nothing\nagent: {python: 'a:b'}\n")
    ran = project.gate("doctor")
    assert (ran.code, "suite 'nothing' does not exist" in ran.out) == (2, True)


def test_recorded_trials_ask_nobody(project: Project) -> None:
    rows = {"id": "a", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}
    project.write("rows.jsonl", json.dumps(rows) + "\n")
    project.write(
        "gate.yaml", {"suite": "rows.jsonl", "agent": {"replay": True}, "criteria": {"not_contains": {"values": ["x"]}}}
    )
    ran = project.gate("doctor")
    assert ran.code == 0, ran.out
    assert "1 recorded conversation; no agent is called" in ran.out
