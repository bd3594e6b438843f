"""A page is one file that runs its own script alone, whatever its values are."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re

import pytest

from gate.reports.html.page import breakable, environment, render
from gate.security.escape import visible
from tests.unit.reports.hostile import CORPUS


def made(**data: object) -> str:
    return render("base.html", title="A page", data=data)


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_names_the_style_and_the_script_that_are_there() -> None:
    page = made()
    style, script = re.search("<style>(.*?)</style>", page, re.S), re.search("<script>(.*?)</script>", page, re.S)
    assert style is not None and script is not None
    policy = f"default-src 'none'; style-src 'sha256-{digest(style[1])}'; script-src 'sha256-{digest(script[1])}'"
    assert f"{policy}; base-uri 'none'; form-action 'none'" in page.replace("&#39;", "'")
    assert "unsafe" not in page


def test_data_come_out_as_they_went_in_and_end_no_element() -> None:
    for text in CORPUS:
        page = made(one={text: [text, 1.5, None]})
        block = re.search('<script type="application/json" id="data-one">(.*?)</script>', page, re.S)
        assert block is not None
        assert "<" not in block[1]
        known = text.encode("utf-8", "replace").decode()
        assert json.loads(block[1]) == {known: [known, 1.5, None]}


def test_a_value_in_a_template_is_text() -> None:
    for text in CORPUS:
        page = environment().from_string('<p title="{{ x }}">{{ x }}{{ x | breakable }}</p>').render(x=text)
        assert re.fullmatch(r'<p title="[^"<>]*">[^<>]*((<wbr>|<span class="whole">|</span>)[^<>]*)*</p>', page)
        assert visible(page) == page


def test_names_break_after_their_separators() -> None:
    assert breakable("tool_trajectory_avg/a.b") == "tool_<wbr>trajectory_<wbr>avg/<wbr>a.<wbr>b"
    assert breakable("issueRefund") == "issue<wbr>Refund"
    assert breakable("<b>") == "&lt;b&gt;"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("rose by 25.8 % to +1.1 points", ["25.8 %", "+1.1 points"]),
        ("−13.8 [−31.7, +5.5] points, n = 1,500", ["−13.8", "[−31.7, +5.5] points", "n = 1,500"]),
        ("−$2.00 [−$2.00, −$1.99] in 40 µs", ["−$2.00", "[−$2.00, −$1.99]", "40 µs"]),
        ("p < 0.001; 12 to 13 runs; 3 shops, case-2 s1 " + "9" * 300 + " %", ["p < 0.001"]),
    ],
)
def test_figures_keep_their_units(text: str, whole: list[str]) -> None:
    assert re.findall(r'<span class="whole">(.*?)</span>', html.unescape(str(breakable(text, 900)))) == whole
