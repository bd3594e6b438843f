"""What is noticed of a folder that somebody else writes into."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gate.security.tree import KnownTree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("agent.py", "prompts/a.md", "run.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    (tmp_path / "link").symlink_to("agent.py")
    (tmp_path / ".git").write_text("gitdir: elsewhere")
    return tmp_path


def keeping_times(path: Path, text: str) -> None:
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("agent.py", lambda path: keeping_times(path, "2")),
        ("prompts/a.md", lambda path: path.unlink()),
        ("run.sh", lambda path: path.chmod(0o755)),
        ("link", lambda path: (path.unlink(), path.symlink_to("run.sh"))),
        ("agent.py", lambda path: (path.unlink(), path.mkdir())),
        ("__pycache__/agent.cpython-311.pyc", lambda path: (path.parent.mkdir(), path.write_bytes(b"x"))),
        ("agent.so", lambda path: path.write_bytes(b"x")),
        ("json.py", lambda path: path.write_bytes(b"x")),
        ("sitecustomize.py", lambda path: path.write_bytes(b"x")),
    ],
)
def test_what_would_make_it_another_agent_is_noticed(root: Path, name: str, change: object) -> None:
    known = KnownTree(root)
    assert known.difference() == ""
    change(root / name)  # type: ignore[operator]
    assert known.difference() == name


def test_what_a_program_leaves_is_not(root: Path) -> None:
    known = KnownTree(root)
    (root / "out.log").write_text("x")
    (root / "solution.py").write_text("x")
    (root / ".git").write_text("gitdir: moved")
    os.utime(root / "agent.py")
    assert known.difference() == ""
