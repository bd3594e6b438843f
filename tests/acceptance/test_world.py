"""A change that alters nothing the model sees asks it nothing; one that does goes live from there on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gate.model import Trial
from gate.records import Record, read_record
from tests.acceptance.conftest import Project, first_of
from tests.integration.world.provider import Provider, everything_in, providing

CASES = 4
SUITE = "".join(json.dumps({"id": f"c{n}", "input": f"item {n}", "response": "answer"}) + "\n" for n in range(CASES))
KEY = "sk-proj-0123456789abcdefghijklmnop"
AGENT = """
import json, os, sys, urllib.request
SYSTEM = "You are helpful."

def ask(messages):
    body = json.dumps({"model": "m", "messages": messages}).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer SECRET"}
    asked = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    with urllib.request.urlopen(asked) as got:
        return json.load(got)["choices"][0]["message"]["content"]

def answer(message):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": message}]
    first = ask(messages)
    second = ask([*messages, {"role": "assistant", "content": first}, {"role": "user", "content": "And?"}])
    return first + " " + second

if __name__ == "__main__":
    print(json.dumps({"output": answer(json.load(sys.stdin)["messages"][-1]["content"])}))
""".replace("SECRET", KEY)
PYTHON: dict[str, Any] = {"python": "agent:answer", "concurrency": 2}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as found:
        yield found


def prepared(project: Project, agent: dict[str, Any], **world: Any) -> None:
    project.write("evals.jsonl", SUITE)
    project.write("agent.py", AGENT)
    project.write(".gitignore", ".gate/\n__pycache__/\nresult.json\n")
    configured(project, agent, **world)
    project.commit()


def configured(project: Project, agent: dict[str, Any], **world: Any) -> None:
    content = {"suite": "evals.jsonl", "agent": agent, "criteria": {"response_match_score": 0.1}}
    project.write("gate.yaml", {**content, "world": {"store": str(store(project)), **world}})


def store(project: Project) -> Path:
    return project.root.parent / f"{project.root.name}-recordings"


def run(project: Project, provider: Provider, *options: str, code: int | None = 0) -> list[Trial]:
    path = project.root / ".gate" / f"{provider.calls}-{len(options)}.jsonl"
    path.unlink(missing_ok=True)
    ran = project.gate("run", "-q", "--record", str(path), *options, OPENAI_BASE_URL=provider.url)
    assert code is None or ran.code == code, ran.out + ran.err
    return list(read_record(path, complete=False).trials)


def texts(trials: list[Trial]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for trial in sorted(trials, key=lambda trial: trial.number):
        found.setdefault(trial.case_id, []).append(" ".join(one.text for one in trial.invocations))
    return found


@pytest.mark.parametrize(
    "agent",
    [PYTHON, pytest.param({"command": [sys.executable, "agent.py"]}, marks=pytest.mark.slow)],
    ids=["python", "command"],
)
def test_an_unchanged_agent_asks_no_model_and_its_repeats_stay_different(
    project: Project, provider: Provider, agent: dict[str, Any]
) -> None:
    prepared(project, agent)
    project.store(trials=3, OPENAI_BASE_URL=provider.url)
    recorded = texts(list(read_record(project.root / ".gate/base.jsonl").trials))
    before = provider.calls
    assert before == CASES * 3 * 2
    assert all(len(set(answers)) == 3 for answers in recorded.values())
    project.write("agent.py", AGENT + "# another comment\n")
    trials = run(project, provider, "--trials", "3")
    assert provider.calls == before
    assert texts(trials) == recorded
    for trial in trials:
        assert trial.replay is not None
        assert (trial.replay.replayed, trial.replay.live, trial.replay.difference) == (2, 0, "")
        assert trial.replay.whole
    assert len({trial.replay.source for trial in trials if trial.replay}) == CASES * 3


@pytest.mark.slow
def test_what_differs_goes_live_and_is_said(project: Project, provider: Provider) -> None:
    prepared(project, PYTHON)
    project.store(trials=2, OPENAI_BASE_URL=provider.url)
    before = provider.calls
    project.write("agent.py", AGENT.replace('"content": "And?"', '"content": "And " + message[-1]'))
    trials = run(project, provider, "--trials", "2")
    assert provider.calls - before == CASES * 2
    differences = {trial.replay.difference for trial in trials if trial.replay and trial.case_id == "c1"}
    assert differences == {'request 2 differs in messages[3].content: "And?" → "And 1"'}
    assert {(trial.replay.replayed, trial.replay.live) for trial in trials if trial.replay} == {(1, 1)}


@pytest.mark.slow
def test_a_trial_beyond_the_recorded_ones_is_a_draw_of_its_own(project: Project, provider: Provider) -> None:
    prepared(project, PYTHON)
    project.store(trials=2, OPENAI_BASE_URL=provider.url)
    before = provider.calls
    project.write("agent.py", AGENT + "# another comment\n")
    trials = run(project, provider, "--trials", "3")
    assert provider.calls - before == CASES * 2
    own = [trial for trial in trials if trial.replay is not None and not trial.replay.source]
    assert len(own) == CASES
    assert all(trial.replay is not None and trial.replay.live == 2 for trial in own)


@pytest.mark.slow
def test_the_default_branch_is_always_measured_anew(project: Project, provider: Provider) -> None:
    prepared(project, PYTHON)
    project.store(trials=1, OPENAI_BASE_URL=provider.url)
    project.commit("the next one")
    before = provider.calls
    trials = run(project, provider, "--trials", "1")
    assert provider.calls - before == CASES * 2
    assert all(trial.replay is not None and trial.replay.recording and not trial.replay.source for trial in trials)


@pytest.mark.slow
def test_recordings_hold_no_keys_and_need_none(project: Project, provider: Provider) -> None:
    prepared(project, PYTHON)
    project.store(trials=1, OPENAI_BASE_URL=provider.url)
    assert provider.headers[0]["authorization"] == f"Bearer {KEY}"
    (path,) = store(project).iterdir()
    kept = everything_in(path)
    assert b"You are helpful." in kept
    assert b"item 1" in kept
    assert KEY.encode() not in kept
    before = provider.calls
    project.write("agent.py", AGENT.replace(KEY, "none"))
    assert all(trial.replay is not None and trial.replay.whole for trial in run(project, provider, "--trials", "1"))
    assert provider.calls == before


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "ended"), first_of([("fail", "missing"), ("replay", "missing")]))
def test_nothing_goes_out_where_the_recording_has_no_answer(
    project: Project, provider: Provider, mode: str, ended: str
) -> None:
    prepared(project, PYTHON, models=mode)
    project.store(trials=1, OPENAI_BASE_URL=provider.url)
    before = provider.calls
    project.write("agent.py", AGENT.replace("helpful", "terse"))
    path = project.root / ".gate" / "change.jsonl"
    ran = project.gate("run", "-q", "--trials", "1", "--record", str(path), OPENAI_BASE_URL=provider.url)
    trials = read_record(path, complete=False).trials
    assert (provider.calls, ran.code) == (before, 3)
    assert {trial.error.kind.value for trial in trials if trial.error is not None} == {ended}
    assert all(trial.error is not None for trial in trials)
    if mode == "fail":
        assert 'messages[0].content: "You are helpful." → "You are terse."' in str(trials[0].error)


@pytest.mark.slow
def test_an_agent_that_makes_do_without_its_model_does_not_pass(project: Project, provider: Provider) -> None:
    prepared(project, PYTHON)
    project.store(trials=1, OPENAI_BASE_URL=provider.url)
    makes_do = "def ask(said):\n    try:\n        return asked(said)\n    except OSError:\n        return 'answer'\n"
    project.write("agent.py", AGENT.replace("helpful", "terse") + "asked = ask\n" + makes_do)
    configured(project, PYTHON, models="replay")
    assert run(project, provider, code=3)


@pytest.mark.slow
def test_a_recording_that_somebody_else_wrote_is_not_used(project: Project, provider: Provider) -> None:
    prepared(project, PYTHON)
    project.store(trials=1, OPENAI_BASE_URL=provider.url)
    before = provider.calls
    (path,) = store(project).iterdir()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "exchange" in line:
            line["exchange"]["status"] = 201
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    project.write("agent.py", AGENT + "# another comment\n")
    ran = project.gate("run", OPENAI_BASE_URL=provider.url)
    assert "the recordings of 4 trials of the baseline are not in" in " ".join(ran.out.split())
    assert provider.calls > before


@pytest.mark.slow
def test_what_was_recorded_outlives_a_kill(project: Project, provider: Provider) -> None:
    prepared(project, PYTHON)
    record = project.root / ".gate" / "killed.jsonl"
    environment = {**os.environ, "OPENAI_BASE_URL": provider.url}
    command = [sys.executable, "-m", "gate", "run", "-q", "--trials", "20", "--record", str(record)]
    with subprocess.Popen(command, cwd=project.root, env=environment, stdout=subprocess.DEVNULL) as gate:
        while provider.calls < 60 and gate.poll() is None:
            time.sleep(0.01)
        gate.send_signal(signal.SIGKILL)
    kept = {trial.replay.recording for trial in read_record(record, complete=False).trials if trial.replay}
    assert kept
    resumed = project.gate("run", "-q", "--trials", "20", "--record", str(record), OPENAI_BASE_URL=provider.url)
    assert resumed.code == 0, resumed.err
    assert project.gate("baseline", "save", str(record)).code == 0
    before = provider.calls
    project.write("agent.py", AGENT + "# another comment\n")
    trials = run(project, provider, "--trials", "20")
    assert provider.calls == before
    assert kept <= {trial.replay.source for trial in trials if trial.replay is not None}


def test_a_bad_minute_of_the_provider_is_not_replayed(project: Project, provider: Provider) -> None:
    prepared(project, {**PYTHON, "retries": 0})
    provider.status = 500
    project.gate("run", "-q", "--trials", "1", "--record", ".gate/bad.jsonl", OPENAI_BASE_URL=provider.url)
    trials = read_record(project.root / ".gate/bad.jsonl", complete=False).trials
    assert {trial.replay.recording for trial in trials if trial.replay is not None} == {""}


SERVER = """
import json, sys, pathlib, random
LOG = pathlib.Path(sys.argv[1])
if pathlib.Path(__file__).with_name("broken").exists():
    raise SystemExit("started")
