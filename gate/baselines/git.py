"""Baselines on a branch of their own: no history shared with the code, one file per record, no work tree involved.

Works in a temporary, shallow, blobless clone of that branch alone. The user's repository is asked for the remote's URL
and how it signs in there, and is otherwise left alone. A push that lost a race is made again on the new tip, so that no
writer loses.
"""

from __future__ import annotations

import calendar
import hashlib
import random
import re
import time
from collections.abc import Sequence, Set
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from gate.baselines.base import (
    POOL,
    Entry,
    Found,
    Store,
    StoreSettings,
    check_belongs,
    commit_key,
    look_up,
    storable,
    suite_key,
)
from gate.errors import BaselineError, BaselineWriteError
from gate.git import Git, GitError, checked_revision
from gate.record import Header, Record, parse_record, record_lines

PUSHES = 30
"""How often a push that lost a race is made again."""
TRIES = 4
"""How often a connection that broke is."""
_LONGEST_WAIT = 4.0
_DAY = 86_400.0
_NAME = re.compile(
    r"(?P<suite>[^/]+)/(?P<created>\d{8}T\d{6})"
    r"-(?P<key>(?:[0-9a-f]{40,64}|uncommitted)(?:-dirty)?)"
    r"-(?P<agent>[0-9a-f]{12}|unknown)\.jsonl"
)
_LOST_RACE = re.compile(
    r"\[rejected\]|cannot lock ref|failed to update ref|incorrect old value|reference already exists"
)
_BROKEN = re.compile(r"HTTP 429|HTTP 5\d\d|error: 5\d\d|timed out|Connection reset|early EOF|Could not resolve host")
_IDENTITY = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "agent-gate"), ("EMAIL", "agent-gate@users.noreply.github.com"))
}


class _File(Struct, frozen=True):
    """A record on the branch, as far as its path tells."""

    path: str
    suite: str
    created: str
    """UTC, as ``YYYYMMDDTHHMMSS``, which sorts by time."""
    key: str
    """The commit, with ``-dirty`` where the work tree was."""
    agent: str
    blob: str

    @property
    def time(self) -> float:
        """Unix time; 0 where a stranger's file name holds no real one."""
        try:
            return float(calendar.timegm(time.strptime(self.created, "%Y%m%dT%H%M%S")))
        except ValueError:
            return 0.0


