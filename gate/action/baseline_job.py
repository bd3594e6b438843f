"""The baseline job: saves the records of the default branch, and of a release, as their commit's baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from gate.action.step import Step, StepOutcome, worse_code
from gate.baselines.proofs import Proofs, joined
from gate.config.load import Config
from gate.errors import GateError
from gate.security.escape import console
from gate.stored.upkeep import carry_on, save_baseline


def save_as_baseline(
    step: Step, config: Config, environment: Mapping[str, str], outcome: StepOutcome, changed: Sequence[str]
) -> StepOutcome:
    """Saves the records as the commit's baseline. A failure sets the exit code unless it is worse already."""
    result = outcome.result
    assert result is not None, "there is a record to save"
    proofs: list[Proofs] = []
    try:
        for suite, path in zip(result.suites, result.record_paths, strict=True):
            accepted = (suite.accepted, f"the label {step.inputs['accept_label']}") if suite.accepted else None
            said = save_baseline(
                config, Path(path), environment, release=step.release, accepted=accepted, proofs=proofs
            )
            for line in said.splitlines():
                step.say(console(line, 2_000))
    except GateError as error:
        names = f"; changed: {', '.join(changed[:3])}{', …' if len(changed) > 3 else ''}" if changed else ""
        code = worse_code(outcome.exit_code, error.exit_code)
        said = "; ".join(filter(None, (outcome.error, f"{error}{names}")))
        return replace(outcome, exit_code=code, error=said, proofs=_carried_on(step, config, environment, proofs))
    return replace(outcome, proofs=_carried_on(step, config, environment, proofs))


def _carried_on(step: Step, config: Config, environment: Mapping[str, str], own: Sequence[Proofs]) -> Proofs | None:
    """Return the proofs for later jobs: of what this one measured, and of what it finds proven among what else is
    stored."""
    try:
        carried, problems = carry_on(config, environment, own)
    except GateError as error:
        carried, problems = joined(own), (str(error),)
    for problem in problems:
        step.say(console(f"earlier proofs of baselines are not carried on: {problem}", 2_000))
    return carried
