"""Each place's escaping, on values worked out by hand; tests/unit/reports/test_hostile.py parses whole reports."""

from __future__ import annotations

import json
from xml.dom import minidom
from xml.sax.saxutils import escape as xml_escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gate.security import escape
from tests.properties import examples
from tests.unit.reports.harmless import PARSERS, findings, flat
from tests.unit.reports.hostile import CORPUS, TEXT


def seen(markdown: str) -> str:
    """The characters that a reader sees, zero-width ones left out."""
    tokens = flat(MarkdownIt("commonmark").parse("x " + markdown))
    return "".join(t.content for t in tokens if t.type in ("text", "text_special", "code_inline"))[2:].replace(
        "\u200b", ""
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("called refund before lookup_order", "called refund before lookup\\_order"),
        ("@a #1", "@\u200ba \\#\u200b1"),
        ("a|b", "a&#124;b"),
        ("1. x", "1\\. x"),
        ("- x", "\\- x"),
        ("/close", "\\/close"),
        ("a\n\n b", "a ⏎ b"),
        ("\x1b[0m", "␛\\[0m"),
        ("\u202e", "⟨U+202E⟩"),
        ("z" * 12, "zzzzzzzzzz… (2 more characters)"),
        ("da39a3ee5e6b4b", "da39a3\u200bee5e6b\u200b4b"),
    ],
)
def test_markdown_by_hand(text: str, expected: str) -> None:
    assert escape.markdown(text, 10 if text.startswith("zzz") else 300) == expected


@pytest.mark.parametrize(
    "text", ["a_b*c [d](e) `f` <g> &amp; #1 @h $i$ \\ ~j~ !k", "1. x", "https://e.example/x_y", "GH-1"]
)
def test_a_reader_sees_what_was_written(text: str) -> None:
    assert seen(escape.markdown(text)) == text


@given(TEXT)
@settings(max_examples=examples(150))
def test_markdown_is_plain_text_wherever_it_stands(text: str) -> None:
    cell = escape.markdown(text)
    span = escape.markdown_code(text)
    assert "\n" not in cell + span
    fold = f"<details>\n<summary>x</summary>\n\nx {span}\n\n</details>\n"
    page = f"{cell}\n\n- {cell} and {span} then {cell}\n\n{fold}"
    for parser in PARSERS:
        assert findings(page, parser=parser) == []


@given(TEXT)
@settings(max_examples=examples(150))
def test_a_table_keeps_its_cells(text: str) -> None:
    row = f"| {escape.markdown(text)} | {escape.markdown_code(text)} | end |"
    tokens = list(flat(PARSERS["tables"]().parse(f"| a | b | c |\n|---|---|---|\n{row}\n")))
    cells = [tokens[i + 1].content for i, t in enumerate(tokens) if t.type == "td_open"]
    assert len(cells) == 3
    assert cells[2] == "end"


@given(TEXT)
@settings(deadline=None)
def test_a_fence_holds_its_content(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(escape.markdown_fence(text, "diff") + "\n\nafter\n")
    assert [t.type for t in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert tokens[0].info == "diff"


def test_bounds_hold_for_any_length() -> None:
    for text in ("x" * 10**6, "\u202e" * 10**6, "@a" * 10**6):
        assert len(escape.markdown(text)) < 12 * escape.MARKDOWN_LIMIT
        assert len(escape.markdown_code(text)) < 12 * escape.MARKDOWN_LIMIT
        assert len(escape.console(text, 50)) < 100
        assert len(escape.markdown_fence(text)) < 10 * escape.FENCE_LIMIT


@given(TEXT)
@settings(deadline=None)
def test_xml_text_is_xml(text: str) -> None:
    document = f"<a>{xml_escape(escape.xml_text(text))}</a>"
    minidom.parseString(document.encode("utf-8"))


@given(TEXT)
@settings(deadline=None)
def test_html_has_no_tag_and_no_way_out_of_an_attribute(text: str) -> None:
    shown = escape.html(text)
    assert not set("<>\"'") & set(shown)
    shown.encode("utf-8")


@given(TEXT)
@settings(deadline=None)
def test_console_text_is_one_line_without_control_characters(text: str) -> None:
    shown = escape.console(text)
    assert all(c.isprintable() or c in "\u200d\u200c" or ord(c) > 0x2000 for c in shown)
    assert "##[" not in shown
    assert "::error " not in shown
    shown.encode("utf-8")


def test_console_keeps_names_with_colons_and_defuses_runner_commands() -> None:
    assert escape.console("tests/a.py::test_x std::vector") == "tests/a.py::test_x std::vector"
    assert escape.console("::error file=a::b") == ": :error file=a::b"
    assert escape.console("::add-mask::b") == ": :add-mask::b"
    assert escape.console("x ##[group]") == "x ## [group]"


def test_workflow_commands() -> None:
    assert escape.workflow_data("50 %\r\n::error::") == "50 %25%0D%0A::error::"
    assert escape.workflow_property("a:b,c%\n") == "a%3Ab%2Cc%25%0A"
    assert escape.workflow_data("\ud800") == "?"


def test_visible_text_keeps_what_is_readable() -> None:
    for text in CORPUS:
        shown = escape.visible(text)
        assert [c for c in shown if c.isalnum()][:50] == [c for c in escape.visible(shown) if c.isalnum()][:50]


@given(st.text())
def test_json_of_any_text_holds_nothing_invisible_and_means_the_same(text: str) -> None:
    raw = json.dumps({"said": text, "kept": "\x7f\x85\u202e\ufeff\U0001fffe"}, ensure_ascii=False)
    shown = escape.in_json(raw)
    assert json.loads(shown) == json.loads(raw)
    assert not escape._UNSAFE.search(shown)
