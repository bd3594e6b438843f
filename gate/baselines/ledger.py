"""The log of stored records: which regressed, which were released, which were accepted.

Each entry is a line of JSON, appended and never changed, next to the records of a suite; the *anchor*, the best proven
record, follows from them. Verdicts can be derived again from the records; acceptances say who, when and why. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from datetime import UTC, date, datetime, timedelta

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gate.errors import BaselineError
from gate.model import Verdict
from gate.security.limits import shorten

LEDGER = "ledger.ndjson"
"""Name of the file in the suite's folder."""
VERSION = 2
MOST_DAYS = 366
"""The longest time that an acceptance is valid."""
_DAY = 86_400.0
LAST_SECOND = 253_402_300_799.0
"""The end of the year 9999, Unix time: no date is later, and every acceptance with an end has ended."""
MAX_TEXT = 500
MAX_LINE = 10_000
SOUND = (Verdict.PASS, Verdict.INCONCLUSIVE)
IMPROVED = "improved"
LAPSED = "lapsed"
"""Replaces the verdict of a run that passed only against a record whose acceptance has ended."""


class Mark(Struct, frozen=True, tag="mark", tag_field="kind", omit_defaults=True, forbid_unknown_fields=True):
    """The findings on one run when its record was stored."""

    suite: str
    """Name of the suite's folder."""
    key: str
    """The record of the run: its commit, as in the file name."""
    run: str
    verdict: str
    """The verdict over all references of the run."""
    at: float
    """Unix time."""
    base: str = ""
    """The commit that it was measured against; empty without a baseline."""
    anchor: str = ""
    """The commit of the anchor that it was compared with; empty if there was none."""
    release: str = ""
    """The tag of the release; empty if it was not released."""
    left_out: int = 0
    """Number of further known runs of the same commit that were left out when it was saved: it was picked by hand."""
    improved: bool = False
    """True if it is far better than the anchor that it was compared with, beyond chance."""
    v: int = 1

    @property
    def proven(self) -> bool:
        """True if the run may count as the best: it passed, or there was nothing yet to fall short of."""
        if self.verdict == Verdict.PASS:
            return True
        return self.verdict == Verdict.INCONCLUSIVE and not self.base and not self.anchor


class Acceptance(Struct, frozen=True, tag="accepted", tag_field="kind", omit_defaults=True, forbid_unknown_fields=True):
    """The decision of a person to make a stored record the anchor, regardless of its verdict."""

    suite: str
    key: str
    by: str
    at: float
    """Unix time."""
    why: str
    until: date
    """The last day on which it is valid, in UTC."""
    v: int = 2

    @property
    def last_day(self) -> date:
        """Return the last day on which it is valid, never more than `MOST_DAYS` after it was given."""
        return min(self.until, latest_day(self.at, MOST_DAYS))

    def counts(self, at: float) -> bool:
        """True if it is valid at that time. One that ends but is dated later is not: its date would outlast the end."""
        return day_of(at) <= self.last_day and self.at <= at + _DAY

    def fault(self, at: float) -> str:
        """Return why it is not valid at that time, in words that follow its subject."""
        if day_of(at) <= self.last_day:
            return f"is dated {day_of(self.at)}, by a clock that is ahead"
        return f"ended on {self.last_day}"


def day_of(at: float) -> date:
    """Return the day of a Unix time, in UTC."""
    return datetime.fromtimestamp(at, UTC).date()


def latest_day(at: float, days: int) -> date:
    """Return the day that many days after a Unix time, or the last possible day."""
    day = day_of(at)
    return date.max if (date.max - day).days < days else day + timedelta(days=days)


class Signed(Struct, frozen=True, tag="signed", tag_field="kind", omit_defaults=True, forbid_unknown_fields=True):
    """Signed proofs of measurements; they mean nothing until their signature is checked."""

    suite: str
    key: str
    at: float
    """Unix time."""
    envelope: str
    """The signed proofs (`gate.baselines.proofs`)."""
    v: int = 2


Line = Mark | Acceptance | Signed


