"""The words for a history: true to the numbers, with their intervals, and harmless whatever names hold."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from gate.commands.texts.history import history_text
from gate.decision.history import CaseHistory
from gate.decision.trends import SuiteHistory, suite_history
from gate.model import Direction
from gate.pipeline.history import Histories, Unread
from gate.reports.history import case_trend, day, findings, moved_line, moved_together, trend_line, warning_line
from gate.reports.history_json import render
from tests.unit.decision.histories import QUALITY, drawn_runs
from tests.unit.reports.hostile import CORPUS

FALLEN = suite_history("support", drawn_runs(16, lambda run: 0.95 if run < 9 else 0.7))
NEAR = replace(QUALITY, threshold=0.68)
DECLINING = suite_history("support", drawn_runs(16, lambda run: 0.97 - 0.012 * run, cases=120, criteria=(NEAR,)))
FLAT = suite_history("support", drawn_runs(12, lambda _: 0.9))


def text_of(*suites: SuiteHistory, unread: tuple[Unread, ...] = (), **options: bool) -> str:
    return history_text(Histories(suites, 9, unread, "here"), cases=options.pop("cases", False), **options)


def test_a_move_says_how_far_with_what_commit_and_how_sure() -> None:
    (together,) = moved_together(FALLEN)
    line = moved_line(together, FALLEN)
    assert line.startswith("with 0000009a (2026-01-10) pass rate fell by 2")
    assert " points; quality fell by 0." in line, "one cause is told once"
    assert "; pass rate of order fell by " in line
    assert line.endswith("p < 0.0001")


def test_a_trend_has_its_interval() -> None:
    line = trend_line(DECLINING.whole[0])
    assert line.startswith("pass rate falls: −1.")
    assert " points [−1." in line and " a week; 16 runs" in line
    assert "shows no trend beyond chance" in trend_line(FLAT.whole[0])
    assert trend_line(suite_history("s", drawn_runs(3, lambda _: 0.9)).whole[0]) == ""


def test_an_early_warning_says_when_and_its_uncertainty() -> None:
    line = next(filter(None, map(warning_line, DECLINING.whole)))
    assert line.startswith("at this trend quality is below 0.68 in ")
    assert line.endswith(" runs; 80 % interval")
    assert findings(DECLINING)[0] == f"early warning: {line}"
    rising = replace(QUALITY, threshold=0.35, direction=Direction.LOWER)
    suite = suite_history("s", drawn_runs(16, lambda run: 0.1 + 0.012 * run, cases=120, criteria=(rising,)))
    assert any("quality is above 0.35" in warning_line(series) for series in suite.whole)


def test_where_nothing_happened_that_is_said() -> None:
    assert findings(FLAT)[0].startswith("no criterion moved; pass rate shows no trend beyond chance")
    assert findings(suite_history("s", drawn_runs(2, lambda _: 0.9))) == ["2 runs: moves show from 4 on, trends from 8"]


def test_a_break_names_the_criterion_that_changed() -> None:
    runs = [
        *drawn_runs(8, lambda _: 0.9),
        *drawn_runs(12, lambda _: 0.5, criteria=(replace(QUALITY, fingerprint="x"),))[8:],
    ]
    lines = findings(suite_history("s", runs))
    assert "pass rate, quality from 0000008a (2026-01-09) on are not compared: quality measured in another way" in lines


def test_the_terminal_shows_criteria_tags_versions_and_cases() -> None:
    text = text_of(FALLEN)
    for part in ("support · 16 runs of 16 commits", "pass rate", "- refund", "quality", "version", "flaky", "▇"):
        assert part in text, part
    assert text.count("- refund") == 1
    assert text_of(FALLEN, tags=True).count("- refund") > 3
    assert len(text_of(FALLEN, cases=True).splitlines()) > len(text.splitlines()) + 20
    assert text_of(FALLEN, ascii_only=True).isascii()
    assert "▇" not in text_of(FALLEN, ascii_only=True)


def test_what_was_left_out_is_counted_and_named() -> None:
    unread = tuple(Unread(f"{n}.jsonl", "not closed") for n in range(7))
    text = text_of(FLAT, unread=unread)
    assert "7 records left out:\n  0.jsonl: not closed" in text
    assert text.endswith("and 2 more")


def test_json_is_indented_ascii_whatever_a_file_is_called() -> None:
    text = render([FLAT], [Unread("a\udc80é", "torn")], "here")
    document = json.loads(text)
    assert text.isascii() and text == json.dumps(document, indent=1) + "\n"
    assert document["left_out"] == [{"where": "a?é", "why": "torn"}]


def test_json_holds_every_number() -> None:
    document = json.loads(render([DECLINING], [Unread("x", "torn")], "here"))
    assert (document["history"], document["left_out"]) == (1, [{"where": "x", "why": "torn"}])
    (suite,) = document["suites"]
    assert len(suite["runs"]) == 16
    quality = next(one for one in suite["series"] if one["criterion"] == "quality" and one["tag"] is None)
    assert quality["early_warning"]["first"] <= quality["early_warning"]["last"]
    assert quality["trend"]["per_run"]["low"] < quality["trend"]["per_run"]["high"] < 0
    assert {"run", "average", "low", "high", "level", "sd", "cases", "n", "min", "max"} == set(quality["points"][0])
    assert {one["tag"] for one in suite["series"]} == {None, "order", "refund"}
    assert suite["versions"][0]["criteria"]["quality"]["n"] == 360
    moved = json.loads(render([FALLEN], [], "here"))["suites"][0]["series"][0]["moves"][0]
    assert moved["commits"]["commit"] == FALLEN.runs[9].commit


@pytest.mark.parametrize("name", CORPUS)
def test_hostile_names_are_harmless(name: str) -> None:
    runs = [
        replace(run, commit=name, agent=name, id=f"{name}{n}") for n, run in enumerate(drawn_runs(4, lambda _: 0.9))
    ]
    runs = [
        replace(run, tags={case: frozenset({name} if case < "case-20" else ()) for case in run.tags}) for run in runs
    ]
    text = text_of(suite_history(name, runs), unread=(Unread(name, name),))
    assert "\x1b" not in text and "\r" not in text
    assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    json.loads(render([suite_history(name, runs)], [Unread(name, name)], name))


@pytest.mark.parametrize("created", [0.0, -5.0, 1e300, float("inf")])
def test_an_unusable_time_is_a_dash(created: float) -> None:
    assert day(created) == "–"
    runs = [replace(run, created=abs(created) + n) for n, run in enumerate(drawn_runs(9, lambda _: 0.9))]
    text_of(suite_history("s", runs))


def test_a_case_that_was_not_run_is_a_gap() -> None:
    assert case_trend(CaseHistory("a", 3, 4, 0, 1, ((1, 2), (0, 0), (2, 2)))) == [0.5, None, 1.0]
