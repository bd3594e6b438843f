"""Whatever ends a run, what was measured is kept, nothing finished is repeated, and the verdict is the same."""

from __future__ import annotations

import json
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests import warm
from tests.acceptance.conftest import Project, _environment, untimed
from tests.patience import CEILING, eventually

pytestmark = pytest.mark.slow

CASES = 16
AGENT = """
import hashlib, json, os, sys, time
request = json.load(sys.stdin)
time.sleep(0.02)
while os.path.exists("hold") and os.path.exists("ran.log") and len(open("ran.log").readlines()) >= 12: time.sleep(0.05)
name = f"{request['case_id']}:{request['trial']}"
good = int(hashlib.sha256(name.encode()).hexdigest(), 16) % 100 < 80
fd = os.open("ran.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
os.write(fd, (name + "\\n").encode())
print(json.dumps({"output": "done", "tool_calls": [{"name": "lookup" if good else "guess", "arguments": {}}]}))
"""
CONFIG = """
suite: suite.json
agent: {command: [PYTHON, -S, -E, agent.py], concurrency: 4, sources: [agent.py]}
criteria: {tool_trajectory_avg_score: {match_type: IN_ORDER, threshold: 0.5}}
baseline: {store: none}
gate: {confirm_after: 200ms}
trials: 2
"""


@pytest.fixture
def project(project: Project) -> Project:
    return write(project)


def write(project: Project) -> Project:
    cases = [{"id": f"case-{n}", "input": f"question {n}", "tools": [{"name": "lookup"}]} for n in range(CASES)]
    project.write("suite.json", {"cases": cases})
    project.write("gate.yaml", CONFIG.replace("PYTHON", sys.executable))
    project.write("agent.py", AGENT)
    return project


def start(project: Project, *arguments: str) -> warm.Started:
    return warm.Started(
        ["-m", "gate", "run", *arguments],
        cwd=project.root,
        environment=_environment(),
        heeds=(signal.SIGHUP, signal.SIGINT, signal.SIGTERM),
    )


def start_limited(project: Project, limit: Callable[[], object], *arguments: str) -> subprocess.Popen[str]:
    """A process that begins under a limit, which a fork would not."""
    return subprocess.Popen(
        [sys.executable, "-m", "gate", "run", *arguments],
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**_environment(), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=limit,  # noqa: PLW1509 - this process has no threads
    )


@contextmanager
def held(project: Project) -> Iterator[None]:
    """The agent answers a dozen trials and a few, and the rest when this ends: no run is over before."""
    hold = project.write("hold", "")
    try:
        yield
    finally:
        hold.unlink()


def nothing_runs(project: Project) -> bool:
    """Whether no process works in the project's folder, once those that end by themselves have had the time to."""
    return eventually(lambda: not any(map(alive, working_in(project.root))))


def working_in(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").readlink() == folder:
                found.append(int(entry.name))
    return found


def recorded(path: Path) -> list[str]:
    """The trials in a record that may end in the middle of a line."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return [f"{row['case']}:{row['n']}" for row in rows if "case" in row]


def ran(project: Project) -> Counter[str]:
    log = project.root / "ran.log"
    return Counter(log.read_text().split() if log.exists() else ())


def verdict(project: Project, record: Path) -> tuple[int, object]:
    """Continues the record; the verdict with all that it rests on but times and costs."""
    code, result = project.result("run", "--record", str(record))
    suite = result["suites"][0]
    parts = ("headline", "criteria", "cases", "agent_runs", "story", "changes")
    return code, (result["verdict"], *(untimed(suite, part) for part in parts))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[int, object]]:
    """The folder of a run that nothing interrupted, and its verdict."""
    project = write(Project(tmp_path_factory.mktemp("whole")))
    found = verdict(project, project.root / "whole.jsonl")
    (project.root / "ran.log").unlink()
    return project.root, found


@pytest.fixture
def uninterrupted(project: Project, finished: tuple[Path, tuple[int, object]]) -> tuple[int, object]:
    """The verdict of the project's run; its record is at hand."""
    folder, found = finished
    shutil.copytree(folder, project.root, dirs_exist_ok=True)
    return found


def wait_for(run: warm.Started, record: Path, trials: int) -> None:
    """Until so many trials are recorded, or the run has ended."""
    assert eventually(lambda: len(recorded(record)) >= trials or run.poll() is not None)


@pytest.mark.parametrize("seed", range(4))
def test_killed_five_times(project: Project, uninterrupted: tuple[int, object], seed: int) -> None:
    rng, record = random.Random(seed), project.root / "killed.jsonl"
    finished: dict[str, int] = {}
    for _ in range(5):
        run = start(project, "--record", str(record))
        wait_for(run, record, len(finished) + rng.randrange(12))
        time.sleep(rng.uniform(0, 0.05))
        run.send_signal(signal.SIGKILL)
        run.communicate()
        assert nothing_runs(project)  # what the agent had in flight ends by itself, and may write to the log
        now, times = recorded(record), ran(project)
        assert finished.keys() <= set(now), "a finished trial was lost"
        finished = {trial: finished.get(trial, times[trial]) for trial in now}
    assert verdict(project, record) == uninterrupted
    whole = recorded(record)
    assert len(whole) == len(set(whole)) == 2 * CASES
    repeated = [trial for trial, times in finished.items() if ran(project)[trial] != times]
    assert not repeated, "a finished trial was run again"


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
    ],
)
def test_stopped_by_a_signal(
    project: Project, uninterrupted: tuple[int, object], number: signal.Signals, code: int
) -> None:
    record = project.root / "stopped.jsonl"
    with held(project):
        run = start(project, "--record", str(record))
        assert eventually(lambda: len(recorded(record)) >= 10)
        run.send_signal(number)
        _, err = run.communicate(timeout=CEILING)
    assert run.returncode == code
    assert "--resume" in err
    assert "Traceback" not in err
    before = recorded(record)
    assert 10 <= len(before) < 2 * CASES
    assert verdict(project, record) == uninterrupted
    assert all(ran(project)[trial] == 1 for trial in before)


