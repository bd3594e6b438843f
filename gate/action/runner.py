"""GitHub's runner: its workflow commands, and the files through which a step communicates with it. Decides nothing."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gate.errors import PublishError
from gate.hosts.base import Annotation, CopyFile, Done, Effect, Level, WriteFile, WriteSummary, write
from gate.model import CaseResult, CaseStatus, CriterionResult, Result, SuiteResult, Verdict
from gate.reports.formatting import agree
from gate.reports.labels import VERDICTS
from gate.reports.reasons import reason
from gate.security.escape import console, workflow_data, workflow_property

ANNOTATIONS_PER_LEVEL = 10
"""Maximum number of annotations per level and step; the runner silently drops the rest."""
SUMMARY_BYTES = 1_048_576
"""Maximum number of bytes in a summary; the runner drops a larger one entirely."""
OUTPUTS_BYTES = 1_000_000
"""Maximum number of bytes in all outputs of a job."""
MESSAGE_CHARS = 2_000
LEVELS: tuple[Level, ...] = ("error", "warning", "notice")
"""The levels of annotations, most important first."""
_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Runner(Struct, frozen=True):
    """The runner from the step's point of view. It does not handle comments."""

    say: Callable[[str], None]
    """Prints a line to the log, where the runner reads workflow commands."""
    outputs: Path | None = None
    """``GITHUB_OUTPUT``."""
    summary: Path | None = None
    """``GITHUB_STEP_SUMMARY``."""

    def apply(self, effect: Effect) -> Done:
        match effect:
            case WriteFile() | CopyFile():
                return write(effect)
            case WriteSummary():
                _append(self.summary, summary_text(effect.text))
        return Done()

    def set_outputs(self, values: Mapping[str, str]) -> None:
        """Set the outputs for later steps of the same job. Raises PublishError."""
        _append(self.outputs, outputs_text(values))

    def annotate(self, annotations: Sequence[Annotation]) -> None:
        """Show the annotations, given most important first, as far as the runner shows that many."""
        for annotation in most_important(annotations):
            self.say(command(annotation))


