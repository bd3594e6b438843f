"""Whatever agents, tools and suites are called and say, no report lets it become more than text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.reports import REPORTS, load_report
from gate.reports.console import render as render_console
from gate.reports.console import render_line
from gate.reports.markdown import Place, render_suite
from gate.reports.markdown import render as render_markdown
from tests.properties import examples

from .harmless import PARSERS, findings
from .hostile import CORPUS, TEXT
from .samples import hostile, result

pytestmark = pytest.mark.slow

TEXTS = st.lists(TEXT, min_size=1, max_size=6).map(tuple)
FEW = settings(max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow])
LONG = "x" * 200_000 + "`" * 200_000 + "|" * 100_000 + "@" * 100_000


@pytest.mark.parametrize("form", REPORTS)
@pytest.mark.parametrize("text", [*CORPUS, LONG], ids=range(len(CORPUS) + 1))
def test_every_report_takes_every_text(form: str, text: str) -> None:
    shown = load_report(form)(result(hostile((text,)), command=text))
    shown.encode("utf-8")
    assert form == "json" or len(shown) < 1_000_000  # JSON leaves nothing out


def headings(markdown: str) -> int:
    """Ours start a line; outside text never does."""
    return len(re.findall(r"^##? ?.|^### ", re.sub(r"^(`{3,}).*?^\1$", "", markdown, flags=re.M | re.S), re.M))


@pytest.mark.parametrize("parser", PARSERS)
def test_the_whole_corpus_in_a_comment_stays_text(parser: str) -> None:
    page = render_markdown(result(hostile(), command=CORPUS[0]), limit=10**9, place=Place(accept_label=CORPUS[0]))
    assert findings(page, parser=parser, headings=1) == []


@FEW
@given(TEXTS)
def test_any_text_in_a_comment_stays_text(texts: tuple[str, ...]) -> None:
    place = Place(texts[0], accept_label=texts[-1])
    page = render_markdown(result(hostile(texts), command=texts[0]), limit=10**9, place=place)
    ours = page.count("\n### ") + 1
    assert findings(page, headings=ours) == []


@pytest.mark.parametrize("limit", [pytest.param(5_000, marks=pytest.mark.slow), 60_000])
@pytest.mark.parametrize("text", [LONG, "<" * 3_000, "\u202e" * 3_000, "@a" * 2_000, "👩‍👩‍👧" * 3_000])
def test_a_comment_keeps_to_its_limit(limit: int, text: str) -> None:
    suite = hostile((text,) * (6 if text is LONG else 30))
    many = result(*[suite] * (3 if text is LONG else 6), command=text)
    place = Place("a" * 40, "https://host/run/1", accept_label=text)
    assert len(render_markdown(many, limit=limit, place=place)) <= limit
    assert len(render_suite(suite, replace(many, version=text), limit=limit, place=place)) <= limit


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, tuple(name for name, _ in attrs)))

    def handle_comment(self, data: str) -> None:
        self.seen.append(("<!--", ()))


@FEW
@given(TEXTS)
def test_any_text_in_a_page_stays_text(texts: tuple[str, ...]) -> None:
    page, harmless = _Page(), _Page()
    page.feed(load_report("html")(result(hostile(texts), command=texts[0])))
    harmless.feed(load_report("html")(result(hostile(("word",)), command="word")))
    assert set(page.seen) <= set(harmless.seen) | {
        ("details", ()),
        ("details", ("class",)),
        ("details", ("class", "open")),
        ("ul", ("class",)),
        ("li", ()),
        ("ul", ()),
        ("span", ("class",)),
        ("wbr", ()),
        ("mark", ("class",)),
    }


@FEW
@given(TEXTS, st.sampled_from([30, 40, 80, 200]), st.booleans())
def test_any_text_on_a_terminal_stays_text(texts: tuple[str, ...], width: int, color: bool) -> None:
    shown = render_console(result(hostile(texts), command=texts[0]), width=width, color=color)
    bare = re.sub(r"\x1b\[[0-9;]*m", "", shown) if color else shown
    assert all(c == "\n" or c >= " " for c in bare)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x7f-\x9f]", bare)
    assert not any(re.match(r"\s*::[a-z-]+( [^:]*)?::", line) for line in bare.splitlines())
    assert render_line(result(hostile(texts))).count("\n") == 1


@FEW
@given(TEXTS)
def test_any_text_in_junit_parses(texts: tuple[str, ...]) -> None:
    ElementTree.fromstring(load_report("junit")(result(hostile(texts), command=texts[0])))


@FEW
@given(TEXTS)
def test_any_text_in_json_parses(texts: tuple[str, ...]) -> None:
    json.loads(load_report("json")(result(hostile(texts), command=texts[0]))).get("suites")
