"""One shape for everything that is found: a misspelt kind or field fails at once, also where no test comes by."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from msgspec import ValidationError
from msgspec.json import decode, encode

import gate
from gate.model import Scale, Verdict
from gate.model.finding import KINDS, CaseTally, Field, Finding, KindName, Nested

SOURCES = Path(gate.__file__).parent
BROKE = CaseTally("a", 0, 7, 5, 5)
MOVED = Finding.of("provider_moved", since=1.0, commit=None, metric="cost", scale=Scale.USD, change=0.1, p=0.01, runs=9)


def made() -> Iterator[tuple[str, set[str], str]]:
    """Every construction in the product: its kind, the fields that it gives, and its place."""
    for path in SOURCES.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "Finding.of(" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_construction(node.func):
                kind = node.args[0]
                if isinstance(kind, ast.Constant):
                    yield kind.value, {str(one.arg) for one in node.keywords}, f"{path.name}:{node.lineno}"


def _is_construction(function: ast.Attribute) -> bool:
    return function.attr == "of" and isinstance(function.value, ast.Name) and function.value.id == "Finding"


def test_every_construction_gives_the_fields_of_its_kind() -> None:
    found = list(made())
    for kind, given, place in found:
        fields = KINDS[kind].fields  # type: ignore[index]
        needed = {name for name, field in fields.items() if field == Field(field.type)}
        assert needed <= given <= fields.keys(), place
    assert {kind for kind, _, _ in found} == KINDS.keys(), "kinds that nothing is of"


def test_the_table_has_every_kind_and_nests_only_what_it_has() -> None:
    assert KINDS.keys() == set(get_args(KindName))
    nested = [field.type for kind in KINDS.values() for field in kind.fields.values() if isinstance(field.type, Nested)]
    assert all(set(one.kinds) < KINDS.keys() for one in nested)


@pytest.mark.parametrize("data", [{}, {"trials": 1, "case": "a"}, {"trails": 1}])
def test_a_finding_has_the_fields_of_its_kind(data: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="nothing_passes has the fields trials"):
        Finding.of("nothing_passes", **data)


def test_other_data_leave_kind_and_verdict() -> None:
    broke = Finding.of("cases_broke", cases=(BROKE,))
    assert (broke.verdict, broke["of"], broke.but(of=9)["of"]) == (Verdict.REGRESSED, 0, 9)
    assert broke.but(of=0) == broke
    assert {broke, broke.but(of=9), Finding.of("cases_broke", cases=(BROKE,))} == {broke, broke.but(of=9)}


def test_a_note_is_read_as_it_was_written() -> None:
    written = decode(encode(MOVED.plain))
    assert written == {
        "kind": "provider_moved",
        **{"since": 1.0, "commit": None, "metric": "cost", "scale": "usd", "change": 0.1, "p": 0.01, "runs": 9},
        "baseline_is_older": False,
    }
    assert Finding.read(written) == MOVED


@pytest.mark.parametrize("plain", ["text", {"kind": "unheard_of"}, {"kind": "passes"}, {"kind": "provider_moved"}])
def test_what_is_no_note_is_refused(plain: object) -> None:
    with pytest.raises(ValidationError):
        Finding.read(plain)
