"""The terminal report: widths, colours, encodings, one line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from rich.cells import cell_len

import gate
from gate.reports.console import render
from gate.reports.sparkline import encodable

from .samples import RESULTS


@pytest.mark.parametrize("name", [n for n in RESULTS if n != "hostile"])
@pytest.mark.parametrize("width", [30, 50, 80, 140])
def test_no_line_is_wider_than_the_terminal_but_a_command_to_copy(name: str, width: int) -> None:
    for verbose in (False, True):
        lines = render(RESULTS[name], width=width, verbose=verbose).splitlines()
        told = [line for line in lines if " gate explain " not in line]
        assert max(map(cell_len, told)) <= width


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
    plain = render(RESULTS["regressed"], encoding=encoding, verbose=True)
    assert plain.isascii()
    assert "x support  regressed" in plain
    assert [len(line) for line in plain.splitlines()] == [
        len(line) for line in render(RESULTS["regressed"], verbose=True).splitlines()
    ]


WRITTEN = [Path(gate.__file__).parent / place for place in ("reports", "commands", "decision", "statistics")]
OTHER_FORMS = {"markdown.py", "openmetrics.py", "html"}


NEVER_SHOWN = "\ue000"
"""Keeps a command on one line while lines are wrapped; a space again before anything is printed."""


@pytest.mark.slow
def test_every_symbol_that_a_terminal_is_shown_has_a_look_alike() -> None:
    """The code's own symbols, whatever report they come to."""
    places = [
        path for folder in WRITTEN for path in folder.rglob("*.py") if not OTHER_FORMS & {path.name, path.parent.name}
    ]
    symbols = set("".join(text for path in places for text in strings_of(path))) - {NEVER_SHOWN}
    lost = {one for one in symbols if not one.isascii() and encodable(one, "ascii") == "?"}
    assert "µ" in symbols
    assert lost == set()


def strings_of(path: Path) -> list[str]:
    """The text constants of a module, without those that document it."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in documents]
    return [text for text in texts if isinstance(text, str)]
