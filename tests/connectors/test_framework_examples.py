"""Each framework's example, typed as the page says: released packages, a scripted model behind a real socket."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.tools.transcripts import PROGRESS, Difference, Shell, masked, steps
from tests.acceptance.conftest import REPOSITORY

pytestmark = pytest.mark.connectors
PAGE = REPOSITORY / "docs" / "how-to" / "connect-an-agent.md"
INSTALLATION = "python -m venv .venv && .venv/bin/python -m pip install -q -r requirements.txt"
INPUT_TOKENS, OUTPUT_TOKENS = 100, 20
"""Of one call of the scripted model."""
VERSIONS = (
    "import importlib.metadata, json, sys; print(json.dumps([importlib.metadata.version(n) for n in sys.argv[1:]]))"
)


class Installed(Shell):
    """A reader's shell, in which the framework has been installed by `make connectors`."""

    def __init__(self, folder: Path, environment: Path) -> None:
        super().__init__(folder)
        self._environment = environment
        (self.where() / "agent-gate").symlink_to(REPOSITORY)

    def run(self, command: str) -> str:
        if command != INSTALLATION:
            return super().run(command)
        required = [line.partition("==") for line in (self.where() / "requirements.txt").read_text().splitlines()]
        names = [name.partition("[")[0] for name, _, _ in required]
        found = subprocess.check_output([self._environment / "bin" / "python", "-c", VERSIONS, *names])
        assert json.loads(found) == [version for _, _, version in required]
        return super().run(f"ln -s {self._environment} .venv")


def turns(record: Path) -> Iterator[dict[str, Any]]:
    for line in map(json.loads, record.read_text(encoding="utf-8").splitlines()):
        yield from line.get("turns", ())


NAMES = sorted(path.name for path in (REPOSITORY / "examples" / "frameworks").iterdir() if (path / "agent.py").exists())
SHOWN = "openai-agents"
"""The framework whose session the page shows; the others print the same under their own name."""


def differences(name: str, shell: Shell) -> list[str]:
    """Type the session of the page for a framework; return what was printed differently."""
    [session] = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    found = []
    for step in steps(session.replace(SHOWN, name), 0):
        printed = PROGRESS.sub("", shell.run(step.command))
        if masked(printed) != masked(step.printed):
            found.append(str(Difference(step, printed)))
    return found


@pytest.mark.parametrize(
    ("name", "environment", "calls", "cost"),
    [
        ("openai-agents", "frameworks", 3, 4 * 65e-6),
        ("pydantic-ai", "frameworks", 2, 3 * 65e-6),
        ("langgraph", "frameworks", 2, 3 * 65e-6),
        ("google-adk", "adk", 3, 4 * 80e-6),
        ("crewai", "crewai", 2, None),
        ("claude-agent-sdk", "frameworks", 2, 3 * 200e-6),
    ],
)
def test_an_example_runs_as_the_page_says(
    name: str, environment: str, calls: int, cost: float | None, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    interpreter = request.getfixturevalue(environment).with_name("python")
    with Installed(tmp_path, interpreter.parent.parent) as shell:
        found = differences(name, shell)
        shell.run("python ../scripted_model.py gate run -q --trials 1 --case refund --record one.jsonl")
        (turn,) = turns(shell.where() / "one.jsonl")
        scores = (shell.where() / "one.jsonl").read_text(encoding="utf-8")
    assert found == []
    assert len(turn["calls"]) == calls
    assert all(call["id"] and call["result"] is not None for call in turn["calls"])
    assert turn["usage"]["input_tokens"] == (calls + 1) * INPUT_TOKENS
    assert turn["usage"]["output_tokens"] == (calls + 1) * OUTPUT_TOKENS
    said = (
        [line["scores"]["cost"]["value"] for line in map(json.loads, scores.splitlines()) if "turns" in line]
        if cost
        else []
    )
    assert said == ([pytest.approx(cost)] if cost else [])


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_the_example_as_it_is(name: str) -> None:
    agent = (REPOSITORY / "examples" / "frameworks" / name / "agent.py").read_text(encoding="utf-8")
    assert [
        text
        for text in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        if text in agent
    ]
