"""The judged catalogue: what each metric makes of a judge's answers, over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from gate.judges.client import Judge
from gate.judges.options import JudgeOptions
from gate.metrics import load_metric
from gate.metrics.base import TrialOutput
from gate.metrics.graded import LEVELS
from gate.metrics.judged import JudgedMetric
from gate.metrics.level_rubric import RESEARCH
from gate.model import Case, Invocation, Part, Score, ToolCall, Turn
from tests.integration.judges.judge_stub import JudgeStub, Reply, Request, chat, failure

pytestmark = pytest.mark.slow

ASKED = Turn("Where is my parcel, and when does it come?")
CASE = Case("c", (ASKED,))
CALL = ToolCall("track", {"id": 1}, result={"city": "Bern"})


def built(name: str, **options: Any) -> JudgedMetric[Any]:
    metric_type = load_metric(name)
    metric = metric_type(metric_type.options_type.model_validate(options))
    assert isinstance(metric, JudgedMetric)
    return metric


def measure(
    stub: JudgeStub,
    name: str,
    *replies: Any,
    case: Case = CASE,
    turns: int = 1,
    calls: tuple[ToolCall, ...] = (),
    **options: Any,
) -> Score:
    """The score of a metric for scripted votes, in order."""
    if replies:
        stub.script(*(one if isinstance(one, Reply) else chat(one) for one in replies))
    done = tuple(Invocation(ASKED.user, (Part("It is in Bern."),), calls) for _ in range(turns))
    metric = built(name, **{"judge_model_options": {"num_samples": max(1, len(replies))}, **options})

    async def run() -> Score:
        settings = JudgeOptions(model="stub", base_url=stub.url, retries=0, concurrency=1)
        async with Judge(settings, environment={}) as judge:
            return await metric.judge_score(case, TrialOutput(done, 1.0), judge)

    return asyncio.run(run())


def level(name: str) -> dict[str, Any]:
    return {"reasoning": f"it is {name}", "level": name}


GRADED = [
    *("relevance", "clarity", "accuracy", "source_attribution", "appropriateness", "engagement"),
    *("error_handling", "api_usage", "data_handling", "satisfaction", "follow_up_handling", "detail_level"),
]


@pytest.mark.parametrize("name", GRADED)
def test_graded_qualities_are_the_mean_of_named_levels(stub: JudgeStub, name: str) -> None:
    score = measure(stub, name, level("excellent"), level("acceptable"), level("poor"))
    assert score.value == pytest.approx((1.0 + 0.6 + 0.3) / 3)
    assert score.reason == "poor: it is poor"
    assert "track" in stub.requests[0].fenced["conversation"] or "Bern" in stub.requests[0].fenced["conversation"]
    failed = measure(stub, name, failure(500))
    assert failed.value is None and "HTTP 500" in (failed.error or "")
    unread = measure(stub, name, {"reasoning": "so", "level": "superb"})
    assert unread.value is None and unread.error


def test_source_quality_is_the_mean_level_of_the_cited_sources(stub: JudgeStub) -> None:
    def cited(*levels: str) -> dict[str, Any]:
        return {"sources": [{"source": f"s{n}", **level(one)} for n, one in enumerate(levels, 1)]}

    score = measure(stub, "source_quality", cited("excellent", "poor"), cited("excellent", "poor", "good"))
    assert score.value == pytest.approx(((1.0 + 0.3) / 2 + (1.0 + 0.3 + 0.8) / 3) / 2)
    assert score.reason == "2 cited; s2 poor: it is poor"
    nothing = measure(stub, "source_quality", cited())
    assert (nothing.value, nothing.error, nothing.reason) == (None, None, "the answers cite no source")


def test_the_expected_responses_are_shown_where_there_are_any(stub: JudgeStub) -> None:
    measure(stub, "accuracy", level("good"), case=Case("c", (Turn("q", response=(Part("In Bern."),)),)))
    assert stub.requests[0].fenced["expected responses"] == "Turn 1: In Bern."


def test_consistency_needs_several_turns(stub: JudgeStub) -> None:
    assert measure(stub, "consistency", level("good"), turns=2).value == 0.8
    alone = measure(stub, "consistency", level("good"))
    assert (alone.value, alone.error) == (None, None)


def aspects(*covered: bool) -> dict[str, Any]:
    return {"aspects": [{"aspect": f"a{n}", "reasoning": "so", "covered": one} for n, one in enumerate(covered)]}


def test_completeness_is_the_share_of_aspects_covered(stub: JudgeStub) -> None:
    score = measure(stub, "completeness", aspects(True, True, False, True))
    assert score.value == 0.75
    assert score.reason == "3 of 4 aspects covered; missing: a2"


def test_listed_aspects_cannot_be_dropped_by_the_judge(stub: JudgeStub) -> None:
    score = measure(stub, "completeness", aspects(True), aspects=["place", "time"])
    assert score.value == 0.5
    assert "- place\n- time" in stub.requests[0].unfenced


def test_response_quality_is_the_mean_of_four_and_shares_their_answers(stub: JudgeStub) -> None:
    levels = {"Relevance": "good", "Clarity": "excellent", "Accuracy": "poor"}

    def answer(request: Request) -> Reply:
        for word, found in levels.items():
            if f"{word}:" in request.unfenced:
                return chat(level(found))
        return chat(aspects(True, False))

    stub.answer = answer
    score = measure(stub, "response_quality")
    assert score.value == pytest.approx((0.8 + 0.5 + 1.0 + 0.3) / 4)
    assert score.details["dimensions"]["accuracy"] == 0.3
    assert "accuracy 0.30" in score.reason and "it is poor" in score.reason
    assert len(stub.requests) == 4

    async def both() -> None:
        settings = JudgeOptions(model="stub", base_url=stub.url, num_samples=1)
        async with Judge(settings, environment={}) as judge:
            done = TrialOutput((Invocation("q", (Part("a"),)),))
            metrics = [built("response_quality"), built("relevance"), built("completeness")]
            await asyncio.gather(*(metric.judge_score(CASE, done, judge) for metric in metrics))

    stub.requests.clear()
    asyncio.run(both())
    assert len(stub.requests) == 4


def test_one_failed_part_leaves_response_quality_unmeasured(stub: JudgeStub) -> None:
    stub.answer = lambda request: (
        failure(500) if "Clarity:" in request.unfenced else chat({**level("good"), **aspects(True)})
    )
    score = measure(stub, "response_quality")
    assert score.value is None
    assert (score.error or "").startswith("clarity: ")


def test_output_quality_is_in_points(stub: JudgeStub) -> None:
    given = {"answers_the_question": 25, "accurate": 20, "structured": 10, "follows_instructions": 15}
    score = measure(stub, "output_quality", {"reasoning": "so", **given})
    assert score.value == 70.0
    assert score.details["dimensions"] == {
        **{"answers_the_question": 1.0, "accurate": 0.8, "structured": 0.4, "follows_instructions": 0.6}
    }
    assert measure(stub, "output_quality", {"reasoning": "so", **given, "accurate": 26}).error


def claim(verdict: str, importance: str = "minor") -> dict[str, str]:
    return {"claim": f"a {verdict} claim", "reasoning": "so", "importance": importance, "verdict": verdict}


def test_factual_accuracy_weighs_major_claims(stub: JudgeStub) -> None:
    claims = {"claims": [claim("right", "major"), claim("wrong"), claim("unverifiable", "major"), claim("right")]}
    score = measure(stub, "factual_accuracy", claims)
    assert score.value == pytest.approx((2 + 1) / (2 + 1 + 2 + 1))
    assert "wrong (minor): a wrong claim" in score.reason
    assert measure(stub, "factual_accuracy", claims, major_weight=5).value == pytest.approx(6 / 12)
    nothing = measure(stub, "factual_accuracy", {"claims": []})
    assert (nothing.value, nothing.error) == (None, None)


def test_factual_correctness_is_f1_against_the_reference(stub: JudgeStub) -> None:
    stated = [{"claim": "c", "stated_by": by} for by in ("both", "both", "answer", "reference", "reference")]
    case = Case("c", (Turn("q", response=(Part("r"),)),))
    assert measure(stub, "factual_correctness", {"claims": stated}, case=case).value == pytest.approx(4 / 7)
    without = measure(stub, "factual_correctness", {"claims": stated})
    assert (without.value, without.error) == (None, None)


def test_hallucination_is_the_share_of_claims_borne_out(stub: JudgeStub) -> None:
    verdicts = ("borne_out", "not_mentioned", "contradicted", "borne_out")
    claims = {"claims": [{"claim": one, "reasoning": "so", "verdict": one} for one in verdicts]}
    score = measure(stub, "hallucination", claims, calls=(CALL,))
    assert score.value == 0.5
    assert "contradicted" in score.reason
    assert measure(stub, "hallucination", claims).value is None
    assert measure(stub, "hallucination", {"claims": []}, calls=(CALL,)).error is None


def test_citations(stub: JudgeStub) -> None:
    claims = {
        "claims": [
            {"claim": "one", "cited": True, "reasoning": "so", "citation_is_right": True},
            {"claim": "two", "cited": True, "reasoning": "so", "citation_is_right": False},
            {"claim": "three", "cited": True, "reasoning": "so", "citation_is_right": None},
            {"claim": "four", "cited": False, "reasoning": "so", "citation_is_right": None},
        ]
    }
    assert measure(stub, "citation_coverage", claims).value == 0.75
    score = measure(stub, "citation_correctness", claims)
    assert score.value == pytest.approx(1 / 3)
    assert "not so: two; not so: three" in score.reason


def test_tone_by_the_judge(stub: JudgeStub) -> None:
    votes = [{"reasoning": "so", "tone": tone} for tone in ("friendly", "friendly", "neutral", "friendly")]
    assert measure(stub, "tone", *votes, expected="friendly").value == 0.75


def dimension(name: str, found: str) -> dict[str, str]:
    return {"dimension": name, "reasoning": f"{name} so", "level": found}


def test_rubric_of_ones_own(stub: JudgeStub) -> None:
    dimensions = {"depth": {"weight": 0.7, "description": "goes deep"}, "form": {"weight": 0.3}}
    answer = {"dimensions": [dimension("form", "poor"), dimension("depth", "good")]}
    score = measure(stub, "rubric", answer, dimensions=dimensions)
    assert score.value == pytest.approx(0.7 * 0.8 + 0.3 * 0.3)
    assert score.reason.startswith("depth good, form poor; form: form so")
    assert "- depth: goes deep" in stub.requests[0].unfenced
    own = measure(
        stub,
        "rubric",
        {"dimensions": [dimension("depth", "yes"), dimension("form", "no")]},
        dimensions=dimensions,
        levels={"yes": 1.0, "no": 0.0},
    )
    assert own.value == pytest.approx(0.7)


def test_a_rubric_keeps_the_mean_of_each_dimension(stub: JudgeStub) -> None:
    dimensions = {"depth": {"weight": 0.7}, "form": {"weight": 0.3}}
    votes = [
        {"dimensions": [dimension("depth", "good"), dimension("form", "poor")]},
        {"dimensions": [dimension("depth", "excellent"), dimension("form", "failed")]},
    ]
    score = measure(stub, "rubric", *votes, dimensions=dimensions)
    assert score.value == pytest.approx((0.7 * 0.8 + 0.3 * 0.3 + 0.7 * 1.0 + 0.3 * 0.0) / 2)
    assert score.details["dimensions"] == {"depth": pytest.approx(0.9), "form": pytest.approx(0.15)}


def test_the_levels_of_a_dimension_are_described_in_words_or_given_another_value(stub: JudgeStub) -> None:
    dimensions = {
        "facts": {"weight": 0.5, "levels": {"excellent": "All claims verified against ground truth, no errors"}},
        "form": {"weight": 0.5, "description": "is tidy", "levels": {"good": 1, "poor": 0.1, "failed": "A heap."}},
    }
    answer = {"dimensions": [dimension("facts", "good"), dimension("form", "good")]}
    assert measure(stub, "rubric", answer, dimensions=dimensions).value == pytest.approx(0.5 * 0.8 + 0.5 * 1.0)
    asked = stub.requests[0].unfenced
    assert "- facts: \n  excellent: All claims verified against ground truth, no errors\n- form: is tidy\n" in asked
    assert "  good: worth 1 here\n  poor: worth 0.1 here\n  failed: A heap." in asked


def test_a_dimension_without_a_known_level_is_not_guessed(stub: JudgeStub) -> None:
    dimensions = {"depth": {"weight": 0.5}, "form": {"weight": 0.5}}
    for given in ([dimension("depth", "good")], [dimension("depth", "good"), dimension("form", "meh")]):
        score = measure(stub, "rubric", {"dimensions": given}, dimensions=dimensions)
        assert score.value is None
        assert "no known level for form" in (score.error or "")
    mixed = [
        {"dimensions": [dimension("depth", "good")]},
        {"dimensions": [dimension("depth", "good"), dimension("form", "good")]},
    ]
    assert measure(stub, "rubric", *mixed, dimensions=dimensions).value == pytest.approx(0.8)


@pytest.mark.parametrize(
    "options",
    [
        {"dimensions": {}},
        {"dimensions": {"a": {"weight": 0.5}}},
        {"dimensions": {"a": {"weight": 1.0}}, "levels": {"one": 1.0}},
        {"dimensions": {"a": {"weight": 1.0}}, "levels": {"one": 1.0, "two": 1.5}},
        {"dimensions": {"a": {"weight": 1.0, "wieght": 1}}},
        {"dimensions": {"a": {"weight": 1.0, "levels": {"exellent": "all right"}}}},
        {"dimensions": {"a": {"weight": 1.0, "levels": {"good": 1.5}}}},
        {"dimensions": {"a": {"weight": 1.0, "levels": {"good": True}}}},
        {"dimensions": {"a": {"weight": 1.0, "levels": {"good": " "}}}},
        {"dimensions": {"a": {"weight": 1.0, "method": "claims", "levels": {"good": "so"}}}},
    ],
)
def test_rubrics_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        built("rubric", **options)


def test_the_research_rubric_judges_facts_by_claims_and_the_rest_by_levels(stub: JudgeStub) -> None:
    claims = {"claims": [claim("right", "major"), claim("wrong")]}
    names = {
        "completeness": "good",
        "citation_accuracy": "excellent",
        "source_quality": "poor",
        "tool_efficiency": "failed",
    }
    levels = {"dimensions": [dimension(name, found) for name, found in names.items()]}
    stub.answer = lambda request: chat(claims if request.question == "Claims" else levels)
    score = measure(stub, "research_rubric")
    assert score.value == pytest.approx(0.30 * 2 / 3 + 0.25 * 0.8 + 0.15 * 1.0 + 0.10 * 0.3 + 0.20 * 0.0)
    assert score.details["dimensions"] == {
        **{"completeness": 0.8, "citation_accuracy": 1.0, "source_quality": 0.3, "tool_efficiency": 0.0},
        "factual_accuracy": pytest.approx(2 / 3),
    }
    assert load_metric("research_rubric").default_threshold == 0.7
    (asked,) = {request.unfenced for request in stub.requests if request.question != "Claims"}
    for name in names:
        assert list(RESEARCH[name].levels) == list(LEVELS)
        for grade, text in RESEARCH[name].levels.items():
            assert f"{grade}: {text}" in asked
    stub.answer = lambda request: chat({"claims": []} if request.question == "Claims" else levels)
    assert measure(stub, "research_rubric").value == pytest.approx((0.25 * 0.8 + 0.15 * 1.0 + 0.10 * 0.3) / 0.70)
    stub.answer = lambda request: failure(500) if request.question == "Claims" else chat(levels)
    assert measure(stub, "research_rubric").value is None


def outcome(found: str, back: bool = False) -> dict[str, Any]:
    return {"reasoning": "so", "outcome": found, "follow_up_needed": back}


@pytest.mark.parametrize(
    ("votes", "resolved", "contained", "first"),
    [
        ([outcome("resolved")], 1.0, 1.0, 1.0),
        ([outcome("resolved", True)], 1.0, 1.0, 0.0),
        ([outcome("escalated")], 0.0, 0.0, 0.0),
        ([outcome("unresolved", True)], 0.0, 1.0, 0.0),
        ([outcome("resolved"), outcome("resolved"), outcome("escalated")], 1.0, 1.0, 1.0),
        ([outcome("resolved"), outcome("escalated")], 0.0, 0.0, 0.0),  # a tie is the worse
    ],
)
def test_support_outcomes_by_majority(
    stub: JudgeStub, votes: list[dict[str, Any]], resolved: float, contained: float, first: float
) -> None:
    assert measure(stub, "resolution_rate", *votes).value == resolved
    assert measure(stub, "containment_rate", *votes).value == contained
    assert measure(stub, "first_contact_resolution", *votes).value == first


@pytest.mark.parametrize(("completed", "interventions", "value"), [(True, 0, 1.0), (True, 1, 0.0), (False, 0, 0.0)])
def test_task_completion_without_intervention(
    stub: JudgeStub, completed: bool, interventions: int, value: float
) -> None:
    answer = {"reasoning": "so", "completed": completed, "interventions": interventions}
    assert measure(stub, "task_completion", answer).value == value


def test_a_trial_without_turns_is_not_measured(stub: JudgeStub) -> None:
    score = measure(stub, "relevance", level("good"), turns=0)
    assert score.value is None and score.error
    assert stub.requests == []
