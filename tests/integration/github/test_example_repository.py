"""What `examples/repository` shows is what its workflow leaves. `make golden` writes it anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from tests.integration.github.example import CHANGES, DATES, EXAMPLE, LEFT, play, steady
from tests.integration.github.fake_github import FakeGitHub
from tests.integration.github.test_reusable import shown


@pytest.mark.slow
def test_its_pull_requests_left_what_it_shows(
    tmp_path: Path, fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in DATES.items():
        monkeypatch.setenv(name, value)
    left = play(tmp_path, fake)
    if os.environ.get("GATE_UPDATE_GOLDEN"):
        for folder, files in left.items():
            (EXAMPLE / LEFT / folder).mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (EXAMPLE / LEFT / folder / name).write_text(text, encoding="utf-8")
    for folder, files in left.items():
        assert {path.name for path in (EXAMPLE / LEFT / folder).iterdir()} == files.keys()
        for name, text in files.items():
            kept = (EXAMPLE / LEFT / folder / name).read_text(encoding="utf-8")
            assert steady(kept) == steady(text), f"{folder}/{name}"


def test_it_shows_these_pull_requests_and_no_others() -> None:
    assert {path.name for path in (EXAMPLE / LEFT).iterdir()} == {change.folder for change in CHANGES}


def test_its_workflow_is_the_readmes_without_what_an_agent_without_a_key_needs() -> None:
    own = yaml.safe_load((EXAMPLE / ".github/workflows/gate.yml").read_text(encoding="utf-8"))
    workflow = shown()
    for key in ("with", "secrets"):
        del workflow["jobs"]["gate"][key]
    assert own == workflow
