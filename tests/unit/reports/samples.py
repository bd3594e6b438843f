"""Results as the pipeline makes them, one per kind of verdict; shared by all report tests and the golden files."""

from __future__ import annotations

from msgspec.structs import replace

from gate.errors import ExitCode
from gate.model import (
    BaselineInfo,
    CaseResult,
    CaseStatus,
    Criterion,
    CriterionResult,
    Direction,
    Estimate,
    Location,
    Result,
    Scale,
    SuiteResult,
    ToolCall,
    ToolTime,
    Verdict,
    worst,
)
from gate.model.course import Course, LiveCase, ReplayedShare
from gate.model.finding import CaseTally, Change, Finding, HeldMean, Uncompared
from gate.model.results import accepted_by
from tests.unit.decision.records import not_scored

from .hostile import CORPUS

PASS_RATE = Criterion("pass_rate", "pass_rate", Scale.BINARY, margin=0.1)
TRAJECTORY = Criterion(
    "tool_trajectory_avg_score", "tool_trajectory_avg_score", Scale.UNIT, threshold=0.9, margin=0.05, pass_threshold=0.9
)
RESPONSE = Criterion("response_match_score", "response_match_score", Scale.UNIT, threshold=0.6, margin=0.05)
LATENCY = Criterion(
    "latency",
    "latency",
    Scale.SECONDS,
    Direction.LOWER,
    limit=10.0,
    quantiles=((0.95, 3.0),),
    margin=0.3,
    blocks_regression=False,
)

COST = Criterion("cost", "cost", Scale.USD, Direction.LOWER, margin=0.2, blocking=False, blocks_regression=False)


def estimate(value: float, low: float, high: float, n: int = 40, trials: int = 0) -> Estimate:
    return Estimate(value, low, high, n, trials or n)


def measured(
    criterion: Criterion,
    verdict: Verdict,
    findings: tuple[Finding, ...],
    now: Estimate,
    before: Estimate | None,
    change: Estimate | None,
    **more: object,
) -> CriterionResult:
    return replace(CriterionResult(criterion, verdict, findings, now, before, change), **more)


LOOKUP = ToolCall("lookup_order", {"order_id": "A-1001"})
REFUND = ToolCall("issue_refund", {"order_id": "A-1001", "amount": 20.5, "reason": "arrived late"})
ESCALATE = ToolCall("escalate", {"queue": "humans"}, error="queue is closed")
NOTIFY = ToolCall("", category="notification")

BASELINE = BaselineInfo("4be1c0ffee5d7a90b3c8", 2, 5.0, 1, "branch gate-baselines")
OK_CASES = tuple(
    CaseResult(f"order-status-{i:02}", CaseStatus.OK, Location("evals/support.yaml", 10 + 4 * i), 1, 1, 0, 5, 5)
    for i in range(35)
)
FLAKY = CaseResult(
    "small-talk",
    CaseStatus.FLAKY,
    Location("evals/support.yaml", 160),
    1,
    2,
    0,
    3,
    5,
    1.1,
    ("response_match_score: 0% of the expected words were said",),
    expected_text=("It is sunny in Paris.",),
    actual_text=("No idea.",),
)
BROKEN = (
    CaseResult(
        "refund-late-order",
        CaseStatus.BROKEN,
        Location("evals/support.yaml", 170),
        0,
        4,
        0,
        5,
        5,
        412.0,
        ("issue_refund was expected and never called", "escalate was called and not expected"),
        expected=((LOOKUP, REFUND, NOTIFY),),
        actual=((LOOKUP, ESCALATE),),
        reference=((LOOKUP, REFUND),),
        duration=6.25,
    ),
    CaseResult(
        "refund-wrong-item",
        CaseStatus.BROKEN,
        Location("evals/support.yaml", 181),
        0,
        3,
        1,
        5,
        5,
        96.0,
        ("issue_refund got amount=2050, expected amount=20.5",),
        expected=((LOOKUP,), (REFUND,)),
        actual=((LOOKUP,), (replace(REFUND, args={"order_id": "A-1001", "amount": 2050, "reason": "wrong item"}),)),
    ),
    CaseResult(
        "refund-twice",
        CaseStatus.SUSPECT,
        Location("evals/support.yaml", 195),
        1,
        3,
        0,
        5,
        5,
        6.2,
        ("called issue_refund twice",),
        expected=(None,),
        actual=((LOOKUP, REFUND, REFUND),),
        reference=((LOOKUP, REFUND),),
    ),
    CaseResult("escalate-angry", CaseStatus.SUSPECT, None, 1, 2, 0, 5, 5, 2.4, ("no call to escalate",)),
)
COMMAND = "gate run --config gate.yaml --baseline 4be1c0ffee5d"

