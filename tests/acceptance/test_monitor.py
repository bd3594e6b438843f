"""`gate monitor` as it is used: by cron, as a service, killed, twice at once, and with a receiver of alerts."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from tests.acceptance.conftest import Project, first_of
from tests.patience import CEILING, eventually

CONFIG = """
name: shop
suite: evals/
agent: {python: "agent:answer"}
criteria:
  not_contains: {values: ["I cannot"]}
  tool_trajectory_avg_score: 0.9
"""


def row(name: str, *, good: bool = True) -> str:
    said = "It is on its way." if good else "I cannot say."
    messages = [{"role": "user", "content": f"Where is {name}?"}, {"role": "assistant", "content": said}]
    return json.dumps({"id": name, "messages": messages}) + "\n"


def span(trace: str, number: int, said: str, at: int) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "invoke_agent" if number == 0 else "chat",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Where?"}]}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": said}]}]),
    }
    return {
        "traceId": trace,
        "spanId": f"{number + 1:016x}",
        "parentSpanId": "" if number == 0 else f"{1:016x}",
        "name": "agent",
        "startTimeUnixNano": str(at),
        "endTimeUnixNano": str(at + 1_000_000),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }


def request(*spans: dict[str, Any]) -> str:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}) + "\n"


@pytest.fixture
def shop(project: Project) -> Project:
    project.write("gate.yaml", CONFIG + "monitor: {traces: traces/, sample_rate: 1.0}\n")
    project.write("evals/a.yaml", "cases:\n  - {id: a, input: hello, tools: [refund]}\n")
    (project.root / "traces").mkdir()
    return project


def append(project: Project, *lines: str, name: str = "a.jsonl") -> None:
    with (project.root / "traces" / name).open("a", encoding="utf-8") as file:
        file.write("".join(lines))


def test_what_no_reader_reads_of_production_is_listed_once_a_kind(shop: Project) -> None:
    more = [json.dumps({**json.loads(row(f"a{number}")), "reviewed": "no"}) + "\n" for number in range(30)]
    append(shop, *more)
    assert "not read: reviewed (30 times)" in shop.gate("monitor", "--once").out


def once(project: Project, *arguments: str, **environment: str) -> tuple[int, dict[str, Any], str]:
    ran = project.gate("monitor", "--once", "--json", "status.json", *arguments, **environment)
    path = project.root / "status.json"
    assert path.exists(), ran.err
    return ran.code, json.loads(path.read_text(encoding="utf-8")), ran.out + ran.err


def stored(project: Project) -> list[tuple[str, int | None]]:
    db = sqlite3.connect(project.root / ".gate" / "monitor.sqlite", timeout=30)
    try:
        return db.execute("SELECT trace, passed FROM traces ORDER BY trace").fetchall()
    finally:
        db.close()


def test_a_cron_job_reads_what_is_new_and_says_how_it_stands(shop: Project) -> None:
    append(shop, *(row(f"t{n}", good=n % 20 > 0) for n in range(100)), "garbage\n", '{"id": "half')
    code, found, text = once(shop)
    assert (code, found["status"], found["sample_count"], found["pass_rate"]["rate"]) == (0, "healthy", 100, 0.95)
    assert (found["counts"]["lines"], found["counts"]["bad"]) == (101, 1)
    assert "tool_trajectory_avg_score: skipped, it needs a reference" in text
    assert found["failures"][0]["query"] == "Where is t80?"
    append(shop, '", "messages": []}\n', *(row(f"u{n}", good=False) for n in range(60)))
    code, found, _ = once(shop)
    assert (code, found["status"], found["counts"]["sampled"]) == (1, "critical", 161)
    code, again, _ = once(shop)
    assert (code, again["counts"]) == (1, found["counts"]), "nothing new, nothing counted"
    assert shop.gate("monitor", "--status", "--fail-on", "never", "-q").code == 0


def test_rows_that_were_never_answered_are_not_healthy(shop: Project) -> None:
    asked = [{"role": "user", "content": "Where is it?"}]
    append(shop, *(json.dumps({"id": f"t{n}", "messages": asked}) + "\n" for n in range(100)))
    code, found, text = once(shop)
    assert (code, found["status"], found["pass_rate"]["rate"]) == (1, "critical", 0.0)
    assert "the agent failed: the row holds no answer" in text


def test_traces_without_an_answer_are_not_healthy(shop: Project) -> None:
    long_ago = time.time_ns() - 3_600 * 10**9
    append(shop, *(request(span(f"{n + 1:032x}", 0, "", long_ago)) for n in range(40)))
    code, found, text = once(shop)
    assert (code, found["status"], found["unmeasured"]) == (3, "insufficient_data", 40)
    assert "40 of 40 traces could not be measured" in text


def test_too_few_traces_are_not_green(shop: Project) -> None:
    append(shop, *(row(f"t{n}") for n in range(10)))
    code, found, text = once(shop)
    assert (code, found["status"]) == (3, "insufficient_data")
    assert "10 of the 30 measured traces" in text


def test_the_sample_is_the_same_wherever_it_is_drawn(shop: Project) -> None:
    append(shop, *(row(f"t{n}") for n in range(400)))
    _, first, _ = once(shop, "--sample-rate", "0.2")
    names = stored(shop)
    assert 40 < len(names) < 130
    _, second, _ = once(shop, "--sample-rate", "0.2", "--state", "other.sqlite")
    assert first["counts"] == second["counts"]


def test_spans_over_files_lines_and_runs_make_one_trace(shop: Project) -> None:
    now = time.time_ns()
    long_ago, trace, late = now - 3_600 * 10**9, "a" * 32, "b" * 32
    append(shop, request(span(trace, 1, "I cannot say.", long_ago)), name="one.jsonl")
    append(shop, request(span(late, 0, "fine", now)), name="one.jsonl")
    append(shop, request(span(trace, 0, "I cannot say.", long_ago)), name="two.jsonl")
    _, found, text = once(shop)
    assert stored(shop) == [(trace, 0)], "the other one may still be going on"
    assert "traces that are not complete yet: 1" in text
    append(shop, request(span(late, 1, "fine", now)), name="two.jsonl")
    start(shop, "--once", "--json", "status.json").communicate(timeout=CEILING)
    found = json.loads((shop.root / "status.json").read_text(encoding="utf-8"))
    assert stored(shop) == [(trace, 0), (late, 1)]
    assert (found["counts"]["lines"], found["counts"]["late"]) == (4, 0), "what is read again is not counted again"


@pytest.mark.slow
def test_killed_in_the_middle_nothing_is_lost_and_nothing_counts_twice(shop: Project) -> None:
    total = 8_000
    for part in range(4):
        append(shop, *(row(f"t{n:05}", good=n % 10 > 0) for n in range(part, total, 4)), name=f"{part}.jsonl")
    killed = 0
    for _ in range(6):
        before = len(stored(shop)) if killed else 0
        child = start(shop, "--once")
        while child.poll() is None and not (state_exists(shop) and len(stored(shop)) > before):
            time.sleep(0.002)
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
            killed += 1
        child.communicate()
    _, found, text = once(shop)
    assert killed >= 2, "it was over before it could be killed"
    assert len(stored(shop)) == total
    assert (found["counts"]["lines"], found["counts"]["sampled"], found["counts"]["repeated"]) == (total, total, 0), (
        text
    )


@pytest.mark.slow
def test_two_at_once_share_the_work_and_count_once(shop: Project) -> None:
    append(shop, *(row(f"t{n:05}") for n in range(3_000)))
    children = [start(shop, "--once", "-q") for _ in range(3)]
    outputs = [child.communicate(timeout=CEILING) for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], outputs
    _, found, _ = once(shop)
    assert len(stored(shop)) == 3_000
    assert (found["counts"]["lines"], found["counts"]["sampled"], found["counts"]["repeated"]) == (3_000, 3_000, 0)


@pytest.mark.slow
def test_a_service_follows_its_files_and_ends_gracefully(shop: Project) -> None:
    append(shop, *(row(f"t{n}") for n in range(50)))
    child, standby = start(shop, "-q"), None
    try:
        assert eventually(lambda: state_exists(shop) and len(stored(shop)) == 50)
        assert child.stdout is not None
        assert child.stdout.readline().startswith("healthy: pass rate 100 %")
        standby = start(shop, "-q")
        append(shop, *(row(f"u{n}", good=False) for n in range(50)))
        (shop.root / "traces" / "a.jsonl").rename(shop.root / "traces" / "a.jsonl.1")
        append(shop, *(row(f"v{n}", good=False) for n in range(50)))
        assert eventually(lambda: len(stored(shop)) == 150)
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=CEILING)
        assert (child.returncode, err) == (0, "")
        assert out.splitlines()[-1].startswith("critical: pass rate")
        append(shop, *(row(f"w{n}") for n in range(10)))
        assert eventually(lambda: len(stored(shop)) == 160)  # by the one that took over
    finally:
        for one in (child, standby):
            if one is not None and one.poll() is None:
                one.send_signal(signal.SIGTERM)
                one.communicate(timeout=CEILING)


@pytest.fixture
def receiver() -> Iterator[Any]:
    class Handler(BaseHTTPRequestHandler):
        got: ClassVar[list[Any]] = []
        answers: ClassVar[list[int]] = []

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            Handler.got.append((self.path, json.loads(body)))
            self.send_response(Handler.answers.pop(0) if Handler.answers else 204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    Handler.address = f"http://127.0.0.1:{server.server_address[1]}"  # type: ignore[attr-defined]
    yield Handler
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
def test_alerts_go_out_once_to_every_target(shop: Project, receiver: Any) -> None:
    more = "alerts: {slack: SLACK_URL, webhook: {url: HOOK_URL, token: HOOK_TOKEN}}, otlp: LOGS_URL, prometheus: m.prom"
    shop.write("gate.yaml", CONFIG + f"monitor: {{traces: traces/, sample_rate: 1.0, {more}}}\n")
    append(shop, *(row(f"t{n}", good=False) for n in range(40)))
    secret = "T00/B00/s3cretpath"
    addresses = {f"{name}_URL": f"{receiver.address}/{name.lower()}/{secret}" for name in ("SLACK", "HOOK", "LOGS")}
    receiver.answers[:] = [500]
    code, found, text = once(shop, HOOK_TOKEN="abcdef123", **addresses)
    assert code == 1, text
    paths = sorted(path.split("/")[1] for path, _ in receiver.got)
    assert [paths.count(name) for name in ("slack", "hook", "logs")].count(2) == 1, "the one that failed, again"
    assert sorted(set(paths)) == ["hook", "logs", "slack"]
    before = len(receiver.got)
    assert once(shop, HOOK_TOKEN="abcdef123", **addresses)[0] == 1
    assert len(receiver.got) == before
    assert "s3cretpath" not in text + json.dumps(found)
    assert "s3cretpath" not in (shop.root / ".gate" / "monitor.sqlite").read_bytes().decode("latin-1")
    assert 'gate_monitor_status{suite="shop",status="critical"} 1.0' in (shop.root / "m.prom").read_text()


@pytest.mark.slow
def test_an_undelivered_alert_is_said_and_changes_the_exit_code(shop: Project, receiver: Any) -> None:
    shop.write("gate.yaml", CONFIG + "monitor: {traces: traces/, sample_rate: 1.0, otlp: LOGS_URL}\n")
    append(shop, *(row(f"t{n}") for n in range(40)))
    receiver.answers[:] = [404] * 10
    code, _, text = once(shop, LOGS_URL=f"{receiver.address}/v1/logs")
    assert code == 5, text
    assert "otlp:LOGS_URL: HTTP 404" in text


def test_production_is_compared_with_what_ci_stored(shop: Project) -> None:
    shop.write(
        "agent.py",
        "def answer(message):\n    return {'output': 'It is on its way.', 'tool_calls': [{'name': 'refund'}]}\n",
    )
    shop.store(trials=2)
    append(shop, *(row(f"t{n}", good=n % 4 > 0) for n in range(60)))
    _, found, text = once(shop, "--against", "baseline")
    (criterion,) = found["criteria"]
    assert (criterion["baseline"]["mean"], criterion["baseline"]["n"], criterion["window"]["mean"]) == (1.0, 2, 0.75)
    assert found["baseline_pass_rate"]["mean"] == 1.0
    assert "other conversations, so compare with care" in text
    shop.write("gate.yaml", CONFIG.replace("I cannot", "I can not") + "monitor: {traces: traces/, sample_rate: 1.0}\n")
    _, found, _ = once(shop, "--against", ".gate/base.jsonl")
    assert found["criteria"][0]["baseline"] is None, "another criterion is no yardstick"


@pytest.mark.parametrize(
    ("monitor", "arguments", "said"),
    [
        ("{}", (), "no traces given"),
        ("{traces: nowhere/x/}", (), "no such file or folder"),
        ("{traces: traces/, sample_rate: 0}", (), "sample_rate"),
        ("{traces: traces/, critical: 0.9}", (), "critical (0.9) is above warning (0.85)"),
        ("{traces: traces/, sample_rat: 1}", (), "did you mean 'sample_rate'"),
        ("{traces: traces/, alerts: {slack: NOT_SET}}", (), "the variable NOT_SET is not set"),
        ("{traces: traces/, alerts: {slack: 'https://hooks.test/x'}}", (), "slack"),
        ("{traces: traces/, prometheus: ../x.prom}", (), "not a file below"),
        ("{traces: traces/}", ("--status",), "give either --once or --status"),
        ("{traces: traces/}", ("--against", "none.jsonl"), "none.jsonl"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(shop: Project, monitor: str, arguments: tuple[str, ...], said: str) -> None:
    shop.write("gate.yaml", CONFIG + f"monitor: {monitor}\n")
    ran = shop.gate("monitor", "--once", *arguments)
    assert said in ran.err
    assert ran.code in (2, 3, 4)
    assert len(ran.err.strip().splitlines()) == 1


def test_criteria_that_all_need_a_reference_are_refused(shop: Project) -> None:
    shop.write(
        "gate.yaml", CONFIG.replace('  not_contains: {values: ["I cannot"]}\n', "") + "monitor: {traces: traces/}\n"
    )
    ran = shop.gate("monitor", "--once")
    assert (ran.code, ran.out) == (2, "")
    assert "no blocking criterion can judge a conversation without expectations" in ran.err


def state_exists(project: Project) -> bool:
    path = project.root / ".gate" / "monitor.sqlite"
    if not path.exists():
        return False
    try:
        stored(project)
    except sqlite3.Error:
        return False
    return True


IN_A_HURRY = """
import gate.monitor.watch
from gate.commands.main import main
gate.monitor.watch.IDLE_SECONDS, gate.monitor.watch.PAUSE_SECONDS = 0.1, 0.02
main()
"""


def start(project: Project, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", IN_A_HURRY, "monitor", *arguments],
        cwd=project.root,
        env={name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "CI", "OPENAI_"))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_state_is_where_it_is_said(shop: Project) -> None:
    append(shop, row("a"))
    once(shop, "--state", "here.sqlite")
    assert (shop.root / "here.sqlite").exists()
    assert not Path(shop.root / ".gate" / "monitor.sqlite").exists()


def test_a_bad_trace_becomes_a_case_once(shop: Project) -> None:
    shop.write(
        "agent.py", "def answer(message):\n    return {'output': 'I cannot say.', 'tool_calls': [{'name': 'refund'}]}\n"
    )
    secret = "sk-" + "a1" * 24
    asked = f"I am ada@example.com, my key is {secret}. Where is A100?"
    messages = [{"role": "user", "content": asked}, {"role": "assistant", "content": "I cannot say."}]
    append(shop, json.dumps({"id": "trace-8841", "messages": messages}) + "\n", row("trace-9"))
    once(shop)
    first = shop.gate("promote", "trace-88", "--why", "it knows the order")
    assert (first.code, first.err) == (0, "")
    assert "2 values in it were masked" in first.out
    text = (shop.root / "evals" / "production.yaml").read_text(encoding="utf-8")
    assert secret not in text
    assert "ada@" not in text
    again = shop.gate("promote", "trace-8841")
    assert (again.code, "is a case already" in again.out) == (0, True)
    assert (shop.root / "evals" / "production.yaml").read_text(encoding="utf-8") == text
    code, _ = shop.result("run", "--tag", "production", "--trials", "2")
    assert code == 1, "the agent still says what failed in production"
    for arguments, said in (
        (("trace",), "several traces begin with"),
        (("trace-9",), "it passed"),
        (("none",), "no trace 'none' was scored"),
        (("trace-8841", "--to", "elsewhere.yaml"), "the suite does not read this file"),
    ):
        ran = shop.gate("promote", *arguments)
        assert (ran.code, said in ran.err) == (2, True), ran.err


@pytest.mark.parametrize(
    "name", first_of(["ada@example.com", "+44 20 7946 0958", "sk-" + "a1" * 24, "id: &a [*a]\n- !!x", "../../x"], 2)
)
def test_what_a_trace_is_called_is_as_hostile_as_what_it_says(shop: Project, name: str) -> None:
    """Names of rows are anything: somebody's address, a token, YAML."""
    shop.write("agent.py", "def answer(message):\n    return 'I cannot say.'\n")
    asked = "x: !!python/object {}\n  - id: evil\n# \u2028\x85 ${{ secrets.X }} 'quoted\" \\ \t end"
    messages = [{"role": "user", "content": asked}, {"role": "assistant", "content": "I cannot say.\n- id: worse"}]
    append(shop, json.dumps({"id": name, "messages": messages}) + "\n")
    once(shop)
    first = shop.gate("promote", name)
    assert first.code == 0, first.err
    text = (shop.root / "evals" / "production.yaml").read_text(encoding="utf-8")
    (case,) = yaml.safe_load(text)["cases"]
    assert (case["input"], case["tags"]) == (asked, ["production"])
    assert set(case) == {"id", "input", "tags", "metadata"}
    assert (case["metadata"]["trace"] == name) is (name.startswith(("id", "..")))
    if not name.startswith(("id", "..")):
        assert name not in text + first.out, "nothing that is personal or secret goes into a repository"
    assert "is a case already" in shop.gate("promote", name).out
    assert sorted(path.name for path in (shop.root / "evals").iterdir()) == ["a.yaml", "production.yaml"]


