"""Trades: what is one, that it is a loss like any other, and what recorded agents show."""

from __future__ import annotations

import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from gate.decision import CONCURRENT, Settings, exit_code
from gate.decision.causes import most_suspect
from gate.errors import ExitCode
from gate.model import (
    Case,
    CaseResult,
    CaseStatus,
    Criterion,
    Scale,
    Score,
    Side,
    SuiteResult,
    Trial,
    Verdict,
    accepted_by,
)
from gate.model.finding import CaseTally
from gate.reports.cases import worse_cases
from tests.unit.decision.records import TRAJECTORY, by_name, cases, judge, trial

SUITE = cases(40)
IDS = [case.id for case in SUITE]
LOST, GAINED = set(IDS[:2]), set(IDS[10:14])


def epochs(rates: Mapping[str, float], n: int) -> list[Trial]:
    """``n`` epochs, one a round; a rate of a half alternates."""
    return [
        trial(
            case_id,
            k,
            round=k,
            trajectory=float(k % 2 < 2 * rates[case_id]) if rates[case_id] == 0.5 else rates[case_id],
        )
        for k in range(1, n + 1)
        for case_id in IDS
    ]


def decided(
    lost: set[str] = LOST, gained: set[str] = GAINED, *, settings: Settings | None = None, n: int = 5
) -> SuiteResult:
    before = {c: 0.0 if c in gained else 1.0 for c in IDS}
    now = {c: 0.0 if c in lost else 1.0 for c in IDS}
    found = settings or Settings(exact_epochs=n)
    return judge(SUITE, [TRAJECTORY], epochs(now, n), epochs(before, 5), settings=found)


def test_a_change_that_breaks_some_cases_and_improves_more_is_a_trade() -> None:
    found = decided()
    assert found.verdict is Verdict.REGRESSED
    assert found.trade is not None
    assert {one.case_id for one in found.cause["cases"]} == LOST
    assert {one.case_id for one in found.cause["gained"]} == GAINED
    assert found.cause["cases"][0] == CaseTally("case-00", 0, 5, 5, 5)
    assert exit_code([found], Settings()) is ExitCode.FAILED


def test_a_lower_mean_is_no_trade_whatever_single_cases_gained() -> None:
    found = decided(lost=set(IDS[:6]), gained=set(IDS[10:13]))
    assert found.trade is None
    assert found.cause.kind == "cases_broke"


def test_broken_cases_alone_are_no_trade() -> None:
    assert decided(gained=set()).trade is None


def test_a_mean_of_another_criterion_that_fell_is_no_trade() -> None:
    """Four cases pass now, and every answer is worse."""
    score = Criterion("score", "response_match_score", Scale.UNIT, pass_threshold=None)
    before = {c: 0.0 if c in GAINED else 1.0 for c in IDS}
    now = {c: 0.0 if c in LOST else 1.0 for c in IDS}

    def scored(rates: Mapping[str, float], value: float) -> list[Trial]:
        return [trial(c, k, round=k, trajectory=rates[c], score=value) for k in range(1, 6) for c in IDS]

    settings = Settings(exact_epochs=5)
    found = judge(SUITE, [TRAJECTORY, score], scored(now, 0.6), scored(before, 0.9), settings=settings)
    assert by_name(found)["score"] is Verdict.REGRESSED
    assert found.trade is None


def test_the_most_suspect_cases_are_the_first_that_are_listed_with_the_same_counts() -> None:
    """The base, run beside the change, fails the first case as well: it is no longer the most suspect one."""
    failing = set(IDS[:12])
    now = [trial(c, trajectory=0.0 if c in failing else 1.0) for c in IDS]
    base = [trial(c, round=2, tag=CONCURRENT, side=Side.BASELINE, trajectory=0.0 if c == IDS[0] else 1.0) for c in IDS]
    found = judge(SUITE, [TRAJECTORY], [*now, *base], epochs(dict.fromkeys(IDS, 1.0), 5))
    assert found.cause.kind == "suite_got_worse"
    listed = worse_cases(found)
    assert [one.case_id for one in found.cause["suspects"]] == [case.id for case in listed[:5]] == IDS[1:6]
    assert found.cause["suspects"][0] == CaseTally(IDS[1], 0, 1, 6, 6)


def test_the_most_suspect_cases_of_a_criterion_are_those_that_fell_in_it() -> None:
    """A case that fails more often for another reason is not why the tone got worse."""
    tone = Criterion("tone", "tone", Scale.BINARY)
    fell, failing = set(IDS[:20]), IDS[39]

    def scores(case_id: str, *, changed: bool) -> dict[str, float]:
        worse = changed and case_id in fell
        return {"tone": 0.0 if worse else 1.0, "trajectory": 0.0 if changed and case_id == failing else 1.0}

    now, before = (
        [trial(c, k, round=k, **scores(c, changed=changed)) for k in range(1, n + 1) for c in IDS]
        for changed, n in ((True, 2), (False, 5))
    )
    found = judge(SUITE, [TRAJECTORY, tone], now, before, settings=Settings(exact_epochs=2))
    assert found.cause.kind == "suite_got_worse"
    assert found.cause["criteria"] == ("tone",)
    assert {one.case_id for one in found.cause["fell"]} < fell
    assert not found.cause["suspects"]


