"""Proofs that a stored record was measured by a trusted job: digests of its header and of each run. Pure.

A stored record unites several runs, and anyone with write access to the store can add another. So the proofs are for
parts of the file: parts without a proof are left out, and the rest is as it was measured. Ledger lines, which move the
anchor, are kept whole among the proofs, so that one that somebody removed is still there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from gate.baselines.base import storable
from gate.baselines.ledger import Ledger, Line
from gate.baselines.ledger import read as read_ledger
from gate.baselines.ledger import write as write_ledger
from gate.baselines.union import RunPart, parts_of, trial_lines, without
from gate.errors import BaselineError, UntrustedError
from gate.records import Header, Record, footer_of, parse_record, record_lines
from gate.records.keys import commit_key, suite_key

VERSION = 1
# 1: the first.
FILE = "proofs.json"
"""Name of the file in a job's results."""
MAX_BYTES = 20_000_000
DIGESTS_A_PARCEL = 50
LINES_A_PARCEL = 4
Key = tuple[str, str]
"""A suite's folder and a record's key in it: its commit."""


class Proofs(Struct, frozen=True):
    """Digests and ledger lines that trusted jobs vouch for."""

    digests: Mapping[Key, frozenset[str]] = {}
    ledgers: Mapping[str, tuple[Line, ...]] = {}
    """The lines written by trusted jobs, by the suite's folder."""

    def has(self, suite: str) -> bool:
        """True if any record of the suite is proven."""
        return any(known == suite for known, _ in self.digests)

    def of_suite(self, suite: str) -> Proofs:
        """Return the proofs of one suite."""
        digests = {key: held for key, held in self.digests.items() if key[0] == suite}
        return Proofs(digests, {name: lines for name, lines in self.ledgers.items() if name == suite})

    def only(self, keys: Iterable[Key]) -> Proofs:
        """Return the proofs of records that are still stored. Lines stay, as acceptances and releases count without
        their records."""
        wanted = set(keys)
        return replace(self, digests={key: found for key, found in self.digests.items() if key in wanted})


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    v: int
    digests: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    ledgers: dict[str, str] = field(default_factory=dict)


def joined(all_: Iterable[Proofs]) -> Proofs:
    """Return the union of several proofs."""
    digests: dict[Key, frozenset[str]] = {}
    ledgers: dict[str, tuple[Line, ...]] = {}
    for one in all_:
        for key, found in one.digests.items():
            digests[key] = digests.get(key, frozenset()) | found
        for suite, lines in one.ledgers.items():
            ledgers[suite] = Ledger(ledgers.get(suite, ())).add(lines).lines
    return Proofs(digests, ledgers)


def parcels(proofs: Proofs) -> list[Proofs]:
    """Return the proofs in parts, each small enough for one ledger line when signed."""
    found = []
    for key, digests in proofs.digests.items():
        known = sorted(digests)
        for start in range(0, len(known), DIGESTS_A_PARCEL):
            found.append(Proofs({key: frozenset(known[start : start + DIGESTS_A_PARCEL])}))
    for suite, lines in proofs.ledgers.items():
        for start in range(0, len(lines), LINES_A_PARCEL):
            found.append(Proofs({}, {suite: lines[start : start + LINES_A_PARCEL]}))
    return found


# --- digests ----------------------------------------------------------------------------------------


def proofs_of(record: Record, lines: Sequence[Line] = ()) -> Proofs:
    """Return the proofs of a record, as it will be stored, by the job that measured it, and of its ledger lines.

    Raises:
        BaselineWriteError: it cannot become a baseline.
    """
    scope = frozenset(case.id for case in record.header.plan)
    kept = parse_record(b"".join(record_lines(storable(record, scope))))  # as a reader of the store sees it
    suite = suite_key(kept.header.suite_id)
    digests = {header_digest(kept.header)}
    for part in parts_of(kept):
        digests.add(part_digest(kept.header, part))
    ledgers = {suite: tuple(lines)} if lines else {}
    return Proofs({(suite, commit_key(kept.header)): frozenset(digests)}, ledgers)


def _common(header: Header) -> Header:
    """Return the part of a header that runs of one commit share, without their ids, times and gate versions."""
    return replace(header, runs=(), run_id="", created=0.0, gate_version="", base_commit=None, seed=0)


def header_digest(header: Header) -> str:
    """Return the digest of the part of a header that all united runs share."""
    return _digest(["header"], record_lines(Record(_common(header), (), footer_of(()))))


def part_digest(header: Header, part: RunPart) -> str:
    """Return the digest of one run's trials, with their suite and commit. The trials are renumbered."""
    about = ["run", header.suite_id, commit_key(header), part.run.id, part.run.created]
    return _digest(about, sorted(trial_lines(part.trials)))


def _digest(about: Sequence[object], lines: Iterable[bytes]) -> str:
    digest = hashlib.sha256(json.dumps(about).encode() + b"\n")
    for line in lines:
        digest.update(line)
    return digest.hexdigest()


# --- what is proven of a record ---------------------------------------------------------------------


def proven_part(record: Record, digests: frozenset[str]) -> Record | None:
    """Return a stored record with only its proven runs and their part of the header.

    None if no run or not the shared header is proven.
    """
    if header_digest(record.header) not in digests:
        return None
    unknown = {part.run.id for part in parts_of(record) if part_digest(record.header, part) not in digests}
    kept = without(record, unknown)
    if kept is None:
        return None
    runs, run_id = kept.header.runs, kept.header.run_id
    if runs:
        run_id = runs[-1].id  # the header's own is not proven
    header = replace(_common(kept.header), runs=runs, run_id=run_id, created=kept.header.created)
    return Record(header, kept.trials, footer_of(kept.trials))


# --- as bytes ---------------------------------------------------------------------------------------


def write(proofs: Proofs) -> bytes:
    """Return the file's content."""
    digests: dict[str, dict[str, list[str]]] = {}
    for (suite, key), found in proofs.digests.items():
        digests.setdefault(suite, {})[key] = sorted(found)
    ledgers = {suite: write_ledger(Ledger(lines)).decode() for suite, lines in proofs.ledgers.items()}
    return msgspec.json.encode(_File(VERSION, digests, ledgers), order="sorted") + b"\n"


def read(data: bytes, where: str) -> Proofs:
    """Return the proofs in these bytes. Raises `UntrustedError` if the gate did not write them in this form."""
    if len(data) > MAX_BYTES:
        raise UntrustedError(f"{len(data):,} bytes of proofs, at most {MAX_BYTES:,} are read", where=where)
    try:
        found = msgspec.json.decode(data, type=_File)
        if found.v > VERSION:
            raise UntrustedError(f"proofs of format {found.v}; this version reads up to {VERSION}", where=where)
        ledgers = {}
        for suite, text in found.ledgers.items():
            ledgers[suite] = read_ledger(text.encode(), suite, where).lines
    except (msgspec.MsgspecError, BaselineError, ValueError, RecursionError):
        raise UntrustedError("not the gate's proofs, or damaged", where=where) from None
    digests = {}
    for suite, held in found.digests.items():
        for key, known in held.items():
            digests[suite, key] = frozenset(known)
    return Proofs(digests, ledgers)
