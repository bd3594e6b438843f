"""The effects of publishing, as data, and the interface of a host, which applies them in its own way."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self

from msgspec import Struct

from gate.errors import PublishError
from gate.model.strict import StrictModel
from gate.security import files

Level = Literal["error", "warning", "notice"]


class Annotation(Struct, frozen=True):
    """A remark on a place in the repository, or on the whole run."""

    level: Level
    title: str
    message: str
    path: str = ""
    """Relative to the repository's root; empty for a remark on the run."""
    line: int | None = None


class WriteFile(Struct, frozen=True):
    path: Path
    text: str


class CopyFile(Struct, frozen=True):
    path: Path
    source: Path


class WriteSummary(Struct, frozen=True):
    """The summary page of the run, in Markdown; text from outside is escaped."""

    text: str


class PostComment(Struct, frozen=True):
    """The one comment of a suite on the change under review, new or updated in place."""

    suite_id: str
    body: str
    """The text in Markdown; text from outside is escaped."""
    failed: bool = False
    """True if it says why the job failed: then no other job of the same attempt replaces it with better news."""


class PostFailure(Struct, frozen=True):
    """The notice that a run on the change under review ended without a verdict: earlier posts are of an earlier run."""

    body: str
    """The text in Markdown; text from outside is escaped."""
    suites: tuple[str, ...] | None = None
    """The suites whose comments are concerned; None if unknown: all of them."""


Effect = WriteFile | CopyFile | WriteSummary | PostComment | PostFailure


class Publication(Struct, frozen=True):
    """The outcome of publishing. Its problems never change a verdict."""

    urls: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """The effects that were left out on purpose, such as a comment that a newer run has written."""
    problems: tuple[PublishError, ...] = ()


class Done(Struct, frozen=True):
    """The outcome of one effect; a failure is raised as PublishError instead."""

    url: str = ""
    note: str = ""


class HostOptions(StrictModel):
    """Base class of a host's options under ``publish``; unknown keys are rejected."""


class Applies(Protocol):
    """The target of effects: a host, or the runner of a job."""

    def apply(self, effect: Effect) -> Done:
        """Publish one effect; an effect that this host does not support succeeds. Raises PublishError."""
        ...


class Host(ABC):
    """A place where results are published, such as the review of a change. Close it after use."""

    Options: ClassVar[type[HostOptions]] = HostOptions
    nowhere: ClassVar[str] = "not published: this job is not about a change that is reviewed there"
    """The error message if `open` finds nothing to publish on."""
    head: str = ""
    """The commit that readers of the comment know, for the text of the comment."""
    url: str = ""
    """The address of the full report, for the text of the comment."""

    @classmethod
    @abstractmethod
    def open(cls, options: Any, environment: Mapping[str, str], /) -> Self | None:
        """Return the host for this job; None if the job is not about a change there.

        Args:
            options: an instance of `Options`.
            environment: the variables of the process, in which the CI describes the job.

        Raises:
            PublishError: the host cannot be reached as configured.
        """

    @abstractmethod
    def apply(self, effect: Effect) -> Done:
        """Publish one effect; return `Done()` for one that the host does not support. Raises PublishError."""

    def close(self) -> None:  # noqa: B027  (most hosts hold nothing)
        """Release the resources of the host."""


def publish(effects: Iterable[Effect], host: Applies) -> Publication:
    """Apply the effects in order. If one fails, it is reported, and the others are still applied."""
    urls: list[str] = []
    notes: list[str] = []
    problems: list[PublishError] = []
    for effect in effects:
        try:
            done = host.apply(effect)
        except PublishError as error:
            problems.append(error)
            continue
        if done.url:
            urls.append(done.url)
        if done.note:
            notes.append(done.note)
    return Publication(tuple(urls), tuple(notes), tuple(problems))


