"""Results by tag and complexity, and which group a regression is told of: the one it is in, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest
from msgspec.structs import replace

from gate.decision.tags import MOST_GROUPS
from gate.model import Case, Complexity, Direction, GroupKind, GroupResult, Scale, SuiteResult, Trial, Verdict
from gate.reports.by_tag import groups, is_named, rows, where
from gate.reports.labels import trend_line

from .records import TRAJECTORY, judge, stored, trial


def suite(tags: Mapping[str, range], n: int, **complexity: range) -> list[Case]:
    def level(i: int) -> Complexity:
        return next((Complexity(name) for name, held in complexity.items() if i in held), Complexity.MEDIUM)

    held = [frozenset(tag for tag, places in tags.items() if i in places) for i in range(n)]
    return [Case(f"case-{i:04}", (), tags=held[i], complexity=level(i)) for i in range(n)]


def broken(cases: Sequence[Case], gone: Sequence[int], noisy: Sequence[int] = ()) -> tuple[list[Trial], list[Trial]]:
    """One epoch in which some cases fail, and a baseline of five in which the noisy ones fail now and then."""
    before = stored(cases, trajectory=1.0)
    lost = {cases[i].id for i in noisy}
    before = [trial(t.case_id, t.number, trajectory=0.0) if t.case_id in lost and t.number < 2 else t for t in before]
    failing = {cases[i].id for i in gone} | lost
    return [trial(c.id, trajectory=float(c.id not in failing)) for c in cases], before


def group(result: SuiteResult, name: str) -> GroupResult:
    return next(one for one in result.groups if one.name == name)


def test_a_group_has_its_own_averages_and_change() -> None:
    cases = suite({"refund": range(10), "smoke": range(0, 40, 2)}, 40, complex=range(10))
    result = judge(cases, [TRAJECTORY], *broken(cases, range(4)))
    refund = group(result, "refund")
    assert (refund.kind, refund.cases, refund.lost, refund.gained) == (GroupKind.TAG, 10, 4, 0)
    assert refund.candidate is not None and refund.candidate.value == pytest.approx(0.6)
    assert refund.baseline is not None and refund.baseline.value == 1.0
    assert refund.change is not None and refund.change.value == pytest.approx(-0.4)
    assert refund.change.low < -0.4 < refund.change.high < 0
    now, before = refund.scores["trajectory"]
    assert (now and now.value, before and before.value) == (pytest.approx(0.6), 1.0)
    complexities = {one.name for one in result.groups if one.kind is GroupKind.COMPLEXITY}
    assert complexities == {"complex", "medium"}
    assert result.groups[0].name in ("refund", "complex")


def test_a_cluster_is_one_unit_of_a_group_wherever_it_is_stated() -> None:
    cases = suite({"refund": range(10)}, 40)
    stated = [replace(case, cluster=f"pair {n // 2}") for n, case in enumerate(cases)]
    told = [replace(case, metadata={"cluster": f"pair {n // 2}"}) for n, case in enumerate(cases)]
    changes = [
        group(judge(one, [TRAJECTORY], *broken(one, range(3))), "refund").change for one in (cases, stated, told)
    ]
    assert changes[0] != changes[1] == changes[2]


def test_one_complexity_is_no_group() -> None:
    cases = suite({}, 12)
    assert judge(cases, [TRAJECTORY], *broken(cases, [])).groups == ()


@pytest.mark.slow
def test_a_third_of_a_tag_leads_and_not_a_noisy_case() -> None:
    cases = suite({"refund": range(60), "smoke": range(30, 250)}, 400)
    result = judge(cases, [TRAJECTORY], *broken(cases, range(20), noisy=[200, 201, 300]))
    assert result.verdict is Verdict.REGRESSED
    [named] = result.concentrated
    assert (named.name, named.cases, named.of) == ("refund", 60, 400)
    assert (named.lost, named.rest_lost) == (20, 3)
    (first, *_), left = groups(result)
    assert (first.name, is_named(first, result), left) == ("refund", True, 0)


@pytest.mark.slow
def test_of_nested_tags_the_one_that_explains_the_loss_is_named() -> None:
    inner = suite({"payments": range(60), "refund": range(20)}, 200)
    assert [c.name for c in judge(inner, [TRAJECTORY], *broken(inner, range(10))).concentrated] == ["refund"]
    outer = judge(inner, [TRAJECTORY], *broken(inner, range(0, 60, 3)))
    assert [c.name for c in outer.concentrated] == ["payments"]


@pytest.mark.slow
def test_two_tags_that_broke_are_both_named() -> None:
    cases = suite({"refund": range(40), "billing": range(40, 80), "smoke": range(80, 200)}, 300)
    result = judge(cases, [TRAJECTORY], *broken(cases, [*range(20), *range(40, 60)]))
    assert {one.name for one in result.concentrated} == {"refund", "billing"}


def test_equal_groups_are_named_once_and_by_the_tag() -> None:
    cases = suite({"refund": range(40)}, 200, complex=range(40))
    (one,) = judge(cases, [TRAJECTORY], *broken(cases, range(16))).concentrated
    assert (one.kind, one.name) == (GroupKind.TAG, "refund")


@pytest.mark.slow
def test_breaks_all_over_the_suite_are_told_of_no_tag() -> None:
    named = 0
    for seed in range(20):
        rng = Random(seed)
        cases = suite({}, 120)
        cases = [Case(c.id, (), tags=frozenset(t for t in "abcdefgh" if rng.random() < 0.3)) for c in cases]
        result = judge(cases, [TRAJECTORY], *broken(cases, rng.sample(range(120), 20)))
        assert result.verdict is Verdict.REGRESSED
        named += bool(result.concentrated)
    assert named <= 4, "at a rate of .05, five of twenty are met once in 400 times"


def test_a_tag_of_every_case_and_a_tag_of_one_are_never_named() -> None:
    cases = suite({"all": range(40), "one": range(1)}, 40)
    result = judge(cases, [TRAJECTORY], *broken(cases, range(12)))
    assert result.concentrated == ()
    shown, left = groups(result)
    assert ([one.name for one in shown], left) == (["all"], 1)


def test_an_unchanged_suite_names_no_tag() -> None:
    cases = suite({"refund": range(10)}, 40)
    result = judge(cases, [TRAJECTORY], *broken(cases, []))
    assert (result.verdict, result.concentrated, where(result)) == (Verdict.PASS, (), "")


def test_a_metric_that_is_worse_when_higher_counts_rises_as_losses() -> None:
    steps = TRAJECTORY.__class__("steps", "steps", Scale.COUNT, Direction.LOWER)
    cases = suite({"refund": range(40)}, 200)
    before = [trial(c.id, n, steps=4.0 + n % 2) for c in cases for n in range(1, 6)]
    now = [trial(c.id, steps=9.0 if i < 30 else 4.0 + i % 2) for i, c in enumerate(cases)]
    result = judge(cases, [steps], now, before)
    assert result.verdict is Verdict.REGRESSED
    (one,) = result.concentrated
    assert (one.name, one.criterion) == ("refund", "steps")
    assert (one.before, one.now) == (pytest.approx(4.6), pytest.approx(7.875, abs=0.1))


def test_a_trend_is_a_picture_of_pass_rates_and_needs_two_before() -> None:
    found = judge(suite({}, 1), [TRAJECTORY], *broken(suite({}, 1), []))
    assert trend_line(replace(found, trend=(0.75, 1.0, 0.5)))[0] == "▅█▁"
    assert trend_line(replace(found, trend=(1.0, 0.5))) == ("", "")


def test_thousands_of_tags_are_bounded() -> None:
    cases = [Case(f"case-{i}", (), tags=frozenset([f"t{i}", "x" * 5000, f"u{i // 2}"])) for i in range(500)]
    result = judge(cases, [TRAJECTORY], *broken(cases, range(60)))
    assert (len(result.groups), result.further_groups) == (MOST_GROUPS, 751 - MOST_GROUPS)
    shown, left = groups(result)
    assert (len(shown), left) == (12, 751 - 12)
    assert max(len(name) for _, name, *_ in rows(result)[0]) <= 61
