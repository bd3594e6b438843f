"""The comparison of several agents in a browser: silent, within its width, and readable by everybody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gate.model.lineup import Lineup
from gate.reports.lineup import render_html as render
from tests.unit.reports.hostile import CORPUS
from tests.unit.reports.test_lineup import lineup

from .conftest import SCHEMES, WIDTHS, broken_figures, clipped, overflow, overlaps, show, spilling, violations

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


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", FOUND)
def test_all_figures_are_seen_without_scrolling_sideways(page: Page, tmp_path: Path, name: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, tmp_path, FOUND[name])
    assert spilling(page) == []
    assert page.locator("main img, main a").count() == 0
