"""An agent that does everything wrong at once: every trial is accounted for, and nothing of it is left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.acceptance.conftest import Project, _environment, first_of
from tests.patience import CEILING, eventually

CASES = 36
MARK = "CHAOS_TEST_MARK"
MISBEHAVIOUR = """
import os, signal, subprocess, sys, time

def misbehave(number):
    kind = number % 9
    if kind == 1:
        raise RuntimeError("no")
    if kind == 2:
        os._exit(3)
    if number in (3, 21):
        time.sleep(3600)
    if kind == 4:
        sys.stderr.write("noise " * 400_000); sys.stderr.flush()
    if kind == 5:
        for _ in range(20): os.open("/dev/null", os.O_RDONLY)
    if kind == 6:  # a child that leaves its group, and would outlive everybody
        subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(3600)"], start_new_session=True)
    if kind == 7:  # the same, deaf to SIGTERM
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
        subprocess.Popen([sys.executable, "-S", "-c", code])
    if kind == 8:
        os.kill(os.getpid(), signal.SIGKILL)
"""
COMMAND = """
import json, sys, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
from misbehaviour import misbehave
request = json.load(sys.stdin)
misbehave(int(request["case_id"].partition("-")[2]))
print(json.dumps({"output": "done", "tool_calls": []}))
"""
PYTHON = """
import signal, threading
from misbehaviour import misbehave
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
def answer(case_id):
    misbehave(int(case_id.partition("-")[2]))
    return {"output": "done", "tool_calls": []}
"""
LIMITS = "timeout: 4s, concurrency: 8, retries: 0"
AGENTS = {
    "command": f"{{command: [{sys.executable}, -S, agent.py], {LIMITS}, env: [{MARK}]}}",
    "python": f"{{python: 'agent:answer', workers: 2, {LIMITS}, env: [{MARK}]}}",
}


@pytest.fixture(params=first_of(AGENTS))
def chaos(request: pytest.FixtureRequest, project: Project) -> Project:
    cases = [{"id": f"case-{n}", "input": "go", "tools": []} for n in range(CASES)]
    project.write("suite.json", {"cases": cases})
    project.write("misbehaviour.py", MISBEHAVIOUR)
    project.write("agent.py", PYTHON if request.param == "python" else COMMAND)
    project.write(
        "gate.yaml",
        f"suite: suite.json\nagent: {AGENTS[request.param]}\nbaseline: {{store: none}}\ntrials: 1\n"
        "criteria: {tool_trajectory_avg_score: 0.9}\ngate: {max_error_rate: 0.9, confirm_after: 200ms}\n",
    )
    return project


def descendants(mark: str) -> list[int]:
    """Processes that carry the mark in their environment, wherever they moved to."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def trials(path: Path) -> list[dict[str, Any]]:
    """Those on whole lines: more may be on its way."""
    return [row for line in path.read_text().split("\n")[:-1] if "case" in (row := json.loads(line))]


@pytest.mark.slow
def test_every_trial_is_there_and_no_process_is_left(chaos: Project) -> None:
    record, mark = chaos.root / "record.jsonl", uuid4().hex
    environment = {**_environment(), MARK: mark}
    run = subprocess.Popen(
        [sys.executable, "-m", "gate", "run", "--record", str(record), "--quiet"],
        cwd=chaos.root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    most_files = 0
    while run.poll() is None:
        try:
            most_files = max(most_files, sum(1 for _ in Path(f"/proc/{run.pid}/fd").iterdir()))
        except OSError:
            break
        time.sleep(0.05)
    _, err = run.communicate()
    assert "Traceback" not in err
    assert run.returncode == 1, err
    assert eventually(lambda: not descendants(mark)), "what was killed goes; what was not sleeps for an hour"
    assert most_files < 150, "descriptors leaked"
    found = trials(record)
    assert {t["case"] for t in found} == {f"case-{n}" for n in range(CASES)}
    assert len({(t["case"], t.get("n", 1)) for t in found}) == len(found)
    for trial in found:
        number = int(trial["case"].partition("-")[2])
        error = (trial.get("error") or [None, None])[0]
        assert (error == "timeout") == (number in (3, 21)), trial
        assert (error is not None) == (number in (3, 21) or number % 9 in (1, 2, 8)), trial


@pytest.mark.slow
def test_stopped_in_the_middle_it_leaves_nothing(chaos: Project) -> None:
    record, mark = chaos.root / "record.jsonl", uuid4().hex
    run = subprocess.Popen(
        [sys.executable, "-m", "gate", "run", "--record", str(record), "--quiet"],
        cwd=chaos.root,
        env={**_environment(), MARK: mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert eventually(lambda: record.exists() and trials(record))
    run.terminate()
    _, err = run.communicate(timeout=CEILING)
    assert run.returncode == 143, err
    assert "Traceback" not in err
    assert eventually(lambda: not descendants(mark))
