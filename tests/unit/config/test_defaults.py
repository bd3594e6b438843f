"""A default of the configuration is a literal in one place: beside its key, or in `gate.model.defaults`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import gate
from gate.agents import AGENTS
from gate.agents.base import agent_class
from gate.baselines import STORES
from gate.config.schema import File
from gate.errors import models_in

PACKAGE = Path(gate.__file__).parent
ORDINARY: tuple[Any, ...] = (0, 1, "")
"""Values that say little: equal ones are no copies."""
LOOPBACK = "http://127.0.0.1:8000"
"""Address of a server of ADK's, and of one of FastAPI's: two defaults that happen to be alike."""
LONG = 8
"""Letters from which on a text is told apart from a word that means something else elsewhere."""


def models() -> list[type[BaseModel]]:
    """Return the models of the whole configuration."""
    options: list[type[BaseModel]] = [File]
    options += [agent_class(name).Options for name in AGENTS]
    options += [STORES.load(name).Options for name in STORES]
    found: dict[type[BaseModel], None] = {}
    while options:
        model = options.pop()
        if model in found:
            continue
        found[model] = None
        for field in model.model_fields.values():
            options += models_in(field.annotation)
    return list(found)


def literals(path: Path) -> Iterator[tuple[str, str, Any]]:
    """Yield class, name and each constant in the value of every field and of every constant of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for owner in ast.walk(tree):
        if not isinstance(owner, ast.ClassDef | ast.Module):
            continue
        for node in owner.body:
            if isinstance(node, ast.AnnAssign):
                target, value = node.target, node.value
            elif isinstance(node, ast.Assign):
                target, value = node.targets[0], node.value
            else:
                continue
            if not isinstance(target, ast.Name) or value is None:
                continue
            for part in ast.walk(value):
                if isinstance(part, ast.Constant):
                    yield getattr(owner, "name", ""), target.id, part.value


@pytest.mark.slow
def test_no_default_is_written_twice() -> None:
    configured = models()
    own = {base.__name__ for model in configured for base in model.__mro__}
    defaults = set()
    for model in configured:
        for name, field in model.model_fields.items():
            default = field.default
            if isinstance(default, str | int | float) and not isinstance(default, bool) and default not in ORDINARY:
                defaults.add((name, default))
    assert ("alpha", 0.02) in defaults
    assert ("branch", "gate-baselines") in defaults
    texts = {default for _, default in defaults if isinstance(default, str) and len(default) > LONG} - {LOOPBACK}
    copies = []
    constants: dict[Any, str] = {}
    in_fields = set()
    for path in PACKAGE.rglob("*.py"):
        for owner, name, value in literals(path):
            place = f"{path.relative_to(PACKAGE)}: {owner}.{name} = {value!r}"
            if not owner:
                if isinstance(value, str) and value in texts and name.isupper():
                    constants[value] = place
            elif (name, value) in defaults:
                in_fields.add(value)
                if owner not in own:
                    copies.append(place)
    copies += [place for value, place in constants.items() if value in in_fields]
    assert copies == []
