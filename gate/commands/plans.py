"""Describes a run before it is made: its cases and criteria for `gate suite`, its cost for `--dry-run`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

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


def describe_suites(config: Config, environment: Mapping[str, str]) -> str:
    """Return the plan of a run: cases by complexity, tag and turns, and the criteria with their thresholds."""
    return "\n\n".join(map(_describe, make_plans(config, environment)))


def _describe(plan: Plan) -> str:
    levels, tags, lengths, expected = Counter[str](), Counter[str](), Counter[int](), Counter[str]()
    for case in plan.suite.cases:
        levels[case.complexity.value] += 1
        tags.update(case.tags or ("",))
        lengths[len(case.turns)] += 1
        expected.update(_expectations(case))
    size = f"{count(lengths.total(), 'case')}, {count(sum(turns * cases for turns, cases in lengths.items()), 'turn')}"
    if plan.suite.recorded:
        size += f", {count(len(plan.suite.recorded), 'recorded trial')}"
    demands = []
    for criterion in plan.criteria:
        informational = "" if criterion.blocking else " (informational)"
        demands.append(f"{console(criterion.name)}: {threshold(criterion)}{informational}")
    lines = [
        f"{console(plan.suite.id)}: {size}",
        "  complexity  " + _counts([(level.value, levels[level.value]) for level in Complexity]),
        "  tags        " + _counts([(tag or "(none)", cases) for tag, cases in sorted(tags.items())]),
        "  turns       " + _counts([(f"{length}-turn", cases) for length, cases in sorted(lengths.items())]),
        "  expects     " + _counts([(kind, expected[kind]) for kind in EXPECTATIONS]),
        "  criteria    " + "\n              ".join(demands),
    ]
    for note in plan.notes:
        lines.append(f"  note: {console(note, MAX_NOTE_CHARS)}")
    return "\n".join(lines)


EXPECTATIONS = ("calls", "no call", "calls not stated", "a response")


def _expectations(case: Case) -> list[str]:
    """Return what a case expects: a call in any turn, none in all that state any, and so on."""
    stated = [turn.tools for turn in case.turns if turn.tools is not None]
    found = ["no call"]
    if not stated:
        found = ["calls not stated"]
    elif any(stated):
        found = ["calls"]
    if any(turn.response is not None for turn in case.turns):
        found.append("a response")
    return found


def _counts(counts: Sequence[tuple[str, int]]) -> str:
    return ", ".join([f"{console(name)} {number}" for name, number in counts if number]) or "–"


# --- the cost of a run -----------------------------------------------------------------------------


def estimate(config: Config, environment: Mapping[str, str], *, fills_baseline: bool = False) -> str:
    """Return the cost of a run of each suite: of the first trials, and at most, if the verdict stays open."""
    plans = make_plans(config, environment)
    lines = [_of_suite(config, plan, environment, fills_baseline) for plan in plans]
    return "\n".join([*lines, "nothing was run"])


def _of_suite(config: Config, plan: Plan, environment: Mapping[str, str], fills_baseline: bool) -> str:
    settings, cases = settings_of(config, now()), len(plan.suite.cases)
    is_replay, turns = config.agent_kind == "replay", sum([len(case.turns) for case in plan.suite.cases])
    k = max([criterion.k for criterion in plan.criteria], default=0)
    least, most, why = max(1, k), max(settings.max_epochs, k), "the answer is close"
    if settings.exact_epochs is not None:
        least = most = settings.exact_epochs
    if fills_baseline:
        least = most = max(most, wanted_trials(config))
        if goal_of(config) is not None:
            most, why = max(most, MOST_ADDED), "more are wanted"
    runs = most_runs = 0
    if not is_replay:
        runs, most_runs = least * cases, most * cases
    votes = _votes(config, plan, environment)
    run, judge = _prices(config, plan.suite.id, votes * turns / max(1, cases), environment)
    amount = runs * (run or 0) + least * cases * (judge or 0)
    limit = most_runs * (run or 0) + most * cases * (judge or 0)
    judged = "none"
    if votes:
        judged = _range(votes * turns * least, votes * turns * most, why)
    return "\n".join(
        [
            f"{console(plan.suite.id)}: {count(cases, 'case')}",
            f"  agent runs   {_range(runs, most_runs, why)}{_besides(config, most_runs, fills_baseline)}",
            f"  judge calls  {judged}",
            f"  money        {_money(amount, limit, run, judge)}",
        ]
    )


def _money(amount: float, limit: float, run: float | None, judge: float | None) -> str:
    """Return the cost of the first trials, and of all, in words; ``run`` and ``judge`` are the prices of one run and of
    judging it, None if unknown."""
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
    if judge:
        text += f" and {dollars(judge)} to judge it"
    return text


def _range(least: int, most: int, why: str) -> str:
    if least == most:
        return f"{least:,}"
    return f"{least:,}, at most {most:,} if {why}"


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
    for scorer in plan.judged:
        if isinstance(scorer.metric, JudgedMetric):
            own = scorer.metric.options.judge_model_options.num_samples
            found += own or judge.num_samples or scorer.metric.samples
    if not found:
        return 0
    return found * len(members(judge, environment))


def _prices(
    config: Config, suite_id: str, votes: float, environment: Mapping[str, str]
) -> tuple[float | None, float | None]:
    """Return the mean cost of a run and of judging it in US dollars, each from the newest record that has it; None if
    unknown."""
    run = judge = None
    if config.agent_kind == "replay":
        run = 0.0
    if not votes:
        judge = 0.0
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
    total = 0.0
    for member in jury:
        price = cost_of(member, CALL_TOKENS, CALL_TOKENS)
        if price is None:
            return None
        total += price
    return votes * total / len(jury)
