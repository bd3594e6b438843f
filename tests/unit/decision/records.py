"""Builders of cases, criteria and trials, and a driver that answers requests at the record level."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gate.decision import Comparison, More, Settings, next_round, next_step, verdict_on
from gate.model import (
    Case,
    Criterion,
    Direction,
    ErrorKind,
    Scale,
    Score,
    Side,
    SuiteResult,
    Trial,
    TrialError,
    Verdict,
)
from gate.model.finding import Finding

TRAJECTORY = Criterion("trajectory", "tool_trajectory_avg_score", Scale.UNIT, threshold=None, pass_threshold=1.0)
RESPONSE = Criterion("response", "response_match_score", Scale.UNIT, pass_threshold=None)
FORBIDDEN = Criterion("forbidden_tools", "forbidden_tools", Scale.BINARY, hard=True, pass_threshold=1.0)
LATENCY = Criterion("latency", "latency", Scale.SECONDS, Direction.LOWER, blocks_regression=False)


def cases(n: int, **options: Any) -> list[Case]:
    return [Case(f"case-{i:02d}", (), **options) for i in range(n)]


def score(value: float | str | None) -> Score:
    return Score(None, error=value) if isinstance(value, str) else Score(value, reason=f"scored {value}")


def trial(
    case_id: str, number: int = 1, *, round: int = 1, tag: str = "full", side: Side = Side.CANDIDATE, **scores: Any
) -> Trial:
    return Trial(case_id, number, round, tag, side, scores={name: score(value) for name, value in scores.items()})


def lost_trial(case_id: str, number: int = 1, *, round: int = 1, again: bool = False) -> Trial:
    """One that infrastructure kept from being measured."""
    error = TrialError(ErrorKind.UNREACHABLE, "127.0.0.1:80: Connection refused")
    return Trial(case_id, number, round, error=error, again=again)


def failed_trial(
    case_id: str, number: int = 1, *, round: int = 1, tag: str = "full", side: Side = Side.CANDIDATE
) -> Trial:
    """One in which the agent failed."""
    return Trial(case_id, number, round, tag, side, error=TrialError(ErrorKind.TIMEOUT, "60 s without an answer"))


def stored(suite: Sequence[Case], n: int = 5, **scores: Any) -> list[Trial]:
    """``n`` equal trials of every case."""
    return [trial(case.id, number, **scores) for case in suite for number in range(1, n + 1)]


def once(suite: Sequence[Case], special: Mapping[str, Mapping[str, Any]] | None = None, **scores: Any) -> list[Trial]:
    """One epoch, with other scores for some cases."""
    return [trial(case.id, **{**scores, **(special or {}).get(case.id, {})}) for case in suite]


def judge(
    suite: Sequence[Case],
    criteria: Sequence[Criterion],
    trials: Sequence[Trial],
    baseline: Sequence[Trial] = (),
    *,
    settings: Settings | None = None,
    **options: Any,
) -> SuiteResult:
    """The verdict on what there is."""
    can_run = options.pop("can_run", False)
    known = Comparison(suite, criteria, trials, baseline, settings or Settings(), **options)
    if not can_run:
        return verdict_on(known)
    step = step_of(known)
    assert isinstance(step, SuiteResult), step
    return step


def step_of(known: Comparison) -> More | SuiteResult:
    """The trials to run next, or the result with the same verdict."""
    step = next_step(known)
    further = next_round(known)
    if isinstance(step, More):
        assert further == step
        return step
    assert further is None
    result = verdict_on(known, scheduled=True)
    assert result.verdict is step
    return result


def ask(
    suite: Sequence[Case],
    criteria: Sequence[Criterion],
    trials: Sequence[Trial],
    baseline: Sequence[Trial] = (),
    *,
    settings: Settings | None = None,
    **options: Any,
) -> More:
    """What is wanted next."""
    known = Comparison(suite, criteria, trials, baseline, settings or Settings(), **options)
    step = step_of(known)
    assert isinstance(step, More), step.cause
    return step


def follow(
    suite: Sequence[Case],
    criteria: Sequence[Criterion],
    run: Callable[[str, Side], Mapping[str, Any]],
    baseline: Sequence[Trial] = (),
    settings: Settings | None = None,
) -> tuple[SuiteResult, list[Trial]]:
    """Runs whatever is asked for until the verdict; returns it with all trials."""
    trials: list[Trial] = []
    for _ in range(60):
        known = Comparison(suite, criteria, trials, baseline, settings or Settings())
        step = step_of(known)
        if isinstance(step, SuiteResult):
            return step, trials
        for request in step.requests:
            for case_id in request.cases:
                done = sum(t.case_id == case_id and t.side is request.side for t in trials)
                for k in range(1, request.n + 1):
                    scores = run(case_id, request.side)
                    trials.append(
                        trial(case_id, done + k, round=step.round, tag=request.tag, side=request.side, **scores)
                    )
    raise AssertionError("no verdict")


def by_name(result: SuiteResult) -> dict[str, Verdict]:
    return {r.criterion.name: r.verdict for r in result.criteria}


def findings(result: SuiteResult, name: str) -> list[Finding]:
    """What the verdict on a criterion rests on."""
    row = next(r for r in result.criteria if r.criterion.name == name)
    return [found for found in row.findings if found.verdict is row.verdict]


def not_scored(lost: int, of: int, **data: Any) -> Finding:
    """The finding on a criterion that too many answers have no score of."""
    return Finding.of("trials_lost", Verdict.NOT_MEASURED, by="scoring", lost=lost, of=of, **data)
