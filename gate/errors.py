"""The errors that end a run: each states the problem, the place and a remedy, and carries its exit code.

Anything that can happen to a single trial or score is a value (`TrialError`, `Score.error`), not an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

ModelT = TypeVar("ModelT", bound="BaseModel")


class ExitCode(IntEnum):
    """The exit code of the process; docs/explanation/verdict.md has the table."""

    PASS = 0
    FAILED = 1
    CONFIGURATION = 2
    NOT_MEASURED = 3
    BASELINE = 4
    PUBLISH = 5
    BASELINE_WRITE = 6
    UNTRUSTED = 7
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


EXIT_PRECEDENCE = (
    ExitCode.CONFIGURATION,
    ExitCode.UNTRUSTED,
    ExitCode.FAILED,
    ExitCode.NOT_MEASURED,
    ExitCode.BASELINE,
    ExitCode.BASELINE_WRITE,
    ExitCode.PUBLISH,
    ExitCode.PASS,
)
"""If several apply, the first of these is the exit code. Cancellation is not listed: it ends the process at once."""


_USERINFO = re.compile(r"(?<=://)[^\s/?#'\"<>]*@")
"""The part of an address before its host: a name and a password, or a token."""


def _without_password(text: str) -> str:
    return _USERINFO.sub("***@", text) if "@" in text else text


MOST_CHARS = 194
"""Maximum number of characters in an error: with ``gate: `` before it, the line has at most 200."""
_PATH = re.compile(
    r"""(?<![^\s'"`(,;])(?P<first>(?:\w+://)?/?[^\s/'"`(,;]+)(?P<middle>/[^\s'"`),;]*)(?=/[^\s/'"`),;])"""
)
"""A path of at least three parts, without its last part."""


def short_line(text: str) -> str:
    """Return the text shortened to fit on one line: first the middles of paths are cut, longest first, then the ends of
    digests, then the middle of the text."""
    if len(text) > MOST_LOOKED_AT:
        text = text[: MOST_LOOKED_AT // 2] + text[-MOST_LOOKED_AT // 2 :]
    while len(text) > MOST_CHARS:
        longest = max(_PATH.finditer(text), key=lambda path: len(path["middle"]), default=None)
        if longest is None or len(longest["middle"]) <= len(_LEFT_OUT):
            return _cut(_DIGEST.sub(r"\1…", text))
        text = text[: longest.start("middle")] + _LEFT_OUT + text[longest.end("middle") :]
    return text


def _cut(text: str) -> str:
    over = len(text) + 1 - MOST_CHARS
    return f"{text[:KEPT_FIRST]}…{text[KEPT_FIRST + over :]}" if over > 1 else text


MOST_FOREIGN_CHARS = 125
"""Maximum number of characters of somebody else's error in a line of ours."""
LEAST_FOREIGN_CHARS = 40
"""Minimum number of characters of its text, if place and advice follow."""
_END = re.compile(r"(?: \([^()]*\))+\Z")
"""The place and the advice at the end of an error: ``(bot.py:2) (set OPENAI_API_KEY)``."""


def brief(error: str, most: int = MOST_FOREIGN_CHARS) -> str:
    """Return somebody else's error shortened for a line of ours: the place and the advice at its end stay whole."""
    if len(error) <= most:
        return error
    end = _END.search(error[-most:])
    kept = end[0] if end else ""
    room = max(LEAST_FOREIGN_CHARS, most - len(kept))
    text = error[: len(error) - len(kept)]
    return f"{text[: room - 1].rstrip()}…{kept}" if len(text) > room else error


KEPT_FIRST = 80
"""Characters before the cut: they name the place and the problem. The end has the advice."""
MOST_LOOKED_AT = 5_000
"""Characters of an error that are processed: text from outside may make it long."""
_LEFT_OUT = "/…"
_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{12,}\b")


class GateError(Exception):
    """An error that leaves the run without a verdict. Shown as one line; `--debug` adds the traceback."""

    exit_code = ExitCode.NOT_MEASURED

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(_without_password(what))
        self.what = _without_password(what)
        self.where = _without_password(where)
        self.hint = _without_password(hint)

    def __str__(self) -> str:
        return short_line(self.whole)

    @property
    def whole(self) -> str:
        """The line in full, whatever its length."""
        line = f"{self.where}: {self.what}" if self.where else self.what
        return f"{line} ({self.hint})" if self.hint else line


class ConfigError(GateError):
    """The configuration, the criteria or the suite cannot be read as written."""

    exit_code = ExitCode.CONFIGURATION


class MeasureError(GateError):
    """Nothing could be measured: no cases, the agent is down, the budget is spent, or the disk is full."""

    exit_code = ExitCode.NOT_MEASURED