TOOLS = [{"name": "find", "description": "Finds an order.", "inputSchema": {"type": "object"}}]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "tools/call":
        with LOG.open("a") as log:
            log.write(json.dumps(message["params"]) + chr(10))
        result = {"content": [{"type": "text", "text": f"answer {random.random()}"}]}
    else:
        result = {"tools": TOOLS} if message["method"] == "tools/list" else {"protocolVersion": "2025-06-18"}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
MCP_AGENT = """
import json, subprocess, sys
COMMAND = COMMAND_HERE

def answer(message):
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        def call(number, method, **params):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(message) + chr(10))
            server.stdin.flush()
            return json.loads(server.stdout.readline())
        call(1, "initialize")
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + chr(10))
        call(2, "tools/list")
        found = call(3, "tools/call", name="find", arguments={"item": message})
        server.stdin.close()
    return found["result"]["content"][0]["text"] if "result" in found else "refused: " + found["error"]["message"]
"""


def with_tool(project: Project, **world: Any) -> Path:
    """A project whose agent asks an MCP server on standard streams; returns the log of what the server did."""
    log = project.root.parent / f"{project.root.name}-calls"
    command = [sys.executable, "-m", "gate", "mcp-replay", "--name", "orders"]
    command += [sys.executable, str(project.root / "server.py"), str(log)]
    project.write("server.py", SERVER)
    prepared(project, PYTHON, **world)
    project.write("agent.py", MCP_AGENT.replace("COMMAND_HERE", repr(command)))
    project.commit("agent")
    return log


