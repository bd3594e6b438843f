"""The dashboard: complete, bounded, and harmless whatever names hold. In a browser: tests/browser/test_site.py."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from gate.histories.trends import Unread, suite_history
from gate.records.keys import suite_key
from gate.reports.html import site as module
from tests.unit.histories.drawn import drawn_runs
from tests.unit.reports.hostile import SOME_AND_ALL

from .histories import busy, page_of, shown

OWN_TAGS = frozenset(
    re.findall(
        r"\w+",
        "html head meta title style body a header div span button main h1 h2 h3 p section ul li svg path rect table "
        "thead tbody tr th td code wbr nav label input script footer",
    )
)
"""Of our templates."""


class Links(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: set[str] = set()
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        self.tags.add(tag)
        self.ids.add(held.get("id") or "")
        self.targets += [value for name in ("href", "src") if (value := held.get(name))]


@pytest.mark.slow
def test_every_suite_has_a_page_and_a_badge() -> None:
    files = shown(busy(), suite_history("billing", drawn_runs(3, lambda _: 0.9)))
    names = [suite_key(name) for name in ("support/evals.yaml", "billing")]
    own = {f"{name}.{kind}" for name in names for kind in ("html", "svg")}
    assert set(files) == {"index.html", "history.json"} | own
    assert "badge.svg" in shown(busy())
    document = json.loads(files["history.json"])
    assert [suite["suite"] for suite in document["suites"]] == ["support/evals.yaml", "billing"]


@pytest.mark.slow
def test_all_links_lead_to_files_and_places_of_the_dashboard() -> None:
    files = shown(busy())
    for name, page in files.items():
        if name.endswith(".html"):
            for target in Links(page).targets:
                file, _, place = target.partition("#")
                assert (file or name) in files, target
                assert not place or place in Links(files[file or name]).ids, target


def test_nothing_is_loaded() -> None:
    for name, page in shown(busy()).items():
        if name.endswith(".html"):
            assert "default-src &#39;none&#39;" in page
            assert not {"img", "link", "iframe", "object", "embed", "base"} & Links(page).tags, name
            assert " style=" not in page, "the policy forbids it"


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CASES", 10)
    monkeypatch.setattr(module, "MOST_RUNS", 5)
    page = page_of(busy())
    assert "the lowest 10 of 60 cases" in page
    assert "the newest 5 of 36 runs" in page
    unread = tuple(Unread(f"{n}.jsonl", "not closed") for n in range(90))
    index = shown(busy(), unread=unread)["index.html"]
    assert "90 records could not be read" in index
    assert index.count("<li><code>") == 50


@pytest.mark.slow
def test_a_page_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes a case and a run, so that 1,000 cases over 400 runs stay below two megabytes."""
    one, many = (len(page_of(busy(12, cases=n))) for n in (60, 120))
    assert (many - one) / 60 < 1_200
    few, long = (len(page_of(suite_history("s", drawn_runs(n, lambda _: 0.9)))) for n in (20, 60))
    assert (long - few) / 40 < 3_500


@pytest.mark.slow
@SOME_AND_ALL
def test_hostile_names_stay_text(texts: tuple[str, ...]) -> None:
    for name in texts:
        tags = {f"case-{n:02d}": frozenset({name} if n < 20 else ()) for n in range(40)}
        drawn = enumerate(drawn_runs(4, lambda _: 0.9, verdict=name))
        hostile = {"commit": name, "agent": name, "tags": tags, "releases": (name,)}
        runs = [replace(run, id=f"{name}{n}", **hostile) for n, run in drawn]  # type: ignore[arg-type]
        suite, commits = suite_history(name, runs), "r/{commit}.html"
        for file, content in shown(suite, unread=(Unread(name, name),), source=name, commits=commits).items():
            content.encode()
            if file.endswith(".html"):
                links = Links(content)
                assert links.tags <= OWN_TAGS
                assert not any(re.match(r"(?i)\s*(javascript|data|//|https?:)", target) for target in links.targets)
                assert "\x1b" not in content and "\u202e" not in content


def test_links_need_a_commit_that_is_one() -> None:
    commits = "https://code.example/commit/{commit}"
    assert f'href="https://code.example/commit/{busy().runs[-1].commit}"' in page_of(busy(), commits)
    runs = [replace(run, commit='"><script>') for run in drawn_runs(3, lambda _: 0.9)]
    assert "code.example" not in page_of(suite_history("s", runs), commits)


@pytest.mark.parametrize(("days", "said"), [(29, "pass"), (31, "unknown")])
def test_a_pass_of_long_ago_is_no_badge(days: int, said: str) -> None:
    """Runs that could not be measured are not stored: an old pass would stay green for ever."""
    runs = [*busy().runs[:-1], replace(busy().runs[-1], verdict="pass")]
    old = shown(replace(busy(), runs=tuple(runs)), made=runs[-1].created + days * 86_400)
    assert f": {said} (" in old["badge.svg"]
