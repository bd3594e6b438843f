"""The dashboard: a page for all suites, and one for each with criteria, tags, cases, versions, cost and time.

The files link to each other by name, so they work from a folder, an artifact and a web server. Each page is bounded and
states what it omits; the JSON next to it has everything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from gate import __version__
from gate.decision.outcomes import PASS_RATE
from gate.histories.runs import SPENT
from gate.histories.trends import Histories, PastRun, Series, SuiteHistory
from gate.records.keys import suite_key
from gate.reports.badge import badge, look_of
from gate.reports.formatting import count, figure, threshold
from gate.reports.history import (
    SERIES_HEAD,
    cases_table,
    commit_of,
    day,
    found_in,
    label_of,
    lowest_tags,
    newest_figure,
    overview,
    pass_rate_of,
    runs_table,
    series_row,
    spread_figure,
    subject,
    times_of,
    trend_line,
    versions_table,
)
from gate.reports.history_json import render as history_json
from gate.reports.html.page import breakable, render, tone_of
from gate.reports.html.timeline import MOST_POINTS, place_of, timeline
from gate.security.escape import one_line

MOST_CASES = 1_000
MOST_RUNS = 200
MOST_VERSIONS = 40
MOST_SCORED = 5
"""Number of criteria by which versions are listed."""
MOST_TAGS_SHOWN = 6
MOST_FOUND = 12
MOST_LEFT_OUT = 50
SPENT_METRICS = frozenset(one.metric for one in SPENT.values())
_STYLES = ("site.css",)
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
BADGE_SECONDS = 30 * 86_400.0
"""The age of the newest run, in seconds, above which a badge is ``unknown``."""


def site(found: Histories, *, commits: str = "", made: float = 0.0) -> dict[str, str]:
    """Return file name → content.

    Args:
        found: the histories to show.
        commits: the address of a commit, with the placeholder ``{commit}``; empty: none.
        made: Unix time of the dashboard.
    """
    foot = f"Agent Gate {__version__}, {day(made)}, from {found.source}. history.json has every number."
    files = {"index.html": _index(found, foot), "history.json": history_json(found)}
    for suite in found.suites:
        name, newest, verdict = suite_key(suite.suite_id), suite.runs[-1], ""
        if made - newest.created <= BADGE_SECONDS:
            verdict = newest.verdict
        files[f"{name}.html"] = _page(suite, commits, foot)
        files[f"{name}.svg"] = badge(suite.suite_id, verdict, day(newest.created))
    if len(found.suites) == 1:
        name = suite_key(found.suites[0].suite_id)
        files["badge.svg"] = files[f"{name}.svg"]
    return files


def _look(run: PastRun) -> Mapping[str, str]:
    said, tone = look_of(run.verdict)
    return {"said": said, "tone": tone_of(tone)}


# --- all suites -------------------------------------------------------------------------------------


def _index(found: Histories, foot: str) -> str:
    runs = sum(len(suite.runs) for suite in found.suites)
    return render(
        "site_index.html",
        title="Agent Gate: quality over time",
        styles=_STYLES,
        heading="Quality over time",
        lede=f"{count(len(found.suites), 'suite')}, {count(runs, 'run')}",
        suites=[_card(suite) for suite in found.suites],
        left_out=found.unread[:MOST_LEFT_OUT],
        left_lede=f"{count(len(found.unread), 'record')} could not be read.",
        foot=foot,
    )


def _card(suite: SuiteHistory) -> Mapping[str, Any]:
    lead, chart = pass_rate_of(suite), None
    shown = [one for one in suite.whole if one.criterion.metric in SPENT_METRICS]
    if lead is not None:
        chart = _chart(lead, suite, height=110)
        shown.insert(0, lead)
    figures = []
    for one in shown:
        value = figure(one.newest.estimate.value, one.criterion.scale)
        figures.append({"name": f"{one.name}, newest run", "value": value})
    return {
        "name": suite.suite_id,
        "page": f"{suite_key(suite.suite_id)}.html",
        "look": _look(suite.runs[-1]),
        "overview": overview(suite),
        "chart": chart,
        "figures": figures,
        "found": found_in(suite)[:3],
    }


# --- drawings ---------------------------------------------------------------------------------------


def _chart(series: Series, suite: SuiteHistory, *, height: int) -> Mapping[str, Any] | None:
    """Return the series as a drawing; None if it has only a single run."""
    if len(series.points) < 2:
        return None
    place, scale = place_of(series, len(suite.runs)), series.criterion.scale
    shown = suite.runs[max(0, len(suite.runs) - MOST_POINTS) :]
    times = times_of(suite.runs)
    return {
        "svg": _drawn(series, suite, height=height),
        "top": figure(place.axis.high, scale),
        "bottom": figure(place.axis.low, scale),
        "first": f"{commit_of(shown[0])} {times[-len(shown)]}",
        "last": f"{commit_of(shown[-1])} {times[-1]}",
    }


def _drawn(series: Series, suite: SuiteHistory, *, height: int) -> Markup:
    times, titles = times_of(suite.runs), []
    for point in series.points:
        value = figure(point.estimate.value, series.criterion.scale)
        label = one_line(label_of(suite.runs[point.run]), 80)
        titles.append(f"{times[point.run]} {label}: {value}, n = {point.estimate.n}")
    name = f"{subject(series)} over {count(len(series.points), 'run')}, newest {newest_figure(series)}"
    return timeline(series, len(suite.runs), titles, one_line(name, 200), height=height)


def _tile(series: Series, suite: SuiteHistory, *, height: int = 90) -> Mapping[str, Any]:
    return {
        "name": series.name,
        "newest": newest_figure(series),
        "chart": _chart(series, suite, height=height),
        "sum": _sum(series),
    }


def _sum(series: Series) -> str:
    summary, scale = series.summary, series.criterion.scale
    ends = f"{figure(summary.lowest, scale)} to {figure(summary.highest, scale)}"
    said = [f"average {figure(summary.average, scale)} over {count(summary.runs, 'run')}, {ends}"]
    if summary.spread is not None:
        said.append(f"spread {spread_figure(series)}")
    if series.criterion.threshold is not None:
        said.append(threshold(series.criterion))
    said.append(trend_line(series))
    return "; ".join(filter(None, said))


# --- one suite --------------------------------------------------------------------------------------


def _page(suite: SuiteHistory, commits: str, foot: str) -> str:
    lead, lead_tile = pass_rate_of(suite), None
    if lead is not None:
        lead_tile = _tile(lead, suite, height=190)
    criteria, spent = [], []
    for one in suite.whole:
        if one.criterion.metric in SPENT_METRICS:
            spent.append(_tile(one, suite))
        elif one is not lead:
            criteria.append(_tile(one, suite))
    return render(
        "site_suite.html",
        title=f"{one_line(suite.suite_id, 80)} over time",
        styles=_STYLES,
        scripts=("site.js",),
        suite=suite.suite_id,
        look=_look(suite.runs[-1]),
        judged=f"; newest run {day(suite.runs[-1].created)}",
        overview=overview(suite),
        lead=lead_tile,
        found=found_in(suite)[:MOST_FOUND],
        criteria=criteria,
        spent=spent,
        tables=[_tags(suite), _versions(suite), _cases(suite), _runs(suite, commits)],
        foot=foot,
    )


def _table(key: str, title: str, lede: str, rows: Sequence[Sequence[str]]) -> Mapping[str, Any]:
    """Return a table for the page; its head is the first row, and only `Markup` is not escaped."""
    head, *others = rows
    shown = []
    for row in others:
        shown.append([cell if isinstance(cell, Markup) else breakable(cell) for cell in row])
    return {"key": key, "title": title, "lede": lede, "head": head, "rows": shown}


def _bound(all_of: int, most: int, noun: str, which: str) -> str:
    if all_of <= most:
        return count(all_of, noun)
    return f"{which} {most:,} of {count(all_of, noun)}"


def _tags(suite: SuiteHistory) -> Mapping[str, Any]:
    rows = [series_row(one.tag, one, suite) for one in lowest_tags(suite, PASS_RATE)]
    return _table(
        "tags", "By tag", "The pass rate of the cases with a tag, the lowest first.", [("tag", *SERIES_HEAD), *rows]
    )


def _versions(suite: SuiteHistory) -> Mapping[str, Any]:
    known = _bound(len(suite.versions), MOST_VERSIONS, "version", "the newest")
    lede = f"{known}; the average, the lowest to the highest score of a trial (of a case for pass rates)"
    return _table("versions", "Versions of the agent", lede, versions_table(suite, MOST_VERSIONS, MOST_SCORED))


def _cases(suite: SuiteHistory) -> Mapping[str, Any]:
    """Return the cases, those with the lowest pass rate first, with their tags."""
    ordered, tags = sorted(suite.cases, key=lambda case: (case.rate, case.id)), suite.runs[-1].tags
    shown = ordered[:MOST_CASES]
    head, *others = cases_table(shown)
    rows: list[Sequence[str]] = [(*head, "tags")]
    for case, row in zip(shown, others, strict=True):
        rows.append((*row, ", ".join(sorted(tags.get(case.id, ()))[:MOST_TAGS_SHOWN])))
    flaky = sum(case.flaky for case in suite.cases)
    lede = f"{_bound(len(ordered), MOST_CASES, 'case', 'the lowest')}, {flaky:,} flaky; reruns are counted, too"
    return _table("cases", "Cases", lede, rows)


def _runs(suite: SuiteHistory, commits: str) -> Mapping[str, Any]:
    """Return the runs, with links to their commits."""
    head, *others = runs_table(suite, MOST_RUNS)
    rows: list[Sequence[str]] = [head]
    for run, (time, label, rate, _, version) in zip(reversed(suite.runs), others, strict=False):
        verdict = Markup('<span class="pill {tone}">{said}</span>').format(**_look(run))
        page = _page_of(run, commits)
        if page:
            label = Markup('<a href="{}">{}</a>').format(page, breakable(label))  # noqa: PLW2901
        rows.append((time, label, rate, verdict, version))
    return _table("runs", "Runs", _bound(len(suite.runs), MOST_RUNS, "run", "the newest"), rows)


def _page_of(run: PastRun, commits: str) -> str:
    """Return the address of the run's commit; empty if it has no valid one."""
    if run.commit is None or not _COMMIT.fullmatch(run.commit):
        return ""
    return commits.replace("{commit}", run.commit)
