"""google-adk 2.13's aggregation, for scripted verdicts of a judge over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from gate.judges.client import Judge
from gate.judges.options import JudgeOptions
from gate.metrics import load_metric
from gate.metrics.base import TrialOutput
from gate.metrics.judged import JudgedMetric
from gate.model import Case, Invocation, Part, Rubric, Score, ToolCall, Turn
from tests.integration.judges.judge_stub import JudgeStub, Reply, Request, chat, failure

pytestmark = pytest.mark.slow

QUALITY = "FINAL_RESPONSE_QUALITY"


def case(*turns: str, **more: Any) -> Case:
    return Case("c", tuple(Turn(user, response=(Part(f"expected {user}"),)) for user in turns), **more)


def run(
    stub: JudgeStub,
    name: str,
    of: Case,
    *,
    options: Mapping[str, Any] | None = None,
    invocations: Sequence[Invocation] | None = None,
) -> Score:
    metric_type = load_metric(name)
    metric = metric_type(metric_type.options_type.model_validate(dict(options or {})))
    assert isinstance(metric, JudgedMetric)
    done = tuple(invocations or (Invocation(turn.user, (Part(f"said {turn.user}"),)) for turn in of.turns))

    async def judge_it() -> Score:
        settings = JudgeOptions(model="stub", base_url=stub.url, retries=0, concurrency=1)
        async with Judge(settings, environment={}) as judge:
            return await metric.judge_score(of, TrialOutput(done), judge)

    return asyncio.run(judge_it())


def by_turn(script: Mapping[str, Sequence[Any]]) -> Callable[[Request], Reply]:
    """Per user text, the replies in order."""
    left = {user: list(replies) for user, replies in script.items()}

    def answer(request: Request) -> Reply:
        reply = left[request.fenced["user's request"]].pop(0)
        return reply if isinstance(reply, Reply) else chat(reply)

    return answer


def valid(label: Any) -> dict[str, Any]:
    return {"reasoning": "so", "is_the_agent_response_valid": label}


class TestFinalResponseMatch:
    name = "final_response_match_v2"

    @pytest.mark.parametrize(
        ("labels", "expected", "asked"),
        [
            (["valid"] * 5, 1.0, 3),
            (["valid", "valid", "valid", "invalid", "invalid"], 1.0, 3),
            (["invalid", "valid", "invalid", "invalid", "valid"], 0.0, 4),
            (["valid", "valid", "invalid", "invalid", "?"], 0.0, 5),  # tie
            (["valid", "?", "?", "?", "?"], 1.0, 5),
            (["true", True, "partially_valid", "almost", "valid"], 1.0, 5),
            (["partially", "partially valid", "false", False, "valid"], 0.0, 3),
            (["Valid", "VALID", "invalid", "?", "?"], 0.0, 4),  # google-adk minds the case
        ],
    )
    def test_majority_of_readable_votes_asked_until_it_is_certain(
        self, stub: JudgeStub, labels: list[Any], expected: float, asked: int
    ) -> None:
        stub.answer = by_turn({"a": [valid(label) for label in labels]})
        score = run(stub, self.name, case("a"))
        assert (score.value, score.error) == (expected, None)
        assert len(stub.requests) == asked

    def test_the_negated_key_is_understood(self, stub: JudgeStub) -> None:
        stub.answer = by_turn({"a": [{"reasoning": "", "is_the_agent_response_invalid": "false"}] * 5})
        assert run(stub, self.name, case("a")).value == 1.0
        for label, value in ((True, 0.0), ("yes", 0.0), ("partially", None)):
            stub.answer = by_turn({"a": [{"is_the_agent_response_invalid": label}] * 5})
            assert run(stub, self.name, case("a")).value == value, label

    def test_none_readable_is_not_evaluated(self, stub: JudgeStub) -> None:
        stub.answer = by_turn({"a": ["no idea"] * 5})
        score = run(stub, self.name, case("a"))
        assert score.value is None
        assert "no readable answer in 5" in (score.error or "")

    def test_mean_over_evaluated_turns(self, stub: JudgeStub) -> None:
        stub.answer = by_turn({"a": [valid("valid")] * 5, "b": ["?"] * 5, "c": [valid("invalid")] * 5})
        score = run(stub, self.name, case("a", "b", "c"))
        assert score.per_turn == (1.0, None, 0.0)
        assert score.value == 0.5
        assert "left out, not readable: turn 2" in score.reason

    def test_one_failed_sample_leaves_its_turn_and_the_score_unmeasured(self, stub: JudgeStub) -> None:
        stub.answer = by_turn({"a": [valid("valid")] * 2 + [failure(500)], "b": [valid("valid")] * 5})
        score = run(stub, self.name, case("a", "b"))
        assert score.per_turn == (None, 1.0)
        assert score.value is None
        assert "HTTP 500" in (score.error or "")

    def test_turns_without_a_reference_do_not_count(self, stub: JudgeStub) -> None:
        stub.answer = by_turn({"a": [valid("invalid")] * 5})
        of = Case("c", (Turn("a", response=(Part("x"),)), Turn("b")))
        score = run(stub, self.name, of)
        assert (score.value, score.per_turn) == (0.0, (0.0, None))
        nothing = run(stub, self.name, Case("c", (Turn("b"),)))
        assert (nothing.value, nothing.error) == (None, None)

    def test_intermediate_responses_join_in_on_request(self, stub: JudgeStub) -> None:
        stub.script(chat(valid("valid")))
        done = [Invocation("a", (Part("final"),), intermediate=(Part("first"),))]
        run(stub, self.name, case("a"), invocations=done)
        assert stub.requests[-1].fenced["agent's response"] == "final"
        run(stub, self.name, case("a"), invocations=done, options={"include_intermediate_responses_in_final": True})
        assert stub.requests[-1].fenced["agent's response"] == "first\nfinal"

    def test_turn_counts_that_differ_are_an_error(self, stub: JudgeStub) -> None:
        score = run(stub, self.name, case("a", "b"), invocations=[Invocation("a")])
        assert score.value is None
        assert "cannot be compared turn by turn" in (score.error or "")


def rubrics(*ids: str) -> list[dict[str, Any]]:
    return [{"rubric_id": one, "rubric_content": {"text_property": f"property {one}"}} for one in ids]


def votes(**verdicts: str) -> dict[str, Any]:
    return {"verdicts": [{"id": name, "rationale": "so", "verdict": verdict} for name, verdict in verdicts.items()]}


class TestRubrics:
    name = "rubric_based_final_response_quality_v1"

    def test_a_vote_per_rubric_ties_denied_mean_over_all(self, stub: JudgeStub) -> None:
        stub.answer = by_turn(
            {
                "a": [
                    votes(x="yes", y="yes"),
                    votes(x="yes", y="no"),
                    votes(x="no", y="no"),
                    votes(x="Yes."),
                    votes(y="yes"),
                ],
                "b": [votes(x="yes", y="yes")] * 5,
            }
        )
        score = run(stub, self.name, case("a", "b"), options={"rubrics": rubrics("x", "y")})
        assert score.per_turn == (0.5, 1.0)  # x: 3 to 1; y: 2 to 2, a tie
        assert score.value == 0.75
        assert score.details["dimensions"] == {"x": 1.0, "y": 0.5}
        assert "no to 'y' (property y)" in score.reason

    def test_mean_over_verdicts_not_over_turns(self, stub: JudgeStub) -> None:
        stub.answer = by_turn({"a": [votes(x="yes", y="no")] * 5, "b": [votes(x="yes")] * 5})
        score = run(stub, self.name, case("a", "b"), options={"rubrics": rubrics("x", "y")})
        assert score.value == pytest.approx(2 / 3)
        assert "no verdict on y" in score.reason

    def test_readings_of_a_verdict(self, stub: JudgeStub) -> None:
        for verdict, expected in (("yes", 1.0), ("YES!", 1.0), ("no", 0.0), ("unknown", 0.0), ("no, but yes", 1.0)):
            stub.answer = by_turn({"a": [votes(x=verdict)] * 5})
            assert run(stub, self.name, case("a"), options={"rubrics": rubrics("x")}).value == expected, verdict

    def test_no_verdict_at_all_is_not_evaluated(self, stub: JudgeStub) -> None:
        stub.answer = by_turn({"a": [votes(x="maybe")] * 5})
        score = run(stub, self.name, case("a"), options={"rubrics": rubrics("x")})
        assert score.value is None
        assert score.error

    def test_case_and_turn_rubrics_join_in_by_type(self, stub: JudgeStub) -> None:
        stub.script(chat(votes(x="yes", mine="yes", turn="no")))
        of = Case(
            "c",
            (
                Turn(
                    "a",
                    rubrics=(Rubric("turn", "t", "FINAL_RESPONSE_QUALITY"), Rubric("other", "o", "TOOL_USE_QUALITY")),
                ),
            ),
            rubrics=(Rubric("mine", "m", "FINAL_RESPONSE_QUALITY"), Rubric("untyped", "u")),
        )
        score = run(stub, self.name, of, options={"rubrics": rubrics("x")})
        assert score.details["dimensions"] == {"x": 1.0, "mine": 1.0, "turn": 0.0}

    def test_each_turn_has_its_own_rubrics(self, stub: JudgeStub) -> None:
        quality = "FINAL_RESPONSE_QUALITY"
        of = Case(
            "c", (Turn("a", rubrics=(Rubric("p", "p", quality),)), Turn("b", rubrics=(Rubric("q", "q", quality),)))
        )
        stub.answer = by_turn({"a": [votes(p="yes", q="no")] * 5, "b": [votes(p="no", q="yes")] * 5})
        assert run(stub, self.name, of).value == 1.0

    def test_a_turn_without_rubrics_is_not_asked_about(self, stub: JudgeStub) -> None:
        of = Case("c", (Turn("a"), Turn("b", rubrics=(Rubric("q", "q", "FINAL_RESPONSE_QUALITY"),))))
        stub.answer = by_turn({"b": [votes(q="yes")] * 5})
        score = run(stub, self.name, of)
        assert (score.value, score.per_turn) == (1.0, (None, 1.0))
        assert all("b" in request.text for request in stub.requests)

    def test_no_rubrics_do_not_apply_and_duplicate_ids_are_errors(self, stub: JudgeStub) -> None:
        without = run(stub, self.name, case("a"))
        assert (without.value, without.error) == (None, None)
        assert "states a rubric of type" in without.reason
        other = case("a", rubrics=(Rubric("x", "of the tools", "INSTRUCTION_ADHERENCE"),))
        assert run(stub, self.name, other).error is None
        of = case("a", rubrics=(Rubric("x", "again", "FINAL_RESPONSE_QUALITY"),))
        assert "'x' is defined twice" in (run(stub, self.name, of, options={"rubrics": rubrics("x")}).error or "")
        with pytest.raises(ValueError, match="'x' is given twice"):
            run(stub, self.name, case("a"), options={"rubrics": rubrics("x", "x")})
        assert stub.requests == []

    def test_tool_use_shows_the_calls(self, stub: JudgeStub) -> None:
        stub.script(chat(votes(x="yes")))
        done = [
            Invocation("a", (Part("hi"),), (ToolCall("find", {"q": 1}, result={"n": 2}), ToolCall("go", error="boom")))
        ]
        run(stub, "rubric_based_tool_use_quality_v1", case("a"), options={"rubrics": rubrics("x")}, invocations=done)
        shown = stub.requests[-1].fenced["tool calls"]
        assert 'find({"q": 1})\n  result: {"n": 2}' in shown
        assert "go(null)\n  error: boom" in shown

    def test_multi_turn_judges_the_last_turn_with_the_whole_history(self, stub: JudgeStub) -> None:
        stub.script(chat(votes(x="yes", y="no")))
        name = "rubric_based_multi_turn_trajectory_quality_v1"
        score = run(stub, name, case("a", "b", "c"), options={"rubrics": rubrics("x", "y")})
        assert score.per_turn == (None, None, 0.5)
        assert score.value == 0.5
        assert len(stub.requests) == 3
        history = stub.requests[0].fenced["conversation"]
        assert all(f"User: {user}\nAgent: said {user}" in history for user in "abc")

    @pytest.mark.parametrize(
        "name", ["multi_turn_task_success_v1", "multi_turn_trajectory_quality_v1", "multi_turn_tool_use_quality_v1"]
    )
    def test_conversation_metrics_are_shares_of_their_properties(self, stub: JudgeStub, name: str) -> None:
        properties: Mapping[str, str] = load_metric(name).properties  # type: ignore[attr-defined]
        first, *others = properties
        stub.script(chat(votes(**{first: "no"}, **dict.fromkeys(others, "yes"))))
        score = run(stub, name, case("a", "b"))
        assert score.value == pytest.approx(len(others) / len(properties))
        assert score.per_turn[0] is None


def labels(*given: str) -> dict[str, Any]:
    return {"sentences": [{"sentence": f"s{n}", "rationale": "so", "label": one} for n, one in enumerate(given)]}


class TestHallucinations:
    name = "hallucinations_v1"

    def judge(self, stub: JudgeStub, **given: Any) -> None:
        """Every response is one sentence; per response, the reply on its labels."""

        def answer(request: Request) -> Reply:
            if request.question == "sentences":
                return chat({"sentences": [request.fenced["response"]]})
            reply = given[request.fenced["sentences"].removeprefix("1. ").removeprefix("said ")]
            return reply if isinstance(reply, Reply) else chat(reply)

        stub.answer = answer

    def test_supported_and_not_applicable_over_labelled(self, stub: JudgeStub) -> None:
        given = ("supported", " Not_Applicable", "unsupported", "contradictory", "disputed", "whatever")
        self.judge(stub, a=labels(*given))
        score = run(stub, self.name, case("a"))
        assert score.value == pytest.approx(2 / 5)
        assert len(stub.requests) == 2
        assert "3 of 5 sentences not borne out" in score.reason

    def test_one_vote_whatever_the_configuration_says(self, stub: JudgeStub) -> None:
        self.judge(stub, a=labels("supported"))
        run(stub, self.name, case("a"), options={"judge_model_options": {"num_samples": 5}})
        assert len(stub.requests) == 2

    def test_mean_over_responses_then_turns(self, stub: JudgeStub) -> None:
        self.judge(stub, y=labels("supported"), x=labels("supported", "unsupported"), z=labels("unsupported"))
        done = [Invocation("a", (Part("x"),), intermediate=(Part("y"),)), Invocation("b", (Part("z"),))]
        options = {"evaluate_intermediate_nl_responses": True}
        score = run(stub, self.name, case("a", "b"), options=options, invocations=done)
        assert score.per_turn == (0.75, 0.0)
        assert score.value == 0.375
        assert run(stub, self.name, case("a", "b"), invocations=done).per_turn == (0.5, 0.0)

    def test_nothing_labelled_is_left_out(self, stub: JudgeStub) -> None:
        self.judge(stub, a=labels(), b=labels("supported"))
        score = run(stub, self.name, case("a", "b"))
        assert (score.per_turn, score.value) == ((None, 1.0), 1.0)

    def test_nothing_labelled_anywhere_is_not_evaluated(self, stub: JudgeStub) -> None:
        self.judge(stub, a=labels("whatever"))
        score = run(stub, self.name, case("a"))
        assert score.value is None
        assert "labelled no sentence" in (score.error or "")

    def test_a_failed_call_leaves_the_score_unmeasured(self, stub: JudgeStub) -> None:
        self.judge(stub, a=failure(500), b=labels("supported"))
        score = run(stub, self.name, case("a", "b"))
        assert score.value is None
        assert "HTTP 500" in (score.error or "")


def test_response_evaluation_score_is_a_mean_of_grades_from_1_to_5(stub: JudgeStub) -> None:
    grades = [{"reasoning": "so", "score": grade} for grade in (5, 4, 4, 6, 0)]
    stub.answer = by_turn({"a": grades, "b": [{"reasoning": "so", "score": 1}] * 5})
    score = run(stub, "response_evaluation_score", case("a", "b"))
    assert score.per_turn == (pytest.approx(13 / 3), 1.0)
    assert score.value == pytest.approx((13 / 3 + 1) / 2)


class TestSafety:
    name = "safety_v1"

    @pytest.mark.parametrize(
        ("violations", "expected"),
        [((False, False, False), 1.0), ((True, False, False), 1.0), ((True, True, False), 0.0)],
    )
    def test_judge_votes_per_turn(self, stub: JudgeStub, violations: tuple[bool, ...], expected: float) -> None:
        given = [{"reasoning": "so", "violation": one, "categories": ["hate"] if one else []} for one in violations]
        stub.answer = by_turn({"a": given})
        score = run(stub, self.name, case("a"))
        assert score.value == expected

    def test_what_a_judge_quotes_is_masked(self, stub: JudgeStub) -> None:
        told = "it discloses anna@example.com and ghp_" + "a1B2" * 9
        stub.script(chat({"reasoning": told, "violation": True, "categories": ["privacy"]}))
        score = run(stub, self.name, case("a"))
        assert "privacy" in score.reason
        assert "anna" not in score.reason and "ghp_" not in score.reason

    def test_a_tie_is_a_violation(self, stub: JudgeStub) -> None:
        given = [{"reasoning": "so", "violation": one, "categories": []} for one in (True, False)]
        stub.answer = by_turn({"a": [*given, "?"]})
        assert run(stub, self.name, case("a")).value == 0.0

    def test_a_vote_that_contradicts_itself_does_not_count(self, stub: JudgeStub) -> None:
        both = {"reasoning": "so", "violation": False, "categories": ["hate"]}
        stub.answer = by_turn({"a": [both] * 3})
        score = run(stub, self.name, case("a"))
        assert (score.value, "no readable answer" in (score.error or "")) == (None, True)
        against = {"reasoning": "so", "violation": True, "categories": ["hate"]}
        stub.answer = by_turn({"b": [both, against, both]})
        assert run(stub, self.name, case("b")).value == 0.0
        for none in ("None", "No violations found.", "N/A", "not applicable", "-"):
            clean = {"reasoning": "so", "violation": False, "categories": [none]}
            stub.answer = by_turn({"c": [clean] * 3})
            assert run(stub, self.name, case("c")).value == 1.0

    def test_a_moderation_that_contradicts_itself_is_a_violation(self, stub: JudgeStub) -> None:
        stub.answer = lambda _: Reply({"results": [{"flagged": False, "categories": {"hate": True}}]})
        assert run(stub, self.name, case("a"), options={"backend": "moderation"}).value == 0.0

    def test_an_unreadable_turn_leaves_no_pass(self, stub: JudgeStub) -> None:
        good = {"reasoning": "so", "violation": False, "categories": []}
        stub.answer = by_turn({"a": [good] * 3, "b": [chat(None, refusal="no")] * 3})
        score = run(stub, self.name, case("a", "b"))
        assert score.value is None
        assert "refused" in (score.error or "")

    def test_a_violation_stands_whatever_else_failed(self, stub: JudgeStub) -> None:
        bad = {"reasoning": "so", "violation": True, "categories": ["threat"]}
        stub.answer = by_turn({"a": [bad] * 3, "b": [failure(500)] * 3})
        score = run(stub, self.name, case("a", "b"))
        assert score.value == 0.0
        assert "threat" in score.reason

    def test_moderation(self, stub: JudgeStub) -> None:
        def answer(request: Request) -> Reply:
            flagged = "b" in request.json["input"]
            return Reply({"results": [{"flagged": flagged, "categories": {"hate": flagged}}]})

        stub.answer = answer
        score = run(stub, self.name, case("a", "b"), options={"backend": "moderation"})
        assert score.per_turn == (1.0, 0.0)
        assert score.value == 0.5
        assert "turn 2: flagged: hate" in score.reason

    def test_moderation_that_fails_is_no_pass(self, stub: JudgeStub) -> None:
        stub.script(failure(503))
        score = run(stub, self.name, case("a"), options={"backend": "moderation"})
        assert score.value is None
        assert "HTTP 503" in (score.error or "")
