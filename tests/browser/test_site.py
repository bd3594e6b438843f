"""The dashboard in a browser: silent, offline, within its width, and readable by everybody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from gate.histories.trends import Unread, suite_history
from tests.unit.histories.drawn import drawn_runs
from tests.unit.reports.hostile import CORPUS
from tests.unit.reports.html.histories import busy, page_name, shown

from .conftest import SCHEMES, WIDTHS, broken_figures, clipped, overflow, overlaps, show, violations

if TYPE_CHECKING:
    from playwright.sync_api import Page

BUSY = page_name("support/evals.yaml")
PAGES = ("index.html", BUSY)


def written(files: dict[str, str], folder: Path) -> Path:
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    other = suite_history("billing", drawn_runs(5, lambda _: 0.9))
    made = shown(busy(), other, commits="commits/{commit}.html", unread=(Unread("a/torn.jsonl", "not closed"),))
    return written(made, tmp_path_factory.mktemp("site"))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_off(page: Page, dashboard: Path, name: str, width: int, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    show(page, dashboard / name)
    assert (overflow(page), clipped(page), overlaps(page), broken_figures(page)) == ([], [], [], [])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", PAGES)
def test_everybody_can_read_it(page: Page, dashboard: Path, name: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    show(page, dashboard / name)
    assert violations(page) == []


def test_from_the_overview_to_a_suite_and_back(page: Page, dashboard: Path) -> None:
    show(page, dashboard / "index.html")
    page.get_by_role("link", name="support/evals.yaml").click()
    assert page.get_by_role("heading", level=1).inner_text() == "support/evals.yaml"
    page.get_by_role("link", name="All suites").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Quality over time"


def test_cases_are_found_by_name_and_tag_and_by_being_flaky(page: Page, dashboard: Path) -> None:
    show(page, dashboard / BUSY)
    rows = page.locator("#table-cases tbody tr:visible")
    assert rows.count() == 60
    page.get_by_label("Find").fill("REFUND/case-00")
    assert rows.count() == 3  # 0, 4 and 8
    assert page.get_by_role("status").inner_text() == "3 of 60 shown"
    page.get_by_label("Find").fill("")
    page.get_by_label("flaky only").check()
    assert rows.count() == sum(case.flaky for case in busy().cases) < 60


@pytest.mark.parametrize("context_options", [{"java_script_enabled": False}])
def test_without_scripts_everything_is_there(page: Page, dashboard: Path) -> None:
    show(page, dashboard / BUSY)
    assert page.locator("#table-cases tbody tr:visible").count() == 60
    assert page.locator("#tools").is_hidden()


def test_hostile_names_are_inert(page: Page, tmp_path: Path) -> None:
    tags = {f"case-{n:02d}": frozenset(CORPUS[n::40]) for n in range(40)}
    drawn = enumerate(drawn_runs(9, lambda _: 0.9))
    runs = [replace(run, commit="<b>x", agent=CORPUS[n], tags=tags) for n, run in drawn]
    hostile = "<img src=x onerror=alert(1)>" + "w" * 300
    made = written(shown(suite_history(hostile, runs)), tmp_path)
    for name in ("index.html", page_name(hostile)):
        page.set_viewport_size({"width": 390, "height": 900})
        show(page, made / name)
        assert page.locator("img, b").count() == 0
        assert overflow(page) == []
