"""The workflow that `gate init` writes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from gate.commands.setup.ci import remote_of, workflow_of

HEAD = "ref: refs/heads/{}\n"


@pytest.mark.parametrize(
    ("files", "branch"),
    [
        ({"HEAD": HEAD.format("main")}, "main"),
        ({"HEAD": HEAD.format("trunk")}, "trunk"),
        ({"HEAD": HEAD.format("1.x,y")}, "1.x,y"),
        ({"HEAD": HEAD.format("add-gate"), "refs/heads/main": "0\n"}, "main"),
        ({"HEAD": HEAD.format("add-gate"), "refs/remotes/origin/master": "0\n"}, "master"),
        ({"HEAD": HEAD.format("add-gate"), "packed-refs": "0 refs/heads/main\n"}, "main"),
        ({"HEAD": HEAD.format("main"), "refs/remotes/origin/HEAD": "ref: refs/remotes/origin/develop\n"}, "develop"),
        ({"HEAD": "0" * 40}, "main"),
    ],
)
def test_it_listens_to_the_branch_that_changes_are_merged_into(
    tmp_path: Path, files: dict[str, str], branch: str
) -> None:
    for name, content in {"config": '[remote "origin"]\n\turl = https://github.com/o/r\n', **files}.items():
        path = tmp_path / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    made = workflow_of(tmp_path, ())
    assert yaml.safe_load(made.text)[True]["push"] == {"branches": [branch]}
    assert made.first_push.startswith(f"The first push to {branch} stores the baseline")


def test_a_linked_work_tree_has_the_remote_and_the_branches_of_its_repository(tmp_path: Path) -> None:
    """Agents often work in one."""
    project, tree = tmp_path / "project", tmp_path / "tree"
    for words in (
        ("init", "-q", "-b", "main", str(project)),
        ("-C", str(project), "remote", "add", "origin", "https://github.com/o/r"),
        ("-C", str(project), "commit", "-q", "--allow-empty", "-m", "first"),
        ("-C", str(project), "worktree", "add", "-q", "-b", "add-gate", str(tree)),
    ):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *words], check=True)
    made = workflow_of(tree, ())
    assert yaml.safe_load(made.text)[True]["push"] == {"branches": ["main"]}
    assert remote_of(tree) == remote_of(project) != ""
