"""Fingerprints of cases, criteria and agents, which show if two measurements are comparable.

Equal fingerprints must mean that the same thing was measured in the same way; unequal ones may differ in nothing that
counts. A false "same" compares apples with oranges, a false "different" merely costs trials, so anything in doubt is
included.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from gate.errors import ConfigError
from gate.model import Case, Part, Rubric, ToolCall, Trial, Turn
from gate.system.git import Git
from gate.system.own_files import is_own_file, is_record

LENGTH = 32
"""Hexadecimal digits: 128 bits of SHA-256."""
_EXACT = 2**53
_READ_UNASKED = re.compile(r"(?:site|user)customize\.py|.+\.pth")
"""Names of files that Python runs when it starts, from whichever folders it is given."""
_NOT_WALKED = frozenset({".git", ".hg", ".svn", "node_modules", ".gate", "__pycache__"})


def of_json(value: Any) -> str:
    """Return the fingerprint of a JSON value; key order, ``1`` or ``1.0``, and tuple or list make no difference.

    Raises ValueError for NaN and infinities, TypeError for a value that is not JSON.
    """
    return _digest(_canonical(value))


def _digest(canonical: Any) -> str:
    text = _ENCODER.encode(canonical)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]


_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_CANONICAL = frozenset({str, int, bool, type(None)})
"""Types whose values are their own canonical form; nearly all values of a case have one."""


def _canonical(value: Any) -> Any:
    kind = type(value)
    if kind in _CANONICAL or (not value and kind in (dict, list)):
        return value
    if isinstance(value, (list, tuple)):
        return list(map(_canonical, value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("a fingerprint of a number that is not finite")
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    if isinstance(value, (dict, Mapping)):  # the first check saves the second, which is slow
        return {_key(key): _canonical(held) for key, held in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(_canonical, value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


def _key(key: Any) -> str:
    """Return a key as text; keys of other types, which YAML allows, must not collide with text."""
    return key if isinstance(key, str) else f"\0{type(key).__name__} {key!r}"


def of_case(case: Case) -> str:
    """Return the fingerprint of a case's content: the agent's input, the expectations, and how they are scored.

    It excludes the case's id, thresholds, tags, complexity and place. ``content``, if set, replaces turns, state and
    metadata.
    """
    content = case.content
    if content is None:
        turns = [_turn(turn) for turn in case.turns]
        content = [turns, _canonical(case.state), _canonical(case.metadata), _canonical(case.app)]
        if case.scenario is not None:
            content.append(_canonical(to_builtins(case.scenario)))
    else:
        content = _canonical(content)
    return _digest(["case", content, _canonical(case.options), _rubrics(case.rubrics)])


def _turn(turn: Turn) -> list[Any]:
    found = [turn.user, _tools(turn.tools), _parts(turn.response), _rubrics(turn.rubrics)]
    if turn.attached:
        found.append(_canonical(turn.attached))
    return found


def _tools(tools: Sequence[ToolCall] | None) -> list[list[Any]] | None:
    if tools is None:
        return None
    found = []
    for tool in tools:
        args, result = _canonical(tool.args), _canonical(tool.result)
        found.append([tool.name, args, tool.any_args, tool.category, result, tool.error])
    return found


def _parts(parts: Sequence[Part] | None) -> list[list[Any]] | None:
    if parts is None:
        return None
    return [[part.text, part.thought] for part in parts]


def _rubrics(rubrics: tuple[Rubric, ...]) -> list[list[Any]]:
    return [[rubric.id, rubric.text, rubric.type, rubric.description] for rubric in rubrics]


def of_criterion(metric: str, version: int, options: Mapping[str, Any], judge: Any = None) -> str:
    """Return the fingerprint of how a criterion measures: metric, version, options, and the judge's model and prompt.

    It excludes thresholds, limits and margins: they decide, they do not measure.
    """
    return of_json(["criterion", metric, version, options, judge])


PACE = ("timeout", "concurrency", "retries", "sources", "version", "base", "user", "reads_suite")
"""Keys of every kind of agent that affect its speed or name its source or version, but not how its answers are read."""


def of_definition(kind: str, options: Mapping[str, Any]) -> str:
    """Return the fingerprint of an agent's definition: its kind, its requests, and how its answers are read."""
    return of_json(["definition", kind, _without(options, PACE)])


def of_version(kind: str, options: Mapping[str, Any], version: str) -> str:
    """Return the fingerprint of an agent that has a known version but no source, from its requests and the version.

    It excludes the address and headers, which differ from job to job.
    """
    asked = options.get(kind)
    if isinstance(asked, dict):
        asked = _without(asked, _PLACE)
    return of_json(["agent", "version", of_definition(kind, {**options, kind: asked}), version])


