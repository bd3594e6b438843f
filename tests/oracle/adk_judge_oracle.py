"""Aggregates scripted verdicts with google-adk itself. Runs in an environment of its own, and imports nothing of ours.

In, a line each: ``{"metric", "rubrics": [id, …], "turns": [[text of one judge's answer, …], …]}``, the answers in the
order in which google-adk asks; with ``start``, of a scenario that begins so. Out: ``{"score", "per_turn"}``.
Or in: ``{"simulate": [what the model says, …], "limit"}``. Out: ``{"users": [what the simulated user says, …]}``.
"""

import asyncio
import json
import logging
import sys
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

from google.adk.evaluation.conversation_scenarios import ConversationScenario  # noqa: E402
from google.adk.evaluation.eval_case import Invocation  # noqa: E402
from google.adk.evaluation.eval_metrics import (  # noqa: E402
    EvalMetric,
    HallucinationsCriterion,
    LlmAsAJudgeCriterion,
    LlmBackedUserSimulatorCriterion,
    RubricsBasedCriterion,
)
from google.adk.evaluation.final_response_match_v2 import FinalResponseMatchV2Evaluator  # noqa: E402
from google.adk.evaluation.hallucinations_v1 import HallucinationsV1Evaluator  # noqa: E402
from google.adk.evaluation.rubric_based_final_response_quality_v1 import (  # noqa: E402
    RubricBasedFinalResponseQualityV1Evaluator,
)
from google.adk.evaluation.rubric_based_multi_turn_trajectory_evaluator import (  # noqa: E402
    RubricBasedMultiTurnTrajectoryEvaluator,
)
from google.adk.evaluation.rubric_based_tool_use_quality_v1 import RubricBasedToolUseV1Evaluator  # noqa: E402
from google.adk.evaluation.simulation.llm_backed_user_simulator import (  # noqa: E402
    LlmBackedUserSimulator,
    LlmBackedUserSimulatorConfig,
)
from google.adk.evaluation.simulation.per_turn_user_simulator_quality_v1 import (  # noqa: E402
    PerTurnUserSimulatorQualityV1,
)
from google.adk.models.base_llm import BaseLlm  # noqa: E402
from google.adk.models.llm_response import LlmResponse  # noqa: E402
from google.adk.models.registry import LLMRegistry  # noqa: E402
from google.genai import types  # noqa: E402

ANSWERS: list = []


class Scripted(BaseLlm):
    @classmethod
    def supported_models(cls):
        return ["scripted"]

    async def generate_content_async(self, llm_request, stream=False):
        text = ANSWERS.pop(0)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


LLMRegistry.register(Scripted)
EVALUATORS = {
    "final_response_match_v2": (FinalResponseMatchV2Evaluator, LlmAsAJudgeCriterion),
    "hallucinations_v1": (HallucinationsV1Evaluator, HallucinationsCriterion),
    "rubric_based_final_response_quality_v1": (RubricBasedFinalResponseQualityV1Evaluator, RubricsBasedCriterion),
    "rubric_based_tool_use_quality_v1": (RubricBasedToolUseV1Evaluator, RubricsBasedCriterion),
    "rubric_based_multi_turn_trajectory_quality_v1": (RubricBasedMultiTurnTrajectoryEvaluator, RubricsBasedCriterion),
    "per_turn_user_simulator_quality_v1": (PerTurnUserSimulatorQualityV1, LlmBackedUserSimulatorCriterion),
}


def invocation(text):
    content = {"role": "user", "parts": [{"text": text}]}
    return Invocation.model_validate(
        {"user_content": content, "final_response": {"role": "model", "parts": content["parts"]}}
    )


def aggregate(line):
    evaluator, criterion_type = EVALUATORS[line["metric"]]
    samples = max(len(turn) for turn in line["turns"])
    options = {"threshold": 0.5, "judge_model_options": {"judge_model": "scripted", "num_samples": samples}}
    if line["rubrics"]:
        options["rubrics"] = [
            {"rubric_id": one, "rubric_content": {"text_property": f"property {one}"}} for one in line["rubrics"]
        ]
    metric = EvalMetric(metric_name=line["metric"], criterion=criterion_type.model_validate(options))
    ANSWERS[:] = [text for turn in line["turns"] for text in turn]
    turns = [invocation(f"turn {number}") for number in range(line["played"])]
    scenario = (
        ConversationScenario(starting_prompt=line["start"], conversation_plan="Ask.") if "start" in line else None
    )
    held = {"conversation_scenario": scenario} if scenario else {"expected_invocations": turns}
    result = asyncio.run(evaluator(metric).evaluate_invocations(turns, **held))
    return {"score": result.overall_score, "per_turn": [one.score for one in result.per_invocation_results]}


def simulate(line):
    ANSWERS[:] = line["simulate"]
    config = LlmBackedUserSimulatorConfig(model="scripted", max_allowed_invocations=line["limit"])
    scenario = ConversationScenario(starting_prompt="start", conversation_plan="Ask.")
    simulator = LlmBackedUserSimulator(config=config, conversation_scenario=scenario)
    users = []
    while (said := asyncio.run(simulator.get_next_user_message([]))).user_message is not None:
        users.append(said.user_message.parts[0].text)
    return {"users": users}


for text in sys.stdin:
    asked = json.loads(text)
    print(json.dumps(simulate(asked) if "simulate" in asked else aggregate(asked)))
