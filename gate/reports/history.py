"""A suite over time in words and tables: moves, trends, early warnings, breaks. `histories.trends` finds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from gate.decision.outcomes import PASS_RATE
from gate.histories.cases import CaseHistory
from gate.histories.trends import AHEAD_LEVEL, PastRun, Series, SeriesMove, SuiteHistory, VersionValue
from gate.model import Direction, Estimate, Scale
from gate.reports.formatting import MINUS, agree, change, count, figure, interval, listing, percentage
from gate.reports.sparkline import sparkline
from gate.security.limits import shorten
from gate.statistics.trend import LEAST_RUNS

_LAST_TIME = 253_402_300_799.0
MOST_PLACES = 6
"""Maximum number of decimal places of a slope."""
SHORT = 8
"""Characters shown of a commit or a fingerprint."""


def day(created: float) -> str:
    """Return ``2026-05-02``, in UTC; a dash for an unusable time."""
    return _time(created, "%Y-%m-%d")


def _time(created: float, form: str) -> str:
    if not 0 < created <= _LAST_TIME:
        return "–"
    return datetime.fromtimestamp(created, UTC).strftime(form)


def commit_of(run: PastRun) -> str:
    """Return the short commit, followed by ``+`` if the work tree had changes; without a commit, the run's id."""
    if not run.commit:
        return f"run {run.id[:SHORT]}"
    if run.dirty:
        return f"{run.commit[:SHORT]}+"
    return run.commit[:SHORT]


SUBJECT = 50
"""Maximum number of characters in a commit's subject after its hash."""


def label_of(run: PastRun) -> str:
    """Return ``3f2a1b9c Reword the prompt``: the commit or the run's id, with the subject if known."""
    return f"{commit_of(run)} {shorten(run.subject, SUBJECT)}".rstrip()


def version_of(run: PastRun) -> str:
    """Return the version that the agent reports, or its short fingerprint, with the tags of its releases."""
    named = shorten(run.told, SUBJECT) or run.agent[:SHORT]
    if run.releases:
        named += f" ({', '.join(run.releases[:3])})"
    return named.strip()


def times_of(runs: Sequence[PastRun]) -> list[str]:
    """Return the day of each run, or its minute if all are of one day."""
    days = [day(run.created) for run in runs]
    if len(set(days)) > 1:
        return days
    return [_time(run.created, "%Y-%m-%d %H:%M") for run in runs]


def subject(series: Series) -> str:
    """Return text such as ``pass rate`` or ``pass rate of refund``."""
    if not series.tag:
        return series.name
    return f"{series.name} of {series.tag}"


def overview(suite: SuiteHistory) -> str:
    """Return text such as ``42 runs of 38 commits and 12 versions of the agent, 2026-03-01 to 2026-05-02``."""
    runs = suite.runs
    commits = {run.commit for run in runs if run.commit}
    agents = {run.agent for run in runs if run.agent}
    of = []
    if commits:
        of.append(count(len(commits), "commit"))
    if agents:
        of.append(f"{count(len(agents), 'version')} of the agent")
    said = count(len(runs), "run")
    if of:
        said += f" of {' and '.join(of)}"
    first, last = day(runs[0].created), day(runs[-1].created)
    if first == last:
        return f"{said}, {first}"
    return f"{said}, {first} to {last}"


def newest_figure(series: Series) -> str:
    """Return the newest run's mean with its interval."""
    return interval(series.newest.estimate, series.criterion.scale)


def spread_figure(series: Series) -> str:
    """Return the standard deviation between the runs' averages."""
    spread, scale = series.summary.spread, series.criterion.scale
    if spread is None:
        return "–"
    if scale.is_in_percent:
        return change(spread, scale).lstrip("+±")
    return figure(spread, scale)


Together = list[tuple[Series, SeriesMove]]
"""The series that moved with the same commit, most likely from the same cause."""


def moved_together(suite: SuiteHistory) -> list[Together]:
    """Return the moves by commit, newest first; for each, the whole suite's before those of tags, largest first."""
    groups: dict[int, Together] = {}
    for series in suite.series:
        for move in series.moves:
            groups.setdefault(move.run, []).append((series, move))
    for group in groups.values():
        group.sort(key=_rank)
    return [groups[run] for run in sorted(groups, reverse=True)]


def _rank(moved: tuple[Series, SeriesMove]) -> tuple[bool, float]:
    series, move = moved
    average = abs(series.summary.average)
    if not average:
        return bool(series.tag), 0.0
    return bool(series.tag), -abs(move.change) / average


