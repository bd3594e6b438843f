"""The choice of the stored records that a run is compared with.

A change is compared with its *own reference*, the first of these that exists:

1. the record of its base commit, else of the nearest first-parent ancestor that has one; earlier records of the same
   agent are pooled with it;
2. the record of this very commit, if it may be of another agent;
3. the record saved last that did not fall short; not under ``on_missing: fail``.

A commit of the default branch is also compared with the *anchor*: the best proven record (`Store.anchor`). A release is
compared with the anchor alone, once there is one.

A reference leaves out outages, the very runs that are compared, and runs from before the provider moved
(`gate.pipeline.past`). If nothing is stored for a change, the base commit's agent may run as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gate.baselines import Store
from gate.baselines.base import Trust, outage_in
from gate.baselines.ledger import series_of
from gate.baselines.pairing import match_cases
from gate.baselines.reference import Reference
from gate.baselines.union import run_ids
from gate.config.base_policy import former_cases, path_at, place_of, suite_gone
from gate.config.load import Config, load_config
from gate.config.resolve import Plan, read_suites
from gate.decision.gaps import are_few
from gate.errors import BaselineError, GateError
from gate.model import BaselineInfo, Case, Suite
from gate.model.finding import Finding
from gate.model.results import NOT_STORED
from gate.pipeline.git_context import GitContext
from gate.pipeline.past import (
    acceptance_of,
    ended_acceptance,
    note_of_lost_record,
    note_of_picked_run,
    note_of_shortfall,
    without_drift,
)
from gate.pipeline.store import store_of
from gate.records import PlannedCase, Record
from gate.records.keys import UNCOMMITTED, commit_key, key_of, suite_key
from gate.reports.formatting import agree, count
from gate.suites import Selection
from gate.system.clock import now
from gate.system.git import Git

MOST_MOVED = 100
"""The most removed files in which to look for the base's configuration."""
ALL_BELOW = "every stored baseline fell short, and none is of an ancestor of this commit"
NO_COMMIT = "a baseline is stored, but `on_missing: fail` needs one of an ancestor, and there is no commit here"
OWN = "the baseline saved last is of this very commit: commit a change, then run again"
CUT_OFF = (
    "this shallow clone has no commit that a baseline is stored of, so which one this change belongs to is not known: "
    "check out with fetch-depth: 0, on GitLab with GIT_DEPTH: 0"
)
"""The doubt that keeps a suite from passing against a record that was merely the last one saved."""


class References(Struct, frozen=True):
    """The references that a record is compared with, in order, and notes about them for the reader."""

    all: tuple[Reference, ...]
    notes: tuple[str | Finding, ...] = ()
    anchor: str = ""
    """The commit of the anchor, if it is among the references, under its own name or as the own base."""
    doubts: tuple[str, ...] = ()
    """Reasons that keep the suite from passing."""
    accepted: str = ""
    """The person who accepted this very run after it was stored, and the time."""
    expired: str = ""
    """A description of the last acceptance of a record of this history, if it has ended; else empty."""
    fell_short: str = ""
    """The verdict of the base's record if it fell short when it was stored and nobody accepted that; else empty."""

    @property
    def first(self) -> Reference:
        return self.all[0]


def find_references(
    config: Config,
    store: Store | None,
    suite_id: str,
    where: GitContext,
    git: Git,
    runs: Set[str] = frozenset(),
    *,
    plan: Sequence[PlannedCase] = (),
) -> References:
    """Return the references of a record.

    ``runs`` are those being compared, which must not be compared with themselves. ``plan`` holds the record's cases,
    which the anchor has to cover.

    Raises:
        BaselineError: a record is truncated, damaged or misplaced; or missing under ``on_missing: fail``.
    """
    if store is None:
        return References((own_reference(config, None, suite_id, where),))
    found = _in_own_tree(_found(config, store, suite_id, where, git, runs, plan), config)
    return _under_trust(config, store, suite_id, where, found)


