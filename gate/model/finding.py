"""Findings on a suite: each has a kind, a verdict and plain data. Reports make the words.

`KINDS` says which data each kind has. In JSON a finding is ``{"kind": "mean_misses", "mean": …, "trials": 45}``.
Changes are as a reader means them: candidate minus baseline, relative for money, time and counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from gate.model.evidence import Stage
from gate.model.scale import Scale
from gate.model.verdict import Verdict

KindName = Literal[
    "scorer_changed", "cases_gone", "no_longer_measured", "compared_without", "checks_fell_away", "nothing_rerun",
    "confirmation_lost", "failures_gone", "perhaps_provider", "slowed_down", "nothing_held", "not_applied",
    "same_trials", "nothing_checked", "no_trial_measured", "never_failed", "hard_failure", "cases_not_scored",
    "scores_lost", "applies_to_none", "applies_no_more", "mean_holds", "mean_excused", "mean_misses", "mean_unsure",
    "own_threshold_missed", "own_thresholds_hold", "no_trial_beyond", "trial_beyond", "trial_excused",
    "quantile_holds", "quantile_excused", "quantile_risen", "quantile_over", "quantile_open", "change_allowed",
    "suggests_drop", "never_pass", "drifted", "change_unbounded", "loss_not_excluded", "got_worse", "not_tested",
    "failures_confirmed", "not_compared", "no_cases", "all_quarantined", "outage", "failures_not_confirmed",
    "unexplained_failures", "lost_decide", "collapsed", "too_many_errors", "cases_not_measured",
    "case_not_recorded", "case_mostly_lost", "cases_not_run", "stated", "criteria_not_compared",
    "too_many_cases_gone", "edited_cases_miss", "nothing_paired", "could_not_measure", "shard_measured",
    "shard_not_measured", "thresholds_hold", "no_worse", "nothing_decides", "not_enough_evidence",
    "cases_never_pass", "cases_broke", "suite_got_worse", "traded_off", "baseline_moved", "criterion_fails",
    "criterion_not_measured", "nothing_passes", "not_shown_fixed", "same_agent", "incomplete", "control_fell",
    "copies_lost", "cut_short", "agent_fails", "answered_by", "base_run_beside", "other_agent", "tools_changed",
    "new_cases", "edited_cases", "renamed_cases", "removed_cases", "criterion_apart", "removed_criteria",
    "new_criteria", "by_base_rules", "agent_failures", "threshold_close", "threshold_excused", "limit_excused",
    "few_cases", "thin_baseline", "quiet_rise", "scores_unmeasured", "trials_lost", "failures_excused", "base_gone",
    "provider_moved", "unproven",
    "measured_before", "attempts_repeated", "repeats_alike", "repeats_once", "calls_not_reported", "one_answer",
    "cases_unchecked", "not_accepted",
]  # fmt: skip


class Finding(Struct, frozen=True):
    """One thing that was found of a suite or of a criterion."""

    kind: KindName
    verdict: Verdict
    """The verdict that a criterion or a suite has by it; PASS if it decides nothing."""
    data: Mapping[str, Any]

    @classmethod
    def of(cls, kind: KindName, /, **data: Any) -> Finding:
        """Return a finding of a kind.

        Raises:
            TypeError: the kind has other fields.
        """
        known = KINDS[kind]
        full = {name: data.get(name, field.default) for name, field in known.fields.items()}
        if not known.fields.keys() >= data.keys() or any(value is UNSET for value in full.values()):
            raise TypeError(f"{kind} has the fields {', '.join(known.fields)}, not {', '.join(data)}")
        return cls(kind, known.verdict, full)

    @classmethod
    def read(cls, plain: Any) -> Finding:
        """Return a note of a record, from its JSON form.

        Raises:
            ValidationError: it is none.
        """
        if not isinstance(plain, Mapping) or plain.get("kind") not in NOTES:
            raise msgspec.ValidationError(f"not a note: {plain!r}")
        fields = KINDS[plain["kind"]].fields
        data = {name: msgspec.convert(plain[name], field.type) for name, field in fields.items() if name in plain}
        try:
            return cls.of(plain["kind"], **data)
        except TypeError as error:
            raise msgspec.ValidationError(str(error)) from None

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def __hash__(self) -> int:
        return hash(self.kind)  # a mapping has no hash; equal findings are of one kind

    def but(self, **data: Any) -> Finding:
        """Return the finding with other data."""
        return replace(Finding.of(self.kind, **{**self.data, **data}), verdict=self.verdict)

    @property
    def problem(self) -> KindName | None:
        """The kind of what kept a suite from being measured; None for any other cause."""
        found: Finding | None = self["problem"] if self.kind == "could_not_measure" else None
        return None if found is None else found.kind

    @property
    def settles(self) -> bool:
        """True if it is final: no further trial can change it."""
        return self.kind in SETTLING

    @property
    def plain(self) -> dict[str, Any]:
        """The JSON form."""
        found: dict[str, Any] = msgspec.to_builtins({"kind": self.kind, **self.data})
        return found


# --- structured data of findings ------------------------------------------------------------------


class HeldMean(Struct, frozen=True):
    """The mean over cases that is held against a threshold."""

    value: float
    threshold: float
    cases: int
    case_id: str = ""
    """The case whose own threshold it is; empty: the suite's."""
    failed: int = 0
    """Trials in which the agent failed; each counts as ``failed_as``."""
    failed_as: float = 0.0
    before: float | None = None
    """The baseline's mean, where it missed the threshold too."""
    new_cases: int = 0
    """Cases without a baseline, where these alone are held to it."""
    new_value: float = 0.0
    measured: float | None = None
    """The plain mean of a calibrated judge's scores, if the others are corrected."""


