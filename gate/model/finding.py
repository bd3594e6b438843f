"""What was found of a suite: a finding has a kind, a verdict and plain data. Reports make the words.

`KINDS` says which data each kind has. In JSON a finding is ``{"kind": "mean_misses", "mean": …, "trials": 45}``.
Changes are as a reader means them: candidate minus baseline, relative for money, time and counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct

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
    "copies_lost", "cut_short", "agent_fails", "answered_by", "base_run_beside", "tools_changed", "new_cases",
    "edited_cases", "renamed_cases", "removed_cases", "criterion_apart", "removed_criteria", "new_criteria",
    "by_base_rules", "agent_failures", "threshold_excused", "limit_excused", "few_cases", "thin_baseline",
    "quiet_rise", "scores_unmeasured", "trials_lost", "failures_excused", "base_gone", "provider_moved", "unproven",
    "measured_before", "attempts_repeated", "repeats_alike", "repeats_once", "calls_not_reported", "one_answer",
    "cases_unchecked", "not_accepted",
]  # fmt: skip


class Finding(Struct, frozen=True):
    """One thing that was found of a suite or of a criterion."""

    kind: KindName
    verdict: Verdict
    """The verdict that it gives a criterion; PASS if it decides nothing."""
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
        return Finding.of(self.kind, **{**self.data, **data})

    @property
    def problem(self) -> str:
        """The kind of what kept a suite from being measured; empty for any other cause."""
        return self["problem"].kind if self.kind == "could_not_measure" else ""

    @property
    def settles(self) -> bool:
        """True if it is final: no further trial can change it."""
        return KINDS[self.kind].settles

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
    """Of a calibrated judge: the plain mean of the scores, where the others are corrected."""


class Change(Struct, frozen=True):
    """The paired change with its 90 % interval; None where nothing bounds it."""

    value: float
    low: float | None
    high: float | None
    cases: int


class CaseTally(Struct, frozen=True):
    """How often a case passes, now and at the baseline."""

    case_id: str
    passed: int
    trials: int
    passed_before: int
    trials_before: int


class Uncompared(Struct, frozen=True):
    """How many cases a baseline says nothing about, or has alone."""

    new: int = 0
    edited: int = 0
    removed: int = 0


class Fell(Struct, frozen=True):
    """The mean score of a case at the baseline, and now."""

    case_id: str
    before: float
    now: float


class Wording(Struct, frozen=True):
    """How one case is worded now, and how it was at the baseline."""

    case_id: str
    before: str
    """Empty if it is not known: stored baselines keep no texts."""
    now: str


# --- the kinds ------------------------------------------------------------------------------------


class Nested(Struct, frozen=True):
    """The type of a field that holds a finding of one of these kinds, or several."""

    kinds: tuple[KindName, ...]
    many: bool = False


class Field(Struct, frozen=True):
    """A field of a kind: its type, and its default if it has one."""

    type: Any
    default: Any = UNSET


class Kind(Struct, frozen=True):
    """What a kind of finding means, and which data it has."""

    about: str
    fields: Mapping[str, Field] = {}
    verdict: Verdict = Verdict.PASS
    settles: bool = False


def fields(**given: Any) -> dict[str, Field]:
    """Return the fields of a kind, each given as its type, or as a `Field`."""
    return {name: field if isinstance(field, Field) else Field(field) for name, field in given.items()}


FLAG = Field(bool, False)
NAMES = tuple[str, ...]
TALLIES = tuple[CaseTally, ...]

APART: Mapping[KindName, Kind] = {
    "scorer_changed": Kind("The criterion's options, scorer or judge changed."),
    "cases_gone": Kind("No case on which the baseline measured it is compared.", fields(cases=int)),
    "no_longer_measured": Kind("The baseline's criterion is not one of this record's."),
    "compared_without": Kind(
        "Of the pass rate: these blocking criteria say nothing in its comparison.", fields(criteria=NAMES)
    ),
    "checks_fell_away": Kind(
        "A blocking criterion has nothing to check in cases in which it always had at the baseline.",
        fields(criterion=str, cases=NAMES, of=int),
    ),
}
"""Why what the baseline measured of a criterion is not compared."""

UNCONFIRMED: Mapping[KindName, Kind] = {
    "nothing_rerun": Kind("Nothing could be run again a while later."),
    "confirmation_lost": Kind(
        "Too many of the confirming trials were lost to infrastructure.", fields(lost=int, trials=int)
    ),
    "failures_gone": Kind("The failing cases answered a while later.", fields(trials=int)),
    # other_trials: of the base commit's agent, run now, or of cases that had answered; 0: nothing was run beside.
    "perhaps_provider": Kind(
        "The failures came again, and what is compared with them fails too often to tell the agent from its provider.",
        fields(failed=int, trials=int, other_failed=int, other_trials=int, at_base=bool),
    ),
    "slowed_down": Kind(
        "Answers took longer than the latency margin allows: seconds now and at the baseline.",
        fields(now=float, before=float),
    ),
}
"""Why a block that needs failures of the agent was not confirmed."""

OF_CRITERION: Mapping[KindName, Kind] = {
    "nothing_held": Kind(
        "Nothing was held against the criterion: no threshold, no comparison. No tick stands beside it."
    ),
    "not_applied": Kind("It applies to none of the selected cases.", verdict=Verdict.NOT_APPLIED),
    "same_trials": Kind("The trials are the stored ones themselves, so nothing of the criterion can be lost."),
    "nothing_checked": Kind(
        "Of the pass rate: no blocking criterion applies to any of the cases.", verdict=Verdict.NOT_MEASURED
    ),
    "no_trial_measured": Kind("", verdict=Verdict.NOT_MEASURED),
    "never_failed": Kind("A hard rule that no trial broke."),
    # reason: the metric's own; empty where it gave none.
    "hard_failure": Kind(
        "A hard rule that a trial broke.",
        fields(case_id=str, more=int, reason=str),
        verdict=Verdict.BELOW_THRESHOLD,
        settles=True,
    ),
    "cases_not_scored": Kind(
        "Cases that were answered, and of which no trial has a score.",
        fields(case_id=str, cases=int, of=int, error=str),
        verdict=Verdict.NOT_MEASURED,
    ),
    "scores_lost": Kind(
        "Too many scores that ended in an error.",
        fields(lost=int, of=int, most=float, error=str),
        verdict=Verdict.NOT_MEASURED,
    ),
    "applies_to_none": Kind("No case states what the criterion compares with.", verdict=Verdict.NOT_MEASURED),
    "applies_no_more": Kind("It went with the cases that it applied to.", verdict=Verdict.NOT_COMPARED),
    "mean_holds": Kind("", fields(mean=HeldMean)),
    "mean_excused": Kind("It misses its threshold as the baseline did: below, as before.", fields(mean=HeldMean)),
    # error: standard error of the mean over epochs of an unchanged agent; None if it is not known.
    # base_cases: true if the mean is over the base's cases alone: new cases lift it over the threshold.
    "mean_misses": Kind(
        "The mean is on the wrong side of the suite's threshold.",
        fields(mean=HeldMean, trials=int, error=float | None, base_cases=FLAG),
        verdict=Verdict.BELOW_THRESHOLD,
    ),
    "mean_unsure": Kind(
        "The mean misses its threshold, and would not if every trial that could not be measured were a hit.",
        fields(mean=HeldMean, lost=int),
        verdict=Verdict.NOT_MEASURED,
    ),
    "own_threshold_missed": Kind(
        "A case misses a threshold of its own, beyond chance or in every one of at least three trials.",
        fields(mean=HeldMean, trials=int, more=Field(int, 0)),
        verdict=Verdict.BELOW_THRESHOLD,
        settles=True,
    ),
    # excused: those of them that miss theirs, as they did at the baseline.
    # short: those of them that are below theirs, but not beyond chance.
    "own_thresholds_hold": Kind(
        "No case with a threshold of its own misses it beyond chance, unless it did at the baseline.",
        fields(cases=int, excused=Field(int, 0), short=Field(int, 0)),
    ),
    "no_trial_beyond": Kind("No trial is above the most that a single one may reach."),
    # trials: all that are above their limits; this is the highest.
    "trial_beyond": Kind(
        "", fields(case_id=str, value=float, limit=float, trials=int), verdict=Verdict.BELOW_THRESHOLD, settles=True
    ),
    "trial_excused": Kind("The baseline was above the limit too.", fields(case_id=str, value=float, limit=float)),
    "quantile_holds": Kind("", fields(q=float, value=float, limit=float)),
    "quantile_excused": Kind("The baseline was above the limit too.", fields(q=float, value=float, limit=float)),
    "quantile_risen": Kind(
        "Above its limit as at the baseline, and beyond the margin of that.",
        fields(q=float, value=float, limit=float, before=float),
        verdict=Verdict.BELOW_THRESHOLD,
        settles=True,
    ),
    "quantile_over": Kind(
        "More trials are above the limit than chance explains.",
        fields(q=float, value=float, limit=float, over=int, trials=int),
        verdict=Verdict.BELOW_THRESHOLD,
        settles=True,
    ),
    "quantile_open": Kind(
        "", fields(q=float, value=float, limit=float, trials=int, too_few=bool), verdict=Verdict.INCONCLUSIVE
    ),
    "change_allowed": Kind(
        "No reason to block: within its margin, not proven, or of a metric that only warns.", fields(change=Change)
    ),
    "suggests_drop": Kind(
        "Within its margin, but one test suggests a drop.", fields(change=Change), verdict=Verdict.INCONCLUSIVE
    ),
    "never_pass": Kind(
        "Cases that passed in each baseline trial and fail in each of many now, with a baseline too thin to prove it.",
        fields(cases=TALLIES),
        verdict=Verdict.INCONCLUSIVE,
    ),
    # before: true if it is no worse than in the newest of the stored runs; what the agent does now was not asked.
    "drifted": Kind(
        "Worse than the stored baseline, and no worse than what the baseline's agent does now.",
        fields(change=Change, before=FLAG),
        verdict=Verdict.INCONCLUSIVE,
    ),
    "change_unbounded": Kind(
        "Too few trials to bound the change.", fields(change=Change), verdict=Verdict.INCONCLUSIVE
    ),
    "loss_not_excluded": Kind(
        "The interval reaches beyond the margin.",
        fields(change=Change, worst=float, margin=float),
        verdict=Verdict.INCONCLUSIVE,
    ),
    "got_worse": Kind(
        "Proven worse than the baseline.",
        fields(change=Change, broken=Field(NAMES, ())),
        verdict=Verdict.REGRESSED,
        settles=True,
    ),
    "not_tested": Kind(
        "Of the pass rate: the engine ended undecided, and nothing of it could be compared.",
        fields(stage=Stage),
        verdict=Verdict.INCONCLUSIVE,
    ),
    "failures_confirmed": Kind(
        "The agent fails where it answered at the baseline, also when asked again a while later.",
        fields(p=float),
        verdict=Verdict.REGRESSED,
    ),
    "not_compared": Kind(
        "What follows was found, but what the baseline measured of it is not compared.",
        fields(why=Nested(tuple(APART))),
        verdict=Verdict.NOT_COMPARED,
    ),
}
"""What was found of a criterion; its verdict is the worst of them."""

PROBLEMS: Mapping[KindName, Kind] = {
    "no_cases": Kind("Nothing is there to judge."),
    "all_quarantined": Kind("Every case is in quarantine."),
    # error: the commonest error, with its kind.
    "outage": Kind(
        "Most of what answered at the baseline now fails alike; without a baseline, every case fails.",
        fields(cases=int, of=int, compared=bool, error=str),
    ),
    # failed: trials in which the agent failed, without those of the confirmation.
    "failures_not_confirmed": Kind(
        "A block would rest on failures of the agent, and asking those cases again did not confirm them.",
        fields(failed=int, why=Nested(tuple(UNCONFIRMED))),
    ),
    "unexplained_failures": Kind(
        "The agent fails in cases in which it never did at the baseline, and was not cleared since.", fields(cases=int)
    ),
    # unscored: answers of which a blocking criterion's score could not be computed; those of the baseline are counted
    # as failed likewise.
    "lost_decide": Kind(
        "Counted as failed, the trials that could not be measured turn the verdict.",
        fields(trials=int, unscored=Field(int, 0)),
    ),
    "collapsed": Kind(
        "Every value of a blocking criterion is at its worst, where the baseline's were not, and nothing proves a "
        "loss. The suite is too small, or its repeats are copies of one answer, as with a cache or a deterministic "
        "agent.",
        fields(criterion=str, cases=int, trials=int, copies=bool),
    ),
    "too_many_errors": Kind(
        "More trials ended in infrastructure errors than may.", fields(share=float, most=float, error=str)
    ),
    "cases_not_measured": Kind("Cases of which no trial could be measured.", fields(cases=NAMES, of=int, error=str)),
    "case_not_recorded": Kind(
        "A case that asked for what its recording does not hold, where nothing may go out in its place. "
        "It was the change that asked for it, so what was lost is no sample of what would have been.",
        fields(case_id=str, lost=int, trials=int, error=str),
    ),
    "case_mostly_lost": Kind(
        "A case of which most trials ended in infrastructure errors.",
        fields(case_id=str, lost=int, trials=int, error=str),
    ),
    "cases_not_run": Kind("Of a shard: cases of its own that were not run.", fields(cases=NAMES, of=int)),
}
"""Why a suite could not be measured."""

GAPS: Mapping[KindName, Kind] = {
    "stated": Kind(
        "What a run's terms state in words of their own: of configuration, plan or rules. Kept so in the record.",
        fields(text=str),
    ),
    "criteria_not_compared": Kind(
        "What the baseline measured of these blocking criteria is not compared.", fields(criteria=NAMES)
    ),
    "too_many_cases_gone": Kind(
        "More than a tenth of the cases that passed at the base, and at least two of them, are no longer in the suite.",
        fields(cases=NAMES, of=int),
    ),
    "edited_cases_miss": Kind(
        "Cases whose content was edited, that passed at the base and miss now.", fields(cases=NAMES)
    ),
    "nothing_paired": Kind("The base holds cases, and none of them is compared.", fields(cases=int)),
    "checks_fell_away": APART["checks_fell_away"],
}
"""What the base holds and was not compared."""

CAUSES: Mapping[KindName, Kind] = {
    "could_not_measure": Kind("", fields(problem=Nested(tuple(PROBLEMS)))),
    "shard_measured": Kind(
        "A shard knows its own cases alone, and decides nothing.", fields(shard=int, of=int, trials=int, cases=int)
    ),
    "shard_not_measured": Kind("", fields(shard=int, of=int, problem=Nested(tuple(PROBLEMS)))),
    "thresholds_hold": Kind(
        "Nothing is paired with a baseline, and every threshold holds.",
        fields(checked=int, cases=int, uncompared=Uncompared),
    ),
    # rate_low: the bad end of that interval, 0–1; None: it is not bounded.
    "no_worse": Kind(
        "No worse than the baseline.", fields(cases=int, rate_cases=int, rate_low=float | None, uncompared=Uncompared)
    ),
    "nothing_decides": Kind("Nothing but a baseline could fail the suite, and there is none."),
    "not_enough_evidence": Kind("", fields(criteria=NAMES, suspects=NAMES)),
    "cases_never_pass": Kind(
        "They passed in each baseline trial and fail in each of many now, with a baseline too thin to prove it.",
        fields(cases=TALLIES),
    ),
    "cases_broke": Kind("", fields(cases=NAMES, moved=Field(TALLIES, ()), of=Field(int, 0))),
    # by_mean: true if a lower mean proves it; else large drops of a few cases do.
    # perhaps_drift: true if only stored trials prove it, so that a provider that changed since looks the same.
    # suspects: of the pass rate: the cases with the most evidence against them, the strongest first.
    # fell: of another criterion: the cases whose score of it fell most. It is the first that has no part among them.
    # missed: blocking criteria that fail whatever the baseline did.
    # drift_moot: true if a base that can be run was not asked about a drift, since these fail anyway.
    "suite_got_worse": Kind(
        "No case can be named; the first criterion's own findings say how far.",
        fields(
            criteria=NAMES,
            by_mean=Field(bool, True),
            perhaps_drift=FLAG,
            suspects=Field(TALLIES, ()),
            fell=Field(tuple[Fell, ...], ()),
            missed=Field(NAMES, ()),
            drift_moot=FLAG,
        ),
    ),
    # named: true if the lost cases are named, at a false discovery rate of at most 10 %; else they are the most
    # suspect ones of a loss that is proven.
    "traded_off": Kind(
        "Cases are proven worse and others better, and no mean that is compared fell.",
        fields(lost=TALLIES, gained=TALLIES, named=bool, gained_named=bool),
    ),
    # before: true if they are no worse than in the newest of the stored runs; what the agent does now was not asked.
    "baseline_moved": Kind(
        "These got worse against the stored baseline, and are no worse than what the baseline's agent does now.",
        fields(criteria=NAMES, before=FLAG),
    ),
    "criterion_fails": Kind("", fields(criterion=str)),
    "criterion_not_measured": Kind("", fields(criterion=str)),
    "nothing_passes": Kind("There is no baseline, and no trial passes.", fields(trials=int)),
    # measurements: how many measurements ago that was; 1: the one before.
    "not_shown_fixed": Kind(
        "An earlier measurement of this change was regressed, and none since has passed, this one included.",
        fields(measurements=int),
    ),
    # fell_short: true if they fell short when they were stored, which nobody accepted: that decides.
    "same_agent": Kind(
        "The agent is the one of an earlier commit, whose stored trials are this commit's: nothing was run.",
        fields(commit=str, fell_short=FLAG),
    ),
    "incomplete": Kind("Something that the base holds was not compared.", fields(gaps=Nested(tuple(GAPS), many=True))),
    "control_fell": Kind(
        "Cases that passed in each stored trial, and fail in each trial now: the change's, and the base commit's "
        "agent's. Then that agent is no control: the provider moved, or it is not what was stored.",
        fields(cases=NAMES),
    ),
    "copies_lost": Kind(
        "Cases that passed each time and now fail each time, of an agent whose repeats within a run are identical. "
        "A cache that drew worse answers looks like this, and so does a deterministic agent that broke.",
        fields(cases=NAMES),
    ),
    "cut_short": Kind(
        "The run was stopped before the first decision could be taken.", fields(why=str, epochs=int, wanted=int)
    ),
    "agent_fails": Kind(
        "The confirmation alone proves that the agent fails where it answered at the baseline.", fields(p=float)
    ),
}
"""What the verdict on a suite rests on."""

CHANGES: Mapping[KindName, Kind] = {
    "answered_by": Kind(
        "Another model, or another system of the provider, answers than at the baseline.",
        fields(what=Literal["model", "system"], now=NAMES, before=NAMES),
    ),
    # without_rules: true if the base has no configuration, so that its agent was held to the change's rules.
    "base_run_beside": Kind(
        "No baseline is stored, so the base commit's agent was run beside: the change is compared with it.",
        fields(commit=str, without_rules=FLAG),
    ),
    # changes: which tool of which server, and which words of it; empty where the recordings are not there to say so.
    "tools_changed": Kind(
        "MCP servers describe their tools otherwise than they did at the baseline.",
        fields(servers=NAMES, changes=Field(NAMES, ())),
    ),
    "new_cases": Kind("", fields(cases=NAMES)),
    "edited_cases": Kind("", fields(cases=NAMES)),
    "renamed_cases": Kind("", fields(cases=tuple[tuple[str, str], ...])),
    "removed_cases": Kind("", fields(cases=NAMES)),
    "criterion_apart": Kind(
        "What the baseline measured of a criterion is not compared.", fields(criterion=str, why=Nested(tuple(APART)))
    ),
    "removed_criteria": Kind("", fields(criteria=NAMES)),
    "new_criteria": Kind("", fields(criteria=NAMES)),
    "by_base_rules": Kind(
        "Judged by the base's own rules; under the change's stricter ones it would have had this verdict.",
        fields(verdict=Verdict),
    ),
    "stated": GAPS["stated"],
}
"""What changed in the suite and its criteria."""

WARNINGS: Mapping[KindName, Kind] = {
    "agent_failures": Kind("The agent failed in trials: the suite's ``crashes`` say how often."),
    "threshold_excused": Kind(
        "A mean that misses its threshold as the baseline's did.",
        fields(criterion=str, value=float, before=float, threshold=float),
    ),
    "limit_excused": Kind(
        "A limit that the baseline broke too.",
        fields(criterion=str, found=Nested(("trial_excused", "quantile_excused"))),
    ),
    # blind: so few that the margin of the pass rate is most of it.
    "few_cases": Kind("", fields(cases=int, blind=bool)),
    # wanted: what `baseline.trials` asks for, and at least what the promise needs.
    # blind: true if a single case that breaks outright could not be proven with so many.
    # drop: the drop of the pass rate, 0–1, that one look finds four times in five; about. None: not known.
    # grows: true if runs on the default branch store more; else `baseline.trials` asks for no more.
    "thin_baseline": Kind(
        "",
        fields(
            cases=int,
            wanted=int,
            least=int,
            typical=Field(int, 0),
            blind=FLAG,
            drop=Field(float | None, None),
            grows=Field(bool, True),
        ),
    ),
    # wording: of a criterion of word overlap: the case that lost most.
    "quiet_rise": Kind(
        "A criterion that does not block got worse, beyond its margin and beyond noise.",
        fields(criterion=str, change=float, wording=Field(Wording | None, None)),
    ),
    "scores_unmeasured": Kind("", fields(criterion=str, lost=int, of=int)),
    "trials_lost": Kind("Trials that ended in infrastructure errors and left no score.", fields(lost=int, of=int)),
    "failures_excused": Kind(
        "Trials in which the agent failed and that do not count, since it was down.",
        fields(failed=int, of=int, error=str, at_base=FLAG),
    ),
    "base_gone": Kind("The base commit's agent did not answer, and was asked no more.", fields(trials=int, error=str)),
    # since: unix time of the first run after it.
    # change: in the metric's unit; of the pass rate 0–1.
    # baseline_is_older: true if the baseline that is compared with was measured before it.
    "provider_moved": Kind(
        "Since when the stored runs of one agent score otherwise, so that its provider changed.",
        fields(
            since=float,
            commit=str | None,
            metric=str,
            scale=Scale,
            change=float,
            p=float,
            runs=int,
            baseline_is_older=FLAG,
        ),
    ),
    # compared: commits of which such a record is compared with all the same.
    # told: what was left out or is doubtful, each with why.
    # why: why the compared ones are not proven, where that is known.
    "unproven": Kind(
        "Baselines of which nothing shows which job measured them, or runs of them.",
        fields(compared=Field(NAMES, ()), told=Field(tuple[tuple[str, str], ...], ()), why=Field(str, "")),
    ),
    # verdicts: what the newest of them come to as they are judged now, the newest first.
    # fingerprinted: true if the agent has a fingerprint; then theirs is another one.
    "measured_before": Kind(
        "Earlier measurements of the same change that this one does not continue.",
        fields(verdicts=tuple[Verdict, ...], total=int, fingerprinted=bool),
    ),
    "attempts_repeated": Kind("Attempts that were repeated after an infrastructure error.", fields(attempts=int)),
    # cached: five times faster, too: a response cache answers.
    "repeats_alike": Kind("Repeated trials give identical answers.", fields(cached=bool)),
    # of: cases that were asked more than once in a run.
    # lost: cases that passed each time and now fail each time, where that may be a cache or a break.
    "repeats_once": Kind(
        "Repeats within a run give one answer, and no other run gives it: they count as one trial.",
        fields(cases=int, of=int, lost=Field(NAMES, ())),
    ),
    "calls_not_reported": Kind("Only the baseline shows that tool calls are reported.", fields(criteria=NAMES)),
    "one_answer": Kind(
        "All answers are the same, and criteria of absence hold for it.", fields(answers=int, cases=int, criteria=NAMES)
    ),
    # were_checked: at the baseline one applied to their answers: what is checked depends on what is said.
    "cases_unchecked": Kind("No blocking criterion applies to these cases.", fields(cases=NAMES, were_checked=FLAG)),
    "not_accepted": Kind(
        "Someone accepted it, and that does not count: these criteria miss a threshold, a limit or a hard rule. "
        "None is named if no trial passes, or if they miss it under other rules alone.",
        fields(by=str, criteria=NAMES),
    ),
    "stated": GAPS["stated"],
}
"""What weakens a verdict without changing it."""

NOTES: tuple[KindName, ...] = ("provider_moved", "unproven", "measured_before")
"""What the terms of a run tell its reader besides words of their own; records keep them."""

KINDS: Mapping[KindName, Kind] = {
    **APART,
    **UNCONFIRMED,
    **OF_CRITERION,
    **PROBLEMS,
    **GAPS,
    **CAUSES,
    **CHANGES,
    **WARNINGS,
}
