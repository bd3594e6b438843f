"""Keeps the folder of recordings within its bound: the oldest go, and none that anybody may still want to replay."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Set
from pathlib import Path

from msgspec import Struct

from gate.security import files
from gate.world.cassette import owner_of, path_of_run

YOUNG_SECONDS = 24 * 3600
"""A recording that was written to so lately may be of a run that goes on, or whose record is yet to be stored."""


class Pruned(Struct, frozen=True):
    """The files that were removed from a folder, and the size of a project's own that are left."""

    files: int = 0
    bytes: int = 0
    left_bytes: int = 0


def owner_name(configuration: Path) -> str:
    """By what the recordings of a configuration are known among those of others in one folder."""
    return hashlib.sha256(str(configuration.resolve()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def prune(folder: Path, owner: str, most_bytes: int, vouched: Callable[[], Set[str]], now: float) -> Pruned:
    """Removes the oldest recordings of an owner until they take ``most_bytes`` at most.

    Never one that is of another owner, that was written to within a day of ``now`` (Unix time), or whose run is among
    ``vouched``, which is asked only where something is to be removed. What cannot be removed stays.
    """
    own = sorted(_recordings(folder, owner))
    left = sum(size for _, size, _ in own)
    if left <= most_bytes:
        return Pruned(left_bytes=left)
    kept, gone, freed = vouched(), 0, 0
    for written, size, path in own:
        if left - freed <= most_bytes:
            break
        if path.stem in kept or now - written < YOUNG_SECONDS:
            continue
        try:
            files.remove(path)
        except OSError:
            continue
        gone, freed = gone + 1, freed + size
    return Pruned(gone, freed, left - freed)


def _recordings(folder: Path, owner: str) -> list[tuple[float, int, Path]]:
    """When each of an owner's recordings was last written to, its size in bytes, and where it is."""
    found = []
    for path in folder.glob("*.jsonl"):
        try:
            if path.is_symlink() or path_of_run(folder, path.stem) != path or owner_of(path) != owner:
                continue
            status = path.stat()
        except OSError:
            continue
        found.append((status.st_mtime, status.st_size, path))
    return found
