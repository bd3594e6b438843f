"""Whole projects in the states that users meet: each entry of situations/*.yaml ends with its exit code and verdict."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.acceptance.conftest import Project
from tests.acceptance.situations import agent as scripted
from tests.quick_yaml import read_yaml

FOLDER = Path(__file__).parent / "situations"
KEYS = {
    *("situation", "agent", "cases", "criteria", "config", "stored", "before", "after", "change", "steps", "run"),
    *("exit", "verdict", "cause", "says", "never", "slow"),
}
CRITERIA = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
AGENTS = {
    "python": {"python": "agent:answer", "concurrency": 8},
    "command": {"command": [sys.executable, "-S", "-E", "agent.py"], "concurrency": 4},
    "http": {"http": {"url": "http://127.0.0.1:PORT/"}, "concurrency": 8},
}

EACH_COMMIT = 1
"""How many of an entry's variants run before each commit, where they do not say themselves."""
WHOLE = "basics"
"""The table of which every entry runs before each commit; of the others the first one does."""


def read_tables() -> list[dict[str, Any]]:
    found = []
    for path in sorted(FOLDER.glob("*.yaml")):
        for number, entry in enumerate(read_yaml(path.read_text(encoding="utf-8"))):
            for row in variants(entry):
                late = number > 0 and path.stem != WHOLE
                found.append({**row, "table": path.stem, "slow": late or row.get("slow", False)})
    return found


