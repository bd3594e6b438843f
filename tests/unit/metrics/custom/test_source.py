"""Which file a custom metric is: the base commit's before the change's, ours and installed ones before the user's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import gate
from gate.errors import ConfigError
from gate.metrics.custom.source import Folders, namesake, searched, source_of, split


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    for name in ("own", "base", "own/lib"):
        (tmp_path / name).mkdir()
    (tmp_path / "own" / "metrics_of_mine.py").write_text("own")
    return Folders(str(tmp_path / "own"), str(tmp_path / "base"), ("lib",))


@pytest.mark.parametrize("in_agent", [True, False])
def test_the_base_commits_file_comes_first(folders: Folders, in_agent: bool) -> None:
    assert folders.find("metrics_of_mine:x", in_agent=in_agent) == (folders.own, b"own")
    Path(folders.base, "metrics_of_mine.py").write_text("base")
    assert folders.find("metrics_of_mine:x", in_agent=in_agent) == (folders.base, b"base")


def test_what_is_in_no_folder_is_taken_as_installed(folders: Folders) -> None:
    assert folders.find("metrics_of_nobody:x", in_agent=True) == (folders.own, None)


def test_the_agents_further_folders_count_in_its_interpreter_alone(folders: Folders) -> None:
    Path(folders.own, "lib", "metrics_in_lib.py").write_text("lib")
    assert folders.find("metrics_in_lib:x", in_agent=True) == (folders.own, b"lib")
    assert folders.find("metrics_in_lib:x", in_agent=False) == (folders.own, None)


def test_the_changes_own_folder_is_hidden_from_the_base_commits_metrics(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where Python itself looks there."""
    monkeypatch.syspath_prepend(folders.own)
    assert folders.own not in searched(folders.base, folders.hidden_from(folders.base))
    assert folders.file_of("metrics_of_mine:x", folders.base, in_agent=False) is None


def test_the_users_folder_is_the_last_one(tmp_path: Path) -> None:
    assert searched(str(tmp_path)) == [*filter(None, sys.path), str(tmp_path)]
    (tmp_path / "json.py").write_text("")
    assert source_of("json:loads", searched(str(tmp_path))) != tmp_path / "json.py"


def test_both_spellings() -> None:
    for path, parts in [("a.b:c", ("a.b", "c")), ("a.b.c", ("a.b", "c")), ("a:b.c", ("a", "b.c"))]:
        assert split(path) == parts, (path, parts)


def test_what_names_nothing_is_refused() -> None:
    for path in ["", "a", ":a", "a:", "."]:
        with pytest.raises(ConfigError, match="names no metric"):
            split(path)


@pytest.mark.parametrize(("name", "is_folder"), [("gate", True), ("gate.py", False)])
def test_a_namesake_is_the_users_and_not_ours(tmp_path: Path, name: str, is_folder: bool) -> None:
    assert namesake("gate", [tmp_path]) is None
    (tmp_path / name).mkdir() if is_folder else (tmp_path / name).write_text("")
    assert namesake("gate", [tmp_path]) == namesake("gate.model", [tmp_path]) == tmp_path / name
    assert namesake("gateway", [tmp_path]) is None
    assert namesake("", [tmp_path]) is None
    assert namesake("gate", [Path(gate.__file__).parents[1]]) is None