def _without(options: Mapping[str, Any], keys: Container[str]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key not in keys}


def with_tools(agent: str, trials: Iterable[Trial]) -> str:
    """Return an agent's fingerprint extended by the tools of the MCP servers that it used in these trials.

    The descriptions of tools by a server outside the agent's source are part of the model's input. Empty stays empty.
    """
    offered: set[str] = set()
    for trial in trials:
        if trial.replay is not None:
            offered.update(trial.replay.tools)
    if not agent or not offered:
        return agent
    return of_json(["agent", agent, "tools", sorted(offered)])


_PLACE = ("url", "headers")


def of_agent(
    git: Git,
    *,
    files: Mapping[str, str | None] | None = None,
    sources: Sequence[str] = (),
    entry: Sequence[str] = (),
    exclude: Sequence[str] = (),
    cases: Set[str] = frozenset(),
    stored: str = "",
    changed: Set[str] = frozenset(),
    settings: Any = None,
) -> str:
    """Return the fingerprint of the agent's source: names, modes and contents of files of the repository.

    All files that git tracks count, without exception: nothing else shows that two commits hold the same agent.

    Args:
        git: the repository; without one, the folder ``git.root`` is walked.
        files: the result of `Git.files`, if it is known.
        sources: globs relative to the root that define the agent's files (``src/**``, ``../prompts``); by default every
            file of the repository that git tracks or would add, since anything may be a prompt or a module.
        entry: names of files and folders that belong to it even if no glob names them, if they exist.
        exclude: globs of files that the gate writes: reports, records. The root itself is never excluded. Records and
            reports that git does not track are never part of the agent, wherever they are.
        cases: names of the configuration and the files of the suite, which count if git tracks them: an agent can read
            them. Files that a job has fetched or made have separate fingerprints.
        stored: the folder of the stored baselines, which may be tracked and may change without a change of the agent.
        changed: names of the tracked files in it that do count, since the measured change has edited them.
        settings: how the agent is driven (kind, options, model), as a JSON value.

    Raises:
        ConfigError: one of the ``sources`` matches nothing, a file cannot be read, or git tracks a file of the agent's
            folder where the gate or Python writes.

    Anything outside (installed packages without a lock file, a remote service) is not covered: for an agent that is not
    in this folder, leave the fingerprint empty.
    """
    tracked, others = _files(git, git.files() if files is None else files)
    entry = _with_links(git.root, tracked, sources, entry)
    listed = sorted({*tracked, *others})
    environments = tuple(f"{name.rpartition('/')[0]}/" for name in listed if name.endswith("/pyvenv.cfg"))
    names: list[str] = []
    for name in listed:
        is_named = _is_named(name, sources, entry)
        if stored and not _is_root(stored) and _glob(stored).match(name):
            if is_named and name in changed:
                names.append(name)
            continue
        if is_named and name in tracked and not _is_own_place(name, entry):
            names.append(name)
            continue
        writer = _writer_at(name, exclude, environments if is_named else ())
        if writer and name in tracked:
            raise _refused(name, writer, git.root)
        if writer or not is_named:
            continue
        if is_record(git.root / name):
            if name in tracked:
                raise _refused(name, "", git.root)
            continue
        if name not in tracked and is_own_file(git.root / name):
            continue
        if name in tracked or name in entry or name not in cases:
            names.append(name)
    for pattern in sources:  # a file moved away from its glob would no longer be covered
        if not any(map(_glob(pattern).match, listed)):
            what = f"agent.sources: {pattern!r} matches no file"
            raise ConfigError(what, where=str(git.root), hint="globs are relative to this folder, such as src/**")
    if not names:
        raise ConfigError("the agent has no files here", where=str(git.root), hint="its code belongs next to the suite")
    return of_json(["agent", _digest_of_files(git.root, names, tracked), settings])


def _digest_of_files(root: Path, names: Iterable[str], commits: Mapping[str, str]) -> str:
    """Return the digest of the names, modes and contents of files. The commit of a submodule identifies its content,
    even if its files are not read."""
    digest = hashlib.sha256()
    for name in names:
        commit = commits.get(name, "")
        if commit:
            kind, content = b"repository", commit.encode()
        else:
            kind, content = _content(root / name)
        for field in (os.fsencode(name), kind, content):
            digest.update(len(field).to_bytes(8, "big") + field)
    return digest.hexdigest()


def files_named(names: Iterable[str], sources: Sequence[str], entry: Sequence[str]) -> list[str]:
    """Return those of these files that belong to the agent by its ``sources``; without sources, all."""
    return [name for name in names if _is_named(name, sources, entry)]


