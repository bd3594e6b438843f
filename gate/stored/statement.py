"""The result of a run as an in-toto statement (test-result v0.1), and the check of files against one.

A record that decides alone is judged again; for one that was compared, the baseline is not available. A statement has
exactly one spelling, so that no byte of it can change unnoticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from msgspec import MsgspecError, Struct, field
from msgspec.json import decode, encode
from msgspec.structs import replace

from gate.errors import ExitCode, MeasureError, UntrustedError
from gate.model import Result, SuiteResult, Verdict
from gate.pipeline.terms import own_terms
from gate.pipeline.verdict import NO_REFERENCE, judge_record, keeper_of
from gate.records import Header, Record, RecordReader, lines_of, read_header

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
RECORD, REPORT, COMMIT = "record/", "report/", "commit"
NO_BASELINE = "agent-gate:no-baseline"
UNPROVEN, NOT_ASKED = "unproven", "not asked"
"""The origin of a baseline: unproven, or not looked up."""

Outcome = Literal["PASSED", "WARNED", "FAILED"]


class Descriptor(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A file or commit that a statement is about, or on which a result depends."""

    name: str
    digest: Mapping[str, str] = {}
    uri: str = ""
    annotations: Mapping[str, Any] = {}


class TestResult(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The predicate of a statement."""

    __test__ = False
    result: Outcome
    configuration: tuple[Descriptor, ...]
    passed_tests: tuple[str, ...]
    warned_tests: tuple[str, ...]
    failed_tests: tuple[str, ...]


class Statement(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A statement about a commit, records and reports."""

    subject: tuple[Descriptor, ...]
    predicate: TestResult
    predicate_type: str = PREDICATE_TYPE
    type: str = field(default=STATEMENT_TYPE, name="_type")

    @property
    def commit(self) -> str:
        """Return the commit that was measured."""
        return next(one.digest["gitCommit"] for one in self.subject if one.name == COMMIT)


def outcome_of(verdict: Verdict) -> Outcome:
    """Return a statement's word for a verdict; only a pass counts as PASSED."""
    if verdict is Verdict.PASS:
        return "PASSED"
    if verdict is Verdict.INCONCLUSIVE:
        return "WARNED"
    return "FAILED"


def statement_of(result: Result, reports: Iterable[Path], *, rules: str | None) -> Statement:
    """Return the statement about a result, its records and its reports.

    ``rules``: the commit by whose rules it was judged; None: its own.

    Raises:
        MeasureError: there is no record, or the measured code is not exactly one commit.
    """
    paths = [Path(path) for path in result.record_paths]
    headers = [read_header(path) for path in paths]
    commits = {header.commit for header in headers}
    if not headers or len(commits) > 1 or None in commits:
        raise MeasureError("the trials are not from one commit: no statement is possible")
    if any(header.dirty for header in headers):
        hint = "commit, and run again"
        raise MeasureError("the work tree differed from its commit: no statement is possible", hint=hint)
    subjects = [Descriptor(COMMIT, {"gitCommit": str(headers[0].commit)})]
    for header, path in zip(headers, paths, strict=True):
        subjects.append(Descriptor(RECORD + header.suite_id, digest_of_file(path)))
    for path in reports:
        if path.is_file():
            subjects.append(Descriptor(REPORT + path.name, digest_of_file(path)))
    return Statement(tuple(subjects), _predicate(result, headers, rules or str(headers[0].commit)))


def _outcome(result: Result, headers: Sequence[Header], *, failed: bool) -> Outcome:
    """Return PASSED only if the run ended with exit code 0, nothing failed, and all cases of its suites were run."""
    found = outcome_of(result.verdict)
    if failed:
        return "FAILED"
    if found != "PASSED":
        return found
    if result.exit_code != ExitCode.PASS:
        return "FAILED"
    if any(header.selected for header in headers):
        return "WARNED"
    return "PASSED"


def _predicate(result: Result, headers: Sequence[Header], rules: str) -> TestResult:
    by_outcome: dict[Outcome, list[str]] = {"PASSED": [], "WARNED": [], "FAILED": []}
    for suite in result.suites:
        for one in suite.criteria:
            if one.criterion.blocking and one.verdict is not Verdict.NOT_APPLIED:
                by_outcome[outcome_of(one.verdict)].append(f"{suite.suite_id}: {one.criterion.name}")
    rests_on = [Descriptor("agent-gate", uri=f"pkg:pypi/agent-gate@{result.version}")]
    rests_on.append(Descriptor("rules", {"gitCommit": rules}))
    for header in headers:
        rests_on += _measured_by(header)
        if header.selected:
            by_outcome["WARNED"].append(f"{header.suite_id}: only {len(header.plan)} of {header.whole} cases")
    for suite in result.suites:
        rests_on += [*_baselines(suite), *_recordings(suite)]
    return TestResult(
        _outcome(result, headers, failed=bool(by_outcome["FAILED"])),
        tuple(rests_on),
        tuple(by_outcome["PASSED"]),
        tuple(by_outcome["WARNED"]),
        tuple(by_outcome["FAILED"]),
    )


def _measured_by(header: Header) -> list[Descriptor]:
    """Return the criteria and the agent of a record, and the commit that it was measured against."""
    rules = hashlib.sha256(encode(header.criteria, order="sorted")).hexdigest()
    held = {}
    for one in header.criteria:
        held[one.name] = {"metric": one.metric, "threshold": one.threshold, "fingerprint": one.fingerprint}
    found = [Descriptor("criteria", {"sha256": rules}, annotations={"suite": header.suite_id, "criteria": held})]
    if header.base_commit:
        found.append(Descriptor("base", {"gitCommit": header.base_commit}, annotations={"suite": header.suite_id}))
    known = {"suite": header.suite_id, "fingerprint": header.agent, "definition": header.definition}
    return [*found, Descriptor("agent", uri=f"agent-gate:agent/{header.agent or 'unknown'}", annotations=known)]


def _recordings(suite: SuiteResult) -> list[Descriptor]:
    """Return how much of a suite was answered from recordings, which is no new measurement."""
    share = suite.replayed
    if share is None:
        return []
    told = {"suite": suite.suite_id, "cases": share.cases, "sameRequests": share.same, "liveRuns": share.runs}
    return [Descriptor("recordings", annotations=told)]


def _baselines(suite: SuiteResult) -> list[Descriptor]:
    """Return the references of a suite, or a descriptor saying that there were none."""
    found = []
    for one in (suite, *suite.further):
        baseline, said = one.baseline, {"suite": suite.suite_id, "reference": one.reference or "base"}
        if baseline is None or baseline.missing or baseline.commit is None:
            found.append(Descriptor("baseline", uri=NO_BASELINE, annotations=said))
        else:
            known = {**said, "records": baseline.records, "provenance": baseline.provenance or NOT_ASKED}
            found.append(Descriptor("baseline", {"gitCommit": baseline.commit}, annotations=known))
    return found


def digest_of_file(path: Path) -> dict[str, str]:
    """Return the digest of a file's bytes. Raises `OSError`."""
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest()}


