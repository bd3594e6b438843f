"""The Markdown report: what a busy reviewer reads in ten seconds as a comment, a note or a job summary.

Verdict, change and what to do first, then the table and the worst cases, one per distinct reason; all else in folds.
Everything from outside goes through `gate.security.escape`; too long a text loses whole parts, least needed first.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from gate.model import (
    CaseResult,
    CaseStatus,
    Result,
    SuiteResult,
    Verdict,
)
from gate.model.finding import CaseTally
from gate.reports import by_tag
from gate.reports import labels as words
from gate.reports.formatting import NOT_MEASURED, count
from gate.reports.trajectory_diff import answer_diff, differences
from gate.reports.view import Figure, RowView, View, views_of
from gate.reports.words import pooled
from gate.security import escape

LIMIT = 60_000
"""Characters; the host refuses more than 65,536."""
_LEAST = 5_000
_MARKS = {
    Verdict.NOT_APPLIED: "–",
    Verdict.PASS: "✅",
    Verdict.INCONCLUSIVE: "⚠️",
    Verdict.NOT_MEASURED: "⚠️",
    Verdict.NOT_COMPARED: "❌",
    Verdict.BELOW_THRESHOLD: "❌",
    Verdict.REGRESSED: "❌",
    Verdict.ERROR: "💥",
}
UNCHECKED = "➖"
"""In place of a tick where nothing was compared, and no threshold held."""
_PICTURE = "worse ◂ ┊ margin │ ▸ better"
"""What a picture of a change shows, as the head of its column."""
_WORST = 3
_MANY = 50
_FEW = 10
_REASON = 160
"""Characters of a reason in the line that opens a fold."""

FULL, NO_PASSES, NO_DETAIL, HEADLINE = range(4)
"""How much is left out: nothing; what passed; also further cases and the story; all but verdict and links."""


class Place(Struct, frozen=True):
    """What is known of the place where the report is read."""

    head: str = ""
    """The commit that its reader knows; empty: the one that was measured, which on GitHub can be a merge commit."""
    url: str = ""
    """The run's page, which has the whole report."""
    accept_label: str = ""
    """The label that accepts a regression there; empty if there is none."""


NOWHERE = Place()


