"""Analyzes Python source without running it: resolves names, and evaluates constants."""

from __future__ import annotations

import ast
import os.path
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import cleandoc
from itertools import product
from pathlib import PurePath
from textwrap import dedent
from typing import Any

from msgspec import Struct, field

from gate.formats.shapes import as_list
from gate.security.limits import shorten

MOST_STEPS = 200_000
"""Most expressions of a file that are evaluated; loops over constants evaluate some of them repeatedly."""
MOST_DEPTH = 50
MOST_TEXT = 1_000_000
"""Most characters of a concatenated text."""


class ComputedError(Exception):
    """A value that is known only when the program runs; the message is its expression."""


class MadeCall(Struct, frozen=True):
    """A constructor call with its constant arguments."""

    name: str
    """The called function, with imports resolved."""
    line: int
    fields: Mapping[str, Any]
    """By name; positional arguments by index: ``"0"``, ``"1"``."""
    computed: tuple[str, ...] = ()
    """Names of the arguments that are not constant."""
    within: str = ""
    """The function that contains the call; empty for the module."""


def parsed(text: str) -> ast.Module | None:
    """Return the syntax tree of a program without running it; None if the text is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def imports(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Return the full name of each imported name: ``Agent`` → ``agents.Agent``."""
    names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                if alias.asname:
                    names[alias.asname] = alias.name
                else:
                    names[first] = first
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted(node: ast.expr, names: Mapping[str, str]) -> str:
    """Return the name behind an expression, with imports resolved and without type arguments; empty for others."""
    parts: list[str] = []
    if isinstance(node, ast.Subscript):
        node = node.value
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([names.get(node.id, node.id), *reversed(parts)])


Bound = Mapping[str, Any]
"""The values of loop variables, parameters and local names; `_UNKNOWN` if they are computed."""
_UNKNOWN = object()


class Constants(Struct):
    """The constants of one file, and its calls with constant arguments."""

    module: ast.Module
    file: str
    """The value of ``__file__``."""
    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, ast.expr] = field(default_factory=dict)
    """The module's names that are assigned exactly once."""
    steps: int = 0

    def __post_init__(self) -> None:
        self.names = imports(ast.walk(self.module))
        self.values = _assigned_once(self.module.body)

    def calls(self, wanted: Sequence[str]) -> Iterator[MadeCall]:
        """Yield the calls of these names in order, once per round in loops over constants. ``.name`` is any method."""
        yield from self._visit(self.module, {}, "", frozenset(wanted))

    # --- walking ----------------------------------------------------------------------------------

    def _visit(self, node: ast.AST, bound: Bound, within: str, wanted: frozenset[str]) -> Iterator[MadeCall]:
        self._step()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for held in self._entries(node, bound):
                for statement in node.body:
                    yield from self._visit(statement, held, node.name, wanted)
            return
        if isinstance(node, ast.For | ast.AsyncFor):
            for held in self._loop(node.target, node.iter, bound):
                for statement in node.body:
                    yield from self._visit(statement, held, within, wanted)
            return
        if isinstance(node, ast.ListComp | ast.GeneratorExp) and len(node.generators) == 1:
            (part,) = node.generators
            rounds = [_without(part.target, bound)]
            if not part.ifs:
                rounds = self._loop(part.target, part.iter, bound)
            for held in rounds:
                yield from self._visit(node.elt, held, within, wanted)
            return
        if isinstance(node, ast.Call) and not wanted.isdisjoint(self._called_names(node.func)):
            yield self._made(node, bound, within)
            return
        for child in ast.iter_child_nodes(node):
            yield from self._visit(child, bound, within, wanted)

    def _called_names(self, node: ast.expr) -> tuple[str, ...]:
        name = dotted(node, self.names)
        if isinstance(node, ast.Attribute):
            return name, f".{node.attr}"
        return (name,)

    def _entries(self, node: ast.FunctionDef | ast.AsyncFunctionDef, bound: Bound) -> Iterator[Bound]:
        """Yield the values of a function's variables: once for each row of pytest's ``parametrize``."""
        arguments = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        plain = {**bound, **dict.fromkeys(arguments, _UNKNOWN)}
        rows = [self._rows(one, plain) for one in node.decorator_list]
        for chosen in product(*(one for one in rows if one is not None)):
            held = dict(plain)
            for row in chosen:
                held |= row
            for name, value in _assigned_once(node.body).items():
                held[name] = self._or_unknown(value, held)
            yield held

    def _rows(self, decorator: ast.expr, bound: Bound) -> list[Bound] | None:
        """Return the rows of one ``parametrize``; None for another decorator or computed rows."""
        if not isinstance(decorator, ast.Call) or dotted(decorator.func, self.names) != "pytest.mark.parametrize":
            return None
        try:
            given = self._made(decorator, bound, "").fields
            rows = given.get("argvalues", given.get("1"))
            names = given.get("argnames", given.get("0")) or ()
            if isinstance(names, str):
                names = [one.strip() for one in names.split(",")]
            names = list(names)
            if len(names) == 1:
                return [{names[0]: row} for row in rows or ()] or None
            return [dict(zip(names, row, strict=True)) for row in rows or ()] or None
        except (ComputedError, TypeError, ValueError):
            return None

    def _loop(self, target: ast.expr, iterated: ast.expr, bound: Bound) -> list[Bound]:
        """Return the values of the variables in each round; one round of unknown values if the rounds are computed."""
        value = self._or_unknown(iterated, bound)
        rounds = as_list(value)
        if isinstance(target, ast.Name) and rounds:
            return [{**bound, target.id: one} for one in rounds]
        names = []
        if isinstance(target, ast.Tuple):
            names = [one.id for one in target.elts if isinstance(one, ast.Name)]
        try:
            found: list[Bound] = [{**bound, **dict(zip(names, one, strict=True))} for one in rounds]
        except (TypeError, ValueError):
            found = []
        return found or [_without(target, bound)]

    # --- values -----------------------------------------------------------------------------------

    def _or_unknown(self, node: ast.expr, bound: Bound) -> Any:
        try:
            return self.value(node, bound)
        except ComputedError:
            return _UNKNOWN

    def value(self, node: ast.expr, bound: Bound, depth: int = 0) -> Any:
        """Return the value of an expression. Raises `ComputedError`."""
        self._step()
        if depth > MOST_DEPTH:
            raise ComputedError("nested too deep")

        def inner(one: ast.expr) -> Any:
            return self.value(one, bound, depth + 1)

        match node:
            case ast.Constant(value=value) if value is None or isinstance(value, str | int | float):
                return value
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return [inner(one) for one in parts]
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return {str(inner(key)): inner(value) for key, value in zip(keys, values, strict=True) if key}
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -_number(inner(operand))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _sum(inner(left), inner(right))
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return _path(inner(left)) / str(inner(right))
            case ast.JoinedStr(values=parts):
                return _bounded("".join(str(inner(one)) for one in parts))
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return _text(inner(value))
            case ast.Name(id=name):
                return self._named(name, bound, depth)
            case ast.Attribute(value=held, attr="parent"):
                return _path(inner(held)).parent
            case ast.Call():
                return self._called(node, bound, depth)
        raise ComputedError(shown(node))

    def _named(self, name: str, bound: Bound, depth: int) -> Any:
        if name in bound:
            if bound[name] is _UNKNOWN:
                raise ComputedError(name)
            return bound[name]
        if name == "__file__":
            return self.file
        if name in self.values:
            return self.value(self.values[name], {}, depth + 1)
        raise ComputedError(name)

    def _called(self, node: ast.Call, bound: Bound, depth: int) -> Any:
        """Return the result of one of a few functions on texts and paths, or a call of a constructor."""
        name = dotted(node.func, self.names)
        if isinstance(node.func, ast.Attribute) and not node.args and node.func.attr in ("resolve", "absolute"):
            return self.value(node.func.value, bound, depth + 1)
        if name not in _FUNCTIONS:
            if not name or not name.rpartition(".")[2][:1].isupper():  # lower case: a function, not a class
                raise ComputedError(shown(node))
            return self._made(node, bound, "", depth)
        if node.keywords:
            raise ComputedError(shown(node))
        try:
            return _FUNCTIONS[name](*(self.value(one, bound, depth + 1) for one in node.args))
        except (TypeError, AttributeError) as error:
            raise ComputedError(shown(node)) from error

    def _made(self, node: ast.Call, bound: Bound, within: str, depth: int = 0) -> MadeCall:
        given: dict[str, ast.expr] = {str(place): one for place, one in enumerate(node.args)}
        for keyword in node.keywords:
            given[keyword.arg or "**"] = keyword.value
        fields, computed = dict[str, Any](), []
        for name, one in given.items():
            try:
                fields[name] = self.value(one, bound, depth + 1)
            except ComputedError:
                computed.append(name)
        return MadeCall(dotted(node.func, self.names), node.lineno, fields, tuple(computed), within)

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise ComputedError("too much to look at")


