"""The base commit's agent: started from its work tree when the schedule first asks for it, or served at an address."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from gate.agents.base import AgentOptions, expand
from gate.agents.http import server_of
from gate.agents.version import version_of
from gate.baselines.fingerprint import with_tools
from gate.baselines.pairing import Reference
from gate.config.base_policy import place_of
from gate.config.load import Config
from gate.errors import ConfigError, GateError
from gate.pipeline.session import Session, fingerprint_of_version
from gate.pipeline.surroundings import definition_differs, has_configuration, surroundings_differ
from gate.security.limits import shorten
from gate.security.tree import KnownTree


class BaseAgent(Protocol):
    """The base commit's agent, as far as a run may ask it."""

    possible: bool
    """Whether it can be run."""
    spoiled: bool
    """Whether it cannot since it would be the change's agent, or run in what is the change's: whatever is stated."""
    beside: bool
    """Whether it is to be run in place of a stored baseline, since there is none."""
    without_rules: bool
    """Whether the base commit has no configuration."""
    note: str
    """What a reader should know of why it is not; empty if that is plain."""

    def root(self) -> Path:
        """The configuration's folder to start it from."""

    def options(self) -> AgentOptions:
        """The options to start or reach it by."""

    def check(self) -> None:
        """Raises ConfigError if what it is started from is no longer the base commit's."""


async def base_agent(session: Session, reference: Reference, stack: ExitStack) -> BaseAgent:
    """The base commit's agent: where `agent.base` says, else from its commit if the gate can start it."""
    if session.config.agent.base is None:
        return BaseTree(session, reference, stack)
    return await _served(session, reference)


def check_base_address(config: Config) -> None:
    """Raises ConfigError for an address where it has no meaning."""
    kind = config.agent_kind
    if config.agent.base is not None and server_of(config.agent, kind) is None:
        hint = (
            "leave it out: the gate starts the base commit's agent itself" if config.agent.is_local else "leave it out"
        )
        raise ConfigError(f"a {kind}: agent has no address", where="agent.base", hint=hint)


def stands_in(session: Session, reference: Reference) -> bool:
    """True if the base commit's agent is wanted in place of a stored baseline, whether or not it can be run."""
    where, config = session.where, session.config
    is_change = where.base is not None and where.base != where.head
    is_wanted = config.agent.is_local and config.file.baseline.rerun != "never" and session.options.shard[1] == 1
    return is_change and is_wanted and reference.beside and not reference.info.of_itself


class BaseTree:
    """The base commit's work tree, made when the schedule first asks for its agent and removed with the run."""

    def __init__(self, session: Session, reference: Reference, stack: ExitStack) -> None:
        self._session, self._stack = session, stack
        self.beside = stands_in(session, reference)
        self._commit = session.where.base if self.beside else reference.info.commit
        self._root: Path | None = None
        self._tree: KnownTree | None = None
        local = session.config.agent.is_local
        sourced = any(record.header.agent for record in reference.records)  # recorded people cannot be run again
        possible = bool(local and (sourced or self.beside) and self._commit and session.git.resolve(self._commit))
        why = differs = ""
        if possible and session.git.has_only_pointers():
            # With pointers in place of its files the base would do worse than it did, and hide what the change breaks.
            why = "it has files in LFS, and git-lfs is not installed"
        elif possible and self._commit is not None:
            differs = surroundings_differ(session.config, session.git, self._commit, session.options.setup)
            why = f"{differs}, and it would meet what this job made for the change's" if differs else ""
        self.possible, self.spoiled = possible and not why, bool(differs)
        self.beside = self.beside and self.possible
        self.without_rules = self.beside and not has_configuration(session.config, session.git, self._commit or "")
        self.note = f"the base commit's agent is not run {'again' if sourced else 'beside'}: {why}" if why else ""

    def root(self) -> Path:
        """The configuration's folder as it was at the base commit."""
        if self._root is None:
            assert self._commit is not None
            tree = self._stack.enter_context(self._session.git.worktree(self._commit, content=True))
            self._tree, self._root = KnownTree(tree), tree / place_of(self._session.config.path)[1].parent
        return self._root

    def options(self) -> AgentOptions:
        """Those of the change, and no bytecode of its own in the tree: what is there was laid by somebody else."""
        agent = self._session.config.agent
        return agent.model_copy(update={"env": {**agent.env, "PYTHONDONTWRITEBYTECODE": "1"}})

    def check(self) -> None:
        """The change's agent, which runs beside it, could make it worse, so that its own loss looked like a drift."""
        found = self._tree.difference() if self._tree is not None else ""
        if found:
            what = f"{shorten(found, 200)!r} was changed in the base commit's work tree while the agent was run"
            raise ConfigError(what, hint="neither the agent nor what it starts may write to files that git tracks")


class ServedBase:
    """The base commit's agent at an address of its own."""

    def __init__(self, config: Config, options: AgentOptions | None, note: str = "", *, spoiled: bool = False) -> None:
        self._config, self._options = config, options
        self.possible, self.note, self.spoiled = options is not None, note, spoiled
        self.beside = self.without_rules = False

    def root(self) -> Path:
        return self._config.root

    def options(self) -> AgentOptions:
        assert self._options is not None, "nothing asks for a base that is not possible"
        return self._options

    def check(self) -> None:
        """Nothing of it is here."""


async def _served(session: Session, reference: Reference) -> ServedBase:
    """By `agent.base`; not possible where nothing is stored, the address is empty, or another version answers there."""
    config, environment = session.config, session.environment
    address, kind = config.agent.base, config.agent_kind
    assert address is not None
    if not reference.records:
        return ServedBase(config, None)
    try:
        url = expand(address.url, environment, where="agent.base.url")
        spoiled = _as_the_change(session, reference, url)
        problem = spoiled or await _other_version(session, reference, url)
    except GateError as error:
        spoiled, problem = "", str(error)
    if problem:
        note = "" if session.where.anchored else f"the base commit's agent is not run again: {problem}"
        return ServedBase(config, None, note, spoiled=bool(spoiled))
    server = server_of(config.agent, kind)
    assert server is not None
    changed = {"url": url} | ({"headers": address.headers} if address.headers is not None else {})
    return ServedBase(config, config.agent.model_copy(update={kind: server.model_copy(update=changed)}))


def _as_the_change(session: Session, reference: Reference, url: str) -> str:
    """That it would be the change's agent, or asked as that one is; empty if it is the base's own."""
    config, commit = session.config, reference.info.commit
    server = server_of(config.agent, config.agent_kind)
    if server is not None and expand(server.url, session.environment, where=config.agent_kind) == url:
        return "agent.base is the agent's own address"
    why = definition_differs(config, session.git, commit, but=("url", "headers")) if commit else ""
    return f"{why}, and it would be asked as the change's is" if why else ""


async def _other_version(session: Session, reference: Reference, url: str) -> str:
    """That the server tells another version than the baseline's; empty if it does not, or tells none."""
    config = session.config
    source = config.agent.version
    if source is None or source.header is None:
        return ""
    told = await version_of(config.agent_kind, config.agent, root=config.root, environment=session.environment, url=url)
    stored = reference.records[0]
    if with_tools(fingerprint_of_version(config, told), stored.trials) == stored.header.agent:
        return ""
    return f"{url} serves version {told!r}, and the stored baseline is of another"
