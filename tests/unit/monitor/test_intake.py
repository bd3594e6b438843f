"""Lines → conversations: in any order, bounded, and settled only where a restart loses nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from time import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from gate.model import Invocation
from gate.monitor.intake import NO_ANSWER, Intake
from gate.monitor.model import Counts, WatchedTrace
from gate.monitor.sampling import is_sampled, trace_key
from gate.monitor.sources import Line
from gate.monitor.spans import TelemetryTraces
from gate.suites.messages import FieldPaths


class Piece(Struct, frozen=True):
    trace_id: str
    number: int
    end: float | None = None


class Numbers(TelemetryTraces):
    """A format of traces: ``{"pieces": [[trace, number, end], …]}``."""

    def pieces(self, value: Any) -> Sequence[Any]:
        found = value.get("pieces", ()) if isinstance(value, dict) else ()
        return [Piece(*one) for one in found]

    def last(self, pieces: Sequence[Any], until: float = math.inf) -> float | None:
        return max((float(one.end) for one in pieces if one.end is not None and one.end <= until), default=None)

    def conversation(self, trace: str, pieces: Sequence[Any]) -> WatchedTrace | None:
        said = ",".join(str(piece.number) for piece in sorted(pieces, key=lambda one: one.number))
        return None if said == "0" else WatchedTrace(trace, (Invocation(said),))


def intake(rate: float = 1.0, stored: frozenset[str] = frozenset(), **more: Any) -> Intake:
    return Intake(rate, FieldPaths(), Numbers(), lambda trace: trace in stored, idle=10.0, **more)


def line(value: Any, start: int = 0) -> Line:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Line(data, start, start + len(data) + 1)


def said(found: Any) -> list[tuple[str, str]]:
    return [(one.trace, one.invocations[0].user) for one in found]


@given(st.permutations([("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2)]), st.lists(st.integers(1, 4), max_size=4))
def test_spans_come_in_any_order_over_any_lines_and_files(order: list[tuple[str, int]], sizes: list[int]) -> None:
    subject, at, rest, place = intake(), time(), list(order), 0
    for number, size in enumerate([*sizes, len(order)]):
        part, rest = rest[:size], rest[size:]
        if part:
            subject.add(f"file {number % 2}", line({"pieces": [[*one, at] for one in part]}, place), counted=False)
        place += 100
    assert list(subject.ready(at + 9.0)) == []
    assert sorted(said(subject.ready(at + 10.0))) == [("a", "1,2,3"), ("b", "1,2")]
    assert subject.waiting == 0


def test_a_file_is_settled_up_to_the_oldest_trace_that_waits() -> None:
    subject, at = intake(), 1_000.0
    subject.add("f", line({"pieces": [["a", 1, at]]}, 0), counted=False)
    subject.add("f", line({"pieces": [["b", 1, at + 100]]}, 50), counted=False)
    subject.add("g", line({"pieces": [["b", 2, at + 100]]}, 7), counted=False)
    assert [subject.settled("f", 90), subject.settled("g", 30), subject.settled("h", 5)] == [0, 7, 5]
    assert said(subject.ready(at + 50)) == [("a", "1")]
    assert [subject.settled("f", 90), subject.settled("g", 30)] == [50, 7]


def test_what_is_stored_already_does_not_come_back() -> None:
    subject = intake(stored=frozenset({"a"}))
    subject.add("f", line({"pieces": [["a", 2], ["b", 1]]}), counted=False)
    assert said(subject.ready(time())) == [("b", "1")]
    assert subject.take_counts() == Counts(lines=1, late=1)


def test_lines_that_were_counted_before_a_restart_are_not_counted_again() -> None:
    subject = intake()
    subject.add("f", line(b"garbage"), counted=True)
    subject.add("f", line({"pieces": [["b", 1]]}), counted=True)
    assert subject.take_counts() == Counts()
    assert said(subject.ready(time())) == [("b", "1")]


def test_the_buffer_is_bounded() -> None:
    subject = intake(most_bytes=1_000)
    found = []
    for number in range(100):
        found += subject.add("f", line({"pieces": [[f"t{number}", 1, 5.0]], "filler": "x" * 100}), counted=False)
    counts = subject.take_counts()
    assert (len(found) + subject.waiting, counts.cut) == (100, len(found))
    assert subject.waiting < 10


def test_only_the_sample_is_kept() -> None:
    subject = intake(0.3)
    traces = [f"{number:032x}" for number in range(100)]
    subject.add("f", line({"pieces": [[trace, 1] for trace in traces]}), counted=False)
    assert {trace for trace, _ in said(subject.ready(time()))} == {t for t in traces if is_sampled(t, 0.3)}


IDS = st.text("abcdef0123456789", min_size=1, max_size=32)
MENTIONS = st.fixed_dictionaries(
    {"trace_id": IDS, "error_context": st.dictionaries(st.sampled_from(["traceId", "trace_id"]), IDS)}
)


@given(st.lists(IDS, min_size=5, max_size=20, unique=True), MENTIONS, st.floats(0.2, 0.8), st.booleans())
def test_whether_a_row_is_of_the_sample_depends_on_its_own_id_alone(
    ids: list[str], mentions: dict[str, Any], rate: float, first: bool
) -> None:
    subject = Intake(rate, FieldPaths(), TelemetryTraces(), lambda _: False, idle=10.0)
    found = []
    for identifier in ids:
        own = {"id": identifier, "messages": [{"role": "user", "content": "hi"}]}
        row = {**mentions, **own} if first else {**own, **mentions}
        found += [one.trace for one in subject.add("f", line(row), counted=False)]
    assert found == [one for one in ids if is_sampled(trace_key(one), rate)]


def test_a_trace_without_an_agent_is_counted() -> None:
    subject = intake()
    subject.add("f", line({"pieces": [["a", 0]]}), counted=False)
    assert said(subject.ready(time())) == []
    assert subject.take_counts() == Counts(lines=1, empty=1)


def test_a_span_from_the_future_does_not_hold_its_trace_back() -> None:
    subject = intake()
    subject.add("f", line({"pieces": [["a", 1, time() + 1e9]]}), counted=False)
    assert said(subject.ready(time())) == [("a", "1")]


def test_what_cannot_be_read_is_counted_and_told() -> None:
    subject = intake()
    deep = b"[" * 100_000
    for bad in (b"garbage", b"[1, 2", b"7", b"{}", b'{"id": true, "messages": []}', b'{"id": "a"}', deep, b"\xff\xfe"):
        assert subject.add("f", line(bad), counted=False) == []
    assert subject.add("f", Line(None, 0, 10), counted=False) == []
    assert subject.add("f", line(b"   "), counted=False) == [], "an empty line is none"
    assert subject.take_counts() == Counts(lines=9, bad=9, lost=9)
    assert subject.problem == "a line that is too long"
    assert subject.add("f", line({"id": "a", "messages": [{"role": "alien"}]}), counted=False) == []
    assert subject.problem == "message 0: unknown role 'alien'"


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_a_damaged_line_weighs_what_it_held_of_the_sample(rate: float) -> None:
    traces = [f"{number:032x}" for number in range(100)]
    spans = [{"traceId": trace, "spanId": f"{place:016x}"} for trace in traces for place in (1, 2)]
    damaged = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()[:-3]
    subject = intake(rate)
    subject.add("f", line(damaged), counted=False)
    subject.add("f", line(damaged), counted=True)
    subject.add("f", line(b"garbage"), counted=False)
    held = sum(is_sampled(trace, rate) for trace in traces)
    assert subject.take_counts() == Counts(lines=2, bad=2, lost=held + 1)


def test_what_is_not_read_of_rows_and_spans_is_known_once_a_kind() -> None:
    subject = Intake(1.0, FieldPaths(), TelemetryTraces(), lambda _: False, idle=10.0)
    for number in range(3):
        parts = [{"type": "text", "text": "hi"}, {"type": "hologram", "of": "x"}]
        row = {"id": number, "reviewed": "no", "messages": [{"role": "user", "content": parts}]}
        subject.add("f", line(row), counted=False)
        one = {"traceId": f"{number + 1:032x}", "spanId": "0000000000000001", "name": "chat", "mood": "sad"}
        subject.add("f", line({"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}), counted=False)
    assert subject.unread == {
        "resourceSpans.scopeSpans.spans.mood": 3,
        "reviewed": 3,
        "messages.content.of": 3,
    }


def test_a_row_is_a_conversation_at_once() -> None:
    fields = FieldPaths.model_validate({"id": "trace", "usage": "usage", "duration": "took", "error": "failed"})
    subject = Intake(1.0, fields, TelemetryTraces(), lambda _: False, idle=1.0)
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    row = {"trace": 7, "messages": messages, "usage": {"input_tokens": 3}, "took": 0.5}
    (found,) = subject.add("f", line(row), counted=False)
    turn = found.invocations[0]
    assert (found.trace, turn.user, turn.text, turn.duration) == ("7", "hi", "hello", 0.5)
    assert turn.usage is not None
    assert turn.usage.input_tokens == 3
    (failed,) = subject.add("f", line({"trace": "8", "failed": "timed out"}), counted=False)
    assert failed.error == "timed out"


ASKED = {"role": "user", "content": "Where is it?"}
TOLD = {"role": "assistant", "content": "Hello! How can I help?"}
CALLED = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "find", "arguments": "{}"}}]}
GAVE = {"role": "tool", "tool_call_id": "c", "content": "sent"}


def test_a_row_without_an_answer_to_the_last_question_is_one_in_which_the_agent_failed() -> None:
    for said in [
        [ASKED],
        [ASKED, {"role": "assistant", "content": ""}],
        [ASKED, {"role": "assistant", "content": None}],
        [ASKED, {"role": "assistant", "content": "  "}],
        [TOLD, ASKED],
        [ASKED, TOLD, ASKED],
        [ASKED, CALLED, GAVE, TOLD, ASKED, {"role": "assistant", "content": "\n"}],
        [],
    ]:
        (found,) = intake().add("f", line({"id": "1", "messages": said}), counted=False)
        assert found.error == NO_ANSWER, said


def test_a_text_or_a_call_after_the_users_last_words_is_an_answer() -> None:
    for said in [
        [ASKED, TOLD],
        [TOLD],
        [ASKED, ASKED, TOLD],
        [ASKED, CALLED],
        [ASKED, CALLED, GAVE],
        [ASKED, CALLED, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "sent"}]}],
        [ASKED, TOLD, {"role": "user", "content": " "}],
    ]:
        (found,) = intake().add("f", line({"id": "1", "messages": said}), counted=False)
        assert found.error is None, said
