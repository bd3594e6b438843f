"""Baselines on a branch of their own: no history shared with the code, one file per record, no work tree involved.

Works in a temporary, shallow, blobless clone of that branch alone. The user's repository is asked for the remote's URL
and how it signs in there, and is otherwise left alone. A push that lost a race is made again on the new tip, so that no
writer loses.
"""

from __future__ import annotations

import calendar
import hashlib
import io
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Self

from msgspec import Struct, field
from msgspec.structs import replace

from gate.baselines.base import (
    AGAIN,
    ANCHOR_SEARCH,
    POOL,
    Entry,
    Found,
    Say,
    Store,
    StoreOptions,
    StoreSettings,
    check_belongs,
    look_up,
    misplaced,
    storable,
    united,
)
from gate.baselines.ledger import LAST_SECOND, LEDGER, Ledger, Line, anchors, stays
from gate.baselines.ledger import read as read_ledger
from gate.baselines.ledger import write as write_ledger
from gate.errors import BaselineError, BaselineWriteError
from gate.records import Header, Record, parse_record, record_lines
from gate.records.keys import UNCOMMITTED, Stored, commit_key, suite_key
from gate.system.git import Git, GitError, checked_revision

IN_A_FOLDER = "keep baselines in a folder: baseline: {store: file}"
PUSHES = 30
"""How often a push that lost a race is made again."""
TRIES = 4
"""How often the same is done after a broken connection."""
AT_ONCE = 50
"""Records that are brought and held at one time where all of them are read."""
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
    """The commit, with ``-dirty`` if the work tree was."""
    agent: str
    blob: str

    @property
    def time(self) -> float:
        """Unix time; 0 if the file's name, which is untrusted, does not hold one."""
        try:
            return float(calendar.timegm(time.strptime(self.created, "%Y%m%dT%H%M%S")))
        except ValueError:
            return 0.0

    @property
    def is_dirty(self) -> bool:
        return self.key.endswith("-dirty")


class _Change(Struct, frozen=True):
    """What a push is to make of the branch; nothing if both are empty."""

    path: str
    """What it is about."""
    files: Mapping[str, str]
    """Path → blob of what is added or replaced."""
    gone: tuple[str, ...] = ()
    about: str = ""
    """The commit in short, for the message."""


class _Tree(Struct, frozen=True):
    """What is on the branch at one commit of it."""

    tip: str | None = None
    files: tuple[_File, ...] = ()
    """Every record, newest first."""
    ledgers: Mapping[str, str] = field(default_factory=dict)
    """Suite folder → blob of its ledger."""


class GitOptions(StoreOptions):
    """Which branch it is."""

    branch: str = "gate-baselines"
    """Branch of the git store."""


