"""Finds the files that make up an agent: its modules, what they import and name, prompts, and what installs it."""

from __future__ import annotations

import ast
import json
import os
import posixpath
import re
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from gate.agents.base import AgentOptions
from gate.agents.requirements import (
    MOST_BYTES,
    holds_requirements,
    names_in,
    paths_in,
    plain,
    started_by,
    text_on_disk,
)
from gate.agents.scripts import started_by_name
from gate.formats.python_text import parsed
from gate.system.git import Git

INSTALLED = re.compile(
    r"(?:requirements|constraints)[\w.-]*|(?:pyproject|pylock|mise)[\w.-]*\.toml|setup\.(?:py|cfg)|Pipfile|environment\.ya?ml"
    r"|package\.json|package-lock\.json|npm-shrinkwrap\.json|pnpm-(?:lock|workspace)\.yaml|go\.(?:mod|sum)|Cargo\.toml"
    r"|Gemfile|composer\.json|pom\.xml|[\w.-]*\.gradle(?:\.kts)?|[\w.-]+\.(?:lock|lockb|csproj)"
    r"|(?:[\w.-]+\.)?Dockerfile[\w.-]*|(?:docker-)?compose[\w.-]*\.ya?ml|\.tool-versions|\.python-version|\.nvmrc|\.env[\w.-]*"
    r"|(?:uv|poetry|pdm|hatch|pixi|bunfig)\.toml|pip\.(?:conf|ini)|\.npmrc|\.yarnrc(?:\.yml)?|\.pnpmfile\.[cm]?js"
    r"|tsconfig[\w.-]*\.json|deno\.jsonc?|go\.work|Directory\.(?:Build|Packages)\.props|nuget\.config"
)
"""Names of files that define what is installed or set for an agent."""
MATERIAL = frozenset(
    (
        *("prompts", "prompt", "skills", "instructions", "templates", "knowledge", "tools", "config", "conf"),
        *(".claude", ".codex", ".gemini", ".agents"),
    )
)
"""Names of folders that hold an agent's prompts, settings and tools."""
_IMPLIED = re.compile(
    r"(?:CLAUDE|AGENTS|GEMINI)(?:\.[\w-]+)?\.md|\.mcp\.json|\.env[\w.-]*|\.?(?:settings|secrets|config)\.(?:ini|json|toml|ya?ml)"
)
"""Names of files that a framework or another agent reads although no code names them."""
MOST_READ = 1_000
_OPAQUE = re.compile(
    r"\b(import_module|__import__|pkgutil|runpy|iterdir|listdir|scandir|r?glob|f?walk(?=\()|(?:iter_)?entry_points"
    r"|subprocess|create_subprocess_\w+|os\.(?:system|popen|exec\w+|p?spawn\w+)|pexpect|pty\.spawn)\b|[\"']-m[\"']"
)
"""Ways to find files or modules that the code does not name, and to start programs, which may read anything."""
_MOVES_PATH = re.compile(r"\bsys\.path\b|\baddsitedir\b|\bPYTHONPATH\b")
"""Ways to change where modules are found."""
_SCRIPTS = re.compile(r"\.(?:bash|bat|cmd|fish|ksh|ps1|sh|zsh)")
"""Suffixes of scripts: their words name files, programs and patterns of names, in ways that nobody follows here."""
_PROGRAMS = re.compile(
    r"\.(?:bash|bat|[cm]?jsx?|dll|exe|go|ipynb|jar|java|kt|lua|php|pl|ps1|py[cx]|rb|rs|sh|so|[cm]?tsx?)"
)
"""Suffixes of programs in other languages, whose imports nobody follows here."""
_SETTINGS = frozenset(
    (".yaml", ".yml", ".json", ".jsonl", ".toml", ".ini", ".cfg", ".conf", ".env", ".xml", ".properties")
)
"""Suffixes of files in which a single word may name a folder."""
_TEXTS = _SETTINGS | {".md", ".txt", ".text", ".rst", ".prompt", ".prompty", ".j2", ".jinja", ".jinja2", ".tmpl"}
"""Suffixes that code may add to the name of a text or a setting."""
_DISTRIBUTION = ("pyproject.toml", "setup.py", "setup.cfg")
"""Files that make a folder a distribution, which is installed as a whole."""
_FILLED_IN = re.compile(r"\{[^{}]*\}|%\(?\w*\)?[sdri]|\$\{?\w+\}?|\*+")
_END_OF_NAME = re.compile(r"[\w-]*\.\w{1,8}")
_DOTTED = re.compile(r"(\w+(?:\.\w+)*)(?::\w+)?")