def variants(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The entry once for each of its ``each``; what one says is laid over the entry, and ``as`` ends its sentence.

    The first of many alike runs before each commit, the others in `make slow`.
    """
    if "each" not in entry:
        return [entry]
    common = {key: value for key, value in entry.items() if key != "each"}
    found = []
    for number, one in enumerate(entry["each"]):
        own = {key: value for key, value in one.items() if key != "as"}
        found.append(
            {"slow": number >= EACH_COMMIT, **common, **own, "situation": f"{entry['situation']}: {one['as']}"}
        )
    return found


def in_its_suite(row: dict[str, Any]) -> Any:
    """The entry as a parameter of the test: where it says `slow`, of `make slow`."""
    marks = [pytest.mark.slow] if row.get("slow") else []
    return pytest.param(row, id=f"{row['table']}: {row['situation']}", marks=marks)


TABLE = read_tables()


def test_the_tables_are_well_formed() -> None:
    assert not [name for name, n in Counter(row["situation"] for row in TABLE).items() if n > 1]
    assert not [(row["situation"], key) for row in TABLE for key in row if key not in {*KEYS, "table"}]
    assert all("exit" in row for row in TABLE)
    assert len(TABLE) >= LEAST_ENTRIES


LEAST_ENTRIES = 200


@pytest.fixture(scope="session")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Prepared projects by what they were made of: situations that start alike share one, each in a copy of its own."""
    return {"": tmp_path_factory.mktemp("bases")}


@pytest.mark.parametrize("row", [in_its_suite(row) for row in TABLE])
def test_a_situation_ends_as_its_entry_says(row: dict[str, Any], tmp_path: Path, bases: dict[str, Path]) -> None:
    with ExitStack() as stack:
        port = stack.enter_context(serve(tmp_path / "project")) if row.get("agent") == "http" else 0
        project = at_base(row, tmp_path / "project", bases, port)
        make_change(project, row, port)
        for words, code in row.get("steps", []):
            ran = project.gate(*words)
            assert ran.code == code, f"{words}: {ran.out}{ran.err}"
        words = list(map(str, row.get("run", ["run"])))
        reported = "verdict" in row
        ran = project.gate(*words, *(["--json", "result.json"] if reported else []))
        said = ran.out + ran.err
        assert ran.code == row["exit"], said
        if reported:
            check_result(json.loads((project.root / "result.json").read_text(encoding="utf-8")), row, said)
        for pattern in as_list(row.get("says")):
            assert re.search(pattern, said, re.IGNORECASE), said
        for pattern in as_list(row.get("never")):
            assert not re.search(pattern, said, re.IGNORECASE), said
        lines = [line for line in ran.err.splitlines() if line.startswith("gate: ")]
        if (
            ran.code and "exit code" not in ran.out
        ):  # no report was printed: then one line says what, where, what to try
            assert len(lines) == 1, said


def check_result(result: Mapping[str, Any], row: Mapping[str, Any], said: str) -> None:
    assert result["verdict"] == row["verdict"], said
    assert result["exit_code"] == row["exit"], said
    worse = {
        case["id"] for suite in result["suites"] for case in suite["cases"] if case["status"] in ("broken", "failed")
    }
    assert set(row.get("cause", ())) <= worse, said


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


# --- the project ----------------------------------------------------------------------------------


def at_base(row: Mapping[str, Any], root: Path, bases: dict[str, Path], port: int) -> Project:
    """The project at its base commit, its baseline stored by the commands of the guide."""
    parts = {key: row.get(key) for key in ("agent", "cases", "criteria", "config", "stored", "before")}
    key = json.dumps(parts, sort_keys=True, default=str)
    if row.get("agent") == "http":  # its address is its own
        return make_base(row, Project(root), port)
    if key not in bases:
        bases[key] = make_base(row, Project(bases[""] / str(len(bases))), port).root
    shutil.copytree(bases[key], root, symlinks=True, dirs_exist_ok=True)
    return Project(root)


def make_base(row: Mapping[str, Any], project: Project, port: int) -> Project:
    project.root.mkdir(parents=True, exist_ok=True)
    shutil.copy(FOLDER / "agent.py", project.root / "agent.py")
    project.write("behaviour.json", row.get("before", {}))
    project.write("suite.yaml", suite_of(row.get("cases", 20)))
    project.write("gate.yaml", configuration(row, port))
    project.write(".gitignore", ".gate/\n__pycache__/\nresult.json\n")
    project.commit("base")
    stored = row.get("stored", 5)
    if stored:
        ran = project.gate("run", "--trials", str(stored), "--record", ".gate/base.jsonl", "--quiet")
        assert (project.root / ".gate" / "base.jsonl").exists(), ran.out + ran.err
        saved = project.gate("baseline", "save", ".gate/base.jsonl")
        assert saved.code == 0, saved.out + saved.err
    return project


def make_change(project: Project, row: Mapping[str, Any], port: int) -> None:
    """A branch with one commit: what the agent does now, and what of the project is another."""
    change = row.get("change") or {}
    project.git("checkout", "-qb", "change")
    project.write("behaviour.json", row.get("after", row.get("before", {})))
    now = {**row, **{key: change[key] for key in ("agent", "criteria", "cases") if key in change}}
    now["config"] = {**(row.get("config") or {}), **(change.get("config") or {})}
    project.write("suite.yaml", suite_of(now.get("cases", 20)))
    project.write("gate.yaml", configuration(now, port))
    for name, content in (change.get("files") or {}).items():
        project.write(name, content)
    for name in change.get("remove") or ():
        (project.root / name).unlink()
    project.commit("change")


def configuration(row: Mapping[str, Any], port: int) -> str:
    named = row.get("agent", "python")
    agent = AGENTS[named] if isinstance(named, str) else named
    content = {"suite": "suite.yaml", "agent": agent, "criteria": row.get("criteria") or CRITERIA}
    content |= row.get("config") or {}
    content = {key: value for key, value in content.items() if value != "nothing"}
    return json.dumps(content, default=str).replace("PORT", str(port))


def suite_of(cases: Any) -> Any:
    """A suite of so many cases that ask for an answer and a call, or the document as it stands."""
    if not isinstance(cases, int):
        return cases
    return {"cases": [case_of(f"c{number:02}") for number in range(cases)]}


def case_of(case_id: str) -> dict[str, Any]:
    message = f"item {case_id}"
    told = scripted.good(message)
    calls = [{"name": call["name"], "args": call["arguments"]} for call in told["tool_calls"]]
    return {"id": case_id, "input": message, "tools": calls, "response": told["output"]}


# --- the agent behind HTTP ------------------------------------------------------------------------


@contextmanager
def serve(root: Path) -> Iterator[int]:
    """The scripted agent behind a real server on loopback; it reads the project's behaviour.json at each request."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            message = request["messages"][-1]["content"]
            status, kind, body = reply(root, request["case_id"], request["trial"], message)
            if status == 0:
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing of it belongs into the output of the tests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def reply(root: Path, case_id: str, trial: int, message: str) -> tuple[int, str, bytes]:
    """Status, type and body of what the server answers; status 0 closes the connection."""
    behaviour = json.loads((root / "behaviour.json").read_text(encoding="utf-8"))
    plan = behaviour.get(case_id, behaviour.get("*", "good"))
    plan = plan if isinstance(plan, str) else plan[(trial - 1) % len(plan)]
    if plan == "close":
        return 0, "", b""
    if plan.isdigit():
        return int(plan), "application/json", b'{"detail": "something went wrong"}'
    if plan == "stream":
        return 200, "text/event-stream", b'data: {"delta": "the answer"}\n\ndata: [DONE]\n\n'
    if plan == "html":
        return 200, "text/html", b"<html><body>gateway</body></html>"
    told = scripted.act(plan, message)
    return 200, "application/json", json.dumps({"output": told} if isinstance(told, str) else told).encode()
