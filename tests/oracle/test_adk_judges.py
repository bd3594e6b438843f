"""Our aggregation of scripted verdicts against google-adk's own, over random scripts."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gate.judges.client import Judge
from gate.judges.options import JudgeOptions
from gate.metrics import load_metric
from gate.metrics.base import TrialOutput
from gate.metrics.judged import JudgedMetric
from gate.model import Case, Invocation, Part, Scenario, Score, Turn
from gate.pipeline.execute import SimulatedUser
from tests.integration.judges.judge_stub import JudgeStub, Reply, Request, chat
from tests.oracle.oracle import PYTHON

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not PYTHON, reason="GATE_ORACLE_PYTHON names no environment with google-adk"),
]
SCRIPT = Path(__file__).with_name("adk_judge_oracle.py")
LABELS = ["valid", "invalid", "true", "false", "almost", "partially", "partially_valid", "Valid", "perhaps", None]
VERDICTS = ["yes", "no", "Yes", "NO", "maybe", "yes and no", "unknown", "not at all"]
MARKS = ["supported", "unsupported", "contradictory", "disputed", "not_applicable", "Supported", "plausible"]
RUBRICS = [
    "rubric_based_final_response_quality_v1",
    "rubric_based_tool_use_quality_v1",
    "rubric_based_multi_turn_trajectory_quality_v1",
]


def theirs(questions: Sequence[Mapping[str, Any]]) -> list[Any]:
    sent = "".join(json.dumps(one) + "\n" for one in questions)
    done = subprocess.run([str(PYTHON), str(SCRIPT)], input=sent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def ours(metric: str, played: int, options: Mapping[str, Any], turns: Sequence[Sequence[str]]) -> Score:
    """The same votes over HTTP; a turn is known by its user's text."""
    left = {f"turn {number}": list(votes) for number, votes in enumerate(turns)}

    def answer(request: Request) -> Reply:
        if request.question == "sentences":
            return chat({"sentences": ["one"]})
        key = request.fenced.get("user's request", "turn 0")
        return chat(left[key].pop(0))

    metric_type = load_metric(metric)
    built = metric_type(metric_type.options_type.model_validate(dict(options)))
    assert isinstance(built, JudgedMetric)
    case = Case("c", tuple(Turn(f"turn {n}", response=(Part("r"),)) for n in range(played)))
    done = tuple(Invocation(f"turn {n}", (Part(f"said {n}"),)) for n in range(played))

    async def run(url: str) -> Score:
        votes = max(len(turn) for turn in turns)
        settings = JudgeOptions(model="stub", base_url=url, num_samples=votes, retries=0)
        async with Judge(settings, environment={}) as judge:
            return await built.judge_score(case, TrialOutput(done), judge)

    with JudgeStub() as stub:
        stub.answer = answer
        return asyncio.run(run(stub.url))


def check(scripts: Sequence[tuple[str, int, list[str], list[list[str]], list[list[str]]]]) -> None:
    """(metric, turns played, rubric ids, answers in google-adk's form, the same in ours)"""
    asked = [
        {"metric": metric, "played": played, "rubrics": rubrics, "turns": adk}
        for metric, played, rubrics, adk, _ in scripts
    ]
    for (metric, played, rubrics, _, mine), expected in zip(scripts, theirs(asked), strict=True):
        given = [{"rubric_id": one, "rubric_content": {"text_property": f"property {one}"}} for one in rubrics]
        score = ours(metric, played, {"rubrics": given} if rubrics else {}, mine)
        assert score.value == expected["score"], (metric, mine, score, expected)
        assert list(score.per_turn) == expected["per_turn"], (metric, mine, score, expected)


def test_final_response_match() -> None:
    rng = random.Random(1)
    scripts = []
    for _ in range(60):
        samples = rng.randint(1, 5)
        turns = [[rng.choice(LABELS) for _ in range(samples)] for _ in range(rng.randint(1, 3))]
        texts = [
            [json.dumps({"reasoning": "so", "is_the_agent_response_valid": one}) for one in turn] for turn in turns
        ]
        scripts.append(("final_response_match_v2", len(turns), [], texts, texts))
    check(scripts)


