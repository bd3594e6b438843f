"""The direction in which an option gets stricter: stated next to the option as ``Annotated`` metadata, and read only by
the base policy.

An option without such a statement is not ordered: any change of it may loosen the gate.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct
from pydantic import BaseModel


class Tightens(Struct, frozen=True):
    """The direction in which an option can only make the gate fail more often."""

    way: Literal["up", "down", "steps", "more", "fewer", "never", "free"]
    steps: tuple[Any, ...] = ()
    """Values from the loosest to the strictest."""
    unset: float | None = None
    """The value that None means; None: without a value nothing is demanded."""

    def allows(self, before: Any, now: Any) -> bool:
        """True if a change from one value to another takes effect at once, because it cannot loosen anything."""
        match self.way:
            case "up" | "down":
                old = self.unset if before is None else before
                new = self.unset if now is None else now
                if old is None or new is None:
                    return new is not None
                return bool(new >= old if self.way == "up" else new <= old)
            case "steps":
                if now not in self.steps:
                    return False
                if before not in self.steps:  # unset, and only its place of use knows what that means
                    return bool(now == self.steps[-1])
                return self.steps.index(now) > self.steps.index(before)
            case "more":
                return set(before) <= set(now)
            case "fewer":
                return set(now) <= set(before)
            case "free" | "never":
                return self.way == "free"

    def strictest(self, before: Any, now: Any) -> Any:
        """Return the value in force: the later one if it loosens nothing; for sets, what both demand together."""
        if self.allows(before, now):
            return now
        if self.way == "more":
            return type(before)([*before, *(item for item in now if item not in before)])
        if self.way == "fewer":
            return type(before)([item for item in now if item in before])
        return before


UP = Tightens("up")
"""A larger number is stricter, and any number is stricter than none."""
DOWN = Tightens("down")
"""A smaller number is stricter, and any number is stricter than none."""
ON = Tightens("steps", (False, True))
OFF = Tightens("steps", (True, False))
MORE = Tightens("more")
"""A set that keeps all its members is at least as strict."""
FEWER = Tightens("fewer")
"""A set that gains no member is at least as strict."""
FREE = Tightens("free")
"""Independent of how strict the gate is: the change's own value counts."""
NEVER = Tightens("never")
"""Not ordered: every change may loosen."""


def steps(*values: Any) -> Tightens:
    """Return a `Tightens` with values from the loosest to the strictest."""
    return Tightens("steps", values)


def strictness_of(model: type[BaseModel], option: str) -> Tightens:
    """Return the direction stated for an option of a model; `NEVER` if none is stated."""
    stated = (item for item in model.model_fields[option].metadata if isinstance(item, Tightens))
    return next(stated, NEVER)
