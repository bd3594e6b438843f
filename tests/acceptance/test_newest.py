"""Commands on records without one being named, and the report in a browser."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

import pytest

from tests.acceptance.conftest import Project, first_of

ANSWERS = "import json, sys\nsys.stdin.read()\nprint(json.dumps({'output': %r, 'tool_calls': []}))\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("made"))
    project.write("suite.yaml", {"cases": [{"id": f"c{n}", "input": "hi", "response": "yes"} for n in range(3)]})
    project.write(
        "gate.yaml",
        {
            "suite": "suite.yaml",
            "agent": {"command": f"{shlex.quote(sys.executable)} agent.py"},
            "criteria": {"response_match_score": 0.5},
            "trials": 1,
            "baseline": {"store": "none"},
        },
    )
    for answer in ("yes", "no"):
        project.write("agent.py", ANSWERS % answer)
        project.gate("run", "-q")
        time.sleep(0.02)
    return project


@pytest.fixture
def measured(project: Project, made: Project) -> Project:
    return made.copied(project)


def records(project: Project) -> list[Path]:
    return sorted((project.root / ".gate/records").glob("*/*.jsonl"), key=lambda path: path.stat().st_mtime)


@pytest.mark.parametrize("command", first_of([["report", "-q"], ["explain"], ["open"]]))
def test_the_newest_record_is_taken_and_said(measured: Project, command: list[str]) -> None:
    newest = records(measured)[-1]
    ran, named = measured.gate(*command), measured.gate(*command, str(newest))
    assert "below" in ran.out or command == ["open"]
    assert ran.err.startswith("gate: the newest record: ")
    assert str(newest.relative_to(measured.root)) in ran.err
    assert (ran.code, ran.out) == (named.code, named.out)
    assert "newest" not in named.err


@pytest.mark.parametrize("command", [["explain"], ["report"], ["open"], ["compare"]])
def test_without_any_record_one_line_says_what_to_do(project: Project, command: list[str]) -> None:
    ran = project.gate(*command)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "gate: .gate/records: no finished record (`gate run` writes one; or name a record)\n"


def test_the_judged_record_comes_first_everywhere(measured: Project) -> None:
    old, new = map(str, records(measured))
    assert measured.gate("compare", "-q").out == measured.gate("compare", new, old, "-q").out
    assert measured.gate("compare", "-q").out == measured.gate("compare", new, "-q").out
    assert "compared with the record before it" in measured.gate("compare", "-q").err
    first = measured.gate("compare", old)
    assert (first.code, first.out) == (3, "")
    assert "no earlier record" in first.err


def test_an_unfinished_record_is_passed_over(measured: Project) -> None:
    old, new = records(measured)
    new.write_text("".join(new.read_text().splitlines(keepends=True)[:-1]))
    assert old.name in measured.gate("report", "-q").err


@pytest.mark.parametrize("asked", first_of([{"TERM": "dumb"}, {"NO_COLOR": "1"}]))
def test_a_plain_terminal_gets_text_without_anything_that_moves_its_cursor(
    measured: Project, asked: dict[str, str]
) -> None:
    for arguments in (("report", "-v"), ("report", "-q"), ("run", "--resume")):
        ran = measured.gate(*arguments, **asked)
        assert ran.out.isascii() or "TERM" not in asked
        assert "\x1b" not in ran.out + ran.err and "\r" not in ran.out + ran.err
    assert measured.gate("report", **asked).out.isascii() is ("TERM" in asked)


@pytest.mark.slow
def test_open_writes_the_page_and_starts_the_browser(measured: Project) -> None:
    told = measured.root / "told"
    browser = measured.write("browser.py", "import pathlib, sys\npathlib.Path('told').write_text(sys.argv[1])\n")
    ran = measured.gate("open", BROWSER=f"{shlex.quote(sys.executable)} {browser}")
    page = measured.root / ran.out.strip()
    assert "<html" in page.read_text()
    while not (told.exists() and told.read_text()):
        time.sleep(0.01)
    assert told.read_text() == page.as_uri()
    assert "no browser" in measured.gate("open", BROWSER="/no/such/browser").err
