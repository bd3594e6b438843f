from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.baselines.ledger import Acceptance, Ledger, Mark, Signed
from gate.baselines.ledger import read as read_ledger
from gate.baselines.ledger import write as write_ledger
from gate.baselines.proofs import MAX_BYTES, Proofs, joined, parcels, proofs_of, proven_part, read, write
from gate.baselines.union import run_ids, unite
from gate.errors import BaselineWriteError, UntrustedError
from gate.model import Criterion, Scale, Score
from gate.records import PlannedCase, Record, parse_record, record_lines, strip
from gate.records.keys import commit_key, suite_key
from gate.security.signing import opened, signed
from tests.keys import new_key
from tests.unit.baselines.samples import commit, make_record

MARK = Mark("support", commit(1), "one", "pass", 5.0)


def stored(*records: Record) -> Record:
    """What a store holds once these runs of one commit were saved, as it is read again."""
    whole = strip(records[0])
    for record in records[1:]:
        whole, _ = unite(whole, strip(record))
    return parse_record(b"".join(record_lines(whole)))


def digests(*records: Record) -> frozenset[str]:
    [found] = joined(proofs_of(record) for record in records).digests.values()
    return found


ONE = make_record(1, run="one", created=1.0)
TWO = make_record(1, run="two", created=2.0, value=0.0)


def test_a_record_is_proven_run_by_run_whatever_it_is_united_with() -> None:
    both = stored(ONE, TWO)
    whole = proven_part(both, digests(ONE, TWO))
    assert whole is not None
    assert run_ids(whole.header) == ("one", "two")
    found = proven_part(both, digests(ONE))
    assert found is not None
    assert run_ids(found.header) == ("one",)
    assert found.header.run_id == "one", "and not the name of a run that nothing proves"
    assert [t.scores["ok"].value for t in found.trials] == [1.0] * 4
    assert proven_part(both, frozenset()) is None


def test_what_was_continued_since_is_proven_by_the_job_that_continued_it() -> None:
    more = make_record(1, run="one", created=1.0, trials=3)
    assert proven_part(stored(ONE, more), digests(more)) is not None
    assert proven_part(stored(ONE, more), digests(ONE)) is None


def test_nothing_is_taken_from_a_header_that_no_run_vouches_for() -> None:
    header = replace(stored(ONE).header, base_commit=commit(9), seed=3, gate_version="9")
    found = proven_part(replace(stored(ONE), header=header), digests(ONE))
    assert found is not None
    assert (found.header.base_commit, found.header.seed, found.header.gate_version) == (None, 0, "")


CHANGES = {
    "another commit": {"commit": commit(2)},
    "another suite": {"suite_id": "other"},
    "another agent": {"agent": "a2"},
    "another plan": {"plan": (PlannedCase("a", "f1"), PlannedCase("b", "f3"))},
    "a lower threshold": {"criteria": (Criterion("ok", "contains", Scale.BINARY, threshold=0.1, fingerprint="k1"),)},
    "another run": {"run_id": "two"},
    "another time": {"created": 2.0},
    "a selection": {"selected": True, "whole": 5},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_proof_is_of_this_commit_suite_agent_and_plan_alone(change: dict[str, object]) -> None:
    forged = replace(stored(ONE), header=replace(stored(ONE).header, **change))
    assert proven_part(forged, digests(ONE)) is None


@given(which=st.integers(0, 3), value=st.floats(0, 0.99))
def test_any_changed_score_is_found(which: int, value: float) -> None:
    record = stored(ONE)
    trials = list(record.trials)
    trials[which] = replace(trials[which], scores={"ok": Score(value)})
    assert proven_part(replace(record, trials=tuple(trials)), digests(ONE)) is None


@given(which=st.integers(0, 3), twice=st.booleans())
def test_trials_can_neither_be_left_out_nor_doubled(which: int, twice: bool) -> None:
    record = stored(ONE)
    trials = list(record.trials)
    trials[which : which + 1] = [trials[which]] * (2 if twice else 0)
    assert proven_part(replace(record, trials=tuple(trials)), digests(ONE)) is None


def test_what_cannot_become_a_baseline_proves_nothing() -> None:
    with pytest.raises(BaselineWriteError):
        proofs_of(replace(ONE, header=replace(ONE.header, dirty=True)))


def test_proofs_are_written_and_read_again() -> None:
    suite = suite_key("support")
    accepted = Acceptance(suite, commit(1), "wendy", 6.0, "wanted", date.max)
    proofs = joined([proofs_of(ONE, [replace(MARK, suite=suite)]), proofs_of(TWO, [accepted])])
    again = read(write(proofs), "here")
    assert again == proofs
    assert again.has(suite)
    assert not again.has("other")
    assert [type(line) for line in again.ledgers[suite]] == [Mark, Acceptance]
    assert again.only([(suite, commit_key(ONE.header))]) == again
    assert again.only([]) == replace(proofs, digests={}), "who accepted what is told without the record"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"v":2}',
        b'{"v":1,"more":1}',
        b'{"v":1,"digests":{"a":{"b":"c"}}}',
        b'{"v":1,"ledgers":{"a":"{}"}}',
        b"[" * 100_000,
        b" " * (MAX_BYTES + 1),
    ],
)
def test_damaged_proofs_are_refused(data: bytes) -> None:
    with pytest.raises(UntrustedError):
        read(data, "here")


def test_an_older_form_without_anything_proves_nothing() -> None:
    assert read(b'{"v":1}', "here") == Proofs()


def test_signed_proofs_of_many_runs_leave_a_ledger_that_can_be_read() -> None:
    """A line of the ledger has a bound: one line of all of them would make the suite's baselines unreadable."""
    private, public = new_key()
    runs = [make_record(1, run=f"{n:032x}", created=float(n)) for n in range(1, 61)]
    suite = suite_key(ONE.header.suite_id)
    marks = [replace(MARK, suite=suite, run=f"{n:032x}", release="v" * 240) for n in range(1, 61)]
    proofs = joined(proofs_of(record, [mark]) for record, mark in zip(runs, marks, strict=True))
    lines = [Signed(suite, MARK.key, 1.0, signed(write(one), private).decode()) for one in parcels(proofs)]
    again = read_ledger(write_ledger(Ledger().add(lines)), suite, "here").signed
    assert joined(read(opened(line.envelope.encode(), public), "here") for line in again) == proofs
