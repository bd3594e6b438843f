"""Runs the trials that a schedule asks for, or takes recorded ones, and scores them; starts the agents of both
sides."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from msgspec.structs import replace

from gate.agents.base import Agent, create
from gate.agents.traced import TracedAgent, exporting
from gate.config.load import Config, load_config
from gate.config.resolve import Plan, read_suites
from gate.errors import ConfigError, GateError, MeasureError
from gate.judges.options import SimulatedUserOptions
from gate.metrics.custom.metric import InAgentMetric, RunInAgent
from gate.model import Case, RecordedTrial, Scenario, Side, Trial
from gate.pipeline.budget import PROBES, RunBudget, judge_of
from gate.pipeline.execute import Job, ScriptedUser, SimulatedUser, User, execute
from gate.pipeline.journal import redactor_of
from gate.pipeline.launch import own_user
from gate.records import RecordWriter, redacted, to_record
from gate.scoring.batch import Batch, Recording, ScoredBatch, ScoringSetup
from gate.scoring.executor import open_executor
from gate.scoring.off_loop import off_loop
from gate.scoring.score import score_recorded, score_trial
from gate.security.redact import Redactor
from gate.world.options import store_folder, upstreams_of

if TYPE_CHECKING:
    from gate.judges.client import Judge
    from gate.pipeline.launch import BaseAgent
    from gate.traces.receiver import Receiver
    from gate.world.world import World


T = TypeVar("T")
Recorded = tuple[Trial, bytes]
"""A redacted trial, or its digest, and its line in the record."""
JUDGE_BACKLOG = 256
"""Trials that may wait for a judge's answer before the agent gets no further ones."""


class BaseStartError(MeasureError):
    """The base commit's agent cannot be started."""


