"""Reads labelled answers, measures how well a judge agrees with people, and stores that with the judge's fingerprint.
Knows no metric; the caller passes in a function that scores an answer."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from statistics import correlation, stdev
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, ValidationError

from gate.errors import ConfigError, MeasureError, first_problem
from gate.formats.answers import to_invocation
from gate.formats.documents import read_document, read_json_lines
from gate.formats.messages import FormatError
from gate.formats.shapes import as_mapping
from gate.model import Case, Estimate, Invocation, Part, Score, Turn
from gate.model.calibration import GradedLabels, JudgeCalibration, LabelCount
from gate.security import files
from gate.statistics.agreement import (
    LEAST_GRADED,
    Ends,
    clopper_pearson,
    corrects,
    is_usable,
    kappa,
    middle,
    table_draws,
)
from gate.statistics.intervals import mean

FORMAT = 1
"""1: one entry per calibrated measure."""


class Label(Struct, frozen=True):
    """An answer and a person's label for it."""

    case: Case
    invocation: Invocation
    label: float
    """On the metric's scale; 1 and 0 for pass and fail."""
    binary: bool
    """True if the label is pass or fail rather than a score."""


class Calibration(Struct, frozen=True):
    """The agreement of judge and people on answers that both decided, and the number of unmeasured answers."""

    known: JudgeCalibration
    """The numbers that a correction needs."""
    accuracy: Estimate
    """With its 95 % interval; ``n`` counts labels."""
    kappa: Estimate | None
    """Cohen's κ; None if judge and people each gave the same verdict throughout, so that there is nothing to agree
    on."""
    not_measured: int = 0
    threshold: float | None = None
    """The score from which an answer passed in the table; None: not stored, by an earlier version."""


def compared(
    pairs: Sequence[tuple[bool, bool]], graded: GradedLabels | None = None, *, not_measured: int = 0
) -> Calibration:
    """Return the agreement over (people, judge) pairs.

    Raises:
        MeasureError: there are no pairs.
    """
    cells = Counter(pairs)
    order = ((True, True), (False, False), (False, True), (True, False))
    both_pass, both_fail, only_judge, only_people = (cells[cell] for cell in order)
    known = JudgeCalibration(both_pass, both_fail, only_judge, only_people, graded)
    return calibration_of(known, not_measured=not_measured)


def calibration_of(known: JudgeCalibration, *, not_measured: int = 0, threshold: float | None = None) -> Calibration:
    """Return the same as `compared`, from counts. Raises MeasureError if they are all 0."""
    if not known.labels:
        raise MeasureError("no answer has both a label and a judgement: nothing to compare")
    table = (known.both_pass, known.both_fail, known.only_judge, known.only_people)
    accuracies, kappas = [], []
    for draw in table_draws(table, seed=0):
        accuracies.append(draw[0] + draw[1])
        drawn = kappa(draw)
        if drawn is not None:
            kappas.append(drawn)
    share, agreement = known.agreed / known.labels, kappa(table)
    accuracy = Estimate(share, *middle(share, accuracies), known.labels)
    if agreement is None:
        return Calibration(known, accuracy, None, not_measured, threshold)
    beyond_chance = Estimate(agreement, *middle(agreement, kappas), known.labels)
    return Calibration(known, accuracy, beyond_chance, not_measured, threshold)


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid")

    label: bool | float | str
    user: str = ""
    answer: Any = None
    expected: str | None = None
    id: str | None = None


_WORDS = {"pass": True, "fail": False, "true": True, "false": False, "yes": True, "no": False}


