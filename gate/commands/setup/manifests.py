"""Reads what other tools' files say of an agent: langgraph.json, descriptions in OpenAPI, promptfoo's providers."""

from __future__ import annotations

import ast
import os
import posixpath
import re
from pathlib import Path

from msgspec.structs import replace

from gate.commands.setup.found import Survey
from gate.commands.setup.openapi import agent_of
from gate.commands.setup.python_agents import KEY_NAMES, Function
from gate.commands.setup.tree import Tree
from gate.formats.python_text import parsed
from gate.formats.shapes import as_list, as_mapping, as_text

PROMPTFOO = re.compile(r"promptfooconfig\.(?:ya?ml|json)")
MOST_GRAPHS = 20


def add_graphs(tree: Tree, path: Path, found: Survey) -> None:
    """Add the graphs that ``langgraph.json`` names, such as ``./folder/file.py:variable``."""
    graphs = as_mapping(as_mapping(tree.document(path)).get("graphs"))
    for name, target in list(graphs.items())[:MOST_GRAPHS]:
        if isinstance(target, dict):
            target = target.get("path")  # noqa: PLW2901
        file, _, variable = str(target).partition(":")
        place = Path(os.path.normpath(path.parent / file))
        if place.suffix != ".py" or place not in tree.files or not variable.isidentifier():
            continue
        call = variable
        if f"def {variable}(" in tree.text(place):
            call = f"{variable}()"
        why = f"{path.as_posix()} names the graph {name!r}"
        found.add_adapted(tree, "LangGraph", place, variable, 1, why, call=call, rank=0)


def add_described(tree: Tree, path: Path, found: Survey) -> None:
    """Add the server that an OpenAPI description is of."""
    document = tree.document(path)
    described = agent_of(document)
    if described is not None:
        found.agents.append(replace(described, where=path.as_posix(), rank=(6,)))
    elif "swagger" in as_mapping(document):
        found.notes.append(f"{path.as_posix()}, a description in version 2.0 of OpenAPI: only 3 is read")


def add_keys(tree: Tree, path: Path, found: Survey) -> None:
    """Add the keys that a sample of a file of variables names."""
    found.keys |= set(KEY_NAMES.findall(tree.text(path)))


def add_providers(tree: Tree, path: Path, found: Survey) -> None:
    """Add the providers of a configuration that are functions in Python: ``file://provider.py:function``."""
    config = as_mapping(tree.document(path))
    listed = [*as_list(config.get("providers")), *as_list(config.get("targets"))]
    for key in ("providers", "targets"):
        if isinstance(config.get(key), str):
            listed.append(config[key])
    for one in listed:
        told = one if isinstance(one, str) else as_text(as_mapping(one).get("id"))
        named = re.fullmatch(r"(?:file://|python:)(?:\./)?([^:]+\.py)(?::(\w+))?", told)
        if not named:
            continue
        place, name = Path(posixpath.normpath(path.parent / named[1])), named[2] or "call_api"
        module = parsed(tree.text(place)) if place in tree.files else None
        for node in module.body if module is not None else ():
            if isinstance(node, Function) and node.name == name:
                options = {"config": dict(as_mapping(as_mapping(one).get("config")))}
                call = f"{name}(message, {options!r}, {{'vars': {{}}}})"
                if isinstance(node, ast.AsyncFunctionDef):
                    call = f"await {call}"
                why = f"{path.as_posix()} names it"
                found.add_adapted(tree, "promptfoo's provider", place, name, node.lineno, why, call=call, rank=1)
