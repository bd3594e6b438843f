"""Finds the parts of a repository that `gate init` can start from: agents, cases, and the keys that they need."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from gate.agents.sources import Sources, sources_of, what_installs
from gate.commands.setup import manifests, servers
from gate.commands.setup.cases import add_cases
from gate.commands.setup.found import FoundAgent, Survey
from gate.commands.setup.python_agents import add_python_agents, is_test, python_files
from gate.commands.setup.tree import Tree, files_below
from gate.reports.formatting import count
from gate.system.git import Git

MOST_AGENTS = 50

READERS: tuple[tuple[re.Pattern[str], Callable[[Tree, Path, Survey], None]], ...] = (
    (re.compile(r"langgraph\.json"), manifests.add_graphs),
    (re.compile(r"(openapi|swagger)\.(json|ya?ml)"), manifests.add_described),
    (re.compile(r"package\.json"), servers.add_node_server),
    (manifests.PROMPTFOO, manifests.add_providers),
    (re.compile(r"\.env.+"), manifests.add_keys),  # samples; .env itself holds secrets
)
"""Name of a file → the function that adds what it says."""


def survey(root: Path) -> Survey:
    """Examine the files of a folder."""
    tree, found = Tree(root), Survey()
    for path in tree.files:
        for names, read in READERS:
            if names.fullmatch(path.name):
                read(tree, path, found)
    add_python_agents(tree, found)
    found.agents = sorted(found.agents, key=lambda one: one.rank)[:MOST_AGENTS]
    add_cases(tree, found)
    tests = sum(map(is_test, python_files(tree)))
    if tests:
        found.notes.append(f"{count(tests, 'test file')}: `pytest --gate gate.yaml` shows the cases among them")
    for name in (".venv", "venv", "env"):
        if (root / name / "pyvenv.cfg").is_file():
            found.executable = name
            break
    return found


def sources_of_agent(root: Path, agent: FoundAgent) -> Sources:
    """Return the files of an agent, none if the gate does not start it."""
    if agent.module is None:
        return Sources()
    git, top = Git(root, environment=os.environ), root
    files: Iterable[str] | None = git.files()
    if files is None:
        files = map(Path.as_posix, files_below(root))
    else:
        top = git.top()
    root = Path(os.path.realpath(root))
    top = Path(os.path.realpath(top))
    return sources_of([agent.module.as_posix()], root, files, installs=what_installs(root, top, ""), top=top)
