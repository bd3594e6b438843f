"""Runs the trials that a schedule asks for and scores them; knows the budget, both sides' agents and the judge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec import Struct, field

from gate.agents.base import Agent, create
from gate.config.load import BudgetSection, Config
from gate.config.resolve import Plan
from gate.errors import MeasureError
from gate.judges.meter import Budget as JudgeBudget
from gate.metrics.custom.metric import CheckedElsewhere
from gate.model import Side, Trial
from gate.pipeline.execute import Job, execute
from gate.scoring.score import score_trial
from gate.system.prices import turn_cost

if TYPE_CHECKING:
    from gate.judges.client import Judge
    from gate.metrics.custom.in_agent import Checks

PROBES = 3
"""Trials that may fail one by one, before several run at a time without a known price."""
JUDGE_BACKLOG = 256
"""Trials that may wait for a judge's answer before no further one is taken from the agent."""


class RunBudget(Struct):
    """What a run may spend and has spent. Asked before each trial is started."""

    limits: BudgetSection
    judge: JudgeBudget
    started: float = field(default_factory=monotonic)
    usd: float = 0.0
    tokens: int = 0
    runs: int = 0
    launched: int = 0
    dearest_usd: float = 0.0
    most_tokens: int = 0
    known: bool = False
    """Whether a trial has told what it takes of what is bounded: dollars, tokens or both."""
    unpriced: int = 0
    """Trials that the agent answered, or failed in, without telling all of what they took; counted as the dearest."""
    stopped: str = ""
    """Which budget ended the run; empty where none did."""

    @property
    def deadline(self) -> float | None:
        """On the monotonic clock."""
        return None if self.limits.minutes is None else self.started + 60 * self.limits.minutes

    def charge(self, trial: Trial) -> None:
        """Counts what a trial took. What it does not tell counts as much as the dearest trial so far."""
        self.runs += 1
        usages = [invocation.usage for invocation in trial.invocations]
        counts = [None if usage is None else usage.tokens for usage in usages]
        costs = [turn_cost(usage) for usage in usages] if self.limits.usd is not None else []
        told = bool(usages) and None not in costs and (self.limits.tokens is None or None not in counts)
        self.known = self.known or told
        self.unpriced += self.priced and trial.measured and not told
        tokens, cost = sum(count or 0 for count in counts), sum(cost or 0.0 for cost in costs)
        self.most_tokens, self.dearest_usd = max(self.most_tokens, tokens), max(self.dearest_usd, cost)
        if trial.measured and not told:
            tokens, cost = self.most_tokens, self.dearest_usd
        self.tokens += tokens
        self.usd += cost
        self.judge.elsewhere_usd += cost

    def check_told(self, trial: Trial) -> None:
        """Raises MeasureError after an answer that does not tell what it took, if none did before."""
        if self.known or not self.priced or trial.error is not None:
            return
        if self.limits.usd is not None:
            what = "budget.usd cannot bound this agent: its answer tells neither its cost nor its tokens and a model"
            hint = "report cost_usd, or usage: {input_tokens, output_tokens, model} with a model of a known price"
        else:
            what, hint = "budget.tokens cannot bound this agent: its answer tells no tokens", "report usage"
        raise MeasureError(what, where="budget", hint=f"{hint}; or bound it by budget.runs")

    def refuses(self) -> str:
        """Why no further trial may start; empty where one may.

        Each trial in flight, and the one that asks, counts as the dearest so far, so that the bill stays within the
        budget unless a trial costs more than any before it.
        """
        ahead = self.launched - self.runs + 1
        limits = self.limits
        if limits.runs is not None and self.launched >= limits.runs:
            return f"the budget of {limits.runs} agent runs is spent"
        if limits.usd is not None and self.usd + self.dearest_usd * ahead + self.judge.spent_usd > limits.usd:
            return f"the budget of ${limits.usd:g} is spent"
        if limits.tokens is not None and self.tokens + self.most_tokens * ahead > limits.tokens:
            return f"the budget of {limits.tokens:,} tokens is spent"
        if limits.judge_calls is not None and self.judge.calls >= limits.judge_calls:
            return f"the budget of {limits.judge_calls} judge calls is spent"
        if self.deadline is not None and monotonic() >= self.deadline:
            return f"the budget of {limits.minutes:g} minutes is spent"
        return ""

    def affordable(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """The jobs that may start, each asked for only when there is room for it."""
        for job in jobs:
            self.stopped = self.refuses()
            if self.stopped:
                return
            self.launched += 1
            yield job

    def close(self) -> None:
        """Says that time is up, where that is what left jobs undone."""
        if not self.stopped and self.deadline is not None and monotonic() >= self.deadline:
            self.stopped = self.refuses()

    @property
    def priced(self) -> bool:
        """Whether what trials cost bounds how many may start."""
        return self.limits.usd is not None or self.limits.tokens is not None

    @property
    def runs_left(self) -> int | None:
        """Agent runs that may still start; 0 once a budget ended the run, None where nothing bounds them."""
        if self.stopped:
            return 0
        return None if self.limits.runs is None else max(0, self.limits.runs - self.launched)


class TrialRunner:
    """The agents of both sides and the judge, started when first needed and ended together."""

    def __init__(
        self,
        config: Config,
        plan: Plan,
        environment: Mapping[str, str],
        run_budget: RunBudget,
        base_root: Callable[[], Path] | None = None,
    ) -> None:
        self.config, self.plan, self.environment, self.run_budget = config, plan, environment, run_budget
        self._base_root = base_root
        self._agents: dict[Side, Agent] = {}
        self._judge: Judge | None = None
        self._checks: Checks | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def judge_cost_usd(self) -> float | None:
        return None if self._judge is None else self._judge.spending.cost_usd

    async def run(self, jobs: Sequence[Job]) -> AsyncIterator[Trial]:
        """Scored trials as they finish, in no order; fewer than asked for where a budget ends.

        Under a budget of dollars or tokens the first trials run one by one until an answer tells what it took, so that
        the next ones have a price. Raises MeasureError if the first answer does not tell.
        """
        alone, budget = 0, self.run_budget
        while alone < min(len(jobs), PROBES) and budget.priced and not budget.known and not budget.stopped:
            async for trial in self._run(jobs[alone : alone + 1]):
                yield trial
            alone += 1
        async for trial in self._run(jobs[alone:]):
            yield trial

    async def _run(self, jobs: Sequence[Job]) -> AsyncIterator[Trial]:
        if not jobs:
            return
        options = self.config.agent
        finished = execute(
            await self._agent(jobs[0].side),
            self.run_budget.affordable(jobs),
            concurrency=options.concurrency,
            timeout=options.timeout,
            retries=options.retries,
            deadline=self.run_budget.deadline,
            seed=self.config.file.seed,
            transient=options.transient,
        )
        judge, checks = await self._open_judge(), await self._open_checks()
        async with aclosing(finished), aclosing(self._scored(finished, judge, checks)) as scored:
            async for trial in scored:
                self.run_budget.charge(trial)
                yield trial  # it is recorded first
                if self.config.agent_kind != "replay":
                    self.run_budget.check_told(trial)
        self.run_budget.close()

    async def score(self, trials: AsyncIterator[Trial]) -> AsyncGenerator[Trial, None]:
        """Trials that were run before, scored; as they finish, in no order."""
        async for trial in self._scored(trials, await self._open_judge(), await self._open_checks()):
            yield trial

    async def _scored(
        self, finished: AsyncIterator[Trial], judge: Judge | None, checks: Checks | None
    ) -> AsyncGenerator[Trial, None]:
        """Scores what finishes. A judge's answers, and checks elsewhere, overlap with the agent's next trials."""
        cases, waiting = self.plan.cases, set[asyncio.Task[Trial]]()
        try:
            async for trial in finished:
                if judge is None and checks is None:
                    yield await score_trial(self.plan.scorers, cases[trial.case_id], trial)
                    continue
                scoring = score_trial(self.plan.scorers, cases[trial.case_id], trial, judge, checks)
                waiting.add(asyncio.create_task(scoring))
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

    async def _agent(self, side: Side) -> Agent:
        if side not in self._agents:
            root = self.config.root
            if side is Side.BASELINE:
                assert self._base_root is not None, (
                    "the schedule asks for the base commit's agent only where there is one"
                )
                root = self._base_root()
            agent = create(
                self.config.agent_kind,
                self.config.agent,
                root=root,
                environment=self.environment,
                recorded=self.plan.suite.recorded,
            )
            self._agents[side] = await self._stack.enter_async_context(agent)
        return self._agents[side]

    async def _open_judge(self) -> Judge | None:
        """The judge of the run; None where no criterion asks one."""
        if self._judge is None and any(s.needs_judge for s in self.plan.scorers):
            from gate.judges.client import open_judge  # weight: only where a criterion asks a judge

            opened = open_judge(
                self.config.file.judge,
                environment=self.environment,
                cache_path=self.config.output / "judge.sqlite",
                budget=self.run_budget.judge,
            )
            self._judge = await self._stack.enter_async_context(opened)
        return self._judge

    async def _open_checks(self) -> Checks | None:
        """The processes of the checks that run beside the agent; None where there are none."""
        metrics = [scorer.metric for scorer in self.plan.scorers if isinstance(scorer.metric, CheckedElsewhere)]
        if self._checks is None and metrics:
            from gate.agents.python import PythonOptions
            from gate.metrics.custom.in_agent import open_checks  # weight: only where checks run beside the agent

            assert isinstance(self.config.agent, PythonOptions), "refused by the plan for every other kind"
            roots = {metric.path: Path(metric.use.folder) for metric in metrics}
            opened = open_checks(self.config.agent, roots, root=self.config.root, environment=self.environment)
            self._checks = await self._stack.enter_async_context(opened)
        return self._checks
