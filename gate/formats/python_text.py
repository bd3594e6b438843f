"""Analyzes Python source without running it: resolves names, and evaluates constants."""

from __future__ import annotations

import ast
import os.path
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from msgspec import Struct, field

from gate.security.limits import shorten

MOST_STEPS = 200_000
"""Most expressions of a file that are evaluated; a name that occurs often is evaluated as often."""
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


Local = Mapping[str, ast.expr | None]
"""The names of a function, each with the only expression that is assigned to it; None if its value is computed."""


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
        """Yield the calls of these names in order. ``.name`` is any method."""
        yield from self._visit(self.module, {}, "", frozenset(wanted))

    def _visit(self, node: ast.AST, local: Local, within: str, wanted: frozenset[str]) -> Iterator[MadeCall]:
        self._step()
        held: Iterable[ast.AST] = ast.iter_child_nodes(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            held, within, local = node.body, node.name, {**local, **_local(node)}
        elif isinstance(node, ast.Call) and not wanted.isdisjoint(self._called_names(node.func)):
            yield self._made(node, local, within)
            return
        for child in held:
            yield from self._visit(child, local, within, wanted)

    def _called_names(self, node: ast.expr) -> tuple[str, ...]:
        name = dotted(node, self.names)
        if isinstance(node, ast.Attribute):
            return name, f".{node.attr}"
        return (name,)

    # --- values -----------------------------------------------------------------------------------

    def value(self, node: ast.expr, local: Local, depth: int = 0) -> Any:
        """Return the value of an expression. Raises `ComputedError`."""
        self._step()
        if depth > MOST_DEPTH:
            raise ComputedError("nested too deep")

        def inner(one: ast.expr) -> Any:
            return self.value(one, local, depth + 1)

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
            case ast.Name(id=name):
                return self._named(name, local, depth)
            case ast.Attribute(value=held, attr="parent"):
                return _path(inner(held)).parent
            case ast.Call():
                return self._called(node, local, depth)
        raise ComputedError(shown(node))

    def _named(self, name: str, local: Local, depth: int) -> Any:
        if name == "__file__":
            return self.file
        found = self.values.get(name)
        if name in local:
            found = local[name]
        else:
            local = {}
        if found is None:
            raise ComputedError(name)
        return self.value(found, local, depth + 1)

    def _called(self, node: ast.Call, local: Local, depth: int) -> Any:
        """Return the result of one of a few functions on texts and paths, or a call of a constructor."""
        name = dotted(node.func, self.names)
        if isinstance(node.func, ast.Attribute) and not node.args and node.func.attr in ("resolve", "absolute"):
            return self.value(node.func.value, local, depth + 1)
        if name not in _FUNCTIONS:
            if not name or not name.rpartition(".")[2][:1].isupper():  # lower case: a function, not a class
                raise ComputedError(shown(node))
            return self._made(node, local, "", depth)
        if node.keywords:
            raise ComputedError(shown(node))
        try:
            return _FUNCTIONS[name](*(self.value(one, local, depth + 1) for one in node.args))
        except TypeError as error:
            raise ComputedError(shown(node)) from error

    def _made(self, node: ast.Call, local: Local, within: str, depth: int = 0) -> MadeCall:
        given: dict[str, ast.expr] = {str(place): one for place, one in enumerate(node.args)}
        for keyword in node.keywords:
            given[keyword.arg or "**"] = keyword.value
        fields, computed = dict[str, Any](), []
        for name, one in given.items():
            try:
                fields[name] = self.value(one, local, depth + 1)
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


def _local(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Local:
    """Return the names of a function: its parameters and everything that it assigns, which hide the module's."""
    found: dict[str, ast.expr | None] = {}
    for inner in ast.walk(node):
        if isinstance(inner, ast.arg):
            found[inner.arg] = None
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store | ast.Del):
            found[inner.id] = None
    return {**found, **_assigned_once(node.body)}


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
    "pathlib.Path": lambda *parts: PurePath(*map(_path, parts)),
    "os.path.join": lambda *parts: str(PurePath(*map(_path, parts))),
    "os.path.dirname": lambda path: os.path.dirname(_text(path)),  # noqa: PTH120 - of a text, as Python does it
    "os.path.abspath": _text,
    "os.path.realpath": _text,
}
"""Functions that are evaluated. Functions of the program itself are never called."""