class TrialRunner:
    """The agents of both sides and the judge, started when first needed and stopped together."""

    def __init__(
        self,
        config: Config,
        plan: Plan,
        environment: Mapping[str, str],
        run_budget: RunBudget,
        base: BaseAgent | None = None,
        run_id: str = "",
        version: str = "",
    ) -> None:
        """Set up the runner; ``version``: the candidate's version at the start of the run."""
        self.config, self.plan, self.environment, self.run_budget = config, plan, environment, run_budget
        self.redactor = redactor_of(environment)
        self._base, self._run_id, self._version = base, run_id, version
        self.world: World | None = None
        """The outside world, if it is recorded or replayed."""
        self._agents: dict[Side, Agent] = {}
        self._judge: Judge | None = None
        self._simulator: Judge | None = None
        self._receiver: Receiver | None = None
        self._run_in_agent: RunInAgent | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self.world = await self._open_world()
        return self

    async def _open_world(self) -> World | None:
        options = self.config.file.world
        if options is None or self.config.agent_kind == "replay" or not self._run_id:
            return None
        from gate.world.proxy import serving  # weight: only where the outside world is recorded
        from gate.world.pruning import owner_name
        from gate.world.world import World

        upstreams = upstreams_of(options, self.environment)
        folder = store_folder(options, self.config.root, self.environment)
        owner = owner_name(self.config.root / self.config.path.name)
        world = World(options, upstreams, folder, self.redactor, self._run_id, owner)
        return await self._stack.enter_async_context(serving(world))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def judge_cost_usd(self) -> float | None:
        """The cost of the judge and the simulated user; None if neither was used or a price is unknown."""
        costs = [model.cost_usd for model in (self._judge, self._simulator) if model is not None]
        return None if not costs or None in costs else self.run_budget.judge.spent_usd

    async def run(self, jobs: Sequence[Job]) -> AsyncIterator[Recorded]:
        """Yield scored and redacted trials with their lines as they finish; fewer than requested if a budget ends.

        Under a budget of dollars or tokens the first trials run one by one until an answer reports what it used, so
        that the following ones have a price. Raises MeasureError if the first answer does not report it.
        """
        alone, budget = 0, self.run_budget
        while alone < min(len(jobs), PROBES) and budget.priced and not budget.known and not budget.stopped:
            async for recorded in self._run(jobs[alone : alone + 1]):
                yield recorded
            alone += 1
        async for recorded in self._run(jobs[alone:]):
            yield recorded

    async def _run(self, jobs: Sequence[Job]) -> AsyncIterator[Recorded]:
        if not jobs:
            return
        options, side = self.config.agent, jobs[0].side
        agent = await self.agent(side)
        if side is Side.BASELINE:
            jobs = [replace(job, case=self._at_base.get(job.case.id, job.case)) for job in jobs]
        finished = execute(
            agent,
            self.run_budget.affordable(jobs),
            concurrency=options.concurrency,
            timeout=options.timeout,
            retries=options.retries,
            deadline=self.run_budget.deadline,
            transient=options.transient,
            world=self.world,
            users=await self._users(),
        )
        done = partial(to_record, redactor=self.redactor)
        async with aclosing(finished), aclosing(self._scored(finished, done)) as scored:
            async for trial, line in scored:
                self.run_budget.charge(trial)
                yield trial, line  # the trial is recorded first
                if self.config.agent_kind != "replay":
                    self.run_budget.check_told(trial)
        self._check_base(side)
        self.run_budget.close()

    async def record(self, jobs: Sequence[Job], journal: RecordWriter) -> AsyncIterator[Trial]:
        """Yield the trials of `run` once they are in the journal."""
        async for trial, line in self.run(jobs):
            journal.extend([(trial, line)])
            yield trial

    def score(self, trials: AsyncIterator[Trial]) -> AsyncGenerator[Trial, None]:
        """Yield trials that were run before, scored and redacted, as they finish, in no particular order."""
        return self._scored(([trial] async for trial in trials), partial(redacted, redactor=self.redactor))

    async def _scored(
        self, finished: AsyncIterator[list[Trial]], done: Callable[[Trial], T]
    ) -> AsyncGenerator[T, None]:
        """Score finished trials, and yield what ``done`` makes of each.

        Both work off the event loop, on several trials at once if that is quick: each turn of the other thread costs as
        much as scoring a few. The wait for judges and other processes overlaps with the agent's next trials.
        """
        scorers, cases, waiting = self.plan.scorers, self.plan.cases, set[asyncio.Task[T]]()
        judge, run_in_agent = await self._open_judge(), await self._open_in_agent()
        pace = _BatchSize(self.config.agent.concurrency)

        def score(trials: Sequence[Trial]) -> tuple[list[T], float]:
            began = perf_counter()
            found = [done(score_recorded(scorers, cases[trial.case_id], trial)) for trial in trials]
            return found, perf_counter() - began

        async def ask(trial: Trial) -> T:
            return await off_loop(done, await score_trial(scorers, cases[trial.case_id], trial, judge, run_in_agent))

        try:
            async for trials in finished:
                if judge is None and run_in_agent is None:
                    begun = 0
                    while begun < len(trials):
                        part = trials[begun : begun + pace.size]
                        begun += len(part)
                        found, seconds = await off_loop(score, part)
                        pace.learn(len(part), seconds)
                        for one in found:
                            yield one
                    continue
                for trial in trials:
                    waiting.add(asyncio.create_task(ask(trial)))
                    if len(waiting) >= JUDGE_BACKLOG:
                        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for task in [task for task in waiting if task.done()]:
                        waiting.discard(task)
                        yield task.result()
            for next_done in asyncio.as_completed(list(waiting)):
                yield await next_done
        finally:
            for task in waiting:
                task.cancel()

    def _check_base(self, side: Side) -> None:
        """Check the base's files before and after its trials, as changes to them may make it worse."""
        if side is Side.BASELINE and self._base is not None and self._base.tree is not None:
            self._base.tree.check()

    @cached_property
    def _at_base(self) -> dict[str, Case]:
        """The base commit's cases that are the same as the change's but send other words, by id.

        Such a case is identified without its prompt, as in promptfoo. The prompt is then a part of the agent, so the
        base's agent is asked with its own: with the change's, it would share every loss of a worse prompt.
        """
        own = {case.id: case for case in self.plan.suite.cases if case.content is not None}
        if not own or self._base is None or self._base.tree is None:
            return {}
        found = {}
        with suppress(GateError):  # the base may have no configuration, or not this suite
            base = load_config(self._base.tree.root / self.config.path.name, of_base=True)
            for suite in read_suites(base):
                if suite.id == self.plan.suite.id:
                    found = {case.id: case for case in suite.cases}
        return {
            name: found[name] for name, case in own.items() if name in found and found[name].content == case.content
        }

    async def agent(self, side: Side) -> Agent:
        """Return the agent of a side, which is started when it is first asked for."""
        if side in self._agents:
            self._check_base(side)
        else:
            root, options = self.config.root, self.config.agent
            if side is Side.BASELINE:
                base = self._base
                assert base is not None and base.options, "the schedule asks for the base's agent only if it can run"
                options = base.options
                if base.tree is not None:
                    root = base.tree.root
                self._check_base(side)
            receiver = await self._open_receiver()
            if receiver is not None and options.is_local:
                options = exporting(options, receiver)
            agent = create(
                self.config.agent_kind,
                options,
                root=root,
                environment=self.environment,
                recorded=self.plan.suite.recorded,
            )
            agent.world = self.world
            agent.user = own_user(self.config, root, options, self.environment)
            if agent.user is not None:
                self._stack.callback(agent.user.end)
            source = options.version
            if side is Side.CANDIDATE and source is not None and source.header is not None and self._version:
                agent.version = (source.header.lower(), self._version)
            if receiver is not None:
                assert self.config.agent.traces is not None
                agent = TracedAgent(agent, receiver, self.config.agent.traces)
            try:
                self._agents[side] = await self._stack.enter_async_context(agent)
            except GateError as error:
                if side is Side.BASELINE:
                    raise BaseStartError(error.what, where=error.where, hint=error.hint) from error
                raise
        return self._agents[side]

    async def _open_receiver(self) -> Receiver | None:
        """Return the receiver of both sides' traces; None if none is configured."""
        traces = self.config.agent.traces
        if traces is None or self.config.agent_kind == "replay":
            return None
        if self._receiver is None:
            from gate.traces.receiver import Receiver, check_library  # weight: only where traces are received

            check_library()
            self._receiver = await self._stack.enter_async_context(Receiver(traces.port))
        return self._receiver

    @property
    def notes(self) -> tuple[str, ...]:
        """Return notes on the received traces and on the recordings."""
        found: list[str] = []
        for agent in self._agents.values():
            if isinstance(agent, TracedAgent):
                found += agent.notes
        found = list(dict.fromkeys(found))
        if self.world is not None:
            found += self.world.notes
        return tuple(found)

    async def _users(self) -> Callable[[Job, Scenario], User] | None:
        """Return a function that gives the user of a scenario: a model, or a recorded one; None without scenarios."""
        if not any(case.scenario for case in self.plan.suite.cases):
            return None
        if self.config.agent_kind == "replay":
            recorded = in_order(self.plan.suite.recorded)
            return lambda job, _: _recorded_user(job, recorded.get(job.case.id, ()))
        options = self.config.file.simulated_user or SimulatedUserOptions()
        if self._simulator is None:
            from gate.judges.client import Judge  # weight: only where a user is simulated

            opened = Judge(
                options.as_judge(self.config.file.judge), environment=self.environment, budget=self.run_budget.judge
            )
            self._simulator = await self._stack.enter_async_context(opened)
        model = self._simulator
        return lambda _, scenario: SimulatedUser(scenario, model, options.max_turns)

    async def _open_judge(self) -> Judge | None:
        """Return the judge of the run; None if no criterion uses it."""
        if self._judge is None and self.plan.judged:
            opened = judge_of(self.config, self.environment, self.run_budget.judge)
            self._judge = await self._stack.enter_async_context(opened)
        return self._judge

    async def _open_in_agent(self) -> RunInAgent | None:
        """Return what computes custom metrics in the agent's interpreter; None if there are none."""
        metrics = [scorer.metric for scorer in self.plan.scorers if isinstance(scorer.metric, InAgentMetric)]
        if self._run_in_agent is None and metrics:
            from gate.agents.python import PythonOptions
            from gate.metrics.custom.in_agent import open_in_agent  # weight: only for `run_in: agent`

            assert isinstance(self.config.agent, PythonOptions), "refused by the plan for every other kind"
            roots = {metric.path: Path(metric.use.folder) for metric in metrics}
            opened = open_in_agent(self.config.agent, roots, root=self.config.root, environment=self.environment)
            self._run_in_agent = await self._stack.enter_async_context(opened)
        return self._run_in_agent


