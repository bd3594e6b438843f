"""What one job measured counts in a later one of the same code: after a merge, in the queue, on a second attempt."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.action.reuse import ASKED
from gate.records import read_header, read_record, write_record
from tests.integration.github.fake_github import WORKFLOW, Answer, FakeGitHub
from tests.integration.github.job import AGENT, Done, as_process, git
from tests.integration.github.scenarios import World

pytestmark = pytest.mark.slow

CASES = 24


@pytest.fixture(scope="module")
def measured_change(tmp_path_factory: pytest.TempPathFactory, with_baseline: Path) -> World:
    """A sound change on a pull request that was measured: what `world` is a copy of."""
    with FakeGitHub() as github:
        world = World(tmp_path_factory.mktemp("change"), github, as_process, with_baseline)
        done = world.pull_request("good", 1, files={"agent__py": AGENT + "\n# clearer now\n"})
    assert done.code == 0, done.log
    assert github.violations == []
    return world


@pytest.fixture
def world(tmp_path: Path, fake: FakeGitHub, measured_change: World) -> World:
    """A sound change on a pull request that was measured."""
    fake.take_over(measured_change.fake)
    made = World(tmp_path, fake, as_process, measured_change.folder / "repository", count=measured_change.count)
    root = measured_change.last.root
    shutil.copytree(root, tmp_path / root.name, symlinks=True)
    made.last = dataclasses.replace(measured_change.last, root=tmp_path / root.name)
    return made


def head_of(world: World) -> str:
    head: str = world.fake.pulls[1]["head"]["sha"]
    return head


def run_id(world: World) -> str:
    """Of the record that the last step left: a run that takes up a record continues it."""
    [path] = (world.last.workspace / "gate-results").glob("*.jsonl")
    return read_header(path).run_id


def baselines(world: World) -> int:
    return int(git(world.repository.remote, "rev-list", "--count", "gate-baselines"))


def test_a_merge_costs_no_second_run(world: World) -> None:
    world.upload(100, head_of(world), "pull_request")
    measured = run_id(world)
    done = world.merge()
    assert done.code == 0, done.log
    assert "of pull request 1 (run 100)" in done.summary
    assert run_id(world) == measured
    assert baselines(world) == 2, "it is the baseline of the merged commit"
    merged = git(world.repository.remote, "rev-parse", "main")
    later = world.pull_request("good", 2)
    assert (later.code, later.outputs["baseline_sha"], later.outputs["baseline_distance"]) == (0, merged, "0")


def test_what_the_merge_queue_measured_is_of_the_very_commit(world: World) -> None:
    queued, group = world.queue("good", 2, environment={"GITHUB_RUN_ID": "200"})
    assert queued.code == 0
    world.upload(200, group, "merge_group")
    done = world.leave_queue(group, environment={"GITHUB_RUN_ID": "300"})
    assert done.code == 0, done.log
    assert "of the merge queue (run 200); nothing new was run" in done.summary


def afresh(world: World, done: Done, measured: str) -> None:
    assert done.code == 0, done.log
    assert "nothing new was run" not in done.summary
    assert run_id(world) != measured
    assert baselines(world) == 2, "the merged commit has its own measurement"


def test_another_agent_after_the_merge_is_measured(world: World) -> None:
    world.upload(100, head_of(world), "pull_request")
    measured = run_id(world)
    afresh(world, world.merge(files={"agent__py": AGENT.replace("Looks an order up", "Finds an order")}), measured)


def test_a_measurement_by_another_file_is_not_taken_over(world: World) -> None:
    """A workflow that the change brings, with a job that leaves what it likes under the name of ours."""
    world.upload(100, head_of(world), "pull_request", path=".github/workflows/mine.yml")
    measured = run_id(world)
    afresh(world, world.merge(), measured)


def test_a_forks_measurement_is_not_taken_over(world: World) -> None:
    world.upload(100, head_of(world), "pull_request", repository="mallory/agents")
    measured = run_id(world)
    afresh(world, world.merge(), measured)


def test_a_measurement_by_another_workflow_is_not_taken_over(world: World) -> None:
    """The file that measured is not the one that was merged: nobody reviewed what it did."""
    world.upload(100, head_of(world), "pull_request")
    measured = run_id(world)
    afresh(world, world.merge(files={WORKFLOW.replace(".yml", "__yml"): "on: [push]\n"}), measured)


@pytest.mark.parametrize("content", [b"not an archive", b"PK\x05\x06" + b"\0" * 18])
def test_an_artifact_that_is_no_archive_is_not_taken_over(world: World, content: bytes) -> None:
    measured = run_id(world)
    world.fake.add_run(100, head_of(world), "pull_request")
    world.fake.add_artifact(100, "gate-results", content, workflow_run={"head_sha": head_of(world)})
    done = world.merge()
    afresh(world, done, measured)
    assert "is not reused" in done.log


def test_a_measurement_for_a_pull_request_onto_another_branch_is_not_taken_over(world: World) -> None:
    """The same commit, gated by a workflow of a branch that nobody reviewed, whose job uploaded what it liked."""
    measured, step, pull = run_id(world), world.last, world.fake.pulls[1]
    world.fake.add_pull(2, head_of(world), branch=pull["head"]["ref"], onto="evil", state="closed")
    world.upload(150, head_of(world), "pull_request")
    payload = {"action": "labeled", "label": {"name": "bug"}, "sender": {"login": "wendy"}, "pull_request": pull}
    done = world.step("pull_request", payload, step.ref, step.sha, environment={"GITHUB_RUN_ID": "200"})
    assert done.code == 0, done.log
    assert "nothing new was run" not in done.summary
    assert run_id(world) != measured
    for told in (done.summary, *world.comments()):
        assert "not all earlier measurements of this change could be looked up" in told
    assert "this branch has, or had, a pull request onto another base" in done.log
    afresh(world, world.merge(), measured)


@pytest.mark.parametrize("commit", ["../../../../outside", "a\0b"])
def test_a_record_does_not_choose_where_it_is_laid(world: World, commit: str) -> None:
    [path] = (world.last.workspace / "gate-results").glob("*.jsonl")
    record = read_record(path)
    write_record(path, replace(record, header=replace(record.header, commit=commit)))
    world.upload(100, head_of(world), "pull_request", conclusion="failure")
    done = again(world, 2)
    assert done.code == 0, done.log
    assert "nothing new was run" not in done.summary
    assert "attempt 2 runs all trials" in done.summary
    assert not list(world.folder.rglob("*outside*"))


def test_a_token_that_may_not_look_measures_afresh_and_says_so(world: World) -> None:
    world.upload(100, head_of(world), "pull_request")
    measured = run_id(world)
    world.fake.fail_once(Answer(403, {"message": "Resource not accessible by integration"}), path="actions/runs")
    done = world.merge()
    afresh(world, done, measured)
    assert "actions: read" in done.log


def again(world: World, attempt: int, **more: str) -> Done:
    """The last pull request's job on a fresh machine, once more."""
    step, pull = world.last, world.fake.pulls[1]
    payload = {"action": "synchronize", "pull_request": pull}
    environment = {"GITHUB_RUN_ATTEMPT": str(attempt), **more}
    return world.step("pull_request", payload, step.ref, step.sha, environment=environment)


