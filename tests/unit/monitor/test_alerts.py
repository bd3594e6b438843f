"""Alerts over real HTTP on loopback: servers that refuse, delay, redirect, drop and repeat."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gate.errors import ConfigError
from gate.monitor import alerts
from gate.monitor.alerts import Alerts, Target, evaluation_events, is_due, target_of
from gate.monitor.model import Counts, Observation
from gate.monitor.observe import Scoring
from gate.monitor.report import MonitorReport
from gate.monitor.store import Delivery, MonitorState, open_state
from gate.monitor.window import PassShare, Status, WindowFinding
from gate.system.http import Client


class Receiver:
    """A server that answers as told, and keeps what it was sent."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.got: list[tuple[dict[str, str], Any]] = []
        self.released = threading.Event()
        self.url = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        self.got.append((dict(handler.headers.items()), json.loads(body)))
        status = self.answers.pop(0) if self.answers else 200
        if status == "drop":
            handler.connection.close()
            return
        if status == "wait":
            self.released.wait(30)
            status = 200
        handler.send_response(status)
        if 300 <= status < 400:
            handler.send_header("Location", f"{self.url}/elsewhere")
        if status == 429:
            handler.send_header("Retry-After", "700")
        handler.send_header("Content-Length", "0")
        handler.end_headers()


@contextmanager
def serving(receiver: Receiver) -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.answer(self)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook/s3cret-path"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def report(status: Status, failures: tuple[Observation, ...] = (), *, blind: bool = False) -> MonitorReport:
    finding = WindowFinding(status, PassShare(40, 100, 0.3, 0.5), why="why", blind=blind)
    passed = [Observation(f"passed {number}", 1.0, True, None) for number in range(100 - len(failures))]
    return MonitorReport(finding, (*passed, *failures), Scoring(()), Counts(), 5.0, 0.01)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[MonitorState]:
    found = open_state(tmp_path / "m.sqlite")
    assert found is not None
    with found:
        yield found


def tell(state: MonitorState, target: Target, status: Status, now: float, **more: Any) -> list[str]:
    """Stores the status, and tells the target."""
    state.change(status, "why", now)
    subject = Alerts([target], suite="shop", cool_down=100.0, silence=1000.0)

    async def once() -> list[str]:
        async with Client() as client:
            return await subject.tell(state, report(status, **more), now, client)

    return asyncio.run(once())


def webhook(receiver: Receiver, token: str = "") -> Target:
    return Target("webhook:HOOK", "webhook", receiver.url, token)


def test_a_change_is_told_once(state: MonitorState) -> None:
    with serving(Receiver()) as receiver:
        target = webhook(receiver, "t0ken")
        for now, status in enumerate([Status.HEALTHY, Status.CRITICAL, Status.CRITICAL, Status.INSUFFICIENT_DATA]):
            assert tell(state, target, status, float(now)) == []
        ((headers, body),) = receiver.got
    assert headers["Authorization"] == "Bearer t0ken"
    assert headers["Idempotency-Key"] == body["id"] == "shop:2"
    assert (body["before"], body["status"], body["pass_rate"], body["sample_count"]) == (
        "healthy",
        "critical",
        0.4,
        100,
    )


def test_better_waits_for_the_cool_down_and_worse_does_not(state: MonitorState) -> None:
    steps = [
        (0.0, Status.WARNING),
        (10.0, Status.HEALTHY),  # too soon
        (20.0, Status.CRITICAL),
        (119.0, Status.HEALTHY),  # too soon
        (121.0, Status.HEALTHY),
        (122.0, Status.HEALTHY),
    ]
    with serving(Receiver()) as receiver:
        for now, status in steps:
            assert tell(state, webhook(receiver), status, now) == []
        told = [(body["before"], body["status"]) for _, body in receiver.got]
    assert told == [("healthy", "warning"), ("warning", "critical"), ("critical", "healthy")]


