"""The JSON Schema of gate.yaml, built from the sections and the options of every plugin, with the meaning of each
key."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from gate.agents import AGENTS
from gate.agents.base import agent_class
from gate.baselines import STORES
from gate.config.schema import NO_STORE, BaselineSection, File
from gate.config.specs import QUANTILE, Common
from gate.errors import models_in
from gate.hosts import HOSTS
from gate.metrics import METRICS, load_metric
from gate.reports import REPORTS
from gate.suites import FORMATS

TEXT_ALONE = ("HttpRequest", "ToolPaths", "ArgsRule", "VersionSource", "BaseAddress")
"""Models that can also be written as a string."""
TEXT = {"type": "string"}
SHARED_BY = 3
"""Number of definitions that must share a property before it is defined separately."""
LINE_LENGTH = 110


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of gate.yaml, with the options of every agent kind, store, host and metric, also of
    installed packages, which are imported."""
    agents = [agent_class(name).Options for name in AGENTS.names()]
    stores = [STORES.load(name).Options for name in STORES.names()]
    hosts = {name: HOSTS.load(name).Options for name in HOSTS.names()}
    metrics = {name: load_metric(name) for name in METRICS.names()}
    options = list(dict.fromkeys(metric.options_type for metric in metrics.values()))
    definitions = _definitions([File, *agents, *stores, *hosts.values(), *options, Common])

    def ref(model: type[BaseModel]) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{model.__name__}"}

    schema = definitions.pop("File")
    keys = schema["properties"]
    keys["suite"] |= {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}
    del keys["suite"]["type"], keys["suite"]["items"]
    keys["format"]["examples"] = FORMATS.names()
    keys["agent"] = {"description": keys["agent"]["description"], "oneOf": [ref(model) for model in agents]}
    keys["reports"]["propertyNames"] = {"examples": REPORTS.names()}
    host = {"type": "string", "examples": list(hosts)}
    by_name = {}
    for name, options_of_host in hosts.items():
        by_name[name] = {"description": f"Publish on {name}.", "anyOf": [ref(options_of_host), {"type": "null"}]}
    keys["publish"] = {
        "description": keys["publish"]["description"],
        "anyOf": [host, {"type": "array", "items": host}, {"type": "object", "properties": by_name}],
    }
    _add_stores(definitions, stores, [*STORES.names(), NO_STORE])
    common = definitions.pop("Common")["properties"]
    for model in options:
        definitions[model.__name__] = _criterion(definitions[model.__name__], common)
    definitions["Quantile"] = {"type": "number", "description": "The most that this quantile of all trials may reach."}
    keys["criteria"] = {
        "description": keys["criteria"]["description"],
        "anyOf": [TEXT, _criteria(metrics)],
    }
    for name in TEXT_ALONE:
        definitions[name] = {"anyOf": [TEXT, definitions[name]]}
    definitions["TraceOptions"] = {"anyOf": [{"type": "boolean"}, definitions["TraceOptions"]]}
    _share_properties(definitions)
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Agent Gate"}
    return {**about, **schema, "$defs": definitions}


def in_lines(value: Any, indent: int = 0) -> str:
    """Return JSON text with each value on a single line if it fits."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or indent + len(flat) <= LINE_LENGTH:
        return flat
    inner = " " * (indent + 2)
    lines = []
    if isinstance(value, list):
        for item in value:
            lines.append(inner + in_lines(item, indent + 2))
    else:
        for key, item in value.items():
            lines.append(f"{inner}{json.dumps(key, ensure_ascii=False)}: {in_lines(item, indent + 2)}")
    opening, closing = ("[", "]") if isinstance(value, list) else ("{", "}")
    return f"{opening}\n" + ",\n".join(lines) + f"\n{' ' * indent}{closing}"


def _add_stores(definitions: dict[str, Any], stores: Sequence[type[BaseModel]], known: list[str]) -> None:
    """Add the options of stores to the keys of ``baseline``; an unlisted store may have any others."""
    baseline = definitions[BaselineSection.__name__]
    baseline.pop("additionalProperties", None)
    for store in stores:
        baseline["properties"].update(definitions.pop(store.__name__).get("properties", {}))
    baseline["properties"]["store"]["examples"] = known
    baseline["if"] = {"properties": {"store": {"enum": known}}}
    baseline["then"] = {"propertyNames": {"enum": list(baseline["properties"])}}


def _criterion(options: dict[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a criterion with these options: a threshold, or an object."""
    known = {**options, "properties": {**common, **options.get("properties", {})}}
    known["patternProperties"] = {QUANTILE.pattern: {"$ref": "#/$defs/Quantile"}}
    known.pop("description", None)
    return {"anyOf": [{"type": ["number", "string", "null"]}, known]}


