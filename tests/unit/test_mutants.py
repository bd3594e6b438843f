"""Mutants of the package: what may be changed, how the choice is made, and how a copy holds all of them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import mutants
from benchmarks.mutants import BRANCH, COMPARISON, CONSTANT, KILLED, NOT_REACHED, RETURN, SURVIVED

REPOSITORY = Path(__file__).parents[2]
MODULE = '''"""Ages."""

from __future__ import annotations

LIMIT = 18


def is_adult(age: int, name: str = "nobody") -> bool:
    """True if they are of age."""
    assert age >= 0, "négatif"
    return age >= LIMIT


def shown(age: int) -> str:
    if age > 99 or (
        age < 0
    ):
        return "?"
    marks: list[int] = [one for one in (1, 2) if one < age]
    return f"{age + 1} years" + "é!" * len(marks)
'''


def changes(text: str) -> set[tuple[str, str, str]]:
    """Kind, original and mutant of all that may be changed in a function's body."""
    lines = "".join(f"    {line}\n" for line in text.splitlines())
    found = mutants.places(f"def f(a, b):\n{lines}")
    return {(place.kind, place.before, after) for place in found for after in place.after}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b", {(COMPARISON, "a < b", "a >= b")}),
        ("a is not b", {(COMPARISON, "a is not b", "a is b")}),
        ("a < b in a", {(COMPARISON, "a < b in a", "a >= b in a"), (COMPARISON, "a < b in a", "a < b not in a")}),
        ("a = 7", {(CONSTANT, "7", "8")}),
        ("a = 0.0, 1.5", {(CONSTANT, "0.0", "1.0"), (CONSTANT, "1.5", "3.0")}),
        ("a[True] = 'x'", {(CONSTANT, "True", "False"), (CONSTANT, "'x'", "'x~'")}),
        ("if a or b: pass", {(BRANCH, "a or b", "(a or b) and False")}),
        ("a = b if a else b", {(BRANCH, "a", "a and False")}),
        ("a = [b for b in a if b]", {(BRANCH, "b", "b and False")}),
        ("while a: pass", {(BRANCH, "a", "a and False")}),
        ("return a", {(RETURN, "a", "None")}),
        ("return not a", {(RETURN, "not a", "not not a")}),
        ("return None", {(RETURN, "None", "0")}),
    ],
)
def test_each_kind(text: str, expected: set[tuple[str, str, str]]) -> None:
    assert changes(text) == expected


@pytest.mark.parametrize(
    ("returns", "value", "after"),
    [
        ("list[str]", "a", {"None", "[]"}),
        ("bool", "a", {"not a"}),
        ("str | None", "None", {"''"}),
        ("X", "a", {"None"}),
    ],
)
def test_what_is_returned_depends_on_what_is_said(returns: str, value: str, after: set[str]) -> None:
    [place] = mutants.places(f"def f(a) -> {returns}:\n    return {value}\n")
    assert (place.kind, set(place.after)) == (RETURN, after)


@pytest.mark.parametrize(
    "text",
    [
        "A = 1 if B > 2 else 3",
        "class A:\n    b = 1 < 2",
        "@a(1)\ndef f(a=2, *, b: Literal['x'] = 3) -> Literal['y']:\n    'doc'",
        "def f():\n    a: Literal['x'] = b",
        "def f():\n    assert a == 1",
        "def f():\n    b(f'{a == 1:>10}')",
        "def f():\n    b(cast('int', a))",
        "def f():\n    if TYPE_CHECKING:\n        a = 1",
        "def f():\n    match a:\n        case 1 | 'x':\n            pass",
        "def f():\n    class A:\n        b = 1",
    ],
)
def test_what_decides_nothing_at_run_time_is_left_alone(text: str) -> None:
    ast.parse(text)
    assert mutants.places(text) == []


# --- the choice -----------------------------------------------------------------------------------


def test_the_choice_depends_on_the_seed_and_the_sources_alone() -> None:
    found = {"one": {"gate/one/a.py": MODULE}, "two": {"gate/two/a.py": MODULE}}
    chosen = mutants.choose(found, 8, 1)
    assert chosen == mutants.choose(dict(reversed(found.items())), 8, 1)
    assert chosen != mutants.choose(found, 8, 2)
    of_one = [one for one in chosen if one.package == "one"]
    changed = mutants.choose({**found, "two": {"gate/two/a.py": MODULE.replace("99", "98")}}, 8, 1)
    assert [one for one in changed if one.package == "one"] == of_one
    assert len({(one.file, one.start, one.end, one.kind) for one in chosen}) == 8


