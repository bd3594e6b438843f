"""What a host would make of Markdown: finds links, images, headings, tags, mentions and references in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.token import Token

OUR_TAGS = {"details", "summary", "code", "br", "sub"}

# The host's own autolinks, applied to text after entities are decoded: what its documentation lists.
AUTOLINKS = {
    "mention": re.compile(r"(?<![\w`])@[a-z\d]", re.I),
    "reference": re.compile(r"(?:^|\W|[\w-]/[\w.-]+)#\d"),
    "ticket": re.compile(r"\bGH-\d", re.I),
    "emoji": re.compile(r":[\w+-]+:"),
    "commit": re.compile(r"\b[0-9a-f]{7,40}\b", re.I),
    "url": re.compile(r"(?:https?|ftp)://", re.I),
    "www": re.compile(r"www\.", re.I),
    "mail": re.compile(r"[\w.+-]@[\w.-]*\.\w"),
    "protocol": re.compile(r"(?:mailto|xmpp):", re.I),
}
PARSERS = {
    "commonmark": lambda: MarkdownIt("commonmark"),
    "tables": lambda: MarkdownIt("commonmark").enable(["table", "strikethrough"]),
    "gfm-like": lambda: MarkdownIt("gfm-like", {"linkify": False}),
}


def flat(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from flat(token.children or [])


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.tags.append("<!--")


def findings(markdown: str, *, parser: str = "gfm-like", headings: int = 0) -> list[str]:
    """Everything that outside text must not become. ``headings``: how many of our own there are."""
    tokens = list(flat(PARSERS[parser]().parse(markdown)))
    found = [t.type for t in tokens if t.type in ("link_open", "image", "em_open", "s_open", "code_block", "hr")]
    if sum(t.type == "heading_open" for t in tokens) != headings:
        found.append("heading")
    texts, in_code = [], 0
    for token in tokens:
        if token.type in ("html_inline", "html_block"):
            page = _Page()
            page.feed(token.content)
            page.close()
            found += [f"tag {tag}" for tag in page.tags if tag not in OUR_TAGS]
            found += [f"attribute {name}" for name in page.attributes if name != "open"]
            texts += page.texts
            in_code += token.content.count("<code>") - token.content.count("</code>")
        elif token.type == "text" and not in_code:
            texts.append(token.content)
    found += [f"{name}: {text[:80]!r}" for text in texts for name, pattern in AUTOLINKS.items() if pattern.search(text)]
    return found
