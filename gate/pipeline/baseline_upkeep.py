"""Saves records as baselines with their verdicts, accepts them, and lists what is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from gate.baselines import Entry, Store
from gate.baselines.base import UNCOMMITTED, commit_key, key_of, suite_key
from gate.baselines.ledger import Acceptance, Ledger, Line, Mark
from gate.baselines.pairing import Reference, as_baseline
from gate.baselines.union import run_ids
from gate.config.load import Config
from gate.config.resolve import Plan, make_plans
from gate.config.settings import now, settings_of
from gate.decision.comparison import PASS_RATE
from gate.errors import BaselineError, BaselineWriteError, ConfigError, GateError
from gate.model import SuiteResult, Verdict
from gate.model.findings import NeverAnswered
from gate.pipeline.journal import newest_first, records_folder
from gate.pipeline.judge_stored import as_if_judged, found_again, plan_of, read_whole, suite_ids
from gate.pipeline.picked import beside
from gate.pipeline.reference import find_anchor, find_baselines, git_context, is_lost, store_of
from gate.pipeline.verdict import NO_REFERENCE, Terms, judge_record, load_to_judge, own_terms
from gate.records import Record
from gate.reports.explanation import headline
from gate.reports.formatting import count, interval, sample
from gate.reports.table import table
from gate.security.escape import console
from gate.system.git import Git

UNMEASURED = (Verdict.ERROR, Verdict.NOT_MEASURED)


# --- saving ---------------------------------------------------------------------------------------


def save_baseline(
    config: Config,
    path: Path,
    environment: Mapping[str, str],
    *,
    release: str = "",
    accepted: tuple[str, str] | None = None,
) -> str:
    """Stores a complete record with its verdict, and returns what was done in words.

    The verdict is that on the record against its own base and the anchor, as they are stored now. ``release`` is its
    release tag; ``accepted`` says by whom and why a record becomes the anchor regardless of its verdict.

    Further runs of the same commit and agent that lie beside it are saved with it, so that nobody picks the luckiest.
    Without a fingerprint nobody knows whether they are of the same agent: then they are counted as left out.

    Raises:
        BaselineWriteError: the record is not fit to be a baseline, or it cannot be written.
    """
    record = read_whole(path, error=BaselineWriteError)
    said: list[str] = []
    with _store(config, environment) as store:
        others = _beside(config, store, path, record)
        lines = _found(record, path, config, environment, release, left_out=0 if record.header.agent else len(others))
        if accepted is not None:
            lines += [_acceptance(record.header.suite_id, commit_key(record.header), *accepted)]
        where = store.save(record, lines, scope=_scope(record, config, environment), say=said.append)
        said += _with_others(config, store, others, environment, release, same_agent=bool(record.header.agent))
    if is_lost(config, environment):
        said.append(
            "this folder is gone with the job's clone: use `baseline: {store: git}`, or commit or cache the folder"
        )
    marks = [line for line in lines if isinstance(line, Mark) and not line.proven]
    if marks and accepted is None:
        short = (
            f"marked {marks[-1].verdict.replace('_', ' ')}: releases and the default branch are not compared with it"
        )
        said.append(short)
    return "\n".join([f"saved {where}", *said])


def _beside(config: Config, store: Store, path: Path, record: Record) -> list[Path]:
    """Further runs of the record's commit and agent that are not stored."""
    header = record.header
    stored = None
    with suppress(BaselineError):  # saving says what is wrong with it
        stored = store.find(header.suite_id, (header.commit,)) if header.commit else None
    known = {run for one in (stored.records if stored is not None else ()) for run in run_ids(one)}
    return beside(path, header, records_folder(config, header.suite_id), known=known | set(run_ids(record)))


def _with_others(
    config: Config,
    store: Store,
    others: Sequence[Path],
    environment: Mapping[str, str],
    release: str,
    *,
    same_agent: bool,
) -> list[str]:
    """Saves further runs of the same commit and agent, or says that they were left out."""
    if not same_agent:
        names = ", ".join(path.name for path in others[:3])
        return [f"{count(len(others), 'other run')} of this commit left out: {names}"] if others else []
    united = 0
    for path in others:
        with suppress(GateError):
            record = read_whole(path)
            lines = _found(record, path, config, environment, release)
            store.save(record, lines, scope=_scope(record, config, environment))
            united += 1
    said = f"united with {count(united, 'other run')} of this commit, so that none is picked for its result"
    return [said] if united else []


