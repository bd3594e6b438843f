"""The texts of a plan: the contents of a run for `gate suite`, its cost for `--dry-run`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from gate.config.load import Config
from gate.config.resolve import Plan, make_plans
from gate.config.settings import goal_of, settings_of, wanted_trials
from gate.decision.settings import MOST_ADDED
from gate.errors import GateError
from gate.judges.options import JudgeOptions, cost_of, members
from gate.metrics.judged import JudgedMetric
from gate.model import Case, Complexity
from gate.pipeline.budget import cost_per_run
from gate.pipeline.journal import newest_first, records_folder
from gate.records import read_record
from gate.reports.formatting import count, dollars, threshold
from gate.security.escape import console
from gate.system.clock import now

MAX_NOTE_CHARS = 2_000
CALL_TOKENS = 1000
"""Tokens of a judge call's question, and of its answer, if no record shows the cost of judging."""


Prices = tuple[float | None, float | None]
"""US dollars per run and for judging it; None if unknown."""


def describe_suites(config: Config, environment: Mapping[str, str]) -> str:
    """Return the plan of a run: cases by complexity, tag and turns, and the criteria with their thresholds."""
    return "\n\n".join(_describe(plan) for plan in make_plans(config, environment))


def _describe(plan: Plan) -> str:
    cases, recorded = plan.suite.cases, plan.suite.recorded
    turns = sum(len(case.turns) for case in cases)
    lines = [f"{console(plan.suite.id)}: {count(len(cases), 'case')}, {count(turns, 'turn')}"]
    if recorded:
        lines[0] += f", {count(len(recorded), 'recorded trial')}"
    levels = Counter(case.complexity for case in cases)
    lines.append("  complexity  " + _counts({level.value: levels[level] for level in Complexity}))
    tags: Counter[str] = Counter()
    for case in cases:
        tags.update(case.tags or ("",))
    lines.append("  tags        " + _counts({tag or "(none)": n for tag, n in sorted(tags.items())}))
    lengths = Counter(len(case.turns) for case in cases)
    lines.append("  turns       " + _counts({f"{length}-turn": n for length, n in sorted(lengths.items())}))
    lines.append("  expects     " + _counts(_expectations(cases)))
    lines.append("  criteria    " + "\n              ".join(_demands(plan)))
    lines += [f"  note: {console(note, MAX_NOTE_CHARS)}" for note in plan.notes]
    return "\n".join(lines)


def _expectations(cases: Iterable[Case]) -> Mapping[str, int]:
    """Return the numbers of cases by what they expect: a call in any turn, none in all that state any, and so on."""
    found = {"calls": 0, "no call": 0, "calls not stated": 0, "a response": 0}
    for case in cases:
        stated = [turn.tools for turn in case.turns if turn.tools is not None]
        if not stated:
            found["calls not stated"] += 1
        elif any(stated):
            found["calls"] += 1
        else:
            found["no call"] += 1
        found["a response"] += any(turn.response is not None for turn in case.turns)
    return found


