"""The HTML report: the verdict, the criteria with drawings, the comment's text, and every case with its conversations.

This module chooses the contents; ``templates/report.html`` lays them out, and ``templates/report.js`` shows the table
of cases and their details. Without scripts, the page has everything but that table.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from gate.decision.outcomes import PASS_RATE
from gate.model import (
    CaseResult,
    CaseStatus,
    CriterionResult,
    Direction,
    Estimate,
    Result,
    SuiteResult,
)
from gate.reports import labels, replayed
from gate.reports.cases import distinct, passes_less, status
from gate.reports.formatting import FINEST, count, figure, figures, margin, same_cases, sample, seconds
from gate.reports.html import page
from gate.reports.html.contents import CaseCollector
from gate.reports.html.plots import axis_of, intervals
from gate.reports.labels import CASE_TONES, TONES, VERDICTS
from gate.reports.markdown import sections
from gate.reports.rows import Figure, RowView
from gate.reports.trials import SuiteTrials
from gate.reports.view import View, views_of
from gate.security.escape import one_line
from gate.security.limits import MAX_ID_CHARS, cut, shorten

_MANY = 200
_TITLES = re.compile(r"<p><strong>([^<]*)</strong></p>")
"""The titles of a comment's parts."""
_SIGNS = {"good": "✓", "bad": "✕", "warn": "?", "mute": "–"}
_TONE_ORDER = ("bad", "warn", "shaky", "mute", "good")
_TEXT = 160
"""Maximum number of characters in a case's first reason in the table."""


def render(result: Result, trials: Sequence[SuiteTrials] = (), *, label: str = "") -> str:
    """Return a complete page in one file. ``trials``: those of each suite, in order; without them, the page says so.

    ``label``: the label that accepts a loss, if any.
    """
    suites, rows, pieces = [], {}, {}
    for number, view in enumerate(views_of(result), 1):
        contents = None
        if trials:
            contents = _contents(view, trials[number - 1])
            for at, piece in enumerate(contents.pieces):
                pieces[f"piece-{number}-{at}"] = piece
        suites.append(_suite(view, result, number, contents))
        rows[f"cases-{number}"] = _rows(view, contents)
    tone = page.tone_of(TONES[result.verdict])
    return page.render(
        "report.html",
        title=f"{VERDICTS[result.verdict]}: {', '.join(suite.suite_id for suite in result.suites)}",
        styles=("report.css",),
        scripts=("diff.js", "report.js"),
        data=rows,
        late=pieces,
        version=one_line(result.version, 30),
        verdict=VERDICTS[result.verdict],
        tone=tone,
        sign=_SIGNS[tone],
        suites=suites,
        label=label,
        ends=labels.end_line(result, result.verdict),
        problems=result.problems,
    )


def _suite(view: View, result: Result, number: int, contents: CaseCollector | None) -> Mapping[str, Any]:
    suite = view.suite
    tone = page.tone_of(TONES[suite.verdict])
    parts = sections(view, result)
    return {
        "view": view,
        "number": number,
        "tone": tone,
        "sign": _SIGNS[tone],
        "measured": _measured(suite),
        "tiles": _tiles(view),
        "statuses": _statuses(suite),
        "criteria": [_criterion(row) for row in view.rows[:_MANY]],
        "shown": _written(parts, "cases", "evidence", "more", "failing", "answers", "better"),
        "tags": _written(parts, "tags"),
        "notes": _written(parts, "warnings", "further", "rules"),
        "about": _written(parts, "story", "facts"),
        "omitted": _omitted(contents),
    }


def _written(parts: Mapping[str, str], *names: str) -> Markup:
    """Return these parts of the comment as HTML, with their titles as headings."""
    shown = page.from_markdown("\n\n".join([parts[name] for name in names if parts.get(name)]))
    return Markup(_TITLES.sub(r"<h2>\1</h2>", str(shown)))  # noqa: S704 - escaped before


def _measured(suite: SuiteResult) -> Mapping[str, str]:
    """Return the branch, the subject and the commit that were measured."""
    return {
        "branch": shorten(suite.branch, 60),
        "subject": shorten(suite.subject, 100),
        "commit": labels.commit_line(suite, 8),
    }