class GitStore(Store):
    """``<suite>/<time>-<commit>-<agent>.jsonl`` on an orphan branch: listing its tree is the whole index."""

    def __init__(self, repository: Git, settings: StoreSettings) -> None:
        self._repository = repository
        self._settings = settings
        self._branch = f"refs/heads/{checked_revision(settings.branch)}"
        self._folder: TemporaryDirectory[str] | None = None
        self._clone: Git | None = None
        self._files: tuple[_File, ...] | None = None

    @classmethod
    def open(cls, settings: StoreSettings) -> Self:
        return cls(Git(settings.root, environment=settings.environment), settings)

    def save(self, record: Record) -> str:
        kept = storable(record)
        try:
            return self._save(kept.header, b"".join(record_lines(kept)))
        except GitError as error:
            hint = error.hint or "the token needs permission to write to the repository (contents: write)"
            raise BaselineWriteError(
                f"the baseline cannot be pushed: {error.what}", where=self._where, hint=hint
            ) from None

    def find(
        self, suite_id: str, commits: Sequence[str], *, exclude: Set[str] = frozenset(), pool: int = POOL
    ) -> Found | None:
        stored = {file.key: file for file in reversed(self._of(suite_id))}
        hits = [stored[commit] for commit in commits if commit in stored and commit not in exclude]
        if not hits:
            return None
        same = [file for file in hits if file.agent == hits[0].agent or file is hits[0]]
        self._bring(same[:pool])
        near = {file.key: file for file in same}
        hit = look_up(commits, near, lambda file: self._read(file, suite_id), exclude=exclude, pool=pool)
        return None if hit is None else replace(hit[1], where=f"{self._where}:{hit[0].path}")

    def latest(self, suite_id: str) -> Found | None:
        files = self._of(suite_id)
        if not files:
            return None
        record = self._read(files[0], suite_id)
        return Found((record,), record.header.commit, None, f"{self._where}:{files[0].path}")

    def entries(self, suite_id: str | None = None) -> list[Entry]:
        files = self._list() if suite_id is None else self._of(suite_id)
        newest = {file.suite: file for file in reversed(files)}
        self._bring(list(newest.values()))
        names = {file.suite: self._parse(file).header.suite_id for file in newest.values()}
        return [_entry(file, names[file.suite]) for file in files]

    def read(self, entry: Entry) -> Record:
        file = next((file for file in self._list() if file.path == entry.where), None)
        if file is None:
            raise BaselineError("the baseline is not there any more", where=f"{self._where}:{entry.where}")
        return self._read(file, entry.suite_id)

    def close(self) -> None:
        """Removes the temporary clone; the store can be used again, which makes another."""
        if self._folder is not None:
            self._folder.cleanup()
        self._folder = self._clone = self._files = None

    # --- the clone ------------------------------------------------------------------------------

    @property
    def _where(self) -> str:
        return f"branch {self._settings.branch} of {self._settings.remote}"

    def _cloned(self) -> Git:
        """An empty repository that knows the remote; made once."""
        if self._clone is None:
            self._folder = TemporaryDirectory(prefix="gate-baselines-", ignore_cleanup_errors=True)
            settings = self._settings
            self._clone = self._repository.scratch(
                Path(self._folder.name), settings.remote, token=settings.token, server=settings.server
            )
            self._clone.environment.update(_IDENTITY)
        return self._clone

    def _fetch(self) -> str | None:
        """The branch's tip, fetched; None where there is no such branch yet."""
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

    # --- reading --------------------------------------------------------------------------------

    def _list(self) -> tuple[_File, ...]:
        """Every record on the branch, newest first; fetched once."""
        if self._files is None:
            try:
                tip = self._fetch()
                self._files = () if tip is None else _listed(self._cloned(), tip)
            except GitError as error:
                hint = error.hint or "check the remote, and that the token may read the repository (contents: read)"
                what = f"the baselines cannot be read: {error.what}"
                raise BaselineError(what, where=self._where, hint=hint) from None
        return self._files

    def _of(self, suite_id: str) -> tuple[_File, ...]:
        key = suite_key(suite_id)
        return tuple(file for file in self._list() if file.suite == key)

    def _bring(self, files: Sequence[_File]) -> None:
        """Fetches several records in one go; what is missing afterwards, git fetches one by one."""
        if len(files) > 1:
            wanted = "".join(f"{file.blob}\n" for file in files).encode()
            options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none", "--stdin")
            try:
                self._retried("-c", "fetch.negotiationAlgorithm=noop", "fetch", *options, "origin", stdin=wanted)
            except GitError:
                return  # a server that gives no single objects: reading one says what is wrong, if anything is

    def _parse(self, file: _File) -> Record:
        where = f"{self._where}:{file.path}"
        try:
            data = self._cloned().run("cat-file", "blob", file.blob)
        except GitError as error:
            raise BaselineError(f"the baseline cannot be read: {error.what}", where=where, hint=error.hint) from None
        return parse_record(data, where=where)

    def _read(self, file: _File, suite_id: str) -> Record:
        return check_belongs(self._parse(file), suite_id, file.key, f"{self._where}:{file.path}")

    # --- writing --------------------------------------------------------------------------------

    def _save(self, header: Header, data: bytes) -> str:
        clone = self._cloned()
        new = _named(header, clone.run("hash-object", "-w", "--stdin", stdin=data).decode().strip())
        self._files = None
        for attempt in range(PUSHES):
            tip = self._fetch()
            files = () if tip is None else _listed(clone, tip)
            if new in files:
                return f"{self._where}:{new.path}"
            gone = _superseded(files, new, self._settings.max_records, self._settings.max_age_days)
            try:
                self._retried(
                    "push", "--quiet", "--no-verify", "origin", f"{self._commit(tip, new, gone)}:{self._branch}"
                )
            except GitError as error:
                if not _LOST_RACE.search(error.output):
                    raise
                _wait(attempt)
            else:
                return f"{self._where}:{new.path}"
        raise GitError(f"{PUSHES} pushes lost the race against other writers", hint="run it again")

    def _commit(self, tip: str | None, new: _File, gone: Sequence[_File]) -> str:
        """A commit on the tip that adds one file and drops others, made in an index of its own."""
        clone = self._cloned()
        index = {"GIT_INDEX_FILE": str(clone.root / "gate-index")}
        clone.run("read-tree", tip or "--empty", environment=index)
        changes = [f"0 {'0' * len(new.blob)}\t{file.path}" for file in gone] + [f"100644 {new.blob}\t{new.path}"]
        clone.run("update-index", "-z", "--index-info", stdin="\0".join([*changes, ""]).encode(), environment=index)
        tree = clone.run("write-tree", "--missing-ok", environment=index).decode().strip()
        parent = () if tip is None else ("-p", tip)
        message = f"Baseline of {new.suite} at {new.key[:12]}\n".encode()
        return clone.run("commit-tree", *parent, "-F", "-", tree, stdin=message).decode().strip()


def _listed(clone: Git, tip: str) -> tuple[_File, ...]:
    """The records in a tree, newest first. Files that are not named like one are none of ours."""
    found = []
    for line in clone.run("ls-tree", "-r", "-z", "--full-tree", tip).decode("utf-8", "replace").split("\0"):
        entry, _, path = line.partition("\t")
        name = _NAME.fullmatch(path)
        if name is not None and entry.startswith("100644 blob "):
            found.append(_File(path, name["suite"], name["created"], name["key"], name["agent"], entry.split(" ")[2]))
    return tuple(sorted(found, key=lambda file: (file.created, file.key), reverse=True))


def _named(header: Header, blob: str) -> _File:
    """Where a record goes. The agent's part of the name spares reading records that cannot be pooled."""
    seconds = header.created if 0 <= header.created < 253_402_300_800 else 0
    created = time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))
    agent = (
        hashlib.sha256(header.agent.encode("utf-8", "surrogatepass")).hexdigest()[:12] if header.agent else "unknown"
    )
    suite, key = suite_key(header.suite_id), commit_key(header)
    return _File(f"{suite}/{created}-{key}-{agent}.jsonl", suite, created, key, agent, blob)


def _superseded(files: Sequence[_File], new: _File, most: int, days: float) -> list[_File]:
    """What a new record drives out of its suite: earlier ones of its commit, the oldest beyond the bounds."""
    mine = [file for file in files if file.suite == new.suite and file.path != new.path]
    replaced = [file for file in mine if file.key == new.key]
    others = [file for file in mine if file.key != new.key]
    kept = max(most - 1, 0)
    old = [file for file in others[:kept] if new.time - file.time > days * _DAY]
    return [*replaced, *others[kept:], *old]


def _entry(file: _File, suite_id: str) -> Entry:
    commit = file.key.removesuffix("-dirty")
    known = None if commit == "uncommitted" else commit
    return Entry(suite_id, known, file.time, file.path, file.key.endswith("-dirty"))


def _wait(attempt: int) -> None:
    """Longer after each failure, and by chance, so that writers that collided once do not do so again."""
    time.sleep(random.uniform(0.02, min(_LONGEST_WAIT, 0.1 * 2**attempt)))  # noqa: S311
