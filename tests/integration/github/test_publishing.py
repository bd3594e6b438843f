"""What reaches the pull request when something goes wrong, and that what it says can be done."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gate.hosts.base import PostFailure, Publication, Stamp, key_of, mark_of, publish
from gate.hosts.github import CannotComment, PullRequestHost
from gate.stored.statement import check_files, read_statement
from tests.integration.github.fake_github import Answer, Call, FakeGitHub
from tests.integration.github.job import CONFIG, QUIET, Done, git
from tests.integration.github.scenarios import World, report
from tests.integration.github.test_github_api import HEAD, SUITE, Time, bodies, connect, post

pytestmark = pytest.mark.slow

BAD_GATEWAY = Answer(502, {"message": "bad gateway"})


@pytest.fixture
def time() -> Iterator[Time]:
    clock = Time()
    with clock.connections:
        yield clock


@pytest.fixture
def world(recorded: World) -> World:
    return recorded


# --- requests that may be sent again --------------------------------------------------------------


@pytest.mark.parametrize("fault", [BAD_GATEWAY, Answer(200, lost=True)], ids=["502", "lost"])
def test_who_we_are_is_asked_again(fake: FakeGitHub, time: Time, fault: Answer) -> None:
    fake.add_pull(1, HEAD)
    fake.fail_once(fault, "POST", "graphql")
    assert post(fake, time).problems == ()
    assert len(bodies(fake)) == 1


@pytest.mark.parametrize("fault", [BAD_GATEWAY, Answer(200, lost=True)], ids=["502", "lost"])
def test_an_update_is_sent_again(fake: FakeGitHub, time: Time, fault: Answer) -> None:
    fake.add_pull(1, HEAD)
    post(fake, time, "first")
    fake.fail_once(fault, "PATCH")
    assert post(fake, time, "second", run=11).problems == ()
    [(_, body)] = bodies(fake)
    assert body.endswith("second")


def test_a_locked_conversation_is_called_that(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    locked = Answer(403, {"message": "Unable to create comment because issue is locked."})
    fake.fail_once(locked, "POST", "/comments")
    [problem] = post(fake, time).problems
    assert isinstance(problem, CannotComment)
    assert "the conversation is locked" in str(problem)
    assert "permissions" not in str(problem)


# --- two jobs at once -----------------------------------------------------------------------------


def beaten_by(fake: FakeGitHub, rival: dict[str, Any], then: Answer | None = None) -> None:
    """Another job's comment is there between our search and our own comment."""

    def is_ours(call: Call) -> bool:
        if call.method != "POST" or not call.path.endswith("/comments"):
            return False
        if rival:
            fake.add_comment(1, rival.pop("login"), rival.pop("body"))
        return then is not None

    fake.faults.append((is_ours, then or Answer(500)))


@pytest.mark.parametrize(("rival_run", "said"), [(9, "ours"), (11, "theirs")])
@pytest.mark.parametrize("lost", [False, True])
def test_of_two_comments_at_once_one_stays_and_says_what_the_newer_run_found(
    fake: FakeGitHub, time: Time, rival_run: int, said: str, lost: bool
) -> None:
    fake.add_pull(1, HEAD)
    post(fake, time, "theirs", run=rival_run)
    [theirs] = fake.comments.pop(1)
    answer = Answer(201, lost=True) if lost else None
    beaten_by(fake, {"login": theirs["user"]["login"], "body": theirs["body"]}, answer)
    done = post(fake, time, "ours", run=10)
    assert done.problems == ()
    [(_, body)] = bodies(fake)
    assert body.endswith(said)


def test_the_faster_of_two_keeps_its_comment(fake: FakeGitHub, time: Time) -> None:
    """It finds the slower one's beside its own, which is for the slower one to take away."""
    fake.add_pull(1, HEAD)
    post(fake, time, "slower", run=11)
    [slower] = fake.comments.pop(1)

    def second_listing(call: Call) -> bool:
        listing = call.method == "GET" and call.path.endswith("/comments")
        if listing and len(fake.comments.get(1, ())) == 1:
            fake.add_comment(1, slower["user"]["login"], slower["body"])
        return False

    fake.faults.append((second_listing, BAD_GATEWAY))
    assert post(fake, time, "faster", run=10, suite=SUITE).problems == ()
    assert [body.rpartition("\n")[2] for _, body in bodies(fake)] == ["faster", "slower"]


