"""The interface of a store of baselines, the search for the anchor, and the rules on which records may be stored.

Each store decides where its bytes are kept, in a separate file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from pathlib import Path
from time import time
from types import TracebackType
from typing import Any, ClassVar, Self

from msgspec import Struct, field
from msgspec.structs import replace

from gate.baselines.fingerprint import with_tools
from gate.baselines.ledger import Ledger, Line, anchors
from gate.baselines.reference import Reference, reference_to
from gate.baselines.union import without
from gate.decision.stored_epochs import rounds_of_outages
from gate.errors import BaselineError, BaselineWriteError
from gate.model import STORED, Side, Trial
from gate.model.defaults import REMOTE
from gate.model.strict import StrictModel
from gate.records import Record, strip
from gate.records.keys import Stored, key_of
from gate.security.limits import shorten
from gate.system.git import COMMIT_ID

POOL = 5
"""The most records of one agent that are pooled."""
POOL_SEARCH = 20
"""Number of stored ancestors to read in search of records to pool."""
ANCHOR_SEARCH = 10
"""The most records to read in search of an anchor that covers the suite with enough trials."""
ENOUGH_TRIALS = 5.0
"""Average trials per case that make a record a good anchor: a loss against a thin one would go unseen."""
SUFFIX = ".jsonl"
"""The suffix of a record's file."""
AGAIN = "save it again"
"""The hint for a damaged baseline that was moved aside."""


class StoreOptions(StrictModel):
    """Base of a store's options, which stand beside ``baseline.store``: unknown keys rejected."""


class StoreSettings(Struct, frozen=True):
    """The settings that a store may need; each uses those that concern it."""

    root: Path
    """The folder of the configuration, to which paths are relative."""
    environment: Mapping[str, str] = field(default_factory=dict)
    remote: str = REMOTE
    """Name, URL or path of the repository's remote."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options next to ``store`` in the configuration, for the store's own `Store.Options`."""
    token: str = ""
    """Signs in to remotes on ``server``; on other servers, or if empty, git signs in as configured."""
    server: str = "https://github.com"
    """The only server that ever receives the token, as the remote may come from an untrusted configuration."""

    def __repr__(self) -> str:
        return f"StoreSettings(root={self.root!r}, options={self.options!r})"  # without secrets


class Entry(Struct, frozen=True):
    """One stored baseline."""

    suite_id: str
    commit: str | None
    created: float
    """Unix time."""
    where: str
    """The entry's name inside its store."""

    @property
    def key(self) -> str:
        """Return the name of the record's file, without suffix."""
        return key_of(self.commit)


class Trust(Struct, frozen=True):
    """Provenance of a suite's records."""

    unproven: tuple[str, ...] = ()
    """Keys of records that are used for comparison although nothing proves them."""
    told: tuple[tuple[str, str], ...] = ()
    """Records that were left out or are doubtful, each with the reason."""
    troubles: tuple[str, ...] = ()
    """Reasons not to believe a pass: a record was rewritten or removed, or no proof could be looked up."""
    reason: str = ""
    """The reason why the unproven records have no proof, if known."""
    required: bool = False
    """True if only proven records may be used for comparison."""


Say = Callable[[str], None]


def silent(_line: str) -> None:
    """Say nothing."""


