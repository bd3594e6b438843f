"""Files that grow: nothing is lost and nothing is read twice, however they are written, rotated and cut."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.monitor import sources
from gate.monitor.sources import Files, Line, Position


def drain(files: Files) -> list[bytes | None]:
    """Everything that is there, in order."""
    files.look()
    found: list[bytes | None] = []
    while unread := [file for file in files.open.values() if not file.is_done()]:
        for file in unread:
            found += [line.data for line in file.read()]
    return found


def positions(files: Files) -> list[Position]:
    return [file.position(file.offset) for file in files.open.values()]


@given(
    lines=st.lists(st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b".")), max_size=12),
    cuts=st.lists(st.integers(0, 500), max_size=8),
    restarts=st.booleans(),
)
def test_however_a_file_is_written_its_lines_come_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], cuts: list[int], restarts: bool
) -> None:
    path = tmp_path_factory.mktemp("grows") / "a.jsonl"
    data = b"".join(line + b"\n" for line in lines)
    path.write_bytes(b"")
    files, found = Files([path], []), []
    for end in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
        with path.open("ab") as file:
            file.write(data[path.stat().st_size : end])
        found += drain(files)
        if restarts:
            files = Files([path], positions(files))
    assert found == lines


def test_a_line_that_is_still_being_written_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b": ')
    files = Files([path], [])
    assert drain(files) == [b'{"a": 1}']
    (file,) = files.open.values()
    assert file.last_line() is None
    with path.open("ab") as writer:
        writer.write(b"2}")
    assert drain(files) == []
    assert file.last_line() == Line(b'{"b": 2}', 9, 17)
    assert file.last_line() is None


def test_a_rotated_file_goes_on_where_it_stood(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n2\n")
    for place in (path, tmp_path):
        files = Files([place], [])
        assert drain(files) == [b"1", b"2"]
    with path.open("ab") as writer:
        writer.write(b"3\n")
    known = positions(files)
    path.rename(tmp_path / "a.jsonl.1")
    path.write_bytes(b"4\n")
    assert sorted(drain(files)) == [b"3", b"4"]
    assert sorted(drain(Files([path], known))) == [b"3", b"4"], "also when it is named itself, after a restart"
    assert drain(Files([path], [])) == [b"4"], "a neighbour that was never ours is not read"


def test_a_file_that_was_cut_or_replaced_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n2\n3\n")
    files = Files([path], [])
    drain(files)
    path.write_bytes(b"4\n")
    assert drain(files) == [b"4"]
    (file,) = files.open.values()
    path.write_bytes(b"5\n6\n7\n")  # as long as before, or longer: only its beginning tells
    assert drain(files) == [b"5", b"6", b"7"]
    assert (file.take_truncated(), file.take_truncated()) == (2, 0)


HEAD = b"0" * 500 + b"\n"


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"1\n2\n3\n", b"4\n5\n6\n"),
        (b"1\n2\n3\n", b"4\n5\n6\n7\n8\n"),
        (b"1\n2\n3\n" + b"9" * 20_000 + b"\n", b"4\n5\n6\n" + b"9" * 20_000 + b"\n"),
        (b"1\n2\n" + b"3", b"4\n5\n" + b"6"),
    ],
    ids=["of equal size", "longer", "equal in all that is compared", "with a line that has no end"],
)
def test_a_file_that_begins_like_what_it_was_and_is_another_begins_anew(
    tmp_path: Path, before: bytes, after: bytes, restarts: bool
) -> None:
    """Exporters write long resource attributes first: two files differ in nothing but what follows."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(HEAD + before)
    files = Files([path], [])
    drain(files)
    with path.open("r+b") as file:  # the same number
        file.write(HEAD + after)
        file.truncate()
    if restarts:
        files = Files([path], positions(files))
    assert drain(files) == (HEAD + after).split(b"\n")[:-1]
    path.open("ab").close()
    assert drain(files) == []


def test_a_copy_that_is_truncated_afterwards_is_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n2\n")
    files = Files([tmp_path], [])
    drain(files)
    shutil.copy(path, tmp_path / "a.jsonl.1")
    path.write_bytes(b"")
    assert drain(files) == [b"1", b"2"], "the state drops what it knows by the traces' ids"


def test_a_line_without_end_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "CHUNK", 10)
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 25)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n" + b"x" * 100 + b"\n2\n")
    assert drain(Files([path], [])) == [b"1", None, b"2"]


def test_what_is_not_read_is_counted(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl.gz", ".hidden.jsonl", "notes.txt", "deep/c.ndjson"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"1\n")
    files = Files([tmp_path], [])
    assert drain(files) == [b"1", b"1"]
    assert files.not_read == 1


def test_a_file_that_vanishes_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n")
    files = Files([path], [])
    drain(files)
    path.unlink()
    assert drain(files) == []
    assert files.open == {}
