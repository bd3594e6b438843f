"""HTTP agents over real sockets: what is asked, how statuses and broken answers are read, how long it took."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from gate.agents.http import MOST_SHOWN, shown_address
from gate.errors import ConfigError, MeasureError
from gate.model import Case, ErrorKind, Trial
from tests.integration.agents.driving import case, drive, open_files, read_request, response, run, serving
from tests.patience import skip, skipping

Answer = Callable[[dict[str, Any]], Awaitable[bytes]]


def served(
    answer: Answer, cases: list[Case], http: dict[str, Any] | None = None, *, hung: Any = None, **options: Any
) -> dict[str, Trial]:
    """Trials by case id, driven against a server that answers each request's JSON with raw bytes."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            line, headers, body = await read_request(reader)
            asked = json.loads(body) if body else {}
            writer.write(await answer({"line": line, "headers": headers, "body": asked}))
            await writer.drain()

    async def main() -> list[Trial]:
        async with serving(handler) as port:
            environment = options.pop("environment", {})
            agent = {"http": {"url": f"http://127.0.0.1:{port}/ask", **(http or {})}, **options}
            return await drive(agent, cases, Path(), environment=environment, hung=hung)

    return {trial.case_id: trial for trial in skipping(main())}


def says(*answers: bytes) -> tuple[Answer, list[dict[str, Any]]]:
    """Answers in this order, the last one again and again; and what was asked."""
    asked: list[dict[str, Any]] = []

    async def answer(request: dict[str, Any]) -> bytes:
        asked.append(request)
        return answers[min(len(asked), len(answers)) - 1]

    return answer, asked


def ok(value: Any) -> bytes:
    return response(json.dumps(value).encode())


def test_the_least_that_an_agent_needs() -> None:
    answer, asked = says(ok({"output": "one", "tool_calls": [{"name": "t", "arguments": {}}]}), ok({"output": "two"}))
    trial = served(answer, [case("c1", "a", "b", state={"k": 1})])["c1"]
    assert [i.text for i in trial.invocations] == ["one", "two"]
    assert trial.invocations[0].tool_calls[0].name == "t"
    assert asked[1]["line"] == "POST /ask HTTP/1.1"
    body = asked[1]["body"]
    assert body["session_id"] == asked[0]["body"]["session_id"]
    assert [m["content"] for m in body["messages"]] == ["a", "one", "b"]
    assert (body["v"], body["case_id"], body["trial"], body["turn"], body["state"]) == (1, "c1", 1, 1, {"k": 1})


def test_a_stated_error_and_a_path_that_leads_nowhere_are_failures() -> None:
    http = {"response": {"output": "text", "tool_calls": "steps"}}
    for body, kind, message in (
        ({"text": "", "steps": [], "error": "no such order"}, ErrorKind.CRASH, "reports an error: no such order"),
        ({"text": "hi"}, ErrorKind.PROTOCOL, "nothing at 'steps' (tool_calls); write steps? if it may be left out"),
        ({"text": None, "steps": None}, ErrorKind.PROTOCOL, "no output and no tool call"),
    ):
        answer, _ = says(ok(body))
        error = served(answer, [case("a")], http)["a"].error
        assert error is not None
        assert error.kind is kind
        assert message in error.message


def test_a_request_from_a_template_and_an_answer_by_paths() -> None:
    call = {"function": {"name": "f", "arguments": '{"a": 1}'}}
    answer, asked = says(ok({"data": [{"text": "hi", "calls": [call]}], "u": {"prompt_tokens": 4}}))
    http = {
        "method": "PUT",
        "headers": {"Authorization": "Bearer ${TOKEN}"},
        "request": {"query": "{{message}}", "thread": "{{session_id}}", "stream": False},
        "response": {"output": "data[0].text", "tool_calls": "data[0].calls", "usage": "u"},
    }
    trial = served(answer, [case("a", "what?")], http, environment={"TOKEN": "t0p"})["a"]
    assert asked[0]["line"] == "PUT /ask HTTP/1.1"
    assert asked[0]["headers"]["authorization"] == "Bearer t0p"
    assert asked[0]["body"]["query"] == "what?"
    assert set(asked[0]["body"]) == {"query", "thread", "stream"}
    invocation = trial.invocations[0]
    assert (invocation.text, invocation.tool_calls[0].args) == ("hi", {"a": 1})
    assert invocation.usage is not None
    assert invocation.usage.input_tokens == 4


