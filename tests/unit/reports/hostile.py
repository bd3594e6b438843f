"""Text that agents, tools and pull requests could carry to harm whoever reads a report."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

CORPUS = (
    "@everyone please look",
    "ping @octocat/team and a.b+c@example.com",
    "user@-host.example, user@_host.example and user@.host.example",
    "fixes #1, owner/repo#12, GH-13, owner/repo@da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "da39a3e",
    "see https://evil.example/x?a=b and www.evil.example, ftp://evil.example, //evil.example",
    "mailto:a@b.example xmpp:a@b.example",
    "[click](https://evil.example) [ref]: https://evil.example",
    "[ref]: https://evil.example 'title'",
    "![](https://evil.example/pixel.png)",
    "<img src=x onerror=alert(1)> <script>alert(1)</script>",
    "</details></summary></code></td></table><h1>done</h1>",
    "<!-- hidden -->",
    "# heading",
    "heading\n===\n\n---\n",
    "> quote\n- item\n1. item\n    code",
    "1. item",
    "- item",
    "+ item",
    "***bold*** __x__ ~~gone~~ `code` ``more``",
    "```\nfence\n```\n# out",
    "~~~\nfence",
    "`", "``", "````````", "\\", "\\`", "|", "a | b | c", "\\|", "\\\\|", "`|`", "`` ` ``",
    ":tada: :+1: 12:30:45",
    "$a$ $$b$$ $`c`$",
    "&lt;b&gt; &#64;octocat &commat;octocat",
    "/close\n/approve",
    "[/INST] [red]x[/red] [link=https://evil.example]x[/link] [/]",
    "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x1b\\x \x9b31m",
    "\x00\x07\x08\x0b\x0c\x7f\x85\ufffe\uffff\U0010ffff",
    "\u202egnp.exe\u202c \u2066x\u2069 \u200f",
    "a\u200bb\ufeff @\u200doctocat",
    "\ud800 lone \udfff",
    "::error file=x::boom\n::set-output name=x::y\n##[error]boom",
    "a\r\nb\rc\u2028d\u2029e",
    "%0A%25",
    "]]> <![CDATA[ x <?xml version='1.0'?>",
    "[^1] [^1]: note",
    "> [!WARNING]\n> x",
    "\t\t", "   ", "",
    "x" * 5_000,
    "`" * 5_000,
    "@" * 5_000,
    "👩‍👩‍👧 日本語 עברית Ελλ",
)  # fmt: skip

PIECES = [p for text in CORPUS for p in text[:200].split(" ") if p]
TEXT = st.one_of(
    st.sampled_from(CORPUS),
    st.text(st.characters(), max_size=80),  # lone surrogates included
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(st.characters(), max_size=3)), max_size=8).map("".join),
    st.text(alphabet="@#`|<>[]()!*_~:/\\&$-=+.0123456789abcdef \n\r\t", max_size=60),
)
SOME_AND_ALL = pytest.mark.parametrize("texts", [CORPUS[::4], pytest.param(CORPUS, marks=pytest.mark.slow)])
"""For what takes long with each: a quarter of them before each commit."""
