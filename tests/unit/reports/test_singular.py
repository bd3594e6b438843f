"""One is told in the singular: every sentence that is made of a fact, with ones wherever it has a number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice, product
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from msgspec import Struct
from msgspec.structs import replace

from gate.decision import Settings
from gate.model import CrashFacts, Criterion, CriterionResult, Direction, Scale, Verdict
from gate.model import facts as fact
from gate.model.findings import AnyFinding, Apart, Fact, Unconfirmed
from gate.pipeline.verdict import result_of
from gate.reports import explanation, load_report
from gate.reports.formatting import change, change_interval, margin
from gate.reports.reasons import parts, unconfirmed, why_apart

from .samples import PASSED, RESULTS, estimate

NOUNS = (
    "cases trials runs suites points epochs scores answers calls jobs lines criteria records labels commits times "
    "attempts requests tags differences"
)
PLURAL = re.compile(
    rf"(?<![\d.,–−/])\b1 (?:(?!of )[a-z]+ )?(?:{'|'.join(NOUNS.split())})\b"
    r"|\b1 of 1 (?:[a-z]+ )?\w+s? (?:are|were)\b"
)
MOST = 64
"""Values of one kind that are tried."""


def values(hint: Any) -> Iterator[Any]:
    """What a field of this type may hold, with ones for numbers."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        yield from chain.from_iterable(map(values, args))
    elif origin is tuple:
        of = args[:1] if args[-1] is Ellipsis else args
        found = product(*map(values, of))
        yield from ((one if args[-1] is not Ellipsis else (one[0],)) for one in found)
    elif origin is Literal:
        yield from args
    elif hint is NoneType:
        yield None
    elif hint is bool:
        yield from (False, True)
    elif hint in (int, float, str):
        yield {int: 1, float: 0.01, str: "name"}[hint]
    elif isinstance(hint, type) and issubclass(hint, Struct):
        yield from made(hint)
    elif isinstance(hint, type):  # an enumeration
        yield from hint


def made(kind: type[Struct]) -> Iterator[Any]:
    hints = get_type_hints(kind)
    fields = [list(islice(values(hints[name]), MOST)) for name in kind.__struct_fields__]
    longest = max(map(len, fields), default=1)
    yield from (kind(*(field[n % len(field)] for field in fields)) for n in range(longest))


def of(union: Any) -> list[Any]:
    return [one for kind in get_args(union) if kind is not str for one in made(kind)]


def sentences() -> Iterator[tuple[Fact, str]]:
    crashed = replace(PASSED, crashes=CrashFacts(("a",), 1, 1, 1, 1, "crash: x"), course=fact.Course(1, 1, 1, 1, 1, 1))
    for cause in of(fact.Cause):
        yield cause, explanation.headline(replace(crashed, cause=cause, doubts=(fact.LostDecide(1, 1),)))
    for doubt in of(fact.Doubt):
        yield doubt, explanation.doubt(replace(PASSED, doubts=(doubt,)))
    for found in of(fact.RuleChange):
        yield found, " ".join(explanation.changes(replace(PASSED, changes=(found,))))
    for warning in of(fact.Caution):
        yield warning, " ".join(explanation.warnings(replace(crashed, warnings=(warning,))))
    for scale in Scale:
        criterion = Criterion("a", "a", scale, Direction.LOWER, threshold=0.01)
        for one in of(AnyFinding):
            row = CriterionResult(criterion, one.verdict, (one,))
            yield one, "; ".join(part.text for part in parts(row))
    yield from ((why, why_apart(why)) for why in of(Apart))
    yield from ((why, unconfirmed(why)) for why in of(Unconfirmed))


def test_every_kind_of_fact_is_tried_and_one_is_told_in_the_singular() -> None:
    told = list(sentences())
    unions = (fact.Cause, fact.Problem, fact.Doubt, fact.RuleChange, fact.Caution, AnyFinding)
    kinds = {kind for union in unions[2:] + unions[:1] for kind in get_args(union)}
    assert kinds <= {type(one) for one, _ in told}
    wrong = [(type(one).__name__, said) for one, said in told if PLURAL.search(said)]
    assert not wrong, wrong


def test_the_story_of_one_of_each() -> None:
    course = fact.Course(*[1] * 9, alpha=0.01, suites=1, family=1, reruns=1, baseline_reruns=1, confirming=1)
    story = " ".join(explanation.story(replace(PASSED, course=course)))
    assert story
    assert not PLURAL.search(story), story


@pytest.mark.parametrize("form", ["markdown", "console", "html", "junit", "ctrf"])
@pytest.mark.parametrize("name", RESULTS)
def test_no_report_tells_one_in_the_plural(form: str, name: str) -> None:
    text = re.sub(r"</?(?:wbr|span)[^>]*>", "", load_report(form)(RESULTS[name]))
    assert not PLURAL.search(text), PLURAL.search(text)


def test_a_suite_of_one_case() -> None:
    row = replace(PASSED.criteria[0], candidate=estimate(0.5, 0.1, 0.9, 1, 1), change=estimate(-0.01, -0.01, -0.01, 1))
    one = replace(PASSED, verdict=Verdict.INCONCLUSIVE, cases=PASSED.cases[:1], criteria=(row,))
    for form in ("markdown", "console", "html", "junit"):
        text = re.sub(r"</?(?:wbr|span)[^>]*>", "", load_report(form)(result_of([one], Settings(), command="gate run")))
        assert not PLURAL.search(text), (form, PLURAL.search(text))


def test_one_point_is_no_points() -> None:
    assert change(-0.01, Scale.BINARY) == "−1 point"
    assert change(0.015, Scale.BINARY) == "+1.5 points"
    assert margin(0.01, Scale.BINARY) == "1 point"
    alone = replace(estimate(-0.01, 0, 0), level=0.0)
    assert change_interval(alone, Scale.BINARY) == "−1 point"
