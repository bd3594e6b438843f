"""The Markdown report: a comment, note or job summary that a busy reviewer reads in ten seconds.

It has the outcome, its certainty, the cases that show it, and the next step; everything else is in one fold. Text from
outside goes through `gate.security.escape`. Too long a text loses whole parts of the fold, the least important first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from gate.model import BaselineInfo, CaseResult, CaseStatus, Result, SuiteResult, Verdict
from gate.reports import by_tag
from gate.reports.cases import distinct, improvement, status, tally
from gate.reports.formatting import NOT_MEASURED, count
from gate.reports.labels import (
    TONES,
    at_commit,
    baseline_line,
    command_lines,
    end_line,
    from_here,
    reference_name,
    trend_line,
)
from gate.reports.rows import Figure, RowView
from gate.reports.trajectory_diff import TurnDiff, differences
from gate.reports.view import View, view_of, views_of
from gate.reports.words import pooled
from gate.security import escape

LIMIT = 60_000
"""Maximum number of characters; the host refuses more than 65,536."""
_LEAST = 5_000
_SIGNS = {"good": "✅", "bad": "❌", "error": "💥", "warn": "⚠️", "mute": "➖"}
"""The sign of each tone."""
_MANY = 50
_KINDS = 10
"""Maximum number of cases in the fold that are shown with their behaviour."""
_BADNESS = list(TONES)
"""Verdicts, the worst last."""
_TITLE = 200
_SENTENCE = 400
_DIFF = 8_000
"""Maximum number of characters in the calls or answers of one case."""


class Place(Struct, frozen=True):
    """The place in which the report is read."""

    head: str = ""
    """The commit that the reader knows; empty: the measured one, which on GitHub can be a merge commit."""
    url: str = ""
    """The page of the run, where the job can be rerun."""
    report: str = ""
    """The address of the full report, if it is not that page."""
    accept_label: str = ""
    """The label that accepts a regression; empty if there is none."""
    base: str = ""
    """The target branch of the change."""
    remark: str = ""
    """A sentence about the next step, without its full stop."""
    names_suite: bool = False
    """True if reports on other suites may stand beside this one."""


NOWHERE = Place()


def render(result: Result, *, limit: int = LIMIT, place: Place = NOWHERE) -> str:
    """Return all suites, worst first, in at most ``limit`` characters; a limit under 5,000 counts as 5,000."""
    views = sorted(views_of(result), key=lambda v: (-_BADNESS.index(v.suite.verdict), v.suite.suite_id))
    left = max(limit, _LEAST)
    parts = []
    for index, view in enumerate(views):
        waiting = len(views) - index
        part = _suite(view, result, place, max(left // waiting, 0))
        if len(part) > left - 100:
            parts.append(f"… and {count(waiting, 'more suite')}{_links(place)}\n")
            break
        parts.append(part)
        left -= len(part) + 1
    return "\n".join(parts) or f"<sub>{_end(result, result.verdict)}</sub>\n"


def render_suite(suite: SuiteResult, result: Result, *, limit: int = LIMIT, place: Place = NOWHERE) -> str:
    """Return one suite of a result, for hosts that keep a comment per suite; lengths as in `render`."""
    return _suite(view_of(suite, result), result, place, max(limit, _LEAST))


def render_unmeasured(error: str, place: Place = NOWHERE) -> str:
    """Return the report on a run that ended without a result."""
    title = f"### 💥 Could not decide {escape.markdown_code(place.head[:7])}".rstrip()
    return (
        f"{title}\n\n{escape.markdown(error, 1_000)}\n\n"
        f"**Next:** fix the problem and push, or run the job again.{_remark(place)}{_links(place)}\n"
    )


def sections(view: View, result: Result) -> dict[str, str]:
    """Return the parts of a suite's report by name: ``cases`` and ``evidence``, and those of the fold."""
    found = dict(_parts(view, result))
    if view.table.lines:
        found["cases"] = _cases(view, NOWHERE)
    case, turns = view.evidence
    if case is not None:
        found["evidence"] = _evidence(case, turns)
    return found


def _suite(view: View, result: Result, place: Place, limit: int) -> str:
    head = "\n\n".join(filter(None, (_heading(view, result, place), *_opening(view, place))))
    foot = f"<sub>{_of_what(view, place)} · {_end(result, view.suite.verdict)}</sub>\n"
    parts = dict(_parts(view, result))
    shortened = ""
    for name in (None, "scores", "answers", "tags", "better", "failing", "rules", "more", "story", "criteria"):
        if name is not None:
            parts.pop(name, None)
            shortened = "<sub>Shortened to fit.</sub>"
        body = "\n\n".join(filter(None, parts.values()))
        text = "\n\n".join(filter(None, (head, _fold(view, body), shortened, foot)))
        if len(text) <= limit:
            return text
    return "\n\n".join((_heading(view, result, place), _next(view, place), shortened, foot))


