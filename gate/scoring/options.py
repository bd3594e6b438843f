"""The `executor` section of the configuration."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator


class ExecutorOptions(BaseModel):
    """Where recorded trials are scored; `local`, one of the keys, or nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    processes: int | None = Field(default=None, ge=1, le=256)
    """Worker processes on this machine; 1 scores in the gate's own. Default: as many as pay."""
    ray: str | None = Field(default=None, pattern=r"^(auto|local|[^\s:/]+:\d{1,5})$")
    """A Ray cluster: `host:port`, `auto` for the one this machine belongs to, `local` for one that is started here."""

    @model_validator(mode="after")
    def _one(self) -> ExecutorOptions:
        if self.processes is not None and self.ray is not None:
            raise ValueError("either processes or ray, not both")
        return self

    @property
    def named(self) -> str:
        """The executor that is asked for by name; empty where the choice is left to the gate."""
        return "ray" if self.ray is not None else "processes" if self.processes is not None else ""


def _local(value: Any) -> Any:
    if isinstance(value, str):
        if value != "local":
            raise ValueError(f"{value!r} is neither 'local' nor {{processes: N}} nor {{ray: ADDRESS}}")
        return {}
    return value


_PROCESSES = {"processes": {"type": "integer", "minimum": 1, "maximum": 256}}
_RAY = {"ray": {"type": "string", "pattern": r"^(auto|local|[^\s:/]+:\d{1,5})$"}}
_SCHEMA = {
    "description": "Where recorded trials are scored.",
    "anyOf": [
        {"const": "local"},
        {"type": "object", "properties": _PROCESSES, "additionalProperties": False},
        {"type": "object", "properties": _RAY, "additionalProperties": False},
    ],
}
Executor = Annotated[ExecutorOptions, BeforeValidator(_local), WithJsonSchema(_SCHEMA)]
"""The section, or the word `local`."""
