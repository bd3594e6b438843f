"""Events on a repository, each from the commit to what the step left; shared by the action's and the image's tests."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.github.fake_github import FakeGitHub
from tests.integration.github.job import Done, Launch, Repository, Step, git, run


@dataclass
class World:
    """A repository on a fake GitHub, whose steps are started one way or another."""

    folder: Path
    fake: FakeGitHub
    launch: Launch
    template: Path | None = None
    """The folder of the repository to begin with; none: an empty one."""
    count: int = 0

    def __post_init__(self) -> None:
        self.repository = Repository(self.folder / "repository", self.template)

    @property
    def tip(self) -> str:
        return git(self.repository.remote, "rev-parse", self.repository.branch)

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.repository.branch}"

    def rename(self, branch: str) -> None:
        """Gives the default branch another name; runs keep the one that they ran under."""
        self.repository.rename(branch)
        self.fake.branch = branch

    def step(self, event: str, payload: dict[str, Any], ref: str, sha: str, **changes: Any) -> Done:
        self.count += 1
        root = self.folder / f"job-{self.count}"
        depth = changes.pop("depth", 1)
        self.repository.checkout(root / "workspace", ref, depth=depth)
        self.last = Step(root, event, payload | {"repository": self._about()}, ref, sha, **changes)
        return run(self.last, self.fake, self.launch)

    def push(self, behaviour: str = "good", **changes: Any) -> Done:
        """A commit on the default branch, and its job."""
        files = changes.pop("files", {})
        before = changes.pop("before", "0" * 40)
        sha = self.repository.commit(behaviour, **files)
        payload = {"ref": self.ref, "before": before, "after": sha, "deleted": False}
        return self.step("push", payload, self.ref, sha, **changes)

    def pull_request(self, behaviour: str, number: int = 1, *, fork: bool = False, **changes: Any) -> Done:
        """A pull request with one commit, and its job on the merge commit."""
        files = changes.pop("files", {})
        event = changes.pop("event", "pull_request")
        head, merge = self.repository.pull_request(number, behaviour, **files)
        owner = "mallory/agents" if fork else self.fake.repository
        pull = self.fake.add_pull(number, head, head_repository=owner, updated_at="2026-01-01T00:00:00Z")
        if fork:
            changes.setdefault("inputs", {"token": "reader"})
        return self.step(
            event, {"action": "synchronize", "pull_request": pull}, f"refs/pull/{number}/merge", merge, **changes
        )

    def measure(self, run: int, behaviour: str = "good", **changes: Any) -> Done:
        """`push`, on top of what is there; the job's results are its artifact."""
        if "before" not in changes:
            changes["before"] = self.tip
        done = self.push(behaviour, **{"depth": 0, "environment": {"GITHUB_RUN_ID": str(run)}, **changes})
        self.upload(run, self.tip, "push")
        return done

    def queue(self, behaviour: str, number: int = 1, *, behind: str = "", **changes: Any) -> tuple[Done, str]:
        """A pull request in the merge queue: its commit on a branch of the queue's, and its job.

        It is on the tip, or ``behind`` the commit of another in the queue.
        """
        base = behind or self.tip
        head, group = self.repository.pull_request(number, behaviour, onto=base)
        self.fake.add_pull(number, head)
        ref = f"refs/heads/gh-readonly-queue/{self.repository.branch}/pr-{number}-{base}"
        git(self.repository.work, "push", "-q", "origin", f"{group}:{ref}")
        about = {"head_sha": group, "head_ref": ref, "base_sha": base, "base_ref": self.ref}
        payload = {"action": "checks_requested", "merge_group": about}
        return self.step("merge_group", payload, ref, group, **changes), group

    def leave_queue(self, group: str, **changes: Any) -> Done:
        """The queued commit becomes the default branch's, and that one's job runs."""
        before = self.tip
        git(self.repository.work, "push", "-q", "origin", f"{group}:{self.ref}")
        payload = {"ref": self.ref, "before": before, "after": group, "deleted": False}
        return self.step("push", payload, self.ref, group, **changes)

    def upload(
        self, run: int, head: str, event: str, archive: bytes | None = None, *, name: str = "gate-results", **parts: Any
    ) -> None:
        """Ends a run, or another of its jobs: the results, by default those of the last step, are its artifact."""
        known = next((one for one in self.fake.runs if one["id"] == run), None)
        about = known or self.fake.add_run(run, head, event, **parts)
        origin = {"head_sha": head, "head_repository_id": about["head_repository"]["id"]}
        content = archive_of(self.last.workspace) if archive is None else archive
        self.fake.add_artifact(run, name, content, workflow_run=origin)

    def merge(self, number: int = 1, *, files: dict[str, str] | None = None, **changes: Any) -> Done:
        """A pull request becomes a commit of the default branch, and that one's job runs."""
        before = self.tip
        sha = self.repository.merge(number, **(files or {}))
        closed = {"state": "closed", "merged_at": "2026-01-03T00:00:00Z", "merge_commit_sha": sha}
        self.fake.pulls[number] |= closed
        payload = {"ref": self.ref, "before": before, "after": sha, "deleted": False}
        changes = {"environment": {"GITHUB_RUN_ID": "300"}, **changes}
        return self.step("push", payload, self.ref, sha, **changes)

    def _about(self) -> dict[str, Any]:
        return {"full_name": self.fake.repository, "default_branch": self.repository.branch}

    def comments(self, number: int = 1) -> list[str]:
        return [comment["body"] for comment in self.fake.comments.get(number, [])]


def archive_of(workspace: Path) -> bytes:
    """What actions/upload-artifact makes of the results: hidden files are left out."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((workspace / "gate-results").iterdir()):
            if not path.name.startswith("."):
                archive.write(path, path.name)
    return stream.getvalue()


def report(
    world: World,
    content: bytes | None = None,
    number: int = 1,
    change: Callable[[], object] = lambda: None,
    *,
    environment: dict[str, str] | None = None,
    conclusion: str = "success",
) -> Done:
    """The job that the completed run of a fork's pull request starts; its artifact is what the last step left.

    ``change`` is what happens between the two.
    """
    head = world.fake.pulls[number]["head"]
    archive = archive_of(world.last.workspace) if content is None else content
    world.fake.add_artifact(
        100, "gate-results", archive, workflow_run={"head_sha": head["sha"], "head_repository_id": 99}
    )
    run = {
        "id": 100,
        "run_attempt": 1,
        "event": "pull_request",
        "conclusion": conclusion,
        "head_sha": head["sha"],
        "head_branch": head["ref"],
        "head_repository": {"full_name": head["repo"]["full_name"], "id": 99},
        "created_at": "2026-01-01T00:00:00Z",
    }
    sha = world.tip
    payload = {"action": "completed", "workflow_run": run}
    change()
    environment = {"GITHUB_RUN_ID": "101", **(environment or {})}
    return world.step("workflow_run", payload, world.ref, sha, environment=environment)
