"""GitHub's API: pull requests, comments, labels, artifacts; the reports provide the text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from gate.errors import PublishError, UntrustedError
from gate.hosts.artifact import MAX_ARCHIVE_BYTES
from gate.hosts.base import (
    NO_SUITE,
    Done,
    Host,
    HostOptions,
    PostComment,
    PostFailure,
    Stamp,
    failed_anew,
    failed_over,
    key_of,
    mark_of,
    says_failed,
    with_marker,
)
from gate.hosts.events import Labelled, MeasuringRun, activity, value_at
from gate.hosts.rest import Rest, RestError, unreadable

PUBLIC = "https://github.com"
COMMENT_LIMIT = 65_536
"""Maximum number of characters in an issue comment."""
MOVES = ("head_ref_force_pushed", "head_ref_deleted", "head_ref_restored")
"""Events after which the head may be an earlier commit."""
MOVED_SINCE = "it was set before the latest change; set it again"
WRITERS = ("admin", "write")
"""The permissions of someone who may accept; ``maintain`` is reported as ``write``."""
OWN_EVENTS = ("push", "schedule", "workflow_dispatch")
"""Events whose runs only people with write access start, on a commit in this repository; not those of pull requests."""
MOST_RUNS = 1_000
"""Maximum number of runs of a branch to read, whatever their workflow and repository. GitHub lists no more."""
LISTED = (300, 700)
"""Maximum number of runs of one event to read, and how many more if none counts. GitHub lists at most 1,000."""
PERMISSION_HINT = (
    "add `permissions: {contents: read, pull-requests: write}` to the job; "
    "for forks and Dependabot the `workflow_run` job comments"
)
LOCKED_HINT = "unlock it, or set `comment: false`; the summary of the run has everything"

GONE = (404, 410)
"""The status codes for a comment that was deleted, or that the token may not see."""
MOVED_ON = "no comment: the pull request has moved on to another commit"


class CannotComment(PublishError):  # noqa: N818  (named by its consequence)
    """The token may not write comments. The summary of the run has everything nevertheless."""


class NoArtifactError(UntrustedError):
    """The run has no artifact of that name, or it has expired."""


class PullRequest(Struct, frozen=True):
    number: int
    head: str
    base_branch: str
    labels: tuple[str, ...] = ()
    head_branch: str = ""
    head_repository: str = ""
    """``owner/name``; empty if the fork was deleted."""


class LabelAcceptance(Struct, frozen=True):
    """The outcome of the label that accepts a regression."""

    by: str
    at: datetime
    ignored: str = ""
    """The reason why it does not count; empty if it does."""


class Written(Struct, frozen=True):
    """A comment written by the gate."""

    id: int
    key: str
    """The key of the comment's suite."""
    stamp: Stamp
    url: str
    body: str


