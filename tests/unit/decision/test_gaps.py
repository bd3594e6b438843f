"""What the base holds and was not compared: cases that are gone, and edited ones that miss now."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from gate.decision import Settings, exit_code
from gate.decision.comparison import Comparison, Incomparable
from gate.decision.gaps import edited_and_missing, too_many_gone
from gate.errors import ExitCode
from gate.model import Criterion, Direction, Invocation, Scale, Score, Trial, Usage, Verdict
from gate.model.finding import Finding

from .records import FORBIDDEN, RESPONSE, TRAJECTORY, cases, judge, once, stored, trial


def gone(removed: int, of: int, *, failing: int = 0, quarantined: int = 0) -> Finding | None:
    """Return what is found if the last of so many cases are removed; some of these failed, or are in quarantine."""
    suite = cases(of)
    left, lost = suite[: of - removed], suite[of - removed :]
    low = {case.id for case in lost[:failing]}
    before = [trial(case.id, n, trajectory=float(case.id not in low)) for case in suite for n in (1, 2)]
    aside = Settings(quarantine={case.id: "known" for case in lost[failing : failing + quarantined]})
    now = once(left, trajectory=1.0)
    return too_many_gone(Comparison(tuple(left), (TRAJECTORY,), tuple(now), tuple(before), aside))


@pytest.mark.parametrize(
    ("removed", "of", "many"),
    [(0, 20, False), (1, 3, False), (2, 3, True), (2, 20, False), (3, 20, True), (3, 30, False), (4, 30, True)],
)
def test_at_least_two_and_more_than_a_tenth_of_the_cases_that_passed_are_too_many(
    removed: int, of: int, *, many: bool
) -> None:
    found = gone(removed, of)
    names = tuple(case.id for case in cases(of)[of - removed :])
    assert found == (
        Finding.of("cases_changed", Verdict.NOT_COMPARED, how="removed", cases=names, of=of) if many else None
    )


def test_cases_that_failed_at_the_base_are_owed_to_nobody() -> None:
    assert gone(6, 20, failing=6) is None
    found = gone(6, 20, failing=3)
    assert found is not None and (len(found["cases"]), found["of"]) == (3, 17)


def test_cases_in_quarantine_are_aside() -> None:
    assert gone(3, 20, quarantined=1) == Finding.of(
        "cases_changed", Verdict.NOT_COMPARED, how="removed", cases=("case-18", "case-19"), of=19
    )
    assert gone(3, 20, quarantined=2) is None


def test_half_of_the_suite_removed_is_not_compared_until_somebody_accepts_it() -> None:
    suite = cases(20)
    result = judge(suite[:10], [TRAJECTORY], once(suite[:10], trajectory=1.0), stored(suite, trajectory=1.0))
    assert (result.verdict, exit_code([result], Settings())) == (Verdict.NOT_COMPARED, ExitCode.FAILED)
    assert result.cause.kind == "incomplete"
    assert (result.is_acceptable, result.if_accepted) == (True, Verdict.PASS)


@pytest.mark.parametrize(
    ("now", "before", "gone"),
    [
        ("c", "wwwww", 12),
        ("w", "wwwww", 0),
        ("c", "ccccc", 0),  # an agent whose answers are meant to be short
        ("c", "wwwwc", 0),
        ("w", "ccccc", 0),
    ],
)
def test_answers_that_are_cut_off_now_are_not_compared_with_whole_ones(now: str, before: str, gone: int) -> None:
    suite = cases(12)

    def answers(ends: str) -> list[Trial]:
        found = []
        for case in suite:
            for n, end in enumerate(ends, start=1):
                said = Invocation("?", usage=Usage(1, 1, cut_off=end == "c"))
                found.append(replace(trial(case.id, n, trajectory=1.0), invocations=(said,)))
        return found

    result = judge(suite, [TRAJECTORY], answers(now), answers(before))
    if not gone:
        assert result.verdict is Verdict.PASS
        return
    assert (result.verdict, result.if_accepted) == (Verdict.NOT_COMPARED, Verdict.PASS)
    (found,) = result.cause["gaps"]
    assert (found["how"], len(found["cases"]), found["of"]) == ("cut_off", gone, len(suite))


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_few_answers_that_are_cut_off_are_compared(cut: int) -> None:
    suite = cases(6)
    now = []
    for number, case in enumerate(suite):
        said = Invocation("?", usage=Usage(1, 1, cut_off=number < cut))
        now.append(replace(trial(case.id, 1, trajectory=1.0), invocations=(said,)))
    result = judge(suite, [TRAJECTORY], now, stored(suite, trajectory=1.0))
    assert (result.verdict is Verdict.NOT_COMPARED) == (cut > 2), "chance explains two"


@pytest.mark.parametrize(("emptied", "many"), [(1, False), (2, True)])
def test_a_case_that_an_edit_leaves_without_a_check_is_gone(emptied: int, *, many: bool) -> None:
    suite = cases(6)
    lost = suite[:emptied]
    nothing = Score(None, reason="the case does not say what to check")
    now = [replace(trial(case.id, 1), scores={TRAJECTORY.name: nothing}) for case in lost]
    now += once(suite[emptied:], trajectory=1.0)
    before = stored(suite, trajectory=1.0)
    apart = {(case.id, TRAJECTORY.name): Incomparable.EDITED for case in lost}
    found = too_many_gone(Comparison(tuple(suite), (TRAJECTORY,), tuple(now), tuple(before), Settings(), apart))
    assert (found is not None) == many
    result = judge(suite, [TRAJECTORY], now, before, not_comparable=apart)
    assert (result.verdict is Verdict.NOT_COMPARED) == many
    if found is not None:
        assert (found["cases"], found["unchecked"]) == (tuple([case.id for case in lost]), True)


@pytest.mark.parametrize("kept", ["nothing", "contains"])
@pytest.mark.parametrize("lost", [1, 2])
def test_no_other_check_makes_up_for_an_expectation_that_an_edit_takes_out(kept: str, lost: int) -> None:
    """Else an agent that stops calling its tools turns green with their expectations, or with those on its answers."""
    suite, pii = cases(6), replace(TRAJECTORY, name="pii", metric="pii", absence=True)
    other = replace(TRAJECTORY, name="contains", metric="contains")
    silent = Score(None, reason="the case does not say what to check")
    edited = {TRAJECTORY.name: silent, "contains": silent, "pii": Score(1.0)}
    if kept != "nothing":
        edited[kept] = Score(1.0)
    now = [replace(trial(case.id, 1), scores=edited) for case in suite[:lost]]
    now += once(suite[lost:], trajectory=1.0, contains=1.0, pii=1.0)
    before = stored(suite, trajectory=1.0, contains=1.0, pii=1.0)
    criteria = (TRAJECTORY, other, pii)
    apart = {(case.id, one.name): Incomparable.EDITED for case in suite[:lost] for one in criteria}
    result = judge(suite, list(criteria), now, before, not_comparable=apart)
    assert (result.verdict is Verdict.NOT_COMPARED) == (lost > 1)
    if lost > 1:
        named = {gap["criterion"]: gap["cases"] for gap in result.cause["gaps"]}
        assert named["trajectory"] == ("case-00", "case-01")
        assert ("contains" in named) == (kept == "nothing")


def test_an_expectation_that_was_not_met_may_be_taken_out() -> None:
    suite = cases(6)
    silent = {TRAJECTORY.name: Score(None, reason="the case does not say what to check")}
    now = [replace(trial(case.id, 1), scores=silent) for case in suite[:3]] + once(suite[3:], trajectory=1.0)
    before = stored(suite[:3], trajectory=0.0) + stored(suite[3:], trajectory=1.0)
    apart = {(case.id, TRAJECTORY.name): Incomparable.EDITED for case in suite[:3]}
    result = judge(suite, [TRAJECTORY], now, before, not_comparable=apart)
    assert result.verdict is not Verdict.NOT_COMPARED


def test_a_new_criterion_hides_neither_removed_nor_edited_cases() -> None:
    suite, new = cases(10), replace(TRAJECTORY, name="new")
    before = stored(suite, trajectory=1.0)
    now = [trial(case.id, trajectory=1.0, new=1.0) for case in suite[:5]]
    apart = {(case.id, "new"): Incomparable.NEW for case in suite}
    half = Comparison(tuple(suite[:5]), (TRAJECTORY, new), tuple(now), tuple(before), Settings(), apart)
    found = too_many_gone(half)
    assert found is not None and (len(found["cases"]), found["of"]) == (5, 10)
    edited = {**apart, **{("case-00", name): Incomparable.EDITED for name in ("trajectory", "new")}}
    fell = [replace(now[0], scores={**now[0].scores, **trial("", trajectory=0.0).scores}), *now[1:]]
    missing = edited_and_missing(replace(half, trials=tuple(fell), not_comparable=edited))
    assert missing == Finding.of("cases_changed", Verdict.NOT_COMPARED, how="edited", cases=("case-00",))


def test_a_suite_of_which_no_case_is_the_bases_compares_nothing() -> None:
    suite = cases(4)
    before = stored([replace(case, id=f"old-{case.id}") for case in suite], trajectory=0.0)
    result = judge(suite, [replace(TRAJECTORY, threshold=0.5)], once(suite, trajectory=1.0), before)
    assert (result.verdict, result.cause) == (
        Verdict.NOT_COMPARED,
        Finding.of("incomplete", gaps=(Finding.of("cases_changed", Verdict.NOT_COMPARED, how="all", of=4),)),
    )


def test_a_suite_of_which_every_case_was_edited_compares_nothing() -> None:
    suite = cases(4)
    apart = {(case.id, "trajectory"): Incomparable.EDITED for case in suite}
    now, before = once(suite, trajectory=1.0), stored(suite, trajectory=1.0)
    result = judge(suite, [TRAJECTORY], now, before, not_comparable=apart)
    assert result.cause == Finding.of(
        "incomplete", gaps=(Finding.of("cases_changed", Verdict.NOT_COMPARED, how="all", of=4, edited=4),)
    )


def test_hard_rules_alone_are_no_statistics_and_leave_nothing_uncompared() -> None:
    suite = cases(4)
    now, before = once(suite, forbidden_tools=1.0), stored(suite, forbidden_tools=1.0)
    assert judge(suite, [FORBIDDEN], now, before).verdict is Verdict.PASS
    changed = {(case.id, FORBIDDEN.name): Incomparable.CHANGED for case in suite}
    result = judge(suite, [FORBIDDEN], now, before, not_comparable=changed)
    assert result.verdict is Verdict.NOT_COMPARED


# --- edited ---------------------------------------------------------------------------------------


def missing(
    sides: Sequence[tuple[list[float], list[float]]], criterion: Criterion = TRAJECTORY, **settings: object
) -> Finding | None:
    """Return what is found of edited cases with these values now and at the base."""
    suite = cases(len(sides))
    name = criterion.name

    def made(side: int) -> list[Trial]:
        return [
            trial(c.id, n, **{name: v})
            for c, both in zip(suite, sides, strict=True)
            for n, v in enumerate(both[side], 1)
        ]

    apart = {(case.id, name): Incomparable.EDITED for case in suite}
    options = Settings(**settings)  # type: ignore[arg-type]
    return edited_and_missing(Comparison(tuple(suite), (criterion,), tuple(made(0)), tuple(made(1)), options, apart))


@pytest.mark.parametrize(
    ("now", "before", "misses"),
    [
        ([0.0], [1.0], True),
        ([0.0, 0.0, 1.0], [1.0, 1.0], True),
        ([0.0, 1.0], [1.0, 1.0], False),
        ([1.0], [1.0], False),
        ([0.0], [0.0], False),
        ([0.0], [1.0, 0.0, 0.0], False),
        ([0.0], [1.0, 0.0], True),
    ],
)
def test_an_edited_case_misses_if_most_of_its_trials_do_and_most_passed_before(
    now: list[float], before: list[float], *, misses: bool
) -> None:
    assert missing([(now, before)]) == (
        Finding.of("cases_changed", Verdict.NOT_COMPARED, how="edited", cases=("case-00",)) if misses else None
    )


def test_only_those_that_fell_are_named() -> None:
    found = missing([([1.0], [1.0]), ([0.0], [1.0]), ([0.0], [0.0])])
    assert found == Finding.of("cases_changed", Verdict.NOT_COMPARED, how="edited", cases=("case-01",))


def test_many_edited_cases_that_each_fell_a_little_are_named_together() -> None:
    """Two thirds of the trials of each still pass: that twenty fell so is no chance."""
    found = missing([([1.0, 1.0, 0.0], [1.0] * 5)] * 20)
    assert found is not None and len(found["cases"]) == 20
    assert missing([([1.0, 1.0, 0.0], [1.0] * 5)]) is None


def test_edited_cases_in_quarantine_are_aside() -> None:
    assert missing([([0.0], [1.0])], quarantine={"case-00": "known"}) is None


@pytest.mark.parametrize(("now", "found"), [(0.5, False), (0.375, True), (0.25, True)])
def test_a_score_without_a_mark_misses_if_it_fell_by_half_of_its_scale(now: float, *, found: bool) -> None:
    assert bool(missing([([now], [0.875])], RESPONSE)) is found
    lower = Criterion("harm", "harm", Scale.UNIT, Direction.LOWER)
    assert bool(missing([([1 - now], [0.125])], lower)) is found


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_the_failing_cases_get_a_space_in_their_input(value: float) -> None:
    """Edited and passing is listed and fine; edited and missing is red until somebody accepts it."""
    suite = cases(20)
    apart = {(case.id, "trajectory"): Incomparable.EDITED for case in suite[:2]}
    now = once(suite, {case.id: {"trajectory": value} for case in suite[:2]}, trajectory=1.0)
    result = judge(suite, [TRAJECTORY], now, stored(suite, trajectory=1.0), not_comparable=apart)
    if value:
        assert result.verdict is Verdict.PASS
    else:
        assert result.verdict is Verdict.NOT_COMPARED
        assert result.cause == Finding.of(
            "incomplete",
            gaps=(Finding.of("cases_changed", Verdict.NOT_COMPARED, how="edited", cases=("case-00", "case-01")),),
        )
        assert result.if_accepted is Verdict.PASS
