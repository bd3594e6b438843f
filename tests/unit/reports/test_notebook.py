"""What a notebook shows of a result: escaped, self-contained, bounded."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from msgspec.structs import replace

import gate
from gate.model import Result
from gate.reports.notebook import fragment

HOSTILE = "<script>alert(1)</script><img src=x onerror=y>\x1b[31m\u202e" + "x" * 5_000


class Tags(HTMLParser):
    """The tags of a document and their attributes, each of which is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag == "br" or self.open.pop() == tag


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Of a real run, in which one case of two fails."""
    root = tmp_path_factory.mktemp("notebook")
    (root / "cases.yaml").write_text("cases:\n- {id: a, input: hi, response: hi}\n- {id: b, input: hi, response: no}\n")
    (root / "own.py").write_text("def answer(message):\n    return message\n")
    config = {"suite": "cases.yaml", "agent": {"python": "own:answer"}, "criteria": {"response_match_score": 0.9}}
    return gate.run(config, root=root, overrides={"trials": 2, "baseline.store": "none"})


def test_a_notebook_shows_the_verdict_and_what_failed(result: Result) -> None:
    from IPython.core.formatters import DisplayFormatter

    shown, _ = DisplayFormatter().format(result)
    assert shown["text/html"] == fragment(result)
    for words in ("<code>cases.yaml</code>", "response_match_score", "<code>b</code>", "exit code "):
        assert words in shown["text/html"]
    assert shown["text/plain"].startswith("cases.yaml: ")
    assert len(shown["text/plain"].splitlines()) == 2


def test_a_judged_record_is_shown_too(result: Result) -> None:
    assert "cases.yaml" in gate.judge(Path(result.record_paths[0]))._repr_html_()  # type: ignore[attr-defined]


@pytest.mark.slow
def test_text_from_outside_is_no_markup(result: Result) -> None:
    (suite,) = result.suites
    cases = tuple(replace(case, id=HOSTILE, reasons=(HOSTILE,) * 9) for case in suite.cases) * 400
    criteria = tuple(replace(c, criterion=replace(c.criterion, name=HOSTILE)) for c in suite.criteria) * 100
    large = replace(suite, suite_id=HOSTILE, cases=cases, criteria=criteria)
    text = fragment(replace(result, suites=(large,) * 50, problems=(HOSTILE,) * 50))
    tags = Tags(text)
    own = "div h3 p strong table thead tbody tr th td sub details summary code pre ul li br span blockquote"
    assert tags.seen <= set(own.split())
    assert tags.attributes <= {"class"}
    assert not re.search("[\x00-\x08\x1b\u202e]", text)
    assert len(text) < 100_000
