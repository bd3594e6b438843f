"""The words of a decided suite in one place: reports only lay them out. Escapes nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from gate.model import CaseResult, CaseStatus, Result, SuiteResult, Verdict
from gate.model.finding import Fell, Finding, Wording
from gate.reports import cases, explanation, labels, replayed
from gate.reports.formatting import agree, count, figure, figures, seconds, threshold
from gate.reports.rows import RowView
from gate.reports.story import story
from gate.reports.trajectory_diff import TurnDiff, answer_diff, answers_apart, trajectory_diff
from gate.reports.wording import sentence
from gate.reports.words import NOT_COMPARED, thin

MOST_KINDS = 3
"""Maximum number of cases in a table, each with another cause."""
MOST_TURNS = 2
"""Maximum number of turns of a conversation shown as evidence."""
PROVEN = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD)
"""Verdicts that are just as certain with few cases or few stored trials."""
ALL_TOOLS = "time of the agent per tool call"


CaseLine = tuple[CaseResult, str, str]
"""A case, its passes in the baseline, empty if unknown, and its passes now."""


class CaseTable(Struct, frozen=True):
    """The cases to look at first, one for each cause, and the number of others."""

    lines: tuple[CaseLine, ...]
    rest: tuple[CaseResult, ...] = ()
    """The other cases of the list."""
    one_cause: bool = False
    """True if the other cases fail for one of the reasons shown."""

    @property
    def has_base(self) -> bool:
        """True if the baseline of any of these cases is known."""
        return any(before for _, before, _ in self.lines)

    @property
    def ids(self) -> set[str]:
        """The ids of all cases of the list."""
        return {case.id for case, _, _ in self.lines} | {case.id for case in self.rest}

    @property
    def more(self) -> str:
        """``3 more, same cause``; empty if there are none."""
        if not self.rest:
            return ""
        said = f"{len(self.rest):,} more"
        if self.one_cause:
            said += f", same {agree(len(self.lines), 'cause', 'causes')}"
        return said


class View:
    """The words of a suite, for all reports."""

    def __init__(self, suite: SuiteResult, record: str = "") -> None:
        self.suite = suite
        self.record = record
        """The file of the suite's record; empty if it is unknown, or has several suites."""

    @property
    def verdict(self) -> str:
        return labels.VERDICTS[self.suite.verdict]

    # --- outcome, certainty, next step ------------------------------------------------------------

    @cached_property
    def title(self) -> str:
        """The outcome in a few words."""
        return sentence(explanation.title(self.suite)).removesuffix(".")

    @cached_property
    def lead(self) -> tuple[str, ...]:
        """Sentences on the reason of the outcome and its certainty."""
        said = [*explanation.why(self.suite), *self.opening]
        if self.suite.accepted:
            said.append(f"accepted by {self.suite.accepted}")
        return tuple(sentence(text) for text in said if text)

    @cached_property
    def headline(self) -> str:
        """The outcome and its reason in one line."""
        return explanation.headline(self.suite)

    @cached_property
    def opening(self) -> tuple[str, ...]:
        return explanation.opening(self.suite)

    @property
    def verdict_line(self) -> str:
        """The verdict and its reason on one line."""
        if says_verdict(self.headline, self.suite.verdict):
            return self.headline
        return f"{self.verdict}: {self.headline}"

    @property
    def line(self) -> str:
        """The result against another reference on one line: its commit, the verdict and the reason."""
        baseline = self.suite.baseline
        if baseline is None or not baseline.commit:
            return self.verdict_line
        return f"{self.verdict_line} (commit {baseline.commit[:12]})"

    @cached_property
    def further(self) -> tuple[View, ...]:
        """The views against further references."""
        return tuple(View(one) for one in self.suite.further)

    def next_step(self, label: str = "") -> str:
        """Return the next step; empty if there is none. ``label``: the label that accepts a loss, if any."""
        return explanation.next_step(self.suite, label)

    @cached_property
    def explain(self) -> str:
        """The command that shows the trials of the first case; empty if there is none."""
        listed = self.worse or self.failing
        if not listed or not self.record:
            return ""
        return labels.explain_command(self.record, listed[0].id)

    # --- the cases --------------------------------------------------------------------------------

    @cached_property
    def worse(self) -> tuple[CaseResult, ...]:
        """The cases that got worse or could not be measured, worst first."""
        return cases.worse_cases(self.suite)

    @property
    def worse_title(self) -> str:
        return cases.worse_title(self.worse)

    @cached_property
    def failing(self) -> tuple[CaseResult, ...]:
        """Further cases with failing trials, not shown to be worse."""
        return cases.failing_cases(self.suite)

    @property
    def failing_title(self) -> str:
        if self.suite.has_baseline:
            return "Cases with failing trials, not shown to be worse"
        return "Cases with failing trials"

    @cached_property
    def improved(self) -> tuple[CaseResult, ...]:
        """The cases that pass more often than in the baseline."""
        return cases.improved_cases(self.suite)

    @cached_property
    def table(self) -> CaseTable:
        """The cases that explain the verdict, against the deciding reference; empty if cases do not explain it."""
        decided = self.suite.deciding
        if decided is not self.suite and decided.cases:
            return View(decided).table
        cause = self.suite.cause
        if cause.kind == "suite_got_worse" and cause["fell"]:
            return self._fell(cause["fell"])
        listed = self.worse
        if cause.kind == "incomplete":
            listed = self._edited_and_missing(listed)
        elif not listed and self.suite.verdict is not Verdict.PASS:
            listed = self.failing
        shown, complete = cases.one_of_each_reason(listed, MOST_KINDS)
        rest = [case for case in listed if case not in shown]
        return CaseTable(tuple(map(_line, shown)), tuple(rest), complete)

    def _edited_and_missing(self, listed: tuple[CaseResult, ...]) -> tuple[CaseResult, ...]:
        """Return the cases that passed at the base, were edited and miss now: others do not explain a missing
        comparison."""
        edited: set[str] = set()
        for gap in self.suite.cause["gaps"]:
            if gap.kind == "cases_changed" and gap["how"] == "edited":
                edited.update(gap["cases"])
        return tuple(case for case in listed if case.id in edited)

    def _fell(self, fell: Sequence[Fell]) -> CaseTable:
        """Return the cases whose score fell most; no case broke."""
        row = self.suite.row(explanation.first_cause(self.suite))
        assert row is not None
        by_id = {case.id: case for case in self.suite.cases}
        lines = []
        for one in fell[:MOST_KINDS]:
            before, now = figures((one.before, one.now), row.criterion.scale)
            lines.append((by_id[one.case_id], before, now))
        rest = [by_id[one.case_id] for one in fell[MOST_KINDS:]]
        return CaseTable(tuple(lines), tuple(rest))

    @cached_property
    def evidence(self) -> tuple[CaseResult | None, tuple[TurnDiff, ...]]:
        """The first case of the table with a visible difference, with its calls, or else its answers."""
        worded = _wording(self.suite)
        if worded is not None:
            return worded
        for case, _, _ in self.table.lines:
            turns = trajectory_diff(case) or answer_diff(case)
            if turns:
                return case, turns[:MOST_TURNS]
        if not self.table.lines:
            return None, ()
        return self.table.lines[0][0], ()

    def scores(self, case: CaseResult) -> tuple[str, ...]:
        """Return the scores of a case with the thresholds: ``evalview_score 92.5 (at least 70)``."""
        said = []
        for row in self.rows:
            now, _ = case.scores.get(row.name, (None, None))
            if now is None:
                continue
            criterion, limit = row.criterion, row.wanted
            if row.name in case.thresholds:
                criterion = replace(criterion, threshold=case.thresholds[row.name], limit=None, quantiles=())
                limit = threshold(criterion)
            text = f"{row.name} {figure(now, criterion.scale)}"
            if criterion.has_threshold:
                text += f" ({limit})"
            said.append(text)
        return tuple(said)

    # --- the criteria -----------------------------------------------------------------------------

    @cached_property
    def rows(self) -> tuple[RowView, ...]:
        return tuple(RowView(found, self.suite) for found in self.suite.criteria)

    # --- changes, course, warnings ----------------------------------------------------------------

    @cached_property
    def all_changes(self) -> tuple[str, ...]:
        return explanation.changes(self.suite)

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """The changes that are not shown below the headline."""
        return tuple(line for line in self.all_changes if line not in self.opening)

    @cached_property
    def whole_story(self) -> tuple[str, ...]:
        """The course of the run and the grounds of the verdict."""
        return story(self.suite)

    @cached_property
    def all_warnings(self) -> tuple[str, ...]:
        failures = filter(None, [explanation.agent_failures(self.suite)])
        return (*failures, *[line for _, line in explanation.warnings(self.suite)])

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """The warnings that are not shown in the headline, below it, or in the first case."""
        told, failures = (self.headline, *self.opening), explanation.agent_failures(self.suite)
        found = [] if not failures or self._shows_failure else [failures]
        for one, line in explanation.warnings(self.suite):
            if not self._is_told(one):
                found.append(line)
        return tuple(line for line in found if not any(line in said for said in told))

    @property
    def _shows_failure(self) -> bool:
        """True if the first case shows the most common failure of the agent."""
        case, _ = self.evidence
        facts = self.suite.crashes
        return case is not None and facts is not None and facts.message in case.reasons

    def _is_told(self, found: Finding) -> bool:
        """True if the text above already states a warning, or if it does not concern this verdict."""
        decided = self.suite.deciding
        if found.kind != "thin_baseline":
            return False
        return decided.verdict in PROVEN or bool(thin(decided))  # it warns of missed losses

    @cached_property
    def from_recordings(self) -> tuple[str, ...]:
        """The facts on recordings, one per line; empty if nothing could be replayed."""
        return tuple(filter(None, (replayed.line(self.suite), replayed.calls(self.suite))))

    def differences(self, most: int = replayed.MOST_DIFFERENCES) -> tuple[str, ...]:
        """Return the first differences in the model's requests since they were recorded."""
        return replayed.differences(self.suite, most)

    # --- facts and cost ---------------------------------------------------------------------------

    @cached_property
    def facts(self) -> dict[str, str]:
        """Further facts by name; empty texts for unknown ones."""
        return {
            "Cases": cases.status_counts(self.suite),
            "Baseline": labels.baseline_line(self.suite.baseline),
            "Trend": "  ".join(filter(None, labels.trend_line(self.suite))),
            "Stored": labels.stored_line(self.suite),
            "Replayed": replayed.line(self.suite),
            "Calls": replayed.calls(self.suite),
            "Cost": labels.cost_line(self.suite),
            "This change": labels.commit_line(self.suite),
            "Seed": str(self.suite.seed),
        }

    @property
    def cost(self) -> str:
        """Money and runs, in short."""
        return labels.cost(self.suite)

    @cached_property
    def tool_times(self) -> list[tuple[str, str]]:
        """Time per tool: name → ``0.84 s a call (12 timed calls, 10.1 s)``. The agent chooses the names.

        The first row is the time of all trials divided by all calls, for which the agent need not time its tools.
        """
        rows = []
        calls = sum(one.calls for one in self.suite.tools)
        known = [case.duration for case in self.suite.cases if case.duration is not None]
        whole = sum(known)
        if known and calls and math.isfinite(whole):
            rows.append((ALL_TOOLS, f"{seconds(whole / calls)} ({seconds(whole)} in all, {count(calls, 'call')})"))
        for one in self.suite.tools:
            if one.seconds_per_call is not None:
                timed = f"{count(one.timed, 'timed call')}, {seconds(one.seconds)}"
                rows.append((one.name, f"{seconds(one.seconds_per_call)} a call ({timed})"))
        return rows


