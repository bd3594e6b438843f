"""Saves records as baselines with their verdicts, accepts them, and lists the stored ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import UTC, date, datetime
from pathlib import Path

from msgspec.structs import replace

from gate.baselines import BlobStore, Entry
from gate.baselines.base import same_as
from gate.baselines.ledger import Acceptance, Ledger, Line, Mark, Signed, latest_day
from gate.baselines.pairing import as_baseline
from gate.baselines.proofs import Proofs, joined, parcels, proofs_of
from gate.baselines.proofs import write as write_proofs
from gate.baselines.reference import Reference
from gate.baselines.union import run_ids
from gate.config.load import Config
from gate.config.resolve import Plan, make_plans
from gate.config.schema import NO_STORE
from gate.config.settings import settings_of
from gate.decision.outcomes import PASS_RATE
from gate.errors import BaselineError, BaselineWriteError, ConfigError, GateError
from gate.model import SuiteResult, Verdict
from gate.pipeline.identity import changed_files, git_context
from gate.pipeline.journal import newest_first, records_folder
from gate.pipeline.references import References, Search, find_references
from gate.pipeline.store import store_kind, store_of
from gate.pipeline.terms import Terms, own_terms
from gate.pipeline.verdict import NO_REFERENCE, judge_record, load_to_judge
from gate.records import Header, Record, is_closed, read_header, read_record
from gate.records.keys import MISPLACED, UNCOMMITTED, commit_key, key_of, suite_key
from gate.records.measured import MeasuredReader
from gate.reports.formatting import count, interval, listing, sample
from gate.reports.labels import reference_name
from gate.reports.table import table
from gate.reports.view import View
from gate.security.environment import in_ci
from gate.security.escape import console, one_line
from gate.security.signing import signed
from gate.stored.judging import find_as_run_did, plan_of, suite_ids, with_key_of_judge
from gate.stored.results import other_runs_beside
from gate.system.clock import now
from gate.system.git import Git
from gate.world import pruning
from gate.world.options import store_folder

# --- saving ---------------------------------------------------------------------------------------


def save_baseline(
    config: Config,
    path: Path,
    environment: Mapping[str, str],
    *,
    release: str = "",
    accepted: tuple[str, str] | None = None,
    proofs: list[Proofs] | None = None,
    key: bytes | None = None,
    measured_for_it: bool = False,
) -> str:
    """Store a complete record with its verdict. Return a description of what was done.

    ``proofs`` receives the proofs of the stored parts; with a private ``key`` they are signed and stored in the ledger.

    The verdict is that on the record against its own base and the anchor, as stored now. ``release`` is its release
    tag; ``accepted`` tells who makes the record the anchor regardless of its verdict, and why.

    Further runs of the same commit and agent in its folder are saved with it, so that nobody picks the luckiest.
    Without a fingerprint they may be of another agent: then they are counted as left out, unless this run was
    ``measured_for_it``, whatever its outcome.

    Raises:
        BaselineWriteError: the record is not fit to be a baseline, or it cannot be written.
    """
    record = read_record(path, error=BaselineWriteError)
    commit = same_as(record)
    if commit:
        return f"nothing to save: the agent is the one of {commit[:12]}, whose baseline counts for this commit, too"
    said: list[str] = []
    proven: list[Proofs] = []
    with _as_write_error(), _store(config, environment) as store:
        others = _unsaved_runs(config, store, path, record)
        if measured_for_it and not record.header.agent:
            others = []
        left_out = 0 if record.header.agent else len(others)
        lines = _ledger_lines(record, path, config, environment, release, left_out=left_out)
        suite_id, name = record.header.suite_id, commit_key(record.header)
        if accepted is not None:
            known = [(one.key, one.by, one.why) for one in store.ledger(suite_id).acceptances]
            if (name, *accepted) not in known:  # repeating a job does not extend it
                lines.append(_acceptance(config, suite_id, name, *accepted))
        where = store.save(record, lines, scope=_scope(record, config, environment), say=said.append)
        proven.append(proofs_of(record, lines))
        if record.header.agent:
            united = 0
            for other in others:
                with suppress(GateError):
                    further = read_record(other)
                    lines_of_further = _ledger_lines(further, other, config, environment, release)
                    store.save(further, lines_of_further, scope=_scope(further, config, environment))
                    proven.append(proofs_of(further, lines_of_further))
                    united += 1
            if united:
                runs = count(united, "other run")
                said.append(f"united with {runs} of this commit, so that none is picked for its result")
        elif others:
            names = ", ".join(other.name for other in others[:3])
            said.append(f"{count(len(others), 'other run')} of this commit left out: {names}")
        if key is not None:
            suite, at = suite_key(suite_id), now().timestamp()
            store.note(suite_id, [_signed_line(suite, name, at, parcel, key) for parcel in parcels(joined(proven))])
            said.append("signed: whoever names the public key as `baseline.key` takes it for proven")
        said.append(prune_recordings(config, store, environment))
    if proofs is not None:
        proofs += proven
    if accepted is not None:
        lines = []
    said += _advice(config, environment, lines)
    return "\n".join([f"saved {where.removeprefix(f'{config.root}/')}", *filter(None, said)])


MOST_NAMED = 3
"""The most changed files that an error names."""


def check_can_store(config: Config, environment: Mapping[str, str]) -> None:
    """Raise BaselineWriteError if a record measured now could not be stored, before anything is spent on it."""
    if store_kind(config, environment) == NO_STORE:
        raise BaselineWriteError(
            "baselines are switched off", where=config.place_of("baseline", "store"), hint="remove `store: none`"
        )
    changed = changed_files(config, Git(config.root, environment=environment))
    if changed:
        names = ", ".join(one_line(name, 60) for name in changed[:MOST_NAMED])
        what = f"a baseline belongs to a commit, and these files are not committed: {names}"
        if len(changed) > MOST_NAMED:
            what += f" and {len(changed) - MOST_NAMED} more"
        raise BaselineWriteError(what, hint="commit or ignore them, then run again")


@contextmanager
def _as_write_error() -> Iterator[None]:
    """Turn an error about an unreadable stored record into one that says that nothing was saved."""
    try:
        yield
    except BaselineError as error:
        what = f"not saved: {error.what}"
        raise BaselineWriteError(what, where=error.where, hint=error.hint) from None


def _unsaved_runs(config: Config, store: BlobStore, path: Path, record: Record) -> list[Path]:
    """Return further runs of the record's commit and agent that are not stored."""
    header = record.header
    known = set(run_ids(record.header))
    if header.commit:
        with suppress(BaselineError):  # saving reports the error
            stored = store.find(header.suite_id, (header.commit,), pool=1)
            if stored is not None:
                known.update(run_ids(stored.records[0].header))
    return other_runs_beside(path, header, records_folder(config, header.suite_id), known=known)


