"""Converts JavaScript's regular expressions to Python's, and texts to patterns, for assertions that need them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

_SPACE = r"\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
r"""The meaning of ``\s`` in JavaScript."""
_WRITTEN = {".": r"[^\n\r\u2028\u2029]", "$": r"\Z", r"\s": f"[{_SPACE}]", r"\S": f"[^{_SPACE}]", "[^]": r"[\s\S]"}
"""Parts that mean something else in Python, each with its counterpart there."""
_ESCAPE = r"\\(?:[dDwWbBnrtvf0]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[1-9]|[^\w\s])"
_TOKEN = re.compile(
    rf"(?P<repeat>(?:[*+?]|\{{\d+(?:,\d*)?\}})\??)"
    r"|(?P<group>\((?:\?(?::|=|!|<=|<!|<(?P<name>[A-Za-z_]\w*)>)|(?!\?)))"
    rf"|(?P<same>[.$]|\\[sS]|\[\^\])|(?P<reference>\\k<(?P<of>[A-Za-z_]\w*)>)|(?P<escape>{_ESCAPE})"
    r"|\[(?P<not>\^?)(?P<members>(?:\\[\s\S]|[^\]\\])+)\]|(?P<char>[^\\(\[{]|\{(?!(?:\d+(?:,\d*)?|,\d*)\}))"
)
"""One part of a pattern. It matches nothing that is invalid in JavaScript, or not known to be equal in Python."""
_MEMBER = re.compile(rf"(?P<space>\\s)|(?P<escape>(?!\\[B1-9]){_ESCAPE})|(?P<sign>[\[&~|])|(?P<char>[^\\])")
_ASCII = re.compile(r"\\[dDwWbB]")


def from_javascript(pattern: str) -> str | None:
    r"""Return the pattern for Python; None if it cannot be translated exactly, or matches an empty answer.

    Differences are rewritten for Python: ``$`` is only the end of the text, ``.`` never matches a line end, ``\s`` is
    any space, and ``\d``, ``\w`` and ``\b`` are ASCII. Anything that is not known to be equivalent is refused.
    """
    found, place, repeats, is_ascii = list[str](), 0, False, False
    while place < len(pattern):
        token = _TOKEN.match(pattern, place)
        if token is None or (token["repeat"] and repeats):
            return None  # a second repeat is possessive in Python, and an error in JavaScript
        text = token[0]
        if token["members"]:
            members = _members(token["members"])
            if members is None:
                return None
            text = f"[{token['not']}{members}]"
        elif token["name"]:
            text = f"(?P<{token['name']}>"
        elif token["of"]:
            text = f"(?P={token['of']})"
        found.append(_WRITTEN.get(text, text))
        is_ascii = is_ascii or _is_ascii(token)
        place, repeats = token.end(), bool(token["repeat"])
    whole = "".join(found)
    if is_ascii:
        whole = f"(?a:{whole})"
    return whole if is_usable(whole) else None


def _is_ascii(token: re.Match[str]) -> bool:
    """True for an escape, also within a class of characters, whose meaning depends on the alphabet."""
    escapes = [token[0]]
    if token["members"]:
        escapes = [member[0] for member in _MEMBER.finditer(token["members"])]
    return any(map(_ASCII.fullmatch, escapes))


def _members(text: str) -> str | None:
    """Return the members of a class of characters for Python; None if one of them cannot be translated."""
    found, place = list[str](), 0
    while place < len(text):
        member = _MEMBER.match(text, place)
        if member is None:
            return None
        if member["space"]:
            found.append(_SPACE)
        elif member["sign"]:
            found.append(f"\\{member[0]}")
        else:
            found.append(member[0])
        place = member.end()
    return "".join(found)


def is_usable(pattern: str) -> bool:
    """True if Python accepts the pattern and an empty answer does not match it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return re.compile(pattern).search("") is None
    except (re.error, OverflowError, RecursionError, Warning):
        return False


def whole(text: str) -> str:
    """Return a pattern for an answer that equals this text."""
    return rf"\A{re.escape(text)}\Z"


def start(text: str) -> str:
    """Return a pattern for an answer that begins with this text."""
    return rf"\A{re.escape(text)}"


def any_of(texts: Sequence[str], *, ignore_case: bool) -> str:
    """Return a pattern for an answer that contains one of the texts."""
    choices = "|".join(map(re.escape, texts))
    if ignore_case:
        return f"(?i:{choices})"
    return f"(?:{choices})"
