"""Selects the cases of a suite to run, and counts what a suite consists of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any

from msgspec.structs import replace
from pydantic import BeforeValidator, Field, WithJsonSchema

from gate.errors import ConfigError, MeasureError, nearest
from gate.formats.shapes import in_list
from gate.model import Case, Complexity, Suite
from gate.model.strict import WORDS_SCHEMA, StrictModel, one_or_more
from gate.security.limits import shorten

Words = Annotated[list[str], BeforeValidator(one_or_more), WORDS_SCHEMA]
Plain = str | bool | int | float
_one_value_or_more = BeforeValidator(in_list)
_PLAIN_SCHEMA = {"type": ["string", "number", "boolean"]}
_PLAINS_SCHEMA = WithJsonSchema({"anyOf": [_PLAIN_SCHEMA, {"type": "array", "items": _PLAIN_SCHEMA, "minItems": 1}]})
Values = Annotated[list[Plain], Field(min_length=1), _one_value_or_more, _PLAINS_SCHEMA]

_COMPLEXITY = {"enum": [one.value for one in Complexity]}
_COMPLEXITY_SCHEMA = WithJsonSchema({"anyOf": [_COMPLEXITY, {"type": "array", "items": _COMPLEXITY}]})


class Selection(StrictModel):
    """The cases to run: those with any of the tags, any of the complexities, any of the ids, and for every key of
    ``metadata`` any of its values.

    An empty list selects all. Ids are exact or patterns with ``*``, ``?`` and ``[…]``. Keys of metadata may lead into
    mappings (``owner.team``); ``app_name`` and ``user_id`` are also those of an ADK case. Values are compared as text,
    so that ``3`` and ``"3"`` are one; of a list in the metadata, one that fits is enough.
    """

    tags: Words = []
    """Any of these tags."""
    complexity: Annotated[list[Complexity], BeforeValidator(one_or_more), _COMPLEXITY_SCHEMA] = []
    """Any of these complexities."""
    ids: Words = []
    """Any of these ids, or patterns with ``*``, ``?`` and ``[…]``."""
    metadata: dict[str, Values] = {}
    """Key → value or values; ``owner.team`` is a key in a mapping."""

    def takes(self, case: Case) -> bool:
        """True if a case is selected."""
        return (
            (not self.tags or not case.tags.isdisjoint(self.tags))
            and (not self.complexity or case.complexity in self.complexity)
            and (not self.ids or any(_matches(case.id, pattern) for pattern in self.ids))
            and all(not _texts(wanted).isdisjoint(stated(case, key)) for key, wanted in self.metadata.items())
        )

    @property
    def in_words(self) -> str:
        """The selection in words, as ``tags smoke, core; complexity simple``; empty if it selects every case."""
        parts = []
        if len(self.tags) == 1:
            parts.append(f"tag {self.tags[0]}")
        elif self.tags:
            parts.append(f"tags {', '.join(self.tags)}")
        if self.complexity:
            parts.append(f"complexity {', '.join(level.value for level in self.complexity)}")
        if len(self.ids) == 1:
            parts.append(f"case {self.ids[0]}")
        elif self.ids:
            parts.append(f"cases {', '.join(self.ids)}")
        for key, values in self.metadata.items():
            parts.append(f"{key} {', '.join(map(str, values))}")
        return shorten("; ".join(parts), 200)


def where(conditions: Iterable[str]) -> dict[str, Any]:
    """Return ``KEY=VALUE`` conditions of a command line as keys of a selection; repeated keys are alternatives.

    ``tag``, ``complexity`` and ``id`` are properties of the case, every other key is one of its metadata.

    Raises:
        ConfigError: a condition does not have that form.
    """
    own = {"tag": "tags", "tags": "tags", "complexity": "complexity", "id": "ids", "ids": "ids"}
    found: dict[str, Any] = {}
    for condition in conditions:
        key, equals, value = condition.partition("=")
        if not equals or not key.strip() or not value.strip():
            hint = "as in --where team=billing"
            raise ConfigError(f"expected KEY=VALUE, found {shorten(condition, 80)!r}", where="--where", hint=hint)
        name = key.strip()
        if name in own:
            found.setdefault(own[name], []).append(value.strip())
        else:
            found.setdefault("metadata", {}).setdefault(name, []).append(value.strip())
    return found


def stated(case: Case, key: str) -> frozenset[str]:
    """Return the texts of a case under a key of its metadata; empty if it has none."""
    value: Any = case.metadata
    if key in value:
        return _texts(value[key])
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return _texts(case.app.get(key))
        value = value[part]
    return _texts(value)


def _texts(value: Any) -> frozenset[str]:
    """Return plain values as text, with booleans in YAML's spelling; mappings are left out."""
    texts = set()
    for one in in_list(value):
        if isinstance(one, bool):
            texts.add(str(one).lower())
        elif isinstance(one, Plain):
            texts.add(str(one))
    return frozenset(texts)