# --- a run without a result -----------------------------------------------------------------------


def push_again(world: World, behaviour: str, run: str, **changes: Any) -> Done:
    """A further commit on pull request 1, and its job."""
    work, files = world.repository.work, changes.pop("files", {})
    git(work, "checkout", "-q", "change-1")
    head = world.repository.commit(behaviour, branch="change-1", **files)
    git(work, "checkout", "-q", "--detach", "origin/main")
    git(work, "merge", "-q", "--no-ff", "-m", "merge", head)
    merge = git(work, "rev-parse", "HEAD")
    git(work, "push", "-q", "-f", "origin", "HEAD:refs/pull/1/merge", f"{head}:refs/pull/1/head")
    git(work, "checkout", "-q", "main")
    world.fake.pulls[1]["head"]["sha"] = head
    payload = {"action": "synchronize", "pull_request": world.fake.pulls[1]}
    return world.step(
        "pull_request", payload, "refs/pull/1/merge", merge, environment={"GITHUB_RUN_ID": run}, **changes
    )


def head_of(world: World) -> str:
    head: str = world.fake.pulls[1]["head"]["sha"]
    return head[:7]


def test_a_green_comment_does_not_outlive_the_commit_it_is_of(world: World) -> None:
    world.pull_request("good")
    passed = head_of(world)
    down = push_again(world, "down", "200")
    assert down.code == 3, down.log
    [comment] = world.comments()
    assert comment.splitlines()[2] == f"### 💥 Could not decide `{head_of(world)}`"
    assert "https://github.example/octo/agents/actions/runs/200" in comment
    assert f"The verdict below is from an earlier commit, <code>{passed}</code>" in comment
    assert comment.index("### ✅") > comment.index("<details>")
    broken = push_again(world, "good", "300", files={"gate__yaml": CONFIG + "sweet: 1\n"})
    assert broken.code == 2, broken.log
    [comment] = world.comments()
    assert comment.splitlines()[2] == f"### 💥 Could not decide `{head_of(world)}`"
    assert "sweet" in comment
    assert comment.count("Could not decide") == 1, "one failure does not pile up on the other"
    assert comment.count("<summary>The verdict below") == 1
    assert comment.count("### ✅") == 1
    mended = push_again(world, "good", "400", files={"gate__yaml": CONFIG})
    assert mended.code == 0, mended.log
    [comment] = world.comments()
    assert comment.splitlines()[1].startswith("### ✅ ") and f"`{head_of(world)}`" in comment
    assert "Could not decide" not in comment


def test_a_first_run_without_a_result_says_so_and_the_first_result_takes_its_place(world: World) -> None:
    assert world.pull_request("good", files={"gate__yaml": CONFIG + "sweet: 1\n"}).code == 2
    [comment] = world.comments()
    assert f"### 💥 Could not decide `{head_of(world)}`" in comment
    assert "earlier" not in comment
    assert push_again(world, "good", "200", files={"gate__yaml": CONFIG}).code == 0
    [comment] = world.comments()
    assert comment.splitlines()[1].startswith("### ✅ ")


def test_a_fork_that_could_not_be_measured_says_nothing_itself(world: World) -> None:
    done = world.pull_request("good", fork=True, files={"gate__yaml": CONFIG + "sweet: 1\n"})
    assert done.code == 2
    assert world.comments() == []
    assert not [call for call in world.fake.calls if call.method == "POST" and call.path.endswith("/comments")]
    assert done.annotations("warning") == []


def test_a_part_that_could_not_measure_leaves_it_to_the_job_that_joins(world: World) -> None:
    files = {"gate__yaml": CONFIG + "sweet: 1\n"}
    assert world.pull_request("good", files=files, inputs={"shard": "1/2"}).code == 2
    assert world.comments() == []


def fail(fake: FakeGitHub, time: Time, *, run: int = 20, head: str = HEAD, **parts: Any) -> Publication:
    host = PullRequestHost(connect(fake, time), 1, Stamp(run, 1, head))
    return publish([PostFailure("## 💥 not measured", **parts)], host)


