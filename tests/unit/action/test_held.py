"""The runner's files are what they were, and in the folder where they were, whatever a change did to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.action.held import HeldFiles


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "commands"
    folder.mkdir()
    (folder / "output").touch(mode=0o644)
    (folder / "event.json").write_text('{"number": 1}')
    return {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_EVENT_PATH": str(folder / "event.json")}


def test_words_a_link_and_a_folder_are_gone(environment: dict[str, str], tmp_path: Path) -> None:
    held = HeldFiles(environment)
    output, event = Path(environment["GITHUB_OUTPUT"]), Path(environment["GITHUB_EVENT_PATH"])
    outside = tmp_path / "outside"
    outside.write_text("another's")
    output.write_text("verdict=pass\n")
    event.unlink()
    event.symlink_to(outside)
    assert held.restore() == []
    assert (output.read_text(), event.read_text(), event.is_symlink()) == ("", '{"number": 1}', False)
    output.unlink()
    (output / "deep").mkdir(parents=True)
    assert held.restore() == []
    assert (output.read_text(), outside.read_text()) == ("", "another's")
    held.close()


def test_another_folder_in_the_place_of_theirs_is_said(environment: dict[str, str], tmp_path: Path) -> None:
    held = HeldFiles(environment)
    (tmp_path / "commands").rename(tmp_path / "moved")
    (tmp_path / "commands").mkdir()
    problems = held.restore()
    held.close()
    assert len(problems) == 1, "the event is what it was, in the folder that is held"
    assert environment["GITHUB_OUTPUT"] in problems[0]
