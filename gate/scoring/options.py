"""The `executor` section of the configuration."""

from __future__ import annotations

from pydantic import Field, model_validator

from gate.model.strict import StrictModel


class ExecutorOptions(StrictModel):
    """The executor of recorded trials: one of the keys, or nothing."""

    processes: int | None = Field(default=None, ge=1, le=256)
    """Worker processes on this machine; 1: the gate's own process. Default: as many as pay."""
    ray: str | None = Field(default=None, pattern=r"^(auto|local|[^\s:/]+:\d{1,5})$")
    """A Ray cluster: ``host:port``, ``auto`` for this machine's, ``local`` to start one."""

    @model_validator(mode="after")
    def _one(self) -> ExecutorOptions:
        if self.processes is not None and self.ray is not None:
            raise ValueError("either processes or ray, not both")
        return self

    @property
    def named(self) -> str:
        """Return the executor that is named; empty if the gate may choose."""
        if self.ray is not None:
            return "ray"
        return "processes" if self.processes is not None else ""
