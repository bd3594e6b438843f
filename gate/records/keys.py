"""Names of stored records: by suite and by commit."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import BinaryIO

from msgspec import Struct

from gate.records.model import Header

UNCOMMITTED = "uncommitted"
"""Placeholder for the commit of a record that was measured outside a repository."""


MISPLACED = "it belongs to another suite or commit than its name says (save it again from a run of this suite)"


class Stored(Struct, frozen=True):
    """The raw bytes of one stored record, not yet read."""

    where: str
    """Its place, for display."""
    open: Callable[[], BinaryIO]
    """Opens the bytes. Raises `BaselineError` or `OSError` if they cannot be read."""
    name: tuple[str, str] | None = None
    """The suite's folder and the commit that its name in the store says; None outside a store."""

    def is_misplaced(self, header: Header) -> bool:
        """True if it has the name of another record; then nothing is ever compared with it."""
        return self.name not in (None, (suite_key(header.suite_id), commit_key(header)))


def suite_key(suite_id: str) -> str:
    """Return a folder name for a suite: readable, and made unique by a digest, for any id."""
    slug = re.sub(r"[^a-z0-9]+", "-", suite_id.lower())[:40].strip("-")
    digest = hashlib.sha256(suite_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{slug}-{digest}" if slug else digest


def commit_key(header: Header) -> str:
    """Return the file name of a record, without its suffix."""
    return key_of(header.commit)


def key_of(commit: str | None) -> str:
    """Return the file name of a commit's record, without its suffix."""
    return commit or UNCOMMITTED
