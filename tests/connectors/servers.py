"""Servers of the field in processes of their own, and the project that asks them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.acceptance.conftest import Outcome, Project

AGENTS = Path(__file__).parent / "agents"
EXACT = {"response_match_score": 0.99, "tool_trajectory_avg_score": 1.0}
"""Criteria that an agent meets by the words and calls of its case alone."""
ORDERS = tuple(f"A{number}" for number in range(64))
FROM_MODEL = ("{0}: {0} has shipped", "{0}+{0}x: {0}x has shipped")
FROM_SERVER = ("It has shipped: {0} after nothing.", "It has shipped: {0}x after {0}.")
"""What the scripted model, and what a server of `agents/` without one, says to the two questions of a conversation."""


@contextmanager
def served(
    python: Path, server: str, environment: Mapping[str, str] | None = None, *, arguments: Sequence[str] = ()
) -> Iterator[str]:
    """The address of a server that prints its port once it listens."""
    command = [str(python), "-W", "ignore", str(AGENTS / server), *arguments]
    env = {**os.environ, **(environment or {})}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def turn(asked: str, said: str) -> dict[str, Any]:
    """It is to look up what it is asked for."""
    return {"input": asked, "response": said, "tools": [{"name": "lookup", "args": {"order": asked}}]}


def two_turns(order: str, said: tuple[str, str]) -> dict[str, Any]:
    """The case of an order; the second answer names the first question, which only its own conversation holds."""
    first, second = (text.format(order) for text in said)
    return {"id": order, "turns": [turn(order, first), turn(f"{order}x", second)]}


def ask(project: Project, agent: Mapping[str, Any], cases: Sequence[Mapping[str, Any]], **config: Any) -> Outcome:
    """Runs cases, 64 at once, with one trial each and no repeats."""
    project.write("cases.json", list(cases))
    settings = {
        "suite": "cases.json",
        "agent": {"concurrency": 64, "retries": 0, **agent},
        "criteria": {"response_match_score": 0.99},
        "trials": 1,
        "gate": {"confirm_after": 0.1},
        **config,
    }
    project.write("gate.yaml", settings)
    (project.root / "record.jsonl").unlink(missing_ok=True)  # one that exists is continued
    return project.gate("run", "--record", "record.jsonl")


def turns_of(project: Project) -> dict[str, list[Any]]:
    """By case, the turns of the record."""
    return {line["case"]: line["turns"] for line in _lines(project) if "turns" in line}


def errors_of(project: Project) -> dict[str, str]:
    """By case, why it brought no answer."""
    return {line["case"]: line["error"][1] for line in _lines(project) if line.get("error")}


def _lines(project: Project) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.root / "record.jsonl").read_text().splitlines()]


@contextmanager
def commanded(command: Sequence[str], folder: Path, environment: Mapping[str, str], alive: str) -> Iterator[str]:
    """The address of a server that is started by its own command, once ``alive`` answers; ``{port}`` is a free one."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    argv = [word.format(port=port) for word in command]
    url, log = f"http://127.0.0.1:{port}", folder / "server.log"
    env = {**os.environ, **environment}
    with (
        log.open("wb") as output,
        subprocess.Popen(argv, cwd=folder, env=env, stdout=output, stderr=output, start_new_session=True) as process,
    ):
        try:
            while not _answers(url + alive):
                assert process.poll() is None, log.read_text()
                time.sleep(0.2)
            yield url
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return bool(response.status == 200)
    except OSError:
        return False
