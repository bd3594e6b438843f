"""Baselines on a separate branch: no history shared with the code, one file per record, no work tree involved.

Works in a temporary, shallow, blobless clone of that branch alone. The user's repository only supplies the remote's URL
and how it signs in there, and is not changed. A push that lost a race is repeated on the new tip, so that no writer
loses.
"""

from __future__ import annotations

import calendar
import hashlib
import io
import random
import re
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Self

from msgspec import Struct, field

from gate.baselines.base import (
    AGAIN,
    ANCHOR_SEARCH,
    Entry,
    StoreOptions,
    StoreSettings,
    misplaced,
)
from gate.baselines.blobs import BlobStore, Writes
from gate.baselines.ledger import LAST_SECOND, LEDGER, Ledger, anchors, stays
from gate.errors import BaselineError, BaselineWriteError
from gate.records import Header
from gate.records.keys import UNCOMMITTED, Stored, commit_key, suite_key
from gate.security.limits import cut
from gate.system.git import Git, GitError, checked_revision
from gate.system.temporary import TemporaryFolder

IN_A_FOLDER = "write `baseline: {store: file}`"
TRIES = 4
"""Attempts when git's connection fails."""
AT_ONCE = 50
"""Number of records to fetch and hold at once when reading all of them."""
_LONGEST_WAIT = 4.0
_DAY = 86_400.0
_NAME = re.compile(
    r"(?P<suite>[^/]+)/(?P<created>\d{8}T\d{6})"
    r"-(?P<key>(?:[0-9a-f]{40,64}|uncommitted))"
    r"-(?:[0-9a-f]{12}|unknown)\.jsonl"
)
_LOST_RACE = re.compile(
    r"\[rejected\]|cannot lock ref|failed to update ref|incorrect old value|reference already exists"
)
_BROKEN = re.compile(r"HTTP 429|HTTP 5\d\d|error: 5\d\d|timed out|Connection reset|early EOF|Could not resolve host")
_NAME_OF_WRITER, _EMAIL = "agent-gate", "agent-gate@users.noreply.github.com"
_IDENTITY = {
    "GIT_AUTHOR_NAME": _NAME_OF_WRITER,
    "GIT_AUTHOR_EMAIL": _EMAIL,
    "GIT_COMMITTER_NAME": _NAME_OF_WRITER,
    "GIT_COMMITTER_EMAIL": _EMAIL,
}
_PREAMBLE = re.compile(r"git [\w-]+ failed: |(?:fatal|error): |unable to access '[^']*': | after \d+ ms")
_LONGEST_REASON = 50
_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded|Read-only file system")
_REJECTED = re.compile(r"\[remote rejected\].*\(([^()]+)\)\s*$", re.MULTILINE)
"""The server's reason for refusing a push that it understood."""


class _File(Struct, frozen=True):
    """A record on the branch, as its path describes it."""

    path: str
    suite: str
    created: str
    """UTC, as ``YYYYMMDDTHHMMSS``, which sorts by time."""
    key: str
    """The commit."""

    @property
    def time(self) -> float:
        """Return the Unix time; 0 if the file's name, which is untrusted, does not hold one."""
        try:
            return float(calendar.timegm(time.strptime(self.created, "%Y%m%dT%H%M%S")))
        except ValueError:
            return 0.0


class _Tree(Struct, frozen=True):
    """The content of the branch at one commit."""

    tip: str | None = None
    files: tuple[_File, ...] = ()
    """Every record, newest first."""
    blobs: Mapping[str, str] = field(default_factory=dict)
    """Path → blob of every record and ledger."""


class GitOptions(StoreOptions):
    """The name of the branch."""

    branch: str = "gate-baselines"
    """Branch of the git store."""


