"""Maps a GitHub event to the gate's activity. Knows only events; reads no environment, git or network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

T = TypeVar("T")

ACCEPT_LABEL = "gate:accept"
"""The label that accepts a regression of a pull request."""
ZERO_SHA = "0" * 40
"""GitHub's id for a missing commit: before a branch was created or after it was deleted."""


class Mode(str, Enum):
    """The activity of the gate on an event."""

    RUN = "run"
    """Evaluate, compare with the baseline, report."""
    RECORD = "record"
    """Like RUN, and save a complete record as the baseline of the commit."""
    RELEASE = "release"
    """Like RUN, against the record of the previous release."""
    REPORT = "report"
    """Publish the measurement of an untrusted job; run no code of the change."""
    REFUSED = "refused"
    """Do nothing: measuring would be unsafe or pointless."""


class BaseKind(str, Enum):
    """The way to find the commit that the change is measured against."""

    PARENT = "parent"
    """The first parent of the merge commit that was checked out; else the merge base with ``base_commit``."""
    COMMIT = "commit"
    """``base_commit`` itself."""
    BEFORE = "before"
    """``base_commit`` if it is an ancestor of the head; else the head's first parent."""
    MERGE_BASE = "merge_base"
    """The merge base with the default branch."""
    PREVIOUS_RELEASE = "previous_release"
    """The nearest release tag before ``tag``."""


class Activity(Struct, frozen=True):
    """The activity, with its commit, references and person."""

    mode: Mode
    reason: str
    """One sentence; for REFUSED, the error shown to the user."""
    hint: str = ""
    """For REFUSED: what to change."""
    head: str | None = None
    """The commit that a reviewer sees: the head of a pull request, not the moving merge commit."""
    base: BaseKind = BaseKind.PARENT
    base_commit: str | None = None
    tag: str | None = None
    pull_request: int | None = None
    comments: bool = False
    """True if the run measures the pull request's head, so that the result belongs on it."""
    is_fork: bool = False
    """True if the change comes from another repository: no secrets, and a read-only token."""
    default_branch: str | None = None
    onto: str | None = None
    """The target branch of the change, if the event names it."""
    labelled: Labelled | None = None
    """The label that this event added to ``head``; None if it added none."""
    run: MeasuringRun | None = None
    """For REPORT: the run that measured."""


class Labelled(Struct, frozen=True):
    """A label, as the event that added it describes it."""

    name: str
    by: str
    """The login of the person who set the label."""


class MeasuringRun(Struct, frozen=True):
    """A workflow run that measured: the one whose completion started this one, or an earlier one, in GitHub's terms."""

    id: int
    attempt: int
    head: str
    head_branch: str
    head_repository: str
    """``owner/name``; empty if the fork was deleted."""
    head_repository_id: int
    unmeasured: str = ""
    """The reason why it measured nothing, in GitHub's words: nobody is to be told of a failure then."""


def activity(payload: Mapping[str, Any], environment: Mapping[str, str]) -> Activity:
    """Return the gate's activity for the event that the environment names. Never raises: an unknown event is
    REFUSED."""
    event = environment.get("GITHUB_EVENT_NAME", "")
    if event in _UNSAFE:
        return _refused(*_UNSAFE[event])
    decide = _SUPPORTED.get(event)
    if decide is None:
        return _refused(f"the event {event!r} is not one that the gate knows", "use " + ", ".join(sorted(_SUPPORTED)))
    try:
        return decide(payload, environment)
    except _PayloadError as error:
        return _refused(f"the payload of {event!r} lacks {error}", "was the step run by GitHub Actions?")


class _PayloadError(Exception):
    """The payload lacks a field that the event always has; the message names it."""


