"""Proofs where GitHub is a server of one's own, where the default branch has another name by now, and in a matrix."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.integration.github.conftest import FIRST, Measured
from tests.integration.github.fake_github import FakeGitHub
from tests.integration.github.job import Step, as_process, git
from tests.integration.github.scenarios import World
from tests.integration.github.test_provenance import forge, rewrite, stored, strict, tip, verdict

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
        strict(world)
        yield world
    assert github.violations == []


def test_a_server_of_ones_own_proves_baselines(company: World) -> None:
    """Its API is below a path and asked over TLS, its artifacts are elsewhere, and it states no digests of them."""
    done = company.pull_request("good")
    assert verdict(done) == (0, "pass"), done.log
    assert done.outputs["baseline_sha"] == tip(company)
    assert "proven" not in done.log + done.summary
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
def renamed(proven: World) -> World:
    """A default branch that requires proofs, has two measured commits, and is called otherwise since."""
    strict(proven)
    proven.rename("trunk")
    return proven


def test_baselines_stay_proven_when_the_default_branch_is_renamed(renamed: World) -> None:
    done = renamed.pull_request("good")
    assert verdict(done) == (0, "pass"), done.log
    assert done.outputs["baseline_sha"] == tip(renamed)
    assert "proven" not in done.log + done.summary


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
