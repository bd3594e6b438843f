"""An empty or amended commit is no further chance: what was measured of the same agent and plan is continued."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gate.records import read_header
from tests.acceptance.conftest import Project, first_of

CASES = 20
AGENT = """\
def answer(message):
    wrong = int(message.split()[-1]) < BROKEN
    return {"output": "Done.", "tool_calls": [{"name": "wrong" if wrong else "look_up"}]}


BROKEN = 0
"""
CONFIG = """\
suite: suite.yaml
agent: {python: agent:answer, concurrency: 8}
criteria: {tool_trajectory_avg_score: {match_type: EXACT}}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A branch on a default branch that has a baseline."""
    project = Project(tmp_path_factory.mktemp("made"))
    cases = [{"id": f"case-{n}", "input": f"item {n}", "tools": ["look_up"]} for n in range(CASES)]
    project.write("suite.yaml", {"cases": cases})
    project.write("gate.yaml", CONFIG)
    project.write("agent.py", AGENT)
    project.write(".gitignore", ".gate/\nresult.json\n__pycache__/\n")
    project.commit()
    project.store()
    project.git("checkout", "-q", "-b", "change")
    return project


@pytest.fixture
def change(project: Project, made: Project) -> Project:
    return made.copied(project)


def run_id(project: Project) -> tuple[str, dict[str, Any]]:
    """Of the record of a run, and the result of its suite."""
    _, found = project.result("run")
    [path] = found["record_paths"]
    return read_header(Path(path)).run_id, found["suites"][0]


@pytest.mark.slow
def test_an_empty_commit_and_an_amended_one_continue_what_was_measured(change: Project) -> None:
    change.write("agent.py", AGENT.replace("BROKEN = 0", "BROKEN = 12"))
    change.commit("worse")
    first, suite = run_id(change)
    assert suite["verdict"] == "regressed"
    for arguments in (("--allow-empty", "-m", "once more"), ("--amend", "--allow-empty", "-m", "other words")):
        change.git("commit", "-q", *arguments)
        again, suite = run_id(change)
        assert (again, suite["verdict"]) == (first, "regressed")
        assert any("of an earlier commit of this change" in line for line in suite["warnings"])
        assert any("nothing new was run" in line for line in suite["warnings"])


@pytest.mark.slow
def test_another_agent_or_other_cases_are_measured_anew(change: Project) -> None:
    change.write("agent.py", AGENT + "# clearer\n")
    change.commit("clearer")
    seen = {run_id(change)[0]}
    change.write("agent.py", AGENT + "# clearer still\n")
    change.commit("an agent that differs")
    seen.add(run_id(change)[0])
    cases = [{"id": f"case-{n}", "input": f"item {n}", "tools": ["look_up"]} for n in range(CASES + 1)]
    change.write("suite.yaml", {"cases": cases})
    change.commit("a case more")
    seen.add(run_id(change)[0])
    assert len(seen) == 3
    change.write("agent.py", AGENT + "# clearer\n")
    change.git("rm", "-q", "--cached", "suite.yaml")
    change.write("suite.yaml", {"cases": cases[:CASES]})
    change.commit("both as they were at first")
    again, suite = run_id(change)
    assert again in seen and any("nothing new was run" in line for line in suite["warnings"])


def test_a_rebase_is_no_further_chance(change: Project) -> None:
    """The same agent is continued, and another one is a further measurement of the change."""
    change.write("agent.py", AGENT.replace("BROKEN = 0", "BROKEN = 12"))
    change.commit("worse")
    first, suite = run_id(change)
    assert suite["verdict"] == "regressed"
    rebase(change)
    again, suite = run_id(change)
    assert (again, suite["verdict"]) == (first, "regressed")
    change.write("agent.py", AGENT + "# fixed\n")
    change.commit("fixed")
    rebase(change)
    _, suite = run_id(change)
    assert any("measurement 2 of this change; before: regressed" in line for line in suite["warnings"])


def test_after_a_rebase_a_change_regressed_against_its_former_base(project: Project, made: Project) -> None:
    """Nothing is stored: the base's agent ran beside each measurement."""
    change = made.copied(project)
    shutil.rmtree(change.root / ".gate")
    change.write("agent.py", AGENT.replace("BROKEN = 0", "BROKEN = 12"))
    change.commit("worse")
    assert run_id(change)[1]["verdict"] == "regressed"
    change.write("agent.py", AGENT + "# fixed\n")
    change.commit("fixed")
    rebase(change)
    _, suite = run_id(change)
    assert any("measurement 2 of this change; before: regressed" in line for line in suite["warnings"])