class Change(Struct, frozen=True):
    """The paired change with its 90 % interval; None where nothing bounds it."""

    value: float
    low: float | None
    high: float | None
    cases: int


class CaseTally(Struct, frozen=True):
    """The passes of a case, now and at the baseline."""

    case_id: str
    passed: int
    trials: int
    passed_before: int
    trials_before: int


class Uncompared(Struct, frozen=True):
    """Numbers of cases that only one side has, or that cannot be compared."""

    new: int = 0
    edited: int = 0
    removed: int = 0


class Fell(Struct, frozen=True):
    """The mean score of a case at the baseline, and now."""

    case_id: str
    before: float
    now: float


class Wording(Struct, frozen=True):
    """The wording of one case, now and at the baseline."""

    case_id: str
    before: str
    """Empty if it is not known: stored baselines keep no texts."""
    now: str
    expected: str = ""
    """Empty if the case expects no text."""
    reason: str = ""
    """The sentence of the criterion on it."""


# --- the kinds ------------------------------------------------------------------------------------


class Nested(Struct, frozen=True):
    """The type of a field that holds a finding of one of these kinds, or several."""

    kinds: tuple[KindName, ...]
    many: bool = False


class Field(Struct, frozen=True):
    """A field of a kind: its type, and its default if it has one."""

    type: Any
    default: Any = UNSET


class FindingKind(Struct, frozen=True):
    """A kind of finding: its meaning, its verdict, and its fields."""

    about: str
    verdict: Verdict
    fields: Mapping[str, Field]


def kind(about: str, verdict: Verdict = Verdict.PASS, /, **fields: Any) -> FindingKind:
    """Return a kind; each field is given as its type, or as a `Field`."""
    full = {name: field if isinstance(field, Field) else Field(field) for name, field in fields.items()}
    return FindingKind(about, verdict, full)


NAMES = tuple[str, ...]
TALLIES = tuple[CaseTally, ...]
PAIRS = tuple[tuple[str, str], ...]
FLAG = Field(bool, False)
NUMBER = Field(int, 0)
NO_NAMES = Field(NAMES, ())
NO_TALLIES = Field(TALLIES, ())

OPEN = Verdict.INCONCLUSIVE
UNMEASURED = Verdict.NOT_MEASURED
ERROR = Verdict.ERROR
NOT_COMPARED = Verdict.NOT_COMPARED
BELOW = Verdict.BELOW_THRESHOLD
REGRESSED = Verdict.REGRESSED

APART: Mapping[KindName, FindingKind] = {
    "scorer_changed": kind("Its options, scorer or judge changed."),
    "cases_gone": kind("None of the cases on which the baseline measured it is compared.", cases=int),
    "no_longer_measured": kind("It is no longer measured."),
    "compared_without": kind("The pass rate is compared without these blocking criteria.", criteria=NAMES),
    # ``of``: cases in which it applied at the baseline
    "checks_fell_away": kind("It has nothing to check where it always had.", criterion=str, cases=NAMES, of=int),
}
"""Reasons why a criterion is not compared with the baseline."""