@pytest.mark.slow
def test_a_tool_on_standard_streams_is_called_once(project: Project, provider: Provider) -> None:
    log = with_tool(project)
    project.store(trials=2, OPENAI_BASE_URL=provider.url)
    recorded = texts(list(read_record(project.root / ".gate/base.jsonl").trials))
    assert len(log.read_text().splitlines()) == CASES * 2
    project.write("agent.py", (project.root / "agent.py").read_text() + "# a comment\n")
    trials = run(project, provider, "--trials", "2")
    assert len(log.read_text().splitlines()) == CASES * 2
    assert texts(trials) == recorded
    assert all(trial.replay is not None and trial.replay.whole for trial in trials)
    project.write("server.py", SERVER.replace("Finds an order.", "Finds any order."))
    changed = run(project, provider, "--trials", "2", "--case", "c1")
    told = {trial.replay.difference for trial in changed if trial.replay is not None}
    words = 'description: "Finds an order." → "Finds any order."'
    assert told == {f"tools/list of orders answers otherwise at result.tools[find].{words}"}
    assert {trial.replay.tools_changed for trial in changed if trial.replay} == {(f"orders: find: {words}",)}


@pytest.mark.slow
def test_what_a_server_offers_is_a_part_of_the_agents_fingerprint_and_its_change_is_told(
    project: Project, provider: Provider
) -> None:
    log = with_tool(project)
    text = "TEXT = pathlib.Path(sys.argv[1] + '-offer').read_text()\nTOOLS"
    project.write("server.py", SERVER.replace("TOOLS", text, 1).replace('"Finds an order."', "TEXT"))
    offer = Path(f"{log}-offer")  # what is outside of the repository is in no fingerprint of its files
    offer.write_text("Finds an order.")
    project.commit("the text is outside")
    stored = []
    for number, said in enumerate(("Finds an order.", "Finds an order.", "Finds any order.")):
        offer.write_text(said)
        project.commit(f"commit {number}")
        project.store(trials=1, record=f".gate/{number}.jsonl", OPENAI_BASE_URL=provider.url)
        stored.append(newest_stored(project))
    agents = [record.header.agent for record in stored]
    assert agents[0] == agents[1] != agents[2]
    assert {tools for trial in stored[2].trials if trial.replay for tools in trial.replay.tools}
    offer.write_text("Finds all orders.")
    project.write("README.md", "a change of no code")
    ran = project.gate("run", "--trials", "1", "--json", "result.json", OPENAI_BASE_URL=provider.url)
    (suite,) = json.loads((project.root / "result.json").read_text())["suites"]
    words = 'orders: find: description: "Finds any order." → "Finds all orders."'
    assert f"the tools of orders changed: {words}" in suite["changes"]
    assert "the tools of orders changed: orders: find: description" in " ".join(ran.out.split())


