"""Records are called by their suite and commit, safely, and no two alike."""

from __future__ import annotations

import pytest

from gate.records.keys import UNCOMMITTED, commit_key, key_of, suite_key
from tests.unit.baselines.samples import make_record


@pytest.mark.parametrize("suite", ["../../etc/passwd", "", "a/b\\c", "x" * 5000, "größe 漢字", ".", "\ud800", "A", "a"])
def test_a_suite_is_a_safe_folder_of_its_own(suite: str) -> None:
    key = suite_key(suite)
    assert key.isascii() and 0 < len(key) < 60
    assert not set(key) & set("/\\. ")
    assert key not in {suite_key(other) for other in ("A", "a", "a b", "a-b", "") if other != suite}


def test_a_work_tree_with_changes_does_not_stand_for_its_commit() -> None:
    header = make_record(1).header
    assert commit_key(header) == key_of(header.commit)
    assert key_of(None) == UNCOMMITTED
