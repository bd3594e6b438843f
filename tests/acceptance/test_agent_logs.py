"""What an agent writes beside its answers is kept per trial, masked and bounded, and shown where a trial failed."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from gate.agents.base import Log
from gate.model import Trial
from gate.records import read_record, redacted
from gate.security.limits import MAX_LOG_CHARS, RAW_LOG_CHARS
from gate.security.redact import Redactor
from tests.acceptance.conftest import Project, first_of

PYTHON = """
import asyncio, logging, sys
logging.basicConfig(stream=sys.stderr)


def order(number):
    return {}[number]


async def answer(message):
    print("looking up", message)
    await asyncio.sleep(0.01)
    logging.warning("no stock of %s", message)
    if message == "tea":
        order(message)
    return "no"


def threaded(message):
    print("looking up", message)
    if message == "tea":
        order(message)
    return "no"
"""
COMMAND = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    message = asked["messages"][-1]["content"]
    print("looking up", message, "with sk-ant-api03-" + "a" * 90, file=sys.stderr, flush=True)
    if message == "tea":
        raise KeyError(message)
    print(json.dumps({"id": asked.get("id"), "output": "no"}), flush=True)
"""


def project_of(project: Project, agent: dict[str, Any]) -> Project:
    project.write(
        "suite.json", {"cases": [{"id": one, "input": one, "response": "yes"} for one in ("tea", "milk", "rye")]}
    )
    project.write("agent.py", PYTHON)
    project.write("command.py", COMMAND)
    criteria = {"response_match_score": 0.5}
    project.write(
        "gate.yaml",
        {
            "suite": "suite.json",
            "agent": agent,
            "criteria": criteria,
            "trials": 2,
            "baseline": {"store": "none"},
            "gate": {"confirm_after": "50ms"},
        },
    )
    return project


def logs(project: Project) -> dict[str, set[str]]:
    (path,) = (project.root / ".gate/records").glob("*/*.jsonl")
    found: dict[str, set[str]] = {}
    for trial in read_record(path).trials:
        found.setdefault(trial.case_id, set()).add(trial.log)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("function", first_of(["answer", "threaded"]))
def test_each_trial_of_a_function_has_what_it_wrote_and_its_traceback(project: Project, function: str) -> None:
    ran = project_of(project, {"python": f"agent:{function}"}).gate("run", "-q")
    assert ran.code == 1, ran.err
    kept = logs(project)
    (failed,) = kept["tea"]
    assert failed.startswith("looking up tea\n")
    assert "Traceback (most recent call last):" in failed
    assert 'File "agent.py", line' in failed
    assert "return {}[number]" in failed
    assert failed.endswith("KeyError: 'tea'")
    assert str(project.root) not in failed and "worker.py" not in failed
    (answered,) = kept["milk"]
    assert answered.startswith("looking up milk") and "tea" not in answered
    if function == "answer":
        assert "WARNING:root:no stock of milk" in answered


@pytest.mark.slow
@pytest.mark.parametrize("persistent", first_of([True, False]))
def test_each_trial_of_a_command_has_its_standard_error_without_secrets(project: Project, persistent: bool) -> None:
    argv = f"{shlex.quote(sys.executable)} command.py"
    project_of(project, {"command": argv, "persistent": persistent, "concurrency": 1}).gate("run", "-q")
    kept = logs(project)
    assert {text.splitlines()[0].split(" with")[0] for text in kept["tea"]} == {"looking up tea"}
    assert all("KeyError: 'tea'" in text for text in kept["tea"])
    assert all(text.startswith("looking up rye with") and "\n" not in text for text in kept["rye"])
    assert "sk-ant-api03-aaa" not in "".join(text for texts in kept.values() for text in texts)


def test_explain_shows_what_a_failing_trial_wrote(project: Project) -> None:
    project_of(project, {"python": "agent:answer"}).gate("run", "-q")
    shown = project.gate("explain", "--case", "tea").out
    assert "  failed: crash: KeyError: 'tea'" in shown
    assert "  the agent wrote:\n    looking up tea" in shown
    assert "    WARNING:root:no stock of tea" in shown
    assert "        return {}[number]\n" in shown, "indented as the traceback was"


def test_a_record_of_before_has_no_logs_and_reads_as_before(project: Project) -> None:
    project_of(project, {"python": "agent:answer"}).gate("run", "-q")
    (path,) = (project.root / ".gate/records").glob("*/*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert any("log" in line for line in lines)
    assert read_record(Path(__file__).parents[1] / "golden/records/full-2.jsonl").trials[0].log == ""


def test_the_end_of_a_long_log_is_kept() -> None:
    log = Log()
    for number in range(2000):
        log.add(f"line {number}\n")
    assert len(log.text) == RAW_LOG_CHARS
    kept = redacted(Trial("a", 1, log=log.text), Redactor()).log
    assert len(kept) == MAX_LOG_CHARS
    assert kept.startswith("…") and log.text.endswith("line 1999")
    empty = Log()
    empty.add("\n \n")
    assert empty.text == ""


@pytest.mark.parametrize("more", [0, 500, 1500, 3000])
def test_a_secret_of_which_only_the_end_would_be_kept_is_masked_first(more: int) -> None:
    """A key whose first line lies before what is kept has no shape any more: it is masked before the cut."""
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkq\n" * 100 + "-----END PRIVATE KEY-----"
    log = Log()
    log.add(key + "\n" + "x" * (MAX_LOG_CHARS - len(key) + more))
    kept = redacted(Trial("a", 1, log=log.text), Redactor(["hush-hush"])).log
    assert "MIIE" not in kept