# --- above the fold -------------------------------------------------------------------------------


def _heading(view: View, result: Result, place: Place) -> str:
    said = escape.markdown_prose(view.title, _TITLE)
    if len(result.suites) > 1 or place.names_suite:
        said = f"{escape.markdown_code(view.suite.suite_id, 60)}: {said}"
    return f"### {_SIGNS[TONES[view.suite.verdict]]} {said}"


def _opening(view: View, place: Place) -> Iterator[str]:
    if view.lead:
        yield " ".join(escape.markdown_prose(text, _SENTENCE) for text in view.lead)
    if view.table.lines:
        yield _cases(view, place)
    case, turns = view.evidence
    if case is not None:
        yield _evidence(case, turns)
    yield _next(view, place)


def _cases(view: View, place: Place) -> str:
    """Return the table of cases, with name, before and now."""
    table = view.table
    base = escape.markdown(reference_name(view.suite.deciding.reference) or place.base or "before", 40)
    head, *rows = table.rows(base)
    shown = [[_name(first), *before, f"**{now}**"] for first, *before, now in rows]
    if table.more:
        shown.append([f"… {table.more}", *[""] * (len(head) - 1)])
    return _table(head, shown)


def _evidence(case: CaseResult, turns: Sequence[TurnDiff]) -> str:
    """Return the case's changed behaviour, or the reason of its failure if calls and answers do not show it."""
    if turns:
        return "\n\n".join(_turn(turn, case) for turn in turns)
    if case.reasons:
        return f"> {_name(case.id)}: {escape.markdown(case.reasons[0], _SENTENCE)}"
    return ""


def _turn(turn: TurnDiff, case: CaseResult) -> str:
    """Return calls as a diff, or an answer next to the expected one, with the differing words in bold."""
    several = ""
    if max(len(case.actual), len(case.actual_text)) > 1:
        several = f", turn {turn.turn}"
    if turn.noun:
        return f"{_name(case.id)}{several}:\n\n{_answers(turn)}"
    lines = [f"@@ {escape.one_line(case.id, 60)}{several}: - {turn.against}, + this change @@"]
    for mark, text in turn.lines:
        lines.append(f"{mark} {escape.one_line(text, 600)}")
    return escape.markdown_fence("\n".join(lines), "diff", _DIFF)


def _answers(turn: TurnDiff) -> str:
    """Return the answer, below the one to compare it with, if any."""
    labels = filter(None, (turn.against, "answered"))
    lines = []
    for label, pieces in zip(labels, turn.sides, strict=True):
        said = "".join([_piece(text, differs) for text, differs in pieces])
        lines.append(f"> **{label}** {said}")
    return "<br>\n".join(lines)


def _piece(text: str, differs: bool) -> str:
    if not text.strip():
        return " "

    def escaped(one: str) -> str:
        shown = escape.markdown(one, 2 * _SENTENCE)
        if differs:
            return f"**{shown}**"
        return shown

    return escape.spaced(text, escaped)


def _next(view: View, place: Place) -> str:
    """Return the next step with links; for a pass, only the links."""
    todo = view.next_step(place.accept_label)
    if not todo:
        return _links(place).strip()
    return f"**Next:** {escape.markdown_prose(todo, _SENTENCE)}.{_remark(place)}{_links(place)}"


def _remark(place: Place) -> str:
    said = place.remark[:1].upper() + place.remark[1:]
    return f" {escape.markdown_prose(said, _SENTENCE)}." if said else ""


def _links(place: Place) -> str:
    if not place.url:
        return ""
    return f" [Full report]({place.report or place.url}) · [Run again]({place.url})"


# --- the fold -------------------------------------------------------------------------------------


def _fold(view: View, body: str) -> str:
    if not body:
        return ""
    title = "Numbers, cost, baseline, and how it was decided"
    if view.warnings:
        title += f", {count(len(view.warnings), 'warning')}"
    return f"<details>\n<summary>{title}</summary>\n\n{body}\n\n</details>"


