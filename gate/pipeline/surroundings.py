"""Whether the base commit's agent can be run in what this job made for the change's.

The gate starts it from its own work tree, but in the packages, with the variables and by the definition that are the
change's. Where the change touches those, it would fail as the change's does, and a loss would pass for drift.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from gate.config.base_policy import place_of
from gate.config.load import Config
from gate.errors import GateError
from gate.formats.documents import parse_document
from gate.security.escape import one_line
from gate.system.git import Git

MOST_NAMED = 80
"""Characters of a name."""
_INSTALLED = re.compile(
    r"(?:requirements|constraints)[\w.-]*|(?:pyproject|pylock|mise)[\w.-]*\.toml|setup\.(?:py|cfg)|Pipfile|environment\.ya?ml"
    r"|package\.json|package-lock\.json|npm-shrinkwrap\.json|pnpm-(?:lock|workspace)\.yaml|go\.(?:mod|sum)|Cargo\.toml"
    r"|Gemfile|composer\.json|pom\.xml|[\w.-]*\.gradle(?:\.kts)?|[\w.-]+\.(?:lock|lockb|csproj)"
    r"|(?:[\w.-]+\.)?Dockerfile[\w.-]*|(?:docker-)?compose[\w.-]*\.ya?ml|\.tool-versions|\.python-version|\.nvmrc|\.env[\w.-]*"
)
"""Names of files that say what is installed or set for an agent; those beside it, above it and below it."""
_JOBS = re.compile(
    r"\.gitlab-ci\.ya?ml|\.github/workflows/.+|\.circleci/.+|Jenkinsfile|(?:azure|bitbucket)-pipelines\.ya?ml"
)
"""Files that say what a job does, from the repository's top."""
_OF_A_RUN = frozenset(
    ("version", "base", "timeout", "concurrency", "retries", "transient", "sources", "traces", "reports_calls")
)
"""Keys of ``agent`` that are of the measurement, not of what is measured."""

_MEASURING = ("fields", "format", "tool_categories", "custom_metrics", "judge", "simulated_user", "world")
"""Keys of a configuration that decide how a conversation is held, answered or scored."""


def has_configuration(config: Config, git: Git, commit: str) -> bool:
    """True if the commit has a file where the configuration is, readable or not."""
    try:
        return _stored(config, git, commit) is not None
    except GateError:
        return True


def surroundings_differ(config: Config, git: Git, commit: str, setup: str | None = None) -> str:
    """What keeps the base commit's agent from being run as it was, a file or a key; empty if nothing does.

    ``setup``: the commands that this job ran, where they are not the configuration's.
    """
    own = PurePosixPath(place_of(config.path)[1].parent.as_posix())
    measured = [own / config.path.name, *(own / name for name in config.file.suite)]
    installed = _named_by(config.file.setup or "" if setup is None else setup, own)
    had_job = has_configuration(config, git, commit)  # else no job of the base measured its agent in another way
    for name in git.differing(commit):
        path = PurePosixPath(name)
        if any(map(path.is_relative_to, measured)):
            continue
        near = path.parent.is_relative_to(own) or own.is_relative_to(path.parent)
        is_installed = (near and _INSTALLED.fullmatch(path.name)) or any(map(path.is_relative_to, installed))
        if is_installed or (had_job and _JOBS.fullmatch(name)):
            return f"{one_line(name, MOST_NAMED)} differs"
    return definition_differs(config, git, commit)


def definition_differs(config: Config, git: Git, commit: str, *, but: Sequence[str] = ()) -> str:
    """The key by which the configuration starts or asks another agent than at the commit; empty if there is none.

    ``but``: options of the agent's kind that are replaced for the base.
    """
    before, now = _before_and_now(config, git, commit)
    if before is None or now is None:  # no such file, or one that nobody can read: the commit is taken at its word
        return ""
    if before.get("setup") != now.get("setup"):
        return "setup differs"
    old, new = (_definition(agent, but) for agent in (before.get("agent"), now.get("agent")))
    differing = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    return f"agent.{one_line(differing[0], MOST_NAMED)} differs" if differing else ""


def measures_alike(config: Config, git: Git, commit: str) -> bool:
    """True if the configuration at the commit holds and scores conversations as this one does, as far as fingerprints
    of the agent, the cases and the criteria do not say it."""
    before, now = _before_and_now(config, git, commit)
    if before is None or now is None:
        return False
    return all(before.get(key) == now.get(key) for key in _MEASURING)


def _before_and_now(config: Config, git: Git, commit: str) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """Return the configuration as written at the commit and as written now; None for one that nobody can read."""
    return _read(lambda: _stored(config, git, commit)), _read(config.path.read_bytes)


def _stored(config: Config, git: Git, commit: str) -> bytes | None:
    """Return the configuration's file as it is at the commit; None if there is none."""
    return git.show(commit, os.path.relpath(config.path, git.root))


def _read(content: Callable[[], bytes | None]) -> Mapping[str, Any] | None:
    """A configuration as it is written, before anything on the command line or of the action is laid over it."""
    with suppress(GateError, OSError, UnicodeDecodeError):
        text = content()
        found = parse_document(text.decode(), "gate.yaml") if text is not None else None
        return found if isinstance(found, Mapping) else None
    return None


def _definition(agent: Any, but: Sequence[str]) -> dict[str, Any]:
    found = {k: v for k, v in agent.items() if k not in _OF_A_RUN} if isinstance(agent, Mapping) else {}
    for key, value in found.items():
        if but and isinstance(value, str):
            found[key] = ""  # an address alone
        elif but and isinstance(value, Mapping):
            found[key] = {k: v for k, v in value.items() if k not in but} or ""
    return found


def _named_by(setup: str, own: PurePosixPath) -> list[PurePosixPath]:
    """Files and folders that the commands may install, the folder itself for ``.``: each word, as a path."""
    words = re.split(r"[\s'\"=;&|()\[\]]+", setup)
    return [PurePosixPath(os.path.normpath(own / word)) for word in words if word and not word.startswith(("-", "/"))]