class Ledger(Struct, frozen=True):
    """All lines of a suite, in order of time."""

    lines: tuple[Line, ...] = ()
    ended: tuple[Acceptance, ...] = ()
    """Acceptances left out of the lines because they are no longer valid."""

    @property
    def marks(self) -> tuple[Mark, ...]:
        return tuple(line for line in self.lines if isinstance(line, Mark))

    @property
    def acceptances(self) -> tuple[Acceptance, ...]:
        return tuple(line for line in self.lines if isinstance(line, Acceptance))

    @property
    def signed(self) -> tuple[Signed, ...]:
        return tuple(line for line in self.lines if isinstance(line, Signed))

    def at(self, time: float) -> Ledger:
        """Return the lines valid at a time: without acceptances that have ended, as if they had never been given.

        A run that passed only against a record whose acceptance has ended is not proven either; otherwise a loss that
        somebody accepted for a while would stay for good as soon as anything was measured against it. For reading only:
        the result is never written.
        """
        ended = {line for line in self.acceptances if not line.counts(time)}
        if not ended:
            return self
        live = {line.key for line in self.acceptances if line not in ended}
        sound: set[str] = set()
        fallen: set[str] = set()
        lines: list[Line] = []
        for line in self.lines:
            if line in ended:
                fallen.add(line.key)
                continue
            if not isinstance(line, Mark) or not line.proven:
                lines.append(line)
            elif line.anchor in sound or line.anchor in live or line.anchor not in fallen:
                sound.add(line.key)
                lines.append(line)
            else:
                fallen.add(line.key)
                lines.append(replace(line, verdict=LAPSED))
        without = [line for line in self.acceptances if line in ended and line.key not in live]
        return Ledger(tuple(lines), tuple(without))

    def add(self, new: Iterable[Line]) -> Ledger:
        """Return the ledger with more lines, skipping those it already has or that repeat the last verdict on a run."""
        last = {(mark.key, mark.run, mark.release): replace(mark, at=0.0) for mark in self.marks}
        fresh = []
        for line in dict.fromkeys(map(_bounded, new)):
            repeats = isinstance(line, Mark) and last.get((line.key, line.run, line.release)) == replace(line, at=0.0)
            if line not in self.lines and not repeats:
                fresh.append(line)
        if not fresh:
            return self
        return Ledger(_ordered((*self.lines, *fresh)))

    def only(self, keys: Set[str]) -> Ledger:
        """Return the ledger without the marks of removed records. Acceptances and releases stay."""
        kept = tuple(line for line in self.lines if line.key in keys or stays(line))
        if kept == self.lines:
            return self
        return Ledger(kept)

    def accepted(self, key: str) -> Acceptance | None:
        """Return the newest acceptance of a record."""
        for line in reversed(self.acceptances):
            if line.key == key:
                return line
        return None

    def failed_runs(self, key: str) -> frozenset[str]:
        """Return the runs of a record that may not count in the anchor, each judged by its latest mark."""
        accepted = self.accepted(key)
        last = {mark.run: mark for mark in self.marks if mark.key == key}
        failed = set()
        for run, mark in last.items():
            is_accepted = accepted is not None and mark.at <= accepted.at
            if not mark.proven and not is_accepted:
                failed.add(run)
        return frozenset(failed)

    def knows(self, key: str) -> bool:
        """True if the ledger has a finding on the record."""
        return any(line.key == key for line in self.lines if not isinstance(line, Signed))

    def verdict(self, key: str) -> str:
        """Return the newest verdict on a record; empty if it was stored without one."""
        mark = self.newest_mark(key)
        return "" if mark is None else mark.verdict

    def newest_mark(self, key: str) -> Mark | None:
        """Return the newest mark of a record; None if it was stored without one."""
        for mark in reversed(self.marks):
            if mark.key == key:
                return mark
        return None

    def below(self, key: str) -> Mark | None:
        """Return the newest mark of a record, if it says that the record fell short and nobody accepted that."""
        mark = self.newest_mark(key)
        if mark is None or mark.verdict in SOUND or mark.run not in self.failed_runs(key):
            return None
        return mark

    def releases(self, key: str) -> tuple[str, ...]:
        """Return the release tags of a record."""
        return tuple(self._released_runs(key))

    def rejected(self, key: str) -> bool:
        """True if a record belongs to a release that the gate rejected and nobody accepted."""
        last = self._released_runs(key)
        return bool(last) and self.failed_runs(key).issuperset(last.values())

    def _released_runs(self, key: str) -> dict[str, str]:
        """Return the release tags of a record, each with the run that was last marked with it."""
        return {mark.release: mark.run for mark in self.marks if mark.key == key and mark.release}


class Candidate(Struct, frozen=True):
    """A record eligible as the anchor."""

    key: str
    why: str
    """``release TAG``, ``accepted by …``, ``improved`` or ``first proven``."""
    without: frozenset[str] = frozenset()
    """Runs that do not count because they fell short."""
    release: str = ""
    accepted: bool = False

    @property
    def is_chosen(self) -> bool:
        """True if it became the anchor for a reason, and is not merely the oldest."""
        return bool(self.release) or self.accepted or self.why == IMPROVED


