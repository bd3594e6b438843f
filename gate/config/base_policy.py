"""The base policy: a change is judged by the rules of its base commit, which it may tighten, but not loosen.

Rules are the demands of the configuration and its criteria, including quarantine and thresholds; what is measured
(agent, suite, setup) is the change's own. Each option declares which way it tightens (`gate.model.strictness`); any
other difference counts as loosening and takes effect once it is merged.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gate.baselines.fingerprint import of_case
from gate.baselines.pairing import match_cases
from gate.config.load import Config, ConfigFile, SuiteRules, read_config
from gate.config.resolve import read_suites, stated_criteria
from gate.config.specs import CriterionSpec
from gate.config.tighten import (
    agent_under_base,
    clusters_under_base,
    criteria_under_base,
    settings_under_base,
    thresholds_under_base,
)
from gate.errors import ConfigError, GateError
from gate.judges.options import CALIBRATION_FILE
from gate.metrics.custom.source import Folders
from gate.model import Case, Suite
from gate.records import PlannedCase
from gate.security.escape import one_line
from gate.security.limits import shorten
from gate.system.git import HINT_HISTORY, Git

FIRST = "the base commit has no such configuration: the change's own rules apply"
MOVED = "the base commit has no such configuration, but a baseline of this suite is stored: its rules are unknown"


class BasePolicy(Struct, frozen=True):
    """The base commit's rules, read before anything of the change runs; only custom metrics are read again later."""

    root: Path
    """The configuration's folder at the base commit, in a separate tree that exists as long as the rules are in use."""
    config: Config | None
    """None if the base commit has no such configuration, or an unreadable one."""
    suites: Mapping[str, Suite] = {}
    criteria: Mapping[str, tuple[CriterionSpec, ...]] = {}
    """The criteria of each suite."""
    unread: str = ""
    """A note on rules that do not apply because the suites cannot be read, for example because a step creates them."""
    broken: str = ""
    """The reason why the configuration cannot be read."""
    digest: str = ""
    """The digest of the files that are read again when the suite is judged."""
    commit: str = ""
    """The commit's id."""

    @property
    def is_absent(self) -> bool:
        """True if the base commit has no such configuration."""
        return self.config is None and not self.broken


class Rules(Struct, frozen=True):
    """The rules in effect, and which of the change's own rules are not in effect yet."""

    config: Config
    changes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    """Reasons why nothing may pass under these rules: the base's rules are unknown, or were left out."""
    base: Config | None = None
    """The base commit's configuration; None if unknown."""
    is_first: bool = False
    """True if the base commit has no such configuration; a baseline of a suite must then come from another one."""
    commit: str = ""
    """The commit that the rules are from; empty if they are the configuration's own."""
    redefines: bool = False
    """True if the change redefines what its agent consists of: an equal fingerprint may then mean another agent."""


@contextmanager
def rules_of(
    revision: str | None, path: Path, overrides: Mapping[str, Any], environment: Mapping[str, str]
) -> Iterator[Rules]:
    """Yield the configuration at ``path`` under the rules of a commit, branch or tag, whose files exist until the end;
    under its own rules without a ``revision``.

    Raises:
        ConfigError: the configuration cannot be read, or there is no such commit here.
    """
    source = read_config(path)
    if revision is None:
        yield Rules(source.load(overrides))
        return
    with base_at(revision, source, overrides, environment) as base:
        yield under_base_policy(source, overrides, base)


@contextmanager
def base_at(
    revision: str,
    source: ConfigFile,
    overrides: Mapping[str, Any],
    environment: Mapping[str, str],
    usual: Mapping[str, Any] | None = None,
) -> Iterator[BasePolicy]:
    """Yield the rules of a commit, branch or tag for a configuration of the work tree. Raises the same as `rules_of`.

    ``usual``: baseline settings that apply if the base commit does not state them.
    """
    git = Git(place_of(source.path)[0], environment=environment)
    commit = git.resolve(revision) if git.is_repository() else None  # a branch may move in the meantime
    with path_at(commit or revision, source.path, environment) as path:
        yield replace(read_base(path, source, overrides, usual), commit=commit or "")


