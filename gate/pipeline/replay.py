"""Takes recorded trials through their scoring in batches: which, how many at once, and what they may cost."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from gate.config.load import Config
from gate.config.resolve import Plan
from gate.errors import ConfigError
from gate.model import RecordedTrial, Trial
from gate.pipeline.budget import RunBudget
from gate.pipeline.execute import Job
from gate.records import from_digest
from gate.scoring.batch import Batch, Recording, Scored, ScoredBatch, ScoringSetup
from gate.scoring.executor import Executor, open_executor
from gate.security.redact import Redactor

MOST_TRIALS = 500
"""Trials of one batch: no more are lost where the gate is killed."""
QUICK_SECONDS, SLOW_SECONDS = 0.1, 0.4
"""A batch that took less is followed by a larger one, one that took more by a smaller."""

Recorded = tuple[Trial, bytes]
"""What stays in memory of a trial, and its line in the record."""


def waits(plan: Plan) -> bool:
    """Whether scoring waits for a judge: then trials are scored one by one, many at a time."""
    return any(scorer.needs_judge for scorer in plan.scorers)


class Replayer:
    """The recorded trials of one suite."""

    def __init__(
        self, config: Config, plan: Plan, environment: Mapping[str, str], run_budget: RunBudget, redactor: Redactor
    ) -> None:
        self._config, self._environment, self._run_budget, self._redactor = config, environment, run_budget, redactor
        self._setup = ScoringSetup(plan.scorers, config.agent.transient)
        self._recorded = in_order(plan.suite.recorded)

    async def run(self, jobs: Iterable[Job], trials: int) -> AsyncGenerator[list[Recorded], None]:
        """The jobs as they are scored, in parts and in no order; fewer than asked for where a budget ends.

        ``trials`` is how many there are. Close it (``contextlib.aclosing``) to cancel what is in flight.
        """
        options = self._config.file.executor
        async with open_executor(options, self._setup, self._redactor, self._environment, trials=trials) as executor:
            pace = _Pace(self._config.agent.concurrency if self._run_budget.priced else MOST_TRIALS)
            slots = 1 if self._run_budget.priced else executor.slots
            source = self._run_budget.affordable(jobs)
            waiting: dict[asyncio.Task[ScoredBatch], list[Job]] = {}
            try:
                while self._fill(waiting, source, executor, pace, slots):
                    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for task in sorted(done, key=lambda task: task.exception() is not None):  # what succeeded is kept
                        part, answer = waiting.pop(task), task.result()
                        pace.learn(len(part), answer.seconds)
                        yield self._kept(part, answer.scored)
            finally:
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)
        self._run_budget.close()

    def _fill(
        self,
        waiting: dict[asyncio.Task[ScoredBatch], list[Job]],
        source: Iterator[Job],
        executor: Executor,
        pace: _Pace,
        slots: int,
    ) -> bool:
        """Asks for batches while there are slots and jobs; whether any is waited for."""
        while len(waiting) < slots and (part := list(islice(source, pace.size))):
            waiting[asyncio.create_task(executor.score(self._batch(part)))] = part
        return bool(waiting)

    def _batch(self, jobs: Sequence[Job]) -> Batch:
        places: dict[str, int] = {}
        recordings = []
        for job in jobs:
            found = self._recorded[job.case.id][job.number - 1]
            place = places.setdefault(job.case.id, len(places))
            recordings.append(Recording(place, job.number, found.invocations, found.error))
        cases = {job.case.id: job.case for job in jobs}
        return Batch([cases[case_id] for case_id in places], recordings)

    def _kept(self, jobs: Sequence[Job], scored: Sequence[Scored]) -> list[Recorded]:
        kept = []
        for job, one in zip(jobs, scored, strict=True):
            bare = Trial(job.case.id, job.number, error=one.error, duration=one.duration)
            trial = from_digest(bare, one.digest)
            self._run_budget.charge(trial)
            kept.append((trial, one.line))
        return kept


class _Pace:
    """How many trials a batch has: as many as take a moment, so that little is lost and a signal is heard."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = 1

    def learn(self, trials: int, seconds: float) -> None:
        if seconds > SLOW_SECONDS:
            self.size = max(1, min(self.size, trials // 2))
        elif seconds < QUICK_SECONDS and trials >= self.size:
            self.size = min(self._most, 2 * self.size)


def in_order(recorded: Iterable[RecordedTrial]) -> Mapping[str, Sequence[RecordedTrial]]:
    """By case, in the order of their numbers: trial n of a case is the n-th of them."""
    found: dict[str, list[RecordedTrial]] = defaultdict(list)
    for trial in sorted(recorded, key=lambda trial: trial.number):
        found[trial.case_id].append(trial)
    return found


def check_executor(config: Config, plan: Plan) -> None:
    """Raises ConfigError if an executor is named that has nothing to do."""
    named = config.file.executor.named
    judged = next((scorer.criterion.name for scorer in plan.scorers if scorer.needs_judge), None)
    if not named or judged is None:
        return
    what = f"executor.{named} scores without a judge, and {judged} asks one"
    raise ConfigError(what, where=str(config.path), hint="leave `executor` out: judges' answers overlap in any case")
