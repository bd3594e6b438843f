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
from gate.model.results import (
    SEVERITY,
    BaselineInfo,
    CaseResult,
    CaseStatus,
    CrashFacts,
    CriterionResult,
    Estimate,
    Result,
    SuiteResult,
    Verdict,
    acceptable,
    worst,
)
from gate.model.scale import RANGES, Direction, MetricKind, Scale, kind_of
from gate.model.suite import Case, Complexity, Location, RecordedTrial, Rubric, Suite, Turn
from gate.model.trial import CONFIRM, ENDS, FULL, PROBE, End, ErrorKind, Score, Side, Trial, TrialError

__all__ = [
    "CONFIRM",
    "ENDS",
    "FULL",
    "MAX_SECONDS",
    "PROBE",
    "RANGES",
    "SEVERITY",
    "SILENT",
    "BaselineInfo",
    "Case",
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
    "Invocation",
    "Location",
    "MetricKind",
    "Part",
    "RecordedTrial",
    "Result",
    "Rubric",
    "Scale",
    "Score",
    "Side",
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
    "kind_of",
    "text_of",
    "tool_times",
    "total_duration",
    "total_usage",
    "worst",
]
