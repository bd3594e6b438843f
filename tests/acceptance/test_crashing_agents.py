"""Changes that crash, hang or answer 500 in some runs, and a provider's bad minute: real agents, whole runs."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator

import pytest

from tests.acceptance.conftest import Project

AGENT = """
import os, time
CRASHING = CASES
def answer(message, case_id, trial):
    if case_id in CRASHING and CONDITION:
        WHAT
    return "the right answer"
"""
THREE = '("c10", "c20", "c30")'
MOSTLY = "trial % 5 in (0, 1, 3)"
"""In 60 % of runs, the first among them, so that each of the three is seen."""


def agent(what: str = "pass", cases: str = "()", condition: str = "True") -> str:
    return AGENT.replace("CASES", cases).replace("CONDITION", condition).replace("WHAT", what)


@pytest.fixture
def project(project: Project) -> Project:
    """A suite of forty cases with five stored trials each."""
    cases = [{"id": f"c{n}", "input": f"item {n}", "response": "the right answer"} for n in range(40)]
    project.write("suite.yaml", {"cases": cases})
    project.write(
        "gate.yaml",
        "suite: suite.yaml\nagent: {python: 'agent:answer', timeout: 1s}\n"
        "criteria: {response_match_score: 0.5}\nbaseline: {rerun: never}\ngate: {confirm_after: 200ms}\n",
    )
    project.write("agent.py", agent())
    project.write(".gitignore", ".gate/\n*.jsonl\n*.json\n__pycache__/\n")
    project.commit()
    project.store(record="base.jsonl")
    return project


def change(project: Project, source: str) -> tuple[int, dict[str, object]]:
    project.write("agent.py", source)
    project.commit("change")
    code, result = project.result("run", "-q", "--record", "change.jsonl")
    return code, result["suites"][0]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["raise KeyError('order')", "os._exit(3)", "time.sleep(60)"])
def test_a_change_that_fails_three_cases_in_most_runs_is_regressed(project: Project, what: str) -> None:
    code, suite = change(project, agent(what, THREE, MOSTLY))
    assert (code, suite["verdict"]) == (1, "regressed")
    crashes = suite["crashes"]
    assert isinstance(crashes, dict)
    assert set(crashes["cases"]) == {"c10", "c20", "c30"}
    assert (crashes["baseline_failed"], crashes["baseline_trials"]) == (0, 15)


@pytest.mark.slow
def test_failures_that_do_not_come_again_were_not_measured(project: Project) -> None:
    eight = str(tuple(f"c{n}" for n in range(8)))
    code, suite = change(project, agent("raise ConnectionResetError('blip')", eight, "trial == 1"))
    assert (code, suite["verdict"]) == (3, "error")


@pytest.mark.slow
def test_an_outage_is_exit_3_and_no_baseline(project: Project) -> None:
    code, suite = change(project, agent("raise KeyError('model')", str(tuple(f"c{n}" for n in range(10, 40)))))
    assert (code, suite["verdict"]) == (3, "error")
    assert "30 of 40 cases that answered at the baseline fail alike" in str(suite["headline"])
    saved = project.gate("baseline", "save", "change.jsonl")
    assert saved.code == 6
    assert "could not decide: 30 of 40 cases" in saved.err
    compared = project.gate("compare", "base.jsonl", "change.jsonl")
    assert compared.code == 4, "anything would be no worse than that"
    assert "it holds an outage: 30 of 40 cases" in compared.err


@pytest.mark.slow
def test_what_an_outage_left_does_not_count_when_the_run_is_repeated(project: Project) -> None:
    """The same agent on the same commit: its answers stay, its failures are none of its own."""
    most = str(tuple(f"c{n}" for n in range(10, 40)))
    source = agent("raise KeyError(case_id)", most, f"not os.path.exists({str(project.root / 'well.json')!r})")
    assert change(project, source)[0] == 3
    project.write("well.json", "")
    code, result = project.result("run", "-q", "--record", "change.jsonl")
    suite = result["suites"][0]
    assert (code, suite["verdict"]) == (0, "pass")
    assert (
        "30 trials of an earlier session do not count: the agent, or what it depends on, was down" in suite["warnings"]
    )
    assert "continues a record of 10 trials" in suite["warnings"]
    assert project.gate("baseline", "save", "change.jsonl").code == 0


@pytest.mark.slow
def test_failures_short_of_an_outage_count_when_the_run_is_repeated(project: Project) -> None:
    """Repeating a run is no second chance."""
    source = agent("raise KeyError(case_id)", THREE, f"not os.path.exists({str(project.root / 'well.json')!r})")
    assert change(project, source)[0] == 1
    project.write("well.json", "")
    code, result = project.result("run", "-q", "--record", "change.jsonl")
    assert (code, result["suites"][0]["verdict"]) == (1, "regressed")


@pytest.mark.slow
def test_an_agent_that_fails_all_over_is_never_green_however_often_it_is_run(project: Project) -> None:
    """In four of ten runs of each case: too few for an outage, and those that had answered fail as often."""
    source = agent("raise KeyError(case_id)", "CASE", "(int(case_id[1:]) * 7 + trial * 3 + RUN) % 10 < 4")
    source = source.replace("CRASHING = CASE", "CRASHING = {f'c{n}' for n in range(40)}")
    source = source.replace("RUN", f"int(open({str(project.root / 'run.json')!r}).read())")
    project.write("run.json", "0")
    project.git("checkout", "-q", "-b", "change")
    code, suite = change(project, source)
    assert (code, suite["verdict"]) == (3, "error"), suite["headline"]
    assert "of cases that had answered before" in str(suite["headline"])
    for again, number in enumerate((3, 5)):
        project.write("run.json", str(number))
        code, result = project.result("run", "-q", "--record", "change.jsonl")
        assert (code, result["suites"][0]["verdict"]) == (3, "error")
        told = " ".join(result["suites"][0]["warnings"])
        assert "do not count: the agent, or what it depends on, was down" in told
        assert f"measurement {2 + again} of this change; " in told and "before: error" in told


@pytest.fixture
def failing_server() -> Iterator[int]:
    """Answers HTTP 500 to three cases in 60 % of their requests."""
    loop, started = asyncio.new_event_loop(), threading.Event()
    ports: list[int] = []
    servers: list[asyncio.Server] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length:")[1].split()[0])
        asked = json.loads(await reader.readexactly(length))
        falls = asked["case_id"] in ("c10", "c20", "c30") and asked["trial"] % 5 in (0, 1, 3) and broken.is_set()
        status, body = (b"500 Internal Server Error", b"trace") if falls else (b"200 OK", b"the right answer")
        writer.write(b"HTTP/1.1 %b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (status, len(body), body))
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        servers.append(server)
        ports.append(server.sockets[0].getsockname()[1])
        started.set()

    loop.run_until_complete(main())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    started.wait()
    yield ports[0]
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    servers[0].close()
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


broken = threading.Event()


@pytest.mark.slow
def test_a_server_that_answers_500_in_most_requests_is_regressed(project: Project, failing_server: int) -> None:
    broken.clear()
    config = (project.root / "gate.yaml").read_text()
    project.write("gate.yaml", config.replace("{python: 'agent:answer', timeout: 1s}", "AGENT"))
    url = f"{{http: 'http://127.0.0.1:{failing_server}/', timeout: 20s}}"
    project.write("gate.yaml", (project.root / "gate.yaml").read_text().replace("AGENT", url))
    project.commit("an http agent")
    project.store(record="http.jsonl")
    broken.set()
    code, suite = change(project, agent())
    assert (code, suite["verdict"]) == (1, "regressed")
    assert "HTTP 500: trace" in str(suite["crashes"])
