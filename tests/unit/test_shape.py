"""The package's shape: rooms that say what they do, one class for each name, and a start without what few need."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import gate
from docs.tools.docstrings import FRAGMENT

PACKAGE = Path(gate.__file__).parent
DEFINED_TWICE: dict[str, str] = {
    "Comparison": "metrics.claims: the name of a judge's answer, which is part of the question and of cached answers",
    "Config": "decision.engine: the protocol's own word, in the documents that simulators read",
    "Grade": "the name of a judge's answer, as above",
    "Metric": "decision.engine: the protocol's own word, as above",
    "Outcome": "metrics.domain: the name of a judge's answer, as above",
    "Request": "decision.engine: the protocol's own word, as above",
}
"""Public class names that stand for two things → why."""


def test_every_room_says_what_it_does() -> None:
    rooms = [path for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"]
    silent = [room.name for room in rooms if not ast.get_docstring(ast.parse((room / "__init__.py").read_text()))]
    assert silent == []


def test_no_docstring_is_a_fragment() -> None:
    """A noun, a verb or *True if*, and not *Whether it is*."""
    begins = re.compile(rf'^ *r?"""\s*{FRAGMENT.pattern}.*', re.MULTILINE)
    found = [f"{path}: {one[0]}" for path in PACKAGE.rglob("*.py") for one in begins.finditer(path.read_text("utf-8"))]
    assert found == []


def test_a_public_class_name_is_defined_once() -> None:
    places = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE):
            places[name].add(str(path.relative_to(PACKAGE)))
    twice = {name: sorted(where) for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if name not in DEFINED_TWICE} == {}
    assert DEFINED_TWICE.keys() <= twice.keys(), "an exception that no longer exists"


HELP = """
import click, sys
from gate.commands.main import NAMES, cli
context = click.Context(cli)
assert [cli.get_command(context, name).name for name in NAMES] == list(NAMES) == cli.list_commands(context)
"""
RUN = "import sys, gate.pipeline.flow, gate.agents.http, gate.importers.promptfoo"


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        (HELP, ("pydantic", "msgspec", "httpx", "yaml", "openai")),
        (
            RUN,
            (
                *("h11", "sqlite3", "http.cookiejar", "openai", "gate.world.world", "gate.judges.client"),
                *("gate.traces", "gate.importers.promptfoo.configuration", "gate.decision.engine.evidence"),
                "gate.hosts.github",
            ),
        ),
    ],
    ids=["help", "a run over HTTP"],
)
def test_nothing_is_imported_at_the_start_that_few_need(code: str, heavy: tuple[str, ...]) -> None:
    """Of an hour's agent nobody notices it; of a thousand quick cases the start is the half."""
    code += f"\nprint([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
