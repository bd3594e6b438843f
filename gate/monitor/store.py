"""The state of a monitor in SQLite: positions in files, scored traces, the status, and deliveries to targets.

A trace is stored once by its id, in one transaction with the position in its file: however a monitor ends, nothing is
lost and nothing counts twice. One monitor at a time reads and writes, under a lock that the system releases when the
process ends; anybody may look.
"""

from __future__ import annotations

import fcntl
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import wraps
from io import FileIO
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from msgspec import MsgspecError, Struct, convert
from msgspec.json import Encoder, decode
from msgspec.structs import asdict, astuple

from gate.errors import ConfigError, GateError, MeasureError
from gate.monitor.model import Counts, Observation
from gate.monitor.sources import Position
from gate.monitor.window import Status
from gate.security import files

FORMAT = 2
TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sources (identity TEXT PRIMARY KEY, path TEXT NOT NULL, position INTEGER NOT NULL,
    safe INTEGER NOT NULL, read INTEGER NOT NULL, mark BLOB NOT NULL, changed INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS traces (number INTEGER PRIMARY KEY, trace TEXT NOT NULL UNIQUE, at REAL NOT NULL,
    seen REAL NOT NULL, passed INTEGER, average REAL, scores TEXT NOT NULL, applied TEXT NOT NULL, why TEXT NOT NULL,
    query TEXT NOT NULL, output TEXT NOT NULL, kept BLOB, criteria TEXT NOT NULL, exported INTEGER NOT NULL,
    look INTEGER NOT NULL, judges TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS to_export ON traces (number) WHERE exported = 0;
CREATE INDEX IF NOT EXISTS by_arrival ON traces (look, min(at, seen), at, trace, criteria, seen);
CREATE INDEX IF NOT EXISTS conversations ON traces (look, min(at, seen), at, trace) WHERE kept IS NOT NULL;
CREATE TABLE IF NOT EXISTS changes (number INTEGER PRIMARY KEY, at REAL NOT NULL, before TEXT NOT NULL,
    after TEXT NOT NULL, why TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS targets (name TEXT PRIMARY KEY, told TEXT NOT NULL, at REAL NOT NULL,
    attempts INTEGER NOT NULL, next_at REAL NOT NULL, error TEXT NOT NULL) WITHOUT ROWID;
"""
_NEWEST_FIRST = "ORDER BY look DESC, min(at, seen) DESC, at DESC, trace DESC"
_OLDEST_FIRST = "ORDER BY look, min(at, seen), at, trace"
"""As they arrived: no clock decides which are the newest. Traces of one look are ordered by their end, regardless of
the order of files. A trace cannot end after it was read: if it claims so, its clock is ahead, and the time of reading
counts."""
KEEP_TRACES = 1_000_000
"""Newest traces that are remembered; one that is read again after that many newer ones counts again."""
KEEP_CONVERSATIONS = 2_000
"""Newest failed conversations that are stored whole."""
PRUNE_EVERY = 1_000
BUSY_SECONDS = 10.0
_OUR_TABLES = frozenset(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", TABLES))
_DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)
"""SQLite's errors for a file that is no database, is damaged, or lacks one of our tables or columns."""
_ENCODER = Encoder()
P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound=Struct)
_COLUMNS = "trace, min(at, seen), passed, average, scores, why, query, output, applied, kept, judges"
"""The columns of a trace, in the order of an `Observation`'s fields."""
_JSON = ("scores", "applied", "judges")
"""The columns that hold JSON."""


def _said_kindly(method: Callable[P, T]) -> Callable[P, T]:
    """Wrap a method of `MonitorState` so that errors of SQLite or a decoder become one line about the file."""

    @wraps(method)
    def inner(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except (sqlite3.Error, MsgspecError) as error:
            state = args[0]
            assert isinstance(state, MonitorState)
            raise _unusable(state.path, "used", error) from error

    return inner


class Delivery(Struct, frozen=True):
    """The last message to a target of alerts, and the result of the last attempts."""

    told: Status
    at: float = 0.0
    """Unix time of the last message."""
    attempts: int = 0
    """Failed attempts in a row."""
    next_at: float = 0.0
    """Unix time before which no attempt is made."""
    error: str = ""


class MonitorState:
    """The state in a file; open it with `open_state`."""

    def __init__(self, path: Path, db: sqlite3.Connection, lock: FileIO | None) -> None:
        self.path, self._db, self._lock = path, db, lock
        self._since_prune = 0

    def close(self) -> None:
        self._db.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> MonitorState:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- writing ----------------------------------------------------------------------------------

    @_said_kindly
    def commit(
        self,
        observations: Sequence[Observation],
        positions: Sequence[Position],
        counts: Counts,
        *,
        now: float,
        look: int,
        criteria: str,
        export: bool = False,
    ) -> int:
        """Store a batch in one transaction; return how many of its traces were new.

        ``look``: the number of the look that read them (`next_look`); ``now``: its beginning. Traces of one look whose
        clocks are ahead keep their order. ``criteria``: the fingerprint of the criteria; a window holds traces of one
        set of criteria. ``export``: whether their scores wait to be exported.
        """
        with self._transaction():
            new = sum(self._insert(one, now, look, criteria, exported=not export) for one in observations)
            counts = counts + Counts(sampled=new, repeated=len(observations) - new)
            self._set("counts", self.counts + counts)
            self._db.executemany(
                "INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, ?, ?, ?)",
                map(astuple, positions),
            )
            self._prune(new)
        return new

    def _insert(self, one: Observation, now: float, look: int, criteria: str, *, exported: bool) -> int:
        row = {**asdict(one), "kept": one.kept or None}
        for name in _JSON:
            row[name] = _ENCODER.encode(row[name]).decode()
        row |= {"seen": now, "criteria": criteria, "exported": exported, "look": look}
        done = self._db.execute(
            f"INSERT OR IGNORE INTO traces ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",  # noqa: S608
            tuple(row.values()),
        )
        return done.rowcount

    def _prune(self, new: int) -> None:
        self._since_prune += new
        if self._since_prune < PRUNE_EVERY:
            return
        self._since_prune = 0
        (traces,) = self._db.execute("SELECT count(*) FROM traces").fetchone()
        self._db.execute(
            f"DELETE FROM traces WHERE number IN (SELECT number FROM traces {_OLDEST_FIRST} LIMIT ?)",  # noqa: S608
            (max(0, traces - KEEP_TRACES),),
        )
        self._db.execute(
            f"""UPDATE traces SET kept = NULL WHERE number IN
            (SELECT number FROM traces WHERE kept IS NOT NULL {_NEWEST_FIRST} LIMIT -1 OFFSET ?)""",  # noqa: S608
            (KEEP_CONVERSATIONS,),
        )

    @_said_kindly
    def change(self, after: Status, why: str, now: float, *, blind: bool = False) -> None:
        """Store the status, and a change if it differs from the one before.

        ``blind``: nothing can be measured at the moment, so the status from before is restored afterwards.
        """
        before = self.status
        if not blind and self.standing is not after:
            self._set("standing", after.value)
        if before is after:
            return
        with self._transaction():
            self._db.execute(
                "INSERT INTO changes (at, before, after, why) VALUES (?, ?, ?, ?)",
                (now, before.value, after.value, why),
            )
            self._set("status", after.value)

    @_said_kindly
    def delivered(self, target: str, delivery: Delivery) -> None:
        """Store the last delivery to a target."""
        row = (target, *astuple(delivery))
        self._db.execute("INSERT OR REPLACE INTO targets VALUES (?, ?, ?, ?, ?, ?)", row)

    @_said_kindly
    def exported(self, up_to: int) -> None:
        """Store that the scores of the traces up to this number were exported."""
        self._db.execute("UPDATE traces SET exported = 1 WHERE exported = 0 AND number <= ?", (up_to,))

    def _set(self, name: str, value: Any) -> None:
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, _ENCODER.encode(value).decode()))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # --- reading ----------------------------------------------------------------------------------

    @property
    def counts(self) -> Counts:
        return self._fact("counts", Counts) or Counts()

    @property
    def status(self) -> Status:
        return self._fact("status", Status) or Status.INSUFFICIENT_DATA

    @property
    def standing(self) -> Status:
        """The status when traces could last be measured."""
        return self._fact("standing", Status) or self.status

    @_said_kindly
    def positions(self) -> list[Position]:
        rows = self._db.execute("SELECT identity, path, position, safe, read, mark, changed FROM sources")
        return [_struct(Position, row) for row in rows]

    @_said_kindly
    def has(self, trace: str) -> bool:
        return self._db.execute("SELECT 1 FROM traces WHERE trace = ?", (trace,)).fetchone() is not None

    @_said_kindly
    def window(self, most: int, criteria: str) -> list[Observation]:
        """Return the newest traces with these criteria, the oldest first, without their conversations."""
        columns = _COLUMNS.replace("kept", "NULL")
        rows = self._db.execute(
            f"SELECT {columns} FROM traces WHERE criteria = ? {_NEWEST_FIRST} LIMIT ?",  # noqa: S608
            (criteria, most),
        ).fetchall()
        return [_observation(row) for row in reversed(rows)]

    @_said_kindly
    def last_seen(self, criteria: str) -> float | None:
        """Return the Unix time at which the newest trace measured by these criteria was read; None if there is none."""
        row = self._db.execute(
            f"SELECT seen FROM traces WHERE criteria = ? AND passed IS NOT NULL {_NEWEST_FIRST} LIMIT 1",  # noqa: S608
            (criteria,),
        ).fetchone()
        return None if row is None else convert(row[0], float)

    @_said_kindly
    def next_look(self) -> int:
        """Return a number greater than that of every look that read a stored trace."""
        (found,) = self._db.execute("SELECT max(look) FROM traces").fetchone()
        return convert(found or 0, int) + 1

    @_said_kindly
    def outcomes(self, most: int, criteria: str) -> list[bool | None]:
        """Return the outcome of each trace of `window`, the oldest first; None if it was not measured."""
        rows = self._db.execute(
            f"SELECT passed FROM traces WHERE criteria = ? {_NEWEST_FIRST} LIMIT ?",  # noqa: S608
            (criteria, most),
        ).fetchall()
        return [_passed(passed) for (passed,) in reversed(rows)]

    @_said_kindly
    def trace(self, trace: str) -> Observation | None:
        """Return a stored trace by its id; None if there is none."""
        row = self._db.execute(f"SELECT {_COLUMNS} FROM traces WHERE trace = ?", (trace,)).fetchone()  # noqa: S608
        return None if row is None else _observation(row)

    @_said_kindly
    def like(self, beginning: str, most: int) -> list[str]:
        """Return ids of traces that begin with this text."""
        end = beginning + "\U0010ffff"
        rows = self._db.execute(
            "SELECT trace FROM traces WHERE trace >= ? AND trace < ? LIMIT ?", (beginning, end, most)
        )
        return [row[0] for row in rows]

    @_said_kindly
    def to_export(self, most: int) -> list[tuple[int, Observation]]:
        """Return traces whose scores wait to be exported, with their numbers, the oldest first."""
        rows = self._db.execute(
            f"SELECT number, {_COLUMNS} FROM traces WHERE exported = 0 ORDER BY number LIMIT ?",  # noqa: S608
            (most,),
        )
        return [(row[0], _observation(row[1:])) for row in rows]

    @_said_kindly
    def last_change(self) -> tuple[int, float] | None:
        """Return the number and the Unix time of the last change of status; None if it never changed."""
        row = self._db.execute("SELECT number, at FROM changes ORDER BY number DESC LIMIT 1").fetchone()
        return None if row is None else convert(row, tuple[int, float])

    @_said_kindly
    def deliveries(self) -> Mapping[str, Delivery]:
        """Return the last delivery to each target."""
        rows = self._db.execute("SELECT name, told, at, attempts, next_at, error FROM targets")
        return {name: _struct(Delivery, row) for name, *row in rows}

    @_said_kindly
    def _fact(self, name: str, kind: type[T]) -> T | None:
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else decode(row[0], type=kind)


def _struct(kind: type[S], row: Sequence[Any]) -> S:
    """Return a row as a struct, with types checked: SQLite accepts any value in any column. Raises `MsgspecError`."""
    return convert(dict(zip(kind.__struct_fields__, row, strict=True)), kind)


def _passed(value: Any) -> bool | None:
    found = convert(value, Literal[0, 1] | None)
    return None if found is None else bool(found)


def _observation(row: Sequence[Any]) -> Observation:
    held = dict(zip(Observation.__struct_fields__, row, strict=True))
    for name in _JSON:
        held[name] = decode(held[name])
    scores = convert(held["scores"], dict[str, float | bool | None])
    held["scores"] = {name: float(value) for name, value in scores.items() if value is not None}  # null: no number
    held["passed"], held["kept"] = _passed(held["passed"]), held["kept"] or b""
    return convert(held, Observation)


def is_other_file(path: Path) -> bool:
    """True if a file is there and no database, as a monitor's state is: a record is text."""
    try:
        with path.open("rb") as file:
            return file.read(16) != b"SQLite format 3\0"
    except OSError:
        return False


def open_state(path: Path) -> MonitorState | None:
    """Return the state in a file, which is created if missing; None if another monitor is writing it.

    Raises:
        ConfigError: the file is no state of a monitor, is from a newer version, or cannot be opened.
    """
    with _opening(path) as opened:
        lock = opened.enter_context(files.open_to_append(path.with_name(path.name + ".lock")))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        db = opened.enter_context(closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)))
        _check(db, path, may_be_new=True)
        _write_ahead(db)
        db.execute("PRAGMA synchronous=NORMAL")
        db.executescript(TABLES)
        db.execute(f"PRAGMA user_version={FORMAT}")
        opened.pop_all()
        return MonitorState(path, db, lock)


