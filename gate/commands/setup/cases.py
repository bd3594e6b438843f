"""Finds the cases that a repository already has: files of known formats, other data, and Python tests."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gate.commands.setup.found import FoundSuite, Survey
from gate.commands.setup.manifests import PROMPTFOO
from gate.commands.setup.python_agents import python_files
from gate.commands.setup.tree import Tree
from gate.errors import GateError
from gate.model import Suite
from gate.reports.formatting import count
from gate.suites import format_named, load
from gate.suites.base import Loss

KINDS = (
    (re.compile(r"\.(?:evalset|test)\.json\Z"), "ADK eval sets"),
    (re.compile(rf"\A{PROMPTFOO.pattern}\Z"), "promptfoo's configuration"),
)
"""Names of files that are known to hold cases → their kind."""
DATA_NAMES = re.compile(r"golden|dataset|evals?\b|cases", re.IGNORECASE)
MOST_SOURCES, MOST_EVALUATIONS = 1_000, 20
"""Maximum numbers of files of cases and of tests to read."""
MOST_LISTED, MOST_OF_KIND = 5, 20
"""Maximum number of files of cases of one kind to list one by one; of more, so many of their folders are listed."""


def add_cases(tree: Tree, found: Survey) -> None:
    """Add the files of cases, by kind: each file, or their folders if there are many; then tests, which are read in
    place, since nothing else can run them."""
    kinds: dict[str, list[Path]] = {}
    others: list[Path] = []
    for path in tree.files:
        for pattern, kind in KINDS:
            if pattern.search(path.name):
                kinds.setdefault(kind, []).append(path)
                break
        else:
            others.append(path)
    room = MOST_SOURCES - sum(map(len, kinds.values()))
    is_evalview = (tree.root / ".evalview").is_dir()
    for path in others:
        if room <= 0:
            break
        kind = "EvalView's cases" if is_evalview and path.suffix in (".yaml", ".yml") else "cases"
        is_named = DATA_NAMES.search(path.as_posix()) or (kind != "cases" and path.parts[0] == "tests")
        if is_named and path.suffix in (".yaml", ".yml", ".json") and _holds_cases(tree.document(path)):
            kinds.setdefault(kind, []).append(path)
            room -= 1
    for kind, paths in kinds.items():
        if len(paths) > MOST_LISTED:
            paths = sorted({path.parent for path in paths})  # noqa: PLW2901
        for path in paths[:MOST_OF_KIND]:
            found.suites.append(_read(tree.root, path, kind))
    form = format_named("python-tests")
    assert form.refers is not None
    tests = [path for path in python_files(tree) if form.recognises(tree.text(path))]
    for path in tests[:MOST_EVALUATIONS]:
        if not form.refers(tree.root / path, tree.root):  # else the files that it evaluates are found themselves
            found.suites.append(_read(tree.root, path, "cases in a test"))


def _holds_cases(content: Any) -> bool:
    """True for a mapping of one EvalView case or of cases, or a list such as DeepEval's goldens."""
    if isinstance(content, dict):
        return {"name", "input", "expected"} <= content.keys() or isinstance(content.get("cases"), list)
    first = content[0] if isinstance(content, list) and content else None
    return isinstance(first, dict) and "input" in first and bool({"expected_output", "expected"} & first.keys())


def _read(root: Path, path: Path, kind: str) -> FoundSuite:
    source = path.as_posix()
    losses = list[Loss]()
    try:
        return FoundSuite(source, kind, tuple(load([path], root=root)))
    except GateError as error:
        problem = f"cannot be read: {error}"
    try:
        suites = load([path], root=root, losses=losses)
    except GateError:
        return FoundSuite(source, kind, problem=problem)
    if not any(loss.check for loss in losses):
        return FoundSuite(source, kind, problem=problem)
    converted, conversion = _conversion_of(path)
    if (root / converted).is_file():
        return FoundSuite(source, kind, problem=f"converted to {converted}")
    return FoundSuite(source, kind, problem=_lossy(suites, losses, conversion), conversion=conversion)


def _conversion_of(source: Path) -> tuple[str, str]:
    """Return the file that cases are converted to, and the command."""
    name = "-".join([*source.parent.parts, source.stem])
    converted = f"evals/{name or 'cases'}.json"
    return converted, shlex.join(["gate", "import", source.as_posix(), "--to", converted, "--allow-loss"])


def _lossy(suites: Sequence[Suite], losses: Sequence[Loss], conversion: str) -> str:
    """Return the finding about cases of which some checks would be lost."""
    cases = sum(len(suite.cases) for suite in suites)
    lost = sum(loss.check for loss in losses)
    told = f"{count(lost, 'check')} that {'is' if lost == 1 else 'are'} lost"
    return f"{count(cases, 'case')} can be read; `{conversion}` writes them and lists {told}"
