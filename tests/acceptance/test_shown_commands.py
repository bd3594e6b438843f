"""Commands that pages show in blocks without output, run as they stand: each is understood and ends with a verdict."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.acceptance.conftest import REPOSITORY, Project

BLOCK = re.compile(r"^```(?:bash|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = {"upgrade-a-model", "accept-a-change"}
"""Pages whose recipes have tests of their own."""
FILLED_IN_OR_LONG = re.compile(r"\b(RECORD|COMMIT|OTHER|ID)\b|statement\.json|traces\.jsonl|gate (power|prove)\b")
"""Commands with a word that the reader replaces, and those that test_commands and test_traces run."""
AGENT = "def answer(message):\n    return {'output': 'It is on its way.', 'cost_usd': 0.01}\n"
CASES = {
    "cases": [
        {"id": f"c{n}", "input": f"Where is order {n}?", "response": "It is on its way.", "tags": ["smoke"]}
        for n in range(4)
    ]
}
CONFIG = {
    "name": "shop",
    "suite": "cases.json",
    "agent": {"python": "agent:answer"},
    "criteria": {"response_match_score": 0.5},
}


def shown() -> list[str]:
    """Return each command of the gate in such a block, without its comment and what a reader fills in."""
    found = []
    for page in sorted((REPOSITORY / "docs").rglob("*.md")):
        if "dev" in page.parts or page.stem in ELSEWHERE:
            continue
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            lines = [line.partition("||")[0].partition("#")[0].strip() for line in block.splitlines()]
            found += [line.replace("$TAG", "v1.1.0") for line in lines if line.startswith("gate ")]
    return [line for line in found if not FILLED_IN_OR_LONG.search(line)]


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a release, a stored baseline and a record."""
    made = Project(tmp_path_factory.mktemp("shown"))
    made.write("gate.yaml", CONFIG)
    made.write("cases.json", CASES)
    made.write("agent.py", AGENT)
    made.write(".gitignore", ".gate/\n__pycache__/\n")
    made.commit()
    made.git("tag", "v1.1.0")
    ran = made.gate("run", "-q", "--trials", "5", "--record", ".gate/record.jsonl")
    assert ran.code == 0, ran.err
    assert made.gate("baseline", "save", ".gate/record.jsonl").code == 0
    assert made.gate("run", "-q", "--release", "v1.1.0").code == 0
    assert made.gate("baseline", "save", "--release", "v1.1.0").code == 0
    return made


@pytest.mark.slow
@pytest.mark.parametrize("line", shown())
def test_a_command_is_understood(ready: Project, line: str) -> None:
    ran = ready.gate(*shlex.split(line)[1:])
    assert ran.code in (0, 1), f"{line}: {ran.code}\n{ran.err}"


def test_there_are_such_commands() -> None:
    assert len(shown()) >= 5
