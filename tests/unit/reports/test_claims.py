"""What a report says is a claim: a tick rests on a comparison or a threshold, a bound on its level, in any world."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.baselines.reference import Reference
from gate.decision import Settings
from gate.model import (
    BaselineInfo,
    CaseStatus,
    Criterion,
    ErrorKind,
    Scale,
    Score,
    SuiteResult,
    Trial,
    TrialError,
    Verdict,
)
from gate.pipeline.terms import Terms
from gate.pipeline.verdict import judge_record, result_of
from gate.records import Header, PlannedCase, Record
from gate.reports import load_report
from gate.reports.rows import RowView
from tests.properties import examples

FORMS = ("markdown", "console", "html", "junit")


@st.composite
def criteria(draw: st.DrawFn) -> tuple[Criterion, ...]:
    found = []
    for name in draw(st.lists(st.sampled_from("abc"), unique=True, max_size=3)):
        threshold = draw(st.none() | st.sampled_from([0.2, 0.5, 0.9]))
        blocking = draw(st.booleans())
        fingerprint = draw(st.sampled_from(["one", "two"]))
        found.append(
            Criterion(
                name,
                "contains",
                Scale.UNIT,
                threshold=threshold,
                pass_threshold=threshold,
                blocking=blocking,
                blocks_regression=blocking,
                fingerprint=fingerprint,
            )
        )
    return tuple(found)


@st.composite
def records(draw: st.DrawFn, held: tuple[Criterion, ...]) -> Record:
    plan = tuple(
        PlannedCase(f"case {n}", f"content {draw(st.integers(0, 14))}") for n in range(draw(st.integers(1, 14)))
    )
    score = st.sampled_from([Score(0.0), Score(0.5), Score(1.0), Score(None, error="judge down"), Score(None)])
    trials = []
    for case in plan:
        for number in range(1, draw(st.integers(1, 3)) + 1):
            if draw(st.integers(0, 9)) == 0:
                trials.append(Trial(case.id, number, round=number, error=TrialError(ErrorKind.CRASH, "gone")))
            else:
                scores = {criterion.name: draw(score) for criterion in held}
                trials.append(Trial(case.id, number, round=number, scores=scores))
    return Record(Header("suite", plan, held), tuple(trials), None)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Record, SuiteResult]:
    now, before = draw(criteria()), draw(criteria())
    record = draw(records(now))
    stored = () if draw(st.integers(0, 3)) == 0 else (draw(records(before)),)
    reference = Reference(BaselineInfo("abc" if stored else None, missing="" if stored else "none yet"), stored)
    return record, judge_record(record, [reference], Terms(now))


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(worlds())
def test_what_is_said_of_any_world_holds(world: tuple[Record, SuiteResult]) -> None:
    record, suite = world
    a_tick_rests_on_a_comparison_or_a_threshold(suite)
    every_bound_carries_its_level_in_every_form(suite)
    a_case_whose_every_trial_failed_is_never_ok(record, suite)
    one_trial_has_no_interval(suite)


def a_tick_rests_on_a_comparison_or_a_threshold(suite: SuiteResult) -> None:
    for row in suite.criteria:
        if RowView(row, suite).is_ticked:
            held = row.criterion.threshold is not None
            assert held or row.change is not None, row
            assert not row.not_compared
            assert row.candidate is not None
    blocking = [row for row in suite.criteria if row.criterion.blocking]
    if suite.verdict is Verdict.PASS:
        assert any(RowView(row, suite).is_ticked for row in blocking)
        assert not any(row.not_compared for row in blocking)


def every_bound_carries_its_level_in_every_form(suite: SuiteResult) -> None:
    result = result_of([suite], Settings(), command="gate run")
    for form in FORMS:
        text = re.sub(r"\s+", " ", load_report(form)(result))
        for said in re.finditer(r"ruled out", text):
            assert text[said.start() :].startswith("ruled out at 95 % confidence"), (
                form,
                text[said.start() - 80 :][:160],
            )


def a_case_whose_every_trial_failed_is_never_ok(record: Record, suite: SuiteResult) -> None:
    for case in suite.cases:
        trials = [trial for trial in record.trials if trial.case_id == case.id]
        blocking = [c for c in record.header.criteria if c.blocking and c.threshold is not None]
        broken = [
            any(
                (s := t.scores.get(c.name)) is not None and s.value is not None and s.value < c.threshold
                for c in blocking
            )
            for t in trials
        ]
        if trials and all(broken) and not case.baseline_trials:
            assert case.status is not CaseStatus.OK, case


def one_trial_has_no_interval(suite: SuiteResult) -> None:
    for row in suite.criteria:
        for found in (row.candidate, row.baseline, row.change):
            if found is not None and found.n == 1 and found.trials <= 1:
                assert found.level == 0.0


@settings(max_examples=examples(30))
@given(worlds(), st.randoms())
def test_the_order_of_trials_changes_nothing(world: tuple[Record, SuiteResult], luck: object) -> None:
    record, _ = world
    shuffled = list(record.trials)
    luck.shuffle(shuffled)  # type: ignore[attr-defined]
    alone = [Reference(BaselineInfo(None))]
    terms = Terms(record.header.criteria)
    one, other = (judge_record(replace(record, trials=tuple(t)), alone, terms) for t in (record.trials, shuffled))
    assert [row.candidate for row in one.criteria] == [row.candidate for row in other.criteria]
    assert one.verdict == other.verdict