def moved_line(together: Together, suite: SuiteHistory) -> str:
    """Return ``with 3f2a1b9c (2026-10-02) pass rate fell by 6.2 points; pass rate of refund fell …; p ≤ 0.0004``.

    The interval of the commit is that of the first move; p is that of the least certain one.
    """
    _, first = together[0]
    run = suite.runs[first.run]
    where = f"with {label_of(run)} ({day(run.created)})"
    if first.first < first.run or first.last > first.run:
        where += f", 95 % interval {_place(suite.runs[first.first])} to {_place(suite.runs[first.last])},"
    moved, p = [], 0.0
    for series, move in together:
        verb = "rose"
        if move.change < 0:
            verb = "fell"
        moved.append(f"{subject(series)} {verb} by {_amount(move.change, series)}")
        p = max(p, move.p)
    likely = f"p ≤ {p:.1g}"
    if p < 0.0001:
        likely = "p < 0.0001"
    said = f"{where} {'; '.join(moved)}; {likely}"
    if first.same_agent:
        said += "; the agent's source did not change there"
    return said


def _place(run: PastRun) -> str:
    return f"{commit_of(run)} ({day(run.created)})"


def is_worse(together: Together) -> bool:
    """True if the first series moved for the worse."""
    series, move = together[0]
    return series.criterion.direction.is_loss(move.change)


def _amount(value: float, series: Series) -> str:
    """Return a change without its sign; for money, time and counts as a share of the average."""
    scale, average = series.criterion.scale, series.summary.average
    if not scale.is_relative:
        return change(abs(value), scale).removeprefix("+").removeprefix("±")
    if not average:
        return figure(abs(value), scale)
    return percentage(abs(value) / average)


def trend_line(series: Series) -> str:
    """Return the slope since the last move, with its interval; empty if there are too few runs."""
    going = series.going
    if going is None:
        return ""
    slopes = [f"{_slope(going.by_run, series)} a run"]
    if going.by_week is not None:
        slopes.append(f"{_slope(going.by_week, series)} a week")
    found = "shows no trend beyond chance"
    if going.found:
        found = "falls" if going.by_run.value < 0 else "rises"
    if series.moves:
        found += " since it moved"
    return f"{subject(series)} {found}: {', '.join(slopes)}; {count(going.runs, 'run')}"


def _slope(slope: Estimate, series: Series) -> str:
    """Return a slope with its 95 % interval, rounded according to the interval's width."""
    if slope.value == slope.low == slope.high == 0.0:
        return "±0"
    scale, average = series.criterion.scale, series.summary.average
    factor, unit = 1.0, ""
    if scale.is_in_percent:
        factor, unit = 100.0, " points"
    elif scale.is_relative and average:
        factor, unit = 100.0 / average, " %"
    width = abs(slope.high - slope.low) * factor
    places = 1
    while places < MOST_PLACES and width < 2 * 10**-places:
        places += 1

    def shown(one: float) -> str:
        text = f"{abs(one * factor):.{places}f}"
        if not float(text):
            return text
        if one < 0:
            return f"{MINUS}{text}"
        return f"+{text}"

    return f"{shown(slope.value)}{unit} [{shown(slope.low)}, {shown(slope.high)}]"


def warning_line(series: Series) -> str:
    """Return ``at this trend pass rate is below 80 % in 3 to 9 runs; 80 % interval``; empty without a warning."""
    ahead = series.ahead
    if ahead is None:
        return ""
    side = "above" if series.criterion.direction is Direction.LOWER else "below"
    when = f"{ahead.first} to {ahead.last} runs"
    if ahead.first == ahead.last:
        when = count(ahead.first, "run")
    limit = figure(ahead.threshold, series.criterion.scale)
    return f"at this trend {subject(series)} is {side} {limit} in {when}; {100 * AHEAD_LEVEL:.0f} % interval"


def break_lines(found: Iterable[Series], suite: SuiteHistory) -> list[str]:
    """Return the breaks in the series with their reasons, one line per reason, oldest first."""
    names: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for series in found:
        for stretch in series.stretches[1:]:
            names.setdefault((series.points[stretch.start].run, stretch.changed), []).append(subject(series))
    lines = []
    for (number, changed), subjects in sorted(names.items()):
        why = "no case in common"
        if changed:
            why = f"{listing(changed)} measured in another way"
        verb = agree(len(subjects), "is", "are")
        lines.append(f"{listing(subjects)} from {_place(suite.runs[number])} on {verb} not compared: {why}")
    return lines


def found_in(suite: SuiteHistory) -> list[tuple[str, str, str]]:
    """Return all findings, the most urgent first: the kind, the tone (`TONES` in `labels`), and the sentence."""
    found = []
    for series in suite.series:
        if series.ahead is not None:
            found.append(("early warning", "warn", warning_line(series)))
    for together in moved_together(suite):
        found.append(("moved", "bad" if is_worse(together) else "good", moved_line(together, suite)))
    for series in suite.series:
        if series.going is not None and series.going.found:
            fell = series.criterion.direction.is_loss(series.going.by_run.value)
            found.append(("trend", "bad" if fell else "good", trend_line(series)))
    for line in break_lines(suite.whole, suite):
        found.append(("not compared", "mute", line))
    return found