class Sources(Struct, frozen=True):
    """The files that make up an agent, or the reason why nobody can tell without running it."""

    names: tuple[str, ...] = ()
    """In the form of `agent.sources`: files, folders that end with a slash, and globs."""
    problem: str = ""


class _UntracedError(Exception):
    """Something that the agent reads cannot be traced; the message says what."""


STARTS_UNKNOWN = (
    "the command names no program of this repository, so it may read anything; name one, such as [python, agent.py]"
)
"""The reason why no sources of an agent can be told."""


class AgentFiles:
    """The files of a repository, and which of them are an agent's: what starts it, installs it, and is read by it."""

    def __init__(self, kind: str, options: AgentOptions, git: Git, setup: str) -> None:
        """``setup``: the commands that install the agent."""
        self._kind, self._options, self._git, self._setup = kind, options, git, setup

    @cached_property
    def files(self) -> Mapping[str, str | None] | None:
        """The result of `Git.files` when it is first asked for; None outside a repository."""
        return self._git.files()

    @cached_property
    def starts(self) -> list[str]:
        """The files that start the agent, with the packages around them; none if that is unknown.

        Nobody can tell what `make ask`, `docker compose run agent` or a shell script reads. A program in any other
        language is started by a file, and a module by its place: in the agent's folder, else anywhere. A project's file
        may say which of them a name stands for.
        """
        found = dict[str, None]()
        words, modules = started_by_name(self._options.entry, self._git.root)
        for word in (*self._options.entry, *words):
            kind = _kind_of_program(self._git.root / word)
            if kind == "script":
                return []
            if kind and self._is_of_repository(word):
                found[word] = None
        files = self.files or {}
        for module in (*self._options.modules, *modules):
            place = module.replace(".", "/")
            ends = (f"{place}.py", f"{place}/__init__.py", f"{place}/__main__.py")
            here = [name for name in files if name in ends]
            if not here and not found:
                here = [name for name in files if name.endswith(tuple([f"/{end}" for end in ends]))]
            found |= dict.fromkeys(here)
        for name in list(found):
            folder = posixpath.dirname(name)
            while f"{folder}/__init__.py" in files:
                found[f"{folder}/__init__.py"] = None
                folder = posixpath.dirname(folder)
        return list(found)

    def _is_of_repository(self, name: str) -> bool:
        """True unless a file is ignored or elsewhere: what builds or installs such a program, its name does not say."""
        path = PurePosixPath(name)
        return self.files is None or any(str(one) in self.files for one in (path, *path.parents))

    @cached_property
    def installs(self) -> list[str]:
        """The tracked files and folders that install the agent, whatever its sources say."""
        if self.files is None:
            return []
        tracked = set[str]()
        for name, commit in self.files.items():
            name = name.rstrip("/")  # noqa: PLW2901
            while commit is not None and name and name not in tracked:
                tracked.add(name)
                name = posixpath.dirname(name)  # noqa: PLW2901
        found = []
        for name in what_installs(self._git.root.resolve(), self._git.top(), self._setup):
            above = map(str, PurePosixPath(name).parents[:-1])
            if not tracked.isdisjoint((name, *above)):  # it may be in a submodule
                found.append(name)
        return found

    @property
    def sources(self) -> tuple[str, ...]:
        """The globs of `agent.sources` as far as they have an effect; none if every file counts."""
        if self.files is not None and not self.starts:
            return ()
        return self._options.sources

    @property
    def entry(self) -> tuple[str, ...]:
        """Names of files and folders that count whatever the globs say: what starts and what installs the agent."""
        return (*self._options.entry, *self.starts, *self.installs)

    @property
    def proposed(self) -> Sources:
        """The sources that `agent.sources` could state, or the reason why they cannot be told."""
        if not self.starts:
            return Sources(problem=STARTS_UNKNOWN)
        named = [value for value in self._options.env.values() if value]
        if self._kind != "python":
            named += self._options.entry
        top = self._git.top() if self.files is not None else None
        entry = (*self._options.entry, *self.starts)
        return sources_of(entry, self._git.root.resolve(), self.files or (), named, self.installs, top)


