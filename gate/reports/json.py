"""The JSON report: everything in the result, versioned, with a published schema. Keys keep the model's order.

Version 1: first. Keys may be added within a version; none is removed or changes its meaning.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from gate.decision.engine.evidence_json import report, stage_name
from gate.model import Result, SuiteResult
from gate.security.limits import MAX_NESTING

VERSION = 1


def render(result: Result) -> str:
    """The result as indented JSON in ASCII, valid against `schema`. Neither NaN nor an infinity is ever written."""
    plain = _plain(result)
    head = {"version": VERSION, "gate_version": plain.pop("version")}
    return json.dumps({**head, **plain}, indent=2, allow_nan=False) + "\n"


def _plain(value: Any, depth: int = 0) -> Any:  # noqa: PLR0911  (one line per kind of value)
    """JSON values for anything a result may hold; what agents put into arguments is bounded in depth."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth > MAX_NESTING:
        return "[nested too deeply]"
    if isinstance(value, SuiteResult):
        return _suite(value, depth)
    if isinstance(value, Struct):
        return {name: _plain(held, depth + 1) for name, held in asdict(value).items()}
    if isinstance(value, Mapping):
        return {_text(str(key)): _plain(held, depth + 1) for key, held in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth + 1) for item in value]
    return _text(str(value))


def _suite(suite: SuiteResult, depth: int) -> dict[str, Any]:
    """The engine's answer stands in it as the numbers alone, under the keys of `gate decide`."""
    outcome = suite.outcome
    evidence = {} if outcome is None else {**report(outcome.evidence), "stage": stage_name(outcome.stage)}
    found = {**asdict(suite), "outcome": evidence}
    return {"evidence" if name == "outcome" else name: _plain(held, depth + 1) for name, held in found.items()}


def _text(text: str) -> str:
    """Lone surrogates are no Unicode text, and readers of other languages refuse them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def schema() -> dict[str, Any]:
    """The JSON Schema of version 1, taken from the model itself, so that the two cannot drift apart."""
    from msgspec.json import schema as schema_of  # weight: only `gate schema` asks

    defined = schema_of(Result)["$defs"]
    for name in ("Outcome", "EvidenceSummary", "LookTest", "MetricTest", "CaseCounts", "MetricChange"):
        del defined[name]
    del defined["Stage"], defined["StageKind"]
    suite = defined["SuiteResult"]["properties"]
    defined["SuiteResult"]["properties"] = {
        "evidence" if name == "outcome" else name: {"type": "object"} if name == "outcome" else described
        for name, described in suite.items()
    }
    for part in defined.values():
        if "properties" in part:
            part["required"] = list(part["properties"])  # defaults are written out too
            for described in part["properties"].values():
                described.pop("default", None)
    made = defined.pop("Result")
    head = {"version": {"const": VERSION}, "gate_version": made["properties"].pop("version")}
    made["properties"] = {**head, **made["properties"]}
    made["required"] = list(made["properties"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **made,
        "title": "Agent Gate result",
        "$defs": defined,
    }
