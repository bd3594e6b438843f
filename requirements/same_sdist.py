"""Makes a source distribution the same byte for byte whenever and by whomever it is built: ``same_sdist.py FILE``.

Setuptools keeps when and by whom each file was written, and gzip when it packed them. Here every file has the time that
``SOURCE_DATE_EPOCH`` states, no owner, one of two modes, and its place by name.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import tarfile
from pathlib import Path


def same(data: bytes, epoch: int) -> bytes:
    """The archive without what differs from build to build.

    Raises:
        ValueError: it holds something else than files and folders, or one name twice.
        tarfile.TarError, OSError: it is no archive.
    """
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as old,
        gzip.GzipFile("", "wb", 9, packed, mtime=epoch) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        members = sorted(old.getmembers(), key=lambda member: member.name)
        for member, name in zip(members, [member.name for member in members[1:]] + [""], strict=True):
            if not (member.isfile() or member.isdir()) or member.name == name:
                raise ValueError(f"{member.name!r} is no file or folder, or is there twice")
            found = tarfile.TarInfo(member.name)
            found.type, found.size, found.mtime = member.type, member.size, epoch
            found.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(found, old.extractfile(member))
    return packed.getvalue()


if __name__ == "__main__":
    path = Path(sys.argv[1])
    try:
        path.write_bytes(same(path.read_bytes(), int(os.environ["SOURCE_DATE_EPOCH"])))
    except (KeyError, ValueError, OSError, tarfile.TarError) as error:
        sys.exit(f"same_sdist: {error!r}")
