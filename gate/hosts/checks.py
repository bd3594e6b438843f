"""Check runs on GitHub: one per suite on the judged commit, if the token may write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gate.hosts.base import Annotation, Done, Level, PostCheck, PostFailure, Stamp, key_of
from gate.hosts.rest import Rest, RestError, unreadable
from gate.security.escape import console

PREFIX = "Agent Gate: "
SUMMARY_CHARS = 65_535
"""Maximum number of characters in a check run's summary."""
ANNOTATIONS_PER_REQUEST = 50
MOST_ANNOTATIONS = 200
"""Maximum number of annotations of a check run; the report has the rest."""
_MESSAGE_CHARS = 2_000
_TITLE_CHARS = 250
_LEVELS: Mapping[Level, str] = {"error": "failure", "warning": "warning", "notice": "notice"}
_BADNESS = {"success": 0, "neutral": 1}
"""Conclusion → its rank, worse ones higher; every other is a failure."""
_MARK = re.compile(r"agent-gate ([0-9a-f]{16}) (\d{1,18}) (\d{1,9})")
NOT_ALLOWED = "no check run: the token may not write any (`checks: write` in the job's permissions adds one per suite)"


class CheckRuns:
    """The check runs of one run on one commit. Those of a newer run on the same commit are never overwritten.

    ``about`` distinguishes verdicts on one commit against different bases, such as a release or another target branch.
    """

    def __init__(self, rest: Rest, repository: str, stamp: Stamp, *, page: str, about: str = "") -> None:
        self._rest = rest
        self._path = f"repos/{repository}"
        self._stamp = stamp
        self._page = page
        self._about = about

    def apply(self, effect: object) -> Done:
        """Write one check run. Missing permission is a note, not an error."""
        try:
            match effect:
                case PostCheck():
                    return self._post(effect)
                case PostFailure():
                    return self._fail(effect)
        except RestError as error:
            if error.is_refusal:
                return Done(note=NOT_ALLOWED)
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise unreadable(error, "GitHub") from error
        return Done()

    def _name(self, suite_id: str) -> str:
        """Return a name that no other suite has: the host shows only the latest check run of each name."""
        shown = console(suite_id, 100)
        name = f"{PREFIX}{shown}"
        if shown != suite_id or shown.endswith((")", "]")):
            name += f" [{key_of(suite_id)[:8]}]"
        if self._about:
            name += f" ({console(self._about, 100)})"
        return name

    def _mark(self, suite_id: str) -> str:
        return f"agent-gate {key_of(suite_id + self._about)} {self._stamp.run} {self._stamp.attempt}"

    def _post(self, check: PostCheck) -> Done:
        name, mark = self._name(check.suite_id), self._mark(check.suite_id)
        ours = list(self._ours(name=name))
        if any(stamp.is_newer(self._stamp) for _, stamp, _ in ours):
            return Done(note=f"no check run {name}: a newer run has written it")
        if any(self._is_worse(run, stamp, check.conclusion) for run, stamp, _ in ours):
            return Done(note=f"no check run {name}: another job of this run has written a worse one")
        remarks = [_annotation(one) for one in check.annotations if one.path][:MOST_ANNOTATIONS]
        output: dict[str, Any] = {"title": console(check.title, _TITLE_CHARS), "summary": check.body[:SUMMARY_CHARS]}
        if remarks:
            output["annotations"] = remarks[:ANNOTATIONS_PER_REQUEST]
        body = self._completed(name, mark, check.conclusion, output)
        if self._page.startswith(("https://", "http://")):
            body["details_url"] = self._page
        made = self._create(body)
        for at in range(ANNOTATIONS_PER_REQUEST, len(remarks), ANNOTATIONS_PER_REQUEST):
            further = {**output, "annotations": remarks[at : at + ANNOTATIONS_PER_REQUEST]}  # added to the earlier ones
            path = f"{self._path}/check-runs/{made['id']}"
            self._rest.send("PATCH", path, {"output": further}, repeatable=False)
        return Done(url=made["html_url"] or "")

    def _is_worse(self, run: Mapping[str, Any], stamp: Stamp, conclusion: str) -> bool:
        """True if a check run is of this very attempt, as from another job of a matrix, and has a worse conclusion."""
        same = (stamp.run, stamp.attempt) == (self._stamp.run, self._stamp.attempt)
        return same and _BADNESS.get(run["conclusion"], 2) > _BADNESS.get(conclusion, 2)

    def _completed(self, name: str, mark: str, conclusion: str, output: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request that creates a check run."""
        return {
            "name": name,
            "head_sha": self._stamp.head,
            "external_id": mark,
            "status": "completed",
            "conclusion": conclusion,
            "output": output,
        }

    def _create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            made: Mapping[str, Any] = self._rest.send("POST", f"{self._path}/check-runs", body)
        except RestError as error:
            if not error.executed:
                raise
            for run, _, _ in self._ours(name=body["name"]):
                if run["external_id"] == body["external_id"]:
                    return run
            raise
        return made

    def _fail(self, failure: PostFailure) -> Done:
        """Report for each suite that this run has no verdict; if suites are unknown, for those with an earlier one."""
        names = {}
        if failure.suites is None:
            for run, stamp, key in self._ours():
                if self._stamp.is_newer(stamp):
                    names[run["name"]] = f"agent-gate {key} {self._stamp.run} {self._stamp.attempt}"
        else:
            for suite in failure.suites:
                names[self._name(suite)] = self._mark(suite)
        done = Done()
        for name, mark in names.items():
            if any(stamp.is_newer(self._stamp) for _, stamp, _ in self._ours(name=name)):
                continue
            output = {"title": "not measured", "summary": failure.body[:SUMMARY_CHARS]}
            made = self._create(self._completed(name, mark, "failure", output))
            done = Done(url=made["html_url"] or "")
        return done

    def _ours(self, *, name: str = "") -> Iterator[tuple[Mapping[str, Any], Stamp, str]]:
        """Yield the check runs on the commit with our mark, each with the stamp of its run and the key of its suite."""
        path, query = f"{self._path}/commits/{self._stamp.head}/check-runs", {"check_name": name} if name else {}
        for run in self._rest.pages(path, "check_runs", filter="all", **query):
            mark = _MARK.fullmatch(run["external_id"] or "")
            if mark and run["name"].startswith(PREFIX):
                yield run, Stamp(int(mark[2]), int(mark[3]), self._stamp.head), mark[1]


def _annotation(annotation: Annotation) -> dict[str, str | int]:
    line = annotation.line or 1
    return {
        "path": annotation.path,
        "start_line": line,
        "end_line": line,
        "annotation_level": _LEVELS[annotation.level],
        "title": console(annotation.title, _TITLE_CHARS),
        "message": console(annotation.message, _MESSAGE_CHARS) or "see the report",
    }