def test_every_comment_of_ours_is_marked_and_no_one_elses(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    for suite in ("a", "b"):
        post(fake, time, f"**pass** {suite}", suite=suite)
    fake.add_comment(1, "mallory", bodies(fake)[0][1])
    assert fail(fake, time).problems == ()
    marked = [(login, body.splitlines()[2].startswith("## 💥")) for login, body in bodies(fake) if body.count("\n") > 1]
    assert [who for who, said in marked if said] == ["github-actions[bot]"] * 2
    assert len(bodies(fake)) == 3


def test_only_the_comments_of_the_suites_that_the_run_is_about(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    for suite in ("a", "b"):
        post(fake, time, f"**pass** {suite}", suite=suite)
    fail(fake, time, suites=("b",))
    assert ["not measured" in body for _, body in bodies(fake)] == [False, True]


def test_what_another_job_of_the_same_run_said_stays(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    post(fake, time, "**pass**", run=20)
    fail(fake, time, run=20)
    assert "not measured" not in bodies(fake)[0][1]
    fail(fake, time, run=19)
    assert "not measured" not in bodies(fake)[0][1]


def test_a_verdict_may_still_be_written_over_the_failure_of_another_job(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    post(fake, time, "old", run=10)
    fail(fake, time, run=20)
    assert mark_of(bodies(fake)[0][1]) == (key_of(SUITE), Stamp(10, 1, HEAD))
    assert post(fake, time, "new", run=20).notes == ()
    assert [body.partition("\n")[2] for _, body in bodies(fake)] == ["new"]


def test_a_failure_says_nothing_of_a_head_that_is_gone(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, "f" * 40)
    assert "moved on" in fail(fake, time).notes[0]
    assert bodies(fake) == []


def test_a_long_comment_below_a_failure_keeps_to_the_limit(fake: FakeGitHub, time: Time) -> None:
    fake.add_pull(1, HEAD)
    post(fake, time, "## heading\n" + "x" * 70_000)
    assert fail(fake, time).problems == ()
    [(_, body)] = bodies(fake)
    assert "## heading" in body
    assert len(body) < 1_000


# --- a report that comes too late -----------------------------------------------------------------


@pytest.mark.parametrize("conclusion", ["cancelled", "action_required"])
def test_a_run_that_was_not_to_measure_is_no_failure(world: World, conclusion: str) -> None:
    """Several labels at once cancel each other's runs, and a first contribution waits for a maintainer."""
    world.pull_request("good", fork=True)
    done = report(world, b"", conclusion=conclusion)
    assert done.code == 0, done.log
    assert "nothing to report of run 100" in done.summary
    assert world.comments() == []


@pytest.mark.parametrize("state", ["moved", "closed"])
def test_a_superseded_report_is_no_failure(world: World, state: str) -> None:
    world.pull_request("bad", fork=True)
    measured, pull = world.last, world.fake.pulls[1]
    later = {"state": "closed"} if state == "closed" else {"head": {**pull["head"], "sha": "e" * 40}}
    done = report(world, change=lambda: pull.update(later))
    assert measured is not world.last
    assert done.code == 0, done.log
    assert "nothing to report" in done.log
    assert "nothing to report" in done.summary
    assert done.annotations() == []
    assert (done.outputs["verdict"], done.outputs["exit_code"]) == ("", "0")
    assert world.comments() == []


# --- the command that reproduces it ---------------------------------------------------------------


def commands(comment: str) -> list[str]:
    found = re.search(r"```sh\n(.*?)\n```", comment, re.DOTALL)
    assert found is not None
    return found[1].splitlines()


@pytest.mark.parametrize(("behaviour", "code"), [("bad", 1), ("good", 0)])
def test_the_command_in_the_comment_gives_the_same_verdict(world: World, behaviour: str, code: int) -> None:
    """With a configuration that does not say where baselines are: then the job keeps them in git."""
    plain = CONFIG.replace("baseline: {store: git}\n", "")
    world.repository.files["gate.yaml"] = plain
    world.push("good", environment={"GITHUB_RUN_ID": "90"})
    base = git(world.repository.remote, "rev-parse", "main")
    assert world.pull_request(behaviour).code == code
    fetch, run = commands(world.comments()[0])
    assert fetch == f"gh pr checkout 1 && git fetch origin {base}"
    assert run == f"gate run --against {base} --store git"
    clone = world.folder / "reviewer"
    git(world.folder, "clone", "-q", world.repository.remote.as_uri(), str(clone))
    git(clone, "checkout", "-q", "change-1")  # what `gh pr checkout` does
    subprocess.run(fetch.partition(" && ")[2], cwd=clone, env=os.environ | QUIET, shell=True, check=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        run, cwd=clone, env=os.environ | QUIET | {"PATH": path}, shell=True, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert ("regressed" in done.stdout) is (code == 1)


def test_a_push_is_reproduced_from_its_commit(world: World) -> None:
    before = git(world.repository.remote, "rev-parse", "main")
    done = world.push("good", before=before)
    after = git(world.repository.remote, "rev-parse", "main")
    fetch, run = commands(done.summary)
    assert fetch == f"git fetch origin {after} {before} && git checkout {after}"
    assert run == f"gate run --against {before}"


# --- from a configuration -------------------------------------------------------------------------


def job(fake: FakeGitHub, folder: Path, **changes: str) -> dict[str, str]:
    """What a job of GitHub Actions on pull request 1 sees, without the action."""
    repository = {"full_name": fake.repository}
    pull = {
        "number": 1,
        "head": {"sha": HEAD, "repo": repository},
        "base": {"sha": "b" * 40, "ref": "main", "repo": repository},
    }
    event = {"action": "synchronize", "pull_request": pull, "repository": {**repository, "default_branch": "main"}}
    (folder / "event.json").write_text(json.dumps(event))
    return {
        "GITHUB_TOKEN": "good",
        "GITHUB_API_URL": fake.url,
        "GITHUB_GRAPHQL_URL": fake.graphql_url,
        "GITHUB_REPOSITORY": fake.repository,
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_RUN_ID": "10",
        "GITHUB_RUN_ATTEMPT": "1",
        **changes,
    }


def published(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    (folder / "gate.yaml").write_text(
        "suite: cases.yaml\nagent: {command: [echo, hello]}\ncriteria: {contains: {values: [hello]}}\npublish: github\n"
    )
    (folder / "cases.yaml").write_text("cases: [{id: a, input: hi}]")
    command = [sys.executable, "-m", "gate", "run", "-q"]
    return subprocess.run(
        command,
        cwd=folder,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_gate_run_comments_where_the_configuration_says_github(fake: FakeGitHub, tmp_path: Path) -> None:
    fake.add_pull(1, HEAD)
    done = published(tmp_path, job(fake, tmp_path))
    assert done.returncode == 0, done.stderr
    [(_, body)] = bodies(fake)
    assert "cases.yaml" in body
    assert "http" in done.stderr


@pytest.mark.parametrize("missing", ["GITHUB_TOKEN", "GITHUB_EVENT_PATH", "GITHUB_EVENT_NAME"])
def test_outside_of_a_pull_requests_job_nothing_is_published(fake: FakeGitHub, tmp_path: Path, missing: str) -> None:
    fake.add_pull(1, HEAD)
    done = published(tmp_path, job(fake, tmp_path, **{missing: ""}))
    assert done.returncode == 0, done.stderr
    assert "no comment: this job is not about a pull request" in done.stderr
    assert bodies(fake) == []


def test_what_was_found_is_stated_beside_the_records(world: World) -> None:
    """Of the very commit that was measured, by the rules of the base, over the records that the artifact holds."""
    base = git(world.repository.work, "rev-parse", "origin/main")
    done = world.pull_request("good")
    assert done.code == 0, done.log
    folder = world.last.workspace / "gate-results"
    statement = read_statement((folder / "statement.json").read_bytes(), "")
    check_files(statement, [*folder.glob("*.jsonl")], git(world.last.workspace, "rev-parse", "HEAD"))
    assert statement.predicate.result == {"pass": "PASSED", "inconclusive": "WARNED"}[done.outputs["verdict"]]
    assert [dict(one.digest) for one in statement.predicate.configuration if one.name == "rules"] == [
        {"gitCommit": base}
    ]


# --- remarks --------------------------------------------------------------------------------------


def test_what_was_not_published_is_among_the_ten_warnings(world: World) -> None:
    for _ in range(4):  # as often as it is tried
        world.fake.fail_once(BAD_GATEWAY, "POST", "graphql")
    done = world.pull_request("bad")
    warnings = [where.get("title") for _, where, _ in done.annotations("warning")]
    assert len(warnings) == 10, done.log
    assert "Agent Gate: not published" in warnings and warnings[-1] == "and more"