def _advice(config: Config, environment: Mapping[str, str], lines: Sequence[Line]) -> list[str]:
    """Return notes for the person who saves; ``lines`` are findings that nobody has accepted."""
    said = []
    if store_kind(config, environment) == "file":
        git, folder = Git(config.root, environment=environment), config.root / config.file.baseline.folder
        if not in_ci(environment):
            is_inside = git.is_repository() and folder.resolve().is_relative_to(git.top())
            if is_inside and git.ask("check-ignore", str(folder)):
                said.append("kept on this machine only, since git ignores this folder; CI stores baselines of its own")
        elif folder.is_relative_to(config.root) and not (
            git.is_repository() and git.ask("ls-files", "--", str(folder))
        ):
            said.append(
                "this folder is gone with the job's clone: use `baseline: {store: git}`, or commit or cache the folder"
            )
    marks = [line for line in lines if isinstance(line, Mark) and not line.proven]
    if marks:
        short = marks[-1].verdict.replace("_", " ")
        said.append(f"marked {short}: it never becomes the long-term baseline, unless somebody accepts it")
    return said


def _signed_line(suite: str, name: str, at: float, proofs: Proofs, key: bytes) -> Signed:
    """Return a ledger line with these proofs, signed."""
    return Signed(suite, name, at, signed(write_proofs(proofs), key).decode())