def view_of(suite: SuiteResult, result: Result) -> View:
    """Return the view of one suite of a result."""
    if len(result.record_paths) == len(result.suites):
        for held, path in zip(result.suites, result.record_paths, strict=True):
            if held is suite:
                return View(suite, path)
    return View(suite)


def views_of(result: Result) -> tuple[View, ...]:
    """Return the views of all suites of a result, in order."""
    return tuple(view_of(suite, result) for suite in result.suites)


def says_verdict(text: str, verdict: Verdict) -> bool:
    """True if a headline or a reason already states the verdict."""
    if verdict is not Verdict.NOT_COMPARED:
        return False
    return NOT_COMPARED in text or text.startswith(f"{labels.VERDICTS[verdict]}: ")


def _line(case: CaseResult) -> CaseLine:
    before, now = "", "not measured"
    if case.baseline_trials:
        before = f"{case.baseline_passed:,}/{case.baseline_trials:,}"
    if case.trials:
        now = f"{case.passed:,}/{case.trials:,}"
    if case.status is CaseStatus.FLAKY:
        now += f", {cases.status(case)}"
    return case, before, now


def _wording(suite: SuiteResult) -> tuple[CaseResult, tuple[TurnDiff, ...]] | None:
    """Return the answer that shows how a criterion got worse, next to the earlier one or the expected one."""
    cause = suite.deciding.cause
    if cause.kind != "suite_got_worse" or cause["wording"] is None:
        return None
    found: Wording = cause["wording"]
    case = next(one for one in suite.cases if one.id == found.case_id)
    if found.before:
        return case, (answers_apart(found.before, found.now, "before"),)
    return case, (answers_apart(found.expected, found.now, "expected"),)