class GitHub:
    """One repository, accessed with one token."""

    def __init__(self, rest: Rest, repository: str, *, graphql_url: str) -> None:
        self._rest = rest
        self._repository = repository
        self._graphql_url = graphql_url
        self._login = ""

    def close(self) -> None:
        self._rest.close()

    def login(self) -> str:
        """Return the login of the token's owner, from GraphQL, because REST answers only for personal tokens."""
        if not self._login:
            query = {"query": "query { viewer { login } }"}
            answer = self._rest.send("POST", self._graphql_url, query, repeatable=True)
            login = value_at(answer, "data", "viewer", "login")
            if not isinstance(login, str) or not login:
                raise PublishError("the token belongs to nobody", where=self._graphql_url)
            self._login = login
        return self._login

    # --- pull requests ----------------------------------------------------------------------------

    def pull_request(self, number: int) -> PullRequest:
        with _readable():
            return _pull_request(self._rest.get(self._path(f"pulls/{number}")))

    def pull_request_of(self, run: MeasuringRun) -> PullRequest | None:
        """Return this repository's open pull request whose head the run measured; trusts no data from the run.

        None if it was closed, or if a later push has its own run.

        Raises:
            UntrustedError: there are several, onto different branches.
        """
        with _readable():
            found = self._open_of(self._rest.pages(self._path(f"commits/{run.head}/pulls")), run)
            if not found and run.head_repository:  # a fork's commit may be unknown here; its branch is not
                owner = run.head_repository.partition("/")[0]
                query = {"state": "open", "head": f"{owner}:{run.head_branch}"}
                found = self._open_of(self._rest.pages(self._path("pulls"), **query), run)
        if len(found) > 1:
            raise UntrustedError(
                f"{len(found)} open pull requests have the head {run.head[:12]}", where=f"run {run.id}"
            )
        return found[0] if found else None

    def _open_of(self, pulls: Iterable[Any], run: MeasuringRun) -> list[PullRequest]:
        """Return the open pull requests from the run's branch and repository with its head.

        Anybody can open one with the same commit from another branch. If there are none, return those from a branch of
        this name whose fork has been deleted.
        """
        mine, of_deleted_forks = [], []
        for listed in pulls:
            is_here = listed["base"]["repo"]["full_name"].lower() == self._repository.lower()
            if listed["state"] != "open" or listed["head"]["sha"] != run.head or not is_here:
                continue
            pull = _pull_request(listed)
            if pull.head_branch != run.head_branch:
                continue
            if pull.head_repository.lower() == run.head_repository.lower():
                mine.append(pull)
            elif not pull.head_repository:
                of_deleted_forks.append(pull)
        return mine or of_deleted_forks

    def acceptance(
        self, number: int, label: str, given: Labelled | None = None, head: str = ""
    ) -> LabelAcceptance | None:
        """Return who set the label last, and whether that counts; None if the pull request does not have the label.

        It counts only for the head that it was set on. ``given`` and ``head`` are from the event that set the label, if
        this is that event. For any other event, the head must have had a run before the label was set, and must not
        have moved since.
        """
        with _readable():
            pull = self.pull_request(number)
            if not any(_is_label(name, label) for name in pull.labels):
                return None
            setting, moves = None, []
            for event in self._rest.pages(self._path(f"issues/{number}/events")):
                if _is_label(value_at(event, "label", "name"), label) and event["event"] == "labeled":
                    setting = event
                elif event["event"] in MOVES:
                    moves.append(_made(event))
            if setting is None:
                return None
            by, at = value_at(setting, "actor", "login") or "", _made(setting)
            why = ""
            if not by or not self._may_write(by):
                why = "it was set by someone who may not write to this repository"
            if any(moved >= at for moved in moves):
                why = MOVED_SINCE
            elif given is not None and _is_label(given.name, label):
                if pull.head != head:
                    why = why or MOVED_SINCE
                elif by != given.by:
                    why = why or "it was set again by somebody else in the meantime"
            else:
                why = why or self._why_not_of_head(pull, at, moves)
            return LabelAcceptance(by, at, why)

    def _why_not_of_head(self, pull: PullRequest, at: datetime, moves: Iterable[datetime]) -> str:
        """Return why a label set ``at`` some time may not refer to this head; empty if it does.

        Only a forced push, which is an event, can return to a commit. So a head that had a run before the label was
        set, was not moved since and is the head now, was the head in between. The dates of commits prove nothing: their
        author chooses them.
        """
        try:
            since = self._run_before(pull, at)
        except RestError as error:
            if error.status not in (403, 404):
                raise
            return "whether it was set on this commit cannot be seen; the job needs `permissions: {actions: read}`"
        if since is None or any(moved >= since for moved in moves):
            return MOVED_SINCE
        return ""

    def _run_before(self, pull: PullRequest, at: datetime) -> datetime | None:
        """Return when the pull request's newest run before ``at`` was created; None unless it is of the present head.

        Another repository may have a branch of the same name. A run may be created shortly after its push was replaced,
        so a newer run of another head counts, whatever the events say.
        """
        here = []
        for run in self._runs(event="pull_request", head_sha=pull.head):
            if _is_of(run, pull) and run["head_sha"] == pull.head and _made(run) <= at:
                here.append(run)
        if not here:
            return None
        newest = max(here, key=_age)
        for run in islice(self._runs(event="pull_request", branch=pull.head_branch), MOST_RUNS):  # newest first
            if _age(run) <= _age(newest):
                return _made(newest)
            if _is_of(run, pull) and run["head_sha"] != pull.head and _made(run) <= at:
                return None
        return None  # too far back to compare with the others

    def _may_write(self, login: str) -> bool:
        try:
            answer = self._rest.get(self._path(f"collaborators/{login}/permission"))
        except RestError as error:
            if error.status == 404:
                return False
            raise
        return value_at(answer, "permission") in WRITERS

    def merged_pull_request(self, commit: str) -> PullRequest | None:
        """Return the pull request merged as this commit of a branch; None for a commit that was pushed."""
        with _readable():
            for pull in self._rest.pages(self._path(f"commits/{commit}/pulls")):
                if pull["merged_at"] and pull["merge_commit_sha"] == commit:
                    return _pull_request(pull)
        return None

    # --- runs -------------------------------------------------------------------------------------

    def _runs(self, **asked: str) -> Iterator[Any]:
        """Yield the runs of all workflows as GitHub lists them, newest first."""
        return self._rest.pages(self._path("actions/runs"), "workflow_runs", exclude_pull_requests="true", **asked)

    def _is_here(self, run: MeasuringRun) -> bool:
        """True if a run is on a commit in a branch of this repository."""
        return run.head_repository.lower() == self._repository.lower()

    def runs_on(self, pull: PullRequest, workflow: str) -> list[MeasuringRun]:
        """Return the completed runs of a workflow file on a pull request's branch, for any head, newest first.

        Those from before another pull request from this branch was merged are left out: they measured that one.

        Raises:
            PublishError: more runs have that branch name than can be listed, and none of the listed ones counts.
        """
        query = {"branch": pull.head_branch, "event": "pull_request", "status": "completed"}
        found = []
        listed = 0
        with _readable():
            since = self._merges(pull)
            for run in islice(self._runs(**query), MOST_RUNS):
                listed += 1
                is_asked = (run["head_branch"], run["event"], run["status"]) == tuple(query.values())
                if not is_asked or _file_of(run) != workflow or (since and _made(run) <= max(since)):
                    continue
                made = _run(run)
                if pull.head_repository and made.head_repository == pull.head_repository:
                    found.append(made)
        if not found and listed >= MOST_RUNS:
            raise PublishError(f"{MOST_RUNS:,} runs or more, and none of those listed counts", where="GitHub")
        return _newest_first(found)

    def _merges(self, pull: PullRequest) -> list[datetime]:
        """Return when other pull requests from the branch of this one were merged."""
        head = f"{pull.head_repository.partition('/')[0]}:{pull.head_branch}"
        found = []
        for other in self._rest.pages(self._path("pulls"), state="closed", head=head):
            if other["merged_at"] and other["number"] != pull.number:
                found.append(datetime.fromisoformat(other["merged_at"]))
        return found

    def runs_of(self, head: str, event: str, workflow: str) -> list[MeasuringRun]:
        """Return the successful runs of a workflow file on a commit in a branch of this repository, newest first."""
        found = []
        with _readable():
            for run in self._runs(head_sha=head, event=event, status="success"):
                is_asked = (run["head_sha"], run["event"], run["conclusion"]) == (head, event, "success")
                if not is_asked or _file_of(run) != workflow:
                    continue
                made = _run(run)
                if self._is_here(made):
                    found.append(made)
        return _newest_first(found)

    def own_runs(
        self, workflows: Collection[str], heads: Collection[str], most: int, **asked: str
    ) -> list[MeasuringRun]:
        """Return the runs of these workflow files that no change started, on commits of this repository, newest first.

        Keeps the ``most`` newest on ``heads`` for each event and file, so that a workflow that runs often does not
        crowd out the others. ``asked`` is ``branch`` or ``head_sha``. A fork's branch or a tag may have the name of a
        branch, so only the commit shows what ran.

        Raises:
            PublishError: there are more runs than can be listed, and none of the listed ones counts.
        """
        found: dict[tuple[str, str], list[MeasuringRun]] = {}
        with _readable():
            lists = {event: self._runs(**asked, event=event) for event in OWN_EVENTS}
            for many in LISTED:
                if found:
                    break
                for event, listed in lists.items():
                    for run in islice(listed, many):
                        file, made = _file_of(run), _run(run)
                        is_ours = self._is_here(made) and made.head in heads
                        if is_ours and run["event"] == event and file in workflows:
                            found.setdefault((event, file), []).append(made)
            if not found and any(next(listed, None) is not None for listed in lists.values()):
                raise PublishError(f"more than {sum(LISTED):,} runs, and none of those listed counts", where="GitHub")
        newest: list[MeasuringRun] = []
        for runs in found.values():
            newest += _newest_first(runs)[:most]
        return _newest_first(newest)

    def measured_for(self, run: MeasuringRun, pull: PullRequest) -> bool:
        """True if a run on a pull request's head can only belong to this pull request.

        The same commit can be the head of another pull request, onto a branch whose workflow nobody reviewed, and a run
        does not name its pull request. So every other pull request from the run's branch, closed or open, must have the
        same base and must always have had it.
        """
        if run.head_branch != pull.head_branch or not run.head_repository:
            return False
        head = f"{run.head_repository.partition('/')[0]}:{run.head_branch}"
        with _readable():
            for other in list(self._rest.pages(self._path("pulls"), state="all", head=head)):
                if other["base"]["ref"] != pull.base_branch:
                    return False
                for event in self._rest.pages(self._path(f"issues/{other['number']}/events")):
                    if event["event"] == "base_ref_changed":
                        return False
        return True

    # --- comments ---------------------------------------------------------------------------------

    def comment(self, number: int, comment: PostComment, stamp: Stamp) -> Done:
        """Write or update the suite's comment, unless a newer run has written it or the head has moved on.

        Raises:
            CannotComment: the token may not write.
            PublishError: the host refuses for any other reason.
        """
        body = with_marker(comment, stamp, limit=COMMENT_LIMIT)
        with _explained(number):
            if self.pull_request(number).head != stamp.head:
                return Done(note=MOVED_ON)
            return self._write_comment(number, comment.suite_id, body, stamp)

    def fail(self, number: int, failure: PostFailure, stamp: Stamp) -> Done:
        """Put the failure above earlier results, so that nobody takes them for this run's. Raises like `comment`."""
        with _explained(number):
            if self.pull_request(number).head != stamp.head:
                return Done(note=MOVED_ON)
            ours = self._comments(number)
            if failure.suites is not None:
                keys = {key_of(suite) for suite in (*failure.suites, NO_SUITE)}
                ours = [comment for comment in ours if comment.key in keys]
            if not ours:
                return self._create_comment(number, NO_SUITE, failed_anew(failure, stamp, limit=COMMENT_LIMIT), stamp)
            for comment in ours:
                if not stamp.is_newer(comment.stamp):
                    continue  # it is of this run
                body = failed_over(comment.body, failure, stamp, limit=COMMENT_LIMIT)
                with _if_there():
                    self._rest.send("PATCH", self._path(f"issues/comments/{comment.id}"), {"body": body})
            return Done(url=ours[0].url)

    def _write_comment(self, number: int, suite_id: str, body: str, stamp: Stamp) -> Done:
        ours = self._comments(number)
        known = [comment for comment in ours if comment.key == key_of(suite_id)]
        known += [comment for comment in ours if comment.key == key_of(NO_SUITE) and stamp.is_newer(comment.stamp)]
        if known:
            try:
                return self._update_comment(known[0], body, stamp)
            except RestError as error:
                if error.status not in GONE:  # it was deleted after the look-up
                    raise
        return self._create_comment(number, suite_id, body, stamp)

    def _update_comment(self, existing: Written, body: str, stamp: Stamp) -> Done:
        if existing.stamp.is_newer(stamp):
            return Done(url=existing.url, note="no comment: a newer run has written it")
        is_same = (existing.stamp.run, existing.stamp.attempt) == (stamp.run, stamp.attempt)
        if is_same and says_failed(existing.body) and not says_failed(body):
            return Done(url=existing.url, note="no comment: another job of this run has failed, and says why")
        answer = self._rest.send("PATCH", self._path(f"issues/comments/{existing.id}"), {"body": body})
        return Done(url=answer["html_url"])

    def _create_comment(self, number: int, suite_id: str, body: str, stamp: Stamp) -> Done:
        path, created = self._path(f"issues/{number}/comments"), None
        try:
            created = self._rest.send("POST", path, {"body": body})["id"]
        except RestError as error:
            if not error.executed:
                raise
        ours = [comment for comment in self._comments(number) if comment.key == key_of(suite_id)]
        if not ours:  # the answer was lost, and the comment with it
            return Done(url=self._rest.send("POST", path, {"body": body})["html_url"])
        first = ours[0]
        mine = created or next((comment.id for comment in reversed(ours) if comment.stamp == stamp), None)
        if mine == first.id:
            return Done(url=first.url)
        done = self._update_comment(first, body, stamp)  # another job was faster; of two, the older stays
        if mine is not None:
            with _if_there():
                self._rest.send("DELETE", self._path(f"issues/comments/{mine}"))
        return done

    def _comments(self, number: int) -> list[Written]:
        """Return our comments, oldest first: by marker and author, over all pages."""
        login = self.login()
        found = []
        for comment in self._rest.pages(self._path(f"issues/{number}/comments")):
            body = comment.get("body") or ""
            mark = mark_of(body)
            if mark is not None and value_at(comment, "user", "login") == login:
                found.append(Written(comment["id"], *mark, comment["html_url"], body))
        return sorted(found, key=lambda comment: comment.id)

    # --- artifacts --------------------------------------------------------------------------------

    def artifact(self, run: MeasuringRun, name: str) -> bytes:
        """Return the archive that an untrusted run left, as untrusted bytes.

        Raises:
            NoArtifactError: it is missing.
            UntrustedError: it belongs to another run or repository, or does not match its digest.
        """
        where = f"artifact {name!r} of run {run.id}"
        with _readable():
            listed = list(self._rest.pages(self._path(f"actions/runs/{run.id}/artifacts"), "artifacts", name=name))
            usable = [found for found in listed if found["name"] == name and not found["expired"]]
            if not usable:
                hint = "actions/upload-artifact leaves it; the input `artifact` says how it is called"
                raise NoArtifactError("there is none", where=where, hint=hint)
            newest = max(usable, key=lambda found: found["id"])  # a repeated run has one for each attempt
            _check_origin(newest, run, where)
        content = self._rest.download(self._path(f"actions/artifacts/{newest['id']}/zip"), MAX_ARCHIVE_BYTES)
        digest = newest.get("digest")  # None on servers that do not compute it
        if digest and digest != f"sha256:{hashlib.sha256(content).hexdigest()}":
            raise UntrustedError("its content does not match its digest", where=where)
        return content

    def _path(self, rest: str) -> str:
        return f"repos/{self._repository}/{rest}"


