"""The verdict on a suite, given by the first rule in a list that applies, and the exit code.

Two questions decide. Does the agent meet its thresholds? Did this change make it worse? Exit code 0 means yes to the
first, and no evidence for the second beyond chance. Nothing turns one verdict into another afterwards: a fact that
changes no verdict is a note.

1. `outage`: error
2. `loss`, `not_shown_fixed`: regressed
3. `missed_threshold`: below threshold
4. `gaps`: not compared
5. `problem`: error
6. `noise`: inconclusive

If none applies, the suite passes. Each rule takes a `Table` and returns the cause of the verdict, or None. An *agent
failure* is a trial without a usable answer; it counts as a miss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from gate.decision.causes import got_worse, not_enough_evidence, passes
from gate.decision.comparison import Comparison
from gate.decision.crashes import uncleared
from gate.decision.findings import cases_fail
from gate.decision.gaps import gaps_of
from gate.decision.outcomes import PASS_RATE
from gate.decision.problems import base_fails_too, collapsed, copies_fail, measuring_problem
from gate.decision.settings import Settings
from gate.decision.thresholds import can_fail
from gate.errors import EXIT_PRECEDENCE, ExitCode
from gate.model import CaseResult, CriterionResult, Outcome, SuiteResult, Verdict
from gate.model.finding import Finding


class Table(Struct, frozen=True):
    """Everything the rules use: one suite against one reference, under the rules of one commit."""

    comparison: Comparison
    """The trials of both sides, and the requirements on them."""
    outcome: Outcome | None
    """The result of the sequential test on the paired cases; None if nothing is paired."""
    rows: tuple[CriterionResult, ...]
    """The pass rate and then each criterion, with its own findings. That recurring agent failures alone prove a loss is
    a finding on the pass rate."""
    cases: tuple[CaseResult, ...] = ()
    """The results of single cases; empty if only the verdict is wanted."""
    not_confirmed: Finding | None = None
    """The reason to distrust a block that rests on agent failures: rules 2 and 3 then do not apply."""
    lost: Finding | None = None
    """Trials that could not be measured, if they could change the verdict."""

    @property
    def blocking(self) -> list[CriterionResult]:
        """The rows that can fail the suite."""
        return [row for row in self.rows if row.criterion.blocking]

    def with_verdict(self, verdict: Verdict) -> list[CriterionResult]:
        """Return the blocking rows with this verdict."""
        return [row for row in self.blocking if row.verdict is verdict]


# --- 1: an outage ---------------------------------------------------------------------------------


def outage(table: Table) -> Finding | None:
    """Return the cause if most cases that answered at the base now end in the same agent failure."""
    return table.comparison.outage


# --- 2: worse than the base -----------------------------------------------------------------------


def loss(table: Table) -> Finding | None:
    """Return the cause if a loss against the base is proven."""
    comparison = table.comparison
    if table.not_confirmed is not None:
        return None
    if comparison.same_verdict == Verdict.REGRESSED:
        return Finding.of("same_agent", commit=comparison.same_as, fell_short=True)
    worse = table.with_verdict(Verdict.REGRESSED)
    if not worse:
        return None
    by_failures = worse[0].finding("agent_fails")
    if by_failures is not None:
        return by_failures
    assert table.outcome is not None  # nothing else makes a row regressed
    return got_worse(comparison, table.rows, table.cases, table.outcome)


def not_shown_fixed(table: Table) -> Finding | None:
    """Return the cause if this change was measured as regressed and has not passed since: then it does not pass now
    either."""
    measurements = regressed_ago(table.comparison.earlier)
    if not measurements:
        return None
    for rule in (missed_threshold, gaps, problem, noise):
        now = rule(table)
        if now is not None:
            return Finding.of("not_shown_fixed", measurements=measurements, now=now)
    return None


def regressed_ago(earlier: Iterable[Verdict]) -> int:
    """Return how many measurements ago this change regressed; 0 if it passed since or never regressed."""
    for ago, verdict in enumerate(earlier, start=1):
        if verdict is Verdict.PASS:
            return 0
        if verdict is Verdict.REGRESSED:
            return ago
    return 0


# --- 3: below a threshold -------------------------------------------------------------------------


def missed_threshold(table: Table) -> Finding | None:
    """Return the cause if sampling has ended and a blocking mean, limit or hard rule is on the wrong side."""
    if table.not_confirmed is not None:
        return None
    missed = below(table)
    if missed:
        return Finding.of("criteria_decide", criteria=missed)
    return _nothing_passes(table.comparison)


def below(table: Table) -> tuple[str, ...]:
    """Return the blocking criteria with a mean, limit or hard rule on the wrong side, hard rules first."""
    if table.not_confirmed is not None:
        return ()
    missed = [row.criterion for row in table.blocking if row.is_below]
    missed.sort(key=lambda criterion: not criterion.hard)
    return tuple([criterion.name for criterion in missed])


def _nothing_passes(comparison: Comparison) -> Finding | None:
    """Return the cause if no stored baseline exists and no trial passes: the suite is below any threshold.

    It is no excuse if no trial of the base commit's agent passes either.
    """
    has_stored = comparison.baseline and not comparison.base_ran_now
    if has_stored or not comparison.blocking:
        return None
    trials = comparison.judged_trials
    was_run = {trial.case_id for trial in trials}
    if not trials or any(case.id not in was_run for case in comparison.judged):
        return None  # cases that did not run may pass
    if any(comparison.outcome_of(trial) is not False for trial in trials):
        return None
    return Finding.of("nothing_passes", trials=len(trials))


# --- 4: not compared ------------------------------------------------------------------------------


def gaps(table: Table) -> Finding | None:
    """Return the cause if something in the base was not compared."""
    found = (*table.comparison.gaps, *gaps_of(table.comparison, table.blocking))
    if not found:
        return None
    return Finding.of("incomplete", gaps=found)


# --- 5: could not be measured ---------------------------------------------------------------------


def problem(table: Table) -> Finding | None:
    """Return the cause if anything else prevented the measurement."""
    return (
        measuring_problem(table.comparison)
        or table.not_confirmed
        or uncleared(table.comparison)
        or _without_value(table)
        or collapsed(table.comparison)
        or table.lost
    )


def _without_value(table: Table) -> Finding | None:
    """Return the cause if a blocking criterion has no value."""
    rows = table.with_verdict(Verdict.NOT_MEASURED)
    if not rows:
        return None
    others = [row for row in rows if row.criterion.name != PASS_RATE]  # the pass rate never has a cause of its own
    names = tuple([row.criterion.name for row in others or rows])
    return Finding.of("criteria_decide", Verdict.ERROR, criteria=names)


# --- 6: noise -------------------------------------------------------------------------------------


def noise(table: Table) -> Finding | None:
    """Return the cause if only noise is left: sampling has ended, and a margin's bound does not hold or nothing shows
    whether the agent is as good as the base's."""
    return (
        base_fails_too(table.comparison)
        or _open_criteria(table)
        or copies_fail(table.comparison)
        or _nothing_to_judge_by(table.comparison)
    )


