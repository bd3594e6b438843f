"""The smallest value that a schema of an OpenAPI description allows, with given parts laid over it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FORMATS = {"uri": "https://example.com/x", "date-time": "2026-01-01T00:00:00Z", "email": "a@example.com"}
SCALARS = {"integer": 1, "number": 1, "boolean": False, "string": "x", "array": []}


class Examples:
    """Builds values by the schemas of one description."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        self._schemas = description["components"]["schemas"]

    def make(self, name: str, /, **parts: Any) -> dict[str, Any]:
        """A value of the named schema: what it requires, and ``parts``, merged into nested mappings."""
        return merged(self._value({"$ref": f"#/components/schemas/{name}"}), parts)

    def _value(self, schema: Mapping[str, Any]) -> Any:
        if "$ref" in schema:
            return self._value(self._schemas[schema["$ref"].rpartition("/")[2]])
        if schema.get("nullable"):
            return None
        if "enum" in schema:
            return schema["enum"][0]
        for key in ("oneOf", "anyOf"):
            if key in schema:
                return self._value(schema[key][0])
        if "allOf" in schema:
            parts = [self._value(part) for part in schema["allOf"]]
            return merged(parts[0], *parts[1:]) if isinstance(parts[0], dict) else parts[0]
        if schema.get("type") == "object" or "properties" in schema:
            properties = schema.get("properties", {})
            return {key: self._value(properties[key]) for key in schema.get("required", ()) if key in properties}
        if schema.get("type") == "array":
            return [self._value(schema["items"])] if schema.get("minItems") else []
        return FORMATS.get(schema.get("format", ""), SCALARS[schema.get("type", "string")])


def merged(base: Any, *others: Mapping[str, Any]) -> Any:
    for other in others:
        base = {
            **base,
            **{
                key: merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
                for key, value in other.items()
            },
        }
    return base
