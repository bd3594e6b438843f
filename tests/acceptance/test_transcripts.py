"""The commands that pages tell a reader to type are typed, and print what the pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.tools.transcripts import check, masked, pages, rewrite, steps
from tests import warm
from tests.acceptance.conftest import REPOSITORY

START = [REPOSITORY / "docs/how-to" / name for name in ("quickstart.md", "write-cases.md", "read-the-result.md")]


def expect_no_difference(page: Path, folder: Path) -> None:
    if found := "\n".join(map(str, check(page, folder, warm.options_of_a_script))):
        pytest.fail(found)  # whole: an assertion would show its first lines alone


def test_the_pages_of_the_start_are_run() -> None:
    assert set(START) <= set(pages())


@pytest.mark.slow
@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_page_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    expect_no_difference(page, tmp_path)


def test_a_page_that_says_something_else_is_found_and_rewritten(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- run -->\n\n```console\n$ echo one\n1\n$ false\n$ echo $?\n1\n```\n")
    [found] = check(page, tmp_path)
    assert (found.step.command, found.step.printed, found.printed) == ("echo one", "1\n", "one\n")
    rewrite(page, [found])
    assert page.read_text() == "<!-- run -->\n\n```console\n$ echo one\none\n$ false\n$ echo $?\n1\n```\n"


def test_only_what_differs_in_every_run_is_masked() -> None:
    assert masked("commit 46baef712003 after 418 ms\n") == masked("commit 80f2911c3f29 after 1.2 s")
    assert masked("s: screen, 9 runs\n  3 of 9 runs, 20 s left\nafter 418 ms\n") == masked("after 2 min 5 s")
    assert masked("2 of 10 cases broke") != masked("3 of 10 cases broke")
    assert masked("exit code 1") != masked("exit code 0")


def test_a_command_may_run_over_several_lines() -> None:
    [first, second] = steps("$ one \\\n  two\nout\n$ three\n", 0)
    assert (first.command, first.printed, second.command) == ("one \\\n  two", "out\n", "three")


def test_the_name_of_every_file_is_in_the_text_before_it() -> None:
    """The mark itself is invisible to a reader."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for found in re.finditer(r"<!-- file: (\S+) -->", text):
            paragraph = text[: found.start()].rstrip().rpartition("\n\n")[2]
            assert f"`{found[1]}`" in paragraph, (page.name, found[1])