UNCONFIRMED: Mapping[KindName, FindingKind] = {
    "nothing_rerun": kind("Nothing could be run again a while later."),
    "confirmation_lost": kind("Too many confirming trials were lost to infrastructure.", lost=int, trials=int),
    "failures_gone": kind("The failing cases answered a while later.", trials=int),
    # ``other``: of the base commit's agent, run now, or of cases that had answered; 0 if nothing was run beside
    "perhaps_provider": kind(
        "The failures came again, but the provider may be at fault.",
        failed=int,
        trials=int,
        other_failed=int,
        other_trials=int,
        at_base=bool,
    ),
    "slowed_down": kind("Answers slowed beyond the latency margin; in seconds.", now=float, before=float),
}
"""Reasons why a block that needs failures of the agent was not confirmed."""

OF_CRITERION: Mapping[KindName, FindingKind] = {
    "nothing_held": kind("No threshold and no comparison judged it, so no tick stands beside it."),
    "not_applied": kind("It applies to none of the selected cases.", Verdict.NOT_APPLIED),
    "same_trials": kind("The trials are the stored ones themselves, so nothing can be lost."),
    "nothing_checked": kind("No blocking criterion applies to any of the cases.", UNMEASURED),
    "no_trial_measured": kind("No trial was measured.", UNMEASURED),
    "never_failed": kind("No trial broke the hard rule."),
    # ``reason``: the metric's own; empty if it gave none
    "hard_failure": kind("A trial broke the hard rule.", BELOW, case_id=str, more=int, reason=str),
    "cases_not_scored": kind(
        "Cases were answered, and none of their trials has a score.",
        UNMEASURED,
        case_id=str,
        cases=int,
        of=int,
        error=str,
    ),
    "scores_lost": kind("Too many scores ended in an error.", UNMEASURED, lost=int, of=int, most=float, error=str),
    "applies_to_none": kind("No case states what it compares with.", UNMEASURED),
    "applies_no_more": kind("It went with the cases that it applied to.", NOT_COMPARED),
    "mean_holds": kind("The mean is on the right side of the suite's threshold.", mean=HeldMean),
    "mean_excused": kind("The mean misses the threshold as the baseline's did.", mean=HeldMean),
    # ``error``: standard error over epochs of an unchanged agent; ``base_cases``: only new cases lift the mean over it
    "mean_misses": kind(
        "The mean is on the wrong side of the suite's threshold.",
        BELOW,
        mean=HeldMean,
        trials=int,
        error=float | None,
        base_cases=FLAG,
    ),
    "mean_unsure": kind("The mean misses, unless the lost trials were hits.", UNMEASURED, mean=HeldMean, lost=int),
    "own_threshold_missed": kind(
        "A case misses a threshold of its own, beyond chance.", BELOW, mean=HeldMean, trials=int, more=NUMBER
    ),
    # ``excused``: miss theirs as at the baseline; ``short``: are below theirs, but not beyond chance
    "own_thresholds_hold": kind("No case misses its own threshold.", cases=int, excused=NUMBER, short=NUMBER),
    "no_trial_beyond": kind("No trial is above the most that a single one may reach."),
    "trial_beyond": kind(
        "The highest of the trials above it.", BELOW, case_id=str, value=float, limit=float, trials=int
    ),
    "trial_excused": kind("The baseline was above the limit too.", case_id=str, value=float, limit=float),
    "quantile_holds": kind("The quantile is within its limit.", q=float, value=float, limit=float),
    "quantile_excused": kind("The baseline was above the limit too.", q=float, value=float, limit=float),
    "quantile_risen": kind(
        "Above its limit as before, and beyond the margin of that.",
        BELOW,
        q=float,
        value=float,
        limit=float,
        before=float,
    ),
    "quantile_over": kind(
        "More trials are above the limit than chance explains.",
        BELOW,
        q=float,
        value=float,
        limit=float,
        over=int,
        trials=int,
    ),
    "quantile_open": kind(
        "Whether it is within its limit is open.", OPEN, q=float, value=float, limit=float, trials=int, too_few=bool
    ),
    "change_allowed": kind("Within its margin, not proven, or of a metric that only warns.", change=Change),
    "suggests_drop": kind("Within its margin, but one test suggests a drop.", OPEN, change=Change),
    "never_pass": kind(
        "Cases always passed and never do now; the baseline is too thin to prove it.", OPEN, cases=TALLIES
    ),
    # ``before``: no worse than the newest stored runs; what the base's agent does now was not asked
    "drifted": kind("Worse than the baseline, not than its agent run now.", OPEN, change=Change, before=FLAG),
    "change_unbounded": kind("There are too few trials to bound the change.", OPEN, change=Change),
    "loss_not_excluded": kind(
        "The interval reaches beyond the margin.", OPEN, change=Change, worst=float, margin=float
    ),
    "got_worse": kind("Proven worse than the baseline.", REGRESSED, change=Change, broken=NO_NAMES),
    "not_tested": kind("The engine ended undecided, and nothing could be compared.", OPEN, stage=Stage),
    "failures_confirmed": kind("The agent fails where it answered, and did again later.", REGRESSED, p=float),
    "not_compared": kind("What follows is not compared.", NOT_COMPARED, why=Nested(tuple(APART))),
}
"""Findings on a criterion; its verdict is the worst of them."""

