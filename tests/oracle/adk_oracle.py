"""Scores pairs with google-adk itself. Runs in an environment of its own that has it, and imports nothing of ours.

In, a line each: ``{"metric", "options", "id", "actual", "expected"}``.
Out: ``{"id", "metric", "score", "per_turn", "error"}``.
``{"stems": [word, …]}`` is answered by ``{"stems": [stem, …]}``, ``{"texts": [[candidate, reference], …]}`` by
``{"seconds"}``, the time that ROUGE took.
"""

import json
import logging
import sys
import time
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

from google.adk.evaluation import _efficiency_evaluators as efficiency  # noqa: E402
from google.adk.evaluation.eval_case import Invocation  # noqa: E402
from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric, ToolTrajectoryCriterion  # noqa: E402
from google.adk.evaluation.final_response_match_v1 import RougeEvaluator, _calculate_rouge_1_scores  # noqa: E402
from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator  # noqa: E402
from nltk.stem.porter import PorterStemmer  # noqa: E402

INFORMATIONAL = {
    "tool_call_count_v1": efficiency._ToolCallCountV1Evaluator,
    "inference_call_count_v1": efficiency._InferenceCallCountV1Evaluator,
    "token_usage_v1": efficiency._TokenUsageV1Evaluator,
    "invocation_duration_v1": efficiency._InvocationDurationV1Evaluator,
}


def evaluator(metric, options):
    if metric == "tool_trajectory_avg_score":
        criterion = ToolTrajectoryCriterion(threshold=0.5, **options)
        return TrajectoryEvaluator(eval_metric=EvalMetric(metric_name=metric, criterion=criterion))
    if metric == "response_match_score":
        return RougeEvaluator(EvalMetric(metric_name=metric, criterion=BaseCriterion(threshold=0.5)))
    return INFORMATIONAL[metric](EvalMetric(metric_name=metric))


def answer(line):
    answer = {"id": line["id"], "metric": line["metric"], "score": None, "per_turn": [], "error": None}
    try:
        actual = [Invocation.model_validate(one) for one in line["actual"]]
        expected = [Invocation.model_validate(one) for one in line["expected"]]
        result = evaluator(line["metric"], line["options"]).evaluate_invocations(actual, expected)
    except ValueError as error:
        answer["error"] = str(error)
        return answer
    answer["score"] = result.overall_score
    answer["per_turn"] = [one.score for one in result.per_invocation_results]
    return answer


def timed(texts):
    start = time.perf_counter()
    for candidate, reference in texts:
        _calculate_rouge_1_scores(candidate, reference)
    return time.perf_counter() - start


for text in sys.stdin:
    line = json.loads(text)
    if "stems" in line:
        stemmer = PorterStemmer()
        reply = {"stems": [stemmer.stem(word) for word in line["stems"]]}
    elif "texts" in line:
        reply = {"seconds": timed(line["texts"])}
    else:
        reply = answer(line)
    print(json.dumps(reply))
