import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.baselines.base import RewrittenError, Trust
from gate.baselines.file import FileStore
from gate.baselines.ledger import Acceptance, Mark
from gate.baselines.proofs import Proofs, joined, proofs_of
from gate.baselines.proven import (
    GONE,
    NOT_THEIRS,
    PERHAPS_THEIRS,
    REWRITTEN,
    UNPROVEN,
    Provenance,
    Prover,
    Unchecked,
)
from gate.errors import BaselineError
from gate.model import Score
from gate.records import Record, parse_record, write_record
from gate.records.keys import suite_key
from tests.unit.baselines.samples import commit, make_record

SUITE = "support"
KEY = suite_key(SUITE)
COMMITS = [commit(n) for n in (3, 2, 1)]


class Known(Prover):
    """A prover that knows some proofs at once, and others if it is asked for their commit."""

    def __init__(self, carried: Sequence[Record] = (), asked: Sequence[Record] = (), problems: Sequence[str] = ()):
        self.carried = joined(proofs_of(record) for record in carried)
        self.by_commit = {record.header.commit: proofs_of(record) for record in asked}
        super().__init__()
        self.problems.update(dict.fromkeys(problems))
        self.asked: list[str] = []

    def known(self, store: Unchecked, suite_id: str) -> Proofs:
        return self.carried

    def of_commit(self, commit: str) -> Proofs:
        self.asked.append(commit)
        return self.by_commit.get(commit, Proofs())


RECORDS = {n: make_record(n, run=f"run {n}") for n in (1, 2, 3)}


@pytest.fixture
def inner(tmp_path: Path) -> FileStore:
    store = FileStore(tmp_path)
    for n, record in RECORDS.items():
        store.save(record, [Mark(KEY, commit(n), f"run {n}", "pass", float(n), base=commit(0))])
    return store


def checked(inner: FileStore, provers: Sequence[Prover], *, required: bool = False) -> FileStore:
    """The same folder, with proofs looked up."""
    store = FileStore(inner.folder)
    store.provenance = Provenance(store, provers, required=required)
    return store


def trust_in(store: FileStore, records: Sequence[Record]) -> Trust:
    assert store.provenance is not None
    return store.provenance.trust(SUITE, records)


def forge(inner: FileStore, number: int) -> None:
    """Puts a record of an agent that always fails in the place of one."""
    path = inner.folder / KEY / f"{commit(number)}.jsonl"
    record = parse_record(path.read_bytes())
    trials = tuple(replace(trial, scores={"ok": Score(0.0)}) for trial in record.trials)
    write_record(path, replace(record, trials=trials))


def scores(record: Record) -> set[float | None]:
    return {trial.scores["ok"].value for trial in record.trials}


def test_as_long_as_nothing_is_proven_records_are_given_and_called_unproven(inner: FileStore) -> None:
    store = checked(inner, [Known()])
    found = store.find(SUITE, COMMITS, pool=1)
    assert found is not None
    assert found.commit == commit(3)
    assert trust_in(store, found.records).unproven == (commit(3),)
    assert len(store.entries(SUITE)) == 3
    assert store.ledger(SUITE) == inner.ledger(SUITE)


def test_an_unproven_record_does_not_displace_a_proven_one(inner: FileStore) -> None:
    store = checked(inner, [Known(carried=[RECORDS[1]])])
    found = store.find(SUITE, COMMITS)
    assert found is not None
    assert (found.commit, len(found.records)) == (commit(1), 1)
    trust = trust_in(store, found.records)
    assert (trust.unproven, trust.troubles) == ((), ())
    assert [why for _, why in trust.told] == [UNPROVEN, UNPROVEN]
    latest = store.latest(SUITE)
    assert latest is not None and latest.commit == commit(1)
    assert [entry.commit for entry in store.entries(SUITE)] == [commit(1)]


def test_required_proofs_leave_nothing_else(inner: FileStore) -> None:
    store = checked(inner, [Known()], required=True)
    assert store.find(SUITE, COMMITS) is None
    assert store.latest(SUITE) is None
    assert store.anchor(SUITE) is None
    assert trust_in(store, ()).required


def test_a_record_is_asked_for_once_where_nobody_carries_its_proof(inner: FileStore) -> None:
    prover = Known(asked=[RECORDS[3]])
    store = checked(inner, [prover])
    for _ in range(2):
        found = store.find(SUITE, COMMITS, pool=1)
        assert found is not None and found.commit == commit(3)
    assert prover.asked == [commit(3)]
    assert trust_in(store, found.records) == trust_in(store, ())


def test_a_proof_that_another_commits_job_carries_counts_from_then_on(inner: FileStore) -> None:
    prover = Known(asked=[RECORDS[1]])
    prover.by_commit[commit(1)] = joined(map(proofs_of, (RECORDS[1], RECORDS[3])))
    store = checked(inner, [prover])
    newest = store.find(SUITE, COMMITS, pool=1)
    assert newest is not None
    assert trust_in(store, newest.records).unproven == (commit(3),)
    assert store.find(SUITE, [commit(1)]) is not None
    latest = store.latest(SUITE)
    assert latest is not None
    assert latest.commit == commit(3)
    assert trust_in(store, latest.records).unproven == ()
    assert store.anchor(SUITE) is not None, "it ends"


