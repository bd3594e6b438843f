"""Chooses the executor that scores batches: this process by default, others if that is faster."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol

from gate.metrics.custom.metric import is_custom
from gate.registry import Registry
from gate.scoring.batch import Batch, ScoredBatch, ScoringSetup, score_batch
from gate.scoring.options import ExecutorOptions
from gate.security.redact import Redactor

PAYS_FROM = 10_000
"""Number of trials from which starting other processes is faster than using none."""
MOST_PROCESSES = 4
"""The most processes by default: any more would wait for the one that reads and writes."""


EXECUTORS = Registry[Callable[..., AbstractAsyncContextManager["Executor"]]](
    "executor", "agent_gate.executors", {"ray": "gate.cluster.executor:Cluster"}
)
"""The executors that are loaded only if requested, by their key under ``executor``."""


class Executor(Protocol):
    """Scores batches."""

    slots: int
    """Number of batches that may be requested at once."""

    async def score(self, batch: Batch) -> ScoredBatch:
        """Return the scored batch. Raises MeasureError or ConfigError if it cannot be scored, with no partial
        results."""


def open_executor(
    options: ExecutorOptions, setup: ScoringSetup, redactor: Redactor, environment: Mapping[str, str], *, trials: int
) -> AbstractAsyncContextManager[Executor]:
    """Return the configured executor, or by default the fastest one for this many trials.

    Entering it raises ConfigError if Ray is missing or a metric cannot be sent, MeasureError if no worker answers.
    """
    if options.ray is not None:
        return EXECUTORS.load("ray", where="executor")(options.ray, setup, redactor, environment)
    processes = options.processes or _processes(setup, trials)
    if processes == 1:
        return nullcontext(InProcess(setup, redactor))
    from gate.scoring.workers import Processes  # weight: only if configured

    return Processes(processes, setup, redactor, environment)


def _processes(setup: ScoringSetup, trials: int) -> int:
    """Return the number of worthwhile processes. Custom metrics stay in this process unless processes are requested:
    they may hold more state than their arguments."""
    if trials < PAYS_FROM or any(is_custom(type(scorer.metric)) for scorer in setup.scorers):
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_PROCESSES)


class InProcess:
    """Scores in this process, one batch at a time."""

    slots = 1

    def __init__(self, setup: ScoringSetup, redactor: Redactor) -> None:
        self._setup, self._redactor = setup, redactor

    async def score(self, batch: Batch) -> ScoredBatch:
        await asyncio.sleep(0)  # lets signals be handled between batches
        return score_batch(self._setup, batch, self._redactor)
