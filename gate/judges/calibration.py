"""How far a judge agrees with people: reads labelled answers, measures agreement, and keeps it beside the judge's
fingerprint. Knows no metric; the caller hands in what scores an answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, ValidationError

from gate.errors import ConfigError, MeasureError, first_problem
from gate.formats.answers import to_invocation
from gate.formats.documents import read_document, read_json_lines
from gate.formats.messages import FormatError
from gate.model import Case, Invocation, Part, Score, Turn
from gate.security import files

FORMAT = 1
"""1: one entry per calibrated measure."""
DRAWS = 2000
"""Draws behind an interval; its ends are then good to about a hundredth."""


class Label(Struct, frozen=True):
    """One answer with what a person says about it."""

    case: Case
    invocation: Invocation
    label: float
    """On the metric's scale; 1 and 0 for pass and fail."""
    binary: bool
    """Whether the person said pass or fail rather than a score."""


class Interval(Struct, frozen=True):
    """A share or κ with its 95 % interval."""

    value: float
    low: float
    high: float


class Agreement(Struct, frozen=True):
    """How often judge and people say the same, of answers that both decided."""

    both_pass: int
    both_fail: int
    only_judge: int
    """The judge passes what people fail: the costly kind."""
    only_people: int
    accuracy: Interval
    kappa: Interval | None
    """Cohen's κ; None where judge and people each said one and the same thing throughout: nothing to agree on."""

    @property
    def n(self) -> int:
        return self.both_pass + self.both_fail + self.only_judge + self.only_people


def agreement(pairs: Sequence[tuple[bool, bool]], *, seed: int = 0) -> Agreement:
    """Agreement over (people, judge) pairs.

    κ = (pₒ − pₑ) / (1 − pₑ) (Cohen 1960). Intervals: 95 % of the posterior of the confusion table under Jeffreys'
    prior (Dirichlet ½), by seeded draws; unlike the bootstrap they stay wide where few labels happen to agree.

    Raises:
        MeasureError: no pairs.
    """
    if not pairs:
        raise MeasureError("no answer has both a label and a judgement: nothing to compare")
    table = (
        sum(people and judge for people, judge in pairs),
        sum(not people and not judge for people, judge in pairs),
        sum(not people and judge for people, judge in pairs),
        sum(people and not judge for people, judge in pairs),
    )
    rng = Random(seed)  # noqa: S311 -- an interval, not a secret
    draws = [_draw(table, rng) for _ in range(DRAWS)]
    shares = tuple(count / len(pairs) for count in table)
    kappa = _kappa(shares)
    kappas = [one for draw in draws if (one := _kappa(draw)) is not None]
    return Agreement(
        *table,
        accuracy=_interval(shares[0] + shares[1], [draw[0] + draw[1] for draw in draws]),
        kappa=None if kappa is None else _interval(kappa, kappas),
    )


def _draw(table: Sequence[int], rng: Random) -> tuple[float, ...]:
    masses = [rng.gammavariate(count + 0.5, 1.0) for count in table]
    total = sum(masses)
    return tuple(mass / total for mass in masses)


def _kappa(shares: Sequence[float]) -> float | None:
    both_pass, both_fail, only_judge, only_people = shares
    people, judge = both_pass + only_people, both_pass + only_judge
    by_chance = people * judge + (1 - people) * (1 - judge)
    return None if by_chance >= 1 - 1e-12 else (both_pass + both_fail - by_chance) / (1 - by_chance)


def _interval(value: float, draws: list[float]) -> Interval:
    """The middle 95 % of the draws, stretched to hold the value itself."""
    draws.sort()
    cut = round(0.025 * len(draws))
    return Interval(value, min(draws[cut], value), max(draws[-1 - cut], value))


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid")

    label: bool | float | str
    user: str = ""
    answer: Any = None
    expected: str | None = None
    id: str | None = None


_WORDS = {"pass": True, "fail": False, "true": True, "false": False, "yes": True, "no": False}


