"""The text of `gate power`: the changes that a suite finds, simulated with the rule on its own cases, and the cost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from gate.baselines.pairing import as_baseline, pair
from gate.config.load import Config
from gate.config.resolve import make_plans
from gate.config.settings import settings_of
from gate.decision import Settings
from gate.decision.engine.state import Config as Engine
from gate.decision.power import WANTED
from gate.insight.nearest import nearest_by_suite, trials_of_epochs
from gate.insight.power import (
    Design,
    Power,
    Share,
    Wanted,
    missed_thresholds,
    power_of,
    suite_of,
    telling_drop,
    wanted_designs,
)
from gate.insight.prove import Progress
from gate.model import Trial
from gate.model.defaults import STORED_TRIALS
from gate.pipeline.budget import cost_per_run
from gate.pipeline.terms import own_terms
from gate.records import Header, Record, cases_of, read_record
from gate.reports.formatting import count, dollars, percents
from gate.reports.table import table
from gate.security.escape import console
from gate.system.clock import now

CATCHES = 0.9
"""Minimum share of broken cases found for the text to say that a suite catches them."""
MORE_RUNS = 40
"""Default number of simulated changes per design."""
BAR = 30
"""Width in columns of a bar for 100 %."""


class SuitePower(Struct, frozen=True):
    """The power of a suite."""

    suite: str
    power: Power
    wanted: tuple[Wanted, ...] = ()
    misses: dict[str, float] = {}
    """The rate at which an unchanged agent misses each threshold, 0 to 1, by criterion."""


def power_of_record(path: Path, drop: float | None, simulations: int | None, progress: Progress) -> SuitePower:
    """Return the power of this record's suite, with its own agent, against stored trials only.

    ``drop``: the drop, 0 to 1, for which to find a design, if any. ``simulations``: the number of runs per question;
    None: as many as take a few seconds.
    """
    record = read_record(path)
    trials = trials_of_epochs(as_baseline(record).trials)
    return _power(record, trials, STORED_TRIALS, own_terms(record).settings, drop, simulations, progress)


def powers_of_suites(
    config: Config, environment: Mapping[str, str], drop: float | None, simulations: int | None, progress: Progress
) -> list[SuitePower]:
    """Return the power of each suite in a configuration, by its stored baseline; without one, for a typical agent.

    The other arguments are those of `power_of_record`.
    """
    settings = settings_of(config, now())
    answers = []
    plans = make_plans(config, environment)
    known = nearest_by_suite(config, plans, environment)
    for plan in plans:
        stored = known.get(plan.suite.id)
        record = Record(Header(plan.suite.id, plan.planned, plan.criteria), (), None)
        own, trials, each = settings, [], STORED_TRIALS
        if stored is not None:
            record = stored.records[0]
            trials = trials_of_epochs(pair(plan.planned, plan.criteria, stored).stored)
            each = min(Counter([trial.case_id for trial in trials]).values(), default=STORED_TRIALS)
            if _base_can_run(config, record):
                own = replace(settings, rerun="match")
        answers.append(_power(record, trials, each, own, drop, simulations, progress))
    return answers


def _base_can_run(config: Config, record: Record) -> bool:
    """True if a run will run the base's agent, too."""
    if config.file.baseline.rerun != "auto":
        return False
    local = config.agent.is_local and bool(record.header.agent and record.header.commit)
    return local or config.agent.base is not None


def _power(
    record: Record,
    trials: Sequence[Trial],
    stored: int,
    settings: Settings,
    drop: float | None,
    simulations: int | None,
    progress: Progress,
) -> SuitePower:
    """Return the power of a record's suite with an agent like that of these ``trials``.

    ``stored``: the trials per case that a change is compared with.
    """
    header = record.header
    cases = {case.id: case for case in cases_of(header)}
    suite = suite_of(trials, header.criteria, cases)
    size = len(suite.rates.counts) or len(header.plan)
    engine = Engine(settings.own_alpha, settings.max_epochs, settings.exact_epochs, settings.rerun)
    design = Design(size, stored, engine, settings.pass_rate_margin)
    wanted: tuple[Wanted, ...] = ()
    with progress(header.suite_id) as tick:
        power = power_of(suite, design, runs=simulations, tick=tick)
        if drop is not None:
            wanted = tuple(wanted_designs(suite, design, drop, runs=simulations or MORE_RUNS, tick=tick))
    power = replace(power, cost_per_run=cost_per_run(trials))
    misses = missed_thresholds(trials, header.criteria, settings.most_epochs, cases)
    return SuitePower(header.suite_id, power, wanted, misses)


def told(answers: Sequence[SuitePower], width: int | None, *, as_json: bool, of_record: bool) -> str:
    """Return the answers as text, ``width`` columns wide, or as JSON.

    ``of_record``: True if only a record is known, which does not show if its base's agent can run.
    """
    if as_json:
        return json.dumps(to_builtins(answers), indent=2)
    return "\n\n".join(_text(answer, width, of_record=of_record) for answer in answers)


