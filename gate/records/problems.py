"""The reason why a line does not follow the format, in words, derived from msgspec's error.

Only rejected lines get here, so there is time to examine the line again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct, ValidationError, convert
from msgspec.json import decode, encode

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_SHOWN = 60
"""The most characters shown of a line's value."""
_LONGEST = 200


def describe(problem: str, kind: type[Struct], line: bytes, name: str) -> str:
    """Return one line: the field with its place on the line, the expected value, and the actual one.

    ``problem`` is msgspec's message about decoding ``line`` as ``kind``; ``name`` is how the line is called.
    """
    what, _, path = problem.rpartition(" - at `$")
    what, path = what or problem, path.removesuffix("`") if what else ""
    try:
        place, value, declared = _located(path, decode(line), kind)
    except (ValueError, LookupError, TypeError, RecursionError):  # a key appears twice, or a number is out of range
        place = repr(path[:_SHOWN])[1:-1].removeprefix(".") or name
        return f"{place}: {repr(what[:_LONGEST])[1:-1].lower()}"
    field = place or name
    unknown = re.fullmatch("Object contains unknown field `(.*)`", what, re.DOTALL)
    if unknown:
        return f"{field} has an unknown key: {unknown[1][:_SHOWN]!r}"
    missing = re.fullmatch("Object missing required field `(.*)`", what)
    if missing:
        return f"{field} lacks its {missing[1]}"
    if not place and not isinstance(value, dict):
        return "not a JSON object"
    return f"{field} is {_wrong(what, value, declared)}"


def _wrong(what: str, value: Any, declared: Any) -> str:
    if what == "Number out of range":
        return f"a number out of range: {_shown(value)}"
    expected = _expected(what, declared)
    if _fits(value, declared):  # the decoder checks each one, and the last one is shown
        return f"there twice, and once not {expected}"
    return f"not {expected}: {_shown(value)}"


def _expected(what: str, declared: Any) -> str:
    """Return the expected value in words, such as ``a whole number from 1``."""
    words: list[str] = []
    for kind in _members(declared):
        if _is(kind, Enum):
            words += [member.value for member in kind]
    if words:
        return "one of " + ", ".join(words)
    found = re.match(r"Expected `([^`]*)`(?: (>=|<=|>|<|of) (.*))?$", what.partition(", got ")[0])
    if not found:
        return f"what the format says, {what[:_SHOWN]!r}"
    expected = " or ".join([_KINDS.get(kind, kind) for kind in found[1].split(" | ")])
    if not found[2]:
        return expected
    bounds = {">=": "from", "<=": "up to", ">": "above", "<": "below", "of": "of"}
    return f"{expected} {bounds[found[2]]} {found[3].removesuffix('.0')}"


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    return encode(value).decode()[:_SHOWN]


def _located(path: str, value: Any, kind: Any) -> tuple[str, Any, Any]:
    """Return the place, such as ``turns[0].calls[1].name``, its value, and its declared type."""
    place = ""
    for key, index in re.findall(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]", path):
        step = key or (_culprit(value, _inner(kind, "")) if index == "..." else int(index))
        kind, value = _inner(kind, step), value[step]
        place += f"[{step}]" if isinstance(step, int) else "." + repr(step[:_SHOWN])[1:-1]
    return place.removeprefix("."), value, kind


def _culprit(found: dict[str, Any], kind: Any) -> str:
    """Return the first key of an object whose value is not of the kind, as msgspec does not name keys of mappings."""
    for key, value in found.items():
        if not _fits(value, kind):
            return key
    raise LookupError


def _fits(value: Any, kind: Any) -> bool:
    try:
        convert(value, kind)
    except ValidationError:
        return False
    return True


def _inner(kind: Any, step: str | int) -> Any:
    """Return the type declared one step further in: under a key, at an index, or for the values of a mapping."""
    for member in _members(kind):
        arguments = get_args(member)
        if _is(member, Struct):
            names = dict(zip(member.__struct_encode_fields__, member.__struct_fields__, strict=True))
            name = names.get(step) if isinstance(step, str) else member.__struct_fields__[step]
            if name is not None:
                return get_type_hints(member, include_extras=True)[name]
        elif arguments and isinstance(step, int):
            return arguments[0] if len(arguments) == 1 or arguments[1] is ... else arguments[step]
        elif arguments:
            return arguments[-1]
    return Any


def _members(kind: Any) -> Iterator[Any]:
    """Yield the alternatives of a declared type, without their bounds."""
    if get_origin(kind) is Annotated:
        yield from _members(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for member in get_args(kind):
            yield from _members(member)
    else:
        yield kind


def _is(kind: Any, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)