def read_labels(path: Path) -> list[Label]:
    """One labelled answer per line: ``{"user", "answer", "expected", "label", "id"}``.

    ``answer`` is text or any form in which an agent may answer; ``label`` is pass or fail, or a score.

    Raises:
        ConfigError: a line that cannot be read, with its number; or no lines.
    """
    labels = [_label(data, f"{path}:{number}", number) for number, data in read_json_lines(path)]
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
    said = _WORDS.get(line.label.lower()) if isinstance(line.label, str) else line.label
    if said is None:
        raise ConfigError(f"label {line.label!r} is neither pass nor fail nor a score", where=where)
    expected = None if line.expected is None else (Part(line.expected),)
    case = Case(line.id or f"line {number}", (Turn(line.user, response=expected),))
    return Label(case, invocation, float(said), isinstance(said, bool))


class Calibration(Struct, frozen=True):
    """The agreement of one measure, and how much of it could not be measured."""

    agreement: Agreement
    not_measured: int = 0


async def calibrate(
    labels: Sequence[Label], score: Callable[[Case, Invocation], Awaitable[Score]], passes: Callable[[float], bool]
) -> Calibration:
    """Scores every labelled answer and compares pass with pass; a label that is a score passes as a score does.

    Raises:
        MeasureError: the judge measured none of the answers.
    """
    scores = await asyncio.gather(*(score(one.case, one.invocation) for one in labels))
    pairs = [
        (one.label == 1.0 if one.binary else passes(one.label), passes(found.value))
        for one, found in zip(labels, scores, strict=True)
        if found.value is not None
    ]
    if not pairs:
        why = next((found.error for found in scores if found.error), "the metric applies to none of the labels")
        raise MeasureError(f"none of {len(labels)} labelled answers could be judged: {why}")
    return Calibration(agreement(pairs), len(labels) - len(pairs))


def save(path: Path, fingerprint: str, calibration: Calibration) -> None:
    """Keeps a calibration under the fingerprint of what was calibrated: metric, version, options and judge."""
    entries = _entries(path) if path.is_file() else {}
    entries[fingerprint] = msgspec.to_builtins(calibration)
    files.write_text(path, json.dumps({"version": FORMAT, "calibrations": entries}, indent=2) + "\n")


def load(path: Path, fingerprint: str) -> Calibration | None:
    """What is known about this very measure; None if it was never calibrated.

    Raises:
        ConfigError: the file is not a calibration of this version.
    """
    entry = _entries(path).get(fingerprint) if path.is_file() else None
    if entry is None:
        return None
    try:
        return msgspec.convert(entry, Calibration)
    except msgspec.ValidationError as error:
        raise ConfigError(f"not a calibration: {error}", where=str(path)) from None


def _entries(path: Path) -> dict[str, Any]:
    data = read_document(path)
    if not isinstance(data, dict) or data.get("version") != FORMAT or not isinstance(data.get("calibrations"), dict):
        raise ConfigError("not a calibration file of this version", where=str(path), hint="run `gate calibrate` again")
    return dict(data["calibrations"])


def may_block(calibration: Calibration | None, min_kappa: float | None) -> tuple[bool, str]:
    """Whether a judge may fail the gate, and if not, why.

    The lower end of κ's interval must reach ``min_kappa``: few labels prove little.
    """
    if min_kappa is None:
        return True, ""
    if calibration is None:
        return False, "reports only: this judge was never calibrated; run `gate calibrate`"
    kappa = calibration.agreement.kappa
    if kappa is None:
        return False, "reports only: all labels or all judgements are alike, so agreement says nothing"
    if kappa.low < min_kappa:
        found = f"κ {kappa.value:.2f} (95 %: {kappa.low:.2f} to {kappa.high:.2f}, {calibration.agreement.n} labels)"
        return False, f"reports only: {found} does not reach {min_kappa:g}"
    return True, ""


def describe(calibration: Calibration) -> str:
    """The agreement as a few lines of text."""
    found = calibration.agreement
    kappa = found.kappa
    lines = [
        f"accuracy  {_shown(found.accuracy)}",
        f"kappa     {_shown(kappa)}" if kappa else "kappa     undefined: all labels or all judgements are alike",
        "",
        "               judge: pass  judge: fail",
        f"people: pass   {found.both_pass:>11,}  {found.only_people:>11,}",
        f"people: fail   {found.only_judge:>11,}  {found.both_fail:>11,}",
        "",
        f"{found.n:,} labels" + (f", {calibration.not_measured:,} not measured" if calibration.not_measured else ""),
    ]
    return "\n".join(lines)


def _shown(interval: Interval) -> str:
    return f"{interval.value:.3f}  95 %: {interval.low:.3f} to {interval.high:.3f}"
