"""The identity of what is measured: where its commit stands in the history, and which agent it is.

A change is measured against the merge base with the default branch; a commit of that branch, against the one before it.
An agent that the gate starts is known by its files, its settings and its environment, any other by its version. The
base commit's agent is the same as it was only if the change touches neither its definition nor what this job installed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from gate.agents.base import referred_to
from gate.agents.http import server_of, shown_address, stated_options
from gate.agents.sources import INSTALLED, STARTS_UNKNOWN, AgentFiles, named_by
from gate.baselines.fingerprint import PACE, files_named, of_agent, of_version
from gate.config.base_policy import place_of
from gate.config.load import Config
from gate.errors import ConfigError, GateError
from gate.formats.documents import parse_document
from gate.security.environment import is_allowed, is_secret, varies_by_run
from gate.security.escape import one_line
from gate.security.limits import shorten
from gate.suites import case_files
from gate.system.git import Git, GitError

# --- the commit -----------------------------------------------------------------------------------


SHALLOW = "the clone is shallow: older baselines cannot be found (use fetch-depth: 0, on GitLab GIT_DEPTH: 0)"
NO_GIT = "git is not installed (no program of that name in PATH), so commits are not known"
"""The note for a folder inside a repository when git is missing."""
NO_DEFAULT_BRANCH = (
    "the default branch is not known here, so this commit is compared with the one before it: `--against` names another"
)
SEARCHED = 200
"""The most first-parent ancestors to search."""
REPORTS = "gate-results"
"""The folder of reports and records that later steps read; the action writes it and the guides name it."""


class GitContext(Struct, frozen=True):
    """The position of the work tree in its history."""

    head: str | None = None
    dirty: bool = False
    base: str | None = None
    """The commit that the change is measured against."""
    ancestors: tuple[str, ...] = ()
    """The base and its first-parent ancestors, nearest first."""
    note: str = ""
    anchored: bool = False
    """True to compare with the anchor too: on the default branch, and for a release."""
    release: str = ""
    """The tag to be released; empty if this is no release."""
    is_cut: bool = False
    """True if further ancestors may exist that a shallow clone lacks."""
    subject: str = ""
    """First line of the commit's message."""
    branch: str = ""
    """The branch that is checked out; empty if HEAD is detached."""


