"""The action without Docker, on a runner whose python3 is scripted; the tests of the image try a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.github.composite import PYTHON, Composite, path_with
from tests.integration.github.fake_github import FakeGitHub
from tests.integration.github.scenarios import World


@pytest.mark.slow
def test_a_regression_fails_the_step_as_in_a_container(tmp_path: Path, fake: FakeGitHub, with_baseline: Path) -> None:
    world = World(tmp_path, fake, Composite(path=path_with(PYTHON, tmp_path / "bin")), with_baseline)
    done = world.pull_request("bad")
    assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
    assert len(world.comments()) == 1


def test_a_python_that_is_too_old_is_an_error_that_says_what_to_add(tmp_path: Path, fake: FakeGitHub) -> None:
    old = Composite(path=path_with("#!/bin/sh\nexit 1\n", tmp_path / "bin"))
    done = World(tmp_path, fake, old).push()
    assert done.code == 2
    [(_, _, message)] = done.annotations("error")
    assert "add actions/setup-python" in message
