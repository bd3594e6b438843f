"""Reuses the record of an earlier job on the same code: a run of the same commit, or of the change before its merge.

Nothing is decided here. The record is placed where the run looks for the record of its commit. The run continues it
only if agent, cases and metrics are the same, and then reaches the same verdict as if it had run those trials itself.
Other records of a pull request, and those of earlier attempts, are placed next to it: the run continues one of the same
agent, or counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from gate.action.base_commit import same_file
from gate.action.step import Step
from gate.baselines.base import storable
from gate.config.load import Config
from gate.errors import BaselineWriteError, GateError, PublishError, UntrustedError
from gate.hosts.artifact import read_member
from gate.hosts.events import MeasuringRun, Mode
from gate.hosts.github import NoArtifactError, PullRequest
from gate.hosts.rest import RestError
from gate.pipeline.earlier import against_base
from gate.pipeline.journal import path_of, records_folder
from gate.pipeline.terms import own_terms
from gate.records import Record, parse_record, write_record
from gate.records.keys import suite_key
from gate.records.model import INTERRUPTED, footer_of
from gate.security.escape import console
from gate.stored.judging import suite_ids
from gate.system.git import COMMIT_ID

SEARCHED = 30
"""Maximum number of artifacts to read from earlier runs. A lost measurement is told; so most changes stay below it."""
ASKED = 100
"""Maximum number of runs whose artifact is requested. Labels set together leave many cancelled runs without one."""
UNKNOWN = (
    "not all earlier measurements of this change could be looked up (the log says why): "
    "what this job ran of it may be a further draw"
)
PUSHED = "earlier pushes of this branch are not counted (those of a pull request are): this may be a further draw"
GONE = (404, 410)
"""The status codes for an artifact that was deleted, or that expired after it was listed."""


def record_name(suite_id: str) -> str:
    """Return the file name of a suite's record among the results; it depends only on the id, so that all jobs agree."""
    return f"{suite_key(suite_id)}.jsonl"


def records_of(archive: bytes, run: MeasuringRun, suites: Iterable[str]) -> list[Record]:
    """Return the records of these suites in a run's artifact, closed or not. Raises `UntrustedError`."""
    found = []
    for suite_id in suites:
        where, name = f"run {run.id}", record_name(suite_id)
        content = read_member(archive, name, where)
        record = parse_record(content, where=f"{where}: {name}", complete=False, error=UntrustedError)
        if record.header.suite_id != suite_id:
            raise UntrustedError(f"it belongs to suite {record.header.suite_id!r}", where=f"{where}: {name}")
        if not COMMIT_ID.fullmatch(record.header.commit or ""):
            raise UntrustedError("its commit is not one", where=f"{where}: {name}")
        found.append(record)
    return found


def take_up_earlier(step: Step, config: Config, base: str | None) -> tuple[str, str]:
    """Place the records of earlier jobs where the run continues or counts them; ``base`` is the commit to compare with.

    Returns:
        The origin of the records that are continued, and a note for the reader if an earlier measurement may exist.
    """
    if config.agent_kind == "replay":  # only the recordings count
        return "", ""
    earlier = EarlierRecords(step, config, base)
    problem = earlier.take_up()
    attempt = step.environment.get("GITHUB_RUN_ATTEMPT", "1")
    if problem is not None:
        refused = isinstance(problem, RestError) and problem.is_refusal
        hint = "; the job needs `permissions: {actions: read}`" if refused else ""
        step.say(f"the records of earlier jobs cannot be looked up: {console(str(problem))}{hint}")
        if step.environment.get("GITHUB_EVENT_NAME") == "pull_request":
            return earlier.origin, UNKNOWN
    if attempt != "1" and not earlier.origins and not step.inputs["shards"]:
        return "", f"attempt {attempt} runs all trials: there is no record of an earlier attempt to continue"
    if step.environment.get("GITHUB_EVENT_NAME") == "push" and step.activity.mode is Mode.RUN:
        return earlier.origin, PUSHED
    return earlier.origin, ""