@pytest.mark.parametrize("in_ci", ["true", ""])
def test_files_that_a_job_leaves_in_the_tree_are_no_further_chance(change: Project, in_ci: str) -> None:
    """Elsewhere, a tree that differs from its commit is work in progress."""
    change.write("gate.yaml", CONFIG + "baseline: {store: file}\n")
    change.write("agent.py", AGENT.replace("BROKEN = 0", "BROKEN = 12"))
    change.commit("worse")
    change.write("built.txt", "made by a step of the job")
    assert change.result("run", CI=in_ci)[1]["verdict"] == "regressed"
    change.write("agent.py", AGENT + "# fixed\n")
    change.git("commit", "-qm", "fixed", "agent.py")
    _, found = change.result("run", CI=in_ci)
    told = " ".join(found["suites"][0]["warnings"])
    assert ("measurement 2 of this change; before: regressed" in told) == bool(in_ci)


def rebase(project: Project) -> None:
    """Put the branch onto a default branch that has moved."""
    project.git("checkout", "-q", "main")
    project.git("commit", "-q", "--allow-empty", "-m", "the default branch moves")
    project.git("checkout", "-q", "change")
    project.git("rebase", "-q", "main")


def test_what_another_branch_measured_is_not_counted_after_its_base_moved(change: Project) -> None:
    change.write("agent.py", AGENT.replace("BROKEN = 0", "BROKEN = 12"))
    change.commit("worse")
    assert run_id(change)[1]["verdict"] == "regressed"
    rebase(change)
    change.git("checkout", "-q", "-b", "other", "main")
    change.git("branch", "-q", "-D", "change")
    change.write("agent.py", AGENT + "# another change\n")
    change.commit("another change")
    _, suite = run_id(change)
    assert not any("of this change" in line for line in suite["warnings"])


NARROW = CONFIG.replace("answer,", "answer, sources: [agent.py],")
LEAN = "from impl import answer\n"


@pytest.mark.slow
@pytest.mark.parametrize("narrowed", first_of(["by the change", "at the base"]))
def test_what_a_change_leaves_out_of_its_agent_is_not_taken_for_unchanged(change: Project, narrowed: str) -> None:
    """The file that breaks is none of `agent.sources`: by them, both heads are one agent."""
    at_base = narrowed == "at the base"
    change.git("checkout", "-q", "main")
    for name, text in {"gate.yaml": NARROW if at_base else CONFIG, "impl.py": AGENT, "agent.py": LEAN}.items():
        change.write(name, text)
    base = change.commit("in two files")
    change.store(record=".gate/other.jsonl")
    change.git("checkout", "-q", "-B", "change")
    change.write("gate.yaml", NARROW)
    change.commit("narrower")
    arguments = ("run", "--against", base, "--rules-from", base)
    code, first = change.result(*arguments)
    assert (code, first["suites"][0]["verdict"]) == (0, "pass")
    change.write("impl.py", AGENT.replace("BROKEN = 0", "BROKEN = 12"))
    change.commit("worse")
    code, again = change.result(*arguments)
    told = " ".join([again["suites"][0]["headline"], *again["suites"][0]["warnings"]])
    assert ("nothing was run" in told) == at_base, "the base's own definition of the agent is a rule"
    assert at_base or ((code, again["suites"][0]["verdict"]) == (1, "regressed") and "measurement 2 of" in told)


@pytest.mark.slow
def test_a_comment_in_the_agent_is_a_further_measurement_that_is_counted(change: Project) -> None:
    worse = AGENT.replace("BROKEN = 0", "BROKEN = 12")
    change.write("agent.py", worse)
    change.commit("worse")
    run_id(change)
    change.git("commit", "-q", "--allow-empty", "-m", "once more")
    run_id(change)
    change.write("agent.py", worse + "# please\n")
    change.commit("a comment")
    _, suite = run_id(change)
    [told] = [line for line in suite["warnings"] if "of this change;" in line]
    assert "measurement 2 of this change; before: regressed (" in told, "continued ones are one"


