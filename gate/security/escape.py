"""Makes untrusted text harmless for the place where it is shown: Markdown, HTML, XML, terminals, workflow commands.

Knows the syntax of those places, not the content. Every function accepts any string, including lone surrogates, and
never raises. Characters that cannot be shown become visible (``␛``, ``⟨U+202E⟩``) instead of disappearing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

MARKDOWN_LIMIT = 300
"""The most characters of one piece of outside text in running Markdown, before escaping."""
FENCE_LIMIT = 20_000
"""The most characters of one fenced block, before escaping."""

BREAK = "\u200b"
"""Zero-width space: hosts link mentions and references after decoding entities, so only a character stops them."""

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u180e\u200b\u2028\u2029\u2060-\u2064\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e0fff"
)
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(17))
    + _BIDI
    + _INVISIBLE
    + "]"
)


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if 0x80 <= code <= 0x9F or 0xD800 <= code <= 0xDFFF or 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE:
        return "\ufffd"
    return f"⟨U+{code:04X}⟩"


def in_json(text: str) -> str:
    """Return equivalent JSON without line breaks and with invisible characters escaped."""
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_coded, text)


def _coded(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def unicode_only(value: Any) -> Any:
    """Return a JSON value without lone surrogates, which are not Unicode text: each becomes a question mark."""
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {unicode_only(key): unicode_only(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [unicode_only(item) for item in value]
    return value


def visible(text: str) -> str:
    """Return the text with control, direction-changing and invisible characters made visible; keeps newlines and
    tabs."""
    if text.isascii() and text.isprintable():
        return text  # most texts
    return _UNSAFE.sub(_visible, text.replace("\r\n", "\n"))


def one_line(text: str, limit: int) -> str:
    """Return the text on one line: white space collapsed, newlines shown as ``⏎``, cut to about ``limit``
    characters."""
    if len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip(" ")  # most texts: nothing below would change them
    cut = text[: limit + 1]
    flat = re.sub(r"[^\S\n]+", " ", visible(cut.strip()))
    flat = re.sub(r" ?\n[ \n]*", " ⏎ ", flat).strip(" ")
    if len(text) > limit:
        return flat[:limit].rstrip(" ") + f"… ({len(text) - limit:,} more characters)"
    return flat if len(flat) <= limit else flat[:limit].rstrip(" ") + "…"


# --- Markdown -------------------------------------------------------------------------------------

_AUTOLINKS = re.compile(
    r"""
      (?P<sigil>@(?=\S)|[\#!$%&~](?=[\w"]))      # mentions, mail addresses (me@-host.x too), references, labels
    | (?P<ticket>\bGH-(?=\d))                    # GH-12
    | (?P<emoji>:(?=[\w+-]+:))                   # :tada:
    | (?P<scheme>[:/](?=//|/))                   # https://x, //x
    | (?P<www>www(?=\.))                         # www.x
    | (?P<mail>(?:mailto|xmpp)(?=:))
    | (?P<commit>\b[0-9a-f]{7,40}\b)             # a commit's hash: from 7 digits
    """,
    re.VERBOSE | re.IGNORECASE,
)
_MARKDOWN = {ord(c): "\\" + c for c in "\\`*_{}[]#!~$^"} | {
    ord("<"): "&lt;",
    ord(">"): "&gt;",
    ord("&"): "&amp;",
    ord("|"): "&#124;",
}
_LINE_START = re.compile(r"^(?:[-+=/:]|(?P<number>\d{1,9})(?=[.)](?: |$)))")


def _unlinked(text: str) -> str:
    """Return the text with a zero-width space in everything that a host turns into a link, mention or emoji."""

    def broken(match: re.Match[str]) -> str:
        return re.sub(r"(.{6})(?=.)", rf"\1{BREAK}", match[0]) if match["commit"] else match[0] + BREAK

    return _AUTOLINKS.sub(broken, text)


def markdown(text: str, limit: int = MARKDOWN_LIMIT) -> str:
    """Return running text on one line, without markup, links, mentions, references, emoji or table borders."""
    escaped = _unlinked(one_line(text, limit)).translate(_MARKDOWN)
    return _LINE_START.sub(lambda m: m["number"] + "\\" if m["number"] else "\\" + m[0], escaped)


def markdown_prose(text: str, limit: int = MARKDOWN_LIMIT) -> str:
    """Return running text as `markdown` does, with the parts between backticks as code."""
    parts = one_line(text, limit).split("`")
    if len(parts) % 2 == 0:  # an unpaired backtick
        return markdown(text, limit)
    shown = []
    for at, part in enumerate(parts):
        shown.append(spaced(part, markdown_code if at % 2 else markdown))
    return "".join(shown)


def spaced(text: str, escaped: Callable[[str], str]) -> str:
    """Return a part of a line, escaped, with the spaces at its ends."""
    shown = escaped(text)
    if text.startswith(" "):
        shown = f" {shown}"
    if text[1:].endswith(" "):
        shown = f"{shown} "
    return shown


def markdown_code(text: str, limit: int = MARKDOWN_LIMIT) -> str:
    """Return a code span on one line, for running text and table cells alike; hosts link nothing inside it."""
    flat = one_line(text, limit)
    if not flat:
        return ""
    if "`" in flat or "|" in flat:  # hosts differ on these in a table cell's code span
        return f"<code>{_unlinked(flat).translate(_MARKDOWN)}</code>"
    return f"`{flat}`"


def markdown_fence(text: str, info: str = "", limit: int = FENCE_LIMIT) -> str:
    """Return a fenced block whose fence is longer than any run of backticks in it. Goes on separate lines."""
    shown = visible(text[:limit])
    if len(text) > limit:
        shown += f"\n… ({len(text) - limit:,} more characters)"
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", shown)), 3)
    return f"{fence}{info}\n{shown}\n{fence}"


# --- everything else ------------------------------------------------------------------------------

_RUNNER_COMMAND = re.compile(r"::(?=[a-z]{3,}(?:-[a-z]+)*(?:\s|::))", re.IGNORECASE)


def console(text: str, limit: int = 2_000) -> str:
    """Return text on one line for a terminal or a CI log: no escape sequence, no workflow command. Not rich markup."""
    flat = one_line(text, limit)
    return _RUNNER_COMMAND.sub(": :", flat).replace("##[", "## [")


def html(text: str) -> str:
    """Return text for an HTML element or a quoted attribute; keeps newlines."""
    from html import escape  # weight: it brings all named entities, and few reports are HTML

    return escape(visible(text))


def xml_text(text: str) -> str:
    """Return text with only the characters that XML 1.0 allows; keeps newlines. The writer escapes ``<`` and ``&``."""
    return visible(text)


def workflow_data(text: str) -> str:
    """Return the message of a workflow command: ``%``, CR and LF escaped."""
    encodable = text.encode("utf-8", "replace").decode("utf-8")
    return encodable.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def workflow_property(text: str) -> str:
    """Return a property of a workflow command: escaped like the message, and also ``:`` and ``,``."""
    return workflow_data(text).replace(":", "%3A").replace(",", "%2C")
