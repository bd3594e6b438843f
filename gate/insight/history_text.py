"""The text of `gate history`: every suite's criteria, tags, versions and cases over time."""

from __future__ import annotations

from collections.abc import Sequence

from gate.decision.outcomes import PASS_RATE
from gate.histories.cases import CaseHistory
from gate.histories.trends import Histories, Series, SuiteHistory, VersionValue
from gate.model import Estimate, Scale
from gate.reports.formatting import agree, count, figure, interval
from gate.reports.history import (
    case_trend,
    deviation_figure,
    findings,
    label_of,
    newest_figure,
    overview,
    pass_rates,
    spread_figure,
    times_of,
    version_of,
    version_start,
)
from gate.reports.sparkline import encodable, sparkline
from gate.reports.table import table
from gate.security.escape import console

MOST_UNREAD = 5
MOST_RUNS = 12
"""Maximum number of runs to list, the newest first."""
MOST_VERSIONS = 12
"""Maximum number of versions to list, the newest."""
HEAD = ("criterion", "newest, 95 % interval", "n", "average", "lowest", "highest", "spread", "oldest to newest")
MOST_FLAKY = 12
"""Maximum number of flaky cases to list."""
FEW_RUNS = 12
"""Maximum number of runs for which a case's counts are listed one by one; beyond that, a sparkline is shown."""


def history_text(
    found: Histories, *, cases: bool, tags: bool = False, ascii_only: bool = False, width: int | None = None
) -> str:
    """Return the history as text. ``cases``: list all cases, not only flaky ones; ``tags``: list each criterion by
    tag."""
    parts = [_suite(suite, cases=cases, tags=tags, width=width) for suite in found.suites]
    if found.unread:
        lines = [f"{count(len(found.unread), 'record')} left out:"]
        for one in found.unread[:MOST_UNREAD]:
            lines.append(f"  {console(one.where)}: {console(one.why, 300)}")
        if len(found.unread) > MOST_UNREAD:
            lines.append(f"  and {len(found.unread) - MOST_UNREAD:,} more")
        parts.append("\n".join(lines))
    text = "\n\n".join(parts)
    if ascii_only:
        return encodable(text, "ascii")
    return text


def _suite(suite: SuiteHistory, *, cases: bool, tags: bool, width: int | None) -> str:
    blocks = [f"{console(suite.suite_id)} · {overview(suite)}", _runs(suite, width)]
    blocks.append(_criteria(suite, tags=tags, width=width))
    blocks.append("\n".join(f"- {console(line)}" for line in findings(suite)))
    if len(suite.versions) > 1:
        blocks.append(_versions(suite, width))
    blocks.append(_cases(suite.cases, everyone=cases, width=width))
    return "\n\n".join(filter(None, blocks))


def _runs(suite: SuiteHistory, width: int | None) -> str:
    """Return the newest runs, the newest first."""
    times, rates = times_of(suite.runs), pass_rates(suite)
    rows: list[tuple[str, ...]] = [("time (UTC)", "commit", "pass rate", "verdict", "version")]
    newest = range(len(suite.runs))[::-1][:MOST_RUNS]
    for number in newest:
        run = suite.runs[number]
        verdict = run.verdict.replace("_", " ") or "not stored"
        rows.append((times[number], label_of(run), rates.get(number, "–"), verdict, version_of(run) or "–"))
    return table(rows, width) + _left(len(suite.runs) - MOST_RUNS, "older runs")


def _left(number: int, what: str) -> str:
    """Return a line on what is not listed; empty if everything is."""
    if number <= 0:
        return ""
    return f"\n{number:,} {what}: --json has all"


def _criteria(suite: SuiteHistory, *, tags: bool, width: int | None) -> str:
    """Return the criteria, with the pass rate by tag below it, the lowest first; ``tags``: each criterion by tag."""
    rows: list[tuple[str, ...]] = [HEAD]
    for series in suite.whole:
        rows.append(_row(series.name, series, len(suite.runs)))
        if tags or series.name == PASS_RATE:
            for one in sorted(suite.by_tag(series.name), key=lambda one: one.newest.estimate.value):
                rows.append(_row(f"- {one.tag}", one, len(suite.runs)))
    return table(rows, width)


def _row(name: str, series: Series, runs: int) -> tuple[str, ...]:
    scale, summary = series.criterion.scale, series.summary
    by_run: list[float | None] = [None] * runs
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


def _versions(suite: SuiteHistory, width: int | None) -> str:
    shown = suite.whole[:2]
    heads = [f"{series.name}: average, lowest, highest, sd, n" for series in shown]
    rows: list[tuple[str, ...]] = [("version", "from", "runs", *heads)]
    for version in reversed(suite.versions[-MOST_VERSIONS:]):
        values = {value.name: value for value in version.values}
        cells = [_version_cell(values.get(series.name), series) for series in shown]
        rows.append((*version_start(version, suite), str(len(version.runs)), *cells))
    return table(rows, width) + _left(len(suite.versions) - MOST_VERSIONS, "older versions")


def _version_cell(value: VersionValue | None, series: Series) -> str:
    if value is None:
        return "–"
    scale, estimate = series.criterion.scale, value.estimate
    ends = f"{figure(estimate.value, scale)}, {figure(value.least, scale)}, {figure(value.most, scale)}"
    spread = "–"
    if estimate.sd is not None:
        spread = deviation_figure(estimate.sd, scale)
    return f"{ends}, {spread}, {estimate.trials}"


def _cases(cases: Sequence[CaseHistory], *, everyone: bool, width: int | None) -> str:
    """Return the pass rate of each case, with flaky ones flagged."""
    shown = [case for case in cases if everyone or case.flaky]
    if not shown:
        return f"none of {count(len(cases), 'case')} is flaky"
    if everyone:
        return _case_table(shown, width)
    text = _case_table(sorted(shown, key=lambda case: case.rate)[:MOST_FLAKY], width)
    text += f"\n{len(shown):,} of {count(len(cases), 'case')} {agree(len(shown), 'is', 'are')} flaky"
    if len(shown) > MOST_FLAKY:
        text += f"; the lowest {MOST_FLAKY} are shown, --cases shows all"
    return text


def _case_table(cases: Sequence[CaseHistory], width: int | None) -> str:
    rows = [("case", "pass rate, 95 % interval", "trials", "", "by run")]
    for case in cases:
        if len(case.by_record) <= FEW_RUNS:
            by_run = " ".join(f"{passed}/{trials}" for passed, trials in case.by_record)
        else:
            by_run = sparkline(case_trend(case), low=0, high=1)
        rate = interval(Estimate(case.rate, case.low, case.high, 1, case.trials), Scale.BINARY)
        rows.append((case.id, rate, str(case.trials), "flaky" if case.flaky else "", by_run))
    return table(rows, width)