def _contents(view: View, trials: SuiteTrials) -> CaseCollector:
    """Return the contents of the cases, the most important first and with more trials, as long as there is space."""
    first = {case.id: case for case in (*view.worse, *view.failing, *view.improved)}
    others = [case for case in view.suite.cases if case.id not in first]
    contents = CaseCollector(trials, first.keys())
    contents.pack(view.suite.cases, [*first.values(), *others])
    return contents


def _omitted(contents: CaseCollector | None) -> str:
    if contents is None:
        return "This result came without its record, so conversations are not shown."
    if contents.left_out:
        return f"For want of room the conversations of {count(contents.left_out, 'case')} are not shown."
    return ""


def _tiles(view: View) -> list[tuple[str, str, str]]:
    """Return the name, the figure and the basis of each tile."""
    suite = view.suite
    tiles = []
    rate = suite.row(PASS_RATE)
    if rate is not None and rate.candidate is not None:
        tiles.append(("Pass rate", *_pass_rate(rate, rate.candidate)))
    cases = f"{len(view.worse):,} failing"
    if suite.has_baseline:
        cases = f"{sum(map(passes_less, view.worse)):,} lost, {len(view.improved):,} gained"
    tiles.append(("Cases", f"{len(suite.cases):,}", cases))
    runs = ", ".join(filter(None, (" · ".join(labels.runs(suite)), labels.basis(suite))))
    tiles.append(("Cost", labels.spent(suite) or "not reported", runs))
    tiles.append(("Took", seconds(suite.duration), ""))
    if suite.has_baseline:
        commit, _, rest = labels.baseline_line(suite.baseline, source=False).partition(", ")
        tiles.append(("Compared with", commit[:10], rest))
    else:
        tiles.append(("Compared with", "nothing", ""))
    return tiles


def _pass_rate(row: CriterionResult, candidate: Estimate) -> tuple[str, str]:
    """Return the rate and the earlier one, or its number of cases if the baseline's cases differ."""
    if row.baseline is None or not same_cases(row):
        return figure(candidate.value, row.criterion.scale), sample(candidate)
    now, before = figures((candidate.value, row.baseline.value), row.criterion.scale)
    return now, f"was {before}"


def _statuses(suite: SuiteResult) -> list[tuple[str, str, int, float, float]]:
    """Return the word, the tone and the number of each status, and the start and width of its bar in percent."""
    known = Counter((_TONE_ORDER.index(_tone(case)), status(case)) for case in suite.cases)
    start, found = 0.0, []
    for place, word in sorted(known):
        number = known[place, word]
        width = 100 * number / len(suite.cases)
        found.append((word, _TONE_ORDER[place], number, round(start, 3), round(width, 3)))
        start += width
    return found


# --- criteria -------------------------------------------------------------------------------------


def _criterion(row: RowView) -> Mapping[str, Any]:
    criterion = row.found.criterion
    tone, advisory = page.tone_of(row.tone), ""
    sign = _SIGNS[tone]
    if not criterion.blocking and not criterion.blocks_regression:
        advisory = "warns only"
        if tone == "bad":
            tone = "warn"
    return {
        "tone": tone,
        "name": row.name,
        "standing": row.standing,
        "sign": sign,
        "advisory": advisory,
        "wanted": row.wanted,
        "figures": (
            ("candidate", *_two(row.candidate)),
            ("baseline", *_two(row.baseline)),
            ("change", *_two(row.change)),
        ),
        "plot": _plot(row),
        "reason": "; ".join(filter(None, [row.full_reason, row.same_cause])),
        "evidence": "; ".join(filter(None, [row.judge, row.evidence])),
        "parts": [f"{one_line(name, 80)} {said}" for name, said in row.dimensions[:_MANY]],
    }


def _two(shown: Figure) -> tuple[str, str, str]:
    """Return a figure, its interval, and its basis."""
    value, bracket, rest = shown.text.partition(" [")
    ends, points, _ = rest.partition(" points")
    return f"{value}{points}", f"{bracket}{ends}".strip(), shown.rests_on


