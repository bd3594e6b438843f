"""Whether a job's record stands for its commit: what setup leaves does not speak against it, what was edited does."""

from __future__ import annotations

import os

import pytest

from tests.integration.github.job import CONFIG, Step, as_process, git
from tests.integration.github.scenarios import World

SETUP = CONFIG + "setup: mkdir -p my.egg-info build && date +%N | tee my.egg-info/PKG-INFO build/x behaviour.lock\n"


pytestmark = pytest.mark.usefixtures("uv")


def stored(world: World) -> str:
    return git(world.repository.remote, "ls-tree", "-r", "--name-only", "gate-baselines")


@pytest.mark.slow
def test_what_setup_leaves_does_not_keep_the_baseline_from_its_commit(world: World) -> None:
    world.repository.files["gate.yaml"] = SETUP
    done = world.push("good", environment={"PATH": os.environ["PATH"]})
    assert done.code == 0, done.log
    assert (world.last.workspace / "my.egg-info").is_dir()
    assert git(world.repository.remote, "rev-parse", "main")[:12] in stored(world)
    assert "dirty" not in stored(world)
    assert not [said for _, _, said in done.annotations("warning") if "uncommitted" in said]
    done = world.pull_request("bad", environment={"PATH": os.environ["PATH"]})
    assert done.outputs["baseline_sha"] == git(world.repository.remote, "rev-parse", "main")


@pytest.mark.slow
def test_a_work_tree_that_an_earlier_step_changed_becomes_no_baseline_and_is_named(world: World) -> None:
    def edited(step: Step, environment: dict[str, str]):  # type: ignore[no-untyped-def]
        for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
            (step.workspace / name).write_text("an earlier step was here")
        return as_process(step, environment)

    world.launch = edited
    done = world.push("good")
    assert done.code == 6, done.log
    assert git(world.repository.remote, "branch", "--list", "gate-baselines") == ""
    [error] = [said for _, _, said in done.annotations("error") if "uncommitted" in said]
    assert "changed: a.txt, b.txt, c.txt, …" in error