def read_labels(path: Path, ends: Ends = (-math.inf, math.inf)) -> list[Label]:
    """Return one labelled answer per line: ``{"user", "answer", "expected", "label", "id"}``.

    ``answer`` is text or any other form in which an agent may answer; ``label`` is pass or fail, or a score between
    ``ends``. A repeated line counts once: the judge would get the same question, so it would prove nothing more.

    Raises:
        ConfigError: a line cannot be read, with its number; or there are no lines.
    """
    labels = []
    seen = set()
    for number, data in read_json_lines(path):
        label = _label(data, f"{path}:{number}", number)
        if not ends[0] <= label.label <= ends[1] and not label.binary:
            reach = f"{ends[0]:g} or more"
            if math.isfinite(ends[1]):
                reach = f"{ends[0]:g} to {ends[1]:g}"
            hint = f"scores of this criterion are {reach}"
            raise ConfigError(f"label {label.label:g} is out of range", where=f"{path}:{number}", hint=hint)
        said = json.dumps({key: value for key, value in data.items() if key != "id"}, sort_keys=True)
        if said not in seen:
            seen.add(said)
            labels.append(label)
    if not labels:
        raise ConfigError("no labels", where=str(path), hint='one per line: {"user": …, "answer": …, "label": "pass"}')
    return labels


def _label(data: Any, where: str, number: int) -> Label:
    try:
        line = _Line.model_validate(data)
        invocation = to_invocation(line.answer, user=line.user)
    except ValidationError as error:
        raise first_problem(error, _Line).as_error(where) from None
    except FormatError as error:
        raise ConfigError(f"answer: {error}", where=where) from None
    said: bool | float | None
    if isinstance(line.label, str):
        said = _WORDS.get(line.label.lower())
    else:
        said = line.label
    if said is None:
        raise ConfigError(f"label {line.label!r} is neither pass nor fail nor a score", where=where)
    expected = None
    if line.expected is not None:
        expected = (Part(line.expected),)
    case = Case(line.id or f"line {number}", (Turn(line.user, response=expected),))
    return Label(case, invocation, float(said), isinstance(said, bool))


async def calibrate(
    labels: Sequence[Label], score: Callable[[Case, Invocation], Awaitable[Score]], passes: Callable[[float], bool]
) -> Calibration:
    """Score every labelled answer and compare pass with pass; a label that is a score passes as a score does.

    Raises:
        MeasureError: the judge measured none of the answers.
    """
    scores = await asyncio.gather(*(score(one.case, one.invocation) for one in labels))
    pairs, people, judged = [], [], []
    is_graded = True
    judges: set[tuple[str, str]] = set()
    for one, given in zip(labels, scores, strict=True):
        judges.update(given.judges)
        if given.value is None:
            continue
        is_graded = is_graded and not one.binary
        people.append(one.label)
        judged.append(given.value)
        approved = one.label == 1.0
        if not one.binary:
            approved = passes(one.label)
        pairs.append((approved, passes(given.value)))
    if not pairs:
        why = next((given.error for given in scores if given.error), "the metric applies to none of the labels")
        raise MeasureError(f"none of {len(labels)} labelled answers could be judged: {why}")
    graded = None
    if is_graded and len(pairs) > 1:
        graded = _graded(people, judged)
    found = compared(pairs, graded, not_measured=len(labels) - len(pairs))
    return replace(found, known=replace(found.known, judges=tuple(sorted(judges))))


def _graded(people: Sequence[float], judge: Sequence[float]) -> GradedLabels:
    differences = [said - value for said, value in zip(people, judge, strict=True)]
    together = 0.0
    if len(set(people)) > 1 and len(set(judge)) > 1:
        together = min(1.0, max(-1.0, correlation(people, judge)))
    return GradedLabels(len(people), mean(differences), stdev(differences), together)


# --- the file -------------------------------------------------------------------------------------