def _plot(row: RowView) -> Mapping[str, Any] | None:
    """Return both intervals on one axis, with the threshold and the margin; None if nothing was measured."""
    result = row.found
    ends: list[float] = []
    for side in (result.candidate, result.baseline):
        if side is not None:
            ends += [side.low, side.value, side.high]
    if not ends:
        return None
    scale, limit, worst = result.criterion.scale, result.criterion.threshold, _worst_unchanged(row)
    ends += [end for end in (limit, worst) if end is not None]
    axis = axis_of(ends, scale.range)
    band = None
    if worst is not None:
        band = (worst, axis.high)
        if result.criterion.direction is Direction.LOWER:
            band = (worst, axis.low)
    return {
        "drawing": intervals(axis, result.candidate, result.baseline, _described(row), band=band, limit=limit),
        "low": figure(axis.low, scale),
        "high": figure(axis.high, scale),
    }


def _worst_unchanged(row: RowView) -> float | None:
    """Return the worst mean within the margin of the baseline's; None if nothing is compared by a margin."""
    criterion, before, loss = row.criterion, row.found.baseline, row.allowed
    if loss is None or before is None or row.found.not_compared:
        return None
    if criterion.scale.is_relative:
        loss *= before.value
    worst = before.value - criterion.direction.sign * loss
    if not math.isfinite(worst):
        return None
    return worst


def _described(row: RowView) -> str:
    criterion = row.criterion
    parts = [f"this change {row.candidate.text}"]
    if row.found.baseline is not None:
        parts.append(f"baseline {row.baseline.text}")
    if row.allowed is not None:
        parts.append(f"margin {margin(row.allowed, criterion.scale)}")
    if criterion.threshold is not None:
        parts.append(f"threshold {figure(criterion.threshold, criterion.scale, finer=FINEST)}")
    return f"{one_line(row.name, 80)}: {', '.join(parts)}"


# --- cases ----------------------------------------------------------------------------------------


def _tone(case: CaseResult) -> str:
    tone = page.tone_of(CASE_TONES.get(case.status, "mute"))
    is_plain = status(case) in (labels.STATUSES[CaseStatus.OK], replayed.SAME)
    if tone == "good" and not is_plain:
        return "warn"
    return tone


def _rows(view: View, contents: CaseCollector | None) -> Mapping[str, Any]:
    """Return the data for the table of cases: the names once, and one list per case, as ``report.js`` reads them."""
    suite = view.suite
    tags = _numbered(sorted({tag for case in suite.cases for tag in case.tags}))
    criteria = _numbered([row.criterion.name for row in suite.criteria if row.criterion.name != PASS_RATE])
    rank = _numbered([case.id for case in (*view.worse, *view.failing)])
    better = {case.id for case in view.improved}
    rows: list[tuple[Any, ...]] = []
    for case in suite.cases:
        first, *others = distinct(case.reasons) or [replayed.of_case(case)]
        failing: Sequence[str] = ()
        asked, piece = "", -1
        if contents is not None:
            failing = contents.failing.get(case.id, ())
            asked = contents.asked(case.id)
            piece = contents.where.get(case.id, -1)
        rows.append(
            (
                cut(case.id, MAX_ID_CHARS),
                status(case),
                _tone(case),
                (case.passed, case.trials, case.baseline_passed, case.baseline_trials, case.errors),
                [tags[tag] for tag in case.tags],
                case.complexity.value,
                [criteria[name] for name in failing if name in criteria],
                _mean_duration(case),
                cut(first, _TEXT),
                asked,
                piece,
                rank.get(case.id, len(rank)),
                int(case.id in better),
                cut(str(case.location or ""), MAX_ID_CHARS),
                [cut(reason, 2 * _TEXT) for reason in others[:4]],
                cut(case.quarantine, MAX_ID_CHARS),
            )
        )
    return {
        "tags": [cut(tag, MAX_ID_CHARS) for tag in tags],
        "criteria": [cut(name, MAX_ID_CHARS) for name in criteria],
        "rows": rows,
        "units": {cut(row.criterion.name, 200): row.criterion.scale.value for row in suite.criteria},
    }


def _numbered(names: Sequence[str]) -> dict[str, int]:
    """Return the position of each name."""
    return {name: place for place, name in enumerate(names)}


def _mean_duration(case: CaseResult) -> float | None:
    """Return the seconds of a trial; None if any is unknown."""
    if case.duration is None or not case.trials:
        return None
    return round(case.duration / case.trials, 4)
