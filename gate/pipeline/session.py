"""The state shared by the suites of one run: options, configuration, git context, store, budget, and the agent's
fingerprint."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping, Sequence, Set
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

import gate
from gate.agents.base import referred_to
from gate.agents.http import server_of, shown_address, stated_options
from gate.agents.sources import Sources, sources_of, started_by, what_installs
from gate.agents.version import version_of
from gate.baselines import Store
from gate.baselines.fingerprint import files_named, of_agent, of_version
from gate.config.base_policy import Rules
from gate.config.load import Config
from gate.config.resolve import Plan
from gate.config.schema import NO_STORE
from gate.config.settings import settings_of, wanted_trials
from gate.decision import Settings
from gate.errors import ConfigError, MeasureError
from gate.pipeline.budget import RunBudget, judge_budget
from gate.pipeline.git_context import REPORTS, GitContext, git_context
from gate.pipeline.progress import Progress
from gate.pipeline.references import References, find_references
from gate.pipeline.store import store_of
from gate.security.environment import in_ci, is_allowed, is_secret, varies_by_run
from gate.security.limits import shorten
from gate.security.tree import OwnPackage
from gate.suites import case_files
from gate.system.clock import now
from gate.system.git import MAX_SUBJECT, Git

MOST_SHARDS = 10_000
_SHARD = re.compile(r"([0-9]{1,5})/([0-9]{1,5})")
BRANCHES = (
    *("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "CHANGE_BRANCH", "CIRCLE_BRANCH"),
    *("SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCH", "BITBUCKET_BRANCH", "BRANCH_NAME"),
)
"""Variables of GitHub, GitLab, Jenkins, CircleCI, Azure and Bitbucket that name the branch, a change's own first."""
MOST_SOURCES = 5
"""The most sources that a note proposes by name."""
STARTS_UNKNOWN = (
    "the command names no program of this repository, so it may read anything; name one, such as [python, agent.py]"
)
"""The reason why no sources of an agent can be told."""


class RunOptions(Struct, frozen=True):
    """The options of one run from the command line, in addition to the configuration."""

    record_path: Path | None = None
    statement_path: Path | None = None
    """The file of the command's statement, which is not part of the agent."""
    resume: bool = False
    shard: tuple[int, int] = (1, 1)
    command: str = "gate run"
    rules: Rules | None = None
    """The rules that replace the configuration's own, if a base commit's rules apply."""
    changed: tuple[str, ...] | None = None
    """Files that differed from the commit before anything was installed; None: read from git when the run begins."""
    origin: str = ""
    """A description of the record that this run continues, if an earlier job left one."""
    same_head: bool = False
    """True if a record of this very commit is continued even though nothing shows that the agent is still the same."""
    note: str = ""
    """A note on how this run came about."""
    anchored: bool | None = None
    """True to compare with the anchor too; None: only if git says that this is the default branch."""
    release: str = ""
    """The tag to be released."""
    setup: str | None = None
    """The commands that this job ran before starting the agent; None: the configuration's."""
    fills_baseline: bool | None = None
    """True to also run trials that the stored baseline lacks; None: only in the default branch's CI job."""

    @property
    def is_shard(self) -> bool:
        """True if the run measures a part of each suite and decides nothing."""
        return self.shard[1] > 1


def parse_shard(text: str, where: str = "") -> tuple[int, int]:
    """Return the part and the number of parts, from a text such as ``2/5``.

    Raises:
        ConfigError: the text has another form.
    """
    match = _SHARD.fullmatch(text)
    if match is not None and 1 <= int(match[1]) <= int(match[2]) <= MOST_SHARDS:
        return int(match[1]), int(match[2])
    raise ConfigError(f"{shorten(text, 50)!r} is not of the form 2/5", where=where)


class Session(Struct, frozen=True):
    """The state shared by the suites of one run."""

    config: Config
    options: RunOptions
    environment: Mapping[str, str]
    progress: Progress
    git: Git
    where: GitContext
    agent: str
    """The agent's fingerprint; empty if its source is not here and it has no version."""
    store: Store | None
    settings: Settings
    run_budget: RunBudget
    version: str = ""
    """The agent's version from `agent.version`; empty if it has none."""
    package: OwnPackage | None = None
    """The gate's own files before the agent was started; None if the gate does not start it."""

    @property
    def fills_baseline(self) -> bool:
        """True if this run fills the stored baseline: it was told to, or it is the CI job of the default branch."""
        return fills_baseline(self.config, self.where, self.environment, asked=self.options.fills_baseline)

    @property
    def kept_epochs(self) -> int:
        """Return how many epochs the run will have made when it ends; 0: as many as its verdict needs."""
        if not self.fills_baseline:
            return 0
        return wanted_trials(self.config)

    def baselines(self, plan: Plan, but: Set[str] = frozenset()) -> References:
        """Return the references of a suite, leaving out records of the runs ``but``, which may already be stored."""
        return find_references(self.config, self.store, plan.suite.id, self.where, self.git, but, plan=plan.planned)


