"""The Markdown report: what a busy reviewer reads in ten seconds as a comment, a note or a job summary.

Verdict first, then what got worse and by how much, the three worst cases, the cost and the command that reproduces it.
Everything from outside goes through `gate.escape`; the length is held by leaving out whole parts, least needed first.
"""

from __future__ import annotations

from collections.abc import Sequence

from gate import escape
from gate.model import CaseResult, CaseStatus, CriterionResult, ExitCode, Result, SuiteResult, Verdict
from gate.reports import words
from gate.reports.diff import answer_diff, differences
from gate.reports.numbers import change_interval, count, evidence, interval, sample, threshold

LIMIT = 60_000
"""Characters; the host refuses more than 65,536."""
_LEAST = 5_000
_MARKS = {
    Verdict.PASS: "✅",
    Verdict.INCONCLUSIVE: "⚠️",
    Verdict.NOT_MEASURED: "⚠️",
    Verdict.BELOW_THRESHOLD: "❌",
    Verdict.REGRESSED: "❌",
    Verdict.ERROR: "💥",
}
_WORST = 3
_MANY = 50

FULL, NO_PASSES, NO_DETAIL, HEADLINE = range(4)
"""How much is left out: nothing; what passed; also further cases and the story; all but verdict and links."""


def render(result: Result, *, limit: int = LIMIT, summary_url: str | None = None) -> str:
    """All suites, worst first, in at most ``limit`` characters (limits under 5,000 are taken as 5,000).

    Where a suite does not fit, its passes go first, then its detail; a link to ``summary_url`` then says where it is.
    """
    suites = sorted(result.suites, key=lambda s: (-list(_MARKS).index(s.verdict), s.suite_id))
    tail = _footer(result.command, result.version, result.exit_code, result.verdict)
    left, parts = max(limit, _LEAST) - len(tail) - len(_link(summary_url)) - 200, []
    for index, suite in enumerate(suites):
        waiting = len(suites) - index
        part = _fitted(suite, max(left // waiting, 0), summary_url, words.explain_line(result, suite))
        if len(part) > left:
            parts.append(f"… and {count(waiting, 'more suite')}{_link(summary_url)}\n")
            break
        parts.append(part)
        left -= len(part) + 1
    return "\n".join([*parts, tail])


def render_suite(
    suite: SuiteResult,
    *,
    command: str = "",
    exit_code: ExitCode | None = None,
    version: str = "",
    limit: int = LIMIT,
    summary_url: str | None = None,
) -> str:
    """One suite alone, for hosts that keep a comment per suite; lengths as in `render`."""
    tail = _footer(command, version, exit_code, suite.verdict)
    return _fitted(suite, max(limit, _LEAST) - len(tail) - 1, summary_url) + "\n" + tail


def _fitted(suite: SuiteResult, limit: int, summary_url: str | None, explain: str = "") -> str:
    for left_out in (FULL, NO_PASSES, NO_DETAIL):
        text = _suite(suite, left_out, summary_url, explain)
        if len(text) <= limit:
            return text
    return _suite(suite, HEADLINE, summary_url)


def _suite(suite: SuiteResult, left_out: int, summary_url: str | None, explain: str = "") -> str:
    blocks = [_heading(suite, 400 if left_out < HEADLINE else 100)]
    if suite.accepted:
        blocks.append(f"Accepted: {escape.markdown(suite.accepted, 100)}")
    if left_out < HEADLINE:
        blocks.append(_criteria(suite, left_out))
        blocks += _worst_cases(suite, left_out)
        blocks += [f"details: {escape.markdown_code(explain, 500)}"] if explain else []
        blocks += _lists(suite, left_out)
        blocks.append(_facts(suite))
    if left_out:
        blocks.append(
            f"<sub>Shortened to fit{_link(summary_url)}</sub>" if summary_url else "<sub>Shortened to fit.</sub>"
        )
    return "\n\n".join(block for block in blocks if block) + "\n"


def _heading(suite: SuiteResult, limit: int) -> str:
    name = escape.markdown_code(suite.suite_id, 100) or "suite"
    headline = escape.markdown(suite.headline, limit)
    return f"## {_MARKS[suite.verdict]} {name}: {words.VERDICTS[suite.verdict]}\n\n{headline}"


def _criteria(suite: SuiteResult, left_out: int) -> str:
    shown = [c for c in suite.criteria if left_out < NO_PASSES or words.needs_words(c)]
    rows = [_criterion_row(c) for c in shown[:_MANY]]
    if len(shown) > _MANY:
        rows.append(f"| | … and {len(shown) - _MANY:,} more criteria | | | | |")
    passed = len(suite.criteria) - len(shown)
    if passed:
        rows.append(f"| ✅ | {count(passed, 'criterion', 'criteria')} passed | | | | |")
    if not rows:
        return ""
    table = "| | Criterion | Candidate | Baseline | Change | Wanted |\n|---|---|---|---|---|---|\n" + "\n".join(rows)
    return "\n\n".join([table, _reasons(shown[:_MANY])]).strip()


def _criterion_row(result: CriterionResult) -> str:
    criterion = result.criterion
    name = escape.markdown_code(criterion.name, 80) + ("" if criterion.blocking else "<br><sub>warns only</sub>")

    def cell(text: str, rests_on: str) -> str:
        return f"{text}<br><sub>{rests_on}</sub>" if rests_on else text

    change, verdict = change_interval(result.change, criterion.scale), words.shown(result)
    return " | ".join(
        [
            f"| {_MARKS[verdict]}",
            name,
            cell(interval(result.candidate, criterion.scale), sample(result.candidate)),
            cell(interval(result.baseline, criterion.scale), sample(result.baseline)),
            cell(change if verdict is not Verdict.REGRESSED else f"**{change}**", sample(result.change)),
            f"{threshold(criterion)} |",
        ]
    )


def _reasons(shown: Sequence[CriterionResult]) -> str:
    lines = []
    for result in shown:
        if not words.needs_words(result):
            continue
        notes = f" ({evidence(result)})" if evidence(result) else ""
        name = escape.markdown_code(result.criterion.name, 80)
        lines.append(f"- {name} {words.VERDICTS[words.shown(result)]}: {escape.markdown(result.reason)}{notes}")
    return "\n".join(lines)


# --- cases ----------------------------------------------------------------------------------------


def _worst_cases(suite: SuiteResult, left_out: int) -> list[str]:
    worse = words.worse_cases(suite)
    rest, further = worse[_WORST:], words.failing_cases(suite)
    blocks = []
    if worse:
        blocks.append("### Cases that got worse")
        blocks += [_case_fold(case, 20_000 if left_out < NO_DETAIL else 2_000) for case in worse[:_WORST]]
    if left_out >= NO_DETAIL:
        hidden = len(rest) + len(further)
        return [*blocks, f"… and {count(hidden, 'more case')} with failing trials."] if hidden else blocks
    if rest:
        blocks.append(_fold(f"{len(rest):,} more", _case_list(rest)))
    if further and left_out < NO_PASSES:
        title = f"{count(len(further), 'case')} with failing trials, not shown to be worse"
        blocks.append(_fold(title, "\n\n".join(filter(None, [_case_list(further), _answers(further[:_WORST])]))))
    return blocks


def _case_fold(case: CaseResult, limit: int) -> str:
    place = f"\n\n{escape.markdown_code(str(case.location), 200)}" if case.location else ""
    told = len(case.reasons) == 1 and len(case.reasons[0]) <= 120  # by the summary line
    reasons = "" if told else "\n".join(f"- {escape.markdown(reason)}" for reason in case.reasons[:5])
    title = f"<code>{escape.markdown_html(case.id, 120)}</code>"
    first = f": {escape.markdown_html(case.reasons[0], 120)}" if case.reasons else ""
    summary = f"{_status_mark(case)} {title} {words.STATUSES[case.status]}, {words.tally(case)}{first}"
    return _fold(
        summary, "\n\n".join(filter(None, [reasons + place if reasons else place.strip(), _diff(case, limit)]))
    )


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


def _case_list(cases: Sequence[CaseResult]) -> str:
    lines = []
    for case in cases[:_MANY]:
        reason = f": {escape.markdown(case.reasons[0], 200)}" if case.reasons else ""
        name = escape.markdown_code(case.id, 120) or "(no id)"
        lines.append(f"- {name} {words.STATUSES[case.status]}, {words.tally(case)}{reason}")
    if len(cases) > _MANY:
        lines.append(f"- … and {len(cases) - _MANY:,} more")
    return "\n".join(lines)


# --- the rest -------------------------------------------------------------------------------------


def _lists(suite: SuiteResult, left_out: int) -> list[str]:
    blocks = []
    if suite.warnings:
        blocks.append("### Warnings\n\n" + _bullets(suite.warnings, 10))
    if suite.changes:
        blocks.append("### What changed in the suite\n\n" + _bullets(suite.changes, 10 if left_out else _MANY))
    if suite.story and left_out < NO_DETAIL:
        blocks.append(_fold("How the verdict came about", _bullets(suite.story, _MANY)))
    return blocks


def _bullets(texts: Sequence[str], most: int) -> str:
    lines = [f"- {escape.markdown(text)}" for text in texts[:most]]
    return "\n".join([*lines, f"- … and {len(texts) - most:,} more"] if len(texts) > most else lines)


def _facts(suite: SuiteResult) -> str:
    commit = f" · candidate {escape.markdown_code(suite.commit[:12])}" if suite.commit else ""
    return (
        f"**Cost** {words.cost_line(suite)}  \n"
        f"**Cases** {words.status_counts(suite)}  \n"
        f"**Baseline** {_baseline(suite)}{commit} · seed {suite.seed}"
    )


def _baseline(suite: SuiteResult) -> str:
    line, commit = words.baseline_line(suite.baseline), ((suite.baseline and suite.baseline.commit) or "")[:12]
    if not commit or not line.startswith(commit):
        return escape.markdown(line)
    return escape.markdown_code(commit) + escape.markdown(line.removeprefix(commit))  # so that it can be copied


def _footer(command: str, version: str, exit_code: ExitCode | None, verdict: Verdict) -> str:
    parts = [f"Reproduce locally:\n\n{escape.markdown_fence(escape.one_line(command, 500), 'sh')}"] if command else []
    named = ["Agent Gate " + escape.markdown(version, 30)] if version else ["Agent Gate"]
    if exit_code is not None:
        named.append(words.exit_line(exit_code, verdict))
    return "\n\n".join([*parts, f"<sub>{' · '.join(named)}</sub>"]) + "\n"


def _fold(summary: str, body: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def _link(summary_url: str | None) -> str:
    return f": [the whole report]({summary_url})" if summary_url else ""
