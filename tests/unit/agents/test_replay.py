"""Recorded trials, served by case and number."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gate.agents.base import create, parse_options
from gate.model import Case, End, ErrorKind, Invocation, Part, RecordedTrial, Trial, TrialError, Turn
from gate.pipeline.execute import Job, execute


def said(*texts: str) -> tuple[Invocation, ...]:
    return tuple(Invocation(response=(Part(text),), duration=1.5) for text in texts)


RECORDED = (
    RecordedTrial("a", 7, said("second")),
    RecordedTrial("a", 3, said("first")),
    RecordedTrial("b", 0, said("one", "two")),
    RecordedTrial("c", 0, (), error="it crashed"),
    RecordedTrial("d", 0, (), error="RateLimitError: Error code: 429"),
)


def replay(case: Case, number: int) -> Trial:
    async def main() -> Trial:
        kind, options = parse_options({"replay": True})
        async with create(kind, options, root=Path(), environment={}, recorded=RECORDED) as agent:
            jobs = [Job(case, number)]
            (trials,) = [trials async for trials in execute(agent, jobs, concurrency=1, timeout=5, retries=2)]
            (trial,) = trials
            return trial

    return asyncio.run(main())


def case(name: str, turns: int = 1) -> Case:
    return Case(name, tuple(Turn("hi") for _ in range(turns)))


def test_trials_are_numbered_in_the_order_of_their_recording() -> None:
    assert replay(case("a"), 1).invocations[0].text == "first"
    assert replay(case("a"), 2).invocations[0].text == "second"
    assert replay(case("a"), 2).duration == 1.5


def test_turns_are_served_in_order() -> None:
    assert [i.text for i in replay(case("b", 2), 1).invocations] == ["one", "two"]


def test_what_was_not_recorded_is_an_error_and_not_repeated() -> None:
    for trial, message in (
        (replay(case("a"), 3), "trial 3 was not recorded; there are 2 of this case"),
        (replay(case("z"), 1), "trial 1 was not recorded; there are 0 of this case"),
        (replay(case("b", 3), 1), "turn 3 was not recorded; trial 1 has 2"),
    ):
        assert trial.error is not None
        assert trial.error.kind is ErrorKind.MISSING
        assert not trial.measured, "that a recording lacks it says nothing of the agent"
        assert trial.error.message == message
        assert trial.attempts == 1


def test_what_was_recorded_as_failed_is_a_failed_trial_unless_a_provider_refused() -> None:
    crashed = replay(case("c"), 1)
    assert crashed.error == TrialError(ErrorKind.CRASH, "recorded as failed: it crashed")
    assert crashed.failed
    limited = replay(case("d"), 1)
    assert limited.error is not None
    assert (limited.error.kind, limited.end) == (ErrorKind.LIMIT, End.UNMEASURED)
