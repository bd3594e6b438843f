"""JavaScript's regular expressions as Python's, and texts as patterns: the assertions that need one of these."""

from __future__ import annotations

import re
from collections.abc import Sequence

_ASCII = re.compile(r"\\[dDwWbB]")
_NAMED = re.compile(r"\(\?<(?=[A-Za-z_])")
_REFERENCE = re.compile(r"\\k<(\w+)>")


def from_javascript(pattern: str) -> str | None:
    r"""The same pattern for Python; None if it is none there, or holds for an empty answer.

    ``$`` is the end of the text alone, named groups are spelt ``(?P<name>…)``, and ``\d`` and ``\w`` mean ASCII.
    """
    found = _REFERENCE.sub(r"(?P=\1)", _NAMED.sub("(?P<", _with_ends(pattern)))
    if _ASCII.search(found):
        found = f"(?a:{found})"
    return found if usable(found) else None


def usable(pattern: str) -> bool:
    """Whether Python takes the pattern, and an empty answer does not satisfy it."""
    try:
        return re.compile(pattern).search("") is None
    except (re.error, OverflowError, RecursionError):
        return False


def _with_ends(pattern: str) -> str:
    r"""``$`` outside classes as ``\Z``."""
    found, inside, index = list[str](), False, 0
    while index < len(pattern):
        char = pattern[index]
        if char == "\\":
            found.append(pattern[index : index + 2])
            index += 2
            continue
        inside = char == "[" or (inside and char != "]")
        found.append(r"\Z" if char == "$" and not inside else char)
        index += 1
    return "".join(found)


def whole(text: str) -> str:
    """The answer is this text."""
    return rf"\A{re.escape(text)}\Z"


def start(text: str) -> str:
    """The answer begins with this text."""
    return rf"\A{re.escape(text)}"


def any_of(texts: Sequence[str], *, ignore_case: bool) -> str:
    """One of the texts is in the answer."""
    return f"({'?i' if ignore_case else '?'}:{'|'.join(re.escape(text) for text in texts)})"


def never(pattern: str) -> str:
    """The pattern is found nowhere in an answer, which is not empty."""
    return rf"\A(?![\s\S]*?(?:{pattern}))[\s\S]"
