"""Finds servers in the code of FastAPI, Flask, Starlette and Node, by the usual forms of their text.

The text gives a server's route, its port, the command that starts it, and the keys that the route's code names; a
running server is asked for its description instead (`served`). Nothing is imported or run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gate.commands.setup.found import FoundAgent, Survey
from gate.commands.setup.openapi import CALLS, CHATTY, MESSAGE, NODE, OUTPUT, PORT, SESSION, agent_of
from gate.commands.setup.tree import Tree
from gate.formats.shapes import as_mapping, as_text

STARTS = {
    "FastAPI": "uvicorn {folder}{module}:{app} --port {port}",
    "Starlette": "uvicorn {folder}{module}:{app} --port {port}",
    "Flask": "{path}flask --app {module}:{app} run --port {port}",
}
"""The command that starts a server of each framework; ``folder`` and ``path`` are for modules outside the root."""
ASKED_KEYS = frozenset({*MESSAGE, *SESSION, "messages", "stream"})
ANSWERED_KEYS = frozenset({*OUTPUT, *CALLS, "usage"})
"""Keys of requests and answers that count if code names them."""
_APP = re.compile(r"^(\w+)(?:\s*:[^=\n]+)?\s*=\s*(?:\w+\.)?(FastAPI|Flask|Starlette)\(", re.MULTILINE)
_GROUP = re.compile(r"^(\w+)\s*=\s*(?:\w+\.)?(?:APIRouter|Blueprint)\([^)]*?prefix\s*=\s*[\"']([^\"']*)", re.MULTILINE)
_DECORATED = re.compile(
    r"^@(\w+)\.(?:post\(|(?:api_)?route\((?=[^\n]*\bPOST\b))\s*(?:path\s*=\s*)?[\"'](/[^\"'{}<>]*)[\"']", re.MULTILINE
)
_LISTED = re.compile(r"\bRoute\(\s*[\"'](/[^\"'{}]*)[\"']\s*,\s*(?:endpoint\s*=\s*)?(\w+)[^)]*\bPOST\b")
_FUNCTION = re.compile(r"^(?:async )?def (\w+)\(.*?(?=\n[^\s)]|\Z)", re.MULTILINE | re.DOTALL)
_RUN = re.compile(r"\b(\w+)\.run\((.{0,200}?)\bport\s*=\D{0,60}?(\d+)", re.DOTALL)
_LOOKED_UP = re.compile(r"(?:\[|\.get\()\s*[\"'](\w+)[\"']|\b(\w+)\s*:\s*\w+\s*=\s*Body\(")
_TYPED = re.compile(r"\b(\w+)\s*:\s*[A-Z]\w*")
_WRITTEN = re.compile(r"[\"'](\w+)[\"']\s*:|\b(?:jsonify|[A-Z]\w*)\(\s*(\w+)\s*=(?!=)")
_SCRIPT = re.compile(r".+\.[cm]?[jt]sx?")
_STARTING = ("start", "serve", "dev", "agent", "chat", "ask")
"""Names of scripts that start a server or an agent."""
_LISTENS = re.compile(r"\.listen\(|\bBun\.serve\(|\bDeno\.serve\(|\bserve\(\s*\{")
_PORT = re.compile(r"(?:\.listen\(|\bport\b\s*[:=]|\bPORT\b\s*(?:\|\||\?\?))[^;\n]{0,60}?\b(\d{2,5})\b", re.IGNORECASE)
_POST = re.compile(r"\.post\(\s*[\"'`](/[^\"'`:*{}]*)[\"'`]")
_UNPACKED = re.compile(r"\{([^{}]*)\}\s*=\s*(?:await\s+)?\(?[\w.]*\b(?:body|json\(\))")
_BODY = re.compile(r"\bbody(?:\?)?\.(\w+)|\bbody\[[\"'](\w+)[\"']\]")
_ANSWERED = re.compile(r"\bjson\(\s*\{([^{}]*)\}")
IN_CI = "a CI job with Node: the action's image has none, agent-gate/agent-gate/composite@v0 runs on the runner itself"
UNDESCRIBED = "its request and answer: start it, then run this again, which reads its description"
NODE_PORT = 3000
"""The port of a Node server whose code names none."""


# --- Python ---------------------------------------------------------------------------------------


def add_servers(tree: Tree, modules: Mapping[Path, str], found: Survey) -> None:
    """Add the server of each module that has an app, with its routes and those of modules without an app.

    ``modules``: path → text.
    """
    shared: dict[str, Any] = {}
    for text in modules.values():
        if not _APP.search(text):
            shared |= _routes(text)
    for path, text in modules.items():
        app, place = _APP.search(text), tree.import_name(path)
        if app is None or place is None:
            continue
        (name, framework), (module, folder) = app.groups(), place
        port = _port(text, name) or _port("\n".join(modules.values()), f"{module}:{name}") or PORT
        agent = _server({**shared, **_routes(text)}, port)
        if agent is None:
            continue
        start = STARTS[framework].format(
            module=module,
            app=name,
            port=port,
            folder=f"--app-dir {folder} " if folder else "",
            path=f"PYTHONPATH={folder} " if folder else "",
        )
        line = text.count("\n", 0, app.start()) + 1
        where = f"{path.as_posix()}:{line}"
        found.agents.append(replace(agent, framework=framework, where=where, rank=(6,), start=start))


def handlers_in(text: str) -> set[str]:
    """Return the names of the functions that answer a module's routes."""
    names = {name for _, name in _LISTED.findall(text)}
    for route in _DECORATED.finditer(text):
        function = _FUNCTION.search(text, route.end())
        if function:
            names.add(function[1])
    return names


