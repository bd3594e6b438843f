"""The words of a decided suite in one place: reports lay them out and make no sentence themselves. Escapes nothing."""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from gate.model import CaseResult, CaseStatus, CriterionResult, Result, SuiteResult, Verdict
from gate.model.finding import Wording
from gate.reports import explanation, labels, replayed
from gate.reports.formatting import (
    change_sample,
    dimensions,
    evidence,
    figure,
    figures,
    judge_line,
    sample,
    threshold,
    tool_times,
)
from gate.reports.reasons import COUNTED, counted_failures, is_excused, reason, why_apart
from gate.reports.trajectory_diff import TurnDiff, answers_apart, differences
from gate.reports.wording import sentence
from gate.reports.words import thin

TONES = {
    Verdict.NOT_APPLIED: "mute",
    Verdict.PASS: "good",
    Verdict.INCONCLUSIVE: "warn",
    Verdict.NOT_MEASURED: "warn",
    Verdict.NOT_COMPARED: "bad",
    Verdict.BELOW_THRESHOLD: "bad",
    Verdict.REGRESSED: "bad",
    Verdict.ERROR: "error",
}
"""The tone of a verdict; each form has its own signs and colours for them."""
CASE_TONES = {
    CaseStatus.BROKEN: "bad",
    CaseStatus.FAILED: "bad",
    CaseStatus.ERROR: "error",
    CaseStatus.SUSPECT: "warn",
    CaseStatus.FLAKY: "shaky",
    CaseStatus.NEVER_PASSED: "warn",
    CaseStatus.OK: "good",
}
"""The tone of a case; none other is good."""


class Figure(Struct, frozen=True):
    """A figure with its interval, and what it rests on."""

    text: str
    rests_on: str


class RowView:
    """Everything that a report says of a criterion."""

    def __init__(self, found: CriterionResult, suite: SuiteResult) -> None:
        self.found = found
        self.suite = suite

    @property
    def name(self) -> str:
        """The criterion's name, which is the user's."""
        return self.found.criterion.name

    @cached_property
    def verdict(self) -> Verdict:
        """As it is shown: a criterion that was never measured does not pass."""
        return labels.shown(self.found)

    @cached_property
    def warns(self) -> bool:
        """True if it got worse, and is not configured to block."""
        return any(one.kind == "quiet_rise" and one["criterion"] == self.name for one in self.suite.warnings)

    @cached_property
    def needs_words(self) -> bool:
        """True if a tick alone would mislead."""
        return self.warns or not labels.is_ticked(self.found) or is_excused(self.found)

    @cached_property
    def tone(self) -> str:
        """The tone of its sign: what got worse is no tick though it does not block, and what was not judged neither."""
        if self.verdict is Verdict.PASS and not labels.is_ticked(self.found):
            return "mute"
        return "warn" if self.warns and self.verdict is Verdict.PASS else TONES[self.verdict]

    @property
    def standing(self) -> str:
        return labels.standing(self.found)

    @property
    def wanted(self) -> str:
        return threshold(self.found.criterion)

    @property
    def candidate(self) -> Figure:
        return Figure(labels.candidate_figure(self.found), sample(self.found.candidate))

    @property
    def baseline(self) -> Figure:
        return Figure(labels.baseline_figure(self.found), sample(self.found.baseline))

    @property
    def change(self) -> Figure:
        return Figure(labels.change_figure(self.found), change_sample(self.found))

    @property
    def same_cause(self) -> str:
        """The criterion that it moved with, if that is told already."""
        return labels.same_cause(self.found, self.suite)

    @property
    def judge(self) -> str:
        return judge_line(self.found)

    @property
    def evidence(self) -> str:
        return evidence(self.found, self.suite)

    @property
    def reason(self) -> str:
        return reason(self.found)

    @property
    def words(self) -> str:
        """The reason, if there is more to say than the figures do; and failures that a threshold counts."""
        counted = counted_failures(self.found)
        told = self.reason if self.needs_words or COUNTED in self.reason else ""
        return "; ".join(filter(None, (told, counted)))

    @property
    def not_compared(self) -> str:
        return why_apart(self.found.not_compared) if self.found.not_compared is not None else ""

    @property
    def dimensions(self) -> list[tuple[str, str]]:
        return dimensions(self.found)


class CaseLine(Struct, frozen=True):
    """A row of the table of cases: how it was, and how it is."""

    case: CaseResult
    before: str
    """Empty if nothing is known of the base."""
    now: str


