"""The HTML report in a browser: silent, within its width, and readable by everybody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gate.reports.html import render
from tests.unit.reports.samples import RESULTS

from .conftest import SCHEMES, WIDTHS, overflow, show

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["pass", "regressed", "hostile"])
def test_nothing_is_cut_off(page: Page, tmp_path: Path, name: str, width: int, scheme: str) -> None:
    path = tmp_path / "report.html"
    path.write_text(render(RESULTS[name]), encoding="utf-8")
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    show(page, path)
    assert overflow(page) == []