def newest_stored(project: Project) -> Record:
    paths = (project.root / ".gate" / "baselines").rglob("*.jsonl")
    return read_record(max(paths, key=lambda path: path.stat().st_mtime_ns))


@pytest.mark.slow
def test_a_change_of_the_servers_own_code_is_not_answered_from_recordings(project: Project, provider: Provider) -> None:
    log = with_tool(project)
    project.store(trials=1, OPENAI_BASE_URL=provider.url)
    project.write("server.py", SERVER.replace("answer {", "broken {"))
    trials = run(project, provider, "--trials", "1", code=None)
    assert len(log.read_text().splitlines()) == CASES * 2
    assert all("broken" in said for saids in texts(trials).values() for said in saids)
    told = {trial.replay.difference for trial in trials if trial.replay is not None}
    assert told == {"request 3 differs in its server's program"}
    configured(project, PYTHON, tools="replay")
    said = texts(run(project, provider, "--trials", "1", "--case", "c1", code=None))
    assert said["c1"][0].startswith("refused: gate: ")


@pytest.mark.slow
def test_a_tool_that_is_only_replayed_is_not_even_started(project: Project, provider: Provider) -> None:
    log = with_tool(project, tools="replay")
    project.store(trials=1, OPENAI_BASE_URL=provider.url)
    before = log.read_text()
    agent = (project.root / "agent.py").read_text()
    project.write("broken", "")
    project.write("agent.py", agent + "# a comment\n")
    trials = run(project, provider, "--trials", "1")
    assert all(trial.replay is not None and trial.replay.whole for trial in trials)
    project.write("agent.py", agent.replace('"item": message', '"item": "x"'))
    said = texts(run(project, provider, "--trials", "1", "--case", "c1", code=None))
    assert "request 3 differs in params.arguments.item" in said["c1"][0]
    assert log.read_text() == before
