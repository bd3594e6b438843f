"""The folder of recordings stays within its bound, and keeps what somebody may still want to replay."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gate.world.cassette import CassetteWriter, owner_of
from gate.world.pruning import YOUNG_SECONDS, owner_name, prune

NOW = 10_000_000.0
OLD = NOW - YOUNG_SECONDS - 1


def recording(folder: Path, run: str, owner: str = "me", written: float = OLD, size: int = 1_000) -> Path:
    path = folder / f"{run}.jsonl"
    writer = CassetteWriter(path, 10**6, owner)
    writer.close()
    with path.open("ab") as file:
        file.write(b" " * (size - path.stat().st_size - 1) + b"\n")
    os.utime(path, (written, written))
    return path


def left(folder: Path) -> set[str]:
    return {path.stem for path in folder.iterdir()}


def test_the_oldest_go_until_the_rest_fits(tmp_path: Path) -> None:
    for age, run in enumerate(("newest", "newer", "older", "oldest")):
        recording(tmp_path, run, written=OLD - age)
    assert prune(tmp_path, "me", 2_000, set, NOW) == (2, 2_000, 2_000)
    assert left(tmp_path) == {"newest", "newer"}


def test_nobody_is_asked_what_is_vouched_for_while_all_fits(tmp_path: Path) -> None:
    recording(tmp_path, "a")

    def never() -> set[str]:
        raise AssertionError

    assert prune(tmp_path, "me", 1_000, never, NOW) == (0, 0, 1_000)


def test_what_is_vouched_for_young_or_somebody_elses_stays_whatever_it_takes(tmp_path: Path) -> None:
    recording(tmp_path, "vouched")
    recording(tmp_path, "young", written=NOW - 60)
    recording(tmp_path, "theirs", owner="you")
    recording(tmp_path, "nobodys", owner="")
    recording(tmp_path, "mine")
    (tmp_path / "notes.jsonl").write_text("no recording\n")
    (tmp_path / "notes.txt").write_text("neither is this\n")
    (tmp_path / "empty.jsonl").touch()
    assert prune(tmp_path, "me", 1, lambda: {"vouched"}, NOW) == (1, 1_000, 2_000)
    assert left(tmp_path) == {"vouched", "young", "theirs", "nobodys", "notes", "empty"}


def test_a_link_is_neither_followed_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    outside = recording(tmp_path, "outside")
    (tmp_path / "store" / "link.jsonl").symlink_to(outside)
    assert prune(tmp_path / "store", "me", 1, set, NOW) == (0, 0, 0)
    assert outside.exists() and (tmp_path / "store" / "link.jsonl").is_symlink()


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert prune(tmp_path / "none", "me", 1, set, NOW) == (0, 0, 0)


def test_a_recording_says_whose_it_is_in_its_first_line(tmp_path: Path) -> None:
    assert owner_of(recording(tmp_path, "a", owner="x")) == "x"
    (tmp_path / "b.jsonl").write_bytes(b"\xff" * 5_000)
    assert owner_of(tmp_path / "b.jsonl") == ""


@pytest.mark.parametrize("other", ["b/gate.yaml", "a/other.yaml"])
def test_configurations_that_share_a_folder_are_told_apart(tmp_path: Path, other: str) -> None:
    assert owner_name(tmp_path / "a/gate.yaml") == owner_name(tmp_path / "a/../a/gate.yaml")
    assert owner_name(tmp_path / "a/gate.yaml") != owner_name(tmp_path / other)
