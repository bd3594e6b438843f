"""The course of a verdict: runs by reason, tool times, stored runs, and the share answered by recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gate.decision.comparison import Comparison
from gate.decision.engine.state import CONCURRENT
from gate.model import CONFIRM, FULL, NARROW, PROBE, REPEAT, Scale, Side, ToolTime, Trial, tool_times
from gate.model.course import Course, LiveCase, ReplayedShare

FIXED_DESIGN = 5
"""Trials per case of the fixed design that runs are compared with."""


def course(comparison: Comparison) -> Course:
    """Return the runs by reason: each counts in ``runs`` and under exactly one reason."""
    judged, epochs = {case.id for case in comparison.judged}, comparison.epochs
    runs, again = Counter[tuple[str, Side]](), Counter[Side]()
    both, reruns = Counter[str](), Counter[str]()
    whole = 0
    for trial in comparison.trials:
        if trial.again:
            again[trial.side] += 1
            continue
        runs[trial.tag, trial.side] += 1
        both[trial.tag] += 1
        if trial.side is Side.CANDIDATE and trial.tag == CONFIRM:
            reruns[trial.case_id] += 1
        if trial.side is Side.CANDIDATE and trial.tag == FULL:
            whole += trial.case_id in judged
    return Course(
        epochs=epochs,
        cases=len(judged),
        rerun_cases=len(reruns),
        rerun_least=min(reruns.values(), default=0),
        rerun_most=max(reruns.values(), default=0),
        runs=len(comparison.trials),
        alpha=comparison.settings.alpha,
        suites=comparison.settings.suites,
        family=comparison.settings.family,
        baseline_runs=sum([trial.side is Side.BASELINE for trial in comparison.trials]),
        fixed_runs=FIXED_DESIGN * len(judged),
        concurrent=both[CONCURRENT] > 0,
        stopped=comparison.stopped,
        reruns=reruns.total(),
        baseline_reruns=runs[CONFIRM, Side.BASELINE],
        confirming=both[PROBE],
        baseline_confirming=runs[PROBE, Side.BASELINE],
        epoch_runs=None if whole == epochs * len(judged) else whole,
        baseline_epochs=runs[FULL, Side.BASELINE],
        quarantined=runs[FULL, Side.CANDIDATE] - whole,
        repeating=both[REPEAT],
        baseline_repeating=runs[REPEAT, Side.BASELINE],
        narrowing=both[NARROW],
        drifting=both[CONCURRENT],
        baseline_drifting=runs[CONCURRENT, Side.BASELINE],
        again=again.total(),
        baseline_again=again[Side.BASELINE],
    )


def tool_times_of(comparison: Comparison) -> tuple[ToolTime, ...]:
    """Return calls and time per tool over the candidate's measured trials.

    Unless a criterion measures time, only turns in which the agent times its tools count: other calls are not kept.
    """
    asked = any(criterion.scale is Scale.SECONDS for criterion in comparison.criteria)
    turns = []
    for trials in comparison.candidate.values():
        for trial in trials:
            if trial.error is not None:
                continue
            for turn in trial.invocations:
                if asked or any(call.duration is not None for call in turn.tool_calls):
                    turns.append(turn)
    return tuple(tool_times(turns))


# --- what recordings answered ---------------------------------------------------------------------


def replayed_share(comparison: Comparison) -> ReplayedShare | None:
    """Return the share answered by the baseline's recordings; None if no trial had one."""
    live = []
    saved: list[float] = []
    cases = replayed = 0
    has_source = False
    for case in comparison.judged:
        trials = comparison.candidate.get(case.id, ())
        cases += bool(trials)
        for trial in trials:
            if trial.replay is not None:
                has_source = has_source or bool(trial.replay.source)
                replayed += trial.replay.replayed
            if trial.saved_usd is not None:
                saved.append(trial.saved_usd)
        if trials and not same_world(comparison, trials):
            live.append(_live(case.id, trials))
    if not has_source:
        return None
    return ReplayedShare(
        cases=cases,
        same=cases - len(live),
        runs=sum([one.runs for one in live]),
        calls=sum([one.calls for one in live]),
        replayed=replayed,
        saved_usd=sum(saved) if saved else None,
        live=tuple(live),
    )


def same_world(comparison: Comparison, trials: Sequence[Trial]) -> bool:
    """True if in each trial of these cases the model got the same requests as in some trial of the baseline.

    A recording that the baseline does not have shows nothing, whatever the record says about it.
    """
    known = comparison.coupling
    if not known.partners or not any(id(trial) in known.partners for trial in trials):
        return False
    for trial in trials:
        if trial.replay is None or not trial.replay.same:
            return False
        if id(trial) not in known.partners and id(trial) not in known.dropped:
            return False
    return True


def difference(trials: Sequence[Trial]) -> str:
    """Return the first difference from the recording in the first trial that reports one."""
    for trial in trials:
        if trial.replay is not None and trial.replay.difference:
            return trial.replay.difference
    return ""


def _live(case_id: str, trials: Sequence[Trial]) -> LiveCase:
    """Return the calls that a case made to the real world; a trial that says nothing about its recording counts as
    live."""
    asked = [trial for trial in trials if trial.replay is None or not trial.replay.same]
    calls = sum([trial.replay.live for trial in trials if trial.replay is not None])
    return LiveCase(case_id, len(asked), calls, difference(trials))