def save(path: Path, fingerprint: str, calibration: Calibration, criterion: str = "") -> None:
    """Store a calibration under the fingerprint of its metric, version, options and judge.

    It replaces an earlier one of the same criterion, which is for another judge or wording. Damaged entries are kept as
    they are, except for the one replaced.

    Raises:
        ConfigError: the file is not a calibration of this version.
        MeasureError: the stored calibration could not be read again.
    """
    entries = _entries(path)
    for key in [key for key, held in entries.items() if criterion and _name_of(held) == criterion]:
        del entries[key]
    entries[fingerprint] = _stored(calibration, criterion)
    try:
        _read(entries[fingerprint])
    except msgspec.ValidationError as error:
        raise MeasureError(f"the labels give no usable calibration: {error}") from None
    files.write_text(path, json.dumps({"version": FORMAT, "calibrations": entries}, indent=2) + "\n")


def load(path: Path, fingerprint: str) -> Calibration | None:
    """Return the calibration of this very measure; None if it was never calibrated.

    Raises:
        ConfigError: the file is not a calibration of this version.
    """
    entry = _entries(path).get(fingerprint)
    if entry is None:
        return None
    try:
        return _read(entry)
    except (msgspec.ValidationError, MeasureError) as error:
        raise ConfigError(f"not a calibration: {error}", where=str(path), hint="run `gate calibrate` again") from None


def _stored(calibration: Calibration, criterion: str) -> dict[str, Any]:
    counts: dict[str, Any] = msgspec.to_builtins(calibration.known)
    graded = counts.pop("graded")
    for name, figure in (("accuracy", calibration.accuracy), ("kappa", calibration.kappa)):
        counts[name] = None
        if figure is not None:
            counts[name] = {"value": figure.value, "low": figure.low, "high": figure.high}
    return {
        "agreement": counts,
        "not_measured": calibration.not_measured,
        "graded": graded,
        "threshold": calibration.threshold,
        "criterion": criterion,
    }


def _read(entry: Any) -> Calibration:
    """Return a stored calibration, from its counts; other stored figures are for readers, and are computed again."""
    held = as_mapping(entry)
    table: dict[str, Any] = {**as_mapping(held.get("agreement")), "graded": held.get("graded")}
    counts = {name: table[name] for name in JudgeCalibration.__struct_fields__ if name in table}
    known = msgspec.convert(counts, JudgeCalibration)
    if known.graded is not None and known.graded.labels != known.labels:
        raise MeasureError(f"{known.graded.labels:,} graded labels beside a table of {known.labels:,}")
    not_measured = msgspec.convert(held.get("not_measured", 0), LabelCount)
    threshold: float | None = msgspec.convert(held.get("threshold"), float | None)
    return calibration_of(known, not_measured=not_measured, threshold=threshold)


def check_file(path: Path) -> None:
    """Raise ConfigError if the file exists and a calibration could not be added to it."""
    _entries(path)


def is_stale(path: Path, fingerprint: str, criterion: str) -> bool:
    """True if this criterion was only calibrated with another judge, wording or set of options."""
    entries = _entries(path)
    return fingerprint not in entries and any(_name_of(entry) == criterion for entry in entries.values())


def _name_of(entry: Any) -> Any:
    return as_mapping(entry).get("criterion")


def _entries(path: Path) -> dict[str, Any]:
    """Return the stored calibrations by fingerprint; none if there is no file."""
    if not path.is_file():
        return {}
    hint = "move the file away and run `gate calibrate` again"
    try:
        data = read_document(path)
    except ConfigError as error:
        raise ConfigError(f"not a calibration file: {error.what}", where=error.where, hint=hint) from None
    if not isinstance(data, dict) or data.get("version") != FORMAT or not isinstance(data.get("calibrations"), dict):
        raise ConfigError("not a calibration file of this version", where=str(path), hint=hint)
    return dict(data["calibrations"])