# --- as bytes -----------------------------------------------------------------------------------------


def written(statement: Statement) -> bytes:
    """Return the statement in its only spelling."""
    return encode(statement, order="sorted") + b"\n"


def predicate_in(statement: Statement) -> bytes:
    """Return only the predicate, in the form for a CI's own attestation step."""
    return encode(statement.predicate, order="sorted") + b"\n"


def read_statement(data: bytes, where: str) -> Statement:
    """Return the statement in these bytes. Raises `UntrustedError` if the gate did not write them in this form."""
    try:
        found = decode(data, type=Statement)
    except (MsgspecError, ValueError, RecursionError):
        raise UntrustedError("not a statement of the gate, or a damaged one", where=where) from None
    known = found.type == STATEMENT_TYPE and found.predicate_type == PREDICATE_TYPE
    commits = [one for one in found.subject if one.name == COMMIT and one.digest.get("gitCommit")]
    if not known or len(commits) != 1 or written(found) != data:
        raise UntrustedError("the statement is not in the gate's form: it was changed", where=where)
    if not any(one.name.startswith(RECORD) for one in found.subject):
        raise UntrustedError("the statement covers no record: there is nothing to check", where=where)
    if found.predicate.result == "PASSED" and (found.predicate.failed_tests or not found.predicate.passed_tests):
        raise UntrustedError("the statement contradicts itself: it passed with failures, or without any", where=where)
    return found


# --- checking -----------------------------------------------------------------------------------------


def check_files(statement: Statement, given: Sequence[Path], commit: str | None) -> None:
    """Check that a statement is about these files and this commit, and that all its records are among them.

    Raises:
        UntrustedError: a file was changed or does not belong to it, a record is missing, or the commit differs.
        OSError: a file cannot be read.
    """
    if commit is not None and commit != statement.commit:
        raise UntrustedError(f"the statement is about commit {statement.commit[:12]}, not {commit[:12]}")
    by_digest = {one.digest.get("sha256", ""): one.name for one in statement.subject if one.name != COMMIT}
    named = set()
    for path in given:
        check_regular(path)
        digest, header, record, problem = _read_file(path, statement)
        name = by_digest.get(digest)
        if name is None:
            raise UntrustedError("the statement is not about this file, or it was changed", where=str(path))
        if name.startswith(RECORD):
            if header is None:
                raise problem or UntrustedError("no record", where=str(path))
            _check_record(statement, path, name, header)
            if _is_judged(statement, header):
                _judge_again(path, record, problem)
        named.add(name)
    for one in statement.subject:
        if one.name.startswith(RECORD) and one.name not in named:
            hint = "name every record that it is about"
            raise UntrustedError(f"the statement's {one.name!r} was not given", hint=hint)