SETTLING: tuple[KindName, ...] = (
    "hard_failure", "own_threshold_missed", "trial_beyond", "quantile_risen", "quantile_over", "got_worse",
)  # fmt: skip
"""No further trial can change these."""

PROBLEMS: Mapping[KindName, FindingKind] = {
    "no_cases": kind("There is nothing to judge."),
    "all_quarantined": kind("Every case is in quarantine."),
    # ``compared``: false if there is no baseline; then every case fails
    "outage": kind("Most of what answered before fails alike.", cases=int, of=int, compared=bool, error=str),
    # ``failed``: trials without those of the confirmation
    "failures_not_confirmed": kind(
        "A block would rest on failures that did not come again.", failed=int, why=Nested(tuple(UNCONFIRMED))
    ),
    "unexplained_failures": kind("The agent fails in cases in which it never did at the baseline.", cases=int),
    # ``unscored``: answers of which a blocking score could not be computed
    "lost_decide": kind("Counted as failed, lost trials turn the verdict.", trials=int, unscored=NUMBER),
    # ``copies``: repeats are copies of one answer, as with a cache; else the suite is too small
    "collapsed": kind(
        "Every value is at its worst, and nothing proves a loss.", criterion=str, cases=int, trials=int, copies=bool
    ),
    "too_many_errors": kind("Too many trials ended in infrastructure errors.", share=float, most=float, error=str),
    "cases_not_measured": kind("No trial of these cases could be measured.", cases=NAMES, of=int, error=str),
    # the change asked for it, so what was lost is no sample of what would have been
    "case_not_recorded": kind(
        "A case asked for what its recording does not hold.", case_id=str, lost=int, trials=int, error=str
    ),
    "case_mostly_lost": kind("Most trials of a case were lost.", case_id=str, lost=int, trials=int, error=str),
    "cases_not_run": kind("Cases of the shard were not run.", cases=NAMES, of=int),
}
"""Reasons why a suite could not be measured."""

GAPS: Mapping[KindName, FindingKind] = {
    "stated": kind("What a run's terms state in words of their own.", text=str),
    "criteria_not_compared": kind("What the baseline measured of these is not compared.", criteria=NAMES),
    # ``of``: cases that passed at the base
    "too_many_cases_gone": kind("Too many cases that passed at the base are gone.", cases=NAMES, of=int),
    "edited_cases_miss": kind("Cases were edited, passed at the base, and miss now.", cases=NAMES),
    "nothing_paired": kind("None of the base's cases is compared.", cases=int),
    "checks_fell_away": APART["checks_fell_away"],
}
"""Parts of the base that were not compared."""

