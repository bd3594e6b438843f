"""Proofs where GitHub is a server of one's own, where the default branch has another name by now, and in a matrix."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from gate.records import parse_record, record_lines
from tests.integration.github import job
from tests.integration.github.conftest import FIRST, Measured, require_proofs
from tests.integration.github.fake_github import FakeGitHub
from tests.integration.github.job import BLOCK, CONFIG, Done, Step, as_process, git
from tests.integration.github.scenarios import World
from tests.integration.github.test_provenance import awful, forge, packed, rewrite, stored, tip, verdict

pytestmark = pytest.mark.slow


# --- GitHub Enterprise Server -----------------------------------------------------------------------


@pytest.fixture
def company(tmp_path: Path, certificate: Path, measured: Measured) -> Iterator[World]:
    """A repository on a company's own server, whose default branch requires proofs."""

    def trusting(step: Step, environment: dict[str, str]) -> CompletedProcess[str]:
        return as_process(step, {**environment, "SSL_CERT_FILE": str(certificate / "cert.pem")})

    with FakeGitHub(certificate=certificate) as github:
        world = World(tmp_path, github, trusting, measured.folder)
        world.upload(FIRST, tip(world), "push", measured.archive)
        require_proofs(world)
        yield world
    assert github.violations == []


def test_a_server_of_ones_own_proves_baselines(company: World) -> None:
    """Its API is below a path and asked over TLS, its artifacts are elsewhere, and it states no digests of them."""
    done = company.pull_request("good")
    assert verdict(done) == (0, "pass"), done.log
    assert done.outputs["baseline_sha"] == tip(company)
    assert "unproven" not in done.log + done.summary
    assert company.fake.downloads, "nothing was fetched from the store of artifacts"
    assert {call.headers.get("authorization") for call in company.fake.calls} == {"Bearer good"}


def test_an_artifact_that_would_be_fetched_without_encryption_proves_nothing(company: World) -> None:
    """Whoever is on the way could put another in its place: this server states no digest."""
    before = list(company.fake.downloads)
    company.fake.store_url = company.fake.store_url.replace("https", "http")
    done = company.pull_request("good")
    assert done.code == 4, done.log
    assert "away from HTTPS" in done.log
    assert company.fake.downloads == before


def test_a_forgery_is_found_on_a_server_of_ones_own(company: World) -> None:
    forge(company)
    done = company.pull_request("awful")
    assert done.code == 4, done.log
    assert "somebody has rewritten it" in done.log


# --- a default branch that is renamed ---------------------------------------------------------------


@pytest.fixture
def renamed(strict: World) -> World:
    """A default branch that requires proofs, has two measured commits, and is called otherwise since."""
    strict.rename("trunk")
    return strict


def test_baselines_stay_proven_when_the_default_branch_is_renamed(renamed: World) -> None:
    done = renamed.pull_request("good")
    assert verdict(done) == (0, "pass"), done.log
    assert done.outputs["baseline_sha"] == tip(renamed)
    assert "unproven" not in done.log + done.summary


@pytest.mark.parametrize("gone", [False, True], ids=["rewritten", "removed"])
def test_a_new_name_of_the_default_branch_hides_no_forgery(renamed: World, gone: bool) -> None:
    """What the jobs under the former name carried on says what there was; to hide that is why one might rename it."""
    if gone:
        rewrite(renamed, {stored(renamed)[0]: None})
    else:
        forge(renamed)
    done = renamed.pull_request("awful")
    assert done.code == 4, done.log
    assert ("is gone from the store" if gone else "somebody has rewritten it") in done.log


def test_the_first_job_under_the_new_name_carries_on_what_the_former_one_proved(renamed: World) -> None:
    former = git(renamed.repository.remote, "rev-list", "trunk").splitlines()
    assert renamed.measure(92).code == 0
    carried = json.loads((renamed.last.workspace / "gate-results" / "proofs.json").read_text())
    [suite] = carried["digests"].values()
    assert set(suite) == {tip(renamed), *former}
    for run in (FIRST, 91):
        renamed.fake.artifacts[run][0]["expired"] = True
    forge(renamed)
    done = renamed.pull_request("awful")
    assert done.code == 4, done.log
    assert "somebody has rewritten it" in done.log


def test_where_nothing_is_left_of_the_former_name_a_strict_job_says_what_to_do(renamed: World) -> None:
    """Its workflow still waits for pushes to the old name, until the artifacts have expired."""
    for run in (FIRST, 91):
        renamed.fake.artifacts[run][0]["expired"] = True
    done = renamed.pull_request("good")
    assert done.code == 4, done.log
    assert "no job of the default branch, 'trunk', has left proofs" in done.log
    assert "let a workflow that uses the gate run on pushes to 'trunk'" in done.log
    assert renamed.measure(93).code == 0
    after = renamed.pull_request("good", 2)
    assert verdict(after) == (0, "pass"), after.log


# --- a matrix of suites -----------------------------------------------------------------------------

PARTS = ("support", "sales")


@pytest.fixture
def matrix(tmp_path: Path, fake: FakeGitHub, measured_in_parts: World) -> World:
    """Two suites that share one decision, each with a job, an artifact and a record; both require proofs."""
    fake.take_over(measured_in_parts.fake)
    world = World(tmp_path, fake, as_process, measured_in_parts.folder / "repository")
    world.repository.files = dict(measured_in_parts.repository.files)
    return world


