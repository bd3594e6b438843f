"""The workflows of the pages, from the tag to the rollback, as they stand there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.github.fake_github import FakeGitHub
from tests.integration.github.job import CONFIG, as_process, git
from tests.integration.github.scenarios import World
from tests.integration.github.workflow import Site, Walked, documented
from tests.keys import new_key

pytestmark = pytest.mark.slow

DEPLOY = '#!/bin/sh\necho "$1 $(git rev-parse HEAD)" >> "$SITE/deployed"\n'
FETCH = '#!/bin/sh\ncat "$SITE/$1.jsonl"\n'
MONITORED = CONFIG + "trials: 3\n" + "monitor: {min_samples: 30}\n"


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A repository whose agent was recorded on the default branch: what `site` has a copy of."""
    criteria = "  tool_trajectory_avg_score: {threshold: 0.5, match_type: IN_ORDER}\n"
    config = MONITORED.replace(criteria, criteria + '  not_contains: {values: ["I cannot"]}\n')
    files = {"gate.yaml": config, "deploy.sh": DEPLOY, "fetch-traces.sh": FETCH, "model.txt": "one\n"}
    with FakeGitHub() as github:
        world = World(tmp_path_factory.mktemp("first"), github, as_process)
        world.repository.files |= files
        for name in ("deploy.sh", "fetch-traces.sh"):
            (world.repository.work / name).touch(mode=0o755)
        assert world.measure(1, before="0" * 40, depth=1).code == 0
    assert github.violations == []
    return world


@pytest.fixture
def site(tmp_path: Path, fake: FakeGitHub, first: World) -> Site:
    """A repository whose agent was recorded on the default branch, with a key."""
    fake.take_over(first.fake)
    world = World(tmp_path, fake, as_process, first.folder / "repository")
    world.repository.files = dict(first.repository.files)
    private, public = new_key()
    secrets = {"OPENAI_API_KEY": "not used", "GATE_KEY": private.decode(), "TRACES_TOKEN": "not used"}
    return Site(world, secrets, {"GATE_PUBLIC_KEY": public.decode()})


def release(site: Site, tag: str, behaviour: str, *, merged: bool = True) -> tuple[Walked, str]:
    """A commit, which the default branch measures where it is ``merged`` first; its tag, and the tag's workflow."""
    world = site.world
    if merged:
        world.measure(len(world.fake.runs) + 1, behaviour, files={"notes__txt": tag})
    else:
        world.repository.commit(behaviour, notes__txt=tag)
    sha = git(world.repository.remote, "rev-parse", "main")
    git(world.repository.work, "tag", "-a", "-m", tag, tag)
    git(world.repository.work, "push", "-q", "origin", tag)
    payload = {"ref": f"refs/tags/{tag}", "before": "0" * 40, "after": sha, "deleted": False}
    return site.walk(documented("how-to/releases.md", "release.yml"), "push", payload, f"refs/tags/{tag}", sha), sha


def dispatch(site: Site, page: str, name: str, **inputs: str) -> Walked:
    sha = git(site.world.repository.remote, "rev-parse", "main")
    given: dict[str, Any] = {"inputs": inputs, "ref": "refs/heads/main"}
    return site.walk(documented(page, name), "workflow_dispatch", given, "refs/heads/main", sha, inputs)


def deploy(site: Site, tag: str, target: str = "canary") -> Walked:
    return dispatch(site, "how-to/releases.md", "deploy.yml", tag=tag, target=target)


def test_a_tag_is_published_on_what_was_measured_at_its_merge(site: Site) -> None:
    walked, sha = release(site, "v1.0.0", "good")
    assert walked.jobs == {"gate": "success", "publish": "success"}, walked.log
    gate = walked.gates["gate"]
    assert "nothing new was run" in gate.summary and "decided on what was measured of this commit" in gate.summary
    files = {path.name for path in (site.folder / "releases" / "v1.0.0").iterdir()}
    assert {"junit.xml", "statement.json.dsse.json"} < files and any(name.endswith(".jsonl") for name in files)
    candidate, _ = release(site, "v1.1.0-rc.1", "good")
    assert candidate.jobs["publish"] == "success", candidate.log
    assert [path.name for path in (site.folder / "prereleases").iterdir()] == ["v1.1.0-rc.1"]
    bad, _ = release(site, "v1.1.0", "bad")
    assert bad.jobs == {"gate": "failure", "publish": "skipped"}, bad.log
    assert bad.gates["gate"].outputs["verdict"] == "regressed"
    assert bad.environments == [], "the key was not even within reach"
    rejected = deploy(site, "v1.1.0")
    assert (rejected.jobs["verify"], rejected.jobs["deploy"]) == ("failure", "skipped")
    assert sha and not site.deployed()


def test_a_commit_that_nobody_measured_is_measured_for_its_tag(site: Site) -> None:
    walked, _ = release(site, "v1.0.0", "good", merged=False)
    assert walked.jobs["publish"] == "success", walked.log
    assert "decided on what was measured" not in walked.gates["gate"].summary


