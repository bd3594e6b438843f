"""Histories: their numbers as JSON, and no harm whatever names hold. Their words stand in tests/golden."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from gate.histories.cases import CaseHistory
from gate.histories.trends import Histories, SuiteHistory, Unread, suite_history
from gate.insight.history_text import history_text
from gate.reports.history import cases_table, day, moved_together
from gate.reports.history_json import render
from tests.unit.histories.drawn import QUALITY, drawn_runs
from tests.unit.reports.hostile import SOME_AND_ALL

FALLEN = suite_history("support", drawn_runs(16, lambda run: 0.95 if run < 9 else 0.7))
NEAR = replace(QUALITY, threshold=0.68)
DECLINING = suite_history("support", drawn_runs(16, lambda run: 0.97 - 0.012 * run, cases=120, criteria=(NEAR,)))
FLAT = suite_history("support", drawn_runs(12, lambda _: 0.9))
SHORT = suite_history("support", drawn_runs(2, lambda _: 0.9))
CHANGED = suite_history(
    "support",
    [*drawn_runs(8, lambda _: 0.9), *drawn_runs(12, lambda _: 0.5, criteria=(replace(QUALITY, fingerprint="x"),))[8:]],
)


def text_of(*suites: SuiteHistory, unread: tuple[Unread, ...] = ()) -> str:
    return history_text(Histories(suites, unread, "here"), cases=False)


def test_what_moved_with_one_commit_is_one_cause() -> None:
    (together,) = moved_together(FALLEN)
    assert len(together) > 2
    assert text_of(FALLEN).count("- refund") == 1


def test_json_is_indented_ascii_whatever_a_file_is_called() -> None:
    text = render(Histories((FLAT,), (Unread("a\udc80é", "torn"),), "here"))
    document = json.loads(text)
    assert text.isascii() and text == json.dumps(document, indent=1) + "\n"
    assert document["left_out"] == [{"where": "a?é", "why": "torn"}]


def test_json_holds_every_number() -> None:
    document = json.loads(render(Histories((DECLINING,), (Unread("x", "torn"),), "here")))
    assert (document["history"], document["left_out"]) == (1, [{"where": "x", "why": "torn"}])
    (suite,) = document["suites"]
    assert len(suite["runs"]) == 16
    quality = next(one for one in suite["series"] if one["criterion"] == "quality" and one["tag"] is None)
    assert quality["early_warning"]["first"] <= quality["early_warning"]["last"]
    assert quality["trend"]["per_run"]["low"] < quality["trend"]["per_run"]["high"] < 0
    assert {"run", "average", "low", "high", "level", "sd", "cases", "n", "min", "max"} == set(quality["points"][0])
    assert {one["tag"] for one in suite["series"]} == {None, "order", "refund"}
    assert suite["versions"][0]["criteria"]["quality"]["n"] == 360
    moved = json.loads(render(Histories((FALLEN,), (), "here")))["suites"][0]["series"][0]["moves"][0]
    assert moved["commits"]["commit"] == FALLEN.runs[9].commit


@SOME_AND_ALL
def test_hostile_names_are_harmless(texts: tuple[str, ...]) -> None:
    drawn = list(enumerate(drawn_runs(4, lambda _: 0.9)))
    for name in texts:
        tags = {case: frozenset({name} if case < "case-20" else ()) for case in drawn[0][1].tags}
        suite = suite_history(name, [replace(r, commit=name, agent=name, id=f"{name}{n}", tags=tags) for n, r in drawn])
        text = text_of(suite, unread=(Unread(name, name),))
        assert "\x1b" not in text and "\r" not in text
        assert not any(line.lstrip().startswith("::") for line in text.splitlines())
        json.loads(render(Histories((suite,), (Unread(name, name),), name)))


@pytest.mark.parametrize("created", [0.0, -5.0, 1e300, float("inf")])
def test_an_unusable_time_is_a_dash(created: float) -> None:
    assert day(created) == "–"
    runs = [replace(run, created=abs(created) + n) for n, run in enumerate(drawn_runs(9, lambda _: 0.9))]
    text_of(suite_history("s", runs))


def test_a_case_that_was_not_run_is_a_gap() -> None:
    counts = ((1, 2), (0, 0), (2, 2)) * 5
    _, (*_, picture) = cases_table([CaseHistory("a", 3, 4, 0, 1, counts)])
    assert picture == "▅·█" * 5
