"""The README is short and true; the transcripts of recorded conversations are what the commands print."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.acceptance.conftest import REPOSITORY, Project
from tests.acceptance.test_recorded_airline import without_first_tool
from tests.acceptance.test_sample_agents import AGENTS, prepare

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
RECORDED = (REPOSITORY / "docs" / "dev" / "evidence" / "recorded-conversations.md").read_text(encoding="utf-8")


def transcript(name: str) -> list[tuple[list[str], str]]:
    """The commands of a named block, each with what it printed."""
    block = re.search(rf"<!-- transcript: {name} -->\n```\n(.*?)```", RECORDED, re.DOTALL)
    assert block is not None, name
    steps = re.split(r"^\$ gate ", block[1], flags=re.MULTILINE)[1:]
    return [(shlex.split(step.split("\n", 1)[0]), step.split("\n", 1)[1]) for step in steps]


def follow(project: Project, name: str) -> None:
    for arguments, printed in transcript(name):
        assert project.gate(*arguments).out.strip() == printed.strip(), arguments


def configuration() -> dict[str, object]:
    block = re.search(r"```yaml\n(suite: rows\.json.*?)```", RECORDED, re.DOTALL)
    assert block is not None
    return dict(yaml.safe_load(block[1]))


@pytest.mark.slow
def test_the_airline_transcripts(project: Project, shared: Callable[[str], Path]) -> None:
    rows = json.loads(shared("tau-bench/gpt-4o-airline.json").read_text())
    config = configuration()
    project.write("gate.yaml", yaml.safe_dump(config))
    project.write("before.yaml", yaml.safe_dump({**config, "fields": {**config["fields"], "trials": [0, 1]}}))  # type: ignore[dict-item]
    project.write("rows.json", rows)
    follow(project, "airline")
    even = {row["task_id"] for row in rows if row["info"]["task"]["actions"] and row["task_id"] % 2 == 0}
    project.write("rows.json", without_first_tool(rows, even))
    assert project.gate("run", "--quiet", "--record", "broken.jsonl").code == 0
    follow(project, "airline-broken")


def test_the_samples_transcript(project: Project, shared: Callable[[str], Path]) -> None:
    for name in AGENTS:
        prepare(project, shared(f"adk-samples/{name}"), name)
    follow(project, "samples")


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < 150


def test_the_report_that_the_readme_shows_is_the_guides() -> None:
    """Line by line; the test of transcripts runs the commands of the guide."""
    sample = re.search(r"```\n(✗ shop.*?)```", README, re.DOTALL)
    assert sample is not None
    printed = (REPOSITORY / "docs" / "how-to" / "read-the-result.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in sample[1].splitlines() if line not in printed] == []


def test_every_room_that_the_readme_names_is_there() -> None:
    rooms = re.findall(r"`(gate/\w+/)`", README)
    assert len(rooms) >= 12
    assert [room for room in rooms if not (REPOSITORY / room / "__init__.py").exists()] == []
    assert "config → suite → execute → score → record → decide → report" in README


def test_the_first_steps_of_the_readme_work(project: Project) -> None:
    assert project.gate("init").code == 0
    assert project.gate("run").code == 0
    assert project.gate("run", "--trials", "5").code == 0
    assert project.gate("baseline", "save").code == 0
    last = project.gate("run")
    assert last.code == 0, last.out + last.err
    assert project.gate("init").code == 2
