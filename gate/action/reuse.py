"""Reuses the record of an earlier job on the same code: a run of the same commit, or of the change before its merge.

Nothing is decided here. The record is placed where the run looks for the record of its commit. The run continues it
only if agent, cases and metrics are the same, and then reaches the verdict as if it had run those trials itself.
Records of a pull request's earlier heads are laid beside it: the run continues one of the same agent, or counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from gate.action.base_commit import same_file
from gate.baselines.base import storable
from gate.config.load import Config
from gate.errors import BaselineWriteError, GateError, PublishError, UntrustedError
from gate.hosts.artifact import read_member
from gate.hosts.events import Activity, MeasuringRun, Mode
from gate.hosts.github import GitHub, NoArtifactError, PullRequest
from gate.hosts.rest import RestError
from gate.model import Side
from gate.pipeline.journal import path_of, records_folder
from gate.pipeline.terms import own_terms
from gate.records import Record, parse_record, write_record
from gate.records.keys import suite_key
from gate.records.model import INTERRUPTED, count
from gate.stored.judging import suite_ids
from gate.system.git import Git

SEARCHED = 4
"""Artifacts of earlier runs of one commit that are read."""
SEARCHED_HEADS = 8
"""Artifacts of runs of earlier heads of a pull request that are read."""
ASKED = 100
"""Runs that are asked for their artifact. Labels that are set at once leave many cancelled runs without one."""
GONE = (404, 410)
"""The answers about an artifact that was deleted, or that expired after it was listed."""
Say = Callable[[str], None]
Left = tuple[MeasuringRun, str, bytes]
"""A run, a name of it for the reader, and its artifact."""


def record_name(suite_id: str) -> str:
    """The file name of a suite's record among the results; derived from the id alone, so that all jobs agree."""
    return f"{suite_key(suite_id)}.jsonl"


def records_of(archive: bytes, run: MeasuringRun, suites: Iterable[str], *, complete: bool) -> list[Record]:
    """The records of these suites in a run's artifact. Raises `UntrustedError`."""
    found = []
    for suite_id in suites:
        where, name = f"run {run.id}", record_name(suite_id)
        content = read_member(archive, name, where)
        record = parse_record(content, where=f"{where}: {name}", complete=complete, error=UntrustedError)
        if record.header.suite_id != suite_id:
            raise UntrustedError(f"it belongs to suite {record.header.suite_id!r}", where=f"{where}: {name}")
        found.append(record)
    return found


def _tell(say: Say, what: str, refused: Sequence[GateError]) -> None:
    """Return the reason why records are not taken, in one line: there may be many suites, and many runs."""
    reasons = list(dict.fromkeys(map(str, refused)))
    if reasons:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        say(f"{what}: {reasons[0]}{more}")


