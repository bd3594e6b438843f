"""The budget of a run, which its judge draws from too: limits, spending, and whether a trial may start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from statistics import fmean
from time import monotonic
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from gate.config.load import Config
from gate.config.schema import BudgetSection
from gate.errors import MeasureError
from gate.judges.meter import Budget as JudgeBudget
from gate.model import Trial, Usage
from gate.system.prices import turn_cost

if TYPE_CHECKING:
    from gate.judges.client import Judge
    from gate.pipeline.execute import Job

PROBES = 3
"""Number of trials that may fail one at a time before several run at once without a known price."""


def judge_budget(limits: BudgetSection) -> JudgeBudget:
    """Return the part of a budget that limits the judge."""
    return JudgeBudget(max_calls=limits.judge_calls, usd=limits.usd)


class RunBudget(Struct):
    """The limits of a run and what it has spent; consulted before each trial starts."""

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
    """True if a trial has reported its use of what is limited: dollars, tokens or both."""
    unpriced: int = 0
    """Trials that were answered or failed without reporting all they used; each counts as the most expensive so far."""
    reserved: int = 0
    """Runs that suites not yet measured may need; trials for later changes must not use them."""
    stopped: str = ""
    """The budget that ended the run; empty if none did."""

    @property
    def deadline(self) -> float | None:
        """Return when the budget of minutes ends, on the monotonic clock."""
        return None if self.limits.minutes is None else self.started + 60 * self.limits.minutes

    def charge(self, trial: Trial) -> None:
        """Count what a trial used.

        A trial that does not report it counts as the most expensive so far; a wholly replayed one is free.
        """
        self.runs += 1
        if not self.priced or _is_replayed(trial):
            return
        tokens, cost, told = 0, 0.0, bool(trial.invocations)
        for invocation in trial.invocations:
            usage = invocation.usage
            used = None if usage is None else usage.tokens
            tokens += used or 0
            if used is None and self.limits.tokens is not None:
                told = False
            if self.limits.usd is not None:
                price = turn_cost(usage)
                cost += price or 0.0
                told = told and price is not None
        for usage in _of_earlier(trial):
            tokens += usage.tokens or 0
            cost += turn_cost(usage) or 0.0
        self.known = self.known or told
        self.unpriced += trial.measured and not told
        self.most_tokens, self.dearest_usd = max(self.most_tokens, tokens), max(self.dearest_usd, cost)
        if trial.measured and not told:
            tokens, cost = self.most_tokens, self.dearest_usd
        self.tokens += tokens
        cost = max(0.0, cost - (trial.saved_usd or 0.0))
        self.usd += cost
        self.judge.agent_usd += cost

    def check_told(self, trial: Trial) -> None:
        """Raise MeasureError after an answer that does not report what it used, if no earlier one did either."""
        if self.known or not self.priced or trial.error is not None or _is_replayed(trial):
            return
        if self.limits.usd is not None:
            what = "budget.usd cannot bound this agent: its answers report neither a cost nor tokens with a model"
            hint = "report cost_usd, or usage with a model of a known price"
        else:
            what, hint = "budget.tokens cannot bound this agent: its answers report no tokens", "report usage"
        raise MeasureError(what, where="budget", hint=f"{hint}; or bound it by budget.runs")

    def refuses(self) -> str:
        """Return the reason why no further trial may start; empty if one may.

        Each trial in flight, and the next one, counts as the most expensive so far. So the bill stays within the budget
        unless a trial costs more than every one before it.
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

    def lacks(self, runs: int) -> str:
        """Return the budget that cannot cover this many more runs at the average use so far; empty if each can."""
        limits, more = self.limits, runs / self.runs if self.runs else 0.0
        usd, minutes = self.usd + self.judge.spent_usd, (monotonic() - self.started) / 60
        spent = (
            ("runs", limits.runs, float(self.launched), float(runs)),
            ("usd", limits.usd, usd, usd * more),
            ("tokens", limits.tokens, float(self.tokens), self.tokens * more),
            ("judge_calls", limits.judge_calls, float(self.judge.calls), self.judge.calls * more),
            ("minutes", limits.minutes, minutes, minutes * more),
        )
        for name, most, so_far, further in spent:
            if most and so_far + further > most:
                return f"budget.{name} ({most:g})"
        return ""

    def affordable(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """Yield the jobs that may start, taking each only once there is room for it."""
        for job in jobs:
            self.stopped = self.refuses()
            if self.stopped:
                return
            self.launched += 1
            yield job

    def close(self) -> None:
        """Record that time is up, if that is why jobs were left undone."""
        if not self.stopped and self.deadline is not None and monotonic() >= self.deadline:
            self.stopped = self.refuses()

    @property
    def priced(self) -> bool:
        """True if the cost of trials limits how many may start."""
        return self.limits.usd is not None or self.limits.tokens is not None


def _is_replayed(trial: Trial) -> bool:
    """True if every call of a trial was answered from a recording, so that it used neither money nor tokens."""
    return trial.replay is not None and trial.replay.whole


# --- what trials cost -----------------------------------------------------------------------------


class Spent(Struct, frozen=True):
    """An amount spent, and how much of it is unknown."""

    cost_usd: float | None
    """Dollars; None if the cost of every trial is unknown."""
    cost_basis: Literal["", "reported", "list price", "partly list price"]
    cost_unknown: int
    """Number of measured trials that do not report their full cost."""


def _of_earlier(trial: Trial) -> list[Usage]:
    """Return what attempts that were run again are known to have used."""
    turns = chain.from_iterable(trial.earlier)
    return [turn.usage for turn in turns if turn.usage is not None]


def _usages(trial: Trial) -> list[Usage | None]:
    """Return the usage of each turn of a trial, and what is known of its earlier attempts."""
    return [*(turn.usage for turn in trial.invocations), *_of_earlier(trial)]


def spent_on(trials: Iterable[Trial]) -> Spent:
    """Return the cost of the trials, excluding answers from recordings."""
    usd, known, listed, reported, unknown = 0.0, False, False, False, 0
    for trial in trials:
        told, spent = 0, 0.0
        for usage in _usages(trial):
            cost = turn_cost(usage)
            if cost is None:
                continue
            told += 1
            spent += cost
            if usage is not None and usage.cost_usd == cost:
                reported = True
            else:
                listed = True
        replayed = _is_replayed(trial)
        if trial.measured and not replayed and (not told or told < len(_usages(trial))):
            unknown += 1
        if told:
            known = True
            if not replayed:
                usd += max(0.0, spent - (trial.saved_usd or 0.0))
    if not known:
        return Spent(None, "", unknown)
    if not listed:
        return Spent(usd, "reported", unknown)
    return Spent(usd, "partly list price" if reported else "list price", unknown)


# --- the judge ------------------------------------------------------------------------------------


def judge_of(config: Config, environment: Mapping[str, str], budget: JudgeBudget | None = None) -> Judge:
    """Return the judge that a configuration names, with its cache, for ``async with``.

    ``budget``: one shared with others; None: the configuration's.

    Raises:
        ConfigError: there is neither a key nor an explicit endpoint, or a cache cannot be opened.
    """
    from gate.judges.client import Judge  # weight: only where a judge is asked

    return Judge(
        config.file.judge,
        environment=environment,
        cache_path=config.output / "judge.sqlite",
        budget=judge_budget(config.file.budget) if budget is None else budget,
    )


def cost_per_run(trials: Iterable[Trial]) -> float | None:
    """Return the agent's average cost per run in US dollars; None if no trial reports it."""
    costs = []
    for trial in trials:
        usage = trial.usage
        if usage is not None and usage.cost_usd is not None:
            costs.append(usage.cost_usd)
    return fmean(costs) if costs else None