def _writer_at(name: str, exclude: Sequence[str], environments: tuple[str, ...]) -> str:
    """Return the writer of this place during a run, which makes the file no source of the agent; empty if there is
    none."""
    steps = name.split("/")
    if "__pycache__" in steps or name.startswith(environments):
        return "Python"
    if ".gate" in steps:
        return "the gate"
    for pattern in exclude:
        if not _is_root(pattern) and _glob(pattern).match(name):
            return "the gate"
    return ""


def _refused(name: str, writer: str, root: Path) -> ConfigError:
    """Return the error for a tracked file that a ``writer`` overwrites, or that is a record or report anywhere.

    Python may run such a file and the agent may read it; a fingerprint with it would differ after each run.
    """
    if writer:
        what, hint = f"is where {writer} writes", "git rm --cached with its path, and ignore its folder"
    else:
        what = "is a record or a report of a run"
        hint = "store it as a baseline, or name the agent's files by agent.sources"
    return ConfigError(f"git tracks {name}, which {what}", where=str(root), hint=hint)


def _is_own_place(name: str, entry: Sequence[str]) -> bool:
    """True if the gate or Python may write to this place when it runs this agent: it is below the root, or in a folder
    that belongs to the agent. Elsewhere there may be another agent's records and baselines."""
    return not name.startswith("../") or any(name.startswith(f"{one}/") for one in entry)


def _files(git: Git, found: Mapping[str, str | None] | None) -> tuple[dict[str, str], Set[str]]:
    """Return files by name relative to the root: those git tracks, with the commit if a submodule, and all others.

    Nested repositories are walked. Without git, all files are others.
    """
    if found is None:
        return {}, set(_walk(git.root, ""))
    tracked, others = dict[str, str](), set[str]()
    for name, commit in found.items():
        path = git.root / name
        if path.is_dir() and not path.is_symlink():
            others.update(_walk(git.root, name.rstrip("/")))
            if commit:
                tracked[name] = commit
        elif not os.path.lexists(path):  # git also lists files that are deleted but not yet committed
            continue
        elif commit is None:
            others.add(name)
        else:
            tracked[name] = commit
    return tracked, others


def _with_links(root: Path, names: Iterable[str], sources: Sequence[str], entry: Sequence[str]) -> tuple[str, ...]:
    """Return ``entry`` with the files and folders of the same work tree that links of the agent lead to, in turn."""
    links = {name for name in names if (root / name).is_symlink()}
    found, followed = dict.fromkeys(entry), list(entry)  # which may itself lead through a link
    while followed:
        for name in followed:
            found[os.path.relpath(os.path.realpath(root / name), os.path.realpath(root))] = None
        followed = files_named(links, sources, tuple(found))
        links.difference_update(followed)
    return tuple(found)


def _walk(root: Path, below: str) -> Iterator[str]:
    for folder, folders, files in os.walk(root / below):
        inside = Path(folder)
        linked = [name for name in folders if (inside / name).is_symlink()]
        folders[:] = [name for name in folders if _worth_walking(inside / name)]
        for name in (*files, *linked):
            yield (inside / name).relative_to(root).as_posix()


def _worth_walking(folder: Path) -> bool:
    """True unless it is version control, a cache, or a virtual environment."""
    return folder.name not in _NOT_WALKED and not (folder / "pyvenv.cfg").exists()


def _content(path: Path) -> tuple[bytes, bytes]:
    """Return mode and content; a link counts as its target path."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return b"link", os.fsencode(path.readlink())
        if not stat.S_ISREG(mode):
            return b"special", b""
        return (b"executable" if mode & stat.S_IXUSR else b"file"), path.read_bytes()
    except OSError as problem:
        hint = "make it readable, or leave it out by agent.sources"
        raise ConfigError(
            f"cannot be read, and is part of the agent: {problem.strerror}", where=str(path), hint=hint
        ) from None


def _is_named(name: str, sources: Sequence[str], entry: Sequence[str]) -> bool:
    if not sources or any(_glob(pattern).match(name) for pattern in sources):
        return True
    if _READ_UNASKED.fullmatch(name.rpartition("/")[2]):
        return True
    return any(name == one or name.startswith(f"{one}/") for one in entry)


def _is_root(pattern: str) -> bool:
    return pattern.removeprefix("./").rstrip("/") in ("", ".")


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    """Return a pattern in which ``*`` and ``?`` stay within a folder, ``**`` does not, and a folder matches its
    contents. Only a pattern that begins with ``..`` leads out of the root."""
    inside = "" if pattern.startswith("..") else r"(?!\.\./)"
    if _is_root(pattern):
        return re.compile(inside)
    pattern = pattern.removeprefix("./").rstrip("/")
    steps = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", pattern)
    expression = "".join(steps.get(piece, re.escape(piece)) for piece in pieces)
    return re.compile(rf"(?s){inside}{expression}(?:/|$)")
