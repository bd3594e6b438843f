"""A store over bytes by key keeps what every store promises, also where another writer comes in between."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import pytest
from msgspec.structs import replace

from gate.baselines.base import StoreSettings
from gate.baselines.blobs import TRIES, BlobStore
from gate.baselines.ledger import LEDGER
from gate.errors import BaselineError, BaselineWriteError
from gate.records import strip
from gate.records.keys import suite_key
from tests.unit.baselines.samples import commit, make_record


class Kept(BlobStore):
    """In memory; ``rivals`` are written by somebody else just before a put of ours, one each time."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.rivals: list[bytes] = []

    @classmethod
    def open(cls, settings: StoreSettings) -> Self:
        return cls()

    def get(self, key: str) -> bytes | None:
        return self.blobs.get(key)

    def put(self, key: str, data: bytes, before: bytes | None) -> bool:
        if self.rivals:
            self.blobs[key] = self.rivals.pop()
        if self.blobs.get(key) != before:
            return False
        self.blobs[key] = data
        return True

    def keys(self, prefix: str) -> Iterable[str]:
        return [key for key in self.blobs if key.startswith(prefix)]


def test_what_is_saved_is_found_in_its_stripped_form() -> None:
    store = Kept()
    where = store.save(make_record(3))
    found = store.find("support", [commit(4), commit(3)])
    assert found is not None
    assert (found.records, found.commit, found.info.distance) == ((strip(make_record(3)),), commit(3), 1)
    assert found.info.source == where == f"{suite_key('support')}/{commit(3)}.jsonl"
    assert b"the answer" not in store.blobs[where]
    assert store.find("other", [commit(3)]) is None


def test_the_newest_is_the_latest_and_entries_are_listed_newest_first() -> None:
    store = Kept()
    store.save(make_record(1, created=40.0))
    store.save(make_record(2, created=50.0))
    latest = store.latest("support")
    assert latest is not None
    assert (latest.commit, latest.info.distance) == (commit(2), None)
    assert [entry.commit for entry in store.entries()] == [commit(2), commit(1)]
    assert store.read(store.entries("support")[1]).header.commit == commit(1)


def test_a_writer_that_came_between_is_united_with_and_not_overwritten() -> None:
    theirs, store = Kept(), Kept()
    key = theirs.save(make_record(1, run="theirs"))
    store.rivals = [theirs.blobs[key]]
    store.save(make_record(1, run="ours"))
    found = store.find("support", [commit(1)])
    assert found is not None
    assert len(found.records[0].trials) == 2 * len(make_record(1).trials)


def test_a_store_in_which_others_always_come_before_is_an_error() -> None:
    store = Kept()
    key = store.save(make_record(1, run="theirs"))
    store.rivals = [store.blobs.pop(key), b""] * TRIES
    with pytest.raises(BaselineWriteError):
        store.save(make_record(1, run="ours"))


@pytest.mark.parametrize("data", [b"", b"{}\n", b"no record"])
def test_a_damaged_record_is_never_passed_over(data: bytes) -> None:
    store = Kept()
    key = store.save(make_record(1))
    store.blobs[key] = data
    with pytest.raises(BaselineError):
        store.find("support", [commit(1)])
    with pytest.raises(BaselineWriteError):
        store.save(make_record(1, run="another"))


def test_a_record_under_another_name_is_refused() -> None:
    store = Kept()
    key = store.save(make_record(1))
    store.blobs[key.replace(commit(1), commit(2))] = store.blobs.pop(key)
    with pytest.raises(BaselineError, match="another suite or commit"):
        store.find("support", [commit(2)])
    with pytest.raises(BaselineError, match="another suite or commit"):
        store.entries()


def test_a_dirty_record_is_refused_and_no_ledger_is_none() -> None:
    store = Kept()
    record = make_record(1)
    with pytest.raises(BaselineWriteError, match="uncommitted changes"):
        store.save(replace(record, header=replace(record.header, dirty=True)))
    assert store.blobs == {}
    assert store.ledger("support").lines == ()
    store.note("support", [])
    assert f"{suite_key('support')}/{LEDGER}" not in store.blobs
