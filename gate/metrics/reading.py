"""Reads a text as a person does, whatever its spelling: every check of what an answer must not say reads it so."""

from __future__ import annotations

import html
import re
import unicodedata
from functools import lru_cache

_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_MARKS = re.compile(
    r"(?<!\*)\*\*(?!\*)|(?<!_)__(?!_)|~~|`"
    r"|</?(?:a|b|i|u|s|em|strong|mark|code|kbd|span|small|sub|sup|del|ins|font)>|^[ \t]*(?:>[ \t]?)+",
    re.IGNORECASE | re.MULTILINE,
)
"""The marks of bold text, code and quotations, of Markdown and HTML; a row of asterisks hides something, which is no
mark."""
_BREAK = re.compile(r"<br\s*/?>|\\$", re.IGNORECASE | re.MULTILINE)
_TAG = re.compile(r"</?[a-z!]", re.IGNORECASE)
_EMPHASIS = re.compile(r"(?<![\w*_])(\*{1,3}|_{1,3})(?=\S)([^*_\n]+)(?<=\S)\1(?![\w*_])")
_LINK = re.compile(r"\[([^\[\]\n]+)\](?:\((?:[^()\n]|\([^()\n]*\))*\)|\[[^\[\]\n]*\])")
"""A link, of which its reader sees the text: with an address and perhaps a title, or with a reference."""
_ATTRIBUTES = re.compile(r"<([a-z]+)\s[^<>]*>", re.IGNORECASE)
_SPACES = re.compile(r"\s+")
_LIKE = dict.fromkeys("‘’‚‛′ʹʼ´", "'") | dict.fromkeys("“”„‟″«»", '"') | dict.fromkeys("−⁻₋⁃", "-")
"""Signs that look like another; besides these, all punctuation of the category of dashes."""
_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Letters without a glyph and selectors of variants; besides these, all controls and format characters."""


class ShownText:
    """A text as its reader sees it."""

    def __init__(self, text: str) -> None:
        self._exact = {text, unicodedata.normalize("NFKC", text)}
        self._spellings = {text, *(_SPACES.sub(" ", one) for one in spellings(text))}
        self._folded = {spelling.casefold() for spelling in self._spellings}

    def says(self, phrase: str, *, ignore_case: bool = False) -> bool:
        """True if the phrase is in the text, whatever the spelling of both.

        A phrase without a letter or digit, such as a dash, or with a tag is about the spelling: only this spelling is
        found.
        """
        plain = wording(phrase)
        if _TAG.search(phrase) or not any(map(str.isalnum, plain)):
            if ignore_case:
                return any(phrase.casefold() in text.casefold() for text in self._exact)
            return any(phrase in text for text in self._exact)
        if ignore_case:
            wanted = (phrase.casefold(), plain.casefold())
            return any(one in text for text in self._folded for one in wanted)
        return any(one in text for text in self._spellings for one in (phrase, plain))


def spellings(text: str) -> set[str]:
    """Return a text as it is, in plain spelling with its marks, and as its reader sees it; with its lines."""
    return {text, _plain(text), as_read(_ATTRIBUTES.sub(r"<\1>", _LINK.sub(r"\1", text)))}


def as_read(text: str) -> str:
    """Return a text as its reader sees it: in plain spelling, and without the marks of Markdown and HTML for bold text,
    emphasis and code."""
    text = _ESCAPED.sub(r"\1", _BREAK.sub("\n", html.unescape(text)))
    text = _MARKS.sub("", text)
    return _plain(_EMPHASIS.sub(r"\2", text))


def wording(text: str) -> str:
    """Return a text in plain spelling and in one line, with its marks."""
    return _SPACES.sub(" ", _plain(text))


def _plain(text: str) -> str:
    """Return a text with plain spaces, hyphens, quotation marks and digits, and without invisible characters."""
    if text.isascii() and text.isprintable():
        return text
    table = {ord(char): _character(char) for char in set(text)}
    return unicodedata.normalize("NFKC", text.translate(table))


@lru_cache(maxsize=10_000)
def _character(char: str) -> str:
    kind = unicodedata.category(char)
    if kind == "Pd":
        return "-"
    if (kind in ("Cf", "Cc") and not char.isspace()) or _UNSEEN.match(char):
        return ""
    return _LIKE.get(char, char)
