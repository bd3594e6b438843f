"""The base of everything that is validated on reading: unknown keys are errors, never ignored."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A part of a file in which every key is known."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
