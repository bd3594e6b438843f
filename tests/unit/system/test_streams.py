"""A stream that can no longer be written: said once, and nothing else happens."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from gate.system.streams import Output


def test_a_full_stream_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    with Path("/dev/full").open("wb", buffering=0) as raw:
        stream = Output(io.TextIOWrapper(raw, write_through=True))
        for _ in range(3):
            assert stream.write("a line\n") == len("a line\n")
            stream.flush()
    assert capsys.readouterr().err == "gate: the output could not be written: No space left on device\n"


def test_a_reader_that_left_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    class Left(io.StringIO):
        def write(self, text: str, /) -> int:
            raise BrokenPipeError

    assert Output(Left()).write("a line\n") == len("a line\n")
    assert capsys.readouterr().err == ""


def test_a_closed_stream_is_told_once_there_is_something_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    stream = Output(io.StringIO(), lost="standard output is closed")
    stream.flush()
    assert capsys.readouterr().err == ""
    stream.write("a line\n")
    stream.write("another\n")
    assert capsys.readouterr().err == "gate: the output could not be written: standard output is closed\n"
