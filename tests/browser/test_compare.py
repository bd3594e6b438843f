"""The comparison of several agents in a browser: silent, within its width, and readable by everybody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gate.model.lineup import Lineup
from gate.reports.html.lineup import render
from tests.unit.reports.hostile import CORPUS
from tests.unit.reports.test_lineup import lineup

from .conftest import SCHEMES, WIDTHS, broken_figures, clipped, overflow, overlaps, show, violations

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOUND = {
    "three": lineup(votes=True, note="not run side by side"),
    "many": lineup(*(f"a model with a rather long name, number {n}" for n in range(9))),
    "hostile": lineup(*CORPUS[:6], criterion=CORPUS[10], note=CORPUS[7], votes=True, reason=CORPUS[9]),
}


def opened(page: Page, tmp_path: Path, found: Lineup) -> None:
    path = tmp_path / "compared.html"
    path.write_text(render(found), encoding="utf-8")
    show(page, path)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", FOUND)
def test_nothing_is_cut_off(page: Page, tmp_path: Path, name: str, width: int, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, tmp_path, FOUND[name])
    assert (overflow(page), clipped(page), overlaps(page), broken_figures(page)) == ([], [], [], [])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", FOUND)
def test_it_can_be_read_by_everybody(page: Page, tmp_path: Path, name: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    opened(page, tmp_path, FOUND[name])
    assert violations(page) == []


def test_points_lie_where_the_means_are(page: Page, tmp_path: Path) -> None:
    opened(page, tmp_path, FOUND["three"])
    drawing = page.locator("svg.scatter").last
    boxes = {text: drawing.locator("text", has_text=text).bounding_box() for text in "ABC"}
    assert all(boxes.values())
    places = {text: (box["x"], box["y"]) for text, box in boxes.items() if box}
    assert places["A"][0] < places["B"][0] < places["C"][0]
    assert places["A"][1] < places["C"][1]
    assert page.locator("svg.scatter").count() == 2


def test_votes_open_and_are_text(page: Page, tmp_path: Path) -> None:
    opened(page, tmp_path, FOUND["hostile"])
    page.locator("#preferred summary").click()
    assert page.locator("#preferred tbody tr").count() == 40
    assert page.locator("#preferred img, #preferred script, #preferred a").count() == 0


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", FOUND)
def test_all_agents_and_reasons_are_seen_without_scrolling_sideways(
    page: Page, tmp_path: Path, name: str, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, tmp_path, FOUND[name])
    page.locator("details").evaluate_all("(all) => all.forEach((one) => { one.open = true; })")
    hidden = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.ariaLabel)"
    assert page.locator(".scroll").evaluate_all(hidden) == []
    tops = page.locator(".scatter").evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().top)")
    assert width < 768 or len(set(map(round, tops))) == 1, "pictures side by side begin at one height"
