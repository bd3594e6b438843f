"""Trials × criteria → scores. Knows the order in which metrics are computed, not how each one works."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import ValidationError

from gate.errors import first_problem
from gate.judges.asking import noting_models
from gate.metrics.base import Composite, Context, Judged, Metric, TrialOutput
from gate.metrics.custom.metric import InAgentMetric, RunInAgent, checked
from gate.model import ARGUMENTS, CALLS, PARTS, RESPONSE, RESULTS, Case, Criterion, ErrorKind, Score, Trial, TrialError
from gate.scoring.off_loop import off_loop
from gate.security.limits import described


class Scorer(Struct, frozen=True):
    """A criterion with the metric that computes it, and one metric for each case with its own options."""

    criterion: Criterion
    metric: Metric[Any]
    by_case: Mapping[str, Metric[Any]]
    held_back: str = ""
    """The reason why its judge may not block; empty if it may."""
    note: str = ""
    """A note for the reader on its judge's calibration."""

    @property
    def needs_judge(self) -> bool:
        """True if any case's score needs the judge of the run."""
        return any(isinstance(m, Judged) and m.needs_judge for m in (self.metric, *self.by_case.values()))

    @property
    def needs_calls(self) -> bool:
        """True if any case's score reads tool calls."""
        return any(m.needs_calls for m in (self.metric, *self.by_case.values()))

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the criteria that any case's score is computed from."""
        parts: dict[str, None] = {}
        for metric in (self.metric, *self.by_case.values()):
            if isinstance(metric, Composite):
                parts |= dict.fromkeys(metric.parts)
        return tuple(parts)

    def for_case(self, case: Case) -> Metric[Any]:
        return self.by_case.get(case.id, self.metric)


def build_scorer(
    criterion: Criterion,
    metric_type: type[Metric[Any]],
    options: Mapping[str, Any],
    cases: Sequence[Case],
    context: Context,
    *,
    where: str = "criteria",
) -> Scorer:
    """Return the scorer, after validating the options of the criterion and of every case before anything runs.

    Raises:
        ConfigError: the metric does not know an option, or a value is out of range.
    """
    by_case = {}
    for case in cases:
        own = case.options.get(criterion.name)
        if own:
            place = f"case {case.id!r}"
            if case.location:
                place = f"{case.location}: {place}"
            by_case[case.id] = _metric(metric_type, metric_type.overlaid(options, own), criterion.name, place, context)
    return Scorer(criterion, _metric(metric_type, options, criterion.name, where, context), by_case)


def _metric(
    metric_type: type[Metric[Any]], options: Mapping[str, Any], name: str, where: str, context: Context
) -> Metric[Any]:
    try:
        return metric_type(metric_type.options_type.model_validate(dict(options)), context)
    except ValidationError as error:
        raise first_problem(error, metric_type.options_type).as_error(f"{where}: {name}", noun="option") from None


