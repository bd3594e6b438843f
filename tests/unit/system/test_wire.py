"""Frames and lines that arrive in any pieces, and what is neither."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.system.wire import DONE, FAILED, REQUEST, Frame, Frames, GarbledError, LineReader, frame

MESSAGES = st.lists(st.tuples(st.integers(0, FAILED), st.integers(0, 2**64 - 1), st.binary(max_size=50)), max_size=6)


@given(MESSAGES, st.lists(st.integers(0, 400), max_size=8))
def test_frames_arrive_whole_however_they_are_cut(messages: list[tuple[int, int, bytes]], cuts: list[int]) -> None:
    sent = b"".join(frame(*message) for message in messages)
    places = sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})
    reading = Frames()
    got = [m for a, b in pairwise(places) for m in reading.take(sent[a:b])]
    assert got == [Frame(*message) for message in messages]


def test_half_a_frame_is_none() -> None:
    assert list(Frames().take(frame(DONE, 1, b"answer")[:-1])) == []


@pytest.mark.parametrize("garbage", [b"hello from somebody else\n", b"\xff" * 17, frame(FAILED + 1, 0, b"")])
def test_garbage_is_no_frame(garbage: bytes) -> None:
    with pytest.raises(GarbledError, match="invalid data"):
        list(Frames().take(garbage))


def test_frames_and_lines_are_bounded() -> None:
    assert list(Frames(3).take(frame(REQUEST, 1, b"abc"))) == [Frame(REQUEST, 1, b"abc")]
    with pytest.raises(GarbledError, match="more than 3 bytes"):
        list(Frames(3).take(frame(REQUEST, 1, b"abcd")[:17]))
    with pytest.raises(GarbledError, match="more than 3 bytes"):
        list(LineReader(3).take(b"abcd"))


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), max_size=6), st.integers(1, 9))
def test_lines_arrive_whole_however_they_are_cut(lines: list[bytes], size: int) -> None:
    sent = b"".join(line + b"\n" for line in lines)
    reading = LineReader(1_000)
    assert [m for at in range(0, len(sent), size) for m in reading.take(sent[at : at + size])] == lines
