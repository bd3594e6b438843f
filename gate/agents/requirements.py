"""Reads the files that install an agent: the names that they install, and the paths in the repository."""

from __future__ import annotations

import re
from pathlib import Path

_LINES = re.compile(r"(?:requirements|constraints)[\w.-]*|environment\.ya?ml|.+\.(?:txt|in)")
_TOML = re.compile(r"(?:pyproject|pylock)[\w.-]*\.toml|Pipfile|[\w.-]+\.lock")
_REQUIRED = re.compile(r"(?:^|[\"'])[ \t]*(?:-[ \t]+)?([A-Za-z0-9][\w.-]*)", re.MULTILINE)
_NOT_REQUIRED = re.compile(
    r"^name\s*=[^\n]*|^\[tool\.(?!uv|poetry|pdm|hatch|pixi)[^\]\n]*\].*?(?=^\[|\Z)", re.MULTILINE | re.DOTALL
)
_LOCKED_HERE = re.compile(
    r"^name\s*=.*\n(?:version\s*=.*\n)?source\s*=\s*\{\s*(?:editable|virtual|directory|path)\b", re.MULTILINE
)
_PATH = re.compile(
    r"""\bfile:(?://)?([^\s"';#\[,]+)"""
    r"""|(?:^|[\s"'])(\.{1,2}(?:/[^\s"';#\[,]*)?)(?=$|[\s"';#\[,])"""
    r"""|^([\w.-]+/[^\s"';#\[,]*)"""
    r"""|^(?:-[ercf]|--(?:editable|requirement|constraint|find-links))[\s=]*(?!file:|\.)([^\s;#\[]+)"""
)
_PATH_IN_TOML = re.compile(
    r"""\bfile:(?://)?([^\s"';#\[,]+)|\b(?:path|editable|directory|virtual)\s*=\s*["']([^"']+)["']"""
)
_MEMBERS = re.compile(r"\bmembers\s*=\s*\[([^\]]*)\]")
_PROGRAMS = re.compile(
    r"^\[(?:project|tool\.poetry)\.(?:scripts|entry-points|plugins)\b[^\]\n]*\](.*?)(?=^\[|\Z)",
    re.MULTILINE | re.DOTALL,
)
_STARTED = re.compile(r"^[ \t]*[\"']?([\w.-]+)[\"']?[ \t]*=[ \t]*[\"']([\w.]+)(?::[\w.]+)?[\"']", re.MULTILINE)

MOST_BYTES = 300_000
"""The most bytes of a file that are looked into."""


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


def holds_requirements(name: str) -> bool:
    """True if a file of this name holds requirements in a form that is read here."""
    return bool(_LINES.fullmatch(name) or _TOML.fullmatch(name))


def names_in(name: str, text: str) -> set[str]:
    """Return the names of distributions in a file of this name, in lower case without separators, and other words; not
    the project's own name, since its modules have to be found in the repository."""
    text = (_LOCKED_HERE if name.endswith(".lock") else _NOT_REQUIRED).sub("", text)
    return {plain(word) for word in _REQUIRED.findall(text)}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "", name).lower()


def paths_in(name: str, text: str) -> list[str]:
    """Return the paths from which a file of this name installs, as they are written."""
    found = []
    if _LINES.fullmatch(name):
        for line in text.splitlines():
            stated = line.partition(" #")[0].strip()
            if not stated.startswith("#"):
                found += ["".join(groups) for groups in _PATH.findall(stated)]
    elif _TOML.fullmatch(name):
        text = _NOT_REQUIRED.sub("", text)
        found += ["".join(groups) for groups in _PATH_IN_TOML.findall(text)]
        for members in _MEMBERS.findall(text):  # of a workspace of uv's
            found += [member.partition("*")[0] or "." for member in re.findall(r"[\"']([^\"']+)", members)]
    return [path for path in found if "://" not in path]


def started_by(text: str) -> dict[str, str]:
    """Return the modules that the programs and plugins of a ``pyproject.toml`` start, by their names."""
    return dict(_STARTED.findall("\n".join(_PROGRAMS.findall(text))))