def _kind_of_program(path: Path) -> str:
    """Return ``script`` for a script of a shell, ``program`` for another program's source, empty for anything else."""
    try:
        if not path.is_file():
            return ""
        if _SCRIPTS.fullmatch(path.suffix):
            return "script"
        if path.suffix == ".py" or _PROGRAMS.fullmatch(path.suffix):
            return "program"
        with path.open("rb") as file:
            first = file.readline(200)
    except (OSError, ValueError):  # ValueError: a null character
        return ""
    if not first.startswith(b"#!"):
        return ""
    return "script" if re.search(rb"sh\b", first) else "program"


def sources_of(
    entry: Iterable[str],
    root: Path,
    files: Iterable[str],
    named: Iterable[str] = (),
    installs: Iterable[str] = (),
    top: Path | None = None,
) -> Sources:
    """Return the sources of an agent, but only if everything that it reads is accounted for.

    Each import has to be of the standard library, of a file of the repository, or of a distribution that the
    requirements name. A file counts if a module, a text or a setting that is read names it, and is read in turn.

    Args:
        entry: names of files that start the agent.
        root: the folder of the configuration.
        files: all files of the repository, relative to the root.
        named: other words that may name files, such as arguments and variables.
        installs: the files that define what is installed.
        top: the repository's folder; None: ``root``.
    """
    own = PurePosixPath("." if top is None else os.path.relpath(root, top))

    def from_top(names: Iterable[str]) -> list[Path]:
        return [Path(os.path.normpath(own / name)) for name in names]

    search = _Search(root if top is None else top, Path(own), from_top(files))
    try:
        search.follow(from_top(entry), named, from_top(installs))
    except _UntracedError as problem:
        return Sources(problem=str(problem))
    names = _without_covered(search.found)
    if own.parts:
        names = tuple([os.path.relpath(name, own) + "/" * name.endswith("/") for name in names])
    return Sources(names)


