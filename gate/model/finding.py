"""Findings on a suite: each has a kind, a verdict and plain data. Reports put them into words.

`KINDS` defines the data and verdicts of each kind. In JSON a finding is ``{"kind": "mean", "verdict":
"below_threshold", "trials": 45, …}``. Changes have the sign that a reader expects: candidate minus baseline, relative
for money, time and counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from gate.model.scale import Scale
from gate.model.verdict import Verdict

KindName = Literal[
    "not_judged", "hard_rule", "mean", "own_thresholds", "limit", "change", "cases_fail", "agent_fails",
    "not_compared", "trials_lost", "stated", "not_run", "outage", "collapsed", "shard", "passes", "cases_broke",
    "suite_got_worse", "criteria_decide", "nothing_passes", "not_shown_fixed", "same_agent", "incomplete",
    "answered_by", "base_run_beside", "tools_changed", "cases_changed", "by_base_rules", "thin_baseline",
    "provider_moved", "unproven", "measured_before", "answers_say_little", "tool_fails", "not_accepted",
]  # fmt: skip


class Finding(Struct, frozen=True):
    """A finding on a suite or on a criterion."""

    kind: KindName
    verdict: Verdict
    """The verdict that it gives to a criterion or a suite; PASS if it decides nothing."""
    data: Mapping[str, Any]

    @classmethod
    def of(cls, kind: KindName, verdict: Verdict | None = None, /, **data: Any) -> Finding:
        """Return a finding of a kind, with one of the verdicts that the kind can have; by default the first.

        Raises:
            TypeError: the kind has other fields, or other verdicts.
        """
        known = KINDS[kind]
        full = {name: data.get(name, field.default) for name, field in known.fields.items()}
        if not known.fields.keys() >= data.keys() or any(value is UNSET for value in full.values()):
            raise TypeError(f"{kind} has the fields {', '.join(known.fields)}, not {', '.join(data)}")
        if verdict is None:
            verdict = known.verdicts[0]
        if verdict not in known.verdicts:
            raise TypeError(f"{kind} never means {verdict.value}")
        return cls(kind, verdict, full)

    @classmethod
    def read(cls, plain: Any) -> Finding:
        """Return a finding from its JSON form in a record.

        Raises:
            ValidationError: it is not a finding.
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
        return hash(self.kind)  # a mapping has no hash; equal findings have the same kind

    def but(self, **data: Any) -> Finding:
        """Return the finding with some data replaced."""
        return replace(Finding.of(self.kind, **{**self.data, **data}), verdict=self.verdict)

    @property
    def problem(self) -> KindName | None:
        """Return the kind of the problem that kept a suite from being measured; None for any other cause."""
        if self.verdict is ERROR and self.kind in PROBLEMS:
            return self.kind
        return None

    @property
    def settles(self) -> bool:
        """True if no further trial can change it. A mean still moves with further epochs."""
        return self.verdict in (BELOW, REGRESSED) and self.kind != "mean"

    @property
    def is_excused(self) -> bool:
        """True if a threshold or limit is missed, and this passes only because the baseline missed it as well."""
        if self.verdict is not Verdict.PASS:
            return False
        match self.kind:
            case "mean":
                return self["mean"].before is not None
            case "own_thresholds":
                return bool(self["excused"])
            case "limit":
                return bool(self["value"] > self["limit"])
            case _:
                return False

    @property
    def is_warning(self) -> bool:
        """True if it is a finding on a criterion that readers should know of although it decides nothing."""
        if self.verdict is not Verdict.PASS:
            return False
        match self.kind:
            case "mean":
                return self.is_excused or self["chance"] is not None
            case "limit":
                return self.is_excused
            case "change":
                return bool(self["only_warns"])
            case "not_judged":
                return bool(self["cases"])
            case "trials_lost":
                return True
            case _:
                return False

    @property
    def plain(self) -> dict[str, Any]:
        """Return the JSON form."""
        found: dict[str, Any] = msgspec.to_builtins({"kind": self.kind, **self.data})
        return found


