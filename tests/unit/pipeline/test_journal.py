"""Which file a record goes to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gate.errors import MeasureError
from gate.pipeline.journal import _free, newest_first


def test_a_name_is_given_once_however_many_ask_at_the_same_moment(tmp_path: Path) -> None:
    names = [_free(tmp_path / "records", "now").name for _ in range(3)]
    assert names == ["now.jsonl", "now-2.jsonl", "now-3.jsonl"]


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
        _free(tmp_path / "records", "now")