class GitStore(BlobStore):
    """Keeps ``<suite>/<time>-<commit>-<agent>.jsonl`` on an orphan branch: listing its tree is the whole index.

    A suite's ledger, ``<suite>/ledger.ndjson``, is next to its records.
    """

    Options = GitOptions
    max_records = 200
    """The most records to keep per suite; the newest stay."""
    max_age_days = 365.0
    """Older records are dropped, but never a suite's newest."""

    def __init__(self, repository: Git, settings: StoreSettings) -> None:
        self._repository = repository
        self._settings = settings
        self._branch_name = GitOptions.model_validate(settings.options).branch
        self._branch = f"refs/heads/{checked_revision(self._branch_name)}"
        self._folder: TemporaryFolder | None = None
        self._clone: Git | None = None
        self._tree: _Tree | None = None

    @classmethod
    def open(cls, settings: StoreSettings) -> Self:
        return cls(Git(settings.root, environment=settings.environment), settings)

    # --- as a store of bytes --------------------------------------------------------------------

    def get(self, key: str) -> bytes | None:
        """Return a file of the branch, or None if it does not exist. Raises `BaselineError`."""
        blob = self._listed().blobs.get(key)
        return None if blob is None else self._content(blob, self.shown(key))

    def put(self, key: str, data: bytes, before: bytes | None) -> bool:
        """Push one file."""
        return self.put_all({key: (before, data)}, ())

    def put_all(self, writes: Writes, gone: Sequence[str]) -> bool:
        """Push one commit on the tip that was read. Return False if another push came first."""
        tree = self._listed()
        first = next(iter(writes), "") or gone[0]
        suite, name = first.partition("/")[0], _NAME.fullmatch(first)
        message = f"Note on {suite}"
        if name is not None:
            message = f"Baseline of {suite} at {name['key'][:12]}"
        try:
            blobs = {key: self._stored(data) for key, (_, data) in writes.items()}
            commit = self._commit(tree.tip, blobs, gone, message)
            self._retried("push", "--quiet", "--no-verify", "origin", f"{commit}:{self._branch}")
        except GitError as error:
            if _LOST_RACE.search(error.output):
                return False
            raise self._not_pushed(error) from None
        self._tree = None
        return True

    def keys(self, prefix: str) -> Iterable[str]:
        """Return the paths of the records on the branch."""
        return [file.path for file in self._listed().files if file.path.startswith(prefix)]

    def refresh(self, attempt: int) -> None:
        """Fetch the branch, waiting first if another push won."""
        if attempt:
            _wait(attempt - 1)
        try:
            self._tree = _listed(self._cloned(), self._fetch())
        except GitError as error:
            raise self._not_pushed(error) from None

    def shown(self, key: str) -> str:
        return f"{self._where}:{key}"

    @property
    def remedy(self) -> str:
        return f"`git rm` it, then {AGAIN}"

    def key_of_record(self, header: Header) -> str:
        # The agent's part in the name avoids reading records that cannot be pooled.
        agent = "unknown"
        if header.agent:
            agent = hashlib.sha256(header.agent.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        seconds = header.created if 0 <= header.created < 253_402_300_800 else 0
        created = time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))
        return f"{suite_key(header.suite_id)}/{created}-{commit_key(header)}-{agent}.jsonl"

    def commit_in(self, key: str) -> str:
        name = _NAME.fullmatch(key)
        return "" if name is None else name["key"]

    def keys_of_commit(self, header: Header) -> list[str]:
        key = commit_key(header)
        return [file.path for file in self._of(header.suite_id) if file.key == key]

    # --- reading --------------------------------------------------------------------------------

    def may_be_pooled(self, key: str, other: str) -> bool:
        return key.rpartition("-")[2] == other.rpartition("-")[2]  # the agents

    def stored_entries(self, suite_id: str | None = None, *, but: Container[str] = ()) -> list[Entry]:
        files = self._listed().files if suite_id is None else self._of(suite_id)
        files = tuple(file for file in files if self.shown(file.path) not in but)
        if suite_id is not None:
            return [_entry(file, suite_id) for file in files]
        newest = {file.suite: file for file in reversed(files)}
        self.fetch([file.path for file in newest.values()])
        names = {}
        for file in newest.values():
            header = self._header(file.path)
            if file.path != self.key_of_record(header):
                raise misplaced(self.shown(file.path))
            names[file.suite] = header.suite_id
        return [_entry(file, names[file.suite]) for file in files]

    def stored_contents(self) -> Iterator[Stored]:
        tree = self._listed()
        for start in range(0, len(tree.files), AT_ONCE):
            part = tree.files[start : start + AT_ONCE]
            for file, data in zip(part, self._all_content([file.path for file in part]), strict=True):

                def opened(data: bytes | None = data, path: str = file.path) -> BinaryIO:
                    if data is None:
                        data = self._content(tree.blobs[path], path)
                    return io.BytesIO(data)

                yield Stored(self.shown(file.path), opened, (file.suite, file.key))

    def close(self) -> None:
        """Remove the temporary clone; using the store again makes a new one."""
        if self._folder is not None:
            self._folder.cleanup()
        self._folder = self._clone = self._tree = None

    # --- the clone ------------------------------------------------------------------------------

    @property
    def _where(self) -> str:
        return f"branch {self._branch_name} of {self._settings.remote}"

    def _cloned(self) -> Git:
        """Return an empty repository that knows the remote, creating it once."""
        if self._clone is None:
            self._folder = TemporaryFolder("gate-baselines-")
            settings = self._settings
            self._clone = self._repository.scratch(
                Path(self._folder.name), settings.remote, token=settings.token, server=settings.server
            )
            self._clone.environment.update(_IDENTITY)
        return self._clone

    def _fetch(self) -> str | None:
        """Fetch the branch and return its tip; None if there is no such branch yet."""
        shallow = ("--quiet", "--no-tags", "--no-write-fetch-head", "--depth=1", "--filter=blob:none")
        try:
            self._retried("fetch", *shallow, "origin", f"+{self._branch}:{self._branch}")
        except GitError as error:
            if "couldn't find remote ref" in error.output:
                return None
            raise
        return self._cloned().resolve(self._branch)

    def _retried(self, *arguments: str, stdin: bytes = b"") -> None:
        for attempt in range(TRIES):
            try:
                self._cloned().run(*arguments, stdin=stdin)
            except GitError as error:
                if attempt + 1 == TRIES or not _BROKEN.search(error.output):
                    raise
                _wait(attempt + 3)
            else:
                return

    def _hint(self, error: GitError, otherwise: str) -> str:
        """Return the hint for an error; a token does not help without git, a repository or a remote."""
        name = self._settings.remote
        if not self._repository.program:
            return f"install git, or {IN_A_FOLDER}"
        if not self._repository.is_repository():
            return error.hint or f"`git init` and add the remote {name!r}, or {IN_A_FOLDER}"
        if "no such remote" in f"{error.what} {error.output}".lower():
            return f"`git remote add {name} URL`, or {IN_A_FOLDER}"
        is_here = error.is_local or bool(error.where and error.where in error.what)  # it names a file of the clone
        if not error.hint and (is_here or _NO_ROOM.search(error.what)):  # the server's own disk is not in `what`
            return "is there room for temporary files? TMPDIR names another folder"
        return error.hint or otherwise

    # --- reading --------------------------------------------------------------------------------

    def _listed(self) -> _Tree:
        """Return the content of the branch, fetching it once."""
        if self._tree is None:
            try:
                self._tree = _listed(self._cloned(), self._fetch())
            except GitError as error:
                hint = self._hint(error, "check the remote, and contents: read of the token")
                raise BaselineError(f"cannot be read: {_reason(error)}", where=self._where, hint=hint) from None
        return self._tree

    def _of(self, suite_id: str) -> tuple[_File, ...]:
        key = suite_key(suite_id)
        return tuple(file for file in self._listed().files if file.suite == key)

    def _blob_lines(self, keys: Sequence[str]) -> bytes:
        """Return the ids of the blobs of some records, one per line."""
        blobs = self._listed().blobs
        return "".join(f"{blobs[key]}\n" for key in keys).encode()

    def fetch(self, keys: Sequence[str]) -> None:
        """Fetch several records in one go; git fetches any that are missing afterwards one by one."""
        if len(keys) > 1:
            wanted = self._blob_lines(keys)
            options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none", "--stdin")
            try:
                self._retried("-c", "fetch.negotiationAlgorithm=noop", "fetch", *options, "origin", stdin=wanted)
            except GitError:
                return  # the server gives no single objects: reading one reports the problem, if there is one

    def _content(self, blob: str, where: str) -> bytes:
        try:
            return self._cloned().run("cat-file", "blob", blob)
        except GitError as error:
            raise BaselineError(f"the baseline cannot be read: {error.what}", where=where, hint=error.hint) from None

    def _all_content(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return the contents of some records, fetched and read in one go; None for those that did not arrive."""
        self.fetch(keys)
        try:
            said = self._cloned().run("cat-file", "--batch", stdin=self._blob_lines(keys))
        except GitError:
            return [None] * len(keys)  # they are read one by one, and a missing one is reported
        found: list[bytes | None] = []
        at = 0
        for _ in keys:
            end = said.index(b"\n", at)
            size = said[at:end].rpartition(b" ")[2]
            if not size.isdigit():
                found.append(None)
                at = end + 1
                continue
            found.append(said[end + 1 : end + 1 + int(size)])
            at = end + int(size) + 2
        return found

    # --- writing --------------------------------------------------------------------------------

    def _not_pushed(self, error: GitError) -> BaselineWriteError:
        otherwise = "check the remote, and contents: write of the token"
        if _REJECTED.search(error.output):
            otherwise = "exempt this branch from the repository's rules and hooks"
        hint = self._hint(error, otherwise)
        return BaselineWriteError(f"cannot be pushed to: {_reason(error)}", where=self._where, hint=hint)

    def prune(self, key: str, ledger: Ledger) -> tuple[list[str], Ledger]:
        """Return the suite's oldest records beyond the limits, and the ledger without their marks.

        Releases, accepted records and the anchor stay.
        """
        new = _file(key)
        assert new is not None
        others = [file for file in self._listed().files if file.suite == new.suite and file.key != new.key]
        stored = {file.key: file.time for file in (*others, new)}
        pinned = {line.key for line in ledger.lines if stays(line)}
        once_all_have_ended = ledger.at(LAST_SECOND)  # the end of an acceptance may reveal another anchor
        for view in (ledger, once_all_have_ended):
            judged = [candidate.key for candidate in anchors(view, stored) if ledger.knows(candidate.key)]
            pinned.update(judged[:ANCHOR_SEARCH])
        most = max(self.max_records - 1, 0)
        newest = max((file.time for file in others), default=new.time)
        oldest = min(new.time, newest) - self.max_age_days * _DAY  # so one clock that is ahead drops nothing
        gone, kept = [], {new.key}
        for nth, file in enumerate(others):
            if (nth >= most or file.time < oldest) and file.key not in pinned:
                gone.append(file.path)
            else:
                kept.add(file.key)
        return gone, ledger.only(kept)

    def _stored(self, data: bytes) -> str:
        return self._cloned().run("hash-object", "-w", "--stdin", stdin=data).decode().strip()

    def _commit(self, tip: str | None, files: Mapping[str, str], gone: Sequence[str], message: str) -> str:
        """Return a new commit on the tip that adds and drops files, made in a separate index."""
        clone = self._cloned()
        index = {"GIT_INDEX_FILE": str(clone.root / "gate-index")}
        clone.run("read-tree", tip or "--empty", environment=index)
        none = "0" * len(next(iter(files.values()), tip or "0" * 40))
        changes = [f"0 {none}\t{path}" for path in gone]
        changes += [f"100644 {blob}\t{path}" for path, blob in files.items()]
        clone.run("update-index", "-z", "--index-info", stdin="\0".join([*changes, ""]).encode(), environment=index)
        tree = clone.run("write-tree", "--missing-ok", environment=index).decode().strip()
        parent = () if tip is None else ("-p", tip)
        return clone.run("commit-tree", *parent, "-F", "-", tree, stdin=f"{message}\n".encode()).decode().strip()


def _reason(error: GitError) -> str:
    """Return the server's reason, else git's message without the words that repeat known facts."""
    rejected = _REJECTED.search(error.output)
    reason = rejected[1] if rejected else _PREAMBLE.sub("", error.what)
    what, _, cause = reason.rpartition(": ")
    if " " in cause and len(cause) < _LONGEST_REASON // 2 < len(what):  # the cause comes last
        return f"{cut(what, _LONGEST_REASON - len(cause) - 2)}: {cause}"
    return cut(reason, _LONGEST_REASON)


def _listed(clone: Git, tip: str | None) -> _Tree:
    """Return the records in a tree, newest first, and the ledgers. Files with other names are not ours."""
    if tip is None:
        return _Tree()
    found, blobs = [], {}
    for line in clone.run("ls-tree", "-r", "-z", "--full-tree", tip).decode("utf-8", "replace").split("\0"):
        entry, _, path = line.partition("\t")
        if not entry.startswith("100644 blob "):
            continue
        file = _file(path)
        if file is not None:
            found.append(file)
        if file is not None or path.endswith(f"/{LEDGER}"):
            blobs[path] = entry.split(" ")[2]
    files = sorted(found, key=lambda file: (file.created, file.key), reverse=True)
    return _Tree(tip, tuple(files), blobs)


def _file(path: str) -> _File | None:
    """Return a path on the branch as a record; None if its name has another form."""
    name = _NAME.fullmatch(path)
    if name is None:
        return None
    return _File(path, name["suite"], name["created"], name["key"])


def _entry(file: _File, suite_id: str) -> Entry:
    commit = None if file.key == UNCOMMITTED else file.key
    return Entry(suite_id, commit, file.time, file.path)


def _wait(attempt: int) -> None:
    """Sleep longer after each failure, for a random time, so that writers that collided once do not collide again."""
    time.sleep(random.uniform(0.02, min(_LONGEST_WAIT, 0.1 * 2**attempt)))  # noqa: S311
