"""Which values of a program can be told from its text, and that only the running program would tell the others."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import pytest

from gate.formats.python_text import Constants, dotted, parsed


def constants(text: str) -> Constants:
    module = parsed(text)
    assert module is not None
    return Constants(module, "/here/test.py")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'a' 'b' + 'c'", "abc"),
        ("CITY + ', 1'", "Rome, 1"),
        ("[-1, (True, None), {'a': 1.5}]", [-1, [True, None], {"a": 1.5}]),
        ("os.path.join(os.path.dirname(__file__), 'x.json')", "/here/x.json"),
        ("Path(__file__).resolve().parent / 'x.json'", PurePath("/here/x.json")),
    ],
)
def test_constants(expression: str, value: Any) -> None:
    found = constants(f"import os\nfrom pathlib import Path\nCITY = 'Rome'\nThing(x={expression})\n")
    (made,) = found.calls(["Thing"])
    assert (made.line, made.fields, made.computed) == (4, {"x": value}, ())


@pytest.mark.parametrize(
    "expression", ["ask()", "TWICE", "MISSING", "'x' * 9", "[a for a in b]", "1 if x else 2", "f'{1}'"]
)
def test_what_is_computed_is_named(expression: str) -> None:
    (made,) = constants(f"TWICE = 1\nTWICE = 2\nThing(x={expression}, y=1)\n").calls(["Thing"])
    assert (made.fields, made.computed) == ({"y": 1}, ("x",))


@pytest.mark.parametrize(
    "body",
    [
        "def f(x):\n    Thing(x=x)",
        "def f():\n    for x in [1]:\n        Thing(x=x)",
        "def f():\n    x = 2\n    x = 3\n    Thing(x=x)",
        "def f():\n    def g(x):\n        Thing(x=x)",
    ],
)
def test_a_name_of_a_function_hides_that_of_the_module(body: str) -> None:
    (made,) = constants(f"x = 1\n{body}\n").calls(["Thing"])
    assert made.computed == ("x",)


def test_a_name_that_a_function_assigns_once_has_a_value() -> None:
    (made,) = constants("x = 1\ndef f():\n    y = x\n    Thing(x=y)\n").calls(["Thing"])
    assert (made.fields, made.within) == ({"x": 1}, "f")


@pytest.mark.slow
def test_too_much_ends() -> None:
    names = "".join(f"v{n + 1} = [v{n}, v{n}]\n" for n in range(30))
    (made,) = constants(f"v0 = 1\n{names}Thing(x=v30)").calls(["Thing"])
    assert made.computed == ("x",)


@pytest.mark.parametrize(
    ("expression", "name"), [("A.b", "m.A.b"), ("A[int]", "m.A"), ("x", "x"), ("f().b", ""), ("1", "")]
)
def test_names(expression: str, name: str) -> None:
    module = parsed(expression)
    assert module is not None
    assert dotted(module.body[0].value, {"A": "m.A"}) == name  # type: ignore[attr-defined]
