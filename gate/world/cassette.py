"""The recording of one run: a file of lines, each a body, an exchange or the end of a trial; each body is stored once.

Lines are only appended, each with a single write, so that the recording survives a kill at any point. The answers of a
trial have a digest over its exchanges, which contain the digests of their bodies: a reader who trusts that digest,
because a record states it, may use the answers from a file that anybody could have written.
"""

from __future__ import annotations

import base64
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from io import FileIO
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from gate.security import files
from gate.security.limits import MAX_ANSWER_BYTES
from gate.world.outbound import digest, ids_in

VERSION = 1
"""1: body, exchange and end lines."""
MAX_LINE_BYTES = 2 * MAX_ANSWER_BYTES
MAX_FILE_BYTES = 10_000_000_000
MAX_FIRST_BYTES = 1_000
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_WINDOW = 32_768
"""Bytes of an earlier body that serve as dictionary for a later one: zlib's limit."""


class RecordedExchange(Struct, frozen=True, omit_defaults=True):
    """One request of a trial and its answer."""

    number: int
    """From 1, in the order of requests."""
    upstream: str
    method: str
    path: str
    key: str
    """Equal for requests with the same content."""
    request: str
    """Digest of the stored body of the request, which is redacted."""
    status: int
    response: str
    headers: tuple[tuple[str, str], ...] = ()
    """The headers of the answer that a client needs."""
    start: float = 0.0
    """Seconds since the beginning of the trial's first turn."""
    first: float = 0.0
    """Seconds until the first byte of the answer."""
    seconds: float = 0.0
    """Seconds until its last byte."""
    replayed: bool = False
    """True if it was answered from a recording."""
    ids: tuple[str, ...] = ()
    """Digests of the ids in the request; the key has numbers in their place."""
    sent: tuple[str, ...] = ()
    """Further parts of the request that distinguish it, each with a digest of its value."""
    tools: str = ""
    """Digest of the tools that the answer lists, without varying parts; empty if it lists none."""


class _Body(Struct, frozen=True, omit_defaults=True):
    digest: str
    size: int
    data: str
    """Compressed with zlib, in base64."""
    after: str = ""
    """Digest of the body used as dictionary; empty if there is none."""


class _End(Struct, frozen=True):
    case_id: str
    trial: int
    tape: str
    count: int


class _Line(Struct, frozen=True, omit_defaults=True):
    """A line of the file; exactly one kind of content is set."""

    cassette: int | UnsetType = UNSET
    body: _Body | UnsetType = UNSET
    exchange: RecordedExchange | UnsetType = UNSET
    end: _End | UnsetType = UNSET
    attempt: str = ""
    """The attempt at a trial to which an exchange or an end belongs."""
    owner: str = ""
    """The owner of the recording, on the first line."""


_ENCODER = msgspec.json.Encoder(order="deterministic")
_LINE = msgspec.json.Decoder(_Line)


def tape_of(case_id: str, trial: int, exchanges: Sequence[RecordedExchange]) -> str:
    """Return the digest of a trial's exchanges; empty if it made no request."""
    return digest(_ENCODER.encode([case_id, trial, *exchanges])) if exchanges else ""


def source_of(run: str, trial: int, tape: str) -> str:
    """Return the name of a tape in a record."""
    return f"{run}:{trial}:{tape}"


def path_of_run(folder: Path, run: str) -> Path | None:
    """Return the file of a run's recording; None if the id is not valid as a file name."""
    return folder / f"{run}.jsonl" if _RUN.fullmatch(run) else None


def owner_of(path: Path) -> str:
    """Return the owner of a recording; empty if the file does not say. Raises OSError."""
    with path.open("rb") as file:
        first = file.readline(MAX_FIRST_BYTES)
    for line in _decoded([first.rstrip(b"\n")]):
        return line.owner
    return ""


class CassetteWriter:
    """Appends to a run's recording. Raises `OSError` if it cannot be opened."""

    def __init__(self, path: Path, limit_bytes: int, owner: str = "") -> None:
        self._limit = limit_bytes
        self.full = False
        """True if something was not recorded because the size limit was reached."""
        files.make_folder(path.parent)
        self._file: FileIO = files.open_to_append(path)
        self._size = self._file.seek(0, os.SEEK_END)
        self._known: set[str] = set()
        self._models: dict[str, tuple[str, bytes]] = {}
        """For each group of bodies, the first one, used as dictionary for later ones."""
        if self._size:
            self._go_on()
        else:
            self._write(_Line(cassette=VERSION, owner=owner))

    def _go_on(self) -> None:
        """Terminate a truncated line, and index the stored bodies."""
        self._file.seek(self._size - 1)
        if self._file.read(1) != b"\n":
            self._write_bytes(b"\n")
        self._file.seek(0)
        for line in _lines(self._file):
            if isinstance(line.body, _Body):
                self._known.add(line.body.digest)

    def body(self, data: bytes, group: str) -> str:
        """Store a body; return its digest. ``group``: names bodies that are probably similar."""
        name = digest(data)
        if name not in self._known:
            model = self._models.setdefault(group, (name, data))
            after = "" if model[0] == name else model[0]
            packed = _pack(data, model[1] if after else b"")
            if self._write(_Line(body=_Body(name, len(data), base64.b64encode(packed).decode(), after))):
                self._known.add(name)
        return name

    def keep(self, exchange: RecordedExchange, attempt: str) -> bool:
        """Add an exchange. Return True if it and its bodies are stored."""
        if not {exchange.request, exchange.response} <= self._known:
            return False
        return self._write(_Line(exchange=exchange, attempt=attempt))

    def end(self, case_id: str, trial: int, tape: str, count: int, attempt: str) -> bool:
        """Add the end of a trial. Return True if it is stored."""
        return self._write(_Line(end=_End(case_id, trial, tape, count), attempt=attempt))

    def _write(self, line: _Line) -> bool:
        return self._write_bytes(_ENCODER.encode(line) + b"\n")

    def _write_bytes(self, data: bytes) -> bool:
        if self._size + len(data) > self._limit:
            self.full = True
            return False
        self._file.write(data)
        self._size += len(data)
        return True

    def close(self) -> None:
        self._file.close()


