"""An agent as a user of its own: what it tries against the gate, the suite and the base commit's agent."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gate.errors import MeasureError
from gate.system.own_user import OwnUser
from tests.acceptance.conftest import Project
from tests.patience import CEILING, eventually

REPOSITORY = Path(__file__).parents[2]
PYTHON = next((p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(p).exists()), "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or not PYTHON, reason="only root starts processes as another user"),
    pytest.mark.skipif(bool(OwnUser.unreachable([REPOSITORY / "gate"])), reason="another user cannot reach the gate"),
]

AGENT = """
import json, os, signal, sys
from pathlib import Path

request = json.load(sys.stdin)
said, here = request["messages"][-1]["content"], Path.cwd()

def tried(what):
    try:
        return f"done: {what()}"
    except OSError as error:
        return type(error).__name__

def first_of(folder):
    return sorted(path for path in Path(folder).rglob("*") if path.is_file())[0].read_text()

def append(path):
    with open(path, "a") as file:
        file.write("\\n")

attacks = {
    "read the suite": lambda: (here / "evals/suite.yaml").read_text(),
    "read the suite from git": lambda: os.listdir(here / ".git/objects"),
    "replace the suite": lambda: (here / "evals/suite.yaml").rename(here / "evals/other.yaml"),
    "replace its folder": lambda: (here / "evals").rename(here / "others"),
    "read an earlier report": lambda: (here / "out/earlier.html").read_text(),
    "read an earlier record": lambda: (here / "earlier.jsonl").read_text(),
    "read the records": lambda: os.listdir(here / ".gate/records"),
    "replace the records": lambda: (here / ".gate").rename(here / "old"),
    "replace the repository": lambda: (here / ".git").rename(here / "old"),
    "write to the package": lambda: append(PACKAGE + "/__init__.py"),
    "add to the package": lambda: append(PACKAGE + "/sitecustomize.py"),
    "signal the gate": lambda: os.kill(os.getppid(), signal.SIGTERM),
    "read the gate's environment": lambda: Path(f"/proc/{os.getppid()}/environ").read_bytes(),
    "read the gate's memory": lambda: open(f"/proc/{os.getppid()}/mem", "rb"),
    "open the gate's files": lambda: os.listdir(f"/proc/{os.getppid()}/fd"),
    "write through a link": lambda: append(here / "second.name"),
    "become root": lambda: os.setuid(0),
    "write beside its code": lambda: append(here / "notes.txt"),
    "write to its data": lambda: append(here / "data.txt"),
    "write to its home": lambda: append(Path.home() / "notes.txt"),
}
if said == "attack":
    found = {name: tried(what) for name, what in attacks.items()} if os.getuid() else {}
    found["who"] = os.getuid()
    Path(here / "found.json").write_text(json.dumps(found))
print(json.dumps({"output": said, "tool_calls": []}))
""".replace("PACKAGE", repr(str(REPOSITORY / "gate")))


@pytest.fixture
def place() -> Iterator[Project]:
    folder = Path(tempfile.mkdtemp(prefix="own-user-"))
    folder.chmod(0o755)
    project = Project(folder / "project")
    project.root.mkdir()
    project.write("agent.py", AGENT)
    project.write("data.txt", "data")
    project.write("evals/suite.yaml", {"cases": [_case("c1", "attack"), _case("c2", "word")]})
    (folder / "elsewhere").write_text("of somebody else")
    os.link(folder / "elsewhere", project.root / "second.name")
    yield project
    shutil.rmtree(folder)


def _case(name: str, said: str) -> dict[str, Any]:
    return {"id": name, "input": said, "response": said, "options": {"contains": {"values": [said]}}}


def _configured(project: Project, **agent: Any) -> None:
    config = {
        "suite": "evals/suite.yaml",
        "name": "s",
        "agent": {"command": [PYTHON, "agent.py"], **agent},
        "criteria": {"contains": 0.5},
    }
    project.write("gate.yaml", json.dumps(config))
    project.commit()


def _state(root: Path) -> dict[str, tuple[int, int, int]]:
    found = {}
    for path in (root, *root.rglob("*")):
        about = path.lstat()
        found[str(path.relative_to(root))] = about.st_uid, about.st_gid, stat.S_IMODE(about.st_mode)
    return found


def test_an_agent_of_its_own_user_reaches_nothing_of_the_gate_and_its_folder_comes_back(place: Project) -> None:
    _configured(place)
    assert place.gate("run", "--trials", "1", "--html", "out/earlier.html", "--record", "earlier.jsonl").code == 0
    before = _state(place.root)
    assert place.gate("run", "--trials", "1", CI="true").code == 0
    found = json.loads((place.root / "found.json").read_text())
    allowed = {"write beside its code", "write to its data", "write to its home"}
    assert {name for name, what in found.items() if str(what).startswith("done")} == allowed
    assert found["who"] != 0
    assert (place.root.parent / "elsewhere").read_text() == "of somebody else"
    after = _state(place.root)
    assert {name: after[name] for name in before} == before
    assert {uid for uid, _, _ in after.values()} == {0}
    assert not list(Path(tempfile.gettempdir()).glob(f"gate-agent-{found['who']}"))


def test_the_suite_is_read_only_where_the_configuration_says_so(place: Project) -> None:
    _configured(place, user="own", reads_suite=True)
    assert place.gate("run", "--trials", "1").code == 0
    found = json.loads((place.root / "found.json").read_text())
    assert found["read the suite"].startswith("done")
    assert not found["replace the suite"].startswith("done")
    assert not found["read the suite from git"].startswith("done")


def test_outside_of_ci_it_is_the_same_user_and_doctor_says_what_it_can_read(place: Project) -> None:
    _configured(place)
    assert place.gate("run", "--trials", "1").code == 0
    assert json.loads((place.root / "found.json").read_text())["who"] == 0
    assert "the agent can read the expected answers" in place.gate("doctor", "--no-ask").out
    _configured(place, user="own")
    assert "which cannot read the suite" in place.gate("doctor", "--no-ask").out


def test_a_user_that_cannot_reach_the_agent_is_refused_where_it_is_asked_for(place: Project) -> None:
    place.root.chmod(0o700)
    _configured(place, user="own")
    ran = place.gate("run", "--trials", "1")
    assert (ran.code, "agent.user" in ran.err) == (2, True)
    _configured(place)
    assert place.gate("run", "--trials", "1", CI="true").code == 0


def test_what_an_agent_leaves_running_ends_with_it_whatever_it_forgets(place: Project) -> None:
    place.write(
        "agent.py",
        "import os, json, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.execve('/bin/sleep', ['sleep', '987'], {})\n"
        "    os._exit(0)\n"
        "print(json.dumps({'output': 'attack word', 'tool_calls': []}))\n",
    )
    _configured(place, user="own")
    assert place.gate("run", "--trials", "1").code == 0
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "sleep 987" not in listed


OTHERS = """
import json, os, sys, time
from pathlib import Path

