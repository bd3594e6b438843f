"""Which program is started to show a file, with real programs; none is ever started by a shell."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from gate.system.browser import open_in_browser


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "a page $(touch owned); %41.html"
    path.write_text("hello")
    return path


def program(folder: Path) -> tuple[Path, Path]:
    """A browser that writes down its arguments, and where it does."""
    told = folder / "told"
    path = folder / "browser"
    path.write_text(
        f"#!{sys.executable}\nimport os, sys\nopen({str(told)!r} + '~', 'w').write('\\n'.join(sys.argv[1:]))\n"
        f"os.replace({str(told)!r} + '~', {str(told)!r})\n"
    )
    path.chmod(0o755)
    return path, told


def arguments(told: Path) -> list[str]:
    while not told.exists():  # the test's own time-out ends it
        time.sleep(0.01)
    return told.read_text().split("\n")


def test_the_command_in_browser_gets_the_address_last(page: Path, tmp_path: Path) -> None:
    path, told = program(tmp_path)
    assert open_in_browser(page, {"BROWSER": f"{path} --new"})
    assert arguments(told) == ["--new", page.resolve().as_uri()]
    assert not Path("owned").exists()


def test_the_address_may_stand_within_the_command(page: Path, tmp_path: Path) -> None:
    path, told = program(tmp_path)
    assert open_in_browser(page, {"BROWSER": f"{path} --at=%s x"})
    assert arguments(told) == [f"--at={page.resolve().as_uri()}", "x"]


def test_the_first_of_several_that_starts_is_taken(page: Path, tmp_path: Path) -> None:
    path, told = program(tmp_path)
    missing = f"{tmp_path}/none {os.pathsep} 'open quotation {os.pathsep}{path}"
    assert open_in_browser(page, {"BROWSER": missing})
    assert arguments(told) == [page.resolve().as_uri()]


def test_nothing_is_opened_where_the_named_browser_is_missing(page: Path, tmp_path: Path) -> None:
    assert not open_in_browser(page, {"BROWSER": f"{tmp_path}/none"})


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have a display always")
def test_nothing_is_opened_without_a_display(page: Path) -> None:
    assert not open_in_browser(page, {})
