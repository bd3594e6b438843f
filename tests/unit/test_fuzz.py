"""Every reader of what strangers write, fed real input with bytes changed: it reads, or says what is wrong; no more.

``GATE_FUZZ=20000 pytest tests/unit/test_fuzz.py`` tries as many inputs for each reader as the number says.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gate.agents.base import AgentFailure, decode_answer, read_answer
from gate.config.load import load_config
from gate.decision.engine.protocol import decide_lines
from gate.errors import GateError
from gate.formats import adk, messages
from gate.formats.documents import parse_document
from gate.formats.messages import FormatError
from gate.metrics.recorded import score_lines
from gate.records import parse_record
from gate.suites import FieldPaths, load
from tests.properties import examples

RECORD = (Path(__file__).parents[1] / "golden" / "records" / "full-2.jsonl").read_bytes()
MESSAGES = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "t", "arguments": '{"a": [1, null]}'}}]},
    {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "ok"}]},
    {"role": "assistant", "content": "done", "usage": {"prompt_tokens": 3}},
]
ADK = {
    "invocation_id": "1",
    "user_content": {"parts": [{"text": "hi"}], "role": "user"},
    "final_response": {"parts": [{"text": "done"}]},
    "intermediate_data": {"tool_uses": [{"name": "t", "args": {"a": 1}}], "intermediate_responses": []},
}
EVALVIEW = (
    b"name: a\ninput:\n  query: hi\nexpected:\n  tools: [t]\n  output: {contains: [ok]}\nthresholds: {min_score: 50}\n"
)
NATIVE = (
    b"cases:\n  - {id: a, input: hi, tools: [t, {name: u, args: {x: 1}}], response: ok, tags: [s], contains: [o]}\n"
)
CONFIG = (
    b"suite: s.yaml\nagent: {command: [a, b], timeout: 2m}\n"
    b"criteria: {safety_v1: 1, latency: {p95: 2}}\ntrials: {max: 2}\n"
)
STATE = {"metrics": [{"name": "pass rate", "kind": "binary"}], "baseline": {"a": [[1]]}, "rounds": [], "seed": 1}
PAIR = {"id": "1", "actual": [ADK], "expected": [ADK]}


def suite_file(suffix: str) -> Callable[[bytes, Path], object]:
    def read(data: bytes, folder: Path) -> object:
        path = folder / f"suite{suffix}"
        path.write_bytes(data)
        return load([path], root=folder, fields=FieldPaths())

    return read


def config(data: bytes, folder: Path) -> object:
    path = folder / "gate.yaml"
    path.write_bytes(data)
    return load_config(path)


def text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def loaded(data: bytes) -> object:
    return parse_document(text(data), "fuzz")


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


READERS: dict[str, tuple[bytes, Callable[[bytes, Path], object]]] = {
    "record": (RECORD, lambda data, _: parse_record(data)),
    "messages": (as_json(MESSAGES), lambda data, _: messages.to_invocation(loaded(data))),
    "adk": (as_json(ADK), lambda data, _: adk.to_invocation(loaded(data))),  # type: ignore[arg-type]
    "answer": (
        as_json({"output": "a", "tool_calls": [{"name": "t", "arguments": {}}], "cost_usd": 1}),
        lambda data, _: read_answer(decode_answer(data), user="hi"),
    ),
    "native suite": (NATIVE, suite_file(".yaml")),
    "evalview suite": (EVALVIEW, suite_file(".yaml")),
    "adk suite": (
        as_json({"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "conversation": [ADK]}]}),
        suite_file(".json"),
    ),
    "rows": (as_json({"id": "a", "messages": MESSAGES}) + b"\n", suite_file(".jsonl")),
    "configuration": (CONFIG, config),
    "decision protocol": (as_json(STATE), lambda data, _: list(decide_lines(text(data).splitlines()))),
    "recorded pairs": (as_json(PAIR), lambda data, _: list(score_lines("tool_trajectory_avg_score", {}, [text(data)]))),
}
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 12),
        st.one_of(
            st.binary(max_size=6),
            st.sampled_from(
                [
                    b"null",
                    b"[]",
                    b"{}",
                    b'"',
                    b"-1",
                    b"1e999",
                    b"NaN",
                    b"\\ud800",
                    b"\xff",
                    b"\n",
                    b"*a",
                    b"&a",
                    b"true",
                    b": ",
                ]
            ),
        ),
    ),
    min_size=1,
    max_size=6,
)


def changed(data: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    """The data with a few spans replaced."""
    for place, length, new in changes:
        at = int(place * len(data))
        data = data[:at] + new + data[at + length :]
    return data


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", READERS)
def test_a_reader_reads_or_refuses(name: str, tmp_path: Path) -> None:
    seed, read = READERS[name]
    read(seed, tmp_path)

    @settings(
        max_examples=int(os.environ.get("GATE_FUZZ") or examples(60)),
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(CHANGES)
    def scribbled(changes: list[tuple[float, int, bytes]]) -> None:
        try:
            read(changed(seed, changes), tmp_path)
        except (GateError, FormatError, AgentFailure) as refusal:
            assert "\n" not in str(refusal)

    scribbled()