def test_pooled_records_are_proven_each_by_itself(inner: FileStore) -> None:
    found = checked(inner, [Known(carried=[RECORDS[3], RECORDS[1]])]).find(SUITE, COMMITS)
    assert found is not None
    assert [record.header.commit for record in found.records] == [commit(3), commit(1)]


def test_a_rewritten_record_is_nowhere_taken_for_the_one_that_was_proven(inner: FileStore) -> None:
    forge(inner, 1)
    forge(inner, 3)
    proven = Known(carried=list(RECORDS.values()))
    store = checked(inner, [proven])
    found = store.find(SUITE, COMMITS)
    assert found is not None
    assert [record.header.commit for record in found.records] == [commit(2)]
    assert scores(found.records[0]) == {1.0}
    anchor = checked(inner, [proven]).anchor(SUITE)
    assert anchor is not None and anchor.commit == commit(2)
    other = checked(inner, [proven])
    entries = other.entries(SUITE)
    assert [record.header.commit for record in other.read_sound(entries)] == [commit(2)]
    assert [entry.commit for entry in other.entries(SUITE)] == [commit(2)]
    with pytest.raises(RewrittenError):
        other.read(entries[0])
    troubles = trust_in(store, found.records).troubles
    assert len(troubles) == 2 and all(REWRITTEN in told for told in troubles)


def test_what_history_reads_is_proven_too(inner: FileStore) -> None:
    forge(inner, 3)
    read = 0
    for stored in checked(inner, [Known(carried=list(RECORDS.values()))]).contents():
        if commit(3) in stored.where:
            with pytest.raises(BaselineError, match="passed over"):
                stored.open()
            continue
        assert scores(parse_record(stored.open().read())) == {1.0}
        read += 1
    assert read == 2


def test_a_run_that_somebody_added_is_left_out_and_said(inner: FileStore) -> None:
    inner.save(make_record(3, run="forged", created=RECORDS[3].header.created + 1, value=0.0))
    store = checked(inner, [Known(carried=[RECORDS[3]])])
    found = store.find(SUITE, COMMITS, pool=1)
    assert found is not None
    assert scores(found.records[0]) == {1.0}
    [(what, _)] = trust_in(store, found.records).told
    assert commit(3)[:7] in what


def test_a_proven_record_that_was_removed_is_missed(inner: FileStore) -> None:
    (inner.folder / KEY / f"{commit(3)}.jsonl").unlink()
    store = checked(inner, [Known(carried=list(RECORDS.values()))])
    found = store.find(SUITE, COMMITS, pool=1)
    assert found is not None and found.commit == commit(2)
    [told] = trust_in(store, found.records).troubles
    assert GONE in told


def test_an_older_proven_record_that_the_store_has_dropped_is_not_missed(inner: FileStore) -> None:
    (inner.folder / KEY / f"{commit(1)}.jsonl").unlink()
    store = checked(inner, [Known(carried=list(RECORDS.values()))])
    found = store.find(SUITE, COMMITS)
    assert found is not None
    assert trust_in(store, found.records).troubles == ()


def test_the_ledger_is_what_was_proven_and_not_what_is_stored(inner: FileStore) -> None:
    """Who removes a mark or adds an acceptance moves no anchor."""
    fell = Mark(KEY, commit(3), "run 3", "regressed", 3.0, base=commit(2))
    proven = Known(carried=[RECORDS[3]])
    proven.carried = joined([proven.carried, Proofs({}, {KEY: (fell,)})])
    inner.note(SUITE, [Acceptance(KEY, commit(3), "mallory", 9.0, "wanted", date.max)])
    store = checked(inner, [proven], required=True)
    assert store.ledger(SUITE).lines == (fell,)
    assert store.anchor(SUITE) is None
    assert [(what, why) for what, why in trust_in(store, ()).told if "mallory" in what] == [
        (f"the acceptance of {commit(3)[:7]} by mallory", NOT_THEIRS)
    ]


def test_an_acceptance_that_nobody_proves_is_told_where_no_proof_is_required(inner: FileStore) -> None:
    inner.note(SUITE, [Acceptance(KEY, commit(3), "wendy", time.time(), "wanted", date.max)])
    store = checked(inner, [Known(carried=[RECORDS[3]])])
    anchor = store.anchor(SUITE)
    assert anchor is not None and "accepted by" in anchor.info.source
    assert (trust_in(store, ()).told[0][0][-8:], trust_in(store, ()).told[0][1]) == ("by wendy", PERHAPS_THEIRS)


def test_who_could_not_be_asked_is_a_doubt(inner: FileStore) -> None:
    [told] = trust_in(checked(inner, [Known(problems=["down"])]), ()).troubles
    assert "down" in told


def test_writing_goes_through(inner: FileStore) -> None:
    store = checked(inner, [Known()], required=True)
    where = store.save(make_record(4, run="run 4"))
    assert commit(4) in where
    assert next(entry.commit for entry in inner.entries(SUITE)) == commit(4)
