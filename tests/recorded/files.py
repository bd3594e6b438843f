"""A recorded situation as files: the records in a compressed form, everything that is to be read as plain text."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

FOLDER = Path(__file__).parent / "situations"
ABOUT, RESULT, TEXT, COMMENT = "situation.json", "result.json", "report.txt", "comment.md"
LEFT_OUT = ("gate_version", "record_paths")
"""Keys of a result that differ between versions and places, and say nothing of a verdict."""
LEFT_OUT_OF_CASES = ("complexity", "duration", "expected", "location")
"""Keys of a case that repeat its record, or how long it took."""
NOTHING: tuple[object, ...] = (None, "", [], {})
DIGITS = 9
"""Significant digits of a number: the last ones of a sum are the machine's."""
WIDTH = 120


class Compared(Struct, frozen=True, forbid_unknown_fields=True):
    """One reference that a suite was compared with."""

    name: str
    info: dict[str, Any]
    records: tuple[str, ...] = ()
    """Files, the nearest first."""
    of_change: bool = False


class Suite(Struct, frozen=True, forbid_unknown_fields=True):
    """One suite of a run."""

    record: str
    """The file of its record, whose closing line holds the rules."""
    references: tuple[Compared, ...] = ()
    """The first is the one whose figures are shown first."""
    accepted: str = ""
    """Who accepted the run."""
    expired: str = ""
    """That an acceptance has ended, and when."""


class About(Struct, frozen=True, forbid_unknown_fields=True):
    """What a situation is, and which files it is made of."""

    about: str
    """What it is, in a phrase."""
    source: str
    """Where it was recorded."""
    suites: tuple[Suite, ...]


class Situation(Struct, frozen=True):
    """One folder."""

    name: str
    folder: Path
    about: About

    @property
    def suites(self) -> tuple[Suite, ...]:
        return self.about.suites

    @property
    def has_texts(self) -> bool:
        """Whether its reports for people are agreed on too."""
        return (self.folder / TEXT).exists()

    def read(self, name: str) -> bytes:
        """The bytes of one of its records."""
        return gzip.decompress((self.folder / name).read_bytes())


def names(folder: Path = FOLDER) -> list[str]:
    """Every recorded situation."""
    return sorted(path.parent.name for path in folder.glob(f"*/{ABOUT}"))


def load(name: str, folder: Path = FOLDER) -> Situation:
    """The situation of this name."""
    own = folder / name
    return Situation(name, own, msgspec.json.decode((own / ABOUT).read_bytes(), type=About))


def packed(data: bytes) -> bytes:
    """The bytes compressed, the same each time."""
    return gzip.compress(data, 9, mtime=0)


def save(name: str, about: About, records: Mapping[str, bytes], folder: Path = FOLDER) -> Situation:
    """Writes a situation without its result; what was there of another one goes."""
    own = folder / name
    own.mkdir(parents=True, exist_ok=True)
    for path in own.glob("*.gz"):
        path.unlink()
    for file, data in records.items():
        (own / file).write_bytes(packed(data))
    plain = msgspec.to_builtins(about)
    (own / ABOUT).write_text(pretty(plain), encoding="utf-8")
    return load(name, folder)


# --- values as they are compared ------------------------------------------------------------------


def agreed(report: Any) -> Any:
    """A JSON report without what differs between versions and places, without what is empty, and in short."""
    return settled({key: value for key, value in report.items() if key not in LEFT_OUT})


def _grouped(cases: Sequence[Any]) -> list[Any]:
    """Cases of which the same is said, together: under ``ids`` instead of ``id``."""
    found: dict[str, dict[str, Any]] = {}
    for case in cases:
        said = {key: value for key, value in case.items() if key != "id" and key not in LEFT_OUT_OF_CASES}
        group = found.setdefault(json.dumps(said, sort_keys=True), {"ids": [], **said})
        group["ids"].append(case["id"])
    return list(found.values())


def settled(value: Any) -> Any:
    """The value with rounded numbers, and without keys that hold nothing: a key that is new and empty is no change.

    A criterion is written as its name, since what is demanded of it stands in the record; cases that are alike are one.
    """
    if isinstance(value, dict):
        kept = {key: settled(held) for key, held in value.items()}
        if isinstance(kept.get("criterion"), dict):
            kept["criterion"] = kept["criterion"]["name"]
        if "suite_id" in kept:
            kept["cases"] = _grouped(kept["cases"])
        return {key: held for key, held in kept.items() if held not in NOTHING and held is not False}
    if isinstance(value, list | tuple):
        return [settled(held) for held in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def pretty(value: Any) -> str:
    """Sorted JSON in which whatever fits on a line is on one."""
    return _lines(value, 0) + "\n"


def _lines(value: Any, depth: int, used: int = 0) -> str:
    short = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(short) + used + depth <= WIDTH:
        return short
    inner = " " * (depth + 1)
    if isinstance(value, list):
        parts = [inner + _lines(held, depth + 1) for held in value]
    else:
        keys = [(f"{json.dumps(key, ensure_ascii=False)}: ", value[key]) for key in sorted(value)]
        parts = [inner + key + _lines(held, depth + 1, len(key)) for key, held in keys]
    begin, end = ("[", "]") if isinstance(value, list) else ("{", "}")
    return begin + "\n" + ",\n".join(parts) + "\n" + " " * depth + end
