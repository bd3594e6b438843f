"""Required and forbidden content of an answer, checked without a judge: words, patterns, JSON of a given shape."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from gate.errors import closest
from gate.formats.json_text import is_too_deep
from gate.metrics.base import Options, PassOrFail, TrialOutput
from gate.metrics.patterns import PatternTimeoutError, compile_pattern, forbids_in_part, is_found
from gate.metrics.reading import ShownText, spellings
from gate.model import Case, Score, text_of
from gate.model.strict import Words, one_or_more
from gate.security.limits import MAX_NESTING, shorten


def _one_for_each(value: Any, info: ValidationInfo) -> Any:
    texts = info.data.get("values", info.data.get("patterns", ()))
    if isinstance(value, tuple) and len(value) != len(texts):
        raise ValueError("write true or false")
    return value


IgnoreCase = Annotated[bool | tuple[bool, ...], AfterValidator(_one_for_each), WithJsonSchema({"type": "boolean"})]
"""For all texts, or one for each of them: a case's own holds for the texts that the case adds."""


class TextOptions(Options):
    """The texts to look for; for all cases, or in a case's options."""

    values: Words = ()
    """A string or a list."""
    ignore_case: IgnoreCase = False
    """True to ignore upper and lower case."""

    @field_validator("values")
    @classmethod
    def _not_empty(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        if "" in values:
            raise ValueError("an empty string is contained in everything")
        return values


class NeededTextOptions(TextOptions):
    """The texts to look for; for all cases, or in a case's options."""

    @field_validator("values")
    @classmethod
    def _no_space(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        if " " in values:
            raise ValueError("a space is contained in nearly everything")
        return values


class RegexOptions(Options):
    """The patterns to look for; for all cases, or in a case's options."""

    patterns: Words = ()
    """One regular expression or a list."""
    ignore_case: IgnoreCase = False
    """True to ignore upper and lower case."""

    @field_validator("patterns")
    @classmethod
    def _valid(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if compile_pattern(pattern).search("") is not None:
                raise ValueError(f"{pattern!r} matches the empty string, and so everything")
            if forbids_in_part(pattern):
                told = "does not search the whole answer for the text that it forbids"
                raise ValueError(f"{pattern!r} {told}: use not_contains or not_regex")
        return patterns


class SchemaOptions(Options):
    """The schema of the answer; for all cases, or in a case's options."""

    schema_: Mapping[str, Any] | None = Field(default=None, alias="schema")
    """A JSON Schema."""
    code_block: bool = True
    """False to refuse JSON in a Markdown code block."""

    @field_validator("schema_")
    @classmethod
    def _valid(cls, schema: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if schema is not None:
            _check_schema(schema)
        return schema


def _said(performance: TrialOutput) -> str:
    """Return everything that the agent answered over all turns, without thoughts."""
    return "\n".join(text_of(invocation.response, thoughts=False) for invocation in performance.invocations)


def _quoted(texts: Sequence[str]) -> str:
    shown = [repr(shorten(text, 80)) for text in texts[:5]]
    if len(texts) > 5:
        shown.append(f"and {len(texts) - 5} more")
    return ", ".join(shown)


ListedT = TypeVar("ListedT", TextOptions, NeededTextOptions, RegexOptions)


class _Listed(PassOrFail[ListedT]):
    """Base of checks with a list of texts or patterns; a case's own are added, with their own ``ignore_case``."""

    adds_up = True
    unstated: ClassVar[str]
    """The reason if there is nothing to look for."""
    failing: ClassVar[str]
    """The reason if texts fail, with a place for them."""
    passing: ClassVar[str]
    """The reason if none fails."""

    @classmethod
    def overlaid(cls, options: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
        both = super().overlaid(options, own)
        if "ignore_case" in own and cls.needed_option in options and cls.needed_option in own:
            both["ignore_case"] = []
            for held in (options, own):
                texts = one_or_more(held[cls.needed_option])
                if not isinstance(texts, list | tuple):
                    return both
                ignore_case = held.get("ignore_case", False)
                if isinstance(ignore_case, bool):
                    ignore_case = [ignore_case] * len(texts)
                both["ignore_case"] += ignore_case
        return both

    def score(self, case: Case, performance: TrialOutput) -> Score:
        texts = getattr(self.options, self.needed_option)
        if not texts:
            return Score(None, reason=self.unstated)
        ignore_case = self.options.ignore_case
        if isinstance(ignore_case, bool):
            ignore_case = (ignore_case,) * len(texts)
        fails = self.fails_in(performance)
        failed, problem = [], ""
        for text, ignored in zip(texts, ignore_case, strict=True):
            try:
                if fails(text, ignored):
                    failed.append(text)
            except PatternTimeoutError as error:
                problem = problem or shorten(str(error), 300)
        if failed:
            return Score(0.0, reason=self.failing.format(_quoted(failed)))
        if problem:
            return Score(None, error=problem)
        return Score(1.0, reason=self.passing)

    @abstractmethod
    def fails_in(self, performance: TrialOutput) -> Callable[[str, bool], bool]:
        """Return a function that takes a text or pattern, and True to ignore its case: True if the trial fails it."""


class Contains(_Listed[NeededTextOptions]):
    """1 if the trial's answers, all turns together, contain every text, else 0.

    Exact by default; ``ignore_case`` ignores case. Threshold 1 by default.
    """

    options_type = NeededTextOptions
    needed_option = "values"
    unstated = "the case does not say what the answer must contain"
    failing = "the answer does not contain {}"
    passing = "the answer contains what it must"

    def fails_in(self, performance: TrialOutput) -> Callable[[str, bool], bool]:
        said = _said(performance)
        folded = said.casefold()
        return lambda text, ignored: text not in said and not (ignored and text.casefold() in folded)


class NotContains(_Listed[TextOptions]):
    """1 if the trial shows the user none of the texts, else 0. Options and threshold are those of ``contains``.

    It reads as a person does: other spaces, hyphens and quotation marks, line breaks, invisible characters and Markdown
    marks do not hide a text. Texts before the final answer count, too.
    """

    version = 2  # 2: as its reader sees a text
    absence = True
    options_type = TextOptions
    needed_option = "values"
    unstated = "the case does not say what the answer must not contain"
    failing = "the answer contains {}"
    passing = "the answer contains nothing that it must not"

    def fails_in(self, performance: TrialOutput) -> Callable[[str, bool], bool]:
        shown = list(map(ShownText, performance.shown))
        return lambda text, ignored: any(one.says(text, ignore_case=ignored) for one in shown)


class Regex(_Listed[RegexOptions]):
    """1 if the trial's answers match every pattern somewhere, else 0.

    Patterns use Python's syntax; ``.`` does not match a newline. Nested repetitions such as ``(a+)+`` are refused;
    a match that takes a second of processor time is an error, and so is an answer of more than 100,000 characters.
    Threshold 1 by default.
    """

    options_type = RegexOptions
    needed_option = "patterns"
    unstated = "the case does not say what the answer must match"
    failing = "nothing in the answer matches {}"
    passing = "the answer matches every pattern"

    def fails_in(self, performance: TrialOutput) -> Callable[[str, bool], bool]:
        said = _said(performance)
        return lambda pattern, ignored: not is_found(pattern, said, ignore_case=ignored)


class NotRegex(_Listed[RegexOptions]):
    """1 if the trial shows the user nothing that a pattern matches, else 0. Options and threshold are those of
    ``regex``; texts are read as for ``not_contains``, line by line."""

    absence = True
    options_type = RegexOptions
    needed_option = "patterns"
    unstated = "the case does not say what the answer must not match"
    failing = "the answer matches {}"
    passing = "the answer matches no pattern"

    def fails_in(self, performance: TrialOutput) -> Callable[[str, bool], bool]:
        answers = [text_of(invocation.response, thoughts=False) for invocation in performance.invocations]
        texts = sorted(set().union(*map(spellings, dict.fromkeys([*answers, *performance.shown]))))
        return lambda pattern, ignored: any(is_found(pattern, text, ignore_case=ignored) for text in texts)


class JsonSchema(PassOrFail[SchemaOptions]):
    """1 if the last answer is JSON that matches the schema, also in a Markdown code block, else 0.

    Drafts 4 to 2020-12, by ``$schema``, else 2020-12. The metric fetches nothing: a ``$ref`` to another document
    is an error. A schema of an object must say ``type: object``.
    """

    options_type = SchemaOptions

    @property
    def missing(self) -> str:
        if self.options.schema_ is None:
            return "schema"
        return ""

    def score(self, case: Case, performance: TrialOutput) -> Score:
        if self.options.schema_ is None:
            return Score(None, reason="the case does not give a schema for the answer")
        if not performance.invocations:
            return Score(None, error="the trial has no answer")
        text = text_of(performance.invocations[-1].response, thoughts=False)
        try:
            value = _parsed(text, code_block=self.options.code_block)
        except (ValueError, RecursionError) as error:
            return Score(0.0, reason=f"the answer is not JSON: {shorten(str(error), 200)}")
        return _validated(value, self.options.schema_)


def _parsed(text: str, *, code_block: bool) -> Any:
    text = text.strip()
    if code_block and text.startswith("```") and text.endswith("```") and "\n" in text:
        text = text[text.index("\n") : -3]
    value = json.loads(text, parse_constant=_refuse_constant)
    if is_too_deep(value, MAX_NESTING):
        raise ValueError(f"nested deeper than {MAX_NESTING}")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _validated(value: Any, schema: Mapping[str, Any]) -> Score:
    from jsonschema.exceptions import best_match  # weight
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    validator = _bounded(_draft(schema))(dict(schema), registry=Registry())  # an empty registry fetches nothing
    try:
        problem = best_match(validator.iter_errors(value))
    except (Unresolvable, RecursionError, PatternTimeoutError) as error:
        return Score(None, error=f"the schema cannot be applied: {shorten(str(error), 200)}")
    if problem is None:
        return Score(1.0, reason="the answer is JSON of the expected shape")
    return Score(0.0, reason=f"{shorten(problem.json_path, 100)}: {shorten(problem.message, 200)}")


def _check_schema(schema: Mapping[str, Any]) -> None:
    """Raise ValueError for anything but a JSON Schema that says what it is meant to."""
    from jsonschema.exceptions import SchemaError  # weight

    kind = _draft(schema)
    try:
        kind.check_schema(dict(schema))
    except SchemaError as error:
        raise ValueError(f"not a JSON Schema: {error.json_path}: {shorten(error.message, 200)}") from None
    _refuse_misspelt(schema, {*kind.VALIDATORS, *_SAYS_ONLY})
    if schema.keys() & _OF_OBJECTS and not schema.keys() & _SAYS_WHICH:
        raise ValueError("any answer but an object would match, as JSON Schema has it: add `type: object`")
    if {"unevaluatedProperties", "patternProperties"} <= _words(schema):
        raise ValueError("unevaluatedProperties beside patternProperties is not supported: use additionalProperties")


def _draft(schema: Mapping[str, Any]) -> Any:
    """Return the validator class of the schema's draft."""
    from jsonschema.validators import Draft202012Validator, validator_for  # weight

    return validator_for(schema, default=Draft202012Validator)


@cache
def _bounded(draft: Any) -> Any:
    """Return a validator class that matches patterns within bounds."""
    from jsonschema.validators import extend  # weight

    return extend(draft, _BOUNDED)  # type: ignore[no-untyped-call]


_OF_OBJECTS = frozenset({"properties", "required"})
"""Keywords that check objects, and nothing in any other value."""
_SAYS_WHICH = frozenset({"type", "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "const", "enum"})
"""Keywords that can refuse a value that is no object."""
_SAYS_ONLY = frozenset(
    {"$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$comment", "$defs", "definitions", "title", "description"}
    | {"default", "examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "then"}
    | {"else", "contentSchema", "minContains", "maxContains", "$vocabulary"}
)
"""Keywords without a check of their own."""
_BY_NAME = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependentRequired", "dependencies"}
)
"""Keywords whose value holds schemas by names of the user's own."""
_OPAQUE = frozenset({"const", "enum", "default", "examples"})
"""Keywords whose value is data, not a schema."""


def _refuse_misspelt(schema: Any, known: Set[str]) -> None:
    """Raise ValueError for a key that looks like a misspelt keyword: JSON Schema ignores it, so it checks nothing."""
    if isinstance(schema, list | tuple):
        for one in schema:
            _refuse_misspelt(one, known)
    if not isinstance(schema, Mapping):
        return
    for key, below in schema.items():
        if key not in known:
            near = closest(str(key), known, cutoff=0.8)
            if near is None or near in _SAYS_ONLY:
                continue
            raise ValueError(f"{shorten(str(key), 80)!r} is no keyword of JSON Schema: did you mean {near!r}?")
        if key in _BY_NAME and isinstance(below, Mapping):
            _refuse_misspelt(list(below.values()), known)
        elif key not in _OPAQUE:
            _refuse_misspelt(below, known)


def _words(value: Any) -> set[str]:
    """Return every key in a schema."""
    if isinstance(value, Mapping):
        return {str(key) for key in value}.union(*map(_words, value.values()))
    if isinstance(value, list | tuple):
        return set().union(*map(_words, value))
    return set()


# The library matches patterns with `re`, which nothing can stop; only these three keywords do so.


def _pattern(validator: Any, pattern: str, instance: Any, _: Mapping[str, Any]) -> Iterator[Any]:
    if validator.is_type(instance, "string") and not is_found(pattern, instance):
        yield _invalid(f"{shorten(repr(instance), 100)} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _: Mapping[str, Any]
) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        for pattern, below in patterns.items():
            for key, value in instance.items():
                if is_found(pattern, key):
                    yield from validator.descend(value, below, path=key, schema_path=pattern)


def _additional_properties(validator: Any, rule: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    if not validator.is_type(instance, "object"):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extra = [key for key in instance if key not in known and not any(is_found(one, key) for one in patterns)]
    if validator.is_type(rule, "object"):
        for key in extra:
            yield from validator.descend(instance[key], rule, path=key)
    elif not rule and extra:
        yield _invalid(f"Additional properties are not allowed ({_quoted(extra)} unexpected)")


def _invalid(message: str) -> Any:
    from jsonschema.exceptions import ValidationError  # weight

    return ValidationError(message)


_BOUNDED: Mapping[str, Any] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
}
