"""Criteria as google-adk writes them in a ``test_config.json``: camelCase, and custom metrics in their own mapping."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.alias_generators import to_camel, to_snake

from gate.errors import ConfigError, closest, models_in, unknown_key

_BESIDE_CRITERIA = (
    ("custom_metrics", "customMetrics"),
    ("user_simulator_config", "userSimulatorConfig"),
    ("live_model_config", "liveModelConfig"),
)
"""Keys next to the criteria; all but the first are for ADK's own runs.

google-adk ignores any other key, such as `_comment`; only one that looks misspelt is refused.
"""


def criteria_of(content: Any, where: str) -> dict[str, Any]:
    """Return the criteria of a ``test_config.json``, or of a bare mapping of criteria.

    A criterion with a custom metric names the metric's function under ``metric``.

    Raises:
        ConfigError: a key in both spellings or misspelt, or a custom metric without a function.
    """
    if not isinstance(content, dict):
        raise ConfigError("expected a mapping of criteria", where=where)
    if "criteria" not in content:
        return content
    known = ["criteria"]
    for names in _BESIDE_CRITERIA:
        known.extend(names)
        if all(name in content for name in names):
            raise ConfigError(f"both {' and '.join(names)} are given", where=where, hint="keep one of them")
    for key in content:
        if key not in known and closest(str(key), known, cutoff=0.85):
            raise unknown_key(key, known, where)
    criteria = content["criteria"]
    if not isinstance(criteria, dict):
        raise ConfigError("criteria: expected a mapping", where=where)
    return _with_custom_metrics(criteria, content.get("custom_metrics") or content.get("customMetrics") or {}, where)


def _with_custom_metrics(criteria: Mapping[str, Any], custom: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return criteria in which each one listed in ``custom`` names its function under ``metric``."""
    result = dict(criteria)
    for name, entry in custom.items():
        if name not in result:
            continue
        code = None
        if isinstance(entry, Mapping):
            code = entry.get("code_config") or entry.get("codeConfig")
        path = code.get("name") if isinstance(code, Mapping) else None
        if not isinstance(path, str):
            hint = '{code_config: {name: "module.function"}}'
            raise ConfigError("custom metric without code_config.name", where=f"{where}: {name}", hint=hint)
        stated = result[name]
        result[name] = {"metric": path, **(stated if isinstance(stated, Mapping) else {"threshold": stated})}
    return result


def snake_keys(data: Any, model: type[BaseModel] | None, where: str) -> Any:
    """Return options of an ADK file with the camelCase keys of a model, and of models inside it, in snake_case.

    Keys that the model does not have stay as they are. Without a model, all keys of the first level are changed.

    Raises:
        ConfigError: a key occurs in both spellings.
    """
    if isinstance(data, list | tuple):
        return [snake_keys(item, model, where) for item in data]
    if not isinstance(data, Mapping):
        return data
    fields = model.model_fields if model is not None else {}
    result: dict[str, Any] = {}
    for key, value in data.items():
        name = str(key)
        snake = to_snake(name)
        if snake != name and to_camel(snake) == name and (model is None or snake in fields):
            if snake in data:
                raise ConfigError(f"both {snake} and {key} are given", where=where, hint="keep one of them")
            name = snake
        inner = models_in(fields[name].annotation) if name in fields else []
        result[name] = snake_keys(value, inner[0], where) if inner else value
    return result
