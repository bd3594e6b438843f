"""Plays the pull requests of `examples/repository`, and keeps what they left there."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.acceptance.test_golden_reports import without_times
from tests.integration.github.fake_github import FakeGitHub
from tests.integration.github.job import Repository, as_process, git
from tests.integration.github.scenarios import World, archive_of
from tests.integration.github.workflow import REPOSITORY, Site, Walked

EXAMPLE = REPOSITORY / "examples" / "repository"
LEFT = "pull-requests"
"""The folder in it with what the pull requests left."""
LOOK_UP = "Look up every order before you act on it.\n"
DATES = {f"GIT_{who}_DATE": "2026-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")}


@dataclass(frozen=True)
class Change:
    """A pull request: the name of its folder, its title, and one replacement in the prompt."""

    folder: str
    title: str
    old: str
    new: str
    check: str


CHANGES = (
    Change("1-shorter-prompt", "Shorten the prompt", LOOK_UP, "Be quick.\n", "failure"),
    Change("2-friendlier-prompt", "Be friendlier", LOOK_UP, f"{LOOK_UP}Thank people.\n", "success"),
)


class Example(Repository):
    """The example as a repository on GitHub."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        shutil.copytree(
            EXAMPLE,
            self.work,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns(LEFT, "README.md", ".gate", "__pycache__"),
        )

    def commit(self, behaviour: str = "good", *, branch: str = "", push: bool = True, **files: str) -> str:
        """Commit these files; ``behaviour`` is the subject."""
        self.files = {}
        for name, content in files.items():
            (self.work / name.replace("__", ".")).write_text(content, encoding="utf-8")
        git(self.work, "add", "-A")
        git(self.work, "commit", "-q", "-m", behaviour)
        git(self.work, "push", "-q", "origin", f"HEAD:refs/heads/{branch or self.branch}")
        return git(self.work, "rev-parse", "HEAD")


def play(folder: Path, fake: FakeGitHub) -> dict[str, dict[str, str]]:
    """Store a baseline, open both pull requests, and return the files that each left, by folder and name."""
    world = World(folder, fake, as_process)
    world.repository = Example(folder / "example")
    site = Site(world)
    sha = world.repository.commit("A support agent and its gate")
    payload = {"ref": world.ref, "before": "0" * 40, "after": sha, "deleted": False}
    stored = _walk(site, "push", payload, world.ref, sha)
    assert stored.jobs["gate / baseline"] == "success", stored.log
    world.upload(site.runs, sha, "push", archive_of(world.folder / f"run-{site.runs}-gate-baseline" / "workspace"))
    return {change.folder: _opened(site, number, change) for number, change in enumerate(CHANGES, 1)}


def _opened(site: Site, number: int, change: Change) -> dict[str, str]:
    world = site.world
    prompt = (EXAMPLE / "prompt.txt").read_text(encoding="utf-8")
    assert change.old in prompt
    changed = prompt.replace(change.old, change.new)
    head, merge = world.repository.pull_request(number, change.title, prompt__txt=changed)
    pull = world.fake.add_pull(number, head, updated_at="2026-01-01T00:00:00Z")
    payload = {"action": "opened", "pull_request": pull}
    walked = _walk(site, "pull_request", payload, f"refs/pull/{number}/merge", merge)
    assert walked.jobs["gate / check"] == change.check, walked.log
    results = world.folder / f"run-{site.runs}-gate-check" / "workspace" / "gate-results"
    [comment] = world.comments(number)
    return {
        "change.diff": git(world.repository.work, "diff", f"{head}^", head) + "\n",
        "comment.md": comment + "\n",
        "summary.md": walked.gates["gate / check"].summary,
        "report.html": (results / "report.html").read_text(encoding="utf-8"),
    }


def _walk(site: Site, event: str, payload: dict[str, Any], ref: str, sha: str) -> Walked:
    workflow = yaml.safe_load((EXAMPLE / ".github/workflows/gate.yml").read_text(encoding="utf-8"))
    return site.walk(workflow, event, payload, ref, sha)


def steady(text: str) -> str:
    """The text without what differs from run to run: times, and the names of records."""
    return without_times(re.sub(r"\d{8}T\d{6}-([0-9a-f]{40})-[0-9a-f]{12}", r"TIME-\1-DIGEST", text))