def test_plain_text() -> None:
    answer, _ = says(response(b"just text", kind="text/plain; charset=utf-8"))
    assert served(answer, [case("a")])["a"].invocations[0].text == "just text"


def test_the_body_of_an_error_is_kept_beyond_what_the_message_quotes() -> None:
    answer, _ = says(response(b"first line\n" + b"x" * 500 + b"\n  at refund.py:12", "500 Internal Server Error"))
    trial = served(answer, [case("a")])["a"]
    assert trial.error is not None and "refund.py" not in trial.error.message
    assert trial.log.startswith("first line\n") and trial.log.endswith("  at refund.py:12")
    flood, _ = says(response("é".encode() * 50_000, "500 Internal Server Error"))
    assert len(served(flood, [case("a")])["a"].log) <= 4_000


FLASKS_PAGE = b"""<!doctype html>
<html lang=en>
<title>500 Internal Server Error</title>
<h1>Internal Server Error</h1>
<p>The server encountered an internal error and was unable to complete your request. Either the server is overloaded or
there is an error in the application.</p>
"""
"""The answer of a Flask agent that raised an exception: a failure of the agent, not a refusal of its provider."""
EXPRESS_PAGE = b"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Error</title></head>
<body><pre>RateLimitError: 429 Rate limit<br> &nbsp; &nbsp;at APIError.generate (/app/error.js:63:20)</pre></body>
</html>
"""
"""The answer of an Express agent whose provider refused."""


@pytest.mark.parametrize(
    ("raw", "kind", "attempts", "message"),
    [
        (response(b"slow down", "429 Too Many Requests"), ErrorKind.UNREACHABLE, 2, "HTTP 429: slow down"),
        (response(b"", "503 Service Unavailable"), ErrorKind.UNREACHABLE, 2, "HTTP 503"),
        (response(b"trace", "500 Internal Server Error"), ErrorKind.CRASH, 1, "HTTP 500: trace"),
        (response(b"", "502 Bad Gateway"), ErrorKind.CRASH, 1, "HTTP 502"),
        (response(b"rate limit", "500 Internal Server Error"), ErrorKind.LIMIT, 2, "HTTP 500: rate limit"),
        (response(FLASKS_PAGE, "500 Internal Server Error"), ErrorKind.CRASH, 1, "HTTP 500: 500 Internal Server Error"),
        (
            response(EXPRESS_PAGE, "500 Oops"),
            ErrorKind.LIMIT,
            2,
            "HTTP 500: Error: RateLimitError: 429 Rate",
        ),
        (response(b"<html>overloaded", "500 Oops"), ErrorKind.CRASH, 1, "HTTP 500: a web page without a title"),
        (response(b"\xef\xbb\xbf" + FLASKS_PAGE, "500 Oops"), ErrorKind.CRASH, 1, "500 Internal Server Error"),
        (response(b"no", "401 Unauthorized"), ErrorKind.SETUP, 1, "HTTP 401: no"),
        (response(b"", "302 Found", extra="Location: /login\r\n"), ErrorKind.SETUP, 1, "not followed (to /login)"),
        (response(b"<html>", kind="text/html"), ErrorKind.PROTOCOL, 1, "a web page"),
        (response(b"\n<!DOCTYPE html><p>Sign in", kind="text/plain"), ErrorKind.PROTOCOL, 1, "a web page"),
        (response(b'{"output": "tor'), ErrorKind.PROTOCOL, 1, "not JSON"),
        (response(b"plainly"), ErrorKind.PROTOCOL, 1, "not JSON"),
        (response(b""), ErrorKind.PROTOCOL, 1, "the answer is empty"),
        (response(b'{"answer": "x"}'), ErrorKind.PROTOCOL, 1, "cannot be read"),
        (response(b"x" * 50_000_000, kind="text/plain"), ErrorKind.PROTOCOL, 1, "more than 10,000,000 bytes"),
        (b"garbage\r\n\r\n", ErrorKind.PROTOCOL, 1, "not HTTP/1.1"),
    ],
)
def test_failures_are_named(raw: bytes, kind: ErrorKind, attempts: int, message: str) -> None:
    answer, asked = says(raw)
    trial = served(answer, [case("a")], retries=1)["a"]
    assert trial.error is not None
    assert trial.error.kind is kind
    assert message in trial.error.message
    assert (trial.attempts, len(asked)) == (attempts, attempts)


@pytest.mark.slow
@pytest.mark.parametrize("header", ["1", "date"])
def test_retry_after_is_honoured(header: str) -> None:
    times: list[float] = []
    moment = late = 0.0

    async def answer(request: dict[str, Any]) -> bytes:
        nonlocal moment, late
        times.append(time.monotonic())
        late = time.time() - moment
        moment = moment or int(time.time()) + 2
        until = "1" if header == "1" else formatdate(moment, usegmt=True)
        busy = response(b"", "429 Too Many Requests", extra=f"Retry-After: {until}\r\n")
        return busy if len(times) == 1 else ok({"output": "fine"})

    trial = served(answer, [case("a")])["a"]
    assert trial.error is None
    assert trial.attempts == 2
    waited = times[1] - times[0]
    assert waited >= 0.99 if header == "1" else late >= -0.01
    assert waited <= 30


def test_a_retry_after_that_is_nonsense_is_ignored() -> None:
    busy = response(b"", "429 Too Many Requests", extra="Retry-After: whenever\r\n")
    answer, _ = says(busy, ok({"output": "fine"}))
    assert served(answer, [case("a")])["a"].attempts == 2


def test_a_hang_is_a_timeout_and_hurts_nobody_else() -> None:
    asked = set()

    async def answer(request: dict[str, Any]) -> bytes:
        asked.add(request["body"]["case_id"])
        await asyncio.sleep(3600 if request["body"]["case_id"] == "c2" else 0.01)
        return ok({"output": "fine"})

    trials = served(answer, [case(f"c{n}") for n in range(5)], hung=lambda done: "c2" in asked and len(done) == 4)
    assert [(name, t.error.kind) for name, t in trials.items() if t.error] == [("c2", ErrorKind.TIMEOUT)]


@pytest.mark.slow
def test_an_agent_that_is_down_ends_the_run() -> None:
    with pytest.raises(MeasureError, match=r"has an answer: unreachable: 127\.0\.0\.1:9: Connection refused"):
        run({"http": "http://127.0.0.1:9/"}, [case(f"c{n}") for n in range(1000)], Path())


def test_a_missing_variable_is_named_before_anything_runs() -> None:
    with pytest.raises(ConfigError, match=r"agent\.http\.headers\.X-Key: the environment variable MY_KEY is not set"):
        run({"http": {"url": "http://x", "headers": {"X-Key": "${MY_KEY}"}}}, [case("a")], Path(), environment={})
    with pytest.raises(ConfigError, match=r"agent\.http\.url: the environment variable HOST is not set"):
        run({"http": "http://${HOST}/"}, [case("a")], Path(), environment={})


def test_a_file_limit_slows_down_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gate.agents.http.connections", lambda: 8)
    flying = most = 0
    together = asyncio.Barrier(8)

    async def answer(request: dict[str, Any]) -> bytes:
        """Eight at a time, each eight half a minute after those before."""
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        if await together.wait() == 0:
            skip(30)
        await together.wait()
        flying -= 1
        return ok({"output": "fine"})

    start = time.perf_counter()
    trials = served(answer, [case(f"c{n}") for n in range(64)], concurrency=64)
    elapsed = time.perf_counter() - start
    assert len(trials) == 64
    assert all(trial.error is None for trial in trials.values())  # the last ones waited for four minutes
    assert most == 8
    durations = [trial.duration or 0 for trial in trials.values()]
    assert sum(durations) <= 8 * elapsed  # the wait for a connection is nobody's


def test_no_descriptor_is_leaked() -> None:
    answer, _ = says(ok({"output": "fine"}))
    served(answer, [case("a")])
    before = open_files()
    served(answer, [case(f"c{n}") for n in range(50)])
    assert open_files() <= before


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/"),
        ("https://me:secret@host.example/chat", "https://host.example/chat"),
        ("https://host.example/chat?key=secret&to=a@b#secret", "https://host.example/chat"),
        ("https://host.example/a@b", "https://host.example/a@b"),
        ("${AGENT_URL}/chat", "${AGENT_URL}/chat"),
        ("http://host/\x1b[31m\nred", "http://host/␛[31m ⏎ red"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    assert shown_address(url) == shown
    assert len(shown_address(f"http://host/{'x' * 500}")) < MOST_SHOWN + 40
