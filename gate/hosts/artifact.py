"""Files from an untrusted archive: read in memory within bounds, never unpacked."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gate.errors import UntrustedError

MAX_ARCHIVE_BYTES = 50_000_000
"""The largest archive to download, in bytes."""
MAX_MEMBER_BYTES = 200_000_000
"""The largest file to read from an archive, in bytes."""
MAX_RATIO = 200
"""Maximum ratio of a file's size to its compressed size; repetitive JSON reaches several dozen."""
MAX_MEMBERS = 1_000


_UNREADABLE = (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, OSError, ValueError)
"""The errors of a damaged archive."""


def read_member(archive: bytes, name: str, where: str) -> bytes:
    """Return the content of the only member called ``name``. The other members are ignored.

    Raises:
        UntrustedError: it is not an archive, or the member is missing, duplicated, encrypted or too large.
    """
    with _opened(io.BytesIO(archive), where) as opened:
        return _read(opened, name, where)


def members(archive: bytes, where: str) -> list[str]:
    """Return the names of the files, each once. Raises like `read_member`."""
    with _opened(io.BytesIO(archive), where) as opened:
        return list(dict.fromkeys(opened.namelist()))


def record_members(path: Path) -> Iterator[tuple[str, bytes | UntrustedError]]:
    """Yield the JSON Lines files in an archive on disk, one at a time: the content, or the reason for refusing it.

    Raises:
        UntrustedError: it is not an archive, or has too many files.
    """
    with _opened(path, str(path)) as opened:
        for name in dict.fromkeys(opened.namelist()):
            if not name.endswith(".jsonl"):
                continue
            try:
                content: bytes | UntrustedError = _read(opened, name, str(path))
            except UntrustedError as error:
                content = error
            except _UNREADABLE as error:
                content = UntrustedError(f"{name!r} cannot be read: {error}", where=str(path))
            yield name, content


@contextmanager
def _opened(archive: Path | io.BytesIO, where: str) -> Iterator[zipfile.ZipFile]:
    """Open an archive. Raises UntrustedError if it has too many files, or if it turns out to be damaged."""
    try:
        with zipfile.ZipFile(archive) as opened:
            found = len(opened.infolist())
            if found > MAX_MEMBERS:
                raise UntrustedError(f"{found:,} files, at most {MAX_MEMBERS:,} are read", where=where)
            yield opened
    except _UNREADABLE as error:
        raise UntrustedError(f"not a readable archive: {error}", where=where) from error


def _read(opened: zipfile.ZipFile, name: str, where: str) -> bytes:
    found = [member for member in opened.infolist() if member.filename == name]
    if len(found) != 1:
        raise UntrustedError(f"expected one file {name!r}, found {len(found)}", where=where)
    member = found[0]
    if member.flag_bits & 0x1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UntrustedError(f"{name!r} is encrypted, or compressed in an unusual way", where=where)
    if member.file_size > min(MAX_MEMBER_BYTES, MAX_RATIO * max(member.compress_size, 1)):
        raise UntrustedError(f"{name!r} grows from {member.compress_size:,} to {member.file_size:,} bytes", where=where)
    with opened.open(member) as stream:
        content = stream.read(member.file_size + 1)  # the sizes above are only claims
    if len(content) != member.file_size:
        raise UntrustedError(f"{name!r} does not have its stated size", where=where)
    return content