def test_rubrics() -> None:
    rng = random.Random(2)
    scripts = []
    for _ in range(60):
        metric, ids = rng.choice(RUBRICS), ["a", "b", "c"][: rng.randint(1, 3)]
        played, samples = rng.randint(1, 3), rng.randint(1, 5)
        judged = 1 if metric == RUBRICS[2] else played
        votes = [
            [{one: rng.choice(VERDICTS) for one in ids if rng.random() < 0.9} for _ in range(samples)]
            for _ in range(judged)
        ]
        adk = [["\n".join(_block(*one) for one in vote.items()) for vote in turn] for turn in votes]
        mine = [
            [
                json.dumps({"verdicts": [{"id": i, "rationale": "so", "verdict": v} for i, v in vote.items()]})
                for vote in turn
            ]
            for turn in votes
        ]
        scripts.append((metric, played, ids, adk, mine))
    check(scripts)


def _block(name: str, verdict: str) -> str:
    return f"ID: {name}\nProperty: property {name}\nRationale: so\nVerdict: {verdict}\n"


def test_hallucinations() -> None:
    rng = random.Random(3)
    scripts = []
    for _ in range(60):
        turns = [[rng.choice(MARKS) for _ in range(rng.randint(0, 7))] for _ in range(rng.randint(1, 4))]
        adk = [["<sentence>one</sentence>", "\n\n".join(_sentence(one) for one in turn)] for turn in turns]
        mine = [
            [json.dumps({"sentences": [{"sentence": "s", "rationale": "so", "label": one} for one in turn]})]
            for turn in turns
        ]
        scripts.append(("hallucinations_v1", len(turns), [], adk, mine))
    check(scripts)


def _sentence(label: str) -> str:
    return f"sentence: s\nlabel: {label}\nrationale: so\nsupporting_excerpt: null\ncontradicting_excerpt: null"


KEPT = "per_turn_user_simulator_quality_v1"


def kept(start: str, played: int, turns: Sequence[Sequence[str]]) -> Score:
    """Our score of a simulated user; the votes of each turn but the first, then of the end."""
    left = {f"turn {number}": list(votes) for number, votes in enumerate(turns[:-1], 1)}
    left["</finished>"] = list(turns[-1])
    built = load_metric(KEPT)(load_metric(KEPT).options_type())
    assert isinstance(built, JudgedMetric)
    case = Case("c", (Turn(start),), scenario=Scenario(start, "Ask."))
    done = tuple(Invocation(f"turn {n}", (Part(f"said {n}"),)) for n in range(played))

    async def run(url: str) -> Score:
        settings = JudgeOptions(model="stub", base_url=url, num_samples=len(turns[0]), retries=0)
        async with Judge(settings, environment={}) as judge:
            return await built.judge_score(case, TrialOutput(done), judge)

    with JudgeStub() as stub:
        stub.answer = lambda request: chat(left[request.fenced["the user's next message"]].pop(0))
        return asyncio.run(run(stub.url))


def test_simulated_users_are_judged_alike() -> None:
    rng = random.Random(4)
    labels = [*LABELS, "valid", "valid", True, False]
    scripts = []
    for _ in range(60):
        played, samples = rng.randint(1, 4), rng.randint(1, 4)
        votes = [[rng.choice(labels) for _ in range(samples)] for _ in range(played)]
        texts = [[json.dumps({"reasoning": "so", "is_valid": one}) for one in turn] for turn in votes]
        scripts.append((rng.choice(["turn 0", " turn 0\n", "another"]), played, texts))
    asked = [
        {"metric": KEPT, "played": played, "rubrics": [], "turns": texts, "start": start}
        for start, played, texts in scripts
    ]
    for script, expected in zip(scripts, theirs(asked), strict=True):
        score = kept(*script)
        assert score.value == expected["score"], (script, score, expected)
        assert list(score.per_turn) == expected["per_turn"], (script, score, expected)


def test_simulated_users_say_the_same_and_stop_alike() -> None:
    rng = random.Random(5)
    said = ["Go on.", "Order A100.", "</finished>", "Done </FINISHED> bye", "finished", "<finished>"]
    asked = [{"simulate": [rng.choice(said) for _ in range(9)], "limit": rng.randint(1, 8)} for _ in range(60)]
    for script, expected in zip(asked, theirs(asked), strict=True):
        assert _users(script["simulate"], script["limit"]) == expected["users"], script


def _users(answers: list[str], limit: int) -> list[str]:
    left = iter(answers)

    async def run(url: str) -> list[str]:
        settings = JudgeOptions(model="stub", base_url=url, retries=0)
        async with Judge(settings, environment={}) as model:
            user, spoken = SimulatedUser(Scenario("start", "Ask."), model, limit), list[Invocation]()
            while (text := await user.next_turn(spoken)) is not None:
                spoken.append(Invocation(text, (Part("answer"),)))
            return [turn.user for turn in spoken]

    with JudgeStub() as stub:
        stub.answer = lambda request: chat(next(left))
        return asyncio.run(run(stub.url))