def _pull_request(payload: Mapping[str, Any], _environment: Mapping[str, str]) -> Activity:
    action = payload.get("action")
    if action == "closed":
        return _refused("a closed pull request has nothing left to gate", "remove `closed` from the event's `types`")
    number = _need(payload, int, "pull_request", "number")
    head = _need(payload, str, "pull_request", "head", "sha")
    base_repository = _need(payload, str, "pull_request", "base", "repo", "full_name")
    head_repository = value_at(payload, "pull_request", "head", "repo", "full_name")  # null if the fork was deleted
    is_fork = head_repository != base_repository
    labelled = None
    if action == "labeled":
        labelled = Labelled(_need(payload, str, "label", "name"), _need(payload, str, "sender", "login"))
    return Activity(
        Mode.RUN,
        f"pull request #{number}" + (f" from {head_repository or 'a deleted fork'}" if is_fork else ""),
        head=head,
        base=BaseKind.PARENT,
        base_commit=_need(payload, str, "pull_request", "base", "sha"),
        pull_request=number,
        comments=True,
        is_fork=is_fork,
        default_branch=_default_branch(payload),
        onto=_need(payload, str, "pull_request", "base", "ref"),
        labelled=labelled,
    )


def _merge_group(payload: Mapping[str, Any], _environment: Mapping[str, str]) -> Activity:
    if payload.get("action") != "checks_requested":
        return _refused("the merge group is gone", "subscribe to `merge_group: {types: [checks_requested]}`")
    ref = _need(payload, str, "merge_group", "head_ref")
    return Activity(
        Mode.RUN,
        f"merge group {ref.removeprefix('refs/heads/')}",
        head=_need(payload, str, "merge_group", "head_sha"),
        base=BaseKind.COMMIT,
        base_commit=_need(payload, str, "merge_group", "base_sha"),
        pull_request=_queued_pull_request(ref),
        default_branch=_default_branch(payload),
        onto=_need(payload, str, "merge_group", "base_ref").removeprefix("refs/heads/"),
    )


def _queued_pull_request(ref: str) -> int | None:
    """Return the last pull request of a merge group, from ``…/pr-12-0a1b…``; a group names no other."""
    for part in reversed(ref.split("/")):
        words = part.split("-")
        if len(words) == 3 and words[0] == "pr" and words[1].isascii() and words[1].isdigit():
            return int(words[1])
    return None


def _push(payload: Mapping[str, Any], environment: Mapping[str, str]) -> Activity:
    ref = _need(payload, str, "ref")
    after = _need(payload, str, "after")
    if payload.get("deleted") or after == ZERO_SHA:
        return _refused(
            f"{ref} was deleted: there is nothing to measure", "limit the event to branches or tags that stay"
        )
    if ref.startswith("refs/tags/"):
        return _release_of(ref.removeprefix("refs/tags/"), environment.get("GITHUB_SHA") or after, payload)
    before = _need(payload, str, "before")
    branch = ref.removeprefix("refs/heads/")
    default = _default_branch(payload)
    made = Activity(Mode.RUN, f"push to {branch}", head=after, base=BaseKind.MERGE_BASE, default_branch=default)
    if branch != default:  # the commit before was pushed by the same people: its rules bind nobody
        return made
    made = replace(made, mode=Mode.RECORD)
    if before == ZERO_SHA:
        return made
    return replace(made, base=BaseKind.BEFORE, base_commit=before)


def _on_demand(payload: Mapping[str, Any], environment: Mapping[str, str]) -> Activity:
    """Return the activity for dispatches and schedules: measure the commit of the ref again."""
    ref, sha = environment.get("GITHUB_REF", ""), environment.get("GITHUB_SHA", "")
    if ref.startswith("refs/tags/"):
        return _release_of(ref.removeprefix("refs/tags/"), sha, payload)
    branch = ref.removeprefix("refs/heads/")
    default = value_at(payload, "repository", "default_branch")
    made = Activity(Mode.RUN, f"measured on demand on {branch}", head=sha, default_branch=default or branch)
    if default is None or branch == default:  # a schedule runs on it, and may not name it
        return replace(made, mode=Mode.RECORD, base=BaseKind.COMMIT, base_commit=sha)
    return replace(made, base=BaseKind.MERGE_BASE)