class CaseTable(Struct, frozen=True):
    """The cases that a reader looks at first: one of each cause, and how many more there are."""

    lines: tuple[CaseLine, ...]
    rest: tuple[CaseResult, ...] = ()
    """The others of the list."""
    one_cause: bool = False
    """True if the others fail for one of the reasons that are shown."""

    @property
    def has_base(self) -> bool:
        """True if the base is known of any of them."""
        return any(line.before for line in self.lines)

    @property
    def more(self) -> str:
        """``3 more, same cause``; empty if there are none."""
        if not self.rest:
            return ""
        same = f", same {'cause' if len(self.lines) == 1 else 'causes'}" if self.one_cause else ""
        return f"{len(self.rest):,} more{same}"


class View:
    """Everything that a report says of a suite."""

    def __init__(self, suite: SuiteResult, explain: str = "") -> None:
        self.suite = suite
        self.explain = explain
        """The command that shows a case's trials; empty if there is none."""

    @cached_property
    def verdict(self) -> str:
        return labels.VERDICTS[self.suite.verdict]

    # --- what happened, how sure that is, what to do ----------------------------------------------

    @cached_property
    def title(self) -> str:
        """The outcome in a few words."""
        return sentence(explanation.title(self.suite)).removesuffix(".")

    @cached_property
    def lead(self) -> tuple[str, ...]:
        """Sentences: why, and how sure that is."""
        accepted = f"accepted by {self.suite.accepted}" if self.suite.accepted else ""
        said = (*explanation.why(self.suite), *self.opening, accepted)
        return tuple(sentence(text) for text in said if text)

    @cached_property
    def headline(self) -> str:
        """The outcome and its reason in one line."""
        return explanation.headline(self.suite)

    @cached_property
    def opening(self) -> tuple[str, ...]:
        return explanation.opening(self.suite)

    def next_step(self, label: str = "") -> str:
        """Return the next step; empty if there is none. ``label``: the label that accepts a loss, if there is one."""
        return explanation.next_step(self.suite, label)

    # --- the cases that show it -------------------------------------------------------------------

    @cached_property
    def table(self) -> CaseTable:
        """The cases that say why, against the reference that decides; no line if the verdict is not about cases."""
        decided = self.suite.deciding
        if decided is not self.suite and decided.cases:
            return View(decided).table
        fell = self._fell()
        if fell.lines:
            return fell
        passes = self.suite.verdict is Verdict.PASS
        cases = self.worse or (() if passes else self.failing)
        shown, complete = labels.kinds(cases, MOST_KINDS)
        rest = tuple(case for case in cases if not any(case is other for other in shown))
        return CaseTable(tuple(map(_line, shown)), rest, complete)

    def _fell(self) -> CaseTable:
        """The cases whose score fell most, of a criterion that got worse without a case that broke."""
        cause = self.suite.cause
        if cause.kind != "suite_got_worse" or not cause["fell"]:
            return CaseTable(())
        criteria = {row.criterion.name: row.criterion for row in self.suite.criteria}
        criterion = criteria[explanation.first_cause(self.suite)]
        by_id = {case.id: case for case in self.suite.cases}
        lines = []
        for one in cause["fell"][:MOST_KINDS]:
            before, now = figures((one.before, one.now), criterion.scale)
            lines.append(CaseLine(by_id[one.case_id], before, now))
        return CaseTable(tuple(lines), tuple(by_id[one.case_id] for one in cause["fell"][MOST_KINDS:]))

    @cached_property
    def evidence(self) -> tuple[CaseResult | None, tuple[TurnDiff, ...]]:
        """The first case of the table that shows what is different, with its calls, else its answers."""
        if worded := _wording(self.suite):
            return worded
        for line in self.table.lines:
            if turns := differences(line.case):
                calls = tuple(turn for turn in turns if not turn.noun)
                return line.case, (calls or turns)[:MOST_TURNS]
        return (self.table.lines[0].case if self.table.lines else None), ()

    # --- what changed, how it came about, what to be careful of -----------------------------------

    @cached_property
    def all_changes(self) -> tuple[str, ...]:
        return explanation.changes(self.suite)

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """Return the changes that do not stand below the headline."""
        return tuple(line for line in self.all_changes if line not in self.opening)

    @cached_property
    def whole_story(self) -> tuple[str, ...]:
        """Return the grounds of the verdict."""
        return explanation.story(self.suite)

    @cached_property
    def all_warnings(self) -> tuple[str, ...]:
        return explanation.warnings(self.suite)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings that neither the headline nor what is below it says."""
        told = (self.headline, *self.opening)
        found = []
        for one, line in zip(self.suite.warnings, self.all_warnings, strict=True):
            is_thin = one.kind == "thin_baseline" and bool(thin(self.suite.deciding))
            if not is_thin and not any(line in said for said in told):
                found.append(line)
        return tuple(found)

    @cached_property
    def from_recordings(self) -> tuple[str, ...]:
        """Return the facts on recordings, a line each; empty if nothing could be replayed."""
        return tuple(filter(None, (replayed.line(self.suite), replayed.calls(self.suite))))

    def differences(self, most: int = replayed.MOST_DIFFERENCES) -> tuple[str, ...]:
        """Return the texts that the model sees now and did not see when it was recorded."""
        return replayed.differences(self.suite, most)

    # --- criteria and cases -----------------------------------------------------------------------

    @cached_property
    def rows(self) -> tuple[RowView, ...]:
        return tuple(RowView(found, self.suite) for found in self.suite.criteria)

    def scores(self, case: CaseResult) -> tuple[str, ...]:
        """Return the scores of a case, by criterion, with what is wanted: ``evalview_score 92.5 (at least 70)``."""
        said = []
        for row in self.rows:
            now = case.scores.get(row.name, (None, None))[0]
            if now is None:
                continue
            criterion = row.found.criterion
            if row.name in case.thresholds:
                criterion = replace(criterion, threshold=case.thresholds[row.name], limit=None, quantiles=())
            is_held = criterion.threshold is not None or criterion.limit is not None or criterion.quantiles
            wanted = f" ({threshold(criterion)})" if is_held else ""
            said.append(f"{row.name} {figure(now, criterion.scale)}{wanted}")
        return tuple(said)

    @cached_property
    def worse(self) -> tuple[CaseResult, ...]:
        """The cases that got worse or could not be measured, the worst first."""
        return labels.worse_cases(self.suite)

    @cached_property
    def worse_title(self) -> str:
        return labels.worse_title(self.worse)

    @cached_property
    def failing(self) -> tuple[CaseResult, ...]:
        """Further cases with failing trials, not shown to be worse."""
        return labels.failing_cases(self.suite)

    @cached_property
    def failing_title(self) -> str:
        compared = ", not shown to be worse" if self.suite.has_baseline else ""
        return f"Cases with failing trials{compared}"

    @cached_property
    def improved(self) -> tuple[CaseResult, ...]:
        """The cases that pass more often than at the baseline."""
        return labels.improved_cases(self.suite)

    @cached_property
    def further(self) -> tuple[View, ...]:
        """Return the views against further references."""
        return tuple(View(one) for one in self.suite.further)

    @cached_property
    def line(self) -> str:
        """The verdict and why, in a line; against another reference with its commit."""
        return labels.further_line(self.suite)

    # --- what it was, and what it cost ------------------------------------------------------------

    @cached_property
    def facts(self) -> dict[str, str]:
        """Return further facts by name; empty texts for unknown ones."""
        return {
            "Cases": labels.status_counts(self.suite),
            "Baseline": labels.baseline_line(self.suite.baseline),
            "Trend": "  ".join(filter(None, labels.trend_line(self.suite))),
            "Stored": labels.stored_line(self.suite),
            "Replayed": replayed.line(self.suite),
            "Calls": replayed.calls(self.suite),
            "Cost": labels.cost_line(self.suite),
            "Candidate": labels.commit_line(self.suite),
            "Seed": str(self.suite.seed),
        }

    @cached_property
    def cost(self) -> str:
        """Money and runs, in short."""
        return labels.cost(self.suite)

    @cached_property
    def tool_times(self) -> list[tuple[str, str]]:
        return tool_times(self.suite)


MOST_KINDS = 3
"""Cases that a table shows, each of another cause."""
MOST_TURNS = 2
"""Turns of a conversation that are shown as evidence."""


def _wording(suite: SuiteResult) -> tuple[CaseResult, tuple[TurnDiff, ...]] | None:
    """The answer that shows how a criterion got worse, beside the one that is expected, or else that of before."""
    cause = suite.deciding.cause
    found: Wording | None = cause["wording"] if cause.kind == "suite_got_worse" else None
    if found is None:
        return None
    case = next(one for one in suite.cases if one.id == found.case_id)
    return case, (answers_apart(found.before or found.expected, found.now, "before" if found.before else "expected"),)


def _line(case: CaseResult) -> CaseLine:
    before = f"{case.baseline_passed:,}/{case.baseline_trials:,}" if case.baseline_trials else ""
    now = f"{case.passed:,}/{case.trials:,}" if case.trials else "not measured"
    if case.status is CaseStatus.FLAKY:
        now += f", {labels.status(case)}"
    return CaseLine(case, before, now)


def views_of(result: Result) -> tuple[View, ...]:
    """Return the words of each suite of a result, in its order."""
    return tuple(View(suite, labels.explain_line(result, suite)) for suite in result.suites)
