"""The provenance of a store's records: if proofs are looked up, all reading of baselines goes through it.

A `Prover` finds the proofs of a record. As long as nothing of a suite is proven, its records are returned as they are,
and `Provenance.trust` says so; from the first proof on, unproven ones are skipped (always, if a proof is required).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence, Set
from itertools import chain, islice
from typing import BinaryIO, Protocol

from msgspec.structs import replace

from gate.baselines.base import Entry, RewrittenError, Trust
from gate.baselines.ledger import Ledger, Line, anchors
from gate.baselines.proofs import Proofs, joined, proven_part
from gate.baselines.reference import Reference
from gate.baselines.union import run_ids
from gate.errors import BaselineError
from gate.records import Record, parse_record, record_lines
from gate.records.keys import Stored, commit_key, key_of, suite_key
from gate.system.git import COMMIT_ID

REWRITTEN = "passed over, since it is not the record that was proven: somebody has rewritten it"
GONE = "its record was proven, and is gone from the store"
UNPROVEN = "passed over, since nothing shows which job measured it"
PARTLY = "runs that nothing proves are left out"
NOT_THEIRS = "passed over, since nothing shows that it is theirs"
PERHAPS_THEIRS = "it counts, though nothing shows that it is theirs"
SEARCHED = 5
"""Number of newest records to look up one by one, in addition to the known proven ones."""


class Unchecked(Protocol):
    """A store's ledgers and entries as they are stored, proven or not."""

    def stored_ledger(self, suite_id: str) -> Ledger: ...

    def stored_entries(self, suite_id: str) -> list[Entry]: ...


class Prover:
    """Finds proofs; by itself none. Answers are kept, so that asking again costs nothing."""

    def __init__(self) -> None:
        self.problems: dict[str, None] = {}
        """Reasons why something could not be looked up, each once."""
        self.reasons: dict[str, None] = {}
        """Reasons why the evidence that was found proves nothing, each once."""

    def known(self, store: Unchecked, suite_id: str) -> Proofs:  # noqa: ARG002
        """Return the proofs of a suite that need no look-up by commit."""
        return Proofs()

    def of_commit(self, commit: str) -> Proofs:  # noqa: ARG002
        """Return the proofs by the jobs on a commit."""
        return Proofs()

    def close(self) -> None:
        """Close any resources that it holds open."""


def _named(key: str) -> str:
    return f"the baseline of {key[:7]}"


def _is_whole(proven: Record | None, record: Record) -> bool:
    """True if every run of a record is proven."""
    return proven is not None and run_ids(proven.header) == run_ids(record.header)