def open_session(
    config: Config,
    options: RunOptions,
    environment: Mapping[str, str],
    progress: Progress,
    stack: ExitStack,
    written: Sequence[Path],
    version: str = "",
) -> Session:
    """Return the session of a run; ``version`` is the agent's, if it has one."""
    git = Git(config.root, environment=environment)
    root = git.root.resolve()
    left = [os.path.relpath(path.resolve(), root) for path in written]
    where = git_context(config, git, left, changed=options.changed, anchored=options.anchored, release=options.release)
    where = replace(where, branch=where.branch or _branch_in_ci(environment))
    budget = config.file.budget
    store = store_of(config, environment, proofs=not options.is_shard)
    if store is not None:
        stack.enter_context(store)
    return Session(
        config,
        options,
        environment,
        progress,
        git,
        where,
        agent_fingerprint(config, git, environment, left, version, where, options.setup),
        store,
        settings_of(config, now(), release=bool(where.release)),
        RunBudget(budget, judge_budget(budget)),
        version,
        OwnPackage(Path(gate.__file__).parent) if config.agent.is_local else None,
    )


def fills_baseline(
    config: Config, where: GitContext, environment: Mapping[str, str], *, asked: bool | None = None
) -> bool:
    """True if a run fills the stored baseline: it is ``asked`` to, or it is the CI job of the default branch."""
    if asked is None:
        asked = in_ci(environment) and where.anchored and where.head is not None
    return asked and not where.dirty and config.file.baseline.store != NO_STORE and wanted_trials(config) > 0


def _branch_in_ci(environment: Mapping[str, str]) -> str:
    """Return the branch of a CI job, which checks out a commit and not a branch."""
    return next((environment[name][:MAX_SUBJECT] for name in BRANCHES if environment.get(name)), "")


def agent_fingerprint(
    config: Config,
    git: Git,
    environment: Mapping[str, str],
    left: Sequence[str],
    version: str,
    where: GitContext,
    setup: str | None,
) -> str:
    """Return a fingerprint of the agent's files, settings, version and environment, without secrets.

    If the agent's source is not here, it is the fingerprint of its version; empty if it has none. ``left`` are the
    files that this run writes; they are not part of the agent. ``setup``: as in `RunOptions`.
    """
    agent = config.agent
    if not agent.is_local:
        return fingerprint_of_version(config, version)
    options = stated_options(agent)
    settings = [
        {key: value for key, value in options.items() if key not in ("version", "base", "user", "reads_suite")},
        config.file.setup if setup is None else setup,
        _handed_on(agent.env, environment),
    ]
    if version:
        settings.append(version)
    if agent.reads_suite:
        settings.append("reads_suite")
    root = git.root.resolve()
    cases = {config.path.name}
    for path in case_files([Path(name) for name in config.file.suite], config.root):
        cases.add(os.path.relpath(path.resolve(), root))
    files = git.files()
    scope = scope_of(config, git, files, setup)
    return of_agent(
        git,
        files=files,
        sources=scope.sources,
        entry=scope.entry,
        exclude=(config.file.output, REPORTS, *left),
        cases=cases,
        stored=config.file.baseline.folder,
        changed=_changed_baselines(git, where),
        settings=settings,
    )


def _handed_on(env: Mapping[str, str | None], environment: Mapping[str, str]) -> dict[str, str | None]:
    """Return the variables of the environment that the agent is handed, by name, by pattern or within a value, without
    secrets; those that each run sets anew count only by name."""
    found: dict[str, str | None] = {}
    for name, stated in env.items():
        if stated is not None:
            names = referred_to(stated)
        else:
            names = [name]
            names += [one for one in environment if is_allowed(one, (name,)) and not varies_by_run(one)]
        for one in names:
            if not is_secret(one):
                found[one] = environment.get(one)
    return found


class Scope(Struct, frozen=True):
    """The files of the repository that count as the agent's."""

    sources: tuple[str, ...]
    """The globs of `agent.sources`; none if every file counts."""
    entry: tuple[str, ...]
    """Names of files and folders that count whatever the globs say: what starts and what installs the agent."""
    starts: tuple[str, ...]
    """The files that start it; none if nobody can tell."""
    installs: tuple[str, ...]
    """The tracked files and folders that install it, whatever its sources say."""


def scope_of(config: Config, git: Git, files: Mapping[str, str | None] | None, setup: str | None = None) -> Scope:
    """Return which of the repository's ``files`` (the result of `Git.files`) count. ``setup``: as in `RunOptions`."""
    starts, installs = _starts(config, files), _installs(config, git, files, setup)
    sources = config.agent.sources
    if files is not None and not starts:
        sources = ()
    return Scope(sources, (*config.agent.entry, *starts, *installs), tuple(starts), tuple(installs))


def _starts(config: Config, files: Mapping[str, str | None] | None) -> list[str]:
    return started_by(config.agent.entry, config.agent.modules, config.root, files or ())


