"""Which model answers is said where it is another than at the baseline."""

from __future__ import annotations

from gate.decision.provider import MAX_NAME_CHARS, answered_by
from gate.model import Invocation, Trial, Usage
from gate.model.facts import AnsweredBy


def answers(model: str | None, system: str | None = None, n: int = 3) -> list[Trial]:
    return [Trial("a", k, invocations=(Invocation(usage=Usage(model=model, system=system)),)) for k in range(n)]


def test_another_model_is_named_with_the_one_before() -> None:
    assert answered_by(answers("m-2"), answers("m-1")) == [AnsweredBy("model", ("m-2",), ("m-1",))]


def test_the_same_or_an_unknown_model_is_no_change() -> None:
    assert answered_by(answers("m-1"), answers("m-1")) == []
    assert answered_by(answers("m-2"), answers(None)) == []
    assert answered_by(answers(None), answers("m-1")) == []


def test_a_system_that_the_baseline_saw_too_is_no_change() -> None:
    before = [*answers("m", "fp_1"), *answers("m", "fp_2")]
    assert answered_by([*answers("m", "fp_2"), *answers("m", "fp_3")], before) == []
    assert answered_by(answers("m", "fp_3"), before) == [AnsweredBy("system", ("fp_3",), ("fp_1", "fp_2"))]


def test_hostile_names_are_bounded() -> None:
    many = [trial for n in range(1_000) for trial in answers(f"{n}\n" * 1_000, n=1)]
    (found,) = answered_by(many, answers("m"))
    assert len(found.now) <= 5
    assert all(len(name) <= MAX_NAME_CHARS and "\n" not in name for name in found.now)
