"""Finds what a run is compared with: the record of its base or of the nearest stored ancestor, and the anchor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from gate.baselines import Found, Store, StoreSettings, open_store
from gate.baselines.base import SUFFIX, Trust, outage_in
from gate.baselines.ledger import LAPSED, Ledger, Mark
from gate.baselines.pairing import Reference, match_cases, pair, reference_to
from gate.baselines.tags import series_of
from gate.baselines.union import RunPart, parts_of, run_ids, without
from gate.config.base_policy import path_at
from gate.config.load import Config, load_config
from gate.config.schema import NO_STORE
from gate.decision.course import COVERED
from gate.decision.gaps import are_few
from gate.decision.outcomes import PASS_RATE, passed
from gate.errors import BaselineError, ConfigError, GateError
from gate.histories.moves import Moved, newest_move
from gate.histories.runs import EPOCHS
from gate.model import BaselineInfo, Case, Criterion, Scale, Trial
from gate.model.finding import Finding
from gate.records import Header, PlannedCase, Record
from gate.records.keys import UNCOMMITTED, commit_key, key_of, suite_key
from gate.reports.formatting import count, listing
from gate.security.environment import TOKEN, in_ci
from gate.security.escape import one_line
from gate.security.limits import shorten
from gate.system.clock import now
from gate.system.git import Git, GitError

NO_COMMIT = "one is stored, but under `on_missing: fail` an ancestor's record alone counts, and there is no commit here"
OWN = "the baseline saved last is of this very commit: commit a change, then run again"
LUCKY = "if it was picked for its result, an unchanged agent is blocked more often than `gate.alpha` says"
SHALLOW = "the clone is shallow: older baselines cannot be found (use fetch-depth: 0, on GitLab GIT_DEPTH: 0)"
CUT_OFF = (
    "this shallow clone has no commit that a baseline is stored of, so which one this change belongs to is not known: "
    "check out with fetch-depth: 0, on GitLab with GIT_DEPTH: 0"
)
"""The doubt that keeps a suite from passing against a record that was merely saved last."""
SEARCHED = 200
"""First-parent ancestors that are looked at."""
REPORTS = "gate-results"
"""Folder of reports and records that other steps take up: the action writes it, the guides name it."""


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
    """True to compare with the anchor, too: on the default branch, and for a release."""
    release: str = ""
    """The tag that is to be released, if one is."""
    is_cut: bool = False
    """True if there may be further ancestors, which a shallow clone does not have."""
    subject: str = ""
    """First line of the commit's message."""
    branch: str = ""
    """Branch that is checked out; empty if a commit is."""


class References(Struct, frozen=True):
    """Everything that a record is compared with, the first first, and what its reader should know of it."""

    all: tuple[Reference, ...]
    notes: tuple[str | Finding, ...] = ()
    anchor: str = ""
    """The commit of the anchor, if there is one and it is among them, under its own name or as the own base."""
    doubts: tuple[str, ...] = ()
    """Reasons that keep the suite from passing."""
    accepted: str = ""
    """The person who accepted this very run once it was stored, and the time."""
    expired: str = ""
    """The last acceptance of a record of this history, if it has ended, in words; else empty."""
    fell_short: str = ""
    """The verdict of the base's record if it fell short when it was stored and nobody accepted that; else empty."""

    @property
    def first(self) -> Reference:
        return self.all[0]