def _parts(view: View, result: Result) -> Iterator[tuple[str, str]]:
    """Yield the parts of the fold by name, in reading order."""
    suite = view.suite
    if view.warnings:
        yield "warnings", _titled("Warnings", _bullets(view.warnings, 10))
    yield "criteria", _criteria(view.rows)
    yield "further", _bullets([one.line for one in view.further], _MANY)
    yield "more", _more_cases(view)
    yield "failing", _list_of_cases(view.failing_title, _failing(view))
    yield "answers", "\n\n".join(_evidence(case, differences(case)[:1]) for case in _failing(view)[:3])
    yield "better", _better(view)
    yield "tags", _by_tag(suite)
    changes = [*view.changes, *view.from_recordings, *view.differences()]
    yield "rules", _titled("What changed in the rules, the suite, or what the model sees", _bullets(changes, _MANY))
    yield "story", _titled("How it was decided", _bullets(view.whole_story, _MANY))
    yield "scores", _titled("Every case", _scores(view))
    yield "facts", _facts(view, result)


def _criteria(rows: Sequence[RowView]) -> str:
    """Return one item per criterion: its means with their basis, its threshold, and why it does not pass."""
    items = [_criterion(row) for row in rows[:_MANY]]
    if len(rows) > _MANY:
        items.append(f"- … and {count(len(rows) - _MANY, 'more criterion', 'more criteria')}")
    return _titled("Criteria", "\n".join(items))


def _criterion(row: RowView) -> str:
    """Return the lines of a list item: a table of long names and intervals would scroll sideways on a phone."""
    now = row.candidate.text
    if row.found.candidate is None:
        now = NOT_MEASURED
    figures = f"{_SIGNS[row.tone]} {_name(row.name)} **{now}**{_rests_on(row.candidate)}"
    if row.found.baseline is not None or row.found.not_compared:
        figures += f", before {row.baseline.text}{_rests_on(row.baseline)}"
    if row.found.change is not None:
        figures += f", change {row.change.text}"
    lines = [figures]
    if row.words and not row.same_cause:
        lines.append(escape.markdown(row.words, 600))
    notes = [row.wanted]
    if not row.found.criterion.blocking:
        notes.append("warns only")
    for text in filter(None, (row.same_cause, row.judge, row.evidence)):
        notes.append(escape.markdown(text, 600))
    lines.append(f"<sub>{'; '.join(notes)}</sub>")
    item = f"- {'<br>'.join(lines)}"
    for name, said in row.dimensions[:_MANY]:
        item += f"\n  - {_name(name)}: {said}"
    return item


def _rests_on(figure: Figure) -> str:
    if not figure.rests_on:
        return ""
    return f" <sub>{figure.rests_on}</sub>"


def _more_cases(view: View) -> str:
    """Return the other cases that got worse: those with further causes in detail, the rest by name."""
    parts = []
    for number, (case, _, _) in enumerate(view.table.lines[:_KINDS]):
        turns = differences(case)
        if number == 0:
            turns = turns[len(view.evidence[1]) :]  # the others are above the fold
        parts.append(_of_case(case, turns))
    others = [case for case in view.table.rest if case.reasons]
    rest_of_list = _list_of_cases(view.worse_title, others, reasons=not view.table.one_cause)
    return "\n\n".join(filter(None, [*parts, rest_of_list]))


def _of_case(case: CaseResult, turns: Sequence[TurnDiff]) -> str:
    if not (case.reasons or turns or case.log):
        return ""
    title = f"**{_name(case.id)}** {_score(case)}"
    if case.location:
        title += f" at {escape.markdown_code(str(case.location), 200)}"
    reasons = [f"- {escape.markdown(reason)}" for reason in distinct(case.reasons)[:5]]
    lines = [title, "\n".join(reasons)]
    lines += [_turn(turn, case) for turn in turns]
    if case.log:
        lines.append(f"The agent wrote:\n\n{escape.markdown_fence(case.log, 'text', _DIFF)}")
    return "\n\n".join(filter(None, lines))


def _failing(view: View) -> Sequence[CaseResult]:
    """Return the cases with failed trials that are not in the table."""
    listed = view.table.ids
    return [case for case in view.failing if case.id not in listed]


def _list_of_cases(title: str, cases: Sequence[CaseResult], *, reasons: bool = True) -> str:
    lines = []
    for case in cases[:_MANY]:
        line = f"- {_name(case.id)} {_score(case)}"
        if reasons and case.reasons:
            line += f": {escape.markdown(case.reasons[0], 200)}"
        lines.append(line)
    if len(cases) > _MANY:
        lines.append(f"- … and {len(cases) - _MANY:,} more")
    return _titled(title, "\n".join(lines))