def _ledger_lines(
    record: Record, path: Path, config: Config, environment: Mapping[str, str], release: str, *, left_out: int = 0
) -> list[Line]:
    """Return the verdicts on the record's runs, as lines of the ledger."""
    header = record.header
    if record.footer is None or header.shard != (1, 1):
        return []  # the store reports why it rejects the record
    suite, references, terms = _judge_now(path, record, config, environment, release)
    if suite.verdict is Verdict.ERROR:
        what = f"not a baseline: {View(suite).headline}"
        raise BaselineWriteError(what, where=header.suite_id, hint="fix that, and measure again")
    commits = {one.name: one.commit or UNCOMMITTED for one in references.all if one.records}
    at, suite_name, key = now().timestamp(), suite_key(header.suite_id), commit_key(header)
    base, anchor = commits.get("baseline", ""), references.anchor
    against = (suite, *suite.further)[-1]
    mark = Mark(
        suite_name,
        key,
        "",
        suite.verdict.value,
        at,
        base=base,
        anchor=anchor,
        release=terms.release,
        left_out=left_out,
        improved=bool(anchor) and suite.verdict is Verdict.PASS and _far_better(against),
    )
    return [replace(mark, run=run) for run in run_ids(record.header)]


def _judge_now(
    source: Path | Record, record: Record, config: Config, environment: Mapping[str, str], release: str = ""
) -> tuple[SuiteResult, References, Terms]:
    """Return the verdict on the record, by its own terms, against the references that its run would have now."""
    own = own_terms(record, settings_of(config, now()))
    terms = replace(own, anchored=True, release=release or own.release)
    references = find_as_run_did(record.header, terms, config, environment)
    return judge_record(load_to_judge(source, criteria=terms.criteria), references.all, terms), references, terms


def _far_better(against: SuiteResult) -> bool:
    """True if the pass rate rose by more than twice the half-width of its 90 % interval: 1 in 2,000 by chance.

    Then the anchor moves up. A looser rule would choose the luckiest of many records of an unchanged agent.
    """
    rate = against.row(PASS_RATE)
    if rate is None or rate.change is None:
        return False
    return rate.change.value > 2 * (rate.change.value - rate.change.low) > 0


def _scope(record: Record, config: Config, environment: Mapping[str, str]) -> frozenset[str] | None:
    """Return the cases that the configuration runs; None if the record has all of them."""
    if not record.header.selected:
        return None
    return frozenset(case.id for case in plan_of(config, environment, record.header).planned)


def save_newest(config: Config, environment: Mapping[str, str], *, release: str = "", key: bytes | None = None) -> str:
    """Store the newest finished record of each suite. Raises `BaselineWriteError`, also if there is no record."""
    head = Git(config.root, environment=environment).head()
    said = []
    for suite_id in suite_ids(config, environment):
        found = next(_finished(config, suite_id), None)
        if found is None:
            folder = str(records_folder(config, suite_id))
            raise BaselineWriteError(f"no finished record of {suite_id!r}", where=folder, hint="`gate run` makes one")
        path, header = found
        said.append(save_baseline(config, path, environment, release=release, key=key))
        if header.commit and head and header.commit != head:
            said.append(f"it is a run of {header.commit[:12]}; `gate run` measures {head[:12]}, which is checked out")
    return "\n".join(said)


def _finished(config: Config, suite_id: str) -> Iterator[tuple[Path, Header]]:
    """Yield the finished records of a suite, newest first."""
    for path in newest_first(records_folder(config, suite_id)):
        header = read_header(path)
        if header.shard == (1, 1) and is_closed(path):
            yield path, header


def carry_on(config: Config, environment: Mapping[str, str], own: Sequence[Proofs]) -> tuple[Proofs, Sequence[str]]:
    """Return the known proofs of everything stored, and the reasons why some could not be looked up.

    ``own`` are the proofs of the records measured here.
    """
    known = mine = joined(own)
    stored, problems = set(mine.digests), list[str]()
    with _store(config, environment) as store:
        provenance = store.provenance
        if provenance is None:
            return mine, ()
        for suite_id in suite_ids(config, environment):
            for nth, entry in enumerate(store.entries(suite_id)):
                if provenance.is_known(entry, nth):
                    stored.add((suite_key(suite_id), entry.key))
            with suppress(BaselineError):  # a damaged ledger must not stop the proofs
                store.ledger(suite_id)  # also looks up the jobs of releases
            known = joined([known, provenance.proofs(suite_id)])
        problems += provenance.problems
    return known.only(stored), problems


# --- accepting ------------------------------------------------------------------------------------


