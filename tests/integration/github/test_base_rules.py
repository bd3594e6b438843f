"""The base's rules in the action: what `setup` writes, and where a configuration moves to, changes none of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.integration.github.job import CONFIG, git
from tests.integration.github.scenarios import World

CRITERION = "  tool_trajectory_avg_score: {threshold: 0.5, match_type: IN_ORDER}"
LOOSE = CONFIG.replace("threshold: 0.5", "threshold: 0.0, blocking: false").replace(
    "criteria:", "criteria:\n  tool_calls: {max: 1000}"
)
FAIR = "def fair(actual, expected):\n    return float(len(actual[0].tool_calls) == 2)\n"
BLIND = "def fair(actual, expected): return 1.0"


pytestmark = pytest.mark.usefixtures("uv")


def environment(tmp_path: Path) -> dict[str, str]:
    """With a folder of its own for what is temporary, which `setup` of these changes may look through."""
    folder = tmp_path / "temporary"
    folder.mkdir(exist_ok=True)
    return {"PATH": os.environ["PATH"], "TMPDIR": str(folder)}


def with_setup(config: str, command: str) -> str:
    return f"{config}\nsetup: |\n  {command}\n"


ATTACKS = (
    "git replace -f $(git rev-parse HEAD^1) HEAD || true",
    "git update-ref refs/heads/main HEAD; git update-ref refs/remotes/origin/main HEAD",
    "cp loose.yaml gate.yaml",
    "git config core.worktree /nowhere; git config alias.rev-parse '!false'",
)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["; ".join(ATTACKS[:3]), "; ".join(ATTACKS)])
def test_what_setup_does_to_the_repository_changes_no_rule(recorded: World, tmp_path: Path, command: str) -> None:
    files = {"gate__yaml": with_setup(LOOSE, command), "loose__yaml": LOOSE}
    done = recorded.pull_request("awful", environment=environment(tmp_path), files=files)
    assert done.code == 1, done.log
    assert done.outputs["verdict"] in ("regressed", "below_threshold"), done.log


@pytest.mark.slow
def test_a_check_that_setup_rewrote_at_the_base_is_not_used(world: World, tmp_path: Path) -> None:
    seen = environment(tmp_path)
    config = CONFIG.replace(CRITERION, '  fair: {metric: "checks:fair", threshold: 0.9}')
    world.repository.files |= {"gate.yaml": config, "checks.py": FAIR}
    assert world.push("good", environment=seen).code == 0
    rewrite = f"for f in {seen['TMPDIR']}/gate-base-*/tree/checks.py; do echo '{BLIND}' > $f; done"
    done = world.pull_request("awful", environment=seen, files={"gate__yaml": with_setup(config, rewrite)})
    assert done.code == 2, done.log
    assert "the base commit's files were changed before they were used" in " ".join(done.log.split())


@pytest.mark.parametrize("store", ["store: git", "store: none", "store: git, branch: elsewhere"])
@pytest.mark.slow
def test_a_configuration_that_moved_is_not_a_first_one(recorded: World, store: str) -> None:
    files = {"other__yaml": LOOSE.replace("store: git", store)}
    done = recorded.pull_request("awful", files=files, inputs={"config": "other.yaml"})
    assert (done.code, done.outputs["verdict"]) == (1, "not_compared"), done.log
    assert "its rules are unknown" in " ".join(done.log.split())


@pytest.mark.slow
def test_the_second_push_of_a_branch_is_not_held_to_the_rules_of_the_first(recorded: World) -> None:
    work, remote = recorded.repository.work, recorded.repository.remote
    git(work, "checkout", "-q", "-b", "change", "origin/main")
    before = "0" * 40
    for number in (1, 2):
        head = recorded.repository.commit("awful", branch="change", gate__yaml=LOOSE, note__txt=str(number))
        payload = {"ref": "refs/heads/change", "before": before, "after": head, "deleted": False}
        done = recorded.step("push", payload, "refs/heads/change", head)
        assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.log
        assert "earlier pushes of this branch are not counted" in " ".join(done.log.split())
        before = head
    assert git(remote, "rev-parse", "change") == before
