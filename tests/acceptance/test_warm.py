"""A command in a fork of `tests.warm` is the same command: it sees, says and ends with what a fresh process does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests import warm

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


@pytest.mark.parametrize("flags", [(), ("-I", "-u")])
def test_it_sees_what_a_fresh_process_sees(tmp_path: Path, flags: tuple[str, ...]) -> None:
    one, other = both(["-c", SEEN, "a", "b c"], tmp_path, stdin="given", flags=flags)
    assert one == other
    assert (one[0], one[2]) == (7, "on the other stream\n")


@pytest.mark.parametrize("words", [["--version"], ["schema"], ["run"], ["nonsense"], ["run", "--help"]])
def test_it_says_what_a_fresh_process_says(tmp_path: Path, words: list[str]) -> None:
    one, other = both(["-m", "gate", *words], tmp_path)
    assert one == other


@pytest.mark.parametrize(
    "code", ["raise SystemExit('no')", "import os; os.kill(os.getpid(), 9)", "import os; os._exit(4)"]
)
def test_it_ends_as_a_fresh_process_ends(tmp_path: Path, code: str) -> None:
    one, other = both(["-c", code], tmp_path)
    assert one == other


def test_what_takes_too_long_is_killed(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run(["-c", "import time; time.sleep(600)"], cwd=tmp_path, environment=os.environ, timeout=0.2)
