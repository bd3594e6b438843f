"""The short reading of a record says the same as the long one, and refuses what that refuses."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from msgspec.structs import astuple

from gate.errors import GateError, MeasureError
from gate.model import Score
from gate.records import Record, parse_record, read_record, record_lines
from gate.records.measured import MeasuredReader, created_in
from tests.unit.baselines.samples import make_record
from tests.unit.histories.drawn import in_numbers

GOLDEN = sorted(
    path for path in (Path(__file__).parents[2] / "golden" / "records").glob("*.jsonl") if "open" not in path.name
)


def measured(data: bytes) -> MeasuredReader:
    return MeasuredReader(io.BytesIO(data), where="there")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_it_says_the_same_of_records_of_every_format(path: Path) -> None:
    whole: Record = read_record(path)
    reader = measured(path.read_bytes())
    trials = list(reader)
    assert (reader.header, reader.footer) == (whole.header, whole.footer)
    for short, long in zip(trials, whole.trials, strict=True):
        wanted = in_numbers(long)
        assert (short.case_id, short.number, short.tag, short.side) == (
            wanted.case_id,
            wanted.number,
            wanted.tag,
            wanted.side,
        )
        scores = [(n, Score(*astuple(s)) if isinstance(s, Score) else Score(s)) for n, s in short.scores.items()]
        assert scores == list(wanted.scores.items())
        assert (short.error, short.end, short.duration) == (wanted.error, long.end, wanted.duration)
        assert (short.usage and short.usage.cost_usd) == (long.usage and long.usage.cost_usd)
        assert (short.usage and short.usage.tokens) == (long.usage and long.usage.tokens)


@pytest.mark.parametrize("block", [1, 7, 100, 1 << 20])
def test_it_says_the_same_in_blocks_of_any_size(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(record_lines(make_record(trials=3)))
    wanted = list(measured(data))
    monkeypatch.setattr("gate.records.measured.BLOCK", block)
    assert list(measured(data)) == wanted


def test_a_line_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(record_lines(make_record(trials=3)))
    monkeypatch.setattr("gate.records.measured.MAX_LINE_BYTES", 100)
    with pytest.raises(MeasureError, match="too long"):
        list(measured(data))


def test_what_the_long_reading_refuses_is_refused() -> None:
    data = b"".join(record_lines(make_record(trials=3)))
    lines = data.splitlines(keepends=True)
    edits = {
        "empty": b"",
        "no record": b'{"a": 1}\n' * 9,
        "not closed": b"".join(lines[:-1]),
        "cut": data[:-9],
        "an edit": data.replace(b'"ok":', b'"no":', 1),
        "a line left out": b"".join([*lines[:3], *lines[4:]]),
        "a line twice": b"".join([*lines[:4], lines[3], *lines[4:]]),
        "trailing": data + b"{}\n",
        "binary": b"\x00\xff" * 500,
        "deep": lines[0] + lines[1] + b'{"case":' + b"[" * 5000 + b"\n",
    }
    for name, edited in edits.items():
        with pytest.raises(GateError):
            parse_record(edited)
        with pytest.raises(MeasureError, match=r"record|damaged"):
            list(measured(edited))
        assert created_in(edited[:1000]) >= 0, name


def test_the_time_is_in_the_first_line() -> None:
    first = b"".join(record_lines(make_record(created=1_750_000_000.5))).splitlines()[0]
    assert created_in(first) == 1_750_000_000.5
