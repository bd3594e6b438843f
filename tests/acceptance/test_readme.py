"""The README is short and true; the transcripts of recorded conversations are what the commands print."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gate.errors import ExitCode
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


def blocks(language: str = "") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= 700


def test_its_first_screen_has_a_sentence_the_picture_the_first_commands_and_the_workflow() -> None:
    screen = README.split("\n## ")[0]
    marks = ("Agent Gate runs", "![The comment", "pip install agent-gate", "gate demo", "uses: agent-gate/agent-gate/")
    places = [screen.index(mark) for mark in marks]
    assert places == sorted(places)
    assert len(screen.splitlines()) < 40


def test_its_workflow_is_short() -> None:
    [workflow] = [block for block in blocks("yaml") if block.startswith("# .github/workflows/gate.yml\n")]
    assert len(workflow.splitlines()) <= 12
    assert max(map(len, workflow.splitlines())) <= 84


def test_the_cases_and_the_configuration_that_it_shows_are_the_examples() -> None:
    example = REPOSITORY / "examples" / "repository"
    held = (example / "evals/shop.yaml").read_text(encoding="utf-8") + (example / "gate.yaml").read_text(
        encoding="utf-8"
    )
    shown = [block for block in blocks("yaml") if "uses:" not in block]
    assert len(shown) == 2
    assert [block for block in shown if block not in held] == []


def test_its_exit_codes_are_all_there_are() -> None:
    rows = re.findall(r"^\| (\d) \| ", README, re.MULTILINE)
    assert [int(code) for code in rows] == sorted(code for code in ExitCode if code < 128)


def test_the_targets_of_make_that_it_names_exist() -> None:
    targets = re.findall(r"^make (\w+)", README, re.MULTILINE)
    assert targets == ["demo", "test"]
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


def test_the_commands_of_its_first_screen_work(project: Project) -> None:
    first = blocks()[0]
    commands = [line.split("#")[0].split()[1:] for line in first.splitlines() if line.startswith("gate ")]
    assert commands == [["demo"], ["init"]]
    assert project.gate("demo", "--help").code == 0
    assert project.gate("init").code == 0
    assert project.gate("run").code == 0