def shown(node: ast.expr) -> str:
    """Return the source of an expression, in one line."""
    return shorten(" ".join(ast.unparse(node).split()), 150)


def _assigned_once(body: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    """Return the names that these statements assign exactly once, counting nested blocks."""
    found, times = dict[str, ast.expr](), dict[str, int]()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
                times[node.id] = times.get(node.id, 0) + 1
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        value = getattr(statement, "value", None)
        if len(targets) == 1 and isinstance(targets[0], ast.Name) and isinstance(value, ast.expr):
            found[targets[0].id] = value
    return {name: value for name, value in found.items() if times[name] == 1}


def _without(target: ast.expr, bound: Bound) -> Bound:
    names = [one.id for one in ast.walk(target) if isinstance(one, ast.Name)]
    return {**bound, **dict.fromkeys(names, _UNKNOWN)}


def _sum(left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        return _bounded(left + right)
    if isinstance(left, list) and isinstance(right, list) and len(left) + len(right) <= MOST_STEPS:
        return left + right
    raise ComputedError("a sum")


def _bounded(text: str) -> str:
    if len(text) > MOST_TEXT:
        raise ComputedError("a long text")
    return text


def _text(value: Any) -> str:
    if isinstance(value, str | int | float | PurePath):
        return str(value)
    raise ComputedError("a text")


def _number(value: Any) -> int | float:
    if isinstance(value, int | float):
        return value
    raise ComputedError("a number")


def _path(value: Any) -> PurePath:
    if isinstance(value, str | PurePath):
        return PurePath(value)
    raise ComputedError("a path")


_FUNCTIONS: Mapping[str, Any] = {
    "str": _text,
    "textwrap.dedent": dedent,
    "inspect.cleandoc": cleandoc,
    "pathlib.Path": lambda *parts: PurePath(*map(_path, parts)),
    "os.path.join": lambda *parts: str(PurePath(*map(_path, parts))),
    "os.path.dirname": lambda path: os.path.dirname(_text(path)),  # noqa: PTH120 - of a text, as Python does it
    "os.path.abspath": _text,
    "os.path.realpath": _text,
}
"""Functions that are evaluated. Functions of the program itself are never called."""
