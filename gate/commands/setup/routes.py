"""Finds servers of FastAPI, Flask and Starlette: describes their routes as OpenAPI, without importing a module.

The requests and answers of a route are read from its types, or without types from the keys that its code names.
`openapi.agent_of` maps the result like the description of a running server.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from gate.commands.setup.found import Survey
from gate.commands.setup.openapi import MESSAGE, PORT, SESSION, agent_of
from gate.commands.setup.tree import Tree
from gate.formats.python_text import dotted, imports, parsed

APPS = {"fastapi.FastAPI": "FastAPI", "flask.Flask": "Flask", "starlette.applications.Starlette": "Starlette"}
ROUTERS = {"fastapi.APIRouter": "prefix", "flask.Blueprint": "url_prefix"}
"""The call that creates a group of routes → its argument with the prefix."""
POSTS = frozenset({"post", "route", "api_route"})
"""Methods of apps and routers that register a function."""
READ_KEYS = frozenset({*MESSAGE, *SESSION, "messages", "stream"})
"""Keys of a request that count if untyped code names them."""
PLAIN = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "dict": "object", "list": "array"}
DEEPEST = 4
"""Maximum number of levels of nested classes to follow."""

STARTS = {
    "FastAPI": "uvicorn {folder}{module}:{app} --port {port}",
    "Starlette": "uvicorn {folder}{module}:{app} --port {port}",
    "Flask": "{path}flask --app {module}:{app} run --port {port}",
}
"""The command that starts a server of each framework; ``folder`` and ``path`` are for modules outside the root."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class RoutedModule(Struct):
    """A module with routes."""

    framework: str = ""
    """FastAPI, Flask or Starlette; empty if the module has no app."""
    app: str = ""
    line: int = 1
    paths: dict[str, Any] = field(default_factory=dict)
    """Path → the operation, as in an OpenAPI document."""
    functions: set[str] = field(default_factory=set)
    """Names of the functions that handle requests."""
    ports: dict[str, int] = field(default_factory=dict)
    """App → the port at which the code runs it: ``bot.api:app`` if it is named in a text."""


def add_servers(tree: Tree, modules: Mapping[Path, RoutedModule], found: Survey) -> None:
    """Add the server of each module that has an app: its routes, and those of routers in other modules."""
    routers: dict[str, Any] = {}
    ports: dict[str, int] = {}
    for routed in modules.values():
        ports |= routed.ports
        if not routed.app:
            routers |= routed.paths
    for path, routed in modules.items():
        place = tree.import_name(path)
        if not routed.app or place is None:
            continue
        module, folder = place
        port = routed.ports.get(routed.app) or ports.get(f"{module}:{routed.app}") or PORT
        address = f"http://127.0.0.1:{port}"
        described = agent_of({"servers": [{"url": address}], "paths": {**routers, **routed.paths}})
        if described is None:
            continue
        start = STARTS[routed.framework].format(
            module=module,
            app=routed.app,
            port=port,
            folder=f"--app-dir {folder} " if folder else "",
            path=f"PYTHONPATH={folder} " if folder else "",
        )
        where = f"{path.as_posix()}:{routed.line}"
        found.agents.append(replace(described, where=where, rank=(6,), framework=routed.framework, start=start))


def routes_of(tree: Tree, path: Path, module: ast.Module) -> RoutedModule:
    """Return the routes of a module; empty if it has none."""
    reader = _Reader(tree, path, module)
    names = reader.names
    found, prefixes = RoutedModule(), dict[str, str]()
    for node in module.body:
        assigned = assigned_call(node)
        if assigned is None:
            continue
        name, call = assigned
        maker = dotted(call.func, names)
        if maker in APPS:
            found.framework, found.app, found.line = APPS[maker], name, call.lineno
            prefixes[name] = ""
        elif maker in ROUTERS:
            prefixes[name] = _text(_keyword(call, ROUTERS[maker]))
    found.ports = dict(_ports(module))
    functions = {node.name: node for node in module.body if isinstance(node, Function)}
    for function in functions.values():
        for route in _decorated_paths(function, prefixes):
            found.functions.add(function.name)
            found.paths[route] = {"post": reader.operation(function)}
    for route, name in _listed_routes(module, names):
        if name in functions:
            found.functions.add(name)
            found.paths[route] = {"post": reader.operation(functions[name])}
    return found


