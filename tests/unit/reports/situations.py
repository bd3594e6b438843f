"""Decided suites and facts of every kind, whose words stand in tests/golden/reports/words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice, product
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from gate.decision import CONCURRENT, Settings
from gate.model import (
    CONFIRM,
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
from gate.model.course import Course, LiveCase, ReplayedShare
from gate.model.evidence import LookTest, MetricChange, MetricTest, RepeatsTest
from gate.model.finding import KINDS, CaseTally, Change, Fell, Finding, HeldMean, KindName, Nested, Uncompared, Wording
from gate.model.results import CalibratedJudge, accepted_by
from tests.unit.decision.records import (
    TRAJECTORY,
    cases,
    failed_trial,
    judge,
    lost_trial,
    not_scored,
    once,
    stored,
    trial,
)

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
UNCOMPARED = Uncompared(new=1, edited=2, removed=3, quarantined=4)
LOST = (CaseTally("a", 0, 4, 5, 5),)
GAINED = (CaseTally("b", 5, 5, 0, 5), CaseTally("c", 4, 4, 1, 5))
NOT_SHOWN_FIXED = Finding.of(
    "not_shown_fixed",
    measurements=1,
    now=Finding.of("criteria_decide", Verdict.INCONCLUSIVE, criteria=("a",), suspects=("b",)),
)
NOT_SHOWN_AND_GONE = Finding.of(
    "not_shown_fixed",
    measurements=3,
    now=Finding.of("incomplete", gaps=(Finding.of("stated", text="the suite shop is gone"),)),
)

CAUSES: list[Finding] = [
    Finding.of("shard", shard=2, of=3, trials=8, cases=4),
    Finding.of(
        "shard",
        Verdict.ERROR,
        shard=2,
        of=3,
        problem=Finding.of("not_run", cases=("a", "b")),
    ),
    Finding.of("passes", compared=0, checked=40, cases=40, uncompared=Uncompared()),
    Finding.of("passes", compared=0, checked=39, cases=40, uncompared=Uncompared()),
    Finding.of("passes", compared=40, checked=40, cases=40, uncompared=UNCOMPARED),
    Finding.of("passes", compared=9, checked=9, cases=9, uncompared=Uncompared()),
    Finding.of("not_judged", Verdict.INCONCLUSIVE, why="nothing_yet"),
    Finding.of("criteria_decide", Verdict.INCONCLUSIVE, criteria=("pass_rate",), why="moved_before"),
    Finding.of("criteria_decide", Verdict.INCONCLUSIVE, criteria=("pass_rate",), why="drifted"),
    Finding.of("cases_fail", cases=(CaseTally("a", 0, 11, 1, 1), CaseTally("b", 0, 12, 2, 2)), why="thin_baseline"),
    Finding.of("criteria_decide", Verdict.INCONCLUSIVE, criteria=("a",), suspects=("b",)),
    Finding.of("cases_broke", cases=tuple(CaseTally(name, 0, 7, 5, 5) for name in "abcdefg")),
    Finding.of("cases_broke", cases=(CaseTally("a", 0, 7, 5, 5), CaseTally("b", 0, 7, 4, 5)), of=40),
    Finding.of("cases_broke", cases=(CaseTally("a", 0, 7, 5, 5),), of=40),
    Finding.of("suite_got_worse", criteria=("pass_rate",)),
    Finding.of("suite_got_worse", criteria=("pass_rate",), suspects=(CaseTally("a", 1, 3, 5, 5),)),
    Finding.of("suite_got_worse", criteria=("tool_trajectory_avg_score",), by_mean=False, fell=(Fell("a", 0.9, 0.41),)),
    Finding.of("cases_broke", cases=LOST, gained=GAINED, named=True, gained_named=True),
    Finding.of("cases_broke", cases=LOST, gained=GAINED, named=False, gained_named=False),
    Finding.of("criteria_decide", criteria=("tool_trajectory_avg_score",)),
    Finding.of("criteria_decide", Verdict.ERROR, criteria=("latency",)),
    Finding.of("agent_fails", Verdict.REGRESSED, why="confirmed", p=0.0004),
    Finding.of("nothing_passes", trials=12),
    NOT_SHOWN_FIXED,
    NOT_SHOWN_AND_GONE,
    Finding.of("same_agent", commit="0123456789abcdef"),
    Finding.of("cases_fail", cases=LOST, why="base_fails_too"),
    Finding.of("cases_fail", cases=LOST, why="copies"),
    Finding.of(
        "incomplete",
        gaps=(
            Finding.of("not_compared", criterion="tone", why="removed"),
            Finding.of("cases_changed", Verdict.NOT_COMPARED, how="all", of=12),
        ),
    ),
]
PROBLEMS: list[Finding] = [
    Finding.of("not_run"),
    Finding.of("not_run", quarantined=True),
    Finding.of("not_run", epochs=2, wanted=5),
    Finding.of("outage", cases=25, of=40, compared=True, error="timeout: 60 s"),
    Finding.of("outage", cases=40, of=40, compared=False, error=""),
    Finding.of("agent_fails", failed=3, why="gone", trials=24),
    Finding.of("agent_fails", failed=1, why="nothing_rerun"),
    Finding.of("agent_fails", failed=3, why="lost", lost=9, trials=24),
    Finding.of(
        "agent_fails",
        failed=3,
        why="perhaps_provider",
        trials=24,
        other_failed=24,
        other_trials=24,
        at_base=True,
        failed_again=20,
    ),
    Finding.of(
        "agent_fails",
        failed=3,
        why="perhaps_provider",
        trials=24,
        other_failed=0,
        other_trials=0,
        at_base=False,
        failed_again=20,
    ),
    Finding.of("agent_fails", failed=3, why="slowed_down", now=9.0, before=2.0),
    Finding.of("agent_fails", failed=3, why="new", cases=2),
    Finding.of("trials_lost", lost=8, of=80, decide=True),
    Finding.of("trials_lost", lost=0, of=80, unscored=1, decide=True),
    Finding.of("trials_lost", lost=1, of=80, unscored=2, decide=True),
    Finding.of("collapsed", criterion="rubric", cases=2, trials=6, copies=False),
    Finding.of("collapsed", criterion="rubric", cases=12, trials=36, copies=True),
    Finding.of("trials_lost", lost=6, of=40, most=0.1, error=""),
    Finding.of("trials_lost", lost=1, of=40, most=0.0, error=""),
    Finding.of("trials_lost", lost=40, of=40, most=0.1, error="unreachable: reset"),
    Finding.of("trials_lost", lost=2, of=2, cases=("a",), error="unreachable: reset"),
    Finding.of("trials_lost", lost=3, of=5, cases=("a",), error="missing: request 2 differs"),
    Finding.of("not_run", cases=("a",)),
]
GAPS: list[Finding] = [
    Finding.of("stated", text="the suite `evals` is gone"),
    Finding.of("not_compared", criterion="tone", why="removed"),
    Finding.of("not_compared", criterion="tools", why="changed"),
    Finding.of("not_compared", criterion="tone", why="other_judge", models=("x",), now=("x-2",), before=("x-1",)),
    Finding.of(
        "not_compared",
        criterion="tone",
        why="other_judge",
        models=("x", "y"),
        now=("x-2", "y-2"),
        before=("x-1", "y-1"),
    ),
    Finding.of("not_compared", criterion="tone", why="other_user", models=("x",), now=("x-2",), before=("x-1",)),
    Finding.of("cases_changed", Verdict.NOT_COMPARED, how="removed", cases=("a", "b", "c"), of=24),
    Finding.of("cases_changed", Verdict.NOT_COMPARED, how="edited", cases=("a",)),
    Finding.of("cases_changed", Verdict.NOT_COMPARED, how="edited", cases=("a", "b")),
    Finding.of("cases_changed", Verdict.NOT_COMPARED, how="all", of=12),
    Finding.of("cases_changed", Verdict.NOT_COMPARED, how="cut_off", cases=("a", "b"), of=12),
    Finding.of("not_compared", criterion="claims", why="nothing_to_check", cases=("b", "c"), of=10),
]
CHANGES: list[Finding] = [
    Finding.of("stated", text="two"),
    Finding.of("base_run_beside", commit="0123456789ab"),
    Finding.of("base_run_beside", commit="0123456789ab", without_rules=True),
    Finding.of("stated", agent_key="command", text='the agent differs: agent.command: nothing → "true"'),
    Finding.of("cases_changed", how="new", cases=("a",)),
    Finding.of("answered_by", what="model", now=("m-2",), before=("m-1",)),
    Finding.of("tools_changed", servers=("orders",), changes=("orders: find is new",)),
    Finding.of("tools_changed", servers=("orders",)),
    Finding.of("cases_changed", how="edited", cases=("a", "b"), never_passed=("b",)),
    Finding.of("cases_changed", how="renamed", cases=("b",), before=("a",)),
    Finding.of("cases_changed", how="removed", cases=("a",)),
    Finding.of("not_compared", criterion="tone", why="removed"),
    Finding.of("not_compared", Verdict.PASS, criterion="tone", why="new"),
    Finding.of("by_base_rules", stricter=Verdict.PASS),
]
WARNINGS: list[Finding] = [
    Finding.of("stated", text="a note"),
    Finding.of("thin_baseline", cases=3, wanted=5, least=1, typical=5),
    Finding.of("thin_baseline", cases=3, wanted=5, least=2, typical=5, grows=False),
    Finding.of("trials_lost", Verdict.PASS, lost=1, of=80),
    Finding.of("trials_lost", Verdict.PASS, lost=12, of=12, error="crash: boom", by="agent"),
    Finding.of("trials_lost", Verdict.PASS, lost=9, of=12, error="crash: boom", by="base"),
    Finding.of("trials_lost", Verdict.PASS, lost=16, of=24, error="unreachable: refused", by="base", gone=True),
    Finding.of("unproven", compared=("abcdef012345",), told=(), why="the token may not read"),
    Finding.of("unproven", compared=(), told=tuple((f"the baseline of {n}", "passed over") for n in range(5))),
    Finding.of("measured_before", verdicts=(Verdict.PASS, Verdict.BELOW_THRESHOLD), total=2, fingerprinted=True),
    Finding.of("measured_before", verdicts=(Verdict.INCONCLUSIVE,), total=7, fingerprinted=False),
    Finding.of(
        "provider_moved",
        since=86_400.0,
        commit="abcdef012345",
        metric="pass rate",
        scale=Scale.BINARY,
        change=-0.04,
        p=0.001,
        runs=9,
    ),
    Finding.of(
        "provider_moved",
        since=86_400.0,
        commit=None,
        metric="tone",
        scale=Scale.LIKERT,
        change=0.4,
        p=0.02,
        runs=9,
        baseline_is_older=True,
    ),
    Finding.of("trials_lost", Verdict.PASS, lost=0, of=80, repeated=2),
    Finding.of("answers_say_little", cases=97, of=100, why="other_runs_differ"),
    Finding.of("answers_say_little", cases=12, of=12, why="steady"),
    Finding.of("answers_say_little", criteria=("tools",), why="no_calls"),
    Finding.of("answers_say_little", criteria=("tools", "order"), why="no_calls"),
    Finding.of("answers_say_little", criteria=("pii",), why="one_answer", answers=9, cases=3),
    Finding.of("answers_say_little", why="cut_off", answers=3, of=12),
    Finding.of("tool_fails", tool="refund", trials=9, error="ConnectionError: payment service down"),
    Finding.of("not_accepted", by="wendy at noon", criteria=("tools",)),
]
FINDINGS: list[tuple[Criterion, Finding]] = [
    (RESPONSE, Finding.of("not_judged", why="no_yardstick")),
    (RESPONSE, Finding.of("not_judged", why="same_trials")),
    (RESPONSE, Finding.of("not_judged", Verdict.NOT_APPLIED, why="not_selected")),
    (RATE, Finding.of("not_judged", Verdict.NOT_MEASURED, why="unchecked")),
    (RATE, Finding.of("not_judged", why="cases_unchecked", cases=("a",))),
    (RATE, Finding.of("not_judged", why="cases_unchecked", cases=("a", "b"))),
    (RATE, Finding.of("not_judged", why="answers_unchecked", cases=("a", "b"))),
    (RESPONSE, Finding.of("not_judged", Verdict.NOT_MEASURED, why="no_trial")),
    (RESPONSE, Finding.of("hard_rule")),
    (RESPONSE, Finding.of("hard_rule", Verdict.BELOW_THRESHOLD, case_id="a", more=0, reason="")),
    (RESPONSE, Finding.of("hard_rule", Verdict.BELOW_THRESHOLD, case_id="a", more=2, reason="deleted an account")),
    (
        RESPONSE,
        not_scored(3, 3, cases=("a",), error="no key"),
    ),
    (
        RESPONSE,
        not_scored(9, 9, cases=("a", "b", "c"), error="no key"),
    ),
    (
        RESPONSE,
        not_scored(80, 120, most=0.1, error="no key"),
    ),
    (LATENCY, Finding.of("trials_lost", Verdict.PASS, by="scoring", lost=1, of=80)),
    (RESPONSE, Finding.of("not_judged", Verdict.NOT_MEASURED, why="applies_to_none")),
    (RESPONSE, Finding.of("not_judged", Verdict.NOT_COMPARED, why="no_longer_applies")),
    (RESPONSE, Finding.of("mean", mean=HeldMean(0.95, 0.9, 1))),
    (RATE, Finding.of("mean", mean=HeldMean(0.5, 0.85, 10))),
    (RESPONSE, Finding.of("mean", mean=HeldMean(0.91, 0.9, 40), chance=0.24)),
    (RESPONSE, Finding.of("mean", mean=HeldMean(0.2, 0.9, 4, before=0.1))),
    (RESPONSE, Finding.of("mean", Verdict.BELOW_THRESHOLD, mean=MISSED, trials=12, error=None)),
    (RESPONSE, Finding.of("mean", Verdict.BELOW_THRESHOLD, mean=MISSED, trials=12, error=0.1)),
    *(
        (
            RATE,
            Finding.of(
                "mean", Verdict.BELOW_THRESHOLD, mean=HeldMean(value, 0.8, 15), trials=45, error=0.06, room=0.63
            ),
        )
        for value in (0.79, 0.73, 0.7013)
    ),
    *(
        (LATENCY, Finding.of("mean", Verdict.BELOW_THRESHOLD, mean=HeldMean(value, 3.0, 12), trials=36, error=0.2))
        for value in (3.05, 3.3)
    ),
    (
        RESPONSE,
        Finding.of(
            "mean", Verdict.BELOW_THRESHOLD, mean=HeldMean(0.85, 0.9, 12), trials=36, error=0.06, base_cases=True
        ),
    ),
    (
        RESPONSE,
        Finding.of(
            "mean", Verdict.BELOW_THRESHOLD, mean=HeldMean(0.7996, 0.8004, 4, before=0.79961), trials=4, error=None
        ),
    ),
    (LATENCY, Finding.of("limit", Verdict.BELOW_THRESHOLD, case_id="a", value=3.0004, limit=3.0, over=1)),
    (LATENCY, Finding.of("limit", q=0.95, value=2.9996, limit=3.0)),
    (
        RATE,
        Finding.of(
            "change",
            Verdict.INCONCLUSIVE,
            change=Change(-0.02, -0.10004, 0.06, 40),
            why="beyond_margin",
            worst=-0.10004,
            margin=0.1,
        ),
    ),
    (
        RESPONSE,
        Finding.of("mean", Verdict.BELOW_THRESHOLD, mean=HeldMean(0.0, 0.9, 12, before=0.0), trials=12, error=0.05),
    ),
    (
        RESPONSE,
        Finding.of("mean", Verdict.BELOW_THRESHOLD, mean=HeldMean(0.1, 0.9, 4, failed=3), trials=12, error=None),
    ),
    (
        RESPONSE,
        Finding.of("mean", Verdict.BELOW_THRESHOLD, mean=HeldMean(0.5, 0.9, 4, measured=0.6), trials=12, error=None),
    ),
    (RESPONSE, Finding.of("mean", Verdict.NOT_MEASURED, mean=MISSED, lost=8)),
    (
        RESPONSE,
        Finding.of("own_thresholds", Verdict.BELOW_THRESHOLD, cases=3, trials=3, missed=HeldMean(0.2, 0.9, 1, "own")),
    ),
    (
        RESPONSE,
        Finding.of(
            "own_thresholds", Verdict.BELOW_THRESHOLD, cases=3, trials=3, more=2, missed=HeldMean(0.2, 0.9, 1, "own")
        ),
    ),
    (RESPONSE, Finding.of("own_thresholds", cases=2)),
    (RESPONSE, Finding.of("own_thresholds", cases=3, excused=1)),
    (RESPONSE, Finding.of("own_thresholds", cases=3, excused=2)),
    (LATENCY, Finding.of("limit")),
    (LATENCY, Finding.of("limit", Verdict.BELOW_THRESHOLD, case_id="a", value=4.5, limit=3.0, over=2)),
    (LATENCY, Finding.of("limit", case_id="a", value=4.5, limit=3.0)),
    (LATENCY, Finding.of("limit", q=0.95, value=2.5, limit=3.0)),
    (LATENCY, Finding.of("limit", q=0.95, value=3.5, limit=3.0)),
    (LATENCY, Finding.of("limit", Verdict.BELOW_THRESHOLD, q=0.95, value=9.0, limit=3.0, before=3.3)),
    (LATENCY, Finding.of("limit", Verdict.BELOW_THRESHOLD, q=0.5, value=9.0, limit=3.0, over=30, trials=40)),
    (LATENCY, Finding.of("limit", Verdict.INCONCLUSIVE, q=0.95, value=9.0, limit=3.0, trials=40, too_few=False)),
    (RATE, Finding.of("change", change=DROP)),
    (RATE, Finding.of("change", change=Change(0.0, None, None, 1))),
    (LATENCY, Finding.of("change", change=Change(0.6, 0.2, 1.0, 40))),
    (LATENCY, Finding.of("change", change=Change(0.6, 0.2, 1.0, 40), only_warns=True)),
    *(
        (RESPONSE, Finding.of("change", change=DROP, only_warns=True, wording=Wording("a", before, "Sun, probably.")))
        for before in ("It is sunny.", "")
    ),
    (RATE, Finding.of("change", Verdict.INCONCLUSIVE, change=DROP, why="suggests_drop")),
    (RATE, Finding.of("change", Verdict.INCONCLUSIVE, change=DROP, why="drifted")),
    (RATE, Finding.of("change", Verdict.INCONCLUSIVE, change=DROP, why="moved_before")),
    (RATE, Finding.of("change", Verdict.INCONCLUSIVE, change=DROP, why="unbounded")),
    (RATE, Finding.of("change", Verdict.INCONCLUSIVE, change=DROP, why="beyond_margin", worst=-0.2, margin=0.1)),
    (RATE, Finding.of("change", Verdict.REGRESSED, change=DROP, broken=("a", "b"))),
    (RATE, Finding.of("cases_fail", cases=(CaseTally("refund", 0, 11, 1, 1),), why="thin_baseline")),
    (RATE, Finding.of("change", Verdict.REGRESSED, change=Change(-0.02, -0.06, 0.02, 40), broken=("a",))),
    (RATE, Finding.of("not_judged", Verdict.INCONCLUSIVE, why="not_tested")),
    (RATE, Finding.of("agent_fails", Verdict.REGRESSED, why="confirmed", p=0.0004)),
]
NOT_COMPARED_BECAUSE: list[Finding] = [
    Finding.of("not_compared", criterion="tone", why="cases_gone", of=4),
    Finding.of("not_compared", criterion="tone", why="removed"),
    Finding.of("not_compared", criterion="pass rate", why="without_others", others=("a", "b")),
]
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
    look = LookTest(1, p, 0.005, 500, {"pass rate": MetricTest(p, p, p)}, 0.005)
    evidence = EvidenceSummary(1, 10, {}, (look,), e_value, e_value, 500.0, ("a",), {}, {"pass rate": rate})
    row = replace(INCONCLUSIVE.criteria[0], criterion=replace(INCONCLUSIVE.criteria[0].criterion, name="pass rate"))
    outcome = Outcome(verdict, ("a",), stage, evidence)  # type: ignore[arg-type]
    change = Change(-0.1, low, 0.09, 10)
    passed, cause = (
        Finding.of("change", change=change),
        Finding.of("passes", compared=10, checked=10, cases=10, uncompared=Uncompared()),
    )
    open_, worse = replace(INCONCLUSIVE, criteria=(row,)), Finding.of("suite_got_worse", criteria=("pass rate",))
    suite = {
        "PASS": replace(open_, verdict=Verdict.PASS, cause=cause, criteria=(_found(row, passed),), finds=0.31),
        "REGRESSION": replace(
            open_,
            verdict=Verdict.REGRESSED,
            cause=worse,
            criteria=(_found(row, Finding.of("change", Verdict.REGRESSED, change=change)),),
        ),
        "INCONCLUSIVE": open_,
    }[verdict]
    return replace(suite, outcome=outcome)


def _found(row: CriterionResult, finding: Finding) -> CriterionResult:
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
    BELOW,
    criteria=(
        replace(
            BELOW.criteria[0],
            findings=(
                Finding.of(
                    "mean", Verdict.BELOW_THRESHOLD, mean=HeldMean(0.733, 0.8, 15), trials=45, error=0.06, room=0.63
                ),
            ),
        ),
    ),
)
"""A threshold is missed by as much as chance would explain."""
TRADE = Finding.of("cases_broke", cases=LOST, gained=GAINED, named=True, gained_named=True)
TRADED = replace(decided("REGRESSION", Stage(StageKind.CASE_RERUNS), e_value=1000.0), cause=TRADE)
"""A suite in which one case broke and others improved."""


def title(kind: str) -> str:
    """``mean_misses`` → ``MeanMisses``."""
    return "".join(part.title() for part in kind.split("_"))


MOST = 2
"""Values of one kind that a field is tried with."""


def ones(kinds: Iterable[KindName]) -> Iterator[Finding]:
    """Findings of each kind, with ones wherever they have a number."""
    for kind in kinds:
        fields = {name: field.type for name, field in KINDS[kind].fields.items()}
        for verdict in KINDS[kind].verdicts:
            yield from (Finding.of(kind, verdict, **data) for data in _made(fields))


def _made(hints: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    fields = {name: list(_values(hint)) for name, hint in hints.items()}
    for n in range(max(map(len, fields.values()), default=1)):
        yield {name: values[n % len(values)] for name, values in fields.items()}


def _values(hint: Any) -> Iterator[Any]:
    origin, args = get_origin(hint), get_args(hint)
    if isinstance(hint, Nested):
        found = list(ones(hint.kinds))
        yield from ((one,) for one in found[:MOST]) if hint.many else found
    elif origin in (Union, UnionType):
        yield from chain.from_iterable(map(_values, args))
    elif origin is tuple:
        found = product(*(islice(_values(one), MOST) for one in (args[:1] if args[-1] is Ellipsis else args)))
        yield from ((one[0],) if args[-1] is Ellipsis else one for one in found)
    elif origin is Literal:
        yield from args
    elif isinstance(hint, type) and issubclass(hint, Struct):
        yield from (hint(**data) for data in _made(get_type_hints(hint)))
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
    answered = (
        Finding.of("answered_by", what="model", now=("m-2",), before=("m-1",)),
        Finding.of("answered_by", what="system", now=("fp_2",), before=("fp_1",)),
    )
    itself = BaselineInfo(None, missing="it is of this commit", of_itself=True)
    unlike = replace(REGRESSED, reference="anchor")
    yield "nothing is wrong", PASSED
    yield "accepted", ACCEPTED
    shared = replace(decided("PASS", Stage(StageKind.CERTIFIED, 1)), course=Course(1, 36, alpha=0.02, suites=4))
    yield "one of four suites", shared
    yield "one of four suites, in a part of a matrix", replace(shared, course=replace(shared.course, family=3))
    yield (
        "no baseline, crashes, part of the cases",
        replace(INCONCLUSIVE, has_baseline=False, crashes=crashed, scope="24 of 120 cases were run: tag smoke"),
    )
    yield (
        "crashes of which a warning tells, too",
        replace(INCONCLUSIVE, crashes=CrashFacts(("a",), 1, 7, 0, 0, "crash: x")),
    )
    yield (
        "another reference decided",
        replace(PASSED, verdict=Verdict.REGRESSED, further=(unlike,), decided_by="anchor"),
    )
    yield "a baseline of this very commit", replace(INCONCLUSIVE, has_baseline=False, baseline=itself)
    yield (
        "measured before, and it fell short",
        replace(
            PASSED,
            warnings=(
                Finding.of("measured_before", verdicts=(Verdict.PASS, Verdict.REGRESSED), total=2, fingerprinted=True),
            ),
        ),
    )
    yield (
        "another model and system, which may be why",
        replace(REGRESSED, changes=(*answered, Finding.of("cases_changed", how="new", cases=("a",)))),
    )
    yield (
        "another model and system, and no harm",
        replace(PASSED, changes=(Finding.of("cases_changed", how="new", cases=("a",)), *answered)),
    )


def _proofs() -> Iterator[tuple[str, SuiteResult]]:
    course = Course(
        *(1, 40, 2, 3, 5, 52, 4), fixed_runs=200, stopped="the clock", reruns=8, baseline_reruns=4, narrowing=40
    )
    reruns = decided("REGRESSION", Stage(StageKind.CASE_RERUNS), e_value=1000.0)
    broke = Finding.of("cases_broke", cases=(CaseTally("a", 0, 7, 5, 5),), of=40)
    again = RepeatsTest(1, 0.0004, 0.0016, 5, 6, 15, 24, 25)
    repeats = decided("REGRESSION", Stage(StageKind.REPEATS, 1))
    yield "a case broke, by reruns", replace(reruns, cause=broke)
    yield "a proof, and what stopped the run", replace(reruns, course=course)
    yield "a proof by repeats", with_evidence(repeats, repeats=(again,))
    yield "repeats that prove nothing", with_evidence(repeats, repeats=(replace(again, p=0.2),))
    tests = {"pass rate": MetricTest(0.003, 0.9, 0.003), "other": MetricTest(0.001, 0.9, 0.001)}
    look = LookTest(1, 0.001, 0.005, 500, tests, 0.005)
    both = with_evidence(replace(reruns, cause=broke), looks=(look,))
    assert both.outcome is not None
    by_look = replace(both.outcome, stage=Stage(StageKind.SUITE_LOOK, 1))
    yield "two proofs, the cases first", both
    yield "two proofs, the cases at a look", replace(both, outcome=by_look)
    yield (
        "two proofs, the suite first",
        replace(both, cause=Finding.of("suite_got_worse", criteria=("pass rate", "other")), outcome=by_look),
    )
    for way in Direction:
        at_look = decided("REGRESSION", Stage(StageKind.SUITE_LOOK, 1), p=0.0001)
        row = replace(at_look.criteria[0], criterion=replace(at_look.criteria[0].criterion, direction=way))
        yield f"the mean went the wrong way, better is {way.value}", replace(at_look, criteria=(row,))
    short, fell = (
        Finding.of("mean", Verdict.BELOW_THRESHOLD, mean=HeldMean(0.0, 0.8, 12), trials=12, error=0.05),
        Finding.of("change", Verdict.REGRESSED, change=Change(-1.0, -1.0, -0.88, 12)),
    )
    held = Criterion("trajectory", "trajectory", Scale.UNIT, threshold=0.8)
    row = CriterionResult(held, Verdict.REGRESSED, (short, fell))
    worse = Finding.of(
        "suite_got_worse", criteria=("trajectory",), perhaps_drift=True, missed=("trajectory",), drift_moot=True
    )
    yield "a threshold that is missed beside a drop", replace(REGRESSED, cause=worse, criteria=(row,))
    yield (
        "a drop whose drift was not looked for",
        replace(REGRESSED, cause=worse.but(drift_moot=False), criteria=(row,)),
    )
    always = Course(*(1, 12, 1, 10, 10, 76, 30), reruns=10, baseline_reruns=6, confirming=48, baseline_confirming=24)
    fails = replace(
        reruns,
        cause=Finding.of("cases_broke", cases=(CaseTally("c3", 0, 11, 11, 11),), of=12),
        course=always,
        crashes=CrashFacts(("c3",), 23, 23, 0, 23, "crash: x"),
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
    for name, error in (("an outage", "crash: boom"), ("a wrong model name", "setup: no model gpt-99")):
        down = Finding.of("outage", cases=12, of=12, compared=True, error=error, setup=error.startswith("setup"))
        yield name, replace(end, verdict=Verdict.ERROR, cause=down, course=Course(1, 12, runs=12))
    certified = decided("PASS", Stage(StageKind.CERTIFIED, 1), low=-0.05)
    for excluded, n in ((-0.12, 40), (-0.05, 40), (-0.12, 9)):
        yield (
            f"a pass over {n} cases, {excluded} ruled out",
            replace(
                with_rate(certified, low=-0.05, excluded=excluded),
                verdict=Verdict.PASS,
                cause=Finding.of("passes", compared=n, checked=n, cases=n, uncompared=Uncompared()),
                course=Course(1, n, runs=n),
            ),
        )
    passed = replace(
        decided("PASS", Stage(StageKind.CERTIFIED, 1)),
        verdict=Verdict.PASS,
        cause=Finding.of("not_judged", Verdict.INCONCLUSIVE, why="nothing_yet"),
    )
    for n in (4, 1):
        yield (
            f"a thin baseline of {n} in ten cases",
            replace(passed, warnings=(Finding.of("thin_baseline", cases=n, wanted=5, least=1, typical=5),)),
        )
    yield (
        "a thin baseline of few of many cases",
        replace(
            passed,
            warnings=(Finding.of("thin_baseline", cases=1, wanted=5, least=1, typical=5),),
            outcome=None,
            cases=PASSED.cases,
        ),
    )
    yield (
        "a case never passes, and the baseline is thin",
        replace(
            passed,
            verdict=Verdict.INCONCLUSIVE,
            cause=Finding.of("cases_fail", cases=(CaseTally("c03", 0, 13, 1, 1),), why="thin_baseline"),
            warnings=(Finding.of("thin_baseline", cases=10, wanted=5, least=1, blind=True),),
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
    yield "not shown fixed", replace(LOST_ALONE, cause=NOT_SHOWN_FIXED)
    yield "not shown fixed, and a suite is gone", replace(LOST_ALONE, cause=NOT_SHOWN_AND_GONE)
    yield "a loss that cannot be accepted", accepted_by(REGRESSED, "ann accepted this on 2026-11-02")
    yield "a threshold is missed", BELOW
    yield "a threshold is missed narrowly", NARROW
    yield (
        "no trial passes",
        replace(NO_BASELINE, verdict=Verdict.BELOW_THRESHOLD, cause=Finding.of("nothing_passes", trials=3)),
    )
    yield (
        "the same agent",
        replace(NO_BASELINE, cause=Finding.of("same_agent", commit="0123456789abcdef"), has_baseline=True),
    )
    yield "a shard", replace(INCONCLUSIVE, cause=Finding.of("shard", shard=1, of=2, trials=36, cases=12))
    yield "not measured", FAILED
    yield (
        "not measured, for the budget",
        replace(FAILED, course=Course(stopped="the budget of 5 minutes is spent")),
    )
    gone = replace(INCONCLUSIVE.criteria[0], not_compared=Finding.of("not_compared", criterion="tone", why="removed"))
    yield "not compared: a criterion and cases", NOT_COMPARED
    for gap, criteria in (
        (Finding.of("not_compared", criterion="pass_rate", why="removed"), (gone,)),
        (
            Finding.of("not_compared", criterion="pass_rate", why="changed"),
            (replace(gone, not_compared=Finding.of("not_compared", criterion="pass_rate", why="changed")),),
        ),
        (Finding.of("cases_changed", Verdict.NOT_COMPARED, how="all", of=24), ()),
        (Finding.of("stated", text="the suite `evals` is gone"), ()),
    ):
        bare = replace(
            PASSED, verdict=Verdict.NOT_COMPARED, cause=Finding.of("incomplete", gaps=(gap,)), criteria=criteria
        )
        yield f"not compared: {title(gap.kind)}, {len(criteria)} rows", bare
    for problem in (
        Finding.of("agent_fails", failed=3, why="new", cases=1),
        Finding.of("agent_fails", failed=3, why="gone", trials=24),
        Finding.of("trials_lost", lost=3, of=80, decide=True),
        Finding.of("collapsed", criterion="rubric", cases=2, trials=6, copies=False),
        Finding.of("collapsed", criterion="rubric", cases=12, trials=36, copies=True),
    ):
        yield f"could not decide: {title(problem.kind)}", replace(PASSED, verdict=Verdict.ERROR, cause=problem)
    for noise in (
        Finding.of("cases_fail", cases=LOST, why="base_fails_too"),
        Finding.of("cases_fail", cases=LOST, why="copies"),
    ):
        yield f"noise: {title(noise.kind)}", replace(end, cause=noise)
    yield "a criterion is gone, and another is open", replace(INCONCLUSIVE, criteria=(*INCONCLUSIVE.criteria, gone))
    dear = Finding.of("change", change=Change(0.782, 0.448, 1.193, 40), only_warns=True)
    cost = CriterionResult(
        *(COST, Verdict.PASS, (dear,), estimate(0.0435, 0.03, 0.06), estimate(0.0843, 0.02, 0.2)),
        estimate(0.782, 0.448, 1.193),
        compared=(0.0843, 0.0435),
    )
    yield "a typical case is dearer, all are cheaper", replace(PASSED, criteria=(cost,))
    new = replace(cost, candidate=estimate(0.4, 0.3, 0.6, 44))
    yield "a typical case is dearer, the compared ones cheaper", replace(PASSED, criteria=(new,))
    yield "a typical case is dearer, and so are all", replace(PASSED, criteria=(replace(new, compared=(0.08, 0.15)),))
    open_ = replace(
        cost,
        verdict=Verdict.INCONCLUSIVE,
        findings=(
            Finding.of(
                "change",
                Verdict.INCONCLUSIVE,
                change=Change(0.1, -0.05, 0.3, 40),
                why="beyond_margin",
                worst=0.3,
                margin=0.2,
            ),
        ),
    )
    yield "a cost is open", replace(INCONCLUSIVE, criteria=(open_,))
    two = (Finding.of("mean", mean=MISSED), Finding.of("change", Verdict.INCONCLUSIVE, change=DROP, why="unbounded"))
    for name, findings, verdict in (
        ("two findings, one of which decides", two, Verdict.INCONCLUSIVE),
        (
            "not compared",
            (
                Finding.of("not_compared", criterion="tone", why="changed"),
                Finding.of("change", Verdict.REGRESSED, change=DROP),
            ),
            Verdict.NOT_COMPARED,
        ),
        ("excused", (Finding.of("mean", mean=HeldMean(0.0, 0.9, 3, before=0.0)),), Verdict.PASS),
        ("failures that count", (Finding.of("mean", mean=HeldMean(0.917, 0.8, 12, failed=1)),), Verdict.PASS),
    ):
        row = CriterionResult(HELD, verdict, findings, estimate(0.2, 0.1, 0.3))
        yield name, replace(INCONCLUSIVE, criteria=(row,))
    live = tuple(LiveCase(f"c{i}", 2 if i < 5 else 1, 40, "request 3 differs" * (i < 15)) for i in range(16))
    yield "replayed", replace(PASSED, replayed=ReplayedShare(100, 84, 21, 640, 412, 1.25, live))
    yield "replayed, and all alike", replace(PASSED, replayed=ReplayedShare(100, 100, 0, 0, 500))