def _score(case: CaseResult) -> str:
    """Return the number of passes, after the status if that is more than a failure."""
    if case.status in (CaseStatus.BROKEN, CaseStatus.FAILED, CaseStatus.ERROR):
        return tally(case)
    return f"{status(case)}, {tally(case)}"


def _better(view: View) -> str:
    """Return the cases that improved in a trade, and further ones that pass more often."""
    lines = {}
    for one in view.suite.gained:
        lines[one.case_id] = pooled([one])
    for case in view.improved:
        if case.id not in lines:
            lines[case.id] = improvement(case, view.suite)
    shown = [f"- {_name(case_id)} {said}" for case_id, said in lines.items()][:_MANY]
    if len(lines) > _MANY:
        shown.append(f"- … and {len(lines) - _MANY:,} more")
    return _titled("Cases that pass more often", "\n".join(shown))


def _by_tag(suite: SuiteResult) -> str:
    shown, left = by_tag.rows(suite)
    rows = []
    for is_named, tag, cases, rate, moved in shown:
        name = f"{_name(tag)}<br><sub>{cases}</sub>"
        if is_named:
            name = f"{_SIGNS['bad']} {name}"
        rows.append([name, rate, moved])
    if left:
        rows.append([f"… {count(left, 'more tag')}", "", ""])
    if not rows:
        return ""
    return _table(["tag", "pass rate", "cases"], rows)


def _scores(view: View) -> str:
    """Return the scores of each case, with the thresholds."""
    lines = []
    for case in view.suite.cases[:_MANY]:
        scores = ", ".join(view.scores(case))
        if scores:
            lines.append(f"- {_name(case.id)} {status(case)}: {escape.markdown(scores, 600)}")
    return "\n".join(lines)


def _facts(view: View, result: Result) -> str:
    lines = []
    for name in ("Cost", "Stored", "Cases"):
        if view.facts[name]:
            lines.append(f"**{name}** {view.facts[name]}")
    lines.append(f"**Baseline** {_baseline(view.suite.baseline)}")
    if view.facts["Trend"]:
        picture, said = trend_line(view.suite)
        lines.append(f"**Trend** `{picture}` {said}")
    if view.tool_times:
        times = [f"{_name(name)} {said}" for name, said in view.tool_times[:_MANY]]
        lines.append(f"**Time per tool** {'; '.join(times)}")
    lines.append(f"**Seed** {view.suite.seed}")
    if view.explain:
        lines.append(f"**Every trial of a case** {escape.markdown_code(view.explain, 500)}")
    told = "  \n".join(lines)
    command = "\n".join(escape.one_line(line, 500) for line in command_lines(result.command))
    if command:
        told += f"\n\n{escape.markdown_fence(command, 'sh')}"
    return told


def _baseline(baseline: BaselineInfo | None) -> str:
    """Return the text of `baseline_line`, with its commit and its source as code."""
    told = baseline_line(baseline, source=False)
    if baseline is None:
        return escape.markdown(told)
    commit = ""
    if baseline.commit and not baseline.missing:
        commit = baseline.commit[:12]
    said = escape.markdown_code(commit) + escape.spaced(told.removeprefix(commit), escape.markdown)
    if baseline.source:
        said += f", {escape.markdown_code(from_here(baseline.source), 200)}"
    return said


# --- pieces ---------------------------------------------------------------------------------------


def _of_what(view: View, place: Place) -> str:
    """Return suite, commit, and the commit compared with."""
    suite = view.suite
    said = escape.markdown_code(suite.suite_id, 100) or "suite"
    commit = escape.markdown_code((place.head or suite.commit or "")[:7])
    if commit:
        said += f" at {at_commit(commit, dirty=suite.dirty)}"
    compared = suite.deciding.baseline
    if compared is not None and compared.commit:
        commit = escape.markdown_code(compared.commit[:7])
        said += f", against {at_commit(commit, dirty=compared.dirty)}"
    return f"{said} · {view.cost}"


def _end(result: Result, verdict: Verdict) -> str:
    named = " ".join(filter(None, ("Agent Gate", escape.markdown(result.version, 30))))
    return f"{end_line(result, verdict, escape.markdown)} · {named}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _name(name: str) -> str:
    return escape.markdown_code(name, 120) or "(no id)"


def _titled(title: str, body: str) -> str:
    if not body:
        return ""
    return f"**{title}**\n\n{body}"


def _bullets(texts: Sequence[str], most: int) -> str:
    lines = [f"- {escape.markdown_prose(text, 600)}" for text in texts[:most]]
    if len(texts) > most:
        lines.append(f"- … and {len(texts) - most:,} more")
    return "\n".join(lines)