# --- structured data of findings ------------------------------------------------------------------


class HeldMean(Struct, frozen=True):
    """The mean over cases that is compared with a threshold."""

    value: float
    threshold: float
    cases: int
    case_id: str = ""
    """The case that the threshold belongs to; empty: it is the suite's."""
    failed: int = 0
    """Trials in which the agent failed; each counts as ``failed_as``."""
    failed_as: float = 0.0
    before: float | None = None
    """The baseline's mean, if it missed the threshold too."""
    measured: float | None = None
    """The plain mean of a calibrated judge's scores, if the other means are corrected."""


class Change(Struct, frozen=True):
    """The paired change with its 90 % interval; None for an unbounded end."""

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
    """Numbers of cases that only one side has, that cannot be compared, or that are not judged."""

    new: int = 0
    edited: int = 0
    removed: int = 0
    quarantined: int = 0


class Fell(Struct, frozen=True):
    """The mean score of a case at the baseline, and now."""

    case_id: str
    before: float
    now: float


class Wording(Struct, frozen=True):
    """The wording of one case, now and at the baseline."""

    case_id: str
    before: str
    """Empty if unknown: stored baselines keep no texts."""
    now: str
    expected: str = ""
    """Empty if the case expects no text."""
    reason: str = ""
    """The criterion's sentence about it."""


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
    """A kind of finding: its meaning, its possible verdicts, and its fields."""

    about: str
    verdicts: tuple[Verdict, ...]
    fields: Mapping[str, Field]


def kind(about: str, *verdicts: Verdict, **fields: Any) -> FindingKind:
    """Return a kind; each field is given as its type, or as a `Field`. Without a verdict it can only be PASS."""
    full = {}
    for name, field in fields.items():
        full[name] = field if isinstance(field, Field) else Field(field)
    return FindingKind(about, verdicts or (PASS,), full)


NAMES = tuple[str, ...]
TALLIES = tuple[CaseTally, ...]
PAIRS = tuple[tuple[str, str], ...]
FLAG = Field(bool, False)
NUMBER = Field(int, 0)
FIGURE = Field(float, 0.0)
MAYBE_FIGURE = Field(float | None, None)
TEXT = Field(str, "")
NO_NAMES = Field(NAMES, ())
NO_TALLIES = Field(TALLIES, ())

PASS = Verdict.PASS
OPEN = Verdict.INCONCLUSIVE
NOT_APPLIED = Verdict.NOT_APPLIED
UNMEASURED = Verdict.NOT_MEASURED
ERROR = Verdict.ERROR
NOT_COMPARED = Verdict.NOT_COMPARED
BELOW = Verdict.BELOW_THRESHOLD
REGRESSED = Verdict.REGRESSED