@contextmanager
def _if_there() -> Iterator[None]:
    """Ignore the error for an object that has been deleted in the meantime."""
    try:
        yield
    except RestError as error:
        if error.status not in GONE:
            raise


@contextmanager
def _readable() -> Iterator[None]:
    """Raise PublishError for answers that do not have the form that GitHub documents."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise unreadable(error, "GitHub") from error


def _is_label(name: object, label: str) -> bool:
    """True if a name is that of the label: to GitHub, names that differ only in case are one label."""
    return isinstance(name, str) and name.lower() == label.lower()


def connect(environment: Mapping[str, str], token: str) -> GitHub:
    """Return the client for the repository of this GitHub Actions job."""
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    api, graphql = _addresses(environment)
    rest = Rest(api, headers, environment=environment)
    return GitHub(rest, environment.get("GITHUB_REPOSITORY", ""), graphql_url=graphql)


def _addresses(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the addresses of the API and of GraphQL, by default on the job's server. No other gets the token."""
    server = environment.get("GITHUB_SERVER_URL", PUBLIC).rstrip("/")
    own = "https://api.github.com" if server == PUBLIC else f"{server}/api"
    rest = own if server == PUBLIC else f"{own}/v3"
    return environment.get("GITHUB_API_URL") or rest, environment.get("GITHUB_GRAPHQL_URL") or f"{own}/graphql"


