"""Reads what other tools' files say of an agent: langgraph.json, OpenAPI, package.json, promptfoo, docker compose.

Nothing is run. JavaScript is searched for a few usual forms, not parsed.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gate.commands.setup.found import FoundAgent, Survey
from gate.commands.setup.openapi import NODE, agent_of
from gate.commands.setup.python_agents import KEY_NAMES
from gate.commands.setup.routes import READ_KEYS, Function
from gate.commands.setup.tree import Tree
from gate.formats.python_text import parsed
from gate.formats.shapes import as_list, as_mapping, as_text, mappings_in

PROMPTFOO = re.compile(r"promptfooconfig\.(?:ya?ml|json)")
MOST_GRAPHS, MOST_PROGRAMS = 20, 5
_SCRIPT = re.compile(r".+\.[cm]?[jt]sx?")
_TYPESCRIPT = re.compile(r".+\.[cm]?tsx?")
_STARTING = ("start", "serve", "dev", "agent", "chat", "ask")
"""Names of scripts that start a server or an agent."""
_LISTENS = re.compile(r"\.listen\(|\bBun\.serve\(|\bDeno\.serve\(|\bserve\(\s*\{")
_PORT = re.compile(r"(?:\.listen\(|\bport\b\s*[:=]|\bPORT\b\s*(?:\|\||\?\?))[^;\n]{0,60}?\b(\d{2,5})\b", re.IGNORECASE)
_POST = re.compile(r"\.post\(\s*[\"'`](/[^\"'`:*{}]*)[\"'`]")
_UNPACKED = re.compile(r"\{([^{}]*)\}\s*=\s*(?:await\s+)?\(?[\w.]*\b(?:body|json\(\))")
_BODY = re.compile(r"\bbody(?:\?)?\.(\w+)|\bbody\[[\"'](\w+)[\"']\]")
_ANSWERED = re.compile(r"\bjson\(\s*\{([^{}]*)\}")
_PUBLISHED = re.compile(r"(?:[\d.]+:|\[[^\]]*\]:)?(?:\$\{\w+:?-)?(\d+)\}?:\d+(?:/tcp)?")
IN_CI = "a CI job with Node: the action's image has none, agent-gate/agent-gate/composite@v0 runs on the runner itself"
DEFAULT_PORT = 3000
"""The port of a Node server whose code names none."""


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
    described = agent_of(tree.document(path))
    if described is not None:
        found.agents.append(replace(described, where=path.as_posix(), rank=(6,)))


def add_keys(tree: Tree, path: Path, found: Survey) -> None:
    """Add the keys that a sample of a file of variables names."""
    found.keys |= set(KEY_NAMES.findall(tree.text(path)))


# --- package.json ---------------------------------------------------------------------------------


def add_programs(tree: Tree, path: Path, found: Survey) -> None:
    """Add the server or program that a script such as ``start`` starts from its source, and the programs of ``bin``."""
    package = as_mapping(tree.document(path))
    folder, scripts = path.parent.as_posix(), as_mapping(package.get("scripts"))
    script, started = _starting(tree, path, scripts)
    if started is not None:
        command = ["npm", "run", script]
        if folder != ".":
            command = ["npm", "--prefix", folder, "run", script]
        why = f"scripts.{script}: {scripts[script]}"
        found.agents.append(_program(tree, started, path, why, shlex.join(command)))
    programs = package.get("bin")
    if isinstance(programs, str):
        programs = {"": programs}
    for told in list(as_mapping(programs).values())[:MOST_PROGRAMS]:
        place = Path(os.path.normpath(path.parent / as_text(told)))
        if place in tree.files and place != started and _SCRIPT.fullmatch(place.as_posix()):
            found.agents.append(_program(tree, place, path, f"bin: {told}", shlex.join(_command(place))))


def _starting(tree: Tree, path: Path, scripts: Mapping[str, Any]) -> tuple[str, Path | None]:
    """Return the first script that starts a source file of the repository, and the file; None if there is none."""
    for script in _STARTING:
        for word in _words(as_text(scripts.get(script))):
            place = Path(os.path.normpath(path.parent / word))
            if _SCRIPT.fullmatch(word) and place in tree.files:
                return script, place
    return "", None


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _command(script: Path) -> list[str]:
    name = script.as_posix()
    return ["npx", "tsx", name] if _TYPESCRIPT.fullmatch(name) else ["node", name]


def _program(tree: Tree, script: Path, package: Path, why: str, start: str) -> FoundAgent:
    """Return the server that a script is, by its route; else the script as a command."""
    text = tree.text(script)
    described = _server(text)
    if described is not None:
        fill = (*described.fill, IN_CI)
        return replace(described, where=script.as_posix(), rank=(6, 1), framework=NODE, start=start, fill=fill)
    unknown = "how it is asked: the gate writes a request as JSON to its standard input (`gate help agent`)"
    if _LISTENS.search(text):
        unknown = "its route: it seems to be a server (`gate init --url`)"
    section = {"command": _command(script)}
    return FoundAgent(NODE, why, section, (unknown, IN_CI), where=package.as_posix(), rank=(7,))


def _server(text: str) -> FoundAgent | None:
    """Return the server that a script starts; None if it registers no route that takes a message."""
    if not _LISTENS.search(text):
        return None
    asked: dict[str, Any] = {}
    for names in _UNPACKED.findall(text):
        asked |= {key: {} for key in _keys(names)}
    for one, other in _BODY.findall(text):
        asked[one or other] = {}
    asked = {key: held for key, held in asked.items() if key in READ_KEYS}
    answered: dict[str, Any] = {}
    for names in _ANSWERED.findall(text):
        keys = _keys(names)
        if "error" not in keys:
            answered |= {key: {} for key in keys}
    port = _PORT.search(text)
    operation = {
        "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": asked}}}},
        "responses": {"200": {"content": {"application/json": {"schema": {"type": "object", "properties": answered}}}}},
    }
    address = f"http://127.0.0.1:{port[1] if port else DEFAULT_PORT}"
    paths = {path: {"post": operation} for path in _POST.findall(text)}
    return agent_of({"servers": [{"url": address}], "paths": paths}) if asked else None


def _keys(names: str) -> list[str]:
    """Return the keys of an object in JavaScript: ``message, reply: text`` → both first words."""
    return re.findall(r"(?:^|,)\s*[\"']?(\w+)", names)


# --- promptfoo ------------------------------------------------------------------------------------


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


# --- docker compose -------------------------------------------------------------------------------


def add_published(tree: Tree, path: Path, found: Survey) -> None:
    """Note the services that are built here, each with the port of this machine at which it is published."""
    services = as_mapping(as_mapping(tree.document(path)).get("services"))
    for name, service in services.items():
        told = as_mapping(service)
        if "build" not in told:
            continue
        ports = []
        for port in as_list(told.get("ports")):
            published = _PUBLISHED.fullmatch(str(port))
            if published:
                ports.append(published[1])
        for port in mappings_in(told.get("ports")):
            ports.append(str(port.get("published", "")))
        for number in ports:
            if number.isdigit():
                address = f"http://127.0.0.1:{int(number)}"
                told_where = f"{path.as_posix()}: publishes {name} at {address}"
                found.notes.append(f"{told_where}; once it runs: gate init --url {address}")