def render(result: Result, *, limit: int = LIMIT, place: Place = NOWHERE) -> str:
    """All suites, worst first, in at most ``limit`` characters (limits under 5,000 are taken as 5,000).

    Where a suite does not fit, its passes go first, then its detail; a link to the run then says where it is.
    """
    views = sorted(views_of(result), key=lambda v: (-list(_MARKS).index(v.suite.verdict), v.suite.suite_id))
    tail = _footer(result, result.verdict)
    left, parts = max(limit, _LEAST) - len(tail) - len(_link(place)) - 200, []
    for index, view in enumerate(views):
        waiting = len(views) - index
        part = _fitted(view, max(left // waiting, 0), place)
        if len(part) > left:
            parts.append(f"… and {count(waiting, 'more suite')}{_link(place)}\n")
            break
        parts.append(part)
        left -= len(part) + 1
    return "\n".join([*parts, tail])


def render_suite(suite: SuiteResult, result: Result, *, limit: int = LIMIT, place: Place = NOWHERE) -> str:
    """One suite of a result alone, for hosts that keep a comment per suite; lengths as in `render`."""
    tail = _footer(result, suite.verdict)
    return _fitted(View(suite), max(limit, _LEAST) - len(tail) - 1, place) + "\n" + tail


def render_unmeasured(error: str, place: Place = NOWHERE) -> str:
    """What there is to say of a run that ended without a result."""
    commit = escape.markdown_code(place.head[:7])
    link = f" · [the run]({place.url})" if place.url else ""
    return (
        f"## 💥 not measured{f' at {commit}' if commit else ''}\n\n{escape.markdown(error, 1_000)}{link}  \n"
        "**Next:** fix the problem and push, or run the job again.\n"
    )


def _fitted(view: View, limit: int, place: Place) -> str:
    for left_out in (FULL, NO_PASSES, NO_DETAIL):
        text = _suite(view, left_out, place)
        if len(text) <= limit:
            return text
    return _suite(view, HEADLINE, place)


def _suite(view: View, left_out: int, place: Place) -> str:
    blocks = [_heading(view, place), _lead(view, place, 400 if left_out < HEADLINE else 100)]
    if left_out < HEADLINE:
        if view.changes:
            shown = _bullets(view.changes, _FEW if left_out else _MANY)
            blocks.append(f"### What changed in the rules or suite\n\n{shown}")
        blocks.append(_replayed(view, left_out))
        blocks.append(_criteria(view, left_out))
        if (trend := words.trend_line(view.suite))[0] and left_out < NO_DETAIL:
            blocks.append(f"`{trend[0]}` {trend[1]}")
        blocks.append(_by_tag(view.suite, left_out))
        blocks += [_against_further(one, left_out) for one in view.further]
        blocks += _worst_cases(view, left_out)
        blocks.append(_details(view, left_out))
    if left_out:
        blocks.append(f"<sub>Shortened to fit{_link(place) or '.'}</sub>")
    return "\n\n".join(block for block in blocks if block) + "\n"


def _heading(view: View, place: Place) -> str:
    suite = view.suite
    name = escape.markdown_code(suite.suite_id, 100) or "suite"
    commit = escape.markdown_code((place.head or suite.commit or "")[:7])
    at = f" at {words.at_commit(commit, dirty=suite.dirty)}" if commit else ""
    return f"## {_MARKS[suite.verdict]} {name}: {view.verdict}{at}"


def _lead(view: View, place: Place, limit: int) -> str:
    """What happened, what it cost, and what to do: a line each."""
    suite = view.suite
    compared = suite.deciding.baseline
    against = ""
    told = compared is not None and compared.commit and compared.commit[:7] in view.headline
    if compared is not None and compared.commit and not told:
        against = f", against {words.at_commit(escape.markdown_code(compared.commit[:7]), dirty=compared.dirty)}"
    link = f" · [full report]({place.url})" if place.url else ""
    lines = [escape.markdown(view.headline.removesuffix("."), limit) + against]
    lines += [escape.markdown(line) for line in view.opening]
    lines.append(view.cost + link)
    lines += [escape.markdown(view.measured_before)] if view.measured_before else []
    if suite.accepted:
        lines.append(f"**Accepted:** {escape.markdown(suite.accepted, 100)}")
    if todo := escape.markdown(view.next_step):
        label = escape.markdown_code(place.accept_label, 100) if suite.is_acceptable else ""
        lines.append(f"**Next:** {todo}{f', or someone with write access sets {label}' if label else ''}.")
    return "  \n".join(lines)


def _replayed(view: View, left_out: int) -> str:
    """What the change made the model see, and what it did not."""
    told = "  \n".join(map(escape.markdown, view.from_recordings))
    differ = view.differences() if told else ()
    if not differ or left_out >= NO_DETAIL:
        return told
    return f"{told}\n\n{_fold('What differed first', _bullets(differ, _MANY))}"


def _criteria(view: View, left_out: int) -> str:
    shown = [row for row in view.rows if left_out < NO_PASSES or row.needs_words]
    rows = [_criterion_row(row) for row in shown[:_MANY]]
    if len(shown) > _MANY:
        rows.append(f"| | … and {count(len(shown) - _MANY, 'more criterion', 'more criteria')} | | | | |")
    passed = len(view.rows) - len(shown)
    if passed:
        rows.append(f"| ✅ | {count(passed, 'criterion', 'criteria')} passed | | | | |")
    if not rows:
        return ""
    table = _table(("", "Criterion", "Candidate", "Baseline", "Change", _PICTURE), rows)
    return "\n\n".join([table, _reasons(view, shown[:_MANY])]).strip()


def _table(heads: Sequence[str], rows: Sequence[str]) -> str:
    return "\n".join([f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *rows])


def _by_tag(suite: SuiteResult, left_out: int) -> str:
    """The tags that the loss is concentrated in, and all others in a fold while there is room for it."""
    shown, left = by_tag.rows(suite)
    open_, folded = ([row for row in shown if row.is_named is named] for named in (True, False))
    parts = [f"### By tag\n\n{_tags(open_)}"] if open_ else []
    if folded and left_out < NO_PASSES:
        more = f"\n\n… and {count(left, 'more tag')}" if left else ""
        title = f"{count(len(folded) + left, 'other tag' if open_ else 'tag')}"
        parts.append(_fold(title if open_ else f"By tag: {title}", _tags(folded) + more))
    return "\n\n".join(parts)


def _tags(shown: Sequence[by_tag.Row]) -> str:
    rows = [
        " | ".join(
            [
                f"| {_MARKS[Verdict.REGRESSED] if row.is_named else ''}",
                escape.markdown_code(row.name, by_tag.MAX_NAME) or "(no name)",
                row.cases,
                row.candidate,
                row.baseline,
                row.change,
                f"{row.moved} |",
            ]
        )
        for row in shown
    ]
    return _table(("", "Tag", "Cases", "Pass rate", "Baseline", "Change", ""), rows)


def _against_further(view: View, left_out: int) -> str:
    """The same record against another reference, in a fold: its criteria, and the cases that got worse since."""
    cases = ""
    if view.worse and left_out < NO_DETAIL:
        cases = f"**{view.worse_title}**\n\n{_case_list(view.worse)}"
    body = "\n\n".join(filter(None, [_criteria(view, left_out), cases]))
    return _fold(escape.markdown_html(view.line, 300), body)


def _criterion_row(row: RowView) -> str:
    notes = [f"{row.wanted}{'' if row.found.criterion.blocking else ', warns only'}"]
    notes += [escape.markdown(row.same_cause)] if row.same_cause else []
    name = escape.markdown_code(row.name, 80) + "".join(f"<br><sub>{note}</sub>" for note in notes)
    now = row.candidate.text if row.found.candidate else NOT_MEASURED
    now = f"**{now}**" if row.verdict is Verdict.BELOW_THRESHOLD else now
    change = f"**{row.change.text}**" if row.verdict is Verdict.REGRESSED else row.change.text
    return " | ".join(
        [
            f"| {_MARKS[row.sign] if row.shows_verdict else UNCHECKED}",
            name,
            _cell(now, row.candidate),
            _cell(row.baseline.text, row.baseline),
            _cell(change, row.change),
            f"`{row.picture}` |" if row.picture else " |",
        ]
    )


def _cell(text: str, figure: Figure) -> str:
    return f"{text}<br><sub>{figure.rests_on}</sub>" if figure.rests_on else text


def _reasons(view: View, shown: Sequence[RowView]) -> str:
    """What neither the headline, the table nor the cases say."""
    lines = []
    for row in shown:
        is_told = row.found.verdict is Verdict.REGRESSED or bool(row.same_cause)  # by the table and the cases
        parts = [part for part in (row.besides if is_told else row.told) if part not in view.headline]
        if parts:
            lines.append(f"- {escape.markdown_code(row.name, 80)}: {escape.markdown('; '.join(parts))}")
        if row.judge and not row.same_cause:
            lines.append(f"- {escape.markdown_code(row.name, 80)}: {escape.markdown(row.judge)}")
    return "\n".join(lines)


# --- cases ----------------------------------------------------------------------------------------


def _worst_cases(view: View, left_out: int) -> list[str]:
    suite, worse, further = view.suite, view.worse, view.failing
    shown, complete = words.kinds(worse, _WORST)
    rest = [case for case in worse if not any(case is other for other in shown)]
    blocks = []
    if worse:
        blocks.append(f"### {view.worse_title}{f', {len(shown)} of {len(worse):,}' if rest else ''}")
        blocks += [_case_fold(case, 20_000 if left_out < NO_DETAIL else 2_000) for case in shown]
    if left_out >= NO_DETAIL:
        hidden = len(rest) + len(further)
        return [*blocks, f"… and {count(hidden, 'more case')} with failing trials."] if hidden else blocks
    if rest:
        same = f", same {'reason' if len(shown) == 1 else 'reasons'}" if complete else ""
        blocks.append(_fold(f"{len(rest):,} more{same}", _case_list(rest, reasons=not complete or len(shown) > 1)))
    if further and left_out < NO_PASSES:
        title = f"{view.failing_title}: {len(further):,}"
        blocks.append(_fold(title, "\n\n".join(filter(None, [_case_list(further), _answers(further[:_WORST])]))))
    improved = view.improved
    if suite.trade is not None:
        gained: Sequence[CaseTally] = suite.trade["gained"]
        number = f"{count(len(gained), 'case')} improved"
        title = number if suite.trade["gained_named"] else "Cases that improved most clearly"
        blocks.append(f"### {title}\n\n{_moves(gained)}")
        improved = tuple(c for c in improved if c.id not in {one.case_id for one in gained})
    if improved and left_out < NO_PASSES:
        blocks.append(
            _fold(
                f"{count(len(improved), 'case')} that passed more often than in the baseline", _better(improved, suite)
            )
        )
    return blocks


def _better(cases: Sequence[CaseResult], suite: SuiteResult) -> str:
    lines = [
        f"- {escape.markdown_code(case.id, 120) or '(no id)'} {words.improvement(case, suite)}"
        for case in cases[:_MANY]
    ]
    return "\n".join([*lines, f"- … and {len(cases) - _MANY:,} more"] if len(cases) > _MANY else lines)


def _moves(cases: Sequence[CaseTally]) -> str:
    lines = [f"- {escape.markdown_code(c.case_id, 120) or '(no id)'} {pooled([c])}" for c in cases[:_MANY]]
    return "\n".join([*lines, f"- … and {len(cases) - _MANY:,} more"] if len(cases) > _MANY else lines)


def _case_fold(case: CaseResult, limit: int) -> str:
    """A line that says it all, and behind it the place, the calls, and what the line has no room for."""
    told = case.reasons[1:5] if case.reasons and len(case.reasons[0]) <= _REASON else case.reasons[:5]
    parts = [
        "\n".join(f"- {escape.markdown(reason)}" for reason in told),
        escape.markdown_code(str(case.location), 200) if case.location else "",
        _diff(case, limit),
        f"The agent wrote:\n\n{escape.markdown_fence(case.log, 'text', limit)}" if case.log else "",
    ]
    summary = f"{_status_mark(case)} <code>{escape.markdown_html(case.id, 120)}</code> {_score(case)}"
    if case.reasons:
        summary += f": {escape.markdown_html(case.reasons[0], _REASON)}"
    return _fold(summary, "\n\n".join(filter(None, parts)) or "Nothing more is known of it.")


def _score(case: CaseResult) -> str:
    """How often it passed, after the status where that is more than a failure."""
    plain = case.status in (CaseStatus.BROKEN, CaseStatus.FAILED, CaseStatus.ERROR)
    return words.score(case) if plain else f"{words.status(case)}, {words.score(case)}"


def _status_mark(case: CaseResult) -> str:
    return {CaseStatus.ERROR: "💥", CaseStatus.SUSPECT: "⚠️"}.get(case.status, "❌")


def _diff(case: CaseResult, limit: int) -> str:
    lines = []
    for turn in differences(case):
        lines.append(f"  {turn.title}")
        lines += [f"{mark} {escape.one_line(text, 600)}" for mark, text in turn.lines]
    return escape.markdown_fence("\n".join(lines), "diff", limit) if lines else ""


def _answers(cases: Sequence[CaseResult]) -> str:
    """What cases answered that fail and are not shown to be worse."""
    lines = []
    for case in cases:
        for turn in answer_diff(case)[:1]:
            lines.append(f"  {escape.one_line(case.id, 120)}, {turn.title}")
            lines += [f"{mark} {escape.one_line(text, 600)}" for mark, text in turn.lines]
    return escape.markdown_fence("\n".join(lines), "diff") if lines else ""


def _case_list(cases: Sequence[CaseResult], *, reasons: bool = True) -> str:
    lines = []
    for case in cases[:_MANY]:
        reason = f": {escape.markdown(case.reasons[0], 200)}" if case.reasons and reasons else ""
        lines.append(f"- {escape.markdown_code(case.id, 120) or '(no id)'} {_score(case)}{reason}")
    if len(cases) > _MANY:
        lines.append(f"- … and {len(cases) - _MANY:,} more")
    return "\n".join(lines)


# --- the rest -------------------------------------------------------------------------------------


def _details(view: View, left_out: int) -> str:
    """What stands behind the verdict, for who wants to know."""
    story = left_out < NO_DETAIL
    told = [row for row in view.rows if story and (left_out < NO_PASSES or row.needs_words)][:_MANY]
    figures = [f"- {escape.markdown_code(row.name, 80)}: {row.evidence}" for row in told if row.evidence]
    warnings = [line for line in view.warnings if line != view.measured_before]
    parts = [
        _bullets(view.story, _MANY) if story else "",
        f"**Warnings**\n\n{_bullets(warnings, _FEW)}" if warnings else "",
        "\n".join(["**Figures**\n", *figures]) if figures else "",
        _named_figures([(f"{row.name}: {name}", said) for row in told for name, said in row.dimensions]),
        _named_figures(view.tool_times, "Time per tool") if story else "",
        f"Every trial of a case: {escape.markdown_code(view.explain, 500)}" if view.explain else "",
        _facts(view),
    ]
    title = ["How the verdict came about"] if story else ["Details"]
    title += [count(len(warnings), "warning")] if warnings else []
    return _fold(", ".join([*title, "baseline"]), "\n\n".join(filter(None, parts)))


def _named_figures(rows: Sequence[tuple[str, str]], title: str = "Dimensions") -> str:
    lines = [f"- {escape.markdown_code(name, 120)}: {said}" for name, said in rows[:_MANY]]
    more = [f"- … and {len(rows) - _MANY:,} more"] if len(rows) > _MANY else []
    return "\n".join([f"**{title}**\n", *lines, *more]) if lines else ""


def _bullets(texts: Sequence[str], most: int) -> str:
    lines = [f"- {escape.markdown(text)}" for text in texts[:most]]
    return "\n".join([*lines, f"- … and {len(texts) - most:,} more"] if len(texts) > most else lines)


def _facts(view: View) -> str:
    suite, facts = view.suite, view.facts
    code = escape.markdown_code((suite.commit or "")[:12])
    commit = f"**Measured** {words.at_commit(code, dirty=suite.dirty)}, " if suite.commit else ""
    stored = f"**Stored** {facts['Stored']}  \n" if facts["Stored"] else ""
    return (
        f"{stored}**Cost** {facts['Cost']}  \n"
        f"**Cases** {facts['Cases']}  \n"
        f"**Baseline** {_baseline(suite)}  \n"
        f"{commit}seed {suite.seed}"
    )


def _baseline(suite: SuiteResult) -> str:
    """Commit and place in code spans, so that they can be copied."""
    line, commit = words.baseline_line(suite.baseline, source=False), (suite.baseline and suite.baseline.commit) or ""
    shown = escape.markdown(line)
    if commit and line.startswith(commit[:12]):
        shown = escape.markdown_code(commit[:12]) + escape.markdown(line.removeprefix(commit[:12]))
    source = suite.baseline.source if suite.baseline and commit else ""
    return f"{shown}, {escape.markdown_code(source, 200)}" if source else shown


def _footer(result: Result, verdict: Verdict) -> str:
    lines = "\n".join(escape.one_line(line, 500) for line in words.command_lines(result.command))
    parts = [_fold("Reproduce", escape.markdown_fence(lines, "sh"))] if lines else []
    named = " ".join(["Agent Gate", *([escape.markdown(result.version, 30)] if result.version else [])])
    return "\n\n".join([*parts, f"<sub>{named} · {words.end_line(result, verdict, escape.markdown)}</sub>"]) + "\n"


def _fold(summary: str, body: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def _link(place: Place) -> str:
    return f": [the whole report]({place.url})" if place.url else ""