def test_a_second_attempt_continues_the_first(world: World) -> None:
    world.upload(100, head_of(world), "pull_request", conclusion="failure")
    measured = run_id(world)
    done = again(world, 2)
    assert done.code == 0, done.log
    assert "of attempt 1; nothing new was run" in done.summary
    assert run_id(world) == measured


@pytest.mark.parametrize("fork", [False, True])
def test_a_second_run_on_the_same_commit_continues_the_first(world: World, fork: bool) -> None:
    """Setting a label or opening the pull request again starts a run; it is no fresh chance."""
    repository = "mallory/agents" if fork else world.fake.repository
    if fork:
        world.fake.pulls[1]["head"]["repo"]["full_name"] = repository
    world.upload(100, head_of(world), "pull_request", conclusion="failure", repository=repository)
    measured = run_id(world)
    done = again(world, 1, GITHUB_RUN_ID="200")
    assert done.code == 0, done.log
    assert "of run 100; nothing new was run" in done.summary
    assert run_id(world) == measured


def test_runs_that_left_nothing_hide_no_measurement(world: World) -> None:
    """Labels set at once, whose runs were cancelled at once."""
    world.upload(100, head_of(world), "pull_request", conclusion="failure")
    for number in range(9):
        world.fake.add_run(101 + number, head_of(world), "pull_request", conclusion="cancelled")
    measured = run_id(world)
    done = again(world, 1, GITHUB_RUN_ID="200")
    assert done.code == 0, done.log
    assert "of run 100; nothing new was run" in done.summary
    assert run_id(world) == measured


