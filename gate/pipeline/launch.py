"""The agents of both sides as they are started: the user they run as, and the base commit's agent.

The base commit's agent is started from its work tree when the schedule first needs it, or served at an address.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from gate.agents.base import AgentOptions, expand
from gate.agents.http import server_of
from gate.agents.python import WORKER, PythonOptions, interpreter_of
from gate.agents.sources import imported_from
from gate.agents.version import version_of
from gate.baselines.fingerprint import with_tools
from gate.baselines.reference import Reference
from gate.config.base_policy import place_of
from gate.config.load import Config
from gate.errors import ConfigError, GateError
from gate.pipeline.identity import (
    MOST_NAMED,
    REPORTS,
    definition_differs,
    fingerprint_of_version,
    has_configuration,
    surroundings_differ,
)
from gate.pipeline.session import Session
from gate.reports.formatting import listing
from gate.security.environment import in_ci
from gate.security.escape import one_line
from gate.security.files import OWN_FOLDER
from gate.security.limits import shorten
from gate.security.tree import KnownTree
from gate.suites import case_files
from gate.system.git import Git, repository_above
from gate.system.own_files import own_files_in
from gate.system.own_user import OwnUser, can_switch, open_to_others

# --- the user that an agent runs as ---------------------------------------------------------------

WHERE = "agent.user"


def own_user(config: Config, root: Path, options: AgentOptions, environment: Mapping[str, str]) -> OwnUser | None:
    """Return a user to start the agent in ``root`` as, and give it that folder; None if it runs as the gate's.

    Raises ConfigError if the configuration requires such a user and there can be none.
    """
    why = no_own_user(options, root, environment)
    if why and options.user == "own":
        raise ConfigError(why, where=WHERE, hint="leave it out, or write `user: same`")
    if why:
        return None
    user = OwnUser.make(environment.get("HOME"))
    hidden = list(_of_the_gate(config, root, environment))
    kept: Collection[Path] = ()
    suite = case_files([Path(name) for name in config.file.suite], root)
    if options.reads_suite:
        kept = suite
    else:
        hidden += suite
    try:
        user.give(root, top=repository_above(root), hidden=hidden, kept=kept)
    except BaseException:
        user.end()
        raise
    return user


def no_own_user(options: AgentOptions, root: Path, environment: Mapping[str, str]) -> str:
    """Return the reason why the agent runs as the same user as the gate; empty if it has a separate user."""
    if not options.is_local:
        return "the gate does not start the agent"
    if options.user == "same":
        return "`user: same` asks for it"
    if options.user is None and not in_ci(environment):
        return "this is not a CI job"
    if not can_switch():
        return "only root can start it as another user"
    closed = OwnUser.unreachable([root / "x", *_programs(options, root, environment)])
    return f"nobody but its owner may enter {closed}" if closed else ""


def _programs(options: AgentOptions, root: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the programs that another user must be able to start."""
    if isinstance(options, PythonOptions):
        yield WORKER
        yield Path(interpreter_of(options.executable, root))
        return
    for word in options.entry[:1]:
        found = shutil.which(word, path=environment.get("PATH"))
        if found is not None:
            yield Path(found)


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


# --- the base commit's agent ----------------------------------------------------------------------


class BaseTree:
    """The work tree of the base commit, made when it is first needed and kept by a ``stack``."""

    def __init__(self, git: Git, commit: str, config: Config, stack: ExitStack) -> None:
        self._git, self._commit, self._stack = git, commit, stack
        self._folder = place_of(config.path)[1].parent
        self._exclude = (config.file.output, REPORTS, config.file.baseline.folder, OWN_FOLDER)

    @cached_property
    def _known(self) -> KnownTree:
        folder = self._stack.enter_context(self._git.worktree(self._commit, content=True))
        open_to_others(folder.parent)
        return KnownTree(folder)

    @property
    def root(self) -> Path:
        """The folder of the configuration to start the agent from."""
        return self._known.root / self._folder

    @property
    def is_made(self) -> bool:
        """True if the agent was started from this tree."""
        return "_known" in vars(self)

    @cached_property
    def note(self) -> str:
        """A note on what the change's agent could read and the base commit's could not; empty if there is nothing."""
        missing = self._git.not_in_commits(exclude=self._exclude)
        if not missing:
            return ""
        listed = listing([one_line(name, MOST_NAMED) for name in missing])
        return f"the base's agent ran without what git does not track here, and may differ for that: {listed}"

    def check(self) -> None:
        """Raise `ConfigError` if the agent's files are no longer those of the base commit."""
        # The change's agent runs at the same time and could damage these files; its own loss would look like drift.
        found = self._known.difference()
        if found:
            what = f"{shorten(found, 200)!r} was changed in the base commit's work tree while the agent was run"
            raise ConfigError(what, hint="neither the agent nor its processes may write to files that git tracks")


class BaseAgent(Struct, frozen=True):
    """The base commit's agent, as far as a run may use it."""

    options: AgentOptions | None = None
    """The options to start or reach the agent with; None if it cannot be run."""
    tree: BaseTree | None = None
    """The files to start it from; None for a served agent."""
    note: str = ""
    """The reason why the agent is not run, for the reader; empty if it is obvious."""
    mixed_with_change: bool = False
    """True if the agent cannot be run because it would be the change's agent, or would run in the change's
    environment."""
    beside: bool = False
    """True if the agent runs because no baseline is stored."""
    without_rules: bool = False
    """True if the base commit has no configuration."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Return notes on the agent for the reader, some of them empty."""
        if self.tree is None or not self.tree.is_made:
            return (self.note,)
        return self.note, self.tree.note