def _found(
    config: Config,
    store: Store,
    suite_id: str,
    where: GitContext,
    git: Git,
    runs: Set[str],
    plan: Sequence[PlannedCase],
) -> References:
    ledger = store.ledger(suite_id).at(now().timestamp())
    found = References((), accepted=acceptance_of(ledger, where, runs), expired=ended_acceptance(ledger, where))
    anchor = find_anchor(store, suite_id, where, git, runs, plan) if where.anchored else None
    if anchor is not None:
        found = replace(found, anchor=anchor.commit or UNCOMMITTED)
    if where.release and anchor is not None:
        return replace(found, all=(anchor,))
    if where.release and runs:
        itself = find_anchor(store, suite_id, where, git, plan=plan)
        if itself is not None and itself.commit == where.head:  # the first that was ever recorded
            return replace(found, all=(itself.without_runs(runs),))
    rejected = set()
    if where.release:
        rejected = {mark.key for mark in ledger.marks if ledger.rejected(mark.key)}
    own = own_reference(config, store, suite_id, where, exclude=rejected).without_runs(runs)
    own, move = without_drift(own, store)
    own = replace(own, of_change=not where.anchored)
    notes: list[str | Finding] = [] if move is None else [move]
    if not own.records:
        lost = note_of_lost_record(ledger, store, suite_id, where)
        found = replace(found, notes=(lost,) if lost else ())
        if anchor is not None:
            return replace(found, all=(anchor,))
        if store.latest(suite_id) is None:
            own = replace(own, info=replace(own.info, never_stored=_commits_with(config, where, git)))
        return replace(found, all=(replace(own, beside=not where.anchored and not where.release),))
    is_ancestor = own.commit in where.ancestors
    mark = ledger.below(key_of(own.commit))
    if mark is not None and not (where.anchored and is_ancestor):
        notes.append(note_of_shortfall(mark, own, where))
    picked = note_of_picked_run(ledger, own)
    if picked:
        notes.append(picked)
    return replace(
        found,
        all=(own,) if anchor is None or _is_same(own, anchor) else (own, anchor),
        notes=tuple(notes),
        doubts=(CUT_OFF,) if where.is_cut and not is_ancestor else (),
        fell_short="" if mark is None else mark.verdict,
    )


# --- the own reference ----------------------------------------------------------------------------


def own_reference(
    config: Config, store: Store | None, suite_id: str, where: GitContext, *, exclude: Set[str] = frozenset()
) -> Reference:
    """Return the stored records that a run is compared with as a change, or a reference without any.

    ``exclude``: commits whose records do not count.

    Raises:
        BaselineError: a record is damaged or misplaced; or missing under ``on_missing: fail``.
    """
    if store is None:
        return Reference(BaselineInfo(None, missing="baselines are switched off"))
    exclude = set(exclude)
    found = store.find(suite_id, where.ancestors, exclude=exclude)
    # No store accepts an outage: somebody put it there by hand.
    while found is not None and found.commit and outage_in(found.records[0]):
        exclude.add(found.commit)
        found = store.find(suite_id, where.ancestors, exclude=exclude)
    if found is not None:
        return found
    if where.head:
        here = store.find(suite_id, (where.head,), exclude=exclude)
        if here is not None and not _is_own(here, where):
            return here
    if config.file.baseline.on_missing == "fail":
        is_out_of_reach = not where.head and store.latest(suite_id) is not None
        return _no_baseline(config, suite_id, where, NO_COMMIT if is_out_of_reach else "")
    found = _saved_last(store, suite_id, where, exclude)
    if found is None:
        return _no_baseline(config, suite_id, where, "" if store.latest(suite_id) is None else ALL_BELOW)
    if _is_own(found, where):
        return _no_baseline(config, suite_id, where, OWN, of_itself=True)
    if where.head is None:
        return found
    relation = "not known to be" if where.is_cut else "not"
    source = f"{found.info.source} (saved last; {relation} an ancestor of this commit)"
    return replace(found, info=replace(found.info, source=source))


def nearest_stored(store: Store, suite_id: str, where: GitContext) -> Reference | None:
    """Return the record of this commit, else of its nearest ancestor, else the newest."""
    commits = dict.fromkeys(filter(None, (where.head, *where.ancestors)))
    return store.find(suite_id, tuple(commits)) or store.latest(suite_id)


def _saved_last(store: Store, suite_id: str, where: GitContext, exclude: Set[str]) -> Reference | None:
    """Return the newest record that did not fall short, for a commit without a stored ancestor.

    If it is not known which records are of ancestors, the newest will do: it might be of one.
    """
    ledger = store.ledger(suite_id).at(now().timestamp())
    below = {entry.key for entry in store.entries(suite_id) if ledger.below(entry.key) is not None}
    sound = store.latest(suite_id, exclude=exclude | below)
    if sound is None and (where.is_cut or where.head is None):
        return store.latest(suite_id, exclude=exclude)
    return sound


def _is_own(found: Reference, where: GitContext) -> bool:
    """True if it measured this very agent. At one commit, recordings and agents outside the repository may differ."""
    return found.commit is not None and found.commit == where.head and bool(found.records[0].header.agent)


def _no_baseline(
    config: Config, suite_id: str, where: GitContext, why: str = "", *, of_itself: bool = False
) -> Reference:
    """Return a reference without records; ``why``: the reason why a stored record does not count."""
    missing = why or f"{NOT_STORED} {suite_id!r} {_looked_in(config, where)}"
    if config.file.baseline.on_missing == "fail":
        hint = "on the default branch: `gate run --store none`, then `gate baseline save`"
        raise BaselineError(missing, where=str(config.path), hint=hint)
    return Reference(BaselineInfo(None, missing=missing, of_itself=of_itself))


