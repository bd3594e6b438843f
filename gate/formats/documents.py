"""Reads YAML, JSON, CSV and JSON Lines files, bounded and with line numbers; does not interpret them."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import Any

from gate.errors import ConfigError
from gate.formats.json_text import json_lines, parse_json
from gate.formats.positions import LineNumbers, at_line
from gate.formats.yaml_text import EMPTY, parse_yaml
from gate.security.limits import MAX_DOCUMENT_BYTES, MAX_LINE_BYTES

_FEW_BYTES = 65_536
"""Read at first: `read` allocates as much as it may return, which takes longer than reading a small file."""
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


def read_document(path: Path, *, where: str | None = None) -> Any:
    """Return the content of a YAML or JSON file.

    ``where`` is the file's name in messages, by default its path. Raises `ConfigError`.
    """
    return read_document_with_lines(path, where=where)[0]


def read_document_with_lines(path: Path, *, where: str | None = None) -> tuple[Any, LineNumbers]:
    """Return the content of a YAML or JSON file, and the lines of its values. Raises `ConfigError`."""
    where = where or path.as_posix()
    return parse_document_with_lines(read_text(path, where), where)


def parse_document(text: str, where: str) -> Any:
    """Return the value of a YAML or JSON text; ``where`` names its source in messages. Raises `ConfigError`."""
    return parse_document_with_lines(text, where)[0]


def parse_document_with_lines(text: str, where: str) -> tuple[Any, LineNumbers]:
    """Return the value of a YAML or JSON text, and the lines of its values.

    A source named ``*.json`` is JSON. Any other is JSON if it starts with a brace or a bracket and is valid JSON, else
    YAML.
    """
    if not text.strip():
        raise ConfigError(EMPTY, where=where)
    named_json = where.endswith(".json")
    if named_json or text.lstrip()[0] in "{[":
        try:
            return parse_json(text, where), json_lines(text)
        except json.JSONDecodeError as error:
            if named_json:
                raise ConfigError(f"not JSON: {error.msg}", where=f"{where}:{error.lineno}") from error
    value, marks = parse_yaml(text, where)
    return value, LineNumbers(marks.line, marks.below)


def parse_csv(text: str, where: str) -> tuple[list[dict[str, str]], list[int]]:
    """Return the rows of a CSV text, keyed by its header, and the line on which each row ends.

    Raises:
        ConfigError: it is not CSV, or a row is longer than the header.
    """
    import csv  # slow to import: only when there is a table
    import io

    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True, restval="")
    rows, lines = list[dict[str, str]](), list[int]()
    try:
        for row in reader:
            if None in row:
                hint = "quote a field that holds a comma"
                raise ConfigError(
                    "a row has more fields than the header", where=at_line(where, reader.line_num), hint=hint
                )
            rows.append({name.strip(): value for name, value in row.items()})
            lines.append(reader.line_num)
    except csv.Error as error:
        raise ConfigError(f"not CSV: {error}", where=at_line(where, reader.line_num)) from None
    return rows, lines


def read_json_lines(path: Path, *, where: str | None = None, marked: bool = False) -> Iterator[tuple[int, Any]]:
    """Yield the values of a JSON Lines file with their line numbers, from 1; ``marked`` as in `parse_json`.

    Raises `ConfigError` if a line is truncated or blank.
    """
    where = where or path.as_posix()
    with _open(path, where) as file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            yield number, _parse_line(raw, where, number, marked=marked)


def _open(path: Path, where: str) -> Any:
    try:
        if not S_ISREG(path.stat().st_mode):
            raise ConfigError("not a regular file", where=where)
        return path.open("rb")
    except (OSError, ValueError) as error:
        reason = str(error)
        if isinstance(error, OSError):
            reason = error.strerror or reason
        raise ConfigError(f"cannot be read: {reason}", where=where) from error


def read_text(path: Path, where: str) -> str:
    """Return the text of a file. Raises `ConfigError` if it is unreadable, too large, or not UTF-8."""
    with _open(path, where) as file:
        try:
            raw: bytes = file.read(_FEW_BYTES)
            if len(raw) == _FEW_BYTES:
                raw += file.read(MAX_DOCUMENT_BYTES + 1 - _FEW_BYTES)
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", where=where) from error
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise ConfigError(f"larger than {MAX_DOCUMENT_BYTES:,} bytes", where=where, hint="split the file")
    return _decode(raw, where)


def _decode(raw: bytes, where: str, first_line: int = 1) -> str:
    if raw.startswith(_LFS_POINTER):
        hint = "run `git lfs pull`; with actions/checkout, `lfs: true`"
        raise ConfigError("its content is in Git LFS, and only the pointer is here", where=where, hint=hint)
    raw = raw.removeprefix(BOM_UTF8)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = first_line + raw.count(b"\n", 0, error.start)
        raise ConfigError("not UTF-8", where=at_line(where, line), hint="save the file as UTF-8") from error


def _parse_line(raw: bytes, where: str, number: int, *, marked: bool) -> Any:
    place = at_line(where, number)
    if len(raw) > MAX_LINE_BYTES:
        raise ConfigError(f"line longer than {MAX_LINE_BYTES:,} bytes", where=place)
    text = _decode(raw, where, number)
    if not text or text.isspace():
        raise ConfigError("blank line", where=place, hint="a JSON Lines file has one JSON value on each line")
    try:
        return parse_json(text, where, first_line=number, marked=marked)
    except json.JSONDecodeError as error:
        what = f"not JSON: {error.msg.removesuffix(' starting at')}"
        hint = ""
        if not raw.endswith(b"\n"):
            hint = "if the file is cut off, write it again or delete its last line"
        raise ConfigError(what, where=place, hint=hint) from error
