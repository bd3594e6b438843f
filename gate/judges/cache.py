"""Answers already paid for, on disk: handles keys and texts, not their meaning. Safe to share between processes."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from pathlib import Path
from typing import Any

from gate.errors import ConfigError
from gate.security import files

TABLE = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
FORMAT = 1
"""1: one row per vote, key → JSON."""


def key_of(request: Any) -> str:
    """Return the SHA-256 of everything that decides an answer, as canonical JSON."""
    text = json.dumps([FORMAT, request], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


class Cache:
    """Key → JSON value, in an SQLite file with a write-ahead log; in memory if no path is given.

    A cache that fails during a run costs a call, never a score: reads then miss and writes are lost.

    Raises:
        ConfigError: the file is not a cache, or its folder is not writable.
    """

    def __init__(self, path: Path | None) -> None:
        try:
            if path is not None:
                files.make_folder(path.parent)
                for beside in ("", "-journal", "-wal", "-shm"):
                    files.check(path.with_name(path.name + beside))
            self._db = sqlite3.connect(path if path is not None else ":memory:", timeout=10, isolation_level=None)
            self._use_write_ahead_log()
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(TABLE)
        except (OSError, sqlite3.Error) as error:
            hint = "delete it, or name another file"
            raise ConfigError(f"the judge's cache cannot be opened: {error}", where=str(path), hint=hint) from error

    def _use_write_ahead_log(self) -> None:
        """Switch the journal; while another process does so, sqlite reports "locked" at once instead of waiting."""
        for pause in (0.05, 0.1, 0.2, 0.4, 0.8, 1.6):
            try:
                self._db.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                time.sleep(pause)
        self._db.execute("PRAGMA journal_mode=WAL")

    def get(self, key: str) -> dict[str, Any] | None:
        try:
            row = self._db.execute("SELECT value FROM answers WHERE key = ?", (key,)).fetchone()
            value = json.loads(row[0]) if row else None
        except (sqlite3.Error, ValueError):
            return None
        return value if isinstance(value, dict) else None

    def put(self, key: str, value: dict[str, Any]) -> None:
        try:
            self._db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, json.dumps(value)))
        except sqlite3.Error:
            return

    def close(self) -> None:
        self._db.close()
