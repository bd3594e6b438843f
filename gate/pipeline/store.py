"""The store of baselines for a run: its kind, its place, and the part of it that is trusted.

A baseline is trusted if it is proven: by the artifact of a job on the default branch, or by a signature. On GitHub only
a run itself can write its artifact, and GitHub tells the run's commit, event and workflow file. Artifacts expire, so
each job that records a baseline copies the earlier proofs into its own artifact (`gate.baselines.proofs`): the newest
one vouches for all. Elsewhere, a key named in the configuration has signed the proofs, which then lie in the ledger.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gate.baselines import BlobStore, StoreSettings, open_store
from gate.baselines.base import SUFFIX
from gate.baselines.ledger import Signed
from gate.baselines.proofs import FILE, Proofs, joined, proofs_of, read
from gate.baselines.proven import Provenance, Prover, Unchecked
from gate.config.load import Config
from gate.config.schema import NO_STORE
from gate.errors import BaselineWriteError, ConfigError, PublishError, UntrustedError
from gate.hosts.artifact import members, read_member
from gate.hosts.events import MeasuringRun
from gate.hosts.rest import RestError
from gate.records import parse_record
from gate.records.keys import suite_key
from gate.security.environment import ARTIFACT, TOKEN, in_ci
from gate.security.escape import one_line
from gate.security.limits import shorten
from gate.security.signing import opened
from gate.system.git import Git, GitError

if TYPE_CHECKING:
    from gate.hosts.github import GitHub


def store_kind(config: Config, environment: Mapping[str, str]) -> str:
    """Return the configured kind of store; by default files, and in CI the repository's own branch.

    Files that a job writes next to its clone are lost with it. But a folder that already exists, committed or restored,
    is still used, and so it is if there is no remote to push to. Under the rules of a base commit, a folder that the
    change commits does not count: it would leave the change with nothing to be compared with.
    """
    section = config.file.baseline
    stated = "store" in section.model_fields_set or "path" in section.options
    git = Git(config.root, environment=environment)
    if stated or not in_ci(environment) or _has_folder(config, git):
        return section.store
    has_remote = git.is_repository() and git.ask("config", "--get", f"remote.{section.remote}.url") is not None
    return "git" if has_remote else section.store


def _has_folder(config: Config, git: Git) -> bool:
    """True if the file store's folder exists; under a base's rules, in the base's tree or with uncommitted records."""
    name = config.file.baseline.folder
    folder = config.root / name
    if config.base_root is None or (config.base_root / name).is_dir():
        return config.base_root is not None or folder.is_dir()
    return _has_restored(config, git)


def _has_restored(config: Config, git: Git) -> bool:
    """True if the file store's folder has records that are in no commit."""
    folder = str(config.root / config.file.baseline.folder)
    restored = git.ask("ls-files", "-z", "--others", "--", folder) if git.is_repository() else None
    return any(name.endswith(SUFFIX) for name in (restored or "").split("\0"))


def store_of(config: Config, environment: Mapping[str, str], *, proofs: bool = True) -> BlobStore | None:
    """Return the store of baselines, with the proofs of its records if they are looked up; None if it is off.

    ``proofs``: False for a run that decides nothing, such as a shard, whose artifact has none.
    """
    section, kind = config.file.baseline, store_kind(config, environment)
    if kind == NO_STORE:
        return None
    settings = StoreSettings(
        root=_root_of(config, kind, environment),
        environment=environment,
        remote=section.remote,
        options=section.options,
        token=environment.get(TOKEN) or environment.get("GITHUB_TOKEN", ""),
        server=environment.get("GITHUB_SERVER_URL", "https://github.com"),
    )
    store, level = open_store(kind, settings), _level_of(config, environment, kind)
    if level != "off" and proofs:
        store.provenance = Provenance(store, _provers(config, environment), required=level == "block")
    return store


def _root_of(config: Config, kind: str, environment: Mapping[str, str]) -> Path:
    """Return the folder that the store's paths are relative to.

    A change could edit a committed folder, or add one: under a base's rules it is read as the base commit has it.
    Records in no commit are the job's, for instance from a cache. Raises ConfigError if one folder has both.
    """
    base, name = config.base_root, config.file.baseline.folder
    if kind != "file" or base is None:
        return config.root
    if (base / name).is_dir():
        return base
    git = Git(config.root, environment=environment)
    brought = git.tracked_in(config.root / name)
    if brought is not None and _has_restored(config, git):
        what = f"the change brings {one_line(brought, 200)} into the folder of the baselines, which counts once merged"
        raise ConfigError(
            what, where=str(config.root / name), hint="remove it from the change, or keep baselines elsewhere"
        )
    return config.root if brought is None else base


# --- the proofs of its records ----------------------------------------------------------------------


def _level_of(config: Config, environment: Mapping[str, str], kind: str) -> str:
    """Return the proof required of baselines here: ``off``, ``warn`` or ``block``; ``kind`` is the store's.

    By default they are checked wherever that is possible: on GitHub for the repository's branch, and where a key is
    named. A developer's own machine is never blocked.
    """
    section = config.file.baseline
    stated = "require_provenance" in section.model_fields_set
    if not stated and not section.key and not (kind == "git" and _on_github(environment)):
        return "off"
    if section.require_provenance == "block" and not in_ci(environment):
        return "warn"
    return section.require_provenance


