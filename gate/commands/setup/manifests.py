"""Reads what other tools' files say of an agent: package.json, promptfoo's providers, and docker compose's ports.

Nothing is run. JavaScript is searched for a few usual forms, not parsed.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gate.commands.setup.openapi import NODE, FoundAgent, agent_of
from gate.commands.setup.routes import READ_KEYS
from gate.formats.shapes import as_list, as_mapping, as_text, mappings_in

PACKAGE = "package.json"
COMPOSE = re.compile(r"(?:docker-)?compose(?:\.[\w-]+)*\.ya?ml")
PROMPTFOO = re.compile(r"promptfooconfig\.(?:ya?ml|json)")
_SCRIPT = re.compile(r".+\.[cm]?[jt]sx?")
_TYPESCRIPT = re.compile(r".+\.[cm]?tsx?")
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


# --- package.json ---------------------------------------------------------------------------------


def agents_in_package(
    document: Any, folder: str, files: Container[str], text_of: Callable[[str], str]
) -> Iterator[FoundAgent]:
    """Yield the server or program that ``scripts.start`` starts, and the programs of ``bin``.

    ``folder`` holds the file, empty for the root; ``files`` are names relative to the root.
    """
    package = as_mapping(document)
    where = posixpath.join(folder, PACKAGE)
    started = set[str]()
    start = as_text(as_mapping(package.get("scripts")).get("start"))
    for word in _words(start):
        name = posixpath.normpath(posixpath.join(folder, word))
        if _SCRIPT.fullmatch(word) and name in files:
            started.add(name)
            command = f"npm --prefix {shlex.quote(folder)} start" if folder else "npm start"
            yield _program(name, text_of(name), where, f"scripts.start: {start}", command)
            break
    programs = package.get("bin")
    if isinstance(programs, str):
        programs = {"": programs}
    for told in list(as_mapping(programs).values())[:5]:
        name = posixpath.normpath(posixpath.join(folder, as_text(told)))
        if name in files and name not in started and _SCRIPT.fullmatch(name):
            yield _program(name, text_of(name), where, f"bin: {told}", shlex.join(_command(name)))


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _command(name: str) -> list[str]:
    return ["npx", "tsx", name] if _TYPESCRIPT.fullmatch(name) else ["node", name]


def _program(name: str, text: str, where: str, why: str, start: str) -> FoundAgent:
    """Return the server that a script is, by its route; else the script as a command."""
    described = _server(text)
    if described is not None:
        return replace(described, where=name, rank=(6, 1), framework=NODE, start=start, fill=(*described.fill, IN_CI))
    fill = () if _LISTENS.search(text) is None else ("its route: it seems to be a server (`gate init --url`)",)
    fill = fill or ("how it is asked: the gate writes a request as JSON to its standard input (`gate help agent`)",)
    return FoundAgent(NODE, why, {"command": _command(name)}, (*fill, IN_CI), where=where, rank=(7,))


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


class Provider(Struct, frozen=True):
    """A provider of promptfoo's in Python."""

    file: str
    """The name of its file, relative to the root."""
    function: str
    options: Mapping[str, Any]
    """Its second argument."""

    def call(self, *, is_async: bool) -> str:
        """Return the expression for one turn."""
        call = f"{self.function}(message, {dict(self.options)!r}, {{'vars': {{}}}})"
        return f"await {call}" if is_async else call


def providers_in(document: Any, folder: str) -> Iterator[Provider]:
    """Yield the providers of a configuration that are files in Python: ``file://provider.py:function``."""
    config = as_mapping(document)
    listed = [*as_list(config.get("providers")), *as_list(config.get("targets"))]
    for key in ("providers", "targets"):
        if isinstance(config.get(key), str):
            listed.append(config[key])
    for one in listed:
        told = one if isinstance(one, str) else as_text(as_mapping(one).get("id"))
        found = re.fullmatch(r"(?:file://|python:)(?:\./)?([^:]+\.py)(?::(\w+))?", told)
        if found:
            place = posixpath.normpath(posixpath.join(folder, found[1]))
            options = {"config": dict(as_mapping(as_mapping(one).get("config")))}
            yield Provider(place, found[2] or "call_api", options)


# --- docker compose -------------------------------------------------------------------------------


def published_in(document: Any) -> Iterator[tuple[str, int]]:
    """Yield the services that are built here, each with the port of this machine at which it is published."""
    for name, service in as_mapping(as_mapping(document).get("services")).items():
        told = as_mapping(service)
        if "build" not in told:
            continue
        for port in as_list(told.get("ports")):
            found = _PUBLISHED.fullmatch(str(port))
            if found:
                yield str(name), int(found[1])
        for port in mappings_in(told.get("ports")):
            published = str(port.get("published", ""))
            if published.isdigit():
                yield str(name), int(published)
