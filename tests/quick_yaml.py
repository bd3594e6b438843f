"""YAML, read by the parser in C where there is one: each worker reads the tables of situations and the guides."""

from __future__ import annotations

from typing import Any

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(text: str) -> Any:
    return yaml.load(text, LOADER)
