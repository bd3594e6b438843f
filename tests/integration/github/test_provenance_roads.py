"""Proofs where GitHub is a server of one's own, where the default branch has another name by now, and in a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.integration.github.conftest import FIRST, Measured
from tests.integration.github.fake_github import FakeGitHub
from tests.integration.github.job import Step, as_process
from tests.integration.github.scenarios import World
from tests.integration.github.test_provenance import forge, strict, tip, verdict

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
