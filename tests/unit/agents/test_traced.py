"""What a trace adds to an answer: the answer's own words stand, and where the two differ is said."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from gate.agents.base import Agent, AgentFailure, AgentOptions, Request, TraceOptions
from gate.agents.traced import (
    DIFFERENT_CALLS,
    DIFFERENT_USAGE,
    FAILED_TRACE,
    FURTHER_CALLS,
    TracedAgent,
    complete,
    joined,
)
from gate.model import Case, ErrorKind, Invocation, Part, ToolCall, Trial, Turn, Usage
from gate.pipeline.execute import Job, execute
from gate.traces import TracedTurn
from gate.traces.receiver import AwaitedTurn, Receiver

SEEN = Invocation(
    response=(Part("from the trace"),),
    tool_calls=(ToolCall("lookup", {"n": 1}, "c1", "ok", duration=0.5),),
    usage=Usage(10, 5, model="m", model_calls=2),
    reports_calls=True,
)


def traced(seen: Invocation = SEEN, **more: Any) -> TracedTurn:
    return TracedTurn(seen, **more)


def test_a_bare_text_gets_calls_and_usage() -> None:
    whole, differing = complete(Invocation(user="q", response=(Part("said"),), duration=1.5), traced())
    assert (whole.user, whole.text, whole.duration) == ("q", "said", 1.5)
    assert whole.tool_calls == SEEN.tool_calls
    assert whole.usage == SEEN.usage
    assert whole.reports_calls
    assert not differing


def test_an_answer_without_text_gets_the_traces() -> None:
    assert complete(Invocation(), traced())[0].text == "from the trace"


def test_calls_of_the_answer_stand_and_get_what_they_lack() -> None:
    own = Invocation(tool_calls=(ToolCall("lookup", {"n": 2}),), usage=Usage(cost_usd=0.1), reports_calls=True)
    whole, differing = complete(own, traced())
    assert whole.tool_calls == (ToolCall("lookup", {"n": 2}, None, "ok", duration=0.5),)
    assert whole.usage == replace(SEEN.usage, cost_usd=0.1)  # type: ignore[type-var]
    assert not differing


def test_other_calls_and_counts_are_said() -> None:
    own = Invocation(tool_calls=(ToolCall("lookup"), ToolCall("other")), usage=Usage(11, 5), reports_calls=True)
    whole, differing = complete(own, traced(error="down"))
    assert whole.tool_calls == own.tool_calls
    assert whole.usage is not None
    assert whole.usage.input_tokens == 11
    assert differing == [DIFFERENT_CALLS, DIFFERENT_USAGE, FAILED_TRACE]


def test_what_the_trace_would_not_show_is_unseen_only_if_the_answer_is_silent() -> None:
    hidden = traced(replace(SEEN, tool_calls=(), reports_calls=False, unseen=("calls", "arguments")))
    assert complete(Invocation(), hidden)[0].unseen == ("calls", "arguments")
    told = Invocation(reports_calls=True)
    assert complete(told, hidden)[0].unseen == ()
    assert complete(told, hidden)[1] == []


def test_several_turns_of_one_request_are_one() -> None:
    whole = joined([traced(), traced()])
    assert len(whole.invocation.tool_calls) == 2
    assert whole.invocation.usage is not None
    assert whole.invocation.usage.input_tokens == 20
    unknown = joined([traced(replace(SEEN, usage=None)), traced()])
    assert unknown.invocation.usage is None


@pytest.mark.parametrize("told", [(), (ToolCall("lookup", {"n": 2}),), (ToolCall("other"),)])
def test_a_call_that_only_the_trace_shows_was_made(told: tuple[ToolCall, ...]) -> None:
    """An answer that keeps a call to itself hides it from no criterion."""
    seen = replace(SEEN, tool_calls=(*SEEN.tool_calls, ToolCall("wipe", {})))
    whole, differing = complete(Invocation(tool_calls=told, reports_calls=True), traced(seen))
    assert [call.name for call in whole.tool_calls][:2] == ["lookup", "wipe"]
    assert {call.name for call in told} <= {call.name for call in whole.tool_calls}
    assert differing == [FURTHER_CALLS]
    assert whole.tool_calls[0].args == ({"n": 2} if told[:1] == (ToolCall("lookup", {"n": 2}),) else {"n": 1})


def test_half_a_trace_does_not_say_that_there_were_no_other_calls() -> None:
    half, _ = complete(Invocation(), traced(), whole=False)
    assert "calls" in half.unseen
    assert not half.reports_calls
    told, _ = complete(Invocation(tool_calls=(ToolCall("lookup"),), reports_calls=True), traced(), whole=False)
    assert told.unseen == ()


def test_what_one_of_several_turns_would_not_show_is_unseen() -> None:
    hidden = traced(replace(SEEN, tool_calls=(), reports_calls=False, unseen=("calls",)))
    assert joined([hidden, traced()]).invocation.unseen == ("calls",)
    assert "calls" in complete(Invocation(), joined([hidden, traced()]))[0].unseen


class Failing(Agent):
    """Fails after it was asked, or never answers."""

    Options = AgentOptions

    def __init__(self, failure: AgentFailure | None) -> None:
        self.failure = failure

    @classmethod
    def make(cls, options: Any, **_: Any) -> Agent:
        raise NotImplementedError

    async def answer(self, request: Request) -> Invocation:
        if self.failure is None:
            await asyncio.Event().wait()
        assert self.failure is not None
        raise self.failure


@pytest.mark.parametrize(
    ("failure", "names"),
    [
        (AgentFailure(ErrorKind.UNREACHABLE, "busy", transient=True), ["drop"]),
        (AgentFailure(ErrorKind.CRASH, "boom", turn=Invocation(tool_calls=(ToolCall("look"),))), ["drop", "look"]),
        (None, ["drop"]),
    ],
)
def test_calls_that_the_trace_of_a_failed_turn_shows_were_made(
    monkeypatch: pytest.MonkeyPatch, failure: AgentFailure | None, names: list[str]
) -> None:
    """Also in a turn that took too long."""
    spans = [object()]

    class Arrived(Receiver):
        async def collect(self, turn: AwaitedTurn, wait: float, *, failed: bool = False) -> list[Any]:
            self.forget(turn)
            return spans

    dropped = Invocation(tool_calls=(ToolCall("drop"),), reports_calls=True)
    monkeypatch.setattr("gate.traces.conversation_of", lambda pieces: SimpleNamespace(turns=[traced(dropped)]))

    async def main() -> list[Trial]:
        async with Arrived() as receiver:
            agent = TracedAgent(Failing(failure), receiver, TraceOptions())
            jobs = [Job(Case("c", (Turn("go"),)), 1)]
            async with aclosing(execute(agent, jobs, concurrency=1, timeout=0.2, retries=0)) as finished:
                return [trial async for trials in finished for trial in trials]

    (trial,) = asyncio.run(main())
    assert trial.error is not None
    assert trial.error.kind is (ErrorKind.TIMEOUT if failure is None else failure.kind)
    assert [call.name for turn in trial.invocations for call in turn.tool_calls] == names


def test_a_turn_that_failed_without_a_trace_is_no_turn_without_spans() -> None:
    refused = AgentFailure(ErrorKind.UNREACHABLE, "connection refused", transient=True)

    async def main() -> list[str]:
        async with Receiver() as receiver:
            agent = TracedAgent(Failing(refused), receiver, TraceOptions(wait=0.01))
            jobs = [Job(Case("c", (Turn("go"),)), 1)]
            async with aclosing(execute(agent, jobs, concurrency=1, timeout=5, retries=0)) as finished:
                assert [trial.failed async for trials in finished for trial in trials] == [False]
            return agent.notes

    assert asyncio.run(main()) == []