WhyNotCompared = Literal[
    "changed", "other_judge", "other_user", "cases_gone", "nothing_to_check", "removed", "new", "without_others"
]
"""Its options, scorer or judge changed; its judge, or the simulated user, is another model under the same name; none of
its cases is compared; it has nothing to check where it always had; it is no longer measured; the baseline does not have
it; or, for the pass rate, it is compared without some criteria."""
WhyOpen = Literal["", "suggests_drop", "drifted", "moved_before", "unbounded", "beyond_margin"]
"""One test suggests a drop; it does not show against the base's agent run now, or against its newest stored runs; too
few trials bound it; the interval reaches beyond the margin."""
WhyNotJudged = Literal[
    "no_yardstick",
    "nothing_yet",
    "not_tested",
    "same_trials",
    "not_selected",
    "applies_to_none",
    "no_longer_applies",
    "no_trial",
    "unchecked",
    "cases_unchecked",
    "answers_unchecked",
]
"""The criterion has neither a threshold nor a baseline; no criterion of the suite has; the test could not use it; the
trials are the stored ones, so nothing can be lost; it applies to no selected case, to no case, or to none any more; no
trial was measured; no blocking criterion applies to any case, or to ``cases``, or to the answers of ``cases``, though
one did at the baseline."""
WhyAgentFails = Literal["confirmed", "nothing_rerun", "lost", "gone", "perhaps_provider", "slowed_down", "new"]
"""It failed again when rerun; nothing could be run again; too many of those trials were lost; the cases answered; a
provider may be at fault; answers slowed beyond the latency margin; the cases never failed at the baseline, and too few
answers clear them."""
WhyCasesFail = Literal["thin_baseline", "copies", "base_fails_too"]
"""The baseline has too few trials; repeats are copies of one answer; the base commit's agent fails them too."""
LostBy = Literal["infrastructure", "agent", "base", "scoring"]
WhySayLittle = Literal["no_calls", "one_answer", "steady", "other_runs_differ", "cut_off"]
"""Only the baseline shows that tool calls are reported; all ``answers`` to ``cases`` cases are the same; repeats give
identical answers, and no more is known; other runs give other answers; ``answers`` of ``of`` ended at the limit of
their length."""

