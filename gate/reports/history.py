"""The words for how a suite went over time: moves, trends, early warnings, breaks. The facts are `decision.trends`'."""

from __future__ import annotations

from datetime import UTC, datetime

from gate.decision.comparison import PASS_RATE
from gate.decision.history import CaseHistory
from gate.decision.trends import AHEAD_LEVEL, PastRun, Series, SeriesMove, SuiteHistory
from gate.model import Direction, Scale
from gate.reports.formatting import MINUS, change, count, figure, interval, listing, percentage
from gate.statistics.trend import LEAST_RUNS

_LAST_TIME = 253_402_300_799.0
SHORT = 8
"""Characters of a commit or a fingerprint."""


def day(created: float) -> str:
    """``2026-05-02``, UTC; a dash for no usable time."""
    return f"{datetime.fromtimestamp(created, UTC):%Y-%m-%d}" if 0 < created <= _LAST_TIME else "–"


def commit_of(run: PastRun) -> str:
    """The commit in short, ``+`` after it for a work tree with changes; else the run's id."""
    return f"{run.commit[:SHORT]}{'+' if run.dirty else ''}" if run.commit else f"run {run.id[:SHORT]}"


def subject(series: Series) -> str:
    """``pass rate``, ``pass rate of refund``."""
    return f"{series.name} of {series.tag}" if series.tag else series.name


def overview(suite: SuiteHistory) -> str:
    """``42 runs of 38 commits and 12 versions of the agent, 2026-03-01 to 2026-05-02``."""
    runs = suite.runs
    commits = len({run.commit for run in runs if run.commit})
    agents = len({run.agent for run in runs if run.agent})
    of = [count(commits, "commit")] if commits else []
    of += [count(agents, "version") + " of the agent"] if agents else []
    span = day(runs[0].created) if len(runs) == 1 else f"{day(runs[0].created)} to {day(runs[-1].created)}"
    return f"{count(len(runs), 'run')}{' of ' + ' and '.join(of) if of else ''}, {span}"


def newest_figure(series: Series) -> str:
    """The newest run's mean with its interval."""
    return interval(series.newest.estimate, series.criterion.scale)


def spread_figure(series: Series) -> str:
    """The standard deviation between the runs' averages."""
    spread, scale = series.summary.spread, series.criterion.scale
    if spread is None:
        return "–"
    return change(spread, scale).lstrip("+±") if scale is Scale.BINARY else figure(spread, scale)


def move_line(move: SeriesMove, series: Series, suite: SuiteHistory) -> str:
    """``pass rate fell by 6.2 points with 3f2a1b9c (2026-10-02), 95 % interval 1c0d… to 9ab…; p ≤ 0.0004``."""
    run = suite.runs[move.run]
    way = "fell" if move.change < 0 else "rose"
    by = _amount(move.change, series)
    where = f"with {commit_of(run)} ({day(run.created)})"
    if move.first < move.run or move.last > move.run:
        first, last = suite.runs[move.first], suite.runs[move.last]
        where += f", 95 % interval {commit_of(first)} ({day(first.created)}) to {commit_of(last)} ({day(last.created)})"
    said = f"{subject(series)} {way} by {by} {where}; {_p(move.p)}"
    return f"{said}; the agent's source did not change there" if move.same_agent else said


def _p(p: float) -> str:
    return "p < 0.0001" if p < 0.0001 else f"p ≤ {p:.1g}"


def _amount(value: float, series: Series) -> str:
    """A change without its sign; of money, time and counts as a share of the average."""
    scale = series.criterion.scale
    if scale.is_relative:
        average = series.summary.average
        return percentage(abs(value) / average) if average else figure(abs(value), scale)
    return change(abs(value), scale).removeprefix("+").removeprefix("±")


def trend_line(series: Series) -> str:
    """The slope since the last move with its interval; empty where there are too few runs to tell."""
    going = series.going
    if going is None:
        return ""
    slopes = [_slope(going.by_run.value, going.by_run.low, going.by_run.high, series) + " a run"]
    if going.by_week is not None:
        slopes.append(_slope(going.by_week.value, going.by_week.low, going.by_week.high, series) + " a week")
    direction = "falls" if going.by_run.value < 0 else "rises"
    found = direction if going.found else "shows no trend beyond chance"
    since = " since it moved" if series.moves else ""
    return f"{subject(series)} {found}{since}: {', '.join(slopes)}; {count(going.runs, 'run')}"


def _slope(value: float, low: float, high: float, series: Series) -> str:
    """A slope with its 95 % interval, with as many digits as the interval's width is worth."""
    scale, average = series.criterion.scale, series.summary.average
    factor, unit = 1.0, ""
    if scale is Scale.BINARY:
        factor, unit = 100.0, " points"
    elif scale.is_relative and average:
        factor, unit = 100.0 / average, " %"
    width = abs(high - low) * factor
    places = next((n for n in (1, 2, 3, 4, 5) if width >= 2 * 10**-n), 6)

    def shown(one: float) -> str:
        text = f"{abs(one * factor):.{places}f}"
        return text if not float(text) else f"{MINUS if one < 0 else '+'}{text}"

    return f"{shown(value)}{unit} [{shown(low)}, {shown(high)}]"


def warning_line(series: Series) -> str:
    """``at this trend pass rate is below 80 % in 3 to 9 runs; 80 % interval``; empty without an early warning."""
    ahead = series.ahead
    if ahead is None:
        return ""
    side = "above" if series.criterion.direction is Direction.LOWER else "below"
    when = count(ahead.first, "run") if ahead.first == ahead.last else f"{ahead.first} to {ahead.last} runs"
    limit = figure(ahead.threshold, series.criterion.scale)
    return f"at this trend {subject(series)} is {side} {limit} in {when}; {AHEAD_LEVEL:.0%} interval".replace(
        "80%", "80 %"
    )


def break_lines(series: Series, suite: SuiteHistory) -> list[str]:
    """Where the series is not continued, and why."""
    found = []
    for stretch in series.stretches[1:]:
        run = suite.runs[series.points[stretch.start].run]
        why = f"{listing(stretch.changed)} measured in another way" if stretch.changed else "no case in common"
        found.append(f"{subject(series)} from {commit_of(run)} ({day(run.created)}) on is not compared: {why}")
    return found


def case_trend(case: CaseHistory) -> list[float | None]:
    """The pass rate of each run, for a sparkline."""
    return [passed / trials if trials else None for passed, trials in case.by_record]


def findings(suite: SuiteHistory) -> list[str]:
    """Everything that was found, what needs attention first."""
    headline = list(suite.whole)
    warnings = [f"early warning: {said}" for one in suite.series if (said := warning_line(one))]
    moves = [move_line(move, one, suite) for one in suite.series for move in one.moves]
    trends = [trend_line(one) for one in suite.series if one.going is not None and one.going.found]
    breaks = [line for one in headline for line in break_lines(one, suite)]
    found = [*warnings, *moves, *trends, *dict.fromkeys(breaks)]
    return found or [_nothing(suite)]


def _nothing(suite: SuiteHistory) -> str:
    rate = next((one for one in suite.whole if one.name == PASS_RATE), suite.whole[0] if suite.whole else None)
    if rate is None:
        return "nothing was measured"
    line = trend_line(rate)
    if not line:
        return f"{count(len(rate.current), 'run')}: moves show from 4 on, trends from {LEAST_RUNS}"
    return f"no criterion moved; {line}"
