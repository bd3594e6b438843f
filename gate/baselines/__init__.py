"""Stores of baselines: their registry, one file each, and the choice of the parts of two records to compare.

`fingerprint` identifies the content of a case; `pairing` matches the cases of a baseline with those of the candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from gate.baselines.base import Entry, StoreOptions, StoreSettings
from gate.baselines.blobs import BlobStore
from gate.registry import Registry

_BUILT_IN = {
    "bucket": "gate.baselines.bucket:BucketStore",
    "file": "gate.baselines.file:FileStore",
    "git": "gate.baselines.git:GitStore",
}
STORES = Registry[type[BlobStore]](
    "store", "agent_gate.stores", _BUILT_IN, base="gate.baselines.blobs:BlobStore", words=("none",)
)
"""The stores, by their name under ``baseline.store``."""


def open_store(kind: str, settings: StoreSettings) -> BlobStore:
    """Return a store of a registered kind; of the options, it gets its own only.

    Raises:
        ConfigError: no such store exists.
    """
    store = STORES.load(kind, where="baseline.store")
    own = {key: value for key, value in settings.options.items() if key in store.Options.model_fields}
    return store.open(replace(settings, options=own))


def store_models(kind: str, given: Mapping[str, Any]) -> list[type[StoreOptions]]:
    """Return the options allowed next to ``baseline.store``: the store's own, and those of the built-in stores.

    So ``--store`` may name a store other than the file's. Other stores are loaded only if ``given`` has a key that is
    not one of the store's own.

    Raises:
        ConfigError: no such store exists.
    """
    models = []
    if kind != "none":
        models.append(STORES.load(kind, where="baseline.store").Options)
    known: set[str] = set()
    for model in models:
        known.update(model.model_fields)
    if known.issuperset(given):
        return models
    for name in STORES:
        if name != kind:
            models.append(STORES.load(name).Options)
    return models
