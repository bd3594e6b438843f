"""The words of a decided suite in one place: reports lay them out and make no sentence themselves. Escapes nothing."""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct

from gate.model import CaseResult, CriterionResult, Result, SuiteResult, Verdict
from gate.reports import explanation, labels, replayed
from gate.reports import headline as lead
from gate.reports.formatting import (
    change_sample,
    dimensions,
    evidence,
    judge_line,
    sample,
    threshold,
    tool_times,
)
from gate.reports.reasons import counted_failures, fails_besides, reason, why_apart


class Figure(Struct, frozen=True):
    """A figure with its interval, and what it rests on."""

    text: str
    rests_on: str


class RowView(Struct, frozen=True):
    """What is said of a criterion."""

    found: CriterionResult
    verdict: Verdict
    """As it is shown: a criterion that was never measured does not pass."""
    is_ticked: bool
    warns: bool
    """True if it got worse, and is not configured to block."""
    needs_words: bool
    """Whether a tick alone would mislead."""
    standing: str
    wanted: str
    candidate: Figure
    baseline: Figure
    change: Figure
    picture: str
    """The change as a picture; empty if there is none to draw."""
    same_cause: str
    """What the criterion moved with, if that is told already."""
    judge: str
    evidence: str
    reason: str
    told: tuple[str, ...]
    """The parts of the reason that say more than the figures; broken cases, which reports list, aside."""
    besides: tuple[str, ...]
    """Those of them that neither the figures nor the cases of a regression say."""
    not_compared: str
    dimensions: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """The criterion's name, which is the user's."""
        return self.found.criterion.name

    @property
    def sign(self) -> Verdict:
        """The verdict whose sign stands beside it: what got worse is no tick, though it does not block."""
        return Verdict.INCONCLUSIVE if self.warns and self.verdict is Verdict.PASS else self.verdict

    @property
    def shows_verdict(self) -> bool:
        """True if the sign of the verdict stands beside it, and not that nothing was judged."""
        return self.is_ticked or self.verdict is not Verdict.PASS


class View:
    """What is said of a suite."""

    def __init__(self, suite: SuiteResult, explain: str = "") -> None:
        self.suite = suite
        self.explain = explain
        """The command that shows a case's trials; empty if there is none."""

    @cached_property
    def verdict(self) -> str:
        return labels.VERDICTS[self.suite.verdict]

    # --- what happened, how sure that is, what to do ----------------------------------------------

    @cached_property
    def headline(self) -> str:
        return explanation.headline(self.suite)

    @cached_property
    def opening(self) -> tuple[str, ...]:
        """What stands right below the headline: how sure it is, and what answers now."""
        return explanation.opening(self.suite)

    @cached_property
    def next_step(self) -> str:
        return lead.next_step(self.suite)

    @cached_property
    def measured_before(self) -> str:
        """Earlier measurements of the change, if the headline does not tell them."""
        return explanation.measured_before(self.suite)

    # --- what changed, how it came about, what to be careful of -----------------------------------

    @cached_property
    def all_changes(self) -> tuple[str, ...]:
        return explanation.changes(self.suite)

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """Those that do not stand below the headline."""
        return tuple(line for line in self.all_changes if line not in self.opening)

    @cached_property
    def whole_story(self) -> tuple[str, ...]:
        """How the verdict came about."""
        return explanation.story(self.suite)

    @cached_property
    def story(self) -> tuple[str, ...]:
        """The same without what the next step says already."""
        return tuple(line for line in self.whole_story if line not in self.next_step)

    @cached_property
    def all_warnings(self) -> tuple[str, ...]:
        return explanation.warnings(self.suite)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Those that neither the headline nor what is below it says."""
        told = (self.headline, *self.opening)
        return tuple(line for line in self.all_warnings if not any(line in one for one in told))

    @cached_property
    def from_recordings(self) -> tuple[str, ...]:
        """What was answered from recordings, a line each; empty if nothing could be."""
        return tuple(filter(None, (replayed.line(self.suite), replayed.calls(self.suite))))

    def differences(self, most: int = replayed.MOST_DIFFERENCES) -> tuple[str, ...]:
        """What the model sees now and did not see when it was recorded."""
        return replayed.differences(self.suite, most)

    # --- criteria and cases -----------------------------------------------------------------------

    @cached_property
    def rows(self) -> tuple[RowView, ...]:
        return tuple(_row(found, self.suite) for found in self.suite.criteria)

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
        """The same record against further references."""
        return tuple(View(one) for one in self.suite.further)

    @cached_property
    def line(self) -> str:
        """The verdict and why, in a line; against another reference with its commit."""
        return labels.further_line(self.suite)

    # --- what it was, and what it cost ------------------------------------------------------------

    @cached_property
    def facts(self) -> dict[str, str]:
        """What is known besides, by name; empty texts where nothing is."""
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
        return lead.cost(self.suite)

    @cached_property
    def tool_times(self) -> list[tuple[str, str]]:
        return tool_times(self.suite)


def _row(found: CriterionResult, suite: SuiteResult) -> RowView:
    told = labels.telling(found, with_broken=False)
    besides = (counted_failures(found), fails_besides(found))
    warns = any(one.kind == "quiet_rise" and one["criterion"] == found.criterion.name for one in suite.warnings)
    return RowView(
        found,
        labels.shown(found),
        labels.is_ticked(found),
        warns,
        warns or labels.needs_words(found),
        labels.standing(found),
        threshold(found.criterion),
        Figure(labels.candidate_figure(found), sample(found.candidate)),
        Figure(labels.baseline_figure(found), sample(found.baseline)),
        Figure(labels.change_figure(found), change_sample(found)),
        labels.change_picture(found, suite),
        labels.same_cause(found, suite),
        judge_line(found),
        evidence(found, suite),
        reason(found),
        tuple(told),
        tuple(part for part in told if part in besides),
        why_apart(found.not_compared) if found.not_compared is not None else "",
        tuple(dimensions(found)),
    )


def views_of(result: Result) -> tuple[View, ...]:
    """Return the words of each suite of a result, in its order."""
    return tuple(View(suite, labels.explain_line(result, suite)) for suite in result.suites)