@pytest.mark.slow
def test_what_was_measured_on_another_branch_is_another_change(change: Project) -> None:
    told = {}
    for name in ("change", "other"):
        change.git("switch", "-q", *(["change"] if name == "change" else ["-c", name, "main"]))
        for remark in ("one", "two"):
            change.write("agent.py", f"{AGENT}# {name} {remark}\n")
            change.commit(f"{name} {remark}")
            warnings = run_id(change)[1]["warnings"]
            told[name, remark] = [line.split(";")[0] for line in warnings if "of this change;" in line]
    second = ["measurement 2 of this change"]
    assert told == {("change", "one"): [], ("change", "two"): second, ("other", "one"): [], ("other", "two"): second}
    change.git("commit", "-q", "--amend", "-m", "in other words", "--allow-empty")
    change.write("agent.py", f"{AGENT}# other three\n")
    change.git("add", "-A")
    change.git("commit", "-q", "--amend", "-m", "what was replaced is on no branch")
    assert any("measurement 3 of this change" in line for line in run_id(change)[1]["warnings"])


@pytest.mark.slow
def test_a_record_that_is_damaged_is_passed_over(change: Project) -> None:
    change.write("agent.py", AGENT + "# clearer\n")
    change.commit("clearer")
    first, _ = run_id(change)
    for path in (change.root / ".gate" / "records").rglob("*.jsonl"):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] + b"x" * 200 + data[len(data) // 2 + 200 :])
    change.git("commit", "-q", "--allow-empty", "-m", "again")
    again, suite = run_id(change)
    assert again != first and suite["verdict"] == "pass"
    [told] = [line for line in suite["warnings"] if "cannot be read" in line]
    assert told.startswith("1 record here cannot be read, and may be of an earlier measurement of this change: ")


@pytest.mark.parametrize("content", first_of([b"", b"\0\xff", b'{"gate_record": 9}\n']))
def test_a_record_that_cannot_be_read_at_all_is_said(change: Project, content: bytes) -> None:
    change.write("agent.py", AGENT + "# clearer\n")
    change.commit("clearer")
    first, suite = run_id(change)
    assert not any("cannot be read" in line for line in suite["warnings"])
    [path] = [path for path in (change.root / ".gate/records").rglob("*.jsonl") if first in path.read_text()]
    path.write_bytes(content)
    change.git("commit", "-q", "--allow-empty", "-m", "again")
    again, suite = run_id(change)
    assert again != first and any(f"this change: {path.name}" in line for line in suite["warnings"])


# --- without a fingerprint ------------------------------------------------------------------------


@pytest.fixture
def served() -> Iterator[tuple[str, set[int]]]:
    """The address of an agent that is reached over HTTP, and the items that it gets wrong."""
    broken: set[int] = set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            wrong = any(f'item {n}"' in body for n in broken)
            answer = {"output": "Done.", "tool_calls": [{"name": "wrong" if wrong else "look_up"}]}
            content = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", broken
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_without_a_fingerprint_the_report_counts_what_was_measured_before(
    change: Project, served: tuple[str, set[int]]
) -> None:
    url, broken = served
    change.git("checkout", "-q", "main")
    change.write("gate.yaml", CONFIG.replace("{python: agent:answer, concurrency: 8}", f"{{http: {{url: {url!r}}}}}"))
    change.commit("an agent elsewhere")
    change.store(record=".gate/served.jsonl")
    change.git("checkout", "-q", "-b", "served")
    told = []
    for items in (set(range(12)), set(range(12)), set()):
        broken.clear()
        broken.update(items)
        change.git("commit", "-q", "--allow-empty", "-m", "try")
        _, suite = run_id(change)
        told.append([line for line in suite["warnings"] if "measurement" in line and "of this change" in line])
    assert told[0] == []
    assert "measurement 2 of this change; before: regressed" in told[1][0]
    assert suite["verdict"] == "pass"
    assert "measurement 3 of this change; before: regressed, regressed" in told[2][0]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.4.2", "${RELEASE}"])
def test_a_version_that_is_a_text_is_doubted_whenever_it_saves_runs(
    change: Project, served: tuple[str, set[int]], version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELEASE", "1.4.2")
    agent = f"{{http: {{url: {served[0]!r}}}, version: {version!r}}}"
    change.git("checkout", "-q", "main")
    change.write("gate.yaml", CONFIG.replace("{python: agent:answer, concurrency: 8}", agent))
    change.commit("an agent elsewhere")
    first = change.result("run")[1]["suites"][0]["warnings"]
    change.git("checkout", "-q", "-b", "served")
    again = change.result("run")[1]["suites"][0]["warnings"]
    change.store(record=".gate/served.jsonl")
    change.git("commit", "-q", "--allow-empty", "-m", "try")
    same = change.result("run")[1]["suites"][0]["warnings"]
    doubted = [any("nobody has asked" in line for line in lines) for lines in (first, again, same)]
    assert doubted == ([False, True, True] if version == "1.4.2" else [False] * 3), (again, same)


# --- a baseline that is picked --------------------------------------------------------------------


@pytest.mark.slow
def test_further_runs_of_a_commit_are_saved_with_the_one_that_is_named(project: Project) -> None:
    """Run until one is perfect, and save that one: all of them count."""
    cases = [{"id": f"case-{n}", "input": f"item {n}", "tools": ["look_up"]} for n in range(CASES)]
    project.write("suite.yaml", {"cases": cases})
    project.write("gate.yaml", CONFIG)
    project.write("agent.py", AGENT)
    project.write(".gitignore", ".gate/\n__pycache__/\n")
    project.commit()
    for number in (1, 2, 3):
        assert project.gate("run", "-q", "--trials", "2", "--record", f".gate/try-{number}.jsonl").code == 0
    saved = project.gate("baseline", "save", ".gate/try-2.jsonl")
    assert "united with 2 other runs of this commit" in saved.out, saved.out + saved.err
    assert "6.0 trials per case" in project.gate("baseline", "show").out
    again = project.gate("baseline", "save", ".gate/try-3.jsonl")
    assert again.code == 0 and "united" not in again.out, "it is stored already"


@pytest.mark.slow
def test_a_run_that_is_picked_among_several_is_said_to_be_picked(change: Project, served: tuple[str, set[int]]) -> None:
    """Without a fingerprint the others may be of another agent: they are left out, and every comparison says so."""
    url, _ = served
    change.git("checkout", "-q", "main")
    change.write("gate.yaml", CONFIG.replace("{python: agent:answer, concurrency: 8}", f"{{http: {{url: {url!r}}}}}"))
    change.commit("an agent elsewhere")
    for number in (1, 2):
        assert change.gate("run", "-q", "--trials", "2", "--record", f".gate/try-{number}.jsonl").code == 0
    saved = change.gate("baseline", "save", ".gate/try-2.jsonl")
    assert "1 other run of this commit left out: try-1.jsonl" in saved.out, saved.out + saved.err
    change.git("checkout", "-q", "-b", "served")
    change.git("commit", "-q", "--allow-empty", "-m", "a change")
    _, suite = run_id(change)
    assert any("picked by hand, 1 other run of its commit left out" in line for line in suite["warnings"])
    [path] = (change.root / ".gate" / "records").rglob("*.jsonl")
    _, found = change.result("compare", str(path), ".gate/try-2.jsonl")
    [suite] = found["suites"]
    assert any("picked by hand, 1 other run of its commit beside it" in line for line in suite["warnings"])
    change.gate("baseline", "save", ".gate/try-1.jsonl")
    change.git("commit", "-q", "--allow-empty", "-m", "another")
    assert not any("picked by hand" in line for line in run_id(change)[1]["warnings"])


@pytest.mark.slow
def test_a_record_that_came_with_the_commit_is_no_measurement(change: Project) -> None:
    """Made of a good agent, it would be taken for the bad one's: the fingerprint leaves records out."""
    change.write("agent.py", AGENT.replace("BROKEN = 0", "BROKEN = 12"))
    change.commit("worse")
    _, found = change.result("run")
    [path] = map(Path, found["record_paths"])
    change.git("add", "-f", path.relative_to(change.root).as_posix())
    change.git("commit", "-q", "-m", "with a record")
    done = change.gate("run")
    assert done.code == 2
    assert "which is where the gate writes" in done.err
    assert "git rm --cached" in done.err
    change.git("rm", "-q", "--cached", path.relative_to(change.root).as_posix())
    change.git("commit", "-q", "-m", "without it")
    assert change.gate("run").code == 1
