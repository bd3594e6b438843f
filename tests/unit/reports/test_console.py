"""The terminal report: widths, colours, encodings, one line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

import gate
from gate.model import Estimate
from gate.model.facts import AnsweredBy, CouldNotMeasure, TooManyErrors
from gate.model.findings import Change, GotWorse
from gate.model.results import CalibratedJudge
from gate.reports.console import render, render_line
from gate.reports.sparkline import encodable

from .samples import ACCEPTED, BROKEN, FAILED, FLAKY, PASSED, REGRESSED, RESULTS, result

WORDS = ("why", "what", "how", "who", "where")


@pytest.mark.parametrize("name", [n for n in RESULTS if n != "hostile"])
@pytest.mark.parametrize("width", [30, 50, 80, 140])
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    assert max(cell_len(line) for line in render(RESULTS[name], width=width).splitlines()) <= width


def test_every_figure_survives_a_narrow_terminal() -> None:
    flat = " ".join(render(RESULTS["regressed"], width=44).split())
    for said in ("80 % [65.2, 89.5] n = 40 (53 trials)", "−12.5 [−20, −5] points", "0 of 4 trials passed"):
        assert said in flat


def test_colour_only_where_asked() -> None:
    assert "\x1b" not in render(RESULTS["regressed"])
    coloured = render(RESULTS["regressed"], color=True)
    assert "\x1b[1;31m✗ support" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured).split() == render(RESULTS["regressed"]).split()


def test_the_environment_of_the_process_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = render(RESULTS["pass"], color=True)
    for name, value in {"NO_COLOR": "1", "COLUMNS": "20", "TERM": "dumb", "FORCE_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    assert render(RESULTS["pass"], color=True) == before


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "no-such-encoding"])
def test_what_the_encoding_lacks_is_replaced_in_place(encoding: str) -> None:
    plain = render(RESULTS["regressed"], encoding=encoding)
    assert plain.isascii()
    assert "x support  regressed" in plain
    assert "-12.5 [-20, -5] points" in plain
    assert [len(line) for line in plain.splitlines()] == [
        len(line) for line in render(RESULTS["regressed"]).splitlines()
    ]


WRITTEN = [Path(gate.__file__).parent / place for place in ("reports", "commands", "decision", "statistics")]
OTHER_FORMS = {"markdown.py", "openmetrics.py", "html"}


def test_every_symbol_that_a_terminal_is_shown_has_a_look_alike() -> None:
    """The code's own symbols, whatever report they come to."""
    places = [
        path for folder in WRITTEN for path in folder.rglob("*.py") if not OTHER_FORMS & {path.name, path.parent.name}
    ]
    symbols = set("".join(text for path in places for text in strings_of(path)))
    lost = {one for one in symbols if not one.isascii() and encodable(one, "ascii") == "?"}
    assert "µ" in symbols
    assert lost == set()


def strings_of(path: Path) -> list[str]:
    """The text constants of a module, without those that document it."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in documents]
    return [text for text in texts if isinstance(text, str)]


def test_one_line() -> None:
    assert render_line(RESULTS["pass"]) == (
        "support: pass: no worse than the baseline over 40 cases: a drop of more than 4.1 points is ruled out at 95 % "
        "confidence\nexit code 0: pass"
    )
    assert render_line(RESULTS["two_suites"]).count("\n") == 2


def test_a_line_has_room_for_why_nothing_was_measured() -> None:
    often = "unreachable: " + "x" * 230
    unmeasured = replace(FAILED, cause=CouldNotMeasure(TooManyErrors(1.0, 0.1, often)))
    said = "could not measure: 100 % of the trials ended in infrastructure errors; at most 10 % may"
    assert f"{said}; most often: {often}\n" in render_line(result(unmeasured))


def test_what_the_figures_say_is_not_said_again_and_the_statistics_are_left_to_explain() -> None:
    text = render(RESULTS["regressed"])
    assert "p < 0.001" not in text
    assert "error budget" not in text
    assert "p95 2.71 s [2.4, 2.98], n = 40" in render(RESULTS["regressed"], width=140)  # the limit is on it
    fell = replace(REGRESSED.criteria[0], findings=(GotWorse(Change(-0.125, -0.2, -0.05, 40), ("a", "b")),))
    flat = " ".join(render(result(replace(REGRESSED, criteria=(fell,)))).split())
    assert "over 40 cases" not in flat
    assert "broken: a, b" not in flat, "the headline and the list of cases name them"


def test_what_passes_by_a_corrected_mean_says_so_without_more_words() -> None:
    passed = RESULTS["pass"]
    [suite] = passed.suites
    rate = Estimate(0.9, 0.8, 0.95, 60, 60)
    known = CalibratedJudge(100, 92, 0.81, rate, rate, Estimate(0.88, 0.80, 0.94, 40, 40), None, slope=0.8)
    rows = tuple(replace(row, judge=known) for row in suite.criteria)
    told = "judge agrees with people on 92 of 100 labels (κ 0.81); corrected"
    assert told in render(replace(passed, suites=(replace(suite, criteria=rows),)))
    plain = tuple(replace(row, judge=replace(known, candidate=None)) for row in suite.criteria)
    assert "judge agrees" not in render(replace(passed, suites=(replace(suite, criteria=plain),)))


def test_few_cases_are_shown_and_where_the_rest_is() -> None:
    broken = tuple(replace(BROKEN[0], id=f"broken-{i}", reasons=(WORDS[i % 5],)) for i in range(7))
    flaky = tuple(replace(FLAKY, id=f"flaky-{i}", reasons=("why " * 100,)) for i in range(5))
    text = render(result(replace(REGRESSED, cases=(*broken, *flaky))))
    assert text.count("✗ broken-") == 5
    assert text.count("· flaky-") == 3
    assert text.count("… and 2 more") == 2
    assert max(len(block) for block in re.findall(r"(?:why *\n? *)+…", text)) < 200
    assert text.count("details:  gate explain gate.jsonl --case broken-0") == 1


def test_a_failing_answer_is_shown() -> None:
    lines = [line.strip() for line in render(RESULTS["pass"]).splitlines()]
    assert lines.index("- It is sunny in Paris.") + 1 == lines.index("+ No idea.")


def test_verdict_comes_first_and_the_exit_code_last() -> None:
    lines = render(RESULTS["regressed"]).strip().splitlines()
    assert lines[0] == "✗ support  regressed"
    assert "  next: fix it; a missed threshold cannot be accepted" in lines[:4], (
        "what to do stands right below the headline"
    )
    assert lines[-1] == "  exit code 1: the gate failed"


def test_what_answers_now_stands_above_the_table_of_a_pass_too() -> None:
    suite = replace(PASSED, changes=(AnsweredBy("model", ("m-2",), ("m-1",)), AnsweredBy("system", ("f2",), ("f1",))))
    text = render(result(suite), width=200)
    lines = [line.strip() for line in text.strip().splitlines()]
    assert lines[1].startswith("no worse than the baseline")
    assert lines[2].startswith("the provider answered with m-2 where the baseline had m-1")
    assert lines[3].startswith("the provider's system is f2 where it was f1")
    assert "What changed" not in text and text.count("m-2") == 1


def test_undecided_is_never_called_a_pass() -> None:
    assert render(RESULTS["inconclusive"]).endswith("exit code 0: inconclusive, which does not block here")


def test_an_accepted_regression_says_by_whom() -> None:
    assert "accepted: ann accepted this" in render(result(ACCEPTED))