def accept_baseline(
    config: Config,
    environment: Mapping[str, str],
    *,
    revision: str | None,
    by: str | None,
    why: str,
    until: date | None = None,
    key: bytes | None = None,
) -> str:
    """Make the stored record of a commit the anchor of each suite that has one. Return a description of what was done.

    If none is stored, the newest finished one here is saved first. ``until`` is the last day on which the acceptance is
    valid, in UTC; None: the last that ``baseline.accept_days`` allows.

    Raises:
        BaselineError: no suite has a record of this commit, or such a record misses a threshold; then nothing is
            stored.
        BaselineWriteError: the record here cannot be a baseline, or not be written.
        ConfigError: there is no such commit, the person who accepts is unknown, no reason is given, or the day is not
            allowed.
    """
    if not any(one.isprintable() and not one.isspace() for one in why):
        raise ConfigError("no reason given", where="--why", hint="say which change is intended")
    last = _last_day(config, until)
    git = Git(config.root, environment=environment)
    commit = _commit(git, revision)
    who, name = by or _person(git, environment), key_of(commit)
    done = _saved_here(config, environment, commit, key)
    with _store(config, environment) as store:
        stored: dict[str, None] = {}
        for suite_id in suite_ids(config, environment):
            for entry in store.entries(suite_id):
                if entry.key == name:
                    stored[suite_id] = None
                    _refuse_missed(store.read(entry), config, environment)
        for suite_id in stored:
            line = _acceptance(config, suite_id, name, who, why, last)
            lines: list[Line] = [line]
            if key is not None:
                lines.append(_signed_line(line.suite, name, line.at, Proofs({}, {line.suite: (line,)}), key))
            store.note(suite_id, lines)
            what = f"{(commit or 'the record')[:12]} is the long-term baseline now, by {console(who)}, until {last}"
            done.append(f"{console(suite_id)}: {what}")
    if not stored:
        raise _not_measured(config, environment, commit, git.head())
    return "\n".join(done)


def _saved_here(config: Config, environment: Mapping[str, str], commit: str | None, key: bytes | None) -> list[str]:
    """Save the records of a commit that were measured here, for each suite without a stored one. Return what was
    done."""
    own = {suite_id: _finished_of(config, suite_id, commit) for suite_id in suite_ids(config, environment)}
    found = {suite_id: path for suite_id, path in own.items() if path is not None}
    if not found:
        return []
    with _store(config, environment) as store:
        for suite_id in list(found):
            if any(entry.key == key_of(commit) for entry in store.entries(suite_id)):
                del found[suite_id]
    for path in found.values():
        _refuse_missed(read_record(path), config, environment)
    return [save_baseline(config, path, environment, key=key) for path in found.values()]


def _finished_of(config: Config, suite_id: str, commit: str | None) -> Path | None:
    """Return the newest finished record of a commit and no uncommitted changes; None if there is none here."""
    with suppress(GateError):  # whoever accepts a stored record does not need the ones here
        for path, header in _finished(config, suite_id):
            if header.commit == commit and not header.dirty:
                return path
    return None


def _not_measured(
    config: Config, environment: Mapping[str, str], commit: str | None, head: str | None
) -> BaselineError:
    """Return the error that a commit has no record, with the command that makes one."""
    what, run = f"no record of {(commit or 'a run outside of git')[:12]} is stored or here", "`gate run`"
    if commit != head:
        run = "check it out, `gate run`"
    elif changed_files(config, Git(config.root, environment=environment)):
        run = "commit or stash your changes, `gate run`"
    if store_kind(config, environment) != "file":
        run = f"wait for its job, or {run}"
    return BaselineError(what, where=str(config.path), hint=f"{run}, then accept it")


def _refuse_missed(record: Record, config: Config, environment: Mapping[str, str]) -> None:
    """Raise `BaselineError` if the record misses a threshold, as nobody can accept that."""
    suite, _, _ = _judge_now(record, record, config, environment)
    if suite.beyond_accepting:
        names = console(listing(suite.beyond_accepting))
        what = f"not accepted: a threshold, a limit or a hard rule is missed: {names}"
        hint = "edit the cases or the threshold in a commit, and measure again"
        raise BaselineError(what, where=record.header.suite_id, hint=hint)


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
    """Return the person who accepts: the user in git's settings, else the CI's."""
    if git.is_repository():
        name, email = git.ask("config", "--get", "user.name"), git.ask("config", "--get", "user.email")
        if name or email:
            return " ".join(filter(None, (name, email)))
    for name in ("GITHUB_ACTOR", "GITLAB_USER_LOGIN", "USER"):
        if environment.get(name):
            return environment[name]
    raise ConfigError("cannot tell who accepts it", where="--by", hint="give --by NAME")


