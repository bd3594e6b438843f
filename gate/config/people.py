"""Judged criteria held to people's labels: which may block, which are corrected, and what a reader is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gate.config.criteria import demanded_before
from gate.config.load import Config
from gate.config.specs import CriterionSpec
from gate.judges.options import JudgeOptions
from gate.metrics.base import Judged
from gate.model import Case, Criterion, Scale
from gate.scoring.score import Scorer


class Held(Struct, frozen=True):
    """A scorer with what its judge's calibration makes of it."""

    scorer: Scorer
    why: str = ""
    """The reason why it only reports; empty if it may block."""
    note: str = ""
    """Notes on its calibration for the reader."""


def calibration_file(config: Config, root: Path) -> Path:
    """The file that ``judge.calibration`` names, below a form of the configuration's folder."""
    return root / (config.file.judge or JudgeOptions()).calibration


def mark_of(criterion: Criterion) -> float | None:
    """The score from which an answer passes, where judge and people are compared; of zeros and ones always 1."""
    mark = criterion.pass_threshold
    return 1.0 if criterion.scale is Scale.BINARY and mark else mark


def hold_to_people(
    config: Config, scorers: Sequence[Scorer], cases: Sequence[Case], before: Sequence[CriterionSpec] = ()
) -> list[Held]:
    """A judged criterion is corrected by its calibration, and with ``min_kappa`` blocks only where its judge agrees
    with people.

    Of a change that is held to its base's rules only the base's calibration corrects: one that came with the change
    could flatter the judge. Where the base has none, the change's may say that a criterion blocks, never more. A
    calibration of the base's threshold (``before``: its criteria) stays one, whatever the change makes of it: a change
    could otherwise free a criterion from its judge by a threshold that is a little higher.
    """
    return [_held(config, scorer, cases, before) for scorer in scorers]


def _held(config: Config, scorer: Scorer, cases: Sequence[Case], before: Sequence[CriterionSpec]) -> Held:
    metric, criterion = scorer.metric, scorer.criterion
    if not isinstance(metric, Judged) or criterion.stands_for:
        return Held(scorer)
    from gate.judges.calibration import load, may_block, not_applied, not_corrected  # weight: only where asked

    places = [calibration_file(config, root) for root in (config.base_root, config.root) if root is not None]
    place = next((path for path in places if path.exists()), places[-1])
    found = load(place, criterion.fingerprint)
    bases = (demanded_before(scorer, spec) for spec in before if spec.name == criterion.name)
    marks = {mark_of(one) for one in (criterion, *bases)}
    may, why = may_block(found, metric.min_kappa, marks)
    if not may:
        scorer = replace(scorer, criterion=replace(criterion, blocking=False, blocks_regression=False))
    if found is None:
        return Held(scorer, why, _stale(place, criterion))
    if gone := not_applied(found, marks):
        return Held(scorer, why, "" if why else f"{criterion.name}: {gone}: nothing is corrected")
    if place != places[0]:
        return Held(scorer, why, f"{criterion.name}: its calibration corrects its scores once it is merged")
    if _asks_by_case(scorer, cases):
        own = "cases have questions of their own, which its calibration does not cover: its scores are not corrected"
        return Held(scorer, why, f"{criterion.name}: {own}")
    known = found.known
    if criterion.scale is Scale.BINARY:
        known = replace(known, graded=None)  # nothing is graded there, whatever people's labels look like
    weak = not_corrected(known)
    scorer = replace(scorer, criterion=replace(scorer.criterion, calibration=known))
    return Held(scorer, why, f"{criterion.name}: {weak}" if weak else "")


def _stale(place: Path, criterion: Criterion) -> str:
    """Return a note if only another judge or wording was calibrated; empty without a calibration."""
    from gate.judges.calibration import is_stale  # weight: only where asked

    gone = "is of another judge, wording or options and no longer applies: run `gate calibrate` again"
    stale = is_stale(place, criterion.fingerprint, criterion.name)
    return f"{criterion.name}: its calibration {gone}" if stale else ""


def _asks_by_case(scorer: Scorer, cases: Sequence[Case]) -> bool:
    """True if cases have options or rubrics of their own: the question is then another than the labelled one."""
    kind = scorer.metric.rubric_type
    rubrics = chain.from_iterable((*case.rubrics, *(r for turn in case.turns for r in turn.rubrics)) for case in cases)
    return bool(scorer.by_case) or (bool(kind) and any(rubric.type == kind for rubric in rubrics))


def notes_of(people: Sequence[Held]) -> tuple[str, ...]:
    """Return the note for the reader: once for all judges that block although nobody compared them with people."""
    names = [
        one.scorer.criterion.name
        for one in people
        if one.scorer.needs_judge
        and one.scorer.criterion.blocking
        and one.scorer.criterion.calibration is None
        and not one.scorer.criterion.stands_for
        and not one.note
    ]
    told = f"blocks by a judge that was never compared with people: {', '.join(names)} (`gate calibrate`)"
    return (*([told] if names else []), *(one.note for one in people if one.note))
