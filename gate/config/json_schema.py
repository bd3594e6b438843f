"""The JSON Schema of gate.yaml, put together from the sections and from the options of every plugin."""

from __future__ import annotations

from typing import Any

from pydantic.alias_generators import to_camel

from gate.agents import AGENTS
from gate.agents.base import agent_class
from gate.baselines import STORES
from gate.config.schema import NO_STORE, File
from gate.config.specs import QUANTILE, Common
from gate.hosts import HOSTS
from gate.judges.options import JudgeOptions
from gate.metrics import METRICS, load_metric
from gate.registry import Registry
from gate.reports import REPORTS
from gate.suites import FORMATS

TEXT_ALONE = ("HttpRequest", "ToolPaths", "ArgsRule", "VersionSource", "BaseAddress")
"""Objects that a text alone may stand for."""


def json_schema(*, plugins: bool = False) -> dict[str, Any]:
    """The JSON Schema of gate.yaml, with every agent kind's, store's and metric's options.

    ``plugins``: those of installed packages as well, which are imported.
    """

    def names(registry: Registry[Any]) -> list[str]:
        return [*registry, *(registry.offered() if plugins else ())]

    schema = File.model_json_schema(by_alias=False)
    judge = JudgeOptions.model_json_schema(by_alias=False)
    for name, definition in (*judge.pop("$defs").items(), ("JudgeOptions", judge)):
        schema["$defs"][name] = both_spellings(definition)
    kinds = []
    for kind in names(AGENTS):
        options = agent_class(kind).Options.model_json_schema()
        schema.setdefault("$defs", {}).update(options.pop("$defs", {}))
        kinds.append(options)
    _add_stores(schema, names(STORES))
    _add_hosts(schema, names(HOSTS))
    schema["properties"]["reports"]["propertyNames"] = {"examples": names(REPORTS)}
    schema["properties"]["format"]["examples"] = names(FORMATS)
    several = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    schema["properties"]["suite"] = {
        "description": "Files or folders with cases.",
        "anyOf": [{"type": "string"}, several],
    }
    schema["properties"]["agent"] = {"description": "The agent under test: exactly one kind.", "oneOf": kinds}
    criteria = {name: criterion_schema(name, schema["$defs"]) for name in names(METRICS)}
    schema["properties"]["criteria"] = {
        "description": "Criteria by name, or the path of a file with criteria.",
        "anyOf": [{"type": "string"}, {"type": "object", "properties": criteria, "minProperties": 1}],
    }
    for name in TEXT_ALONE:
        schema["$defs"][name] = {"anyOf": [{"type": "string"}, schema["$defs"][name]]}
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Agent Gate"}
    return {**title, **schema, **_names_of_criteria(names(METRICS))}


def _add_stores(schema: dict[str, Any], names: list[str]) -> None:
    """The options of stores, which stand among the keys of ``baseline``; a store that is not listed has its own."""
    baseline = schema["$defs"]["BaselineSection"]
    baseline.pop("additionalProperties", None)
    for name in names:
        options = STORES.load(name).Options.model_json_schema()
        schema["$defs"].update(options.pop("$defs", {}))
        baseline["properties"].update(options.get("properties", {}))
    known = [*names, NO_STORE]
    baseline["properties"]["store"]["examples"] = known
    baseline["if"] = {"properties": {"store": {"enum": known}}}
    baseline["then"] = {"propertyNames": {"enum": list(baseline["properties"])}}


def _add_hosts(schema: dict[str, Any], names: list[str]) -> None:
    """A host's name, several, or names with options."""
    hosts = {}
    for name in names:
        hosts[name] = HOSTS.load(name).Options.model_json_schema()
        schema["$defs"].update(hosts[name].pop("$defs", {}))
        hosts[name] = {"anyOf": [hosts[name], {"type": "null"}]}
    one = {"type": "string", "examples": names}
    schema["properties"]["publish"] = {
        "description": "Hosts that the result is published on.",
        "anyOf": [one, {"type": "array", "items": one}, {"type": "object", "properties": hosts}],
    }


def _names_of_criteria(metrics: list[str]) -> dict[str, Any]:
    """A criterion is a registered metric (also in upper case), a dotted path, or names one with ``metric``.

    Under ``custom_metrics``, which a schema cannot look into, it may have any name.
    """
    named = {
        "type": ["object", "string", "null"],
        "properties": dict.fromkeys(metrics, True),
        "patternProperties": {r"[.:]|^[A-Z][A-Z0-9_]*$": True},
        "additionalProperties": {"type": "object", "required": ["metric"]},
    }
    free = {"required": ["custom_metrics"]}
    return {"if": {"not": free}, "then": {"properties": {"criteria": named}}}


def both_spellings(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object whose keys may be snake_case or camelCase."""
    properties = schema.get("properties", {})
    schema["properties"] = {spelt: value for key, value in properties.items() for spelt in (key, to_camel(key))}
    if "required" in schema:
        schema["required"] = [key for key in schema["required"] if to_camel(key) == key]
    return schema


def criterion_schema(name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of one criterion, a number or an object; shared definitions go to ``definitions``."""
    metric = load_metric(name)
    options = metric.options_type.model_json_schema(by_alias=False)
    definitions.update({key: both_spellings(inner) for key, inner in options.pop("$defs", {}).items()})
    common = Common.model_json_schema()["properties"]
    summary = (metric.__doc__ or "").strip().splitlines()[0]
    return {
        "description": summary,
        "anyOf": [
            {"type": ["number", "string"]},
            {
                **both_spellings({"type": "object", "properties": {**common, **options.get("properties", {})}}),
                "patternProperties": {QUANTILE.pattern: {"type": "number"}},
                "additionalProperties": False,
            },
        ],
    }