CAUSES: Mapping[KindName, FindingKind] = {
    "could_not_measure": kind("The suite could not be measured.", ERROR, problem=Nested(tuple(PROBLEMS))),
    "shard_measured": kind("A shard knows only its own cases.", OPEN, shard=int, of=int, trials=int, cases=int),
    "shard_not_measured": kind("A shard failed.", ERROR, shard=int, of=int, problem=Nested(tuple(PROBLEMS))),
    # ``checked``: cases to which a blocking criterion applies
    "thresholds_hold": kind(
        "Nothing is compared; every threshold holds.", checked=int, cases=int, uncompared=Uncompared
    ),
    # ``rate``: the bad end of the pass rate's interval, 0 to 1, None if it is not bounded, and the cases behind it
    "no_worse": kind(
        "It is no worse than the baseline.", cases=int, rate_cases=int, rate_low=float | None, uncompared=Uncompared
    ),
    "nothing_decides": kind("Nothing but a baseline could fail the suite, and there is none.", OPEN),
    "not_enough_evidence": kind("These criteria are open.", OPEN, criteria=NAMES, suspects=NAMES),
    "cases_never_pass": kind("Cases always passed and never do now; nothing proves it.", OPEN, cases=TALLIES),
    # ``moved``: the same cases with what proves it; ``of``: cases that are compared
    "cases_broke": kind("These cases broke.", REGRESSED, cases=NAMES, moved=NO_TALLIES, of=NUMBER),
    # ``by_mean``: a lower mean proves it, else large drops of a few cases; ``perhaps_drift``: only stored trials do, so
    # that a provider that changed looks the same; ``suspects``: of the pass rate, the strongest first; ``fell``: of the
    # first other criterion that has no part among them; ``missed``: fail whatever the baseline did; ``drift_moot``: a
    # base that can be run was not asked about a drift, since these fail anyway; ``wording``: of the case that fell most
    "suite_got_worse": kind(
        "The suite got worse, and no case can be named.",
        REGRESSED,
        criteria=NAMES,
        by_mean=Field(bool, True),
        perhaps_drift=FLAG,
        suspects=NO_TALLIES,
        fell=Field(tuple[Fell, ...], ()),
        missed=NO_NAMES,
        drift_moot=FLAG,
        wording=Field(Wording | None, None),
    ),
    # ``named``: at a false discovery rate of at most 10 %; else the lost cases are the most suspect ones
    "traded_off": kind(
        "Cases got worse and others better, and no mean fell.",
        REGRESSED,
        lost=TALLIES,
        gained=TALLIES,
        named=bool,
        gained_named=bool,
    ),
    # ``before``: than its newest runs; what its agent does now was not asked
    "baseline_moved": kind("Worse than the baseline, not than its agent run now.", OPEN, criteria=NAMES, before=FLAG),
    "criterion_fails": kind("A criterion fails by itself.", BELOW, criterion=str),
    "criterion_not_measured": kind("A blocking criterion has no value.", ERROR, criterion=str),
    "nothing_passes": kind("There is no baseline, and no trial passes.", BELOW, trials=int),
    # ``measurements``: how many ago; 1 is the one before
    "not_shown_fixed": kind("The change was regressed and has not passed since.", REGRESSED, measurements=int),
    # ``fell_short``: so they did when they were stored, which nobody accepted
    "same_agent": kind("The trials are those that are stored of this agent.", commit=str, fell_short=FLAG),
    "incomplete": kind(
        "Something that the base holds was not compared.", NOT_COMPARED, gaps=Nested(tuple(GAPS), many=True)
    ),
    "control_fell": kind("What always passed now fails with the base commit's agent too.", OPEN, cases=NAMES),
    "copies_lost": kind("What always passed now fails, but repeats are copies of one answer.", OPEN, cases=NAMES),
    "cut_short": kind("The run was stopped before it could be judged.", ERROR, why=str, epochs=int, wanted=int),
    "agent_fails": kind("The confirmation alone proves that the agent fails where it answered.", REGRESSED, p=float),
}
"""Reasons for the verdict on a suite."""

CHANGES: Mapping[KindName, FindingKind] = {
    "answered_by": kind(
        "Another model or system of the provider answers.", what=Literal["model", "system"], now=NAMES, before=NAMES
    ),
    # ``without_rules``: the base has no configuration, so that its agent was held to the change's rules
    "base_run_beside": kind("The base's agent took the place of a baseline.", commit=str, without_rules=FLAG),
    # ``key``: of the configuration, by which it is started or reached
    "other_agent": kind("The change starts or reaches another agent than the base.", key=str, text=str),
    # ``changes``: empty if the recordings are not there to say them
    "tools_changed": kind("MCP servers describe their tools otherwise.", servers=NAMES, changes=NO_NAMES),
    "new_cases": kind("Cases that the baseline does not have.", cases=NAMES),
    "edited_cases": kind("Cases that the baseline has with another content.", cases=NAMES),
    "renamed_cases": kind("Cases with their id at the baseline and their id now.", cases=PAIRS),
    "removed_cases": kind("Cases that only the baseline has.", cases=NAMES),
    "criterion_apart": kind("A criterion is not compared.", criterion=str, why=Nested(tuple(APART))),
    "removed_criteria": kind("Criteria that only the baseline has.", criteria=NAMES),
    "new_criteria": kind("Criteria that the baseline does not have.", criteria=NAMES),
    "by_base_rules": kind("The base's rules decided; the change's stricter ones would say this.", verdict=Verdict),
    "stated": GAPS["stated"],
}
"""Changes of the suite and its criteria."""

