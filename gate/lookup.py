"""Finds what a change is measured against: the commit, its nearest stored ancestor, and the records to pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gate.baselines import Found, Store, StoreSettings, open_store
from gate.compare import Reference, reference_to
from gate.config import Config
from gate.environment import TOKEN
from gate.errors import BaselineError, ConfigError
from gate.git import Git
from gate.model import BaselineInfo
from gate.reports.numbers import count

OWN = "the one saved last is of this very commit: change something, then run again"
SEARCHED = 200
"""First-parent ancestors that are looked at."""
REPORTS = "gate-results"
"""Folder of reports and records that other steps take up: the action writes it, the guides name it."""


class Standing(Struct, frozen=True):
    """Where the work tree stands in its history."""

    head: str | None = None
    dirty: bool = False
    base: str | None = None
    """The commit that the change is measured against."""
    ancestors: tuple[str, ...] = ()
    """The base and its first-parent ancestors, nearest first."""
    note: str = ""


def changes(config: Config, git: Git, written: Sequence[str] = ()) -> tuple[str, ...]:
    """Files of the user's that differ from HEAD; ``written`` are files that a run leaves, relative to the root."""
    return tuple(git.changed(exclude=(*_own_files(config), *written))) if git.is_repository() else ()


def standing(
    config: Config, git: Git, written: Sequence[str] = (), *, changed: Sequence[str] | None = None
) -> Standing:
    """Asks git where we are.

    The base is ``baseline.against`` where given; else the merge base with the default branch; on that branch itself,
    the commit before HEAD, or HEAD while the work tree differs from it. ``changed`` are the `changes`, where they were
    asked for before something was installed here.
    """
    if not git.is_repository():
        if config.file.baseline.against:
            raise ConfigError("baseline.against names a commit, and this is no git repository", where=str(config.path))
        return Standing(note="not a git repository: the baseline is the one saved last")
    head = git.head()
    dirty = bool(changes(config, git, written) if changed is None else changed)
    base = _base(config, git, head, dirty)
    ancestors = tuple(git.first_parents(base, SEARCHED)) if base else ()
    note = ""
    if base and git.is_shallow() and len(ancestors) < SEARCHED:
        note = "the clone is shallow: older baselines are not seen (fetch-depth: 0 shows them)"
    return Standing(head, dirty, base, ancestors, note)


def _own_files(config: Config) -> tuple[str, ...]:
    """What the gate itself writes is no change of the user's."""
    return (config.file.output, config.file.baseline.path, REPORTS)


def _base(config: Config, git: Git, head: str | None, dirty: bool) -> str | None:
    against = config.file.baseline.against
    if against:
        found = git.resolve(against) or git.resolve(f"{config.file.baseline.remote}/{against}")
        if found is None:
            raise ConfigError(
                f"baseline.against: no commit {against!r} here", where=str(config.path), hint="fetch it first"
            )
        return found
    if head is None:
        return None
    tip = _default_tip(git, config.file.baseline.remote)
    common = git.merge_base(head, tip) if tip else None
    if common is not None and common != head:
        return common
    if dirty:
        return head
    parents = git.parents(head)
    return parents[0] if parents else None


def _default_tip(git: Git, remote: str) -> str | None:
    """The default branch's newest commit that is known here; without a remote, that of a local main or master."""
    branch = git.default_branch(remote)
    names = [f"{remote}/{branch}", branch] if branch else ["main", "master"]
    return next((found for name in names if (found := git.resolve(name))), None)


def store_of(config: Config, environment: Mapping[str, str]) -> Store | None:
    """The configured store; None where baselines are switched off."""
    section = config.file.baseline
    if section.store == "none":
        return None
    settings = StoreSettings(
        root=config.root,
        environment=environment,
        path=section.path,
        remote=section.remote,
        branch=section.branch,
        token=environment.get(TOKEN) or environment.get("GITHUB_TOKEN", ""),
        server=environment.get("GITHUB_SERVER_URL", "https://github.com"),
    )
    return open_store(section.store, settings)


def find_reference(config: Config, store: Store | None, suite_id: str, where: Standing) -> Reference:
    """The stored records to compare with, newest first, at most ``baseline.pool`` of one agent.

    Raises:
        BaselineError: torn or foreign; or missing under ``on_missing: fail``.
    """
    if store is None:
        return Reference(BaselineInfo(None, missing="baselines are switched off"))
    found = store.find(suite_id, where.ancestors, pool=config.file.baseline.pool)
    note = ""
    if found is None and where.head:
        here = store.find(suite_id, (where.head,))
        found = here if here is not None and not _is_own(here, where) else None
    if found is None and config.file.baseline.on_missing != "fail":
        found = store.latest(suite_id)
        note = "saved last; not an ancestor of this commit" if where.ancestors else ""
        if found is not None and _is_own(found, where):
            return _missing(config, suite_id, where, OWN)
    if found is None:
        return _missing(config, suite_id, where)
    source = f"{found.where} ({note})" if note else found.where
    return reference_to(found.records, found.commit, distance=found.distance, source=source)


def _is_own(found: Found, where: Standing) -> bool:
    """Whether it is of the very agent that runs; what people did, or an agent elsewhere, may differ on one commit."""
    return found.commit is not None and found.commit == where.head and bool(found.records[0].header.agent)


def _missing(config: Config, suite_id: str, where: Standing, why: str = "") -> Reference:
    looked = f"{count(len(where.ancestors), 'ancestor')} of {where.base[:12]}" if where.base else "the store"
    missing = f"no baseline of {suite_id!r} in {looked}{f' ({why})' if why else ''}"
    if config.file.baseline.on_missing == "fail":
        raise BaselineError(missing, where=str(config.path), hint="`gate baseline save RECORD` stores one")
    return Reference(BaselineInfo(None, missing=missing))


def unlike(reference: Reference, run_id: str) -> Reference:
    """The reference without the records of this very run: a record compared with itself always passes."""
    kept = tuple(record for record in reference.records if not run_id or record.header.run_id != run_id)
    if len(kept) == len(reference.records):
        return reference
    if not kept:
        return Reference(BaselineInfo(None, missing="the stored baseline is this very record"))
    return replace(reference, records=kept)