def not_blocking(calibration: Calibration | None, min_kappa: float | None, marks: Collection[float | None] = ()) -> str:
    """Return the reason why a judge may not fail the gate; empty if it may.

    The lower end of κ's interval must reach ``min_kappa``: few labels prove little. ``marks`` as in `not_applied`; κ
    proves nothing about an unknown threshold.
    """
    if min_kappa is None:
        return ""
    if calibration is None:
        return "reports only: this judge was never calibrated; run `gate calibrate`"
    why, kappa = not_applied(calibration, marks), calibration.kappa
    if not why and marks and calibration.threshold is None:
        why = "its calibration does not say of which threshold it is: run `gate calibrate` again"
    elif not why and kappa is None:
        why = "all labels or all judgements are alike, so agreement says nothing"
    elif not why and kappa is not None and kappa.low < min_kappa:
        found = f"κ {kappa.value:.2f} (95 %: {kappa.low:.2f} to {kappa.high:.2f}, {calibration.known.labels} labels)"
        why = f"{found} does not reach {min_kappa:g}"
    if not why:
        return ""
    return f"reports only: {why}"


def describe(calibration: Calibration) -> str:
    """Return the agreement as a few lines of text."""
    known, kappa = calibration.known, calibration.kappa
    beyond_chance = _shown(kappa) if kappa else "undefined: all labels or all judgements are alike"
    lines = [
        f"accuracy     {_shown(calibration.accuracy)}",
        f"kappa        {beyond_chance}",
        f"sensitivity  {_rate(known.both_pass, known.passed)} that people pass",
        f"specificity  {_rate(known.both_fail, known.failed)} that people fail",
        "",
        "               judge: pass  judge: fail",
        f"people: pass   {known.both_pass:>11,}  {known.only_people:>11,}",
        f"people: fail   {known.only_judge:>11,}  {known.both_fail:>11,}",
        "",
        f"{known.labels:,} labels",
    ]
    if calibration.not_measured:
        lines[-1] += f", {calibration.not_measured:,} not measured"
    graded = known.graded
    if graded is not None:
        lines.append(
            f"people score {graded.bias:+.3f} on average against the judge (standard deviation {graded.sd:.3f})"
        )
    if why := not_applied(calibration):
        lines.append(f"nothing is corrected: {why}")
    elif why := not_corrected(known):
        lines.append(why)
    return "\n".join(lines)


def not_applied(calibration: Calibration, marks: Collection[float | None] = ()) -> str:
    """Return the reason why the calibration cannot be used at all; empty if it can.

    An answer that passes at one threshold fails at another, so the table is valid only for its own: it must be among
    ``marks``, if any are given. An entry without a threshold still corrects, as it did when it was stored: nothing
    shows that the threshold has moved, and a correction by few or old labels is limited by its own error.

    If most answers were not measured, the others are those that the judge finds easy, which says little about the
    answers to be judged.
    """
    measured, lost = calibration.known.labels, calibration.not_measured
    if marks and calibration.threshold is not None and calibration.threshold not in marks:
        return f"its calibration is of the threshold {calibration.threshold:g}: run `gate calibrate` again"
    if lost <= measured:
        return ""
    return f"the judge measured {measured:,} of {measured + lost:,} labelled answers, less than half of them"


def not_corrected(known: JudgeCalibration) -> str:
    """Return a note on the scores that it cannot correct, with the reason; empty if it corrects those that people
    labelled."""
    graded = known.graded
    if graded is None:
        why = "" if is_usable(known) else f"{known.labels:,} labels do not show the judge to be better than chance"
        return f"{why}: its scores are not corrected" if why else ""
    if corrects(graded):
        return ""
    if graded.labels < LEAST_GRADED:
        why = f"{graded.labels:,} graded labels are too few ({LEAST_GRADED} at least)"
    else:
        r = graded.correlation
        why = f"{graded.labels:,} labels do not show the judge's scores to rise with people's (correlation {r:.2f})"
    return f"{why}: its graded scores are not corrected"


def _rate(successes: int, n: int) -> str:
    if not n:
        return "unknown: no answer"
    return f"{_shown(Estimate(successes / n, *clopper_pearson(successes, n), n))}  of {n:,}"


def _shown(share: Estimate) -> str:
    return f"{share.value:.3f}  95 %: {share.low:.3f} to {share.high:.3f}"
