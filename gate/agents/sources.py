"""Finds the files that make up an agent: its modules, what they import and name, prompts, and what installs it."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from gate.formats.python_text import parsed

INSTALLED = re.compile(
    r"(?:requirements|constraints)[\w.-]*|(?:pyproject|pylock|mise)[\w.-]*\.toml|setup\.(?:py|cfg)|Pipfile|environment\.ya?ml"
    r"|package\.json|package-lock\.json|npm-shrinkwrap\.json|pnpm-(?:lock|workspace)\.yaml|go\.(?:mod|sum)|Cargo\.toml"
    r"|Gemfile|composer\.json|pom\.xml|[\w.-]*\.gradle(?:\.kts)?|[\w.-]+\.(?:lock|lockb|csproj)"
    r"|(?:[\w.-]+\.)?Dockerfile[\w.-]*|(?:docker-)?compose[\w.-]*\.ya?ml|\.tool-versions|\.python-version|\.nvmrc|\.env[\w.-]*"
)
"""Names of files that define what is installed or set for an agent."""
MATERIAL = frozenset({"prompts", "prompt", "skills", "instructions", "templates", "knowledge", "tools"})
"""Names of folders that hold an agent's prompts and tools."""
MOST_MODULES, MOST_BYTES = 300, 300_000
_LOOKS = re.compile(r"\b(import_module|__import__|pkgutil|runpy|iterdir|listdir|scandir|r?glob|os\.walk)\b")
"""Ways to find files or modules that the code does not name."""


def sources_of(modules: Iterable[Path], files: Iterable[Path], text: Callable[[Path], str]) -> list[str]:
    """Return the sources of an agent in the form of `agent.sources`: files, and whole folders of packages.

    Empty if a module looks for files or modules while it runs: then every file may be the agent's. ``files`` are all
    files of the repository, relative to its root; ``text`` returns the content of one.
    """
    known = frozenset(files)
    folders = {folder.as_posix() for path in known for folder in path.parents if folder.parts}
    needed = _with_imports(modules, known, text)
    if not needed or any(_LOOKS.search(text) for text, _ in needed.values()):
        return []
    found = [_package(path, known) for path in needed]
    for path, (_, program) in needed.items():
        found += _named_in(path, program, known, folders)
    found += [f"{folder}/" for folder in sorted(folders) if PurePosixPath(folder).name in MATERIAL]
    return _without_covered(dict.fromkeys(found))


def sources_of_entry(entry: Sequence[str], root: Path, tracked: Sequence[str]) -> list[str]:
    """Return `sources_of` an agent that starts in one of the ``entry`` files; ``tracked`` are all files."""
    files = [Path(name) for name in tracked]

    def text(path: Path) -> str:
        try:
            with (root / path).open("rb") as file:
                return file.read(MOST_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""

    return sources_of([path for path in files if path.as_posix() in entry], files, text)


_Module = tuple[str, ast.Module | None]
"""The text of a module, and its program; None if it is not valid."""


def _with_imports(modules: Iterable[Path], known: frozenset[Path], text: Callable[[Path], str]) -> dict[Path, _Module]:
    """Return modules of the repository with all that they import, directly or indirectly, each read once."""
    open_, seen = list(modules), dict[Path, _Module]()
    while open_ and len(seen) < MOST_MODULES:
        path = open_.pop(0)
        if path in seen or path not in known:
            continue
        content = text(path)
        program = parsed(content)
        seen[path] = content, program
        if program is not None:
            for name in _imported(program, path):
                open_ += [one for one in _files_of(name, path, known) if one not in seen]
    return seen


def _imported(program: ast.Module, path: Path) -> Iterator[str]:
    """Yield dotted names of a module's imports; relative ones start from the root."""
    for node in ast.walk(program):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            parts = list[str]()
            if 0 < node.level <= len(path.parents):
                parts += path.parents[node.level - 1].parts
            if node.module:
                parts.append(node.module)
            base = ".".join(parts)
            yield base
            for alias in node.names:
                yield f"{base}.{alias.name}"


def _files_of(name: str, importer: Path, known: frozenset[Path]) -> Iterator[Path]:
    """Yield the files of a dotted name, searched from the root and from each folder above the importer."""
    parts = [part for part in name.split(".") if part]
    for folder in importer.parents:
        for end in range(1, len(parts) + 1):
            place = folder.joinpath(*parts[:end])
            for one in (place.with_suffix(".py"), place / "__init__.py"):
                if one in known:
                    yield one


def _package(path: Path, known: frozenset[Path]) -> str:
    """Return the folder of the outermost package that a module is in, or the module itself."""
    top = path
    while top.parent.parts and (top.parent / "__init__.py") in known:
        top = top.parent
    if top == path:
        return path.as_posix()
    return f"{top.as_posix()}/"


def _named_in(
    path: Path, program: ast.Module | None, known: frozenset[Path], folders: Collection[str]
) -> Iterator[str]:
    """Yield files and folders of the repository that string constants of a module name."""
    if program is None:
        return
    for node in ast.walk(program):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) < 200):
            continue
        told = node.value.strip().strip("/").removeprefix("./")
        if not told or "\0" in told:
            continue
        for folder in (path.parent, Path()):
            place = (folder / told).as_posix()
            if Path(place) in known:
                yield place
            elif place in folders and place not in (".", path.parent.as_posix()):
                yield f"{place}/"


def _without_covered(names: Iterable[str]) -> list[str]:
    """Return the names without those inside a folder that is also named."""
    listed = list(names)
    folders = [name for name in listed if name.endswith("/")]
    return [name for name in listed if not any(name != one and name.startswith(one) for one in folders)]


def named_by(setup: str, own: PurePosixPath) -> list[PurePosixPath]:
    """Return the paths that the commands may install: each word of them, and the folder itself for ``.``."""
    words = re.split(r"[\s'\"=;&|()\[\]]+", setup)
    return [PurePosixPath(os.path.normpath(own / word)) for word in words if word and not word.startswith(("-", "/"))]


def what_installs(root: Path, top: Path, setup: str) -> list[str]:
    """Return what installs an agent, relative to its folder ``root``: the files that commonly do, in this folder and
    those above it up to ``top``, and what the commands name, except for a folder that the agent is in."""
    found = []
    above = [folder for folder in (root, *root.parents) if folder.is_relative_to(top)]
    for folder in above:
        for path in sorted(folder.iterdir()):
            if INSTALLED.fullmatch(path.name) and path.is_file():
                found.append(os.path.relpath(path, root))
    for named in named_by(setup, PurePosixPath()):
        path = Path(os.path.normpath(root / named))
        with suppress(OSError):  # the word is too long for a name
            if path.exists() and path.is_relative_to(top) and path not in above:
                found.append(named.as_posix())
    return list(dict.fromkeys(found))
