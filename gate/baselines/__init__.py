"""Stores of baselines: their registry, one file each, and the parts of two records that may be compared.

`fingerprint` says what a case is made of, `pairing` which case of a baseline is compared with which of the candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from gate.baselines.base import Entry, Store, StoreOptions, StoreSettings
from gate.baselines.reference import Reference
from gate.registry import Registry

_BUILT_IN = {
    "bucket": "gate.baselines.bucket:BucketStore",
    "file": "gate.baselines.file:FileStore",
    "git": "gate.baselines.git:GitStore",
}
STORES = Registry[type[Store]](
    "store", "agent_gate.stores", _BUILT_IN, base="gate.baselines.base:Store", words=("none",)
)
"""The stores, by the name under ``baseline.store``."""

__all__ = [
    "STORES",
    "Entry",
    "Reference",
    "Store",
    "StoreOptions",
    "StoreSettings",
    "open_store",
    "store_models",
]


def open_store(kind: str, settings: StoreSettings) -> Store:
    """Return a store of a registered kind; of the options, it gets those that are its own.

    Raises:
        ConfigError: nobody offers such a store.
    """
    store = STORES.load(kind, where="baseline.store")
    own = {key: value for key, value in settings.options.items() if key in store.Options.model_fields}
    return store.open(replace(settings, options=own))


def store_models(kind: str, given: Mapping[str, Any]) -> list[type[StoreOptions]]:
    """Return the options that may stand beside ``baseline.store``: the store's own, and those of the built-in ones.

    So ``--store`` may name another store than the file does. Other stores are loaded only where ``given`` has a key
    that is not the store's own.

    Raises:
        ConfigError: nobody offers such a store.
    """
    models = []
    if kind != "none":
        models.append(STORES.load(kind, where="baseline.store").Options)
    known = {key for model in models for key in model.model_fields}
    if known.issuperset(given):
        return models
    return [*models, *(STORES.load(name).Options for name in STORES if name != kind)]