def _release(payload: Mapping[str, Any], environment: Mapping[str, str]) -> Activity:
    action = payload.get("action")
    if action not in ("published", "created", "prereleased", "released"):
        return _refused(
            f"a release that was {action} has nothing to gate", "subscribe to `release: {types: [created]}`"
        )
    return _release_of(_need(payload, str, "release", "tag_name"), environment.get("GITHUB_SHA", ""), payload)


def _release_of(tag: str, sha: str, payload: Mapping[str, Any]) -> Activity:
    return Activity(
        Mode.RELEASE,
        f"release {tag}",
        head=sha,
        base=BaseKind.PREVIOUS_RELEASE,
        tag=tag,
        default_branch=value_at(payload, "repository", "default_branch"),
    )


def _workflow_run(payload: Mapping[str, Any], _environment: Mapping[str, str]) -> Activity:
    if payload.get("action") != "completed":
        return _refused("the run has not completed", "subscribe to `workflow_run: {types: [completed]}`")
    cause = _need(payload, str, "workflow_run", "event")
    if cause != "pull_request":
        return _refused(
            f"the run was started by {cause!r}, which publishes for itself",
            "add `if: github.event.workflow_run.event == 'pull_request'` to the job",
        )
    run = MeasuringRun(
        id=_need(payload, int, "workflow_run", "id"),
        attempt=_need(payload, int, "workflow_run", "run_attempt"),
        head=_need(payload, str, "workflow_run", "head_sha"),
        head_branch=value_at(payload, "workflow_run", "head_branch") or "",
        head_repository=value_at(payload, "workflow_run", "head_repository", "full_name") or "",
        head_repository_id=value_at(payload, "workflow_run", "head_repository", "id") or 0,
        unmeasured=_NOT_MEASURED.get(str(value_at(payload, "workflow_run", "conclusion")), ""),
    )
    own = _need(payload, str, "repository", "full_name")
    return Activity(
        Mode.REPORT,
        f"report of run {run.id}",
        head=run.head,
        base=BaseKind.MERGE_BASE,
        comments=True,
        is_fork=run.head_repository != own,
        default_branch=_default_branch(payload),
        run=run,
    )


_SUPPORTED: dict[str, Callable[[Mapping[str, Any], Mapping[str, str]], Activity]] = {
    "merge_group": _merge_group,
    "pull_request": _pull_request,
    "push": _push,
    "release": _release,
    "repository_dispatch": _on_demand,
    "schedule": _on_demand,
    "workflow_dispatch": _on_demand,
    "workflow_run": _workflow_run,
}
_NOT_MEASURED = {
    "cancelled": "it was cancelled",  # as by a later push or label
    "action_required": "it waits for the approval of a maintainer",
}
"""The conclusions of runs that left nothing to report. Others that left nothing have failed."""
_UNSAFE = {
    "issue_comment": (
        "issue_comment would let anyone who comments start a job that holds a token that writes and secrets",
        "use `pull_request`, or `workflow_dispatch` for a run on demand",
    ),
    "pull_request_target": (
        "pull_request_target would run untrusted code beside a token that writes and the repository's secrets",
        "use `pull_request`, and a `workflow_run` job for the comment",
    ),
}


def _refused(reason: str, hint: str) -> Activity:
    return Activity(Mode.REFUSED, reason, hint)


def _default_branch(payload: Mapping[str, Any]) -> str:
    return _need(payload, str, "repository", "default_branch")


def value_at(value: Any, *keys: str) -> Any:
    """Return the value under nested keys; None if there is none."""
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def _need(payload: Mapping[str, Any], kind: type[T], *keys: str) -> T:
    value = value_at(payload, *keys)
    if not isinstance(value, kind):
        raise _PayloadError(".".join(keys))
    return value
