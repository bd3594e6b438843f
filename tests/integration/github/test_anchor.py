"""What nights, pushes and releases are compared with, from the event to what the step stored."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.github.job import CONFIG, Done, git
from tests.integration.github.scenarios import World

pytestmark = pytest.mark.slow

GUIDE = Path(__file__).parents[3] / "docs/how-to/releases.md"


@pytest.fixture
def world(world: World) -> World:
    world.repository.files["gate.yaml"] = CONFIG + "trials: 3\n"
    return world


def night(world: World, sha: str) -> Done:
    return world.step("schedule", {"schedule": "0 3 * * *"}, "refs/heads/main", sha, depth=0)


def ledger(world: World) -> str:
    names = git(world.repository.remote, "ls-tree", "-r", "--name-only", "gate-baselines").splitlines()
    [path] = [name for name in names if name.endswith("/ledger.ndjson")]
    return git(world.repository.remote, "show", f"gate-baselines:{path}")


def test_nights_are_measured_against_the_anchor_and_never_against_the_night_before_alone(world: World) -> None:
    assert world.push("good").code == 0
    codes = []
    for broken in (2, 3, 4):
        done = night(world, world.repository.commit(f"broken-{broken}"))
        codes.append((done.code, done.outputs["verdict"]))
    assert codes[1:] == [(1, "regressed")] * 2, codes
    assert done.outputs["regressions"] != "0"


def test_a_night_on_an_unchanged_commit_adds_to_its_record(world: World) -> None:
    assert world.push("good").code == 0
    sha = git(world.repository.remote, "rev-parse", "main")
    done = night(world, sha)
    assert (done.code, done.outputs["verdict"]) == (0, "pass"), done.log
    names = git(world.repository.remote, "ls-tree", "-r", "--name-only", "gate-baselines").splitlines()
    [record] = [name for name in names if name.endswith(".jsonl")]
    header = git(world.repository.remote, "show", f"gate-baselines:{record}").splitlines()[0]
    assert header.count(",72]") == 2, "24 cases, 3 trials, two runs"


def test_a_push_that_is_no_worse_than_its_own_base_is_held_to_the_anchor_too(world: World) -> None:
    assert world.push("good").code == 0
    assert world.push("bad", before=git(world.repository.remote, "rev-parse", "main"), depth=0).code == 1
    after = world.push("bad", before=git(world.repository.remote, "rev-parse", "main"), depth=0)
    assert (after.code, after.outputs["verdict"]) == (1, "regressed"), after.log


def test_the_label_moves_the_anchor(world: World) -> None:
    assert world.push("good").code == 0
    before = git(world.repository.remote, "rev-parse", "main")
    sha = world.repository.commit("bad")
    label(world, sha, days=2)
    payload = {"ref": "refs/heads/main", "before": before, "after": sha, "deleted": False}
    done = world.step("push", payload, "refs/heads/main", sha, depth=0)
    assert (done.code, done.outputs["verdict"]) == (0, "regressed"), done.log
    [line] = [line for line in ledger(world).splitlines() if '"kind":"accepted"' in line]
    assert "wendy" in line and "gate:accept" in line and sha in line
    assert f'"until":"{datetime.now(UTC).date() + timedelta(days=90)}"' in line
    assert night(world, sha).code == 0
    assert ledger(world).count('"kind":"accepted"') == 1, "a further night makes it no longer"


DRIFTS = """
MOVED = Path({moved!r})


