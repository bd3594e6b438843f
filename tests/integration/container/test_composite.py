"""The action without Docker, installed by a real pip from the locks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

pytest.importorskip("openapi_core", reason="the contract is checked with openapi-core")

from tests.integration.container.image import pip_mounts
from tests.integration.github.composite import REPOSITORY, Composite
from tests.integration.github.fake_github import FakeGitHub
from tests.integration.github.scenarios import World

pytestmark = pytest.mark.container
PARTS = ("LICENSE", "README.md", "composite", "gate", "pyproject.toml", "requirements")


def test_it_installs_itself_and_measures(tmp_path: Path) -> None:
    unpacked = tmp_path / "action"
    unpacked.mkdir()
    for name in PARTS:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, unpacked / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, unpacked / name)
    pip_mounts(tmp_path)
    machine = {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf")}
    if "GATE_TESTS_SSL_CERT_FILE" in os.environ:
        machine["SSL_CERT_FILE"] = os.environ["GATE_TESTS_SSL_CERT_FILE"]
    with FakeGitHub() as fake:
        world = World(tmp_path, fake, Composite(unpacked / "composite", environment=machine))
        stored = world.push("good")
        assert stored.code == 0, stored.log
        done = world.pull_request("bad")
        assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
    assert fake.violations == []