class PullRequestHost(Host):
    """Comments on one pull request for one run; the runner publishes everything else."""

    nowhere = "no comment: this job is not about a pull request that its token may comment on"

    def __init__(self, github: GitHub, number: int, stamp: Stamp) -> None:
        self.head = stamp.head
        self._github = github
        self._number = number
        self._stamp = stamp

    @classmethod
    def open(cls, _options: HostOptions, environment: Mapping[str, str]) -> Self | None:
        """Return the host for the pull request in this job's event, with the token ``GITHUB_TOKEN``; None for a
        fork."""
        token, event = environment.get("GITHUB_TOKEN", ""), Path(environment.get("GITHUB_EVENT_PATH", "") or ".")
        if not token or not event.is_file():
            return None
        found = activity(json.loads(event.read_bytes()), environment)
        if found.pull_request is None or found.head is None or found.is_fork or not found.comments:
            return None
        run, attempt = environment.get("GITHUB_RUN_ID", "0"), environment.get("GITHUB_RUN_ATTEMPT", "0")
        return cls(connect(environment, token), found.pull_request, Stamp(int(run), int(attempt), found.head))

    def close(self) -> None:
        self._github.close()

    def apply(self, effect: object) -> Done:
        match effect:
            case PostComment():
                return self._github.comment(self._number, effect, self._stamp)
            case PostFailure():
                return self._github.fail(self._number, effect, self._stamp)
        return Done()


