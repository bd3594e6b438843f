"""Whatever a judge answers and an agent said, a score is in range or not measured; no metric ever raises."""

from __future__ import annotations

import asyncio
import json
import math
import random
from typing import Any

import pytest

from gate.judges.client import Judge
from gate.judges.options import JudgeOptions
from gate.metrics import load_metric
from gate.metrics.base import TrialOutput
from gate.metrics.judged import JudgedMetric
from gate.model import Case, Invocation, Part, Score, ToolCall, Turn
from tests.integration.judges.judge_stub import JudgeStub, Reply, Request, chat
from tests.integration.judges.test_injection import JUDGED, OPTIONS

pytestmark = pytest.mark.slow

ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1e308,
    7,
    "",
    "yes",
    "no",
    "valid",
    "supported",
    "because",
    [],
    {},
    "x" * 3000,
    "\ud800",
]


def any_answer(schema: dict[str, Any], root: dict[str, Any], rng: random.Random) -> Any:
    """Mostly of the schema, with odd values here and there."""
    if rng.random() < 0.06:
        return rng.choice(ODD)
    if "$ref" in schema:
        return any_answer(root["$defs"][schema["$ref"].split("/")[-1]], root, rng)
    if "anyOf" in schema:
        return any_answer(rng.choice(schema["anyOf"]), root, rng)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        return {name: any_answer(part, root, rng) for name, part in schema["properties"].items()}
    if kind == "array":
        return [any_answer(schema["items"], root, rng) for _ in range(rng.randrange(4))]
    if kind == "integer":
        return rng.randint(0, 30)
    return {"boolean": rng.random() < 0.5, "null": None}.get(str(kind), rng.choice(["yes", "no", "r", "depth", "good"]))


def assert_strict(schema: dict[str, Any]) -> None:
    """The rules of structured outputs: every property required, none beyond, no defaults."""
    for one in (schema, *schema.get("$defs", {}).values()):
        if one.get("type") == "object":
            assert one["additionalProperties"] is False
            assert one["required"] == list(one["properties"])
            assert not any("default" in part for part in one["properties"].values())


DEEP: Any = []
for _ in range(3000):
    DEEP = [DEEP]
HOSTILE = (
    Invocation(),
    Invocation("\ud800", (Part("a\x00\ud800"),), (ToolCall("", DEEP, result={"k": float("nan")}),)),
    Invocation("u", (Part("t", thought=True),), (ToolCall("x" * 9000, object(), result=b"\xff", error="\x1b[31m"),)),
)


@pytest.mark.parametrize("name", JUDGED)
def test_any_answer_is_a_score_in_range_or_none(stub: JudgeStub, name: str) -> None:
    rng = random.Random(name)

    def answer(request: Request) -> Reply:
        schema = request.json["response_format"]["json_schema"]["schema"]
        text = json.dumps(any_answer(schema, schema, rng))
        return chat(text[: rng.randrange(len(text))] if rng.random() < 0.1 else text)

    stub.answer = answer
    metric_type = load_metric(name)
    case = Case("c", tuple(Turn(one.user, response=(Part("r"),)) for one in HOSTILE))

    async def run(number: int) -> Score:
        built = metric_type(metric_type.options_type.model_validate(OPTIONS.get(name, {})))
        assert isinstance(built, JudgedMetric)
        settings = JudgeOptions(model="stub", base_url=stub.url, retries=0, num_samples=2)
        async with Judge(settings, environment={}) as judge:
            return await built.judge_score(case, TrialOutput(HOSTILE, 1.0), judge)

    low, high = metric_type.scale.range
    for number in range(3):
        score = asyncio.run(run(number))
        assert score.error is None or score.value is None
        if score.value is not None:
            assert math.isfinite(score.value) and low <= score.value <= high, score
            assert score.reason
        assert len(score.reason) < 5_000
        assert len(score.error or "") < 5_000
    for request in stub.requests:
        assert_strict(request.json["response_format"]["json_schema"]["schema"])