def _looked_in(config: Config, where: GitContext) -> str:
    """Return a description of where a baseline was searched: under ``fail`` only among ancestors, the base first."""
    nearest = where.base or where.head
    if config.file.baseline.on_missing != "fail" or nearest is None:
        return "in the store"
    before = len(where.ancestors) - 1
    return f"at {nearest[:12]}" + (f" or the {count(before, 'commit')} before it" if before > 0 else "")


def _commits_with(config: Config, where: GitContext, git: Git) -> int:
    """Return how many commits of the base's history have the configuration; 0 if it is new or that is unknown."""
    if where.base is None:
        return 0
    path = config.path.name
    added = git.ask("log", "--first-parent", "--diff-filter=A", "--format=%H", "--max-count=1", where.base, "--", path)
    return where.ancestors.index(added) + 1 if added in where.ancestors else 0


# --- the anchor -----------------------------------------------------------------------------------


def find_anchor(
    store: Store,
    suite_id: str,
    where: GitContext,
    git: Git,
    runs: Set[str] = frozenset(),
    plan: Sequence[PlannedCase] = (),
) -> Reference | None:
    """Return the anchor in the history of this commit; if a ``plan`` is given, it must still have most of the anchor's
    cases."""
    shallow = where.head is not None and git.is_shallow()

    def is_near(commit: str | None) -> bool:
        if commit is None or where.head is None:
            return True
        return git.is_ancestor(commit, where.head) or (shallow and git.resolve(commit) is None)

    def suits(record: Record) -> bool:
        stored = record.header.plan
        gone = len(stored) - len(match_cases(plan, stored).same)
        return not plan or are_few(gone, len(stored))

    series = series_of(where.release) if where.release else None
    at = now().timestamp()
    found = store.anchor(suite_id, is_near=is_near, suits=suits, series=series, runs=runs, at=at)
    if found is None or found.commit not in where.ancestors:
        return found
    return replace(found, info=replace(found.info, distance=where.ancestors.index(found.commit)))


def _is_same(own: Reference, anchor: Reference) -> bool:
    """True if the anchor is the record of the own base, with all its runs."""
    return own.commit == anchor.commit and set(run_ids(own.records[0].header)) == set(run_ids(anchor.records[0].header))


# --- their origin ---------------------------------------------------------------------------------


def _in_own_tree(found: References, config: Config) -> References:
    """Return the references with the base's tree, which is removed after the run, named as the change's own."""
    if config.base_root is None:
        return found
    before, own = str(config.base_root), str(config.root)
    renamed = []
    for one in found.all:
        renamed.append(replace(one, info=replace(one.info, source=one.info.source.replace(before, own))))
    return replace(found, all=tuple(renamed))


def _under_trust(config: Config, store: Store, suite_id: str, where: GitContext, found: References) -> References:
    """Return the references with the known origin of their records.

    Raises:
        BaselineError: a proof is required and missing. Not on the default branch: its job makes the next one.
    """
    trust = store.trust(suite_id, [record for reference in found.all for record in reference.records])
    if trust is None:
        return found
    if trust.required and not where.anchored:
        nothing = not any(reference.records for reference in found.all)
        if trust.troubles or trust.unproven or nothing:
            what = f"no proven baseline of {suite_id!r}"
            hint = "the default branch's job stores one; `require_provenance: warn` goes without"
            if trust.troubles:
                what = trust.troubles[0]
            elif trust.reason:
                hint = trust.reason
            raise BaselineError(what, where=str(config.path), hint=hint)
    marked = tuple(_with_provenance(reference, trust) for reference in found.all)
    found = replace(found, all=marked, doubts=(*found.doubts, *trust.troubles))
    if not (trust.unproven or trust.told):
        return found
    fact = Finding.of("unproven", compared=trust.unproven, told=trust.told, why=trust.reason)
    return replace(found, notes=(*found.notes, fact))


def _with_provenance(reference: Reference, trust: Trust) -> Reference:
    """Return the reference marked as proven or unproven."""
    if not reference.records:
        return reference
    doubtful = any(commit_key(record.header) in trust.unproven for record in reference.records)
    return replace(reference, info=replace(reference.info, provenance="unproven" if doubtful else "proven"))


# --- what the base's configuration selects and this run leaves out ------------------------------------