def read_state(path: Path) -> MonitorState:
    """Return the state in a file without its lock and without changing the file. Raises as `open_state`.

    Nothing is created: a path that is only read may be anyone's file.

    Raises:
        MeasureError: the file does not exist.
    """
    with _opening(path) as opened:
        if not path.is_file():
            raise _nothing_yet(path)
        address = f"{path.absolute().as_uri()}?mode=ro"
        db = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        opened.enter_context(closing(db))
        _check(db, path, may_be_new=False)
        opened.pop_all()
        return MonitorState(path, db, None)


@contextmanager
def _opening(path: Path) -> Iterator[ExitStack]:
    """Refuse links in the place of the state's files, and report any error about them in one line.

    Whatever is left on the stack is closed.
    """
    try:
        for beside in ("", "-wal", "-shm", ".lock"):
            files.check(path.with_name(path.name + beside))
        with ExitStack() as opened:
            yield opened
    except (OSError, sqlite3.Error) as error:
        raise _unusable(path, "opened", error) from error


def _nothing_yet(path: Path) -> MeasureError:
    return MeasureError("no monitor has stored anything here yet", where=str(path), hint="run `gate monitor`")


def _unusable(path: Path, what: str, error: Exception) -> GateError:
    """Return the error for a state that cannot be used. A full disk is no reason to delete it."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    damaged = isinstance(error, MsgspecError) or code & 0xFF in _DAMAGED
    mend = "move it away" if damaged else "make room and its folder writable"
    said = str(error) or type(error).__name__
    hint = f"{mend}, or name another with --state"
    kind = ConfigError if damaged or what == "opened" else MeasureError
    return kind(f"the monitor's state cannot be {what}: {said}", where=str(path), hint=hint)


def _check(db: sqlite3.Connection, path: Path, *, may_be_new: bool) -> None:
    """Raise `ConfigError` for a database of another program or a newer version, or one that lacks a table.

    A process that is creating a state, or was killed while doing so, leaves some tables and no version: `MeasureError`,
    unless it ``may_be_new``.
    """
    (version,) = db.execute("PRAGMA user_version").fetchone()
    found = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    tables = {name for (name,) in found}
    if version > FORMAT and (not tables or tables >= _OUR_TABLES):
        what = f"the monitor's state is of format {version}, and this version reads up to {FORMAT}"
        raise ConfigError(what, where=str(path), hint="update agent-gate, or name another state")
    is_new = version == 0 and tables < _OUR_TABLES
    if is_new and not may_be_new:
        raise _nothing_yet(path)
    missing, foreign = _OUR_TABLES - tables, tables - _OUR_TABLES
    why = ""
    if missing and not is_new:
        why = f"it lacks the table {min(missing)}"
    elif foreign:
        why = f"it has a table {min(foreign)}"
    if why:
        what = f"the file is a database, but no monitor's state: {why}"
        raise ConfigError(what, where=str(path), hint="move it away, or name another file")


def _write_ahead(db: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; while another process does so, SQLite fails with "locked" instead of waiting."""
    for pause in (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 0.0):
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or not pause:
                raise
            time.sleep(pause)