OF_CRITERION: Mapping[KindName, FindingKind] = {
    "not_judged": kind(
        "Nothing judges a criterion, some of its cases, or the suite.",
        PASS,
        OPEN,
        UNMEASURED,
        NOT_APPLIED,
        NOT_COMPARED,
        why=WhyNotJudged,
        cases=NO_NAMES,
    ),
    # ``reason``: from the metric; empty if it gave none
    "hard_rule": kind(
        "No trial broke the hard rule, or one of this case did.", PASS, BELOW, case_id=TEXT, more=NUMBER, reason=TEXT
    ),
    # ``error``: standard error over epochs of an unchanged agent; ``room``: the threshold that the base's agent, or
    # this one without a base, misses in at most 5 % of runs; None if that is no looser; ``base_cases``: only new cases
    # lift the mean over the threshold; ``lost``: unmeasured trials, which would lift it over the threshold if they were
    # hits; ``chance``: how often an unchanged agent misses a threshold that holds now, 0 to 1; None if that is rare or
    # unknown
    "mean": kind(
        "The mean beside the suite's threshold.",
        PASS,
        BELOW,
        UNMEASURED,
        mean=HeldMean,
        trials=NUMBER,
        error=MAYBE_FIGURE,
        room=MAYBE_FIGURE,
        base_cases=FLAG,
        lost=NUMBER,
        chance=MAYBE_FIGURE,
    ),
    # ``excused``: cases that miss their threshold as at the baseline; ``short``: below theirs, but not beyond chance;
    # ``missed``: the first to miss its own beyond chance, with its trials; ``more``: how many others do
    "own_thresholds": kind(
        "The cases with a threshold of their own.",
        PASS,
        BELOW,
        cases=int,
        excused=NUMBER,
        short=NUMBER,
        missed=Field(HeldMean | None, None),
        trials=NUMBER,
        more=NUMBER,
    ),
    # ``q``: None for the limit of single trials; then ``case_id`` is that of the highest trial above it, empty if there
    # is none; ``over``: number of trials above the limit; ``before``: the baseline's quantile, if it was also above the
    # limit and this one is beyond its margin
    "limit": kind(
        "The highest trial above a limit, or a quantile beside its limit.",
        PASS,
        BELOW,
        OPEN,
        q=MAYBE_FIGURE,
        case_id=TEXT,
        value=FIGURE,
        limit=FIGURE,
        before=MAYBE_FIGURE,
        over=NUMBER,
        trials=NUMBER,
        too_few=FLAG,
    ),
    # ``why``: the reason why it is open; ``worst``: the end of the interval that is beyond ``margin``; ``only_warns``:
    # worse beyond its margin and beyond chance, but it does not block; ``wording``: then, for a word-overlap criterion,
    # of the case that lost most
    "change": kind(
        "The change against the baseline: within its margin or not proven, open, or proven worse.",
        PASS,
        OPEN,
        REGRESSED,
        change=Change,
        why=Field(WhyOpen, ""),
        worst=FIGURE,
        margin=FIGURE,
        broken=NO_NAMES,
        only_warns=FLAG,
        wording=Field(Wording | None, None),
    ),
    "cases_fail": kind(
        "Cases that always passed always fail now, and nothing proves a loss.", OPEN, cases=TALLIES, why=WhyCasesFail
    ),
    # ``p``: if confirmed, the probability of chance; ``failed``: trials before the confirmation, for "new" of ``cases``
    # cases; ``trials``: confirming trials of these cases, with ``failed_again`` and ``lost`` among them;
    # ``other_failed``, ``other_trials``: of the base commit's agent (``at_base``) or of cases that had answered, 0 if
    # nothing else was run; ``now``, ``before``: seconds to answer
    "agent_fails": kind(
        "The agent fails where it answered: confirmed by reruns, or neither confirmed nor cleared.",
        ERROR,
        REGRESSED,
        why=WhyAgentFails,
        p=FIGURE,
        failed=NUMBER,
        cases=NUMBER,
        trials=NUMBER,
        lost=NUMBER,
        failed_again=NUMBER,
        other_failed=NUMBER,
        other_trials=NUMBER,
        at_base=FLAG,
        now=FIGURE,
        before=FIGURE,
    ),
    # ``cases``: those in which it has nothing to check, of the ``of`` to which it applied at the baseline; ``others``:
    # the criteria that are left out; ``models``: those that are other models under the same names, ``now`` and
    # ``before``: the names by which they answered
    "not_compared": kind(
        "A criterion is not compared with the baseline.",
        NOT_COMPARED,
        PASS,
        criterion=str,
        why=WhyNotCompared,
        cases=NO_NAMES,
        of=NUMBER,
        others=NO_NAMES,
        models=NO_NAMES,
        now=NO_NAMES,
        before=NO_NAMES,
    ),
    # ``cases``: those that lost them, empty for all; ``most``: the share that may be lost; ``unscored``: answers whose
    # blocking score could not be computed; ``decide``: counted as failures, they turn the verdict; ``by``: the agent or
    # the base commit's agent if that was down, or ``scoring``, then ``of`` counts answers; ``gone``: it is not called
    # any more; ``repeated``: attempts that were repeated
    "trials_lost": kind(
        "Trials have no score: too many for a verdict, few that decide it, or a few.",
        ERROR,
        UNMEASURED,
        PASS,
        lost=int,
        of=int,
        cases=NO_NAMES,
        most=MAYBE_FIGURE,
        error=TEXT,
        unscored=NUMBER,
        decide=FLAG,
        by=Field(LostBy, "infrastructure"),
        gone=FLAG,
        repeated=NUMBER,
    ),
}
"""Findings on a criterion; its verdict is the worst of them."""

PROBLEMS: Mapping[KindName, FindingKind] = {
    # ``cases``: those of which no trial was run; ``epochs``: run before the run was stopped, of the ``wanted`` ones;
    # ``quarantined``: there are cases, and every one is in quarantine
    "not_run": kind(
        "Nothing was run, or too little to judge.",
        ERROR,
        cases=NO_NAMES,
        epochs=NUMBER,
        wanted=NUMBER,
        quarantined=FLAG,
    ),
    # ``compared``: false if there is no baseline; then every case fails; ``setup``: by its error, the agent is set up
    # wrongly, and nothing was down
    "outage": kind(
        "Most of what answered before fails alike.",
        ERROR,
        cases=int,
        of=int,
        compared=bool,
        error=str,
        setup=FLAG,
    ),
    "agent_fails": OF_CRITERION["agent_fails"],
    # ``copies``: repeats are copies of one answer, as with a cache; else the suite is too small
    "collapsed": kind(
        "Every value is at its worst, and nothing proves a loss.",
        ERROR,
        criterion=str,
        cases=int,
        trials=int,
        copies=bool,
    ),
    "trials_lost": OF_CRITERION["trials_lost"],
}
"""Reasons why a suite could not be measured."""

