"""Which calibration holds, for whom, and what is said of it; files on disk, no judge is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gate.config.load import read_config
from gate.config.people import mark_of, notes_of, with_calibrations
from gate.config.resolve import Plan, make_plans
from gate.judges import calibration
from gate.judges.options import CALIBRATION_FILE
from gate.model import Rubric
from gate.model.calibration import GradedLabels

from .test_base_policy import BASE, under_base_policy, write

KEY = {"OPENAI_API_KEY": "x"}
GOOD = replace(calibration.compared([(True, True), (False, False)] * 50), threshold=0.7)
WEAK = replace(calibration.compared([(True, True), (False, False)] * 2), threshold=0.7)
UNCALIBRATED = "blocks by a judge that was never compared with people: clarity (`gate calibrate`)"


def folders(tmp_path: Path, **clarity: Any) -> tuple[Path, Path]:
    """The change's configuration and the base's folder, alike."""
    judged = {"clarity": {"threshold": 0.7, **clarity}, "latency": {"max": 3}}
    base, head = (write(tmp_path / name, BASE | {"criteria": judged}) for name in ("base", "head"))
    return head, base


def plan_of(head: Path, base: Path | None) -> Plan:
    config = read_config(head).load({}) if base is None else under_base_policy(head, {}, base).config
    [plan] = make_plans(config, KEY)
    return plan


def save(folder: Path, plan: Plan, found: calibration.Calibration) -> None:
    calibration.save(folder / CALIBRATION_FILE, plan.criteria[0].fingerprint, found, "clarity")


def test_an_uncalibrated_judge_that_blocks_is_named_and_one_that_reports_is_not(tmp_path: Path) -> None:
    head, _ = folders(tmp_path)
    plan = plan_of(head, None)
    assert plan.criteria[0].blocking and plan.criteria[0].calibration is None
    assert UNCALIBRATED in plan.notes
    head, _ = folders(tmp_path, blocking=False)
    assert UNCALIBRATED not in plan_of(head, None).notes


def test_a_local_calibration_corrects(tmp_path: Path) -> None:
    head, _ = folders(tmp_path)
    save(head.parent, plan_of(head, None), GOOD)
    plan = plan_of(head, None)
    assert plan.criteria[0].calibration == GOOD.known
    assert plan.notes == ()


def test_a_calibration_that_comes_with_a_change_corrects_nothing_before_it_is_merged(tmp_path: Path) -> None:
    head, base = folders(tmp_path)
    save(head.parent, plan_of(head, None), GOOD)
    plan = plan_of(head, base)
    assert plan.criteria[0].blocking and plan.criteria[0].calibration is None
    assert "clarity: its calibration corrects its scores once it is merged" in plan.notes
    assert f"{CALIBRATION_FILE}: new, corrects scores once it is merged" in under_base_policy(head, {}, base).changes


def test_of_two_calibrations_the_bases_corrects(tmp_path: Path) -> None:
    head, base = folders(tmp_path)
    plain = plan_of(head, None)
    flattering = calibration.compared([(True, True), (False, False), (True, False)] * 40)
    save(head.parent, plain, flattering)
    save(base.parent, plain, GOOD)
    assert plan_of(head, base).criteria[0].calibration == GOOD.known
    assert f"{CALIBRATION_FILE}: edited, takes effect once it is merged" in under_base_policy(head, {}, base).changes


def test_a_change_can_make_a_judge_block_and_not_keep_it_from_blocking(tmp_path: Path) -> None:
    head, base = folders(tmp_path, min_kappa=0.5)
    assert not plan_of(head, base).criteria[0].blocking
    save(head.parent, plan_of(head, base), GOOD)
    plan = plan_of(head, base)
    assert plan.criteria[0].blocking and plan.criteria[0].calibration is None
    save(base.parent, plan, GOOD)
    save(head.parent, plan, WEAK)
    assert plan_of(head, base).criteria[0].blocking


def test_few_labels_correct_nothing_and_let_it_block_as_before(tmp_path: Path) -> None:
    head, _ = folders(tmp_path)
    save(head.parent, plan_of(head, None), WEAK)
    plan = plan_of(head, None)
    assert plan.criteria[0].blocking
    told = "4 labels do not show the judge to be better than chance: its scores are not corrected"
    assert plan.notes == (f"clarity: {told}",)


def test_graded_labels_that_are_too_few_are_said(tmp_path: Path) -> None:
    head, _ = folders(tmp_path)
    graded = GradedLabels(100, 0.3, 0.0, 0.0)
    save(head.parent, plan_of(head, None), replace(GOOD, known=replace(GOOD.known, graded=graded)))
    [note] = plan_of(head, None).notes
    assert note.startswith("clarity: 100 labels do not show the judge's scores to rise with people's")
    assert note.endswith("its graded scores are not corrected")


def test_a_judge_that_left_most_labels_unmeasured_corrects_nothing_and_blocks_as_before(tmp_path: Path) -> None:
    head, _ = folders(tmp_path)
    save(head.parent, plan_of(head, None), replace(GOOD, not_measured=101))
    plan = plan_of(head, None)
    assert plan.criteria[0].blocking and plan.criteria[0].calibration is None
    told = "the judge measured 100 of 201 labelled answers, less than half of them: nothing is corrected"
    assert plan.notes == (f"clarity: {told}",)


def test_what_passed_at_another_threshold_neither_corrects_nor_lets_a_judge_block(tmp_path: Path) -> None:
    head, _ = folders(tmp_path)
    save(head.parent, plan_of(head, None), replace(GOOD, threshold=0.5))
    plan = plan_of(head, None)
    moved = "its calibration is of the threshold 0.5: run `gate calibrate` again"
    assert plan.criteria[0].blocking and plan.criteria[0].calibration is None
    assert plan.notes == (f"clarity: {moved}: nothing is corrected",)
    head, _ = folders(tmp_path, min_kappa=0.5)
    plan = plan_of(head, None)
    assert not plan.criteria[0].blocking
    assert plan.notes == (f"clarity reports only: {moved}",)


def test_an_entry_without_a_threshold_corrects_and_does_not_let_a_judge_block(tmp_path: Path) -> None:
    head, _ = folders(tmp_path)
    save(head.parent, plan_of(head, None), replace(GOOD, threshold=None))
    assert plan_of(head, None).criteria[0].calibration == GOOD.known
    head, _ = folders(tmp_path, min_kappa=0.5)
    plan = plan_of(head, None)
    assert not plan.criteria[0].blocking
    assert "does not say of which threshold it is: run `gate calibrate` again" in plan.notes[0]


def test_a_change_cannot_free_a_criterion_from_its_judge_by_a_higher_threshold(tmp_path: Path) -> None:
    head, base = folders(tmp_path, min_kappa=0.5)
    save(base.parent, plan_of(base, None), GOOD)
    judged = {"clarity": {"threshold": 0.75, "min_kappa": 0.5}, "latency": {"max": 3}}
    head = write(head.parent, BASE | {"criteria": judged})
    plan = plan_of(head, base)
    assert plan.criteria[0].threshold == 0.75
    assert plan.criteria[0].blocking and plan.criteria[0].calibration == GOOD.known


def test_scores_of_zero_and_one_pass_alike_at_any_threshold(tmp_path: Path) -> None:
    for threshold in (0.5, 0.9):
        head = write(tmp_path / str(threshold), BASE | {"criteria": {"task_completion": threshold}})
        assert mark_of(plan_of(head, None).criteria[0]) == 1.0


def test_another_wording_leaves_a_calibration_behind_and_calibrating_again_replaces_it(tmp_path: Path) -> None:
    head, _ = folders(tmp_path)
    path = head.parent / CALIBRATION_FILE
    calibration.save(path, "another", GOOD, "clarity")
    [note] = plan_of(head, None).notes
    assert note.startswith("clarity: its calibration is of another judge, wording or options and no longer applies")
    save(head.parent, plan_of(head, None), GOOD)
    assert calibration.load(path, "another") is None


@pytest.mark.parametrize("own", [{"rubrics": (Rubric("r", "calm", "FINAL_RESPONSE_QUALITY"),)}, {}])
def test_rubrics_of_cases_are_not_covered(tmp_path: Path, own: dict[str, Any]) -> None:
    name = "rubric_based_final_response_quality_v1"
    rubrics = [{"rubric_id": "short", "rubric_content": {"text_property": "Short."}}]
    head = write(tmp_path / "head", BASE | {"criteria": {name: {"threshold": 0.7, "rubrics": rubrics}}})
    [plan] = make_plans(config := read_config(head).load({}), KEY)
    calibration.save(config.root / CALIBRATION_FILE, plan.criteria[0].fingerprint, GOOD, name)
    cases = [replace(case, **own) for case in plan.suite.cases]
    [held] = with_calibrations(config, plan.scorers, cases)
    assert (held.criterion.calibration is None) == bool(own)
    assert any("questions of their own" in note for note in notes_of([held])) == bool(own)
