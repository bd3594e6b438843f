"""The metrics that have names, one family per file; each is imported when it is used. `custom` runs the user's own.

A metric scores one trial; `scoring` calls the metrics in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate.metrics.base import Metric
from gate.registry import Registry

_BUILT_IN = {
    "tool_trajectory_avg_score": "gate.metrics.trajectory:ToolTrajectory",
    "response_match_score": "gate.metrics.response:ResponseMatch",
    "tool_accuracy": "gate.metrics.tools:ToolAccuracy",
    "tool_selection_accuracy": "gate.metrics.tools:ToolSelectionAccuracy",
    "sequence_correctness": "gate.metrics.trajectory:SequenceCorrectness",
    "step_efficiency": "gate.metrics.tools:StepEfficiency",
    "strategy_consistency": "gate.metrics.outcome:StrategyConsistency",
    "error_recovery_rate": "gate.metrics.tools:ErrorRecoveryRate",
    "forbidden_tools": "gate.metrics.constraints:ForbiddenTools",
    "contains": "gate.metrics.content:Contains",
    "not_contains": "gate.metrics.content:NotContains",
    "regex": "gate.metrics.content:Regex",
    "not_regex": "gate.metrics.content:NotRegex",
    "json_schema": "gate.metrics.content:JsonSchema",
    "allowed_links": "gate.metrics.allowed_links:AllowedLinks",
    "cost": "gate.metrics.efficiency:Cost",
    "latency": "gate.metrics.efficiency:Latency",
    "response_time": "gate.metrics.efficiency:Latency",
    "tokens": "gate.metrics.efficiency:Tokens",
    "tool_calls": "gate.metrics.efficiency:ToolCalls",
    "tool_call_count_v1": "gate.metrics.efficiency:ToolCallCountV1",
    "inference_call_count_v1": "gate.metrics.efficiency:InferenceCallCountV1",
    "token_usage_v1": "gate.metrics.efficiency:TokenUsageV1",
    "invocation_duration_v1": "gate.metrics.efficiency:InvocationDurationV1",
    "pass_rate": "gate.metrics.outcome:PassRate",
    "pass_k": "gate.metrics.outcome:PassK",
    "recorded_score": "gate.metrics.outcome:RecordedScore",
    "weighted_score": "gate.metrics.weighted:WeightedScore",
    "response_evaluation_score": "gate.metrics.final_response:ResponseEvaluationScore",
    "pii": "gate.metrics.safety:Pii",
    "secrets": "gate.metrics.safety:Secrets",
    "safety_v1": "gate.metrics.safety:SafetyV1",
    "final_response_match_v2": "gate.metrics.final_response:FinalResponseMatchV2",
    "hallucinations_v1": "gate.metrics.hallucination:HallucinationsV1",
    "rubric_based_final_response_quality_v1": "gate.metrics.rubric:FinalResponseQuality",
    "rubric_based_tool_use_quality_v1": "gate.metrics.rubric:ToolUseQuality",
    "rubric_based_multi_turn_trajectory_quality_v1": "gate.metrics.rubric:MultiTurnTrajectoryRubrics",
    "multi_turn_task_success_v1": "gate.metrics.presets:PRESETS",
    "multi_turn_trajectory_quality_v1": "gate.metrics.presets:PRESETS",
    "multi_turn_tool_use_quality_v1": "gate.metrics.presets:PRESETS",
    "per_turn_user_simulator_quality_v1": "gate.metrics.simulator:UserSimulatorQuality",
    "relevance": "gate.metrics.presets:PRESETS",
    "completeness": "gate.metrics.quality:Completeness",
    "clarity": "gate.metrics.presets:PRESETS",
    "accuracy": "gate.metrics.presets:PRESETS",
    "response_quality": "gate.metrics.quality:ResponseQuality",
    "consistency": "gate.metrics.presets:PRESETS",
    "source_attribution": "gate.metrics.presets:PRESETS",
    "source_quality": "gate.metrics.quality:SourceQuality",
    "follow_up_handling": "gate.metrics.presets:PRESETS",
    "detail_level": "gate.metrics.presets:PRESETS",
    "appropriateness": "gate.metrics.presets:PRESETS",
    "engagement": "gate.metrics.presets:PRESETS",
    "output_quality": "gate.metrics.quality:OutputQuality",
    "tone": "gate.metrics.tone:ToneMatch",
    "factual_accuracy": "gate.metrics.claims:FactualAccuracy",
    "factual_correctness": "gate.metrics.claims:FactualCorrectness",
    "hallucination": "gate.metrics.presets:PRESETS",
    "citation_coverage": "gate.metrics.presets:PRESETS",
    "citation_correctness": "gate.metrics.presets:PRESETS",
    "rubric": "gate.metrics.level_rubric:LevelRubric",
    "research_rubric": "gate.metrics.level_rubric:ResearchRubric",
    "agent_score": "gate.metrics.weighted:AgentScore",
    "overall_score": "gate.metrics.weighted:OverallScore",
    "resolution_rate": "gate.metrics.presets:PRESETS",
    "containment_rate": "gate.metrics.presets:PRESETS",
    "first_contact_resolution": "gate.metrics.presets:PRESETS",
    "satisfaction": "gate.metrics.presets:PRESETS",
    "task_completion": "gate.metrics.domain:TaskCompletion",
    "time_against_baseline": "gate.metrics.domain:TimeAgainstBaseline",
    "error_handling": "gate.metrics.presets:PRESETS",
    "api_usage": "gate.metrics.presets:PRESETS",
    "data_handling": "gate.metrics.presets:PRESETS",
    "retrieval_precision": "gate.metrics.domain:RetrievalPrecision",
    "retrieval_recall": "gate.metrics.domain:RetrievalRecall",
    "retrieval_f1": "gate.metrics.domain:RetrievalF1",
}
METRICS = Registry[type[Metric[Any]]]("metric", "agent_gate.metrics", _BUILT_IN, base="gate.metrics.base:Metric")
"""The metrics by name, as a criterion or its ``metric`` gives it. A new metric takes one line here and one class.

`PRESETS` is a table of metrics by name, each an existing class with another question.
"""


def load_metric(name: str, folder: str = "", environment: Mapping[str, str] | None = None) -> type[Metric[Any]]:
    """Return the class of a registered metric, or of the user's own at a dotted path.

    Args:
        name: a registered name, or ``module:attribute``.
        folder: where to find a user's own metric, besides the installed packages.
        environment: the environment of the process that runs a user's own metric.

    Raises:
        ConfigError: an unknown name (the error gives the nearest known one), or a path to nothing.
    """
    if name not in METRICS and (":" in name or "." in name):
        from gate.metrics.custom.isolated import resolve_isolated  # imported only for the user's own code
        from gate.metrics.custom.metric import MetricUse

        return resolve_isolated(name, MetricUse(folder=folder, environment=environment or {}))
    return METRICS.load(name)
