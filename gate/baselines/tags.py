"""Release tags: the package of a tag, and the difference between a release and a release candidate."""

from __future__ import annotations

import re

_VERSION = re.compile(r"(?P<series>.*?)(?<!\d)(?P<version>\d++(\.\d++)++|(?<=v)\d++)(?P<rest>.*)$")
"""A tag with a version; the text after the numbers makes it a candidate, a build or a post-release."""


def series_of(tag: str) -> str | None:
    """Return the part of a tag before its version, such as ``agent-v`` in ``agent-v1.2.0``; None for a tag without
    one."""
    found = _VERSION.match(tag)
    return found["series"] if found else None


def is_candidate(tag: str) -> bool:
    """True if the tag marks a release candidate, such as ``v2.0.0-rc.1``: it may have failed, and is not in
    production."""
    found = _VERSION.match(tag)
    return found is not None and bool(found["rest"]) and not found["rest"].startswith(("+", ".post", "-post"))
