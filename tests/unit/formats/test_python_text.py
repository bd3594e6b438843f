"""Which values of a program can be told from its text, and that only the running program would tell the others."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import pytest

from gate.formats.python_text import ComputedError, Constants, dotted, parsed


def constants(text: str) -> Constants:
    module = parsed(text)
    assert module is not None
    return Constants(module, "/here/test.py")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'a' 'b' + 'c'", "abc"),
        ("f'{CITY}, {1}'", "Rome, 1"),
        ("[-1, (True, None), {'a': 1.5}]", [-1, [True, None], {"a": 1.5}]),
        ("textwrap.dedent('''\\\n  a\n  b''')", "a\nb"),
        ("os.path.join(os.path.dirname(__file__), 'x.json')", "/here/x.json"),
        ("Path(__file__).resolve().parent / 'x.json'", PurePath("/here/x.json")),
    ],
)
def test_constants(expression: str, value: Any) -> None:
    found = constants(f"import os, textwrap\nfrom pathlib import Path\nCITY = 'Rome'\nThing(x={expression})\n")
    (made,) = found.calls(["Thing"])
    assert (made.line, made.fields, made.computed) == (4, {"x": value}, ())


@pytest.mark.parametrize("expression", ["ask()", "TWICE", "MISSING", "'x' * 9", "[a for a in b]", "1 if x else 2"])
def test_what_is_computed_is_named(expression: str) -> None:
    (made,) = constants(f"TWICE = 1\nTWICE = 2\nThing(x={expression}, y=1)\n").calls(["Thing"])
    assert (made.fields, made.computed) == ({"y": 1}, ("x",))


def test_a_parameter_hides_the_name_of_the_module() -> None:
    (made,) = constants("x = 1\ndef f(x):\n    Thing(x=x)\n").calls(["Thing"])
    assert (made.computed, made.within) == (("x",), "f")


@pytest.mark.slow
def test_too_much_ends() -> None:
    loops = "".join(f"{' ' * n}for v{n} in [1, 2, 3, 4, 5, 6, 7, 8, 9]:\n" for n in range(9))
    with pytest.raises(ComputedError):
        list(constants(f"{loops}{' ' * 9}Thing()\n").calls(["Thing"]))


@pytest.mark.parametrize(
    ("expression", "name"), [("A.b", "m.A.b"), ("A[int]", "m.A"), ("x", "x"), ("f().b", ""), ("1", "")]
)
def test_names(expression: str, name: str) -> None:
    module = parsed(expression)
    assert module is not None
    assert dotted(module.body[0].value, {"A": "m.A"}) == name  # type: ignore[attr-defined]
