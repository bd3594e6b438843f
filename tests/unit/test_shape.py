"""The package's shape, as decision 0001 says: four files at the root, small functions, one class per name."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import gate
from benchmarks.shape import arrows, floors, functions, modules

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


def test_four_files_lie_at_the_root() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py", "errors.py", "registry.py"}


def test_every_room_says_what_it_does() -> None:
    rooms = [path for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"]
    silent = [room.name for room in rooms if not ast.get_docstring(ast.parse((room / "__init__.py").read_text()))]
    assert silent == []


def test_no_function_is_longer_than_a_screen() -> None:
    assert [place for lines, place in functions(PACKAGE) if lines > 50] == []


def test_the_rooms_stand_on_few_floors() -> None:
    """More of either means a new tangle: reconsider the layers in pyproject.toml before raising a number."""
    found = arrows(PACKAGE)
    assert floors(found) <= 12
    assert sum(map(len, found.values())) <= 180


def test_a_public_class_name_is_defined_once() -> None:
    places = defaultdict(set)
    for name, _, tree in modules(PACKAGE):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(name)
    twice = {name: sorted(where) for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if name not in DEFINED_TWICE} == {}
    assert DEFINED_TWICE.keys() <= twice.keys(), "an exception that no longer exists"


def test_help_starts_without_heavy_libraries() -> None:
    heavy = ("pydantic", "msgspec", "httpx", "yaml", "openai")
    code = (
        "import sys; from gate.commands.main import NAMES, cli; import click\n"
        "context = click.Context(cli)\n"
        "assert [cli.get_command(context, name).name for name in NAMES] == list(NAMES) == cli.list_commands(context)\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_run_over_http_starts_without_what_few_runs_use() -> None:
    """Of an hour's agent nobody notices it; of a thousand quick cases the start is the half."""
    few = (
        *("h11", "sqlite3", "http.cookiejar", "openai", "gate.world.world", "gate.judges.client", "gate.traces"),
        *("gate.suites.promptfoo.configuration", "gate.decision.engine.evidence", "gate.hosts.github"),
    )
    code = (
        "import sys, gate.pipeline.flow, gate.agents.http, gate.suites.promptfoo\n"
        f"print([name for name in {few} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
