"""Scores conversations by the criteria of CI that need no expectations, and redacts them before they are stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from time import time
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from gate.decision.outcomes import RATE_METRIC, holds, passed
from gate.decision.unseen import without_unseen
from gate.metrics.base import mean
from gate.metrics.custom.metric import InAgentMetric
from gate.model import (
    Case,
    Criterion,
    Direction,
    ErrorKind,
    Invocation,
    Part,
    Score,
    ToolCall,
    Trial,
    TrialError,
    Turn,
    Usage,
)
from gate.monitor.model import MAX_PREVIEW_CHARS, Observation, WatchedTrace
from gate.records import redacted
from gate.scoring.score import Scorer, score_recorded, score_trial
from gate.security.limits import cut
from gate.security.redact import Redactor
from gate.system.serialize import pack_invocations

if TYPE_CHECKING:
    from gate.judges.client import Judge

MAX_WHY_CHARS = 300
MAX_KEPT_BYTES = 200_000
"""Size limit of a conversation that is stored whole."""
MOST_TURNS = 200
"""Turns of a conversation that are scored; of a longer one the first are scored, and it counts as incomplete."""
NO_QUESTION = "the trace does not hold the user's message: content capture is off"


PROBE = WatchedTrace(
    "probe",
    (
        Invocation(
            "Where is my order 12?",
            (Part("It was sent on Monday."),),
            (ToolCall("find_order", {"order": 12}, result="sent"),),
            usage=Usage(100, 10, 0.001, 1),
            duration=1.0,
            reports_calls=True,
        ),
    ),
)
"""An answer without expectations."""


class Scoring(Struct, frozen=True):
    """The criteria that apply in production, and those that are skipped."""

    scorers: tuple[Scorer, ...]
    skipped: Mapping[str, str] = {}
    """Name → the reason."""

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        return tuple(scorer.criterion for scorer in self.scorers)

    @property
    def blocking(self) -> list[Criterion]:
        return [criterion for criterion in self.criteria if criterion.blocking]

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of everything that affects a score or the outcome of a trace."""
        parts = [(c.name, c.fingerprint, c.threshold, c.limit, c.pass_threshold, c.blocking) for c in self.criteria]
        return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def scoring_for(scorers: Sequence[Scorer]) -> Scoring:
    """Return the scoring without criteria that compare trials, or need a reference, case options or the agent."""
    kept: list[Scorer] = []
    skipped: dict[str, str] = {}
    for scorer in scorers:
        why = _why_skipped(scorer)
        if why:
            skipped[scorer.criterion.name] = why
        else:
            kept.append(replace(scorer, by_case={}))
    while True:
        names = {scorer.criterion.name for scorer in kept}
        lost = [scorer for scorer in kept if not names.issuperset(scorer.parts)]
        if not lost:
            return Scoring(tuple(kept), skipped)
        for scorer in lost:
            kept.remove(scorer)
            skipped[scorer.criterion.name] = "one of its parts is skipped"


def _why_skipped(scorer: Scorer) -> str:
    metric = scorer.metric
    if metric.needs_others or scorer.criterion.metric == RATE_METRIC:
        return "the monitor counts the pass rate itself"
    if metric.over_trials:
        return "it compares trials of one case"
    if isinstance(metric, InAgentMetric):
        return "it runs in the agent's interpreter"
    if metric.missing:
        return f"only cases give it {metric.missing}"
    if not scorer.needs_judge and not scorer.parts and _says_nothing(scorer):
        return "it needs a reference, and production has none"
    return ""


def _says_nothing(scorer: Scorer) -> bool:
    """True if the criterion does not apply to an answer without expectations."""
    case, trial = _trial(PROBE)
    score = score_recorded([scorer], case, trial).scores.get(scorer.criterion.name)
    return score is not None and score.does_not_apply


