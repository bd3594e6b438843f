"""The position of the work tree in its history: HEAD, the commit that it is measured against, and earlier commits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

from gate.config.load import Config
from gate.errors import ConfigError
from gate.system.git import Git, GitError

SHALLOW = "the clone is shallow: older baselines cannot be found (use fetch-depth: 0, on GitLab GIT_DEPTH: 0)"
NO_GIT = "git is not installed (no program of that name in PATH), so commits are not known"
"""The note for a folder inside a repository when git is missing."""
NO_DEFAULT_BRANCH = (
    "the default branch is not known here, so this commit is compared with the one before it: `--against` names another"
)
SEARCHED = 200
"""The most first-parent ancestors to search."""
REPORTS = "gate-results"
"""The folder of reports and records that later steps read; the action writes it and the guides name it."""


class GitContext(Struct, frozen=True):
    """The position of the work tree in its history."""

    head: str | None = None
    dirty: bool = False
    base: str | None = None
    """The commit that the change is measured against."""
    ancestors: tuple[str, ...] = ()
    """The base and its first-parent ancestors, nearest first."""
    note: str = ""
    anchored: bool = False
    """True to compare with the anchor too: on the default branch, and for a release."""
    release: str = ""
    """The tag to be released; empty if this is no release."""
    is_cut: bool = False
    """True if further ancestors may exist that a shallow clone lacks."""
    subject: str = ""
    """First line of the commit's message."""
    branch: str = ""
    """The branch that is checked out; empty if HEAD is detached."""


def changed_files(config: Config, git: Git, written: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the user's files that differ from HEAD; ``written``: files that a run creates, relative to the root."""
    if not git.is_repository():
        return ()
    return tuple(git.changed(exclude=(*own_places(config), *written)))


def own_places(config: Config) -> tuple[str, ...]:
    """Return the files and folders, relative to the root, that the gate itself writes."""
    return (config.file.output, config.file.baseline.folder, REPORTS)


def git_context(
    config: Config,
    git: Git,
    written: Sequence[str] = (),
    *,
    changed: Sequence[str] | None = None,
    anchored: bool | None = None,
    release: str = "",
) -> GitContext:
    """Return the position of the work tree in its history.

    The base is ``baseline.against`` if given, else the merge base with the default branch. On that branch itself it is
    the commit before HEAD, or HEAD while the work tree differs from it. ``changed`` is the result of `changed_files`,
    if called before something was installed here. ``anchored`` None: True for a clean commit of the default branch.
    """
    if not git.is_repository():
        if config.file.baseline.against is not None:
            raise ConfigError(
                f"{config.file.baseline.against!r} names a commit, but this is not a git repository",
                where=config.place_of("baseline", "against"),
                hint="remove it to compare with the stored baseline",
            )
        why = NO_GIT if git.is_out_of_reach() else "not a git repository"
        return GitContext(note=f"{why}: the last saved baseline is used", release=release)
    head = git.head()
    dirty = bool(changed_files(config, git, written) if changed is None else changed)
    tip = _default_tip(git, config.file.baseline.remote)
    base = _base(config, git, head, dirty, tip)
    if anchored is None:
        anchored = bool(release) or bool(head and tip and not dirty and git.is_ancestor(head, tip))
    ancestors = _ancestors(git, base, config.file.baseline.remote)
    is_cut = head is not None and len(ancestors) < SEARCHED and git.is_shallow()
    note = ""
    if is_cut:
        note = SHALLOW
    elif tip is None and base not in (None, head) and config.file.baseline.against is None:
        note = NO_DEFAULT_BRANCH
    subject = git.subject(head) if head else ""
    return GitContext(head, dirty, base, ancestors, note, anchored, release, is_cut, subject, git.branch())


def _base(config: Config, git: Git, head: str | None, dirty: bool, tip: str | None) -> str | None:
    """Return the commit that the change is measured against (see `git_context`); ``tip`` is the default branch's."""
    against, remote = config.file.baseline.against, config.file.baseline.remote
    if against is not None:
        found = git.resolve(against) or git.resolve(f"{remote}/{against}") or _remote_tip(git, against, remote)
        if found is None:
            place = config.place_of("baseline", "against")
            raise ConfigError(f"no commit {against!r} here", where=place, hint="fetch it first")
        return found
    if head is None:
        return None
    if tip is not None:
        common = _merge_base(git, head, tip, remote)
        if common not in (None, head):
            return common
    if dirty:
        return head
    parents = git.parents(head)
    if not parents and git.is_shallow():  # they may be beyond its edge
        with suppress(GitError):
            git.fetch(head, remote=remote, depth=SEARCHED + 1)
        parents = git.parents(head)
    return parents[0] if parents else None


def _ancestors(git: Git, base: str | None, remote: str) -> tuple[str, ...]:
    """Return the base and its first-parent ancestors, nearest first, fetching those that a shallow clone lacks."""
    if base is None:
        return ()
    found = git.first_parents(base, SEARCHED)
    if len(found) < SEARCHED and git.is_shallow():
        with suppress(GitError):
            git.fetch(base, remote=remote, depth=SEARCHED)
        found = git.first_parents(base, SEARCHED)
    return tuple(found)


def _merge_base(git: Git, head: str, tip: str, remote: str) -> str | None:
    """Return the merge base, fetching more history of a shallow clone if possible; None if it is unknown."""
    try:
        return git.common_history(head, tip, remote=remote)
    except GitError:
        return None


def _default_tip(git: Git, remote: str) -> str | None:
    """Return the default branch's newest commit, fetched if the clone has only other branches; without a remote, that
    of the local main or master."""
    branch = git.default_branch(remote)
    for name in [f"remotes/{remote}/{branch}", f"heads/{branch}"] if branch else ["heads/main", "heads/master"]:
        found = git.resolve(f"refs/{name}")
        if found is not None:
            return found
    return _remote_tip(git, branch, remote) if branch is not None else None


def _remote_tip(git: Git, branch: str, remote: str) -> str | None:
    """Return the newest commit of a branch that the clone may lack, fetched; None if the remote has none."""
    try:
        return git.remote_tip(branch, remote=remote, depth=SEARCHED)
    except GitError:
        return None