def changed_files(config: Config, git: Git, written: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the user's files that differ from HEAD; ``written``: files that a run creates, relative to the root."""
    if not git.is_repository():
        return ()
    return tuple(git.changed(exclude=(*own_places(config), *written)))


def own_places(config: Config) -> tuple[str, ...]:
    """Return the files and folders, relative to the root, that the gate itself writes."""
    return (config.file.output, config.file.baseline.folder, REPORTS)


def git_context(
    config: Config,
    git: Git,
    written: Sequence[str] = (),
    *,
    changed: Sequence[str] | None = None,
    anchored: bool | None = None,
    release: str = "",
) -> GitContext:
    """Return the position of the work tree in its history.

    The base is ``baseline.against`` if given, else the merge base with the default branch. On that branch itself it is
    the commit before HEAD, or HEAD while the work tree differs from it. ``changed`` is the result of `changed_files`,
    if called before something was installed here. ``anchored`` None: True for a clean commit of the default branch.
    """
    if not git.is_repository():
        if config.file.baseline.against is not None:
            raise ConfigError(
                f"{config.file.baseline.against!r} names a commit, but this is not a git repository",
                where=config.place_of("baseline", "against"),
                hint="remove it to compare with the stored baseline",
            )
        why = NO_GIT if git.is_out_of_reach() else "not a git repository"
        return GitContext(note=f"{why}: the last saved baseline is used", release=release)
    head = git.head()
    dirty = bool(changed_files(config, git, written) if changed is None else changed)
    tip = _default_tip(git, config.file.baseline.remote)
    base = _base(config, git, head, dirty, tip)
    if anchored is None:
        anchored = bool(release) or bool(head and tip and not dirty and git.is_ancestor(head, tip))
    ancestors = _ancestors(git, base, config.file.baseline.remote)
    is_cut = head is not None and len(ancestors) < SEARCHED and git.is_shallow()
    note = ""
    if is_cut:
        note = SHALLOW
    elif tip is None and base not in (None, head) and config.file.baseline.against is None:
        note = NO_DEFAULT_BRANCH
    subject = git.subject(head) if head else ""
    return GitContext(head, dirty, base, ancestors, note, anchored, release, is_cut, subject, git.branch())


def _base(config: Config, git: Git, head: str | None, dirty: bool, tip: str | None) -> str | None:
    """Return the commit that the change is measured against (see `git_context`); ``tip`` is the default branch's."""
    against, remote = config.file.baseline.against, config.file.baseline.remote
    if against is not None:
        found = git.resolve(against) or git.resolve(f"{remote}/{against}") or _remote_tip(git, against, remote)
        if found is None:
            place = config.place_of("baseline", "against")
            raise ConfigError(f"no commit {against!r} here", where=place, hint="fetch it first")
        return found
    if head is None:
        return None
    if tip is not None:
        common = None
        with suppress(GitError):
            common = git.common_history(head, tip, remote=remote)  # fetched if a shallow clone lacks it
        if common not in (None, head):
            return common
    if dirty:
        return head
    parents = git.parents(head)
    if not parents and git.is_shallow():  # they may be beyond its edge
        with suppress(GitError):
            git.fetch(head, remote=remote, depth=SEARCHED + 1)
        parents = git.parents(head)
    return parents[0] if parents else None


def _ancestors(git: Git, base: str | None, remote: str) -> tuple[str, ...]:
    """Return the base and its first-parent ancestors, nearest first, fetching those that a shallow clone lacks."""
    if base is None:
        return ()
    found = git.first_parents(base, SEARCHED)
    if len(found) < SEARCHED and git.is_shallow():
        with suppress(GitError):
            git.fetch(base, remote=remote, depth=SEARCHED)
        found = git.first_parents(base, SEARCHED)
    return tuple(found)


def _default_tip(git: Git, remote: str) -> str | None:
    """Return the default branch's newest commit, fetched if the clone has only other branches; without a remote, that
    of the local main or master."""
    branch = git.default_branch(remote)
    for name in [f"remotes/{remote}/{branch}", f"heads/{branch}"] if branch else ["heads/main", "heads/master"]:
        found = git.resolve(f"refs/{name}")
        if found is not None:
            return found
    return _remote_tip(git, branch, remote) if branch is not None else None


def _remote_tip(git: Git, branch: str, remote: str) -> str | None:
    """Return the newest commit of a branch that the clone may lack, fetched; None if the remote has none."""
    try:
        return git.remote_tip(branch, remote=remote, depth=SEARCHED)
    except GitError:
        return None


# --- the agent --------------------------------------------------------------------------------------

MOST_SOURCES = 5
"""The most sources that a note proposes by name."""
MOST_NAMED = 80
"""The longest name shown, in characters."""
_JOBS = re.compile(
    r"\.gitlab-ci\.ya?ml|\.github/workflows/.+|\.circleci/.+|Jenkinsfile|(?:azure|bitbucket)-pipelines\.ya?ml"
)
"""Files that define what a CI job does, relative to the repository's top."""
_OF_A_RUN = frozenset((*PACE, "transient", "traces", "reports_calls"))
"""Keys of ``agent`` that concern the measurement, not the agent that is measured."""

_MEASURING = ("fields", "format", "tool_categories", "judge", "simulated_user", "world")
"""Keys of a configuration that decide how a conversation is held, answered or scored."""


# --- its fingerprint ------------------------------------------------------------------------------


def agent_fingerprint(
    config: Config,
    git: Git,
    environment: Mapping[str, str],
    left: Sequence[str],
    version: str,
    where: GitContext,
    found: AgentFiles,
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
    changed: frozenset[str] = frozenset()
    if where.base is not None and not where.anchored and where.base != where.head:  # baselines that a change edits
        changed = frozenset(_differing_here(git, where.base))
    return of_agent(
        git,
        files=found.files,
        sources=found.sources,
        entry=found.entry,
        exclude=(config.file.output, REPORTS, *left),
        cases=cases,
        stored=config.file.baseline.folder,
        changed=changed,
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


def fingerprint_of_version(config: Config, version: str) -> str:
    """Return the fingerprint of an agent that the gate does not start; empty if it has no version."""
    return of_version(config.agent_kind, stated_options(config.agent), version) if version else ""


def files_of_agent(config: Config, git: Git, setup: str | None = None) -> AgentFiles:
    """Return which files of the repository are the agent's. ``setup``: as in `RunOptions`."""
    if setup is None:
        setup = config.file.setup or ""
    return AgentFiles(config.agent_kind, config.agent, git, setup)


def _differing_here(git: Git, commit: str) -> list[str]:
    """Return the files that differ from a commit, relative to the root."""
    return from_root(git, git.differing(commit))


def from_root(git: Git, names: Sequence[str]) -> list[str]:
    """Return names that start from the top of the work tree relative to the root."""
    below = Path(git.prefix() or ".")
    return [os.path.relpath(name, below) for name in names]


def about_sources(config: Config, git: Git, where: GitContext, found: AgentFiles) -> str:
    """Return a note if this change would have cost nothing with `agent.sources` set; else empty.

    That is so if it touches neither the suite, nor the configuration, nor any file that the agent imports or names.
    """
    agent = config.agent
    if not agent.is_local or agent.sources or where.base is None or where.anchored:
        return ""
    changed, sources = _differing_here(git, where.base), found.proposed.names
    fixed = [config.path.name, *config.file.suite]
    if not changed or not sources or files_named(changed, [*sources, *fixed], found.entry):
        return ""
    stated = ", ".join(sources[:MOST_SOURCES])
    if len(sources) > MOST_SOURCES:
        stated += ", …"
    return f"this change touches none of the agent's files: with `agent.sources: [{stated}]` it would cost no run"


def about_unused_sources(config: Config, found: AgentFiles) -> str:
    """Return a note if `agent.sources` is stated but has no effect; else empty."""
    if not config.agent.is_local or not config.agent.sources:
        return ""
    if found.files is None or found.starts:
        return ""
    return f"every file counts as the agent's, in spite of `agent.sources`: {STARTS_UNKNOWN}"


# --- its version ----------------------------------------------------------------------------------


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


# --- the same agent at another commit -------------------------------------------------------------
# The gate starts the base commit's agent from its own work tree, but with the change's packages, variables and agent
# definition. Where the change touches those, the base's agent would fail as the change's does, and a regression would
# pass for drift.


def has_configuration(config: Config, git: Git, commit: str) -> bool:
    """True if the commit has a file at the configuration's path, readable or not."""
    try:
        return _stored(config, git, commit) is not None
    except GateError:
        return True


def surroundings_differ(
    config: Config,
    git: Git,
    commit: str,
    setup: str | None = None,
    imported: Sequence[PurePosixPath] = (),
) -> str:
    """Return the file or key that keeps the base commit's agent from running as it did; empty if nothing does.

    Args:
        config: the change's configuration.
        git: the change's repository.
        commit: the base.
        setup: the commands that this job ran, if they are not the configuration's.
        imported: folders, relative to the repository's top, of which the base's agent would import the change's files.
    """
    own = PurePosixPath(place_of(config.path)[1].parent.as_posix())
    measured = [own / config.path.name, *(own / name for name in config.file.suite)]
    installed = named_by(config.file.setup or "" if setup is None else setup, own)
    had_job = has_configuration(config, git, commit)  # else no job of the base measured its agent differently
    for name in git.differing(commit):
        path = PurePosixPath(name)
        if any(map(path.is_relative_to, measured)):
            continue
        near = path.parent.is_relative_to(own) or own.is_relative_to(path.parent)
        for folder in filter(path.is_relative_to, imported):
            cure = ""
            if hasattr(config.agent, "path"):
                cure = f" (`agent.path: [{os.path.relpath(folder, own)}]` would import each commit's own)"
            return f"{one_line(name, MOST_NAMED)} differs{cure}"
        is_installed = (near and INSTALLED.fullmatch(path.name)) or any(map(path.is_relative_to, installed))
        if is_installed or (had_job and _JOBS.fullmatch(name)):
            return f"{one_line(name, MOST_NAMED)} differs"
    return definition_differs(config, git, commit)


def definition_differs(config: Config, git: Git, commit: str, *, but: Sequence[str] = ()) -> str:
    """Return the key by which the configuration starts a different agent than at the commit; empty if there is none.

    ``but``: options of the agent's kind that are replaced for the base.
    """
    before, now = _before_and_now(config, git, commit)
    if before is None or now is None:  # no such file, or an unreadable one: the commit is taken at its word
        return ""
    if before.get("setup") != now.get("setup"):
        return "setup differs"
    old, new = _definition(before.get("agent"), but), _definition(now.get("agent"), but)
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            return f"agent.{one_line(key, MOST_NAMED)} differs"
    return ""


def measures_alike(config: Config, git: Git, commit: str) -> bool:
    """True if the configuration at the commit holds and scores conversations as this one does.

    The fingerprints of the agent, the cases and the criteria do not cover that.
    """
    before, now = _before_and_now(config, git, commit)
    if before is None or now is None:
        return False
    return all(before.get(key) == now.get(key) for key in _MEASURING)


def _before_and_now(config: Config, git: Git, commit: str) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """Return the configuration as written at the commit and as written now; None for an unreadable one."""
    return _read(lambda: _stored(config, git, commit)), _read(config.path.read_bytes)


def _stored(config: Config, git: Git, commit: str) -> bytes | None:
    """Return the configuration file's content at the commit; None if the commit has no such file."""
    return git.show(commit, os.path.relpath(config.path, git.root))


def _read(content: Callable[[], bytes | None]) -> Mapping[str, Any] | None:
    """Return a configuration as written, without overrides from the command line or the action."""
    with suppress(GateError, OSError, UnicodeDecodeError):
        text = content()
        if text is not None:
            found = parse_document(text.decode(), "gate.yaml")
            if isinstance(found, Mapping):
                return found
    return None


def _definition(agent: Any, but: Sequence[str]) -> dict[str, Any]:
    if not isinstance(agent, Mapping):
        return {}
    found = {key: value for key, value in agent.items() if key not in _OF_A_RUN}
    for key, value in found.items():
        if but and isinstance(value, str):
            found[key] = ""  # only an address
        elif but and isinstance(value, Mapping):
            found[key] = {name: held for name, held in value.items() if name not in but} or ""
    return found