class Observer:
    """Scores conversations by one set of criteria."""

    def __init__(self, scoring: Scoring, redactor: Redactor, judge: Judge | None = None) -> None:
        self.scoring, self._redactor, self._judge = scoring, redactor, judge

    async def observe(self, conversations: Sequence[WatchedTrace]) -> list[Observation]:
        """Score conversations, in their order. Never raises because of an agent or a judge."""
        if self._judge is None:
            return [self.observe_now(conversation) for conversation in conversations]
        return [*await asyncio.gather(*map(self._observed, conversations))]

    async def _observed(self, conversation: WatchedTrace) -> Observation:
        if conversation.unmeasured:
            return self._unmeasured(conversation)
        case, trial = _trial(conversation)
        return self._observation(conversation, case, await score_trial(self.scoring.scorers, case, trial, self._judge))

    def observe_now(self, conversation: WatchedTrace) -> Observation:
        """Score one conversation if no criterion needs a judge."""
        if conversation.unmeasured:
            return self._unmeasured(conversation)
        case, trial = _trial(conversation)
        return self._observation(conversation, case, score_recorded(self.scoring.scorers, case, trial))

    def _unmeasured(self, conversation: WatchedTrace) -> Observation:
        why = self._shown(conversation.unmeasured, MAX_WHY_CHARS)
        return Observation(conversation.trace, _end_of(conversation), None, None, why=why)

    def _observation(self, conversation: WatchedTrace, case: Case, trial: Trial) -> Observation:
        criteria = self.scoring.criteria
        if conversation.lacks_question:
            trial = _without_judged(trial, self.scoring.scorers)
        trial = without_unseen(criteria, [trial], reported=False)[0]
        outcome = passed(trial, case, criteria)
        values: dict[str, float] = {}
        applied = []
        judges = {}
        for name, score in trial.scores.items():
            if score.value is not None:
                values[name] = score.value
            if score.value is not None or score.error:
                applied.append(name)
            if score.judges:
                judges[name] = score.judges
        query = output = why = ""
        for turn in conversation.invocations:
            query = query or turn.user
            output = turn.text or output
        kept = b""
        if not outcome:
            why = self._shown(_why(trial, case, criteria), MAX_WHY_CHARS)
        if outcome is False:
            kept = self._kept(trial)
        return Observation(
            trace=conversation.trace,
            at=_end_of(conversation),
            passed=outcome,
            average=_average(criteria, values),
            scores=values,
            why=why,
            query=self._shown(query, MAX_PREVIEW_CHARS),
            output=self._shown(output, MAX_PREVIEW_CHARS),
            applied=tuple(applied),
            kept=kept,
            judges=judges,
        )

    def _shown(self, text: str, most: int) -> str:
        """Return text in one line, redacted before it is cut, so that no half of a secret remains."""
        near = text[: 20 * most]
        return cut(" ".join(self._redactor.redact(near).split()), most)

    def _kept(self, trial: Trial) -> bytes:
        kept = pack_invocations(redacted(trial, self._redactor).invocations)
        return kept if len(kept) <= MAX_KEPT_BYTES else b""


def _end_of(conversation: WatchedTrace) -> float:
    """Return the time of a trace; now, if it has none."""
    return time() if conversation.at is None else conversation.at


def _trial(conversation: WatchedTrace) -> tuple[Case, Trial]:
    turns = tuple(conversation.invocations[:MOST_TURNS])
    durations = [turn.duration for turn in turns if turn.duration is not None]
    error = None
    if conversation.error is not None:
        error = TrialError(ErrorKind.CRASH, conversation.error)
    duration = sum(durations) if durations else None
    case = Case(conversation.trace, tuple([Turn(turn.user) for turn in turns]))
    return case, Trial(case.id, 1, invocations=turns, error=error, duration=duration)


def _without_judged(trial: Trial, scorers: Sequence[Scorer]) -> Trial:
    """Return the trial with judged scores as not measured, except that something forbidden was seen."""
    scores = dict(trial.scores)
    for scorer in scorers:
        name = scorer.criterion.name
        score = scores.get(name)
        if score is None or not scorer.needs_judge:
            continue
        if not scorer.metric.absence or score.value is None or score.value >= 1.0:
            scores[name] = Score(None, error=NO_QUESTION)
    return replace(trial, scores=scores)


def _average(criteria: Sequence[Criterion], values: dict[str, float]) -> float | None:
    found = []
    for criterion in criteria:
        value, (low, high) = values.get(criterion.name), criterion.scale.range
        if value is not None and criterion.scale.is_bounded:
            share = (value - low) / (high - low)
            if criterion.direction is Direction.LOWER:
                share = 1 - share
            found.append(share)
    return mean(found) if found else None


def _why(trial: Trial, case: Case, criteria: Sequence[Criterion]) -> str:
    """Return the first blocking criterion that failed or was not measured, with its reason."""
    if trial.error is not None:
        return f"the agent failed: {trial.error.message}"
    for wanted in (False, None):
        for criterion in criteria:
            score: Any = trial.scores.get(criterion.name)
            if criterion.blocking and holds(criterion, case, score) is wanted:
                said = "" if score is None else score.error or score.reason
                return f"{criterion.name}: {said or 'not measured'}"
    return "no criterion applies"
