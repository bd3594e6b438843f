"""The functions of `scipy.stats`, imported when a test first calls one.

Each worker collects every module: at the top of one, the import would take half a second of each.
"""

from __future__ import annotations

import importlib
from typing import Any


class _Late:
    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("scipy.stats"), name)


stats = _Late()