def anchors(ledger: Ledger, stored: Mapping[str, float], *, series: str | None = None) -> list[Candidate]:
    """Return the records eligible as the anchor, best first. ``stored``: key → time of the records in the store.

    Once a release was accepted, only releases and acceptances move the anchor: records in between are compared with the
    release. Until then an acceptance moves it, or a record that is far better beyond chance; a mere pass does not, as
    it may hide a small loss, and twenty passes a large one. So the oldest of the proven records comes first, since it
    was not chosen for its results. A record that was never judged, because an older version stored it, counts as
    proven. ``series`` leaves out releases of other packages, whose tags begin differently.
    """
    failed = {key: ledger.failed_runs(key) for key in stored}
    events = []
    for key, time in stored.items():
        if not ledger.knows(key):
            events.append((time, -1, Candidate(key, "stored before verdicts were kept")))
    for number, line in enumerate(ledger.lines):
        if isinstance(line, Signed) or line.key not in stored:
            continue
        candidate = _candidate(line, failed[line.key], series)
        if candidate is not None:
            events.append((line.at, number, candidate))
    events.sort(key=lambda event: event[:2])
    in_time = [candidate for _, _, candidate in events]
    newest_first = in_time[::-1]
    found = [one for one in newest_first if one.release or one.accepted]
    if not any(one.release for one in found):
        found = [one for one in newest_first if one.is_chosen]
        found += [one for one in in_time if not one.accepted]
    unique: dict[str, Candidate] = {}
    for candidate in found:
        unique.setdefault(candidate.key, candidate)
    return list(unique.values())


def stays(line: Line) -> bool:
    """True if a line is kept without its record: an acceptance or a release."""
    return isinstance(line, Acceptance) or (isinstance(line, Mark) and bool(line.release))


def _candidate(line: Mark | Acceptance, failed: frozenset[str], series: str | None) -> Candidate | None:
    if isinstance(line, Acceptance):
        return Candidate(line.key, f"accepted by {line.by}", failed, accepted=True)
    if line.run in failed:
        return None
    if line.release and series in (None, series_of(line.release)):
        return Candidate(line.key, f"release {line.release}", failed, release=line.release)
    return Candidate(line.key, IMPROVED if line.improved else "first proven", failed)


def write(ledger: Ledger) -> bytes:
    """Return the file's content."""
    return b"".join(_ENCODER.encode(line) + b"\n" for line in ledger.lines)


def read(data: bytes, suite: str, where: str) -> Ledger:
    """Return the ledger in these bytes. Raises `BaselineError` if it is damaged or of another suite."""
    lines = []
    for number, raw in enumerate(data.splitlines(), 1):
        if not raw.strip():
            continue
        lines.append(_parsed(raw, suite, f"{where}:{number}"))
    return Ledger(_ordered(lines))


def _parsed(raw: bytes, suite: str, where: str) -> Line:
    hint = "restore the file from the branch's history"
    if len(raw) > MAX_LINE:
        raise BaselineError("the baseline ledger is damaged: a line is too long", where=where, hint=hint)
    try:
        line: Line = _DECODER.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        what = f"the ledger of the baselines is damaged: {shorten(str(error), 200)}"
        raise BaselineError(what, where=where, hint=hint) from None
    if line.v > VERSION:
        raise BaselineError(f"written in format {line.v}; this version reads up to {VERSION}", where=where)
    if not 0 <= line.at <= LAST_SECOND:
        raise BaselineError("the baseline ledger is damaged: a time is invalid", where=where, hint=hint)
    if line.suite != suite:
        raise BaselineError(
            f"the ledger belongs to suite {shorten(line.suite, 60)!r}, not {suite!r}", where=where, hint=hint
        )
    return line


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Line)


def _bounded(line: Line) -> Line:
    if isinstance(line, Acceptance):
        return replace(line, by=shorten(line.by, 100), why=shorten(line.why, MAX_TEXT))
    return line


def _ordered(lines: Iterable[Line]) -> tuple[Line, ...]:
    return tuple(sorted(lines, key=lambda line: line.at))


# --- release tags ---------------------------------------------------------------------------------


_VERSION = re.compile(r"(?P<series>.*?)(?<!\d)(?P<version>\d++(\.\d++)++|(?<=v)\d++)(?P<rest>.*)$")
"""A tag with a version; the text after the numbers makes it a candidate, a build or a post-release."""


def series_of(tag: str) -> str | None:
    """Return the part of a tag before its version, such as ``agent-v`` in ``agent-v1.2.0``; None for a tag without
    one."""
    found = _VERSION.match(tag)
    return found["series"] if found else None


def is_candidate(tag: str) -> bool:
    """True if the tag marks a release candidate, such as ``v2.0.0-rc.1``: it may have failed, and is not in
    production."""
    found = _VERSION.match(tag)
    return found is not None and bool(found["rest"]) and not found["rest"].startswith(("+", ".post", "-post"))