def write(effect: WriteFile | CopyFile) -> Done:
    """Write or copy a file, creating its folders. Raises PublishError if that fails."""
    try:
        if isinstance(effect, WriteFile):
            files.write_text(effect.path, effect.text)
        elif effect.path.resolve() != effect.source.resolve():
            files.copy(effect.source, effect.path)
    except OSError as error:
        raise PublishError(f"cannot be written: {error.strerror}", where=str(effect.path)) from error
    return Done()


class Stamp(Struct, frozen=True, order=True):
    """The run that wrote a comment; a later run is greater."""

    run: int
    attempt: int
    head: str = "0" * 40
    """The commit that was judged."""

    def is_newer(self, other: Stamp) -> bool:
        """True if it belongs to a later run, regardless of the suites."""
        return (self.run, self.attempt) > (other.run, other.attempt)


_MARKER = re.compile(
    r"\A<!-- agent-gate suite=(?P<suite>[0-9a-f]{16}) run=(\d{1,18}) attempt=(\d{1,9}) head=([0-9a-f]{40,64})"
    r"(?P<failed> failed)? -->"
)


def with_marker(comment: PostComment, stamp: Stamp, *, limit: int) -> str:
    """Return the comment's text after an invisible line with its suite and run, cut to ``limit`` characters."""
    key = key_of(comment.suite_id)
    failed = " failed" if comment.failed else ""
    marker = f"<!-- agent-gate suite={key} run={stamp.run} attempt={stamp.attempt} head={stamp.head}{failed} -->"
    text = f"{marker}\n{comment.body}"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def mark_of(body: str) -> tuple[str, Stamp] | None:
    """Return the suite's key and the stamp of a comment. The marker counts only at the start, which only its author
    writes."""
    match = _MARKER.match(body)
    return (match["suite"], Stamp(int(match[2]), int(match[3]), match[4])) if match else None


def says_failed(body: str) -> bool:
    """True if a comment on any suite says why its job failed."""
    match = _MARKER.match(body)
    return match is not None and match["failed"] is not None


NO_SUITE = ""
"""The owner of a comment that a failed first run wrote before any suite had one; the next verdict replaces it."""
_UNMEASURED = "<!-- agent-gate unmeasured -->"
_EARLIER = "<!-- agent-gate earlier verdict -->"


def failed_anew(failure: PostFailure, stamp: Stamp, *, limit: int) -> str:
    """Return the text of a comment that contains only the failure."""
    return with_marker(PostComment(NO_SUITE, f"{_UNMEASURED}\n{failure.body}"), stamp, limit=limit)


def failed_over(body: str, failure: PostFailure, stamp: Stamp, *, limit: int) -> str:
    """Return the failure above the comment's earlier text, which is folded, or reduced to its heading if it is long.

    The marker stays, so that a later run with a verdict can still update the comment.
    """
    marker, _, said = body.partition("\n")
    parts = [marker, _UNMEASURED, failure.body]
    if said.startswith(_UNMEASURED):  # text from outside in it is escaped and cannot forge a comment of ours
        earlier = said.partition(f"\n{_EARLIER}\n")[2]
    else:
        earlier = _folded(said, mark_of(body), stamp, limit - sum(map(len, parts)) - 300)
    if earlier:
        parts += ["", _EARLIER, earlier]
    return "\n".join(parts)


def _folded(said: str, mark: tuple[str, Stamp] | None, stamp: Stamp, limit: int) -> str:
    head = mark[1].head if mark else ""
    source = "an earlier run on this commit" if head == stamp.head else f"an earlier commit, <code>{head[:7]}</code>"
    kept = said if len(said) <= limit else said.partition("\n")[0]
    return f"<details>\n<summary>The verdict below is from {source}</summary>\n\n{kept}\n\n</details>"


def key_of(suite_id: str) -> str:
    """Return the hash of a suite's id: the id is outside text and could end the marker, a hash cannot."""
    return hashlib.sha256(suite_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