class _Search:
    """The files that are known to be the agent's, and those that are still to be read."""

    def __init__(self, root: Path, own: Path, files: Iterable[Path]) -> None:
        """``root`` is the repository's folder; ``own`` is the agent's in it, where its names are looked up first."""
        self.root, self.own, self.known = root, own, frozenset(files)
        self.moves_path = False
        self.below: dict[Path, list[Path]] = {}
        """The files below each folder except the root."""
        self.named: dict[str, list[Path]] = {}
        """Files and folders by name."""
        self.ended: dict[str, list[Path]] = {}
        """Files by the end of their name after its last dot; empty for names without a dot."""
        self.texts: dict[str, list[Path]] = {}
        """Texts and settings by name without the suffix; none in a hidden folder, such as ``.github``."""
        for path in sorted(self.known):
            for folder in path.parents[:-1]:
                self.below.setdefault(folder, []).append(path)
            self.ended.setdefault(path.name.rpartition(".")[2] if "." in path.name else "", []).append(path)
            if path.suffix in _TEXTS and not any(name.startswith(".") for name in path.parts):
                self.texts.setdefault(path.stem, []).append(path)
        places = {*self.known, *self.below}
        for path in sorted(places):
            self.named.setdefault(path.name, []).append(path)
        self.inside = {path for path in places if path.is_relative_to(own)}
        """The files and folders in the agent's own folder."""
        self.found: dict[str, None] = {}
        self.open: list[Path] = []
        self.seen: set[Path] = set()
        self.read_whole: set[Path] = set()
        self.required: set[str] = set()
        """Names of distributions, as `names_in` returns them."""

    def follow(self, entry: Iterable[Path], named: Iterable[str], installs: Iterable[Path]) -> None:
        for path in entry:
            if path in self.known:  # not a folder, in which only the modules that are imported count
                self.add(path)
        for path in installs:
            if path not in self.below:
                self._read_requirements(path)
        for word in named:
            self._add_named(word, self.own / "variables.env")
        if not any(path.suffix == ".py" for path in self.open):
            raise _UntracedError("no tracked Python file is known to start the agent")
        self._read_all()
        for path in sorted({*self.known, *self.below}):
            if path not in self.inside and not self.own.is_relative_to(path.parent):
                continue  # neither in the agent's folder, nor directly in one above it
            if (path in self.below and path.name in MATERIAL) or (path in self.known and _IMPLIED.fullmatch(path.name)):
                self.add(path)
        self._read_all()

    def _nearest(self, paths: Sequence[Path]) -> Sequence[Path]:
        """Return those in the agent's folder; all if there are none, or if the code changes where modules are found."""
        if self.moves_path:
            return paths
        return [path for path in paths if path in self.inside] or paths

    def add(self, path: Path) -> bool:
        """Count a file, the whole package or distribution that a module is in, or a whole folder, and read it.

        The modules of the packages around a module are imported first, so they are read, too. Returns False if there is
        no such file or folder.
        """
        if path in self.below:
            if path not in self.read_whole:
                self.read_whole.add(path)
                self.found[f"{path.as_posix()}/"] = None
                self.open += self.below[path]
            return True
        if path not in self.known:
            return False
        self.open.append(path)
        whole = path
        if path.suffix == ".py":
            for folder in path.parents[:-1]:
                if folder / "__init__.py" not in self.known:
                    break
                whole = folder
                self.open.append(folder / "__init__.py")
            for folder in path.parents[:-1]:
                if any(folder / name in self.known for name in _DISTRIBUTION):
                    whole = folder
                    self._read_requirements_of(folder)
        self.found[path.as_posix() if whole == path else f"{whole.as_posix()}/"] = None
        return True

    # --- files ------------------------------------------------------------------------------------

    def _read_all(self) -> None:
        while self.open:
            path = self.open.pop(0)
            if path in self.seen:
                continue
            self.seen.add(path)
            if len(self.seen) > MOST_READ:
                raise _UntracedError(f"the agent may read more than {MOST_READ} files")
            content = self._content(path)
            if path.suffix == ".py":
                self._read_module(path, content)
            elif _PROGRAMS.fullmatch(path.suffix) or content.startswith("#!"):
                raise _UntracedError(f"{path.as_posix()} is a program that is not in Python")
            elif INSTALLED.fullmatch(path.name):
                self.seen.remove(path)
                self._read_requirements(path)
            else:
                self._read_text(path, content)

    def _content(self, path: Path) -> str:
        """Return the text of a file, empty if it is binary."""
        problem = f"{path.as_posix()} is a link, unreadable or too large to look into"
        try:
            if (self.root / path).is_symlink():
                raise _UntracedError(problem)
            with (self.root / path).open("rb") as file:
                content = file.read(MOST_BYTES + 1)
        except OSError:
            raise _UntracedError(problem) from None
        if b"\0" in content:
            return ""
        if len(content) > MOST_BYTES and path.suffix != ".lock":  # a lock repeats what the project's own file says
            raise _UntracedError(problem)
        return content.decode("utf-8", "replace")

    def _read_module(self, path: Path, content: str) -> None:
        program = parsed(content)
        if program is None:
            raise _UntracedError(f"{path.as_posix()} is not valid Python")
        found = _OPAQUE.search(content)
        if found:
            raise _UntracedError(f"what {path.as_posix()} reads shows only while it runs ({found[0]})")
        self.moves_path = self.moves_path or _MOVES_PATH.search(content) is not None
        parts = set[int]()
        for node in ast.walk(program):
            if isinstance(node, ast.JoinedStr | ast.BinOp):
                parts.update(map(id, ast.iter_child_nodes(node)))
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    self._add_import(path, 0, alias.name.split("."), ())
            elif isinstance(node, ast.ImportFrom):
                base = node.module.split(".") if node.module else []
                self._add_import(path, node.level, base, [alias.name for alias in node.names])
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self._add_constant(node.value, path, is_part=id(node) in parts)

    def _add_constant(self, value: str, path: Path, *, is_part: bool) -> None:
        """Count all that a string of a module names: a path, a part of one, a module, or files within a text."""
        if len(value.split()) > 1:
            self._read_text(path, value)
            for word in value[:200].split():
                if "/" in word or "." in word:
                    self._add_named(word.rstrip(".,:;?!"), path)
        for piece in {value, *_FILLED_IN.split(value)}:
            if len(piece) < 200:
                self._add_named(piece, path, is_part=is_part or piece != value)

    def _read_text(self, path: Path, content: str) -> None:
        """Count the files that a text names, relative to its folder or to the root; more for settings."""
        for word in dict.fromkeys(re.split(r"[\s'\"`,;=()<>|\[\]{}#@]+|:(?=\s)", content)):
            if path.suffix in _SETTINGS:
                self._add_named(word, path)
            elif "/" in word or "." in word:
                self._add_exact(word.rstrip(".:?!"), path)

    def _add_exact(self, word: str, path: Path) -> bool:
        """Count the file or folder of this name in a folder above the one that names it; True if there is one."""
        is_found = False
        if word.strip("./"):
            for folder in path.parents:
                is_found |= self.add(Path(os.path.normpath(folder / word.strip("/"))))
        return is_found

    def _add_named(self, word: str, path: Path, *, is_part: bool = False) -> None:
        """Count everything that a word of code or settings could name; ``is_part``: it may be part of a name."""
        word = word.strip().removeprefix("file://")
        if not word.strip("./") or "\0" in word or "://" in word:
            return
        dotted = _DOTTED.fullmatch(word)
        if dotted and ("." in word or ":" in word):
            for module in self._modules(dotted[1].split(".")):
                self.add(module)
        is_found = self._add_exact(word, path)
        if not is_found:
            self._add_elsewhere(PurePosixPath(word))
        for one in self.texts.get(word.removesuffix("."), ()):  # the code that takes the name may add the suffix
            if path.parent in one.parents or one.parent in path.parents:
                self.add(one)
        if "." not in word:
            if is_part:
                for one in self.ended.get("", ()):
                    if one.name.endswith(word) and (one in self.inside or self.own.is_relative_to(one.parent)):
                        self.add(one)
        elif _END_OF_NAME.fullmatch(word) and (is_part or not is_found):
            ended = [one for one in self.ended.get(word.rpartition(".")[2], ()) if one.name.endswith(word)]
            inside = self._nearest([one for one in ended if one.name != word])
            if inside:
                folder = self.own if self.inside.issuperset(inside) else Path()
                self.found[(folder / f"**/*{word}").as_posix()] = None
                self.open += inside

    def _add_elsewhere(self, told: PurePosixPath) -> None:
        """Count files of this name, and the folders that the path leads through, wherever they are."""
        if told.name != "__init__.py":
            for path in self._nearest([one for one in self.named.get(told.name, ()) if one in self.known]):
                self.add(path)
        if len(told.parts) < 2:
            return
        for step in (told, *told.parents):
            names = step.parts[step.is_absolute() :]
            if not names:
                return
            if Path(step) in self.known:  # a link, or a repository within this one
                self.add(Path(step))
            found = [one for one in self.named.get(step.name, ()) if one in self.below]
            if not step.is_absolute():
                found = [one for one in found if one.parts[-len(names) :] == names]
            for folder in self._nearest(found):
                self.add(folder)
            if found:
                return

    # --- imports ----------------------------------------------------------------------------------

    def _add_import(self, path: Path, dots: int, base: list[str], names: Sequence[str]) -> None:
        """Count the modules that an import statement names.

        Raises:
            _UntracedError: one is neither in the repository, nor known to come from elsewhere.
        """
        if dots > len(path.parents):
            raise _UntracedError(f"{path.as_posix()} imports from outside of this folder")
        modules = self._imported(path, dots, base)
        for name in names or ("*",):
            inside = self._imported(path, dots, [*base, name])
            if not modules and not inside and (dots or not self._comes_from_elsewhere(base[0])):
                told = f"{path.as_posix()} imports {'.' * dots}{'.'.join(base or [name])}"
                raise _UntracedError(f"{told}, which is neither a tracked file nor a requirement")
            for module in inside:
                self.add(module)
        for module in modules:
            self.add(module)

    def _imported(self, path: Path, dots: int, parts: list[str]) -> Sequence[Path]:
        """Return the modules of this name: relative to the one that imports it, else in any folder, since any may be
        installed."""
        if not dots:
            return self._modules(parts)
        place = path.parents[dots - 1].joinpath(*parts)
        return [one for one in (Path(f"{place}.py"), place / "__init__.py") if one in self.known]

    def _modules(self, parts: list[str]) -> Sequence[Path]:
        """Return the modules whose path ends with this dotted name."""
        named = [*self.named.get(f"{parts[-1]}.py", ())]
        named += [folder / "__init__.py" for folder in self.named.get(parts[-1], ())]
        found = []
        for module in named:
            if module in self.known and _module(module)[-len(parts) :] == tuple(parts):
                found.append(module)
        return self._nearest(found)

    def _comes_from_elsewhere(self, name: str) -> bool:
        """True if a module that is not in the repository is one of Python's, is installed, or has the name, or a part
        of the name, of a distribution that is required."""
        if name in sys.stdlib_module_names or any(plain(name) in one for one in self.required):
            return True
        folders = [Path(sysconfig.get_path("purelib")), *self.root.glob("*env/lib/python3*/site-packages")]
        return any((folder / name).is_dir() or any(folder.glob(f"{name}.*")) for folder in folders)

    # --- requirements -----------------------------------------------------------------------------

    def _read_requirements(self, path: Path) -> None:
        """Take the names of distributions from a file, and count what it installs from the repository, what its
        programs start, and what its variables name."""
        if path in self.seen:
            return
        self.seen.add(path)
        if path.name.startswith(".env"):
            self._read_text(path.with_name("variables.env"), self._content(path))
        if not holds_requirements(path.name):
            return
        content = self._content(path)
        self.required |= names_in(path.name, content)
        if path.name == "pyproject.toml":
            for name in started_by(content).values():
                for module in self._modules(name.split(".")):
                    self.add(module)
        for told in paths_in(path.name, content):
            place = Path(os.path.normpath(path.parent / told))
            if place in self.known:
                self.found[place.as_posix()] = None
                self._read_requirements(place)
            elif place in self.below:
                self.found[f"{place.as_posix()}/"] = None
                self._read_requirements_of(place)
            elif set(place.parts) - {".."}:
                raise _UntracedError(f"{path.as_posix()} installs {told}, which is not tracked in this repository")

    def _read_requirements_of(self, folder: Path) -> None:
        """Read what a distribution requires: all of it counts, but its tests, say, are not read."""
        for path in self.below[folder]:
            if path.parent == folder and INSTALLED.fullmatch(path.name):
                self._read_requirements(path)