def lie_in_wait():
    while True:
        time.sleep(0.02)
        for tree in Path(PLACE).glob("gate-base-*/tree"):
            tried = []
            for what in (lambda: (tree / "agent.py").open("a"), lambda: (tree / "json.py").touch()):
                try:
                    what()
                    tried.append("done")
                except OSError as error:
                    tried.append(type(error).__name__)
            with open("tried.txt", "a") as file:
                file.write(" ".join(tried) + " ")

said = json.load(sys.stdin)["messages"][-1]["content"]
if Path("of_the_change").exists() and not os.fork():
    os.setsid()
    for stream in (0, 1, 2):
        os.close(stream)
    if not os.fork():
        lie_in_wait()
    os._exit(0)
print(json.dumps({"output": said, "tool_calls": []}))
"""


def test_the_changes_agent_cannot_write_to_the_base_commits(place: Project) -> None:
    """Both have a user of their own; the base's work tree is open to be entered, since its agent runs there."""
    place.write("agent.py", OTHERS.replace("PLACE", repr(tempfile.gettempdir())))
    place.write("evals/suite.yaml", {"cases": [_case("c1", "word"), _case("c2", "more")]})
    _configured(place, user="own")
    place.git("checkout", "-qb", "change")
    place.write("of_the_change", "")
    place.commit("change")
    assert place.gate("run", "--trials", "2").code == 0
    assert set((place.root / "tried.txt").read_text().split()) == {"PermissionError"}


def test_what_a_link_of_the_suite_leads_to_stays_as_it_is(place: Project) -> None:
    """A suite may hold a link to any file of the machine, and the gate is root."""
    outside = place.root.parent / "elsewhere"
    link = place.root / "evals" / "linked.yaml"
    link.symlink_to(outside)
    before = _state(place.root.parent)
    user = OwnUser.make(None)
    try:
        user.give(place.root, top=place.root, hidden=[link, place.root / "evals" / "suite.yaml"])
        during = _state(place.root.parent)
        assert during["elsewhere"] == before["elsewhere"]
        assert during["project/evals/suite.yaml"] == (0, 0, 0o600)
        assert during["project/agent.py"][0] == user.number
    finally:
        user.end()
    assert _state(place.root.parent) == before


GIVING = """
import os, signal, sys
from pathlib import Path
from gate.system.own_user import OwnUser
root, last = Path(sys.argv[1]), int(sys.argv[2])
user = OwnUser.make(None)
print(user.number, flush=True)
changes = 0
def ending(change):
    def made(*given, **named):
        global changes
        change(*given, **named)
        changes += 1
        if changes == last:
            os.kill(os.getpid(), signal.SIGKILL)
    return made
os.chown, Path.chmod = ending(os.chown), ending(Path.chmod)
user.give(root, top=root, hidden=[root / "evals"], kept=[root / "agent.py"])
input()
"""


