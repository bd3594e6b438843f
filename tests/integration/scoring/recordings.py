"""Suites of recorded trials, runs of the gate on them, and what of two records has to be the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import warm
from tests.patience import eventually

CONFIG: dict[str, Any] = {
    "suite": "rows.jsonl",
    "agent": {"replay": True},
    "baseline": {"store": "none"},
    "criteria": {
        "tool_trajectory_avg_score": {"threshold": 0.5, "match_type": "IN_ORDER"},
        "response_match_score": 0.3,
    },
    "fields": {"trial": "trial", "expected_tools": "expected", "expected_response": "response"},
}
CHECK = """
import os, time

HERE = os.path.dirname(os.path.abspath(__file__))

def unhurried(actual, expected):
    time.sleep(0.01)
    with open(HERE + "/scored-by", "a") as log:
        log.write(f"{os.getppid()}\\n")
    while os.path.exists(HERE + "/hold") and os.path.getsize(log.name) > 600:
        time.sleep(0.02)
    return 1.0
"""
UNHURRIED = {**CONFIG["criteria"], "checks:unhurried": 0.5}


def write_suite(folder: Path, *, cases: int = 30, trials: int = 10, said: str = "", **config: Any) -> None:
    """Every fifth trial calls the wrong tool, every thirteenth was recorded as failed; all answers hold ``said``."""
    folder.mkdir(exist_ok=True)
    rows = [_row(case, trial, said) for case in range(cases) for trial in range(trials)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    fields = {**CONFIG["fields"], "error": "error", "usage": "usage"}
    (folder / "gate.yaml").write_text(json.dumps({**CONFIG, "fields": fields, **config}))
    (folder / "checks.py").write_text(CHECK)


def _row(case: int, trial: int, said: str) -> dict[str, Any]:
    nth = 10 * case + trial
    tool = "guess" if nth % 5 == 0 else "look_up"
    arguments = json.dumps({"order": case, "password": f"pass-{case}", "note": said})
    call = {"id": "c", "function": {"name": tool, "arguments": arguments}}
    return {
        "id": f"case-{case}",
        "trial": trial,
        "messages": [
            {"role": "user", "content": f"Where is order {case}?"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "found — ✓"},
            {"role": "assistant", "content": f"Order {case} is on its way. {said} {'Again. ' * (nth % 3)}"},
        ],
        "expected": [{"name": "look_up", "args": json.loads(arguments)}],
        "response": f"Order {case} is on its way.",
        "error": "the line was cut" if nth % 13 == 12 else None,
        "usage": {"input_tokens": 10 + trial, "output_tokens": 5},
    }


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Folder:
    """A folder with a configuration, and the interpreter whose gate is run in it."""

    root: Path
    python: str = sys.executable
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.python, "-m", "gate", "run", *arguments],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._seen(environment),
        )

    def run(self, *arguments: str, **environment: str) -> Ran:
        if self.python == sys.executable:
            ran = warm.run(["-m", "gate", "run", *arguments], cwd=self.root, environment=self._seen(environment))
            code, out, err = ran.returncode, ran.stdout, ran.stderr
        else:
            run = self.start(*arguments, **environment)
            out, err = run.communicate(timeout=900)
            code = run.returncode
        assert "Traceback" not in err, err
        return Ran(code, out, err)

    def _seen(self, own: Mapping[str, str]) -> dict[str, str]:
        return {**_environment(), "HOME": str(self.root), **self.environment, **own}

    def record(self, name: str, **environment: str) -> Ran:
        """Runs to a record and to a JSON report of the same name."""
        return self.run("--quiet", "--record", f"{name}.jsonl", "--json", f"{name}.json", **environment)

    def configure(self, **config: Any) -> None:
        path = self.root / "gate.yaml"
        path.write_text(json.dumps({**json.loads(path.read_text()), **config}))

    def trials(self, name: str) -> dict[tuple[str, int], str]:
        """The lines of a record's trials as they stand there, but for the time; the file may end inside a line."""
        lines = (self.root / f"{name}.jsonl").read_text().split("\n")[:-1]
        rows = [json.loads(line) for line in lines]
        found = {(row["case"], row["n"]): row for row in rows if "case" in row}
        assert len(found) == sum("case" in row for row in rows), "a trial is there twice"
        # when a trial was asked, and the sum over all lines before it, differ from run to run
        return {key: json.dumps({**row, "started": 0, "sum": ""}) for key, row in found.items()}

    def verdict(self, name: str) -> object:
        """Everything that a report says, but for times and the names of files."""
        report = json.loads((self.root / f"{name}.json").read_text())
        parts = ("verdict", "headline", "criteria", "cases", "agent_runs", "errors", "story", "changes", "evidence")
        return report["exit_code"], [{part: suite[part] for part in parts} for suite in report["suites"]]


def _environment() -> dict[str, str]:
    hidden = ("OPENAI_", "GATE_", "RAY_")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}


def assert_same(folder: Folder, one: str, other: str) -> None:
    assert folder.trials(one) == folder.trials(other)
    assert folder.verdict(one) == folder.verdict(other)


def until(happened: Callable[[], Any], run: subprocess.Popen[str] | None = None) -> None:
    """Waits for what comes true while the run goes on."""

    def happened_or_ended() -> bool:
        ended = run is not None and run.poll() is not None
        found = happened()
        assert found or run is None or not ended, run.communicate()
        return bool(found)

    assert eventually(happened_or_ended), "it did not come to that"


@contextmanager
def held(folder: Folder) -> Iterator[None]:
    """The unhurried check lets about a hundred trials pass, and the rest when this ends: no run is over before."""
    hold = folder.root / "hold"
    hold.touch()
    try:
        yield
    finally:
        hold.unlink()


def scored(folder: Folder, name: str) -> int:
    path = folder.root / f"{name}.jsonl"
    return path.read_text().count('{"case"') if path.exists() else 0


def workers(mark: str = "gate.scoring.worker") -> list[int]:
    """Processes that run this module."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in command:
                found.append(int(entry.name))
    return found


def children(parent: int, mark: str = "gate.scoring.worker") -> list[int]:
    """Those of one process."""
    return [pid for pid in workers(mark) if _parent(pid) == parent]


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill(pid: int) -> None:
    """Ends a process that may have ended already."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
