"""The state shared by the suites of one run: options, configuration, git context, store, budget, and the agent's
fingerprint."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence, Set
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

import gate
from gate.agents.sources import AgentFiles
from gate.agents.version import version_of
from gate.baselines import BlobStore
from gate.baselines.fingerprint import files_named
from gate.config.base_policy import Rules
from gate.config.load import Config
from gate.config.resolve import Plan
from gate.config.schema import NO_STORE
from gate.config.settings import settings_of, wanted_trials
from gate.decision import Settings
from gate.errors import ConfigError, MeasureError
from gate.pipeline.budget import RunBudget, judge_budget
from gate.pipeline.identity import (
    GitContext,
    agent_fingerprint,
    files_of_agent,
    from_root,
    git_context,
    may_change,
    own_places,
)
from gate.pipeline.progress import Progress
from gate.pipeline.references import References, find_references
from gate.pipeline.store import store_of
from gate.records import Header
from gate.reports.formatting import listing
from gate.security.environment import in_ci
from gate.security.escape import one_line
from gate.security.limits import shorten
from gate.security.tree import OwnPackage
from gate.system.clock import now
from gate.system.git import MAX_SUBJECT, Git, GitError

MOST_SHARDS = 10_000
_SHARD = re.compile(r"([0-9]{1,5})/([0-9]{1,5})")
BRANCHES = (
    *("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "CHANGE_BRANCH", "CIRCLE_BRANCH"),
    *("SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCH", "BITBUCKET_BRANCH", "BRANCH_NAME"),
)
"""Variables of GitHub, GitLab, Jenkins, CircleCI, Azure and Bitbucket that name the branch, a change's own first."""


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
    files: AgentFiles
    """The files of the repository that are the agent's, as they were when the run began."""
    store: BlobStore | None
    settings: Settings
    run_budget: RunBudget
    version: str = ""
    """The agent's version from `agent.version`; empty if it has none."""
    package: OwnPackage | None = None
    """The gate's own files before the agent was started; None if the gate does not start it."""
    written: tuple[str, ...] = ()
    """Files that this run writes, relative to the root."""
    began: float = 0.0
    """The Unix time before anything was looked at."""

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
    began = now().timestamp()
    git = Git(config.root, environment=environment)
    root = git.root.resolve()
    left = [os.path.relpath(path.resolve(), root) for path in written]
    where = git_context(config, git, left, changed=options.changed, anchored=options.anchored, release=options.release)
    for name in BRANCHES:  # a CI job checks out a commit and not a branch
        where = replace(where, branch=where.branch or environment.get(name, "")[:MAX_SUBJECT])
    budget = config.file.budget
    files = files_of_agent(config, git, options.setup)
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
        agent_fingerprint(config, git, environment, left, version, where, files, options.setup),
        files,
        store,
        settings_of(config, now(), release=bool(where.release)),
        RunBudget(budget, judge_budget(budget)),
        version,
        OwnPackage(Path(gate.__file__).parent) if config.agent.is_local else None,
        tuple(left),
        began,
    )


def fills_baseline(
    config: Config, where: GitContext, environment: Mapping[str, str], *, asked: bool | None = None
) -> bool:
    """True if a run fills the stored baseline: it is ``asked`` to, or it is the CI job of the default branch."""
    if asked is None:
        asked = in_ci(environment) and where.anchored and where.head is not None
    return asked and not where.dirty and config.file.baseline.store != NO_STORE and wanted_trials(config) > 0


async def check_version(session: Session) -> None:
    """Raise MeasureError if the agent's version has changed, as its answers belong to neither version."""
    if not session.version:
        return
    config = session.config
    now_ = await version_of(config.agent_kind, config.agent, root=config.root, environment=session.environment)
    if now_ != session.version:
        what = f"the agent's version changed during the run, from {session.version!r} to {now_!r}"
        raise MeasureError(what, where="agent.version", hint="measure again once it is stable; nothing was stored")


def unconfirmed(session: Session, header: Header) -> bool:
    """True if nobody knows which agent answered in a run, with this header, that was cut short.

    One of the agent's tracked files may have been written since it began, and even been restored. A CI job is not
    checked: all of its files are new.
    """
    if may_change(session.config):
        return True
    if not session.where.head or not _is_worked_on(session):
        return False
    late = []
    for name, commit in (session.files.files or {}).items():
        if commit is not None and _written_at(session.git.root / name) > header.created:
            late.append(name)
    return bool(_of_agent(session, late))


MOST_NAMED = 3
"""The most changed files that a note names."""


def change_of_files(session: Session) -> str:
    """Return a note if the agent's files were not those of the commit that this run is recorded under, all the time;
    else empty.

    Then the record counts as one with uncommitted changes. A CI job is not checked: nobody works on its tree, so what
    changes there, the agent writes itself.
    """
    where, git = session.where, session.git
    if not where.head or where.dirty or not _is_worked_on(session):
        return ""
    exclude = (*own_places(session.config), *session.written)
    try:
        found = dict.fromkeys(git.no_longer_as_in(where.head, exclude=exclude))
        for other in git.checked_out_since(session.began):
            found |= dict.fromkeys(git.no_longer_as_in(where.head, other, exclude=exclude))
    except GitError as error:
        return f"nobody knows whether the agent's files changed during the run ({error}): {AS_UNCOMMITTED}"
    names = _of_agent(session, from_root(git, list(found)))
    if not names:
        return ""
    shown = [one_line(name, 60) for name in names[:MOST_NAMED]]
    if len(names) > MOST_NAMED:
        shown.append(f"{len(names) - MOST_NAMED} more")
    return f"{listing(shown)} changed during the run: {AS_UNCOMMITTED}; {OWN_WRITES}"


AS_UNCOMMITTED = "it counts as a run with uncommitted changes"
OWN_WRITES = "`agent.sources` leaves out what the agent itself writes"


def _is_worked_on(session: Session) -> bool:
    """True if somebody may change the agent's files while the gate runs."""
    return session.config.agent.is_local and not in_ci(session.environment)


def _written_at(path: Path) -> float:
    """Return when a file was last written, renamed or given another mode; 0 if it is gone."""
    try:
        return path.lstat().st_ctime
    except OSError:
        return 0.0


def _of_agent(session: Session, names: Sequence[str]) -> list[str]:
    """Return those of these files that count as the agent's."""
    return files_named(names, session.files.sources, session.files.entry)


def check_package(session: Session) -> None:
    """Raise ConfigError if one of the gate's own files has changed: an agent that runs as the same user can write to
    it."""
    if session.package is None:
        return
    changed = session.package.drop_new_bytecode() or session.package.difference()
    if changed:
        what = f"{shorten(changed, 200)!r} of the gate's own package was changed during the run"
        raise ConfigError(what, hint="reinstall the gate, and run the agent as another user: agent.user")
