"""A run's recording: what is kept, what is read of a damaged file, and what somebody else may not slip in."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from random import Random

import pytest

from gate.world.cassette import Cassette, CassetteWriter, Library, RecordedExchange, path_of_run, tape_of

REQUEST = json.dumps({"messages": [{"role": "system", "content": "Be kind. " * 400}]}).encode()


def recorded(writer: CassetteWriter, number: int, answer: bytes, attempt: str = "a") -> RecordedExchange:
    exchange = RecordedExchange(
        number=number,
        upstream="openai",
        method="POST",
        path="/chat/completions",
        key=f"key {number}",
        request=writer.body(REQUEST + str(number).encode(), "request"),
        status=200,
        response=writer.body(answer, "response"),
    )
    assert writer.keep(exchange, attempt)
    return exchange


def written(path: Path, *, limit: int = 10_000_000) -> str:
    writer = CassetteWriter(path, limit)
    exchanges = [recorded(writer, number, f"answer {number}".encode()) for number in (1, 2)]
    tape = tape_of("case", 1, exchanges)
    assert writer.end("case", 1, tape, 2, "a")
    writer.close()
    return tape


def test_what_was_written_is_read(tmp_path: Path) -> None:
    tape = written(tmp_path / "run.jsonl")
    cassette = Library(tmp_path).cassette("run")
    assert cassette is not None
    found = cassette.tape(tape)
    assert found is not None
    assert [cassette.body(one.response) for one in found.exchanges] == [b"answer 1", b"answer 2"]
    assert [cassette.body(one.request) for one in found.exchanges] == [REQUEST + b"1", REQUEST + b"2"]


def test_a_body_is_kept_once_and_packed_against_its_like(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    writer = CassetteWriter(path, 10_000_000)
    writer.body(REQUEST, "request")
    before = path.stat().st_size
    writer.body(REQUEST, "request")
    assert path.stat().st_size == before
    writer.body(REQUEST + b"one more word", "request")
    assert path.stat().st_size - before < 350
    writer.close()


@pytest.mark.parametrize("cut", [1, 40, 400])
def test_a_line_that_was_cut_off_loses_itself_alone(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "run.jsonl"
    first = written(path)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[-cut:-1])  # half of a line, as a kill leaves it
    writer = CassetteWriter(path, 10_000_000)
    exchange = recorded(writer, 1, b"another", "b")
    second = tape_of("case", 2, [exchange])
    assert writer.end("case", 2, second, 1, "b")
    writer.close()
    cassette = Cassette(path)
    assert cassette.tape(first) is not None and cassette.tape(second) is not None


def test_a_trial_without_its_end_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    tape = written(path)
    path.write_bytes(b"\n".join(path.read_bytes().splitlines()[:-1]) + b"\n")
    assert Cassette(path).tape(tape) is None


@pytest.mark.parametrize("part", ["status", "key", "response", "seconds"])
def test_another_exchange_is_another_tape(tmp_path: Path, part: str) -> None:
    path = tmp_path / "run.jsonl"
    tape = written(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    forged = {"status": 201, "key": "key 9", "response": lines[1]["body"]["digest"], "seconds": 9.0}
    next(line for line in lines if "exchange" in line)["exchange"][part] = forged[part]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert Cassette(path).tape(tape) is None


def test_another_body_under_the_same_name_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    tape = written(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    bodies = [line["body"] for line in lines if "body" in line]
    forged = b"answer 9"
    bodies[1] |= {"data": base64.b64encode(zlib.compress(forged)).decode(), "size": len(forged), "after": ""}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    cassette = Cassette(path)
    found = cassette.tape(tape)
    assert found is not None
    assert cassette.body(bodies[1]["digest"]) is None


def test_a_body_that_unpacks_to_more_than_it_says_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    written(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    body = next(line["body"] for line in lines if "body" in line)
    body["size"] = 10
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert Cassette(path).body(body["digest"]) is None


def test_a_body_that_says_it_is_larger_than_any_answer_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    name = written(path)
    tape = Cassette(path).tape(name)
    assert tape is not None
    answer = tape.exchanges[0].response
    assert Cassette(path).body(answer) == b"answer 1"
    monkeypatch.setattr("gate.world.cassette.MAX_ANSWER_BYTES", 7)
    assert Cassette(path).body(answer) is None


def test_a_recording_of_a_later_version_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    tape = written(path)
    assert Cassette(path).tape(tape) is not None
    path.write_bytes(path.read_bytes().replace(b'"cassette":1', b'"cassette":2'))
    assert Cassette(path).tape(tape) is None


def test_a_full_file_takes_no_more(tmp_path: Path) -> None:
    writer = CassetteWriter(tmp_path / "run.jsonl", 500)
    recorded_name = writer.body(Random(0).randbytes(5_000), "noise")
    exchange = RecordedExchange(1, "openai", "POST", "/", "key", recorded_name, 200, recorded_name)
    assert not writer.keep(exchange, "a") and writer.full
    writer.close()


def test_an_id_that_is_no_files_name_has_no_file(tmp_path: Path) -> None:
    for run in ("", "../run", "a/b", ".hidden", "x" * 200):
        assert path_of_run(tmp_path, run) is None
        assert Library(tmp_path).cassette(run) is None