def _text(answer: SuitePower, width: int | None, *, of_record: bool) -> str:
    power = answer.power
    rows: list[Sequence[str]] = [("change", "found", "95 % interval", "")]
    for one in power.drops:
        rows.append((f"−{100 * one.drop:g} points", *_share(one.found)))
    if power.broken is not None:
        rows.append(("one case breaks", *_share(power.broken)))
    rows.append(("none: blocked", *_share(power.blocked)))
    rows.append(("none: inconclusive", *_share(power.inconclusive)))
    lines = [f"{_sentence(power)}.", _basis(answer, of_record=of_record), table(rows, width)]
    smallest = f"no drop that was simulated is found in {percents(WANTED)} % of changes"
    if power.finds is not None:
        points = percents(power.finds)
        smallest = f"about 80 % of changes with a drop of {points} points are found, by a curve through the table"
    more = [smallest, _cost(power), *_missed(answer), *map(_wanted, answer.wanted)]
    return "\n".join([*lines, *more])


def _basis(answer: SuitePower, *, of_record: bool) -> str:
    """Return what was simulated: the suite's size, its baseline, and the number of changes."""
    power = answer.power
    design = power.design
    said = f"{console(answer.suite)}: {count(design.cases, 'case')}"
    if 0 < power.units < design.cases:
        said += f" in {count(power.units, 'unit')} (cluster:)"
    said += f", {count(design.stored, 'stored trial')} per case"
    if design.config.rerun == "match":
        said += ", the base can be run"
    elif of_record:
        said += ", against these alone"
    if power.criteria:
        said += f", {count(power.criteria, 'criterion', 'criteria')} beside success"
    said += f"; {count(power.runs, 'simulated change')}, {power.blocked.runs} of each kind"
    if not power.known:
        said += "; no trials are known, so the cases are a typical suite's"
    return said


def _sentence(power: Power) -> str:
    """Return a plain sentence on the changes the suite finds."""
    if power.broken is None:
        breaks = "No case of this suite passes often enough to break"
    elif power.broken.share >= CATCHES:
        breaks = "This suite catches a case that breaks"
    else:
        breaks = f"This suite catches a case that breaks in {_in_ten(power.broken)} of 10 changes"
    one = telling_drop(power)
    return f"{breaks}; of {100 * one.drop:g}-point drops it catches {_in_ten(one.found)} of 10"


def _in_ten(found: Share) -> int:
    """Return a share in tenths; 10 and 0 only if it also rounds to all or none in whole percents."""
    tenths = round(10 * found.share)
    if 0.005 <= found.share < 0.995:
        return min(9, max(1, tenths))
    return tenths


def _missed(answer: SuitePower) -> list[str]:
    """Return how often an unchanged agent misses each threshold, the most frequent first."""
    epochs = count(answer.power.design.config.exact_epochs or answer.power.design.config.max_epochs, "epoch")
    by_chance = sorted(answer.misses.items(), key=lambda one: (-one[1], one[0]))
    return [
        f"{console(name, 60)}: an unchanged agent misses its threshold in {_estimated(chance)} % of runs of {epochs}"
        for name, chance in by_chance
    ]


def _share(found: Share) -> tuple[str, str, str]:
    bar = "█" * round(BAR * found.share)
    return f"{_estimated(found.share)} %", interval_of(found), bar


def interval_of(found: Share) -> str:
    return f"{_end(found.low)}–{_end(found.high)} %"


def _end(share: float) -> str:
    """Return an end of an interval in whole percents, with one more digit near 0 and 100."""
    if 0.01 <= share <= 0.99:
        return f"{100 * share:.0f}"
    return f"{100 * share:.1f}".removesuffix(".0")


def _estimated(share: float) -> str:
    """Return whole percents; near 0 and 100 only a bound, since a curve through simulated changes is no more
    precise."""
    if 0 < share < 0.001:
        return "< 0.1"
    if 0.999 < share < 1:
        return "> 99.9"
    return percents(share)


def _cost(power: Power) -> str:
    said = f"an unchanged agent takes {power.runs_per_case:.2f} runs per case"
    if power.cost_per_run is not None:
        said += f", about {dollars(power.runs_per_case * power.design.cases * power.cost_per_run)}"
    return said


def _wanted(found: Wanted) -> str:
    points, stored = f"−{100 * found.drop:g} points", count(found.stored, "stored trial")
    if found.cases is None:
        return f"{points} with {stored} per case: more than 500 cases for 80 %"
    share = f"{percents(found.found.share)} % of {found.found.runs}"
    return f"{points} with {stored} per case: {count(found.cases, 'case')} ({share})"
