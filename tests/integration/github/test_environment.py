"""What code of a change can see of the job that measures it: setup, agent, the base's agent and checks look around."""

from __future__ import annotations

import base64
import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.github.fake_github import FakeGitHub, Identity
from tests.integration.github.job import AGENT, CONFIG, from_the_entrypoint
from tests.integration.github.scenarios import World

pytestmark = pytest.mark.slow

SECRET = "ghs_TheTokenThatWritesTheBaselineBranch"
RUNTIME = "the-runtime-token-of-the-runner"
PEEK = '''
import json, os, sys, uuid
from pathlib import Path


def of(pid, name):
    return Path("/proc", str(pid), name).read_bytes().decode("utf-8", "replace")


def parents(pid):
    """From the parent on, up to the gate's own process."""
    while pid > 1:
        pid = int(next(line for line in of(pid, "status").splitlines() if line.startswith("PPid")).split()[1])
        yield pid
        if "gate." in of(pid, "cmdline"):
            return


def look(who):
    above = list(parents(os.getpid()))
    seen = {"who": who, "cwd": os.getcwd(), "environment": dict(os.environ), "above": above}
    seen["inherited"] = [of(pid, "environ") for pid in above]
    seen["gate"] = next(parents(above[-1]))
    Path(os.environ["HOME"], f"seen-{uuid.uuid4()}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    look(sys.argv[1])
'''
CHECKS = """
import sys
sys.path.insert(0, __file__.rpartition("/")[0])
import peek
peek.look("check")
def looks(case, answer):
    return True
"""
LOOKING = CONFIG.replace("concurrency: 4", 'concurrency: 4, env: ["*"]').replace(
    "criteria:", "setup: python peek.py setup\ncriteria:\n  checks:looks: {threshold: 0.5}"
)
RUNNER = {"ACTIONS_RUNTIME_TOKEN": RUNTIME, "ACTIONS_CACHE_URL": "https://cache.example", "MY_AGENTS": "own"}
FILES = {"GITHUB_ENV": "env", "GITHUB_PATH": "path", "GITHUB_STATE": "state"}


@pytest.fixture
def world(tmp_path: Path, fake: FakeGitHub) -> World:
    fake.tokens[SECRET] = Identity()
    world = World(tmp_path, fake, from_the_entrypoint)
    world.repository.files |= {"agent.py": f"import peek\npeek.look('agent')\n{AGENT}", "peek.py": PEEK}
    world.repository.files |= {"checks.py": CHECKS, "gate.yaml": LOOKING}
    return world


def job(path: str, **changes: str) -> dict[str, Any]:
    return {"inputs": {"token": SECRET}, "environment": {**RUNNER, "PATH": path, **changes}}


