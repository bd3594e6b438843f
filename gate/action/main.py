"""The process of the action: set up the step, handle its event, publish, and return the exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from msgspec.structs import replace

from gate.action.container import end_all_others, give_back
from gate.action.held import HeldFiles
from gate.action.inputs import values_to_mask
from gate.action.measure import measure
from gate.action.publish import REPORT_FILES, publish_outcome
from gate.action.report import report
from gate.action.runner import Runner, WorkflowCommandGuard, mask
from gate.action.step import RESULTS, Say, Step, StepOutcome, open_step, with_sealed_git, worse_code
from gate.errors import Cancelled, ConfigError, ExitCode, GateError, PublishError
from gate.hosts.base import Annotation
from gate.hosts.events import Mode
from gate.security import files
from gate.system.temporary import TemporaryFolder


def main(environment: Mapping[str, str]) -> NoReturn:
    """Carry out one step of a job. Log no traceback unless the run was started with debug logging."""
    raise SystemExit(act(environment, _say))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def act(environment: Mapping[str, str], say: Say) -> int:
    """Measure or report, publish, and return the exit code."""
    workspace = Path(environment.get("GITHUB_WORKSPACE") or Path.cwd())
    runner = Runner(say, _path(environment, "GITHUB_OUTPUT"), _path(environment, "GITHUB_STEP_SUMMARY"))
    guard, held = WorkflowCommandGuard(), HeldFiles(environment)
    for value in values_to_mask(environment):
        say(mask(value))
    say(guard.begin)  # from here on the runner ignores workflow commands that the agent or its setup prints
    sealed = TemporaryFolder("gate-git-")
    try:
        step, outcome = _carry_out(environment, workspace, say, Path(sealed.name))
    finally:
        end_all_others()
        problems = held.restore()
        held.close()
        say(guard.end)
    if problems:
        code = worse_code(outcome.exit_code, ExitCode.CONFIGURATION)
        outcome = replace(outcome, exit_code=code, error="; ".join(filter(None, (outcome.error, *problems))))
    try:
        return publish_outcome(step, outcome, runner)
    except Exception as error:  # noqa: BLE001  (a failure to publish changes no verdict)
        _trace(environment)
        said = f"unexpected {type(error).__name__} while publishing: {error}"
        told = [Annotation("error", "Agent Gate", text) for text in (outcome.error, said) if text]
        code = outcome.exit_code or int(ExitCode.PUBLISH)
        with suppress(PublishError):
            runner.set_outputs({"exit_code": str(code)})
        runner.annotate(told)
        return code
    finally:
        sealed.cleanup()
        give_back(workspace)
        if step is not None:
            step.github.close()


def _path(environment: Mapping[str, str], name: str) -> Path | None:
    return Path(environment[name]) if environment.get(name) else None


def _carry_out(
    environment: Mapping[str, str], workspace: Path, say: Say, sealed: Path
) -> tuple[Step | None, StepOutcome]:
    step: Step | None = None
    try:
        step = open_step(environment, workspace, say)
        step = with_sealed_git(step, sealed)
        _check_results(workspace)
        outcome = _MODES[step.activity.mode](step)
        _check_results(workspace)  # check again: setup or the agent may have created a link there
        return step, outcome
    except GateError as error:
        _trace(environment)
        return step, StepOutcome(int(error.exit_code), error=str(error))
    except Cancelled as error:
        return step, StepOutcome(error.exit_code, error="stopped; all trials measured so far are in the record")
    except Exception as error:  # noqa: BLE001  (the one place: nothing was measured, for an unknown reason)
        _trace(environment)
        said = f"unexpected {type(error).__name__}: {error} (re-run with debug logging for the traceback)"
        return step, StepOutcome(int(ExitCode.NOT_MEASURED), error=said)


def _check_results(workspace: Path) -> None:
    """Raise ConfigError if a link would redirect the results to a place where they might overwrite a file."""
    folder = workspace / RESULTS
    try:
        for path in (folder, folder / ".gitignore", *(folder / name for name in REPORT_FILES.values())):
            files.check(path)
    except files.LinkError as error:
        raise ConfigError(str(error.strerror), where=RESULTS.name) from None


def _trace(environment: Mapping[str, str]) -> None:
    if environment.get("RUNNER_DEBUG") == "1":
        traceback.print_exc(file=sys.stdout)


def _refuse(step: Step) -> StepOutcome:
    raise ConfigError(step.activity.reason, where="event", hint=step.activity.hint)


_MODES: dict[Mode, Callable[[Step], StepOutcome]] = {
    Mode.RUN: measure,
    Mode.RECORD: measure,
    Mode.RELEASE: measure,
    Mode.REPORT: report,
    Mode.REFUSED: _refuse,
}