def _open_criteria(table: Table) -> Finding | None:
    """Return the cause if the test leaves a blocking criterion open."""
    rows = table.with_verdict(Verdict.INCONCLUSIVE)
    if not rows:
        return None
    return _drifted(rows) or cases_fail(table.outcome) or not_enough_evidence(rows, table.cases)


def _drifted(rows: Iterable[CriterionResult]) -> Finding | None:
    """Return the cause if some criteria are worse only than the stored baseline."""
    names, why = [], ""
    for row in rows:
        change = row.finding("change")
        if change is not None and change["why"] in ("drifted", "moved_before"):
            names.append(row.criterion.name)
            why = change["why"]
    if not names:
        return None
    return Finding.of("criteria_decide", Verdict.INCONCLUSIVE, criteria=tuple(names), why=why)


def _nothing_to_judge_by(comparison: Comparison) -> Finding | None:
    """Return the cause if neither a baseline nor a threshold, a limit or a hard rule could fail the suite."""
    if comparison.paired or comparison.same_as:
        return None
    if any(can_fail(comparison, criterion) for criterion in comparison.blocking):
        return None
    return Finding.of("not_judged", Verdict.INCONCLUSIVE, why="nothing_yet")


# --- the list -------------------------------------------------------------------------------------

Rule = Callable[[Table], Finding | None]

