"""The choice of the stored records that a run is compared with.

A change is compared with its *own reference*, the first of these that exists:

1. the record of its base commit, else of the nearest first-parent ancestor that has one; earlier records of the same
   agent are pooled with it;
2. the record of this very commit, if it may be of another agent;
3. the record saved last that did not fall short; not under ``on_missing: fail``.

A commit of the default branch is also compared with the *anchor*: the best proven record (`BlobStore.anchor`). A
release is compared with the anchor alone, once there is one.

A reference leaves out outages, the very runs that are compared, and runs from before the provider moved: records of the
same agent show if it has. The ledger tells who accepted a record, and how it fell short. If nothing is stored for a
change, the base commit's agent may run as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from gate.baselines import BlobStore
from gate.baselines.base import outage_in
from gate.baselines.ledger import LAPSED, Ledger, Mark, series_of
from gate.baselines.pairing import match_cases, pair
from gate.baselines.reference import Reference, reference_to
from gate.baselines.union import RunPart, parts_of, run_ids, without
from gate.config.base_policy import former_cases, path_at, place_of, suite_gone
from gate.config.load import Config, load_config
from gate.config.resolve import Plan, read_suites
from gate.decision.gaps import are_few
from gate.decision.outcomes import passed
from gate.errors import BaselineError, GateError
from gate.histories.moves import newest_move
from gate.model import BaselineInfo, Case, Suite, Trial
from gate.model.finding import Finding
from gate.pipeline.identity import GitContext
from gate.pipeline.store import store_of
from gate.records import Header, PlannedCase, Record, cases_of
from gate.records.keys import UNCOMMITTED, commit_key, key_of, suite_key
from gate.reports.formatting import agree, count
from gate.security.limits import shorten
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

    @property
    def first(self) -> Reference:
        return self.all[0]


def find_references(
    config: Config,
    store: BlobStore | None,
    suite_id: str,
    where: GitContext,
    git: Git,
    runs: Set[str] = frozenset(),
    *,
    plan: Sequence[PlannedCase] = (),
) -> References:
    """Return the references of a record; the parameters are those of `Search`.

    Raises:
        BaselineError: a record is truncated, damaged or misplaced; or missing under ``on_missing: fail``.
    """
    if store is None:
        return References((Reference(BaselineInfo(None, missing="baselines are switched off")),))
    search = Search(config, store, suite_id, where, git, runs, plan)
    return search.under_trust(_in_own_tree(search.references(), config))


class Search(Struct, frozen=True, dict=True):
    """The search in a store for the records that one suite's record is compared with."""

    config: Config
    store: BlobStore
    suite_id: str
    where: GitContext
    git: Git
    runs: Set[str] = frozenset()
    """The runs that are compared, which must not be compared with themselves."""
    plan: Sequence[PlannedCase] = ()
    """The record's cases, which the anchor has to cover."""

    @cached_property
    def ledger(self) -> Ledger:
        return self.store.ledger(self.suite_id).at(now().timestamp())

    def references(self) -> References:
        """Return the references in order, and what the ledger tells about them."""
        where, ledger = self.where, self.ledger
        found = References(
            (), accepted=acceptance_of(ledger, where, self.runs), expired=ended_acceptance(ledger, where)
        )
        anchor = None
        if where.anchored:
            anchor = self.anchor(self.runs)
        if anchor is not None:
            found = replace(found, anchor=anchor.commit or UNCOMMITTED)
        rejected: Set[str] = frozenset()
        if where.release:
            alone = anchor
            if alone is None and self.runs:
                itself = self.anchor()
                if itself is not None and itself.commit == where.head:  # the first release that was ever recorded
                    alone = itself.without_runs(self.runs)
            if alone is not None:
                return replace(found, all=(alone,))
            rejected = {mark.key for mark in ledger.marks if ledger.rejected(mark.key)}
        own, move = without_drift(self.own(rejected).without_runs(self.runs), self.store)
        own = replace(own, of_change=not where.anchored)
        if not own.records:
            return self._without_own(found, own, anchor)
        notes: list[str | Finding] = []
        if move is not None:
            notes.append(move)
        is_ancestor = own.commit in where.ancestors
        mark = ledger.below(key_of(own.commit))
        if mark is not None:
            own = replace(own, info=replace(own.info, fell_short=mark.verdict))
            if not (where.anchored and is_ancestor):
                notes.append(note_of_shortfall(mark, own, where))
        picked = note_of_picked_run(ledger, own)
        if picked:
            notes.append(picked)
        if where.is_cut and not is_ancestor:
            found = replace(found, doubts=(CUT_OFF,))
        all_: tuple[Reference, ...] = (own,)
        if anchor is not None and not _is_same(own, anchor):
            all_ = (own, anchor)
        return replace(found, all=all_, notes=tuple(notes))

    def _without_own(self, found: References, own: Reference, anchor: Reference | None) -> References:
        """Return the references of a change that has no record of its own base."""
        lost = note_of_lost_record(self.ledger, self.store, self.suite_id, self.where)
        if lost:
            found = replace(found, notes=(lost,))
        if anchor is not None:
            return replace(found, all=(anchor,))
        if own.info.none_yet:
            own = replace(own, info=replace(own.info, never_stored=self._commits_with_configuration()))
        own = replace(own, beside=not self.where.anchored and not self.where.release)
        return replace(found, all=(own,))

    # --- the own reference ------------------------------------------------------------------------

    def own(self, rejected: Set[str] = frozenset()) -> Reference:
        """Return the records that a run is compared with as a change, or a reference without any.

        ``rejected``: commits whose records do not count.

        Raises:
            BaselineError: a record is damaged or misplaced; or missing under ``on_missing: fail``.
        """
        where = self.where
        exclude = set(rejected)
        found = self.store.find(self.suite_id, where.ancestors, exclude=exclude)
        # No store accepts an outage: somebody put it there by hand.
        while found is not None and found.commit and outage_in(found.records[0]):
            exclude.add(found.commit)
            found = self.store.find(self.suite_id, where.ancestors, exclude=exclude)
        if found is not None:
            distance = found.info.distance
            if distance and not where.dirty and where.base == where.head:  # the base is this very commit
                found = replace(found, info=replace(found.info, distance=distance - 1))
            return found
        if where.head:
            here = self.store.find(self.suite_id, (where.head,), exclude=exclude)
            if here is not None and not self._is_own(here):
                return here
        if self.config.file.baseline.on_missing == "fail":
            raise self._error_of_missing()
        entries = self.store.entries(self.suite_id)
        below = {entry.key for entry in entries if self.ledger.below(entry.key) is not None}
        found = self.store.latest(self.suite_id, exclude=exclude | below)
        if found is None and (where.is_cut or where.head is None):  # the newest might be of an ancestor
            found = self.store.latest(self.suite_id, exclude=exclude)
        if found is None:
            if self.store.latest(self.suite_id) is not None:
                return Reference(BaselineInfo(None, missing=ALL_BELOW))
            return Reference(BaselineInfo(None, missing=self._nothing_stored, none_yet=True))
        if self._is_own(found):
            return Reference(BaselineInfo(None, missing=OWN, of_itself=True))
        if where.head is None:
            return found
        relation = "not known to be" if where.is_cut else "not"
        source = f"{found.info.source} (saved last; {relation} an ancestor of this commit)"
        return replace(found, info=replace(found.info, source=source))

    def _is_own(self, found: Reference) -> bool:
        """True if it measured this very agent. At one commit, recordings and agents outside the repository may
        differ."""
        return found.commit is not None and found.commit == self.where.head and bool(found.records[0].header.agent)

    @property
    def _nothing_stored(self) -> str:
        return f"no baseline of {self.suite_id!r} in the store"

    def _error_of_missing(self) -> BaselineError:
        """Return the error under ``on_missing: fail``, which counts only records of ancestors."""
        nearest = self.where.base or self.where.head
        what = self._nothing_stored
        if nearest is not None:
            what = f"no baseline of {self.suite_id!r} at {nearest[:12]}"
            before = len(self.where.ancestors) - 1
            if before > 0:
                what += f" or the {count(before, 'commit')} before it"
        if not self.where.head and self.store.latest(self.suite_id) is not None:
            what = NO_COMMIT
        hint = "on the default branch: `gate run --store none`, then `gate baseline save`"
        return BaselineError(what, where=str(self.config.path), hint=hint)

    def _commits_with_configuration(self) -> int:
        """Return how many commits of the base's history have the configuration; 0 if it is new or that is unknown."""
        base, ancestors = self.where.base, self.where.ancestors
        if base is None:
            return 0
        asked = ("--first-parent", "--diff-filter=A", "--format=%H", "--max-count=1", base, "--")
        added = self.git.ask("log", *asked, self.config.path.name)
        return ancestors.index(added) + 1 if added in ancestors else 0

    # --- the anchor -------------------------------------------------------------------------------

    def anchor(self, runs: Set[str] = frozenset()) -> Reference | None:
        """Return the anchor in the history of this commit, without these ``runs``.

        If there is a plan, it must still have most of the anchor's cases.
        """
        where = self.where
        series = series_of(where.release) if where.release else None
        found = self.store.anchor(
            self.suite_id, is_near=self._is_near, suits=self._is_covered, series=series, runs=runs, at=now().timestamp()
        )
        if found is None or found.commit not in where.ancestors:
            return found
        return replace(found, info=replace(found.info, distance=where.ancestors.index(found.commit)))

    @cached_property
    def _is_shallow(self) -> bool:
        return self.git.is_shallow()

    def _is_near(self, commit: str | None) -> bool:
        """True if a commit is, or may be, in the history of this one."""
        head = self.where.head
        if commit is None or head is None or self.git.is_ancestor(commit, head):
            return True
        return self._is_shallow and self.git.resolve(commit) is None

    def _is_covered(self, record: Record) -> bool:
        """True if the plan has most of the record's cases."""
        if not self.plan:
            return True
        stored = record.header.plan
        gone = len(stored) - len(match_cases(self.plan, stored).same)
        return are_few(gone, len(stored))

    # --- their origin -----------------------------------------------------------------------------

    def under_trust(self, found: References) -> References:
        """Return the references with the known origin of their records.

        Raises:
            BaselineError: a proof is required and missing. Not on the default branch: its job makes the next one.
        """
        if self.store.provenance is None:
            return found
        records = [record for reference in found.all for record in reference.records]
        trust = self.store.provenance.trust(self.suite_id, records)
        if trust.required and not self.where.anchored and (trust.troubles or trust.unproven or not records):
            what = f"no proven baseline of {self.suite_id!r}"
            hint = "the default branch's job stores one; `require_provenance: warn` goes without"
            if trust.troubles:
                what = trust.troubles[0]
            elif trust.reason:
                hint = trust.reason
            raise BaselineError(what, where=str(self.config.path), hint=hint)
        marked = []
        for reference in found.all:
            info = reference.info
            if reference.records:
                info = replace(info, provenance="proven")
            if any(commit_key(record.header) in trust.unproven for record in reference.records):
                info = replace(info, provenance="unproven")
            marked.append(replace(reference, info=info))
        found = replace(found, all=tuple(marked), doubts=(*found.doubts, *trust.troubles))
        if not (trust.unproven or trust.told):
            return found
        fact = Finding.of("unproven", compared=trust.unproven, told=trust.told, why=trust.reason)
        return replace(found, notes=(*found.notes, fact))


