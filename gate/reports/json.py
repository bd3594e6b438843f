"""The JSON report: everything in the result, versioned, with a published schema. Keys keep the model's order.

It has the same content for people and for machines: ``headline``, ``story``, ``changes``, ``warnings`` and ``reason``
are sentences; ``facts`` of a suite and ``findings`` of a criterion are kinds with numbers.

Version 2 added the verdict `not_compared`, `if_accepted` and `below`; `doubt`, `trade` and `missed_besides` were
removed, since `facts.cause` has the same. Within a version, keys may be added, but none is removed or changes its
meaning.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Literal, Union

import msgspec
from msgspec import UNSET, Struct, defstruct
from msgspec.structs import asdict

from gate.decision.engine.evidence_json import report, stage_name
from gate.model import Criterion, CriterionResult, Result, SuiteResult
from gate.model.course import Course
from gate.model.finding import CAUSES, CHANGES, KINDS, OF_CRITERION, WARNINGS, Finding, KindName, Nested
from gate.reports import reasons
from gate.reports.view import View
from gate.security.escape import unicode_only
from gate.security.limits import MAX_NESTING

VERSION = 2
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_WORDED: Mapping[str, Mapping[str, tuple[str, dict[str, Any]]]] = {
    "SuiteResult": {
        "cause": ("headline", _TEXT),
        "course": ("story", _TEXTS),
        "changes": ("changes", _TEXTS),
        "warnings": ("warnings", _TEXTS),
        "outcome": ("evidence", {"type": "object"}),
        "has_baseline": ("facts", {"$ref": "#/$defs/SuiteFacts"}),
    },
    "CriterionResult": {"not_compared": ("not_compared", _TEXT)},
}
"""Struct → its fields, each with the key that replaces it and the schema of the value."""


def render(result: Result) -> str:
    """Return the result as indented JSON in ASCII, valid against `schema`. It never has NaN or an infinity."""
    document = plain(result)
    head = {"version": VERSION, "gate_version": document.pop("version")}
    text = json.dumps({**head, **document}, allow_nan=False)
    return msgspec.json.format(text, indent=2) + "\n"  # takes a fifth of the time of `json`'s indentation


def plain(value: Any, depth: int = 0) -> Any:
    """Return the JSON value of anything in a report, without infinities; agents' arguments are bounded in depth."""
    if value is None:
        return None
    if type(value) is str:
        return unicode_only(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, int):  # or a boolean
        return value
    if depth > MAX_NESTING:
        return "[nested too deeply]"
    if isinstance(value, Finding):
        return {**_named(value), **{name: plain(held, depth + 1) for name, held in value.data.items()}}
    if isinstance(value, Struct):
        return {name: plain(held, depth + 1) for name, held in _fields(value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {unicode_only(str(key)): plain(held, depth + 1) for key, held in value.items()}
    return unicode_only(str(value))


def _named(finding: Finding) -> dict[str, str]:
    """Return the kind of a finding, and its verdict unless the kind implies it."""
    if len(KINDS[finding.kind].verdicts) == 1:
        return {"kind": finding.kind}
    return {"kind": finding.kind, "verdict": finding.verdict.value}


def _fields(value: Struct) -> dict[str, Any]:
    """Return the fields as written to the report: with sentences in place of findings."""
    worded = _WORDED.get(type(value).__name__)
    if worded is None:
        return asdict(value)
    fields = {}
    for name, held in asdict(value).items():
        key, _ = worded.get(name, (name, None))
        fields[key] = held
    return {**fields, **_worded(value)}


def _worded(value: Struct) -> dict[str, Any]:
    """Return the keys that replace facts, with their values."""
    match value:
        case SuiteResult():
            view = View(value)
            return {
                "headline": view.headline,
                "story": view.whole_story,
                "changes": view.all_changes,
                "warnings": view.all_warnings,
                "evidence": _evidence(value),
                "facts": _facts(value),
            }
        case CriterionResult():
            why = ""
            if value.not_compared:
                why = reasons.why_apart(value.not_compared)
            return {"not_compared": why, "reason": reasons.reason(value)}
        case _:
            return {}


def _facts(suite: SuiteResult) -> dict[str, Any]:
    """Return the statements of a suite's sentences, as kinds with numbers."""
    return {name: getattr(suite, name) for name in ("cause", "has_baseline", "course", "changes", "warnings")}


def _evidence(suite: SuiteResult) -> dict[str, Any]:
    """Return the engine's numbers under the keys of `gate decide`."""
    outcome = suite.outcome
    if outcome is None:
        return {}
    return {**report(outcome.evidence), "stage": stage_name(outcome.stage)}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of this version, generated from the model, so that the two cannot diverge."""
    from msgspec.json import schema_components  # weight: only `gate schema` needs it

    facts, findings = _described()
    defined = schema_components((Result, facts, findings), ref_template="#/$defs/{name}")[1]
    for name, keys in _WORDED.items():
        properties = defined[name]["properties"].items()
        defined[name]["properties"] = dict(keys.get(field, (field, described)) for field, described in properties)
    defined["CriterionResult"]["properties"]["reason"] = _TEXT
    defined["CriterionResult"]["properties"]["findings"] = defined["Findings"]["properties"]["findings"]
    names = dict(
        zip(Criterion.__struct_encode_fields__, Criterion.__struct_fields__, strict=True)
    )  # not the keys of a record
    criterion = defined["Criterion"]["properties"]
    defined["Criterion"]["properties"] = {names[key]: described for key, described in criterion.items()}
    for part in defined.values():
        if "properties" in part:
            part["required"] = list(part["properties"])  # defaults are written too
            part["properties"] = {name: _without_default(held) for name, held in part["properties"].items()}
    made = defined.pop("Result")
    head = {"version": {"const": VERSION}, "gate_version": made["properties"].pop("version")}
    made["properties"] = {**head, **made["properties"]}
    made["required"] = list(made["properties"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **made,
        "title": "Agent Gate result",
        "$defs": {name: defined[name] for name in _reached(made, defined)},
    }


def _described() -> tuple[type[Struct], type[Struct]]:
    """Return the facts of a suite and the findings on a criterion as structs for the schema, one struct per kind."""
    types: dict[KindName, Any] = {}

    def one_of(kinds: Iterable[KindName], *, many: bool = False) -> Any:
        union: Any = Union[tuple([types[kind] for kind in kinds])]  # noqa: UP007 - made at run time
        if many:
            return tuple[union, ...]
        return union

    for name, kind in KINDS.items():
        fields: list[Any] = []
        if len(kind.verdicts) > 1:
            fields.append(("verdict", Literal[tuple([verdict.value for verdict in kind.verdicts])]))
        for key, field in kind.fields.items():
            type_ = field.type
            if isinstance(type_, Nested):
                type_ = one_of(type_.kinds, many=type_.many)
                if field.default is None:
                    type_ = type_ | None
            if field.default is UNSET:
                fields.append((key, type_))
            else:
                fields.append((key, type_, field.default))
        title = name.title().replace("_", "")
        types[name] = defstruct(title, fields, tag_field="kind", tag=name, namespace={"__doc__": kind.about or None})
    facts: list[Any] = [("cause", one_of(CAUSES)), ("has_baseline", bool), ("course", Course | None)]
    facts += [("changes", one_of(CHANGES, many=True)), ("warnings", one_of(WARNINGS, many=True))]
    findings = defstruct("Findings", [("findings", one_of(OF_CRITERION, many=True))])
    return defstruct("SuiteFacts", facts, namespace={"__doc__": _facts.__doc__}), findings


def _without_default(described: dict[str, Any]) -> dict[str, Any]:
    return {key: held for key, held in described.items() if key != "default"}


def _reached(made: Any, defined: Mapping[str, Any]) -> list[str]:
    """Return the definitions that are referred to, in their order."""
    found: set[str] = set()
    waiting = [made]
    while waiting:
        text = json.dumps(waiting.pop())
        for name, described in defined.items():
            if name not in found and f'"#/$defs/{name}"' in text:
                found.add(name)
                waiting.append(described)
    return [name for name in defined if name in found]