@pytest.mark.slow
def test_what_an_exporter_was_told_is_received_outlives_the_process(shop: Project) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    more = f"sample_rate: 1.0, receive: {port}"
    shop.write("gate.yaml", CONFIG + f"monitor: {{{more}}}\n")
    child = start(shop, "-q")
    now, total = time.time_ns(), 20
    try:
        assert eventually(lambda: posted(shop, request(span("f" * 32, 0, "It is there.", now))))
        for number in range(total):
            assert posted(shop, request(span(f"{number + 1:032x}", 0, "It is there.", now)))
        child.send_signal(signal.SIGKILL)
        child.communicate()
        child = start(shop, "-q")
        assert eventually(lambda: state_exists(shop) and len(stored(shop)) == total + 1)
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=CEILING)
        assert (child.returncode, err) == (0, "")
    finally:
        child.kill()
        child.communicate()
    assert {passed for _, passed in stored(shop)} == {1}


def posted(shop: Project, body: str) -> bool:
    """Sends a request to where the monitor says that it listens."""
    try:
        (endpoint,) = shop.root.glob(".gate/*.endpoint")
        address = f"{endpoint.read_text().strip()}/v1/traces"
        asked = urllib.request.Request(address, body.encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False


def test_new_lines_that_nobody_can_read_are_not_green(shop: Project) -> None:
    """The window stays as it was, so its status says nothing of them."""
    append(shop, *[row(f"a{n}") for n in range(100)])
    assert once(shop)[0] == 0
    append(shop, *[json.dumps({"id": f"b{n}", "error": "boom", "messages": None}) + "\n" for n in range(20)])
    code, report, said = once(shop)
    assert (code, report["status"]) == (3, "healthy")
    assert "20 new lines could not be read" in said
    assert once(shop)[0] == 0  # and said once


def test_a_window_to_which_nothing_comes_is_not_green(shop: Project, receiver: Any) -> None:
    more = "monitor: {traces: traces/, sample_rate: 1.0, silence: 1ms, alerts: {webhook: HOOK_URL}}\n"
    shop.write("gate.yaml", CONFIG + more)
    append(shop, *(row(f"t{n}") for n in range(40)))
    code, found, text = once(shop, HOOK_URL=f"{receiver.address}/hook")
    assert (code, found["status"]) == (3, "insufficient_data")
    assert "the window tells of the past" in text
    assert [body["status"] for _, body in receiver.got] == ["insufficient_data"]


def test_an_agent_that_fell_silent_under_a_warning_is_not_green(shop: Project) -> None:
    append(shop, *(row(f"t{n}", good=n % 10 > 2) for n in range(200)))
    code, found, _ = once(shop)
    assert (code, found["status"]) == (0, "warning")
    whole = (shop.root / "gate.yaml").read_text(encoding="utf-8")
    shop.write("gate.yaml", whole.replace("sample_rate: 1.0", "sample_rate: 1.0, silence: 1ms"))
    code, found, _ = once(shop)
    assert (code, found["status"]) == (3, "insufficient_data")
    shop.write("gate.yaml", whole)
    append(shop, row("u1"))
    code, found, _ = once(shop)
    assert (code, found["status"]) == (0, "warning"), "one trace does not undo it"


# --- a canary -------------------------------------------------------------------------------------


def windows(shop: Project, canary: int, stable: int, *, each: int = 100) -> None:
    """Two windows of so many traces, of which so many passed: the stable one's is stored in its state."""
    for name, passed in (("stable", stable), ("canary", canary)):
        rows = (row(f"{name}-{n}", good=n >= each - passed) for n in range(each))
        (shop.root / f"{name}.jsonl").write_text("".join(rows))
    shop.gate("monitor", "stable.jsonl", "--once", "--quiet", "--state", "stable.sqlite", "--fail-on", "never")


def look(shop: Project, *more: str) -> tuple[int, str]:
    state = () if "--state" in more else ("--state", "canary.sqlite")
    fail_on = () if "--fail-on" in more else ("--fail-on", "never")
    arguments = ("canary.jsonl", "--once", "--quiet", *fail_on, *state, *more)
    done = shop.gate("monitor", *arguments)
    return done.code, done.out + done.err


@pytest.mark.parametrize(
    ("canary", "stable", "code", "says"),
    [(97, 98, 0, "pass: pass rate 98 %"), (75, 98, 1, "regressed: pass rate 98 %"), (90, 95, 0, "inconclusive")],
)
def test_a_canary_is_held_to_the_stable_versions_window(
    shop: Project, canary: int, stable: int, code: int, says: str
) -> None:
    windows(shop, canary, stable)
    found, said = look(shop, "--versus", "stable.sqlite")
    assert (found, says in said) == (code, True), said


def test_a_stable_window_from_long_ago_says_from_when(shop: Project) -> None:
    windows(shop, 97, 98)
    days = 40 * 86_400
    with sqlite3.connect(shop.root / "stable.sqlite") as state:
        state.execute("UPDATE traces SET at = at - ?, seen = seen - ?", (days, days))
        (newest,) = state.execute("SELECT max(at) FROM traces").fetchone()
    found, said = look(shop, "--versus", "stable.sqlite")
    day = f"{datetime.fromtimestamp(newest, UTC):%Y-%m-%d}"
    assert (found, f"; stable is from {day}" in said) == (0, True), said


def test_a_canary_whose_model_calls_fail_has_failed_traces(shop: Project) -> None:
    at = 1_700_000_000 * 10**9
    lines = []
    for number in range(200):
        held, model = (span(f"{number + 1:032x}", place, "It is on its way.", at) for place in (0, 1))
        del held["attributes"][1:]
        if number % 5 == 0:
            del model["attributes"][2:]
            model["status"] = {"code": 2, "message": "429"}
        lines.append(request(held, model))
    (shop.root / "canary.jsonl").write_text("".join(lines))
    (shop.root / "stable.jsonl").write_text("".join(row(f"s{number}") for number in range(200)))
    shop.gate("monitor", "stable.jsonl", "--once", "--quiet", "--state", "stable.sqlite")
    code, said = look(shop, "--versus", "stable.sqlite")
    assert (code, "regressed: pass rate 100 %" in said, "200 traces" in said) == (1, True, True), said


def test_a_canary_of_which_nothing_is_known_is_not_let_through(shop: Project) -> None:
    windows(shop, 10, 10, each=10)
    found, said = look(shop, "--versus", "stable.sqlite")
    assert (found, "not measured: this window: 10 traces of at least 30" in said) == (3, True), said
    shop.write("gate.yaml", CONFIG.replace("I cannot", "I can not") + "monitor: {traces: traces/, sample_rate: 1.0}\n")
    windows(shop, 100, 100)
    shop.write("gate.yaml", CONFIG + "monitor: {traces: traces/, sample_rate: 1.0}\n")
    found, said = look(shop, "--versus", "stable.sqlite")
    assert (found, "not measured: stable: 10 traces" in said) == (3, True), "the other was scored by other criteria"


def test_a_canary_is_not_held_to_its_own_traces(shop: Project) -> None:
    windows(shop, 50, 50)
    (shop.root / "stable.jsonl").write_bytes((shop.root / "canary.jsonl").read_bytes())
    shop.gate("monitor", "stable.jsonl", "--once", "--quiet", "--state", "same.sqlite", "--fail-on", "never")
    found, said = look(shop, "--versus", "same.sqlite")
    assert (found, "not measured: this window: 100 of its 100 traces are in the other window" in said) == (3, True), (
        said
    )


def test_a_small_canary_that_is_all_the_stable_versions_is_not_held_to_it(shop: Project) -> None:
    windows(shop, 400, 400, each=400)
    lines = (shop.root / "stable.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (shop.root / "canary.jsonl").write_text("".join(lines[-40:]))
    config = (shop.root / "gate.yaml").read_text(encoding="utf-8")
    shop.write("gate.yaml", config.replace("sample_rate: 1.0", "sample_rate: 1.0, window: 400"))
    found, said = look(shop, "--versus", "stable.sqlite")
    assert (found, "this window: 40 of its 40 traces are in the other window" in said) == (3, True), said
    (shop.root / "canary.jsonl").write_text("".join([*lines[-4:], *(row(f"own-{n}") for n in range(40))]))
    assert look(shop, "--versus", "stable.sqlite", "--state", "own.sqlite")[0] == 0, "a tenth may be shared"


def test_inconclusive_blocks_a_canary_where_it_blocks_a_run(shop: Project) -> None:
    shop.write("gate.yaml", CONFIG + "gate: {on_inconclusive: block}\nmonitor: {sample_rate: 1.0}\n")
    windows(shop, 90, 95)
    assert look(shop, "--versus", "stable.sqlite")[0] == 1


def test_a_record_is_no_yardstick_for_production(shop: Project) -> None:
    """Its conversations are others: `--against` lays its averages beside the window's, and decides nothing."""
    shop.write("agent.py", "def answer(message):\n    return 'It is on its way.'\n")
    shop.write("gate.yaml", CONFIG.replace("  tool_trajectory_avg_score: 0.9\n", "") + "monitor: {sample_rate: 1.0}\n")
    assert shop.gate("run", "--trials", "1", "--record", "r.jsonl").code in (0, 1)
    windows(shop, 75, 75)
    found, said = look(shop, "--versus", "r.jsonl")
    assert (found, "not measured: r.jsonl: it is no monitor's state" in said, "--against RECORD" in said) == (
        3,
        True,
        True,
    ), said


def test_what_cannot_be_compared_hides_no_critical_window(shop: Project) -> None:
    windows(shop, 10, 100)
    (shop.root / "damaged.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 4096)
    shop.write("text.jsonl", "nothing\n")
    other = sqlite3.connect(shop.root / "theirs.db")
    other.execute("CREATE TABLE answers (id INTEGER)")
    other.close()
    before = (shop.root / "theirs.db").read_bytes()
    for name in ("nothing.sqlite", "damaged.sqlite", "text.jsonl", "theirs.db"):
        for fail_on, code in (("critical", 1), ("never", 3)):
            found, said = look(shop, "--versus", name, "--fail-on", fail_on)
            assert (found, f"against {name}: not measured: " in said) == (code, True), said
    assert (shop.root / "theirs.db").read_bytes() == before
    assert look(shop, "--versus", "canary.sqlite", "--fail-on", "critical")[0] == 2, "said before anything is read"


def test_what_a_canary_is_held_to_has_to_be_there(shop: Project) -> None:
    windows(shop, 100, 100)
    assert look(shop, "--versus", "nothing.sqlite")[0] == 3
    assert look(shop, "--versus", "canary.sqlite")[0] == 2, "its own"
    assert shop.gate("monitor", "canary.jsonl", "--versus", "stable.sqlite").code == 2, "it decides once"
