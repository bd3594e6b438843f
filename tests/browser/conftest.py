"""Pages as people meet them: opened in the system's Chromium, without a network, and silent.

A test asks for `page` and opens files with `show`. Whatever the page's console says, whatever it throws and whatever it
asks the network for fails the test, whether or not the test looks at it. `make browser` runs these tests.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDTHS = (390, 768, 1280, 1920)
"""Pixels: a telephone, a tablet, a laptop, a desk."""
SCHEMES = ("light", "dark")
FIGURES = r"\d (%|s|ms|µs|points)(?![a-z])|[−+]\$?\d+|[np] [=<] \d+|\[[^\[\]\s]{1,14}, [^\[\]\s]{1,14}\]"
"""What is read in one piece."""
NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--no-sandbox",  # of root, as in a container
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs a browser."""
    for item in items:
        if item.nodeid.startswith("tests/browser/"):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium, headless; started once."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail("no Chromium is installed: on Debian it is the package chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(OPTIONS))
        yield browser
        browser.close()


@pytest.fixture
def problems() -> Iterator[list[str]]:
    """What went wrong in the pages of the test; it has to be empty at its end."""
    found: list[str] = []
    yield found
    assert found == []


@pytest.fixture
def context_options() -> Mapping[str, Any]:
    """Options of the browser's context; a test overrides them by parametrizing this name.

    ``java_script_enabled``, ``color_scheme``, ``viewport`` and ``reduced_motion`` are those that are worth changing.
    """
    return {}


@pytest.fixture
def page(browser: Browser, problems: list[str], context_options: Mapping[str, Any]) -> Iterator[Page]:
    """An empty page, 1280 px wide, light. It reports what it logs, throws and requests to `problems`."""
    options = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light", **context_options}
    context = browser.new_context(**options)
    page = context.new_page()
    page.on("console", lambda message: problems.append(f"console {message.type}: {message.text}"))
    page.on("pageerror", lambda error: problems.append(f"thrown: {error}"))
    page.on("request", lambda request: _is_local(request.url) or problems.append(f"request: {request.url[:200]}"))
    page.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    yield page
    context.close()


def _is_local(url: str) -> bool:
    return url.startswith(("file:", "about:", "data:", "blob:"))


def show(page: Page, path: Path, fragment: str = "") -> None:
    """Opens a file, as by a double click; ``fragment`` is what follows ``#`` in the address."""
    page.goto(path.resolve().as_uri() + (f"#{fragment}" if fragment else ""))
    page.wait_for_load_state("load")


def overflow(page: Page) -> list[str]:
    """What makes the page scroll sideways: the elements that reach beyond its right edge; empty where nothing does."""
    return page.evaluate(
        """() => {
          const root = document.documentElement;
          if (root.scrollWidth <= root.clientWidth) return [];
          return [...document.querySelectorAll('body *')]
            .filter((one) => one.getBoundingClientRect().right > root.clientWidth + 1)
            .slice(0, 10)
            .map((one) => `${one.tagName} ${one.className} ${(one.textContent || '').trim().slice(0, 40)}`);
        }"""
    )


def clipped(page: Page) -> list[str]:
    """Boxes that hide a part of what is in them until somebody scrolls sideways, and words cut off at a box's edge.

    Meant to: what is for screen readers alone, trials and agents side by side, and a hint that ends in an ellipsis.
    """
    return page.evaluate(
        """() => [...document.querySelectorAll('body *')]
          .filter((one) => one.checkVisibility() && getComputedStyle(one).overflowX !== 'visible')
          .filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 1)
          .filter((one) => !one.closest('svg, .unseen, .scroller, .scroll, .hint, thead'))
          .map((one) => `${one.tagName} ${one.className} ${(one.textContent || '').trim().slice(0, 40)}`)"""
    )


def spilling(page: Page) -> list[str]:
    """Tables that are wider than what they stand in, and so lie upon its edge; those that are scrolled are meant to."""
    return page.evaluate(
        """() => [...document.querySelectorAll('main table')]
          .filter((one) => one.checkVisibility() && !one.closest('.scroller, .scroll, .wide'))
          .filter((one) => {
            const style = getComputedStyle(one.parentElement), box = one.parentElement.getBoundingClientRect();
            return one.getBoundingClientRect().right > box.right - parseFloat(style.paddingRight) + 1;
          })
          .map((one) => `${one.className} ${one.textContent.trim().slice(0, 40)}`)"""
    )


def overlaps(page: Page) -> list[str]:
    """Neighbours of one row or line whose texts lie upon each other."""
    return page.evaluate(
        """() => {
          const boxes = (one) => {
            const found = [];
            const walk = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
            while (walk.nextNode()) {
              const parent = walk.currentNode.parentElement;
              if (parent.closest('.hint, .unseen, pre') || !parent.checkVisibility()) continue;
              const range = document.createRange();
              range.selectNodeContents(walk.currentNode);
              found.push(...range.getClientRects());
            }
            return found;
          };
          const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 6;
          return [...document.querySelectorAll('main :is(td, th, dt, dd, .pill, .chip, figcaption, h1, h2, h3)')]
            .filter((one) => one.nextElementSibling && !one.closest('thead, .unseen'))
            .filter((one) => boxes(one).some((a) => boxes(one.nextElementSibling).some((b) => meet(a, b))))
            .map((one) => `${one.tagName} ${one.className} ${one.textContent.trim().slice(0, 40)}`);
        }"""
    )


def broken_figures(page: Page) -> list[str]:
    """Figures that the end of a line parts: from their unit, ``96`` and ``%``, their sign, or their interval's end."""
    return page.evaluate(
        """(figures) => {
          const found = [];
          const walk = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
          while (walk.nextNode()) {
            const node = walk.currentNode;
            if (!node.parentElement.checkVisibility() || node.parentElement.closest('.range')) continue;
            for (const match of node.data.matchAll(new RegExp(figures, 'g'))) {
              const range = document.createRange();
              range.setStart(node, match.index);
              range.setEnd(node, match.index + match[0].length);
              const tops = [...range.getClientRects()].map((one) => Math.round(one.top));
              if (Math.max(...tops) - Math.min(...tops) > 6) found.push(node.data.trim().slice(0, 60));
            }
          }
          return found;
        }""",
        FIGURES,
    )


def violations(page: Page) -> list[str]:
    """What axe-core finds wrong for those who use a keyboard or a screen reader, or need contrast."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['target']} {node['html'][:160]}" for one in found for node in one["nodes"]]
