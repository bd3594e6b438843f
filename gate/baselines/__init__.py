"""Where baselines are kept: the registry of stores."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from gate.baselines.base import Entry, Found, Store, StoreSettings
from gate.baselines.diff import RecordDiff, diff

STORES: dict[str, str] = {
    "file": "gate.baselines.file:FileStore",
    "git": "gate.baselines.git:GitStore",
}
"""By the name under ``baseline.store``."""

__all__ = ["STORES", "Entry", "Found", "RecordDiff", "Store", "StoreSettings", "diff", "open_store"]


def open_store(kind: str, settings: StoreSettings) -> Store:
    """A store of a registered kind."""
    module, name = STORES[kind].split(":")
    return cast(type[Store], getattr(import_module(module), name)).open(settings)
