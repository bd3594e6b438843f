"""Badges claim what is known, and are read by eyes, and by screen readers."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from gate.model import Verdict
from gate.reports.badge import COLORS, UNKNOWN, badge, look_of
from tests.unit.reports.hostile import CORPUS

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("verdict", [verdict.value for verdict in Verdict])
def test_every_verdict_has_a_look_of_its_own_words(verdict: str) -> None:
    assert look_of(verdict)[0] == verdict.replace("_", " ")
    picture = ET.fromstring(badge("evals", verdict, "2026-05-02"))
    said = f"agent gate: evals: {verdict.replace('_', ' ')} (2026-05-02)"
    assert picture.findtext(f"{SVG}title") == picture.get("aria-label") == said


@pytest.mark.parametrize("verdict", ["", "passed", "PASS", "<script>"])
def test_what_nobody_judged_is_unknown(verdict: str) -> None:
    assert look_of(verdict) == UNKNOWN
    assert ">unknown<" in badge("evals", verdict, "–")


def test_only_a_pass_is_green() -> None:
    assert [v.value for v in Verdict if COLORS["good"] in badge("evals", v.value, "–")] == ["pass"]


@pytest.mark.parametrize("color", sorted({*COLORS.values(), "#30363d"}))
def test_white_text_can_be_read_on_it(color: str) -> None:
    parts = [int(color[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    luminance = sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    assert 1.05 / (luminance + 0.05) >= 4.5


def test_hostile_names_stay_text() -> None:
    for name in CORPUS:
        picture = ET.fromstring(badge(name, name, name))
        assert {element.tag.removeprefix(SVG) for element in picture.iter()} == {
            "svg",
            "title",
            "clipPath",
            "rect",
            "g",
            "text",
        }
        assert len(badge(name * 999, "pass", "")) < 2_000
