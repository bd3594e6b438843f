"""Finds the commit that a change is measured against, from the event and the repository."""

from __future__ import annotations

from collections.abc import Iterable

from gate.baselines.ledger import is_candidate, series_of
from gate.errors import ConfigError
from gate.hosts.events import Activity, BaseKind
from gate.model.defaults import REMOTE
from gate.system.git import HINT_HISTORY, Git, GitError

HINT_CHECKOUT = "run actions/checkout before this step, and install git before that, or it makes no repository"
HISTORY = 200
"""Commits to fetch into a shallow clone."""


def base_of(activity: Activity, git: Git) -> str | None:
    """Return the id of the base commit; None if there is nothing earlier, as for a first commit or a first release.

    Fetches missing history into a shallow clone; moves no ref.

    Raises:
        ConfigError: history is missing and could not be fetched.
    """
    head = git.head()
    if head is None:
        what = "the repository has no commit" if git.program else "git is not installed"
        raise ConfigError(what, where=str(git.root), hint=HINT_CHECKOUT)
    try:
        if git.is_shallow() and activity.base is not BaseKind.PREVIOUS_RELEASE:
            git.fetch(head, remote=REMOTE, depth=HISTORY)
        return _find(activity, git, head)
    except GitError as error:
        raise ConfigError(
            f"the commit to measure against cannot be found: {error.what}", where=str(git.root), hint=HINT_HISTORY
        ) from error


def fork_point(git: Git, head: str, branch: str) -> str | None:
    """Return the merge base of a pull request's head and its base branch. Fetches their history; checks nothing out."""
    try:
        _present(head, git)
        return _common(git, head, _tip(branch, git))
    except GitError as error:
        raise ConfigError(f"the fork point cannot be found: {error.what}", where=str(git.root)) from error


def measured_base(git: Git, claims: Iterable[str | None], since: str | None, tip: str) -> str | None:
    """Return the commit that an untrusted run claims to have compared its change with.

    That is the branch as it was when GitHub merged the change into it. A claim counts if the branch has that commit
    between ``since``, where the change began, and its ``tip``; otherwise return ``since``: so it gains nothing over a
    change that begins there.
    """
    claimed = set(claims)
    if since is None or len(claimed) != 1:
        return since
    [claim] = claimed
    if claim not in git.first_parents(tip, HISTORY) or not git.is_ancestor(since, claim):
        return since
    return claim


def branch_tip(git: Git, branch: str) -> str:
    """Fetch the remote branch and return its commit; nothing is checked out. Raises `ConfigError` if there is none."""
    try:
        tip = _tip(branch, git)
    except GitError as error:
        raise ConfigError(f"the base branch cannot be found: {error.what}", where=str(git.root)) from error
    if tip is None:
        raise ConfigError(f"the base branch {branch!r} no longer exists", where=str(git.root))
    return tip


def same_file(git: Git, path: str, one: str, other: str) -> bool:
    """True if a file, by its path in the repository, is the same in two commits; False if it cannot be fetched."""
    try:
        for commit in (one, other):
            _present(commit, git)
        blobs = {git.ask("rev-parse", "--verify", "--quiet", f"{commit}:{path}") for commit in (one, other)}
    except GitError:
        return False
    return len(blobs) == 1 and None not in blobs


def _find(activity: Activity, git: Git, head: str) -> str | None:
    match activity.base:
        case BaseKind.COMMIT:
            return _present(activity.base_commit, git)
        case BaseKind.PARENT:
            return _parent_of_merge(activity, git, head)
        case BaseKind.BEFORE:
            before = activity.base_commit
            if before and git.is_ancestor(before, head):
                return before
            return _first_parent(git, head)
        case BaseKind.MERGE_BASE:
            common = _common(git, head, _tip(activity.default_branch, git))
            if common == head:
                return _first_parent(git, head)
            return common
        case BaseKind.PREVIOUS_RELEASE:
            return _previous_release(activity, git, head)


def _present(commit: str | None, git: Git) -> str | None:
    if commit and git.resolve(commit) is None:
        git.fetch(commit, remote=REMOTE, depth=HISTORY)
    return commit


def _parent_of_merge(activity: Activity, git: Git, head: str) -> str | None:
    """Return the parent of GitHub's merge of the change into its base, or the fork point if there is no such merge."""
    parents = git.parents(head)
    if len(parents) == 2 and parents[1] == activity.head:
        return parents[0]
    return _common(git, head, _present(activity.base_commit, git))


def _common(git: Git, head: str, other: str | None) -> str | None:
    """Return the merge base of two commits; None if there is no other commit."""
    if not other:
        return None
    return git.common_history(head, other, remote=REMOTE)


def _first_parent(git: Git, head: str) -> str | None:
    parents = git.parents(head)
    return parents[0] if parents else None


def _tip(branch: str | None, git: Git) -> str | None:
    """Fetch the remote branch and return its commit: a checkout of one branch does not have any other."""
    return git.remote_tip(branch, depth=HISTORY) if branch else None


def _previous_release(activity: Activity, git: Git, head: str) -> str | None:
    """Return the nearest earlier tag of the same series; never a release candidate, which may have failed."""
    own = series_of(activity.tag or "")
    for name, commit in git.tags(merged=head):
        if name == activity.tag or commit == head:
            continue
        if own is None or (series_of(name) == own and not is_candidate(name)):
            return commit
    if git.is_shallow():
        raise ConfigError("earlier releases are not in this shallow clone", where=str(git.root), hint=HINT_HISTORY)
    return None