class BaselineError(GateError):
    """The baseline is damaged, belongs to another suite or commit, or is missing although it is required."""

    exit_code = ExitCode.BASELINE


class BaselineWriteError(GateError):
    """The baseline could not be written."""

    exit_code = ExitCode.BASELINE_WRITE


class PublishError(GateError):
    """The verdict is final, but it could not be published."""

    exit_code = ExitCode.PUBLISH


class UntrustedError(GateError):
    """An artifact from outside the repository was refused."""

    exit_code = ExitCode.UNTRUSTED


class Cancelled(BaseException):
    """The work was stopped by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


SAME_MEANING = {
    "input": "inputs query question prompt message user user_input",
    "response": "expected expected_output expected_response answer output reference ground_truth reply",
    "tools": "tool_calls toolCalls expected_tools expected_tool_calls calls trajectory",
    "args": "arguments params parameters kwargs tool_input tool_args inputs",
    "cases": "tests test_cases examples",
    "id": "name title case",
    "criteria": "metrics evaluators assert checks thresholds",
    "suite": "dataset evals cases tests",
    "python": "function callable entrypoint module",
    "url": "endpoint address",
}
"""Our key → its names in other tools."""


def nearest(word: str, known: list[str]) -> str:
    """Return a hint that names the most similar known word, or lists the known words if none is similar."""
    for own, others in SAME_MEANING.items():
        if own in known and word in others.split():
            return f"did you mean {own!r}?"
    begun = [own for own in known if len(own) >= LEAST_BEGINNING and word.startswith(own)]
    close = max(begun, key=len) if begun else closest(word, known, cutoff=0.5)
    return f"did you mean {close!r}?" if close else f"known: {some_of(sorted(set(known)))}"


LEAST_BEGINNING = 3
"""Characters of a known word that may stand for a longer one: ``env`` for ``enviroment``."""
MOST_LISTED_CHARS = 90
FEW_LISTED_CHARS = 60
"""Maximum number of characters in a list that shares its line with other text."""
MOST_SHOWN_CHARS = 30
"""Maximum number of characters in a user's text that an error quotes."""


def some_of(names: list[str], most: int = MOST_LISTED_CHARS) -> str:
    """Return the first names and the number of further ones, on one line."""
    length = 0
    for place, name in enumerate(names):
        length += len(name) + len(", ")
        if place and length > most:
            return f"{', '.join(names[:place])} and {len(names) - place} more"
    return ", ".join(names)


def closest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the most similar known word, if its similarity is at least ``cutoff`` (0–1)."""
    from difflib import get_close_matches  # weight: needed only for an error

    return next(iter(get_close_matches(word, sorted(known), n=1, cutoff=cutoff)), None)


def unknown_key(key: str, known: list[str], where: str, *, noun: str = "key") -> ConfigError:
    """Return the error for an unknown key, which names the nearest known one."""
    return ConfigError(f"unknown {noun} {key!r}", where=where, hint=nearest(key, known))


class Problem(NamedTuple):
    """The first problem that a validation found, in terms of the user's keys."""

    path: tuple[str | int, ...]
    """The keys that lead to the problem, without pydantic's names for the branches of a union."""
    kind: Literal["unknown", "missing", "invalid"]
    message: str
    known: tuple[str, ...] = ()
    """The known keys at the level of the last key of the path."""
    example: str = ""
    """The missing key as a user may write it; empty if its model gives no example."""

    @property
    def name(self) -> str:
        return ".".join(str(part) for part in self.path)

    def as_error(self, where: str, *, noun: str = "key") -> ConfigError:
        """Return the problem as an error of one line; ``where`` is the place of the validated data."""
        if self.kind == "unknown":
            inside = ".".join(str(part) for part in self.path[:-1])
            return unknown_key(
                str(self.path[-1]), list(self.known), f"{where}: {inside}" if inside else where, noun=noun
            )
        if self.kind == "missing":
            example = f"{{{self.example}}}" if noun == "option" else self.example  # a criterion may be a bare number
            hint = f"as in {example}" if self.example else ""
            return ConfigError(f"missing {noun} {self.name!r}", where=where, hint=hint)
        return ConfigError(f"{self.name}: {self.message}" if self.path else self.message, where=where)


def first_problem(error: ValidationError, model: type[BaseModel]) -> Problem:
    """Return the first problem that ``model`` found. Only this function reads pydantic's errors.

    If a required key is missing because it is misspelt, the problem is the unknown key.
    """
    first, *others = error.errors(include_url=False, include_context=False)
    if first["type"] == "extra_forbidden":
        return _unknown(first, model)
    path = _without_branches(first["loc"])
    if first["type"] != "missing":
        return Problem(path, "invalid", _message(first, model, path))
    for other in others:
        if other["type"] == "extra_forbidden" and other["loc"][:-1] == first["loc"][:-1]:
            found = _unknown(other, model)
            if nearest(str(found.path[-1]), list(found.known)) == f"did you mean {first['loc'][-1]!r}?":
                return found
    return Problem(path, "missing", "is missing", example=_example(model, path))