def _module(path: Path) -> tuple[str, ...]:
    """Return the parts of a module's dotted name, from the root."""
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def _without_covered(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names without those inside a folder that is also named."""
    listed = list(names)
    folders = [name for name in listed if name.endswith("/")]
    return tuple([name for name in listed if not any(name != one and name.startswith(one) for one in folders)])


def named_by(setup: str, own: PurePosixPath) -> list[PurePosixPath]:
    """Return the paths that the commands may install: each word of them, and the folder itself for ``.``."""
    words = re.split(r"[\s'\"=;&|()\[\]]+", setup)
    return [PurePosixPath(os.path.normpath(own / word)) for word in words if word and not word.startswith(("-", "/"))]


def what_installs(root: Path, top: Path, setup: str) -> list[str]:
    """Return what installs an agent, relative to its folder ``root``: the files that commonly do, in this folder and
    those above it up to ``top``, what the commands name, and the folders elsewhere below ``top`` that those files
    install, except for a folder that the agent is in."""
    found = []
    above = [folder for folder in (root, *root.parents) if folder.is_relative_to(top)]
    for folder in above:
        for path in sorted(folder.iterdir()):
            if INSTALLED.fullmatch(path.name) and path.is_file():
                found.append(os.path.relpath(path, root))
    for named in named_by(setup, PurePosixPath()):
        path = Path(os.path.normpath(root / named))
        with suppress(OSError):  # the word is too long for a name
            if path.exists() and path.is_relative_to(top) and path not in above:
                found.append(named.as_posix())
    waiting, seen = [root / name for name in found], set[Path]()
    while waiting:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        text = text_on_disk(path) if holds_requirements(path.name) else ""
        for told in paths_in(path.name, text):
            place = Path(os.path.normpath(path.parent / told))
            if not place.is_relative_to(top) or not place.exists():
                continue
            if not place.is_relative_to(root) and place not in above:
                found.append(os.path.relpath(place, root))
            if place.is_dir():
                waiting += [one for one in sorted(place.iterdir()) if INSTALLED.fullmatch(one.name)]
            else:
                waiting.append(place)
    return list(dict.fromkeys(found))


def imported_from(top: Path, prefixes: Iterable[Path], python_path: str) -> list[PurePosixPath]:
    """Return the folders of a work tree, relative to ``top``, from which an environment imports modules.

    An agent of another work tree would import this one's modules from there.

    Args:
        top: the work tree's folder.
        prefixes: folders of environments, in which packages may be installed from the work tree.
        python_path: the value of ``PYTHONPATH``; its relative entries are those of any work tree.
    """
    found = [Path(one) for one in python_path.split(os.pathsep) if one.startswith("/")]
    for prefix in dict.fromkeys(prefixes):
        for place in sorted(prefix.glob("lib/python*/*-packages")):
            for told in place.glob("*.dist-info/direct_url.json"):
                folder = _installed_folder(told)
                if folder is not None:
                    found.append(folder / "src" if (folder / "src").is_dir() else folder)
            for told in place.glob("*.pth"):
                found += [Path(line) for line in text_on_disk(told).splitlines() if line.startswith("/")]
    inside = [os.path.relpath(os.path.realpath(one), top) for one in found]
    return [PurePosixPath(one) for one in dict.fromkeys(inside) if not one.startswith("..")]


def _installed_folder(told: Path) -> Path | None:
    """Return the folder from which a distribution was installed, by its ``direct_url.json``; None if from elsewhere."""
    try:
        url = urlsplit(json.loads(text_on_disk(told))["url"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return Path(unquote(url.path)) if url.scheme == "file" else None
