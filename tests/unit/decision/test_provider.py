"""Which model answers, and which tools are offered, is said where it is another than at the baseline."""

from __future__ import annotations

from gate.decision.changes import MAX_NAME_CHARS, answered_by, tools_changed
from gate.model import Invocation, Replay, Trial, Usage
from gate.model.finding import Finding


def answers(model: str | None, system: str | None = None, n: int = 3) -> list[Trial]:
    return [Trial("a", k, invocations=(Invocation(usage=Usage(model=model, system=system)),)) for k in range(n)]


def test_another_model_is_named_with_the_one_before() -> None:
    assert answered_by(answers("m-2"), answers("m-1")) == [
        Finding.of("answered_by", what="model", now=("m-2",), before=("m-1",))
    ]


def test_the_same_or_an_unknown_model_is_no_change() -> None:
    assert answered_by(answers("m-1"), answers("m-1")) == []
    assert answered_by(answers("m-2"), answers(None)) == []
    assert answered_by(answers(None), answers("m-1")) == []


def test_a_system_that_the_baseline_saw_too_is_no_change() -> None:
    before = [*answers("m", "fp_1"), *answers("m", "fp_2")]
    assert answered_by([*answers("m", "fp_2"), *answers("m", "fp_3")], before) == []
    assert answered_by(answers("m", "fp_3"), before) == [
        Finding.of("answered_by", what="system", now=("fp_3",), before=("fp_1", "fp_2"))
    ]


def told(*tools: str, changed: tuple[str, ...] = ()) -> list[Trial]:
    return [Trial("a", 1, replay=Replay("", 0, 1, tools=tools, tools_changed=changed))]


def test_a_server_that_lists_other_tools_is_named_with_what_changed() -> None:
    words = 'orders: find: description: "a" → "b"'
    now = told("orders 2", "mail 1", changed=(words,))
    assert tools_changed(now, told("orders 1", "mail 1")) == [
        Finding.of("tools_changed", servers=("orders",), changes=(words,))
    ]
    assert tools_changed(told("orders 2"), told("orders 1")) == [Finding.of("tools_changed", servers=("orders",))]


def test_the_same_tools_or_unknown_ones_are_no_change() -> None:
    assert tools_changed(told("orders 1"), told("orders 1", "orders 2")) == []
    assert tools_changed(told("orders 1"), [Trial("a", 1)]) == []
    assert tools_changed(told("orders 1"), told("mail 2")) == []
    assert tools_changed([Trial("a", 1)], told("orders 1")) == []


def test_hostile_names_are_bounded() -> None:
    many = [trial for n in range(1_000) for trial in answers(f"{n}\n" * 1_000, n=1)]
    (found,) = answered_by(many, answers("m"))
    assert len(found["now"]) <= 5
    assert all(len(name) <= MAX_NAME_CHARS and "\n" not in name for name in found["now"])
