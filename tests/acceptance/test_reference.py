"""The generated parts of the reference say what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.tools.reference import PAGES, keys, meaning, written
from gate.config.schema import File, GateSection


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: page.stem)
def test_a_page_is_as_it_would_be_written_now(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == written(page), "run `make docs`"


def test_defaults_and_bounds_are_those_of_the_models() -> None:
    assert f"(above 0, below 0.5) | `{GateSection().alpha}` |" in keys()
    assert "| `suite` | Files or folders with cases, in any format; one path or a list | required |" in keys()


def test_every_key_of_the_file_has_a_row_and_a_meaning() -> None:
    for name in File.model_fields:
        assert f"| `{name}` |" in keys()
        assert meaning(File, name)
