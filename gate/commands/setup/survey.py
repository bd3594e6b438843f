"""Finds the parts of a repository that `gate init` can start from. Reads files within bounds; imports and runs nothing.

The content is untrusted: text that does not parse is skipped, and links are not followed.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from gate.agents.sources import Sources, sources_of, what_installs
from gate.commands.setup import adapters, manifests
from gate.commands.setup.openapi import PORT, FoundAgent
from gate.commands.setup.openapi import agent_of as agent_of_openapi
from gate.commands.setup.remedies import PROVIDERS
from gate.commands.setup.routes import FindClass, FoundClass, RoutedModule, assigned_call, routes_of
from gate.errors import GateError
from gate.formats.documents import parse_document
from gate.formats.python_text import dotted, imports, parsed
from gate.formats.shapes import as_mapping
from gate.model import Suite
from gate.reports.formatting import count
from gate.security.limits import shorten
from gate.suites import format_named, load
from gate.suites.base import Loss
from gate.system.git import Git

MOST_FILES, MOST_READ, MOST_BYTES, DEEPEST = 20_000, 1_000, 300_000, 8
"""Maximum numbers of files to list, of files to read, of bytes of each, and of nested folders."""
MOST_TEXT, MOST_DATA = 20_000_000, 2_000_000
"""Maximum number of bytes to read of all files together, and to parse as YAML and JSON: it takes a few seconds."""
MOST_AGENTS, MOST_EVALUATIONS = 50, 20
MOST_LISTED = 5
"""Maximum number of files of cases of one kind to list one by one; of more, their folders are listed."""
PASSED_OVER = frozenset({"node_modules", "__pycache__", "site-packages", "build", "dist", "target", "vendor"})
SUITE_NAMES = re.compile(r"\.(evalset|test)\.json$|^promptfooconfig\.(ya?ml|json)$")
DATA_NAMES = re.compile(r"golden|dataset|evals?\b|cases", re.IGNORECASE)
OPENAPI_NAMES = re.compile(r"^(openapi|swagger)\.(json|ya?ml)$")
KEY_NAMES = re.compile(r"\b([A-Z][A-Z0-9]{1,30})_API_KEY\b")
PREFERRED = ("root_agent", "graph", "app", "agent", "crew", "assistant", "main_agent", "triage_agent")
FUNCTIONS = ("answer", "ask", "chat", "respond", "reply", "run_agent", "invoke_agent")
"""Names of functions that take a message and return an answer."""
ASKED = frozenset({"message", "question", "prompt", "query", "user_message", "user_input", "input"})
"""Names of the parameter of such a function under any other name, if its module asks a model."""
PROVIDERS_OF_MODELS = re.compile(
    r"(?:openai|anthropic|google\.genai|google\.generativeai|litellm|mistralai|cohere|groq|boto3)\b"
)
"""Packages that ask a model."""
STAMP = "# written by gate init, "
"""The beginning of the last line of a file that `gate init` wrote."""
NO_TEXT = re.compile(r"(\w+\.)?(list|dict|tuple|Sequence|Iterable|Mapping)\b", re.IGNORECASE)
"""The annotation of a parameter that takes no text, such as ``list[dict]`` for a history."""


class FoundSuite(Struct, frozen=True):
    """Existing cases, in any format."""

    source: str
    kind: str
    suites: tuple[Suite, ...] = ()
    problem: str = ""
    """The reason why they cannot be used in place."""
    conversion: str = ""
    """The command that converts the cases and leaves out the checks that the gate lacks."""


class Survey(Struct):
    """All findings in a repository."""

    agents: list[FoundAgent] = field(default_factory=list)
    suites: list[FoundSuite] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    """Prefixes of API keys' names, such as ``OPENAI``."""
    executable: str = ""
    """The folder of a virtual environment in the repository."""


class _Tree(Struct):
    root: Path
    files: dict[Path, None]
    """Paths relative to the root, in a fixed order."""
    left: int = MOST_TEXT
    """Bytes that may still be read."""
    left_to_parse: int = MOST_DATA
    """Bytes that may still be read as YAML and JSON, which takes longer."""

    read: dict[Path, str] = field(default_factory=dict)

    def text(self, path: Path) -> str:
        if path in self.read:
            return self.read[path]
        try:
            with (self.root / path).open("rb") as file:
                found = file.read(min(MOST_BYTES, self.left))
        except OSError:
            return ""
        self.left -= len(found)
        return self.read.setdefault(path, found.decode("utf-8", "replace"))

    def document(self, path: Path) -> Any:
        text = self.text(path) if self.left_to_parse > 0 else ""
        self.left_to_parse -= len(text)
        try:
            return parse_document(text, path.as_posix())
        except GateError:
            return None

    def import_name(self, path: Path) -> tuple[str, str] | None:
        """Return the import name of a module, and the folder to import it from, empty for the root; None without a
        name."""
        top = path.parent
        while top.parts and top / "__init__.py" in self.files:
            top = top.parent
        parts = path.relative_to(top).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not parts or not all(part.isidentifier() for part in parts):
            return None
        return ".".join(parts), top.as_posix() if top.parts else ""