@contextmanager
def _explained(number: int) -> Iterator[None]:
    """Raise CannotComment with a remedy if the API refuses a comment."""
    try:
        yield
    except RestError as error:
        if error.status == 403 and "locked" in error.what:
            raise CannotComment("the conversation is locked", where=f"#{number}", hint=LOCKED_HINT) from error
        if error.is_refusal:
            raise CannotComment(f"cannot comment: {error.what}", hint=PERMISSION_HINT) from error
        raise
    except (KeyError, TypeError) as error:
        raise unreadable(error, "GitHub") from error


def _check_origin(artifact: Mapping[str, Any], run: MeasuringRun, where: str) -> None:
    origin = artifact.get("workflow_run") or {}
    expected = {"id": run.id, "head_sha": run.head, "head_repository_id": run.head_repository_id}
    for key, value in expected.items():
        if value and origin.get(key) != value:
            raise UntrustedError(f"its {key} is {origin.get(key)!r}, not {value!r}", where=where)
    if artifact["size_in_bytes"] > MAX_ARCHIVE_BYTES:
        raise UntrustedError(f"{artifact['size_in_bytes']:,} bytes, at most {MAX_ARCHIVE_BYTES:,}", where=where)


def _run(run: Mapping[str, Any]) -> MeasuringRun:
    head = run["head_repository"] or {"full_name": "", "id": 0}  # null if the fork was deleted
    attempt = run.get("run_attempt") or 1
    return MeasuringRun(run["id"], attempt, run["head_sha"], run["head_branch"] or "", head["full_name"], head["id"])


