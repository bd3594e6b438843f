"""The texts of `gate attest` and `gate verify`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from gate.agents.http import stated_options
from gate.baselines.fingerprint import of_definition
from gate.config.load import Config
from gate.errors import ConfigError, ExitCode, MeasureError, UntrustedError
from gate.model import Result
from gate.pipeline.terms import own_terms
from gate.pipeline.verdict import load_to_judge
from gate.reports.files import with_problems
from gate.reports.formatting import count
from gate.security import files
from gate.security.escape import console
from gate.security.signing import opened, signed
from gate.stored.statement import (
    RECORD,
    Statement,
    agent_of,
    check_files,
    check_regular,
    compared_with,
    predicate_in,
    read_statement,
    statement_of,
    unproven_in,
    written,
)

UNSIGNED = "NOT SIGNED: anybody may have written this"
AGAIN = "judged again by its record alone, and not failed"
UNCHECKED = "not judged again, without the baseline; that is the statement's word"
NOT_PROVEN = "nothing showed the run who measured that baseline"
UNKNOWN = "which version of the agent answered is not known"
MAX_BYTES = 16 * 2**20
"""Most bytes in a statement or a key."""


def stated(result: Result, path: Path, reports: Iterable[Path], rules: str = "") -> Result:
    """Write the statement on a result, judged by the rules of a commit. If that fails, add a problem to the result."""
    try:
        files.write_parts(path, [written(statement_of(result, reports, rules=rules or None))])
    except (OSError, MeasureError) as error:
        what = error.what if isinstance(error, MeasureError) else error.strerror or str(error)
        return with_problems(result, [*result.problems, f"{path}: no statement: {what}"])
    return result


def rules_of_record(path: Path, config: Config) -> str:
    """Return the commit by whose rules a record was judged, so that it can be stated again; empty if by its own.

    Raises:
        ConfigError: the record was not measured on the configured agent, which is always so for recordings.
    """
    record = load_to_judge(path)
    if record.header.definition != of_definition(config.agent_kind, stated_options(config.agent)):
        what = "the record is of another agent than the one that is configured: nothing can be stated of it"
        raise ConfigError(what, where=str(path), hint="name the configuration that it was measured by: -c")
    return own_terms(record).rules


def attested(path: Path, key: Path | None, predicate: Path | None) -> str:
    """Write the requested files. Return a text that says where they are.

    Raises:
        ConfigError: a file or the key cannot be read.
        UntrustedError: the statement differs from what the gate wrote.
        MeasureError: a file cannot be written.
    """
    data = _read(path)
    statement = read_statement(data, str(path))
    lines = []
    if key is not None:
        target = path.with_name(f"{path.name}.dsse.json")
        _write(target, signed(data, _read(key)))
        lines.append(f"signed: {target}")
    if predicate is not None:
        _write(predicate, predicate_in(statement))
        for one in statement.subject:
            if "sha256" in one.digest:
                lines.append(f"{one.digest['sha256']}  {console(one.name)}")
    return "\n".join(lines)


def verified(
    given: Sequence[Path], path: Path, key: Path | None, commit: str | None, *, allow_warned: bool
) -> tuple[ExitCode, str]:
    """Return the exit code, and a description of the checks.

    Raises:
        ConfigError: a file or the key cannot be read.
        UntrustedError: a file was changed, or the files do not belong together.
    """
    check_regular(path)
    data = _read(path)
    if key is not None:
        try:
            data = opened(data, _read(key))
        except UntrustedError as error:
            raise UntrustedError(error.what, where=str(path), hint=error.hint) from None
    statement = read_statement(data, str(path))
    try:
        check_files(statement, given, commit)
    except OSError as error:
        raise UntrustedError(f"cannot be read: {error.strerror}", where=str(error.filename)) from None
    result = statement.predicate.result
    fine = result == "PASSED" or (result == "WARNED" and allow_warned)
    return ExitCode.PASS if fine else ExitCode.FAILED, _text(statement, len(given), is_signed=key is not None)


def _text(statement: Statement, checked: int, *, is_signed: bool) -> str:
    found = statement.predicate
    lines = [
        f"{found.result}: commit {console(statement.commit)}",
        f"  {count(checked, 'file')} as stated, {'signature valid' if is_signed else UNSIGNED}",
    ]
    for subject in statement.subject:
        if not subject.name.startswith(RECORD):
            continue
        suite_id = subject.name.removeprefix(RECORD)
        about = f"  {console(suite_id)}"
        commits = ", ".join(console(commit[:12]) for commit in compared_with(statement, suite_id))
        if commits:
            lines.append(f"{about}: compared with {commits}: {UNCHECKED}")
            for commit in unproven_in(statement, suite_id):
                lines.append(f"{about}: {console(commit[:12])}: {NOT_PROVEN}")
        elif found.result == "PASSED":
            lines.append(f"{about}: {AGAIN}")
        if not agent_of(statement, suite_id):
            lines.append(f"{about}: {UNKNOWN}")
    for name, tests in (("failed", found.failed_tests), ("inconclusive", found.warned_tests)):
        for test in tests:
            lines.append(f"  {name}: {console(test)}")
    return "\n".join(lines)


def read_key(path: Path | None) -> bytes | None:
    """Return the content of a key's file; None without one. Raises ConfigError."""
    return None if path is None else _read(path)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from None
    if len(data) > MAX_BYTES:
        raise ConfigError("it is too large to be a statement or a key", where=str(path))
    return data


def _write(path: Path, data: bytes) -> None:
    try:
        files.write_parts(path, [data])
    except OSError as error:
        raise MeasureError(f"cannot be written: {error.strerror or error}", where=str(path)) from None
