"""Reads what a command starts by a name that a project's file defines: a script of package.json or pyproject.toml."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Sequence
from pathlib import Path

from gate.agents.requirements import started_by, text_on_disk
from gate.formats.shapes import as_mapping

_NODE = ("npm", "pnpm", "yarn", "bun")
_PYTHON = ("uv", "poetry", "pdm", "hatch", "rye")
_RUN = (["run"], ["run-script"])
_FLAGS = frozenset(("-s", "--silent", "-q", "--quiet", "--frozen", "--locked", "--no-sync", "--if-present"))
"""Options of runners that lead to no other project."""
_PLAIN = re.compile(r"(?s)(?!.*\bcd\b)[\w\s./:@=,+-]+")
"""A command without variables, patterns of names, pipes and further commands."""


def started_by_name(command: Sequence[str], folder: Path) -> tuple[list[str], list[str]]:
    """Return the words and the modules that a command in this folder stands for; none unless a file says so plainly.

    `npm run NAME` stands for the words of a script in package.json; `NAME` and `uv run NAME` for a module that
    pyproject.toml names.
    """
    if not command:
        return [], []
    runner, names = command[0], command[:1]
    if runner in _NODE or runner in _PYTHON:
        names = [word for word in command[1:] if word not in _FLAGS]
        if list(names[:1]) in _RUN:
            names = names[1:]
    if not names:
        return [], []
    if runner in _NODE:
        return _words_of_script(folder / "package.json", names[0]), []
    module = started_by(text_on_disk(folder / "pyproject.toml")).get(names[0])
    return [], [] if module is None else [module]


def _words_of_script(path: Path, name: str) -> list[str]:
    try:
        scripts = as_mapping(as_mapping(json.loads(text_on_disk(path))).get("scripts"))
    except (ValueError, RecursionError):
        return []
    told = scripts.get(name)
    if not isinstance(told, str) or not _PLAIN.fullmatch(told):
        return []
    if f"pre{name}" in scripts or f"post{name}" in scripts:
        return []
    return [posixpath.normpath(word) for word in told.split()]