def _counts(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{console(str(name))} {n}" for name, n in counts.items() if n) or "–"


def _demands(plan: Plan) -> list[str]:
    demands = []
    for criterion in plan.criteria:
        informational = "" if criterion.blocking else " (informational)"
        demands.append(f"{console(criterion.name)}: {threshold(criterion)}{informational}")
    return demands


# --- the cost of a run -----------------------------------------------------------------------------


def estimate(config: Config, environment: Mapping[str, str], *, fills_baseline: bool = False) -> str:
    """Return the cost of a run of each suite: of the first trials, and at most, if the verdict stays open."""
    plans = make_plans(config, environment)
    lines = [_of_suite(config, plan, environment, fills_baseline) for plan in plans]
    return "\n".join([*lines, "nothing was run"])


def _of_suite(config: Config, plan: Plan, environment: Mapping[str, str], fills_baseline: bool) -> str:
    settings = settings_of(config, now())
    k = max([criterion.k for criterion in plan.criteria], default=0)
    least, most, why = max(1, k), max(settings.max_epochs, k), "the answer is close"
    if settings.exact_epochs is not None:
        least = most = settings.exact_epochs
    if fills_baseline:
        least = most = max(most, wanted_trials(config))
        if goal_of(config) is not None:
            most, why = max(most, MOST_ADDED), "more are wanted"
    cases, turns = len(plan.suite.cases), sum([len(case.turns) for case in plan.suite.cases])
    trials, most_trials = least * cases, most * cases
    runs, most_runs = (0, 0) if config.agent_kind == "replay" else (trials, most_trials)
    votes = _votes(config, plan, environment)
    prices = _prices(config, plan.suite.id, votes * turns / max(1, cases), environment)
    money = _money((runs, trials), (most_runs, most_trials), prices)
    return "\n".join(
        [
            f"{console(plan.suite.id)}: {count(cases, 'case')}",
            f"  agent runs   {_range(runs, most_runs, why)}{_besides(config, most_runs, fills_baseline)}",
            f"  judge calls  {_range(votes * turns * least, votes * turns * most, why) if votes else 'none'}",
            f"  money        {money}",
        ]
    )


def _money(least: tuple[int, int], most: tuple[int, int], prices: Prices) -> str:
    """Return the cost of these runs and judged trials: of the first ones, and at most."""
    run, judge = prices
    amount, limit = (runs * (run or 0) + trials * (judge or 0) for runs, trials in (least, most))
    if run is None and not amount:
        return "not known: no record here tells what a run costs"
    text = f"about {dollars(amount)}"
    if limit > amount:
        text += f", at most {dollars(limit)}"
    if run is None:
        return f"{text} for the judge; no record here tells what a run costs"
    text += f", at {dollars(run)} a run"
    if judge is None:
        return f"{text}; the judge's price is not known"
    return f"{text} and {dollars(judge)} to judge it" if judge else text


def _range(least: int, most: int, why: str) -> str:
    return f"{least:,}" if least == most else f"{least:,}, at most {most:,} if {why}"


def _besides(config: Config, most: int, fills_baseline: bool) -> str:
    """Return the text that names the further runs: reruns, and those of the base commit's agent."""
    if not most:
        return ""
    already = ", less what is measured already" if fills_baseline else ""
    if not config.agent.is_local or config.file.baseline.rerun == "never":
        return f"{already}; besides, reruns of cases that look worse"
    return f"{already}; besides, reruns of cases that look worse, and at most {most:,} of the base commit's agent"


def _votes(config: Config, plan: Plan, environment: Mapping[str, str]) -> int:
    """Return the number of judge answers per turn, for one question of each criterion with a judge."""
    judge = config.file.judge or JudgeOptions()
    found = 0
    for scorer in plan.scorers:
        if scorer.needs_judge and isinstance(scorer.metric, JudgedMetric):
            own = scorer.metric.options.judge_model_options.num_samples
            found += own or judge.num_samples or scorer.metric.samples
    return found * len(members(judge, environment)) if found else 0


def _prices(config: Config, suite_id: str, votes: float, environment: Mapping[str, str]) -> Prices:
    """Return the mean cost of a run and of judging it, each from the newest record that has it."""
    run = 0.0 if config.agent_kind == "replay" else None
    judge = None if votes else 0.0
    for path in newest_first(records_folder(config, suite_id))[:5]:
        with suppress(GateError):
            record = read_record(path, complete=False)
            if run is None:
                run = cost_per_run(record.trials)
            if judge is None and record.footer is not None and record.footer.judge_cost_usd:
                judge = record.footer.judge_cost_usd / len(record.trials)
    if judge is None:
        judge = _list_price(config, votes, environment)
    return run, judge


def _list_price(config: Config, votes: float, environment: Mapping[str, str]) -> float | None:
    """Return the cost of these judge calls by the price list, split evenly across the jury."""
    jury = members(config.file.judge or JudgeOptions(), environment)
    prices = [cost_of(member, CALL_TOKENS, CALL_TOKENS) for member in jury]
    known = [price for price in prices if price is not None]
    return votes * sum(known) / len(jury) if len(known) == len(jury) else None