PASSED = SuiteResult(
    "support",
    Verdict.PASS,
    Finding.of("passes", compared=40, checked=40, cases=40, uncompared=Uncompared()),
    (
        measured(
            PASS_RATE,
            Verdict.PASS,
            (Finding.of("change", change=Change(-0.005, -0.041, 0.031, 40)),),
            estimate(0.925, 0.801, 0.974, 40, 44),
            estimate(0.93, 0.84, 0.97, 40, 200),
            estimate(-0.005, -0.041, 0.031),
            p_value=0.61,
            detectable=0.09,
        ),
        measured(
            TRAJECTORY,
            Verdict.PASS,
            (Finding.of("mean", mean=HeldMean(0.941, 0.9, 40)),),
            estimate(0.941, 0.89, 0.972),
            estimate(0.938, 0.91, 0.96, 40, 200),
            estimate(0.003, -0.02, 0.026),
        ),
        measured(
            LATENCY,
            Verdict.PASS,
            (Finding.of("limit"), Finding.of("limit", q=0.95, value=2.71, limit=3.0)),
            estimate(1.84, 1.61, 2.07),
            estimate(1.7, 1.6, 1.8, 40, 200),
            estimate(0.082, -0.03, 0.21),
            quantiles=((0.95, estimate(2.71, 2.4, 2.98)),),
        ),
        measured(
            COST,
            Verdict.PASS,
            (Finding.of("change", change=Change(0.0165, -0.01, 0.043, 40)),),
            estimate(0.0123, 0.0119, 0.0127),
            estimate(0.0121, 0.0118, 0.0124),
            estimate(0.0165, -0.01, 0.043),
        ),
    ),
    (*OK_CASES, FLAKY),
    BASELINE,
    course=Course(1, 36, 1, 1, 1, runs=37, fixed_runs=180),
    agent_runs=37,
    cost_usd=0.4551,
    duration=12.4,
    commit="9d1fa2b07c55",
    seed=17,
)
BROKE = (CaseTally("refund-late-order", 0, 4, 5, 5), CaseTally("refund-wrong-item", 0, 3, 5, 5))
REGRESSED = replace(
    PASSED,
    verdict=Verdict.REGRESSED,
    cause=Finding.of("cases_broke", cases=BROKE, of=40),
    criteria=(
        measured(
            PASS_RATE,
            Verdict.REGRESSED,
            (
                Finding.of(
                    "change",
                    Verdict.REGRESSED,
                    change=Change(-0.125, -0.2, -0.05, 40),
                    broken=("refund-late-order", "refund-wrong-item"),
                ),
            ),
            estimate(0.8, 0.652, 0.895, 40, 53),
            estimate(0.925, 0.84, 0.97, 40, 200),
            estimate(-0.125, -0.2, -0.05),
            p_value=0.0004,
            spent=0.45,
        ),
        measured(
            TRAJECTORY,
            Verdict.BELOW_THRESHOLD,
            (Finding.of("mean", Verdict.BELOW_THRESHOLD, mean=HeldMean(0.81, 0.9, 40), trials=40, error=0.031),),
            estimate(0.81, 0.74, 0.871),
            estimate(0.938, 0.91, 0.96, 40, 200),
            estimate(-0.128, -0.19, -0.066),
            not_measured=1,
        ),
        PASSED.criteria[2],
        replace(
            PASSED.criteria[3],
            verdict=Verdict.INCONCLUSIVE,
            findings=(
                Finding.of(
                    "change",
                    Verdict.INCONCLUSIVE,
                    change=Change(0.24, 0.18, 0.3, 40),
                    why="beyond_margin",
                    worst=0.3,
                    margin=0.2,
                ),
            ),
        ),
    ),
    cases=(
        *OK_CASES,
        FLAKY,
        *BROKEN,
        CaseResult("vip", CaseStatus.NEW, None, 1, 1),
        CaseResult("old", CaseStatus.REMOVED),
    ),
    course=Course(1, 40, 5, 2, 3, runs=53, fixed_runs=200, reruns=13),
    changes=(
        Finding.of("cases_changed", how="new", cases=("vip",)),
        Finding.of("cases_changed", how="removed", cases=("old",)),
        Finding.of(
            "stated", text="response_match_score: threshold loosened from 0.6 to 0.5 (takes effect after merge)"
        ),
    ),
    warnings=(Finding.of("thin_baseline", cases=3, wanted=5, least=1),),
    agent_runs=53,
    errors=1,
    judge_cost_usd=0.101,
    duration=131,
    below=("tool_trajectory_avg_score",),
    if_accepted=Verdict.BELOW_THRESHOLD,
)
BELOW = replace(
    PASSED,
    verdict=Verdict.BELOW_THRESHOLD,
    cause=Finding.of("criteria_decide", criteria=("tool_trajectory_avg_score",)),
    criteria=(REGRESSED.criteria[1],),
    cases=(replace(BROKEN[0], status=CaseStatus.FAILED, e_value=None), FLAKY),
    below=("tool_trajectory_avg_score",),
    if_accepted=Verdict.BELOW_THRESHOLD,
)
INCONCLUSIVE = replace(
    PASSED,
    verdict=Verdict.INCONCLUSIVE,
    cause=Finding.of("criteria_decide", Verdict.INCONCLUSIVE, criteria=("pass_rate",), suspects=()),
    criteria=(
        measured(
            PASS_RATE,
            Verdict.INCONCLUSIVE,
            (
                Finding.of(
                    "change",
                    Verdict.INCONCLUSIVE,
                    change=Change(-0.1, -0.29, 0.09, 10),
                    why="beyond_margin",
                    worst=-0.29,
                    margin=0.1,
                ),
            ),
            estimate(0.8, 0.48, 0.95, 10, 30),
            estimate(0.9, 0.7, 0.97, 10, 50),
            estimate(-0.1, -0.29, 0.09, 10),
            p_value=0.14,
            detectable=0.31,
        ),
    ),
    cases=(*OK_CASES[:9], FLAKY),
)
NO_BASELINE = replace(
    PASSED,
    cause=Finding.of("passes", compared=0, checked=3, cases=3, uncompared=Uncompared()),
    has_baseline=False,
    criteria=(replace(PASSED.criteria[1], baseline=None, change=None),),
    cases=tuple(replace(c, status=CaseStatus.NEW, baseline_passed=0, baseline_trials=0) for c in OK_CASES[:3]),
    baseline=BaselineInfo(None, missing="no baseline of 'support' at main or its last 50 ancestors", none_yet=True),
    cost_usd=None,
    warnings=(Finding.of("stated", text="no baseline: only thresholds were judged"),),
)
FAILED = replace(
    NO_BASELINE,
    verdict=Verdict.ERROR,
    cause=Finding.of(
        "trials_lost", lost=12, of=36, most=0.1, error="unreachable: http://localhost:8000 refused the connection"
    ),
    criteria=(
        CriterionResult(
            TRAJECTORY,
            Verdict.NOT_MEASURED,
            (not_scored(12, 36, most=0.1, error="judge is down"),),
            not_measured=12,
        ),
        CriterionResult(
            RESPONSE,
            Verdict.NOT_MEASURED,
            (
                Finding.of(
                    "trials_lost",
                    Verdict.NOT_MEASURED,
                    by="scoring",
                    lost=3,
                    of=3,
                    cases=("order-status-01",),
                    error="division by zero",
                ),
            ),
        ),
    ),
    cases=(
        CaseResult(
            "order-status-01",
            CaseStatus.ERROR,
            OK_CASES[1].location,
            errors=3,
            reasons=("unreachable: connection refused",),
        ),
    ),
    errors=12,
)
LOST = replace(
    REGRESSED,
    criteria=(REGRESSED.criteria[0], *PASSED.criteria[1:]),
    below=(),
    if_accepted=Verdict.PASS,
)
"""A loss that somebody may accept: no threshold is missed."""
ACCEPTED = accepted_by(LOST, "ann accepted this on 2026-11-02 with the label gate:accept")
TONE = replace(PASS_RATE, name="tone", metric="rubric", scale=Scale.UNIT)
NOT_COMPARED = replace(
    PASSED,
    verdict=Verdict.NOT_COMPARED,
    cause=Finding.of(
        "incomplete",
        gaps=(
            Finding.of("not_compared", criterion="tone", why="changed"),
            Finding.of("cases_changed", Verdict.NOT_COMPARED, how="removed", cases=("old-1", "old-2", "old-3"), of=24),
        ),
    ),
    criteria=(
        replace(
            PASSED.criteria[0],
            verdict=Verdict.NOT_COMPARED,
            findings=(
                Finding.of("not_compared", criterion="pass rate", why="without_others", others=("tone",)),
                *PASSED.criteria[0].findings,
            ),
            not_compared=Finding.of("not_compared", criterion="pass rate", why="without_others", others=("tone",)),
        ),
        *PASSED.criteria[1:],
        CriterionResult(
            TONE,
            Verdict.NOT_COMPARED,
            (Finding.of("not_compared", criterion="tone", why="changed"),),
            estimate(0.9, 0.8, 0.95, 37),
            not_compared=Finding.of("not_compared", criterion="tone", why="changed"),
            checked=False,
        ),
    ),
    changes=(
        Finding.of("cases_changed", how="removed", cases=("old-1", "old-2", "old-3")),
        Finding.of("not_compared", criterion="tone", why="changed"),
    ),
)