def _last_day(config: Config, until: date | None) -> date:
    """Return the last day of an acceptance given now."""
    days, today = config.file.baseline.accept_days, now().date()
    latest = latest_day(now().timestamp(), days)
    if until is not None and not today <= until <= latest:
        what = f"{until} is not a day from today, {today}, until {latest}"
        raise ConfigError(what, where="--until", hint=f"baseline.accept_days is {days}")
    return until or latest


def _acceptance(config: Config, suite_id: str, key: str, by: str, why: str, until: date | None = None) -> Acceptance:
    return Acceptance(suite_key(suite_id), key, by, now().timestamp(), why, until or _last_day(config, None))


# --- showing --------------------------------------------------------------------------------------


def list_baselines(config: Config, environment: Mapping[str, str], width: int | None = None) -> str:
    """Return the stored baselines, newest first, each with its verdicts."""
    git = Git(config.root, environment=environment)
    with _store(config, environment) as store:
        misplaced = misplaced_in(store)
        never = [f"never compared with: {console(name)}: {MISPLACED}" for name in misplaced]
        entries = store.entries(but=misplaced)
        if not entries:
            return "\n".join(["no baselines are stored; `gate baseline save RECORD` keeps one", *never])
        where = git_context(config, git)
        suites = dict.fromkeys(entry.suite_id for entry in entries)
        ledgers = {suite_id: store.ledger(suite_id) for suite_id in suites}
        best: dict[str, Reference | None] = {}
        for suite_id in suites:
            with suppress(BaselineError) if misplaced else nullcontext():  # a run stops at a misplaced record
                best[suite_id] = Search(config, store, suite_id, where, git).anchor()
        proofs, doubts = _proofs(store, entries)
    rows = [["suite", "commit", "created (UTC)", "found", "where"]]
    for entry in entries:
        ledger, anchor = ledgers[entry.suite_id], best.get(entry.suite_id)
        is_anchor = anchor is not None and anchor.commit == entry.commit
        commit = (entry.commit or "–")[:12]
        said = _standing(ledger, entry, is_anchor=is_anchor)
        rows.append([entry.suite_id, commit, _time(entry.created), said, entry.where])
    if proofs:
        for row, proof in zip(rows, ["proof", *proofs], strict=True):
            row.insert(3, proof)
    return "\n".join([table(rows, width), *doubts, *never])


def misplaced_in(store: BlobStore) -> list[str]:
    """Return the places of stored records that have the name of another. Unreadable records are skipped."""
    found = []
    for stored in store.contents():
        with suppress(GateError, OSError), stored.open() as file:
            if stored.is_misplaced(MeasuredReader(file, where=stored.where).header):
                found.append(stored.where)
    return found


def _proofs(store: BlobStore, entries: Sequence[Entry]) -> tuple[list[str], list[str]]:
    """Return the proof of each entry, and the reasons why some are unproven; both empty if proofs are not looked up."""
    provenance = store.provenance
    if provenance is None:
        return [], []
    store.fetch([entry.where for entry in entries])
    found = [provenance.standing(entry, store.read_stored(entry)) for entry in entries]
    why = provenance.problems
    if "unproven" in found:
        why += provenance.reasons
    return found, [f"not all could be proven: {console(one, 300)}" for one in why]


def _standing(ledger: Ledger, entry: Entry, *, is_anchor: bool) -> str:
    """Return the status of an entry, in words."""
    counting = ledger.at(now().timestamp())
    words = []
    if is_anchor:
        words.append(reference_name("anchor"))
    rejected = " (rejected)" if counting.rejected(entry.key) else ""
    words += [f"release {tag}{rejected}" for tag in ledger.releases(entry.key)]
    accepted = ledger.accepted(entry.key)
    if accepted is not None:
        words.append(f"accepted by {accepted.by}{_end_of(accepted)}")
    verdict = counting.verdict(entry.key)
    if verdict:
        words.append(verdict.replace("_", " "))
    return ", ".join(words) or "–"


def _end_of(accepted: Acceptance) -> str:
    """Return the end of an acceptance, or why it does not count, in words."""
    at = now().timestamp()
    if accepted.counts(at):
        return f" until {accepted.last_day}"
    return f" and {accepted.fault(at)}"


