"""Reuses the record of an earlier job on the same code: a run of the same commit, or of the change before its merge.

Nothing is decided here. The record is placed where the run looks for the record of its commit. The run continues it
only if agent, cases and metrics are the same, and then reaches the verdict as if it had run those trials itself.
Records of a pull request's earlier heads are laid beside it: the run continues one of the same agent, or counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gate.action.base_commit import same_file
from gate.baselines.base import storable
from gate.config.load import Config
from gate.errors import BaselineWriteError, UntrustedError
from gate.hosts.artifact import read_member
from gate.hosts.events import Activity, MeasuringRun, Mode
from gate.hosts.github import GitHub
from gate.model import Side
from gate.pipeline.journal import path_of, records_folder
from gate.pipeline.judge_stored import suite_ids
from gate.pipeline.verdict import own_terms
from gate.records import Record, parse_record, write_record
from gate.records.keys import suite_key
from gate.records.model import count
from gate.system.git import Git

SEARCHED = 3
"""How many earlier runs of one commit are considered."""
SEARCHED_HEADS = 8
"""How many runs of earlier heads of a pull request are considered."""
Say = Callable[[str], None]


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


class EarlierRecords(Struct, frozen=True):
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
    """Whether the agent has a fingerprint; without one only the same head continues."""

    def take_up(self, activity: Activity, say: Say) -> str:
        """Places the records where the run continues them. Returns their origin, in words; empty if there are none.

        A record that cannot be trusted is skipped with a message. Raises `PublishError` if the look-up itself fails.
        """
        suites = suite_ids(self.config, self.environment)
        for run, origin in self._earlier(activity):
            try:
                found = records_of(self.github.artifact(run, self.artifact), run, suites, complete=False)
                if self._event == "push" and run.id != self._own_id:
                    found = [self._promoted(record, activity.head) for record in found]
            except (UntrustedError, BaselineWriteError) as error:
                say(f"the record of {origin} is not reused: {error}")
                continue
            placed = [self._place(record) for record in found]
            if any(placed):
                return origin
        return ""

    def lay_earlier_heads(self, activity: Activity, say: Say) -> None:
        """Lays the records of the pull request's earlier heads among this job's. Raises as `take_up`."""
        if self._event != "pull_request" or activity.pull_request is None or self.shard != (1, 1):
            return
        suites = suite_ids(self.config, self.environment)
        pull = self.github.pull_request(activity.pull_request)
        runs = [run for run in self.github.runs_on(pull, "pull_request", self._workflow) if run.id < self._own_id]
        for run in reversed([run for run in runs[:SEARCHED_HEADS] if self.github.measured_for(run, pull)]):
            try:
                found = records_of(self.github.artifact(run, self.artifact), run, suites, complete=False)
            except UntrustedError as error:
                say(f"the record of run {run.id} is not looked at: {error}")
                continue
            for record in found:
                self._lay(record, run, same_head=run.head == activity.head)

    def _lay(self, record: Record, run: MeasuringRun, *, same_head: bool) -> None:
        """Writes a record of an earlier head under its run's number, as measured against the present base.

        Where nothing shows that the agent is the same, one of the ``same_head`` is continued: it is no new chance that
        the branch below it moved.
        """
        header = record.header
        if header.shard != (1, 1) or header.dirty or header.commit == self.git.head():
            return
        own = tuple(t for t in record.trials if t.side is Side.CANDIDATE or header.base_commit == self.base)
        footer = count(own) if record.footer is None else replace(count(own), stopped=record.footer.stopped)
        if record.footer is None:
            footer = replace(footer, stopped="interrupted")
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
            for run in self._of(activity.pull_request, [run for run in runs if run.id < self._own_id]):
                yield run, f"run {run.id}"
        elif self.known and self._event == "push" and activity.mode is Mode.RECORD and self.shard == (1, 1):
            yield from self._merged(head)

    def _merged(self, commit: str) -> Iterator[tuple[MeasuringRun, str]]:
        """Runs of this workflow, as it stands now, that measured the commit or the pull request that became it."""
        for run in self.github.runs_of(commit, "merge_group", self._workflow, status="success"):
            yield run, f"the merge queue (run {run.id})"
        pull = self.github.merged_pull_request(commit)
        if pull is None:
            return
        if self.config.file.baseline.require_provenance == "block":
            return  # nobody had reviewed what ran there, nor what it found in its caches
        if same_file(self.git, self._workflow, pull.head, commit):
            runs = self.github.runs_of(pull.head, "pull_request", self._workflow, status="success")
            for run in self._of(pull.number, runs):
                yield run, f"pull request {pull.number} (run {run.id})"

    def _of(self, number: int | None, runs: Sequence[MeasuringRun]) -> Iterator[MeasuringRun]:
        """Those that are known to be of this pull request."""
        if number is not None and runs:
            pull = self.github.pull_request(number)
            yield from (run for run in runs[:SEARCHED] if self.github.measured_for(run, pull))

    def _promoted(self, record: Record, head: str | None) -> Record:
        """The record under the commit that the change was merged as, without trials of an older base's agent."""
        storable(record)  # what could not become a baseline there cannot become one here
        if taken := own_terms(record).taken_up:
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
        if path is None or path.exists() or header.shard != self.shard:
            return False
        unfinished = replace(count(record.trials), stopped="interrupted")
        write_record(path, replace(record, footer=record.footer or unfinished))
        return True
