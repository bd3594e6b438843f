"""Which file a record goes to."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gate.errors import MeasureError
from gate.pipeline.journal import free_path, newest_first
from gate.records import Header

HEADER = Header("suite", (), (), "run", "1.0")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_name_is_given_once_however_many_ask_at_the_same_moment(tmp_path: Path) -> None:
    names = [free_path(tmp_path / "records", HEADER, NOW).name for _ in range(3)]
    assert names == ["20260102T030405.jsonl", "20260102T030405-2.jsonl", "20260102T030405-3.jsonl"]


def test_what_somebody_laid_beside_the_records_is_none(tmp_path: Path) -> None:
    """A pipe would hold the gate for ever, a device fill its memory."""
    own = tmp_path / "own.jsonl"
    own.write_text("{}")
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "device.jsonl").symlink_to("/dev/zero")
    (tmp_path / "link.jsonl").symlink_to(own)
    (tmp_path / "folder.jsonl").mkdir()
    assert newest_first(tmp_path) == [own]


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("a file")
    with pytest.raises(MeasureError, match="the record cannot be written"):
        free_path(tmp_path / "records", HEADER, NOW)
