"""Keeps the folder of recordings within its size limit: removes the oldest that no stored record may need."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Set
from pathlib import Path

from gate.security import files
from gate.world.cassette import owner_of, path_of_run

MOST_BYTES = 1_000_000_000
"""Largest size of all recordings of a configuration."""
YOUNG_SECONDS = 24 * 3600
"""A more recently written recording may belong to a run in progress, or to a record that is not stored yet."""


def owner_name(configuration: Path) -> str:
    """Return the name that marks the recordings of a configuration in a shared folder."""
    return hashlib.sha256(str(configuration.resolve()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def prune(
    folder: Path, owner: str, most_bytes: int, vouched: Callable[[], Set[str]], now: float
) -> tuple[int, int, int]:
    """Remove the oldest recordings of an owner until they take ``most_bytes`` at most.

    Returns the number of removed files, their size, and the size of the owner's remaining recordings.
    Keeps those written within a day of ``now`` (Unix time), and those whose run is in ``vouched``, which is called only
    if something must be removed. Files that cannot be removed stay.
    """
    own = sorted(_recordings(folder, owner))
    left = sum(size for _, size, _ in own)
    if left <= most_bytes:
        return 0, 0, left
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
    return gone, freed, left - freed


def _recordings(folder: Path, owner: str) -> list[tuple[float, int, Path]]:
    """Return the time of the last write, the size in bytes and the path of each of an owner's recordings."""
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