def start_of(path: Path) -> str:
    """Return the beginning of a file; empty if it is unreadable or not a regular file: reading a pipe would block."""
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def survey(root: Path) -> Survey:
    """Examine the files of a folder."""
    tree, found = _Tree(root, dict.fromkeys(_files(root))), Survey()
    agents = list(_graphs_in_langgraph(tree))
    routed: dict[Path, RoutedModule] = {}
    python = [path for path in tree.files if path.suffix == ".py" and path.stem != adapters.MODULE][:MOST_READ]
    tests = [path for path in python if _is_test(path)]
    for path in python:
        module = None if _is_test(path) else parsed(tree.text(path))
        if module is None:
            continue
        found.keys |= _keys_in(tree.text(path), module)
        routed[path] = routes_of(module, _class_finder(tree, path, module))
        agents += _agents_in_module(tree, path, module, routed[path])
    for path in tree.files:
        if OPENAPI_NAMES.match(path.name):
            described = agent_of_openapi(tree.document(path))
            if described is not None:
                agents.append(replace(described, where=path.as_posix(), rank=(6,)))
        if path.name.startswith(".env") and path.name != ".env":  # a sample of the file; the file itself holds secrets
            found.keys |= set(KEY_NAMES.findall(tree.text(path)))
    agents += _servers(tree, routed)
    agents += _in_manifests(tree, found)
    found.agents = sorted(_without_repeats(agents)[:MOST_AGENTS], key=lambda one: one.rank)
    found.suites = _suites(tree)
    _look_at_tests(tree, python, found)
    if tests:
        found.notes.append(f"{count(len(tests), 'test file')}: `pytest --gate gate.yaml` shows the cases among them")
    for name in (".venv", "venv", "env"):
        if (root / name / "pyvenv.cfg").is_file():
            found.executable = name
            break
    return found


def _keys_in(text: str, module: ast.Module) -> set[str]:
    """Return the prefixes of the keys that a module seems to need; none if it imports nothing."""
    if not imports(module.body):
        return set()
    return {*KEY_NAMES.findall(text), *(prefix for prefix, pattern, _ in PROVIDERS if re.search(pattern, text))}


def _without_repeats(agents: Iterable[FoundAgent]) -> list[FoundAgent]:
    """Return the agents without those that were found before: langgraph.json names a module's graph, too."""
    kept: list[FoundAgent] = []
    adapted: set[str] = set()
    for agent in agents:
        if agent.adapter not in adapted:
            kept.append(agent)
        if agent.adapter:
            adapted.add(agent.adapter)
    return kept


def sources_of_agent(root: Path, agent: FoundAgent) -> Sources:
    """Return the files of an agent, none if the gate does not start it."""
    if agent.module is None:
        return Sources()
    git, top = Git(root, environment=os.environ), root
    files: Iterable[str] | None = git.files()
    if files is None:
        files = map(Path.as_posix, _files(root))
    else:
        top = git.top()
    root = Path(os.path.realpath(root))
    top = Path(os.path.realpath(top))
    return sources_of([agent.module.as_posix()], root, files, installs=what_installs(root, top, ""), top=top)


def _files(root: Path) -> Iterator[Path]:
    listed = 0
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        depth = len(here.relative_to(root).parts)
        folders[:] = sorted(name for name in folders if depth < DEEPEST and _is_entered(here / name))
        for name in sorted(names):
            if listed >= MOST_FILES:
                return
            if not (here / name).is_symlink() and (here / name).is_file():
                listed += 1
                yield (here / name).relative_to(root)


def _is_entered(folder: Path) -> bool:
    hidden = folder.name.startswith(".") or folder.name in PASSED_OVER
    return not (hidden or folder.is_symlink() or (folder / "pyvenv.cfg").exists())


def _is_test(path: Path) -> bool:
    return path.name.startswith(("test_", "conftest")) or path.name.endswith("_test.py") or "tests" in path.parts


# --- agents ---------------------------------------------------------------------------------------