class Store(ABC):
    """Keeps one record per suite and commit, and a ledger per suite. Close it after use, best with ``with``."""

    Options: ClassVar[type[StoreOptions]] = StoreOptions

    @classmethod
    @abstractmethod
    def open(cls, settings: StoreSettings) -> Self:
        """Return the store for these settings; ``settings.options`` are those that `Options` has accepted."""

    @abstractmethod
    def save(
        self, record: Record, lines: Iterable[Line] = (), *, scope: Set[str] | None = None, say: Say = silent
    ) -> str:
        """Store the stripped form of a complete record, united with the stored record of its suite and commit.

        ``lines`` are added to the suite's ledger along with it. ``scope``: the cases that the configuration runs; a
        record of a selection is complete if it has them all, and never without a scope. ``say`` is told which parts
        were not added.

        Return the record's place. Raises `BaselineWriteError`; the stored record then stays as it was.
        """

    @abstractmethod
    def note(self, suite_id: str, lines: Iterable[Line]) -> None:
        """Add lines to the ledger of a suite. Raises `BaselineWriteError`."""

    @abstractmethod
    def ledger(self, suite_id: str) -> Ledger:
        """Return the findings on a suite's records. Raises `BaselineError` if the ledger is damaged or belongs to
        another suite."""

    @abstractmethod
    def find(
        self, suite_id: str, commits: Sequence[str], *, exclude: Set[str] = frozenset(), pool: int = POOL
    ) -> Reference | None:
        """Return the record of the first of these commits that has one, with up to ``pool - 1`` more of the same agent.

        ``commits`` are in order of preference: a commit and its first-parent ancestors. None if none has a record.
        Raises `BaselineError` if one is damaged or misplaced: it is never skipped.
        """

    def latest(self, suite_id: str, *, exclude: Set[str] = frozenset()) -> Reference | None:
        """Return the newest record of the suite at any commit, except for the keys in ``exclude``.

        Callers say so in their output, since its commit may not be an ancestor.
        """
        for entry in self.entries(suite_id):
            if entry.key not in exclude:
                return reference_to([self.read(entry)], source=self.place(entry))
        return None

    @abstractmethod
    def entries(self, suite_id: str | None = None, *, but: Container[str] = ()) -> list[Entry]:
        """Return the stored baselines of one suite or of all, newest first, without those whose place is in ``but``.

        Raises `BaselineError` if one of them is misplaced.
        """

    def suites_at(self, commits: Sequence[str]) -> frozenset[str]:
        """Return the folder names of the suites that have records at the nearest of these commits."""
        found: dict[str, set[str]] = {}
        for suite, key in self.names():
            found.setdefault(key, set()).add(suite)
        for commit in commits:
            if key_of(commit) in found:
                return frozenset(found[key_of(commit)])
        return frozenset()

    @abstractmethod
    def names(self) -> Iterable[tuple[str, str]]:
        """Yield the suite's folder name and the key of each record, without reading records."""

    @abstractmethod
    def read(self, entry: Entry) -> Record:
        """Return the record of an entry. Raises `BaselineError` if it is damaged."""

    def read_sound(self, entries: Iterable[Entry]) -> Iterator[Record]:
        """Yield the records of these entries, skipping those that somebody has put in the place of others.

        Raises `BaselineError` if one is damaged.
        """
        return map(self.read, entries)

    def prefetch(self, entries: Sequence[Entry]) -> None:  # noqa: B027  # most stores read one as fast as many
        """Fetch the records of these entries in one go, since they are about to be read."""

    @abstractmethod
    def contents(self) -> Iterator[Stored]:
        """Yield every record of every suite, newest first as far as the store can tell without reading them.

        Unlike `entries` it does not fail for a single damaged record; opening that record does.
        """

    def anchor(
        self,
        suite_id: str,
        *,
        is_near: Callable[[str | None], bool] = lambda _commit: True,
        suits: Callable[[Record], bool] = lambda _record: True,
        series: str | None = None,
        runs: Set[str] = frozenset(),
        at: float | None = None,
    ) -> Reference | None:
        """Return the record to compare with as the best: the last accepted release, else see `anchors`.

        Of the first `ANCHOR_SEARCH` candidates that suit, it is the first with enough trials per case, else the one
        with the most trials; if none suits, the first candidate. None if there is no candidate.

        ``is_near`` says which commits are eligible, ``suits`` which records still cover the suite, ``series`` which
        releases. ``runs`` are those being compared, which do not count. ``at`` is the time (Unix; None: now) at which
        acceptances have to be valid.
        """
        entries = {entry.key: entry for entry in self.entries(suite_id)}
        times = {key: entry.created for key, entry in entries.items()}
        ledger = self.ledger(suite_id).at(time() if at is None else at)
        first: Reference | None = None
        thickest: Reference | None = None
        near = (one for one in anchors(ledger, times, series=series) if is_near(entries[one.key].commit))
        for candidate in islice(near, ANCHOR_SEARCH):
            entry = entries[candidate.key]
            proven = without(self.read(entry), candidate.without | runs)
            if proven is None:
                continue
            source = f"{self.place(entry)} ({candidate.why})"
            found = replace(reference_to([proven], source=source), name="anchor")
            first = first or found
            if not suits(proven):
                continue
            if candidate.is_chosen or thickness(proven) >= ENOUGH_TRIALS:
                return found
            if thickest is None or thickness(proven) > thickness(thickest.records[0]):
                thickest = found
        return thickest or first

    def trust(self, suite_id: str, records: Sequence[Record]) -> Trust | None:  # noqa: ARG002
        """Return the provenance of these records of a suite, and of those that were left out; None if no proofs are
        looked up."""
        return None

    @abstractmethod
    def place(self, entry: Entry) -> str:
        """Return an entry's place, for display."""

    def close(self) -> None:  # noqa: B027  # most stores hold nothing
        """Close any resources that the store holds open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def thickness(record: Record) -> float:
    """Return the mean number of the record's own trials per case in epochs."""
    own = sum(trial.is_of_epoch for trial in record.trials)
    return own / max(1, len(record.header.plan))


