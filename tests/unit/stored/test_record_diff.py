"""What differs between two records, as data."""

from __future__ import annotations

from msgspec.structs import replace

from gate.model import CONFIRM, STORED, Criterion, ErrorKind, Scale, Score, Side, Trial, TrialError
from gate.records import PlannedCase, Record
from gate.stored.record_diff import (
    CaseDiff,
    case_diffs,
    criterion_differences,
    header_differences,
    means_over,
    own_part,
)
from tests.unit.baselines.samples import commit, make_record, make_trial


def with_trials(record: Record, *trials: Trial) -> Record:
    return replace(record, trials=trials)


def cases(old: Record, new: Record) -> list[CaseDiff]:
    return case_diffs(own_part(old), own_part(new))


def test_a_record_does_not_differ_from_itself() -> None:
    one, other = make_record(1), make_record(1)
    assert header_differences(one, other) == {} and criterion_differences(one, other) == {}
    assert [(case.id, case.status, case.trajectories()) for case in cases(one, other)] == [
        ("a", "same", ([], [])),
        ("b", "same", ([], [])),
    ]


def test_the_header_says_who_and_when() -> None:
    found = header_differences(make_record(1), make_record(2, agent="a2"))
    assert found == {"commit": (commit(1), commit(2)), "agent": ("a1", "a2")}


def test_means_are_over_what_was_measured_in_comparable_cases() -> None:
    old = with_trials(make_record(1), make_trial("a", 1, 1.0), make_trial("a", 2, 0.5), make_trial("b", 1, 0.0))
    failed = Trial("a", 3, error=TrialError(ErrorKind.CRASH, "x"))
    unscored = Trial("a", 2, scores={"ok": Score(None, error="no judge")})
    new = with_trials(make_record(2), make_trial("a", 1, 0.25), unscored, failed, make_trial("b", 1, 1.0))
    plan = (new.header.plan[0], replace(new.header.plan[1], fingerprint="other"))
    new = replace(new, header=replace(new.header, plan=plan))
    found = cases(old, new)
    assert found[0].means("ok") == ((0.75, 2), (0.25, 1))
    assert (len(found[0].old), len(found[0].new)) == (2, 3)
    assert found[1].status == "changed"
    assert means_over(found, "ok") == ((0.75, 1), (0.25, 1)), "the changed case does not count"


def test_added_and_removed_cases() -> None:
    old, new = make_record(1), make_record(2)
    plan = (PlannedCase("c", "f3"), new.header.plan[0])
    new = Record(replace(new.header, plan=plan), (make_trial("c", 1), make_trial("a", 1)), new.footer)
    found = cases(old, new)
    assert [(case.id, case.status) for case in found] == [("c", "added"), ("a", "same"), ("b", "removed")]
    assert found[0].means("ok") == ((None, 0), (1.0, 1))
    assert found[2].means("ok") == ((1.0, 2), (None, 0))


def test_trajectories_that_one_side_alone_took() -> None:
    old = with_trials(make_record(1), make_trial("a", 1), make_trial("a", 2), make_trial("b", 1))
    new = with_trials(
        make_record(2),
        make_trial("a", 1, tool="search"),
        make_trial("a", 2),
        make_trial("a", 3, tool="guess"),
        make_trial("a", 4, tool="guess"),
        make_trial("b", 1),
    )
    old_only, new_only = cases(old, new)[0].trajectories()
    assert old_only == []
    assert [(turns[0][0].name, number) for turns, number in new_only] == [("guess", 2), ("search", 1)]
    assert new_only[0][0][0][0].args == {"q": "a"}


def test_a_stripped_record_equals_the_full_one() -> None:
    from gate.records import strip

    found = cases(strip(make_record(1)), make_record(1))
    assert [case.trajectories() for case in found] == [([], []), ([], [])]


def test_trials_of_the_other_side_do_not_count() -> None:
    old = make_record(1)
    new = replace(old, trials=(*old.trials, make_trial("a", 1, 0.0, Side.BASELINE, tool="other")))
    found = cases(old, new)
    assert found[0].trajectories() == ([], [])
    assert means_over(found, "ok")[1] == (1.0, 2)


def test_each_case_counts_once_and_reruns_count_never() -> None:
    trials = [make_trial("a", 1, 0.0), make_trial("b", 1, 1.0), replace(make_trial("b", 2, 0.5), tag=STORED)]
    reruns = [replace(make_trial("a", n, 0.0), tag=CONFIRM) for n in range(2, 8)]
    found = cases(make_record(1), with_trials(make_record(2), *trials, *reruns))
    assert found[0].means("ok") == ((1.0, 2), (0.0, 1))
    assert len(found[0].new) == 7, "what was run is said all the same"
    assert means_over(found, "ok") == ((1.0, 2), (0.375, 2))


def test_criteria_name_what_differs() -> None:
    old, new = make_record(1), make_record(1)
    criteria = (replace(old.header.criteria[0], threshold=0.5), Criterion("cost", "cost", Scale.USD))
    new = replace(new, header=replace(new.header, criteria=criteria))
    assert criterion_differences(old, new) == {"ok": ("threshold none", "threshold 0.5"), "cost": ("", "cost")}
