"""A fake GitHub that must not have been violated when the test is over."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

openapi_core = pytest.importorskip("openapi_core", reason="the contract is checked with openapi-core")

from tests.integration.github.fake_github import FakeGitHub  # noqa: E402
from tests.integration.github.job import BLOCK, as_process  # noqa: E402
from tests.integration.github.scenarios import World, archive_of  # noqa: E402

FIRST = 90
"""The run that measured the first commit."""


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with FakeGitHub() as github:
        yield github
    assert github.violations == []


@pytest.fixture
def world(tmp_path: Path, fake: FakeGitHub) -> World:
    return World(tmp_path, fake, as_process)


@pytest.fixture(scope="session")
def with_baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a repository whose default branch has a baseline: one job has measured its one commit."""
    folder = tmp_path_factory.mktemp("with-baseline")
    with FakeGitHub() as github:
        done = World(folder, github, as_process).push("good")
    assert done.code == 0, done.log
    assert github.violations == []
    return folder / "repository"


@dataclass
class Measured:
    """What the first job left."""

    folder: Path
    archive: bytes


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    folder = tmp_path_factory.mktemp("measured")
    with FakeGitHub() as github:
        world = World(folder, github, as_process)
        done = world.push("good", environment={"GITHUB_RUN_ID": str(FIRST)})
    assert done.code == 0, done.log
    return Measured(folder / "repository", archive_of(world.last.workspace))


@pytest.fixture
def unproven(tmp_path: Path, fake: FakeGitHub, measured: Measured) -> World:
    """A world with a baseline of which nobody knows where it comes from."""
    return World(tmp_path, fake, as_process, measured.folder)


@pytest.fixture
def proven(unproven: World, measured: Measured) -> World:
    """A world with a baseline that a job on the default branch measured and uploaded."""
    unproven.upload(FIRST, unproven.tip, "push", measured.archive)
    return unproven


def require_proofs(world: World) -> None:
    """Lets the default branch require proofs, and measures it under that rule."""
    world.repository.files["gate.yaml"] = BLOCK
    done = world.measure(91, depth=1)
    assert done.code == 0, done.log


@pytest.fixture(scope="session")
def measured_strictly(tmp_path_factory: pytest.TempPathFactory, measured: Measured) -> World:
    """A default branch that requires proofs: what `strict` is a copy of."""
    with FakeGitHub() as github:
        world = World(tmp_path_factory.mktemp("strict"), github, as_process, measured.folder)
        world.upload(FIRST, world.tip, "push", measured.archive)
        require_proofs(world)
    assert github.violations == []
    return world


@pytest.fixture
def strict(tmp_path: Path, fake: FakeGitHub, measured_strictly: World) -> World:
    """A world whose default branch requires proofs, and has a baseline that is proven."""
    fake.take_over(measured_strictly.fake)
    world = World(tmp_path, fake, as_process, measured_strictly.folder / "repository")
    world.repository.files["gate.yaml"] = BLOCK
    return world


@pytest.fixture
def recorded(tmp_path: Path, fake: FakeGitHub, with_baseline: Path) -> World:
    """A world whose default branch has a baseline."""
    return World(tmp_path, fake, as_process, with_baseline)


@pytest.fixture
def path_with_uv(tmp_path: Path) -> str:
    """A uv that makes the environment with the standard library: the real one downloads pip."""
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(f'#!/bin/sh\nfor last; do :; done\nexec "{sys.executable}" -m venv --without-pip "$last"\n')
    uv.chmod(0o755)
    return os.pathsep.join([str(uv.parent), str(Path(sys.executable).parent), os.environ["PATH"]])


@pytest.fixture
def uv(path_with_uv: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That one on the path of the jobs."""
    monkeypatch.setenv("PATH", path_with_uv)
