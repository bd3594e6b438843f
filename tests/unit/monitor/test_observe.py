"""The criteria of CI on conversations without expectations: what applies, what is skipped, what is kept."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from gate.config.criteria import Setting, build_scorers
from gate.config.specs import read_specs
from gate.model import CALLS, RESPONSE, Case, Invocation, Part, ToolCall, Turn
from gate.monitor.model import NO_AGENT, WatchedTrace
from gate.monitor.observe import NO_QUESTION, Observer, scoring_for
from gate.scoring.score import UNRECORDED
from gate.security.redact import Redactor
from gate.system.serialize import unpack_invocations

REFUSES = {"not_contains": {"values": ["I cannot"]}}


def observer(criteria: dict[str, Any]) -> Observer:
    scorers = build_scorers(read_specs(criteria, lambda *_: "criteria"), (), Setting())
    return Observer(scoring_for(scorers), Redactor(["hush-hush"], personal=True))


def turn(text: str, user: str = "hi", *calls: ToolCall, reports: bool = True) -> Invocation:
    return Invocation(user, (Part(text),) if text else (), calls, reports_calls=reports)


def test_a_conversation_passes_by_the_criteria_of_ci() -> None:
    watch = observer(REFUSES)
    good, bad = (watch.observe_now(WatchedTrace("t", (turn(text),))) for text in ("Here it is", "I cannot"))
    assert (good.passed, good.average, good.why, good.kept) == (True, 1.0, "", b"")
    assert (bad.passed, bad.average, bad.scores) == (False, 0.0, {"not_contains": 0.0})
    assert bad.why == "not_contains: the answer contains 'I cannot'"
    assert unpack_invocations(bad.kept)[0].text == "I cannot"


def test_what_needs_a_reference_is_skipped_and_said() -> None:
    found = observer(
        {
            **REFUSES,
            "tool_trajectory_avg_score": 1.0,
            "response_match_score": 0.8,
            "strategy_consistency": {"threshold": 0.5, "blocking": False},
            "pass_rate": 0.85,
            "contains": {"blocking": False},
            "forbidden_tools": {"tools": ["delete"]},
            "weighted_score": {"weights": {"response_match_score": 1.0}, "threshold": 0.5},
        }
    ).scoring
    assert [criterion.name for criterion in found.criteria] == ["not_contains", "forbidden_tools"]
    assert found.skipped == {
        "tool_trajectory_avg_score": "it needs a reference, and production has none",
        "response_match_score": "it needs a reference, and production has none",
        "strategy_consistency": "it compares trials of one case",
        "pass_rate": "the monitor counts the pass rate itself",
        "contains": "only cases give it values",
        "weighted_score": "one of its parts is skipped",
    }


def test_what_changes_an_outcome_changes_the_fingerprint() -> None:
    base = {"not_contains": {"values": ["I cannot"]}}
    prints = {
        observer(criteria).scoring.fingerprint
        for criteria in (
            base,
            {"not_contains": {"values": ["I can"]}},
            {**base, "latency": {"max": 3}},
            {**base, "latency": {"max": 4}},
            {**base, "latency": {"max": 4, "blocking": False}},
        )
    }
    assert len(prints) == 5
    assert observer(base).scoring.fingerprint == observer(base).scoring.fingerprint


def test_a_failed_agent_is_a_failed_trace() -> None:
    found = observer(REFUSES).observe_now(WatchedTrace("t", (), "ValueError: token=abc123secret"))
    assert (found.passed, found.average) == (False, None)
    assert found.why == "the agent failed: ValueError: token=[redacted]"


@pytest.mark.parametrize(
    ("missing", "text", "passed"),
    [(RESPONSE, "", None), (CALLS, "Here it is", True), (CALLS, "", True)],
)
def test_what_was_not_captured_is_not_measured(missing: str, text: str, passed: bool | None) -> None:
    found = observer(REFUSES).observe_now(WatchedTrace("t", (replace(turn(text), unseen=(missing,)),)))
    assert found.passed is passed
    assert (f"not recorded: {UNRECORDED[missing]}" in found.why) is (passed is None)


@pytest.mark.parametrize(
    ("reports", "missing", "passed"), [(True, (), True), (False, (), None), (True, (CALLS,), None)]
)
def test_calls_that_nobody_could_see_are_not_measured(
    reports: bool, missing: tuple[str, ...], passed: bool | None
) -> None:
    watch = observer({"forbidden_tools": {"tools": ["delete"]}})
    trace = WatchedTrace("t", (replace(turn("done", reports=reports), unseen=missing),))
    assert watch.observe_now(trace).passed is passed


def test_a_part_that_was_not_captured_of_a_composite_is_not_measured() -> None:
    watch = observer({**REFUSES, "weighted_score": {"weights": {"not_contains": 1.0}, "threshold": 0.5}})
    found = watch.observe_now(WatchedTrace("t", (replace(turn(""), unseen=(RESPONSE,)),)))
    assert (found.passed, found.scores) == (None, {})


def test_an_answer_that_says_and_calls_nothing_is_a_failure_though_another_turn_was_not_captured() -> None:
    turns = (replace(turn("", "first"), unseen=(RESPONSE,)), turn("", "second"))
    found = observer(REFUSES).observe_now(WatchedTrace("t", turns))
    assert (found.passed, "turn 2" in found.why) == (False, True), found.why


def test_without_the_question_nothing_is_judged_and_the_rest_is_measured() -> None:
    class Judge:
        async def ask(self, question: Any) -> Any:
            from gate.judges.prompt import Answers

            return Answers(error="judge not reached")

    criteria = {**REFUSES, "relevance": 0.7}
    scorers = build_scorers(read_specs(criteria, lambda *_: "criteria"), (), Setting(judge=lambda _: "judge:test"))
    watch = Observer(scoring_for(scorers), Redactor(), Judge())  # type: ignore[arg-type]
    trace = WatchedTrace("t", (turn("Here it is", ""),), lacks_question=True)
    (found,) = asyncio.run(watch.observe([trace]))
    assert (found.passed, found.scores, NO_QUESTION in found.why) == (None, {"not_contains": 1.0}, True), found.why


def test_a_forbidden_call_is_seen_in_any_turn() -> None:
    watch = observer({"forbidden_tools": {"tools": ["delete"]}})
    turns = (turn("one"), turn("two", "go on", ToolCall("delete", {"id": 1})))
    found = watch.observe_now(WatchedTrace("t", turns))
    assert found.passed is False
    assert "delete" in found.why


def test_a_forbidden_call_that_was_seen_fails_though_another_turn_was_not_captured() -> None:
    watch = observer({"forbidden_tools": {"tools": ["delete"]}})
    turns = (turn("one", "go on", ToolCall("delete", {"id": 1})), replace(turn("two"), unseen=(CALLS,)))
    found = watch.observe_now(WatchedTrace("t", turns))
    assert found.passed is False
    assert "delete" in found.why


def test_previews_are_redacted_before_they_are_cut() -> None:
    key = "sk-" + "a1" * 30
    query = f"mail ada@example.com, hush-hush, {'x' * 140} {key} tail"
    found = observer(REFUSES).observe_now(WatchedTrace("t", (turn("I cannot " + "y\n" * 500, query),)))
    assert found.query.startswith("mail [personal data], [redacted], xxx")
    assert "sk-" not in found.query
    assert (len(found.query) <= 200, len(found.output), "\n" in found.output) == (True, 200, False)
    (kept,) = unpack_invocations(found.kept)
    assert "hush-hush" not in kept.user
    assert key not in kept.user
    assert "ada@" not in kept.user


def test_a_huge_conversation_is_scored_and_not_kept() -> None:
    found = observer(REFUSES).observe_now(WatchedTrace("t", (turn("I cannot " * 50_000),)))
    assert (found.passed, found.kept) == (False, b"")


def test_a_judge_is_asked_and_its_absence_is_not_a_failure() -> None:
    class Down:
        async def ask(self, question: Any) -> Any:
            from gate.judges.prompt import Answers

            return Answers(error="judge not reached")

    scorers = build_scorers(
        read_specs({"relevance": 0.7}, lambda *_: "criteria"), (), Setting(judge=lambda _: "judge:test")
    )
    watch = Observer(scoring_for(scorers), Redactor(), Down())  # type: ignore[arg-type]
    (found,) = asyncio.run(watch.observe([WatchedTrace("t", (turn("hello"),))]))
    assert found.passed is None
    assert "judge not reached" in found.why


def test_every_reference_free_metric_that_is_kept_scores_the_probe() -> None:
    """No registered metric without a judge is both kept and silent about an answer of which nothing is expected."""
    from gate.metrics import METRICS

    case, kept = Case("c", (Turn("hi"),)), []
    for name in METRICS:
        try:
            scorers = build_scorers(read_specs({name: {}}, lambda *_: "criteria"), (), Setting(judge=lambda _: "j"))
        except Exception:
            continue
        kept += [s for s in scoring_for(scorers).scorers if not s.needs_judge and not s.parts]
    assert len(kept) > 5
    for scorer in kept:
        assert scorer.for_case(case) is scorer.metric


def test_what_nothing_can_be_said_of_is_neither_scored_nor_judged() -> None:
    class Asked:
        async def ask(self, question: Any) -> Any:
            raise AssertionError(question)

    trace = WatchedTrace("t", at=5.0, unmeasured=f"{NO_AGENT}: hush-hush")
    scoring = observer(REFUSES).scoring
    judged = Observer(scoring, Redactor(["hush-hush"]), Asked())  # type: ignore[arg-type]
    for found in (observer(REFUSES).observe_now(trace), *asyncio.run(judged.observe([trace]))):
        assert (found.passed, found.at, found.scores, found.has_no_agent) == (None, 5.0, {}, True)
        assert found.why == f"{NO_AGENT}: [redacted]"
