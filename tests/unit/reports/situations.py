"""Decided suites and facts of every kind, whose words stand in tests/golden/reports/words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, islice, product
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from gate.decision import CONCURRENT, Settings
from gate.decision.engine.state import CONFIRM
from gate.model import (
    FULL,
    PROBE,
    REPEAT,
    BaselineInfo,
    CaseResult,
    CaseStatus,
    CrashFacts,
    Criterion,
    CriterionResult,
    Direction,
    Estimate,
    EvidenceSummary,
    Outcome,
    Replay,
    Scale,
    Side,
    Stage,
    StageKind,
    SuiteResult,
    Trial,
    Verdict,
)
from gate.model import facts as fact
from gate.model import findings as found
from gate.model.evidence import LookTest, MetricChange, MetricTest, RepeatsTest
from gate.model.findings import (
    AnyFinding,
    CaseTally,
    Change,
    ChecksFellAway,
    FailuresGone,
    GotWorse,
    HeldMean,
    MeanMisses,
    NoLongerMeasured,
    QuantileExcused,
    ScorerChanged,
)
from gate.model.results import CalibratedJudge, accepted_by
from tests.unit.decision.records import TRAJECTORY, cases, failed_trial, judge, lost_trial, once, stored, trial

from .samples import (
    ACCEPTED,
    BELOW,
    COST,
    FAILED,
    INCONCLUSIVE,
    NO_BASELINE,
    NOT_COMPARED,
    PASSED,
    REGRESSED,
    estimate,
)
from .samples import LOST as LOST_ALONE
from .samples import RESPONSE as HELD

RESPONSE = Criterion("response", "response", Scale.UNIT, threshold=0.9)
RATE = Criterion("pass rate", "pass rate", Scale.BINARY)
LATENCY = Criterion("latency", "latency", Scale.SECONDS, Direction.LOWER, limit=3.0)
MISSED = HeldMean(0.2, 0.9, 4)
DROP = Change(-0.125, -0.2, -0.05, 40)
UNCOMPARED = fact.Uncompared(new=1, edited=2, removed=3)
LOST = (CaseTally("a", 0, 4, 5, 5),)
GAINED = (CaseTally("b", 5, 5, 0, 5), CaseTally("c", 4, 4, 1, 5))

CAUSES: list[fact.Cause] = [
    fact.CouldNotMeasure(fact.NoCases()),
    fact.ShardMeasured(2, 3, 8, 4),
    fact.ShardNotMeasured(2, 3, fact.CasesNotRun(("a", "b"), 4)),
    fact.ThresholdsHold(40, 40, fact.Uncompared()),
    fact.ThresholdsHold(39, 40, fact.Uncompared()),
    fact.NoWorse(40, 40, -0.041, UNCOMPARED),
    fact.NoWorse(9, 9, -0.041, fact.Uncompared()),
    fact.NoWorse(40, 40, -0.0412, fact.Uncompared()),
    fact.NoWorse(40, 40, -0.0003, fact.Uncompared()),
    fact.NoWorse(40, 40, 0.01, fact.Uncompared()),
    fact.NothingDecides(),
    fact.BaselineMoved(("pass_rate",), before=True),
    fact.BaselineMoved(("pass_rate",)),
    fact.CasesNeverPass((CaseTally("a", 0, 11, 1, 1), CaseTally("b", 0, 12, 2, 2))),
    fact.NotEnoughEvidence(("a",), ("b",)),
    fact.CasesBroke(tuple("abcdefg")),
    fact.CasesBroke(("a", "b"), (CaseTally("a", 0, 7, 5, 5), CaseTally("b", 0, 7, 4, 5)), 40),
    fact.CasesBroke(("a",), (CaseTally("a", 0, 7, 5, 5),), 40),
    fact.SuiteGotWorse(("pass_rate",)),
    fact.SuiteGotWorse(("pass_rate",), suspects=(CaseTally("a", 1, 3, 5, 5),)),
    fact.SuiteGotWorse(("tool_trajectory_avg_score",), by_mean=False, fell=(fact.Fell("a", 0.9, 0.41),)),
    fact.TradedOff(LOST, GAINED, named=True, gained_named=True),
    fact.TradedOff(LOST, GAINED, named=False, gained_named=False),
    fact.CriterionFails("tool_trajectory_avg_score"),
    fact.CriterionNotMeasured("latency"),
    fact.CutShort("the budget is spent", 2, 5),
    fact.AgentFails(0.0004),
    fact.NothingPasses(12),
    fact.NotShownFixed(1),
    fact.NotShownFixed(3),
    fact.SameAgent("0123456789abcdef"),
    fact.ControlFell(("a",)),
    fact.ControlFell(("a", "b")),
    fact.CopiesLost(("a",)),
    fact.CopiesLost(("a", "b")),
    fact.Incomplete((fact.CriteriaNotCompared(("tone",)), fact.NothingPaired(12))),
]
PROBLEMS: list[fact.Problem] = [
    fact.NoCases(),
    fact.AllQuarantined(),
    fact.Outage(25, 40, compared=True, error="timeout: 60 s"),
    fact.Outage(40, 40, compared=False, error=""),
    fact.FailuresNotConfirmed(3, FailuresGone(24)),
    fact.FailuresNotConfirmed(1, found.NothingRerun()),
    fact.UnexplainedFailures(2),
    fact.LostDecide(8),
    fact.LostDecide(0, 1),
    fact.LostDecide(1, 2),
    fact.Collapsed("rubric", 2, 6, copies=False),
    fact.Collapsed("rubric", 12, 36, copies=True),
    fact.TooManyErrors(0.1004, 0.1, ""),
    fact.TooManyErrors(0.15, 0.1, ""),
    fact.CasesNotMeasured(("a",), 40, "unreachable: reset"),
    fact.CasesNotRun(("a",), 4),
    fact.CaseNotRecorded("a", 1, 5, ""),
    fact.CaseMostlyLost("a", 3, 5, ""),
]
GAPS: list[fact.Gap] = [
    fact.Stated("the suite `evals` is gone"),
    fact.CriteriaNotCompared(("tone",)),
    fact.CriteriaNotCompared(("tone", "tools")),
    fact.TooManyCasesGone(("a", "b", "c"), 24),
    fact.EditedCasesMiss(("a",)),
    fact.EditedCasesMiss(("a", "b")),
    fact.NothingPaired(12),
    ChecksFellAway("claims", ("b", "c"), 10),
]
CHANGES: list[fact.RuleChange] = [
    fact.Stated("two"),
    fact.BaseRunBeside("0123456789ab"),
    fact.BaseRunBeside("0123456789ab", without_rules=True),
    fact.NewCases(("a",)),
    fact.AnsweredBy("model", ("m-2",), ("m-1",)),
    fact.ToolsChanged(("orders",), ("orders: find is new",)),
    fact.ToolsChanged(("orders",)),
    fact.EditedCases(("a",)),
    fact.RenamedCases((("a", "b"),)),
    fact.RemovedCases(("a",)),
    fact.CriterionApart("tone", NoLongerMeasured()),
    fact.RemovedCriteria(("tone",)),
    fact.NewCriteria(("tone",)),
    fact.ByBaseRules(Verdict.PASS),
]
WARNINGS: list[fact.Caution] = [
    fact.Stated("a note"),
    fact.AgentFailures(),
    fact.ThresholdExcused("tool_trajectory_avg_score", 0.0, 0.1, 0.9),
    fact.LimitExcused("latency", QuantileExcused(0.95, 3.5, 3.0)),
    fact.FewCases(4, blind=True),
    fact.FewCases(5, blind=False),
    fact.ThinBaseline(3, 5, 1, typical=5),
    fact.ThinBaseline(3, 5, 2, typical=5, grows=False),
    fact.QuietRise("latency", 0.6),
    fact.QuietRise("tool_trajectory_avg_score", -0.1, fact.Wording("a", "It is sunny.", "Sun, probably.")),
    fact.QuietRise("tool_trajectory_avg_score", -0.1, fact.Wording("a", "", "Sun, probably.")),
    fact.ScoresUnmeasured("latency", 1, 80),
    fact.TrialsLost(1, 80),
    fact.FailuresExcused(12, 12, "crash: boom"),
    fact.FailuresExcused(9, 12, "crash: boom", at_base=True),
    fact.BaseGone(16, "unreachable: refused"),
    fact.Unproven(("abcdef012345",), (), "the token may not read"),
    fact.Unproven((), tuple((f"the baseline of {n}", "passed over") for n in range(5))),
    fact.MeasuredBefore((Verdict.PASS, Verdict.BELOW_THRESHOLD), 2, fingerprinted=True),
    fact.MeasuredBefore((Verdict.INCONCLUSIVE,), 7, fingerprinted=False),
    fact.ProviderMoved(86_400.0, "abcdef012345", "pass rate", Scale.BINARY, -0.04, 0.001, 9),
    fact.ProviderMoved(86_400.0, None, "tone", Scale.LIKERT, 0.4, 0.02, 9, baseline_is_older=True),
    fact.AttemptsRepeated(2),
    fact.RepeatsOnce(97, 100),
    fact.RepeatsAlike(cached=False),
    fact.RepeatsAlike(cached=True),
    fact.CallsNotReported(("tools",)),
    fact.CallsNotReported(("tools", "order")),
    fact.OneAnswer(9, 3, ("pii",)),
    fact.CasesUnchecked(("a",)),
    fact.CasesUnchecked(("a", "b"), were_checked=True),
    fact.NotAccepted("wendy at noon", ("tools",)),
    fact.CasesUnchecked(("a", "b")),
]
FINDINGS: list[tuple[Criterion, AnyFinding]] = [
    (RESPONSE, found.NothingHeld()),
    (RESPONSE, found.SameTrials()),
    (RESPONSE, found.NotApplied()),
    (RATE, found.NothingChecked()),
    (RESPONSE, found.NoTrialMeasured()),
    (RESPONSE, found.NeverFailed()),
    (RESPONSE, found.HardFailure("a", 0, "")),
    (RESPONSE, found.HardFailure("a", 2, "deleted an account")),
    (RESPONSE, found.CasesNotScored("a", 1, 9, "no key")),
    (RESPONSE, found.CasesNotScored("a", 3, 9, "no key")),
    (RESPONSE, found.ScoresLost(80, 120, 0.1, "no key")),
    (RESPONSE, found.AppliesToNone()),
    (RESPONSE, found.AppliesNoMore()),
    (RESPONSE, found.MeanHolds(HeldMean(0.95, 0.9, 1))),
    (RATE, found.MeanHolds(HeldMean(0.5, 0.85, 10))),
    (RESPONSE, found.MeanExcused(HeldMean(0.2, 0.9, 4, before=0.1))),
    (RESPONSE, found.MeanMisses(MISSED, 12, None)),
    (RESPONSE, found.MeanMisses(MISSED, 12, 0.1)),
    *((RATE, found.MeanMisses(HeldMean(value, 0.8, 15), 45, 0.06)) for value in (0.79, 0.73, 0.7013)),
    *((LATENCY, found.MeanMisses(HeldMean(value, 3.0, 12), 36, 0.2)) for value in (3.05, 3.3)),
    (RESPONSE, found.MeanMisses(HeldMean(0.85, 0.9, 12), 36, 0.06, base_cases=True)),
    (RESPONSE, found.MeanMisses(HeldMean(0.7996, 0.8004, 4, before=0.79961), 4, None)),
    (LATENCY, found.TrialBeyond("a", 3.0004, 3.0, 1)),
    (LATENCY, found.QuantileHolds(0.95, 2.9996, 3.0)),
    (RATE, found.LossNotExcluded(Change(-0.02, -0.10004, 0.06, 40), -0.10004, 0.1)),
    (RESPONSE, found.MeanMisses(HeldMean(0.0, 0.9, 12, before=0.0, new_cases=11), 12, 0.05)),
    (RESPONSE, found.MeanMisses(HeldMean(0.1, 0.9, 4, failed=3), 12, None)),
    (RESPONSE, found.MeanMisses(HeldMean(0.5, 0.9, 4, measured=0.6), 12, None)),
    (RESPONSE, found.MeanUnsure(MISSED, 8)),
    (RESPONSE, found.OwnThresholdMissed(HeldMean(0.2, 0.9, 1, "own"), 3)),
    (RESPONSE, found.OwnThresholdMissed(HeldMean(0.2, 0.9, 1, "own"), 3, more=2)),
    (RESPONSE, found.OwnThresholdsHold(2)),
    (RESPONSE, found.OwnThresholdsHold(3, 1)),
    (RESPONSE, found.OwnThresholdsHold(3, 2)),
    (LATENCY, found.NoTrialBeyond()),
    (LATENCY, found.TrialBeyond("a", 4.5, 3.0, 2)),
    (LATENCY, found.TrialExcused("a", 4.5, 3.0)),
    (LATENCY, found.QuantileHolds(0.95, 2.5, 3.0)),
    (LATENCY, found.QuantileExcused(0.95, 3.5, 3.0)),
    (LATENCY, found.QuantileRisen(0.95, 9.0, 3.0, 3.3)),
    (LATENCY, found.QuantileOver(0.5, 9.0, 3.0, 30, 40)),
    (LATENCY, found.QuantileOpen(0.95, 9.0, 3.0, 40, too_few=False)),
    (RATE, found.ChangeAllowed(DROP)),
    (RATE, found.ChangeAllowed(Change(0.0, None, None, 1))),
    (LATENCY, found.ChangeAllowed(Change(0.6, 0.2, 1.0, 40))),
    (RATE, found.SuggestsDrop(DROP)),
    (RATE, found.Drifted(DROP)),
    (RATE, found.Drifted(DROP, before=True)),
    (RATE, found.ChangeUnbounded(DROP)),
    (RATE, found.LossNotExcluded(DROP, -0.2, 0.1)),
    (RATE, found.GotWorse(DROP, ("a", "b"))),
    (RATE, found.NeverPass((found.CaseTally("refund", 0, 11, 1, 1),))),
    (RATE, found.GotWorse(Change(-0.02, -0.06, 0.02, 40), ("a",))),
    (RATE, found.NotTested(Stage(StageKind.NOTHING))),
    (RATE, found.FailuresConfirmed(0.0004)),
]
UNCONFIRMED: list[found.Unconfirmed] = [
    found.NothingRerun(),
    found.ConfirmationLost(9, 24),
    found.PerhapsProvider(20, 24, 24, 24, at_base=True),
    found.PerhapsProvider(20, 24, 0, 0, at_base=False),
    found.SlowedDown(9.0, 2.0),
]
APART: list[found.Apart] = [found.CasesGone(4), found.NoLongerMeasured(), found.ComparedWithout(("a", "b"))]
STAGES: list[Stage] = [
    Stage(StageKind.CERTIFIED, 2),
    Stage(StageKind.CASES_AT_PASS, 1),
    Stage(StageKind.CASES_AT_PASS, 1, confirmed=True),
    Stage(StageKind.CASE_RERUNS, confirmed=True),
    Stage(StageKind.SUITE_LOOK, 1),
    Stage(StageKind.REPEATS, 1),
    Stage(StageKind.END),
    Stage(StageKind.DRIFTED),
]
FIGURES = [
    *((0.8167, scale) for scale in (Scale.BINARY, Scale.UNIT)),
    *((value, Scale.BINARY) for value in (1.0, 0.0, 2_999 / 3_000, 1 / 3_000, 0.975)),
    *((value, Scale.UNIT) for value in (1.0, -0.5, None, math.nan, 0.9999, 1 - 1e-12)),
    *((value, Scale.SECONDS) for value in (0.0, 3.4e-6, 4e-5, 4e-4, 0.32, 0.9999, 1.844, 61.25, 125.0, 180.0)),
    *((value, Scale.USD) for value in (0.0, 0.000001234, 0.0123, 0.5, 1.2, 1234.5)),
    *((4.2, Scale.LIKERT), (87.25, Scale.PERCENT), (1240.0, Scale.COUNT), (3.0, Scale.COUNT)),
]
INTERVALS = [
    (Estimate(0.82, 0.71, 0.9, 40, 40), Scale.UNIT),
    (Estimate(0.8, 0.7, 0.9, 1204, 2400), Scale.BINARY),
    *(
        (Estimate(*ends, 40, 40), Scale.SECONDS)
        for ends in ((1.2, 0.9, 1.5), (2.2e-5, 0, 6e-5), (5.7e-5, 0, 1e-4), (0.32, 5.7e-5, 1.2), (125, 90, 160))
    ),
    (Estimate(0.2, -0.1, 1.2, 40), Scale.SECONDS),
    (Estimate(0.5, 0.4, 0.6, 40), Scale.USD),
    *((Estimate(-0.125, -0.2, 0.0, 40), scale) for scale in (Scale.BINARY, Scale.UNIT, Scale.USD)),
    (replace(Estimate(-0.01, 0, 0, 40), level=0.0), Scale.BINARY),
    (None, Scale.UNIT),
]
MEANS = [
    *((0.0435, 0.0843, 0.782), (1.5, 1.0, 0.2), (1.22, 1.0, 0.2), (0.995, 1.0, 0.003), (0.98, 1.0, 0.02)),
    *((0.0, 1.0, 0.2), (1.0, 0.0, 0.2), (math.inf, 1.0, 0.2), (1.0, 1.0, -1.0)),
]
"""Now, before, and the change of a typical case."""
DEMANDS = [
    Criterion("a", "a", Scale.UNIT),
    Criterion("a", "a", Scale.UNIT, threshold=0.9),
    Criterion("a", "a", Scale.UNIT, threshold=0.8004),
    Criterion("a", "a", Scale.SECONDS, Direction.LOWER, limit=10, quantiles=((0.95, 3.0),)),
]
PEOPLE = CalibratedJudge(
    *(100, 92, 0.81, Estimate(0.9, 0.8, 0.95, 60, 60), Estimate(0.9, 0.8, 0.95, 60, 60)),
    Estimate(0.88, 0.80, 0.94, 40, 40),
    Estimate(0.84, 0.75, 0.91, 40, 40),
    slope=0.8,
)
JUDGES = [PEOPLE, replace(PEOPLE, candidate=None, baseline=None, kappa=None, slope=1.0)]
BASELINES = [
    None,
    BaselineInfo("0123456789abcdef", trials_per_case=1),
    BaselineInfo("0123456789abcdef", 2, 5.0, 1, "branch gate-baselines", dirty=True),
    BaselineInfo(None, missing="the baseline saved last is of this very commit", of_itself=True),
    BaselineInfo(None, missing="switched off"),
]
CASES = [
    CaseResult("a", CaseStatus.NEVER_PASSED, trials=2, baseline_trials=5),
    CaseResult("a", CaseStatus.OK, trials=2, passed=2),
    CaseResult("a", CaseStatus.BROKEN, trials=4, baseline_passed=5, baseline_trials=5),
    CaseResult("a", CaseStatus.FAILED, trials=1, baseline_trials=5),
    CaseResult("a", CaseStatus.ERROR, errors=2, baseline_passed=5, baseline_trials=5),
    CaseResult("a", CaseStatus.OK, passed=1, trials=1, baseline_trials=5, improvement=6.0),
    CaseResult("a", CaseStatus.OK, passed=1, trials=1, same_world=True),
    CaseResult("a", CaseStatus.FLAKY, same_world=True, difference="request 3 differs"),
]
TRIALS = [
    Trial("c", 1, replay=Replay("base:1", 3, 0)),
    Trial("c", 1, replay=Replay("base:1", 1, 2, "request 3 differs")),
    Trial("c", 1, replay=Replay("", 0, 2)),
    Trial("c", 1),
]
COSTS = [*(("reported", 0), ("list price", 0), ("partly list price", 0), ("reported", 1), ("list price", 2))]
"""What is known of the price of the runs, and of how many nothing is."""


def decided(verdict: str, stage: Stage, *, low: float = -0.29, e_value: float = 1.0, p: float = 0.14) -> SuiteResult:
    """A suite of ten cases whose pass rate fell by ten points."""
    rate = MetricChange(10, 30, -0.1, low, 0.09, 0.2, low >= -0.2, 0.31, blocks_regression=True, excluded=low)
    look = LookTest(1, p, 0.005, 500, {"pass rate": MetricTest(p, p, p)})
    evidence = EvidenceSummary(1, 10, {}, (look,), e_value, e_value, 500.0, ("a",), {}, {"pass rate": rate})
    row = replace(INCONCLUSIVE.criteria[0], criterion=replace(INCONCLUSIVE.criteria[0].criterion, name="pass rate"))
    outcome = Outcome(verdict, ("a",), stage, evidence)  # type: ignore[arg-type]
    change = Change(-0.1, low, 0.09, 10)
    passed, cause = found.ChangeAllowed(change), fact.NoWorse(10, 10, low, fact.Uncompared())
    open_, worse = replace(INCONCLUSIVE, criteria=(row,)), fact.SuiteGotWorse(("pass rate",))
    suite = {
        "PASS": replace(open_, verdict=Verdict.PASS, cause=cause, criteria=(_found(row, passed),)),
        "REGRESSION": replace(open_, verdict=Verdict.REGRESSED, cause=worse, criteria=(_found(row, GotWorse(change)),)),
        "INCONCLUSIVE": open_,
    }[verdict]
    return replace(suite, outcome=outcome)


def _found(row: CriterionResult, finding: AnyFinding) -> CriterionResult:
    return replace(row, verdict=finding.verdict, findings=(finding,))


def with_evidence(suite: SuiteResult, **facts: Any) -> SuiteResult:
    """The suite with other evidence for what was decided."""
    assert suite.outcome is not None
    return replace(suite, outcome=replace(suite.outcome, evidence=replace(suite.outcome.evidence, **facts)))


def with_rate(suite: SuiteResult, **facts: Any) -> SuiteResult:
    """The suite with another change of its pass rate."""
    assert suite.outcome is not None
    return with_evidence(suite, metrics={"pass rate": replace(suite.outcome.evidence.metrics["pass rate"], **facts)})


NARROW = replace(
    BELOW, criteria=(replace(BELOW.criteria[0], findings=(MeanMisses(HeldMean(0.733, 0.8, 15), 45, 0.06),)),)
)
"""A threshold is missed by as much as chance would explain."""
TRADE = fact.TradedOff(LOST, GAINED, named=True, gained_named=True)
TRADED = replace(decided("REGRESSION", Stage(StageKind.CASE_RERUNS), e_value=1000.0), cause=TRADE)
"""A suite in which one case broke and others improved."""


MOST = 2
"""Values of one kind that a field is tried with."""


def ones(union: Any) -> Iterator[Any]:
    """Facts of each kind of a union, with ones wherever they have a number."""
    for kind in get_args(union):
        yield from _made(kind) if kind is not str else ()


def _made(kind: type[Struct]) -> Iterator[Any]:
    hints = get_type_hints(kind)
    fields = [list(_values(hints[name])) for name in kind.__struct_fields__]
    for n in range(max(map(len, fields), default=1)):
        yield kind(*(field[n % len(field)] for field in fields))


def _values(hint: Any) -> Iterator[Any]:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        yield from chain.from_iterable(map(_values, args))
    elif origin is tuple:
        found = product(*(islice(_values(one), MOST) for one in (args[:1] if args[-1] is Ellipsis else args)))
        yield from ((one[0],) if args[-1] is Ellipsis else one for one in found)
    elif origin is Literal:
        yield from args
    elif isinstance(hint, type) and issubclass(hint, Struct):
        yield from _made(hint)
    elif hint in (int, float, str, bool, NoneType):
        yield from {int: (1,), float: (0.01,), str: ("name",), bool: (False, True), NoneType: (None,)}[hint]
    else:  # an enumeration
        yield from hint


def suites() -> Iterator[tuple[str, SuiteResult]]:
    """Each with what is particular of it."""
    yield from _samples()
    yield from _proofs()
    yield from _open()
    yield from _counted()
    yield from _to_do()


def _samples() -> Iterator[tuple[str, SuiteResult]]:
    crashed = CrashFacts(("a", "b"), 9, 15, 0, 15, "crash: x")
    answered = (fact.AnsweredBy("model", ("m-2",), ("m-1",)), fact.AnsweredBy("system", ("fp_2",), ("fp_1",)))
    itself = BaselineInfo(None, missing="it is of this commit", of_itself=True)
    unlike = replace(REGRESSED, reference="anchor")
    yield "nothing is wrong", PASSED
    yield "accepted", ACCEPTED
    shared = replace(decided("PASS", Stage(StageKind.CERTIFIED, 1)), course=fact.Course(1, 36, alpha=0.02, suites=4))
    yield "one of four suites", shared
    yield "one of four suites, in a part of a matrix", replace(shared, course=replace(shared.course, family=3))
    yield (
        "no baseline, crashes, part of the cases",
        replace(INCONCLUSIVE, has_baseline=False, crashes=crashed, scope="24 of 120 cases, tag smoke"),
    )
    yield (
        "crashes of which a warning tells, too",
        replace(INCONCLUSIVE, warnings=(fact.AgentFailures(),), crashes=CrashFacts(("a",), 1, 7, 0, 0, "crash: x")),
    )
    yield (
        "another reference decided",
        replace(PASSED, verdict=Verdict.REGRESSED, further=(unlike,), decided_by="anchor"),
    )
    yield "a baseline of this very commit", replace(INCONCLUSIVE, has_baseline=False, baseline=itself)
    yield (
        "measured before, and it fell short",
        replace(PASSED, warnings=(fact.MeasuredBefore((Verdict.PASS, Verdict.REGRESSED), 2, fingerprinted=True),)),
    )
    yield "another model and system, which may be why", replace(REGRESSED, changes=(*answered, fact.NewCases(("a",))))
    yield "another model and system, and no harm", replace(PASSED, changes=(fact.NewCases(("a",)), *answered))


def _proofs() -> Iterator[tuple[str, SuiteResult]]:
    course = fact.Course(*(1, 40, 2, 3, 5, 52, 4), fixed_runs=200, stopped="the clock", reruns=8, baseline_reruns=4)
    reruns = decided("REGRESSION", Stage(StageKind.CASE_RERUNS), e_value=1000.0)
    broke = fact.CasesBroke(("a",), (CaseTally("a", 0, 7, 5, 5),), 40)
    again = RepeatsTest(1, 0.0004, 0.0016, 5, 6, 15, 24, 25)
    repeats = decided("REGRESSION", Stage(StageKind.REPEATS, 1))
    yield "a case broke, by reruns", replace(reruns, cause=broke)
    yield "a proof, and what stopped the run", replace(reruns, course=course)
    yield "a proof by repeats", with_evidence(repeats, repeats=(again,))
    yield "repeats that prove nothing", with_evidence(repeats, repeats=(replace(again, p=0.2),))
    tests = {"pass rate": MetricTest(0.003, 0.9, 0.003), "other": MetricTest(0.001, 0.9, 0.001)}
    look = LookTest(1, 0.001, 0.005, 500, tests)
    both = with_evidence(replace(reruns, cause=broke), looks=(look,))
    assert both.outcome is not None
    by_look = replace(both.outcome, stage=Stage(StageKind.SUITE_LOOK, 1))
    yield "two proofs, the cases first", both
    yield "two proofs, the cases at a look", replace(both, outcome=by_look)
    yield (
        "two proofs, the suite first",
        replace(both, cause=fact.SuiteGotWorse(("pass rate", "other")), outcome=by_look),
    )
    for way in Direction:
        at_look = decided("REGRESSION", Stage(StageKind.SUITE_LOOK, 1), p=0.0001)
        row = replace(at_look.criteria[0], criterion=replace(at_look.criteria[0].criterion, direction=way))
        yield f"the mean went the wrong way, better is {way.value}", replace(at_look, criteria=(row,))
    short, fell = MeanMisses(HeldMean(0.0, 0.8, 12), 12, 0.05), GotWorse(Change(-1.0, -1.0, -0.88, 12))
    held = Criterion("trajectory", "trajectory", Scale.UNIT, threshold=0.8)
    row = CriterionResult(held, Verdict.REGRESSED, (short, fell))
    worse = fact.SuiteGotWorse(("trajectory",), perhaps_drift=True, missed=("trajectory",), drift_moot=True)
    yield "a threshold that is missed beside a drop", replace(REGRESSED, cause=worse, criteria=(row,))
    yield (
        "a drop whose drift was not looked for",
        replace(REGRESSED, cause=replace(worse, drift_moot=False), criteria=(row,)),
    )
    always = fact.Course(
        *(1, 12, 1, 10, 10, 76, 30), reruns=10, baseline_reruns=6, confirming=48, baseline_confirming=24
    )
    fails = replace(
        reruns,
        cause=fact.CasesBroke(("c3",), (CaseTally("c3", 0, 11, 11, 11),), 12),
        course=always,
        crashes=CrashFacts(("c3",), 23, 23, 0, 23, "crash: x"),
        warnings=(fact.AgentFailures(),),
    )
    yield "a case fails each time", fails
    yield "a case fails most times", replace(fails, crashes=CrashFacts(("c3",), 14, 23, 0, 23, "crash: x"))
    rates = replace(REGRESSED.criteria[0], candidate=estimate(0.9, 0.8, 0.95, 42), compared=(0.93, 0.95))
    rates = replace(rates, criterion=replace(rates.criterion, name="pass rate"))
    whole = replace(TRADED, criteria=(rates,))
    yield "a trade, and cases that are new", whole
    yield (
        "a trade of the same cases",
        replace(whole, criteria=(replace(rates, candidate=estimate(0.95, 0.8, 0.99, 40)),)),
    )


def _open() -> Iterator[tuple[str, SuiteResult]]:
    end = decided("INCONCLUSIVE", Stage(StageKind.END))
    yield "open at the end", end
    yield "open at the end, a bound between", decided("INCONCLUSIVE", Stage(StageKind.END), low=-0.2901)
    yield "open, close to the margin", with_rate(end, change=-0.0999999999, low=-0.4)
    yield "open, beyond the margin", with_rate(end, change=-0.2001, low=-0.4)
    yield "open, more cases would tell", with_rate(end, change=-0.05, low=-0.30)
    yield "drifted", decided("INCONCLUSIVE", Stage(StageKind.DRIFTED))
    yield "moved before", decided("INCONCLUSIVE", Stage(StageKind.MOVED_BEFORE))
    down = fact.CouldNotMeasure(fact.Outage(12, 12, compared=True, error="crash: boom"))
    yield "an outage", replace(end, verdict=Verdict.ERROR, cause=down, course=fact.Course(1, 12, runs=12))
    certified = decided("PASS", Stage(StageKind.CERTIFIED, 1), low=-0.05)
    for excluded, n in ((-0.12, 40), (-0.05, 40), (-0.12, 9)):
        yield (
            f"a pass over {n} cases, {excluded} ruled out",
            replace(
                with_rate(certified, low=-0.05, excluded=excluded),
                verdict=Verdict.PASS,
                cause=fact.NoWorse(n, n, excluded, fact.Uncompared()),
                course=fact.Course(1, n, runs=n),
            ),
        )
    passed = replace(decided("PASS", Stage(StageKind.CERTIFIED, 1)), verdict=Verdict.PASS, cause=fact.NothingDecides())
    for n in (4, 1):
        yield f"a thin baseline of {n} in ten cases", replace(passed, warnings=(fact.ThinBaseline(n, 5, 1, typical=5),))
    yield (
        "a thin baseline of few of many cases",
        replace(passed, warnings=(fact.ThinBaseline(1, 5, 1, typical=5),), outcome=None, cases=PASSED.cases),
    )
    yield (
        "a case never passes, and the baseline is thin",
        replace(
            passed,
            verdict=Verdict.INCONCLUSIVE,
            cause=fact.CasesNeverPass((CaseTally("c03", 0, 13, 1, 1),)),
            warnings=(fact.ThinBaseline(10, 5, 1, blind=True),),
        ),
    )


def _counted() -> Iterator[tuple[str, SuiteResult]]:
    """Decided from trials: the runs that are told add up."""
    twelve = cases(12)
    before = stored(twelve, trajectory=1.0)
    ids = [case.id for case in twelve]

    def ran(case_ids: list[str], number: int, tag: str, **options: Any) -> list[Trial]:
        return [trial(c, number, round=number, tag=tag, trajectory=1.0, **options) for c in case_ids]

    base = {"side": Side.BASELINE}
    again = [replace(t, again=True) for t in ran(ids[:2], 1, FULL)]
    trials = [lost_trial(ids[0]), lost_trial(ids[1]), *ran(ids[2:], 1, FULL), *again]
    trials += [*ran(ids[:3], 2, CONFIRM), *ran(ids[:2], 2, CONFIRM, **base), *ran(ids[:1], 3, CONFIRM)]
    trials += [*ran(ids[4:7], 4, REPEAT), *ran(ids[4:5], 4, REPEAT, **base), *ran(ids[1:], 5, FULL, **base)]
    trials += [*ran(ids[5:9], 6, CONCURRENT, **base), *ran(ids[5:7], 6, CONCURRENT), *ran(ids[1:5], 7, PROBE)]
    settings = Settings(quarantine={ids[11]: "known"}, rerun="match")
    yield (
        "45 runs of every kind",
        judge(twelve, [TRAJECTORY], trials, stored(twelve, trajectory=1.0), settings=settings),
    )
    yield (
        "an epoch that was cut short",
        judge(twelve, [TRAJECTORY], once(twelve[:7], trajectory=1.0), before, stopped="clock"),
    )
    for failing in (2, 4):
        suite = cases(20)
        trials = [trial(c.id, n, trajectory=float(i >= failing)) for i, c in enumerate(suite) for n in (1, 2, 3)]
        yield (
            f"{failing} of 20 cases fail",
            judge(suite, [TRAJECTORY], trials, stored(suite, trajectory=1.0), settings=Settings(exact_epochs=3)),
        )
    for failing in (1, 2):
        suite = cases(40)
        down, others = [case.id for case in suite[:failing]], [case.id for case in suite[10:16]]
        trials = [*map(failed_trial, down), *once(suite[failing:], trajectory=1.0)]
        for number in range(2, 10):
            trials += [failed_trial(c, number, round=9, tag=PROBE) for c in down]
            trials += [trial(c, number, round=9, tag=PROBE, trajectory=1.0) for c in others]
        yield (
            f"failures of {failing} of 40 cases came again",
            judge(suite, [TRAJECTORY], trials, stored(suite, trajectory=1.0)),
        )


def _to_do() -> Iterator[tuple[str, SuiteResult]]:
    end = decided("INCONCLUSIVE", Stage(StageKind.END))
    yield "a trade", TRADED
    yield "a trade that was accepted", accepted_by(TRADED, "ann accepted this on 2026-11-02")
    yield (
        "a trade against another reference",
        replace(TRADED, cause=PASSED.cause, further=(replace(TRADED, reference="anchor"),), decided_by="anchor"),
    )
    yield "a regression alone", replace(LOST_ALONE, criteria=LOST_ALONE.criteria[:1])
    yield "not shown fixed", replace(LOST_ALONE, cause=fact.NotShownFixed(1))
    yield "a loss that cannot be accepted", accepted_by(REGRESSED, "ann accepted this on 2026-11-02")
    yield "a threshold is missed", BELOW
    yield "a threshold is missed narrowly", NARROW
    yield "no trial passes", replace(NO_BASELINE, verdict=Verdict.BELOW_THRESHOLD, cause=fact.NothingPasses(3))
    yield "the same agent", replace(NO_BASELINE, cause=fact.SameAgent("0123456789abcdef"), has_baseline=True)
    yield "a shard", replace(INCONCLUSIVE, cause=fact.ShardMeasured(1, 2, 36, 12))
    yield "not measured", FAILED
    yield (
        "not measured, for the budget",
        replace(FAILED, course=fact.Course(stopped="the budget of 5 minutes is spent")),
    )
    gone = replace(INCONCLUSIVE.criteria[0], not_compared=NoLongerMeasured())
    yield "not compared: a criterion and cases", NOT_COMPARED
    for gap, criteria in (
        (fact.CriteriaNotCompared(("pass_rate",)), (gone,)),
        (fact.CriteriaNotCompared(("pass_rate",)), (replace(gone, not_compared=ScorerChanged()),)),
        (fact.NothingPaired(24), ()),
        (fact.Stated("the suite `evals` is gone"), ()),
    ):
        bare = replace(PASSED, verdict=Verdict.NOT_COMPARED, cause=fact.Incomplete((gap,)), criteria=criteria)
        yield f"not compared: {type(gap).__name__}, {len(criteria)} rows", bare
    for problem in (
        fact.UnexplainedFailures(1),
        fact.FailuresNotConfirmed(3, FailuresGone(24)),
        fact.LostDecide(3),
        fact.Collapsed("rubric", 2, 6, copies=False),
        fact.Collapsed("rubric", 12, 36, copies=True),
    ):
        cause = fact.CouldNotMeasure(problem)
        yield f"could not measure: {type(problem).__name__}", replace(PASSED, verdict=Verdict.ERROR, cause=cause)
    for noise in (fact.ControlFell(("a",)), fact.CopiesLost(("a",))):
        yield f"noise: {type(noise).__name__}", replace(end, cause=noise)
    yield "a criterion is gone, and another is open", replace(INCONCLUSIVE, criteria=(*INCONCLUSIVE.criteria, gone))
    dear = found.ChangeAllowed(Change(0.782, 0.448, 1.193, 40))
    cost = CriterionResult(
        *(COST, Verdict.PASS, (dear,), estimate(0.0435, 0.03, 0.06), estimate(0.0843, 0.02, 0.2)),
        estimate(0.782, 0.448, 1.193),
        compared=(0.0843, 0.0435),
    )
    dearer = (fact.QuietRise("cost", 0.782),)
    yield "a typical case is dearer, all are cheaper", replace(PASSED, criteria=(cost,), warnings=dearer)
    new = replace(cost, candidate=estimate(0.4, 0.3, 0.6, 44))
    yield "a typical case is dearer, the compared ones cheaper", replace(PASSED, criteria=(new,), warnings=dearer)
    yield "a typical case is dearer, and so are all", replace(PASSED, criteria=(replace(new, compared=(0.08, 0.15)),))
    open_ = replace(
        cost, verdict=Verdict.INCONCLUSIVE, findings=(found.LossNotExcluded(Change(0.1, -0.05, 0.3, 40), 0.3, 0.2),)
    )
    yield "a cost is open", replace(INCONCLUSIVE, criteria=(open_,))
    two = (found.MeanHolds(MISSED), found.ChangeUnbounded(DROP))
    for name, findings, verdict in (
        ("two findings, one of which decides", two, Verdict.INCONCLUSIVE),
        ("not compared", (found.NotCompared(ScorerChanged()), GotWorse(DROP)), Verdict.NOT_COMPARED),
        ("excused", (found.MeanExcused(HeldMean(0.0, 0.9, 3, before=0.0)),), Verdict.PASS),
        ("failures that count", (found.MeanHolds(HeldMean(0.917, 0.8, 12, failed=1)),), Verdict.PASS),
    ):
        row = CriterionResult(HELD, verdict, findings, estimate(0.2, 0.1, 0.3))
        yield name, replace(INCONCLUSIVE, criteria=(row,))
    live = tuple(fact.LiveCase(f"c{i}", 2 if i < 5 else 1, 40, "request 3 differs" * (i < 15)) for i in range(16))
    yield "replayed", replace(PASSED, replayed=fact.ReplayedShare(100, 84, 21, 640, 412, 1.25, live))
    yield "replayed, and all alike", replace(PASSED, replayed=fact.ReplayedShare(100, 100, 0, 0, 500))