WARNINGS: Mapping[KindName, FindingKind] = {
    "agent_failures": kind("The agent failed in trials: the suite's ``crashes`` say how often."),
    "threshold_excused": kind(
        "A mean misses as the baseline's did.", criterion=str, value=float, before=float, threshold=float
    ),
    "limit_excused": kind(
        "The baseline broke the limit too.", criterion=str, found=Nested(("trial_excused", "quantile_excused"))
    ),
    # ``chance``: share of runs, 0 to 1
    "threshold_close": kind("An unchanged agent often misses a threshold that holds now.", criterion=str, chance=float),
    # ``blind``: so few that the margin of the pass rate is most of it
    "few_cases": kind("Few cases are compared.", cases=int, blind=bool),
    # ``cases``: with fewer stored trials than ``wanted``; ``least``: of the case that has fewest; ``typical``: of the
    # middle one; ``blind``: a single case that breaks could not be proven; ``drop``: of the pass rate, 0 to 1, that a
    # look finds four times in five; ``grows``: runs on the default branch store more
    "thin_baseline": kind(
        "Few trials are stored.",
        cases=int,
        wanted=int,
        least=int,
        typical=NUMBER,
        blind=FLAG,
        drop=Field(float | None, None),
        grows=Field(bool, True),
    ),
    # ``wording``: of a criterion of word overlap, the case that lost most
    "quiet_rise": kind(
        "What only warns got worse beyond its margin.", criterion=str, change=float, wording=Field(Wording | None, None)
    ),
    "scores_unmeasured": kind("Some scores could not be measured.", criterion=str, lost=int, of=int),
    "trials_lost": kind("Trials ended in infrastructure errors and left no score.", lost=int, of=int),
    "failures_excused": kind("Failures of an agent that was down.", failed=int, of=int, error=str, at_base=FLAG),
    "base_gone": kind("The base's agent did not answer, and was asked no more.", trials=int, error=str),
    # ``since``: Unix time of the first run after it; ``change``: in the metric's unit, of the pass rate 0 to 1
    "provider_moved": kind(
        "Stored runs of one agent score otherwise since then.",
        since=float,
        commit=str | None,
        metric=str,
        scale=Scale,
        change=float,
        p=float,
        runs=int,
        baseline_is_older=FLAG,
    ),
    # ``compared``: commits whose record is compared all the same; ``told``: what is doubtful, each with why
    "unproven": kind(
        "Nothing shows which job measured these.", compared=NO_NAMES, told=Field(PAIRS, ()), why=Field(str, "")
    ),
    # ``verdicts``: as they are judged now, the newest first; ``fingerprinted``: the agent has another fingerprint now
    "measured_before": kind(
        "The change was measured before.", verdicts=tuple[Verdict, ...], total=int, fingerprinted=bool
    ),
    "attempts_repeated": kind("Attempts were repeated after an infrastructure error.", attempts=int),
    # ``cached``: they are five times faster, too
    "repeats_alike": kind("Repeated trials give identical answers.", cached=bool),
    # ``of``: cases asked more than once in a run; ``lost``: passed each time and now fail each time
    "repeats_once": kind("Only repeats within a run are identical.", cases=int, of=int, lost=NO_NAMES),
    "calls_not_reported": kind("Only the baseline shows that tool calls are reported.", criteria=NAMES),
    "one_answer": kind("All answers are the same.", answers=int, cases=int, criteria=NAMES),
    # ``were_checked``: at the baseline one applied to their answers
    "cases_unchecked": kind("No blocking criterion applies to these cases.", cases=NAMES, were_checked=FLAG),
    # ``criteria``: empty if no trial passes, or if they miss under other rules alone
    "not_accepted": kind("Someone accepted what nobody can accept.", by=str, criteria=NAMES),
    "stated": GAPS["stated"],
}
"""Findings that weaken a verdict without changing it."""

NOTES: tuple[KindName, ...] = ("provider_moved", "unproven", "measured_before")
"""Notes that records keep beside notes in words."""

KINDS: Mapping[KindName, FindingKind] = {
    **APART, **UNCONFIRMED, **OF_CRITERION, **PROBLEMS, **GAPS, **CAUSES, **CHANGES, **WARNINGS,
}  # fmt: skip