def changed_files(config: Config, git: Git, written: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the user's files that differ from HEAD; ``written``: files that a run leaves, relative to the root."""
    return tuple(git.changed(exclude=(*_own_files(config), *written))) if git.is_repository() else ()


NO_GIT = "git is not installed (no program of that name in PATH), so commits are not known"
"""The note on a folder that is in a repository."""


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

    The base is ``baseline.against`` where given; else the merge base with the default branch; on that branch itself,
    the commit before HEAD, or HEAD while the work tree differs from it. ``changed`` are the `changed_files` if they
    were asked for before something was installed here. ``anchored`` None: a clean commit of the default branch is.
    """
    if not git.is_repository():
        if config.file.baseline.against:
            raise ConfigError(
                f"{config.file.baseline.against!r} names a commit, and this is not a git repository",
                where=config.place_of("baseline", "against"),
                hint="compare with what is stored: leave it out",
            )
        why = NO_GIT if git.is_out_of_reach() else "not a git repository"
        return GitContext(note=f"{why}: the baseline is the one saved last", release=release)
    head = git.head()
    dirty = bool(changed_files(config, git, written) if changed is None else changed)
    tip = _default_tip(git, config.file.baseline.remote)
    base = _base(config, git, head, dirty, tip)
    if anchored is None:
        anchored = bool(release) or bool(head and tip and not dirty and git.is_ancestor(head, tip))
    ancestors = tuple(git.first_parents(base, SEARCHED)) if base else ()
    is_cut = head is not None and len(ancestors) < SEARCHED and git.is_shallow()
    note = SHALLOW if is_cut else ""
    subject = git.subject(head) if head else ""
    return GitContext(head, dirty, base, ancestors, note, anchored, release, is_cut, subject, git.branch())


def _own_files(config: Config) -> tuple[str, ...]:
    """Return the files that the gate itself writes, which are not changes by the user."""
    return (config.file.output, config.file.baseline.folder, REPORTS)


def _base(config: Config, git: Git, head: str | None, dirty: bool, tip: str | None) -> str | None:
    against = config.file.baseline.against
    if against:
        found = git.resolve(against) or git.resolve(f"{config.file.baseline.remote}/{against}")
        if found is None:
            place = config.place_of("baseline", "against")
            raise ConfigError(f"no commit {against!r} here", where=place, hint="fetch it first")
        return found
    if head is None:
        return None
    remote = config.file.baseline.remote
    common = _common(git, head, tip, remote) if tip else None
    if common is not None and common != head:
        return common
    if dirty:
        return head
    parents = git.parents(head)
    if not parents and git.is_shallow():  # they may be beyond its edge
        with suppress(GitError):
            git.fetch(head, remote=remote, depth=SEARCHED + 1)
        parents = git.parents(head)
    return parents[0] if parents else None


def _common(git: Git, head: str, tip: str, remote: str) -> str | None:
    """Return the merge base; a shallow clone fetches more history for it if it can."""
    try:
        return git.common_history(head, tip, remote=remote)
    except GitError:
        return None


def _default_tip(git: Git, remote: str) -> str | None:
    """Return the default branch's newest known commit; without a remote, that of a local main or master."""
    branch = git.default_branch(remote)
    names = [f"{remote}/{branch}", branch] if branch else ["main", "master"]
    return next((found for name in names if (found := git.resolve(name))), None)


def store_kind(config: Config, environment: Mapping[str, str]) -> str:
    """Return the kind of store that is configured; without one, files, and in CI the repository's own branch.

    What a job writes beside its clone is gone with it. A folder that is there already, committed or restored, is kept
    to; so it is where there is no remote to push to. Under the rules of a base commit, one that the change commits says
    nothing: it would be compared with nothing.
    """
    section = config.file.baseline
    stated = "store" in section.model_fields_set or "path" in section.options
    git = Git(config.root, environment=environment)
    if stated or not in_ci(environment) or _has_folder(config, git):
        return section.store
    has_remote = git.is_repository() and git.ask("config", "--get", f"remote.{section.remote}.url") is not None
    return "git" if has_remote else section.store


def _has_folder(config: Config, git: Git) -> bool:
    """True if the file store's folder is there; under a base's rules, in its tree or with records no commit has."""
    name = config.file.baseline.folder
    folder = config.root / name
    if config.base_root is None or (config.base_root / name).is_dir():
        return config.base_root is not None or folder.is_dir()
    return _has_restored(config, git)


def _has_restored(config: Config, git: Git) -> bool:
    """True if the file store's folder has records that no commit has."""
    folder = str(config.root / config.file.baseline.folder)
    restored = git.ask("ls-files", "-z", "--others", "--", folder) if git.is_repository() else None
    return any(name.endswith(SUFFIX) for name in (restored or "").split("\0"))


def is_lost(config: Config, environment: Mapping[str, str]) -> bool:
    """True if stored records are gone with the CI job: they are in a folder of its clone that nobody has committed."""
    folder = config.root / config.file.baseline.folder
    if store_kind(config, environment) != "file" or not in_ci(environment) or not folder.is_relative_to(config.root):
        return False
    git = Git(config.root, environment=environment)
    return not (git.is_repository() and git.ask("ls-files", "--", str(folder)))


def store_of(config: Config, environment: Mapping[str, str]) -> Store | None:
    """Return the store of baselines; None if they are switched off."""
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
    from gate.pipeline.provenance import proven_store  # weight: only where there is a store

    return proven_store(open_store(kind, settings), config, environment, kind)


def _root_of(config: Config, kind: str, environment: Mapping[str, str]) -> Path:
    """Return the folder that the store's paths are relative to.

    A change could edit a folder that is committed, or bring one: under a base's rules it is read as the base commit has
    it. What no commit has is the job's, as from a cache. Raises ConfigError where both are in one folder.
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
            what, where=str(config.root / name), hint="take it out of the change, or keep baselines elsewhere"
        )
    return config.root if brought is None else base


def find_baselines(
    config: Config,
    store: Store | None,
    suite_id: str,
    where: GitContext,
    git: Git,
    runs: Set[str] = frozenset(),
    *,
    plan: Sequence[PlannedCase] = (),
) -> References:
    """Return what a record is compared with: the record of its base, and the anchor if the git context asks for it.

    A release is compared with the anchor alone, once there is one. ``runs`` are those that are compared: no yardstick
    for themselves. ``plan`` are its cases: the anchor has to cover them.

    Raises:
        BaselineError: truncated, damaged or misplaced; or missing under ``on_missing: fail``.
    """
    if store is None:
        return References((find_baseline(config, None, suite_id, where),))
    found = _find_baselines(config, store, suite_id, where, git, runs, plan)
    return _under_trust(config, store, suite_id, where, _in_own_tree(found, config))


def _in_own_tree(found: References, config: Config) -> References:
    """Return the references with the base's tree, which is gone with the run, named as the change's own."""
    if config.base_root is None:
        return found
    before, own = str(config.base_root), str(config.root)
    renamed = [replace(one, info=replace(one.info, source=one.info.source.replace(before, own))) for one in found.all]
    return replace(found, all=tuple(renamed))


def _find_baselines(
    config: Config,
    store: Store,
    suite_id: str,
    where: GitContext,
    git: Git,
    runs: Set[str],
    plan: Sequence[PlannedCase],
) -> References:
    ledger = store.ledger(suite_id).at(now().timestamp())
    anchor = find_anchor(store, suite_id, where, git, runs, plan) if where.anchored else None
    found = References((), accepted=_accepted(ledger, where, runs), expired=_expired(ledger, where))
    if anchor is not None:
        found = replace(found, anchor=anchor.info.commit or UNCOMMITTED)
    if where.release and anchor is not None:
        return replace(found, all=(anchor,))
    if where.release and runs:
        itself = find_anchor(store, suite_id, where, git, plan=plan)
        if itself is not None and itself.info.commit == where.head:  # the first that was ever recorded
            return replace(found, all=(without_runs(itself, runs),))
    rejected = {mark.key for mark in ledger.marks if ledger.rejected(mark.key)} if where.release else set()
    own = without_runs(find_baseline(config, store, suite_id, where, exclude=rejected), runs)
    own, drift = without_drift(own, store)
    is_change = not where.anchored and not where.release
    own = replace(own, of_change=not where.anchored, beside=is_change and not own.records)
    if not own.records:
        if store.latest(suite_id) is None:
            own = replace(own, info=replace(own.info, never_stored=_commits_with(config, where, git)))
        notes = [drift, _note_of_lost_record(ledger, store, suite_id, where)]
        found = replace(found, notes=tuple(note for note in notes if note))
        return replace(found, all=(own,) if anchor is None else (anchor,))
    is_ancestor = own.info.commit in where.ancestors
    mark = ledger.below(key_of(own.info.commit))
    notes = [drift]
    if mark is not None and not (where.anchored and is_ancestor):
        notes.append(_note_of_shortfall(mark, own, is_ancestor=is_ancestor))
    notes.append(_note_of_picked_run(ledger, own))
    return replace(
        found,
        all=(own,) if anchor is None or _is_same(own, anchor) else (own, anchor),
        notes=tuple(note for note in notes if note),
        doubts=(CUT_OFF,) if where.is_cut and not is_ancestor else (),
        fell_short="" if mark is None else mark.verdict,
    )


def suites_left_out(
    config: Config, store: Store | None, suites: Sequence[str], where: GitContext, environment: Mapping[str, str]
) -> str:
    """Return which suites the base's own configuration runs, and has records of, that are not run now; empty for none.

    A suite that was renamed or removed would leave nothing to compare. One store may serve several configurations, so
    the base's own says which of its suites are meant.
    """
    if store is None or where.base is None or not suites or config.file.select is not None:
        return ""
    here = {suite_key(suite_id) for suite_id in suites}
    gone = store.suites_at(where.ancestors) - here
    if not gone:
        return ""
    from gate.config.resolve import make_plans  # weight: only if a suite may be gone

    try:
        with path_at(where.base, config.path, environment) as path:
            before = [plan.suite.id for plan in make_plans(load_config(path, of_base=True), environment)]
    except GateError:
        return ""
    names = [suite_id for suite_id in before if suite_key(suite_id) in gone]
    if not names:
        return ""
    return f"the {'suite' if len(names) == 1 else 'suites'} {listing(map(_shown, names))}, renamed or removed"


def _shown(name: str) -> str:
    """Return a name from outside as a line can hold it."""
    return shorten(one_line(name, 200), 60)


def _under_trust(config: Config, store: Store, suite_id: str, where: GitContext, found: References) -> References:
    """Return the references with what is known of where the records come from.

    Raises:
        BaselineError: a proof is required, and there is none. Not on the default branch: its job makes the next one.
    """
    trust = store.trust(suite_id, [record for reference in found.all for record in reference.records])
    if trust.required and not where.anchored:
        nothing = not any(reference.records for reference in found.all)
        if trust.troubles or trust.unproven or nothing:
            none = f"no proven baseline of {suite_id!r}" + (f" ({trust.reason})" if trust.reason else "")
            what = next(iter(trust.troubles), none)
            hint = "the default branch's job stores one; `require_provenance: warn` goes without"
            raise BaselineError(what, where=str(config.path), hint=hint)
    if trust.asked:
        found = replace(found, all=tuple(_with_provenance(reference, trust) for reference in found.all))
    found = replace(found, doubts=(*found.doubts, *trust.troubles))
    if not (trust.unproven or trust.told):
        return found
    fact = Finding.of("unproven", compared=trust.unproven, told=trust.told, why=trust.reason)
    return replace(found, notes=(*found.notes, fact))


def _with_provenance(reference: Reference, trust: Trust) -> Reference:
    """Return the reference as proven or unproven."""
    if not reference.records:
        return reference
    doubtful = any(commit_key(record.header) in trust.unproven for record in reference.records)
    return replace(reference, info=replace(reference.info, provenance="unproven" if doubtful else "proven"))


def _commits_with(config: Config, where: GitContext, git: Git) -> int:
    """Return how many commits of the base's history have the configuration; 0 if it is new, or nobody knows."""
    if where.base is None:
        return 0
    path = config.path.name
    added = git.ask("log", "--first-parent", "--diff-filter=A", "--format=%H", "--max-count=1", where.base, "--", path)
    return where.ancestors.index(added) + 1 if added in where.ancestors else 0


def without_drift(reference: Reference, store: Store) -> tuple[Reference, Finding | None]:
    """Return the reference without runs from before the provider moved, and a note of the move.

    A change is held to its own base, though that was measured before the move: then only the note says so.
    """
    if not reference.records:
        return reference, None
    nearest = reference.records[0]
    drift = drift_in(reference.records)
    if drift is not None:
        kept, info = runs_after(reference.records, drift), reference.info
        fresh = reference_to(kept, info.commit, distance=info.distance, source=info.source)
        return replace(fresh, name=reference.name, of_change=reference.of_change), drift.fact
    drift = drift_in([nearest, *reference.records[1:], *newer_records(store, nearest.header.suite_id, nearest)])
    if drift is None or drift.since <= nearest.header.created:
        return reference, None
    return reference, drift.fact.but(baseline_is_older=True)


def find_anchor(
    store: Store,
    suite_id: str,
    where: GitContext,
    git: Git,
    runs: Set[str] = frozenset(),
    plan: Sequence[PlannedCase] = (),
) -> Reference | None:
    """Return the anchor in the history of this commit; most of its cases must still be in the ``plan``, if given."""
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
    if found is None:
        return None
    commit = found.record.header.commit
    source = f"{found.where} ({found.candidate.why})"
    distance = where.ancestors.index(commit) if commit in where.ancestors else None
    return replace(reference_to([found.record], commit, distance=distance, source=source), name="anchor")


def _is_same(own: Reference, anchor: Reference) -> bool:
    """True if the anchor is the record of the own base, all its runs included."""
    ids = [set(run_ids(reference.records[0])) for reference in (own, anchor)]
    return own.info.commit == anchor.info.commit and ids[0] == ids[1]


def _accepted(ledger: Ledger, where: GitContext, runs: Set[str]) -> str:
    """Return who accepted these very runs: other runs of the commit were not seen, and are not accepted."""
    key = key_of(where.head)
    found = ledger.accepted(key) if where.anchored else None
    seen = {m.run for m in ledger.marks if found is not None and m.key == key and m.at <= found.at}
    if found is None or not runs or not runs <= seen:
        return ""
    return f"{found.by} at {datetime.fromtimestamp(found.at, UTC).isoformat(timespec='seconds')}"


def _expired(ledger: Ledger, where: GitContext) -> str:
    """Return in words the newest acceptance of a record of this history that has ended."""
    near = {key_of(commit) for commit in (*where.ancestors, *filter(None, (where.head,)))}
    found = next((one for one in reversed(ledger.ended) if one.key in near), None)
    if found is None:
        return ""
    return f"the acceptance of {found.key[:12]} by {shorten(found.by, 60)} ended on {found.last_day}"


def _note_of_shortfall(mark: Mark, own: Reference, *, is_ancestor: bool) -> str:
    """Return how the base's own record fell short, which a comparison with it does not show.

    It may have been held to earlier runs of the same commit.
    """
    commit = (own.info.commit or "")[:12]
    base = f"the base commit {commit}" if is_ancestor else f"{commit}, which was saved last,"
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


def _note_of_picked_run(ledger: Ledger, own: Reference) -> str:
    """Return a note if the record of the base was picked from several runs; else empty."""
    key = key_of(own.info.commit)
    mark = next((mark for mark in reversed(ledger.marks) if mark.key == key), None)
    if mark is None or not mark.left_out:
        return ""
    others = count(mark.left_out, "other run")
    return f"the baseline was picked by hand, {others} of its commit left out: {LUCKY}"


def _note_of_lost_record(ledger: Ledger, store: Store, suite_id: str, where: GitContext) -> str:
    """Return a note if the ledger names a record of this history that is gone; else empty."""
    marked = {mark.key for mark in ledger.marks} - {entry.key for entry in store.entries(suite_id)}
    for key in map(key_of, where.ancestors):
        if key in marked:
            lost = "deleted, renamed, or no plain file any more"
            return f"a baseline was stored: the ledger names a record of {key[:12]}, which is gone ({lost})"
    return ""


def nearest_stored(store: Store, suite_id: str, where: GitContext) -> Found | None:
    """Return the record of this commit, of its nearest ancestor, or else the newest."""
    commits = (*((where.head,) if where.head else ()), *where.ancestors)
    return store.find(suite_id, commits) or store.latest(suite_id)


def find_baseline(
    config: Config, store: Store | None, suite_id: str, where: GitContext, *, exclude: Set[str] = frozenset()
) -> Reference:
    """Return the stored records of the own base, newest first, at most `POOL` of one agent.

    ``exclude``: commits of which the record does not count.

    Raises:
        BaselineError: damaged or misplaced; or missing under ``on_missing: fail``.
    """
    if store is None:
        return Reference(BaselineInfo(None, missing="baselines are switched off"))
    found = store.find(suite_id, where.ancestors, exclude=exclude)
    while (
        found is not None and found.commit and outage_in(found.records[0])
    ):  # no store takes one: somebody put it there
        exclude = exclude | {found.commit}
        found = store.find(suite_id, where.ancestors, exclude=exclude)
    note = ""
    if found is None and where.head:
        here = store.find(suite_id, (where.head,), exclude=exclude)
        found = here if here is not None and not _is_own(here, where) else None
    if found is None and config.file.baseline.on_missing != "fail":
        found = _saved_last(store, suite_id, exclude)
        note = _relation_to_commit(where)
        if found is not None and _is_own(found, where):
            return _no_baseline(config, suite_id, where, OWN, of_itself=True)
    if found is None:
        is_out_of_reach = not where.head and store.latest(suite_id) is not None
        return _no_baseline(config, suite_id, where, NO_COMMIT if is_out_of_reach else "")
    source = f"{found.where} ({note})" if note else found.where
    return reference_to(found.records, found.commit, distance=found.distance, source=source)


def _saved_last(store: Store, suite_id: str, exclude: Set[str]) -> Found | None:
    """Return the newest record that did not fall short, for a commit without a stored ancestor."""
    ledger = store.ledger(suite_id).at(now().timestamp())
    below = {entry.key for entry in store.entries(suite_id) if ledger.below(entry.key) is not None}
    return store.latest(suite_id, exclude=exclude | below) or store.latest(suite_id)


def _relation_to_commit(where: GitContext) -> str:
    """Return how the record that was saved last is related to this commit; empty outside of git."""
    if where.head is None:
        return ""
    return f"saved last; {'not known to be' if where.is_cut else 'not'} an ancestor of this commit"


def _is_own(found: Found, where: GitContext) -> bool:
    """True if it measured this very agent. Recordings and agents outside the repository may differ at one commit."""
    return found.commit is not None and found.commit == where.head and bool(found.records[0].header.agent)


def _no_baseline(
    config: Config, suite_id: str, where: GitContext, why: str = "", *, of_itself: bool = False
) -> Reference:
    """Return a reference without records; ``why``: one is stored, and does not count."""
    missing = why or f"no baseline of {suite_id!r} {_looked_in(config, where)}"
    if config.file.baseline.on_missing == "fail":
        hint = "the first of all: `gate run --store none` on the default branch, then `gate baseline save`"
        raise BaselineError(missing, where=str(config.path), hint=f"{hint}; it counts from the next commit on")
    return Reference(BaselineInfo(None, missing=missing, of_itself=of_itself))


def _looked_in(config: Config, where: GitContext) -> str:
    """Return where a baseline was looked for: under ``fail`` only among ancestors, the base first."""
    nearest = where.base or where.head
    if config.file.baseline.on_missing != "fail" or nearest is None:
        return "in the store"
    before = len(where.ancestors) - 1
    return f"at {nearest[:12]}" + (f" or the {count(before, 'commit')} before it" if before > 0 else "")


def without_runs(reference: Reference, runs: Set[str]) -> Reference:
    """Return the reference without the trials of these runs: a record compared with itself always passes."""
    if runs.isdisjoint(one for record in reference.records for one in run_ids(record)):
        return reference
    kept = [left for record in reference.records if (left := without(record, runs)) is not None]
    if not kept:
        itself = BaselineInfo(None, missing="the stored baseline is this very record", of_itself=True)
        return replace(reference, info=itself, records=())
    info = reference.info
    found = reference_to(kept, kept[0].header.commit, distance=info.distance, source=info.source)
    return replace(found, name=reference.name)


# --- runs from before the provider moved ----------------------------------------------------------


LATER = 6
"""Newer records of the same agent that are read to see whether it moved after the one that a change is held to."""


class Drift(Struct, frozen=True):
    """A point at which the same agent began to score otherwise."""

    since: float
    """Unix time of the first run after it."""
    commit: str | None
    moved: Moved
    scale: Scale
    before: frozenset[str]
    """The runs before it."""
    runs: int

    @property
    def fact(self) -> Finding:
        """Return the drift as a finding for the reader."""
        moved = self.moved
        return Finding.of(
            "provider_moved",
            since=self.since,
            commit=self.commit,
            metric=moved.metric,
            scale=self.scale,
            change=moved.change,
            p=moved.p,
            runs=self.runs,
        )


def drift_in(records: Sequence[Record]) -> Drift | None:
    """Return the newest point at which the runs of these records moved; the first record says what is comparable."""
    if not records:
        return None
    nearest = records[0].header
    parts = []
    for record in records:
        if _alike(record.header, nearest):
            parts += [(part, record.header) for part in parts_of(record)]
    parts.sort(key=lambda one: one[0].run.age)
    known = {case.id: case.fingerprint for case in nearest.plan}
    cases = {case.id: Case(case.id, (), thresholds=case.thresholds) for case in nearest.plan}
    moved = newest_move([_comparable(part, header, known) for part, header in parts], cases, nearest.criteria)
    if moved is None:
        return None
    first, header = parts[moved.run]
    before = frozenset(part.run.id for part, _ in parts[: moved.run])
    return Drift(first.run.created, header.commit, moved, _scale(moved.metric, nearest.criteria), before, len(parts))


def runs_after(records: Sequence[Record], drift: Drift | None) -> tuple[Record, ...]:
    """Return the records without the runs from before the point; at least the nearest stays."""
    if drift is None:
        return tuple(records)
    kept = tuple(left for record in records if (left := without(record, drift.before)) is not None)
    return kept or tuple(records[:1])


def newer_records(store: Store, suite_id: str, than: Record) -> list[Record]:
    """Return newer records of the same agent, as nightly runs and merges leave them, the newest first."""
    if not than.header.agent:
        return []
    entries = [e for e in store.entries(suite_id) if e.created > than.header.created]
    found = store.read_sound(entry for entry in entries[:LATER] if entry.commit != than.header.commit)
    return [record for record in found if record.header.agent == than.header.agent]


def _alike(header: Header, nearest: Header) -> bool:
    """True if both measured the same criteria, of the same agent or at the same commit."""
    same = bool(header.agent) and header.agent == nearest.agent
    fingerprints = {c.name: c.fingerprint for c in header.criteria}
    return (same or header == nearest) and fingerprints == {c.name: c.fingerprint for c in nearest.criteria}


def _comparable(part: RunPart, header: Header, known: Mapping[str, str]) -> list[Trial]:
    """Return the trials of cases that are the same in the nearest record."""
    same = {case.id for case in header.plan if known.get(case.id) == case.fingerprint}
    return [trial for trial in part.trials if trial.case_id in same]


def _scale(metric: str, criteria: Sequence[Criterion]) -> Scale:
    return Scale.BINARY if metric == PASS_RATE else next(c.scale for c in criteria if c.name == metric)


# --- the trend that a report shows ----------------------------------------------------------------


MOST_PAST = 20
"""Records that are looked at, the nearest."""
MOST_PAST_TRIALS = 20_000
"""Stored trials of them together, by those of the baseline: of a large suite fewer records are read, or none."""


def past_rates(
    store: Store | None,
    own: Reference,
    suite_id: str,
    where: GitContext,
    plan: Sequence[PlannedCase],
    cases: Mapping[str, Case],
    criteria: Sequence[Criterion],
) -> tuple[float, ...]:
    """Return the pass rates of stored commits before this one, by its criteria, the oldest first.

    Left out is a record that covers too few of the cases as they are now, or that cannot be read.
    """
    if store is None or not own.records or not where.ancestors:
        return ()
    most = min(MOST_PAST, MOST_PAST_TRIALS // max(1, len(own.records[0].trials)))
    place = {commit: distance for distance, commit in enumerate(where.ancestors)}
    near = [entry for entry in store.entries(suite_id) if entry.commit in place]
    near = sorted(near, key=lambda entry: place[entry.commit or ""])[:most]
    store.prefetch(near)
    found = []
    for entry in reversed(near):
        try:
            rate = _rate(store.read(entry), plan, cases, criteria)
        except BaselineError:
            continue
        found += [] if rate is None else [rate]
    return tuple(found)


def _rate(
    record: Record, plan: Sequence[PlannedCase], cases: Mapping[str, Case], criteria: Sequence[Criterion]
) -> float | None:
    paired = pair(plan, criteria, reference_to([record], None, distance=None, source=""))
    blocking = {criterion.name for criterion in criteria if criterion.blocking}
    apart = {case_id for case_id, name in paired.not_comparable if name in blocking}
    by_case: dict[str, list[bool]] = {}
    for trial in paired.trials:
        case = cases.get(trial.case_id)
        if case is None or case.id in apart or trial.tag not in EPOCHS:
            continue
        outcome = passed(trial, case, criteria)
        if outcome is not None:
            by_case.setdefault(case.id, []).append(outcome)
    if not by_case or len(by_case) < COVERED * len(plan):
        return None
    return fmean(fmean(outcomes) for outcomes in by_case.values())