def hostile(texts: tuple[str, ...] = CORPUS) -> SuiteResult:
    """Every field that may come from outside holds one of the texts."""

    def pick(index: int) -> str:
        return texts[index % len(texts)]

    def call(i: int) -> ToolCall:
        return ToolCall(pick(i), {pick(i + 1): [pick(i + 2), {pick(i + 3): None}]}, error=pick(i + 4))

    cases = tuple(
        CaseResult(
            f"{pick(i)}",
            list(CaseStatus)[i % len(CaseStatus)],
            Location(pick(i + 1), i),
            i % 3,
            3,
            i % 2,
            3,
            3,
            float(i),
            (pick(i), pick(i + 1)),
            expected=((call(i), call(i + 1)), None),
            actual=((call(i + 2),), (call(i),)),
            reference=((call(i + 3),), (call(i + 1),)),
            expected_text=(pick(i), None),
            actual_text=(pick(i + 1), pick(i + 2)),
            scores={pick(i): (0.5, None)},
            quarantine=pick(i + 5),
            improvement=float(i),
            tags=(pick(i + 7),),
            log=pick(i + 6),
            difference=pick(i + 8),
        )
        for i in range(len(texts))
    )
    criteria = tuple(
        CriterionResult(
            Criterion(text, text, list(Scale)[i % len(Scale)], threshold=0.5),
            list(Verdict)[i % len(Verdict)],
            (Finding.of("hard_rule", Verdict.BELOW_THRESHOLD, case_id=text, more=0, reason=text),),
            estimate(0.4, 0.3, 0.5),
            estimate(0.6, 0.5, 0.7),
            estimate(-0.2, -0.3, -0.1),
            dimensions={text: (estimate(0.4, 0.3, 0.5), None), pick(i + 1): (None, estimate(0.4, 0.3, 0.5))},
        )
        for i, text in enumerate(texts)
    )
    return SuiteResult(
        pick(0),
        Verdict.REGRESSED,
        Finding.of("not_run", cases=(pick(1),)),
        criteria,
        cases,
        BaselineInfo(pick(2), 1, 5, 2, pick(3)),
        course=Course(stopped=pick(2)),
        changes=tuple(Finding.of("stated", text=text) for text in texts),
        warnings=tuple(Finding.of("stated", text=text) for text in texts),
        commit=pick(4),
        subject=pick(6),
        branch=pick(7),
        accepted=pick(5),
        expired=pick(8),
        scope=pick(9),
        if_accepted=Verdict.BELOW_THRESHOLD,
        tools=tuple(ToolTime(text, 2, 1, 0.5, 0.5) for text in texts),
        replayed=ReplayedShare(9, 1, 8, 8, 8, live=tuple(LiveCase(text, 1, 1, text) for text in texts)),
    )


def result(*suites: SuiteResult, command: str = COMMAND) -> Result:
    """A whole result around suites, with the exit code that their verdicts lead to."""
    codes = {
        Verdict.PASS: ExitCode.PASS,
        Verdict.INCONCLUSIVE: ExitCode.PASS,
        Verdict.NOT_MEASURED: ExitCode.NOT_MEASURED,
        Verdict.ERROR: ExitCode.NOT_MEASURED,
    }
    verdict = worst([s.standing for s in suites]) if suites else Verdict.ERROR
    return Result(
        suites,
        verdict,
        codes.get(verdict, ExitCode.FAILED),
        command,
        "1.0.0",
        sum(s.duration for s in suites),
        ("gate.jsonl",),
    )


RESULTS = {
    "pass": result(PASSED),
    "regressed": result(REGRESSED),
    "below_threshold": result(BELOW),
    "not_compared": result(NOT_COMPARED),
    "inconclusive": result(INCONCLUSIVE),
    "no_baseline": result(NO_BASELINE),
    "error": result(FAILED),
    "two_suites": result(PASSED, replace(REGRESSED, suite_id="evals/refunds")),
    "hostile": result(hostile(), command="gate run --config 'a`b' @everyone"),
}