def _graphs_in_langgraph(tree: _Tree) -> Iterator[FoundAgent]:
    """Yield the graphs that ``langgraph.json`` names, such as ``./folder/file.py:variable``."""
    for path in tree.files:
        if path.name != "langgraph.json":
            continue
        graphs = as_mapping(as_mapping(tree.document(path)).get("graphs"))
        for name, target in list(graphs.items())[:20]:
            if isinstance(target, dict):
                target = target.get("path")  # noqa: PLW2901
            file, _, variable = str(target).partition(":")
            place = Path(os.path.normpath(path.parent / file))
            if place.suffix != ".py" or place not in tree.files or not variable.isidentifier():
                continue
            is_made = f"def {variable}(" in tree.text(place)
            call = f"{variable}()" if is_made else variable
            why = f"{path.as_posix()} names the graph {name!r}"
            yield from _with_adapter(tree, "LangGraph", place, variable, call, 1, why, rank=0)


def _agents_in_module(tree: _Tree, path: Path, module: ast.Module, routed: RoutedModule) -> Iterator[FoundAgent]:
    names, made_by = imports(module.body), _returned_calls(module)
    asks_provider = any(re.match(PROVIDERS_OF_MODELS, name) for name in names.values())
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            if any(dotted(one, names).endswith("crewai.project.CrewBase") for one in node.decorator_list):
                call, why = f"{node.name}().crew()", f"class {node.name}, @CrewBase"
                yield from _with_adapter(tree, "CrewAI", path, node.name, call, node.lineno, why)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name not in routed.functions:
                yield from _function(tree, path, node, asks_provider=asks_provider)
        else:
            yield from _assigned(tree, path, node, names, made_by)


MADE_BY = (
    (re.compile(r"^google\.adk\..*\w*Agent$"), "Google ADK"),
    (re.compile(r"^agents\.Agent$"), "OpenAI Agents SDK"),
    (re.compile(r"^pydantic_ai\.(\w+\.)*Agent$"), "pydantic-ai"),
    (re.compile(r"^crewai\.(\w+\.)*Crew$"), "CrewAI"),
    (re.compile(r"^(langchain\.agents\.create_agent|langgraph\.prebuilt\.\w*create_react_agent)$"), "LangGraph"),
)
"""The call that creates an agent → the framework."""


def _returned_calls(module: ast.Module) -> dict[str, ast.Call]:
    """Return the module's functions whose last statement is ``return call(…)``, each with that call."""
    found = {}
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and isinstance(node.body[-1], ast.Return):
            value = node.body[-1].value
            if isinstance(value, ast.Call):
                found[node.name] = value
    return found


def _assigned(
    tree: _Tree, path: Path, node: ast.stmt, names: Mapping[str, str], made_by: Mapping[str, ast.Call]
) -> Iterator[FoundAgent]:
    """Yield the agent of ``name = Agent(…)`` at the top of a module, or of ``name = build()``.

    ``made_by`` maps the module's functions to the call that each returns.
    """
    assigned = assigned_call(node)
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
        if framework != "Google ADK" or name == "root_agent":
            why = f"{name} = {shorten(ast.unparse(call.func), 60)}(…)"
            yield from _with_adapter(tree, framework, path, name, name, node.lineno, why)
        break


def _in_manifests(tree: _Tree, found: Survey) -> Iterator[FoundAgent]:
    """Yield the agents that package.json and promptfoo's configuration name; what docker compose publishes is a note
    in ``found``."""
    names = {path.as_posix() for path in tree.files}

    def text_of(name: str) -> str:
        return tree.text(Path(name))

    for path in tree.files:
        folder = path.parent.as_posix() if path.parent.parts else ""
        if path.name == manifests.PACKAGE:
            yield from manifests.agents_in_package(tree.document(path), folder, names, text_of)
        elif manifests.PROMPTFOO.fullmatch(path.name):
            for provider in manifests.providers_in(tree.document(path), folder):
                yield from _provider(tree, provider, path)
        elif manifests.COMPOSE.fullmatch(path.name):
            for service, port in manifests.published_in(tree.document(path)):
                address = f"http://127.0.0.1:{port}"
                told = f"{path.as_posix()}: publishes {service} at {address}; once it runs: gate init --url {address}"
                found.notes.append(told)


def _provider(tree: _Tree, provider: manifests.Provider, config: Path) -> Iterator[FoundAgent]:
    place = Path(provider.file)
    module = parsed(tree.text(place)) if place in tree.files else None
    for node in module.body if module is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == provider.function:
            call = provider.call(is_async=isinstance(node, ast.AsyncFunctionDef))
            why = f"{config.as_posix()} names it"
            yield from _with_adapter(
                tree, "promptfoo's provider", place, provider.function, call, node.lineno, why, rank=1
            )