class EarlierRecords(Struct, frozen=True, dict=True):
    """The records that earlier jobs left, and those of them that this job may reuse."""

    step: Step
    config: Config
    base: str | None
    """The commit that this run compares with."""
    origins: list[str] = field(default_factory=list)
    """The origins, in words, of the records that the run continues."""
    placed: set[str] = field(default_factory=set)
    """Suites whose record is in place for the run to continue."""

    @property
    def origin(self) -> str:
        return ", ".join(self.origins)

    @property
    def has_fingerprint(self) -> bool:
        """True if records show which agent they measured; otherwise only a record of the same head is continued."""
        return self.config.agent.is_local or self.config.agent.version is not None

    def _say(self, line: str) -> None:
        self.step.say(console(line))

    def _tell(self, what: str, refused: Sequence[GateError]) -> None:
        """Print why records are not used, in one line: there may be many suites and many runs."""
        reasons = list(dict.fromkeys(map(str, refused)))
        if reasons:
            more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
            self._say(f"{what}: {reasons[0]}{more}")

    def take_up(self) -> GateError | None:
        """Place the records: where the run continues them, or beside it, where earlier measurements are counted.

        A record that cannot be trusted is skipped with a message. Return the problem if not all could be looked up.
        """
        problem: GateError | None = None
        left: list[tuple[MeasuringRun, bytes, set[str]]] = []
        try:
            for run, origin, archive in self._archives():
                continued = self._continue(run, origin, archive)
                if run.id == self._own_id or self._event == "pull_request":
                    left.append((run, archive, continued))
                elif self.placed.issuperset(self._suites):
                    break  # of a merged change, only the record that is continued counts
        except GateError as error:
            problem = error
        for run, archive, continued in reversed(left):  # newest last, since the run continues the newest file
            found, _ = self._records(run, archive)  # refusals are told by now
            for record in found:
                suite_id = record.header.suite_id
                if suite_id not in continued and record.header.shard == self._shard:
                    write_record(records_folder(self.config, suite_id) / f"run-{run.id:020}.jsonl", _closed(record))
        return problem

    def _continue(self, run: MeasuringRun, origin: str, archive: bytes) -> set[str]:
        """Place the records that the run continues. Return their suites."""
        found, refused = self._records(run, archive, promoted=self._event == "push" and run.id != self._own_id)
        self._tell(f"the record of {origin} is not reused", refused)
        continued = {record.header.suite_id for record in found if self._place(record, run)}
        if continued:
            self.origins.append(origin)
        return continued

    def _archives(self) -> Iterator[tuple[MeasuringRun, str, bytes]]:
        """Yield the artifacts of the earlier runs, newest first. Raises PublishError if there are more than are read.

        Runs without an artifact do not count, so that many cancelled ones cannot hide an earlier measurement.
        """
        left = SEARCHED
        for run, origin in self._runs():
            try:
                archive = self.step.github.artifact(run, self.step.inputs["artifact"])
            except NoArtifactError as error:
                self._say(f"{origin} has no record to reuse: {error}")
                continue
            except UntrustedError as error:
                self._say(f"the record of {origin} is not reused: {error}")
                continue
            except RestError as error:
                if error.status not in GONE:
                    raise
                self._say(f"{origin} has no record to reuse: {error}")
                continue
            if not left:
                raise PublishError(f"more than {SEARCHED} earlier measurements, and older ones are not read")
            left -= 1
            yield run, origin, archive

    @cached_property
    def _suites(self) -> list[str]:
        return suite_ids(self.config, self.step.environment)

    def _records(
        self, run: MeasuringRun, archive: bytes, *, promoted: bool = False
    ) -> tuple[list[Record], list[GateError]]:
        """Return the records of the suites, and the reasons for refusing others.

        Each suite is read separately: a stopped job, or one from before a suite was added, has only some of the
        records, and these count nevertheless.

        ``promoted``: return those that may count for the merged commit, renamed to it.
        """
        found: list[Record] = []
        refused: list[GateError] = []
        for suite_id in self._suites:
            try:
                [record] = records_of(archive, run, [suite_id])
                if not record.header.stripped:  # else nothing was run for it
                    found.append(self._promoted(record) if promoted else record)
            except (UntrustedError, BaselineWriteError) as error:
                refused.append(error)
        return found, refused

    @property
    def _shard(self) -> tuple[int, int]:
        shard: tuple[int, int] = self.step.inputs["shard"]
        return shard

    @property
    def _own_id(self) -> int:
        return int(self.step.environment["GITHUB_RUN_ID"])

    @property
    def _event(self) -> str:
        return self.step.environment.get("GITHUB_EVENT_NAME", "")

    @property
    def _workflow(self) -> str:
        """The path of this workflow's file in the repository."""
        named = self.step.environment.get("GITHUB_WORKFLOW_REF", "").partition("@")[0]
        return named.removeprefix(f"{self.step.environment.get('GITHUB_REPOSITORY', '')}/")

    def _runs(self) -> Iterator[tuple[MeasuringRun, str]]:
        """Yield the runs that may have measured this change, likeliest first, each with a name for the reader."""
        activity = self.step.activity
        attempt, head = int(self.step.environment["GITHUB_RUN_ATTEMPT"]), activity.head or ""
        if attempt > 1:
            yield MeasuringRun(self._own_id, attempt, head, "", "", 0), f"attempt {attempt - 1}"
        if self._event == "pull_request" and activity.pull_request is not None:
            pull = self.step.github.pull_request(activity.pull_request)
            runs = [run for run in self.step.github.runs_on(pull, self._workflow) if run.id < self._own_id]
            for run in self._runs_of_pull_request(pull, runs):
                yield run, f"run {run.id}"
        elif self.has_fingerprint and self._event == "push" and activity.mode is Mode.RECORD and self._shard == (1, 1):
            yield from self._runs_before_merge(head)

    def _runs_before_merge(self, commit: str) -> Iterator[tuple[MeasuringRun, str]]:
        """Yield the runs of this workflow's current version that measured the commit or its pull request."""
        if self.config.file.baseline.require_provenance == "block":
            return  # nobody had reviewed the code that ran before the merge, nor the caches that it used
        for run in self.step.github.runs_of(commit, "merge_group", self._workflow):
            yield run, f"the merge queue (run {run.id})"
        pull = self.step.github.merged_pull_request(commit)
        if pull is None:
            return
        if not same_file(self.step.git, self._workflow, pull.head, commit):
            return
        runs = self.step.github.runs_of(pull.head, "pull_request", self._workflow)
        if runs:
            for run in self._runs_of_pull_request(self.step.github.pull_request(pull.number), runs):
                yield run, f"pull request {pull.number} (run {run.id})"

    def _runs_of_pull_request(self, pull: PullRequest, runs: Sequence[MeasuringRun]) -> Iterator[MeasuringRun]:
        """Yield the runs known to belong to this pull request; GitHub is asked once per branch.

        Raises:
            PublishError: there are more runs than are checked, or some that may belong to another pull request from the
                same branch, so an earlier measurement may be missed.
        """
        known: dict[tuple[str, str], bool] = {}
        for run in runs[:ASKED]:
            branch = run.head_repository, run.head_branch
            if branch not in known:
                known[branch] = self.step.github.measured_for(run, pull)
            if known[branch]:
                yield run
        if len(runs) > ASKED:
            raise PublishError(f"more than {ASKED} runs, and too few of the newest left a record", where="GitHub")
        own = pull.head_repository, pull.head_branch
        if not known.get(own, True):  # otherwise opening another pull request would allow a fresh draw
            what = "this branch has, or had, a pull request onto another base, and runs do not say whose they are"
            raise PublishError(what, where="GitHub")

    def _promoted(self, record: Record) -> Record:
        """Return the record under the commit that the change was merged as, without trials of an older base's agent."""
        storable(record)  # a record that could not become a baseline there cannot become one here
        taken = own_terms(record).taken_up
        if taken:
            what = f"{taken} of its trials are of an earlier job, and what that one ran may be another code"
            raise UntrustedError(what, where=record.header.suite_id)
        found = against_base(record, self.base)
        return replace(found, header=replace(found.header, commit=self.step.activity.head))

    def _place(self, record: Record, run: MeasuringRun) -> bool:
        """Write the record where the run continues it, unless a newer one is there. Return True if it was written.

        If nothing identifies the agent, a record of the same head is continued under this commit: a moved base branch
        must not give it a new chance.
        """
        if not record.header.agent and run.head == self.step.activity.head:
            record = against_base(record, self.base)
            record = replace(record, header=replace(record.header, commit=self.step.git.head()))
        header = record.header
        if header.commit != self.step.git.head() or header.shard != self._shard:
            return False
        path = path_of(self.config, header, by_commit=not self.has_fingerprint and not header.agent)
        if path is None:
            return False
        self.placed.add(header.suite_id)
        if path.exists():
            return False
        write_record(path, _closed(record))
        return True


def _closed(record: Record) -> Record:
    """Return the record, closed as interrupted if its run did not close it."""
    return replace(record, footer=record.footer or replace(footer_of(record.trials), stopped=INTERRUPTED))