def select(suite: Suite, selection: Selection) -> Suite:
    """Return the suite with only the selected cases.

    Raises `ConfigError` for a tag or id that no case has, and `MeasureError` if nothing is left.
    """
    return select_all([suite], selection)[0]


def select_all(
    suites: Sequence[Suite], selection: Selection, formerly: Mapping[str, Mapping[str, Case]] | None = None
) -> list[Suite]:
    """Return the suites with only their selected cases; suites without any are left out.

    ``formerly``: the cases at the base commit, by suite and id. A case that was selected there is selected here,
    regardless of its present tags and id.

    Raises `ConfigError` for a tag or id that no case of any suite has, and `MeasureError` if nothing is left.
    """
    formerly = formerly or {}
    cases: list[Case] = []
    for suite in suites:
        cases.extend(suite.cases)
    known = list(cases)
    for former in formerly.values():
        known.extend(former.values())
    _refuse_unknown(known, selection)
    left = []
    for suite in suites:
        selected = _selected(suite, selection, formerly.get(suite.id, {}))
        if selected.cases:
            left.append(selected)
    if not left:
        source = ", ".join(suite.source or suite.id for suite in suites)
        raise MeasureError("no case is selected", where=source, hint=_counts_by_kind(cases))
    return left


def _selected(suite: Suite, selection: Selection, formerly: Mapping[str, Case]) -> Suite:
    """Return the suite with its selected cases and their recorded trials."""
    cases = []
    ids = set()
    for case in suite.cases:
        if selection.takes(case) or (case.id in formerly and selection.takes(formerly[case.id])):
            cases.append(case)
            ids.add(case.id)
    recorded = [trial for trial in suite.recorded if trial.case_id in ids]
    return replace(suite, cases=tuple(cases), recorded=tuple(recorded))


def _matches(identifier: str, pattern: str) -> bool:
    return identifier == pattern or fnmatchcase(identifier, pattern)


def _refuse_unknown(cases: Sequence[Case], selection: Selection) -> None:
    tags: set[str] = set()
    for case in cases:
        tags.update(case.tags)
    for tag in selection.tags:
        if tag not in tags:
            hint = "no case has any"
            if tags:
                hint = nearest(tag, list(tags))
            raise ConfigError(f"no case has the tag {tag!r}", where="select.tags", hint=hint)
    for pattern in selection.ids:
        if not any(_matches(case.id, pattern) for case in cases):
            hint = ""
            if cases:
                hint = shorten(nearest(pattern, [case.id for case in cases]), 300)
            raise ConfigError(f"no case has the id {pattern!r}", where="select.ids", hint=hint)
    for key, wanted in selection.metadata.items():
        known: set[str] = set()
        keys: set[str] = set()
        for case in cases:
            known.update(stated(case, key))
            keys.update((*case.metadata, *case.app))
        if not known:
            hint = "no case has any metadata"
            if keys:
                hint = nearest(key, sorted(keys))
            raise ConfigError(f"no case has the key {key!r} in its metadata", where="select.metadata", hint=hint)
        for value in sorted(_texts(wanted) - known):
            what = f"no case has the {key} {shorten(value, 80)!r}"
            raise ConfigError(what, where="select.metadata", hint=shorten(nearest(value, sorted(known)), 300))


def _counts_by_kind(cases: Iterable[Case]) -> str:
    found = Counter(f"{case.complexity.value}: {', '.join(sorted(case.tags)) or 'no tags'}" for case in cases)
    if not found:
        return "there are no cases"
    return "there are " + "; ".join(f"{count} × {kind}" for kind, count in found.most_common(10))
