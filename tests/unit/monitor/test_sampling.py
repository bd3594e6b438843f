"""The sample: by the trace's id alone, the same everywhere, and decided before a line is parsed."""

from __future__ import annotations

import base64
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.monitor.sampling import concerns_sample, is_sampled, trace_key


@given(st.text(max_size=64), st.floats(0, 1), st.floats(0, 1))
def test_a_smaller_sample_is_part_of_a_larger_one(trace: str, one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert is_sampled(trace, small) <= is_sampled(trace, large)


def test_the_share_is_what_was_asked_for() -> None:
    n, rate = 100_000, 0.01
    found = sum(is_sampled(f"{i:032x}", rate) for i in range(n))
    assert abs(found - n * rate) < 4 * math.sqrt(n * rate * (1 - rate))


def test_the_sample_is_the_same_in_every_version() -> None:
    assert [i for i in range(500) if is_sampled(f"{i:032x}", 0.01)] == [18, 61, 85, 242, 361]


@given(st.binary(min_size=16, max_size=16).filter(any))
def test_an_id_is_one_in_every_spelling(raw: bytes) -> None:
    spelled = {raw.hex(), raw.hex().upper(), base64.b64encode(raw).decode()}
    assert {trace_key(one) for one in spelled} == {raw.hex()}


@given(st.lists(st.binary(min_size=16, max_size=16).filter(any), min_size=1, max_size=5), st.booleans())
def test_no_line_of_the_sample_is_passed_over(ids: list[bytes], in_base64: bool) -> None:
    spelled = [base64.b64encode(raw).decode() if in_base64 else raw.hex() for raw in ids]
    line = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": one} for one in spelled]}]}]})
    wanted = any(is_sampled(raw.hex(), 0.3) for raw in ids)
    assert concerns_sample(line.encode(), 0.3) >= wanted
    assert concerns_sample(line.encode(), 0.3) == wanted


def test_an_id_inside_an_attributes_text_decides_nothing() -> None:
    inner = json.dumps({"traceId": "a" * 32})
    span = {"traceId": "7" * 32, "attributes": [{"key": "body", "value": {"stringValue": inner}}]}
    line = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    assert concerns_sample(line, 1e-9) is False


def test_an_id_with_an_escape_is_left_to_the_parser() -> None:
    raw = b"\xff" * 16
    spelled = base64.b64encode(raw).decode().replace("/", "\\/")
    line = b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "%s"}]}]}]}' % spelled.encode()
    assert concerns_sample(line, 1e-9)


@pytest.mark.parametrize("line", [{"traceId": "7" * 32, "spanId": "7" * 16}, {"trace_id": "7" * 32, "id": "a"}])
def test_an_id_in_a_line_that_is_no_request_of_otlp_decides_nothing(line: dict[str, str]) -> None:
    assert concerns_sample(json.dumps(line).encode(), 1e-9)


def test_a_line_without_an_id_is_parsed() -> None:
    assert concerns_sample(b'{"id": 1, "messages": []}', 1e-9)