def seen(world: World) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in (world.last.root / "home").glob("seen-*.json")]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc")
def test_nobody_but_the_gate_sees_what_the_action_signs_in_with(world: World, path_with_uv: str) -> None:
    done = world.push("good", **job(path_with_uv))
    assert done.code == 0, done.log
    done = world.pull_request("slip", **job(path_with_uv))  # one suspicious case: the base's agent runs, too
    assert done.outputs["verdict"] != "error", done.log
    found = seen(world)
    assert {look["who"] for look in found} == {"setup", "agent", "check"}
    folders = {look["cwd"] for look in found if look["who"] == "agent"}
    assert any("gate-base-" in folder for folder in folders), "the base commit's agent looked, too"
    header = base64.b64encode(f"x-access-token:{SECRET}".encode()).decode()
    for look in found:
        everything = json.dumps([look["environment"], look["inherited"]])
        for secret in (SECRET, header, RUNTIME):
            assert secret not in everything, look["who"]
        forbidden = ("INPUT_", "ACTIONS_", "GIT_CONFIG_", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_TOKEN")
        assert not [name for name in look["environment"] if name.startswith(forbidden)], look["who"]
        assert look["gate"] == os.getpid(), "the gate is the very process that the runner started"
    assert all(look["environment"]["MY_AGENTS"] == "own" for look in found if look["who"] != "check")


def test_a_workflows_own_token_goes_to_an_agent_that_names_it(world: World, path_with_uv: str) -> None:
    world.repository.files["gate.yaml"] = LOOKING.replace('"*"', "GITHUB_TOKEN, INPUT_TOKEN, GIT_CONFIG_VALUE_1")
    done = world.push("good", **job(path_with_uv, GITHUB_TOKEN="the workflow's"))
    assert done.code == 0, done.log
    by = {look["who"]: look["environment"] for look in seen(world)}
    assert by["agent"]["GITHUB_TOKEN"] == "the workflow's"
    assert SECRET not in json.dumps(by)
    assert "GITHUB_TOKEN" not in by["setup"]
    assert not by["agent"].keys() & {"INPUT_TOKEN", "GIT_CONFIG_VALUE_1"}


def test_an_agents_url_cannot_hold_the_token(world: World) -> None:
    agent = '{http: {url: "http://localhost:1/${INPUT_TOKEN}"}}'
    world.repository.files["gate.yaml"] = CONFIG.replace('{python: "agent:answer", concurrency: 4}', agent)
    world.repository.commit("good")
    done = world.pull_request("good", inputs={"token": SECRET})
    assert done.code == 2, done.log
    assert "INPUT_TOKEN is reserved for the action" in done.annotations("error")[0][2]


def test_what_a_change_writes_for_later_steps_is_taken_back(world: World, tmp_path: Path, path_with_uv: str) -> None:
    paths = {name: tmp_path / file for name, file in FILES.items()}
    writing = "".join(f"open({str(path)!r}, 'a').write('LD_PRELOAD=/x')\n" for path in paths.values())
    outputs = "import glob\nfor p in glob.glob(os.environ['HOME'] + '/../file_commands/*'): open(p, 'a').write('a=b')\n"
    world.repository.files["agent.py"] = f"import os\n{writing}{outputs}{AGENT}"
    for path in paths.values():
        path.touch()
    done = world.push("good", **job(path_with_uv, **{name: str(path) for name, path in paths.items()}))
    assert done.code == 0, done.log
    assert [path.read_text() for path in paths.values()] == ["", "", ""]
    assert done.outputs["verdict"] == "pass" and "a" not in done.outputs
    assert "a=b" not in done.summary


LAYING = """
import os, shutil
def lay(path):
    kind = KIND
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path) if not os.path.isdir(path) or os.path.islink(path) else shutil.rmtree(path)
    if kind == "link":
        os.symlink(VICTIM, path)
    elif kind == "hard link":
        os.link(VICTIM, path)
    elif kind == "pipe":
        os.mkfifo(path)
for path in PATHS:
    lay(path)
"""


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "gone"])
def test_the_runners_files_are_made_anew_whatever_lies_there(
    world: World, tmp_path: Path, path_with_uv: str, kind: str
) -> None:
    """The agent is bad; no later step reads otherwise, no other file is written to, and nothing hangs."""
    paths = {name: tmp_path / "files" / file for name, file in FILES.items()}
    (tmp_path / "files").mkdir()
    victim = tmp_path / "victim"
    victim.write_text("kept")
    for path in paths.values():
        path.write_text("")
        path.chmod(0o644)
    job_root = tmp_path / f"job-{world.count + 1}"
    own = [job_root / "file_commands" / name for name in ("output", "summary")]
    event = job_root / "workflow" / "event.json"
    laid = [str(path) for path in (*paths.values(), *own, event)]
    laying = f"KIND, VICTIM, PATHS = {kind!r}, {str(victim)!r}, {laid}{LAYING}"
    world.repository.files |= {"agent.py": f"{laying}{AGENT}", "gate.yaml": CONFIG}
    done = world.push("awful", **job(path_with_uv, **{name: str(path) for name, path in paths.items()}))
    assert done.code == 1, done.log
    assert (done.outputs["verdict"], done.outputs["exit_code"]) == ("below_threshold", "1")
    assert "below" in done.summary
    assert victim.read_text() == "kept"
    for path in (*paths.values(), *own, event):
        assert path.is_file() and not path.is_symlink() and path.stat().st_nlink == 1
    assert [path.read_text() for path in paths.values()] == ["", "", ""]
    assert json.loads(event.read_text())["after"] == world.tip


def test_a_replaced_folder_of_the_runners_files_fails_the_step(world: World, tmp_path: Path, path_with_uv: str) -> None:
    folder = tmp_path / f"job-{world.count + 1}" / "file_commands"
    moving = f"import os\nos.path.exists({f'{folder}-0'!r}) or os.rename({str(folder)!r}, {f'{folder}-0'!r})\n"
    making = (
        f"os.makedirs({str(folder)!r}, exist_ok=True)\nopen({f'{folder}/output'!r}, 'w').write('verdict=pass\\n')\n"
    )
    world.repository.files |= {"agent.py": f"{moving}{making}{AGENT}", "gate.yaml": CONFIG}
    (folder.parent).mkdir()
    done = world.push("good", **job(path_with_uv))
    assert done.code == 2, done.log
    assert "something else replaced its folder" in done.log


