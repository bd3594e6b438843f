"""The dashboard: a page for all suites, and one for each with criteria, tags, cases, versions, cost and time.

The files link to each other by name, so they work from a folder, an artifact and a web server. Each page is bounded and
states what it omits; the JSON next to it has everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from gate import __version__
from gate.decision.outcomes import PASS_RATE
from gate.histories.cases import CaseHistory
from gate.histories.runs import SPENT
from gate.histories.trends import Histories, PastRun, Series, SuiteHistory, Version, VersionValue
from gate.model import Estimate, Scale
from gate.records.keys import suite_key
from gate.reports.badge import badge, endpoint, look_of
from gate.reports.formatting import count, figure, interval, threshold
from gate.reports.history import (
    SHORT,
    commit_of,
    day,
    deviation_figure,
    found_in,
    how_it_moved,
    label_of,
    newest_figure,
    overview,
    pass_rate_of,
    pass_rates,
    spread_figure,
    subject,
    times_of,
    trend_line,
    version_start,
)
from gate.reports.history_json import render as history_json
from gate.reports.html.page import render, tone_of
from gate.reports.html.timeline import MOST_POINTS, place_of, strip, timeline
from gate.security.escape import one_line

MOST_CASES = 1_000
MOST_RUNS = 200
MOST_VERSIONS = 40
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
        files[f"{name}.json"] = endpoint(suite.suite_id, verdict)
    if len(found.suites) == 1:
        name = suite_key(found.suites[0].suite_id)
        files |= {"badge.svg": files[f"{name}.svg"], "badge.json": files[f"{name}.json"]}
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
    times, rates = times_of(suite.runs), pass_rates(suite)
    runs = []
    for number in range(len(suite.runs))[::-1][:MOST_RUNS]:
        runs.append(_run(suite.runs[number], times[number], rates.get(number, "–"), commits))
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
        legend=_legend(suite),
        found=found_in(suite)[:MOST_FOUND],
        criteria=criteria,
        spent=spent,
        tags=_tags(suite),
        tags_lede="The pass rate of the cases with a tag, the lowest first.",
        **_versions(suite),
        **_cases(suite),
        runs=runs,
        runs_lede=_bound(len(suite.runs), len(runs), "run", "the newest"),
        foot=foot,
    )


LEGEND = {
    "limit": "threshold",
    "worse": "moved for the worse, with the interval of when",
    "better": "moved for the better",
    "ahead": "early warning",
    "past": "measured in another way, not compared",
}
"""The elements of a drawing besides line and interval."""


def _legend(suite: SuiteHistory) -> list[Mapping[str, str]]:
    """Return the elements of this suite's drawings besides line and interval."""
    drawn = suite.whole
    there = set()
    for one in drawn:
        if one.criterion.threshold is not None:
            there.add("limit")
        for move in one.moves:
            there.add("worse" if one.criterion.direction.is_loss(move.change) else "better")
        if one.ahead is not None:
            there.add("ahead")
        if len(one.stretches) > 1:
            there.add("past")
    return [{"kind": kind, "said": said} for kind, said in LEGEND.items() if kind in there]


def _bound(all_of: int, shown: int, noun: str, which: str) -> str:
    if shown == all_of:
        return count(all_of, noun)
    return f"{which} {shown:,} of {count(all_of, noun)}"


def _tags(suite: SuiteHistory) -> list[Mapping[str, Any]]:
    found = sorted(suite.by_tag(PASS_RATE), key=lambda one: one.newest.estimate.value)
    return [_tag(one, suite) for one in found]


def _tag(one: Series, suite: SuiteHistory) -> Mapping[str, Any]:
    moved = [f"{how_it_moved(move)} with {commit_of(suite.runs[move.run])}" for move in one.moves]
    drawn = ""
    if len(one.points) > 1:
        drawn = _drawn(one, suite, height=36)
    return {
        "name": one.tag,
        "newest": newest_figure(one),
        "cases": one.newest.estimate.n,
        "svg": drawn,
        "average": figure(one.summary.average, one.criterion.scale),
        "lowest": figure(one.summary.lowest, one.criterion.scale),
        "highest": figure(one.summary.highest, one.criterion.scale),
        "moved": "; ".join(moved),
    }


def _versions(suite: SuiteHistory) -> Mapping[str, Any]:
    followed = suite.whole[:5]
    shown = suite.versions[::-1][:MOST_VERSIONS]
    return {
        "versions": [_version(one, suite, followed) for one in shown],
        "version_names": [one.name for one in followed],
        "versions_lede": f"{_bound(len(suite.versions), len(shown), 'version', 'the newest')}; "
        "average, then the lowest to the highest score of a trial (of a case for pass rates), standard deviation and n",
    }


def _version(version: Version, suite: SuiteHistory, followed: Sequence[Series]) -> Mapping[str, Any]:
    name, since = version_start(version, suite)
    values = {value.name: value for value in version.values}
    return {
        "name": one_line(name, 80),
        "since": since,
        "runs": len(version.runs),
        "cells": [_cell(values.get(one.name), one) for one in followed],
    }


def _cell(value: VersionValue | None, series: Series) -> Mapping[str, str]:
    if value is None:
        return {"value": "–", "rest": ""}
    scale, estimate = series.criterion.scale, value.estimate
    rest = f"{figure(value.least, scale)} to {figure(value.most, scale)}"
    if estimate.sd is not None:
        rest += f", sd {deviation_figure(estimate.sd, scale)}"
    return {"value": figure(estimate.value, scale), "rest": f"{rest}, n = {estimate.trials:,}"}


def _cases(suite: SuiteHistory) -> Mapping[str, Any]:
    """Return the cases, those with the lowest pass rate first."""
    ordered = sorted(suite.cases, key=lambda case: (case.rate, case.id))
    shown, tags = ordered[:MOST_CASES], suite.runs[-1].tags
    flaky = sum(case.flaky for case in suite.cases)
    return {
        "cases": [_case(case, tags.get(case.id, ())) for case in shown],
        "cases_lede": f"{_bound(len(ordered), len(shown), 'case', 'the lowest')}, {flaky:,} flaky; "
        "reruns are counted, too",
    }


def _case(case: CaseHistory, tags: Iterable[str]) -> Mapping[str, Any]:
    name = f"{case.passed} of {count(case.trials, 'trial')} passed"
    return {
        "name": case.id,
        "flaky": case.flaky,
        "rate": figure(case.rate, Scale.BINARY),
        "bounds": interval(Estimate(case.rate, case.low, case.high, 1), Scale.BINARY).partition(" % ")[2],
        "trials": case.trials,
        "svg": strip(case.by_record, name),
        "tags": sorted(tags)[:MOST_TAGS_SHOWN],
    }


def _run(run: PastRun, time: str, rate: str, commits: str) -> Mapping[str, Any]:
    return {
        "time": time,
        "commit": commit_of(run),
        "subject": one_line(run.subject, 120),
        "page": _page_of(run, commits),
        "releases": run.releases[:3],
        "look": _look(run),
        "rate": rate,
        "cases": f"{len(run.cases):,}",
        "trials": f"{run.values.trials:,}",
        "version": one_line(run.told or run.agent[:SHORT], 60) or "–",
    }


def _page_of(run: PastRun, commits: str) -> str:
    """Return the address of the run's commit; empty if it has no valid one."""
    if run.commit is None or not _COMMIT.fullmatch(run.commit):
        return ""
    return commits.replace("{commit}", run.commit)