@pytest.mark.parametrize("answer", [500, 404, "drop"])
def test_a_failed_attempt_is_made_up_for_and_pauses_grow(state: MonitorState, answer: Any) -> None:
    with serving(Receiver(answer, answer)) as receiver:
        target = webhook(receiver)
        (problem,) = tell(state, target, Status.CRITICAL, 0.0)
        assert problem.startswith("webhook:HOOK: ")
        assert "s3cret" not in problem
        assert tell(state, target, Status.CRITICAL, 1.0) == [problem], "said, and not tried: too soon"
        assert len(receiver.got) == 1
        tell(state, target, Status.CRITICAL, 2.0)
        assert state.deliveries()["webhook:HOOK"].next_at == 6.0
        assert tell(state, target, Status.CRITICAL, 6.0) == []
        assert tell(state, target, Status.CRITICAL, 60.0) == []
        ids = [body["id"] for _, body in receiver.got]
    assert ids == ["shop:1"] * 3, "one alert, by whose id a receiver knows it"


def test_a_redirect_is_not_followed(state: MonitorState) -> None:
    with serving(Receiver(307)) as receiver:
        assert tell(state, webhook(receiver), Status.CRITICAL, 0.0) == [
            "webhook:HOOK: HTTP 307: redirects are not followed"
        ]
        assert len(receiver.got) == 1


def test_a_server_that_asks_to_wait_is_obeyed(state: MonitorState) -> None:
    with serving(Receiver(429)) as receiver:
        tell(state, webhook(receiver), Status.CRITICAL, 0.0)
    assert state.deliveries()["webhook:HOOK"].next_at == 700.0


def test_a_server_that_does_not_answer_holds_nobody_up(state: MonitorState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "ANSWER_SECONDS", 0.2)
    with serving(Receiver("wait")) as receiver:
        assert tell(state, webhook(receiver), Status.CRITICAL, 0.0) == ["webhook:HOOK: no answer within 0.2 s"]
        receiver.released.set()
        assert tell(state, webhook(receiver), Status.CRITICAL, 10.0) == []


def test_a_server_that_is_not_there_is_said(state: MonitorState) -> None:
    with serving(Receiver()) as receiver:
        target = webhook(receiver)
    (problem,) = tell(state, target, Status.CRITICAL, 0.0)
    assert "refused" in problem.lower()


def test_one_targets_failure_keeps_no_other_from_being_told(state: MonitorState) -> None:
    with serving(Receiver(500)) as bad, serving(Receiver()) as good:
        state.change(Status.CRITICAL, "why", 0.0)
        targets = [Target("slack:A", "slack", bad.url), Target("teams:B", "teams", good.url)]

        async def once() -> list[str]:
            async with Client() as client:
                subject = Alerts(targets, suite="shop", cool_down=1.0, silence=100.0)
                return await subject.tell(state, report(Status.CRITICAL), 0.0, client)

        assert asyncio.run(once()) == ["slack:A: HTTP 500"]
        assert len(good.got) == 1


def test_chats_show_hostile_text_as_text(state: MonitorState) -> None:
    why = "<https://evil.test|click> *b* `c` [x](http://evil.test)\n# head"
    evil = Observation("<!channel>", 0.0, passed=False, average=None, why=why)
    with serving(Receiver()) as slack, serving(Receiver()) as teams:
        tell(state, Target("slack:A", "slack", slack.url), Status.CRITICAL, 0.0, failures=(evil,))
        tell(state, Target("teams:B", "teams", teams.url), Status.CRITICAL, 0.0, failures=(evil,))
        text = slack.got[0][1]["text"]
        card = teams.got[0][1]["attachments"][0]["content"]
    assert text.startswith("*shop: healthy → critical*\n")
    assert "&lt;!channel&gt;" in text
    assert "<" not in text
    assert card["type"] == "AdaptiveCard"
    shown = card["body"][-1]["text"]
    assert "\\[x\\]\\(http://evil.test\\)" in shown
    assert "\n" not in shown


