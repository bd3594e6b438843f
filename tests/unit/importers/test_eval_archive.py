"""Archives of Inspect: what is unpacked, and that a hostile one is refused before it fills the memory."""

from __future__ import annotations

import io
import json
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from gate.errors import ConfigError
from gate.importers import eval_archive
from gate.importers.eval_archive import ZSTANDARD, read_eval_archive

HEADER = {"status": "success", "eval": {"task": "t"}}


def archive(path: Path, members: dict[str, bytes], *, packed: bool = False) -> Path:
    """A zip; with ``packed``, members are marked as packed by zstandard in the table of contents."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for name, content in members.items():
            made.writestr(name, _packed(content) if packed else content)
    raw = bytearray(buffer.getvalue())
    at = raw.find(b"PK\x01\x02") if packed else -1
    for content in members.values():
        if at >= 0:
            struct.pack_into("<H", raw, at + 10, ZSTANDARD)
            struct.pack_into("<I", raw, at + 16, zlib.crc32(content))
            at = raw.find(b"PK\x01\x02", at + 4)
    path.write_bytes(raw)
    return path


def _packed(content: bytes) -> bytes:
    return bytes(pytest.importorskip("zstandard").ZstdCompressor().compress(content))


def read(path: Path) -> dict[str, Any]:
    return read_eval_archive(path, path.name)


@pytest.mark.parametrize("packed", [False, True])
def test_header_and_samples_are_the_log(tmp_path: Path, packed: bool) -> None:
    members = {"header.json": HEADER, "samples/b.json": {"id": "b"}, "samples/a.json": {"id": "a"}, "summaries.json": 1}
    path = archive(
        tmp_path / "l.eval", {name: json.dumps(held).encode() for name, held in members.items()}, packed=packed
    )
    assert read(path) == {**HEADER, "samples": [{"id": "a"}, {"id": "b"}]}


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"_journal/start.json": b"{}"}, "the log is unfinished"),
        ({"other.json": b"{}"}, "has no header.json"),
        ({"header.json": b"[]"}, "expected a mapping"),
        ({"header.json": b"{"}, "not JSON"),
        ({"header.json": b'{"a": Infinity}'}, "Infinity"),
        ({"header.json": b"\xff"}, "not JSON"),
    ],
)
def test_an_archive_that_is_no_whole_log_is_refused(tmp_path: Path, members: dict[str, bytes], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(archive(tmp_path / "l.eval", members))


def test_no_archive_at_all(tmp_path: Path) -> None:
    (tmp_path / "l.eval").write_bytes(b"{}")
    with pytest.raises(ConfigError, match="not an archive of Inspect"):
        read(tmp_path / "l.eval")
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path / "none.eval")


@pytest.mark.parametrize("packed", [False, True])
def test_an_archive_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what comes out of it: the table of contents may say anything."""
    monkeypatch.setattr(eval_archive, "MAX_DOCUMENT_BYTES", 3_000_000)
    members = {"header.json": json.dumps(HEADER).encode(), "samples/a.json": b" " * 10_000_000}
    with pytest.raises(ConfigError, match="unpacks to more than"):
        read(archive(tmp_path / "l.eval", members, packed=packed))


def test_a_damaged_member_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "l.eval", {"header.json": json.dumps(HEADER).encode()}, packed=True)
    raw = bytearray(path.read_bytes())
    struct.pack_into("<I", raw, raw.find(b"PK\x01\x02") + 16, 7)
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match="checksum"):
        read(path)
    start = raw.find(b"\x28\xb5\x2f\xfd")
    path.write_bytes(raw[: start + 4] + b"\xff" * 8 + raw[start + 12 :])
    with pytest.raises(ConfigError, match=r"not an archive of Inspect|checksum"):
        read(path)


def test_too_many_members_and_doubled_ones_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l.eval"
    with zipfile.ZipFile(path, "w") as made, pytest.warns(UserWarning, match="Duplicate"):
        made.writestr("header.json", "{}")
        made.writestr("header.json", "{}")
    with pytest.raises(ConfigError, match="occurs twice"):
        read(path)
    monkeypatch.setattr(eval_archive, "MAX_MEMBERS", 1)
    with pytest.raises(ConfigError, match="more than 1 members"):
        read(path)


def test_without_the_package_its_name_and_the_other_way_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(tmp_path / "l.eval", {"header.json": b"{}"}, packed=True)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(
        ConfigError, match=r"zstandard, which is not installed.*agent-gate\[inspect\].*inspect log dump"
    ):
        read(path)
