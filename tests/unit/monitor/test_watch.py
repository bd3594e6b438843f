"""One round of reading, scoring and storing: unreadable files hold nothing up, and the order of times is kept."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gate.config.load import load_config
from gate.monitor import observe, sources, watch
from gate.monitor.report import MonitorReport
from gate.monitor.service import set_up
from gate.monitor.sources import GrowingFile, Line
from gate.monitor.store import MonitorState, open_state
from gate.monitor.watch import Watch
from gate.monitor.window import Status
from gate.system.http import Client

HOUR = 3_600 * 10**9


@pytest.fixture
def state(tmp_path: Path) -> Iterator[MonitorState]:
    found = open_state(tmp_path / "m.sqlite")
    assert found is not None
    with found:
        yield found


def once(folder: Path, state: MonitorState, **section: Any) -> MonitorReport:
    return looked(folder, state, **section).report()


def looked(folder: Path, state: MonitorState, **section: Any) -> Watch:
    """A watch after one look."""
    project = folder / ".project"
    project.mkdir(exist_ok=True)
    (project / "suite.yaml").write_text("cases: [{id: c, input: hi}]\n")
    keys: dict[str, Any] = {"suite": "suite.yaml", "agent": {"http": "http://localhost:9"}}
    keys |= {"criteria": {"not_contains": {"values": ["no"]}}, "monitor": {"sample_rate": 1, **section}}
    (project / "gate.yaml").write_text(json.dumps(keys))
    given = {"traces": [folder], "state": None, "against": None, "json_path": None}
    setup = set_up(load_config(project / "gate.yaml"), {}, given)

    async def run() -> Watch:
        async with Client() as client:
            found = Watch(setup, state)
            await found.once(client)
            return found

    return asyncio.run(run())


def row(name: str) -> str:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]
    return json.dumps({"id": name, "messages": messages}) + "\n"


def part(trace: int, number: int, at: int, said: str = "yes") -> str:
    """A span of an agent; the first of a trace is its root."""
    answer = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": said}]}])
    span = {
        "traceId": f"{trace:032x}",
        "spanId": f"{number + 1:016x}",
        "parentSpanId": f"{1:016x}" if number else "",
        "startTimeUnixNano": str(at),
        "endTimeUnixNano": str(at),
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat" if number else "invoke_agent"}},
            {"key": "gen_ai.output.messages", "value": {"stringValue": answer}},
        ],
    }
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}) + "\n"


def test_a_file_that_cannot_be_read_holds_nobody_up(
    tmp_path: Path, state: MonitorState, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(row(name))
    whole = GrowingFile.read

    def read(self: GrowingFile) -> list[Line]:
        if self.path.name == "a.jsonl":
            raise PermissionError(13, "denied")
        return whole(self)

    monkeypatch.setattr(GrowingFile, "read", read)
    found = once(tmp_path, state)
    assert len(found.samples) == 1
    assert any("not read" in note for note in found.notes)
    monkeypatch.undo()
    assert len(once(tmp_path, state).samples) == 2


def test_files_are_read_side_by_side_in_the_order_of_their_times(
    tmp_path: Path, state: MonitorState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two services write the halves of each trace to a file of their own, for hours: no trace is scored by half."""
    monkeypatch.setattr(sources, "CHUNK", 2_000)
    start, total = 1_700_000_000 * 10**9, 60
    for number in (0, 1):
        lines = [part(trace, number, start + trace * HOUR // 10 + number) for trace in range(1, total + 1)]
        (tmp_path / f"{number}.jsonl").write_text("".join(lines))
    monkeypatch.setattr(watch, "BATCH", 5)
    found = once(tmp_path, state)
    assert len(found.samples) == total
    assert (found.counts.late, found.counts.empty, found.counts.repeated) == (0, 0, 0)


START = 1_700_000_000 * 10**9
REFUSED = [number >= 100 and number % 2 == 0 for number in range(200)]
"""Of traces in the order of their times: the newer half fails by half."""


def traces(start: int = START, *, step: int = HOUR // 60) -> list[str]:
    return [part(n + 1, 0, start + n * step, "no" if refused else "yes") for n, refused in enumerate(REFUSED)]


@pytest.mark.parametrize("order", ["oldest first", "newest first", "mixed", "in turns"])
def test_the_order_in_files_decides_nothing(
    tmp_path: Path, state: MonitorState, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setattr(watch, "BATCH", 30)
    monkeypatch.setattr(sources, "CHUNK", 20_000)
    lines = traces()
    if order == "newest first":
        lines.reverse()
    elif order == "mixed":
        random.Random(3).shuffle(lines)
    if order == "in turns":
        (tmp_path / "b.jsonl").write_text("".join(lines[1::2]))
        lines = lines[::2]
    (tmp_path / "a.jsonl").write_text("".join(lines))
    found = once(tmp_path, state, window=100)
    assert (found.status, found.finding.share.passed, found.finding.share.measured) == (Status.CRITICAL, 50, 100)
    newest = [int(one.trace, 16) for one in found.samples]
    assert newest == [*range(101, 201)]


def test_of_two_looks_the_later_one_read_what_is_newer(tmp_path: Path, state: MonitorState) -> None:
    """Nobody knows whose clock is right; what arrived last is known."""
    for name, lines in (("b", traces()[100:]), ("a", traces()[:100])):
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
        found = once(tmp_path, state, window=100)
    newest = [int(one.trace, 16) for one in found.samples]
    assert newest == [*range(1, 101)]


@pytest.mark.parametrize("back", [3_600.0, 5 * 86_400.0])
def test_a_clock_that_is_set_back_hides_no_failure(
    tmp_path: Path, state: MonitorState, monkeypatch: pytest.MonkeyPatch, back: float
) -> None:
    now = time.time()
    for name, at, said in (("a", now + back, "yes"), ("b", now, "no")):
        monkeypatch.setattr(watch, "time", lambda at=at: at)
        lines = [part(n + 1000 * (name == "b"), 0, int((at - 600 + n) * 1e9), said) for n in range(300)]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
        found = once(tmp_path, state)
    assert (found.status, found.finding.share.passed) == (Status.CRITICAL, 0)


def test_a_window_that_was_read_in_the_future_is_not_healthy(
    tmp_path: Path, state: MonitorState, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    (tmp_path / "a.jsonl").write_text("".join(part(n + 1, 0, int((now - 600 + n) * 1e9)) for n in range(300)))
    monkeypatch.setattr(watch, "time", lambda: now + 5 * 86_400)
    assert once(tmp_path, state).status is Status.HEALTHY
    monkeypatch.setattr(watch, "time", lambda: now)
    found = once(tmp_path, state)
    assert (found.status, found.finding.blind, "set back" in found.finding.why) == (
        Status.INSUFFICIENT_DATA,
        True,
        True,
    )


def test_what_a_look_passes_through_does_not_colour_what_it_ends_with(
    tmp_path: Path, state: MonitorState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """83 % is shown to be neither; whether it is healthy must not hang on which half was read first."""
    monkeypatch.setattr(watch, "BATCH", 10)
    monkeypatch.setattr(sources, "CHUNK", 5_000)
    ends = []
    for name in ("a", "b"):
        said = ["no" if n < 60 or n % 6 == 0 else "yes" for n in range(120)]
        lines = [part(n + 1, 0, START + n * HOUR // 60, one) for n, one in enumerate(said)]
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.jsonl").write_text("".join(lines if name == "a" else reversed(lines)))
        own = open_state(tmp_path / f"{name}.sqlite")
        assert own is not None
        with own:
            ends.append(once(tmp_path / name, own, window=60).status)
    assert ends == [Status.HEALTHY, Status.HEALTHY]


def ahead(folder: Path, state: MonitorState, starts: list[int]) -> tuple[MonitorReport, str]:
    (folder / "a.jsonl").write_text("".join(part(n + 1, 0, at, "no") for n, at in enumerate(starts)))
    found = looked(folder, state)
    return found.report(), found.unsettled


def test_traces_of_a_clock_that_is_ahead_are_scored_or_told(tmp_path: Path, state: MonitorState) -> None:
    """In a file that holds the newest first, no later line tells that the time has moved on."""
    late = time.time_ns() + 10 * HOUR
    found, unsettled = ahead(tmp_path, state, [late - n * HOUR // 60 for n in range(60)])
    assert (found.status, len(found.samples), unsettled) == (Status.CRITICAL, 59, ""), "the last may still go on"
    assert "traces that are not complete yet: 1" in found.notes


def test_traces_that_all_end_at_one_time_to_come_are_told(tmp_path: Path, state: MonitorState) -> None:
    late = time.time_ns() + 10 * HOUR
    found, unsettled = ahead(tmp_path, state, [START] * 40 + [late] * 40)
    assert (len(found.samples), re.findall(r"\d+", unsettled)[:1]) == (40, ["40"])


def test_traces_that_go_on_are_no_fault(tmp_path: Path, state: MonitorState) -> None:
    found, unsettled = ahead(tmp_path, state, [START] * 40 + [time.time_ns()] * 40)
    assert (len(found.samples), unsettled) == (40, "")


def test_nothing_new_writes_nothing(tmp_path: Path, state: MonitorState) -> None:
    (tmp_path / "a.jsonl").write_text(row("a"))
    once(tmp_path, state)
    before = state.counts
    once(tmp_path, state)
    assert state.counts == before


def broken(trace: int) -> str:
    """A server's span alone, which ended in an error."""
    span = {"traceId": f"{trace:032x}", "spanId": f"{1:016x}", "name": "POST /chat", "status": {"code": 2}}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}) + "\n"


@pytest.mark.parametrize(
    ("number", "status"), [(2, Status.HEALTHY), (20, Status.INSUFFICIENT_DATA), (200, Status.INSUFFICIENT_DATA)]
)
def test_traces_that_end_in_an_error_before_an_agent_are_told_and_beyond_a_share_not_green(
    tmp_path: Path, state: MonitorState, number: int, status: Status
) -> None:
    lines = [part(trace, place, 10**18) for trace in range(1, 61) for place in (0, 1)]
    (tmp_path / "a.jsonl").write_text("".join([*lines, *(broken(trace) for trace in range(100, 100 + number))]))
    report = once(tmp_path, state)
    assert (report.status, report.finding.unmeasured, report.without_agent) == (status, number, number)


def test_a_trace_of_more_turns_than_are_scored_counts_as_scored_incomplete(
    tmp_path: Path, state: MonitorState, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (observe, watch):
        monkeypatch.setattr(module, "MOST_TURNS", 3)

    def turns(trace: int, number: int) -> str:
        alone = [part(trace, place, 10**18).replace("chat", "invoke_agent") for place in range(1, number + 1)]
        return "".join(alone).replace('"parentSpanId": "' + f"{1:016x}" + '"', '"parentSpanId": ""')

    (tmp_path / "a.jsonl").write_text(turns(1, 3) + turns(2, 4))
    report = once(tmp_path, state)
    assert (len(report.samples), report.counts.cut) == (2, 1)


def test_two_damaged_batches_are_as_great_a_loss_as_what_was_in_them(tmp_path: Path, state: MonitorState) -> None:
    lines = [part(trace, number, 10**18) for trace in range(1, 41) for number in (0, 1)]
    spans = [{"traceId": f"{trace:032x}", "spanId": f"{1:016x}"} for trace in range(100, 200)]
    batch = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    (tmp_path / "a.jsonl").write_text("".join([*lines, batch[:-3] + "\n", batch[:-5] + "\n"]))
    found = looked(tmp_path, state)
    report, lost = found.report(), found.lost
    assert (len(report.samples), report.counts.bad, report.counts.lost) == (40, 2, 200)
    assert re.findall(r"\d+", lost)[:3] == ["2", "200", "40"]
