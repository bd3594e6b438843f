"""The reusable workflow, called as the README shows it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.github.fake_github import FakeGitHub
from tests.integration.github.job import AGENT, CONFIG, as_process
from tests.integration.github.scenarios import World
from tests.integration.github.workflow import REPOSITORY, Site, Walked, wanted

LEVELS = ("none", "read", "write")
SECRET = "sk-a-key-of-a-provider"


def shown() -> dict[str, Any]:
    """The workflow in the README."""
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^```yaml\n(# \.github/workflows/gate\.yml\n.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert found is not None
    workflow: dict[str, Any] = yaml.safe_load(found[1])
    return workflow


def called() -> dict[str, Any]:
    workflow: dict[str, Any] = yaml.safe_load((REPOSITORY / ".github/workflows/gate.yml").read_text(encoding="utf-8"))
    return workflow


def test_the_caller_grants_what_the_two_jobs_need_and_no_more() -> None:
    needed: dict[str, str] = {}
    for job in called()["jobs"].values():
        for scope, level in job["permissions"].items():
            needed[scope] = max(level, needed.get(scope, "none"), key=LEVELS.index)
    [job] = shown()["jobs"].values()
    assert job["permissions"] == needed
    assert called()["permissions"] == {}


def test_the_caller_listens_to_every_event_that_the_jobs_are_for() -> None:
    events = shown()[True]
    assert events.keys() == {"pull_request", "merge_group", "push"}
    assert {"opened", "synchronize", "reopened", "labeled", "unlabeled", "edited"} == set(
        events["pull_request"]["types"]
    )


@pytest.mark.parametrize(
    ("event", "ref", "job"),
    [
        ("pull_request", "1/merge", "check"),
        ("pull_request_target", "main", "check"),  # which refuses it
        ("merge_group", "gh-readonly-queue/main/pr-1-0", "check"),
        ("push", "main", "baseline"),
        ("push", "topic", "check"),
        ("schedule", "main", "baseline"),
        ("workflow_dispatch", "main", "baseline"),
        ("workflow_dispatch", "topic", "check"),
        ("repository_dispatch", "main", "baseline"),
    ],
)
def test_one_job_runs_and_only_the_default_branchs_may_write(event: str, ref: str, job: str) -> None:
    github = {"event_name": event, "ref_name": ref}
    assert [name for name, parts in called()["jobs"].items() if wanted(parts["if"], [], github)] == [job]


@pytest.fixture
def site(tmp_path: Path, fake: FakeGitHub) -> Site:
    """A repository whose agent does not work without its key."""
    world = World(tmp_path, fake, as_process)
    config = CONFIG.replace("concurrency: 4", "concurrency: 4, env: [OPENAI_API_KEY]")
    agent = AGENT.replace("def answer", f"assert os.environ['OPENAI_API_KEY'] == {SECRET!r}\n\n\ndef answer")
    world.repository.files |= {"gate.yaml": config, "agent.py": agent}
    return Site(world, secrets={"OPENAI_API_KEY": SECRET})


def push(site: Site) -> Walked:
    world = site.world
    sha = world.repository.commit("good")
    payload = {"ref": world.ref, "before": "0" * 40, "after": sha, "deleted": False}
    return site.walk(shown(), "push", payload, world.ref, sha)


def pull_request(site: Site, number: int, behaviour: str) -> Walked:
    world = site.world
    head, merge = world.repository.pull_request(number, behaviour)
    pull = world.fake.add_pull(number, head, updated_at="2026-01-01T00:00:00Z")
    payload = {"action": "synchronize", "pull_request": pull}
    return site.walk(shown(), "pull_request", payload, f"refs/pull/{number}/merge", merge)


@pytest.mark.slow
def test_it_stores_a_baseline_and_blocks_a_regression(site: Site) -> None:
    stored = push(site)
    assert stored.jobs == {"gate / check": "skipped", "gate / baseline": "success"}, stored.log
    sound = pull_request(site, 1, "good")
    assert sound.jobs == {"gate / check": "success", "gate / baseline": "skipped"}, sound.log
    assert sound.gates["gate / check"].outputs["baseline_distance"] == "0"
    worse = pull_request(site, 2, "bad")
    assert worse.jobs["gate / check"] == "failure", worse.log
    assert len(site.world.comments(2)) == 1
    masked = worse.log.index(f"::add-mask::{SECRET}")
    assert masked < worse.log.index("::stop-commands::"), "later, the runner would no longer obey it"
    assert worse.log.count(SECRET) == 1


def test_calls_of_it_share_neither_an_artifact_nor_a_group() -> None:
    """A run takes each name once, and a second call of one group would cancel the first."""
    workflow = called()
    assert "inputs.artifact" in workflow["concurrency"]["group"]
    for job in workflow["jobs"].values():
        *_, gate, upload = job["steps"]
        assert gate["with"]["artifact"] == upload["with"]["name"] == "${{ inputs.artifact }}"
