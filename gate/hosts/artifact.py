"""Files out of an untrusted archive: read in memory, bounded, never unpacked."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from gate.errors import UntrustedError

MAX_ARCHIVE_BYTES = 50_000_000
"""The largest archive that is downloaded."""
MAX_MEMBER_BYTES = 200_000_000
"""The largest file that is read out of one."""
MAX_RATIO = 200
"""Most times that a file may be larger than its compressed form; repetitive JSON reaches some dozens."""
MAX_MEMBERS = 1_000


def read_member(archive: bytes, name: str, where: str) -> bytes:
    """The content of the one member called ``name``. The other members are ignored.

    Raises:
        UntrustedError: not an archive, no such member or several, encrypted, or larger than it may be.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            return _read(opened, name, where)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, OSError, ValueError) as error:
        raise UntrustedError(f"not a readable archive: {error}", where=where) from error


def _read(opened: zipfile.ZipFile, name: str, where: str) -> bytes:
    members = opened.infolist()
    if len(members) > MAX_MEMBERS:
        raise UntrustedError(f"{len(members):,} files, at most {MAX_MEMBERS:,} are read", where=where)
    found = [member for member in members if member.filename == name]
    if len(found) != 1:
        raise UntrustedError(f"expected one file {name!r}, found {len(found)}", where=where)
    member = found[0]
    if member.flag_bits & 0x1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UntrustedError(f"{name!r} is encrypted, or compressed in an unusual way", where=where)
    if member.file_size > min(MAX_MEMBER_BYTES, MAX_RATIO * max(member.compress_size, 1)):
        raise UntrustedError(f"{name!r} grows from {member.compress_size:,} to {member.file_size:,} bytes", where=where)
    with opened.open(member) as stream:
        content = stream.read(member.file_size + 1)  # the sizes above are only claimed
    if len(content) != member.file_size:
        raise UntrustedError(f"{name!r} does not have its stated size", where=where)
    return content


def members(archive: bytes, where: str) -> list[str]:
    """The names of its files, each once. Raises as `read_member`."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            found = opened.infolist()
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, ValueError) as error:
        raise UntrustedError(f"not a readable archive: {error}", where=where) from error
    if len(found) > MAX_MEMBERS:
        raise UntrustedError(f"{len(found):,} files, at most {MAX_MEMBERS:,} are read", where=where)
    return list(dict.fromkeys(member.filename for member in found))


def record_members(path: Path) -> Iterator[tuple[str, bytes | UntrustedError]]:
    """The JSON Lines files in an archive on disk, one at a time, each with its content or why it is refused.

    Raises:
        UntrustedError: not an archive, or one of too many files.
    """
    where = str(path)
    try:
        with zipfile.ZipFile(path) as opened:
            members = opened.infolist()
            if len(members) > MAX_MEMBERS:
                raise UntrustedError(f"{len(members):,} files, at most {MAX_MEMBERS:,} are read", where=where)
            for name in dict.fromkeys(m.filename for m in members if m.filename.endswith(".jsonl")):
                yield name, _read_or_refused(opened, name, where)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, ValueError) as error:
        raise UntrustedError(f"not a readable archive: {error}", where=where) from error


def _read_or_refused(opened: zipfile.ZipFile, name: str, where: str) -> bytes | UntrustedError:
    try:
        return _read(opened, name, where)
    except UntrustedError as error:
        return error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, OSError, ValueError) as error:
        return UntrustedError(f"{name!r} cannot be read: {error}", where=where)
