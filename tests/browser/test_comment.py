"""The comment as a code host shows it, on a telephone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from docs.tools.pictures import GOLDEN
from docs.tools.pictures import page as as_comment

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TOO_WIDE = "[...document.querySelectorAll('table, ul, p')].filter((one) => one.scrollWidth > one.clientWidth).length"


@pytest.mark.parametrize("name", ["regressed", "below_threshold", "pass"])
def test_nothing_but_code_is_scrolled_sideways(browser: Browser, name: str) -> None:
    tab = browser.new_page(viewport={"width": 390, "height": 800})
    tab.set_content(as_comment((GOLDEN / f"{name}.md").read_text(encoding="utf-8")))
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert tab.evaluate(TOO_WIDE) == 0
    tab.close()
