"""The pass rates of the runs before: of the history's commits, by the criteria of today, and bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.baselines import StoreSettings, open_store
from gate.baselines.blobs import BlobStore
from gate.baselines.reference import Reference, reference_to
from gate.model import BaselineInfo, Criterion, Scale, Score, Trial
from gate.pipeline import references
from gate.pipeline.identity import GitContext
from gate.pipeline.references import past_rates
from gate.records import Header, PlannedCase, Record
from gate.records.model import footer_of

QUALITY = Criterion("quality", "quality", Scale.UNIT, threshold=0.5, fingerprint="q1")
PLAN = tuple(PlannedCase(f"case-{n}", f"f{n}") for n in range(10))
HEADER = Header("s", PLAN, (QUALITY,))
COMMITS = tuple(f"{n:040x}" for n in range(1, 31))
"""The oldest first."""
WHERE = GitContext(head="f" * 40, base=COMMITS[-1], ancestors=tuple(reversed(COMMITS)))


def record(commit: str, passing: int, plan: tuple[PlannedCase, ...] = PLAN, criterion: Criterion = QUALITY) -> Record:
    trials = tuple(
        Trial(case.id, number, scores={criterion.name: Score(1.0 if at < passing else 0.0)}, started=1.0)
        for at, case in enumerate(plan)
        for number in (1, 2)
    )
    created = 1_700_000_000.0 + int(commit, 16)
    header = Header("s", plan, (criterion,), run_id=commit, created=created, commit=commit, agent="a", definition="d")
    return Record(header, trials, footer_of(trials))


def rates(store: BlobStore, own: Record, where: GitContext = WHERE) -> tuple[float, ...]:
    reference = reference_to([own], distance=0)
    return past_rates(store, reference, where, HEADER)


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return open_store("file", StoreSettings(root=tmp_path, environment={}, options={"path": "kept"}))


def test_the_oldest_comes_first_whatever_was_stored_first(store: BlobStore) -> None:
    for commit, passing in ((COMMITS[2], 8), (COMMITS[0], 10), (COMMITS[1], 9)):
        store.save(record(commit, passing))
    assert rates(store, record(COMMITS[2], 8)) == pytest.approx((1.0, 0.9, 0.8))


def test_only_commits_of_the_history_count(store: BlobStore) -> None:
    store.save(record(COMMITS[0], 10))
    store.save(record("e" * 40, 1))
    assert rates(store, record(COMMITS[0], 10)) == (1.0,)


def test_a_record_of_other_cases_or_of_another_measurement_is_left_out(store: BlobStore) -> None:
    store.save(record(COMMITS[0], 10))
    store.save(record(COMMITS[1], 5, PLAN[:5]))
    store.save(record(COMMITS[2], 10, criterion=Criterion("quality", "quality", Scale.UNIT, fingerprint="q0")))
    assert rates(store, record(COMMITS[0], 10)) == (1.0,)


def test_a_damaged_record_is_left_out(store: BlobStore, tmp_path: Path) -> None:
    store.save(record(COMMITS[0], 10))
    store.save(record(COMMITS[1], 9))
    (damaged,) = (tmp_path / "kept").rglob(f"{COMMITS[1]}*.jsonl")
    damaged.write_bytes(damaged.read_bytes().replace(b'"quality":1', b'"quality":0', 1))
    assert rates(store, record(COMMITS[0], 10)) == (1.0,)


@pytest.mark.parametrize(("trials", "read"), [(20_000, 20), (100, 5), (19, 0)])
def test_few_records_are_read_and_fewer_of_a_large_suite(
    store: BlobStore, monkeypatch: pytest.MonkeyPatch, trials: int, read: int
) -> None:
    for commit in COMMITS:
        store.save(record(commit, 10))
    monkeypatch.setattr(references, "MOST_PAST_TRIALS", trials)
    asked: list[str | None] = []
    monkeypatch.setattr(store, "read", lambda entry: asked.append(entry.commit) or record(entry.commit, 10))
    assert len(rates(store, record(COMMITS[-1], 10))) == read == len(asked)
    assert asked == list(COMMITS[30 - read :])


def test_without_a_store_a_baseline_or_a_history_nothing_is_read(store: BlobStore) -> None:
    store.save(record(COMMITS[0], 10))
    none = Reference(BaselineInfo(None))
    assert past_rates(None, none, WHERE, HEADER) == ()
    assert past_rates(store, none, WHERE, HEADER) == ()
    assert rates(store, record(COMMITS[0], 10), GitContext()) == ()
