"""A change whose ``setup`` goes for the machine: the git that the gate calls, the token, files of the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.github.fake_github import FakeGitHub
from tests.integration.github.job import CONFIG, from_the_entrypoint, git
from tests.integration.github.scenarios import World

pytestmark = pytest.mark.slow

ATTACK = """
import os, pathlib, shutil, subprocess, sys
home = pathlib.Path(os.environ["HOME"])
marker = home / "ran"
evil = home / "evil"
evil.write_text(f'#!/bin/sh\\necho "$0 $@" >>{marker}\\ncat\\n')
evil.chmod(0o755)
shutil.copy(evil, pathlib.Path(os.environ["VIRTUAL_ENV"], "bin", "git"))
def config(*words):
    subprocess.run(["/usr/bin/env", "-u", "VIRTUAL_ENV", REAL, "config", *words], check=True)
REAL = shutil.which("git", path=os.environ["PATH"].partition(os.pathsep)[2])
for key in ("core.fsmonitor", "core.sshCommand", "filter.evil.clean", "filter.evil.smudge", "diff.external"):
    config(key, str(evil))
    config("--file", str(home / ".gitconfig"), key, str(evil))
config("core.hooksPath", str(home / "hooks"))
(home / "hooks").mkdir()
for name in ("post-checkout", "reference-transaction", "pre-push", "post-index-change"):
    shutil.copy(evil, home / "hooks" / name)
pathlib.Path(".git/info/attributes").write_text("* filter=evil\\n")
thief = home / "thief.git"
subprocess.run([REAL, "init", "-q", "--bare", str(thief)], check=True)
origin = subprocess.check_output([REAL, "remote", "get-url", "origin"], text=True).strip()
config(f"url.{thief.as_uri()}.insteadOf", origin)
config("remote.origin.pushurl", thief.as_uri())
for path in pathlib.Path(".").glob("*.py"):
    os.utime(path, (1, 1))
"""


@pytest.fixture
def world(tmp_path: Path, fake: FakeGitHub) -> World:
    return World(tmp_path, fake, from_the_entrypoint)


def with_setup(world: World, code: str) -> None:
    config = CONFIG.replace("criteria:", "setup: python attack.py\ncriteria:")
    world.repository.files |= {"attack.py": code, "gate.yaml": config}


def test_setup_chooses_neither_git_nor_its_programs_nor_its_remote(world: World, path_with_uv: str) -> None:
    with_setup(world, ATTACK)
    home = world.folder / "job-1" / "home"
    done = world.push(
        "good", environment={"PATH": path_with_uv, "HOME": str(home), "GIT_CONFIG_GLOBAL": str(home / ".gitconfig")}
    )
    assert done.code == 0, done.log
    assert (home / "evil").exists(), "setup attacked"
    assert not (home / "ran").exists(), (home / "ran").read_text()
    assert git(home / "thief.git", "for-each-ref") == "", "nothing was pushed there"
    assert "refs/heads/gate-baselines" in git(world.repository.remote, "for-each-ref")
    assert "the baseline was" not in done.log, "what the gate thinks of the work tree is its own"


@pytest.mark.parametrize("link", ["gate-results", "gate-results/report.html", ".gate"])
def test_no_file_of_the_host_is_written_through_a_link(world: World, path_with_uv: str, link: str) -> None:
    code = f"""
import os, pathlib
home = pathlib.Path(os.environ["HOME"], "others")
home.mkdir()
(home / "report.html").write_text("mine")
link = pathlib.Path({link!r})
link.parent.mkdir(exist_ok=True)
if link.exists():
    link.rename("aside")
link.symlink_to(home / "report.html" if link.suffix else home)
"""
    with_setup(world, code)
    home = world.folder / "job-1" / "home"
    inputs = {"setup_cache": "kept/setup"}
    done = world.push("good", environment={"PATH": path_with_uv, "HOME": str(home)}, inputs=inputs)
    assert done.code == 2, done.log
    assert any("is a link, which is not followed" in message for _, _, message in done.annotations("error")), done.log
    assert [(name.name, name.read_text()) for name in (home / "others").iterdir()] == [("report.html", "mine")]