def test_scores_are_exported_as_events_of_the_genai_conventions(state: MonitorState) -> None:
    seen = [
        Observation("a" * 32, 2.0, False, 0.5, {"tone": 0.5}, "tone: rude"),
        Observation("row 1", 3.0, None, None, {}, "judge down"),
    ]
    state.commit(seen, [], Counts(), now=3.0, look=1, criteria="c", export=True)
    with serving(Receiver(503)) as receiver:
        target = Target("otlp:LOGS", "otlp", receiver.url)
        assert tell(state, target, Status.HEALTHY, 0.0) == ["otlp:LOGS: HTTP 503"]
        assert tell(state, target, Status.HEALTHY, 5.0) == []
        assert tell(state, target, Status.HEALTHY, 6.0) == []
        assert len(receiver.got) == 2
        sent = receiver.got[1][1]
    assert sent == evaluation_events(seen, "shop")
    records = sent["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert {record["eventName"] for record in records} == {"gen_ai.evaluation.result"}
    plain = [{one["key"]: next(iter(one["value"].values())) for one in record["attributes"]} for record in records]
    assert plain[0]["gen_ai.evaluation.score.label"] == "fail"
    assert plain[0]["gen_ai.evaluation.explanation"] == "tone: rude"
    assert (plain[1]["gen_ai.evaluation.name"], plain[1]["gen_ai.evaluation.score.value"]) == ("tone", 0.5)
    assert (records[0]["traceId"], records[0]["timeUnixNano"]) == ("a" * 32, "2000000000")
    assert "traceId" not in records[2]
    assert plain[2]["gen_ai.conversation.id"] == "row 1"
    assert "gen_ai.evaluation.score.value" not in plain[2], "not measured is no zero"


def test_a_quiet_night_is_told_to_nobody_and_what_lasts_is() -> None:
    assert not is_due(Delivery(Status.HEALTHY), Status.INSUFFICIENT_DATA, 1e9, 1.0, lasted=False)
    assert not is_due(Delivery(Status.CRITICAL), Status.INSUFFICIENT_DATA, 1e9, 1.0, lasted=False)
    assert not is_due(Delivery(Status.HEALTHY), Status.HEALTHY, 1e9, 1.0)
    assert is_due(Delivery(Status.HEALTHY), Status.INSUFFICIENT_DATA, 1e9, 1.0)
    assert is_due(Delivery(Status.CRITICAL, 10.0), Status.INSUFFICIENT_DATA, 12.0, 1.0)
    assert not is_due(Delivery(Status.CRITICAL, 10.0), Status.INSUFFICIENT_DATA, 10.5, 1.0)


def test_that_nothing_can_be_measured_is_told_at_once_and_that_there_is_little_once_it_lasted(
    state: MonitorState,
) -> None:
    with serving(Receiver()) as receiver:
        target = webhook(receiver)
        assert tell(state, target, Status.INSUFFICIENT_DATA, 1.0) == []
        assert tell(state, target, Status.INSUFFICIENT_DATA, 900.0) == []
        assert receiver.got == [], "there is little as yet"
        tell(state, target, Status.HEALTHY, 901.0)
        tell(state, target, Status.INSUFFICIENT_DATA, 902.0, blind=True)
        tell(state, target, Status.INSUFFICIENT_DATA, 903.0, blind=True)
        tell(state, target, Status.HEALTHY, 904.0)
        tell(state, target, Status.INSUFFICIENT_DATA, 905.0)
        tell(state, target, Status.INSUFFICIENT_DATA, 2_000.0)
        told = [(body["before"], body["status"]) for _, body in receiver.got]
    lost, found = ("healthy", "insufficient_data"), ("insufficient_data", "healthy")
    assert told == [lost, found, lost], "at once, and the other one when it had lasted"


def test_addresses_come_from_the_environment_and_are_never_shown() -> None:
    found = target_of("slack", "HOOK", "", {"HOOK": " https://hooks.test/s3cret "})
    assert (found.name, found.url) == ("slack:HOOK", "https://hooks.test/s3cret")
    assert "s3cret" not in repr(found)
    for environment in ({}, {"HOOK": "s3cret"}, {"HOOK": "file:///s3cret"}, {"HOOK": "http://user:s3cret@host/"}):
        with pytest.raises(ConfigError) as refused:
            target_of("slack", "HOOK", "", environment)
        assert "HOOK" in str(refused.value)
        assert "s3cret" not in str(refused.value)
    with pytest.raises(ConfigError, match="TOKEN is not set"):
        target_of("webhook", "HOOK", "TOKEN", {"HOOK": "http://a.test"})
