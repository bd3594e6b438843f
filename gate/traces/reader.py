"""Reads spans and log records from bytes: detects the format of a line, body or file, and counts unreadable data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import UNSET, DecodeError
from msgspec.json import Decoder

from gate.errors import ConfigError
from gate.formats.reading import Ignored, carried, kind_of, unread, with_read_marks
from gate.security.limits import MAX_DOCUMENT_BYTES, MAX_LINE_BYTES
from gate.traces import agents_sdk, jaeger, otlp
from gate.traces.dialects import unread_kinds
from gate.traces.span import Piece

_JSON = Decoder()
_MAX_WRAPPERS = 4
"""The deepest nesting of lists and wrappers around traces."""
NO_JSON = "lines that are not JSON"
NO_TRACE = "values in which there is no trace"
NO_IDS = "spans without a trace id or span id"
TOO_LONG = "lines that are too long"


class TraceReader:
    """Reads traces piece by piece, as a file grows or a receiver gets them.

    ``refused`` counts unreadable data, by reason. It keeps no spans: `gate.traces.conversation` joins them.
    """

    def __init__(self, ignored: Ignored | None = None) -> None:
        self.refused: Counter[str] = Counter()
        self.unread: Counter[str] = Counter()
        """The number of times that each kind of key was not read, except ignored keys; empty without ``ignored``."""
        self._ignored = ignored

    def line(self, line: bytes) -> list[Piece]:
        """Return the pieces of one line or document of JSON; none for an empty line."""
        if len(line) > MAX_LINE_BYTES:
            self.refused[TOO_LONG] += 1
            return []
        if not line.strip():
            return []
        return self.document(line)

    def document(self, data: bytes) -> list[Piece]:
        """Return the pieces of a JSON text of any length."""
        value = _decoded(data)
        if value is UNSET:
            self.refused[NO_JSON] += 1
            return []
        return self.value(value)

    def protobuf(self, body: bytes, *, logs: bool = False) -> list[Piece]:
        """Return the pieces of a protobuf request. Raises `ConfigError` if its library is not installed."""
        if not body:
            return []
        try:
            return self.value(otlp.from_protobuf(body, logs=logs))
        except ValueError:
            self.refused[NO_TRACE] += 1
            return []

    def value(self, value: Any) -> list[Piece]:
        """Return the pieces of a JSON value."""
        if self._ignored is None:
            return self._pieces_in(value)
        marked = with_read_marks(value, self._ignored)
        found: list[Piece] = carried(self._pieces_in(marked))
        for piece in found:
            for kind in unread_kinds(piece):
                self.unread[kind_of(kind, self.unread)] += 1
        for key in unread(marked, self._ignored) if found else ():
            self.unread[kind_of(key.path, self.unread)] += key.count
        return found

    def _pieces_in(self, value: Any) -> list[Piece]:
        found: list[Piece] = []
        for piece in _pieces(value, _MAX_WRAPPERS):
            if piece is None:
                self.refused[NO_IDS] += 1
            elif isinstance(piece, str):
                self.refused[piece] += 1
            else:
                found.append(piece)
        return found


def _pieces(value: Any, wrappers: int) -> Iterator[Piece | str | None]:
    """Yield pieces, None for each without ids, and the reason for each value without pieces."""
    if isinstance(value, list) and wrappers:
        for item in value:
            yield from _pieces(item, wrappers - 1)
    elif not isinstance(value, dict):
        yield NO_TRACE
    elif otlp.is_otlp(value):
        yield from otlp.pieces(value)
    elif jaeger.is_jaeger(value):
        yield from jaeger.pieces(value)
    elif agents_sdk.is_agents_sdk(value):
        yield agents_sdk.span(value)
    elif otlp.is_span(value):
        yield otlp.span(value)
    else:
        inner = next((value[key] for key in ("spans", "trace", "traces", "data") if key in value), None)
        if inner is None or not wrappers:
            yield NO_TRACE
        else:
            yield from _pieces(inner, wrappers - 1)


def read_file(path: Path, reader: TraceReader, *, where: str = "") -> Iterator[Piece]:
    """Yield the pieces of a file: JSON lines, or one document.

    Raises:
        ConfigError: the file cannot be read, or is a single document that is too large.
    """
    try:
        with path.open("rb") as file:
            first = file.readline(MAX_LINE_BYTES + 1)
            if _decoded(first) is not UNSET:
                yield from reader.line(first)
                for line in iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""):
                    yield from reader.line(line)
                return
            rest = file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=where or str(path)) from error
    if len(first) + len(rest) > MAX_DOCUMENT_BYTES:
        hint = "write one request a line, as the Collector's file exporter does"
        raise ConfigError("larger than a single document may be", where=where or str(path), hint=hint)
    value = _decoded(first + rest)
    if value is not UNSET:
        yield from reader.value(value)
        return
    for line in (first + rest).splitlines():  # the first of which is broken
        yield from reader.line(line)


def _decoded(data: bytes) -> Any:
    """Return a JSON value; UNSET for anything else."""
    try:
        return _JSON.decode(data)
    except (DecodeError, RecursionError, UnicodeError):
        return UNSET
