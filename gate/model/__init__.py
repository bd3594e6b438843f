"""The nouns of the gate: what is said, measured and decided. Frozen values; no I/O, no clock, no environment.

Units everywhere: durations in seconds, money in US dollars, probabilities and shares in 0–1.
A value that was not measured is None with an error beside it, never 0 and never NaN.
"""

from gate.model.conversation import (
    MAX_SECONDS,
    SILENT,
    Invocation,
    Part,
    ToolCall,
    ToolTime,
    Usage,
    text_of,
    tool_times,
    total_duration,
    total_usage,
)
from gate.model.criterion import Criterion
from gate.model.evidence import (
    CaseCounts,
    EvidenceSummary,
    LookTest,
    MetricChange,
    MetricTest,
    Outcome,
    Stage,
    StageKind,
)
from gate.model.results import (
    BaselineInfo,
    CaseResult,
    CaseStatus,
    CrashFacts,
    CriterionResult,
    Estimate,
    Result,
    StoredForLater,
    SuiteResult,
    acceptable,
)
from gate.model.scale import Direction, MetricKind, Scale
from gate.model.suite import Case, Complexity, Location, RecordedTrial, Rubric, Suite, Turn
from gate.model.trial import CONFIRM, ENDS, FULL, PROBE, STORED, End, ErrorKind, Score, Side, Trial, TrialError
from gate.model.verdict import SEVERITY, OnTradeoff, Verdict, worst

__all__ = [
    "CONFIRM",
    "ENDS",
    "FULL",
    "MAX_SECONDS",
    "PROBE",
    "SEVERITY",
    "SILENT",
    "STORED",
    "BaselineInfo",
    "Case",
    "CaseCounts",
    "CaseResult",
    "CaseStatus",
    "Complexity",
    "CrashFacts",
    "Criterion",
    "CriterionResult",
    "Direction",
    "End",
    "ErrorKind",
    "Estimate",
    "EvidenceSummary",
    "Invocation",
    "Location",
    "LookTest",
    "MetricChange",
    "MetricKind",
    "MetricTest",
    "OnTradeoff",
    "Outcome",
    "Part",
    "RecordedTrial",
    "Result",
    "Rubric",
    "Scale",
    "Score",
    "Side",
    "Stage",
    "StageKind",
    "StoredForLater",
    "Suite",
    "SuiteResult",
    "ToolCall",
    "ToolTime",
    "Trial",
    "TrialError",
    "Turn",
    "Usage",
    "Verdict",
    "acceptable",
    "text_of",
    "tool_times",
    "total_duration",
    "total_usage",
    "worst",
]