def test_a_gate_that_is_killed_leaves_the_folder_as_it_was(place: Project) -> None:
    """After its first changes, when nothing but what it announced is known, and at other moments."""
    for number in range(400):
        place.write(f"data/{number % 20}/{number}.txt", "")
    before = _state(place.root)
    at_changes = [(last, 0.0) for last in (1, 2, 3, 50)]
    at_moments = [(0, moment) for moment in (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.5)]
    for last, moment in at_changes + at_moments:
        command = [sys.executable, "-c", GIVING, str(place.root), str(last)]
        with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as giving:
            assert giving.stdout is not None
            home = Path(tempfile.gettempdir(), f"gate-agent-{int(giving.stdout.readline())}")
            if last:
                assert giving.wait(CEILING) == -signal.SIGKILL
            else:
                time.sleep(moment)
                giving.kill()
        assert eventually(lambda home=home: not home.exists())
        assert _state(place.root) == before, (last, moment)


def test_so_does_a_run_that_is_killed_while_the_agent_answers(place: Project) -> None:
    place.write("agent.py", "import time, pathlib\npathlib.Path('new.txt').touch()\ntime.sleep(987)\n")
    _configured(place, user="own")
    before = _state(place.root)
    command = [sys.executable, "-m", "gate", "run", "--trials", "1"]
    with subprocess.Popen(command, cwd=place.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        assert eventually((place.root / "new.txt").exists)
        running.kill()
    assert eventually(lambda: {uid for uid, _, _ in _state(place.root).values()} == {0})
    assert eventually(lambda: before.items() <= _state(place.root).items())
    assert "sleep(987)" not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


def test_what_an_agent_leaves_in_its_folder_gives_it_nothing_afterwards(place: Project) -> None:
    """Its program that runs as its owner, odd names, and links to files of others, in new places and in old ones."""
    outside = [place.root.parent / "elsewhere", place.root.parent / "others"]
    outside[1].touch()
    os.chown(outside[1], 55, 55)
    os.chown(place.root, 1234, 1234)  # what is new will belong to it, and what was there to root
    user = OwnUser.make(None)
    user.give(place.root, top=place.root, hidden=[place.root / "evals"])
    left = (
        "import os\n"
        "open('program', 'w').close(); os.chmod('program', 0o6755)\n"
        "open(b'odd\\n\\xff', 'w').close()\n"
        f"os.symlink({str(outside[0])!r}, 'link')\n"
        f"os.rename('data.txt', 'old'); os.symlink({str(outside[1])!r}, 'data.txt')\n"
    )
    before = _state(place.root.parent)
    subprocess.run([PYTHON, "-c", left], cwd=place.root, check=True, **user.start)
    user.end()
    after = _state(place.root)
    assert {uid for uid, _, _ in after.values()} == {0, 1234}
    assert not after["program"][2] & (stat.S_ISUID | stat.S_ISGID)
    assert after["evals"][2] == 0o755 and "old" in after
    assert all(_state(path)["."] == before[path.name] for path in outside)


def test_folders_without_end_keep_the_suite_from_coming_back_to_nobody(place: Project) -> None:
    before = _state(place.root)
    user = OwnUser.make(None)
    user.give(place.root, top=place.root, hidden=[place.root / "evals"])
    deep = "import os\nfor _ in range(3000):\n    os.mkdir('d'); os.chdir('d')\n"
    subprocess.run([PYTHON, "-c", deep], cwd=place.root, check=True, **user.start)
    with pytest.raises(MeasureError, match="not all files"):
        user.end()
    modes = {name: mode for name, (_, _, mode) in before.items()}
    found = {str(path.relative_to(place.root)): path for path in (place.root, *(place.root / "evals").rglob("*"))}
    assert all(stat.S_IMODE(path.stat().st_mode) == modes[name] for name, path in found.items())
    assert not user.home.exists()
    subprocess.run(["rm", "-rf", place.root / "d"], check=True)


def test_what_a_user_owns_that_is_gone_belongs_to_the_folders_owner(place: Project) -> None:
    """A gate that is ended with its whole container leaves nobody who could give anything back."""
    os.chown(place.root / "data.txt", 62_000, 62_000)
    user = OwnUser.make(None)
    user.give(place.root, top=place.root, hidden=[])
    user.end()
    assert {uid for uid, _, _ in _state(place.root).values()} == {0}


def test_a_closed_folder_is_not_opened_for_what_is_closed_in_it(place: Project) -> None:
    """Baselines that are files lie in the folder of the records."""
    _configured(place, user="own")
    place.write(".gitignore", ".gate\n")
    place.write(".gate/baselines/s/one.jsonl", "{}")
    place.write(".gate/records/s/one.jsonl", "{}")
    place.commit()
    assert place.gate("run", "--trials", "1").code == 0
    found = json.loads((place.root / "found.json").read_text())
    assert found["read the records"] == "PermissionError"