def _unknown(found: ErrorDetails, model: type[BaseModel]) -> Problem:
    """Return the problem of an unknown key, which may look like the name of a branch."""
    *above, key = found["loc"]
    path = _without_branches(above)
    return Problem((*path, key), "unknown", "", tuple(_known_keys(model, path)))


WANTED = {
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}
"""Pydantic's name of a problem → the expected value, in words."""


SHOULD_BE = "Input should be "
"""The start of pydantic's message about a value that is not among the allowed ones."""


def kind_of(value: Any) -> str:
    """Return the kind of a user's value, in words; true or false as they are."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, bool):
        return str(value).lower()
    names = {list: "a list", str: "text", type(None): "nothing"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


def _message(found: ErrorDetails, model: type[BaseModel], path: tuple[str | int, ...]) -> str:
    """Return the problem of a value in words, because pydantic would name our class instead of the section."""
    kind, given = found["type"], kind_of(found["input"])
    if kind == "string_type" and isinstance(found["input"], int | float):
        return f"expected text, found {given} (put it in quotes)"
    if kind in WANTED:
        return f"expected {WANTED[kind]}, found {given}"
    if kind == "model_type":
        known = some_of(_known_keys(model, path), FEW_LISTED_CHARS)
        return f"expected a mapping, found {given} (known keys: {known})"
    if kind in ("too_short", "string_too_short") and not found["input"]:
        return "is empty (write at least one)" if kind == "too_short" else "is empty"
    if found["msg"].startswith(SHOULD_BE):
        return f"expected {found['msg'].removeprefix(SHOULD_BE)}, found {shown(found['input'])}"
    return found["msg"].removeprefix("Value error, ")


def shown(value: Any) -> str:
    """Return a short value as written, or the kind of a long one."""
    if isinstance(value, bool):
        return kind_of(value)
    short = isinstance(value, str) and len(value) <= MOST_SHOWN_CHARS
    return repr(value) if short or isinstance(value, int | float) else kind_of(value)


def validated(
    model: type[ModelT], data: Mapping[str, Any], where: str, *, noun: str = "key", also: tuple[str, ...] = ()
) -> ModelT:
    """Validate the data with ``model``. Hints also suggest the keys in ``also``, which another model reads.

    Raises:
        ConfigError: the data is invalid; states the first problem and the nearest known key.
    """
    from pydantic import ValidationError  # weight: `gate --help` does not need it

    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        problem = first_problem(error, model)
        known = problem.known + also if len(problem.path) == 1 else problem.known
        raise problem._replace(known=known).as_error(where, noun=noun) from None


_BRANCH = re.compile(r"[\[(]|^literal|^(int|float|str|bool|list|dict)$|^[A-Z]\w+(Section|Options|Request|Rule|Paths)$")
"""Pydantic's names for the branches of a union: types and our models."""


def _without_branches(loc: Iterable[str | int]) -> tuple[str | int, ...]:
    return tuple([part for part in loc if isinstance(part, int) or not _BRANCH.search(part)])


def _example(model: type[BaseModel], path: tuple[str | int, ...]) -> str:
    """Return the key at ``path`` below a model with the example of its field; empty if it has none."""
    field = _section(model, path[:-1]).model_fields.get(str(path[-1]))
    if field is None or not field.examples:
        return ""
    return f"{path[-1]}: {_in_one_line(field.examples[0])}"


def _in_one_line(value: Any) -> str:
    """Return a value as YAML in one line; its texts are plain words."""
    if isinstance(value, Mapping):
        return "{" + ", ".join([f"{key}: {_in_one_line(inner)}" for key, inner in value.items()]) + "}"
    return str(value)


def _known_keys(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """Return the keys of the section at ``path`` below a model: its own first, then those shared with others."""
    section = _section(model, path)
    own = get_annotations(section)
    return sorted(section.model_fields, key=lambda name: name not in own)


def _section(model: type[BaseModel], path: tuple[str | int, ...]) -> type[BaseModel]:
    """Return the model of the section at ``path`` below a model."""
    for part in path:
        for name, field in model.model_fields.items():
            if part in (name, field.alias):
                model = next(iter(models_in(field.annotation)), model)
                break
    return model


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models in an annotation such as ``Mapping[str, Dimension] | None``."""
    if isinstance(annotation, type) and hasattr(annotation, "model_fields"):
        return [annotation]
    found: list[type[BaseModel]] = []
    for argument in getattr(annotation, "__args__", ()):
        found += models_in(argument)
    return found
