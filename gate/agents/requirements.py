"""Reads requirements: the distributions that a project installs by name, and the folders that it installs from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import Distribution, distributions, packages_distributions
from pathlib import Path
from typing import Any

from gate.formats.shapes import as_list, as_mapping

_LINES = re.compile(r"(?:requirements|constraints)[\w.-]*|environment\.ya?ml")
_TOML = re.compile(r"(?:pyproject|pylock)[\w.-]*\.toml|Pipfile|[\w.-]+\.lock")
_NAME = re.compile(r"\s*(?:-\s+)?([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\]\s*)?(?:$|[=<>!~;@,#(\s])")
_PATH = re.compile(
    r"""\bfile:(?://)?([^\s"';#\[,]+)"""
    r"""|(?:^|[\s"'])(\.{1,2}(?:/[^\s"';#\[,]*)?)(?=$|[\s"';#\[,])"""
    r"""|^([\w.-]+/[^\s"';#\[,]*)"""
    r"""|^(?:-[ercf]|--(?:editable|requirement|constraint|find-links))[\s=]*(?!file:|\.)([^\s;#\[]+)"""
)
_PATH_IN_TOML = re.compile(r"""\b(?:path|editable|directory|virtual)\s*=\s*["']([^"']+)["']""")
_ALIASES = {
    "bs4": "beautifulsoup4",
    "cv2": "opencvpython",
    "dotenv": "pythondotenv",
    "PIL": "pillow",
    "sklearn": "scikitlearn",
    "yaml": "pyyaml",
}
"""Import name → the distribution that provides it, if they have no word in common."""


MOST_BYTES = 300_000
"""The most bytes of a file that are looked into."""
_OF_THE_REPOSITORY = frozenset(("editable", "virtual", "directory", "path"))
"""Keys of a locked package's source, if its modules have to be found in the repository."""


class Requirements:
    """The distributions that the files read so far name."""

    def __init__(self, root: Path | None = None) -> None:
        """``root``: the repository's folder, which may hold a virtual environment."""
        self._names: dict[str, set[str]] = {}
        self._root = root

    def provide(self, parts: list[str]) -> bool:
        """True if one of them provides the module of a dotted name, by its name or by what is installed here, or
        brings a distribution that does."""
        top = parts[0]
        wanted = {_plain("".join(parts[:end])) for end in range(1, len(parts) + 1)}
        wanted |= {_ALIASES.get(top, ""), *map(_plain, _installed().get(top, ()))}
        if any(name in wanted or top.lower() in words for name, words in self._names.items()):
            return True
        return not wanted.isdisjoint(self._brought())

    def _brought(self) -> set[str]:
        """Return the distributions that these ones require, in turn, as far as they are installed."""
        installed = _distributions(None)
        if self._root is not None:
            installed = {**_distributions(self._root), **installed}
        found, open_ = set[str](), list(self._names)
        while open_:
            name = open_.pop()
            if name in found or name not in installed:
                continue
            found.add(name)
            open_ += _required_by(installed[name])
        return found

    def reads(self, path: Path) -> bool:
        """True if a file of this name holds requirements in a known form."""
        return bool(_TOML.fullmatch(path.name) or _LINES.fullmatch(path.name) or path.suffix in (".txt", ".in"))

    def read(self, path: Path, text: str) -> Iterator[str]:
        """Take the names in a file, and yield the paths from which it installs, as they are written."""
        if _LINES.fullmatch(path.name) or path.suffix in (".txt", ".in"):
            for line in text.splitlines():
                stated = line.partition(" #")[0].strip()
                if not stated.startswith("#"):
                    self._take(stated)
                    yield from _paths_in(stated)
        elif _TOML.fullmatch(path.name):
            content = toml_of(text)
            if content is None:
                return
            for name in _requirements_in(content):
                self._take(name)
                yield from _paths_in(name)
            yield from _members_of(content)
            for match in _PATH_IN_TOML.finditer(_without_own_paths(text)):
                yield match[1]

    def _take(self, line: str) -> None:
        match = _NAME.match(line)
        if match and "/" not in match[1]:
            self._names[_plain(match[1])] = set(re.split(r"[-_.]+", match[1].lower()))