@contextmanager
def path_at(revision: str, path: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the path of the same file in a temporary tree of a commit, branch or tag.

    Raises:
        ConfigError: there is no such commit here.
    """
    top, inside = place_of(path)
    git = Git(top, environment=environment)
    if not git.is_repository():
        what = f"the rules of {revision!r} cannot be read: this is not a git repository"
        raise ConfigError(what, where=str(top), hint="run in a clone of the repository")
    if git.resolve(revision) is None:
        raise ConfigError(f"commit {revision!r} not found", where=str(top), hint=HINT_HISTORY)
    with git.worktree(revision) as tree:
        remove_outward_links(tree)
        yield tree / inside


def place_of(path: Path) -> tuple[Path, Path]:
    """Return the repository's top and a file's path below it, as written: links on the way are not resolved.

    If a change replaces a folder by a link, the rules of the link's target must not apply.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100  (resolve would follow links)
    tops = [folder for folder in path.parents if (folder / ".git").exists()]
    for top, outer in zip_longest(tops, tops[1:]):
        between = [top, *top.parents]
        if outer is None or not any(one.is_symlink() for one in between[: between.index(outer)]):
            return top, path.relative_to(top)
    return path.parent, Path(path.name)


def remove_outward_links(tree: Path) -> None:
    """Remove links that lead out of a tree: their targets are not part of the commit."""
    real = tree.resolve()
    for folder, folders, names in os.walk(tree):
        for name in (*folders, *names):
            one = Path(folder) / name
            if one.is_symlink() and not one.resolve().is_relative_to(real):
                one.unlink()


def read_base(
    path: Path, source: ConfigFile, overrides: Mapping[str, Any], usual: Mapping[str, Any] | None = None
) -> BasePolicy:
    """Return the rules of the configuration at ``path``, the base commit's form of ``source``; ``usual`` as in
    `base_at`."""
    if not path.is_file():
        return BasePolicy(path.parent, None)
    try:
        known = read_config(path, of_base=True)
        stated, now = known.data.get("baseline") or {}, source.data.get("baseline") or {}
        applied = {key: value for key, value in (usual or {}).items() if key.partition(".")[2] not in stated}
        for key, value in overrides.items():
            is_of_agent = key.partition(".")[0] == "agent"
            is_of_removed_store = key == "baseline.store" and "store" in stated and "store" not in now
            if not is_of_agent and not is_of_removed_store:
                applied[key] = value
        config = known.load(applied)
        config = replace(config, base_root=config.root)
        suites, criteria, unread = _suites_of(config)
    except GateError as error:
        return BasePolicy(path.parent, None, broken=f"the base commit's configuration cannot be read: {error.what}")
    return BasePolicy(config.root, config, suites, criteria, unread, digest=_digest(config.root))


def _suites_of(config: Config) -> tuple[dict[str, Suite], dict[str, tuple[CriterionSpec, ...]], str]:
    """Return the base commit's suites and their criteria by id, and the rules that do not apply if they cannot be
    read."""
    try:
        suites = read_suites(config)
    except GateError as error:
        lost = "thresholds of single cases are" if config.file.criteria is not None else "criteria are"
        return {}, {}, f"the base commit's suites cannot be read, so {lost} the change's own: {error.what}"
    criteria = {suite.id: stated_criteria(config, suite).specs for suite in suites}
    return {suite.id: suite for suite in suites}, criteria, ""


def _digest(root: Path) -> str:
    """Return a digest of every name below a folder, with a file's bytes, a link's target, or the mark of a folder.

    Not only ``.py`` files count: a package, a compiled module or a link of the same name may be imported instead.
    """
    digest = hashlib.sha256()
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in (*folders, *sorted(names)):
            path = Path(folder) / name
            digest.update(os.fsencode(path.relative_to(root)) + b"\0" + _content(path) + b"\0")
    return digest.hexdigest()


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return b"link " + os.fsencode(path.readlink())
    if not path.is_file():
        return b"folder" if path.is_dir() else b"other"
    with path.open("rb") as file:
        return b"file " + hashlib.file_digest(file, "sha256").digest()


def under_base_policy(source: ConfigFile, overrides: Mapping[str, Any], base: BasePolicy) -> Rules:
    """Return a configuration under the rules of its base commit.

    Raises:
        ConfigError: the configuration cannot be read, or the base commit's files have changed.
    """
    head = source.load(overrides)
    if base.broken:
        said = f"{base.broken}; the change's own rules apply"
        return Rules(replace(head, base_root=base.root), (said,), (base.broken,), commit=base.commit)
    if base.config is None:
        return Rules(head, (FIRST,), is_first=True, commit=base.commit)
    if _digest(base.root) != base.digest:
        raise ConfigError("the base commit's files were changed before they were used", where=str(base.root))
    settings, changes = settings_under_base(base.config, head)
    agent_rules, agent_changes = agent_under_base(base.config, source.load())
    head = replace(source.load({**overrides, **settings, **agent_rules}), base_root=base.root)
    ruled = {}
    left = set(base.suites)
    for suite in read_suites(head):
        left.discard(suite.id)
        rules = _suite_under_base(suite, base, head, changes)
        if rules is not None:
            ruled[suite.id] = rules
    if base.unread:
        changes.append(base.unread)
    head = _without_moved_quarantine(head, ruled.values(), changes)
    gone = tuple(suite_gone(name) for name in base.suites if name in left)
    changes += [*gone, *_edited_calibration(base.config, head), *_edited_baselines(base.config, head)]
    config = replace(head, base_rules=ruled)
    differences = tuple(dict.fromkeys([*changes, *agent_changes]))
    redefines = redefines_agent(base.config, config)
    return Rules(config, differences, gone, base.config, commit=base.commit, redefines=redefines)


def suite_gone(suite_id: str) -> str:
    """Return a note on a suite of the base commit that the change does not run."""
    name = shorten(one_line(suite_id, 200), 60)
    return f"suite {name!r} of the base commit was renamed, removed or is not selected now"


def _without_moved_quarantine(head: Config, rules: Iterable[SuiteRules], changes: list[str]) -> Config:
    """Return the configuration without the quarantine of ids that now name another case than at the base.

    The entry is meant for the case that somebody saw fail, not for a case that the change gives its id.
    """
    moved = {now for one in rules for now, before in one.formerly.items() if before.id != now}
    kept = [entry for entry in head.file.quarantine if entry.case not in moved]
    if len(kept) == len(head.file.quarantine):
        return head
    for entry in head.file.quarantine:
        if entry.case in moved:
            changes.append(f"quarantine of {entry.case!r} does not hold: that is the id of another case now")
    return replace(head, file=head.file.model_copy(update={"quarantine": kept}))


# --- suites ---------------------------------------------------------------------------------------


def _suite_under_base(suite: Suite, base: BasePolicy, head: Config, changes: list[str]) -> SuiteRules | None:
    """Return the rules for a suite; None if the base commit has none for it."""
    assert base.config is not None
    known = base.suites.get(suite.id)
    formerly: dict[str, Case] = {}
    if known is None:
        if not base.unread:
            changes.append(f"suite {suite.id!r} is not in the base commit")
        if base.config.file.criteria is None:
            return None
        before = stated_criteria(base.config, suite).specs
    else:
        before = base.criteria[suite.id]
        formerly = former_cases(known.cases, suite.cases)
    own = stated_criteria(head, suite).specs
    specs, differences = criteria_under_base(before, own)
    changes += differences
    thresholds: dict[str, dict[str, float]] = {}
    if not base.unread:
        thresholds, lowered = thresholds_under_base(before, formerly, suite.cases)
        changes += lowered
    clusters, moved = clusters_under_base(formerly, suite.cases)
    changes += [*moved, *_edited_metrics(head, specs)]
    stated = formerly
    if base.unread and suite.cases:
        stated = {case.id: case for case in suite.cases}
    kept = {}
    for case_id, case in stated.items():
        kept[case_id] = {spec.name: case.thresholds[spec.name] for spec in before if spec.name in case.thresholds}
    options = {spec.name: spec.options for spec in specs}
    demands = [replace(spec, options=options[spec.name]) for spec in before]  # on scores measured under these options
    removed = frozenset(spec.name for spec in before) - {spec.name for spec in own}
    return SuiteRules(specs, thresholds, formerly, tuple(demands), kept, clusters, removed)


def former_cases(base: Sequence[Case], head: Sequence[Case]) -> dict[str, Case]:
    """Return each case of the base commit by its current id, paired as trials are paired."""
    now = [PlannedCase(case.id, of_case(case)) for case in head]
    before = [PlannedCase(case.id, of_case(case)) for case in base]
    match = match_cases(now, before)
    found = {}
    for case in base:
        if case.id in match.same or case.id in match.edited:
            found[match.ids[case.id]] = case
    return found


def _edited_metrics(head: Config, specs: Sequence[CriterionSpec]) -> list[str]:
    """Return notes on custom metrics that come from the base commit, because it has them and they differ here."""
    folders = Folders(str(head.root), str(head.base_root), head.paths)
    found = []
    for spec in specs:
        if not spec.is_custom:
            continue
        in_agent = spec.options.get("run_in") == "agent"
        before = folders.file_of(spec.metric, folders.base, in_agent=in_agent)
        now = folders.file_of(spec.metric, folders.own, in_agent=in_agent)
        found += _edited(f"custom metric {spec.metric}", before, now)
    return found


def _edited_calibration(base: Config, head: Config) -> list[str]:
    """Return notes on a calibration that differs: the base commit's is used, or none if it has none."""
    before, now = base.root / CALIBRATION_FILE, head.root / CALIBRATION_FILE
    if now.is_file() and not before.is_file():
        return [f"{CALIBRATION_FILE}: new, corrects scores once it is merged"]
    return _edited(CALIBRATION_FILE, before, now)


def _edited_baselines(base: Config, head: Config) -> list[str]:
    """Return a note if stored baselines are read from the base commit because the change has edited or removed them."""
    name = base.file.baseline.folder
    before, now = base.root / name, head.root / name
    if base.file.baseline.store != "file" or not before.is_relative_to(base.root):
        return []  # another store, or a folder that no commit has
    found = set()
    for path in before.rglob("*"):
        own = now / path.relative_to(before)
        if not path.is_file():
            continue
        if not own.is_file():
            found.add("removed")
        elif _content(own) != _content(path):
            found.add("edited")
    if not found:
        return []
    return [f"{name}: files {' and '.join(sorted(found))}, which takes effect once it is merged"]


def _edited(what: str, before: Path | None, now: Path | None) -> list[str]:
    """Return a note if a file of the base commit is used instead of the change's different one."""
    if before is None or not before.is_file():
        return []
    if now is None or not now.is_file():
        return [f"{what}: removed once it is merged"]
    return [] if before.read_bytes() == now.read_bytes() else [f"{what}: edited, takes effect once it is merged"]


# --- the agent ------------------------------------------------------------------------------------


def redefines_agent(base: Config, head: Config) -> bool:
    """True if the fingerprint may leave out files that the base's includes: by its sources, its version, or what is no
    part of the agent.

    Suites and the gate's output are no part of the agent, so naming others takes files out of it.
    """
    before = base.agent_kind, base.agent.sources, base.agent.version, base.file.output
    now = head.agent_kind, head.agent.sources, head.agent.version, head.file.output
    return before != now or not set(head.file.suite) <= set(base.file.suite)