def test_a_setting_of_git_lfs_stops_nothing(world: World) -> None:
    """As a checkout with ``lfs: true`` leaves it, in an image without git-lfs."""
    if shutil.which("git-lfs"):
        pytest.skip("git-lfs is installed")
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'1' * 64}\nsize 7\n"
    world.repository.files |= {"gate.yaml": CONFIG, "agent.py": AGENT, "model.bin": pointer}
    world.repository.files[".gitattributes"] = "*.bin filter=lfs -text\n"
    settings = {"required": "true", "smudge": "git-lfs smudge -- %f", "process": "git-lfs filter-process"}
    lfs = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        lfs |= {f"GIT_CONFIG_KEY_{number}": f"filter.lfs.{name}", f"GIT_CONFIG_VALUE_{number}": value}
    assert world.push("good", environment=lfs).code == 0
    done = world.pull_request("bad", environment=lfs)
    assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log


def test_memory_is_closed_to_whoever_may_not_trace() -> None:
    get_dumpable = 3
    asked = f"ctypes.CDLL(None).prctl({get_dumpable}, 0, 0, 0, 0)"
    code = f"import ctypes; from gate.system.concealed import close_memory as close; close(); print({asked})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
    assert ctypes.CDLL(None).prctl(get_dumpable, 0, 0, 0, 0) == 1, "this process was open before"


def test_variables_of_any_bytes_arrive_and_the_exit_code_is_the_actions(tmp_path: Path) -> None:
    environment = {b"PATH": os.environb[b"PATH"], b"INPUT_CONFG": b"\xff", b"GITHUB_WORKSPACE": os.fsencode(tmp_path)}
    command = [sys.executable, "-I", "-u", "-m", "gate.action.entrypoint"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "unknown input 'confg'" in done.stdout and not done.stderr


OWN = {
    "gate/__init__.py": "OWN = True\n",
    "agent.py": f"import gate\nassert gate.OWN\n{AGENT}",
    "checks.py": "from gate.model import Score\n\ndef fair(actual, expected):\n"
    "    return Score(float(len(actual[0].tool_calls) == 2))\n",
    "gate.yaml": CONFIG.replace("criteria:", "criteria:\n  checks:fair: {threshold: 0.5}"),
}


SPY = """
import os
from pathlib import Path
with open(os.environ["HOME"] + "/imported-by", "a") as file:
    file.write(" ".join(Path("/proc/self/cmdline").read_text().split("\\0")) + "\\n")
"""


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks into /proc")
def test_a_projects_own_package_gate_and_its_pythonpath_replace_nothing_of_ours(
    tmp_path: Path, fake: FakeGitHub
) -> None:
    """The agent imports its own `gate`, the custom metric ours; PYTHONPATH is the agent's alone."""
    world = World(tmp_path, fake, from_the_entrypoint)
    world.repository.files |= {**OWN, "sitecustomize.py": SPY, "msgspec.py": SPY}
    environment = {"PYTHONPATH": "."}
    done = world.push("good", environment=environment)
    assert (done.code, done.outputs["verdict"]) == (0, "pass"), done.log
    done = world.pull_request("awful", environment=environment)
    assert done.code == 1, done.log
    assert done.outputs["verdict"] in ("below_threshold", "regressed")
    by = (world.last.root / "home" / "imported-by").read_text().splitlines()
    assert by and all("guest/worker.py" in command for command in by)


def test_what_setup_prints_is_shown_and_never_a_command(world: World, path_with_uv: str) -> None:
    """The runner reads commands out of what a step prints; until the agent has ended it reads none."""
    lines = ["::error::setup speaks", "##[warning]setup speaks", "::add-path::/evil", "::stop-commands::x", "::x::"]
    quoted = " ".join(f"'{line}'" for line in lines)
    world.repository.files["gate.yaml"] = CONFIG.replace(
        "criteria:", f"setup: \"printf '%s\\\\n' {quoted}\"\ncriteria:"
    )
    done = world.push("good", environment={"PATH": path_with_uv})
    assert done.code == 0, done.log
    assert [line for line in done.reader.shown if line in lines] == lines
    assert {name for name, _, _ in done.reader.commands} <= {"stop-commands", "warning", "notice"}
    assert not [text for _, _, text in done.reader.commands if "setup speaks" in text or text == "x"]


def test_a_job_without_git_is_told_to_install_it_before_the_checkout(world: World, tmp_path: Path) -> None:
    bare = tmp_path / "no-git"
    bare.mkdir()
    done = world.push("good", environment={"PATH": str(bare)})
    assert done.code == 2, done.log
    [(_, _, said)] = done.annotations("error")
    assert "git is not installed (run actions/checkout before this step, and install git before that" in said
