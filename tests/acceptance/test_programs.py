"""The programs behind decisions and evidence still run, each with its smallest setting."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

REPOSITORY = Path(__file__).parents[2]
CITED = re.compile(r"benchmarks/(\w+)\.py|benchmarks\.(\w+)")
ROW = r"^\| (?:[^|]*{}[^|]*)\|.*\d.*\|$"

SMALLEST = {
    "assumptions": (["--runs", "1", "--only", "5 suites"], ROW.format("5 suites")),
    "bench_http": (["--cases", "4", "--concurrency", "2"], ROW.format("runner")),
    "calibration": (["--runs", "1", "--draws", "20"], ROW.format("margin 10")),
    "concentration": (["--runs", "1"], ROW.format("within a tag of 120")),
    "crashes": (["--runs", "1", "--only", "nothing fails"], ROW.format("nothing fails")),
    "dependent": (["--runs", "1", "--only", "deterministic, unchanged"], ROW.format("deterministic, unchanged")),
    "flow": (["--chains", "1", "--cases", "4", "--only", "unchanged"], ROW.format("unchanged")),
    "free": (["--outside", "1", "--inside", "1"], ROW.format("outside")),
    "frontier": (["--runs", "1", "--only", "never"], ROW.format("never")),
    "history": (["--runs", "1", "--only", "12 runs"], ROW.format("12 runs")),
    "html_report": (["--cases", "10", "--rounds", "1"], ROW.format("size of the page")),
    "libraries": (["dependencies"], r"^dependencies +click: import \d+ ms"),
    "monitor": (["rule", "--runs", "1"], ROW.format("95% → 40%")),
    "mutants": (["--list", "--number", "2"], r"^ +1 gate/.*$"),
    "power": (
        ["--runs", "1", "--records", "2", "--simulations", "1", "--only", "typical, N = 20"],
        ROW.format("typical, N = 20"),
    ),
    "replay": (["--cases", "4", "--trials", "1"], r"^\{.*\d.*\}$"),
    "rules": (["--runs", "1", "--only", "snapshot"], ROW.format("snapshot")),
    "run": (["--part", "start", "--rounds", "1"], ROW.format("command to first call")),
    "scale": (["--cases", "3", "--rounds", "1"], r'^\{.*"answered": 3, "exit_code": 0,.*\}$'),
    "shape": ([], r"^modules that handle a trial, from suite file to report: \d+$"),
    "side_by_side": (["--runs", "1"], ROW.format("50, 3")),
    "simulate": (["--runs", "1", "--only", "N = 30, unchanged"], ROW.format("N = 30, unchanged")),
    "soak": (["--minutes", "0.02", "--concurrency", "2", "--delay", "0.05"], r'^\{.*"errors": 0,.*\}$'),
    "stages": (["--cases", "4", "--trials", "1"], r'^\{.*"judge": "\d.*\}$'),
    "stored": (["--runs", "1", "--only", "stored", "--processes", "1"], ROW.format("5 cases, 1 broke")),
    "thresholds": (["--runs", "1"], ROW.format("30")),
    "traces": (["10"], r"^bytes → conversation: [\d,]+ traces a second$"),
    "world": (
        ["--rounds", "1", "--cases", "2", "--calls", "1", "--events", "20"],
        ROW.format("model calls in these runs"),
    ),
    "world_history": (
        ["--chains", "1", "--cases", "4", "--suites", "1", "--only", "model"],
        ROW.format("a push to the default branch"),
    ),
    "world_statistics": (["--runs", "1", "--only", "90 % replayed, unchanged"], ROW.format("90 % replayed, unchanged")),
}
"""Program → its arguments, and what a line of its output has to be."""
ELSEWHERE = {
    "first_hours": "needs environments with frameworks",
    "margins": "reads recorded conversations that are not in this repository",
    "peers": "installs other tools from the package index",
    "prove": "reads recorded trials that are not in this repository",
    "recorded": "reads recorded trials that are not in this repository",
}
"""Programs that this test cannot run, and why."""
IN_A_BROWSER = {"html_report"}
AS_MODULES = {"shape", "traces"}
"""Those that the pages start with ``-m``."""


def cited() -> set[str]:
    folder = REPOSITORY / "docs" / "dev"
    pages = [*(folder / "decisions").glob("*.md"), *(folder / "evidence").glob("*.md")]
    found = (match for page in pages for match in CITED.finditer(page.read_text(encoding="utf-8")))
    return {match[1] or match[2] for match in found}


def test_every_program_that_decisions_and_evidence_name_is_run() -> None:
    assert cited() <= SMALLEST.keys() | ELSEWHERE.keys()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder for what is temporary: a browser's socket has no room for the long path of pytest's."""
    with TemporaryDirectory(prefix="gate-") as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SMALLEST))
def test_a_program_runs_with_its_smallest_setting(name: str, short_folder: Path) -> None:
    if name in IN_A_BROWSER:
        pytest.importorskip("playwright", reason="`make browser` installs it")
    arguments, line = SMALLEST[name]
    program = ["-m", f"benchmarks.{name}"] if name in AS_MODULES else [f"benchmarks/{name}.py"]
    done = subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(short_folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(line, done.stdout, re.MULTILINE), done.stdout
