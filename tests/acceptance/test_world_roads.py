"""Recordings on every road that a record takes: shards, top-ups, other machines, kills, budgets, lost folders."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from gate.records import read_record
from tests.acceptance.conftest import Project, first_of
from tests.acceptance.test_world import AGENT, CASES, PYTHON, prepared, provider, run, store
from tests.integration.world.provider import Provider

__all__ = ["provider"]

CHANGED = AGENT + "# another comment\n"


def result(project: Project, path: str = "result.json") -> Any:
    (suite,) = json.loads((project.root / path).read_text())["suites"]
    return suite


def shards(project: Project, provider: Provider, name: str) -> Path:
    """Two shards of a run, merged."""
    parts = [f".gate/{name}-{i}.jsonl" for i in (1, 2)]
    for i, part in enumerate(parts, 1):
        words = ("--shard", f"{i}/2", "--trials", "2", "--record", part)
        ran = project.gate("run", "-q", *words, OPENAI_BASE_URL=provider.url)
        assert ran.code == 0, ran.out + ran.err
    merged = project.gate("merge", *parts, "-o", f".gate/{name}.jsonl", "-c", "gate.yaml", "--json", "result.json")
    assert merged.code == 0, merged.out + merged.err
    return project.root / f".gate/{name}.jsonl"


@pytest.mark.slow
def test_shards_record_and_replay_each_their_own_cases(project: Project, provider: Provider) -> None:
    prepared(project, PYTHON)
    whole = shards(project, provider, "base")
    assert project.gate("baseline", "save", str(whole)).code == 0
    before = provider.calls
    assert before == CASES * 2 * 2
    project.write("agent.py", CHANGED)
    trials = read_record(shards(project, provider, "change")).trials
    assert provider.calls == before
    assert len({trial.replay.source for trial in trials if trial.replay is not None and trial.replay.same}) == CASES * 2
    share = result(project)["replayed"]
    assert (share["same"], share["runs"], share["calls"]) == (CASES, 0, 0)


@pytest.mark.slow
def test_what_was_topped_up_and_united_is_replayed_trial_by_trial(project: Project, provider: Provider) -> None:
    prepared(project, PYTHON)
    for name in ("one", "two"):  # of one commit: united, and numbered anew
        path = f".gate/{name}.jsonl"
        ran = project.gate("run", "-q", "--store", "file", "--record", path, OPENAI_BASE_URL=provider.url, CI="true")
        assert ran.code == 0, ran.err
        assert project.gate("baseline", "save", path).code == 0
    tags = {trial.tag for trial in read_record(project.root / ".gate/one.jsonl").trials}
    assert "stored" in tags, "the default branch runs more than its verdict needs"
    (stored,) = (project.root / ".gate" / "baselines").rglob("*.jsonl")
    recordings = {t.replay.recording for t in read_record(stored).trials if t.replay is not None}
    assert len({name.partition(":")[0] for name in recordings}) == 2
    before, each = provider.calls, len(recordings) // CASES
    project.write("agent.py", CHANGED)
    trials = run(project, provider, "--trials", str(each))
    assert provider.calls == before
    assert {trial.replay.source for trial in trials if trial.replay is not None} == recordings


@pytest.mark.slow
def test_another_machine_judges_and_shows_a_replayed_record_without_recordings(
    project: Project, provider: Provider
) -> None:
    """As the job that reports on a fork's change: it has the record and the baselines, and nothing else."""
    prepared(project, PYTHON)
    project.store(trials=2, OPENAI_BASE_URL=provider.url)
    project.write("agent.py", CHANGED)
    before = provider.calls
    ran = project.gate("run", "--record", ".gate/now.jsonl", "--json", "result.json", OPENAI_BASE_URL=provider.url)
    here = result(project)
    assert ran.code == 0 and provider.calls == before
    shutil.rmtree(store(project))
    shown = project.gate("report", ".gate/now.jsonl", "--json", "again.json")
    assert shown.code == 0, shown.err
    assert result(project, "again.json")["replayed"] == here["replayed"]
    told = [(case["id"], case["same_world"]) for case in result(project, "again.json")["cases"]]
    assert told == [(case["id"], True) for case in here["cases"]]
    judged = project.gate("rescore", ".gate/now.jsonl", "-o", ".gate/scored.jsonl")
    assert judged.code == 0, judged.err
    found = [read_record(project.root / f".gate/{name}.jsonl").trials for name in ("now", "scored")]
    assert len({frozenset((t.case_id, t.number, t.replay) for t in trials) for trials in found}) == 1


