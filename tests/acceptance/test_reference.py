"""The generated parts of the reference say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.tools.figure import FIGURE, FRONTIER, figure, frontier
from docs.tools.reference import PAGES, keys, meaning, written
from gate.config.schema import File, GateSection
from gate.model.strictness import FREE, strictness_of
from tests.acceptance.conftest import REPOSITORY


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: page.stem)
def test_a_page_is_as_it_would_be_written_now(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == written(page), "run `make docs`"


def test_the_figures_are_those_of_the_measured_tables() -> None:
    assert FIGURE.read_text(encoding="utf-8") == figure(), "run `make docs`"
    assert FRONTIER.read_text(encoding="utf-8") == frontier(), "run `make docs`"


def test_defaults_and_bounds_are_those_of_the_models() -> None:
    assert f"(above 0, below 0.5) | `{GateSection().alpha}` |" in keys()
    assert "| `suite` | Files or folders with cases, in any format; one path or a list | required |" in keys()


def test_every_key_of_the_file_has_a_row_and_a_meaning() -> None:
    for name in File.model_fields:
        assert f"| `{name}` |" in keys()
        assert meaning(File, name)


def test_the_page_on_github_lists_the_keys_that_are_the_changes_own() -> None:
    page = (REPOSITORY / "docs" / "how-to" / "github.md").read_text(encoding="utf-8")
    listed = re.search(r"every configuration key except\n(.*?)\.", page)
    assert listed is not None
    assert re.findall(r"`(\w+)`", listed[1]) == [key for key in File.model_fields if strictness_of(File, key) is FREE]
