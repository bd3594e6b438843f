"""The text of `gate power`: the smallest drop that a suite can detect, and its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from gate.config.load import Config
from gate.config.resolve import make_plans
from gate.decision.power import PowerRow, power_table
from gate.model import Scale
from gate.pipeline.judge_stored import read_whole
from gate.pipeline.reference import git_context, nearest_stored, store_of
from gate.pipeline.verdict import cases_of
from gate.records import Header, Record
from gate.reports.formatting import dollars, figure
from gate.reports.table import table
from gate.security.escape import console
from gate.system.git import Git

BAR = 40
"""Columns of the widest bar of a plot."""


def power_of_record(path: Path) -> str:
    """What this record's agent and suite could find: a table and a plot of the detectable drop."""
    return _power(read_whole(path))


def power_of_suites(config: Config, environment: Mapping[str, str]) -> str:
    """The same for each suite of a configuration, by its stored baseline; without one, at the widest spread."""
    where = git_context(config, Git(config.root, environment=environment))
    parts, store = [], store_of(config, environment)
    with store if store is not None else nullcontext():
        for plan in make_plans(config, environment):
            stored = None if store is None else nearest_stored(store, plan.suite.id, where)
            header = Header(plan.suite.id, plan.planned, plan.criteria)
            parts.append(_power(Record(header, (), None) if stored is None else stored.records[0]))
    return "\n\n".join(parts)


def _power(record: Record) -> str:
    header = record.header
    cases = {case.id: case for case in cases_of(header)}
    found = power_table(record.trials, header.criteria, cases=cases)
    if not found.within_sd:
        return f"{console(header.suite_id)}: no case varied over its trials: any case that flips is a change"
    rows: list[Sequence[str]] = [
        ("cases", "trials", "detectable drop", "", "agent runs", "cost", "reruns to prove one broken case")
    ]
    rows += [_power_row(row) for row in found.rows]
    spread = "at most " if found.estimated else ""
    head = f"{console(header.suite_id)}: spread of one case over its trials {spread}{found.within_sd:.3f}; 80 % power, "
    return f"{head}baseline of {found.rows[0].baseline_trials} trials a case\n{table(rows)}"


def _power_row(row: PowerRow) -> tuple[str, ...]:
    bar = "█" * max(1, round(BAR * row.detectable / 0.5)) if row.detectable < 0.5 else "█" * BAR
    cost = "–" if row.cost_usd is None else dollars(row.cost_usd)
    reruns = "over 200" if row.reruns is None else str(row.reruns)
    return (str(row.cases), str(row.trials), figure(row.detectable, Scale.BINARY), bar, str(row.runs), cost, reruns)