GAPS: Mapping[KindName, FindingKind] = {
    # ``agent_key``: the configuration key by which another agent than the base's is started or reached
    "stated": kind("What a run's terms state in words of their own.", text=str, agent_key=TEXT),
    "not_compared": OF_CRITERION["not_compared"],
    # ``before``: for renamed cases, their ids at the baseline in the same order; ``of``: if too many were removed, the
    # cases that passed at the base; for "all", its cases; ``selected``: only those that the run selects; ``unchecked``:
    # some are still there, but nothing checks their answers; ``edited``: number of edited cases among all;
    # ``never_passed``: new or edited cases that passed in no trial, which a mean that holds may hide
    "cases_changed": kind(
        "Cases that only one side has, or that have another content or another id now: listed, or too many removed, "
        "edited cases that miss now, or no case left to compare.",
        PASS,
        NOT_COMPARED,
        how=Literal["new", "edited", "removed", "renamed", "all", "cut_off"],
        cases=NO_NAMES,
        before=NO_NAMES,
        of=NUMBER,
        selected=FLAG,
        unchecked=FLAG,
        edited=NUMBER,
        never_passed=NO_NAMES,
    ),
}
"""Parts of the base that were not compared."""

CAUSES: Mapping[KindName, FindingKind] = {
    **PROBLEMS,
    "shard": kind(
        "A shard knows only its own cases, or could not be measured.",
        OPEN,
        ERROR,
        shard=int,
        of=int,
        trials=NUMBER,
        cases=NUMBER,
        problem=Field(Nested(tuple(PROBLEMS)), None),
    ),
    # ``compared``: number of cases, 0 without a baseline; ``checked``: cases to which a blocking criterion applies
    "passes": kind(
        "Every threshold holds, and no case that is compared shows a loss.",
        compared=int,
        checked=int,
        cases=int,
        uncompared=Uncompared,
    ),
    "not_judged": OF_CRITERION["not_judged"],
    "cases_fail": OF_CRITERION["cases_fail"],
    # ``named``: at a false discovery rate of at most 10 %; else the cases are the most suspect ones; ``of``: number of
    # compared cases; ``gained``: in a trade, the cases that got better, so that no mean fell
    "cases_broke": kind(
        "Cases broke, or were traded for others.",
        REGRESSED,
        cases=TALLIES,
        named=Field(bool, True),
        of=NUMBER,
        gained=NO_TALLIES,
        gained_named=FLAG,
    ),
    # ``by_mean``: proven by a lower mean, else by large drops of a few cases; ``perhaps_drift``: proven against stored
    # trials only, as a changed provider would be; ``suspects``: by pass rate, strongest first; ``fell``: for the
    # first other criterion not covered by them; ``missed``: fail whatever the baseline did; ``drift_moot``: drift was
    # not checked with the base's agent, since these fail anyway; ``wording``: of the case that fell most
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
    # ``suspects``: if they are open, the cases that may have got worse; ``why``: if they are worse than the baseline,
    # but not than its agent run now, or than its newest stored runs
    "criteria_decide": kind(
        "Blocking criteria fail by themselves, have no value, or are open; their findings say why.",
        BELOW,
        ERROR,
        OPEN,
        criteria=NAMES,
        suspects=NO_NAMES,
        why=Field(Literal["", "drifted", "moved_before"], ""),
    ),
    "nothing_passes": kind("There is no baseline, and no trial passes.", BELOW, trials=int),
    # ``fell_short``: the trials fell short when they were stored, and nobody accepted that
    "same_agent": kind("The trials are those that are stored of this agent.", commit=str, fell_short=FLAG),
    "incomplete": kind(
        "Something that the base holds was not compared.", NOT_COMPARED, gaps=Nested(tuple(GAPS), many=True)
    ),
    # ``measurements``: how many measurements ago; 1 is the previous one; ``now``: the reason why it does not pass now
    "not_shown_fixed": kind(
        "The change was regressed and has not passed since.",
        REGRESSED,
        measurements=int,
        now=Nested((*PROBLEMS, "incomplete", "criteria_decide", "nothing_passes", "cases_fail", "not_judged")),
    ),
}
"""Reasons for the verdict on a suite."""