def test_what_is_deployed_is_what_was_signed_and_a_rollback_is_no_exception(site: Site) -> None:
    _, first = release(site, "v1.0.0", "good")
    _, second = release(site, "v1.0.1", "good")
    for tag, sha in (("v1.0.1", second), ("v1.0.0", first)):
        walked = deploy(site, tag, "production")
        assert walked.jobs == {"verify": "success", "deploy": "success"}, walked.log
        assert walked.environments == ["production"]
        assert site.deployed()[-1] == f"production {sha}"
    for name in sorted(path.name for path in (site.folder / "releases" / "v1.0.0").iterdir()):
        path = site.folder / "releases" / "v1.0.0" / name
        whole = path.read_bytes()
        path.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
        walked = deploy(site, "v1.0.0", "production")
        assert (walked.jobs, walked.environments) == ({"verify": "failure", "deploy": "skipped"}, []), name
        path.write_bytes(whole)
    work = site.world.repository.work
    git(work, "tag", "-f", "v1.0.0", second)
    git(work, "push", "-q", "-f", "origin", "v1.0.0")
    moved = deploy(site, "v1.0.0", "production")
    assert (moved.jobs["deploy"], "the statement is about commit" in moved.log) == ("skipped", True), moved.log
    site.variables = {"GATE_PUBLIC_KEY": new_key()[1].decode()}
    assert deploy(site, "v1.0.1").jobs["deploy"] == "skipped", "signed with another key"
    assert len(site.deployed()) == 2


def test_a_tag_that_moves_while_a_deployment_waits_changes_nothing_of_what_is_deployed(site: Site) -> None:
    _, first = release(site, "v1.0.0", "good")
    work = site.world.repository.work
    other = site.world.repository.commit("awful")

    def moved(job: str) -> None:
        if job == "deploy":
            git(work, "tag", "-f", "v1.0.0", other)
            git(work, "push", "-q", "-f", "origin", "v1.0.0")

    site.meanwhile = moved
    walked = deploy(site, "v1.0.0", "production")
    assert walked.jobs == {"verify": "success", "deploy": "success"}, walked.log
    assert site.deployed() == [f"production {first}"]
    assert git(site.world.repository.remote, "rev-parse", "v1.0.0^{commit}") == other


def traces(site: Site, name: str, passed: int, measured: int = 100) -> None:
    rows = []
    for number in range(measured):
        said = "I refunded it." if number < passed else "I cannot say."
        messages = [{"role": "user", "content": f"refund {number}"}, {"role": "assistant", "content": said}]
        rows.append(json.dumps({"id": f"{name}-{number}", "messages": messages}) + "\n")
    (site.folder / f"{name}.jsonl").write_text("".join(rows))


def test_a_canary_goes_on_or_back(site: Site) -> None:
    release(site, "v1.0.0", "good")
    release(site, "v1.0.1", "good")
    traces(site, "stable", 98)
    for passed, measured, job, target in (
        (98, 100, "promote", ["v1.0.1", "production"]),
        (70, 100, "back", ["v1.0.0", "canary"]),
        (9, 9, "back", ["v1.0.0", "canary"]),
    ):
        traces(site, "canary", passed, measured)
        walked = dispatch(site, "how-to/releases.md", "canary.yml", tag="v1.0.1", stable="v1.0.0")
        ended = {"promote": "skipped", "back": "skipped", job: "success"}
        assert {name: walked.jobs[name] for name in ended} == ended, walked.log
        name, fields = site.dispatched()[-1]
        assert name == "deploy.yml"
        assert [fields["tag"], fields["target"]] == target
        assert deploy(site, **fields).jobs["deploy"] == "success"
    assert len(site.dispatched()) == 3


def test_a_new_model_is_blocked_while_doubt_is_left(site: Site) -> None:
    """In these tests the behaviour stands for what the model is."""
    workflow = documented("how-to/upgrade-a-model.md", "model.yml")
    assert workflow[True]["pull_request"]["paths"] == ["model.txt"]
    world = site.world
    for number, (behaviour, ended) in enumerate((("good", "success"), ("bad", "failure")), 1):
        head, merge = world.repository.pull_request(number, behaviour, model__txt=f"{number}\n")
        pull = world.fake.add_pull(number, head, updated_at="2026-01-01T00:00:00Z")
        payload = {"action": "synchronize", "pull_request": pull}
        walked = site.walk(workflow, "pull_request", payload, f"refs/pull/{number}/merge", merge)
        assert walked.jobs == {"gate": ended}, walked.log
        assert "10" in walked.gates["gate"].summary
        assert world.comments(number)


def test_every_workflow_of_these_pages_is_walked() -> None:
    """A new block is added to the tests above."""
    pages = Path(__file__).parents[3] / "docs" / "how-to"
    found = {
        line.rpartition("/")[2]
        for page in ("releases.md", "upgrade-a-model.md")
        for line in (pages / page).read_text().splitlines()
        if line.startswith("# .github/workflows/")
    }
    assert found == {"release.yml", "deploy.yml", "canary.yml", "model.yml"}
