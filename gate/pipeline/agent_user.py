"""The user that the agent's processes run as, and the files in the folder that this user must not read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from gate.agents.base import AgentOptions
from gate.agents.python import WORKER, PythonOptions, interpreter_of
from gate.config.load import Config
from gate.errors import ConfigError
from gate.pipeline.git_context import REPORTS
from gate.security.environment import in_ci
from gate.suites import case_files
from gate.system.own_files import own_files_in
from gate.system.own_user import OwnUser, can_switch

WHERE = "agent.user"


def own_user(config: Config, root: Path, options: AgentOptions, environment: Mapping[str, str]) -> OwnUser | None:
    """Return a user to start the agent in ``root`` as, and give it that folder; None if it runs as the gate's.

    Raises ConfigError if the configuration requires such a user and there can be none.
    """
    why = no_own_user(config, root, environment)
    if why and options.user == "own":
        raise ConfigError(why, where=WHERE, hint="leave it out, or write `user: same`")
    if why:
        return None
    user = OwnUser.make(environment.get("HOME"))
    secret = [*_of_the_gate(config, root, environment)]
    suite = case_files([Path(name) for name in config.file.suite], root)
    try:
        if options.reads_suite:
            user.give(root, top=_top(root), hidden=secret, kept=suite)
        else:
            user.give(root, top=_top(root), hidden=[*secret, *suite])
    except BaseException:
        user.end()
        raise
    return user


def no_own_user(config: Config, root: Path, environment: Mapping[str, str]) -> str:
    """Return the reason why the agent runs as the same user as the gate; empty if it has a separate user."""
    options = config.agent
    if not options.is_local:
        return "the gate does not start the agent"
    if options.user == "same":
        return "`user: same` asks for it"
    if options.user is None and not in_ci(environment):
        return "this is not a CI job"
    if not can_switch():
        return "only root can start it as another user"
    closed = OwnUser.unreachable([root / "x", *_programs(config, root, environment)])
    return f"nobody but its owner may enter {closed}" if closed else ""


def _programs(config: Config, root: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the programs that another user must be able to start."""
    options = config.agent
    if isinstance(options, PythonOptions):
        yield WORKER
        yield Path(interpreter_of(options.executable, root))
        return
    server = getattr(options, "mcp", None)
    for word in [*options.entry[:1], *(server.command[:1] if server is not None else ())]:
        found = shutil.which(word, path=environment.get("PATH"))
        if found is not None:
            yield Path(found)


def _top(root: Path) -> Path:
    """Return the repository's folder, or the configuration's folder outside a repository."""
    return next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)


def _of_the_gate(config: Config, root: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files that hold the suite's texts, expected answers or results: records, reports, baselines and git's
    files."""
    for folder in (root, *root.parents):
        yield folder / ".git"
        yield folder / REPORTS
    yield from own_files_in(root)
    yield root / config.file.baseline.folder
    output = root / config.file.output
    used = Path(environment.get("VIRTUAL_ENV", "/nowhere")).resolve()
    if not used.is_relative_to(output.resolve()):
        yield output
        return
    for path in output.iterdir():  # the agent's environment is inside it
        if not used.is_relative_to(path.resolve()):
            yield path