def _installs(config: Config, git: Git, files: Mapping[str, str | None] | None, setup: str | None) -> list[str]:
    if files is None:
        return []
    if setup is None:
        setup = config.file.setup or ""
    tracked = {name.rstrip("/") for name, commit in files.items() if commit is not None}
    for name in list(tracked):
        while name := posixpath.dirname(name):
            if name in tracked:
                break
            tracked.add(name)
    found = what_installs(git.root.resolve(), git.top(), setup)
    return [name for name in found if not tracked.isdisjoint((name, *map(str, PurePosixPath(name).parents[:-1])))]


def _changed_baselines(git: Git, where: GitContext) -> frozenset[str]:
    """Return the tracked files, baselines among them, that differ from the base of a change, relative to the root."""
    if where.base is None or where.anchored or where.base == where.head:
        return frozenset()
    return frozenset(_differing_here(git, where.base))


def _differing_here(git: Git, commit: str) -> list[str]:
    """Return the files that differ from a commit, relative to the root."""
    below = Path(git.prefix() or ".")
    return [os.path.relpath(name, below) for name in git.differing(commit)]


def proposed_sources(config: Config, git: Git, files: Mapping[str, str | None] | None, scope: Scope) -> Sources:
    """Return the sources that `agent.sources` could state, or the reason why they cannot be told. ``files`` is the
    result of `Git.files`, and ``scope`` what `scope_of` finds in it."""
    agent = config.agent
    if not scope.starts:
        return Sources(problem=STARTS_UNKNOWN)
    named = [value for value in agent.env.values() if value]
    if config.agent_kind != "python":
        named += agent.entry
    top = git.top() if files is not None else None
    return sources_of((*agent.entry, *scope.starts), git.root.resolve(), files or (), named, scope.installs, top)


def about_sources(session: Session) -> str:
    """Return a note if this change would have cost nothing with `agent.sources` set; else empty.

    That is so if it touches neither the suite, nor the configuration, nor any file that the agent imports or names.
    """
    config, git, where = session.config, session.git, session.where
    agent = config.agent
    if not agent.is_local or agent.sources or where.base is None or where.anchored:
        return ""
    changed, files = _differing_here(git, where.base), git.files()
    scope = scope_of(config, git, files, session.options.setup)
    sources = proposed_sources(config, git, files, scope).names
    fixed = [config.path.name, *config.file.suite]
    if not changed or not sources or files_named(changed, [*sources, *fixed], scope.entry):
        return ""
    stated = ", ".join(sources[:MOST_SOURCES]) + (", …" if len(sources) > MOST_SOURCES else "")
    return f"this change touches none of the agent's files: with `agent.sources: [{stated}]` it would cost no run"


def about_unused_sources(config: Config, git: Git) -> str:
    """Return a note if `agent.sources` is stated but has no effect; else empty."""
    if not config.agent.is_local or not config.agent.sources:
        return ""
    files = git.files()
    if files is None or _starts(config, files):
        return ""
    return f"every file counts as the agent's, in spite of `agent.sources`: {STARTS_UNKNOWN}"


def about_address(config: Config, agent: str) -> str:
    """Return a note if no verdict is tied to a commit: the agent is behind an address and has no fingerprint."""
    server = server_of(config.agent, config.agent_kind)
    if agent or server is None:
        return ""
    address = shown_address(server.url)
    what = f"this verdict is about whatever answers at {address}, not about a commit"
    return f"{what}: restart the server after each commit, or set `agent.version`"


def about_literal_version(config: Config) -> str:
    """Return a note if the version for which runs are saved is a fixed text that may not have been raised; else
    empty."""
    source = config.agent.version
    if config.agent.is_local or source is None or source.text is None or "${" in source.text:
        return ""
    return (
        f"`agent.version` is the text {shorten(source.text, 60)!r}, which stays until somebody changes it: "
        "whether the same agent answers now, nobody has asked; a command or a header would tell"
    )


def may_change(config: Config) -> bool:
    """True if the agent's version is looked up, so that it may have changed by the end of the run.

    Then trials count only once `check_version` has passed, and the record is closed only after that.
    """
    source = config.agent.version
    return source is not None and source.text is None


async def check_version(session: Session) -> None:
    """Raise MeasureError if the agent's version has changed, as its answers belong to neither version."""
    if not session.version:
        return
    config = session.config
    now_ = await version_of(config.agent_kind, config.agent, root=config.root, environment=session.environment)
    if now_ != session.version:
        what = f"the agent's version changed during the run, from {session.version!r} to {now_!r}"
        raise MeasureError(what, where="agent.version", hint="measure again once it is stable; nothing was stored")


def check_package(session: Session) -> None:
    """Raise ConfigError if one of the gate's own files has changed: an agent that runs as the same user can write to
    it."""
    if session.package is None:
        return
    changed = session.package.drop_new_bytecode() or session.package.difference()
    if changed:
        what = f"{shorten(changed, 200)!r} of the gate's own package was changed during the run"
        raise ConfigError(what, hint="reinstall the gate, and run the agent as another user: agent.user")


def fingerprint_of_version(config: Config, version: str) -> str:
    """Return the fingerprint of an agent that the gate does not start; empty if it has no version."""
    return of_version(config.agent_kind, stated_options(config.agent), version) if version else ""
