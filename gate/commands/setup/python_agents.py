"""Finds agents in Python code: functions that take a message, and the agents of known frameworks."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from gate.commands.setup import adapters
from gate.commands.setup.found import STAMP, FoundAgent, Survey, python_section
from gate.commands.setup.remedies import PROVIDERS
from gate.commands.setup.servers import add_servers, handlers_in
from gate.commands.setup.tree import Tree
from gate.formats.python_text import dotted, imports, parsed
from gate.security.limits import shorten

MOST_MODULES = 1_000
"""Maximum number of modules to read."""
KEY_NAMES = re.compile(r"\b([A-Z][A-Z0-9]{1,30})_API_KEY\b")
FUNCTIONS = ("answer", "ask", "chat", "respond", "reply", "run_agent", "invoke_agent")
"""Names of functions that take a message and return an answer."""
ASKED = frozenset({"message", "question", "prompt", "query", "user_message", "user_input", "input"})
"""Names of the parameter of such a function under any other name, if its module asks a model."""
PROVIDERS_OF_MODELS = re.compile(
    r"(?:openai|anthropic|google\.genai|google\.generativeai|litellm|mistralai|cohere|groq|boto3)\b"
)
"""Packages that ask a model."""
NO_TEXT = re.compile(r"(\w+\.)?(list|dict|tuple|Sequence|Iterable|Mapping)\b", re.IGNORECASE)
"""The annotation of a parameter that takes no text, such as ``list[dict]`` for a history."""
MADE_BY = (
    (re.compile(r"^google\.adk\..*\w*Agent$"), "Google ADK"),
    (re.compile(r"^agents\.Agent$"), "OpenAI Agents SDK"),
    (re.compile(r"^pydantic_ai\.(\w+\.)*Agent$"), "pydantic-ai"),
    (re.compile(r"^crewai\.(\w+\.)*Crew$"), "CrewAI"),
    (re.compile(r"^(langchain\.agents\.create_agent|langgraph\.prebuilt\.\w*create_react_agent)$"), "LangGraph"),
)
"""The call that creates an agent → the framework."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_files(tree: Tree) -> list[Path]:
    """Return the modules to read, tests among them."""
    return [path for path in tree.files if path.suffix == ".py" and path.stem != adapters.MODULE][:MOST_MODULES]


def is_test(path: Path) -> bool:
    """True if a module holds tests."""
    return path.name.startswith(("test_", "conftest")) or path.name.endswith("_test.py") or "tests" in path.parts


def add_python_agents(tree: Tree, found: Survey) -> None:
    """Add the agents and servers of all modules but tests, and the keys that these modules seem to need."""
    texts: dict[Path, str] = {}
    for path in python_files(tree):
        if is_test(path):
            continue
        text = tree.text(path)
        module = parsed(text)
        if module is None:
            continue
        texts[path] = text
        names, handlers = imports(module.body), handlers_in(text)
        if names:
            found.keys |= _keys_in(text)
        asks_provider = any(re.match(PROVIDERS_OF_MODELS, name) for name in names.values())
        made_by = _returned_calls(module)
        for node in module.body:
            if isinstance(node, ast.ClassDef):
                _add_crew(tree, path, node, names, found)
            elif not isinstance(node, Function):
                _add_assigned(tree, path, node, names, made_by, found)
            elif node.name not in handlers:
                _add_function(tree, path, node, found, asks_provider=asks_provider)
    add_servers(tree, texts, found)


def _keys_in(text: str) -> set[str]:
    """Return the prefixes of the keys that a module seems to need."""
    keys = set(KEY_NAMES.findall(text))
    for prefix, pattern, _ in PROVIDERS:
        if re.search(pattern, text):
            keys.add(prefix)
    return keys


def _add_crew(tree: Tree, path: Path, node: ast.ClassDef, names: Mapping[str, str], found: Survey) -> None:
    if any(dotted(one, names).endswith("crewai.project.CrewBase") for one in node.decorator_list):
        why = f"class {node.name}, @CrewBase"
        found.add_adapted(tree, "CrewAI", path, node.name, node.lineno, why, call=f"{node.name}().crew()")


def _returned_calls(module: ast.Module) -> dict[str, ast.Call]:
    """Return the module's functions whose last statement is ``return call(…)``, each with that call."""
    found = {}
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and isinstance(node.body[-1], ast.Return):
            value = node.body[-1].value
            if isinstance(value, ast.Call):
                found[node.name] = value
    return found


def _assigned_call(node: ast.stmt) -> tuple[str, ast.Call] | None:
    """Return the name and the call of ``name = call(…)``; None for any other statement."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    value = getattr(node, "value", None)
    if isinstance(target, ast.Name) and isinstance(value, ast.Call):
        return target.id, value
    return None


def _add_assigned(
    tree: Tree, path: Path, node: ast.stmt, names: Mapping[str, str], made_by: Mapping[str, ast.Call], found: Survey
) -> None:
    """Add the agent of ``name = Agent(…)`` at the top of a module, or of ``name = build()``.

    ``made_by`` maps the module's functions to the call that each returns.
    """
    assigned = _assigned_call(node)
    if assigned is None:
        return
    name, call = assigned
    maker = dotted(call.func, names)
    made = made_by.get(maker, call)
    is_compiled = isinstance(made.func, ast.Attribute) and made.func.attr == "compile"
    is_compiled = is_compiled and dotted(made.func, names) != "re.compile"
    if is_compiled and any(imported.startswith("langgraph.") for imported in names.values()):
        maker = "langgraph.prebuilt.create_react_agent"  # a graph built by hand
    elif made is not call:
        maker = dotted(made.func, names)
    for pattern, framework in MADE_BY:
        if not pattern.match(maker):
            continue
        if framework == "Google ADK" and name != "root_agent":
            break
        why = f"{name} = {shorten(ast.unparse(call.func), 60)}(…)"
        found.add_adapted(tree, framework, path, name, node.lineno, why)
        break


def _add_function(tree: Tree, path: Path, node: Function, found: Survey, *, asks_provider: bool) -> None:
    """Add the agent of a function that takes a message, near the top of the repository.

    ``asks_provider``: its module uses a provider's models, so any function that takes a question may be the agent.
    """
    arguments = node.args
    required = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    if required != 1 or len(path.parts) > 3:
        return
    taken = [*arguments.posonlyargs, *arguments.args][0]
    annotated = "" if taken.annotation is None else ast.unparse(taken.annotation).strip("'")
    if taken.arg != "messages" and NO_TEXT.match(annotated):
        return
    if node.name in FUNCTIONS:
        rank: tuple[int, ...] = (5, FUNCTIONS.index(node.name), len(path.parts))
    elif asks_provider and taken.arg in ASKED and not node.name.startswith("_") and _returns(node):
        rank = (5, len(FUNCTIONS), len(path.parts))
    else:
        return
    if STAMP in tree.text(path):  # the sample that an earlier `gate init` wrote, to be replaced
        rank = (8,)
    place = tree.import_name(path)  # a module in a package may use relative imports
    if place is not None:
        why, where = f"def {node.name}({taken.arg})", f"{path.as_posix()}:{node.lineno}"
        section = python_section(f"{place[0]}:{node.name}", place[1])
        found.agents.append(FoundAgent("a Python function", why, section, where=where, rank=rank, module=path))


def _returns(node: Function) -> bool:
    return any(isinstance(one, ast.Return) and one.value is not None for one in ast.walk(node))