def _function(
    tree: _Tree, path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef, *, asks_provider: bool
) -> Iterator[FoundAgent]:
    """Yield the agent of a function that takes a message, near the top of the repository.

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
    why = f"def {node.name}({taken.arg})"
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
        section = _python(f"{place[0]}:{node.name}", place[1])
        where = f"{path.as_posix()}:{node.lineno}"
        yield FoundAgent("a Python function", why, section, where=where, rank=rank, module=path)


def _returns(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(one, ast.Return) and one.value is not None for one in ast.walk(node))


def _with_adapter(
    tree: _Tree, framework: str, path: Path, name: str, call: str, line: int, why: str, *, rank: int = 2
) -> Iterator[FoundAgent]:
    """Yield the agent of a framework, unless its module cannot be imported; ``call`` is the expression for it."""
    preferred = PREFERRED.index(name) if name in PREFERRED else len(PREFERRED)
    place = tree.import_name(path)
    if place is not None:
        yield FoundAgent(
            framework,
            why,
            _python(f"{adapters.MODULE}:answer", place[1]),
            where=f"{path.as_posix()}:{line}",
            rank=(rank, preferred, -line),
            adapter=adapters.adapter(framework, place[0], name, call),
            module=path,
        )


def _python(target: str, folder: str) -> dict[str, Any]:
    """Return the section ``agent``; ``folder`` is where modules are imported from, empty for the root."""
    return {"python": target, "path": [folder]} if folder else {"python": target}


def _class_finder(tree: _Tree, path: Path, module: ast.Module) -> FindClass:
    """Return a function that finds a class by name: in this module, or in one of the repository that it imports."""
    own = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    absolute = imports(module.body)
    relative = {}
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and 0 < node.level <= len(path.parents):
            folder = path.parents[node.level - 1]
            for alias in node.names:
                relative[alias.asname or alias.name] = folder, f"{node.module or ''}.{alias.name}"

    def find(name: str) -> FoundClass | None:
        if name in own:
            return FoundClass(own[name], find)
        first, dot, rest = name.partition(".")
        folders, target = list(path.parents), absolute.get(first, first) + dot + rest
        if name in relative:
            folder, target = relative[name]
            folders = [folder]
        *package, last = [part for part in target.split(".") if part]
        if not package:
            return None
        for folder in folders:
            place = folder.joinpath(*package).with_suffix(".py")
            if place == path or place not in tree.files:
                continue
            program = parsed(tree.text(place))
            if program is not None:
                return _class_finder(tree, place, program)(last)
        return None

    return find


STARTS = {
    "FastAPI": "uvicorn {folder}{module}:{app} --port {port}",
    "Starlette": "uvicorn {folder}{module}:{app} --port {port}",
    "Flask": "{path}flask --app {module}:{app} run --port {port}",
}
"""The command that starts a server of each framework; ``folder`` and ``path`` are for modules outside the root."""


def _servers(tree: _Tree, modules: Mapping[Path, RoutedModule]) -> Iterator[FoundAgent]:
    """Yield the server of each module that has an app: its routes, and those of routers in other modules."""
    routers: dict[str, Any] = {}
    ports: dict[str, int] = {}
    for routed in modules.values():
        ports |= routed.ports
        if not routed.app:
            routers |= routed.paths
    for path, routed in modules.items():
        if not routed.app:
            continue
        place = tree.import_name(path)
        if place is None:
            continue
        module, folder = place
        port = routed.ports.get(routed.app) or ports.get(f"{module}:{routed.app}") or PORT
        address = f"http://127.0.0.1:{port}"
        described = agent_of_openapi({"servers": [{"url": address}], "paths": {**routers, **routed.paths}})
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
        yield replace(described, where=where, rank=(6,), framework=routed.framework, start=start)


# --- suites and tests -----------------------------------------------------------------------------


def _suites(tree: _Tree) -> list[FoundSuite]:
    named = [path for path in tree.files if SUITE_NAMES.search(path.name)]
    for path in tree.files:
        if len(named) >= MOST_READ:
            break
        if path not in named and _may_hold_cases(tree, path) and _holds_cases(tree.document(path)):
            named.append(path)
    found = []
    for kind, sources in _grouped(tree, named).items():
        for source in sources[:20]:
            found.append(_read(tree.root, source, kind))
    return found


def _may_hold_cases(tree: _Tree, path: Path) -> bool:
    if path.suffix not in (".yaml", ".yml", ".json"):
        return False
    evalview = path.suffix != ".json" and path.parts[0] == "tests" and (tree.root / ".evalview").is_dir()
    return evalview or DATA_NAMES.search(path.as_posix()) is not None


def _holds_cases(content: Any) -> bool:
    """True for a mapping of one EvalView case or of cases, or a list such as DeepEval's goldens."""
    if isinstance(content, dict):
        return {"name", "input", "expected"} <= content.keys() or isinstance(content.get("cases"), list)
    first = content[0] if isinstance(content, list) and content else None
    return isinstance(first, dict) and "input" in first and bool({"expected_output", "expected"} & first.keys())


