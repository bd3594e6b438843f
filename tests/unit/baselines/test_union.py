import itertools
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.baselines.union import parts_of, run_ids, unite, without
from gate.errors import BaselineError
from gate.model import Score
from gate.records import Record, Run, parse_record, record_lines, strip
from tests.unit.baselines.samples import make_record


def run(name: str, *, trials: int = 2, created: float = 1.0, value: float = 1.0) -> Record:
    return strip(make_record(1, run=name, trials=trials, created=created, value=value))


def united(*records: Record) -> Record:
    whole = records[0]
    for record in records[1:]:
        whole, _ = unite(whole, record)
    return whole


def test_trials_of_both_runs_are_kept_and_numbered_anew() -> None:
    both = united(run("one"), run("two", trials=3, created=2.0, value=0.0))
    assert [(part.id, part.trials) for part in both.header.runs] == [("one", 4), ("two", 6)]
    assert sorted(t.number for t in both.trials if t.case_id == "a") == [1, 2, 3, 4, 5]
    assert sum(t.scores["ok"].value or 0 for t in both.trials) == 4
    assert both.footer is not None and both.footer.trials == 10
    assert (both.header.run_id, both.header.created) == ("two", 2.0)


def test_a_united_record_is_written_and_read_again() -> None:
    both = united(run("one"), run("two", created=2.0))
    assert parse_record(b"".join(record_lines(both))) == both


@pytest.mark.parametrize("runs", ["x", [["a", 1.0]], [["a", 1.0, 1], ["a", 2.0, 1]], [[1, 1.0, 1]], [["a", 1.0, -1]]])
def test_damaged_runs_are_refused(runs: object) -> None:
    united_lines = b"".join(record_lines(united(run("one"), run("two", created=2.0))))
    damaged = re.sub(rb'"runs":\[\[.*?\]\]', b'"runs":' + json.dumps(runs).encode(), united_lines, count=1)
    with pytest.raises(BaselineError, match="run"):
        parse_record(damaged)


POOL = [
    run(name, trials=n, created=t, value=v)
    for name, n, t, v in zip("abcd", (1, 2, 3, 2), (4, 3, 3, 9), (1, 0, 1, 1), strict=True)
]


@given(st.lists(st.sampled_from(POOL), min_size=1, max_size=6), st.randoms())
def test_the_order_of_saving_makes_no_difference_and_saving_twice_adds_nothing(records: list[Record], random) -> None:  # type: ignore[no-untyped-def]
    once = united(*records)
    shuffled = [*records, random.choice(records)]
    random.shuffle(shuffled)
    assert united(*shuffled) == once
    assert set(run_ids(once.header)) == {record.header.run_id for record in records}
    assert len(once.trials) == sum(len(POOL[["a", "b", "c", "d"].index(name)].trials) for name in run_ids(once.header))


def test_a_run_that_two_jobs_continued_keeps_what_either_measured() -> None:
    begun = run("one", trials=1)
    first, second = (
        replace(
            begun, trials=(*begun.trials, *(replace(t, number=2, scores={"ok": Score(value)}) for t in begun.trials))
        )
        for value in (0.25, 0.5)
    )
    for order in itertools.permutations((begun, first, second)):
        whole = united(*order)
        assert sorted(t.scores["ok"].value for t in whole.trials) == [0.25, 0.25, 0.5, 0.5, 1.0, 1.0]
        assert run_ids(whole.header) == ("one",)


def test_what_does_not_fit_is_not_mixed_and_the_richer_stays() -> None:
    rich, thin = run("rich", trials=5), run("thin", trials=1, created=9.0)
    [criterion] = thin.header.criteria
    other = replace(thin, header=replace(thin.header, criteria=(replace(criterion, fingerprint="k2"),)))
    kept, note = unite(rich, other)
    assert kept == rich
    assert "criterion 'ok' differs" in note
    assert unite(other, rich)[0] == rich
    level = run("level", trials=1)
    assert unite(level, other)[0] == other, "of two that measured as much, the newer"


def test_runs_can_be_taken_out_again() -> None:
    one, two = run("one"), run("two", created=2.0, value=0.0)
    both = united(one, two)
    left = without(both, {"two"})
    assert left is not None
    assert [t.scores for t in left.trials] == [t.scores for t in one.trials]
    assert run_ids(left.header) == ("one",)
    assert without(both, {"one", "two"}) is None
    assert without(both, {"three"}) == both
    assert without(one, {"one"}) is None


def test_parts_of_a_plain_record_are_its_one_run() -> None:
    [part] = parts_of(run("one"))
    assert part.run == Run("one", 1.0, 4)