RULES: tuple[tuple[Verdict, Rule], ...] = (
    (Verdict.ERROR, outage),
    (Verdict.REGRESSED, loss),
    (Verdict.REGRESSED, not_shown_fixed),
    (Verdict.BELOW_THRESHOLD, missed_threshold),
    (Verdict.NOT_COMPARED, gaps),
    (Verdict.ERROR, problem),
    (Verdict.INCONCLUSIVE, noise),
)
"""The rules in order: the first that applies gives the verdict; if none does, the suite passes."""
SETTLED_BY_ACCEPTING = (loss, not_shown_fixed, gaps)
"""The rules that an authorised person can settle by accepting. A missed threshold is changed, never accepted."""


def judge(table: Table) -> Finding:
    """Return the verdict on a suite, as the finding that causes it."""
    for verdict, rule in RULES:
        cause = rule(table)
        if cause is not None:
            return replace(cause, verdict=verdict)
    if table.comparison.same_as:
        return Finding.of("same_agent", commit=table.comparison.same_as)
    return passes(table.comparison, table.outcome)


def if_accepted(table: Table) -> Verdict:
    """Return the verdict that remains after everything acceptable has been accepted.

    A mean below its threshold, like the base's, is excused only while no loss is proven.
    """
    if loss(table) is not None and any(row.has_excused_mean for row in table.blocking):
        return Verdict.BELOW_THRESHOLD
    for verdict, rule in RULES:
        is_settled = rule in SETTLED_BY_ACCEPTING or verdict is Verdict.INCONCLUSIVE
        if not is_settled and rule(table) is not None:
            return verdict
    return Verdict.PASS


def place(cause: Finding) -> int:
    """Return the position in the list of the rule that found this cause; smaller is worse.

    For one suite against several references, or under the rules of two commits, the first rule that applies to any
    decides.
    """
    if cause.kind == "outage":
        return 0
    found = len(RULES)
    for number, (verdict, _) in enumerate(RULES):
        if verdict is cause.verdict:
            found = number
    return found


# --- the exit code --------------------------------------------------------------------------------

EXIT_CODES: Mapping[Verdict, ExitCode] = {
    Verdict.NOT_APPLIED: ExitCode.NOT_MEASURED,
    Verdict.PASS: ExitCode.PASS,
    Verdict.INCONCLUSIVE: ExitCode.PASS,
    Verdict.NOT_MEASURED: ExitCode.NOT_MEASURED,
    Verdict.ERROR: ExitCode.NOT_MEASURED,
    Verdict.NOT_COMPARED: ExitCode.FAILED,
    Verdict.BELOW_THRESHOLD: ExitCode.FAILED,
    Verdict.REGRESSED: ExitCode.FAILED,
}
"""Maps verdicts to exit codes."""


def exit_code(suites: Iterable[SuiteResult], settings: Settings) -> ExitCode:
    """Return the exit code of a run; 3 if there are no suites, never green."""
    codes = dict(EXIT_CODES)
    if settings.on_inconclusive == "block":
        codes[Verdict.INCONCLUSIVE] = ExitCode.FAILED
    found = [codes[suite.standing] for suite in suites]
    return min(found, key=EXIT_PRECEDENCE.index, default=ExitCode.NOT_MEASURED)
