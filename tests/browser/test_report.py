"""The HTML report in a browser: silent, within its width, readable by everybody, and what its controls do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from benchmarks.html_report import page_of
from gate.model import Case, CaseResult, CaseStatus, Invocation, Part, Score, ToolCall, Trial, TrialError
from gate.model.trial import ErrorKind
from gate.reports.html import render
from gate.reports.trials import SuiteTrials
from gate.security.escape import visible
from tests.unit.reports.hostile import CORPUS
from tests.unit.reports.samples import RESULTS, TRAJECTORY
from tests.unit.reports.test_hostile import hostile, result

from .conftest import SCHEMES, WIDTHS, broken_figures, clipped, overflow, overlaps, show, spilling, violations

if TYPE_CHECKING:
    from playwright.sync_api import Page

CASES = 100
WITHOUT_SCRIPTS = pytest.mark.parametrize("context_options", [{"java_script_enabled": False}])


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on made-up records of a support agent that breaks refunds."""
    return page_of(tmp_path_factory.mktemp("report"), CASES)


@pytest.fixture(scope="module")
def harmful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report in which every text is hostile."""
    path = tmp_path_factory.mktemp("harmful") / "report.html"
    path.write_text(render(*harm()), encoding="utf-8")
    return path


def harm() -> tuple[Any, list[SuiteTrials]]:
    suite = hostile()
    texts = [text.encode("utf-8", "replace").decode() for text in CORPUS]
    names = [one.id for one in suite.cases]
    calls = tuple(ToolCall(text, {text: text, "deep": [{text: [text]}]}, result=text, error=text) for text in texts)
    turns = tuple(Invocation(text, (Part(text), Part(text, thought=True)), calls, (Part(text),)) for text in texts[:6])
    scores = {text: Score(0.5, text, details={"votes": [1], "dimensions": {text: 0.5}}) for text in texts[:10]}
    trials = [Trial(name, 1, invocations=turns, scores={**scores, TRAJECTORY.name: Score(0.1, name)}) for name in names]
    trials += [Trial(name, 2, error=TrialError(ErrorKind.CRASH, texts[0])) for name in names]
    cases = [Case(name, ()) for name in names]
    return result(suite, command=CORPUS[0]), [SuiteTrials(cases, (TRAJECTORY,), lambda: trials, trials)]


def shown(page: Page) -> list[str]:
    return page.locator(".list .id").all_inner_texts()


# --- looks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_off(page: Page, real: Path, width: int, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    show(page, real)
    assert (overflow(page), spilling(page)) == ([], [])
    page.locator(".list .open").first.click()
    page.locator(".columns").wait_for()
    assert (overflow(page), clipped(page), overlaps(page), broken_figures(page)) == ([], [], [], [])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["pass", "error", "hostile", "two_suites"])
def test_nothing_is_cut_off_in_any_result(page: Page, tmp_path: Path, name: str, width: int) -> None:
    path = tmp_path / "report.html"
    path.write_text(render(RESULTS[name]), encoding="utf-8")
    page.set_viewport_size({"width": width, "height": 900})
    show(page, path)
    assert overflow(page) == []


@pytest.mark.parametrize("width", [390, 768, 1280, 1920])
def test_names_of_criteria_break_after_underscores_only(page: Page, real: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    show(page, real)
    lines = page.locator(".criteria .name").evaluate_all(
        """(names) => names.map((name) => {
          const lines = new Map();
          for (const node of [...name.childNodes].filter((one) => one.nodeType === 3)) {
            for (let at = 0; at < node.length; at++) {
              const range = document.createRange();
              range.setStart(node, at);
              range.setEnd(node, at + 1);
              const top = Math.round(range.getBoundingClientRect().top);
              lines.set(top, (lines.get(top) || '') + node.data[at]);
            }
          }
          return [...lines.values()];
        })"""
    )
    assert all(line.endswith("_") for name in lines for line in name[:-1])
    assert ["".join(name) for name in lines][1] == "tool_trajectory_avg_score"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing(page: Page, real: Path, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    show(page, real)
    page.locator(".list .open").first.click()
    page.locator(".columns").wait_for()
    assert violations(page) == []


def test_plots_are_drawn_inside_their_cells(page: Page, real: Path) -> None:
    show(page, real)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        outside = page.locator("svg.plot > *").evaluate_all(
            """(shapes) => shapes.filter((one) => {
              const inner = one.getBoundingClientRect(), outer = one.closest('svg').getBoundingClientRect();
              return inner.left < outer.left - 6 || inner.right > outer.right + 6;  // a dot at the end
            }).length"""
        )
        assert outside == 0


def test_the_theme_is_the_readers(page: Page, real: Path) -> None:
    show(page, real)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Theme: auto").click()
    page.get_by_role("button", name="Theme: light").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    for _ in range(20):  # the browser writes what a page stores after the page went on
        page.reload()
        if page.locator("#theme").inner_text() == "Theme: dark":
            return
    pytest.fail("the theme was forgotten")


def test_printed_it_has_what_a_script_would_hide(page: Page, real: Path) -> None:
    show(page, real)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator(".top").is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(23, 26, 31)"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(shown(page)) == CASES


def test_the_table_is_there_before_the_contents_of_cases_are_read(page: Page, real: Path) -> None:
    show(page, real)
    order = "[...document.querySelectorAll('script')].map((one) => one.id.split('-')[1] || 'script')"
    assert list(dict.fromkeys(page.evaluate(order))) == ["cases", "script", "piece"]
    assert page.evaluate("performance.getEntriesByName('table').length") == 1


def test_what_is_for_readers_without_scripts_is_not_made_for_others(page: Page, real: Path) -> None:
    show(page, real)
    assert page.locator("noscript *").count() == 0


# --- the table of cases -----------------------------------------------------------------------------


def test_rows_come_as_they_are_needed(page: Page, real: Path) -> None:
    show(page, real)
    assert page.locator(".found").inner_text() == f"{CASES} cases"
    assert len(shown(page)) < CASES
    while (more := page.get_by_role("button", name="Show more")).count():
        more.dispatch_event("click")  # to scroll to it shows more by itself
    page.locator(".list .row").nth(CASES - 1).wait_for()


def test_a_search_finds_names_questions_and_reasons(page: Page, real: Path) -> None:
    show(page, real)
    page.get_by_role("searchbox").fill("refund/ amount=4990")
    assert shown(page) and all(name.startswith("refund/") for name in shown(page))
    assert page.url.endswith("#q=refund%2F%20amount%3D4990")
    page.get_by_role("button", name="Clear").click()
    assert page.locator(".found").inner_text() == f"{CASES} cases"


def test_filters_narrow_together(page: Page, real: Path) -> None:
    show(page, real)
    page.get_by_role("combobox", name="Tag").select_option("refund")
    count = len(shown(page))
    page.get_by_role("combobox", name="Fails").select_option("response_match_score")
    assert 0 < len(shown(page)) < count
    assert all(name.startswith("refund/") for name in shown(page))
    assert page.locator(".found").inner_text() == f"{len(shown(page))} of {CASES} cases"


def test_the_order_is_the_readers(page: Page, real: Path) -> None:
    show(page, real)
    page.get_by_role("combobox", name="Order").select_option("id")
    assert shown(page) == sorted(shown(page))
    page.locator(".list thead button", has_text="Time").click()
    times = page.locator(".list .row .seconds").all_inner_texts()
    seconds = [float(time.removesuffix(" s")) for time in times if time.endswith(" s") and not time.endswith("ms")]
    assert seconds == sorted(seconds, reverse=True)
    assert page.locator("th[aria-sort]").inner_text() == "Time"


def test_an_address_opens_a_case(page: Page, real: Path) -> None:
    show(page, real)
    last = page.evaluate("JSON.parse(document.getElementById('data-cases-1').textContent).rows.at(-1)[0]")
    show(page, real, f"case={quote(last, safe='')}")
    page.reload()
    page.locator(".columns").wait_for()
    assert page.evaluate("document.activeElement.querySelector('.id').textContent") == last


def test_an_address_sets_filters(page: Page, real: Path) -> None:
    show(page, real, "tag=invoice&sort=id")
    assert shown(page) and all(name.startswith("invoice/") for name in shown(page))


def test_a_name_in_the_text_opens_its_trials(page: Page, real: Path) -> None:
    show(page, real)
    name = page.locator(".written a").first
    name.click()
    page.locator(".columns").wait_for()
    assert page.evaluate("document.activeElement.querySelector('.id').textContent") == name.inner_text()


def test_an_address_that_means_nothing_does_nothing(page: Page, real: Path) -> None:
    for fragment in ("case=none", "sort=__proto__", "tag=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", "%", "case"):
        page.goto("about:blank")
        show(page, real, fragment)
    assert page.locator("h1").is_visible()


def test_everything_is_done_by_keys(page: Page, real: Path) -> None:
    show(page, real)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("/")
    page.keyboard.type("refund/")
    page.locator(".list .open").first.focus()
    page.keyboard.press("Enter")
    page.locator(".columns").wait_for()
    pick = page.locator(".pick[aria-pressed=false]").first
    columns = page.locator(".head").count()
    pick.focus()
    page.keyboard.press("Space")
    assert page.locator(".head").count() == columns + 1
    page.keyboard.press("Escape")
    assert page.locator(".panel").count() == 0
    assert page.evaluate("document.activeElement.className") == "open"


# --- a case -----------------------------------------------------------------------------------------


def test_a_case_shows_what_differs(page: Page, real: Path) -> None:
    show(page, real)
    page.get_by_role("combobox", name="Tag").select_option("refund")
    page.locator(".list .open").first.click()
    panel = page.locator(".panel")
    panel.locator(".columns").wait_for()
    assert panel.locator(".head b").all_inner_texts()[0] == "Expected"
    assert panel.locator(".call.changed .tool").first.inner_text() == "issue_refund"
    assert panel.locator(".call.changed mark.out").first.inner_text() == "49.9"
    assert panel.locator(".call.changed mark.in").first.inner_text() == "4990"
    assert panel.locator(".call.added .tool").first.inner_text() == "escalate"
    assert "judge's votes" in panel.inner_text()
    assert "hands the customer over" in panel.inner_text()


def test_what_was_asked_is_read_without_scrolling_on_a_telephone(page: Page, real: Path) -> None:
    page.set_viewport_size({"width": 390, "height": 900})
    show(page, real)
    page.locator(".list .open").first.click()
    page.locator(".columns").wait_for()
    edges = "(all) => all.map((one) => one.getBoundingClientRect().right)"
    place = page.locator(".scroller").evaluate("(one) => one.getBoundingClientRect().right")
    assert all(right <= place + 1 for right in page.locator(".columns .user").evaluate_all(edges))


def test_words_that_differ_are_marked(page: Page, tmp_path: Path) -> None:
    said = ("The order was sent today by courier.", "The order was lost today by courier.")
    trials = [
        Trial(
            "one",
            number,
            invocations=(Invocation("where is it?", (Part(text),)),),
            scores={TRAJECTORY.name: Score(0.0)},
        )
        for number, text in enumerate(said, 1)
    ]
    suite = replace(RESULTS["regressed"].suites[0], cases=(CaseResult("one", CaseStatus.FAILED, trials=2),))
    path = tmp_path / "report.html"
    path.write_text(render(result(suite), [SuiteTrials([Case("one", ())], (TRAJECTORY,), lambda: trials)]))
    show(page, path, "case=one")
    page.locator(".pick[aria-pressed=false]").click()
    page.locator(".answer").nth(1).wait_for()
    assert page.locator(".answer mark.in").all_inner_texts() == ["lost"]
    assert page.locator(".answer mark.out").all_inner_texts() == ["sent"]


def test_a_passing_case_has_its_conversation(page: Page, real: Path) -> None:
    show(page, real)
    page.get_by_role("combobox", name="Status").select_option("ok")
    page.locator(".list .open").first.click()
    page.locator(".columns").wait_for()
    assert page.locator(".panel .user").first.inner_text()
    assert page.locator(".panel .answer").count() >= 1
    assert "a stored baseline keeps calls and scores" in page.locator(".panel").inner_text()


# --- without scripts, and with hostile texts --------------------------------------------------------


@WITHOUT_SCRIPTS
def test_without_scripts_it_says_what_matters(page: Page, real: Path, context_options: Mapping[str, Any]) -> None:
    show(page, real)
    assert page.locator("h1").is_visible()
    assert page.locator(".criteria .figures").first.is_visible()
    assert all(one.is_visible() for one in page.locator(".written").all())
    assert "needs JavaScript" in page.locator("noscript p.card").inner_text()
    assert page.locator("noscript p.card").is_visible()
    assert page.locator("#cases").is_hidden()
    assert overflow(page) == []


@pytest.mark.parametrize("width", [390, 1280])
def test_hostile_texts_do_nothing(page: Page, harmful: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    show(page, harmful)
    count = "document.querySelectorAll('script, img, iframe, object, base, link, meta').length"
    handlers = """[...document.querySelectorAll('*')]
      .filter((one) => one.getAttributeNames().some((name) => name.startsWith('on'))).length"""
    before = page.evaluate(count)
    for button in page.locator(".list .open").all()[:2]:
        button.click()
        page.locator(".columns, .panel").last.wait_for()
    for pick in page.locator(".pick[aria-pressed=false]").all()[:2]:
        pick.click()
    assert page.evaluate(count) == before
    assert page.evaluate(handlers) == 0
    assert overflow(page) == []
    text = page.locator("main").inner_text()
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200f]", text)


def test_characters_are_made_visible_as_in_all_reports(page: Page, tmp_path: Path) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in CORPUS]
    turns = tuple(Invocation("q", (Part(text),)) for text in texts[:40])
    suite = replace(RESULTS["regressed"].suites[0], cases=(CaseResult("one", CaseStatus.FAILED, trials=1),))
    made = result(suite)
    trials = [Trial("one", 1, invocations=turns, scores={TRAJECTORY.name: Score(0.0)})]
    path = tmp_path / "report.html"
    path.write_text(render(made, [SuiteTrials([Case("one", ())], (TRAJECTORY,), lambda: trials)]), encoding="utf-8")
    show(page, path, "case=one")
    page.locator(".columns").wait_for()
    shown_texts = page.locator(".columns .answer:not(.none)").evaluate_all("(all) => all.map((one) => one.textContent)")
    cut = [text if len(text) <= 4000 else text[:3999] + "…" for text in texts[:40]]
    assert shown_texts == [visible(text) for text in cut if text]