def show_baseline(config: Config, environment: Mapping[str, str], width: int | None = None) -> str:
    """Return the references that a run here would have, criterion by criterion, and the anchor."""
    git = Git(config.root, environment=environment)
    where = git_context(config, git)
    parts = []
    with ExitStack() as stack:
        store = stack.enter_context(_store(config, environment))
        for plan in make_plans(config, with_key_of_judge(config, environment)):
            found = find_references(config, store, plan.suite.id, replace(where, anchored=True), git, plan=plan.planned)
            ledger = store.ledger(plan.suite.id)
            parts += [_show(plan, reference, ledger, width) for reference in found.all]
    return "\n\n".join(parts)


def _show(plan: Plan, reference: Reference, ledger: Ledger, width: int | None) -> str:
    info = reference.info
    if not reference.records:
        return f"{console(plan.suite.id)}: {console(info.missing)}"
    head = f"{console(plan.suite.id)}: {reference_name(reference.name)}: commit {(info.commit or '–')[:12]}"
    if info.distance:
        head += f", {count(info.distance, 'commit')} back"
    head += f", {info.trials_per_case:.1f} trials per case from {count(info.records, 'record')}, {console(info.source)}"
    if info.provenance:
        head += f", {info.provenance}"
    suite = judge_record(as_baseline(reference.records[0]), [NO_REFERENCE], Terms(plan.criteria))
    rows = []
    for row in suite.criteria:
        rows.append((row.criterion.name, interval(row.candidate, row.criterion.scale), sample(row.candidate)))
    return "\n".join([head, *_mark_lines(ledger, key_of(info.commit)), table(rows, width, head=False)])


def _mark_lines(ledger: Ledger, key: str) -> list[str]:
    """Return the marks of a record, one per line."""
    lines = []
    for mark in ledger.marks:
        if mark.key != key:
            continue
        against = []
        if mark.base:
            against.append(f"base {mark.base[:12]}")
        if mark.anchor:
            against.append(f"{reference_name('anchor')} {mark.anchor[:12]}")
        found = mark.verdict.replace("_", " ")
        if against:
            found = f"{found} against {' and '.join(against)}"
        said = console(found)
        if mark.release:
            said = f"release {console(mark.release)}: {said}"
        lines.append(f"  {_time(mark.at)}  {said}")
    accepted = ledger.accepted(key)
    if accepted is not None:
        by = f"accepted by {console(accepted.by)}{_end_of(accepted)}"
        lines.append(f"  {_time(accepted.at)}  {by}: {console(accepted.why, 200)}")
    return lines


def _store(config: Config, environment: Mapping[str, str]) -> BlobStore:
    store = store_of(config, environment)
    if store is None:
        raise ConfigError("baseline.store is none", where=str(config.path), hint="choose file or git")
    return store


def _time(unix: float) -> str:
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%d %H:%M")


# --- recordings of the outside world --------------------------------------------------------------


def prune_recordings(config: Config, store: BlobStore, environment: Mapping[str, str]) -> str:
    """Keep the folder of recordings within their limit. Return a description of what was done, if
    anything.

    An unreadable record may name any of them: then nothing is removed, and the description says so.
    """
    options = config.file.world
    if options is None:
        return ""
    folder, most = store_folder(options, config.root, environment), pruning.MOST_BYTES
    owner = pruning.owner_name(config.root / config.path.name)
    try:
        removed, freed, left = pruning.prune(folder, owner, most, lambda: _runs_in_use(store), now().timestamp())
    except GateError as error:
        return f"no recordings were removed, since the stored records cannot be read: {error}"
    said = []
    if removed:
        said.append(f"removed {count(removed, 'recording')} ({_megabytes(freed)}) that no stored record names")
    if left > most:
        said.append(f"recordings take {_megabytes(left)}, more than {_megabytes(most)}, and are in use")
    return "; ".join(said)


def _runs_in_use(store: BlobStore) -> frozenset[str]:
    """Return the runs whose recordings are named in a stored record."""
    entries = store.entries()
    store.fetch([entry.where for entry in entries])
    runs = set()
    for entry in entries:
        for trial in store.read(entry).trials:
            if trial.replay is not None:
                runs.add(trial.replay.recording.partition(":")[0])
    return frozenset(runs)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