@pytest.fixture(scope="module")
def measured_in_parts(tmp_path_factory: pytest.TempPathFactory) -> World:
    """That world, of which each test has a copy."""
    with FakeGitHub() as github:
        world = in_parts(World(tmp_path_factory.mktemp("matrix"), github, as_process))
    assert github.violations == []
    return world


def in_parts(world: World) -> World:
    """Two commits, with a job for each of the suites."""
    for name in PARTS:
        text = BLOCK.replace("name: support", f"name: {name}").replace("alpha: 0.05", "alpha: 0.05, family: 2")
        world.repository.files[f"{name}.yaml"] = text
    before = "0" * 40
    for run in (500, 501):
        sha = world.repository.commit("good")
        payload = {"ref": world.ref, "before": before, "after": sha, "deleted": False}
        for name in PARTS:
            done = part(world, name, "push", payload, world.ref, sha, run)
            assert done.code == 0, done.log
            world.upload(run, sha, "push", name=f"gate-{name}")
        before = sha
    return world


def part(world: World, name: str, event: str, payload: dict[str, Any], ref: str, sha: str, run: int) -> Done:
    """The job of the matrix for one suite."""
    inputs = {"config": f"{name}.yaml", "artifact": f"gate-{name}"}
    return world.step(event, payload, ref, sha, depth=0, inputs=inputs, environment={"GITHUB_RUN_ID": str(run)})


def change(world: World, behaviour: str) -> dict[str, Done]:
    """A pull request, and the job of each part on it."""
    head, merge = world.repository.pull_request(1, behaviour)
    payload = {"action": "synchronize", "pull_request": world.fake.add_pull(1, head)}
    return {name: part(world, name, "pull_request", payload, "refs/pull/1/merge", merge, 600) for name in PARTS}


def test_each_part_of_a_matrix_has_its_own_proof(matrix: World) -> None:
    """The newest artifact of a part vouches for all of its suite, and says nothing of the other's."""
    left = {}
    for name in PARTS:
        [artifact] = [one for one in matrix.fake.artifacts[501] if one["name"] == f"gate-{name}"]
        archive = matrix.fake.contents[artifact["id"]]
        left[name] = json.loads(zipfile.ZipFile(io.BytesIO(archive)).read("proofs.json"))["digests"]
    first = git(matrix.repository.remote, "rev-parse", "main~1")
    for name, digests in left.items():
        [(suite, commits)] = digests.items()
        assert suite.startswith(f"{name}-")
        assert set(commits) == {first, matrix.tip}
    for artifact in matrix.fake.artifacts[500]:
        artifact["expired"] = True
    for done in change(matrix, "good").values():
        assert verdict(done) == (0, "pass"), done.log
        assert done.outputs["baseline_sha"] == matrix.tip
        assert "unproven" not in done.log + done.summary


def test_two_steps_of_one_job_leave_the_proofs_of_both(tmp_path: Path, fake: FakeGitHub) -> None:
    """Two agents without a matrix: the second step writes to the folder of results that has the first one's."""
    world = World(tmp_path, fake, as_process)
    world.repository.files["sales.yaml"] = CONFIG.replace("name: support", "name: sales")
    sha = world.repository.commit("good")
    payload = {"ref": world.ref, "before": "0" * 40, "after": sha, "deleted": False}
    first = world.step("push", payload, world.ref, sha)
    second = job.run(replace(world.last, inputs={"config": "sales.yaml"}), fake, as_process)
    assert (first.code, second.code) == (0, 0), second.log
    found = json.loads((world.last.workspace / "gate-results" / "proofs.json").read_text())
    for part_of in ("digests", "ledgers"):
        assert sorted(suite.partition("-")[0] for suite in found[part_of]) == ["sales", "support"]


def test_a_forgery_of_one_part_ends_that_job_and_no_other(matrix: World) -> None:
    [path] = [path for path in baselines(matrix) if path.startswith("sales-") and matrix.tip in path]
    record = parse_record(git(matrix.repository.remote, "show", f"gate-baselines:{path}").encode() + b"\n")
    forged = b"".join(record_lines(awful(record)))
    rewrite(matrix, {path: forged})
    matrix.upload(502, matrix.tip, "push", packed({"sales.jsonl": forged}), name="gate-support")  # the other's says so
    done = change(matrix, "awful")
    assert done["sales"].code == 4, done["sales"].log
    assert "somebody has rewritten it" in done["sales"].log
    assert verdict(done["support"]) == (1, "regressed"), done["support"].log
    assert done["support"].outputs["baseline_sha"] == matrix.tip


def test_a_part_that_does_not_say_how_its_artifact_is_called_is_told(matrix: World) -> None:
    head, merge = matrix.repository.pull_request(1, "good")
    payload = {"action": "synchronize", "pull_request": matrix.fake.add_pull(1, head)}
    done = matrix.step("pull_request", payload, "refs/pull/1/merge", merge, depth=0, inputs={"config": "sales.yaml"})
    assert done.code == 4, done.log
    assert "artifact 'gate-results' of run 501: there is none" in done.log
    assert "the input `artifact` says how it is called" in done.log.replace("\\", "")


def baselines(world: World) -> list[str]:
    return git(world.repository.remote, "ls-tree", "-r", "--name-only", "gate-baselines").splitlines()
