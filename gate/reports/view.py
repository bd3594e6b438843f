"""The words of a decided suite in one place: reports only lay them out. Escapes nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from gate.model import BaselineInfo, CaseResult, CaseStatus, CriterionResult, Result, SuiteResult, Verdict, worst
from gate.model.finding import Fell, Finding, KindName, Wording
from gate.reports import cases, labels, replayed
from gate.reports.by_tag import where
from gate.reports.certainty import how_sure
from gate.reports.formatting import agree, count, figure, figures, listing, seconds, threshold
from gate.reports.next_step import next_step
from gate.reports.rows import RowView
from gate.reports.story import story
from gate.reports.trajectory_diff import TurnDiff, answer_diff, answers_apart, trajectory_diff
from gate.reports.wording import sentence
from gate.reports.words import (
    NOT_COMPARED,
    causes,
    crashes,
    missed_besides,
    only_reports,
    tell,
    tell_cases,
    tell_cause,
    tell_short,
    tell_warning,
    thin,
)

MOST_KINDS = 3
"""Maximum number of cases in a table, each with another cause."""
MOST_TOOLS = 2
"""Maximum number of failing tools that the headline names."""
MOST_TURNS = 2
"""Maximum number of turns of a conversation shown as evidence."""
PROVEN = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD)
"""Verdicts that are just as certain with few cases or few stored trials."""
ALL_TOOLS = "time of the agent per tool call"
OF_COMPARISON: tuple[KindName, ...] = (
    "passes",
    "cases_broke",
    "suite_got_worse",
    "cases_fail",
    "criteria_decide",
)
"""Causes to which the lack of a baseline is added."""
MAY_HIDE = (Verdict.PASS, Verdict.INCONCLUSIVE)
"""Verdicts whose means may hide new cases that never pass."""
MAY_BE_MOVED = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD, Verdict.INCONCLUSIVE)
"""Verdicts that may be due to another model or another system of the provider."""
FELL_SHORT = {Verdict.REGRESSED, Verdict.BELOW_THRESHOLD}
LONG = 3
"""Number of commits with a configuration after which a baseline should exist."""


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

    def rows(self, base: str) -> list[list[str]]:
        """Return the head and a row for each case: its id and its passes, or scores, before and now.

        ``base``: the head of the column of the baseline, which is missing if no baseline is known.
        """
        if not self.has_base:
            return [["case", "passed"], *[[case.id, now] for case, _, now in self.lines]]
        return [["case", base, "this change"], *[[case.id, before or "–", now] for case, before, now in self.lines]]

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
        self._by = suite.deciding

    @property
    def verdict(self) -> str:
        return labels.VERDICTS[self.suite.verdict]

    # --- outcome, certainty, next step ------------------------------------------------------------

    @cached_property
    def _told(self) -> tuple[str, tuple[str, ...]]:
        """The cause of the verdict: a title, and clauses with details."""
        title, details = tell_cause(self._by)
        if self._by.reference:
            title = f"against the {labels.reference_name(self._by.reference)}: {title}"
        return title, details

    @cached_property
    def title(self) -> str:
        """The outcome in a few words: ``4 of 12 cases broke``."""
        title, _ = self._told
        return sentence(title).removesuffix(".")

    @cached_property
    def lead(self) -> tuple[str, ...]:
        """Sentences on the reason of the outcome and its certainty."""
        _, details = self._told
        said = [*details, *self._besides, *self.opening]
        if self.suite.accepted:
            said.append(f"accepted by {self.suite.accepted}")
        return tuple(sentence(text) for text in said if text)

    @cached_property
    def headline(self) -> str:
        """The outcome and its reason in one line, with the names of the cases."""
        said, details = self._told
        more = "; ".join(filter(None, (tell_cases(self._by), *details)))
        if more:
            said += f": {more}"
        return "; ".join([said, *self._besides])

    @cached_property
    def _besides(self) -> list[str]:
        """Important facts besides the cause of the verdict."""
        by, said = self._by, []
        for found in by.changes:
            if found.kind == "answered_by" and by.verdict in MAY_BE_MOVED:
                said.append(f"{tell_short(found)}, which may be why")
        if by.cause.kind in OF_COMPARISON and not by.has_baseline:
            said.append(_no_baseline(by.baseline))
        missed = [row.criterion.name for row, found in criteria_that_warn(self.suite) if found.is_excused]
        if missed:
            said.append(f"{listing(missed)} {agree(len(missed), 'misses', 'miss')} the threshold, as the base does")
        if by.crashes is not None and by.verdict not in (Verdict.PASS, Verdict.ERROR):
            said.append(crashes(by, by.crashes))
        said += missed_besides(by)
        place = where(by)
        if place:
            said.append(f"most of it in {place}")
        said += [tell(found, self.suite) for found in self.suite.warnings if found.kind == "tool_fails"][:MOST_TOOLS]
        said += [tell(found, self.suite) for found in self.suite.warnings if _cuts_off_most(found)]
        same = self.suite.warning("same_agent")
        if same is not None:
            said.append(tell(same, self.suite))
        if by.verdict in MAY_HIDE:
            said += [tell_short(found) for found in by.changes if found.kind == "cases_changed"]
        said += [tell_short(found) for found in by.changes if found.kind == "base_run_beside"]
        said += [tell_short(found) for found in by.changes if found.kind == "stated" and found["agent_key"]][:1]
        if by.commits_before_base and by.verdict is Verdict.REGRESSED:
            ago = count(by.commits_before_base, "commit")
            said.append(
                f"the newest baseline is {ago} before the base: losses since then count, too, until its own is stored"
            )
        if by.baseline is not None and by.baseline.provenance == "unproven":
            said.append("against an unproven baseline")
        return list(filter(None, (*said, self.suite.expired, self._measured_again, self.suite.scope)))

    @property
    def _measured_again(self) -> str:
        """Text like ``measurement 3 of this change (before: pass, regressed)`` if an earlier one failed; else empty.

        Any further measurement is one of several: a lucky one must not hide the others.
        """
        found = self.suite.warning("measured_before")
        if found is None or FELL_SHORT.isdisjoint(found["verdicts"]):
            return ""
        return tell_short(found)

    @cached_property
    def opening(self) -> tuple[str, ...]:
        """The lines below the headline: its certainty, the answering model, and losses that only warn."""
        _, details = self._told
        known = [*details, *self._besides]
        said = [how_sure(self.suite)]
        for one in self.suite.changes:
            if one.kind == "answered_by":
                answer = tell(one)
                if not any(answer.startswith(text.partition(",")[0]) for text in known):
                    said.append(answer)
        if self.suite.verdict is not Verdict.REGRESSED:  # which is enough by itself
            for row, found in criteria_that_warn(self.suite):
                if found.kind == "change":
                    said.append(f"warning: {tell_warning(found, row)}")
        return tuple(filter(None, said))

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
        return next_step(self.suite, label)

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
        if self._by is not self.suite and self._by.cases:
            return View(self._by).table
        cause = self.suite.cause
        if cause.kind == "suite_got_worse" and cause["fell"]:
            return self._fell(cause["fell"])
        listed = self.worse
        if cause.kind == "incomplete":
            listed = self._edited_and_missing((*listed, *self.failing))
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
        row = self.suite.row(causes(self.suite, self.suite.cause["criteria"])[0])
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
        """The changes of the suite and its criteria since the baseline, and the rules of the change not in force."""
        return tuple(map(tell, self.suite.changes))

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """The changes that are not shown below the headline."""
        return tuple(line for line in self.all_changes if line not in self.opening)

    @cached_property
    def whole_story(self) -> tuple[str, ...]:
        """The course of the run and the grounds of the verdict."""
        return story(self.suite)

    @cached_property
    def agent_failures(self) -> str:
        """The number of the agent's failures and the most common one; the headline's number is not repeated.

        Empty if there is none, or if the suite could not be measured: then the headline gives the reason.
        """
        facts = self.suite.crashes
        if facts is None or self.suite.verdict is Verdict.ERROR:
            return ""
        counted = crashes(self.suite, facts)
        if counted in self.headline:
            counted = "the agent failed, mostly"
        else:
            counted += "; mostly"
        return f"{counted}: {facts.message}"

    @cached_property
    def _warnings(self) -> list[tuple[Finding, str]]:
        """The findings that weaken the verdict without changing it, with their words: on criteria, on the suite, then
        on criteria that only report."""
        first: list[tuple[Finding, str]] = []
        last: list[tuple[Finding, str]] = []
        for row, found in criteria_that_warn(self.suite):
            told = last if only_reports(found, row) else first
            told.append((found, tell_warning(found, row)))
        of_suite = [(found, tell(found, self.suite)) for found in self.suite.warnings]
        return [*first, *of_suite, *last]

    @cached_property
    def all_warnings(self) -> tuple[str, ...]:
        lines = [line for _, line in self._warnings]
        if self.agent_failures:
            lines.insert(0, self.agent_failures)
        return tuple(lines)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """The warnings that are not shown in the headline, below it, or in the first case."""
        lines, facts = [], self.suite.crashes
        shown, _ = self.evidence
        is_shown = shown is not None and facts is not None and facts.message in shown.reasons
        if self.agent_failures and not is_shown:
            lines.append(self.agent_failures)
        lines += [line for found, line in self._warnings if not self._is_told(found)]
        told = (self.headline, *self.opening)
        return tuple(line for line in lines if not any(line in said for said in told))

    def _is_told(self, found: Finding) -> bool:
        """True if the text above already states a warning, or if it does not concern this verdict."""
        if found.kind != "thin_baseline":
            return False
        return self._by.verdict in PROVEN or bool(thin(self._by))  # it warns of missed losses

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
            "Commit": labels.commit_line(self.suite),
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


def criteria_that_warn(suite: SuiteResult) -> list[tuple[CriterionResult, Finding]]:
    """Return the findings on criteria that readers should know of although they do not decide."""
    found = []
    for row in suite.criteria:
        for one in row.findings:
            if _is_outranked(one, row) or only_reports(one, row) or (one.is_warning and not _is_moot(one, row, suite)):
                found.append((row, one))
    return found


def _is_outranked(found: Finding, row: CriterionResult) -> bool:
    """True if too many scores were lost, but the criterion fails for another reason, which alone is its reason."""
    is_problem = found.kind == "trials_lost" and found.verdict is Verdict.NOT_MEASURED
    return is_problem and worst([found.verdict, row.verdict]) is not found.verdict


def _is_moot(found: Finding, row: CriterionResult, suite: SuiteResult) -> bool:
    """True if a warning adds nothing: the criterion fails or cannot block, or its threshold is close and the suite
    fails."""
    if found.is_excused:
        return row.verdict is not Verdict.PASS or not row.criterion.blocking
    return found.kind == "mean" and suite.verdict not in (Verdict.PASS, Verdict.INCONCLUSIVE)


def _cuts_off_most(found: Finding) -> bool:
    """True if at least half of all answers were cut off: then what was scored is hardly the agent's work."""
    return found.kind == "answers_say_little" and found["why"] == "cut_off" and 2 * found["answers"] >= found["of"]


def _no_baseline(found: BaselineInfo | None) -> str:
    """Return the sentence that nothing is compared; more explicit if a baseline should exist by now."""
    if found is not None and found.of_itself:
        return "nothing to compare with yet: the stored baseline is of this very commit; the next is compared with it"
    if found is not None and found.missing and not found.none_yet:
        return f"nothing is compared: {found.missing}"
    if found is None or found.never_stored < LONG:
        return "no baseline yet"
    never = f"no baseline was ever stored, in {count(found.never_stored, 'commit')} of the base's history"
    return f"nothing is compared: {never}; let the job on the default branch end with `gate baseline save`"


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