def find_all_references(
    config: Config,
    store: Store | None,
    plans: Sequence[Plan],
    where: GitContext,
    git: Git,
    environment: Mapping[str, str],
    runs: Set[str] = frozenset(),
) -> list[References]:
    """Return the references of each suite, with the doubts about suites and cases of the base that are not run."""
    found = []
    for plan in plans:
        found.append(find_references(config, store, plan.suite.id, where, git, runs, plan=plan.planned))
    commit = where.base
    if where.release and found and found[0].anchor:
        commit = found[0].anchor  # a release is compared with it alone
    if store is None or commit is None or not plans:
        return found
    run, stored = {suite_key(plan.suite.id) for plan in plans}, store.suites_at(where.ancestors)
    has_all = stored <= run and all(one.first.records for one in found)
    if has_all and not _has_selection_of_its_own(config):
        return found
    before: dict[str, list[Case]] = {}
    try:
        with path_at(commit, config.path, environment) as path:
            for one in _configurations(path, config, commit, git):
                with suppress(GateError):
                    base = load_config(one, of_base=True)
                    before |= _selected_at_base(config, base, read_suites(base))
                    if one != path or base.file.baseline != config.file.baseline:
                        stored |= _stored_for(_in_place(base, path, config), where, environment)
    except GateError:
        return found
    doubts = [_cases_left_out(config, plan, before.get(plan.suite.id, ())) for plan in plans]
    doubts[0] = _suites_gone(stored - run, before) + doubts[0]
    return [replace(one, doubts=one.doubts + more) for one, more in zip(found, doubts, strict=True)]


def _in_place(base: Config, path: Path, config: Config) -> Config:
    """Return the base's configuration as if it were in the work tree; ``path`` is the change's, in the base's tree."""
    top, inside = place_of(config.path)
    root = top / base.root.relative_to(path.resolve().parents[len(inside.parts) - 1])
    return replace(base, root=root, base_root=base.root) if root.is_dir() else base


def _stored_for(base: Config, where: GitContext, environment: Mapping[str, str]) -> Set[str]:
    """Return the suites with records in the store of the base's configuration, which may be another than the change's:
    a folder beside a configuration that was moved, or one that the change names no longer."""
    store = store_of(base, environment)
    if store is None:
        return frozenset()
    with store:
        return store.suites_at(where.ancestors)


def _configurations(path: Path, config: Config, commit: str, git: Git) -> list[Path]:
    """Return the base's configuration at ``path``, in its tree; if it has none there, YAML files that no longer exist:
    the change may have moved its configuration.
    """
    if path.exists():
        return [path]
    top, inside = place_of(config.path)
    tree = path.parents[len(inside.parts) - 1]
    moved = []
    for name in git.differing(commit):
        if name.endswith((".yaml", ".yml")) and (tree / name).is_file() and not (top / name).exists():
            moved.append(tree / name)
    return moved[:MOST_MOVED]


def _has_selection_of_its_own(config: Config) -> bool:
    """True if the configuration selects cases itself, and not the command line alone."""
    select = config.file.select
    return select is not None and any(f"select.{name}" not in config.overridden for name in select.model_fields_set)


def _selected_at_base(config: Config, base: Config, suites: Sequence[Suite]) -> dict[str, list[Case]]:
    """Return the base's cases by suite that its own configuration selects, under the conditions of the command line."""
    asked = {}
    for name, value in config.file.select or ():
        if f"select.{name}" in config.overridden:
            asked[name] = value
    selection = (base.file.select or Selection()).model_copy(update=asked)
    return {suite.id: [case for case in suite.cases if selection.takes(case)] for suite in suites}


def _suites_gone(gone: Set[str], before: Mapping[str, Sequence[Case]]) -> tuple[str, ...]:
    """Return a note on each suite that the base has selected cases and records of, but that is not run now.

    A renamed or removed suite would have nothing to be compared with. One store may serve several configurations, so
    the base's own configuration tells which suites belong to it.
    """
    return tuple(suite_gone(suite_id) for suite_id, cases in before.items() if cases and suite_key(suite_id) in gone)


def _cases_left_out(config: Config, plan: Plan, before: Sequence[Case]) -> tuple[str, ...]:
    """Return a note if the change's configuration no longer selects some cases that the base's does, and those and the
    removed ones are many."""
    owed = {case.id for case in before} - {entry.case for entry in config.file.quarantine}
    gone = owed - {case.id for case in former_cases(before, plan.suite.cases).values()}
    left_out = gone & plan.deselected
    if not left_out or are_few(len(gone), len(owed)):
        return ()
    known, removed = count(len(owed), "case"), len(gone - left_out)
    also = ""
    if removed:
        also = f", and {removed} that {agree(removed, 'was', 'were')} removed"
    return (f"{len(left_out)} of {known}, which `select` takes at the base and no longer does here{also}",)
