"""The page loads nothing, runs nothing, and says the same as the other reports."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from gate.reports.html import render

from .samples import RESULTS


@pytest.mark.parametrize("name", RESULTS)
def test_nothing_is_loaded_or_run(name: str) -> None:
    page = render(RESULTS[name])
    assert not re.search(r"<(script|iframe|object|embed|link|img|a)\b", page)
    assert not re.search(r"<[^>]*\s(on\w+|src|href|style)=", page)
    assert "url(" not in page
    assert "@import" not in page


def test_the_policy_allows_just_this_style_sheet() -> None:
    page = render(RESULTS["pass"])
    style = re.search("<style>(.*?)</style>", page, re.S)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in page
    assert "unsafe" not in page


def test_tables_and_drawings_are_named_for_those_who_cannot_see_them() -> None:
    page = render(RESULTS["regressed"])
    assert page.count('scope="row"') == 4
    assert page.count('role="img" aria-label=') == page.count("<svg")
    assert '<html lang="en">' in page


def test_intervals_are_drawn_inside_the_picture() -> None:
    page = render(RESULTS["hostile"]) + render(RESULTS["regressed"])
    xs = [float(x) for x in re.findall(r'\b(?:x1|x2|cx)="([-\d.]+)"', page)]
    assert len(xs) > 20
    assert all(0 <= x <= 144 for x in xs)


def test_it_says_what_matters() -> None:
    page = render(RESULTS["regressed"])
    for said in (
        "−12.5 [−20, −5] points",
        "0 of 4 trials passed, baseline 5 of 5",
        "gate run --config gate.yaml",
        "exit code 1",
    ):
        assert said in page


def test_every_less_than_sign_of_a_text_is_escaped() -> None:
    page = re.sub(r"</?[a-z][^<>]*>|<!doctype html>", "", render(RESULTS["regressed"]))
    assert "p &lt; 0.001" in page
    assert "<" not in page
