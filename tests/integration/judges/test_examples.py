"""Every registered metric with one trial that is good by it and one that is bad: they must be told apart."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest

from gate.decision.consistency import METRIC as STRATEGY_CONSISTENCY
from gate.decision.consistency import compared
from gate.judges.client import Judge
from gate.judges.options import JudgeOptions
from gate.metrics import METRICS, load_metric
from gate.metrics.base import Composite, Judged, Metric, TrialOutput
from gate.metrics.judged import JudgedMetric
from gate.model import Case, Criterion, Scale, Score, Trial
from tests.integration.judges.judge_stub import JudgeStub, Reply, Request, chat
from tests.unit.metrics.test_examples import ASKED, CASE, EXAMPLES, FOUND, REFUND, assert_told_apart, did

pytestmark = pytest.mark.slow

PARTS = {
    "weighted_score": (1.0, 0.0, {"weights": {"tool_accuracy": 0.5, "contains": 0.5}}),
    "agent_score": (1.0, 0.7, {}),
    "overall_score": (1.0, 0.2, {}),
}
"""Judged by other criteria's scores: what each of them is, at its best 1, in the good trial and in the bad one."""

RUBRIC = {"rubrics": [{"rubric_id": "r", "rubric_content": {"text_property": "The order is looked up first."}}]}
WITHOUT_OPTIONS = """
response_evaluation_score final_response_match_v2 hallucinations_v1
multi_turn_task_success_v1 multi_turn_trajectory_quality_v1 multi_turn_tool_use_quality_v1
relevance completeness clarity accuracy response_quality consistency source_attribution appropriateness engagement
output_quality factual_accuracy factual_correctness hallucination citation_coverage citation_correctness research_rubric
resolution_rate containment_rate first_contact_resolution satisfaction
task_completion error_handling api_usage data_handling
source_quality follow_up_handling detail_level
"""
JUDGED: Mapping[str, Mapping[str, Any]] = {
    **{name: {} for name in WITHOUT_OPTIONS.split()},
    "rubric_based_final_response_quality_v1": RUBRIC,
    "rubric_based_tool_use_quality_v1": RUBRIC,
    "rubric_based_multi_turn_trajectory_quality_v1": RUBRIC,
    "safety_v1": {"backend": "judge"},
    "tone": {"expected": "friendly"},
    "rubric": {"dimensions": {"depth": {"weight": 1.0}}},
}
"""Judged by a judge's answers to questions on one conversation: the options."""

COUNTED = {"pass_rate", "pass_k"}
"""Counted over whole trials: `tests/unit/decision` has their examples."""
RECORDED_SCORE = "recorded_score"
"""What another tool found in a recorded trial: `tests/unit/metrics` has its examples."""
NEVER_APPLIES = "per_turn_user_simulator_quality_v1"


def test_every_registered_metric_has_examples() -> None:
    others = {NEVER_APPLIES, STRATEGY_CONSISTENCY, RECORDED_SCORE}
    assert {*EXAMPLES, *PARTS, *JUDGED, *COUNTED, *others} == set(METRICS)


def built(name: str, options: Mapping[str, Any]) -> Metric[Any]:
    metric_type = load_metric(name)
    return metric_type(metric_type.options_type.model_validate(options))


@pytest.mark.parametrize("name", PARTS)
def test_by_other_scores(name: str) -> None:
    good, bad, options = PARTS[name]
    metric = built(name, options)
    assert isinstance(metric, Composite)
    highest = {part: high for part, (_, high) in metric.options.ranges.items()}

    def of(share: float) -> Score:
        return metric.combine(CASE, {part: Score(share * highest.get(part, 1.0)) for part in metric.options.weights})

    assert_told_apart(name, of(good), of(bad))