CHANGES: Mapping[KindName, FindingKind] = {
    "answered_by": kind(
        "Another model or system of the provider answers.", what=Literal["model", "system"], now=NAMES, before=NAMES
    ),
    # ``without_rules``: the base has no configuration, so its agent was judged by the change's rules
    "base_run_beside": kind("The base's agent took the place of a baseline.", commit=str, without_rules=FLAG),
    # ``changes``: empty if the recordings needed to list them are missing
    "tools_changed": kind("MCP servers describe their tools otherwise.", servers=NAMES, changes=NO_NAMES),
    "cases_changed": GAPS["cases_changed"],
    "not_compared": OF_CRITERION["not_compared"],
    "by_base_rules": kind("The base's rules decided; the change's stricter ones would say this.", stricter=Verdict),
    "stated": GAPS["stated"],
}
"""Changes of the suite and its criteria."""

WARNINGS: Mapping[KindName, FindingKind] = {
    # ``cases``: number with fewer stored trials than ``wanted``; ``least``: trials of the case with the fewest;
    # ``typical``: of the median case; ``blind``: one broken case cannot be proven; ``drop``: of the pass rate, 0 to 1,
    # that the rule finds in four of five changes; ``grows``: runs on the default branch store more
    "thin_baseline": kind(
        "Few trials are stored.",
        cases=int,
        wanted=int,
        least=int,
        typical=NUMBER,
        blind=FLAG,
        drop=MAYBE_FIGURE,
        grows=Field(bool, True),
    ),
    "trials_lost": PROBLEMS["trials_lost"],
    # ``since``: Unix time of the first run after the move; ``change``: in the metric's unit, for the pass rate 0 to 1
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
    # ``compared``: commits whose records are compared anyway; ``told``: doubtful records, each with the reason
    "unproven": kind("Nothing shows which job measured these.", compared=NO_NAMES, told=Field(PAIRS, ()), why=TEXT),
    # ``verdicts``: as judged now, newest first; ``fingerprinted``: the agent's fingerprint is different now
    "measured_before": kind(
        "The change was measured before.", verdicts=tuple[Verdict, ...], total=int, fingerprinted=bool
    ),
    # ``criteria``: those that may hold only because of that; ``of``: cases that ran more than once
    "answers_say_little": kind(
        "The answers prove less than their number suggests: they are alike, cut off, or report no tool calls.",
        why=WhySayLittle,
        criteria=NO_NAMES,
        answers=NUMBER,
        cases=NUMBER,
        of=NUMBER,
    ),
    # ``trials``: number in which a call failed; ``error``: the first of the errors
    "tool_fails": kind("Every call of a tool failed, and the agent answered.", tool=str, trials=int, error=str),
    # ``criteria``: empty if no trial passes, or if they miss only under other rules
    "not_accepted": kind("Someone accepted what nobody can accept.", by=str, criteria=NAMES),
    "stated": GAPS["stated"],
}
"""Findings on a suite that weaken a verdict without changing it. Others are findings on a criterion
(`Finding.is_warning`), or the agent's failures (`CrashFacts`)."""

NOTES: tuple[KindName, ...] = ("provider_moved", "unproven", "measured_before")
"""Kinds of notes that records keep as findings rather than as text."""

KINDS: Mapping[KindName, FindingKind] = {**OF_CRITERION, **GAPS, **CAUSES, **CHANGES, **WARNINGS}
"""Every kind."""
