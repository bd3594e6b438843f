"""The values that the gate works with: conversations, measurements and decisions. Frozen; no I/O, clock or environment.

Units everywhere: durations in seconds, money in US dollars, probabilities and shares in 0–1. A value that was not
measured is None, with an error next to it; never 0 and never NaN.
"""

from gate.model.conversation import (
    ARGUMENTS,
    CALLS,
    PARTS,
    RESPONSE,
    RESULTS,
    SILENT,
    ForeignScore,
    Invocation,
    Part,
    ToolCall,
    ToolTime,
    Usage,
    parts_of,
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
    RepeatsTest,
    Stage,
    StageKind,
)
from gate.model.groups import Concentration, GroupKind
from gate.model.measured import MeasuredTrial, MeasuredTurn, values_of
from gate.model.results import (
    BaselineInfo,
    CaseResult,
    CaseStatus,
    CrashFacts,
    CriterionResult,
    Estimate,
    GroupResult,
    Result,
    StoredForLater,
    SuiteResult,
    accepted_by,
)
from gate.model.scale import Direction, MetricKind, Scale
from gate.model.suite import (
    Behavior,
    Case,
    Complexity,
    Location,
    Persona,
    RecordedTrial,
    Rubric,
    Scenario,
    Suite,
    Turn,
)
from gate.model.trial import (
    BASE,
    CONFIRM,
    ENDS,
    FULL,
    NARROW,
    PROBE,
    REPEAT,
    STORED,
    End,
    ErrorKind,
    Models,
    Replay,
    Score,
    Side,
    Trial,
    TrialError,
)
from gate.model.verdict import SEVERITY, Verdict, worst
