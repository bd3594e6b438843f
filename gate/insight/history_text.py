"""The text of `gate history`: every suite's criteria, tags, versions and cases over time."""

from __future__ import annotations

from collections.abc import Sequence

from gate.decision.outcomes import PASS_RATE
from gate.histories.cases import CaseHistory
from gate.histories.trends import Histories, SuiteHistory
from gate.reports.formatting import agree, count
from gate.reports.history import (
    SERIES_HEAD,
    Row,
    cases_table,
    findings,
    lowest_tags,
    overview,
    runs_table,
    series_row,
    versions_table,
)
from gate.reports.sparkline import encodable
from gate.reports.table import table
from gate.security.escape import console

MOST_UNREAD = 5
MOST_RUNS = 12
"""Maximum number of runs to list, the newest first."""
MOST_VERSIONS = 12
"""Maximum number of versions to list, the newest."""
SCORED = 2
"""Number of criteria by which versions are listed."""
MOST_FLAKY = 12
"""Maximum number of flaky cases to list."""


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
    return table(runs_table(suite, MOST_RUNS), width) + _left(len(suite.runs) - MOST_RUNS, "older runs")


def _left(number: int, what: str) -> str:
    """Return a line on what is not listed; empty if everything is."""
    if number <= 0:
        return ""
    return f"\n{number:,} {what}: --json has all"


def _criteria(suite: SuiteHistory, *, tags: bool, width: int | None) -> str:
    """Return the criteria, with the pass rate by tag below it, the lowest first; ``tags``: each criterion by tag."""
    rows: list[Row] = [("criterion", *SERIES_HEAD)]
    for series in suite.whole:
        rows.append(series_row(series.name, series, suite))
        if tags or series.name == PASS_RATE:
            rows += [series_row(f"- {one.tag}", one, suite) for one in lowest_tags(suite, series.name)]
    return table(rows, width)


def _versions(suite: SuiteHistory, width: int | None) -> str:
    shown = table(versions_table(suite, MOST_VERSIONS, SCORED), width)
    return shown + _left(len(suite.versions) - MOST_VERSIONS, "older versions")


def _cases(cases: Sequence[CaseHistory], *, everyone: bool, width: int | None) -> str:
    """Return the pass rate of each case, with flaky ones flagged."""
    shown = [case for case in cases if everyone or case.flaky]
    if not shown:
        return f"none of {count(len(cases), 'case')} is flaky"
    if everyone:
        return table(cases_table(shown), width)
    text = table(cases_table(sorted(shown, key=lambda case: case.rate)[:MOST_FLAKY]), width)
    text += f"\n{len(shown):,} of {count(len(cases), 'case')} {agree(len(shown), 'is', 'are')} flaky"
    if len(shown) > MOST_FLAKY:
        text += f"; the lowest {MOST_FLAKY} are shown, --cases shows all"
    return text