class RecordedTape(Struct, frozen=True):
    """The requests of one trial and their answers."""

    source: str
    """Its name in a record: the run, the trial and the digest."""
    trial: int
    case_id: str
    exchanges: tuple[RecordedExchange, ...]
    cassette: Cassette

    @property
    def answered_ids(self) -> frozenset[str]:
        """The ids that the trial received before it sent them."""
        told: set[str] = set()
        sent: set[str] = set()
        for exchange in self.exchanges:
            sent.update(exchange.ids)
            body = self.cassette.body(exchange.response) or b""
            told |= {*ids_in(body.decode("utf-8", "replace"))} - sent
        return frozenset(told)


class Cassette:
    """The recording of a run, read once; bodies are unpacked on demand. Invalid parts count as missing."""

    def __init__(self, path: Path) -> None:
        self._run = path.stem
        self._bodies: dict[str, _Body] = {}
        self._tapes: dict[str, RecordedTape] = {}
        attempts: dict[str, list[RecordedExchange]] = {}
        with path.open("rb") as file:
            for line in _lines(file):
                if line.cassette is not UNSET and line.cassette > VERSION:
                    break  # a later version: the meaning of its lines is unknown
                if isinstance(line.body, _Body):
                    self._bodies.setdefault(line.body.digest, line.body)
                elif isinstance(line.exchange, RecordedExchange):
                    attempts.setdefault(line.attempt, []).append(line.exchange)
                elif isinstance(line.end, _End):
                    self._ended(line.end, attempts.pop(line.attempt, []))

    def _ended(self, end: _End, exchanges: list[RecordedExchange]) -> None:
        ordered = tuple(sorted(exchanges, key=lambda exchange: exchange.number))
        if len(ordered) == end.count and tape_of(end.case_id, end.trial, ordered) == end.tape:
            source = source_of(self._run, end.trial, end.tape)
            self._tapes[end.tape] = RecordedTape(source, end.trial, end.case_id, ordered, self)

    def tape(self, name: str) -> RecordedTape | None:
        """Return the tape with this digest; None if it is missing or incomplete."""
        return self._tapes.get(name)

    @cached_property
    def shared_ids(self) -> frozenset[str]:
        """Ids sent by more than one trial, so that no trial generated them."""
        seen: set[str] = set()
        shared: set[str] = set()
        for tape in self._tapes.values():
            own: set[str] = set()
            for exchange in tape.exchanges:
                own.update(exchange.ids)
            shared |= own & seen
            seen |= own
        return frozenset(shared)

    def body(self, name: str, depth: int = 0) -> bytes | None:
        """Return the body with this digest; None if it is missing or its content does not match."""
        kept = self._bodies.get(name)
        if kept is None or not 0 <= kept.size <= MAX_ANSWER_BYTES or depth > 1:
            return None
        model = self.body(kept.after, depth + 1) if kept.after else b""
        if model is None:
            return None
        try:
            data = _unpack(base64.b64decode(kept.data, validate=True), model, kept.size)
        except (ValueError, zlib.error):
            return None
        return data if digest(data) == name else None


def _lines(file: Any) -> Iterator[_Line]:
    """Yield the readable lines; truncated lines and those of later versions are left out."""
    file.seek(0)
    rest = b""
    while piece := file.read(1 << 20):
        *whole, rest = (rest + piece).split(b"\n")
        yield from _decoded(whole)
        if len(rest) > MAX_LINE_BYTES:
            return
    yield from _decoded([rest])


def _decoded(lines: Iterable[bytes]) -> Iterator[_Line]:
    for line in lines:
        if not line:
            continue
        try:
            yield _LINE.decode(line)
        except (msgspec.DecodeError, RecursionError):
            continue


def _pack(data: bytes, model: bytes) -> bytes:
    packer = zlib.compressobj(9, zdict=model[-_WINDOW:]) if model else zlib.compressobj(9)
    return packer.compress(data) + packer.flush()


def _unpack(data: bytes, model: bytes, size: int) -> bytes:
    unpacker = zlib.decompressobj(zdict=model[-_WINDOW:]) if model else zlib.decompressobj()
    found = unpacker.decompress(data, size + 1)
    if len(found) != size or not unpacker.eof:
        raise ValueError("its size is wrong")
    return found


class Library(Struct):
    """The recordings in a folder, each read on first use."""

    folder: Path
    _read: dict[str, Cassette | None] = field(default_factory=dict)

    def tape(self, source: str) -> RecordedTape | None:
        """Return the tape of this name; None if it is missing or incomplete."""
        cassette = self.cassette(source.partition(":")[0])
        if cassette is None:
            return None
        return cassette.tape(source.rpartition(":")[2])

    def cassette(self, run: str) -> Cassette | None:
        """Return the cassette of a run; None if it is missing or unreadable."""
        if run not in self._read:
            self._read[run] = self._open(run)
        return self._read[run]

    def _open(self, run: str) -> Cassette | None:
        path = path_of_run(self.folder, run)
        try:
            if path is None or path.is_symlink() or not 0 < path.stat().st_size <= MAX_FILE_BYTES:
                return None
            return Cassette(path)
        except OSError:
            return None


def as_replayed(exchange: RecordedExchange, number: int) -> RecordedExchange:
    """Return the exchange for a later trial that was answered from it."""
    return replace(exchange, number=number, replayed=True)
