"""Runs several configurations side by side, so that their records can be compared.

They take turns, epoch by epoch and a few trials at a time, so that a move of the provider affects all alike. Every
record is an ordinary one and is kept. When one contestant's budget ends, all stop: further trials of the others could
not be compared with anything.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from itertools import zip_longest
from pathlib import Path

from msgspec import Struct

from gate.agents.version import version_of
from gate.config.load import Config
from gate.config.resolve import Plan, make_plans
from gate.errors import ConfigError, GateError
from gate.model import Trial
from gate.pipeline.execute import Job
from gate.pipeline.journal import open_journal
from gate.pipeline.measurement import planned_header
from gate.pipeline.progress import Progress
from gate.pipeline.session import RunOptions, Session, check_version, open_session
from gate.pipeline.terms import terms_of_plan
from gate.pipeline.trials import TrialRunner
from gate.pipeline.verdict import NO_REFERENCE
from gate.records import RecordWriter
from gate.records.keys import suite_key
from gate.system.clock import now

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")
"""A name that is also a valid file name."""


class _Running(Struct):
    """A contestant that is being measured."""

    name: str
    session: Session
    plan: Plan
    journal: RecordWriter
    runner: TrialRunner
    jobs: list[list[Job]]
    """The jobs by epoch."""

    def chunk(self, epoch: int) -> Iterator[list[Job]]:
        """Yield the jobs of an epoch in chunks that run concurrently."""
        if epoch >= len(self.jobs):
            return
        jobs, size = self.jobs[epoch], self.session.config.agent.concurrency
        for start in range(0, len(jobs), size):
            yield jobs[start : start + size]


async def run_contest(
    contestants: Mapping[str, Config],
    epochs: int,
    folder: Path,
    environment: Mapping[str, str],
    progress: Progress,
    command: str,
) -> list[tuple[str, Path]]:
    """Run every case ``epochs`` times with each configuration, by name; recorded trials are each replayed once.

    Returns:
        Name and record of each, in order.

    Raises:
        ConfigError: a configuration cannot be read, has several suites, or its record exists.
        MeasureError: an agent is down.
    """
    plans = {name: _plan(name, config, environment) for name, config in contestants.items()}
    started = time.monotonic()
    async with AsyncExitStack() as runners:
        with ExitStack() as stack:
            stack.callback(progress.close)
            running = []
            for name, plan in plans.items():
                config = contestants[name]
                session, journal = await _open(name, config, plan, folder, environment, progress, stack, command)
                runner = TrialRunner(config, plan, environment, session.run_budget, version=session.version)
                running.append(_Running(name, session, plan, journal, runner, _jobs(config, plan, epochs)))
                await runners.enter_async_context(runner)
            await _run_in_turn(running, progress)
            for found in running:
                await check_version(found.session)
                _finish(found, time.monotonic() - started)
    return [(one.name, one.journal.path) for one in running]


def _plan(name: str, config: Config, environment: Mapping[str, str]) -> Plan:
    plans = make_plans(config, environment)
    if len(plans) != 1:
        what = f"{name}: its configuration has {len(plans)} suites, and one is compared at a time"
        raise ConfigError(what, where=str(config.path), hint="name one folder or file under `suite`")
    return plans[0]


async def _open(
    name: str,
    config: Config,
    plan: Plan,
    folder: Path,
    environment: Mapping[str, str],
    progress: Progress,
    stack: ExitStack,
    command: str,
) -> tuple[Session, RecordWriter]:
    stem = name
    if not _PLAIN_NAME.fullmatch(name):
        stem = suite_key(name)
    path = folder / f"{stem}.jsonl"
    if path.exists():
        raise ConfigError("the record exists", where=str(path), hint="name another folder: --records")
    version = await version_of(config.agent_kind, config.agent, root=config.root, environment=environment)
    options = RunOptions(command=command, fills_baseline=False)
    session = open_session(config, options, environment, progress, stack, [path], version)
    header = planned_header(session, plan, NO_REFERENCE)
    return session, stack.enter_context(open_journal(config, header, now(), path=path, resume=False))


def _jobs(config: Config, plan: Plan, epochs: int) -> list[list[Job]]:
    """Return the jobs by epoch; for recordings, as many as were recorded."""
    trials = {case.id: epochs for case in plan.suite.cases}
    if config.agent_kind == "replay":
        trials = Counter(trial.case_id for trial in plan.suite.recorded)
    found = []
    for number in range(1, max(trials.values(), default=0) + 1):
        found.append([Job(case, number) for case in plan.suite.cases if number <= trials.get(case.id, 0)])
    return found


async def _run_in_turn(running: Sequence[_Running], progress: Progress) -> None:
    """Run epoch by epoch, beginning with a different contestant each time."""
    for one in running:
        progress.plan(one.name, sum(map(len, one.jobs)), "side by side")
    for epoch in range(max(len(one.jobs) for one in running)):
        first = epoch % len(running)
        order = [*running[first:], *running[:first]]
        for turn in zip_longest(*[one.chunk(epoch) for one in order]):
            for one, jobs in zip(order, turn, strict=True):
                async for trial in _trials(one, jobs or ()):
                    progress.trial(trial)
            if any(one.session.run_budget.stopped for one in running):
                return


async def _trials(one: _Running, jobs: Sequence[Job]) -> AsyncIterator[Trial]:
    """Run, score and record trials. An error that ends the run names the contestant."""
    try:
        async for trial in one.runner.record(jobs, one.journal):
            yield trial
    except GateError as error:
        error.where = ": ".join(filter(None, (one.name, error.where)))
        raise


def _finish(one: _Running, duration: float) -> None:
    session = one.session
    terms = terms_of_plan(one.plan, session.config, session.settings)
    one.journal.finish(
        duration=duration,
        judge_cost_usd=one.runner.judge_cost_usd,
        stopped=session.run_budget.stopped,
        terms=one.runner.redactor.redact_json(terms.plain()),
    )
