"""Archives as strangers make them."""

from __future__ import annotations

import io
import struct
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import UntrustedError
from gate.hosts import artifact
from gate.hosts.artifact import read_member

NAME = "record.jsonl"


def archive(*members: tuple[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as opened:
        for name, content in members:
            opened.writestr(name, content)
    return stream.getvalue()


def test_the_expected_member_is_read_and_no_other() -> None:
    assert read_member(archive((NAME, b"x"), ("../../etc/passwd", b"evil"), ("/abs", b"evil")), NAME, "here") == b"x"


@pytest.mark.parametrize("name", ["./record.jsonl", "a/record.jsonl", "RECORD.JSONL", "../record.jsonl"])
def test_a_name_that_only_looks_alike_is_not_it(name: str) -> None:
    with pytest.raises(UntrustedError, match="found 0"):
        read_member(archive((name, b"x")), NAME, "here")


def test_two_members_of_one_name_are_refused() -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        doubled = archive((NAME, b"x"), (NAME, b"y"))
    with pytest.raises(UntrustedError, match="found 2"):
        read_member(doubled, NAME, "here")


def test_a_bomb_is_refused_before_it_grows() -> None:
    with pytest.raises(UntrustedError, match="grows"):
        read_member(archive((NAME, b"\0" * 20_000_000)), NAME, "here")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compression_that_no_host_uses_is_refused(compression: int) -> None:
    with pytest.raises(UntrustedError, match="unusual"):
        read_member(archive((NAME, b"x"), compression=compression), NAME, "here")


def test_a_bomb_that_lies_about_its_size_is_refused() -> None:
    """The stated size is what the ratio is checked by, so reading stops there."""
    content = b"\0" * 20_000_000
    honest = archive((NAME, content))
    lying = honest.replace(struct.pack("<L", len(content)), struct.pack("<L", 100))
    assert lying != honest
    with pytest.raises(UntrustedError):
        read_member(lying, NAME, "here")


def test_an_ordinary_record_passes_the_ratio() -> None:
    lines = b"".join(b'{"case": "case-%d", "score": %d, "tool": "lookup_order"}\n' % (n, n % 7) for n in range(50_000))
    assert read_member(archive((NAME, lines)), NAME, "here") == lines


def test_a_crowd_of_members_is_refused() -> None:
    with pytest.raises(UntrustedError, match="files"):
        read_member(archive(*((f"m{n}", b"") for n in range(artifact.MAX_MEMBERS + 1))), NAME, "here")


def test_an_encrypted_member_is_refused() -> None:
    encrypted = bytearray(archive((NAME, b"x")))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        encrypted[encrypted.find(signature) + offset] |= 1
    with pytest.raises(UntrustedError, match="encrypted"):
        read_member(bytes(encrypted), NAME, "here")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x05\x06" + b"\0" * 18])
def test_what_is_no_archive_is_refused(content: bytes) -> None:
    with pytest.raises(UntrustedError):
        read_member(content, NAME, "here")


@given(st.data())
def test_a_damaged_archive_is_refused_or_read_as_it_was(data: st.DataObject) -> None:
    good = bytearray(archive((NAME, b'{"case": 1}\n' * 20), ("other", b"y")))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    with suppress(UntrustedError):
        assert read_member(bytes(good), NAME, "here") == b'{"case": 1}\n' * 20
