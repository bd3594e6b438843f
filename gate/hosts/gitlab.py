"""GitLab: the note of a suite on a merge request; the pipeline file handles pipelines, artifacts and JUnit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

from gate.errors import PublishError
from gate.hosts.base import Done, Host, HostOptions, PostComment, Stamp, key_of, mark_of, with_marker
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


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else 0


GONE = 404


class MergeRequestHost(Host):
    """Notes on one merge request for one pipeline; everything else is published as files."""

    nowhere = "no comment: this is not a GitLab merge request pipeline"

    def __init__(self, rest: Rest, path: str, stamp: Stamp, *, owner: str, url: str = "") -> None:
        """``path``: the API path of the merge request. ``owner``: that of the token's owner, ``user`` or ``job``."""
        self.head, self.url = stamp.head, url
        self._rest = rest
        self._path = path
        self._stamp = stamp
        self._owner = owner

    @classmethod
    def open(cls, _options: HostOptions, environment: Mapping[str, str]) -> Self | None:
        """Return the host for the merge request of this job's pipeline, from GitLab's predefined variables."""
        api, project = environment.get("CI_API_V4_URL"), environment.get("CI_PROJECT_ID")
        number = _number(environment.get("CI_MERGE_REQUEST_IID"))
        if not (api and project and number):
            return None
        headers, owner = {"JOB-TOKEN": environment.get("CI_JOB_TOKEN", "")}, "job"
        token = environment.get(TOKEN_VARIABLE)
        if token:
            headers, owner = {"PRIVATE-TOKEN": token}, "user"
        # A merged-results pipeline runs a commit that nobody sees; reviewers see the source branch's head.
        head = environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or environment.get("CI_COMMIT_SHA", "")
        stamp = Stamp(_number(environment.get("CI_PIPELINE_ID")), _number(environment.get("CI_JOB_ID")), head)
        rest = Rest(api, headers, environment=environment)
        return cls(
            rest, f"projects/{project}/merge_requests/{number}", stamp, owner=owner, url=environment.get(JOB, "")
        )

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
        stamp, seen = self._stamp, self._rest.get(self._path)
        if seen["sha"] != stamp.head:
            return Done(note="no note: the merge request has moved on to another commit")
        body = {"body": without_quick_actions(with_marker(comment, stamp, limit=NOTE_LIMIT))}
        existing = self._find(comment.suite_id)
        if existing is None:
            return self._at(seen, self._rest.send("POST", f"{self._path}/notes", body))
        id_, written = existing
        if written.is_newer(stamp):
            return Done(note="no note: a newer pipeline has written it")
        try:
            return self._at(seen, self._rest.send("PUT", f"{self._path}/notes/{id_}", body))
        except RestError as error:
            if error.status != GONE:
                raise
        return self._at(seen, self._rest.send("POST", f"{self._path}/notes", body))  # it was deleted in the meantime

    def _find(self, suite_id: str) -> tuple[int, Stamp] | None:
        """Return the id and the stamp of our note, by marker and author, over all pages."""
        answer = self._rest.get(self._owner)
        me = answer["user"]["id"] if self._owner == "job" else answer["id"]
        for note in self._rest.pages(f"{self._path}/notes", order_by="created_at", sort="asc"):
            if note["system"] or note["author"]["id"] != me:
                continue
            mark = mark_of(note["body"])
            if mark is not None and mark[0] == key_of(suite_id):
                return note["id"], mark[1]
        return None

    def _at(self, seen: Mapping[str, Any], note: Mapping[str, Any]) -> Done:
        return Done(url=f"{seen['web_url']}#note_{note['id']}")