def _file_of(run: Mapping[str, Any]) -> str:
    """Return the path of a run's workflow file."""
    path: str = run["path"]
    return path.partition("@")[0]


def _newest_first(runs: Iterable[MeasuringRun]) -> list[MeasuringRun]:
    return sorted(runs, key=lambda run: run.id, reverse=True)


def _is_of(run: Mapping[str, Any], pull: PullRequest) -> bool:
    """True if a run is on the pull request's branch in the same repository."""
    repository = value_at(run, "head_repository", "full_name") or ""  # null if the fork was deleted
    same = repository.lower() == pull.head_repository.lower()
    return bool(repository) and same and run["head_branch"] == pull.head_branch


def _made(thing: Mapping[str, Any]) -> datetime:
    """Return when a run or an event was created."""
    return datetime.fromisoformat(thing["created_at"])


def _age(run: Mapping[str, Any]) -> tuple[datetime, int]:
    """Return a key that orders runs by creation time, and within one second by number."""
    return _made(run), run["id"]


def _pull_request(pull: Mapping[str, Any]) -> PullRequest:
    return PullRequest(
        number=pull["number"],
        head=pull["head"]["sha"],
        base_branch=pull["base"]["ref"],
        labels=tuple(label["name"] for label in pull["labels"]),
        head_branch=pull["head"]["ref"],
        head_repository=value_at(pull, "head", "repo", "full_name") or "",
    )