def toml_of(text: str) -> Mapping[str, Any] | None:
    """Return the content of a file in TOML; None if it is not TOML."""
    import tomllib  # weight: only for a project in TOML

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def text_on_disk(path: Path) -> str:
    """Return the beginning of a file's text; empty if it is unreadable or not a regular file: reading a pipe would
    block."""
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


@cache
def _installed() -> Mapping[str, list[str]]:
    """Return the names of the distributions that are installed beside the gate, by module."""
    return packages_distributions()


@cache
def _distributions(root: Path | None) -> Mapping[str, Distribution]:
    """Return the distributions in the virtual environments of a folder, or beside the gate if it is None."""
    if root is None:
        found = distributions()
    else:
        found = distributions(path=[str(one) for one in root.glob("*env/lib/python3*/site-packages")])
    return {_plain(one.metadata["Name"]): one for one in found}


@cache
def _required_by(distribution: Distribution) -> tuple[str, ...]:
    """Return the names of the distributions that an installed one requires; its file is read once."""
    found = []
    for stated in distribution.requires or ():
        match = _NAME.match(stated)
        if match:
            found.append(_plain(match[1]))
    return tuple(found)


def _paths_in(stated: str) -> Iterator[str]:
    """Yield the paths of one requirement, without addresses elsewhere."""
    for match in _PATH.finditer(stated):
        told = next(filter(None, match.groups()))
        if "://" not in told:
            yield told


def _members_of(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the folders that hold the members of a workspace of uv's."""
    workspace = as_mapping(as_mapping(as_mapping(content.get("tool")).get("uv")).get("workspace"))
    for member in as_list(workspace.get("members")):
        if isinstance(member, str):
            yield member.partition("*")[0] or "."


def installed_programs(path: Path, text: str) -> Iterator[str]:
    """Yield what the programs and plugins that a project's file installs start: ``module:function``."""
    if path.name != "pyproject.toml":
        return
    content = toml_of(text)
    if content is None:
        return
    project, poetry = _project_and_poetry(content)
    tables = programs_in(content)
    tables += [*as_mapping(project.get("entry-points")).values(), *as_mapping(poetry.get("plugins")).values()]
    for table in tables:
        yield from (name for name in as_mapping(table).values() if isinstance(name, str))


def programs_in(content: Mapping[str, Any]) -> list[Any]:
    """Return the tables of a project's file that say what its programs start: name → ``module:function``."""
    return [table.get("scripts") for table in _project_and_poetry(content)]


def _project_and_poetry(content: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    return as_mapping(content.get("project")), as_mapping(as_mapping(content.get("tool")).get("poetry"))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "", name).lower()


def _without_own_paths(text: str) -> str:
    """Return a project's file without tables of tools that only check or build it."""
    return re.sub(r"(?ms)^\[tool\.(?!uv|poetry|pdm|hatch|pixi)[^\]]*\].*?(?=^\[|\Z)", "", text)


def _requirements_in(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the requirements of a project's file or a lock file."""
    project, tool = as_mapping(content.get("project")), as_mapping(content.get("tool"))
    poetry = as_mapping(tool.get("poetry"))
    groups = [*as_mapping(project.get("optional-dependencies")).values()]
    groups += as_mapping(content.get("dependency-groups")).values()
    groups += [project.get("dependencies"), as_mapping(tool.get("uv")).get("dev-dependencies")]
    for group in groups:
        yield from (one for one in as_list(group) if isinstance(one, str))
    tables = [poetry.get("dependencies"), poetry.get("dev-dependencies")]
    tables += [as_mapping(one).get("dependencies") for one in as_mapping(poetry.get("group")).values()]
    tables += [content.get("packages"), content.get("dev-packages")]
    for table in tables:
        yield from as_mapping(table)
    for locked in (*as_list(content.get("package")), *as_list(content.get("packages"))):
        name, source = as_mapping(locked).get("name"), as_mapping(as_mapping(locked).get("source"))
        if isinstance(name, str) and not _OF_THE_REPOSITORY & source.keys():
            yield name