def _routes(text: str) -> dict[str, Any]:
    """Return the POST routes of a module: path → the operation, as in an OpenAPI document."""
    groups, functions = dict(_GROUP.findall(text)), {one[1]: one[0] for one in _FUNCTION.finditer(text)}
    found = {}
    for route in _DECORATED.finditer(text):
        function = _FUNCTION.search(text, route.end())
        found[groups.get(route[1], "") + route[2]] = _operation_of(function[0] if function else "")
    for path, name in _LISTED.findall(text):
        found[path] = _operation_of(functions.get(name, ""))
    return found


def _operation_of(function: str) -> dict[str, Any]:
    """Return the operation that a function handles, by the keys that it looks up and writes."""
    asked = _names(_LOOKED_UP, function)
    for parameter in _TYPED.findall(function):
        asked += re.findall(rf"\b{parameter}\.(\w+)", function)
    return _operation(asked, _names(_WRITTEN, function))


def _port(text: str, app: str) -> int | None:
    """Return the port at which code runs an app: ``app.run(port=5001)``, ``uvicorn.run("bot.api:app", port=9000)``.

    It may be the default of a variable: ``port=int(os.environ.get("PORT", 5001))``.
    """
    for owner, arguments, port in _RUN.findall(text):
        if app == owner or app in re.split(r"[\s,\"'()]+", arguments):
            return int(port)
    return None


# --- Node -----------------------------------------------------------------------------------------


def add_node_server(tree: Tree, path: Path, found: Survey) -> None:
    """Add the server or program that a script of ``package.json``, such as ``start``, starts from its source."""
    scripts, folder = as_mapping(as_mapping(tree.document(path)).get("scripts")), path.parent.as_posix()
    for script in _STARTING:
        for word in as_text(scripts.get(script)).split():
            place = Path(path.parent / word.removeprefix("./"))
            if not (_SCRIPT.fullmatch(word) and place in tree.files):
                continue
            command = ["npm", "run", script] if folder == "." else ["npm", "--prefix", folder, "run", script]
            why = f"scripts.{script}: {scripts[script]}"
            found.agents.append(_node_agent(tree.text(place), place.as_posix(), shlex.join(command), why))
            return


def _node_agent(text: str, script: str, start: str, why: str) -> FoundAgent:
    """Return the server that a script is, by its route; else the script as a command."""
    if _LISTENS.search(text):
        asked, answered = _names(_BODY, text), list[str]()
        for names in _UNPACKED.findall(text):
            asked += _keys(names)
        for names in _ANSWERED.findall(text):
            if "error" not in _keys(names):
                answered += _keys(names)
        port = _PORT.search(text)
        paths = dict.fromkeys(_POST.findall(text), _operation(asked, answered))
        agent = _server(paths, int(port[1]) if port else NODE_PORT)
        if agent is not None:
            fill = (*agent.fill, IN_CI)
            return replace(agent, framework=NODE, where=script, rank=(6, 1), start=start, fill=fill)
    unknown = "how it is asked: the gate writes a request as JSON to its standard input (`gate help agent`)"
    if _LISTENS.search(text):
        unknown = "its route: it seems to be a server (`gate init --url`)"
    command = ["npx", "tsx", script] if "ts" in script.rpartition(".")[2] else ["node", script]
    return FoundAgent(NODE, why, {"command": command}, (unknown, IN_CI), where=script, rank=(7,))


def _keys(names: str) -> list[str]:
    """Return the keys of an object in JavaScript: ``message, reply: text`` → both first words."""
    return re.findall(r"(?:^|,)\s*[\"']?(\w+)", names)


# --- both -----------------------------------------------------------------------------------------


def _names(pattern: re.Pattern[str], text: str) -> list[str]:
    return [match[match.lastindex or 0] for match in pattern.finditer(text)]


def _operation(asked: Iterable[str], answered: Iterable[str]) -> dict[str, Any]:
    """Return a POST operation with those of the keys that requests and answers of agents have."""

    def content(names: Iterable[str], known: frozenset[str]) -> dict[str, Any]:
        properties: dict[str, Any] = {name: {} for name in names if name in known}
        return {"content": {"application/json": {"schema": {"type": "object", "properties": properties}}}}

    answer = content(answered, ANSWERED_KEYS)
    return {"post": {"requestBody": content(asked, ASKED_KEYS), "responses": {"200": answer}}}


def _server(paths: Mapping[str, Any], port: int) -> FoundAgent | None:
    """Return the agent behind the likeliest of the routes; None if none seems to be one."""
    address = f"http://127.0.0.1:{port}"
    agent = agent_of({"servers": [{"url": address}], "paths": paths})
    if agent is not None:
        return agent
    for word in CHATTY:
        for path in paths:
            if word in path:
                return FoundAgent("", f"POST {path}", {"http": f"{address}{path}"}, (UNDESCRIBED,))
    return None
