"""Whole projects through the command line: what a user types, what comes back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import warm

collect_ignore = ["repositories"]
"""Samples of strangers' repositories, with tests of their own."""
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Project:
    """A folder with a configuration, driven by the installed command in a process of its own."""

    root: Path

    def write(self, name: str, content: Any) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        # Python knows a changed module by its size and the second it was written in: two versions of an agent that a
        # test writes within one second may look alike.
        for stale in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            stale.unlink()
        return path

    def gate(self, *arguments: str, stdin: str = "", timeout: float = 900, **environment: str) -> Outcome:
        ran = warm.run(
            ["-m", "gate", *arguments],
            cwd=self.root,
            environment={**_environment(), **environment},
            stdin=stdin,
            timeout=timeout,
        )
        assert "Traceback" not in ran.stderr, ran.stderr
        return Outcome(ran.returncode, ran.stdout, ran.stderr)

    def result(self, *arguments: str, **environment: str) -> tuple[int, dict[str, Any]]:
        """Runs with a JSON report and reads it."""
        path = self.root / "result.json"
        path.unlink(missing_ok=True)
        ran = self.gate(*arguments, "--json", str(path), **environment)
        assert path.exists() and path.stat().st_size, ran.err
        return ran.code, json.loads(path.read_text(encoding="utf-8"))

    def copied(self, to: Project) -> Project:
        """The other project, with everything that is in this one: what a module's tests begin with is made once."""
        shutil.copytree(self.root, to.root, symlinks=True, dirs_exist_ok=True)
        return to

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
        done = subprocess.run(["git", *identity, *arguments], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, message: str = "base") -> str:
        """Commits the folder as it is, into a repository that is made where there is none; returns the commit."""
        if not (self.root / ".git").exists():
            self.git("init", "-q", "-b", "main")
            (self.root / ".git" / "info" / "exclude").write_text(".gate/records/\n")
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def store(self, *options: str, trials: int = 5, record: str = ".gate/base.jsonl", **environment: str) -> None:
        """Runs this many trials of each case and saves them as the baseline; both commands take the ``options``."""
        ran = self.gate("run", "-q", "--trials", str(trials), "--record", record, *options, **environment)
        assert ran.code == 0, ran.out + ran.err
        saved = self.gate("baseline", "save", record, *options, **environment)
        assert saved.code == 0, saved.out + saved.err


def first_of(rows: Iterable[Any], quick: int = 1) -> list[Any]:
    """Rows that are many of one kind: the first run before each commit, the others in `make slow`."""
    found = [row if isinstance(row, tuple) else (row,) for row in rows]
    return [pytest.param(*row, marks=[pytest.mark.slow] if n >= quick else []) for n, row in enumerate(found)]


def untimed(suite: dict[str, Any], part: str) -> Any:
    """A part of a suite's result, without how long its cases took."""
    if part != "cases":
        return suite[part]
    return [{name: value for name, value in case.items() if name != "duration"} for case in suite["cases"]]


def _environment() -> dict[str, str]:
    """The environment without what would change the outcome: judges' keys and settings."""
    hidden = ("OPENAI_", "GATE_", "SUPPORT_")
    plain = ("NO_COLOR", "TERM")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden) and name not in plain}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def shared() -> Callable[[str], Path]:
    """A file of the shared recordings; the test is skipped where they are absent."""

    def find(name: str) -> Path:
        folder = os.environ.get("GATE_SHARED_DATA")
        path = (Path(folder) if folder else REPOSITORY.parent / "shared" / "data") / name
        if not path.exists():
            pytest.skip("the shared recordings are not here")
        return path

    return find
