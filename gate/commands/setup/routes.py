"""Describes the routes of a FastAPI, Flask or Starlette module as OpenAPI, without importing it.

The requests and answers of a route are read from its types, or without types from the keys that its code names.
`openapi.agent_of` maps the result like the description of a running server.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from gate.commands.setup.openapi import MESSAGE, SESSION
from gate.formats.python_text import dotted, imports

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

Function = ast.FunctionDef | ast.AsyncFunctionDef
FindClass = Callable[[str], "FoundClass | None"]
"""Returns the class that a name in one module refers to, in any module of the repository."""


class FoundClass(Struct, frozen=True):
    """A class, and the function that finds the classes named in its module."""

    node: ast.ClassDef
    find: FindClass


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


def routes_of(module: ast.Module, find_class: FindClass) -> RoutedModule:
    """Return the routes of a module; empty if it has none."""
    names = imports(module.body)
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
    reader = _Reader(names, find_class)
    functions = {node.name: node for node in module.body if isinstance(node, Function)}
    for function in functions.values():
        for path in _decorated_paths(function, prefixes):
            found.functions.add(function.name)
            found.paths[path] = {"post": reader.operation(function)}
    for path, name in _listed_routes(module, names):
        if name in functions:
            found.functions.add(name)
            found.paths[path] = {"post": reader.operation(functions[name])}
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


class _Reader(Struct, frozen=True):
    """Reads the requests and answers of a module's functions."""

    names: Mapping[str, str]
    find_class: FindClass

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
            schema = _schema(one.annotation, self.find_class)
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
            schema = _schema(annotation, self.find_class)
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
            schema = _schema(value.func, self.find_class)
            if "properties" in schema:
                return dict(schema["properties"])
            if value.args and depth < DEEPEST:
                return self._literal(value.args[0], assigned, depth + 1)
            return {one.arg: {} for one in value.keywords if one.arg}
        if isinstance(value, ast.Dict):
            return {key: {} for key in map(_text, filter(None, value.keys)) if key}
        return {}


def _assigned(function: Function) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value


def _schema(node: ast.expr | None, find: FindClass, depth: int = 0) -> dict[str, Any]:
    """Return the schema of a type; empty if it is unknown."""
    if node is None or depth > DEEPEST:
        return {}
    if isinstance(node, ast.BinOp):  # Answer | None
        return _schema(node.left, find, depth) or _schema(node.right, find, depth)
    if isinstance(node, ast.Subscript):
        base = dotted(node.value, {}).rpartition(".")[2]
        if base in ("list", "List", "Sequence"):
            return {"type": "array", "items": _schema(node.slice, find, depth + 1)}
        if base in ("Optional", "Annotated"):
            inner = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
            return _schema(inner, find, depth)
        return {"type": "object"} if base in ("dict", "Dict") else {}
    name = _text(node) or dotted(node, {})
    return {"type": PLAIN[name]} if name in PLAIN else _class(name, find, depth)


def _class(name: str, find: FindClass, depth: int) -> dict[str, Any]:
    """Return the schema of a class in the repository, with its fields and those of its bases."""
    found = find(name) if name else None
    if found is None or depth > DEEPEST:
        return {}
    properties, required = dict[str, Any](), list[str]()
    for base in found.node.bases:
        inherited = _class(dotted(base, {}), found.find, depth + 1)
        properties |= inherited.get("properties", {})
        required += inherited.get("required", [])
    for node in found.node.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            properties[node.target.id] = _schema(node.annotation, found.find, depth + 1)
            if node.value is None:
                required.append(node.target.id)
    if not properties:
        return {}
    return _object(properties, required)


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
