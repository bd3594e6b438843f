"""Judged criteria compared with people's labels: which may block, which are corrected, and what the reader is told."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gate.config.criteria import rubrics_of, with_demands
from gate.config.load import Config
from gate.config.specs import CriterionSpec
from gate.judges.options import CALIBRATION_FILE
from gate.metrics.base import Judged
from gate.model import Case, Criterion, Scale
from gate.scoring.score import Scorer


def mark_of(criterion: Criterion) -> float | None:
    """Return the score from which an answer passes when judge and people are compared; always 1 if scores are 0 or
    1."""
    mark = criterion.pass_threshold
    return 1.0 if criterion.scale is Scale.BINARY and mark else mark


def with_calibrations(
    config: Config, scorers: Sequence[Scorer], cases: Sequence[Case], before: Sequence[CriterionSpec] = ()
) -> list[Scorer]:
    """Return the scorers with judged criteria corrected by their calibrations; with ``min_kappa``, a criterion blocks
    only if its judge agrees with people.

    If a change is judged by its base's rules, only the base's calibration corrects scores: the change's own could
    flatter the judge. If the base has none, the change's can only let a criterion block. A calibration for the base's
    threshold (``before`` holds the base's criteria) stays valid under another threshold of the change; otherwise a
    slightly higher threshold would void it.
    """
    return [_calibrated(config, scorer, cases, before) for scorer in scorers]


def _calibrated(config: Config, scorer: Scorer, cases: Sequence[Case], before: Sequence[CriterionSpec]) -> Scorer:
    metric, criterion = scorer.metric, scorer.criterion
    if not isinstance(metric, Judged):
        return scorer
    from gate.judges.calibration import (  # weight: judged only
        is_stale,
        load,
        not_applied,
        not_blocking,
        not_corrected,
    )

    own = config.root / CALIBRATION_FILE
    reviewed = own  # the base commit's file, if there is a base
    if config.base_root is not None:
        reviewed = config.base_root / CALIBRATION_FILE
    place = reviewed if reviewed.exists() else own
    found = load(place, criterion.fingerprint)
    marks = {mark_of(criterion)}
    for spec in before:
        if spec.name == criterion.name:
            marks.add(mark_of(with_demands(criterion, spec, type(metric))))
    why = not_blocking(found, metric.min_kappa, marks)
    if why:
        scorer = replace(scorer, criterion=replace(criterion, blocking=False, blocks_regression=False))
    scorer = replace(scorer, held_back=why)
    if found is None:
        if not is_stale(place, criterion.fingerprint, criterion.name):
            return scorer
        gone = "is of another judge, wording or options and no longer applies: run `gate calibrate` again"
        return replace(scorer, note=f"{criterion.name}: its calibration {gone}")
    if gone := not_applied(found, marks):
        return replace(scorer, note="" if why else f"{criterion.name}: {gone}: nothing is corrected")
    if place != reviewed:
        return replace(scorer, note=f"{criterion.name}: its calibration corrects its scores once it is merged")
    if _asks_by_case(scorer, cases):
        why = "cases have questions of their own, which its calibration does not cover: its scores are not corrected"
        return replace(scorer, note=f"{criterion.name}: {why}")
    known = found.known
    if criterion.scale is Scale.BINARY:
        known = replace(known, graded=None)  # such a criterion has no grades, whatever people's labels look like
    weak = not_corrected(known)
    note = f"{criterion.name}: {weak}" if weak else ""
    return replace(scorer, criterion=replace(scorer.criterion, calibration=known), note=note)


def _asks_by_case(scorer: Scorer, cases: Sequence[Case]) -> bool:
    """True if cases have their own options or rubrics, so that their question differs from the labelled one."""
    kind = scorer.metric.rubric_type
    if scorer.by_case or not kind:
        return bool(scorer.by_case)
    return any(rubric.type == kind for case in cases for rubric in rubrics_of(case))


def notes_of(scorers: Sequence[Scorer]) -> tuple[str, ...]:
    """Return notes for the reader on judges; those that were never compared with people share one note."""
    names = []
    for scorer in scorers:
        criterion = scorer.criterion
        judged = scorer.needs_judge and criterion.blocking
        if judged and criterion.calibration is None and not scorer.note:
            names.append(criterion.name)
    notes = [scorer.note for scorer in scorers if scorer.note]
    if names:
        notes.insert(0, f"blocks by a judge that was never compared with people: {', '.join(names)} (`gate calibrate`)")
    return tuple(notes)