def test_a_measurement_below_artifacts_without_a_record_is_found(world: World) -> None:
    world.upload(100, head_of(world), "pull_request", conclusion="failure")
    for number in range(9):
        world.upload(101 + number, head_of(world), "pull_request", b"nothing", conclusion="failure")
    measured = run_id(world)
    done = again(world, 1, GITHUB_RUN_ID="200")
    assert "of run 100; nothing new was run" in done.summary, done.log
    assert run_id(world) == measured


def test_a_schedule_measures_again(world: World) -> None:
    """It asks whether the model drifts, so what was measured of this commit before is no answer."""
    world.upload(100, head_of(world), "pull_request")
    measured = run_id(world)
    assert world.merge().code == 0
    sha = git(world.repository.remote, "rev-parse", "main")
    done = world.step("schedule", {"schedule": "0 3 * * *"}, "refs/heads/main", sha)
    assert done.code == 0, done.log
    assert "nothing new was run" not in done.summary
    assert run_id(world) != measured


def test_an_attempt_that_came_to_no_verdict_is_continued(world: World) -> None:
    """The agent goes down after a few cases; the second attempt runs the others alone."""
    well = world.folder / "well"
    agent = AGENT.replace('BEHAVIOUR == "down"', f"number > 5 and not Path({str(well)!r}).exists()")
    config = world.repository.files["gate.yaml"].replace("concurrency: 4", "concurrency: 1, retries: 0")
    first = world.pull_request("good", 2, files={"agent__py": agent, "gate__yaml": config})
    assert (first.code, first.outputs["verdict"]) == (3, "error"), first.log
    measured = run_id(world)
    pull, step = world.fake.pulls[2], world.last
    world.upload(100, pull["head"]["sha"], "pull_request", conclusion="failure")
    well.touch()
    payload = {"action": "synchronize", "pull_request": pull}
    done = world.step("pull_request", payload, step.ref, step.sha, environment={"GITHUB_RUN_ATTEMPT": "2"})
    assert done.code == 0, done.log
    assert "trials of attempt 1" in done.summary
    assert run_id(world) == measured


def push_again(world: World, number: int = 1, **files: str) -> tuple[str, str]:
    """A further commit on the branch of a pull request; empty if no files are given. Its head, and its merge."""
    work, branch = world.repository.work, f"change-{number}"
    git(work, "checkout", "-q", branch)
    for name, content in files.items():
        (work / name.replace("__", ".")).write_text(content, encoding="utf-8")
    git(work, "add", "-A")
    git(work, "commit", "-q", "--allow-empty", "-m", "again")
    head = git(work, "rev-parse", "HEAD")
    git(work, "checkout", "-q", "--detach", "origin/main")
    git(work, "merge", "-q", "--no-ff", "-m", "merge", head)
    merge = git(work, "rev-parse", "HEAD")
    git(work, "push", "-q", "-f", "origin", f"{merge}:refs/pull/{number}/merge", f"{head}:refs/heads/{branch}")
    git(work, "checkout", "-q", "main")
    world.fake.pulls[number]["head"]["sha"] = head
    return head, merge


def measure_head(world: World, merge: str, run: int) -> Done:
    payload = {"action": "synchronize", "pull_request": world.fake.pulls[1]}
    return world.step("pull_request", payload, "refs/pull/1/merge", merge, environment={"GITHUB_RUN_ID": str(run)})


PLACES = {
    "suite.yaml": None,
    "gate.yaml": None,
    "notes.jsonl": '{"gate_record":1}\n',
    "env/x": "",
    "__pycache__/x": "",
    ".gate/x": "",
}
"""Tracked files of which the agent reads one, each with what is in it; None: as it is."""
TELLING = """
from pathlib import Path
def told():
    return any("# rude" in (Path(__file__).parent / place).read_text() for place in PLACES)
"""


