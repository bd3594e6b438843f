"""Notes on a merge request, against a stateful GitLab on loopback made after its API documentation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gate.hosts.base import HostOptions, PostComment, Publication, WriteSummary, publish
from gate.hosts.gitlab import MergeRequestHost
from gate.security.escape import markdown_fence
from tests import warm

HEAD = "a" * 40
JOB_USER, BOT = 5, 77


@dataclass
class FakeGitLab:
    """One merge request. The job's token may read; notes want the project's token unless ``job_may_write``."""

    job_may_write: bool = False
    sha: str = HEAD
    notes: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def add(self, author: int, body: str, system: bool = False) -> dict[str, Any]:
        note = {"id": 100 + len(self.notes), "author": {"id": author}, "body": body, "system": system}
        self.notes.append(note)
        return note

    def answer(
        self, method: str, path: str, query: dict[str, list[str]], body: Any, headers: Any
    ) -> tuple[int, Any, str]:
        user = {"project": BOT}.get(headers.get("PRIVATE-TOKEN"), JOB_USER if headers.get("JOB-TOKEN") == "job" else 0)
        if not user:
            return 401, {"message": "401 Unauthorized"}, ""
        at = "/api/v4/projects/9/merge_requests/3"
        if method == "GET" and path == ("/api/v4/user" if user == BOT else "/api/v4/job"):
            return 200, {"id": user} if user == BOT else {"id": 1, "user": {"id": user}}, ""
        if (method, path) == ("GET", at):
            return 200, {"sha": self.sha, "web_url": "https://gitlab.example/o/p/-/merge_requests/3"}, ""
        if (method, path) == ("GET", f"{at}/notes"):
            size, page = min(int(query["per_page"][0]), 100), int(query.get("page", ["1"])[0])
            more = page * size < len(self.notes)
            link = f'<{self.url}{at}/notes?per_page={size}&page={page + 1}>; rel="next"' if more else ""
            return 200, self.notes[(page - 1) * size : page * size], link
        if method not in ("POST", "PUT") or not path.startswith(f"{at}/notes"):
            return 404, {"message": "404 Not found"}, ""
        if user == JOB_USER and not self.job_may_write:
            return 403, {"message": "403 Forbidden"}, ""
        if method == "POST":
            return 201, self.add(user, body["body"]), ""
        [note] = [n for n in self.notes if path.endswith(f"/{n['id']}")]
        assert note["author"]["id"] == user, "someone else's note was edited"
        note["body"] = body["body"]
        return 200, note, ""


@pytest.fixture
def gitlab() -> Iterator[FakeGitLab]:
    fake = FakeGitLab()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = urlsplit(self.path)
            status, body, link = fake.answer(
                self.command, parts.path, parse_qs(parts.query), json.loads(raw or b"null"), self.headers
            )
            content = json.dumps(body).encode()
            self.send_response(status)
            if link:
                self.send_header("Link", link)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = _serve  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        fake.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield fake
        server.shutdown()


def environment(fake: FakeGitLab, **changes: str) -> dict[str, str]:
    return {
        "CI_API_V4_URL": f"{fake.url}/api/v4",
        "CI_PROJECT_ID": "9",
        "CI_MERGE_REQUEST_IID": "3",
        "CI_PIPELINE_ID": "50",
        "CI_JOB_ID": "500",
        "CI_JOB_TOKEN": "job",
        "CI_COMMIT_SHA": HEAD,
        "GATE_GITLAB_TOKEN": "project",
    } | changes


def post(fake: FakeGitLab, body: str, suite: str = "evals", **changes: str) -> Publication:
    host = MergeRequestHost.open(HostOptions(), environment(fake, **changes))
    assert host is not None
    try:
        return publish([WriteSummary("x"), PostComment(suite, body)], host)
    finally:
        host.close()


def test_a_note_is_made_and_then_updated_in_place(gitlab: FakeGitLab) -> None:
    first = post(gitlab, "one")
    second = post(gitlab, "two", CI_PIPELINE_ID="51")
    assert first.problems == second.problems == ()
    assert first.urls == second.urls == ("https://gitlab.example/o/p/-/merge_requests/3#note_100",)
    assert [note["body"].partition("\n")[2] for note in gitlab.notes] == ["two"]


@pytest.mark.parametrize(
    "written",
    [
        "/merge",
        "a\n/approve\nb",
        "> /close",
        "  /label ~bug",
        "\t/assign @eve",
        "/MERGE",
        markdown_fence("```\n/merge\n```\nx"),
        "````\n/merge\n````",
    ],
)
def test_nothing_in_a_note_is_a_command_to_gitlab(gitlab: FakeGitLab, written: str) -> None:
    """An agent's log with backticks stands in a fence of four, which GitLab does not take for code."""
    assert post(gitlab, written).problems == ()
    (note,) = gitlab.notes
    assert not re.search(r"(?m)^[\s>]*/[a-z]", note["body"], re.IGNORECASE)
    shown = note["body"].partition("\n")[2].replace("\u200b", "")
    assert shown == written, "and all of it is still shown"