async def score_trial(
    scorers: Sequence[Scorer], case: Case, trial: Trial, judge: Any = None, run_in_agent: RunInAgent | None = None
) -> Trial:
    """Return the trial with its scores; a trial without an answer gets none.

    Hard criteria come first: if a blocking one fails, the trial's other scores are not computed. A hard criterion
    broken before the agent fails still counts as broken. If anything else fails, such as the simulated user, after the
    agent has done what is forbidden, that decides the trial: running it again would forget what was seen. So it does in
    an attempt that was run again.
    """
    trial = _silence_as_failure(trial)
    in_loop = judge is not None or run_in_agent is not None  # else nothing is awaited, and there may be no loop
    forbidding = [s for s in scorers if s.criterion.absence and s.criterion.blocking]
    for turns in trial.earlier:
        broken = await _broken_in(forbidding, case, TrialOutput(turns), judge, in_loop=in_loop)
        if broken:
            return _decided_by(trial, {name: _in_earlier_attempt(score) for name, score in broken.items()})
    performance = TrialOutput(trial.invocations, trial.duration)
    if trial.error is not None:
        hard = forbidding
        if trial.failed:
            hard = list(scorers)
        broken = await _broken_in(hard, case, performance, judge, in_loop=in_loop)
        if not broken:
            return trial
        return _decided_by(trial, broken)
    case = case.as_held(trial.invocations)
    scores: dict[str, Score] = {}
    for scorer in [s for s in scorers if s.criterion.hard]:
        scores[scorer.criterion.name] = await _score(scorer, case, performance, judge, in_loop=in_loop)
    if scores:
        _keep_to_scale(scorers, scores)
        if any(_blocks(scores.get(s.criterion.name)) for s in scorers if s.criterion.blocking):
            return replace(trial, scores=scores)
    composites: list[tuple[str, Composite[Any]]] = []
    waited: dict[str, Awaitable[Score]] = {}
    for scorer in [s for s in scorers if not s.criterion.hard]:
        metric, name = scorer.for_case(case), scorer.criterion.name
        if isinstance(metric, Composite):
            composites.append((name, metric))
        elif isinstance(metric, Judged):
            waited[name] = _score(scorer, case, performance, judge, in_loop=in_loop)
        elif isinstance(metric, InAgentMetric) and _unseen(metric, performance) is None:
            waited[name] = metric.score_in_agent(case, performance, run_in_agent)
        else:
            scores[name] = await _score(scorer, case, performance, judge, in_loop=in_loop)
    if not in_loop:
        for name, scoring in waited.items():
            scores[name] = await scoring
    else:
        scores.update(zip(waited, await asyncio.gather(*waited.values()), strict=True))
    _keep_to_scale(scorers, scores)
    if composites:
        for name, composite in composites:
            scores[name] = _combined(composite, case, scores)
        _keep_to_scale(scorers, scores)
    return replace(trial, scores=scores)


def _silence_as_failure(trial: Trial) -> Trial:
    """Return the trial as failed if one of its answers has neither text nor calls, as that is of no use to a user."""
    if trial.error is not None:
        return trial
    for number, turn in enumerate(trial.invocations, start=1):
        if turn.is_silent:
            said = "the answer has neither text nor tool calls"
            if len(trial.invocations) > 1:
                said = f"turn {number}: {said}"
            return replace(trial, error=TrialError(ErrorKind.PROTOCOL, said))
    return trial


ROUNDING = 1e-9
"""A computed score that misses the end of its scale by at most this is set to that end."""


def _keep_to_scale(scorers: Sequence[Scorer], scores: dict[str, Score]) -> None:
    """Replace, in place, each score outside its scale by an unmeasured one, as it would decide wrongly.

    A user's metric may return anything, and the statistics do not hold for a 7 on a scale from 0 to 1.
    """
    for scorer in scorers:
        name, scale = scorer.criterion.name, scorer.criterion.scale
        score = scores.get(name)
        if score is None or score.value is None:
            continue
        low, high = scale.range
        if low <= score.value <= high and math.isfinite(score.value):
            continue
        if low - ROUNDING <= score.value <= high + ROUNDING and math.isfinite(score.value):
            scores[name] = replace(score, value=min(max(score.value, low), high))
            continue
        ends = f"{low:g} to {high:g}"
        if high == math.inf:
            ends = f"{low:g} and up"
        scores[name] = Score(None, error=f"the score {score.value:g} is outside its scale ({scale.value}: {ends})")


def _decided_by(trial: Trial, broken: Mapping[str, Score]) -> Trial:
    """Return the trial with the hard criteria that it breaks; an infrastructure error then does not matter."""
    if trial.failed:
        return replace(trial, scores=broken)
    return replace(trial, scores=broken, error=None)


def _in_earlier_attempt(score: Score) -> Score:
    return replace(score, reason=f"{score.reason} (in an earlier attempt, which infrastructure ended)".strip())


async def _broken_in(
    scorers: Sequence[Scorer], case: Case, performance: TrialOutput, judge: Any, *, in_loop: bool
) -> Mapping[str, Score]:
    """Return the hard criteria that are broken in the turns before a failure; that others hold is not known."""
    if not performance.invocations:
        return {}
    case = case.as_held(performance.invocations)
    broken = {}
    for scorer in scorers:
        if scorer.criterion.hard:
            score = await _score(scorer, case, performance, judge, in_loop=in_loop)
            if _blocks(score):
                broken[scorer.criterion.name] = score
    return broken


