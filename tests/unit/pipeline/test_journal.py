"""Which file a record goes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.errors import MeasureError
from gate.pipeline.journal import _free


def test_a_name_is_given_once_however_many_ask_at_the_same_moment(tmp_path: Path) -> None:
    names = [_free(tmp_path / "records", "now").name for _ in range(3)]
    assert names == ["now.jsonl", "now-2.jsonl", "now-3.jsonl"]


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("a file")
    with pytest.raises(MeasureError, match="the record cannot be written"):
        _free(tmp_path / "records", "now")