class GitStore(Store):
    """``<suite>/<time>-<commit>-<agent>.jsonl`` on an orphan branch: listing its tree is the whole index.

    Beside the records of a suite is its ledger, ``<suite>/ledger.ndjson``.
    """

    Options = GitOptions

    def __init__(self, repository: Git, settings: StoreSettings) -> None:
        self._repository = repository
        self._settings = settings
        self._branch_name = GitOptions.model_validate(settings.options).branch
        self._branch = f"refs/heads/{checked_revision(self._branch_name)}"
        self._folder: TemporaryDirectory[str] | None = None
        self._clone: Git | None = None
        self._tree: _Tree | None = None

    @classmethod
    def open(cls, settings: StoreSettings) -> Self:
        return cls(Git(settings.root, environment=settings.environment), settings)

    def save(
        self,
        record: Record,
        lines: Iterable[Line] = (),
        *,
        scope: Set[str] | None = None,
        say: Say = lambda _line: None,
    ) -> str:
        kept = storable(record, scope)
        suite = suite_key(kept.header.suite_id)
        path = self._pushed(lambda tree: self._with_record(tree, kept, tuple(lines), say), f"Baseline of {suite}")
        return f"{self._where}:{path}"

    def note(self, suite_id: str, lines: Iterable[Line]) -> None:
        suite, kept = suite_key(suite_id), tuple(lines)
        self._pushed(lambda tree: self._with_lines(tree, suite, kept), f"Note on {suite}")

    def ledger(self, suite_id: str) -> Ledger:
        return self._ledger(self._listed(), suite_key(suite_id))

    def find(
        self, suite_id: str, commits: Sequence[str], *, exclude: Set[str] = frozenset(), pool: int = POOL
    ) -> Found | None:
        stored = {file.key: file for file in reversed(self._of(suite_id))}
        hits = [stored[commit] for commit in commits if commit in stored and commit not in exclude]
        if not hits:
            return None
        same = [file for file in hits if file.agent == hits[0].agent or file is hits[0]]
        self._bring([file.blob for file in same[:pool]])
        near = {file.key: file for file in same}
        hit = look_up(commits, near, lambda file: self._read(file, suite_id), exclude=exclude, pool=pool)
        return None if hit is None else replace(hit[1], where=f"{self._where}:{hit[0].path}")

    def entries(self, suite_id: str | None = None) -> list[Entry]:
        if suite_id is not None:
            return [_entry(file, suite_id) for file in self._of(suite_id)]
        files = self._listed().files
        newest = {file.suite: file for file in reversed(files)}
        self._bring([file.blob for file in newest.values()])
        names = {file.suite: self._checked(file, self._parse(file)).header.suite_id for file in newest.values()}
        return [_entry(file, names[file.suite]) for file in files]

    def _names(self) -> Iterable[tuple[str, str]]:
        return ((file.suite, file.key) for file in self._listed().files)

    def contents(self) -> Iterator[Stored]:
        files = self._listed().files
        for start in range(0, len(files), AT_ONCE):
            part = files[start : start + AT_ONCE]
            for file, data in zip(part, self._all_content([file.blob for file in part]), strict=True):

                def opened(data: bytes | None = data, file: _File = file) -> BinaryIO:
                    return io.BytesIO(self._content(file.blob, file.path) if data is None else data)

                yield Stored(f"{self._where}:{file.path}", opened)

    def bring(self, entries: Sequence[Entry]) -> None:
        wanted = {entry.where for entry in entries}
        self._bring([file.blob for file in self._listed().files if file.path in wanted])

    def read(self, entry: Entry) -> Record:
        file = next((file for file in self._listed().files if file.path == entry.where), None)
        if file is None:
            raise BaselineError("the baseline is not there any more", where=self.place(entry))
        return self._read(file, entry.suite_id)

    def place(self, entry: Entry) -> str:
        return f"{self._where}:{entry.where}"

    def close(self) -> None:
        """Removes the temporary clone; the store can be used again, which makes another."""
        if self._folder is not None:
            self._folder.cleanup()
        self._folder = self._clone = self._tree = None

    # --- the clone ------------------------------------------------------------------------------

    @property
    def _where(self) -> str:
        return f"branch {self._branch_name} of {self._settings.remote}"

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
        """The branch's tip, fetched; None if there is no such branch yet."""
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
        """What to do about an error; a token is of no use where there is no git, repository or remote."""
        name = self._settings.remote
        if not self._repository.program:
            return f"install git, or {IN_A_FOLDER}"
        if not self._repository.is_repository():
            return error.hint or f"`git init` and add the remote {name!r}, or {IN_A_FOLDER}"
        if "no such remote" in f"{error.what} {error.output}".lower():
            return f"`git remote add {name} URL`, or name another under baseline.remote, or {IN_A_FOLDER}"
        return error.hint or otherwise

    # --- reading --------------------------------------------------------------------------------

    def _listed(self) -> _Tree:
        """What is on the branch; fetched once."""
        if self._tree is None:
            try:
                self._tree = _listed(self._cloned(), self._fetch())
            except GitError as error:
                otherwise = "check the remote, and that the token may read the repository (contents: read)"
                hint = self._hint(error, otherwise)
                what = f"the baselines cannot be read: {error.what}"
                raise BaselineError(what, where=self._where, hint=hint) from None
        return self._tree

    def _of(self, suite_id: str) -> tuple[_File, ...]:
        key = suite_key(suite_id)
        return tuple(file for file in self._listed().files if file.suite == key)

    def _bring(self, blobs: Sequence[str]) -> None:
        """Fetches several files in one go; what is missing afterwards, git fetches one by one."""
        if len(blobs) > 1:
            wanted = "".join(f"{blob}\n" for blob in blobs).encode()
            options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none", "--stdin")
            try:
                self._retried("-c", "fetch.negotiationAlgorithm=noop", "fetch", *options, "origin", stdin=wanted)
            except GitError:
                return  # a server that gives no single objects: reading one says what is wrong, if anything is

    def _content(self, blob: str, where: str) -> bytes:
        try:
            return self._cloned().run("cat-file", "blob", blob)
        except GitError as error:
            raise BaselineError(f"the baseline cannot be read: {error.what}", where=where, hint=error.hint) from None

    def _all_content(self, blobs: Sequence[str]) -> list[bytes | None]:
        """The contents of some blobs, brought and read in one go; None for what did not come."""
        self._bring(blobs)
        try:
            said = self._cloned().run("cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in blobs).encode())
        except GitError:
            return [None] * len(blobs)  # read one by one, and the one that is missing says so
        found: list[bytes | None] = []
        at = 0
        for _ in blobs:
            end = said.index(b"\n", at)
            size = said[at:end].rpartition(b" ")[2]
            if not size.isdigit():
                found.append(None)
                at = end + 1
                continue
            found.append(said[end + 1 : end + 1 + int(size)])
            at = end + int(size) + 2
        return found

    def _ledger(self, tree: _Tree, suite: str) -> Ledger:
        blob, where = tree.ledgers.get(suite), f"{self._where}:{suite}/{LEDGER}"
        return Ledger() if blob is None else read_ledger(self._content(blob, where), suite, where)

    def _parse(self, file: _File) -> Record:
        where = f"{self._where}:{file.path}"
        branch = self._branch_name
        remedy = f"on {branch}, `git rm {file.path}` (or `git revert` what damaged it), commit and push; then {AGAIN}"
        return parse_record(self._content(file.blob, where), where=where, remedy=remedy)

    def _read(self, file: _File, suite_id: str) -> Record:
        record = check_belongs(self._parse(file), suite_id, file.key, f"{self._where}:{file.path}")
        return self._checked(file, record)

    def _checked(self, file: _File, record: Record) -> Record:
        """The record, if its file is where it would have been stored."""
        if _named(record.header, file.blob).path != file.path:
            raise misplaced(f"{self._where}:{file.path}")
        return record

    # --- writing --------------------------------------------------------------------------------

    def _pushed(self, change: Callable[[_Tree], _Change], message: str) -> str:
        """Changes the branch at its newest tip, again until a push is accepted; returns the changed path."""
        try:
            return self._push(change, message)
        except GitError as error:
            hint = self._hint(error, "the token needs permission to write to the repository (contents: write)")
            what = f"the baseline cannot be pushed: {error.what}"
            raise BaselineWriteError(what, where=self._where, hint=hint) from None
        except BaselineError as error:
            raise BaselineWriteError(error.what, where=error.where, hint=error.hint) from None

    def _push(self, change: Callable[[_Tree], _Change], message: str) -> str:
        self._tree = None
        for attempt in range(PUSHES):
            tree = _listed(self._cloned(), self._fetch())
            wanted = change(tree)
            if not wanted.files and not wanted.gone:
                return wanted.path
            commit = self._commit(tree.tip, wanted, f"{message} at {wanted.about}" if wanted.about else message)
            try:
                self._retried("push", "--quiet", "--no-verify", "origin", f"{commit}:{self._branch}")
            except GitError as error:
                if not _LOST_RACE.search(error.output):
                    raise
                _wait(attempt)
            else:
                return wanted.path
        raise GitError(f"{PUSHES} pushes lost the race against other writers", hint="run it again")

    def _with_record(self, tree: _Tree, kept: Record, lines: Sequence[Line], say: Say) -> _Change:
        """The record united with what is stored of its commit, the ledger with these lines, and what they drive out."""
        suite_id = kept.header.suite_id
        suite, key = suite_key(suite_id), commit_key(kept.header)
        mine = [file for file in tree.files if file.suite == suite]
        same = [file for file in mine if file.key == key]
        for file in same:
            kept = united(lambda file=file: self._read(file, suite_id), kept, say)  # type: ignore[misc]
        new = _named(kept.header, self._stored(b"".join(record_lines(kept))))
        known = self._ledger(tree, suite)
        ledger = known.add(lines)
        gone = [file for file in same if file.path != new.path]
        gone += self._superseded([file for file in mine if file.key != key], new, ledger)
        ledger = ledger.only({file.key for file in mine if file not in gone} | {key})
        files = {} if new in mine else {new.path: new.blob}
        if ledger is not known:
            files[f"{suite}/{LEDGER}"] = self._stored(write_ledger(ledger))
        return _Change(new.path, files, tuple(file.path for file in gone), key[:12])

    def _with_lines(self, tree: _Tree, suite: str, lines: Sequence[Line]) -> _Change:
        known = self._ledger(tree, suite)
        ledger, path = known.add(lines), f"{suite}/{LEDGER}"
        return _Change(path, {} if ledger is known else {path: self._stored(write_ledger(ledger))})

    def _superseded(self, others: Sequence[_File], new: _File, ledger: Ledger) -> list[_File]:
        """The oldest of a suite beyond the bounds; never a release, what someone accepted, or the anchor."""
        stored = {file.key: file.time for file in (*others, new) if not file.is_dirty}
        pinned = {line.key for line in ledger.lines if stays(line)}
        for view in (
            ledger,
            ledger.at(LAST_SECOND),
        ):  # also what is the anchor once every acceptance that ends has ended
            judged = [candidate.key for candidate in anchors(view, stored) if ledger.knows(candidate.key)]
            pinned |= set(judged[:ANCHOR_SEARCH])
        kept = max(self._settings.max_records - 1, 0)
        oldest = new.time - self._settings.max_age_days * _DAY
        return [
            file for nth, file in enumerate(others) if file.key not in pinned and (nth >= kept or file.time < oldest)
        ]

    def _stored(self, data: bytes) -> str:
        return self._cloned().run("hash-object", "-w", "--stdin", stdin=data).decode().strip()

    def _commit(self, tip: str | None, change: _Change, message: str) -> str:
        """A commit on the tip that adds files and drops others, made in an index of its own."""
        clone = self._cloned()
        index = {"GIT_INDEX_FILE": str(clone.root / "gate-index")}
        clone.run("read-tree", tip or "--empty", environment=index)
        none = "0" * len(next(iter(change.files.values()), tip or "0" * 40))
        changes = [f"0 {none}\t{path}" for path in change.gone]
        changes += [f"100644 {blob}\t{path}" for path, blob in change.files.items()]
        clone.run("update-index", "-z", "--index-info", stdin="\0".join([*changes, ""]).encode(), environment=index)
        tree = clone.run("write-tree", "--missing-ok", environment=index).decode().strip()
        parent = () if tip is None else ("-p", tip)
        return clone.run("commit-tree", *parent, "-F", "-", tree, stdin=f"{message}\n".encode()).decode().strip()


def _listed(clone: Git, tip: str | None) -> _Tree:
    """The records in a tree, newest first, and the ledgers. Files of other names are not ours."""
    if tip is None:
        return _Tree()
    found, ledgers = [], {}
    for line in clone.run("ls-tree", "-r", "-z", "--full-tree", tip).decode("utf-8", "replace").split("\0"):
        entry, _, path = line.partition("\t")
        if not entry.startswith("100644 blob "):
            continue
        name, (folder, _, last), blob = _NAME.fullmatch(path), path.rpartition("/"), entry.split(" ")[2]
        if name is not None:
            found.append(_File(path, name["suite"], name["created"], name["key"], name["agent"], blob))
        elif last == LEDGER:
            ledgers[folder] = blob
    files = sorted(found, key=lambda file: (file.created, file.key), reverse=True)
    return _Tree(tip, tuple(files), ledgers)


def _named(header: Header, blob: str) -> _File:
    """Where a record goes. The agent's part of the name spares reading records that cannot be pooled."""
    seconds = header.created if 0 <= header.created < 253_402_300_800 else 0
    created = time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))
    agent = (
        hashlib.sha256(header.agent.encode("utf-8", "surrogatepass")).hexdigest()[:12] if header.agent else "unknown"
    )
    suite, key = suite_key(header.suite_id), commit_key(header)
    return _File(f"{suite}/{created}-{key}-{agent}.jsonl", suite, created, key, agent, blob)


def _entry(file: _File, suite_id: str) -> Entry:
    commit = file.key.removesuffix("-dirty")
    known = None if commit == UNCOMMITTED else commit
    return Entry(suite_id, known, file.time, file.path, file.is_dirty)


def _wait(attempt: int) -> None:
    """Longer after each failure, and by chance, so that writers that collided once do not do so again."""
    time.sleep(random.uniform(0.02, min(_LONGEST_WAIT, 0.1 * 2**attempt)))  # noqa: S311