def assigned_call(node: ast.stmt) -> tuple[str, ast.Call] | None:
    """Return the name and the call of ``name = call(…)``; None for any other statement."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    value = getattr(node, "value", None)
    if isinstance(target, ast.Name) and isinstance(value, ast.Call):
        return target.id, value
    return None


def _ports(module: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the app and the port of each ``app.run(port=5001)`` and ``uvicorn.run(app, port=9000)``.

    The port may be the default of a variable: ``port=int(os.environ.get("PORT", 5001))``.
    """
    for node in ast.walk(module):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run"):
            continue
        stated = _keyword(node, "port")
        if stated is None:
            continue
        for one in ast.walk(stated):
            if isinstance(one, ast.Constant) and str(one.value).isdigit():
                for app in (node.func.value, *node.args[:1]):
                    yield _text(app) or dotted(app, {}), int(str(one.value))


def _decorated_paths(function: Function, prefixes: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths for which decorators such as ``@app.post("/chat")`` register a function."""
    for node in function.decorator_list:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner, method = node.func.value, node.func.attr
        if not (isinstance(owner, ast.Name) and owner.id in prefixes and method in POSTS):
            continue
        if method == "post" or "POST" in _words(_keyword(node, "methods")):
            path = _text(node.args[0] if node.args else _keyword(node, "path"))
            if path.startswith("/") and "{" not in path and "<" not in path:
                yield prefixes[owner.id] + path


def _listed_routes(module: ast.Module, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the path and the function of each Starlette ``Route("/chat", chat, methods=["POST"])``."""
    for node in ast.walk(module):
        if not isinstance(node, ast.Call) or dotted(node.func, names) != "starlette.routing.Route":
            continue
        endpoint = node.args[1] if len(node.args) > 1 else _keyword(node, "endpoint")
        path = _text(node.args[0] if node.args else _keyword(node, "path"))
        if isinstance(endpoint, ast.Name) and path and "POST" in _words(_keyword(node, "methods")):
            yield path, endpoint.id


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return None


def _text(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ""


def _words(node: ast.expr | None) -> set[str]:
    return {_text(one).upper() for one in getattr(node, "elts", [])}


class _Reader:
    """Reads the requests and answers of a module's functions."""

    def __init__(self, tree: Tree, path: Path, module: ast.Module) -> None:
        self.names = imports(module.body)
        self._tree, self._path = tree, path
        self._classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
        self._relative = {}
        for node in module.body:
            if isinstance(node, ast.ImportFrom) and 0 < node.level <= len(path.parents):
                folder = path.parents[node.level - 1]
                for alias in node.names:
                    self._relative[alias.asname or alias.name] = folder, f"{node.module or ''}.{alias.name}"

    def operation(self, function: Function) -> dict[str, Any]:
        asked = self._asked(function)
        answered = self._answered(function)
        return {
            "operationId": function.name,
            "requestBody": {"content": {"application/json": {"schema": asked}}},
            "responses": {"200": {"content": {"application/json": {"schema": answered}}}},
        }

    def _asked(self, function: Function) -> dict[str, Any]:
        """Return the schema of the request: a typed parameter, or the keys that the code reads."""
        embedded = {}
        arguments = function.args
        defaults = {}
        for argument, default in zip(reversed(arguments.args), reversed(arguments.defaults), strict=False):
            defaults[argument.arg] = default
        for one in [*arguments.args, *arguments.kwonlyargs]:
            schema = self._schema(one.annotation)
            if "properties" in schema:
                return schema
            stated = defaults.get(one.arg)
            if isinstance(stated, ast.Call) and dotted(stated.func, self.names) == "fastapi.Body":
                embedded[one.arg] = schema
        if embedded:
            return _object(embedded, list(embedded))
        read: dict[str, Any] = {key: {} for key in _read_keys(function) if key in READ_KEYS}
        return _object(read, [])

    def _answered(self, function: Function) -> dict[str, Any]:
        """Return the schema of the answer: from ``response_model``, the return type, or the returned dictionary's
        keys."""
        annotations = [function.returns]
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call):
                annotations.insert(0, _keyword(decorator, "response_model"))
        for annotation in annotations:
            schema = self._schema(annotation)
            if "properties" in schema:
                return schema
        assigned = dict(_assigned(function))
        found: list[dict[str, Any]] = []
        for node in ast.walk(function):
            if isinstance(node, ast.Return):
                literal = self._literal(node.value, assigned)
                if literal:
                    found.append(literal)
        if not found:
            return {}
        properties, always = dict(found[0]), list(found[0])
        for literal in found[1:]:
            properties |= literal
            always = [key for key in always if key in literal]
        return _object(properties, always)

    def _literal(self, value: ast.expr | None, assigned: Mapping[str, ast.expr], depth: int = 0) -> dict[str, Any]:
        """Return the properties of a dictionary, or of a call that makes a response from one."""
        if isinstance(value, ast.Name):
            value = assigned.get(value.id)
        if isinstance(value, ast.Tuple) and value.elts:  # Flask's (answer, status)
            value = value.elts[0]
        if isinstance(value, ast.Call):
            schema = self._schema(value.func)
            if "properties" in schema:
                return dict(schema["properties"])
            if value.args and depth < DEEPEST:
                return self._literal(value.args[0], assigned, depth + 1)
            return {one.arg: {} for one in value.keywords if one.arg}
        if isinstance(value, ast.Dict):
            return {key: {} for key in map(_text, filter(None, value.keys)) if key}
        return {}

    # --- types ------------------------------------------------------------------------------------

    def _schema(self, node: ast.expr | None, depth: int = 0) -> dict[str, Any]:
        """Return the schema of a type; empty if it is unknown."""
        if node is None or depth > DEEPEST:
            return {}
        if isinstance(node, ast.BinOp):  # Answer | None
            return self._schema(node.left, depth) or self._schema(node.right, depth)
        if isinstance(node, ast.Subscript):
            base = dotted(node.value, {}).rpartition(".")[2]
            if base in ("list", "List", "Sequence"):
                return {"type": "array", "items": self._schema(node.slice, depth + 1)}
            if base in ("Optional", "Annotated"):
                inner = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
                return self._schema(inner, depth)
            return {"type": "object"} if base in ("dict", "Dict") else {}
        name = _text(node) or dotted(node, {})
        if name in PLAIN:
            return {"type": PLAIN[name]}
        return self._fields(name, depth)

    def _fields(self, name: str, depth: int) -> dict[str, Any]:
        """Return the schema of a class in the repository, with its fields and those of its bases."""
        found = self._class(name) if name and depth <= DEEPEST else None
        if found is None:
            return {}
        node, there = found
        properties, required = dict[str, Any](), list[str]()
        for base in node.bases:
            inherited = there._fields(dotted(base, {}), depth + 1)
            properties |= inherited.get("properties", {})
            required += inherited.get("required", [])
        for stated in node.body:
            if isinstance(stated, ast.AnnAssign) and isinstance(stated.target, ast.Name):
                properties[stated.target.id] = there._schema(stated.annotation, depth + 1)
                if stated.value is None:
                    required.append(stated.target.id)
        if not properties:
            return {}
        return _object(properties, required)

    def _class(self, name: str) -> tuple[ast.ClassDef, _Reader] | None:
        """Return the class that a name refers to, in this module or one of the repository that it imports, and the
        reader of that module."""
        if name in self._classes:
            return self._classes[name], self
        first, dot, rest = name.partition(".")
        folders, target = list(self._path.parents), self.names.get(first, first) + dot + rest
        if name in self._relative:
            folder, target = self._relative[name]
            folders = [folder]
        *package, last = [part for part in target.split(".") if part]
        if not package:
            return None
        for folder in folders:
            place = folder.joinpath(*package).with_suffix(".py")
            if place == self._path or place not in self._tree.files:
                continue
            module = parsed(self._tree.text(place))
            if module is not None:
                return _Reader(self._tree, place, module)._class(last)
        return None


def _assigned(function: Function) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


def _read_keys(function: Function) -> Iterator[str]:
    """Yield the keys that a function looks up: ``data["message"]``, ``data.get("message")``."""
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript):
            yield _text(node.slice)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "get"
            and node.args
        ):
            yield _text(node.args[0])