def _on_github(environment: Mapping[str, str]) -> bool:
    needed = ("GITHUB_REPOSITORY", "GITHUB_WORKFLOW_REF", "GITHUB_EVENT_NAME")
    token = environment.get(TOKEN) or environment.get("GITHUB_TOKEN")
    return environment.get("GITHUB_ACTIONS") == "true" and bool(token) and all(map(environment.get, needed))


def _provers(config: Config, environment: Mapping[str, str]) -> list[Prover]:
    """Return the provers that can work here; if there are none, one that says so."""
    found: list[Prover] = []
    if _on_github(environment):
        found.append(RunProver(config, environment))
    if config.file.baseline.key:
        found.append(KeyProver(config.file.baseline.key))
    if found:
        return found
    nobody = Prover()
    nobody.reasons[NOBODY] = None
    return [nobody]


# --- signatures -------------------------------------------------------------------------------------


class KeyProver(Prover):
    """Reads proofs in the ledger that the holder of the key has signed."""

    def __init__(self, public_key: str) -> None:
        super().__init__()
        self._key = public_key.encode()
        self._found: dict[str, Proofs] = {}

    def known(self, store: Unchecked, suite_id: str) -> Proofs:
        if suite_id not in self._found:
            lines = store.stored_ledger(suite_id).signed
            self._found[suite_id] = joined(self._signed(line, suite_id) for line in lines)
        return self._found[suite_id]

    def _signed(self, line: Signed, suite_id: str) -> Proofs:
        """Return the proofs in a line; none if it was signed or changed by someone else, as anyone can write to the
        ledger."""
        try:
            found = read(opened(line.envelope.encode(), self._key), suite_id)
        except UntrustedError:
            return Proofs()
        except ConfigError as error:  # the key or the library is missing
            self.problems[str(error)] = None
            return Proofs()
        return found.of_suite(suite_key(suite_id))


# --- runs of GitHub ---------------------------------------------------------------------------------


RESULTS = "gate-results"
"""Name of a job's artifact, unless the action sets another."""
NAME = "agent-gate"
"""A word found in every workflow file that uses the gate."""
FOLDER = ":/.github/workflows"
HISTORY = 200
"""The number of the default branch's commits to fetch into a shallow clone."""
MOST_HISTORY = 10_000
"""The most commits of the default branch to read."""
CHAINED = 3
"""Number of newest jobs to trust together, as concurrent jobs do not know of each other."""
TRIED = 12
"""The number of newest runs per event and workflow file that are searched for those jobs."""
RUNS_OF_COMMIT = 3
"""Runs to query per commit."""
LOOK_UPS = 12
"""The most commits to look up one by one."""
FORMER = 3
"""Number of stored commits whose runs may reveal an earlier name of the default branch."""
MAY_NOT = (403, 404)
GONE = (404, 410)
NOBODY = "only a job on GitHub can ask who measured them, unless `baseline.key` is given"
NO_JOB = (
    "no job of the default branch, {0!r}, has left proofs: let a workflow that uses the gate run on pushes to {0!r}"
)
PERMISSION = "the token may not read the runs: add `permissions: {actions: read}` to the job"