def check_regular(path: Path) -> None:
    """Refuse a pipe or a device among the files, even behind a link: reading it would never end."""
    if path.exists() and not path.is_file():
        raise UntrustedError("not a regular file", where=str(path))


def _read_file(path: Path, statement: Statement) -> tuple[str, Header | None, Record | None, UntrustedError | None]:
    """Return a file's digest, the header if it is a record, the record if it is to be judged again, and any problem.

    They are from a single read, so that the judged bytes are those of the digest. Raises `OSError`.
    """
    digest = hashlib.sha256()
    header = record = problem = None
    with path.open("rb") as file:
        lines = _hashed(file, digest)
        try:
            reader = RecordReader(lines, where=str(path), error=UntrustedError)
            header = reader.header
            if _is_judged(statement, header):
                record = Record(header, tuple(map(keeper_of(header), reader)), reader.footer)
        except UntrustedError as error:
            problem = error
        for _ in lines:
            pass
    return digest.hexdigest(), header, record, problem


def _hashed(file: BinaryIO, digest: Hash) -> Iterator[bytes]:
    for line in lines_of(file):
        digest.update(line)
        yield line


def _is_judged(statement: Statement, header: Header) -> bool:
    """True if the statement says that the record passed without a comparison."""
    return statement.predicate.result == "PASSED" and not compared_with(statement, header.suite_id)


def _check_record(statement: Statement, path: Path, name: str, header: Header) -> None:
    """Check that a statement describes the record correctly."""
    if header.commit != statement.commit or RECORD + header.suite_id != name:
        raise UntrustedError("the record is from another commit or suite than the statement's", where=str(path))
    told = [_compared_part(one) for one in statement.predicate.configuration]
    for one in _measured_by(header):
        if _compared_part(one) not in told:
            what = f"the record's {one.name} is another than the statement says"
            raise UntrustedError(what, where=str(path))
    if statement.predicate.result != "PASSED":
        return
    if header.selected:
        raise UntrustedError("the statement says PASSED of a part of the cases", where=str(path))
    if header.dirty:
        what = "the statement says PASSED of a work tree that differed from its commit"
        raise UntrustedError(what, where=str(path))


def _judge_again(path: Path, record: Record | None, problem: UntrustedError | None) -> None:
    """Check that a record which the statement calls a pass does not fail by itself."""
    try:
        if record is None:
            raise problem or MeasureError("it was not read")
        verdict = judge_record(record, (NO_REFERENCE,), own_terms(record)).verdict
    except (MeasureError, UntrustedError) as error:
        raise UntrustedError(f"the record cannot be judged again: {error.what}", where=str(path)) from None
    if outcome_of(verdict) == "FAILED":
        what = f"the statement says PASSED, and its record judged again: {verdict.value.replace('_', ' ')}"
        raise UntrustedError(what, where=str(path))


def _compared_part(one: Descriptor) -> tuple[str, bytes]:
    """Return the part that two descriptors must share. The digest of criteria depends on the gate's version."""
    if one.name == "criteria":
        one = replace(one, digest={})
    return one.name, encode(one, order="sorted")


def compared_with(statement: Statement, suite_id: str) -> tuple[str, ...]:
    """Return the commits that a suite was compared with, according to the statement."""
    return tuple(one.digest.get("gitCommit", "") for one in _baselines_in(statement, suite_id))


def unproven_in(statement: Statement, suite_id: str) -> tuple[str, ...]:
    """Return the commits that a suite was compared with and whose origin was unproven.

    Statements without that field are older than the check.
    """
    found = []
    for one in _baselines_in(statement, suite_id):
        if one.annotations.get("provenance") in (UNPROVEN, NOT_ASKED):
            found.append(one.digest.get("gitCommit", ""))
    return tuple(found)


def agent_of(statement: Statement, suite_id: str) -> str:
    """Return the fingerprint of the agent that a suite was run with; empty if unknown."""
    for one in _told_of(statement, suite_id, "agent"):
        return str(one.annotations.get("fingerprint") or "")
    return ""


def _baselines_in(statement: Statement, suite_id: str) -> list[Descriptor]:
    """Return the statement's descriptors of the baselines that a suite was compared with."""
    return [one for one in _told_of(statement, suite_id, "baseline") if one.uri != NO_BASELINE]


def _told_of(statement: Statement, suite_id: str, name: str) -> list[Descriptor]:
    """Return the statement's descriptors of this name about a suite."""
    told = statement.predicate.configuration
    return [one for one in told if one.name == name and one.annotations.get("suite") == suite_id]
