"""A command in a fork of `tests.warm` is the same command: it sees, says and ends with what a fresh process does.

So is the worker of an agent in Python that such a command starts.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests import warm
from tests.acceptance.conftest import Project

SEEN = """
import json, os, sys
about = [sys.path, sys.argv[1:], os.getcwd(), dict(os.environ), sys.stdin.read(), __name__, sys.stdout.isatty()]
print(json.dumps(about), len(os.listdir("/proc/self/fd")))
print("on the other stream", file=sys.stderr)
sys.exit(7)
"""


def both(words: list[str], folder: Path, **options: object) -> list[tuple[int, str, str]]:
    found = []
    for cold in (False, True):
        ran = warm.run(words, cwd=folder, environment={**os.environ, "OWN": "ä"}, cold=cold, **options)  # type: ignore[arg-type]
        found.append((ran.returncode, ran.stdout, ran.stderr))
    return found


@pytest.mark.parametrize("flags", [(), pytest.param(("-I", "-u"), marks=pytest.mark.slow)])
def test_it_sees_what_a_fresh_process_sees(tmp_path: Path, flags: tuple[str, ...]) -> None:
    one, other = both(["-c", SEEN, "a", "b c"], tmp_path, stdin="given", flags=flags)
    assert one == other
    assert (one[0], one[2]) == (7, "on the other stream\n")


SLOW = [["--version"], ["schema"], ["nonsense"], ["run", "--help"]]


@pytest.mark.parametrize("words", [["run"], *(pytest.param(one, marks=pytest.mark.slow) for one in SLOW)])
def test_it_says_what_a_fresh_process_says(tmp_path: Path, words: list[str]) -> None:
    one, other = both(["-m", "gate", *words], tmp_path)
    assert one == other


@pytest.mark.parametrize(
    "code", ["raise SystemExit('no')", "import os; os.kill(os.getpid(), 9)", "import os; os._exit(4)"]
)
def test_it_ends_as_a_fresh_process_ends(tmp_path: Path, code: str) -> None:
    one, other = both(["-c", code], tmp_path)
    assert one == other


def test_what_takes_too_long_is_killed_and_says_where_it_was(tmp_path: Path) -> None:
    code = "import time\nprint('begun', flush=True)\ntime.sleep(600)"
    with pytest.raises(subprocess.TimeoutExpired) as ended:
        warm.run(["-c", code], cwd=tmp_path, environment=os.environ, timeout=0.5)
    (note,) = ended.value.__notes__
    assert note.startswith("begun\n")
    assert 'File "<string>", line 3 in <module>' in note


AGENT = """
import asyncio, atexit, os, signal, sys

atexit.register(open("ended", "a").write, "x")


def answer(message):
    own = {name: value for name, value in os.environ.items() if name != "AGENT_GATE_RUN"}
    streams = [(one.encoding, one.errors, one.write_through, one.fileno()) for one in (sys.__stdout__, sys.__stderr__)]
    ours = sorted({"gate", "pydantic", "yaml", "msgspec", "statistics"} & {*sys.modules})
    handled = [str(signal.getsignal(number)).split(" at ")[0] for number in sorted(signal.valid_signals())]
    about = [sys.path, sys.argv[0], os.getcwd(), own, sys.stdin.read(), streams, ours, handled, sys.flags.isolated]
    about += [os.getsid(0) == os.getpid(), len(os.listdir("/proc/self/fd")), str(sys.modules["__main__"].__file__)]
    about += [type(asyncio.get_event_loop_policy()).__name__, [type(one).__name__ for one in sys.meta_path]]
    return "\\n".join(map(repr, about))
"""


@pytest.mark.slow
def test_an_agent_sees_what_it_sees_in_a_fresh_process(tmp_path: Path) -> None:
    seen = []
    for cold in (False, True):
        project = Project(tmp_path)
        project.write("agent.py", AGENT)
        project.write("suite.json", {"cases": [{"id": "a", "input": "hi"}]})
        criteria = {"contains": {"values": ["agent"]}}
        project.write(
            "gate.yaml", {"suite": "suite.json", "agent": {"python": "agent:answer"}, "criteria": criteria, "trials": 1}
        )
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        words = ["-m", "gate", "run", "--record", f"{cold}.jsonl"]
        ran = warm.run(words, cwd=tmp_path, environment=environment, cold=cold)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        rows = [json.loads(line) for line in (tmp_path / f"{cold}.jsonl").read_text().splitlines()]
        seen.append([row["turns"][0]["response"][0].splitlines() for row in rows if "turns" in row])
    [[one], [other]] = seen
    assert one == other
    assert (tmp_path / "ended").read_text() == "xx"
