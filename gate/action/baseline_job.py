"""The baseline job: saves the records of the default branch, and of a release, as their commit's baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from gate.action.step import Step, StepOutcome, worse_code
from gate.config.load import Config
from gate.errors import GateError
from gate.pipeline.baseline_upkeep import save_baseline
from gate.security.escape import console


def save_as_baseline(
    step: Step, config: Config, environment: Mapping[str, str], outcome: StepOutcome, changed: Sequence[str]
) -> StepOutcome:
    """Saves the records as the commit's baseline. A failure sets the exit code unless it is worse already."""
    result = outcome.result
    assert result is not None, "there is a record to save"
    try:
        for suite, path in zip(result.suites, result.record_paths, strict=True):
            accepted = (suite.accepted, f"the label {step.inputs['accept_label']}") if suite.accepted else None
            said = save_baseline(config, Path(path), environment, release=step.release, accepted=accepted)
            for line in said.splitlines():
                step.say(console(line, 2_000))
    except GateError as error:
        names = f"; changed: {', '.join(changed[:3])}{', …' if len(changed) > 3 else ''}" if changed else ""
        code = worse_code(outcome.exit_code, error.exit_code)
        said = "; ".join(filter(None, (outcome.error, f"{error}{names}")))
        return replace(outcome, exit_code=code, error=said)
    return outcome