def storable(record: Record, scope: Set[str] | None = None) -> Record:
    """Return the form in which a record is kept. Raises `BaselineWriteError` if it is not fit to be a baseline.

    ``scope``: see `Store.save`.

    Left out are trials of the base commit's agent, since they are not of this commit, and epochs for later changes that
    an outage spoiled.
    """
    header = record.header
    down = rounds_of_outages(record.trials)
    own = []
    for trial in record.trials:
        is_spoiled = trial.tag == STORED and trial.round in down
        if trial.side is Side.CANDIDATE and not is_spoiled:
            own.append(trial)
    problem = _unfit(record, own, scope)
    if problem:
        raise BaselineWriteError(f"not a baseline: {problem}", where=header.suite_id)
    agent = header.agent
    if not header.stripped:
        agent = with_tools(agent, own)
    return strip(replace(record, header=replace(header, agent=agent), trials=tuple(own)))


def _unfit(record: Record, own: Sequence[Trial], scope: Set[str] | None) -> str:
    """Return the first reason why a record with these trials of its own cannot be a baseline; empty if it can."""
    header, footer = record.header, record.footer
    if same_as(record):
        return f"nothing was run for it: its trials are those of {same_as(record)[:12]}, which are stored"
    if shard_of(record):
        return shard_of(record)
    if footer is None:
        return "it was not closed: continue the run with --resume"
    if footer.stopped:
        return f"its run was stopped: {footer.stopped}"
    if header.dirty:
        return "it was measured with uncommitted changes: run again once `git status` lists none"
    planned = header.contents.keys()
    if header.selected and not (scope and scope <= planned):
        return f"it holds a selection of the suite, {len(planned)} cases: run all that the configuration names"
    missing = planned - {trial.case_id for trial in own}
    if missing:
        return f"{len(missing)} of its cases were not run"
    if not own:
        return "it holds no trial"
    if outage_in(record):
        return outage_in(record)
    if header.commit is not None and not COMMIT_ID.fullmatch(header.commit):
        return f"its commit is not one: {header.commit[:60]!r}"
    return ""


def same_as(record: Record) -> str:
    """Return the commit whose stored trials the record repeats; empty if the trials are its own."""
    if record.footer is None:
        return ""
    return str(record.footer.terms.get("same_as", ""))


def shard_of(record: Record) -> str:
    """Return a sentence if the record holds a shard's part of the cases; else empty."""
    number, shards = record.header.shard
    if (number, shards) == (1, 1):
        return ""
    return f"it is shard {number} of {shards}: merge the shards first"


def outage_in(record: Record) -> str:
    """Return a sentence if most cases of a record were never answered; else empty.

    No comparison with such a record means anything.
    """
    plan, own = record.header.plan, [trial for trial in record.trials if trial.side is Side.CANDIDATE]
    answered = {trial.case_id for trial in own if trial.answered}
    silent = [case.id for case in plan if case.id not in answered]
    if 2 * len(silent) <= len(plan):
        return ""
    errors = [trial.error.message for trial in own if trial.error is not None]
    said = ""
    if errors and errors[0]:
        said = f" ({shorten(errors[0], 120)})"
    return f"it holds an outage: {len(silent)} of {len(plan)} cases were never answered{said}"


def misplaced(where: str) -> BaselineError:
    what = "the stored baseline belongs to another suite or commit than its name says"
    return BaselineError(what, where=where, hint="move it away, then save again from a run of this suite")