def _found(
    record: Record, path: Path, config: Config, environment: Mapping[str, str], release: str, *, left_out: int = 0
) -> list[Line]:
    """The verdicts on the record's runs, as lines of the ledger."""
    header = record.header
    if record.footer is None or header.shard != (1, 1):
        return []  # the store says why it does not take it
    own = own_terms(record, settings_of(config, now()))
    terms = replace(own, anchored=True, release=release or own.release)
    references = found_again(header, terms, config, environment)
    suite = judge_record(load_to_judge(path, criteria=terms.criteria), references.all, terms)
    if suite.verdict in UNMEASURED and not _only_silent(suite):
        what = f"the record cannot become a baseline: {headline(suite)}"
        raise BaselineWriteError(what, where=header.suite_id, hint="measure again once the cause is fixed")
    commits = {one.name: one.info.commit or UNCOMMITTED for one in references.all if one.records}
    at, suite_name, key = now().timestamp(), suite_key(header.suite_id), commit_key(header)
    base, anchor = commits.get("baseline", ""), references.anchor
    against = suite.further[-1] if suite.further else suite
    mark = Mark(suite_name, key, "", suite.verdict.value, at, base=base, anchor=anchor, release=terms.release)
    improved = bool(anchor) and suite.verdict is Verdict.PASS and _far_better(against)
    mark = replace(mark, left_out=left_out, improved=improved)
    return [replace(mark, run=run) for run in run_ids(record)]


def _only_silent(suite: SuiteResult) -> bool:
    """Whether all that is not measured are cases that the agent never answers: a fact that later runs are held to."""
    rows = [row for row in suite.criteria if row.verdict is Verdict.NOT_MEASURED and row.criterion.blocking]
    found = [f for row in rows for f in row.findings if f.verdict is Verdict.NOT_MEASURED]
    return suite.verdict is Verdict.NOT_MEASURED and bool(found) and all(isinstance(f, NeverAnswered) for f in found)


def _far_better(against: SuiteResult) -> bool:
    """Whether the pass rate rose by more than twice the half-width of its 90 % interval, as luck does in one of 2,000.

    The anchor moves up then. A looser rule would choose the luckiest of many records of an unchanged agent.
    """
    found = next((row.change for row in against.criteria if row.criterion.name == PASS_RATE), None)
    return found is not None and found.value > 2 * (found.value - found.low) > 0


def _scope(record: Record, config: Config, environment: Mapping[str, str]) -> frozenset[str] | None:
    """The cases that the configuration runs; None if the record holds all of them."""
    if not record.header.selected:
        return None
    return frozenset(case.id for case in plan_of(config, environment, record.header).planned)


def save_newest(config: Config, environment: Mapping[str, str], *, release: str = "") -> str:
    """Stores the newest finished record of each suite. Raises `BaselineWriteError`, also if there is none."""
    paths = [_newest_finished(config, suite_id) for suite_id in suite_ids(config, environment)]
    return "\n".join(save_baseline(config, path, environment, release=release) for path in paths)


def _newest_finished(config: Config, suite_id: str) -> Path:
    folder = records_folder(config, suite_id)
    for path in newest_first(folder):
        record = read_whole(path, complete=False)
        if record.footer is not None and record.header.shard == (1, 1):
            return path
    raise BaselineWriteError(f"no finished record of {suite_id!r}", where=str(folder), hint="`gate run` makes one")


# --- accepting ------------------------------------------------------------------------------------


def accept_baseline(
    config: Config, environment: Mapping[str, str], *, revision: str | None, by: str | None, why: str
) -> str:
    """Makes the stored record of a commit the anchor of each suite that has one, and returns what was done in words.

    Raises:
        BaselineError: no suite has a record of this commit.
        ConfigError: there is no such commit, nobody is known who accepts, or no reason is given.
    """
    if not why.strip():
        raise ConfigError("no reason given", where="--why", hint="say which change is wanted")
    git = Git(config.root, environment=environment)
    commit = _commit(git, revision)
    who, key, done = by or _person(git, environment), key_of(commit), []
    with _store(config, environment) as store:
        for suite_id in suite_ids(config, environment):
            if any(entry.key == key for entry in store.entries(suite_id)):
                store.note(suite_id, [_acceptance(suite_id, key, who, why)])
                done.append(
                    f"{console(suite_id)}: {(commit or 'the record')[:12]} is the anchor now, by {console(who)}"
                )
    if not done:
        what = f"no record of {(commit or 'a run outside of git')[:12]} is stored"
        raise BaselineError(what, where=str(config.path), hint="`gate baseline save RECORD` stores one")
    return "\n".join(done)


def _commit(git: Git, revision: str | None) -> str | None:
    if not git.is_repository():
        if revision is not None:
            raise ConfigError(f"no commit {revision!r}: this is not a git repository", where=str(git.root))
        return None
    found = git.resolve(revision or "HEAD")
    if found is None:
        raise ConfigError(f"commit {revision or 'HEAD'!r} not found", where=str(git.root), hint="fetch it first")
    return found


def _person(git: Git, environment: Mapping[str, str]) -> str:
    """Who is at work: as git knows them, else as the CI does."""
    known = [git.ask("config", "--get", f"user.{part}") for part in ("name", "email")] if git.is_repository() else []
    named = " ".join(filter(None, known))
    names = (named, *(environment.get(name, "") for name in ("GITHUB_ACTOR", "GITLAB_USER_LOGIN", "USER")))
    found = next(filter(None, names), "")
    if not found:
        raise ConfigError("cannot tell who accepts it", where="--by", hint="give --by NAME")
    return found


