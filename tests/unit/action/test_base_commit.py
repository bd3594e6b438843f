"""The base of a change in real repositories, shallow ones included."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gate.action.base_commit import base_of, branch_tip, measured_base
from gate.errors import ConfigError
from gate.hosts.events import Activity, BaseKind, Mode
from gate.system.git import Git

ENVIRONMENT = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "x@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(folder: Path, *arguments: str, day: int = 1) -> str:
    date = f"2026-01-{day:02}T00:00:00Z"
    environment = {**ENVIRONMENT, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    done = subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, name: str, day: int = 1) -> str:
    (folder / name).write_text(name)
    git(folder, "add", name)
    git(folder, "commit", "-q", "-m", name, day=day)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def origin(tmp_path: Path, template: Path) -> Path:
    """A copy of the template that a test may change."""
    return Path(shutil.copytree(template, tmp_path / "origin"))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """main: one, two, three; change from two with a commit of its own; a merge of it into main at refs/pull/1/merge."""
    folder = tmp_path_factory.mktemp("template")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    commit(folder, "one")
    commit(folder, "two")
    git(folder, "checkout", "-q", "-b", "change")
    commit(folder, "mine")
    git(folder, "checkout", "-q", "main")
    commit(folder, "three")
    git(folder, "checkout", "-q", "-b", "merging")
    git(folder, "merge", "-q", "--no-ff", "--no-edit", "change")
    git(folder, "update-ref", "refs/pull/1/merge", "HEAD")
    git(folder, "checkout", "-q", "main")
    git(folder, "branch", "-q", "-D", "merging")
    return folder


def checkout(origin: Path, ref: str, *, depth: int | None = 1) -> Git:
    """A clone as actions/checkout makes it: one ref, detached, no branches."""
    folder = origin.parent / "clone"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "remote", "add", "origin", origin.as_uri())
    limit = [] if depth is None else [f"--depth={depth}"]
    git(folder, "fetch", "-q", "--no-tags", *limit, "origin", ref)
    git(folder, "checkout", "-q", "--detach", "FETCH_HEAD")
    return Git(folder, environment=ENVIRONMENT)


def at(origin: Path, revision: str) -> str:
    return git(origin, "rev-parse", f"{revision}^{{commit}}")


def activity(base: BaseKind, **parts: str | None) -> Activity:
    return Activity(Mode.RUN, "", base=base, default_branch="main", **parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("depth", [1, 2, None])
def test_a_pull_request_is_measured_against_the_first_parent_of_its_merge(origin: Path, depth: int | None) -> None:
    clone = checkout(origin, "refs/pull/1/merge", depth=depth)
    asked = activity(BaseKind.PARENT, head=at(origin, "change"), base_commit=at(origin, "main~1"))
    assert base_of(asked, clone) == at(origin, "main"), "the payload's base is older than what was merged into"


@pytest.mark.parametrize("depth", [1, None])
def test_a_checkout_of_the_change_itself_is_measured_against_its_fork_point(origin: Path, depth: int | None) -> None:
    clone = checkout(origin, "change", depth=depth)
    asked = activity(BaseKind.PARENT, head=at(origin, "change"), base_commit=at(origin, "main"))
    assert base_of(asked, clone) == at(origin, "main~1")


def test_a_merge_of_something_else_is_not_the_pull_requests(origin: Path) -> None:
    """The change ends in a merge of its own, whose first parent is not the base."""
    git(origin, "checkout", "-q", "change")
    git(origin, "merge", "-q", "--no-ff", "--no-edit", "main")
    git(origin, "checkout", "-q", "main")
    clone = checkout(origin, "change")
    asked = activity(BaseKind.PARENT, head=at(origin, "change"), base_commit=at(origin, "main"))
    assert base_of(asked, clone) == at(origin, "main")


@pytest.mark.parametrize("depth", [1, None])
def test_a_merge_group_is_measured_against_the_commit_named(origin: Path, depth: int | None) -> None:
    clone = checkout(origin, "refs/pull/1/merge", depth=depth)
    base = at(origin, "main")
    assert base_of(activity(BaseKind.COMMIT, base_commit=base), clone) == base
    assert clone.resolve(base) == base


def test_a_push_is_measured_against_what_was_there_before(origin: Path) -> None:
    clone = checkout(origin, "main")
    assert base_of(activity(BaseKind.BEFORE, base_commit=at(origin, "main~2")), clone) == at(origin, "main~2")


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        (["main"], "main"),  # what the change was merged into
        (["main~1"], "main~1"),
        (["main~2"], "main~1"),  # from before the change began
        (["change"], "main~1"),  # not of the branch
        (["main", "main~1"], "main~1"),  # two suites that say two things
        ([None], "main~1"),
        ([], "main~1"),
    ],
)
def test_the_base_that_an_untrusted_run_names_is_of_the_branch(
    origin: Path, claims: list[str | None], expected: str
) -> None:
    clone = checkout(origin, "refs/pull/1/merge", depth=None)
    named = [claim and at(origin, claim) for claim in claims]
    found = measured_base(clone, named, at(origin, "main~1"), at(origin, "main"))
    assert found == at(origin, expected)


def test_a_forced_push_is_measured_against_its_first_parent(origin: Path) -> None:
    clone = checkout(origin, "main")
    assert base_of(activity(BaseKind.BEFORE, base_commit=at(origin, "change")), clone) == at(origin, "main~1")


def test_a_first_push_has_nothing_before_it(origin: Path) -> None:
    clone = checkout(origin, "refs/heads/main", depth=None)
    git(clone.root, "checkout", "-q", "HEAD~2")
    assert base_of(activity(BaseKind.BEFORE, base_commit="0" * 40), clone) is None


@pytest.mark.parametrize("depth", [1, None])
def test_a_new_branch_is_measured_against_its_fork_point(origin: Path, depth: int | None) -> None:
    clone = checkout(origin, "change", depth=depth)
    assert base_of(activity(BaseKind.MERGE_BASE), clone) == at(origin, "main~1")


def test_the_default_branch_itself_is_measured_against_its_first_parent(origin: Path) -> None:
    assert base_of(activity(BaseKind.MERGE_BASE), checkout(origin, "main")) == at(origin, "main~1")


def test_a_release_is_measured_against_the_one_before(origin: Path) -> None:
    for day, (tag, revision) in enumerate([("v1", "main~2"), ("v2", "main~1"), ("v3", "main"), ("v9", "change")], 2):
        git(origin, "tag", "-a", tag, "-m", tag, revision, day=day)
    clone = checkout(origin, "main", depth=None)
    git(clone.root, "fetch", "-q", "--tags")
    assert base_of(activity(BaseKind.PREVIOUS_RELEASE, tag="v3"), clone) == at(origin, "v2"), "v9 is on another branch"


@pytest.mark.parametrize(
    ("earlier", "middle", "tag", "expected"),
    [
        ("v1", "v2-rc1", "v2", 2),  # a candidate may have failed: what is out is v1
        ("v1.0.0", "v1.1.0rc2", "v1.1.0", 2),
        ("v1.0.0", "v1.1.0-beta.1", "v1.1.0-beta.2", 2),
        ("v1.0.0", "v1.0.0.post1", "v1.1.0", 1),
        ("v1.0.0", "tools-v9.0.0", "v1.1.0", 2),  # another package's
        ("agent-v1.0.0", "v5.0.0", "agent-v1.1.0", 2),
        ("spring", "summer", "autumn", 1),  # no versions: the nearest
    ],
)
def test_the_previous_release_is_what_is_out(origin: Path, earlier: str, middle: str, tag: str, expected: int) -> None:
    for day, (name, revision) in enumerate([(earlier, "main~2"), (middle, "main~1"), (tag, "main")], 2):
        git(origin, "tag", "-a", name, "-m", name, revision, day=day)
    clone = checkout(origin, "main", depth=None)
    git(clone.root, "fetch", "-q", "--tags")
    assert base_of(activity(BaseKind.PREVIOUS_RELEASE, tag=tag), clone) == at(origin, f"main~{expected}")


def test_a_second_tag_of_one_commit_is_no_earlier_release(origin: Path) -> None:
    git(origin, "tag", "-a", "v1", "-m", "v1", "main~1", day=2)
    git(origin, "tag", "-a", "v2-rc1", "-m", "rc", "main", day=3)
    clone = checkout(origin, "main", depth=None)
    git(clone.root, "fetch", "-q", "--tags")
    assert base_of(activity(BaseKind.PREVIOUS_RELEASE, tag="v2"), clone) == at(origin, "v1")


def test_a_first_release_has_none_before(origin: Path) -> None:
    assert base_of(activity(BaseKind.PREVIOUS_RELEASE, tag="v1"), checkout(origin, "main", depth=None)) is None


def test_a_release_in_a_shallow_clone_says_what_to_do(origin: Path) -> None:
    with pytest.raises(ConfigError, match="fetch-depth: 0"):
        base_of(activity(BaseKind.PREVIOUS_RELEASE, tag="v1"), checkout(origin, "main"))


def test_a_remote_that_is_away_says_what_to_do(origin: Path) -> None:
    clone = checkout(origin, "main")
    git(clone.root, "remote", "set-url", "origin", "file:///nowhere")
    with pytest.raises(ConfigError, match="fetch-depth: 0"):
        base_of(activity(BaseKind.BEFORE, base_commit=at(origin, "main~1")), clone)


def test_no_repository_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="actions/checkout"):
        base_of(activity(BaseKind.MERGE_BASE), Git(tmp_path, environment=ENVIRONMENT))


def test_finding_the_base_moves_no_ref(origin: Path) -> None:
    clone = checkout(origin, "change")
    before = git(clone.root, "for-each-ref"), git(clone.root, "status", "--porcelain")
    base_of(activity(BaseKind.MERGE_BASE), clone)
    assert (git(clone.root, "for-each-ref"), git(clone.root, "status", "--porcelain")) == before
    assert not (clone.root / ".git" / "FETCH_HEAD").read_text().startswith(at(origin, "main"))


def test_a_ref_whose_name_ends_as_the_branchs_is_not_the_branch(origin: Path) -> None:
    """The remote lists both for one name, and the other first."""
    git(origin, "update-ref", "refs/a/refs/heads/main", at(origin, "change"))
    assert branch_tip(checkout(origin, "change"), "main") == at(origin, "main")
