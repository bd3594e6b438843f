"""Pages of one file: they load nothing, run only their own script, and never turn text from outside into markup.

A page is a template that extends ``base.html``::

    {% extends "base.html" %}
    {% block main %}<h1>{{ title }}</h1> … {% endblock %}

and is made by ``render("mine.html", title="Mine", styles=("mine.css",), scripts=("mine.js",), data={"rows": […]})``.
The style sheets follow ``tokens.css``, whose custom properties name every colour, size and font; the scripts follow
``base.js``, which has ``data(name)``, ``element(tag, attributes, …children)`` and ``visible(text)``. Every value in a
template is automatically escaped, with its control characters made visible, and cut to `LIMIT` characters. Scripts read
``data`` and insert it as text.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gate.security.escape import BREAK, in_json, one_line, unicode_only

LIMIT = 500
"""Maximum number of characters in a value in a page."""
_PIECES = re.compile(r"(?<=[_./:@\-])(?<!\d[./:@\-])(?=[^_./:@\-\s])|(?<=[a-z])(?=[A-Z])")
_FIGURES = re.compile(
    r"(?<![\w.$])(?:"
    r"\[[−+±]?\$?\d[^\[\]\s]{0,12}, [−+±]?\$?\d[^\[\]\s]{0,12}\](?: points)?|[np] [=<≤] \d[\d.,]{0,12}|"
    r"[−+±]?\$?\d[\d.,]{0,12} (?:%|ms|µs|s|min|points?)(?!\w)|[−+±]\$?\d[\d.,]{0,12})"
)
"""Figures with units, intervals and n, which would be misread if broken over two lines."""


def render(
    name: str,
    *,
    title: str,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    data: Mapping[str, Any] | None = None,
    late: Mapping[str, Any] | None = None,
    **values: Any,
) -> str:
    """Return the page of a template with these values; ``data`` are JSON values that its scripts read by name.

    ``late`` are further ones after the scripts, so that the scripts start before the browser has read everything.
    """
    style = "\n".join(map(source, ("tokens.css", *styles)))
    script = "\n".join(("(() => {", "'use strict';", *map(source, ("base.js", *scripts)), "})();"))
    return (
        environment()
        .get_template(name)
        .render(
            title=title,
            style=Markup(style),  # noqa: S704 - files of ours
            script=Markup(script),  # noqa: S704 - files of ours
            policy=policy(style, script),
            data=_blocks(data or {}),
            late=_blocks(late or {}),
            **values,
        )
    )


def of_markdown(title: str, text: str) -> str:
    """Return the page of a report in Markdown whose text from outside is escaped."""
    return render("written.html", title=title, text=from_markdown(text))


def from_markdown(text: str) -> Markup:
    """Return a report in Markdown, whose text from outside is escaped, as HTML in which figures stay whole.

    Only hosts make links of plain text, so the zero-width spaces that keep them from it are dropped.
    """
    from markdown_it import MarkdownIt  # weight: most pages have a template

    parser = MarkdownIt("commonmark").enable("table").disable(["image", "autolink"])
    parser.add_render_rule("fence", _fence)
    made = parser.render(text.replace(BREAK, ""))
    return Markup(_FIGURES.sub(r'<span class="whole">\g<0></span>', made))  # noqa: S704 - the report has escaped it


def _fence(_: Any, tokens: Sequence[Any], at: int, *__: Any) -> str:
    """Return a fenced block; the lines of a difference have the colours of their sides."""
    shown = []
    for line in tokens[at].content.splitlines():
        kind = ""
        if tokens[at].info == "diff":
            kind = {"-": "del", "+": "add", "@": "turn"}.get(line[:1], "")
        shown.append(Markup('<span class="{}">{}</span>').format(kind, line))
    return Markup('<pre class="diff">{}</pre>\n').format(Markup("\n").join(shown))


def _blocks(values: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    return [(key, Markup(_json(value))) for key, value in values.items()]  # noqa: S704 - holds no "<"


def policy(style: str, script: str) -> str:
    """Return the content security policy of a page: only this style and this script are allowed."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def environment() -> Environment:
    """Return the environment of the templates, with their folder and filters."""
    made = Environment(
        loader=PackageLoader("gate.reports.html"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["breakable"] = breakable
    made.filters["prose"] = prose
    return made


@cache
def source(name: str) -> str:
    """Return one of our style sheets or scripts, unchanged."""
    made = environment()
    assert made.loader is not None
    return made.loader.get_source(made, name)[0]


def _shown(value: Any) -> Any:
    return value if isinstance(value, Markup) else one_line(str(value), LIMIT)


def breakable(name: str, limit: int = 200) -> Markup:
    """Return a text whose names may be broken after separators, but not inside words, and whose figures stay whole."""
    return _figured(one_line(str(name), limit))


def _figured(text: str) -> Markup:
    made: list[Markup] = []
    at = 0
    for found in _FIGURES.finditer(text):
        made += [_pieces(text[at : found.start()]), Markup('<span class="whole">{}</span>').format(found.group())]
        at = found.end()
    return Markup().join([*made, _pieces(text[at:])])


def prose(text: str, limit: int = 500) -> Markup:
    """Return a sentence, with text between backticks as code."""
    parts = one_line(str(text), limit).split("`")
    if len(parts) % 2 == 0:  # an unpaired backtick
        return breakable(text, limit)
    code, made = Markup("<code>{}</code>"), []
    for at, part in enumerate(parts):
        made.append(code.format(_pieces(part)) if at % 2 else _figured(part))
    return Markup().join(made)


def _pieces(text: str) -> Markup:
    return Markup("<wbr>").join(map(escape, _PIECES.split(text)))


def tone_of(tone: str) -> str:
    """Return the tone on a page, which has only one for errors and failures."""
    return "bad" if tone == "error" else tone


def encoded(value: Any) -> bytes:
    """Return any value as JSON; lone surrogates, which a record never has, become question marks."""
    try:
        return msgspec.json.encode(value)
    except UnicodeError:
        return msgspec.json.encode(unicode_only(msgspec.to_builtins(value)))


def _json(value: Any) -> str:
    """Return JSON that is safe inside a script element: it can open no tag and has no control characters."""
    return in_json(encoded(value).decode().replace("<", "\\u003c"))