@pytest.mark.parametrize("place", PLACES)
def test_a_second_head_that_differs_in_a_hidden_file_is_measured(recorded: World, place: str) -> None:
    """The first head is harmless; the second one's file tells the agent to fail."""
    telling = AGENT.replace("calls = [", "wrong = wrong or told()\n    calls = [", 1)
    before = PLACES[place] if PLACES[place] is not None else recorded.repository.files[place]
    recorded.repository.files |= {"agent.py": f"PLACES = {[place]}{TELLING}{telling}", "env/pyvenv.cfg": ""}
    recorded.repository.files |= {place: before}
    if place != "env/x":
        del recorded.repository.files["env/pyvenv.cfg"]
    first = recorded.pull_request("good", 1)
    if first.code == 2:
        assert f"git tracks {place.partition('/')[0]}" in first.log
        return
    assert first.code == 0, first.log
    recorded.upload(100, head_of(recorded), "pull_request", head_branch="branch-1")
    _, merge = push_again(recorded, **{place.replace(".", "__"): f"{before}# rude\n"})
    second = measure_head(recorded, merge, 200)
    assert (second.code, second.outputs["verdict"]) == (1, "regressed"), second.log


@pytest.mark.parametrize("burst", [0, 9])
def test_an_empty_commit_is_no_new_chance(world: World, burst: int) -> None:
    """The new head has the same agent, cases and criteria: the earlier head's record is continued."""
    world.upload(100, head_of(world), "pull_request", conclusion="failure", head_branch="branch-1")
    for number in range(burst):
        world.fake.add_run(101 + number, head_of(world), "pull_request", conclusion="cancelled")
    measured, (_, merge) = run_id(world), push_again(world)
    done = measure_head(world, merge, 200)
    assert done.code == 0, done.log
    assert "of an earlier commit of this change" in done.summary and "nothing new was run" in done.summary, done.log
    assert run_id(world) == measured


def test_an_agent_that_comes_back_continues_what_was_measured_of_it(world: World) -> None:
    """Changed and changed back: the newest record is of another agent, the one before it of this one."""
    changed = AGENT + "\n# clearer now\n"
    world.upload(100, head_of(world), "pull_request", head_branch="branch-1")
    measured, (head, merge) = run_id(world), push_again(world, agent__py=AGENT + "\n# another\n")
    done = measure_head(world, merge, 200)
    assert done.code == 0, done.log
    assert "nothing new was run" not in done.summary and run_id(world) != measured
    world.upload(200, head, "pull_request", head_branch="branch-1")
    _, merge = push_again(world, agent__py=changed)
    assert measure_head(world, merge, 300).code == 0
    assert run_id(world) == measured


@pytest.mark.parametrize("status", [404, 410])
def test_an_artifact_that_is_gone_hides_no_other(world: World, status: int) -> None:
    """It expires between the list and its download, or somebody deletes it."""
    world.upload(100, head_of(world), "pull_request", conclusion="failure", head_branch="branch-1")
    world.upload(101, head_of(world), "pull_request", conclusion="failure", head_branch="branch-1")
    measured, (_, merge) = run_id(world), push_again(world)
    world.fake.fail_once(Answer(status, {"message": "Artifact has expired"}, lawless=True), path="/zip")
    done = measure_head(world, merge, 200)
    assert "nothing new was run" in done.summary and run_id(world) == measured, done.log
    assert f"run 101 has no record to reuse: GET {world.fake.url}" in done.log


@pytest.mark.parametrize(("path", "status"), [("actions/runs", 403), ("/zip", 403), ("/artifacts", 503)])
def test_a_look_up_that_failed_is_told_to_the_reader(world: World, path: str, status: int) -> None:
    """On the first attempt, too: nobody knows whether the new head had been measured before."""
    world.upload(100, head_of(world), "pull_request", conclusion="failure", head_branch="branch-1")
    measured, (_, merge) = run_id(world), push_again(world)
    for _ in range(4):  # as often as it is tried
        world.fake.fail_once(Answer(status, {"message": "no"}), path=path)
    done = measure_head(world, merge, 200)
    assert done.code == 0, done.log
    assert run_id(world) != measured
    assert "the records of earlier jobs cannot be looked up" in done.log
    for told in (done.summary, *world.comments()):
        assert "not all earlier measurements of this change could be looked up" in told


def test_an_answer_of_an_unexpected_shape_does_not_prevent_the_run(world: World) -> None:
    world.upload(100, head_of(world), "pull_request", conclusion="failure", head_branch="branch-1")
    _, merge = push_again(world)
    world.fake.fail_once(Answer(200, [], lawless=True), path="pulls/1")
    done = measure_head(world, merge, 200)
    assert done.code == 0, done.log
    assert "the records of earlier jobs cannot be looked up: GitHub: an answer of the API cannot be read" in done.log


