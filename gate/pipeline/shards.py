"""Part of a suite on each machine: how many trials a shard runs, how long cases take, and what it may say of itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from msgspec.structs import replace

from gate.baselines.pairing import Reference
from gate.config.load import Config
from gate.config.schema import TrialsSection
from gate.model import Side, SuiteResult, Trial
from gate.model.finding import Finding
from gate.records import PlannedCase, assign_shards

AUTO_EPOCHS = 3
"""A shard cannot know what the others found, so `trials: auto` is its longest schedule."""


def epochs_of(config: Config) -> int:
    """How often a shard runs each of its cases: what `trials` says at most, in one go."""
    trials = config.file.trials
    if isinstance(trials, TrialsSection):
        return trials.max
    return trials if isinstance(trials, int) else AUTO_EPOCHS


def assigned(plan: Sequence[PlannedCase], reference: Reference, shards: int) -> tuple[PlannedCase, ...]:
    """The plan with a shard for each case, balanced by how long the cases took in the baseline, if there is one."""
    if shards == 1:
        return tuple(plan)
    known = _durations(trial for record in reference.records for trial in record.trials)
    return assign_shards([replace(case, hint=known.get(case.id)) for case in plan], shards)


def _durations(trials: Iterable[Trial]) -> Mapping[str, float]:
    """Mean seconds of a trial by case, to the millisecond."""
    found: dict[str, list[float]] = defaultdict(list)
    for trial in trials:
        if trial.duration is not None and trial.error is None and trial.side is Side.CANDIDATE:
            found[trial.case_id].append(trial.duration)
    return {case_id: round(fmean(durations), 3) for case_id, durations in found.items()}


def measured(
    shard: tuple[int, int], own: Sequence[str], trials: Sequence[Trial], *, suite_id: str, seed: int, config: Config
) -> SuiteResult:
    """What a shard says: measured, or why not. It never passes nor regresses, since it knows its own cases alone."""
    index, total = shard
    errors = sum(not trial.measured for trial in trials)
    problem = _problem(own, trials, errors, config.file.gate.max_error_rate)
    cause = Finding.of("shard_measured", shard=index, of=total, trials=len(trials), cases=len(own))
    if problem is not None:
        cause = Finding.of("shard_not_measured", shard=index, of=total, problem=problem)
    return SuiteResult(
        suite_id=suite_id,
        verdict=cause.verdict,
        cause=cause,
        criteria=(),
        cases=(),
        agent_runs=len(trials),
        errors=errors,
        seed=seed,
    )


def _problem(own: Sequence[str], trials: Sequence[Trial], errors: int, most: float) -> Finding | None:
    """Why the shard cannot be used for the whole run; None if it can."""
    if trials and errors / len(trials) > most:
        return Finding.of("too_many_errors", share=errors / len(trials), most=most, error="")
    if trials and not any(trial.answered for trial in trials):
        told = Counter(f"{t.error.kind.value}: {t.error.message}" for t in trials if t.error is not None)
        return Finding.of(
            "outage",
            cases=len({t.case_id for t in trials}),
            of=len(own),
            compared=False,
            error=told.most_common(1)[0][0],
        )
    silent = set(own) - {trial.case_id for trial in trials}
    if silent:
        return Finding.of("cases_not_run", cases=tuple(sorted(silent)), of=len(own))
    return None
