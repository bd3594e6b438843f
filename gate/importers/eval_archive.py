"""Reads Inspect's ``.eval`` files: a zip of JSON, packed with zstandard, equivalent to ``inspect log dump``.

An archive is untrusted: the number of members and their unpacked size are bounded during unpacking, whatever its table
of contents claims. Only the header and the samples are unpacked.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from gate.errors import ConfigError
from gate.formats.json_text import parse_json
from gate.security.limits import MAX_DOCUMENT_BYTES

ZSTANDARD = 93
"""The method's number in the zip format."""
MAX_MEMBERS = 200_000
INSTALL = "pip install 'agent-gate[inspect]', or write JSON: `inspect log dump FILE.eval > log.json`"
_HEADER, _STARTED = "header.json", "_journal/start.json"
_SAMPLE = re.compile(r"samples/.*\.json")
_LOCAL = struct.Struct("<4s22xHH")
"""The layout of a member's local header: signature, length of the name, and length of the extra field."""
_CHUNK = 1_000_000


def read_eval_archive(path: Path, where: str) -> dict[str, Any]:
    """Return the log in an archive, with its samples in the order of their names.

    Raises:
        ConfigError: it is not such an archive, is damaged or too large, or zstandard is not installed.
    """
    try:
        with path.open("rb") as file, ZipFile(file) as archive:
            return _Archive(archive, file, where).log()
    except (BadZipFile, struct.error, zlib.error, NotImplementedError, EOFError) as error:
        raise ConfigError(f"not an archive of Inspect: {error}", where=where) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", where=where) from None


class _Archive:
    def __init__(self, archive: ZipFile, file: IO[bytes], where: str) -> None:
        self._file, self._archive, self._where = file, archive, where
        self._members = {info.filename: info for info in archive.infolist()}
        self._left = MAX_DOCUMENT_BYTES
        if len(archive.infolist()) > MAX_MEMBERS:
            raise ConfigError(f"more than {MAX_MEMBERS:,} members", where=where)
        if len(self._members) < len(archive.infolist()):
            raise ConfigError("a member occurs twice", where=where)

    def log(self) -> dict[str, Any]:
        if _HEADER not in self._members:
            if _STARTED not in self._members:
                raise ConfigError(f"not an archive of Inspect: it has no {_HEADER}", where=self._where)
            hint = "run it to its end: what a log lacks was never measured"
            raise ConfigError("the log is unfinished", where=self._where, hint=hint)
        header = self._json(self._members[_HEADER])
        if not isinstance(header, dict):
            raise ConfigError(f"{_HEADER}: expected a mapping", where=self._where)
        names = sorted(name for name in self._members if _SAMPLE.fullmatch(name))
        return {**header, "samples": [self._json(self._members[name]) for name in names]}

    def _json(self, info: ZipInfo) -> Any:
        found, checksum = bytearray(), 0
        for chunk in self._unpacked(info):
            self._left -= len(chunk)
            if self._left < 0:
                raise ConfigError(f"unpacks to more than {MAX_DOCUMENT_BYTES:,} bytes", where=self._where)
            checksum = zlib.crc32(chunk, checksum)
            found += chunk
        where = f"{self._where}: {info.filename}"
        if checksum != info.CRC:
            raise ConfigError("damaged: its checksum is wrong", where=where)
        try:
            return parse_json(found.decode(), where, allow_nan=True)
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ConfigError(f"not JSON: {error}", where=where) from None

    def _unpacked(self, info: ZipInfo) -> Iterator[bytes]:
        """Yield a member piece by piece, whatever size it claims."""
        if info.compress_type == ZSTANDARD:
            yield from _zstandard(self._packed(info), self._where)
        elif info.compress_type in (ZIP_STORED, ZIP_DEFLATED):
            with self._archive.open(info) as member:
                while chunk := member.read(_CHUNK):
                    yield chunk
        else:
            raise ConfigError(f"{info.filename} is compressed with method {info.compress_type}", where=self._where)

    def _packed(self, info: ZipInfo) -> bytes:
        """Return a member's packed bytes; `zipfile` refuses even those if it does not know the method."""
        self._file.seek(info.header_offset)
        mark, name, extra = _LOCAL.unpack(self._file.read(_LOCAL.size))
        if mark != b"PK\x03\x04":
            raise BadZipFile(f"{info.filename} is not where it should be")
        self._file.seek(name + extra, 1)
        return self._file.read(info.compress_size)


def _zstandard(packed: bytes, where: str) -> Iterator[bytes]:
    try:
        import zstandard  # an optional dependency
    except ImportError:
        raise ConfigError(
            "its members are compressed with zstandard, which is not installed", where=where, hint=INSTALL
        ) from None

    try:
        limit = 1 << 27  # bytes of a window; Inspect's files need 8 MB at most
        yield from zstandard.ZstdDecompressor(max_window_size=limit).read_to_iter(packed, write_size=_CHUNK)
    except zstandard.ZstdError as error:
        raise BadZipFile(str(error)) from None