def test_a_path_within_a_line_and_a_comment_stay_as_they_are(gitlab: FakeGitLab) -> None:
    text = "see /merge and a/b\n// not one\n/ 2"
    post(gitlab, text)
    assert gitlab.notes[0]["body"].endswith(text)


@pytest.mark.parametrize("odd", ["", "x", "²", "9" * 400, "-1"])
def test_odd_numbers_of_pipelines_are_no_traceback(gitlab: FakeGitLab, odd: str) -> None:
    assert post(gitlab, "a", CI_PIPELINE_ID=odd, CI_JOB_ID=odd).problems == ()
    assert MergeRequestHost.open(HostOptions(), environment(gitlab, CI_MERGE_REQUEST_IID=odd)) is None


def test_our_note_is_found_on_the_third_page_and_no_one_elses(gitlab: FakeGitLab) -> None:
    post(gitlab, "ours")
    marker = gitlab.notes[0]["body"]
    gitlab.notes.clear()
    gitlab.add(JOB_USER, marker)
    gitlab.add(BOT, marker, system=True)
    for _ in range(220):
        gitlab.add(JOB_USER, "chat")
    post(gitlab, "ours")
    post(gitlab, "ours again", CI_PIPELINE_ID="51")
    assert [n["body"].partition("\n")[2] for n in gitlab.notes if "agent-gate" in n["body"]] == [
        "ours",
        "ours",
        "ours again",
    ]


def test_a_newer_pipeline_is_not_overwritten(gitlab: FakeGitLab) -> None:
    post(gitlab, "newer", CI_PIPELINE_ID="51")
    assert "newer pipeline" in post(gitlab, "older").notes[0]
    assert gitlab.notes[0]["body"].endswith("newer")


def test_nothing_is_said_of_a_head_that_is_gone(gitlab: FakeGitLab) -> None:
    gitlab.sha = "b" * 40
    assert "moved on" in post(gitlab, "x").notes[0]
    assert gitlab.notes == []


def test_a_merged_results_pipeline_speaks_of_the_source_branch(gitlab: FakeGitLab) -> None:
    done = post(gitlab, "x", CI_COMMIT_SHA="c" * 40, CI_MERGE_REQUEST_SOURCE_BRANCH_SHA=HEAD)
    assert (done.notes, len(gitlab.notes)) == ((), 1)


def test_the_jobs_own_token_is_used_where_it_may_write(gitlab: FakeGitLab) -> None:
    gitlab.job_may_write = True
    assert post(gitlab, "x", GATE_GITLAB_TOKEN="").problems == ()
    assert gitlab.notes[0]["author"]["id"] == JOB_USER


def test_a_token_that_may_not_write_is_told_the_line_to_add(gitlab: FakeGitLab) -> None:
    [problem] = post(gitlab, "x", GATE_GITLAB_TOKEN="").problems
    assert "GATE_GITLAB_TOKEN" in problem.hint


@pytest.mark.parametrize("missing", ["CI_API_V4_URL", "CI_PROJECT_ID", "CI_MERGE_REQUEST_IID"])
def test_outside_a_merge_request_there_is_none(gitlab: FakeGitLab, missing: str) -> None:
    assert MergeRequestHost.open(HostOptions(), {**environment(gitlab), missing: ""}) is None


CONFIG = """\
name: support
suite: suite.yaml
agent: {command: "sh agent.sh"}
criteria: {response_match_score: 0.5}
baseline: {store: none}
trials: 1
"""


def run_gate(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    (folder / "gate.yaml").write_text(CONFIG)
    (folder / "agent.sh").write_text("cat > /dev/null; echo hello\n")
    (folder / "suite.yaml").write_text("cases:\n  - {id: a, input: hi, response: hello}\n")
    places = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return warm.run(["-m", "gate", "run", "--comment", "--quiet"], cwd=folder, environment=places | environment)


@pytest.mark.slow
def test_the_command_writes_the_note_of_its_pipeline(gitlab: FakeGitLab, tmp_path: Path) -> None:
    done = run_gate(tmp_path, environment(gitlab))
    assert done.returncode == 0, done.stderr
    assert "#note_100" in done.stderr
    [note] = gitlab.notes
    assert "support" in note["body"]
    again = run_gate(tmp_path, environment(gitlab, CI_PIPELINE_ID="51"))
    assert (again.returncode, len(gitlab.notes)) == (0, 1), again.stderr


@pytest.mark.slow
def test_the_command_says_what_the_token_lacks_and_keeps_its_verdict(gitlab: FakeGitLab, tmp_path: Path) -> None:
    done = run_gate(tmp_path, environment(gitlab, GATE_GITLAB_TOKEN=""))
    assert done.returncode == 0, done.stderr
    assert "GATE_GITLAB_TOKEN" in done.stderr


@pytest.mark.slow
def test_the_command_outside_a_pipeline_says_that_there_is_no_merge_request(tmp_path: Path) -> None:
    done = run_gate(tmp_path, {})
    assert done.returncode == 0, done.stderr
    assert "not a GitLab merge request" in done.stderr