def _criteria(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a mapping of criteria.

    A name is a registered metric (upper case is allowed), a metric's dotted path, or any name with ``metric``.
    """
    properties = {}
    for name, metric in metrics.items():
        summary = (metric.__doc__ or "").strip().splitlines()[0]
        properties[name] = {"description": summary, "$ref": f"#/$defs/{metric.options_type.__name__}"}
    return {
        "type": "object",
        "minProperties": 1,
        "properties": properties,
        "patternProperties": {r"[.:]|^[A-Z][A-Z0-9_]*$": True},
        "additionalProperties": {"type": "object", "required": ["metric"]},
    }


# --- definitions ----------------------------------------------------------------------------------


def _definitions(models: Sequence[type[BaseModel]]) -> dict[str, Any]:
    """Return the schemas of the models and of all models that they mention, by name, described and shortened."""
    _, whole = models_json_schema([(model, "validation") for model in models])
    mentioned = {model.__name__: model for root in models for model in _with_inner(root)}
    definitions = {}
    for name, definition in whole["$defs"].items():
        definitions[name] = _shortened(definition)
        if name not in mentioned:
            continue
        properties = definitions[name].get("properties", {})
        for field, text in docstrings(mentioned[name]).items():
            key = mentioned[name].model_fields[field].alias or field
            properties[key] = {"description": " ".join(text.split()).replace("``", "`"), **properties[key]}
    return definitions


def _share_properties(definitions: dict[str, Any]) -> None:
    """Define a property shared by several definitions once, and refer to it."""
    places: dict[str, list[tuple[dict[str, Any], str]]] = {}
    for definition in definitions.values():
        for branch in (definition, *definition.get("anyOf", [])):
            for name, value in branch.get("properties", {}).items():
                places.setdefault(json.dumps([name, value]), []).append((branch["properties"], name))
    for found in places.values():
        properties, name = found[0]
        if len(found) < SHARED_BY or "$ref" in properties[name]:
            continue
        shared = f"shared.{name}"
        number = 2
        while shared in definitions:
            shared = f"shared.{name}.{number}"
            number += 1
        definitions[shared] = properties[name]
        for properties, name in found:
            properties[name] = {"$ref": f"#/$defs/{shared}"}


def _shortened(schema: Any) -> Any:
    """Return a schema without titles and null defaults, with unions of plain types as a list of types."""
    if isinstance(schema, list):
        return [_shortened(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            result[key] = {name: _shortened(inner) for name, inner in value.items()}
        elif key in ("default", "enum", "const", "examples"):
            result[key] = value
        elif key != "title":
            result[key] = _shortened(value)
    if "default" in result and result["default"] is None:
        del result["default"]
    branches = result.get("anyOf", [])
    null = {"type": "null"}
    if len(branches) == 2 and null in branches:
        other = branches[1 - branches.index(null)]
        if isinstance(other.get("type"), str) and "enum" not in other:
            del result["anyOf"]
            result |= {**other, "type": [other["type"], "null"]}
    return result


def _with_inner(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a model and the models of its fields."""
    yield model
    for field in model.model_fields.values():
        for inner in models_in(field.annotation):
            yield from _with_inner(inner)


@cache
def docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstring of each field of a model and of its base models."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if not (issubclass(base, BaseModel) and base is not BaseModel):
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(tree, ast.ClassDef)
        for field, text in zip(tree.body, tree.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                found[field.target.id] = inspect.cleandoc(ast.literal_eval(text.value))
    return found
