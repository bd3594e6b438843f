"""What runs in the user's interpreter needs the standard library alone, in every Python from 3.8 on that is here."""

from __future__ import annotations

import ast
import json
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gate import guest

FILES = sorted(path for path in Path(guest.__file__).parent.glob("*.py") if path.name != "__init__.py")
OLDEST = 8
USERS_CODE = """
import sys

def answer(message):
    return {"output": message, "modules": sorted(name for name in sys.modules if name.split(".")[0] == "gate")}

def score(actual, expected):
    assert actual[0].tool_calls[0].args == {"id": 1} and expected[0].user == "q"
    return {"value": 0.5, "reason": "half"}
"""


def _interpreters() -> list[str]:
    """One of each minor version, the oldest first: on the path, or where version managers keep them."""
    found = {sys.version_info.minor: sys.executable}
    for place in (Path.home() / ".pyenv" / "versions", Path.home() / ".local" / "share" / "uv" / "python"):
        for path in sorted(place.glob("*/bin/python3")):
            named = re.search(r"\b3\.(\d+)", path.parents[1].name)
            if named is not None and int(named[1]) >= OLDEST:
                found.setdefault(int(named[1]), str(path))
    for minor in range(OLDEST, 20):
        path_of = shutil.which(f"python3.{minor}")
        if minor not in found and path_of is not None and runs(path_of):
            found[minor] = path_of
    return [found[number] for number in sorted(found)]


def runs(python: str) -> bool:
    """False for a version manager's entry of a version that is not chosen here."""
    return subprocess.run([python, "-I", "-S", "-c", ""], capture_output=True, check=False).returncode == 0


FOUND = _interpreters()
INTERPRETERS = [
    pytest.param(path, marks=[pytest.mark.slow] * (path not in (FOUND[0], sys.executable))) for path in FOUND
]
"""Before each commit the oldest and our own."""


def start_worker(python: str, folder: Path, **options: Any) -> tuple[subprocess.Popen[bytes], Any]:
    (folder / "users_code.py").write_text(USERS_CODE)
    ours, theirs = socket.socketpair()
    with theirs:
        given = {"fd": theirs.fileno(), "paths": [str(folder)], "threads": 1, "limit": 10_000, "line_limit": 10_000}
        script = Path(guest.__file__).with_name("worker.py")
        process = subprocess.Popen(
            [python, "-I", "-S", str(script), json.dumps({**given, **options})],
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
    with ours:
        return process, ours.makefile("rwb", buffering=0)


def ask(process: subprocess.Popen[bytes], line: Any, request: dict[str, Any]) -> Any:
    with line:
        assert json.loads(line.readline()) == {"ready": True, "asynchronous": False}
        line.write(json.dumps({"id": "1", "request": request}).encode() + b"\n")
        reply = json.loads(line.readline())
        line.write(b'{"end": true}\n')
        assert process.wait(60) == 0
    assert reply["id"] == "1"
    return reply["answer"]


@pytest.mark.parametrize("python", INTERPRETERS)
def test_an_agent_is_run(python: str, tmp_path: Path) -> None:
    results = str(Path(guest.__file__).with_name("results.py"))
    process, line = start_worker(python, tmp_path, target="users_code:answer", results=results)
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"  # and no OpenTelemetry to continue it
    request = {"messages": [{"role": "user", "content": "q"}], "traceparent": traceparent}
    assert ask(process, line, request) == {"output": "q", "modules": []}


@pytest.mark.parametrize("python", INTERPRETERS)
def test_a_custom_metric_is_computed(python: str, tmp_path: Path) -> None:
    adapter = str(Path(guest.__file__).with_name("custom_metric.py"))
    process, line = start_worker(python, tmp_path, target="users_code:score", adapter=adapter)
    turn = {"user": "q", "tool_calls": [{"name": "look", "args": {"id": 1}}]}
    found = ask(process, line, {"actual": [turn], "expected": [turn], "metric": {}})
    assert found == {"value": 0.5, "reason": "half", "error": None, "per_turn": []}


@pytest.mark.parametrize("python", INTERPRETERS)
def test_a_pattern_is_matched(python: str) -> None:
    script = Path(guest.__file__).with_name("matcher.py")
    lines = [["search", "a+", 0, "caat"], ["whole", "a+", 0, "caat"]]
    given = "".join(json.dumps(line) + "\n" for line in lines)
    ran = subprocess.run(
        [python, "-I", "-S", str(script), "5"], input=given, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "1\n0\n"


@pytest.mark.slow
@pytest.mark.parametrize("recorded", [{}, {"GATE_WORLD_URL": "http://127.0.0.1:9"}], ids=["bare", "between"])
@pytest.mark.parametrize("python", INTERPRETERS)
def test_a_message_goes_to_the_server_on_standard_streams(python: str, recorded: dict[str, str]) -> None:
    """One that is no call needs no answer of the proxy."""
    script = str(Path(guest.__file__).with_name("mcp_replay.py"))
    server = [python, "-I", "-S", "-c", "import sys; sys.stdout.write(sys.stdin.read())"]
    given = '{"jsonrpc": "2.0", "id": 1, "result": {}}\n'
    command = [python, "-I", "-S", script, "shop", *server]
    ran = subprocess.run(command, input=given, capture_output=True, text=True, check=True, env=recorded)
    assert ran.stdout == given


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_nothing_but_the_standard_library_is_imported(path: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {one.name.split(".")[0] for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module).split(".")[0])
    assert imported <= {*sys.stdlib_module_names, "__future__"}


def test_every_file_is_started_by_a_test_here() -> None:
    assert [path.name for path in FILES] == [
        "custom_metric.py",
        "matcher.py",
        "mcp_replay.py",
        "results.py",
        "worker.py",
    ]
