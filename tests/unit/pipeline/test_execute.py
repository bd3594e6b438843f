"""The runner against one small scripted agent: order, retries, sessions, limits, cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gate.agents.base import Agent, AgentFailure, AgentOptions, Request
from gate.errors import MeasureError
from gate.model import Case, ErrorKind, Invocation, Part, Side, ToolCall, Trial, Turn
from gate.pipeline.execute import LONGEST_PAUSE, MOST_PATIENCE, Job, execute
from tests.patience import idling, until


class Scripted(Agent):
    """Answers with what a function makes of the request, after ``delay`` seconds."""

    Options = AgentOptions

    def __init__(self, script: Callable[[Request], str] = lambda request: "yes", delay: float = 0.0) -> None:
        self.script = script
        self.delay = delay
        self.requests: list[Request] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.opened: list[str] = []
        self.closed: list[str] = []

    @classmethod
    def make(cls, options: Any, *, root: Path, environment: Any, recorded: Any) -> Scripted:
        return cls()

    async def open_session(self, request: Request) -> None:
        self.opened.append(request.session_id)

    async def close_session(self, session_id: str) -> None:
        self.closed.append(session_id)

    async def answer(self, request: Request) -> Invocation:
        self.requests.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.delay)
            return Invocation(user=request.user, response=(Part(self.script(request)),), duration=0.25)
        finally:
            self.in_flight -= 1


def case(name: str, *turns: str) -> Case:
    return Case(name, tuple(Turn(turn) for turn in turns or ("hello",)))


def jobs(count: int) -> list[Job]:
    return [Job(case(f"c{index}"), 1) for index in range(count)]


async def collect(agent: Agent, todo: Iterable[Job], **options: Any) -> list[Trial]:
    settings: dict[str, Any] = {"concurrency": 4, "timeout": 5.0, "retries": 2, **options}
    async with aclosing(execute(agent, todo, **settings)) as finished:
        return [trial async for trials in finished for trial in trials]


def run(agent: Agent, todo: Iterable[Job], **options: Any) -> list[Trial]:
    return asyncio.run(collect(agent, todo, **options))


def clocked(agent: Agent, todo: Iterable[Job], **options: Any) -> tuple[list[Trial], float]:
    """The trials, and the seconds that they took on a clock on which only sleeping takes time."""

    async def timed() -> tuple[list[Trial], float]:
        clock = asyncio.get_running_loop().time
        return await collect(agent, todo, **options), clock()

    return idling(timed())


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gate.pipeline.execute.FIRST_PAUSE", 0.01)


def test_every_job_becomes_one_trial_with_its_own_labels() -> None:
    todo = [Job(case("a"), 1), Job(case("a"), 2), Job(case("b"), 1, round=2, tag="confirm", side=Side.BASELINE)]
    trials = run(Scripted(), todo)
    found = {(t.case_id, t.number, t.round, t.tag, t.side) for t in trials}
    assert found == {
        ("a", 1, 1, "full", Side.CANDIDATE),
        ("a", 2, 1, "full", Side.CANDIDATE),
        ("b", 1, 2, "confirm", Side.BASELINE),
    }
    assert all(t.error is None and t.attempts == 1 and t.duration == 0.25 and not t.scores for t in trials)


def test_concurrency_is_real_and_bounded() -> None:
    agent = Scripted(delay=1)
    trials, seconds = clocked(agent, jobs(40), concurrency=20)
    assert len(trials) == 40
    assert 2 <= seconds < 2.1
    assert agent.most_in_flight == 20


def test_no_jobs_no_trials() -> None:
    assert run(Scripted(), []) == []


def test_jobs_are_taken_only_as_their_trials_are() -> None:
    taken = 0

    def endless() -> Iterator[Job]:
        nonlocal taken
        while True:
            taken += 1
            yield Job(case(f"c{taken}"), 1)

    async def take_three() -> int:
        async with aclosing(execute(Scripted(), endless(), concurrency=4, timeout=5, retries=0)) as finished:
            count = 0
            async for trials in finished:
                count += len(trials)
                await asyncio.sleep(0.02)
                if count >= 3:
                    break
        return taken - count

    assert asyncio.run(take_three()) <= 2 * 4


def test_trials_that_finish_meanwhile_come_together() -> None:
    async def sizes() -> list[int]:
        found = []
        async with aclosing(execute(Scripted(), jobs(12), concurrency=4, timeout=5, retries=0)) as finished:
            async for trials in finished:
                found.append(len(trials))
                await asyncio.sleep(0.05)
        return found

    found = asyncio.run(sizes())
    assert sum(found) == 12
    assert max(found) > 1


def test_history_is_what_both_sides_really_said() -> None:
    agent = Scripted(lambda request: f"reply {request.turn}")
    (trial,) = run(agent, [Job(case("a", "one", "two", "three"), 1)])
    assert [i.text for i in trial.invocations] == ["reply 0", "reply 1", "reply 2"]
    assert [m["content"] for m in agent.requests[-1].messages] == ["one", "reply 0", "two", "reply 1", "three"]
    assert [m["role"] for m in agent.requests[-1].messages] == ["user", "assistant"] * 2 + ["user"]
    assert len({r.session_id for r in agent.requests}) == 1
    assert trial.duration == 0.75
    assert agent.opened == agent.closed == [agent.requests[0].session_id]


def test_a_failure_in_a_later_turn_fails_the_trial_and_keeps_what_was_said() -> None:
    def script(request: Request) -> str:
        if request.turn == 1:
            raise AgentFailure(ErrorKind.CRASH, "boom")
        return "fine"

    (trial,) = run(Scripted(script), [Job(case("a", "one", "two", "three"), 1)])
    assert trial.error is not None
    assert (trial.error.kind, trial.error.message) == (ErrorKind.CRASH, "boom")
    assert [i.text for i in trial.invocations] == ["fine"]


def test_transient_failures_are_tried_again_in_a_new_session_from_the_first_turn() -> None:
    def script(request: Request) -> str:
        if request.turn == 1 and len(agent.opened) < 3:
            raise AgentFailure(ErrorKind.UNREACHABLE, "busy", transient=True)
        return "fine"

    agent = Scripted(script)
    (trial,) = run(agent, [Job(case("a", "one", "two"), 1)])
    assert trial.error is None
    assert trial.attempts == 3
    assert [r.turn for r in agent.requests] == [0, 1, 0, 1, 0, 1]
    assert len(set(agent.opened)) == 3
    assert sorted(agent.opened) == sorted(agent.closed)


def test_what_earlier_attempts_did_is_kept() -> None:
    """Also what a turn did before it failed, and in an attempt that another trial ended."""

    def script(request: Request) -> str:
        match len(agent.opened), request.turn:
            case 1, 1:
                raise AgentFailure(ErrorKind.UNREACHABLE, "busy", transient=True)
            case 2, 1:
                called = Invocation(tool_calls=(ToolCall("drop"),))
                raise AgentFailure(ErrorKind.CRASH, "taken along", collateral=True, turn=called)
            case 3, 0:
                raise AgentFailure(ErrorKind.UNREACHABLE, "busy", transient=True)
        return f"answer {len(agent.opened)}"

    agent = Scripted(script)
    (trial,) = run(agent, [Job(case("a", "one", "two"), 1)])
    assert (trial.error, trial.attempts) == (None, 3)
    said = [[(turn.user, turn.text, len(turn.tool_calls)) for turn in attempt] for attempt in trial.earlier]
    assert said == [[("one", "answer 1", 0)], [("one", "answer 2", 0), ("two", "", 1)]]


@pytest.mark.parametrize(("transient", "attempts"), [(True, 3), (False, 1)])
def test_retries_are_bounded_and_only_for_what_may_pass(transient: bool, attempts: int) -> None:
    def script(request: Request) -> str:
        raise AgentFailure(ErrorKind.UNREACHABLE, "down", transient=transient)

    (trial,) = run(Scripted(script), jobs(1))
    assert trial.error is not None
    assert trial.error.kind is ErrorKind.UNREACHABLE
    assert trial.attempts == attempts


def test_a_failure_that_another_trial_caused_does_not_count() -> None:
    def script(request: Request) -> str:
        if len(agent.requests) <= 6:
            raise AgentFailure(ErrorKind.CRASH, "taken along", collateral=True)
        return "fine"

    agent = Scripted(script)
    (trial,) = run(agent, jobs(1), retries=0)
    assert trial.error is None
    assert trial.attempts == 1


def test_innocence_ends() -> None:
    def script(request: Request) -> str:
        raise AgentFailure(ErrorKind.CRASH, "taken along", collateral=True)

    (trial,) = run(Scripted(script), jobs(1), retries=1)
    assert trial.error is not None
    assert trial.attempts == 2


def test_a_turn_has_its_time_and_a_timeout_is_not_repeated() -> None:
    agent = Scripted(delay=30)
    (trial,), seconds = clocked(agent, jobs(1), timeout=0.1)
    assert 0.1 <= seconds < 0.2
    assert trial.error is not None
    assert trial.error.kind is ErrorKind.TIMEOUT
    assert trial.error.message == "no answer within 0.1 s"
    assert trial.attempts == 1
    assert agent.in_flight == 0


def test_waiting_for_a_connection_is_not_the_agents_time() -> None:
    class Queued(Scripted):
        async def answer(self, request: Request) -> Invocation:
            request.clock.stop()
            await asyncio.sleep(0.3)
            request.clock.start()
            return await super().answer(request)

    (trial,), _ = clocked(Queued(), jobs(1), timeout=0.1)
    assert trial.error is None
    (late,), _ = clocked(Queued(delay=5), jobs(1), timeout=0.1)
    assert late.error is not None
    assert late.error.kind is ErrorKind.TIMEOUT


def test_everyone_waits_where_the_agent_asks_for_patience() -> None:
    times: list[float] = []

    def script(request: Request) -> str:
        times.append(asyncio.get_running_loop().time())
        if len(times) == 1:
            raise AgentFailure(ErrorKind.UNREACHABLE, "429", transient=True, retry_after=30)
        return "fine"

    trials, _ = clocked(Scripted(script), jobs(5))
    assert all(trial.error is None for trial in trials)
    assert len(times) == 6
    assert all(30 <= at - times[0] < 31 for at in times[1:])


def test_patience_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gate.pipeline.execute.LONGEST_PAUSE", 0.05)

    def script(request: Request) -> str:
        raise AgentFailure(ErrorKind.UNREACHABLE, "429", transient=True, retry_after=3600)

    _, seconds = clocked(Scripted(script), jobs(1))
    assert seconds < 1


def put_off(request: Request) -> str:
    raise AgentFailure(ErrorKind.UNREACHABLE, "HTTP 429", transient=True, retry_after=3600)


@pytest.mark.parametrize("retries", [2, 50])
@pytest.mark.parametrize("cases", [2, 10, 16])
def test_an_agent_that_puts_everyone_off_for_ever_is_given_up(cases: int, retries: int) -> None:
    trials, seconds = clocked(Scripted(put_off), jobs(cases), concurrency=16, retries=retries)
    assert seconds < MOST_PATIENCE + LONGEST_PAUSE
    assert len(trials) == cases
    assert {trial.error.kind for trial in trials if trial.error} == {ErrorKind.UNREACHABLE}
    said = [trial.error.message for trial in trials if trial.error and "asking the gate to wait" in trial.error.message]
    assert said or cases == retries == 2, "two trials use up their attempts before"
    assert all(message.endswith("180 s without an answer: HTTP 429") for message in said)


def test_what_was_answered_before_an_agent_puts_everyone_off_for_ever_is_kept_and_the_run_ends() -> None:
    def script(request: Request) -> str:
        return "fine" if next(asked) <= 40 else put_off(request)

    asked = count(1)
    agent = Scripted(script, delay=0.01)
    seen: list[Trial] = []

    async def collect() -> float:
        why = r"agent: it keeps asking the gate to wait.*: HTTP 429 .the run stopped"
        with pytest.raises(MeasureError, match=why):
            async with aclosing(execute(agent, jobs(1000), concurrency=16, timeout=5, retries=2)) as finished:
                async for trials in finished:
                    seen.extend(trials)
        return asyncio.get_running_loop().time()

    assert idling(collect()) < MOST_PATIENCE + LONGEST_PAUSE
    assert sum(trial.error is None for trial in seen) == 40
    assert len(agent.requests) < 200


def test_an_agent_that_answers_between_two_pauses_has_all_of_its_time() -> None:
    """It lets one request through a minute: everyone waits for longer than a silent agent is waited for."""
    free = 0.0

    def script(request: Request) -> str:
        nonlocal free
        now = asyncio.get_running_loop().time()
        if now < free:
            raise AgentFailure(ErrorKind.UNREACHABLE, "429", transient=True, retry_after=free - now)
        free = now + LONGEST_PAUSE
        return "fine"

    trials, seconds = clocked(Scripted(script), jobs(12), concurrency=12, retries=50)
    assert all(trial.error is None for trial in trials)
    assert seconds > 11 * LONGEST_PAUSE


def test_an_agent_that_is_answering_while_everyone_waits_is_not_given_up() -> None:
    busy = False

    async def one_at_a_time(request: Request) -> Invocation:
        nonlocal busy
        if busy:
            raise AgentFailure(ErrorKind.UNREACHABLE, "429", transient=True, retry_after=30)
        busy = True
        await asyncio.sleep(10 * LONGEST_PAUSE)
        busy = False
        return Invocation(duration=10 * LONGEST_PAUSE)

    agent = Scripted()
    agent.answer = one_at_a_time  # type: ignore[method-assign]
    trials, _ = clocked(agent, jobs(2), concurrency=2, retries=50, timeout=3600)
    assert all(trial.error is None for trial in trials)


def test_a_trial_that_alone_is_put_off_takes_no_other_along() -> None:
    def script(request: Request) -> str:
        return put_off(request) if request.case_id == "c3" else "fine"

    trials, _ = clocked(Scripted(script), jobs(60), concurrency=1, retries=50)
    assert [trial.case_id for trial in trials if trial.error] == ["c3"]
    assert len(trials) == 60


def test_after_the_deadline_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gate.pipeline.execute.monotonic", lambda: asyncio.get_running_loop().time())
    agent = Scripted(delay=10)
    trials, seconds = clocked(agent, jobs(100), concurrency=2, timeout=60, deadline=25)
    assert 30 <= seconds < 31, "what is in flight goes on"
    assert len(agent.requests) == len(trials) == 6
    assert clocked(Scripted(), jobs(3), deadline=-1) == ([], pytest.approx(0, abs=0.1))


def test_an_agent_that_is_down_ends_the_run_after_the_first_wave() -> None:
    def script(request: Request) -> str:
        raise AgentFailure(ErrorKind.UNREACHABLE, "refused", transient=True)

    agent = Scripted(script)
    seen: list[Trial] = []

    async def collect() -> None:
        async with aclosing(execute(agent, jobs(1000), concurrency=4, timeout=5, retries=1)) as finished:
            async for trials in finished:
                seen.extend(trials)

    with pytest.raises(MeasureError, match="none of the first 10 trials has an answer: unreachable: refused"):
        asyncio.run(collect())
    assert len(seen) >= 10
    assert len(agent.requests) < 50


def test_fast_failures_do_not_outrun_a_slow_agent_that_works() -> None:
    async def slow_unless_even(request: Request) -> Invocation:
        if int(request.case_id[1:]) % 2:
            await asyncio.sleep(20)
            return Invocation(duration=20)
        raise AgentFailure(ErrorKind.PROTOCOL, "garbage")

    agent = Scripted()
    agent.answer = slow_unless_even  # type: ignore[method-assign]
    trials, _ = clocked(agent, jobs(60), concurrency=12, timeout=60)
    assert len(trials) == 60
    assert sum(trial.error is None for trial in trials) == 30


def test_what_ends_the_run_reaches_the_caller() -> None:
    def script(request: Request) -> str:
        raise ZeroDivisionError("a defect of ours")

    with pytest.raises(ZeroDivisionError):
        run(Scripted(script), jobs(20))


def test_cancelling_leaves_nothing_in_flight() -> None:
    agent = Scripted(delay=3600)

    async def interrupted() -> int:
        async def consume() -> None:
            async with aclosing(execute(agent, jobs(50), concurrency=8, timeout=60, retries=2)) as finished:
                async for _ in finished:
                    pass

        task = asyncio.create_task(consume())
        await until(lambda: agent.in_flight == 8)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(asyncio.all_tasks())

    assert asyncio.run(interrupted()) == 1
    assert agent.in_flight == 0
    assert sorted(agent.opened) == sorted(agent.closed)