def test_packages_have_mutants_in_proportion_to_their_lines() -> None:
    assert mutants.shares({"a": 50, "b": 30, "c": 20}, 10) == {"a": 5, "b": 3, "c": 2}
    assert mutants.shares({"a": 1, "b": 1, "c": 1}, 4) == {"a": 2, "b": 1, "c": 1}


@pytest.mark.slow
def test_mutants_of_every_kind_are_chosen_from_the_product() -> None:
    found = mutants.sources(REPOSITORY)
    chosen = mutants.choose(found, 100, 1)
    assert len(chosen) == 100
    assert {one.kind for one in chosen} == set(mutants.KINDS)
    assert all(one.file in found[one.package] for one in chosen)


# --- the copy -------------------------------------------------------------------------------------


def all_of(text: str) -> list[mutants.Mutant]:
    every = [(place, after) for place in mutants.places(text) for after in place.after]
    return [
        mutants.Mutant(at, "gate", "gate/a.py", one.line, one.kind, one.before, after, one.start, one.end)
        for at, (one, after) in enumerate(every)
    ]


def loaded(text: str, chosen: Sequence[mutants.Mutant], active: int, switches: Path) -> Any:
    """The functions of the module in which all of these are, with one of them on."""
    for name, value in (("active", active), ("test", ""), ("reached", "")):
        (switches / name).write_text(str(value))
    names: dict[str, Any] = {}
    exec(mutants.rewritten(text, chosen, switches), names)
    return names


def test_a_module_holds_all_of_its_mutants_and_one_is_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = all_of(MODULE)
    different = 0
    for active in (mutants.NONE, *(one.number for one in chosen)):
        with monkeypatch.context() as patched:
            for name in ("__mutant__", "__reached__"):
                patched.setattr(sys, name, None, raising=False)
                patched.delattr(sys, name)
            names = loaded(MODULE, chosen, active, tmp_path)
            found = [names["is_adult"](18), names["is_adult"](17)], [names["shown"](age) for age in (1, 2, 3, 100)]
            plain = [True, False], ["2 years", "3 yearsé!", "4 yearsé!é!", "?"]
            assert (found == plain) or active != mutants.NONE
            different += found != plain
    assert different >= len(chosen) - 2  # no age is below 0 here


def test_lines_keep_their_numbers(tmp_path: Path) -> None:
    text = mutants.rewritten(MODULE, all_of(MODULE), tmp_path)
    assert [line.split("(")[0] for line in text.splitlines() if line.startswith("def")] == ["def is_adult", "def shown"]
    assert text.count("\n") == MODULE.count("\n")


def test_what_is_reached_is_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("__mutant__", "__reached__"):
        monkeypatch.setattr(sys, name, None, raising=False)
        monkeypatch.delattr(sys, name)
    chosen = all_of(MODULE)
    names = loaded(MODULE, chosen, mutants.RECORD, tmp_path)
    (tmp_path / "test").write_text("12  ")
    assert [names["is_adult"](age) for age in (20, 3)] == [True, False]
    of_it = {one.number for one in chosen if one.line == 11}
    assert set((tmp_path / "reached").read_text().splitlines()) == {f"{one} 12" for one in of_it}


def test_what_is_run_is_what_make_test_runs() -> None:
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    elsewhere = mutants.TESTED.removeprefix("not slow and ")
    assert f"ELSEWHERE := {elsewhere}\n" in text and '-m "not slow and $(ELSEWHERE)"' in text


# --- what is told ---------------------------------------------------------------------------------


def test_survivors_are_shown_and_the_share_of_the_killed() -> None:
    chosen = all_of(MODULE)[:3]
    results = [
        mutants.Result(one, outcome, 4) for one, outcome in zip(chosen, (KILLED, SURVIVED, NOT_REACHED), strict=True)
    ]
    assert "| **all** | 3 | 1 | 1 | 1 | 0.33 (0.06–0.79) |" in list(mutants.table(results))
    shown = list(mutants.survivors(results))[2:]
    assert len(shown) == 2
    assert shown[0].startswith(f"| gate/a.py:{chosen[1].line} | {chosen[1].kind} | `{chosen[1].before}` | ")


def test_two_states_of_the_tests_are_compared_mutant_by_mutant() -> None:
    one, two, three = all_of(MODULE)[:3]
    results = [mutants.Result(one, KILLED), mutants.Result(two, SURVIVED), mutants.Result(three, KILLED)]
    before = [{**vars(mutant), "outcome": KILLED} for mutant in (one, two)]
    assert list(mutants.different(results, before)) == [
        f"gate/a.py:{two.line} {two.kind}: killed before, survived now",
        f"gate/a.py:{three.line} {three.kind}: not tried before, killed now",
    ]