def _grouped(tree: _Tree, paths: Sequence[Path]) -> dict[str, list[str]]:
    """Return kind → its sources: each file, or their folders if there are many."""
    kinds: dict[str, list[Path]] = {}
    for path in paths:
        kinds.setdefault(_kind(path, tree), []).append(path)
    grouped = {}
    for kind, members in kinds.items():
        if len(members) > MOST_LISTED:
            members = sorted({path.parent for path in members})  # noqa: PLW2901
        grouped[kind] = [path.as_posix() for path in members]
    return grouped


def _kind(path: Path, tree: _Tree) -> str:
    if path.name.endswith((".evalset.json", ".test.json")):
        return "ADK eval sets"
    if path.name.startswith("promptfooconfig."):
        return "promptfoo's configuration"
    return "EvalView's cases" if path.suffix != ".json" and (tree.root / ".evalview").is_dir() else "cases"


def _read(root: Path, source: str, kind: str) -> FoundSuite:
    losses = list[Loss]()
    try:
        return FoundSuite(source, kind, tuple(load([Path(source)], root=root)))
    except GateError as error:
        problem = f"cannot be read: {error}"
    try:
        suites = load([Path(source)], root=root, losses=losses)
    except GateError:
        return FoundSuite(source, kind, problem=problem)
    if not any(loss.check for loss in losses):
        return FoundSuite(source, kind, problem=problem)
    converted, conversion = _conversion_of(Path(source))
    if (root / converted).is_file():
        return FoundSuite(source, kind, problem=f"converted to {converted}")
    return FoundSuite(source, kind, problem=_lossy(suites, losses, conversion), conversion=conversion)


def _conversion_of(source: Path) -> tuple[str, str]:
    """Return the file that cases are converted to, and the command."""
    name = "-".join([*source.parent.parts, source.stem])
    converted = f"evals/{name or 'cases'}.json"
    return converted, shlex.join(["gate", "import", source.as_posix(), "--to", converted, "--allow-loss"])


def _lossy(suites: Sequence[Suite], losses: Sequence[Loss], conversion: str) -> str:
    """Return the finding about cases of which some checks would be lost."""
    cases = sum(len(suite.cases) for suite in suites)
    lost = sum(loss.check for loss in losses)
    told = f"{count(lost, 'check')} that {'is' if lost == 1 else 'are'} lost"
    return f"{count(cases, 'case')} can be read; `{conversion}` writes them and lists {told}"


def _look_at_tests(tree: _Tree, python: Sequence[Path], found: Survey) -> None:
    """Read the cases in Python tests, which stay in place, since nothing else can run the tests."""
    form = format_named("python-tests")
    tests = [path for path in python if form.recognises(tree.text(path))]
    for path in tests[:MOST_EVALUATIONS]:
        _look_at_test(tree, path, found)


def _is_known(path: Path, found: Survey) -> bool:
    """True if a suite already found contains this file or folder, or lies inside it."""
    for suite in found.suites:
        source = Path(suite.source)
        if path == source or path in source.parents or source in path.parents:
            return True
    return False


def _look_at_test(tree: _Tree, path: Path, found: Survey) -> None:
    """Add the cases of a google-adk, DeepEval or Pydantic Evals test, unless they are in files already found."""
    refers = format_named("python-tests").refers
    assert refers is not None
    named = [Path(os.path.relpath(one, tree.root)) for one in refers(tree.root / path, tree.root)]
    if named and all(_is_known(one, found) for one in named):
        told = ", ".join(one.as_posix() for one in named[:3])
        found.notes.append(f"{path.as_posix()}: it evaluates {told}, used in place")
        return
    losses = list[Loss]()
    try:
        suites = tuple(load([path], root=tree.root, losses=losses))
    except GateError as error:
        found.notes.append(f"{path.as_posix()}: no cases can be read from it: {error}")
        return
    if not any(loss.check for loss in losses):
        found.suites.append(FoundSuite(path.as_posix(), "cases in a test", suites))
        return
    found.notes.append(f"{path.as_posix()}: {_lossy(suites, losses, _conversion_of(path)[1])}")
