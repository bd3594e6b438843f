"""An agent that runs as the gate's own user, and writes to what measures it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gate
from gate.security.files import remove
from gate.security.tree import OwnPackage
from tests.acceptance.conftest import Project

pytestmark = pytest.mark.slow

BYTECODE = f"scoring/__pycache__/score.{sys.implementation.cache_tag}.pyc"
AGENT = """
import importlib._bootstrap_external as loader
import os
from pathlib import Path

def answer(message):
    file = Path(os.environ["PACKAGE"]) / "gate" / os.environ["EDITED"]
    if file.suffix == ".pyc":
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(loader._code_to_hash_pyc(compile("1/0", "score.py", "exec"), b"8 bytes.", checked=False))
        return message
    file.write_text(file.read_text() + "\\n# all is well\\n" if file.exists() else "")
    return message
"""


@pytest.mark.parametrize(("edited", "code"), [("scoring/score.py", 2), ("json.py", 2), ("notes.txt", 0), (BYTECODE, 0)])
def test_a_gate_whose_own_files_change_during_the_run_measures_nothing(
    project: Project, tmp_path_factory: pytest.TempPathFactory, edited: str, code: int
) -> None:
    package = tmp_path_factory.mktemp("package")
    shutil.copytree(Path(gate.__file__).parent, package / "gate", ignore=shutil.ignore_patterns("__pycache__"))
    project.write("agent.py", AGENT)
    cases = [{"id": "c1", "input": "word", "options": {"contains": {"values": ["word"]}}}]
    project.write("suite.yaml", json.dumps({"cases": cases}))
    agent = {"python": "agent:answer", "env": {"PACKAGE": str(package), "EDITED": edited}}
    config = {"suite": "suite.yaml", "name": "s", "agent": agent, "criteria": {"contains": 0.5}}
    project.write("gate.yaml", json.dumps(config))
    project.commit()
    command = [sys.executable, "-m", "gate", "run", "--trials", "1"]
    # Python itself writes no bytecode, so whatever is found is the agent's.
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    for _ in range(2):  # the second run continues nothing of the first
        ran = subprocess.run(command, cwd=project.root, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == code, ran.stderr
        assert not (package / "gate" / BYTECODE).exists()
        assert (edited in ran.stderr) is (code == 2)
        if edited == "json.py":
            (package / "gate" / "json.py").unlink(missing_ok=True)


@pytest.mark.parametrize("planted", ["a link to a folder", "a link to a file", "what cannot be removed"])
def test_bytecode_that_lies_elsewhere_or_cannot_be_removed_is_not_run_either(tmp_path: Path, planted: str) -> None:
    package, elsewhere = tmp_path / "package", tmp_path / "elsewhere"
    for folder in (package, elsewhere):
        folder.mkdir()
    (package / "score.py").write_text("")
    (elsewhere / "score.pyc").write_text("planted")
    known = OwnPackage(package)
    if planted == "a link to a folder":
        (package / "__pycache__").symlink_to(elsewhere)
    else:
        (package / "__pycache__").mkdir()
    if planted == "a link to a file":
        (package / "__pycache__/score.pyc").symlink_to(elsewhere / "score.pyc")
    if planted == "what cannot be removed":
        (package / "__pycache__/score.pyc/more").mkdir(parents=True)
    assert known.drop_new_bytecode() == ("__pycache__/score.pyc" if planted == "what cannot be removed" else "")
    assert (package / "__pycache__/score.pyc").exists() is (planted == "what cannot be removed")
    assert (elsewhere / "score.pyc").read_text() == "planted"


def test_two_runs_that_end_at_the_same_time_may_remove_the_same_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "score.py").write_text("")
    known = OwnPackage(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/score.pyc").write_text("compiled by another run")

    def after_the_other_run(path: Path) -> None:
        path.unlink()
        remove(path)

    monkeypatch.setattr("gate.security.files.remove", after_the_other_run)
    assert known.drop_new_bytecode() == ""