def findings(suite: SuiteHistory) -> list[str]:
    """Return all findings in words, or the statement that nothing moved."""
    lines = []
    for kind, _, said in found_in(suite):
        if kind == "early warning":
            said = f"{kind}: {said}"  # noqa: PLW2901
        lines.append(said)
    return lines or [_nothing(suite)]


def pass_rate_of(suite: SuiteHistory) -> Series | None:
    """Return the series of the pass rate over all cases."""
    for series in suite.whole:
        if series.name == PASS_RATE:
            return series
    return None


def _nothing(suite: SuiteHistory) -> str:
    if not suite.whole:
        return "nothing was measured"
    rate = pass_rate_of(suite) or suite.whole[0]
    line = trend_line(rate)
    if not line:
        return f"{count(len(rate.current), 'run')}: moves show from 4 on, trends from {LEAST_RUNS}"
    return f"no criterion moved; {line}"


# --- tables ---------------------------------------------------------------------------------------

Row = tuple[str, ...]
"""The cells of a row; the first row of a table is its head. Texts are raw."""
FEW_RUNS = 12
"""Maximum number of runs for which a case's counts are listed one by one; beyond that, a sparkline is shown."""
NONE = "–"


def runs_table(suite: SuiteHistory, most: int) -> list[Row]:
    """Return the newest runs, the newest first."""
    times, lead = times_of(suite.runs), pass_rate_of(suite)
    rates = {}
    if lead is not None:
        rates = {point.run: figure(point.estimate.value, lead.criterion.scale) for point in lead.points}
    rows: list[Row] = [("time (UTC)", "commit", "pass rate", "verdict", "version")]
    for number in range(len(suite.runs))[::-1][:most]:
        run = suite.runs[number]
        verdict = run.verdict.replace("_", " ") or "not stored"
        rows.append((times[number], label_of(run), rates.get(number, NONE), verdict, version_of(run) or NONE))
    return rows


SERIES_HEAD = ("newest, 95 % interval", "n", "average", "lowest", "highest", "spread", "oldest to newest")


def series_row(name: str, series: Series, suite: SuiteHistory) -> Row:
    """Return a criterion over time, in the columns of `SERIES_HEAD` after its name."""
    scale, summary = series.criterion.scale, series.summary
    by_run: list[float | None] = [None] * len(suite.runs)
    for point in series.points:
        by_run[point.run] = point.estimate.value
    picture = ""
    if len(series.points) > 1:
        picture = sparkline(by_run)
    return (
        name,
        newest_figure(series),
        str(series.newest.estimate.n),
        figure(summary.average, scale),
        figure(summary.lowest, scale),
        figure(summary.highest, scale),
        spread_figure(series),
        picture,
    )


def lowest_tags(suite: SuiteHistory, name: str) -> list[Series]:
    """Return a criterion by tag, the lowest first."""
    return sorted(suite.by_tag(name), key=lambda one: one.newest.estimate.value)


def versions_table(suite: SuiteHistory, most: int, criteria: int) -> list[Row]:
    """Return the newest versions, the newest first, with their scores by the first few criteria."""
    shown = suite.whole[:criteria]
    rows: list[Row] = [("version", "from", "runs", *[series.name for series in shown])]
    for version in reversed(suite.versions[-most:]):
        first = suite.runs[version.runs[0]]
        values = {value.name: value for value in version.values}
        cells = [_version_cell(values.get(series.name), series) for series in shown]
        name, since = version_of(first) or commit_of(first), f"{commit_of(first)} {day(first.created)}"
        rows.append((name, since, str(len(version.runs)), *cells))
    return rows


def _version_cell(value: VersionValue | None, series: Series) -> str:
    """Return ``81 % (60 % to 100 %), sd 0.31, n = 40``: the average, the lowest and the highest score."""
    if value is None:
        return NONE
    scale, estimate = series.criterion.scale, value.estimate
    said = f"{figure(estimate.value, scale)} ({figure(value.least, scale)} to {figure(value.most, scale)})"
    if estimate.sd is not None:
        if scale.is_in_percent:  # for zeros and ones it is no percentage
            scale = Scale.UNIT
        said += f", sd {figure(estimate.sd, scale)}"
    return f"{said}, n = {estimate.trials:,}"


def cases_table(cases: Iterable[CaseHistory]) -> list[Row]:
    """Return the pass rate of each case, with flaky ones flagged."""
    rows: list[Row] = [("case", "pass rate, 95 % interval", "trials", "note", "by run")]
    for case in cases:
        if len(case.by_record) <= FEW_RUNS:
            by_run = " ".join(f"{passed}/{trials}" for passed, trials in case.by_record)
        else:
            by_run = sparkline(
                [passed / trials if trials else None for passed, trials in case.by_record], low=0, high=1
            )
        rate = interval(Estimate(case.rate, case.low, case.high, 1, case.trials), Scale.BINARY)
        rows.append((case.id, rate, str(case.trials), "flaky" if case.flaky else "", by_run))
    return rows
