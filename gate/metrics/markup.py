"""Finds the URLs that the tags in a text link to and load, reading tags as a browser's tokenizer does.

Every ``<`` before a letter counts as the start of a tag, even in a comment, a script or an attribute. Whether a browser
sees a tag there depends on the text before it and differs between browsers, sanitizers and library versions, but all of
them read a tag alike from its start. So no tag that any of them sees is missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

MAX_WORK = 2_000_000
"""The most characters to look at in one text: tags inside tags are read more than once."""
_EACH = 20
"""The cost of an attribute in addition to its characters."""
MAX_DEPTH = 4
"""The deepest nesting of documents inside attributes."""
_START = re.compile(r"<([A-Za-z][^\t\n\f\r />]*+)")
_ATTRIBUTE = re.compile(
    r"""[\t\n\f\r /]*+(?:(?P<end>>)|(?P<name>=?[^\t\n\f\r />=]*+)"""
    r"""(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+"""
    r"""(?:"(?P<double>[^"]*+)"|'(?P<single>[^']*+)'|(?P<bare>(?!["'])[^\t\n\f\r >]*+)))?+)"""
)
_HARMLESS = re.compile(
    r"(?:alt|title|class|id|name|lang|dir|role|type|rel|target|value|label|placeholder|width|height|content"
    r"|aria-.*|xmlns(?::.*)?)"
)
"""Attributes that never hold a URL; an unknown one may. The content of a ``meta`` is handled separately."""
_LISTS = ("srcset", "imagesrcset", "ping", "archive")
_FOLLOWED = {"a": ("href", "xlink:href"), "area": ("href",), "form": ("action",), "button": ("formaction",)}
_FOLLOWED |= {"input": ("formaction",), "blockquote": ("cite",), "q": ("cite",), "del": ("cite",), "ins": ("cite",)}
"""The attributes that take a click to load; all others load by themselves."""
_STYLE_END = re.compile(r"</style", re.IGNORECASE)
_CSS_ESCAPE = re.compile(r"\\(?:([0-9A-Fa-f]{1,6})[ \t\n\f\r]?|([^\n\r\f0-9A-Fa-f]))")
_CSS_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*+(?:\*/)?")
_CSS_URL = re.compile(r"(?i:url|src|image|image-set|@import)[\s(\"']++(?:url[\s(\"']++)?+([^\s\"'()]*+)")
_REFRESH = re.compile(r"[;,]\s*+(?:url\s*+=\s*+)?+[\"']?+([^\"']*+)", re.IGNORECASE)


class MarkupError(ValueError):
    """Markup that would take too long to read."""


class _WorkLimit:
    def __init__(self) -> None:
        self.left = MAX_WORK

    def take(self, characters: int) -> None:
        self.left -= characters
        if self.left < 0:
            raise MarkupError("it has too many tags, or nests them too deeply, to be read")


_Tag = tuple[str, list[tuple[str, str]], int]
"""The name and the attributes of a closed tag, and the position after it."""


def targets(text: str) -> Iterator[tuple[str, str]]:
    """Yield (``link`` or ``image``, URL) for everything that the tags in a text link to or load. Raises
    `MarkupError`."""
    yield from _targets(text, _WorkLimit(), MAX_DEPTH)


def _targets(text: str, work: _WorkLimit, depth: int) -> Iterator[tuple[str, str]]:
    if depth == 0:
        raise MarkupError("its documents are nested too deeply")
    for tag, attributes, after in _tags(text, work):
        for name, value in attributes:
            for reading in dict.fromkeys((value, unescape(value))):
                yield from _of_attribute(tag, name, reading)
                if name == "srcdoc":
                    yield from _targets(reading, work, depth - 1)
        if tag == "style":
            stop = len(text)
            end = _STYLE_END.search(text, after)
            if end:
                stop = end.start()
            content = text[after:stop]
            work.take(len(content))
            yield from _of_css(content)


def _tags(text: str, work: _WorkLimit) -> Iterator[_Tag]:
    """Yield every closed tag."""
    last = text.rfind(">")
    for start in _START.finditer(text, 0, last + 1):
        found = _tag(text, start, work)
        if found is not None:
            yield found


def _tag(text: str, start: re.Match[str], work: _WorkLimit) -> _Tag | None:
    attributes: list[tuple[str, str]] = []
    place = start.end()
    while True:
        found = _ATTRIBUTE.match(text, place)
        assert found is not None, "it may match nothing"
        work.take(found.end() - place + _EACH)
        if found["end"]:
            return start[1].lower(), attributes, found.end()
        if found.end() == place or found.end() >= len(text) or text.startswith(('="', "='"), found.end()):
            return None  # the text ends inside the tag
        value = next((found[kind] for kind in ("double", "single", "bare") if found[kind] is not None), "")
        attributes.append((found["name"].lower(), value))
        place = found.end()


def _of_attribute(tag: str, name: str, value: str) -> Iterator[tuple[str, str]]:
    kind = "image"
    if name in _FOLLOWED.get(tag, ()):
        kind = "link"
    if name == "style":
        yield from _of_css(value)
    elif name in _LISTS:
        for piece in re.split(r"[\s,]+", value):
            if piece:
                yield kind, piece
    elif tag == "meta" and name == "content":
        for url in _REFRESH.findall(value):
            yield "image", url
    elif name.startswith("on"):
        yield kind, f"javascript:{value}"
    elif not _HARMLESS.fullmatch(name) and value:
        yield kind, value


def _of_css(text: str) -> Iterator[tuple[str, str]]:
    plain = _CSS_ESCAPE.sub(_unescaped, _CSS_COMMENT.sub("", text))
    for url in _CSS_URL.findall(plain):
        yield "image", url


def _unescaped(match: re.Match[str]) -> str:
    if match[2]:
        return match[2]
    code = int(match[1] or "0", 16)
    if 0 < code < 0x110000:
        return chr(code)
    return "\ufffd"