def _recorded_user(job: Job, trials: Sequence[RecordedTrial]) -> User:
    """Return the user of a recorded trial, who says what was said then."""
    if not 1 <= job.number <= len(trials):
        return ScriptedUser([turn.user for turn in job.case.turns])
    said = [turn.user for turn in trials[job.number - 1].invocations]
    return ScriptedUser(said or [job.case.turns[0].user])


# --- recorded trials, scored in batches -----------------------------------------------------------


MOST_TRIALS = 500
"""Most trials in a batch: no more are lost if the gate is killed."""
QUICK_SECONDS, SLOW_SECONDS = 0.1, 0.4
"""A batch that took less is followed by a larger one, and one that took more by a smaller one."""


class Replayer:
    """The recorded trials of one suite."""

    def __init__(
        self, config: Config, plan: Plan, environment: Mapping[str, str], run_budget: RunBudget, redactor: Redactor
    ) -> None:
        self._config, self._environment, self._run_budget, self._redactor = config, environment, run_budget, redactor
        self._setup = ScoringSetup(plan.scorers, config.agent.transient)
        self._recorded = in_order(plan.suite.recorded)

    async def run(self, jobs: Sequence[Job]) -> AsyncGenerator[Sequence[Recorded], None]:
        """Yield the scored trials of the jobs in parts, in no particular order; fewer than requested if a budget ends.

        Close it (``contextlib.aclosing``) to cancel what is in flight.
        """
        options = self._config.file.executor
        async with open_executor(options, self._setup, self._redactor, self._environment, trials=len(jobs)) as executor:
            pace, slots = _BatchSize(MOST_TRIALS), executor.slots
            if self._run_budget.priced:
                pace, slots = _BatchSize(self._config.agent.concurrency), 1
            source = self._run_budget.affordable(jobs)
            waiting: dict[asyncio.Task[ScoredBatch], list[Job]] = {}
            try:
                while True:
                    while len(waiting) < slots:
                        batch = list(islice(source, pace.size))
                        if not batch:
                            break
                        waiting[asyncio.create_task(executor.score(self._batch(batch)))] = batch
                    if not waiting:
                        break
                    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for task in sorted(done, key=lambda task: task.exception() is not None):  # keep successes
                        part, answer = waiting.pop(task), task.result()
                        pace.learn(len(part), answer.seconds)
                        for trial, _ in answer.scored:
                            self._run_budget.charge(trial)
                        yield answer.scored
            finally:
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)
        self._run_budget.close()

    def _batch(self, jobs: Sequence[Job]) -> Batch:
        cases: list[Case] = []
        places: dict[str, int] = {}
        recordings = []
        for job in jobs:
            if job.case.id not in places:
                places[job.case.id] = len(cases)
                cases.append(job.case)
            found = self._recorded[job.case.id][job.number - 1]
            recordings.append(Recording(places[job.case.id], job.number, found.invocations, found.error))
        return Batch(cases, recordings)


class _BatchSize:
    """The size of a batch: as many trials as take a moment, so that little is lost and signals are handled soon."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = 1

    def learn(self, trials: int, seconds: float) -> None:
        if seconds > SLOW_SECONDS:
            self.size = max(1, min(self.size, trials // 2))
        elif seconds < QUICK_SECONDS and trials >= self.size:
            self.size = min(self._most, 2 * self.size)


def in_order(recorded: Iterable[RecordedTrial]) -> Mapping[str, Sequence[RecordedTrial]]:
    """Return the trials by case, ordered by number: trial n of a case is the n-th."""
    found: dict[str, list[RecordedTrial]] = defaultdict(list)
    for trial in sorted(recorded, key=lambda trial: trial.number):
        found[trial.case_id].append(trial)
    return found


def check_executor(config: Config, plan: Plan) -> None:
    """Raise ConfigError if an executor is named but there is nothing for it to do."""
    named = config.file.executor.named
    if not named or not plan.judged:
        return
    what = f"executor.{named} scores without a judge, and {plan.judged[0].criterion.name} asks one"
    raise ConfigError(what, where=str(config.path), hint="remove `executor`: judge calls overlap anyway")
