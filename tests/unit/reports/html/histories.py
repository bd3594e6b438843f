"""Histories for the pages: one with everything that a dashboard shows, and what may harm it."""

from __future__ import annotations

from functools import cache
from random import Random

from msgspec.structs import replace

from gate.histories.runs import reduced
from gate.histories.trends import Histories, PastRun, SuiteHistory, Unread, suite_history
from gate.model import Case, Criterion, Direction, Invocation, Scale, Score, Trial, Usage
from gate.records.keys import suite_key
from gate.reports.html.site import site
from tests.unit.histories.drawn import START, WEEK, in_numbers

TAGS = ("refund", "order", "shipping", "smalltalk")
CRITERIA = (
    Criterion("tool_trajectory_avg_score", "tool_trajectory_avg_score", Scale.UNIT, threshold=0.8, fingerprint="t"),
    Criterion("response_match_score", "response_match_score", Scale.UNIT, threshold=0.6, fingerprint="r"),
    Criterion("helpfulness", "rubric", Scale.LIKERT, threshold=3.5, fingerprint="h1"),
    Criterion("latency", "latency", Scale.SECONDS, Direction.LOWER, blocking=False, fingerprint="l"),
)


def busy_run(number: int, *, runs: int, suite: int = 0, cases: int = 60) -> PastRun:
    """A tag breaks at two thirds, helpfulness declines slowly, latency rises at a third; a judge changed early."""
    rng = Random(f"{suite}:{number}")
    criteria = list(CRITERIA)
    if number < runs // 6:
        criteria[2] = replace(criteria[2], fingerprint="h0")
    ids = [f"{TAGS[n % 4]}/case-{n:03d}" for n in range(cases)]
    trials = []
    for n, case_id in enumerate(ids):
        broken = number >= 2 * runs // 3 and TAGS[n % 4] == "refund"
        rate = 0.35 if broken else (0.85, 0.995, 1.0)[n % 3]
        for trial in range(1, 6):
            good = rng.random() < rate
            helpful = min(5.0, max(3.5, rng.gauss(4.4 - 0.72 * number / runs, 0.25)))
            scores = {
                "tool_trajectory_avg_score": Score(1.0 if good else 0.25),
                "response_match_score": Score(round(min(1.0, max(0.6, rng.gauss(0.78, 0.06))), 3)),
                "helpfulness": Score(round(helpful, 2) if number >= runs // 6 else 3.9),
                "latency": Score(rng.gauss(1.6 if number < runs // 3 else 2.1, 0.2)),
            }
            usage = Usage(1100, 240, cost_usd=rng.uniform(0.009, 0.011))
            trials.append(Trial(case_id, trial, scores=scores, invocations=(Invocation(usage=usage),)))
    verdict = "regressed" if number == 2 * runs // 3 else "inconclusive" if number % 9 == 4 else "pass"
    return PastRun(
        f"{suite}-{number}",
        START + number * WEEK / 7,
        reduced(map(in_numbers, trials), tuple(criteria), {case_id: Case(case_id, ()) for case_id in ids}),
        tuple(criteria),
        dict.fromkeys(ids, "c"),
        {case_id: frozenset({TAGS[n % 4], "smoke"} if n % 7 == 0 else {TAGS[n % 4]}) for n, case_id in enumerate(ids)},
        f"{number * 7919 + 0xA5F1:07x}{number:033x}",
        agent=f"{(number // 5) * 104729 + 0xBEEF:012x}",
        verdict=verdict,
        releases=(f"v1.{number // 10}.0",) if number % 10 == 9 else (),
    )


@cache
def busy(runs: int = 36, suite: str = "support/evals.yaml", cases: int = 60) -> SuiteHistory:
    return suite_history(suite, [busy_run(number, runs=runs, cases=cases) for number in range(runs)])


def shown(
    *suites: SuiteHistory,
    unread: tuple[Unread, ...] = (),
    source: str = "the stored baselines",
    commits: str = "",
    made: float = START + WEEK,
) -> dict[str, str]:
    """The files of a dashboard of these suites."""
    return site(Histories(suites, unread, source), commits=commits, made=made)


def page_of(suite: SuiteHistory, commits: str = "") -> str:
    return shown(suite, commits=commits)[page_name(suite.suite_id)]


def page_name(suite_id: str) -> str:
    return f"{suite_key(suite_id)}.html"