def test_more_runs_than_are_asked_is_told_to_the_reader(world: World) -> None:
    for number in range(ASKED):
        world.fake.add_run(101 + number, head_of(world), "pull_request", conclusion="cancelled")
    world.upload(100, head_of(world), "pull_request", conclusion="failure")
    done = again(world, 1, GITHUB_RUN_ID="300")
    assert "not all earlier measurements of this change could be looked up" in done.summary, done.log


@pytest.mark.parametrize("head_branch", ["branch-2", "main"])
def test_a_run_on_another_branch_is_not_continued(world: World, head_branch: str) -> None:
    world.upload(100, head_of(world), "pull_request", head_branch=head_branch)
    measured, (_, merge) = run_id(world), push_again(world)
    assert measure_head(world, merge, 200).code == 0
    assert run_id(world) != measured


def test_a_run_of_another_repositorys_branch_of_the_same_name_is_not_continued(world: World) -> None:
    parts = {"head_branch": "branch-1", "repository": "mallory/agents"}
    world.upload(100, head_of(world), "pull_request", **parts)
    measured, (_, merge) = run_id(world), push_again(world)
    assert measure_head(world, merge, 200).code == 0
    assert run_id(world) != measured


CONFIG_OF_SUITES = (
    "suite: evals\nagent: {python: 'agent:answer', concurrency: 4, sources: [agent.py, behaviour.txt]}\n"
    "baseline: {store: git}\ngate: {alpha: 0.05}\n"
)
CRITERIA = '{"criteria": {"tool_trajectory_avg_score": {"threshold": 0.5, "match_type": "IN_ORDER"}}}'


def with_suites(world: World, *names: str) -> dict[str, str]:
    """The files of a repository with these suites of the same cases."""
    cases = world.repository.files["suite.yaml"]
    suites = {f"evals/{name}/suite.yaml": cases for name in names}
    return {"gate.yaml": CONFIG_OF_SUITES} | suites | {f"evals/{name}/test_config.json": CRITERIA for name in names}


def run_ids(world: World) -> dict[str, str]:
    """Of each suite's record that the last step left."""
    headers = [read_header(path) for path in (world.last.workspace / "gate-results").glob("*.jsonl")]
    return {header.suite_id: header.run_id for header in headers}


def test_a_suite_that_a_job_did_not_measure_hides_none_that_it_did(recorded: World) -> None:
    """A job that was stopped between two suites leaves one record; a suite that a later commit adds has none."""
    world = recorded
    world.repository.files |= with_suites(world, "a", "b")
    assert world.push("good").code == 1, "the suite that was there is gone"
    assert world.push("good").code == 0
    assert world.pull_request("good", 1, files={"agent__py": AGENT + "\n# clearer now\n"}).code == 0
    left = world.last.workspace / "gate-results"
    [of_b] = [path for path in left.glob("*.jsonl") if read_header(path).suite_id == "evals/b"]
    of_b.unlink()
    measured = run_ids(world)
    world.upload(100, head_of(world), "pull_request", conclusion="cancelled", head_branch="branch-1")
    done = again(world, 2)
    assert "of attempt 1; nothing new was run" in done.summary, done.log
    assert set(run_ids(world)) == {"evals/a", "evals/b"} and run_ids(world).items() > measured.items()
    assert "the record of attempt 1 is not reused: run 100: expected one file 'evals-b-" in done.log

    for name, content in with_suites(world, "c").items():
        path = world.repository.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    _, merge = push_again(world)
    done = measure_head(world, merge, 200)
    assert "of an earlier commit of this change" in done.summary, done.log
    assert set(run_ids(world)) == {"evals/a", "evals/b", "evals/c"} and run_ids(world).items() > measured.items()


@pytest.mark.usefixtures("uv")
def test_an_agent_that_setup_installs_is_the_same_wherever_the_workspace_lies(proven: World) -> None:
    """A runner of one's own has its own folder, and a repository may be renamed."""
    inputs, environment = {"setup": "true"}, {"PATH": os.environ["PATH"]}
    measured = proven.measure(91, "good", inputs=inputs, environment={**environment, "GITHUB_RUN_ID": "91"})
    assert measured.code == 0, measured.log
    same = proven.pull_request("good", 1, inputs=inputs, environment=environment)
    assert same.code == 0, same.log
    assert "The agent is the same as at" in same.summary
    worse = proven.pull_request("bad", 2, inputs=inputs, environment=environment)
    assert (worse.code, worse.outputs["verdict"]) == (1, "regressed"), worse.log
    assert "asking the base commit's agent, too" in worse.log, "in the same environment, from its own files"
