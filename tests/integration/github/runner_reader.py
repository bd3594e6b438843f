"""Reads a step's output and its command files as GitHub's runner does.

After the runner's ``ActionCommand.TryParseV2``, ``ActionCommand.TryParse`` and ``FileCommandManager``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

KNOWN = {
    "add-mask",
    "add-matcher",
    "add-path",
    "debug",
    "echo",
    "endgroup",
    "error",
    "group",
    "notice",
    "remove-matcher",
    "save-state",
    "set-env",
    "set-output",
    "stop-commands",
    "warning",
}
_DATA = (("%0D", "\r"), ("%0A", "\n"), ("%25", "%"))
_PROPERTY = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))


@dataclass
class RunnerReader:
    """Takes a step's lines one by one; ``commands`` are those it would carry out, ``shown`` the rest of the log."""

    commands: list[tuple[str, dict[str, str], str]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    _resume: str = ""

    def read(self, text: str) -> None:
        for line in re.split(r"\r\n|\n|\r", text):
            found = parse(line, KNOWN | ({self._resume} if self._resume else set()))
            if found is None or (self._resume and found[0] != self._resume):
                self.shown.append(line)
            elif self._resume:
                self._resume = ""
            else:
                self.commands.append(found)
                if found[0] == "stop-commands":
                    self._resume = found[2]

    def of(self, *names: str) -> list[tuple[str, dict[str, str], str]]:
        return [command for command in self.commands if command[0] in names]


def parse(line: str, known: set[str]) -> tuple[str, dict[str, str], str] | None:
    """A command in either syntax: ``::name a=b,c=d::data`` at the start, or ``##[name a=b;c=d]data`` anywhere."""
    stripped = line.lstrip()
    if stripped.startswith("::") and (end := stripped.find("::", 2)) >= 0:
        name, _, listed = stripped[2:end].partition(" ")
        if name.lower() in known:
            return name.lower(), properties(listed, ",", _PROPERTY), unescape(stripped[end + 2 :], _DATA)
    start = line.find("##[")
    if start >= 0 and (end := line.find("]", start)) >= 0:
        name, _, listed = line[start + 3 : end].partition(" ")
        if name.lower() in known:
            return name.lower(), properties(listed, ";", ()), line[end + 1 :]
    return None


def properties(listed: str, separator: str, escapes: tuple[tuple[str, str], ...]) -> dict[str, str]:
    pairs = (part.split("=", 1) for part in listed.strip().split(separator))
    return {pair[0]: unescape(pair[1], escapes) for pair in pairs if len(pair) == 2}


def unescape(text: str, escapes: tuple[tuple[str, str], ...]) -> str:
    for escaped, meant in escapes:
        text = text.replace(escaped, meant)
    return text


def read_file_commands(text: str) -> dict[str, str]:
    """``GITHUB_OUTPUT``: ``name=value`` lines and heredocs; raises where the runner fails the step."""
    values: dict[str, str] = {}
    lines = text.split("\n")
    position = 0
    while position < len(lines):
        line = lines[position]
        position += 1
        if not line:
            continue
        equals, heredoc = line.find("="), line.find("<<")
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            values[line[:equals]] = line[equals + 1 :]
            continue
        if heredoc < 0:
            raise ValueError(f"invalid format {line!r}")
        name, delimiter = line[:heredoc], line[heredoc + 2 :]
        end = lines.index(delimiter, position)
        values[name] = "\n".join(lines[position:end])
        position = end + 1
    return values