class Provenance:
    """Tells which parts of a store's records are proven, and which problems showed."""

    def __init__(self, store: Unchecked, provers: Sequence[Prover], *, required: bool = False) -> None:
        self._store = store
        self._provers = provers
        self._required = required
        self._asked: dict[str, Proofs] = {}
        self._joined: dict[str, tuple[int, Proofs]] = {}
        self._checked: dict[tuple[str, str], tuple[tuple[str, ...], frozenset[str], Record | None]] = {}
        """By suite and key: a record's runs and the proofs that it was checked against, and its proven part."""
        self._told: dict[str, dict[str, tuple[str, str]]] = {}
        """Skipped parts by suite and key, each with the reason."""
        self._troubles: dict[str, dict[str, str]] = {}
        """By suite: the key of a rewritten or removed record → the problem."""

    def close(self) -> None:
        for prover in self._provers:
            prover.close()

    # --- what is proven ---------------------------------------------------------------------------

    @property
    def problems(self) -> list[str]:
        """Return the reasons why something could not be looked up."""
        return list(chain.from_iterable(prover.problems for prover in self._provers))

    @property
    def reasons(self) -> list[str]:
        """Return the reasons why the evidence that was found proves nothing."""
        return list(chain.from_iterable(prover.reasons for prover in self._provers))

    def proofs(self, suite_id: str) -> Proofs:
        """Return the proofs of a suite known so far."""
        held = self._joined.get(suite_id)
        if held is None or held[0] != len(self._asked):
            known = [prover.known(self._store, suite_id) for prover in self._provers]
            found = joined([*known, *self._asked.values()])
            held = self._joined[suite_id] = (len(self._asked), found)
        return held[1]

    def _ask(self, commit: str) -> None:
        """Look up the proofs by the jobs on a commit, once."""
        if commit not in self._asked:
            self._asked[commit] = joined(prover.of_commit(commit) for prover in self._provers)

    def _excludes(self, suite_id: str) -> bool:
        """True if unproven records are skipped."""
        return self._required or self.proofs(suite_id).has(suite_key(suite_id))

    def _proven(self, record: Record) -> Record | None:
        """Return the proven part of a stored record; None if it has none."""
        suite, key = suite_key(record.header.suite_id), commit_key(record.header)
        runs = run_ids(record.header)
        digests = self.proofs(record.header.suite_id).digests.get((suite, key), frozenset())
        held = self._checked.get((suite, key))
        if held is not None and held[:2] == (runs, digests):  # a job on another commit may have brought its proof since
            return held[2]
        found = proven_part(record, digests)
        commit = record.header.commit
        if not _is_whole(found, record) and commit is not None and commit not in self._asked:
            self._ask(commit)
            digests = self.proofs(record.header.suite_id).digests.get((suite, key), frozenset())
            found = proven_part(record, digests)
        self._checked[suite, key] = (runs, digests, found)
        if found is None and digests:
            self._troubles.setdefault(suite, {})[key] = REWRITTEN
        elif found is not None and not _is_whole(found, record):
            self._tell(suite, key, PARTLY)
        return found

    def is_known(self, entry: Entry, nth: int) -> bool:
        """True if any proof names the entry; its record is not read. ``nth``: the entry's place among the suite's
        newest."""
        keys = self.proofs(entry.suite_id).digests
        if nth < SEARCHED and entry.commit is not None and (suite_key(entry.suite_id), entry.key) not in keys:
            self._ask(entry.commit)
            keys = self._asked[entry.commit].digests
        return (suite_key(entry.suite_id), entry.key) in keys

    def trust(self, suite_id: str, records: Sequence[Record]) -> Trust:
        """Return the provenance of these records of a suite, and of those that were left out."""
        suite = suite_key(suite_id)
        unproven = dict.fromkeys(commit_key(record.header) for record in records if self._proven(record) is None)
        reason = next(iter([*self.problems, *self.reasons]), "")
        passed_over = []
        for key, (what, why) in self._told.get(suite, {}).items():
            if key in unproven:
                continue
            if reason and why == UNPROVEN:
                passed_over.append((what, f"{why} ({reason})"))
            else:
                passed_over.append((what, why))
        way_out = ""
        if not self._required:  # else an error says it
            way_out = "; the default branch's next job stores another"
        troubles = [f"{_named(key)}: {why}{way_out}" for key, why in self._troubles.get(suite, {}).items()]
        troubles += [f"baselines could not be proven: {problem}" for problem in self.problems]
        return Trust(tuple(unproven), tuple(passed_over), tuple(troubles), reason, required=self._required)

    def standing(self, entry: Entry, record: Record) -> str:
        """Return the provenance of an entry's stored record in one or two words."""
        found = self._proven(record)
        if found is not None:
            return "proven" if _is_whole(found, record) else "proven in part"
        if entry.key in self._troubles.get(suite_key(entry.suite_id), {}):
            return "rewritten"
        return "unproven"

    # --- reading ----------------------------------------------------------------------------------

    def find(
        self,
        suite_id: str,
        commits: Sequence[str],
        exclude: Set[str],
        nearest: Callable[[str, Sequence[str], Set[str]], Reference | None],
    ) -> Reference | None:
        """Return the proven part of the ``nearest`` records, of the first commit whose record counts."""
        left_out = set(exclude)
        while True:
            found = nearest(suite_id, commits, left_out)
            if found is None:
                self._miss(suite_id, commits, left_out)
                return None
            first = self._proven(found.records[0])
            if first is not None:
                if found.commit in commits:
                    self._miss(suite_id, commits[: commits.index(found.commit)], left_out)
                return found.with_records([first, *filter(None, map(self._proven, found.records[1:]))])
            if not self._excludes(suite_id):
                return found
            left_out.add(self._passed_over(suite_id, found.records[0]))

    def _passed_over(self, suite_id: str, record: Record) -> str:
        key = commit_key(record.header)
        suite = suite_key(suite_id)
        self._tell(suite, key, self._troubles.get(suite, {}).get(key, UNPROVEN))
        return record.header.commit or key

    def _miss(self, suite_id: str, nearer: Sequence[str], known: Set[str]) -> None:
        """Note the commits that have a proven record but no stored one."""
        suite = suite_key(suite_id)
        for commit in nearer:
            if commit not in known and (suite, commit) in self.proofs(suite_id).digests:
                self._troubles.setdefault(suite, {})[commit] = GONE
                self._tell(suite, commit, GONE)

    def _tell(self, suite: str, key: str, why: str) -> None:
        self._told.setdefault(suite, {})[key] = (_named(key), why)

    def entries(self, suite_id: str, stored: list[Entry]) -> list[Entry]:
        """Return those of a suite's entries that have any proof."""
        if not self._excludes(suite_id):
            return stored
        rewritten = self._troubles.get(suite_key(suite_id), {})
        return [one for nth, one in enumerate(stored) if one.key not in rewritten and self.is_known(one, nth)]

    def read(self, stored: Record, where: str) -> Record:
        """Return the proven part of a stored record. Raises `RewrittenError` if it does not count."""
        proven = self._proven(stored)
        suite_id = stored.header.suite_id
        if proven is not None or not self._excludes(suite_id):
            return proven or stored
        self._passed_over(suite_id, stored)
        raise RewrittenError("the stored baseline is not the one that was measured", where=where)

    def miss_anchor(
        self,
        suite_id: str,
        found: Reference | None,
        is_near: Callable[[str | None], bool],
        series: str | None,
        at: float,
    ) -> None:
        """Note a missing record from before the anchor that was released, accepted or improved.

        Newer records never push out such a record, so somebody removed it.
        """
        suite = suite_key(suite_id)
        stored = {entry.key for entry in self._store.stored_entries(suite_id)}
        proven = {key for known, key in self.proofs(suite_id).digests if known == suite and COMMIT_ID.fullmatch(key)}
        if proven <= stored:
            return
        ledger = self.ledger(suite_id, self._store.stored_ledger(suite_id)).at(at)
        times = {line.key: line.at for line in ledger.lines if line.key in proven | stored}
        for candidate in anchors(ledger, times, series=series):
            if found is not None and candidate.key == key_of(found.commit):
                return
            if candidate.is_chosen and candidate.key not in stored and is_near(candidate.key):
                self._troubles.setdefault(suite, {})[candidate.key] = GONE
                self._tell(suite, candidate.key, GONE)
                return

    def proven_content(self, stored: Stored) -> Stored:
        """Return the bytes of a record such that opening them gives its proven part, or raises an error."""

        def opened() -> BinaryIO:
            with stored.open() as file:
                record = parse_record(file.read(), where=stored.where)
            proven = self._proven(record)
            if proven is None and self._excludes(record.header.suite_id):
                raise BaselineError(UNPROVEN, where=stored.where)
            return io.BytesIO(b"".join(record_lines(proven or record)))

        return replace(stored, open=opened)

    def ledger(self, suite_id: str, stored: Ledger) -> Ledger:
        """Return the proven marks, even those of removed records, and all acceptances unless proofs are required: an
        acceptance creates no record, but moves the anchor to a proven one."""
        if not self._excludes(suite_id):
            return stored
        suite = suite_key(suite_id)
        proven = self._proven_lines(suite_id, stored)
        doubtful = [line for line in stored.acceptances if line not in proven]
        why = NOT_THEIRS if self._required else PERHAPS_THEIRS
        for line in doubtful:
            what = f"the acceptance of {line.key[:7]} by {line.by}"
            self._told.setdefault(suite, {})[what] = (what, why)
        if self._required:
            return Ledger().add(proven)
        return Ledger().add((*proven, *doubtful))

    def _proven_lines(self, suite_id: str, stored: Ledger) -> tuple[Line, ...]:
        """Return the proven lines. A release's job ran for a tag, so it is not among the jobs of the default branch: it
        is looked up by the released commit."""
        suite = suite_key(suite_id)
        known = self.proofs(suite_id).ledgers.get(suite, ())
        released = {mark.key: None for mark in reversed(stored.marks) if mark.release and mark not in known}
        for commit in islice(released, SEARCHED):
            if COMMIT_ID.fullmatch(commit):
                self._ask(commit)
        return self.proofs(suite_id).ledgers.get(suite, ())