def answer"""


def test_the_label_accepts_no_later_loss_of_the_commit(world: World) -> None:
    """A model that drifts on a night after the merge: the record that was accepted is what the night is held to."""
    moved = world.folder / "moved"
    files = world.repository.files
    agent = files["agent.py"].replace("\ndef answer", DRIFTS.format(moved=str(moved)), 1)
    found = '    if BEHAVIOUR.startswith("broken-")'
    files["agent.py"] = agent.replace(found, f"    wrong = number < 18 if MOVED.exists() else wrong\n{found}", 1)
    assert world.push("good").code == 0
    before = world.tip
    sha = world.repository.commit("bad")
    label(world, sha, days=2)
    payload = {"ref": "refs/heads/main", "before": before, "after": sha, "deleted": False}
    done = world.step("push", payload, "refs/heads/main", sha, depth=0)
    assert (done.code, done.outputs["verdict"]) == (0, "regressed"), done.log
    again = world.step("push", payload, "refs/heads/main", sha, depth=0, environment={"GITHUB_RUN_ATTEMPT": "2"})
    assert (again.code, again.outputs["verdict"]) == (0, "regressed"), "a second attempt at the push is the push"
    moved.touch()
    for event in ("schedule", "workflow_dispatch"):
        done = world.step(event, {}, "refs/heads/main", sha, depth=0)
        assert (done.code, done.outputs["verdict"], done.outputs["baseline_sha"]) == (1, "regressed", sha), done.log


def test_a_label_from_long_ago_accepts_nothing_on_the_default_branch(world: World) -> None:
    assert world.push("good").code == 0
    before = git(world.repository.remote, "rev-parse", "main")
    sha = world.repository.commit("bad")
    label(world, sha, days=100)
    payload = {"ref": "refs/heads/main", "before": before, "after": sha, "deleted": False}
    done = world.step("push", payload, "refs/heads/main", sha, depth=0)
    assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
    assert "it was set more than 90 days ago" in done.log
    assert '"kind":"accepted"' not in ledger(world)


def label(world: World, sha: str, *, days: int) -> None:
    """The label on the pull request that became this commit, set so many days ago."""
    run, set_, merged = (f"{datetime.now(UTC) - timedelta(days=days - n):%Y-%m-%dT%H:%M:%SZ}" for n in (0, 1, 2))
    world.fake.add_pull(7, "e" * 40, state="closed", merged_at=merged, merge_commit_sha=sha)
    world.fake.add_run(70, "e" * 40, "pull_request", created_at=run)
    world.fake.set_label(7, "gate:accept", "wendy", set_)


def release(world: World, tag: str, behaviour: str, **inputs: str) -> Done:
    sha = world.repository.commit(behaviour)
    git(world.repository.work, "tag", "-a", "-m", tag, tag)
    git(world.repository.work, "push", "-q", "origin", tag)
    payload = {"ref": f"refs/tags/{tag}", "before": "0" * 40, "after": sha, "deleted": False}
    return world.step("push", payload, f"refs/tags/{tag}", sha, depth=0, inputs=inputs)


def documented() -> dict[str, Any]:
    """The workflow of the guide."""
    found = re.search(r"^```yaml\n(# \.github/workflows/release\.yml.*?)^```$", GUIDE.read_text(), re.M | re.S)
    assert found is not None
    workflow: dict[str, Any] = yaml.safe_load(found[1])
    return workflow


def test_the_documented_workflow_publishes_only_what_the_gate_lets_through(world: World) -> None:
    """Its inputs and its checkout, walked release by release."""
    workflow = documented()
    gate, publish = workflow["jobs"]["gate"], workflow["jobs"]["publish"]
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    assert publish["needs"] == "gate" and "if" not in publish
    checkout, step = gate["steps"][0]["with"], gate["steps"][1]["with"]
    assert checkout["fetch-depth"] == 0
    assert gate["permissions"]["contents"] == "write"
    inputs = {name: value for name, value in step.items() if name != "setup"}

    first = release(world, "v1.0.0", "good", **inputs)
    assert first.code == 4, "nothing is stored yet, and the workflow says that this fails"
    assert world.push("good").code == 0
    second = release(world, "v1.0.1", "good", **inputs)
    assert second.code == 0, second.log
    tagged = git(world.repository.work, "rev-parse", "v1.0.1^{commit}")
    rejected = release(world, "v1.1.0", "bad", **inputs)
    empty = release(world, "v1.1.1", "bad", **inputs)
    for done in (rejected, empty):
        assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
        assert done.outputs["baseline_sha"] == tagged
    candidate = release(world, "v1.2.0-rc.1", "good", **inputs)
    assert candidate.code == 0, candidate.log
    repaired = release(world, "v1.2.0", "good", **inputs)
    assert repaired.code == 0 and repaired.outputs["baseline_sha"] == tagged, repaired.log


def test_a_rejected_release_that_somebody_accepts_goes_out_when_its_job_is_run_again(world: World) -> None:
    assert world.push("good").code == 0
    assert release(world, "v1.0.0", "good").code == 0
    assert release(world, "v1.1.0", "bad").code == 1
    world.upload(100, world.last.sha, "push")
    work = world.repository.work
    git(work, "fetch", "-q", "--tags")
    command = [
        sys.executable,
        "-m",
        "gate",
        "baseline",
        "accept",
        "v1.1.0",
        "--why",
        "shorter answers",
        "--by",
        "wendy",
    ]
    accepted = subprocess.run(command, cwd=work, env=dict(os.environ), capture_output=True, text=True, check=False)
    assert accepted.returncode == 0, accepted.stderr
    again = world.step(
        "push",
        dict(world.last.payload),
        world.last.ref,
        world.last.sha,
        depth=0,
        environment={"GITHUB_RUN_ATTEMPT": "2"},
    )
    assert again.code == 0, again.log
    assert "wendy" in again.summary
    assert release(world, "v1.1.1", "bad").code == 0, "and is what the next is compared with"


def test_the_label_accepts_no_loss_that_the_default_branch_had_before(world: World) -> None:
    """Its reviewer saw what the change lost on top of a commit that was merged in spite of its own loss."""
    assert world.push("good").code == 0
    assert world.push("broken-6", before=world.tip, depth=0).code == 1
    before = world.tip
    sha = world.repository.commit("broken-12")
    label(world, sha, days=2)
    payload = {"ref": "refs/heads/main", "before": before, "after": sha, "deleted": False}
    done = world.step("push", payload, "refs/heads/main", sha, depth=0)
    assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
    assert f"fell short at {before[:12]} already; accept that first: `gate baseline accept" in done.log
    assert '"kind":"accepted"' not in ledger(world)
