"""GitLab: the note of a suite on a merge request; the pipeline file handles pipelines, artifacts and JUnit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

from msgspec import Struct

from gate.errors import PublishError
from gate.hosts.base import Done, Host, HostOptions, PostComment, Stamp, stamp_of, with_marker
from gate.hosts.rest import Rest, RestError, unreadable

JOB = "CI_JOB_URL"
NOTE_LIMIT = 1_000_000
"""Maximum number of characters in a note."""
TOKEN_VARIABLE = "GATE_GITLAB_TOKEN"  # noqa: S105  (a name, not a token)
"""The variable of a project access token with the scope ``api``, for jobs whose own token may not write notes."""
TOKEN_HINT = f"set the masked CI/CD variable {TOKEN_VARIABLE} to a project access token with the scope `api`"


_QUICK_ACTION = re.compile(r"^([ \t>]*)/(?=[A-Za-z])", re.MULTILINE)


def without_quick_actions(text: str) -> str:
    """Return text in which no line is a GitLab command such as ``/merge``, which would run as the token's owner.

    GitLab searches the raw text for commands and recognises only some fences as code; ours are longer if an agent wrote
    backticks. A zero-width space before the slash is invisible.
    """
    return _QUICK_ACTION.sub("\\1\u200b/", text)


class MergeRequest(Struct, frozen=True):
    """The merge request of a pipeline, from GitLab's predefined variables."""

    api: str
    project: str
    iid: int
    stamp: Stamp
    headers: Mapping[str, str]
    who: str
    """The API path for the owner of the token."""


def merge_request_of(environment: Mapping[str, str]) -> MergeRequest | None:
    """Return the merge request of this job; None if there is none."""
    values = [environment.get(name, "") for name in ("CI_API_V4_URL", "CI_PROJECT_ID", "CI_MERGE_REQUEST_IID")]
    api, project, iid = values
    if not all(values) or not _number(iid):
        return None
    token = environment.get(TOKEN_VARIABLE)
    # A merged-results pipeline runs a commit that nobody sees; reviewers see the source branch's head.
    head = environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or environment.get("CI_COMMIT_SHA", "")
    return MergeRequest(
        api=api,
        project=project,
        iid=int(iid),
        stamp=Stamp(_number(environment.get("CI_PIPELINE_ID")), _number(environment.get("CI_JOB_ID")), head),
        headers={"PRIVATE-TOKEN": token} if token else {"JOB-TOKEN": environment.get("CI_JOB_TOKEN", "")},
        who="user" if token else "job",
    )


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else 0


GONE = 404


class MergeRequestHost(Host):
    """Notes on one merge request for one pipeline; everything else is published as files."""

    nowhere = "no comment: this is not a GitLab merge request pipeline"

    def __init__(self, request: MergeRequest, rest: Rest, *, url: str = "") -> None:
        self.head, self.url = request.stamp.head, url
        self._request = request
        self._rest = rest
        self._path = f"projects/{request.project}/merge_requests/{request.iid}"

    @classmethod
    def open(cls, _options: HostOptions, environment: Mapping[str, str]) -> Self | None:
        """Return the host for the merge request of this job's pipeline, from GitLab's predefined variables."""
        request = merge_request_of(environment)
        if request is None:
            return None
        return cls(request, Rest(request.api, request.headers, environment=environment), url=environment.get(JOB, ""))

    def close(self) -> None:
        self._rest.close()

    def apply(self, effect: object) -> Done:
        """Write or update the suite's note, unless a newer pipeline has written it or the head has moved on."""
        if not isinstance(effect, PostComment):
            return Done()
        try:
            return self._note(effect)
        except RestError as error:
            if error.is_refusal:
                raise PublishError(f"cannot write the note: {error.what}", hint=TOKEN_HINT) from error
            raise PublishError(f"cannot write the note: {error.what}", where=error.where) from error
        except (KeyError, TypeError) as error:
            raise unreadable(error, "GitLab") from error

    def _note(self, comment: PostComment) -> Done:
        stamp, seen = self._request.stamp, self._rest.get(self._path)
        if seen["sha"] != stamp.head:
            return Done(note="no note: the merge request has moved on to another commit")
        body = {"body": without_quick_actions(with_marker(comment, stamp, limit=NOTE_LIMIT))}
        existing = self._find(comment.suite_id)
        if existing is None:
            return self._at(seen, self._rest.send("POST", f"{self._path}/notes", body))
        id_, written = existing
        if (written.run, written.attempt) > (stamp.run, stamp.attempt):
            return Done(note="no note: a newer pipeline has written it")
        try:
            return self._at(seen, self._rest.send("PUT", f"{self._path}/notes/{id_}", body))
        except RestError as error:
            if error.status != GONE:
                raise
        return self._at(seen, self._rest.send("POST", f"{self._path}/notes", body))  # it was deleted in the meantime

    def _find(self, suite_id: str) -> tuple[int, Stamp] | None:
        """Return the id and the stamp of our note, by marker and author, over all pages."""
        me = self._me()
        for note in self._rest.pages(f"{self._path}/notes", order_by="created_at", sort="asc"):
            if note["system"] or note["author"]["id"] != me:
                continue
            stamp = stamp_of(note["body"], suite_id)
            if stamp is not None:
                return note["id"], stamp
        return None

    def _me(self) -> int:
        answer = self._rest.get(self._request.who)
        user = answer["user"] if self._request.who == "job" else answer
        identity: int = user["id"]
        return identity

    def _at(self, seen: Mapping[str, Any], note: Mapping[str, Any]) -> Done:
        return Done(url=f"{seen['web_url']}#note_{note['id']}")
