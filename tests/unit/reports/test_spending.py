"""What reports say of the money, and of the commit that was measured."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from gate.model import Result
from gate.reports import console, headline, html, junit, labels, markdown
from gate.reports import json as json_report

from .samples import PASSED, RESULTS

LISTED = replace(PASSED, cost_usd=0.0435, judge_cost_usd=None, cost_basis="list price", agent_runs=12)


@pytest.mark.parametrize(
    ("basis", "unknown", "line", "short"),
    [
        ("reported", 0, "$0.0435 agent ·", "$0.0435 · 12 runs"),
        ("list price", 0, "$0.0435 agent by list price ·", "$0.0435 by list price · 12 runs"),
        ("partly list price", 0, "$0.0435 agent partly by list price ·", "$0.0435 partly by list price · 12 runs"),
        ("reported", 1, "$0.0435 agent, without 1 run of unknown cost ·", "at least $0.0435 · 12 runs"),
        (
            "list price",
            2,
            "$0.0435 agent by list price, without 2 runs of unknown cost ·",
            "at least $0.0435 by list price · 12 runs",
        ),
    ],
)
def test_cost_says_where_it_is_from(basis: str, unknown: int, line: str, short: str) -> None:
    suite = replace(LISTED, cost_basis=basis, cost_unknown=unknown, errors=0)
    assert line in labels.cost_line(suite)
    assert headline.cost(suite) == short
    assert line in markdown.render(_of(suite))


def test_cost_in_html() -> None:
    page = html.render(_of(LISTED))
    assert "12 runs, by list price" in page
    assert "$0.0435 agent by list price" in page


def _of(suite: object) -> Result:
    return replace(RESULTS["pass"], suites=(suite,))


def test_uncommitted_changes_are_no_commit() -> None:
    commit = "6e132310c331aaaa"
    assert PASSED.baseline is not None
    clean = replace(PASSED, commit=commit, baseline=replace(PASSED.baseline, commit=commit))
    said = "with uncommitted changes"
    renders = (console.render, markdown.render, html.render)
    for render in renders:
        assert said not in render(_of(clean))
    dirty = replace(clean, dirty=True)
    for render in renders:
        assert said in " ".join(render(_of(dirty)).split())
    assert "at `6e13231` with uncommitted changes\n" in markdown.render(_of(dirty))
    assert "against `6e13231`  \n" in markdown.render(_of(dirty))
    assert "**Measured** `6e132310c331` with uncommitted changes, " in markdown.render(_of(dirty))
    assert json.loads(json_report.render(_of(dirty)))["suites"][0]["dirty"] is True
    assert 'name="uncommitted_changes" value="true"' in junit.render(_of(dirty))
    assert "uncommitted_changes" not in junit.render(_of(clean))
    older = replace(clean, baseline=replace(PASSED.baseline, commit=commit, dirty=True))
    assert "against `6e13231` with uncommitted changes  \n" in markdown.render(_of(older))
    assert labels.baseline_line(older.baseline).startswith("6e132310c331 with uncommitted changes, ")
