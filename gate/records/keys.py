"""Names of stored records: by suite and by commit."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import BinaryIO

from msgspec import Struct

from gate.records.model import Header

UNCOMMITTED = "uncommitted"
"""Placeholder for the commit of a record measured outside a repository."""


class Stored(Struct, frozen=True):
    """The bytes of one stored record, as they are; nobody has looked into them."""

    where: str
    """For people."""
    open: Callable[[], BinaryIO]
    """Raises `BaselineError` or `OSError` if they cannot be read."""


def suite_key(suite_id: str) -> str:
    """A folder name for a suite: readable, and unique by a digest, regardless of the id."""
    slug = re.sub(r"[^a-z0-9]+", "-", suite_id.lower())[:40].strip("-")
    digest = hashlib.sha256(suite_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{slug}-{digest}" if slug else digest


def commit_key(header: Header) -> str:
    """Return the file name of a record, without suffix."""
    return key_of(header.commit)


def key_of(commit: str | None) -> str:
    """Return the name of a commit's record, without suffix."""
    return commit or UNCOMMITTED
