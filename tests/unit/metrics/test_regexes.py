"""Our own regular expressions take time in proportion to the text, whatever the text is.

Every pattern that a module of the package holds or writes as a literal is run over texts made of its own characters, by
the process whose time for one match is counted by the kernel: what grows with the square of these texts is ended. How
long that takes is asked of the machine at hand, so that a fast one finds what a slow one finds.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from time import process_time
from typing import Any

import pytest

import gate
from gate.metrics import patterns
from gate.system.child import LostError

LENGTH = 30_000
PAIRS = 60
FUNCTIONS = {"compile", "search", "match", "fullmatch", "sub", "subn", "findall", "finditer", "split"}
CALLED = re.compile(rf"\bre\.(?:{'|'.join(sorted(FUNCTIONS))})\b")

SEARCHING = re.compile(r"\b(\w+)\.(?:search|finditer|sub|subn|findall|split)\(")
SEARCHED = {name for path in Path(gate.__file__).parent.rglob("*.py") for name in SEARCHING.findall(path.read_text())}
"""Names of patterns that are looked for anywhere in a text; the others are matched at its start."""
Pattern = tuple[str, str, int, str]
"""Where it is, the pattern, its flags, and how it is used: ``search`` or ``whole``."""


def is_of_re(called: ast.Attribute) -> bool:
    return called.attr in FUNCTIONS and isinstance(called.value, ast.Name) and called.value.id == "re"


def literals() -> Iterator[Pattern]:
    """What is given to `re` as a literal."""
    for path in Path(gate.__file__).parent.rglob("*.py"):
        text = path.read_text()
        if not CALLED.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_of_re(node.func):
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    said = ast.unparse(node)
                    flags = re.VERBOSE if "VERBOSE" in said else 0
                    flags |= re.IGNORECASE if "IGNORECASE" in said or "re.I" in said else 0
                    flags |= re.DOTALL if "DOTALL" in said else 0
                    mode = "whole" if said.startswith(("re.match(", "re.fullmatch(")) else "search"
                    yield f"{path.name}:{node.lineno}", first.value, flags, mode


def held() -> Iterator[Pattern]:
    """What modules hold compiled, in tables too."""
    for module in pkgutil.walk_packages(gate.__path__, "gate."):
        if module.name.rpartition(".")[2] in ("__main__", "worker", "cluster", "child", "entrypoint", "guardian"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            values = (
                value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else (value,)
            )
            for found in values:
                if isinstance(found, re.Pattern) and isinstance(found.pattern, str):
                    mode = "search" if name in SEARCHED or found is not value else "whole"
                    yield f"{module.name}.{name}", found.pattern, found.flags & ~re.UNICODE, mode


def characters(parsed: Any) -> Iterator[str]:
    """Characters that parts of the pattern match, one of each class."""
    for operation, argument in parsed:
        if operation in (code.LITERAL, code.NOT_LITERAL):
            yield chr(argument)
        elif operation is code.ANY:
            yield "a"
        elif operation is code.IN:
            for kind, value in argument:
                if kind is code.LITERAL:
                    yield chr(value)
                elif kind is code.RANGE:
                    yield chr(value[0])
                elif kind is code.CATEGORY:
                    yield {"CATEGORY_SPACE": " ", "CATEGORY_DIGIT": "0"}.get(str(value), "a")
                else:
                    yield "a"
        else:
            for inner in argument if isinstance(argument, list | tuple) else [argument]:
                if isinstance(inner, parser.SubPattern):
                    yield from characters(inner)
                elif isinstance(inner, list | tuple):
                    for branch in inner:
                        if isinstance(branch, parser.SubPattern):
                            yield from characters(branch)


def texts(pattern: str, flags: int, pairs: int = PAIRS) -> Iterator[str]:
    """Long texts that keep the pattern busy: its characters, alone and in so many pairs, with and without an end."""
    found = list(dict.fromkeys(characters(parser.parse(pattern, flags))))
    known = [*found[:12], *(c for c in " a0\n" if c not in found)]
    start = "".join(found[:12])
    yield (start or "a") * (LENGTH // max(len(start), 1))
    for one in known:
        yield one * LENGTH + "\x00"
        yield start + one * LENGTH + "\x00"
    for one, other in islice(product(known, repeat=2), pairs):
        yield (one + other) * (LENGTH // 2) + "\x00"


@pytest.fixture(scope="module", autouse=True)
def matcher() -> Iterator[None]:
    """A matcher that is ended after an eighth of what the quickest of searches that look at every pair take here."""
    with pytest.MonkeyPatch.context() as changed:
        matcher = patterns._Matcher()
        changed.setattr(patterns, "LIMIT_SECONDS", 8 * min(quadratic(LENGTH // 8) for _ in range(5)))
        changed.setattr(patterns, "_MATCHER", matcher)
        yield
        matcher._end()


def quadratic(length: int) -> float:
    """Seconds of processor time that such a search takes over so many characters; over four times as many, 16 times."""
    start = process_time()
    re.search("a*b", "a" * length)
    return process_time() - start


def slow(pattern: str, flags: int, mode: str = "search", pairs: int = PAIRS) -> list[str]:
    """The texts over which a match was ended."""
    found = []
    for text in texts(pattern, flags, pairs):
        try:
            patterns._MATCHER.ask(mode, pattern, flags, text)
        except LostError:
            found.append(f"{text[:40]!r}…")
            break
    return found


@pytest.mark.slow
def test_no_pattern_of_ours_is_slow() -> None:
    known = {(pattern, flags): (mode, where) for where, pattern, flags, mode in (*literals(), *held())}
    assert len(known) > 100
    found = {where: slow(pattern, flags, mode, PAIRS) for (pattern, flags), (mode, where) in known.items()}
    assert {where: texts for where, texts in found.items() if texts} == {}


@pytest.mark.parametrize(
    "pattern",
    [*(pytest.param(one, marks=pytest.mark.slow) for one in (r"\s+$", r"a*b", r"<.*?>", r"^(a+)+$")), "(?:a|a)*b"],
)
def test_the_search_finds_slow_ones(pattern: str) -> None:
    assert slow(pattern, 0)
