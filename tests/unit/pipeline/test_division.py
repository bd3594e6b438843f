"""One error budget for a job: what is divided, what a proof frees, and how often an unchanged agent is blocked."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gate.baselines.reference import Reference
from gate.decision import Settings
from gate.model import BaselineInfo, Criterion, Scale, Score, SuiteResult, Trial
from gate.pipeline.terms import Demands, Terms, comparisons_of, divided_at_least, own_terms
from gate.pipeline.verdict import judge_record
from gate.records import Header, PlannedCase, Record

CRITERION = Criterion("ok", "contains", Scale.BINARY, threshold=0.1, pass_threshold=1.0, fingerprint="f")
PLAN = tuple(PlannedCase(f"c{n}", f"content {n}") for n in range(20))


def record(failing: int = 0, trials: int = 3) -> Record:
    made = tuple(
        Trial(case.id, n, round=1, scores={"ok": Score(float(place >= failing))})
        for place, case in enumerate(PLAN)
        for n in range(1, trials + 1)
    )
    return Record(Header("s", PLAN, (CRITERION,)), made, None)


def against(*names: str) -> list[Reference]:
    return [Reference(BaselineInfo(name), (record(trials=5),), name) for name in names]


def e_threshold(suite: SuiteResult) -> float:
    assert suite.outcome is not None
    return suite.outcome.evidence.e_threshold


def test_a_division_leaves_each_comparison_and_each_suite_its_part() -> None:
    settings = Settings(alpha=0.02, threshold_alpha=0.005, suites=5, comparisons=10)
    assert (settings.own_alpha, settings.own_threshold_alpha) == (pytest.approx(0.002), pytest.approx(0.001))
    of_matrix = replace(settings, family=4)
    assert (of_matrix.own_alpha, of_matrix.own_threshold_alpha) == (pytest.approx(0.0005), pytest.approx(0.00025))
    three = against("base", "anchor", "third")
    assert divided_at_least(Terms((CRITERION,), settings), three).settings == settings
    assert divided_at_least(Terms((CRITERION,)), three[:2]).settings.own_alpha == pytest.approx(0.01)


def test_a_suite_without_a_baseline_takes_no_part() -> None:
    terms = Terms((CRITERION,))
    assert comparisons_of(terms, [Reference(BaselineInfo(None, missing="none"))]) == 0
    assert comparisons_of(terms, against("base", "anchor")) == 2
    assert comparisons_of(replace(terms, base=Demands((CRITERION,))), against("base", "anchor")) == 4


def test_references_share_the_alpha_of_a_record_that_is_judged_alone() -> None:
    terms = Terms((CRITERION,))
    whole = e_threshold(judge_record(record(), against("base"), terms))
    both = judge_record(record(), against("base", "anchor"), terms)
    assert e_threshold(both) == e_threshold(both.further[0]) == pytest.approx(2 * whole)
    base_rules = replace(terms, base=Demands((replace(CRITERION, threshold=0.5),)))
    assert e_threshold(judge_record(record(), against("base"), base_rules)) == pytest.approx(2 * whole)


def test_the_division_that_a_record_states_is_what_it_is_judged_by() -> None:
    terms = Terms((CRITERION,), replace(Settings(), comparisons=8, suites=4))
    kept = own_terms(replace(record(), footer=None), terms.settings)
    assert kept.settings == terms.settings
    suite = judge_record(record(), against("base"), terms)
    assert e_threshold(suite) == pytest.approx(8 * e_threshold(judge_record(record(), against("base"), kept_whole())))
    assert suite.course is not None
    assert (suite.course.alpha, suite.course.suites) == (pytest.approx(0.02), 4)


def kept_whole() -> Terms:
    return Terms((CRITERION,))