class EarlierRecords(Struct, frozen=True, dict=True):
    """The records that earlier jobs left, and which of them this job may reuse."""

    github: GitHub
    git: Git
    config: Config
    environment: Mapping[str, str]
    artifact: str
    """Name of the artifact that holds the records."""
    shard: tuple[int, int]
    base: str | None
    """The commit that this run measures against."""
    known: bool = True
    """True if the agent has a fingerprint; without one only the same head continues."""
    placed: set[str] = field(default_factory=set)
    """Suites whose record lies where the run continues it."""

    @property
    def complete(self) -> bool:
        """True if each suite has the record that its run continues."""
        return self.placed.issuperset(self._suites)

    def take_up(self, activity: Activity, say: Say) -> str:
        """Places the records where the run continues them. Returns their origin, in words; empty if there are none.

        A record that cannot be trusted is skipped with a message. Raises `PublishError` if the look-up itself fails.
        """
        origins = []
        for run, origin, archive in self._archives(self._earlier(activity), SEARCHED, say):
            found, refused = self._records(run, archive)
            if self._event == "push" and run.id != self._own_id:
                found, not_stored = self._promoted_of(found, activity.head)
                refused += not_stored
            _tell(say, f"the record of {origin} is not reused", refused)
            placed = [self._place(record) for record in found]
            origins += [origin] if any(placed) else []
            if origins and self.complete:
                break
        return ", ".join(origins)

    def lay_earlier_heads(self, activity: Activity, say: Say) -> str:
        """Lays the records of the pull request's earlier heads among this job's; places one of this very commit.

        Returns and raises as `take_up`, which looks for the latter as well, but among fewer runs.
        """
        if self._event != "pull_request" or activity.pull_request is None:
            return ""
        pull = self.github.pull_request(activity.pull_request)
        runs = [run for run in self.github.runs_on(pull, "pull_request", self._workflow) if run.id < self._own_id]
        named = ((run, f"run {run.id}") for run in self._of(pull, runs))
        left, placed = list(self._archives(named, SEARCHED_HEADS, say)), ""
        for run, origin, archive in left:  # the newest first; of another head, it is not of this commit
            found, _ = self._records(run, archive) if run.head == activity.head else ([], [])  # told below
            of_suites = [self._place(record) for record in found]
            placed = placed or (origin if any(of_suites) else "")
        for run, origin, archive in reversed(left):  # the newest last, since the newest file is continued
            found, refused = self._records(run, archive)
            _tell(say, f"the record of {origin} is not looked at", refused)
            for record in found:
                self._lay(record, run, same_head=run.head == activity.head)
        return placed

    def _archives(self, runs: Iterable[tuple[MeasuringRun, str]], most: int, say: Say) -> Iterator[Left]:
        """The artifacts of these runs, ``most`` of them at the most.

        A run that left none does not count, or a burst of cancelled ones would hide what was measured before.
        """
        for run, origin in runs:
            try:
                archive = self.github.artifact(run, self.artifact)
            except NoArtifactError as error:
                say(f"{origin} has no record to reuse: {error}")
                continue
            except UntrustedError as error:
                say(f"the record of {origin} is not reused: {error}")
            except RestError as error:
                if error.status not in GONE:
                    raise
                say(f"{origin} has no record to reuse: {error}")
                continue
            else:
                yield run, origin, archive
            most -= 1
            if not most:
                return

    @cached_property
    def _suites(self) -> list[str]:
        return suite_ids(self.config, self.environment)

    def _records(self, run: MeasuringRun, archive: bytes) -> tuple[list[Record], list[GateError]]:
        """The records of the suites, and why others are not taken.

        Each by itself: a job that was stopped leaves a part of them, and one before a suite was added knows nothing of
        it. What was measured of the others counts nevertheless.
        """
        found: list[Record] = []
        refused: list[GateError] = []
        for suite_id in self._suites:
            try:
                left = records_of(archive, run, [suite_id], complete=False)
                found += [record for record in left if not record.header.stripped]  # else nothing was run for it
            except UntrustedError as error:
                refused.append(error)
        return found, refused

    def _lay(self, record: Record, run: MeasuringRun, *, same_head: bool) -> None:
        """Writes a record of an earlier head under its run's number, as measured against the present base.

        Where nothing shows that the agent is the same, one of the ``same_head`` is continued: it is no new chance that
        the branch below it moved.
        """
        header = record.header
        if header.shard != self.shard or header.dirty or header.commit == self.git.head():
            return
        own = tuple(t for t in record.trials if t.side is Side.CANDIDATE or header.base_commit == self.base)
        footer = count(own) if record.footer is None else replace(count(own), stopped=record.footer.stopped)
        if record.footer is None:
            footer = replace(footer, stopped=INTERRUPTED)
        kept = replace(record, header=replace(header, base_commit=self.base), trials=own, footer=footer)
        if same_head and not header.agent:
            self._place(replace(kept, header=replace(kept.header, commit=self.git.head())))
            return
        write_record(records_folder(self.config, header.suite_id) / f"run-{run.id}.jsonl", kept)

    @property
    def _own_id(self) -> int:
        return int(self.environment["GITHUB_RUN_ID"])

    @property
    def _event(self) -> str:
        return self.environment.get("GITHUB_EVENT_NAME", "")

    @property
    def _workflow(self) -> str:
        """The path of this workflow's file in the repository."""
        named = self.environment.get("GITHUB_WORKFLOW_REF", "").partition("@")[0]
        return named.removeprefix(f"{self.environment.get('GITHUB_REPOSITORY', '')}/")

    def _earlier(self, activity: Activity) -> Iterator[tuple[MeasuringRun, str]]:
        """Runs that may have measured this very code, the likeliest first, each with a name for the reader."""
        attempt, head = int(self.environment["GITHUB_RUN_ATTEMPT"]), activity.head or ""
        if attempt > 1:
            yield MeasuringRun(self._own_id, attempt, head, "", "", 0), f"attempt {attempt - 1}"
        if self._event == "pull_request":
            runs = self.github.runs_of(head, "pull_request", self._workflow, own=not activity.is_fork)
            runs = [run for run in runs if run.id < self._own_id]
            if activity.pull_request is not None and runs:
                for run in self._of(self.github.pull_request(activity.pull_request), runs):
                    yield run, f"run {run.id}"
        elif self.known and self._event == "push" and activity.mode is Mode.RECORD and self.shard == (1, 1):
            yield from self._merged(head)

    def _merged(self, commit: str) -> Iterator[tuple[MeasuringRun, str]]:
        """Runs of this workflow, as it stands now, that measured the commit or the pull request that became it."""
        if self.config.file.baseline.require_provenance == "block":
            return  # nobody had reviewed what ran before the merge, nor what it found in its caches
        for run in self.github.runs_of(commit, "merge_group", self._workflow, status="success"):
            yield run, f"the merge queue (run {run.id})"
        pull = self.github.merged_pull_request(commit)
        if pull is None:
            return
        if same_file(self.git, self._workflow, pull.head, commit):
            runs = self.github.runs_of(pull.head, "pull_request", self._workflow, status="success")
            for run in self._of(self.github.pull_request(pull.number), runs) if runs else ():
                yield run, f"pull request {pull.number} (run {run.id})"

    def _of(self, pull: PullRequest, runs: Sequence[MeasuringRun]) -> Iterator[MeasuringRun]:
        """Return the records that are known to be of this pull request; asked once for each branch that they are of.

        Raises:
            PublishError: there are more than are asked for, or some that may be another pull request's of the same
                branch, so that an earlier measurement may be among the others.
        """
        known: dict[tuple[str, str], bool] = {}
        for run in runs[:ASKED]:
            branch = run.head_repository, run.head_branch
            if branch not in known:
                known[branch] = self.github.measured_for(run, pull)
            if known[branch]:
                yield run
        if len(runs) > ASKED:
            raise PublishError(f"more than {ASKED} runs, and too few of the newest left a record", where="GitHub")
        own = pull.head_repository, pull.head_branch
        if not known.get(own, True):  # else anybody gets a fresh draw by opening one
            what = "this branch has, or had, a pull request onto another base, and runs do not say whose they are"
            raise PublishError(what, where="GitHub")

    def _promoted_of(self, records: Iterable[Record], head: str | None) -> tuple[list[Record], list[GateError]]:
        """Return the records that may stand for the merged commit, under it, and why the others may not."""
        found: list[Record] = []
        refused: list[GateError] = []
        for record in records:
            try:
                found.append(self._promoted(record, head))
            except (UntrustedError, BaselineWriteError) as error:
                refused.append(error)
        return found, refused

    def _promoted(self, record: Record, head: str | None) -> Record:
        """The record under the commit that the change was merged as, without trials of an older base's agent."""
        storable(record)  # what could not become a baseline there cannot become one here
        if taken := own_terms(record).design.taken_up:
            what = f"{taken} of its trials are of an earlier job, and what that one ran may be another code"
            raise UntrustedError(what, where=record.header.suite_id)
        header = record.header
        own = tuple(t for t in record.trials if t.side is Side.CANDIDATE or header.base_commit == self.base)
        return replace(record, header=replace(header, commit=head, base_commit=self.base), trials=own)

    def _place(self, record: Record) -> bool:
        """Writes the record unless the job has its own, which is newer. Returns whether it was written."""
        header = record.header
        by_commit = not self.known and not header.agent
        path = path_of(self.config, header, by_commit=by_commit) if header.commit == self.git.head() else None
        if path is None or header.shard != self.shard:
            return False
        self.placed.add(header.suite_id)
        if path.exists():
            return False
        unfinished = replace(count(record.trials), stopped=INTERRUPTED)
        write_record(path, replace(record, footer=record.footer or unfinished))
        return True
