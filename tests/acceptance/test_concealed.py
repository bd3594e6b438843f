"""What code of a change finds in the processes beside it: it looks into every one of its user, and finds no secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from tests.acceptance.conftest import Project

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc"),
]

OWN = uuid4().hex
"""A part of the key that no other test process has: another may be looking for its own at the same time."""
SECRET = f"sk-TheKeyOf{OWN}-4711"
LOOK = """
import os
from pathlib import Path


def look(who):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if b"sk-TheKeyOf" + b"TheWholeCompany" in Path("/proc", pid, "environ").read_bytes():
                found.append(Path("/proc", pid, "cmdline").read_text().replace("\\0", " "))
        except OSError:
            pass
    with Path(__file__).with_name("looked").open("a") as file:
        file.write("".join(f"{who}: {line}\\n" for line in found or ["nothing"]))
""".replace("TheWholeCompany", OWN)
AGENT = "import look\n\ndef answer(message):\n    look.look('agent')\n    return message\n"
CHECKS = """
import sys
sys.path.insert(0, __file__.rpartition("/")[0])
import look
def looks(case, answer):
    look.look("check")
    return True
"""
CONFIG = """\
suite: suite.yaml
name: s
agent: {python: "agent:answer"}
criteria:
  contains: {threshold: 0.5}
  checks:looks: {threshold: 0.5}
"""


@pytest.fixture
def looking(project: Project) -> Project:
    cases = [{"id": f"c{n}", "input": f"word{n}", "options": {"contains": {"values": ["word"]}}} for n in range(4)]
    project.write("suite.yaml", json.dumps({"cases": cases}))
    for name, text in {"gate.yaml": CONFIG, "agent.py": AGENT, "checks.py": CHECKS, "look.py": LOOK}.items():
        project.write(name, text)
    project.write(".gitignore", ".gate/\n__pycache__/\nlooked\n")
    project.commit()
    return project


def start(project: Project, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """As a CI job's shell would: the secret is in the environment that the process is started with."""
    environment: Mapping[str, str] = {**os.environ, "CI": "true", "COMPANY_KEY": SECRET, **more}
    command = [sys.executable, "-m", *words]
    return subprocess.run(
        command, cwd=project.root, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def looked(project: Project) -> set[str]:
    lines = (project.root / "looked").read_text().splitlines()
    assert len(lines) >= 4
    return set(lines)


def test_an_agent_finds_nothing_of_the_gates_environment(looking: Project) -> None:
    done = start(looking, "gate", "run", "-q")
    assert done.returncode == 0, done.stderr
    assert looked(looking) == {"agent: nothing", "check: nothing"}


def test_nor_beside_pytest(looking: Project) -> None:
    (looking.root / "tests").mkdir()
    done = start(looking, "pytest", "-q", "-p", "no:cacheprovider", "--gate", "gate.yaml", "tests")
    assert done.returncode == 0, done.stdout + done.stderr
    assert looked(looking) == {"agent: nothing", "check: nothing"}


def test_nor_a_check_while_old_answers_are_scored_again(looking: Project) -> None:
    assert start(looking, "gate", "run", "-q", "--record", ".gate/r.jsonl").returncode == 0
    (looking.root / "looked").unlink()
    done = start(looking, "gate", "rescore", ".gate/r.jsonl", "-o", ".gate/again.jsonl")
    assert done.returncode == 0, done.stderr
    assert looked(looking) == {"check: nothing"}


def test_a_process_keeps_its_own_environment(tmp_path: Path) -> None:
    """Emptied is only what others are shown: what it starts without saying so inherits all, as before."""
    code = """
import os, subprocess, sys
from gate.system.child import run
from pathlib import Path
run(["true"], environment={}, cwd=Path("/"), seconds=60)
assert os.environ["COMPANY_KEY"] == "ä" and os.environ["EMPTY"] == ""
assert b"COMPANY_KEY" not in Path("/proc/self/environ").read_bytes()
command = [sys.executable, "-c", "import os; print(ascii(os.environ['COMPANY_KEY']))"]
shown = subprocess.run(command, capture_output=True)
print(shown.stdout.decode(), shown.stderr.decode())
"""
    environment = {**os.environ, "COMPANY_KEY": "ä", "EMPTY": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "'\\xe4'", done.stderr