def _acceptance(suite_id: str, key: str, by: str, why: str) -> Acceptance:
    return Acceptance(suite_key(suite_id), key, by, now().timestamp(), why)


# --- showing --------------------------------------------------------------------------------------


def list_baselines(config: Config, environment: Mapping[str, str], width: int | None = None) -> str:
    """The stored baselines, newest first, each with its verdicts."""
    git = Git(config.root, environment=environment)
    with _store(config, environment) as store:
        entries = store.entries()
        if not entries:
            return "no baselines are stored; `gate baseline save RECORD` keeps one"
        where = git_context(config, git)
        suites = dict.fromkeys(entry.suite_id for entry in entries)
        ledgers = {suite_id: store.ledger(suite_id) for suite_id in suites}
        best = {suite_id: find_anchor(store, suite_id, where, git) for suite_id in suites}
    rows = [("suite", "commit", "created (UTC)", "found", "where")]
    for entry in entries:
        ledger, anchor = ledgers[entry.suite_id], best[entry.suite_id]
        is_anchor = anchor is not None and anchor.info.commit == entry.commit and not entry.dirty
        commit = (entry.commit or "–")[:12] + ("+" if entry.dirty else "")
        said = _standing(ledger, entry, is_anchor=is_anchor)
        rows.append((entry.suite_id, commit, _time(entry.created), said, entry.where))
    return table(rows, width)


def _standing(ledger: Ledger, entry: Entry, *, is_anchor: bool) -> str:
    """The status of an entry, in words."""
    words = ["anchor"] if is_anchor else []
    rejected = " (rejected)" if ledger.rejected(entry.key) else ""
    words += [f"release {tag}{rejected}" for tag in ledger.releases(entry.key)]
    if accepted := ledger.accepted(entry.key):
        words.append(f"accepted by {accepted.by}")
    verdict = ledger.verdict(entry.key)
    words += [verdict.replace("_", " ")] if verdict else []
    return ", ".join(words) or "–"


def show_baseline(config: Config, environment: Mapping[str, str], width: int | None = None) -> str:
    """What a run here would be compared with, criterion by criterion, and the anchor."""
    git = Git(config.root, environment=environment)
    where = git_context(config, git)
    parts = []
    with ExitStack() as stack:
        store = stack.enter_context(_store(config, environment))
        for plan in make_plans(config, as_if_judged(config, environment)):
            found = find_baselines(config, store, plan.suite.id, replace(where, anchored=True), git, plan=plan.planned)
            ledger = store.ledger(plan.suite.id)
            parts += [_show(plan, reference, ledger, width) for reference in found.all]
    return "\n\n".join(parts)


def _show(plan: Plan, reference: Reference, ledger: Ledger, width: int | None) -> str:
    info = reference.info
    if not reference.records:
        return f"{console(plan.suite.id)}: {console(info.missing)}"
    head = f"{console(plan.suite.id)}: {reference.name}: commit {(info.commit or '–')[:12]}"
    if info.distance:
        head += f", {count(info.distance, 'commit')} back"
    head += f", {info.trials_per_case:.1f} trials a case from {count(info.records, 'record')}, {console(info.source)}"
    suite = judge_record(as_baseline(reference.records[0]), [NO_REFERENCE], Terms(plan.criteria))
    rows = [(r.criterion.name, interval(r.candidate, r.criterion.scale), sample(r.candidate)) for r in suite.criteria]
    return "\n".join([head, *_told(ledger, key_of(info.commit)), table(rows, width, head=False)])


def _told(ledger: Ledger, key: str) -> list[str]:
    """The marks of a record, each on a line."""
    lines = []
    for mark in ledger.marks:
        if mark.key == key:
            against = [
                f"base {mark.base[:12]}" if mark.base else "",
                f"anchor {mark.anchor[:12]}" if mark.anchor else "",
            ]
            against = [part for part in against if part]
            release = f"release {console(mark.release)}: " if mark.release else ""
            rest = f" against {' and '.join(against)}" if against else ""
            found = console(f"{mark.verdict.replace('_', ' ')}{rest}")
            lines.append(f"  {_time(mark.at)}  {release}{found}")
    accepted = ledger.accepted(key)
    if accepted is not None:
        lines.append(f"  {_time(accepted.at)}  accepted by {console(accepted.by)}: {console(accepted.why, 200)}")
    return lines


def _store(config: Config, environment: Mapping[str, str]) -> Store:
    store = store_of(config, environment)
    if store is None:
        raise ConfigError("baseline.store is none", where=str(config.path), hint="choose file or git")
    return store


def _time(unix: float) -> str:
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%d %H:%M")