class RunProver(Prover):
    """Reads proofs in the artifacts of jobs that ran merged code, on a commit of the default branch."""

    def __init__(self, config: Config, environment: Mapping[str, str]) -> None:
        super().__init__()
        self._config = config
        self._environment = environment
        self._git = Git(config.root, environment=environment)
        self._of_run: dict[int, Proofs] = {}
        self._of_branch: dict[str, Proofs] = {}
        self._of_suite: dict[str, Proofs] = {}
        self._commits = 0
        self._connected: GitHub | None = None
        self._tip = ""

    def close(self) -> None:
        if self._connected is not None:
            self._connected.close()
            self._connected = None

    def known(self, store: Unchecked, suite_id: str) -> Proofs:
        """Return the proofs that the newest jobs of the default branch carry; if none do, those under a former name."""
        branch, _ = self._default
        own = self._carried(branch) if branch else Proofs()
        if own.digests or not branch:
            return own
        if suite_id not in self._of_suite:
            self.reasons[NO_JOB.format(branch)] = None
            former = self._former_names(store, suite_id)
            self._of_suite[suite_id] = joined(self._carried(name) for name in former)
        return self._of_suite[suite_id]

    def _carried(self, branch: str) -> Proofs:
        """Return the proofs that the newest jobs carry, of those that ran on a default branch of this name."""
        if branch not in self._of_branch:
            found = []
            for run in self._runs(self._default[1], TRIED, branch=branch):
                proofs = self._in_artifact(run)
                if proofs.digests:
                    found.append(proofs)
                if len(found) == CHAINED:
                    break
            self._of_branch[branch] = joined(found)
        return self._of_branch[branch]

    def _former_names(self, store: Unchecked, suite_id: str) -> list[str]:
        """Return the names of the branches on which the newest stored commits were measured; only the commits are
        trusted."""
        branch, history = self._default
        commits = [entry.commit for entry in store.stored_entries(suite_id) if entry.commit in history]
        names: dict[str, None] = {}
        for commit in commits[:FORMER]:
            for run in self._runs({commit}, RUNS_OF_COMMIT, head_sha=commit):
                if run.head_branch not in ("", branch):
                    names[run.head_branch] = None
        return list(names)

    def of_commit(self, commit: str) -> Proofs:
        if commit not in self._default[1]:
            return Proofs()
        self._commits += 1
        if self._commits > LOOK_UPS:
            self.reasons[f"no more than {LOOK_UPS} commits are looked up one by one"] = None
            return Proofs()
        return joined(self._in_artifact(run) for run in self._runs({commit}, RUNS_OF_COMMIT, head_sha=commit))

    @property
    def _asks(self) -> bool:
        """True unless an earlier request failed, as the next would too."""
        return not self.problems and PERMISSION not in self.reasons

    def _runs(self, heads: Set[str], most: int, **asked: str) -> list[MeasuringRun]:
        try:
            return self._github.own_runs(self._workflows, heads, most, **asked) if self._asks else []
        except PublishError as error:
            if isinstance(error, RestError) and error.status in MAY_NOT and not error.is_limit:
                self.reasons[PERMISSION] = None
            else:
                self._note(error)
            return []

    def _note(self, error: PublishError) -> None:
        self.problems[f"GitHub could not be asked: {shorten(str(error), 200)}"] = None

    def _in_artifact(self, run: MeasuringRun) -> Proofs:
        """Return the proofs in a run's artifact: those it carries over, and those of the records it measured itself.

        None if the artifact is gone or cannot be read.
        """
        if run.id not in self._of_run and self._asks:
            found: list[Proofs] = []
            try:
                archive = self._github.artifact(run, self._environment.get(ARTIFACT) or RESULTS)
                found = list(_proofs_in(archive, run))
            except UntrustedError as error:
                self.reasons[shorten(str(error), 200)] = None
            except PublishError as error:
                if isinstance(error, RestError) and error.status in GONE:
                    self.reasons[f"the artifact of run {run.id} is gone"] = None
                else:
                    self._note(error)
            self._of_run[run.id] = joined(found)
        return self._of_run.get(run.id, Proofs())

    @property
    def _github(self) -> GitHub:
        if self._connected is None:
            token = self._environment.get(TOKEN) or self._environment.get("GITHUB_TOKEN", "")
            from gate.hosts.github import connect  # weight: only where a run on GitHub is asked

            self._connected = connect(self._environment, token)
        return self._connected

    @cached_property
    def _default(self) -> tuple[str, frozenset[str]]:
        """Return the remote's default branch, and its first-parent history as far as it is known here."""
        remote = self._config.file.baseline.remote
        try:
            said = self._git.text("ls-remote", "--symref", "--", remote, "HEAD")
            found = re.search(r"^ref: refs/heads/(\S+)\tHEAD\n([0-9a-f]{40,64})\tHEAD$", said, re.MULTILINE)
            if found is None:
                return "", frozenset()
            self._tip = found[2]
            return found[1], self._history(found[2], remote)
        except GitError as error:
            self.problems[f"the default branch cannot be read: {shorten(error.what, 200)}"] = None
            return "", frozenset()

    def _history(self, tip: str, remote: str) -> frozenset[str]:
        known = self._git.first_parents(tip, MOST_HISTORY) if self._git.resolve(tip) is not None else []
        if len(known) < HISTORY and (not known or self._git.is_shallow()):
            self._git.fetch(tip, remote=remote, depth=HISTORY)
            known = self._git.first_parents(tip, MOST_HISTORY)
        return frozenset(known)

    @cached_property
    def _workflows(self) -> frozenset[str]:
        """Return the workflow files whose runs count: the configured ones, else this one and those that name the
        gate."""
        if self._config.file.baseline.workflows:
            return frozenset(self._config.file.baseline.workflows)
        named = self._environment["GITHUB_WORKFLOW_REF"].partition("@")[0]
        own = named.removeprefix(f"{self._environment['GITHUB_REPOSITORY']}/")
        using = None
        if self._default[1]:
            with suppress(GitError):
                using = self._git.ask("grep", "-l", "-I", "-F", "--full-name", "-e", NAME, self._tip, "--", FOLDER)
        return frozenset({own, *(line.removeprefix(f"{self._tip}:") for line in (using or "").splitlines())})


def _proofs_in(archive: bytes, run: MeasuringRun) -> Iterable[Proofs]:
    """Yield the proofs in the files of an artifact. Raises `UntrustedError` if it is no archive."""
    where = f"run {run.id}"
    for name in members(archive, where):
        try:
            if name == FILE:
                yield read(read_member(archive, name, where), where)
            elif name.endswith(".jsonl"):
                record = parse_record(read_member(archive, name, where), where=where, error=UntrustedError)
                if record.header.commit == run.head:
                    yield proofs_of(record)
        except (UntrustedError, BaselineWriteError):
            continue