async def base_agent(session: Session, reference: Reference, stack: ExitStack) -> BaseAgent:
    """Return the base commit's agent: the one at `agent.base`, else one started from its commit if that is possible.

    The ``stack`` keeps the commit's work tree, which is created when the schedule first needs the agent.
    """
    if session.config.agent.base is None:
        return _from_commit(session, reference, stack)
    return await _served(session, reference)


def wants_base_beside(session: Session, reference: Reference) -> bool:
    """True if the base commit's agent should run in place of a stored baseline, even if that turns out to be
    impossible."""
    where, config = session.where, session.config
    is_change = where.base is not None and where.base != where.head
    is_wanted = config.agent.is_local and config.file.baseline.rerun != "never"
    return is_change and is_wanted and reference.beside and not reference.info.of_itself


def _from_commit(session: Session, reference: Reference, stack: ExitStack) -> BaseAgent:
    config, git = session.config, session.git
    beside = wants_base_beside(session, reference)
    commit = session.where.base if beside else reference.commit
    is_stored = any(record.header.agent for record in reference.records)  # recorded people cannot be run again

    if not (config.agent.is_local and (is_stored or beside) and commit and git.is_repository() and git.resolve(commit)):
        return BaseAgent()
    why = differs = ""
    folder = place_of(config.path)[1].parent.as_posix()
    if folder != "." and git.ask("rev-parse", "--verify", "--quiet", f"{commit}:{folder}") is None:
        why = f"it has no folder {one_line(folder, MOST_NAMED)}"
    elif git.has_only_pointers():
        # With pointers in place of its files the base would do worse than it did, and hide a regression.
        why = "it has files in LFS, and git-lfs is not installed"
    else:
        imported = _imported_from(config, git, session.environment)
        differs = surroundings_differ(config, git, commit, session.options.setup, imported)
        if differs:
            why = f"{differs}, and this job's environment was made for the change"
    if why:
        run = "run again" if is_stored else "run beside"
        note = f"the base commit's agent is not {run}: {why}"
        return BaseAgent(note=note, mixed_with_change=bool(differs))
    without_rules = beside and not has_configuration(config, git, commit)
    # Keep bytecode out of the tree: any that turns up there was planted.
    changed: dict[str, Any] = {"env": {**config.agent.env, "PYTHONDONTWRITEBYTECODE": "1"}}
    executable = getattr(config.agent, "executable", None)
    if executable and git.tracked_in(config.root / executable) is None:  # of this job, not of any commit
        changed["executable"] = str(config.root / Path(executable).expanduser())
    options = config.agent.model_copy(update=changed)
    return BaseAgent(options, BaseTree(git, commit, config, stack), beside=beside, without_rules=without_rules)


async def _served(session: Session, reference: Reference) -> BaseAgent:
    """Return the agent at `agent.base`.

    It is not possible if nothing is stored, the address is empty, or another version answers there.
    """
    config, environment = session.config, session.environment
    address, kind = config.agent.base, config.agent_kind
    assert address is not None

    if not reference.records:
        return BaseAgent()
    try:
        url = expand(address.url, environment, where="agent.base.url")
        mixed = _mixed_with_change(session, reference, url)
        problem = mixed or await _other_version(session, reference, url)
    except GateError as error:
        mixed, problem = "", str(error)
    if problem:
        note = "" if session.where.anchored else f"the base commit's agent is not run again: {problem}"
        return BaseAgent(note=note, mixed_with_change=bool(mixed))
    server = server_of(config.agent, kind)
    assert server is not None
    changed: dict[str, Any] = {"url": url}
    if address.headers is not None:
        changed["headers"] = address.headers
    options = config.agent.model_copy(update={kind: server.model_copy(update=changed)})
    return BaseAgent(options)


def _mixed_with_change(session: Session, reference: Reference, url: str) -> str:
    """Return the reason why the change could affect the base's agent or how it starts; empty if it cannot."""
    config, commit = session.config, reference.commit
    server = server_of(config.agent, config.agent_kind)
    if server is not None and expand(server.url, session.environment, where=config.agent_kind) == url:
        return "agent.base is the agent's own address"
    if not commit:
        return ""
    why = definition_differs(config, session.git, commit, but=("url", "headers"))
    if not why:
        return ""
    return f"{why}, and it would be asked as the change's is"


async def _other_version(session: Session, reference: Reference, url: str) -> str:
    """Return a note if the server reports a version other than the baseline's; empty if it does not, or reports
    none."""
    config = session.config
    source = config.agent.version
    if source is None or source.header is None:
        return ""
    told = await version_of(config.agent_kind, config.agent, root=config.root, environment=session.environment, url=url)
    stored = reference.records[0]
    if with_tools(fingerprint_of_version(config, told), stored.trials) == stored.header.agent:
        return ""
    return f"{url} serves version {told!r}, and the stored baseline is of another"


def _imported_from(config: Config, git: Git, environment: Mapping[str, str]) -> list[PurePosixPath]:
    """Return the folders of this work tree from which the base commit's agent would import modules, because this job
    installed them or names them in ``PYTHONPATH``; not those that it looks up in its own work tree first."""
    options, prefixes = config.agent, [Path(environment.get("VIRTUAL_ENV", "/nowhere"))]
    for program in _programs(config.agent, config.root, environment):
        if program != WORKER:
            prefixes.append(program.parent.parent)
    stated = options.env.get("PYTHONPATH") or environment.get("PYTHONPATH", "")
    own = PurePosixPath(place_of(config.path)[1].parent.as_posix())
    first = {own, *(PurePosixPath(os.path.normpath(own / name)) for name in getattr(options, "path", ()))}
    return [folder for folder in imported_from(git.top(), prefixes, stated) if folder not in first]