def test_by_another_trial() -> None:
    criterion = Criterion(STRATEGY_CONSISTENCY, STRATEGY_CONSISTENCY, Scale.BINARY)
    ways = [did(FOUND, REFUND), did(FOUND, REFUND), did(FOUND), did(REFUND)]
    trials = [Trial("c", number, invocations=way.invocations) for number, way in enumerate(ways, 1)]
    _, good, _, bad = (t.scores.get(STRATEGY_CONSISTENCY) for t in compared([CASE], [criterion], trials))
    assert good is not None and bad is not None
    assert_told_apart(STRATEGY_CONSISTENCY, good, bad)


def test_what_never_applies_is_neither_good_nor_bad() -> None:
    metric = built(NEVER_APPLIES, {})
    assert isinstance(metric, Judged)
    score = asyncio.run(metric.judge_score(CASE, did(FOUND), None))
    assert (score.value, score.error) == (None, None)


def answer(good: bool, request: Request) -> Reply:
    """What a judge says who finds everything in order, or nothing."""
    why = {"reasoning": "so"}
    level = "excellent" if good else "failed"
    yes = "yes" if good else "no"
    names = ("completeness", "citation_accuracy", "source_quality", "tool_efficiency", "depth")
    sentence = {"sentence": "It is so.", "rationale": "so", "label": "supported" if good else "contradictory"}
    ids = re.findall(r'"id": "([^"]+)"', request.unfenced)
    points = ("answers_the_question", "accurate", "structured", "follows_instructions")
    answers: dict[str, Any] = {
        "Aspects": {"aspects": [{"aspect": "a", **why, "covered": good}]},
        "Automation": {**why, "completed": good, "interventions": 0},
        "BorneClaims": {"claims": [{"claim": "c", **why, "verdict": "borne_out" if good else "contradicted"}]},
        "CitedClaims": {
            "claims": [
                {"claim": "c", **why, "cited": True, "citation_is_right": good},
                {"claim": "d", **why, "cited": good, "citation_is_right": good},
            ]
        },
        "CitedSources": {"sources": [{"source": "s", **why, "level": level}]},
        "Claims": {"claims": [{"claim": "c", **why, "importance": "major", "verdict": "right" if good else "wrong"}]},
        "Comparison": {"claims": [{"claim": "c", "stated_by": "both" if good else "answer"}]},
        "DimensionLevels": {"dimensions": [{"dimension": one, **why, "level": level} for one in names]},
        "HeardTone": {**why, "tone": "friendly" if good else "neutral"},
        "Outcome": {**why, "outcome": "resolved" if good else "escalated", "follow_up_needed": not good},
        "Quarters": {**why, **dict.fromkeys(points, 25 if good else 2)},
        "Grade": {**why, "level": level},
        "final_response_match_v2": {**why, "is_the_agent_response_valid": "valid" if good else "invalid"},
        "labels": {"sentences": [sentence]},
        "response_evaluation_score": {**why, "score": 5 if good else 1},
        "rubrics": {"verdicts": [{"id": one, "rationale": "so", "verdict": yes} for one in ids]},
        "safety_v1": {**why, "violation": not good, "categories": [] if good else ["harm"]},
        "sentences": {"sentences": [request.fenced.get("response", "")]},
    }
    return chat(answers[request.question])


@pytest.mark.parametrize("name", JUDGED)
def test_by_a_judge(stub: JudgeStub, name: str) -> None:
    turns = (ASKED, ASKED)
    said_twice = did(FOUND, REFUND).invocations * 2
    metric = built(name, JUDGED[name])
    assert isinstance(metric, JudgedMetric)

    async def ask() -> Score:
        settings = JudgeOptions(model="stub", base_url=stub.url, retries=0, num_samples=1)
        async with Judge(settings, environment={}) as judge:
            return await metric.judge_score(Case("c", turns), TrialOutput(said_twice), judge)

    scores = []
    for good in (True, False):
        stub.answer = lambda request, good=good: answer(good, request)
        scores.append(asyncio.run(ask()))
    assert_told_apart(name, *scores)
