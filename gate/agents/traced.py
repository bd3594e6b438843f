"""Runs an agent of any kind within a trace, and completes its answers from the spans."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from gate.agents.base import Agent, AgentFailure, AgentOptions, Request, TraceOptions
from gate.formats.answers import overlaid
from gate.model import ARGUMENTS, CALLS, PARTS, RESULTS, Invocation, ToolCall, Usage, total_usage

if TYPE_CHECKING:
    from gate.traces import TracedTurn
    from gate.traces.receiver import AwaitedTurn, Receiver

HOPELESS = 8
"""Turns without any span after which later turns wait no longer than `SHORT_WAIT`."""
SHORT_WAIT = 0.2
HANDED = {
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_LOGS_EXPORTER": "otlp",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_BSP_SCHEDULE_DELAY": "200",
    "OTEL_BLRP_SCHEDULE_DELAY": "200",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_AND_EVENT",
}
"""Environment variables for an agent that the gate starts, unless `agent.env` overrides them."""


def exporting(options: AgentOptions, receiver: Receiver) -> AgentOptions:
    """Return the options of an agent that the gate starts, with variables that make it export to the receiver."""
    env = {**HANDED, **options.env, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint}
    return options.model_copy(update={"env": env})


class TracedAgent(Agent):
    """Wraps another agent and traces its turns."""

    Options = AgentOptions

    def __init__(self, inner: Agent, receiver: Receiver, options: TraceOptions) -> None:
        self._inner, self._receiver, self._wait = inner, receiver, options.wait
        self._silent = 0
        self.differing: Counter[str] = Counter()
        """Differences between an answer and its trace → number of turns."""
        self.turns = 0
        self.reports_calls = inner.reports_calls
        self.explained = inner.explained

    @property
    def starts_clock(self) -> bool:  # type: ignore[override]  # a class attribute there, a property here
        return self._inner.starts_clock

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._inner.__aexit__(*error)

    async def open_session(self, request: Request) -> None:
        await self._inner.open_session(request)

    def process_of(self, session_id: str) -> str:
        return self._inner.process_of(session_id)

    async def close_session(self, session_id: str) -> None:
        await self._inner.close_session(session_id)

    async def answer(self, request: Request) -> Invocation:
        turn = self._receiver.expect()
        env = {
            **request.environment,
            "TRACEPARENT": turn.traceparent,
            "OTEL_EXPORTER_OTLP_ENDPOINT": self._receiver.endpoint_of(turn),
        }
        try:
            answer = await self._inner.answer(replace(request, traceparent=turn.traceparent, environment=env))
            traced = await self._spans_of(turn, request)
        except asyncio.CancelledError:
            if not request.clock.is_over:
                raise
            failure = request.clock.overrun()
            failure.turn = self._before_failure(None, await self._spans_of(turn, request, failed=True))
            raise failure from None
        except AgentFailure as failure:
            traced = await self._spans_of(turn, request, failed=True)
            failure.turn = self._before_failure(failure.turn, traced)
            raise
        finally:
            self._receiver.forget(turn)
        if not traced and not answer.shows_calls and not self.reports_calls:
            return replace(answer, unseen=(CALLS,))
        if not traced:
            return answer
        completed, differing = complete(answer, joined(traced), whole=turn.complete and not turn.full)
        self.differing.update(differing)
        for what in differing:
            request.log.add(f"gate: {what}")
        return completed

    async def _spans_of(self, turn: AwaitedTurn, request: Request, *, failed: bool = False) -> Sequence[TracedTurn]:
        """Return what the spans of a turn show. Waiting for them is not the agent's time.

        A turn that failed may have no trace, or half of one: the notes do not count it.
        """
        from gate.traces import conversation_of  # weight: only where traces are received

        request.clock.stop()
        pieces = await self._receiver.collect(turn, self._patience(), failed=failed)
        self.turns += not failed
        self._silent += 1
        if pieces:
            self._silent = 0
        return conversation_of(pieces).turns

    def _before_failure(self, stated: Invocation | None, traced: Sequence[TracedTurn]) -> Invocation | None:
        """Return what the agent did in a turn before it failed, as far as its answer and its spans show."""
        if not traced:
            return stated
        return complete(stated or Invocation(), joined(traced), whole=False)[0]

    def _patience(self) -> float:
        if self._silent >= HOPELESS and not self._receiver.seen:
            return min(self._wait, SHORT_WAIT)
        return self._wait

    @property
    def notes(self) -> list[str]:
        """Notes for the reader on the traces of the run."""
        receiver, found = self._receiver, []
        if self.turns and not receiver.seen:
            found.append(f"agent.traces: no span came in {self.turns:,} turns: does the agent export to {PLACE}?")
        elif receiver.late:
            found.append(f"agent.traces: {receiver.late:,} traces were not complete in time (agent.traces.wait)")
        if receiver.unknown:
            found.append(f"agent.traces: {receiver.unknown:,} spans of other traces were dropped: {PROPAGATE}")
        if receiver.left_out:
            found.append(f"agent.traces: {receiver.left_out:,} spans beyond the bounds of a turn were left out")
        if receiver.refused:
            told = ", ".join(f"{reason} ({number:,})" for reason, number in receiver.refused.items())
            found.append(f"agent.traces: not read: {told}")
        found += [f"in {number:,} of {self.turns:,} turns {what}" for what, number in self.differing.items()]
        return found


PLACE = "OTEL_EXPORTER_OTLP_ENDPOINT"
PROPAGATE = "does the agent continue the trace of its `traceparent`?"


def joined(turns: Sequence[TracedTurn]) -> TracedTurn:
    """Return the turns that one request led to as one: calls and texts in order, usage added up."""
    last = turns[-1]
    if len(turns) == 1:
        return last
    said = [turn.invocation for turn in turns]
    unseen = set(chain.from_iterable([one.unseen for one in said]))
    whole = replace(
        last.invocation,
        tool_calls=tuple(chain.from_iterable([one.tool_calls for one in said])),
        usage=total_usage(one.usage for one in said),
        reports_calls=all(one.reports_calls for one in said),
        unseen=tuple([part for part in PARTS if part in unseen]),
    )
    return replace(last, invocation=whole)


DIFFERENT_CALLS = "the answer names other calls than its trace; the answer's are scored"
FURTHER_CALLS = "the trace shows calls that the answer does not name; the calls of both are scored"
DIFFERENT_USAGE = "the answer tells other token counts than its trace; the answer's are kept"
FAILED_TRACE = "the trace says that the agent failed, and it answered; the answer is scored"


def complete(answer: Invocation, traced: TracedTurn, *, whole: bool = True) -> tuple[Invocation, list[str]]:
    """Return the answer completed from its trace, and how the two differ. What the answer states takes precedence.

    A call that only the trace shows counts, too. ``whole``: True if every span of the turn arrived; otherwise calls may
    be missing.
    """
    seen, differing = traced.invocation, []
    further = Counter(call.name for call in seen.tool_calls) - Counter(call.name for call in answer.tool_calls)
    of_trace = bool(further) or not answer.shows_calls
    if of_trace:
        calls, reports = _united(answer.tool_calls, seen.tool_calls), seen.reports_calls and whole
        if answer.shows_calls:
            differing.append(FURTHER_CALLS)
    else:
        calls, reports = _filled(answer.tool_calls, seen.tool_calls), answer.reports_calls
        if seen.reports_calls and [call.name for call in calls] != [call.name for call in seen.tool_calls]:
            differing.append(DIFFERENT_CALLS)
    usage = overlaid(seen.usage, answer.usage)
    if _differ(answer.usage, seen.usage):
        differing.append(DIFFERENT_USAGE)
    if traced.error is not None:
        differing.append(FAILED_TRACE)
    lacking: tuple[str, ...] = ()
    if of_trace:
        hidden = set(seen.unseen)
        if not whole:
            hidden.add(CALLS)
        lacking = tuple([part for part in (CALLS, ARGUMENTS, RESULTS) if part in hidden])
    completed = replace(
        answer,
        response=answer.response or seen.response,
        tool_calls=calls,
        intermediate=answer.intermediate or seen.intermediate,
        usage=usage,
        reports_calls=reports,
        unseen=lacking,
    )
    return completed, differing


def _united(calls: tuple[ToolCall, ...], seen: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Return the trace's calls, completed by the answer's, and the calls that only the answer has."""
    own, found = list(calls), list[ToolCall]()
    for one in seen:
        place = next((place for place, call in enumerate(own) if call.name == one.name), None)
        if place is None:
            found.append(one)
        else:
            found.append(_with(own.pop(place), one))
    return (*found, *own)


def _filled(calls: tuple[ToolCall, ...], seen: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Return the answer's calls with the trace's results, errors and durations, if both have the same names in
    order."""
    if [call.name for call in calls] != [call.name for call in seen]:
        return calls
    return tuple([_with(call, one) for call, one in zip(calls, seen, strict=True)])


def _with(call: ToolCall, one: ToolCall) -> ToolCall:
    """Return the call as the answer states it, completed by its trace."""
    further = {}
    for name in ("args", "result", "error", "duration"):
        if getattr(call, name) is None:
            further[name] = getattr(one, name)
    return replace(call, **further)


def _differ(stated: Usage | None, seen: Usage | None) -> bool:
    """True if both report a token count and the counts differ."""
    if stated is None or seen is None:
        return False
    pairs = ((stated.input_tokens, seen.input_tokens), (stated.output_tokens, seen.output_tokens))
    return any(one is not None and other is not None and one != other for one, other in pairs)