def nearest_stored(store: BlobStore, suite_id: str, where: GitContext) -> Reference | None:
    """Return the record of this commit, else of its nearest ancestor, else the newest."""
    commits = dict.fromkeys(filter(None, (where.head, *where.ancestors)))
    return store.find(suite_id, tuple(commits)) or store.latest(suite_id)


def _is_same(own: Reference, anchor: Reference) -> bool:
    """True if the anchor is the record of the own base, with all its runs."""
    return own.commit == anchor.commit and set(run_ids(own.records[0].header)) == set(run_ids(anchor.records[0].header))


def _in_own_tree(found: References, config: Config) -> References:
    """Return the references with the base's tree, which is removed after the run, named as the change's own."""
    if config.base_root is None:
        return found
    before, own = str(config.base_root), str(config.root)
    renamed = []
    for one in found.all:
        renamed.append(replace(one, info=replace(one.info, source=one.info.source.replace(before, own))))
    return replace(found, all=tuple(renamed))


# --- what the base's configuration selects and this run leaves out ------------------------------------


def find_all_references(
    config: Config,
    store: BlobStore | None,
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
    run = {suite_key(plan.suite.id) for plan in plans}
    stored = store.suites_at(where.ancestors)
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
    # A renamed or removed suite would have nothing to be compared with. One store may serve several configurations, so
    # the base's own configuration tells which suites belong to it.
    gone = [name for name, cases in before.items() if cases and suite_key(name) in stored - run]
    doubts = tuple(map(suite_gone, gone))
    known = []
    for plan, references in zip(plans, found, strict=True):
        doubts += _cases_left_out(config, plan, before.get(plan.suite.id, ()))
        known.append(replace(references, doubts=references.doubts + doubts))
        doubts = ()  # that a suite is gone is told with the first
    return known


def _in_place(base: Config, path: Path, config: Config) -> Config:
    """Return the base's configuration as if it were in the work tree; ``path`` is the change's, in the base's tree."""
    top, inside = place_of(config.path)
    root = top / base.root.relative_to(path.resolve().parents[len(inside.parts) - 1])
    if not root.is_dir():
        return base
    return replace(base, root=root, base_root=base.root)


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
    if config.file.select is None:
        return False
    return any(f"select.{name}" not in config.overridden for name in config.file.select.model_fields_set)


def _selected_at_base(config: Config, base: Config, suites: Sequence[Suite]) -> dict[str, list[Case]]:
    """Return the base's cases by suite that its own configuration selects, under the conditions of the command line."""
    asked = {}
    for name, value in config.file.select or ():
        if f"select.{name}" in config.overridden:
            asked[name] = value
    selection = (base.file.select or Selection()).model_copy(update=asked)
    return {suite.id: [case for case in suite.cases if selection.takes(case)] for suite in suites}


def _cases_left_out(config: Config, plan: Plan, before: Sequence[Case]) -> tuple[str, ...]:
    """Return a note if the change's configuration no longer selects some cases that the base's does, and those and the
    removed ones are many."""
    owed = {case.id for case in before} - {entry.case for entry in config.file.quarantine}
    gone = owed - {case.id for case in former_cases(before, plan.suite.cases).values()}
    left_out = gone & plan.deselected
    if not left_out or are_few(len(gone), len(owed)):
        return ()
    said = f"`select` leaves out {len(left_out)} of the {count(len(owed), 'case')} that it takes at the base"
    removed = len(gone - left_out)
    if removed:
        said += f", and {removed} {agree(removed, 'was', 'were')} removed"
    return (said,)


# --- what the ledger knows of a reference ---------------------------------------------------------

LUCKY = "if it was picked for its result, an unchanged agent is blocked more often than `gate.alpha` says"


def acceptance_of(ledger: Ledger, where: GitContext, runs: Set[str]) -> str:
    """Return who accepted these very runs, and when. Other runs of the commit were not seen, so they are not
    accepted."""
    key = key_of(where.head)
    found = ledger.accepted(key) if where.anchored else None
    if found is None or not runs:
        return ""
    seen = {mark.run for mark in ledger.marks if mark.key == key and mark.at <= found.at}
    if not runs <= seen:
        return ""
    return f"{found.by} at {datetime.fromtimestamp(found.at, UTC).isoformat(timespec='seconds')}"


def ended_acceptance(ledger: Ledger, where: GitContext) -> str:
    """Return a description of the newest acceptance of a record of this history that does not count; empty if there is
    none."""
    near = {key_of(commit) for commit in where.ancestors}
    if where.head is not None:
        near.add(where.head)
    for found in reversed(ledger.ended):
        if found.key in near:
            fault = found.fault(now().timestamp())
            return f"the acceptance of {found.key[:12]} by {shorten(found.by, 60)} {fault}"
    return ""


def note_of_shortfall(mark: Mark, own: Reference, where: GitContext) -> str:
    """Return a note on how the record that a change is compared with fell short, which the comparison does not show.

    It may have been compared with earlier runs of the same commit.
    """
    commit = (own.commit or "")[:12]
    if own.commit == where.base:
        base = f"the base commit {commit}"
    elif own.commit in where.ancestors:
        base = f"{commit}, which the base commit comes from,"
    else:
        base = f"{commit}, which was saved last,"
    is_its_own = key_of(mark.anchor) == mark.key
    came_out = f"{mark.verdict.replace('_', ' ')} on {datetime.fromtimestamp(mark.at, UTC):%Y-%m-%d}"
    if mark.verdict == LAPSED:
        held = "its own earlier runs" if is_its_own else mark.anchor[:12]
        fell = f"{base} passed only against {held}, whose acceptance has ended"
    elif is_its_own:
        fell = f"{base} was run again, and held to its own earlier runs came out {came_out}"
    else:
        held = f", compared with {mark.anchor[:12]}" if mark.anchor else ""
        fell = f"{base} itself came out {came_out}{held}"
    return f"{fell}; this change is compared with it all the same"


def note_of_picked_run(ledger: Ledger, own: Reference) -> str:
    """Return a note if the record of the base was picked from several runs; else empty."""
    mark = ledger.newest_mark(key_of(own.commit))
    if mark is None or not mark.left_out:
        return ""
    others = count(mark.left_out, "other run")
    return f"the baseline was picked by hand, {others} of its commit left out: {LUCKY}"


def note_of_lost_record(ledger: Ledger, store: BlobStore, suite_id: str, where: GitContext) -> str:
    """Return a note if the ledger names a record of this history that is gone; else empty."""
    marked = {mark.key for mark in ledger.marks} - {entry.key for entry in store.entries(suite_id)}
    for key in map(key_of, where.ancestors):
        if key in marked:
            lost = "deleted, renamed, or no plain file any more"
            return f"a baseline was stored: the ledger names a record of {key[:12]}, which is gone ({lost})"
    return ""


# --- moves of the provider ------------------------------------------------------------------------

LATER = 6
"""Number of newer records of the same agent to read, to see if it moved after the record that a change is compared
with."""


def without_drift(reference: Reference, store: BlobStore) -> tuple[Reference, Finding | None]:
    """Return the reference without runs from before the provider moved, and a note of the move.

    A change is compared with its own base even if that was measured before the move; then there is only the note.
    """
    if not reference.records:
        return reference, None
    kept, move = since_last_move(reference.records)
    if move is not None:
        return reference.with_records(kept), move
    nearest = reference.records[0]
    _, move = since_last_move([*reference.records, *_newer_records(store, nearest)])
    if move is None or move["since"] <= nearest.header.created:
        return reference, None
    return reference, move.but(baseline_is_older=True)


def since_last_move(records: Sequence[Record]) -> tuple[Sequence[Record], Finding | None]:
    """Return the records without the runs from before the latest move, and that move.

    The first record, the nearest, defines which trials are comparable. All records are kept if nothing moved, and at
    least the nearest if all were measured before the move.
    """
    if not records:
        return records, None
    nearest = records[0].header
    runs: list[tuple[RunPart, Header]] = []
    for record in records:
        if _alike(record.header, nearest):
            runs += [(part, record.header) for part in parts_of(record)]
    runs.sort(key=lambda one: one[0].run.age)
    content = nearest.contents
    cases = {case.id: Case(case.id, (), thresholds=case.thresholds) for case in nearest.plan}
    found = newest_move([_comparable(part, header, content) for part, header in runs], cases, nearest.criteria)
    if found is None:
        return records, None
    criterion, move = found
    first, header = runs[move.run]
    before = frozenset(part.run.id for part, _ in runs[: move.run])
    fact = Finding.of(
        "provider_moved",
        since=first.run.created,
        commit=header.commit,
        metric=criterion.name,
        scale=criterion.scale,
        change=move.change,
        p=move.p,
        runs=len(runs),
    )
    kept = []
    for record in records:
        left = without(record, before)
        if left is not None:
            kept.append(left)
    return kept or records[:1], fact


def _newer_records(store: BlobStore, than: Record) -> list[Record]:
    """Return newer records of the same agent, such as nightly runs and merges leave, newest first."""
    header = than.header
    if not header.agent:
        return []
    newer = [entry for entry in store.entries(header.suite_id) if entry.created > header.created]
    others = [entry for entry in newer[:LATER] if entry.commit != header.commit]
    return [record for record in store.read_sound(others) if record.header.agent == header.agent]


def _alike(header: Header, nearest: Header) -> bool:
    """True if both measured the same criteria, on the same agent or at the same commit."""
    if header != nearest and not (header.agent and header.agent == nearest.agent):
        return False
    return header.measures == nearest.measures


def _comparable(part: RunPart, header: Header, content: Mapping[str, str]) -> list[Trial]:
    """Return the trials of cases whose ``content`` is the same in the nearest record."""
    same = {case.id for case in header.plan if content.get(case.id) == case.fingerprint}
    return [trial for trial in part.trials if trial.case_id in same]


# --- the trend ------------------------------------------------------------------------------------

MOST_PAST = 20
"""The number of nearest records to read."""
COVERED = 0.9
"""Minimum share of the current cases that a record covers to be a point of the trend."""
MOST_PAST_TRIALS = 20_000
"""The most stored trials to read, estimated from the baseline's; for a large suite fewer records are read, or none."""


def past_rates(store: BlobStore | None, own: Reference, where: GitContext, header: Header) -> tuple[float, ...]:
    """Return the pass rates of stored commits before this one, oldest first, by the criteria in ``header``.

    Records that cover too few of the current cases, or cannot be read, are left out.
    """
    if store is None or not own.records or not where.ancestors:
        return ()
    most = min(MOST_PAST, MOST_PAST_TRIALS // max(1, len(own.records[0].trials)))
    place = {commit: distance for distance, commit in enumerate(where.ancestors)}
    near = [entry for entry in store.entries(header.suite_id) if entry.commit in place]
    near.sort(key=lambda entry: place[entry.commit or ""])
    del near[most:]
    store.fetch([entry.where for entry in near])
    cases = {case.id: case for case in cases_of(header)}
    found = []
    for entry in reversed(near):
        try:
            rate = _rate(store.read(entry), header, cases)
        except BaselineError:
            continue
        if rate is not None:
            found.append(rate)
    return tuple(found)


def _rate(record: Record, header: Header, cases: Mapping[str, Case]) -> float | None:
    """Return the pass rate over the cases in ``header``, or None if the record covers too few of them."""
    paired = pair(header.plan, header.criteria, reference_to([record]))
    blocking = {criterion.name for criterion in header.criteria if criterion.blocking}
    apart = {case_id for case_id, name in paired.not_comparable if name in blocking}
    by_case: dict[str, list[bool]] = {}
    for trial in paired.stored:
        case = cases.get(trial.case_id)
        if case is None or case.id in apart or not trial.is_of_epoch:
            continue
        outcome = passed(trial, case, header.criteria)
        if outcome is not None:
            by_case.setdefault(case.id, []).append(outcome)
    if not by_case or len(by_case) < COVERED * len(header.plan):
        return None
    return fmean(fmean(outcomes) for outcomes in by_case.values())