SLOW = AGENT.replace("def answer(message):", "def answer(message):\n    import time\n    time.sleep(0.05)")


@pytest.mark.slow
def test_a_kill_in_the_middle_of_replay_is_resumed_from_there(project: Project, provider: Provider) -> None:
    prepared(project, PYTHON)
    project.store(trials=20, OPENAI_BASE_URL=provider.url)
    stored = {t.replay.recording for t in read_record(project.root / ".gate/base.jsonl").trials if t.replay}
    before = provider.calls
    project.write("agent.py", SLOW)
    record = project.root / ".gate" / "killed.jsonl"
    words = ["run", "-q", "--trials", "20", "--record", str(record)]
    environment = {**os.environ, "OPENAI_BASE_URL": provider.url}
    command = [sys.executable, "-m", "gate", *words]
    with subprocess.Popen(command, cwd=project.root, env=environment, stdout=subprocess.DEVNULL) as gate:
        while gate.poll() is None and (not record.exists() or record.read_bytes().count(b"\n") < 15):
            time.sleep(0.01)
        gate.send_signal(signal.SIGKILL)
    kept = read_record(record, complete=False).trials
    assert 0 < len(kept) < CASES * 20
    resumed = project.gate(*words, OPENAI_BASE_URL=provider.url)
    assert resumed.code == 0, resumed.out + resumed.err
    trials = read_record(record).trials
    assert provider.calls == before
    assert len(trials) == CASES * 20
    assert {trial.replay.source for trial in trials if trial.replay is not None and trial.replay.same} == stored


PRICED = AGENT.replace('"output": answer', '"cost_usd": 0.1, "output": answer').replace(
    'return first + " " + second', 'return {"output": first + " " + second, "cost_usd": 0.1}'
)


@pytest.mark.slow
def test_a_budget_that_ends_in_the_middle_of_replay_is_no_pass_and_goes_on_from_there(
    project: Project, provider: Provider
) -> None:
    prepared(project, {**PYTHON, "sources": ["agent.py"]})  # so that another budget is no other agent
    project.write("agent.py", PRICED)
    project.commit("priced")
    project.store(trials=3, OPENAI_BASE_URL=provider.url)
    before = provider.calls
    half = PRICED.replace('"content": message}]', '"content": message + "!" * (message in ("item 0", "item 1"))}]')
    project.write("agent.py", half)
    content = (project.root / "gate.yaml").read_text()
    project.write("gate.yaml", {**json.loads(content), "budget": {"usd": 0.25}})
    words = ("run", "-q", "--trials", "3", "--record", ".gate/now.jsonl")
    ended = project.gate(*words, OPENAI_BASE_URL=provider.url)
    kept = read_record(project.root / ".gate/now.jsonl", complete=False)
    assert ended.code != 0, "what was not run is no pass"
    assert kept.footer is not None and "budget" in kept.footer.stopped
    live = [trial for trial in kept.trials if trial.replay is not None and trial.replay.live]
    assert 0 < len(live) < 6 and provider.calls - before == 2 * len(live)
    (project.root / "gate.yaml").write_text(content)
    resumed = project.gate(*words, OPENAI_BASE_URL=provider.url)
    trials = read_record(project.root / ".gate/now.jsonl").trials
    assert resumed.code == 0, resumed.out + resumed.err
    assert provider.calls - before == 2 * 6
    assert len({trial.replay.source for trial in trials if trial.replay is not None}) == CASES * 3
    assert sum(trial.replay.same for trial in trials if trial.replay is not None) == CASES * 3 - 6


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "code"), first_of([("replay", 3), ("replay-then-live", 0), ("fail", 3)]))
def test_recordings_that_are_gone_are_said_and_never_taken_for_the_same_world(
    project: Project, provider: Provider, mode: str, code: int
) -> None:
    prepared(project, PYTHON, models=mode)
    project.store(trials=2, OPENAI_BASE_URL=provider.url)
    shutil.rmtree(store(project))
    before = provider.calls
    project.write("agent.py", CHANGED)
    ran = project.gate("run", "--trials", "2", "--json", "result.json", OPENAI_BASE_URL=provider.url)
    assert ran.code == code, ran.out + ran.err
    assert "the recordings of 8 trials of the baseline are not in" in " ".join(ran.out.split())
    assert provider.calls - before == (CASES * 2 * 2 if mode == "replay-then-live" else 0)
    assert "replayed" not in {key for key, value in result(project).items() if value}
    assert not any(case["same_world"] for case in result(project)["cases"])