def _blocks(score: Score | None) -> bool:
    return score is not None and score.value is not None and score.value < 1.0


def score_recorded(scorers: Sequence[Scorer], case: Case, trial: Trial) -> Trial:
    """Return the trial with its scores without awaiting anything; only if no scorer needs a judge or the agent's
    interpreter."""
    scoring = score_trial(scorers, case, trial)
    try:
        scoring.send(None)
    except StopIteration as finished:
        scored: Trial = finished.value
        return scored
    scoring.close()
    raise AssertionError("a judge or another process was asked, but there is none")


async def _score(scorer: Scorer, case: Case, performance: TrialOutput, judge: Any, *, in_loop: bool) -> Score:
    metric = scorer.for_case(case)
    unseen = _unseen(metric, performance)
    if unseen is not None and not (metric.absence and _is_built_in(metric)):
        return unseen
    if isinstance(metric, Judged):
        score = await judged_score(metric, case, performance, judge)
    elif in_loop:
        score = await off_loop(_computed, metric, metric.score, case, performance)
    else:
        score = _computed(metric, metric.score, case, performance)
    if unseen is None or _blocks(score):
        return score  # a forbidden thing was done, whatever was not recorded
    return unseen


async def judged_score(metric: Judged[Any], case: Case, performance: TrialOutput, judge: Any) -> Score:
    """Return the score of a metric that may ask a judge, with the models that answered."""
    if judge is None or not metric.needs_judge:
        return _computed(metric, metric.score, case, performance)
    with noting_models() as answered:
        try:
            score = _as_score(await metric.judge_score(case, performance, judge))
        except (Exception, SystemExit) as error:  # noqa: BLE001  a user's metric may raise anything
            score = _failed(metric, error)
    return replace(score, judges=tuple(sorted(answered)))


def _computed(metric: Metric[Any], compute: Callable[..., object], *given: object) -> Score:
    """Return what a metric computes; whatever a user's metric raises or returns becomes a score."""
    try:
        return _as_score(compute(*given))
    except (Exception, SystemExit) as error:  # noqa: BLE001  a user's metric may raise anything
        return _failed(metric, error)


def _as_score(answer: object) -> Score:
    if isinstance(answer, Score):
        return answer
    return checked(answer)


def _failed(metric: Metric[Any], error: BaseException) -> Score:
    """Return the missing score of a user's metric. In a built-in metric, an exception is a defect of the gate: it is
    raised again, since it must not look like a missing score."""
    if _is_built_in(metric):
        raise error
    return Score(None, error=f"the metric raised {described(error)}")


def _unseen(metric: Metric[Any], performance: TrialOutput) -> Score | None:
    """Return an error score if unrecorded parts keep a metric from measuring a trial; None if it needs none of them."""
    lacking: set[str] = set()
    for turn in performance.invocations:
        lacking.update(turn.unseen)
    if not lacking:
        return None
    reads = set(metric.reads)
    if metric.needs_calls:
        reads.add(CALLS)
        if isinstance(metric, Judged):
            reads |= {ARGUMENTS, RESULTS}
    missing = [UNRECORDED[part] for part in PARTS if part in lacking & reads]
    if not missing:
        return None
    lacking_parts = " and ".join(missing)
    return Score(None, error=f"not recorded: {lacking_parts}; let the trace hold content, or return every call")


UNRECORDED = {
    RESPONSE: "what the agent answered",
    CALLS: "whether tools were called",
    ARGUMENTS: "the arguments of every tool call",
    RESULTS: "the result of every tool call",
}


def _combined(metric: Composite[Any], case: Case, scores: Mapping[str, Score]) -> Score:
    """Return the score that is computed from others; whoever judged one of its parts judged it, too."""
    answered: set[tuple[str, str]] = set()
    for part in metric.parts:
        if part in scores:
            answered.update(scores[part].judges)
    score = _computed(metric, metric.combine, case, scores)
    return replace(score, judges=tuple(sorted(answered)))


def _is_built_in(metric: Metric[Any]) -> bool:
    return type(metric).__module__.startswith("gate.")
