"""Runs on the default branch leave enough trials for later changes: how many, and that they count in the verdict."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from time import sleep
from typing import Any

import pytest

from gate.baselines.base import storable
from gate.model import STORED
from gate.records import read_record
from tests.acceptance.conftest import Project, first_of
from tests.acceptance.test_crash import start
from tests.patience import CEILING

CASES = 6
SUITE = "".join(json.dumps({"id": f"case-{n}", "input": f"item {n}", "response": "Done."}) + "\n" for n in range(CASES))
PYTHON = {"agent.py": "def answer(message):\n    return 'Done.'\n"}


@pytest.fixture(autouse=True)
def in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a laptop only `gate baseline` runs more than the verdict needs."""
    monkeypatch.setenv("CI", "true")


class Served:
    """An agent on loopback: how it answers, and how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer: Callable[[int], tuple[int, str]] = lambda _number: (200, "Done.")
        self.reply: Callable[[str], tuple[int, str]] | None = None
        """How it answers what it was sent, in place of ``answer``; called by several at once."""
        self.told: dict[str, str] = {}
        """Further keys of each answer."""
        self.url = ""
        self.version = ""
        """Sent as X-Version, if there is one."""
        self.answered: str | None = None
        """Sent as X-Version with each answer, in place of ``version``; empty: none."""
        self._lock = Lock()

    def next(self, said: str) -> tuple[int, str]:
        with self._lock:
            self.asked += 1
            if self.reply is None:
                return self.answer(self.asked)
        return self.reply(said)


@contextmanager
def serving() -> Iterator[Served]:
    served = Served()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(405, "ask by POST", served.version)

        def do_POST(self) -> None:
            said = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, text = served.next(said)
            self._send(status, text, served.version if served.answered is None else served.answered)

        def _send(self, status: int, text: str, version: str) -> None:
            body = json.dumps({"output": text, **served.told}).encode()
            self.send_response(status)
            if version:
                self.send_header("X-Version", version)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as found:
        yield found


def set_up(project: Project, agent: dict[str, Any], **keys: Any) -> None:
    """A project on the default branch of a remote, with the agent that is given."""
    config = {
        "suite": "suite.jsonl",
        "name": "demo",
        "agent": agent,
        "criteria": {"response_match_score": 0.5},
        **keys,
    }
    project.write("gate.yaml", config)
    project.write("suite.jsonl", SUITE)
    project.write(".gitignore", "__pycache__/\nresult.json\n")
    for name, content in PYTHON.items():
        project.write(name, content)
    project.commit()


def http(served: Served) -> dict[str, Any]:
    return {"http": served.url, "retries": 0}


def stored(project: Project) -> list[Path]:
    return list((project.root / ".gate/baselines").glob("*/*.jsonl"))


def suite_of(found: dict[str, Any]) -> dict[str, Any]:
    suite: dict[str, Any] = found["suites"][0]
    return suite


@pytest.mark.slow
def test_the_first_run_on_the_default_branch_leaves_five_trials_a_case(project: Project, served: Served) -> None:
    set_up(project, http(served))
    code, found = project.result("run", "-q")
    suite = suite_of(found)
    assert (code, suite["verdict"], served.asked) == (0, "pass", 5 * CASES)
    assert suite["stored"] == {"trials": 5, "epochs": 4, "runs": 4 * CASES}
    assert suite["agent_runs"] == served.asked
    assert {case["trials"] for case in suite["cases"]} == {5}, "the verdict rests on all of them"
    assert project.gate("baseline", "save").code == 0
    [path] = stored(project)
    assert len(read_record(path).trials) == 5 * CASES
    shown = project.gate("baseline", "show")
    assert "5.0 trials per case" in shown.out and f"({5 * CASES} trials)" in shown.out


@pytest.mark.slow
def test_a_later_change_is_compared_with_all_of_them(project: Project, served: Served) -> None:
    set_up(project, http(served))
    project.gate("run", "-q")
    project.gate("baseline", "save")
    project.git("checkout", "-q", "-b", "change")
    project.commit("change")
    before = served.asked
    served.answer = lambda number: (200, "Done." if number % CASES else "No.")
    _, found = project.result("run", "-q")
    suite = suite_of(found)
    assert suite["baseline"]["trials_per_case"] == 5
    assert {case["baseline_trials"] for case in suite["cases"]} == {5}
    assert suite["stored"] is None, "a change leaves nothing"
    assert suite["agent_runs"] == served.asked - before


@pytest.mark.slow
def test_what_is_stored_anyway_counts_in_the_verdict_and_in_the_report_of_its_record(
    project: Project, served: Served
) -> None:
    set_up(project, http(served))
    served.answer = lambda number: (200, "Done." if number <= CASES else "No.")  # what follows is worse
    _, ran = project.result("run", "-q", "--record", ".gate/r.jsonl")
    _, told = project.result("report", ".gate/r.jsonl")
    for part in ("verdict", "headline", "criteria", "cases", "stored", "agent_runs", "warnings"):
        assert suite_of(ran)[part] == suite_of(told)[part], part
    assert suite_of(ran)["verdict"] == "below_threshold"
    assert served.asked < 5 * CASES, "what falls short is not worth more trials"


@pytest.mark.slow
def test_a_budget_ends_it_softly_and_what_was_run_is_kept(project: Project, served: Served) -> None:
    set_up(project, http(served), budget={"runs": 3 * CASES + 2})
    code, found = project.result("run", "-q")
    suite = suite_of(found)
    assert (code, suite["verdict"]) == (0, "pass")
    assert served.asked == 3 * CASES, "no part of an epoch"
    assert (suite["stored"]["trials"], suite["agent_runs"]) == (3, 3 * CASES)
    [note] = [line for line in suite["warnings"] if "later changes" in line]
    assert {case["trials"] for case in suite["cases"]} == {3}, "the verdict counts the whole epochs"
    assert f"{2 * CASES} of {4 * CASES} runs" in note and "budget.runs (20) has no room for another whole epoch" in note
    saved = project.gate("baseline", "save")
    assert saved.code == 0, saved.err
    [path] = stored(project)
    assert len(read_record(path).trials) == served.asked


@pytest.mark.slow
def test_what_is_missing_is_run_by_the_next_run_of_the_same_agent(project: Project) -> None:
    agent = {"python": "agent:answer", "sources": ["agent.py"]}
    set_up(project, agent, budget={"runs": 2 * CASES}, baseline={"trials": 5})
    _, first = project.result("run", "-q")
    project.gate("baseline", "save")
    project.write("notes.md", "nothing of the agent")
    project.commit("notes")
    _, second = project.result("run", "-q")
    project.gate("baseline", "save")
    project.commit("more notes")
    _, third = project.result("run", "-q")
    runs = [suite_of(found)["agent_runs"] for found in (first, second, third)]
    assert runs == [2 * CASES, 2 * CASES, CASES], "by then five are pooled"


@pytest.mark.slow
def test_a_run_of_the_same_commit_again_runs_nothing_more(project: Project) -> None:
    set_up(project, {"python": "agent:answer"})
    _, first = project.result("run", "-q")
    _, again = project.result("run", "-q")
    for part in ("verdict", "stored", "agent_runs", "criteria"):
        assert suite_of(first)[part] == suite_of(again)[part], part
    assert suite_of(first)["stored"]["runs"] == 4 * CASES


@pytest.mark.slow
def test_what_is_stored_of_this_commit_counts(project: Project, served: Served) -> None:
    set_up(project, http(served), baseline={"trials": 5})
    project.gate("run", "-q")
    project.gate("baseline", "save")
    before = served.asked
    _, nightly = project.result("run", "-q")
    assert served.asked - before == suite_of(nightly)["agent_runs"] == CASES
    assert suite_of(nightly)["stored"] is None


@pytest.mark.parametrize(
    ("keys", "asked"),
    first_of(
        [
            ({"baseline": {"trials": "off"}}, 1),
            ({"baseline": {"trials": False}}, 1),
            ({"baseline": {"trials": 0}}, 1),
            ({"baseline": {"trials": 3}}, 3),
            ({"trials": 2}, 2),
            ({"trials": 2, "baseline": {"trials": 4}}, 4),
            ({"baseline": {"store": "none"}}, 1),
        ]
    ),
)
def test_how_many(project: Project, served: Served, keys: dict[str, Any], asked: int) -> None:
    set_up(project, http(served), **keys)
    assert project.gate("run", "-q").code == 0
    assert served.asked == asked * CASES


def test_nothing_is_stored_of_what_fell_short(project: Project, served: Served) -> None:
    set_up(project, http(served))
    served.answer = lambda _number: (200, "No.")
    code, found = project.result("run", "-q")
    assert (code, suite_of(found)["verdict"]) == (1, "below_threshold")
    assert suite_of(found)["stored"] is None
    assert served.asked == suite_of(found)["agent_runs"]


@pytest.mark.slow
def test_an_outage_on_the_way_changes_no_verdict_and_spoils_no_baseline(project: Project, served: Served) -> None:
    set_up(project, {"http": served.url, "retries": 0, "concurrency": 1})
    served.answer = lambda number: (200, "Done.") if number <= 3 * CASES else (500, "down")
    code, found = project.result("run", "-q", "--record", ".gate/r.jsonl")
    assert (code, suite_of(found)["verdict"]) == (0, "pass")
    assert {case["trials"] for case in suite_of(found)["cases"]} == {3}
    assert any("the agent was down" in line for line in suite_of(found)["warnings"])
    kept = storable(read_record(project.root / ".gate/r.jsonl"))
    assert len(kept.trials) == 3 * CASES
    assert all(trial.answered for trial in kept.trials)


@pytest.mark.slow
def test_a_run_that_is_cut_short_goes_on_where_it_was(project: Project, served: Served) -> None:
    set_up(project, {**http(served), "version": "7", "concurrency": 1})
    reached = Event()

    def answer(number: int) -> tuple[int, str]:
        if number == 2 * CASES + 3:
            reached.set()
            sleep(0.5)
        return 200, "Done."

    served.answer = answer
    run = start(project, "-q")
    assert reached.wait(CEILING)
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=CEILING)
    assert run.returncode == 143
    asked = served.asked
    code, found = project.result("run", "-q")
    assert (code, suite_of(found)["verdict"]) == (0, "pass")
    assert served.asked - asked <= 3 * CASES, "of two epochs nothing is drawn again"
    assert suite_of(found)["stored"] == {"trials": 5, "epochs": 4, "runs": 4 * CASES}
    assert {case["trials"] for case in suite_of(found)["cases"]} == {5}


@pytest.mark.slow
def test_every_suite_has_its_verdict_before_the_budget_goes_to_later_changes(project: Project, served: Served) -> None:
    said = {"user_content": {"parts": [{"text": "item"}]}, "final_response": {"parts": [{"text": "Done."}]}}
    for name in ("one", "other"):
        cases = [{"eval_id": f"c{n}", "conversation": [said]} for n in range(CASES)]
        project.write(f"{name}/{name}.evalset.json", {"eval_set_id": name, "eval_cases": cases})
        project.write(f"{name}/test_config.json", {"criteria": {"response_match_score": 0.5}})
    config = {"suite": ["one", "other"], "agent": http(served), "budget": {"runs": 3 * CASES + 1}}
    project.write("gate.yaml", config)
    project.write(".gitignore", "__pycache__/\nresult.json\n")
    project.commit()
    code, found = project.result("run", "-q")
    assert (code, served.asked) == (0, 3 * CASES)
    assert [suite["verdict"] for suite in found["suites"]] == ["pass", "pass"]


@pytest.mark.slow
def test_uncommitted_changes_and_other_branches_leave_nothing(project: Project, served: Served) -> None:
    set_up(project, http(served))
    project.write("suite.jsonl", SUITE + json.dumps({"id": "new", "input": "x", "response": "Done."}) + "\n")
    project.gate("run", "-q")
    assert served.asked == CASES + 1
    project.git("checkout", "-q", "-b", "change")
    project.commit("change")
    project.gate("run", "-q")
    assert served.asked == 2 * (CASES + 1)


@pytest.mark.slow
def test_shards_leave_as_many(project: Project, served: Served) -> None:
    set_up(project, http(served), trials={"max": 2})
    parts = []
    for index in (1, 2):
        ran = project.gate("run", "-q", "--shard", f"{index}/2", "--record", f".gate/{index}.jsonl")
        assert ran.code == 0, ran.out + ran.err
        parts.append(f".gate/{index}.jsonl")
    assert served.asked == 5 * CASES
    code, found = project.result("merge", *parts, "-o", ".gate/whole.jsonl", "-c", "gate.yaml")
    suite = suite_of(found)
    assert (code, suite["verdict"]) == (0, "pass")
    assert suite["stored"] == {"trials": 5, "epochs": 3, "runs": 3 * CASES}
    assert {case["trials"] for case in suite["cases"]} == {5}
    saved = project.gate("baseline", "save", ".gate/whole.jsonl")
    assert saved.code == 0, saved.err


@pytest.mark.slow
def test_its_progress_says_what_it_is_for(project: Project, served: Served) -> None:
    set_up(project, http(served))
    ran = project.gate("run", "-v")
    for number in range(2, 6):
        assert f"storing trial {number} of 5 per case for later changes, {CASES} runs" in ran.err
    said = " ".join(ran.out.split())  # however wide the terminal is
    assert f"5 trials per case for later changes: 4 further epochs, {4 * CASES} runs" in said
    assert f"{5 * CASES} agent runs" in said
    assert "instead of" not in said, "nothing was saved"


@pytest.mark.slow
def test_the_record_says_which_trials_they_are(project: Project, served: Served) -> None:
    set_up(project, http(served))
    project.gate("run", "-q", "--record", ".gate/r.jsonl")
    record = read_record(project.root / ".gate/r.jsonl")
    assert sum(trial.tag == STORED for trial in record.trials) == 4 * CASES


@pytest.mark.slow
def test_a_nightly_run_adds_a_fresh_measurement_that_is_found_next_to_the_commit(
    project: Project, served: Served
) -> None:
    set_up(project, http(served))
    for _night in range(2):
        project.gate("run", "-q")
        assert project.gate("baseline", "save").code == 0
    assert len(stored(project)) == 1, "one record a commit"
    project.git("checkout", "-q", "-b", "change")
    project.commit("change")
    _, found = project.result("run", "-q")
    baseline = suite_of(found)["baseline"]
    assert (baseline["trials_per_case"], baseline["distance"]) == (15, 0), (
        "5, and 10 of the next night, until drops show as often as is wanted"
    )


@pytest.mark.slow
def test_a_history_in_which_nothing_was_ever_stored_is_said_in_the_headline(project: Project, served: Served) -> None:
    set_up(project, http(served))
    _, new = project.result("run", "-q")
    assert suite_of(new)["headline"].endswith("no baseline yet")
    for number in range(3):
        project.commit(f"merge {number}")
    _, found = project.result("run", "-q")
    headline = suite_of(found)["headline"]
    assert "nothing is compared: no baseline was ever stored, in 3 commits of the base's history" in headline
    assert suite_of(found)["baseline"]["never_stored"] == 3
    project.gate("baseline", "save")
    project.commit("another")
    _, found = project.result("run", "-q")
    assert "nothing is compared" not in suite_of(found)["headline"]


def test_on_a_laptop_only_the_baseline_command_runs_more_than_the_verdict_needs(
    project: Project, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "false")
    set_up(project, {**http(served), "version": "7"})
    assert project.gate("run", "-q").code == 0
    assert served.asked == CASES
    ran = project.gate("baseline", "-q")
    assert (ran.code, served.asked) == (0, 5 * CASES), "the first epoch counts"
    [path] = stored(project)
    assert len(read_record(path).trials) == 5 * CASES


@pytest.mark.slow
def test_a_selection_by_the_command_line_is_no_baseline_and_leaves_nothing(project: Project, served: Served) -> None:
    set_up(project, http(served))
    project.gate("run", "-q", "--case", "case-1")
    assert served.asked < 6, "one case of six, by as many trials as its threshold takes"


def test_nights_add_up_to_ten_trials_each_until_they_are_enough_for_the_stated_drop(project: Project) -> None:
    """Six cases find a drop of 20 points only with more than 15 stored trials, even if all pass."""
    set_up(project, {"python": "agent:answer", "sources": ["agent.py"]})
    found = []
    for night in range(4):
        project.gate("run", "-q", "--record", f".gate/{night}.jsonl")
        project.gate("baseline", "save", f".gate/{night}.jsonl")
        [path] = stored(project)
        found.append(len(read_record(path).trials) // CASES)
    assert found[:2] == [5, 15]
    assert 15 < found[2] <= 25
    assert found[3] == found[2] + 1, "enough: a night is its own epoch"
    project.write("junk.txt", "in no commit")
    assert f"6 cases, {found[3]} stored trials per case" in project.gate("power", "--simulations", "10").out
