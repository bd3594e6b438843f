"""Prints the figures of decision 0001: how the package is cut into rooms, and how far a trial travels through them.

    python -m benchmarks.shape [FOLDER]

FOLDER holds the package `gate` to measure, such as an earlier commit's; default: this repository. A name directly below
`gate/` is a room, whether it is a folder or a file. What a trial passes is seen, not read: two cases are run and judged
against a baseline, with a JUnit and a Markdown report, and every call of a function of the package is looked at.
"""

from __future__ import annotations

import ast
import importlib
import os
import runpy
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

CRITERION = "tool_trajectory_avg_score"
PROJECT = {
    "gate.yaml": f"suite: cases.yaml\nagent: {{python: my_agent:answer}}\ncriteria: {{{CRITERION}: 0.5}}\ntrials: 3\n",
    "cases.yaml": """\
cases:
  - {id: weather, input: How is it in Paris?, tools: [{name: get_weather, args: {city: Paris}}]}
  - {id: greeting, input: Hello!, tools: []}
""",
    ".gitignore": ".gate/\n__pycache__/\n",
    "my_agent.py": """\
def answer(message):
    call = {"name": "get_weather", "arguments": {"city": "Paris"}, "result": "sunny"}
    return {"output": "It is sunny.", "tool_calls": [call] if "Paris" in message else []}
""",
}
LOADED = ("gate.commands.run", "gate.pipeline.flow", "gate.decision", "gate.reports.markdown", "gate.reports.junit")
"""Modules that the run imports, with most of the others."""
NOUNS = {"Case", "RecordedTrial", "Trial", "Invocation", "CaseResult"}
"""The types of a trial on its way: asked, recorded, run, answered, reported."""


# --- what the files say ---------------------------------------------------------------------------


def modules(package: Path) -> Iterator[tuple[str, str, ast.Module]]:
    """Name, text and tree of each module; the tree's name is that below the package."""
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield ".".join(path.relative_to(package).with_suffix("").parts), text, ast.parse(text)


def arrows(package: Path) -> Mapping[str, set[str]]:
    """The rooms that each room imports, at whatever depth of its code."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, _, tree in modules(package):
        room = name.split(".")[0]
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module] if node.module != "gate" else [f"gate.{a.name}" for a in node.names]
            inner = {one.split(".")[1] for one in names if one.startswith("gate.")}
            found[room] |= {
                one for one in inner - {room} if (package / one).exists() or (package / f"{one}.py").exists()
            }
    return found


def floors(found: Mapping[str, set[str]]) -> int:
    """Rooms on the longest way down; rooms that import one another share a floor."""

    @cache
    def height(room: str) -> int:
        return 1 + max((height(one) for one in found.get(room, ()) if room not in found.get(one, ())), default=0)

    return max(map(height, found))


def functions(package: Path) -> Iterator[tuple[int, str]]:
    """Lines and place of each function."""
    for name, _, tree in modules(package):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield (node.end_lineno or node.lineno) - node.lineno + 1, f"{name}.{node.name}"


# --- what a run does ------------------------------------------------------------------------------


class Watch:
    """Sees which modules handle the trial, and in which types its criterion appears."""

    def __init__(self) -> None:
        self.handled: set[str] = set()
        self.forms: set[str] = set()

    def __call__(self, frame: FrameType, event: str, given: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event not in ("call", "return") or not module.startswith("gate."):
            return
        values = list(frame.f_locals.values()) if event == "call" else [given]
        for value in values:
            self._see(module, value)
            for inner in list(value)[:3] if type(value) in (list, tuple) else ():
                self._see(module, inner)

    def _see(self, module: str, value: Any) -> None:
        kind = type(value)
        if not kind.__module__.startswith("gate."):
            return
        if kind.__name__ in NOUNS:
            self.handled.add(module)
        if kind.__name__ == "Criterion":
            self.forms.add("Criterion")
            return
        names = getattr(kind, "__struct_fields__", None) or getattr(value, "__dict__", {})
        for name in names:
            with suppress(AttributeError):
                field = getattr(value, name)
                if field == CRITERION or type(field).__name__ == "Criterion":
                    self.forms.add(f"{kind.__module__.removeprefix('gate.')}.{kind.__name__}")


def prepare(folder: Path, package: Path) -> None:
    """A repository with a stored baseline, and a change of the agent that breaks one case."""

    def call(*words: str) -> None:
        subprocess.run(words, cwd=folder, check=True, capture_output=True, env=environment)

    def commit(message: str) -> None:
        call("git", "add", "-A")
        call("git", "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", message)

    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    for name, text in PROJECT.items():
        (folder / name).write_text(text, encoding="utf-8")
    call("git", "init", "-q", "-b", "main")
    commit("a baseline")
    call(sys.executable, "-m", "gate", "run", "-q")
    call(sys.executable, "-m", "gate", "baseline", "save")
    call("git", "add", "-A")
    agent = folder / "my_agent.py"
    agent.write_text(agent.read_text(encoding="utf-8").replace("in message", "not in message"), encoding="utf-8")
    commit("a change")


def watched_run(package: Path) -> Watch:
    """Runs and judges the cases with the package, in a repository of their own."""
    sys.path.insert(0, str(package.parent))
    for room in LOADED:  # watching their imports would take most of the time
        with suppress(ImportError):
            importlib.import_module(room)
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), package)
        os.chdir(folder)
        sys.argv = ["gate", "run", "-q", "--junit", "junit.xml", "--markdown", "report.md"]
        os._exit = sys.exit  # type: ignore[assignment]  # the command ends its process
        threading.setprofile(watch)
        sys.setprofile(watch)
        try:
            runpy.run_module("gate", run_name="__main__")
        except SystemExit as ended:
            assert ended.code in (1, 3), f"a change that breaks a case ended with {ended.code}"
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
            os.chdir(package.parent)
    return watch


def main() -> None:
    """Measures one package."""
    package = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve() / "gate"
    found = arrows(package)
    longest, where = max(functions(package))
    print(f"files at the root: {len(list(package.glob('*.py')))}")
    print(f"rooms: {sum(1 for path in package.iterdir() if (path / '__init__.py').exists())}")
    print(f"floors: {floors(found)}")
    print(f"arrows between rooms: {sum(map(len, found.values()))}")
    print(f"modules: {sum(1 for _ in modules(package))}")
    print(f"lines: {sum(text.count(chr(10)) for _, text, _ in modules(package))}")
    print(f"longest function: {longest} lines ({where})")
    watch = watched_run(package)
    passed = {name.split(".")[1] for name in watch.handled}
    print(f"rooms that handle a trial: {len(passed)} ({', '.join(sorted(passed))})")
    print(f"modules that handle a trial, from suite file to report: {len(watch.handled)}")
    print(f"forms of a criterion: {len(watch.forms)} ({', '.join(sorted(watch.forms))})")


if __name__ == "__main__":
    main()