class Served(BaseHTTPRequestHandler):
    """An agent that the gate does not start: it asks its model at a fixed address, and says whose trial it is on."""

    base = ""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"model": "m", "messages": asked["messages"]}).encode()
        headers = {"Content-Type": "application/json", "X-Gate-Trial": asked["session_id"]}
        with urllib.request.urlopen(urllib.request.Request(f"{self.base}/chat/completions", body, headers)) as got:
            said = json.load(got)["choices"][0]["message"]["content"]
        data = json.dumps({"output": said}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.slow
def test_an_agent_that_the_gate_does_not_start_is_replayed_by_a_fixed_port_and_a_header(
    project: Project, provider: Provider
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    handler = type("Bound", (Served,), {"base": f"http://127.0.0.1:{port}/openai"})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/chat"
        prepared(project, {"http": {"url": url}}, port=port)
        project.store(trials=2, OPENAI_BASE_URL=provider.url)
        before = provider.calls
        assert before == CASES * 2
        project.write("README.md", "another commit\n")
        trials = run(project, provider, "--trials", "2")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert provider.calls == before
    assert all(trial.replay is not None and trial.replay.same for trial in trials) and len(trials) == CASES * 2


@pytest.mark.parametrize("executor", first_of([{}, {"processes": 2}]), ids=["none", "processes"])
def test_recorded_trials_that_are_scored_open_no_world(
    project: Project, provider: Provider, executor: dict[str, Any]
) -> None:
    prepared(project, PYTHON)
    recorded = [
        {"id": f"s{n}", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}
        for n in range(6)
    ]
    project.write("recorded.jsonl", "".join(json.dumps(one) + "\n" for one in recorded))
    content = json.loads((project.root / "gate.yaml").read_text())
    content |= {
        "suite": "recorded.jsonl",
        "agent": {"replay": True},
        "criteria": {"not_contains": {"values": ["as an AI"]}},
    }
    project.write("gate.yaml", {**content, **({"executor": executor} if executor else {})})
    ran = project.gate("run", "-q", "--record", ".gate/scored.jsonl", OPENAI_BASE_URL=provider.url)
    assert ran.code == 0, ran.out + ran.err
    assert {trial.replay for trial in read_record(project.root / ".gate/scored.jsonl").trials} == {None}
    assert provider.calls == 0 and not store(project).exists()


def saved_within_5_megabytes(project: Project, record: str) -> str:
    """Stores a record where all recordings together may take 5 MB; returns what is said."""
    code = "import gate.world.pruning as it, gate.commands.main as main; it.MOST_BYTES = 5_000_000; main.main()"
    command = [sys.executable, "-c", code, "baseline", "save", record]
    return subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_old_recordings_go_as_a_baseline_is_saved_and_none_that_a_stored_record_names(
    project: Project, provider: Provider
) -> None:
    long = "x" * 3_000_000
    prepared(project, PYTHON)
    provider.says = f" {long[:1000]}"
    project.store(trials=1, record=".gate/one.jsonl", OPENAI_BASE_URL=provider.url)
    (vouched,) = store(project).iterdir()
    project.write("agent.py", AGENT.replace("helpful", "terse"))
    run(project, provider, "--trials", "1", code=None)
    (change,) = {*store(project).iterdir()} - {vouched}
    for path in (vouched, change):
        with path.open("ab") as file:
            file.write(json.dumps({"cassette": 1, "attempt": long}).encode() + b"\n")
        os.utime(path, (1_000_000, 1_000_000))
    project.write("agent.py", AGENT)
    project.commit("the next one")
    path = ".gate/two.jsonl"
    assert project.gate("run", "-q", "--trials", "1", "--record", path, OPENAI_BASE_URL=provider.url).code == 0
    said = " ".join(saved_within_5_megabytes(project, path).split())
    assert "removed 1 recording (3.0 MB) that no stored record names" in said
    assert vouched.exists() and not change.exists()
    with vouched.open("ab") as file:
        file.write(json.dumps({"cassette": 1, "attempt": long}).encode() + b"\n")
    project.write("agent.py", AGENT + "\n# edited\n")
    project.commit("and the next one")
    path = ".gate/three.jsonl"
    assert project.gate("run", "-q", "--trials", "1", "--record", path, OPENAI_BASE_URL=provider.url).code == 0
    said = " ".join(saved_within_5_megabytes(project, path).split())
    assert "more than 5.0 MB, and are in use" in said
    assert vouched.exists()