@pytest.mark.slow
def test_under_nohup_a_closed_terminal_stops_nothing(project: Project, uninterrupted: tuple[int, object]) -> None:
    record = project.root / "hup.jsonl"
    with held(project):
        run = start_limited(project, lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN), "--record", str(record))
        assert eventually(lambda: len(recorded(record)) >= 10)
        run.send_signal(signal.SIGHUP)
    _, err = run.communicate(timeout=CEILING)
    assert run.returncode == uninterrupted[0], err
    assert len(recorded(record)) == 2 * CASES


DAEMON = """
import os, subprocess, sys, time
bare = {} if os.path.exists("bare") else None
subprocess.Popen([sys.executable, "-S", "-E", "-c", "import time; time.sleep(3600)"], start_new_session=True, env=bare)
open("started", "w").close()
time.sleep(3600)
"""


@pytest.mark.parametrize(
    ("kind", "number", "bare"),
    [
        ("command", signal.SIGHUP, False),
        ("command", signal.SIGKILL, False),
        ("command", signal.SIGKILL, True),
        ("python", signal.SIGHUP, False),
        ("python", signal.SIGKILL, False),
    ],
)
def test_what_the_agent_started_goes_with_the_gate(
    project: Project, kind: str, number: signal.Signals, bare: bool
) -> None:
    """Also what moved to a session of its own, and, if its parent still lives, even with an empty environment."""
    project.write("agent.py", DAEMON if kind == "command" else f"def answer(message):\n    exec({DAEMON!r})\n")
    if kind == "python":
        changed = CONFIG.replace("command: [PYTHON, -S, -E, agent.py]", "python: agent:answer")
        project.write("gate.yaml", changed)
    if bare:
        project.write("bare", "")
    run = start(project)
    assert eventually((project.root / "started").exists)
    run.send_signal(number)
    run.communicate(timeout=CEILING)
    assert run.returncode == (129 if number is signal.SIGHUP else -9)
    assert nothing_runs(project)


def test_a_full_disk(project: Project, uninterrupted: tuple[int, object]) -> None:
    """A limit on the size of files stands in for it: the write fails half-way through a line."""
    record = project.root / "full.jsonl"
    room = (project.root / "whole.jsonl").stat().st_size * 2 // 3
    limit = resource.RLIMIT_FSIZE, (room, room)
    run = start_limited(project, lambda: resource.setrlimit(*limit), "--record", str(record))
    _, err = run.communicate()
    assert run.returncode == 3
    assert "the record cannot be written" in err
    assert "--resume" in err
    before = recorded(record)
    assert before
    assert record.read_bytes().endswith(b"\n")
    assert verdict(project, record) == uninterrupted
    assert all(ran(project)[trial] == 1 for trial in before)


def test_no_room_for_a_report_keeps_the_verdict_in_the_record(project: Project) -> None:
    ran_ = project.gate("run", "--record", "r.jsonl", "--html", "/dev/full")
    assert ran_.code == 3
    assert "could not be written" in ran_.err
    assert project.gate("report", "r.jsonl", "--quiet").code == 0


@pytest.mark.slow
def test_the_agent_dies_half_way(project: Project) -> None:
    """Nobody knows whose fault it was, so nothing was measured; a run of an agent that lives again starts anew."""
    gone = "import os, sys\nif os.path.exists('die') and len(open('ran.log').readlines()) > 12: sys.exit(9)\n"
    project.write("agent.py", gone + AGENT)
    project.write("ran.log", "")
    project.write("die", "")
    code, result = project.result("run", "--record", "dead.jsonl")
    assert (code, result["verdict"]) == (3, "error")
    assert len(ran(project)) >= 12
    (project.root / "die").unlink()
    code, result = project.result("run", "--record", "dead.jsonl")
    assert (code, result["verdict"]) == (0, "pass")
    assert any("do not count" in line for line in result["suites"][0]["warnings"])


@pytest.mark.slow
def test_two_gates_in_one_workspace(project: Project) -> None:
    """Each writes a record of its own, whole."""
    runs = [start(project) for _ in range(3)]
    outputs = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], outputs
    records = list((project.root / ".gate" / "records").rglob("*.jsonl"))
    assert len(records) == 3
    for record in records:
        assert project.gate("report", str(record), "--quiet").code == 0
        assert len(set(recorded(record))) == 2 * CASES


def test_two_gates_with_one_record(project: Project) -> None:
    with held(project):
        first = start(project, "--record", "one.jsonl")
        assert eventually(lambda: recorded(project.root / "one.jsonl"))
        second = project.gate("run", "--record", "one.jsonl")
    first.communicate()
    assert second.code == 3
    assert "another gate is writing this record" in second.err
    assert first.returncode == 0
    assert len(set(recorded(project.root / "one.jsonl"))) == 2 * CASES


def test_nothing_of_the_agent_outlives_a_kill(project: Project) -> None:
    """Even kill −9 leaves no process of the agent behind for longer than its own answer takes."""
    project.write("agent.py", "def answer(message):\n    import time; open('asked', 'w').close(); time.sleep(3600)")
    project.write("gate.yaml", CONFIG.replace("command: [PYTHON, -S, -E, agent.py]", "python: agent:answer"))
    run = start(project)
    assert eventually((project.root / "asked").exists)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    assert nothing_runs(project)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
