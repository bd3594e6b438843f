"""What `examples/repository` shows is what its workflow leaves. `make golden` writes it anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from docs.tools.readme_picture import COMMENT, PICTURE, SIGNATURE, digest, source_of
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
        keep(left)
    for folder, files in left.items():
        assert {path.name for path in (EXAMPLE / LEFT / folder).iterdir()} - {PICTURE.name} == files.keys()
        for name, text in files.items():
            kept = (EXAMPLE / LEFT / folder / name).read_text(encoding="utf-8")
            assert steady(kept) == steady(text), f"{folder}/{name}"


def keep(left: dict[str, dict[str, str]]) -> None:
    """Write the files that differ by more than times."""
    for folder, files in left.items():
        (EXAMPLE / LEFT / folder).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            path = EXAMPLE / LEFT / folder / name
            if not path.exists() or steady(path.read_text(encoding="utf-8")) != steady(text):
                path.write_text(text, encoding="utf-8")


@pytest.mark.slow
def test_the_readmes_picture_is_of_the_comment_as_it_is() -> None:
    picture = PICTURE.read_bytes()
    assert picture.startswith(SIGNATURE) and len(picture) < 300_000
    assert source_of(picture) == digest(COMMENT.read_bytes()), "`make picture` draws it anew"


def test_it_shows_these_pull_requests_and_no_others() -> None:
    assert {path.name for path in (EXAMPLE / LEFT).iterdir()} == {change.folder for change in CHANGES}


def test_its_workflow_is_the_readmes_without_what_an_agent_without_a_key_needs() -> None:
    own = yaml.safe_load((EXAMPLE / ".github/workflows/gate.yml").read_text(encoding="utf-8"))
    workflow = shown()
    for key in ("with", "secrets"):
        del workflow["jobs"]["gate"][key]
    assert own == workflow