def test_where_no_case_is_listed_as_worse_those_that_fail_more_often_are_the_most_suspect() -> None:
    failing = CaseResult("b", CaseStatus.FLAKY, passed=4, trials=5, baseline_passed=5, baseline_trials=5)
    parked = replace(failing, id="a", status=CaseStatus.QUARANTINED)
    assert most_suspect([parked, failing]) == (CaseTally("b", 4, 5, 5, 5),)


def test_a_missed_threshold_beside_a_trade_is_not_accepted_with_it() -> None:
    """The base's mean is below the threshold too, and that excuses it only as long as no loss is proven."""
    held = replace(TRAJECTORY, threshold=0.99)
    before = epochs({c: 0.0 if c in GAINED else 1.0 for c in IDS}, 5)
    now = epochs({c: 0.0 if c in LOST else 1.0 for c in IDS}, 5)
    found = judge(SUITE, [held], now, before, settings=Settings(exact_epochs=5))
    assert (found.verdict, found.if_accepted) == (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD)
    assert found.trade is not None
    assert exit_code([accepted_by(found, "wendy")], Settings()) is ExitCode.FAILED


def test_a_trade_is_accepted_like_any_loss() -> None:
    found = decided()
    assert (found.is_acceptable, found.if_accepted) == (True, Verdict.PASS)
    assert exit_code([accepted_by(found, "wendy")], Settings()) is ExitCode.PASS


# --- recorded agents ------------------------------------------------------------------------------

SHARED = Path(os.environ.get("GATE_SHARED_DATA") or Path(__file__).parents[4] / "shared" / "data")
RECORDED = SHARED / "terminal-bench" / "seven-agents.jsonl.gz"
REWARD = Criterion("reward", "contains", Scale.BINARY, pass_threshold=1.0)


def recorded() -> Mapping[str, Sequence[Trial]]:
    """By agent: five trials of each of 80 tasks."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in gzip.decompress(RECORDED.read_bytes()).decode().splitlines():
        row: dict[str, Any] = json.loads(line)
        found[row["submission"]][row["task"]].append(float(row["reward"] or 0))
    return {
        agent: [
            Trial(task, k, k, scores={"reward": Score(value)})
            for task, values in sorted(tasks.items())
            for k, value in enumerate(values[:5], start=1)
        ]
        for agent, tasks in found.items()
    }


def comparisons() -> Iterator[tuple[float, SuiteResult]]:
    """Each agent against each other: the difference of their means, and the verdict on the second."""
    agents = recorded()
    for before, now in permutations(sorted(agents), 2):
        means = [sum(t.scores["reward"].value or 0 for t in agents[a]) / len(agents[a]) for a in (before, now)]
        suite = [Case(t, ()) for t in sorted({t.case_id for t in agents[now]})]
        settings = Settings(exact_epochs=5)
        yield means[1] - means[0], judge(suite, [REWARD], agents[now], agents[before], settings=settings)


@pytest.mark.slow
@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded agents are not here")
def test_another_agent_that_is_as_good_is_a_trade_or_regressed_with_its_reason() -> None:
    found = list(comparisons())
    blocked = [(change, suite) for change, suite in found if suite.verdict is Verdict.REGRESSED]
    as_good = [suite for change, suite in blocked if change > -1e-9]
    assert len(as_good) >= 5
    for suite in as_good:
        assert suite.trade is not None and suite.trade["cases"]
    for _, suite in blocked:
        cause = suite.cause
        assert cause.kind == "cases_broke" or (cause.kind == "suite_got_worse" and cause["suspects"])


@pytest.mark.slow
def test_what_is_gained_by_chance_is_named_in_at_most_a_tenth_of_worlds() -> None:
    """Unchanged agents of every rate: the names of either list are wrong in all of these, so they are to be few."""
    false = 0
    for seed in range(60):
        rng = Random(seed)
        rates = {c: rng.choice([0.0, 0.3, 0.7, 0.95, 1.0]) for c in IDS}
        before, now = (
            [trial(c, k, round=k, trajectory=float(rng.random() < rates[c])) for k in range(1, 6) for c in IDS]
            for _ in range(2)
        )
        found = judge(SUITE, [TRAJECTORY], now, before, settings=Settings(exact_epochs=5))
        assert found.outcome is not None
        false += bool(found.outcome.evidence.gained)
    assert false <= 6