def _append(path: Path | None, text: str) -> None:
    if path is None or not text:
        return
    try:
        # Does not follow a link, wait for the reader of a pipe, or write to a file that has another name.
        descriptor = os.open(path, _APPENDING, 0o644)
        with open(descriptor, "w", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise OSError(errno.EINVAL, "it is no file of its own")
            file.write(text)
    except OSError as error:
        raise PublishError(f"cannot be written: {error.strerror}", where=str(path)) from error


# --- the files ------------------------------------------------------------------------------------


def outputs_text(values: Mapping[str, str]) -> str:
    """Return the outputs in the runner's format; the delimiter is random, so that no value can end its own block."""
    text = ""
    for name, value in values.items():
        delimiter = f"gate_{secrets.token_hex(16)}"
        clean = value.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
        text += f"{name}<<{delimiter}\n{clean}\n{delimiter}\n"
    if len(text.encode()) > OUTPUTS_BYTES:
        raise PublishError(f"the outputs are larger than {OUTPUTS_BYTES:,} bytes")
    return text


def summary_text(text: str) -> str:
    """Return the summary, in full or not at all: the renderer was told the limit, and a cut could break the markup."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) >= SUMMARY_BYTES:
        raise PublishError(f"the summary is {len(encoded):,} bytes, the runner takes {SUMMARY_BYTES:,}")
    return encoded.decode("utf-8") + "\n"


# --- the commands ---------------------------------------------------------------------------------


def command(annotation: Annotation) -> str:
    """Return the annotation as a workflow command on one line."""
    properties = {"title": console(annotation.title, 200)}
    if annotation.path:
        properties["file"] = annotation.path
        if annotation.line:
            properties["line"] = str(annotation.line)
    listed = ",".join(f"{name}={workflow_property(value)}" for name, value in properties.items())
    return f"::{annotation.level} {listed}::{workflow_data(console(annotation.message, MESSAGE_CHARS))}"


def mask(value: str) -> str:
    """Return the workflow command that masks a value in the rest of the job's log."""
    return f"::add-mask::{workflow_data(value)}"


def most_important(annotations: Sequence[Annotation]) -> list[Annotation]:
    """Return as many annotations per level as the runner shows; the last one states how many are left out."""
    kept: list[Annotation] = []
    for level in LEVELS:
        of_level = [annotation for annotation in annotations if annotation.level == level]
        if len(of_level) > ANNOTATIONS_PER_LEVEL:
            more = len(of_level) - ANNOTATIONS_PER_LEVEL + 1
            rest = Annotation(level, "and more", f"{more} more are in the summary of this run")
            of_level = [*of_level[: ANNOTATIONS_PER_LEVEL - 1], rest]
        kept += of_level
    return kept


class WorkflowCommandGuard:
    """Keeps the runner from treating printed lines as commands, between ``begin`` and ``end``."""

    def __init__(self) -> None:
        self._token = f"gate-{secrets.token_hex(16)}"

    @property
    def begin(self) -> str:
        return f"::stop-commands::{self._token}"

    @property
    def end(self) -> str:
        return f"::{self._token}::"


# --- which cases deserve a remark -----------------------------------------------------------------

_CASES: dict[CaseStatus, tuple[Level, str]] = {
    CaseStatus.BROKEN: ("error", "got worse"),
    CaseStatus.FAILED: ("error", "failed"),
    CaseStatus.ERROR: ("error", "could not be measured"),
    CaseStatus.SUSPECT: ("warning", "may have got worse"),
    CaseStatus.QUARANTINED: ("notice", "is quarantined"),
}
"""The statuses that deserve a remark at the case's line; flaky, new and passing cases do not."""
_VERDICTS: dict[Verdict, Level] = {
    Verdict.ERROR: "error",
    Verdict.REGRESSED: "error",
    Verdict.NOT_COMPARED: "error",
    Verdict.BELOW_THRESHOLD: "error",
    Verdict.NOT_MEASURED: "error",
    Verdict.INCONCLUSIVE: "warning",
}


def annotations_of(result: Result) -> tuple[Annotation, ...]:
    """Return the remarks on a result, most important first; none is an error if the result does not fail the gate.

    Places in a result are relative to the working directory, which is the repository's root in the action.
    """
    made: list[Annotation] = []
    for suite in result.suites:
        for row in suite.criteria:
            if row.verdict in _VERDICTS:
                made.append(_of_criterion(suite, row))
        for case in suite.cases:
            if case.status in _CASES:
                made.append(_of_case(suite, case))
    if not result.exit_code:
        made = [replace(one, level="warning") if one.level == "error" else one for one in made]
    return tuple(sorted(made, key=lambda annotation: LEVELS.index(annotation.level)))


def _of_criterion(suite: SuiteResult, found: CriterionResult) -> Annotation:
    level: Level = "warning"
    if found.criterion.blocking or found.criterion.blocks_regression:
        level = _VERDICTS[found.verdict]
    name = VERDICTS[found.verdict]
    return Annotation(level, f"{suite.suite_id}: {found.criterion.name} {name}", reason(found))


def _of_case(suite: SuiteResult, case: CaseResult) -> Annotation:
    level, said = _CASES[case.status]
    passed = f"{case.passed}/{case.trials} {agree(case.trials, 'trial', 'trials')} passed"
    if case.baseline_trials:
        passed += f", {case.baseline_passed}/{case.baseline_trials} in the baseline"
    reason = case.reasons[0] if case.reasons else ""
    if case.status is CaseStatus.QUARANTINED:
        reason = case.quarantine
    made = Annotation(level, f"{suite.suite_id}: {case.id} {said}", f"{passed}. {reason}".strip())
    if case.location is None:
        return made
    return replace(made, path=case.location.path, line=case.location.line)
