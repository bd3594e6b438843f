"""Agent Gate: the quality gate for AI agents in continuous integration.

The names in ``__all__`` are the whole public interface: other modules may change with any release.
docs/reference/python.md describes it. Each name is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gate.agents.base import Agent, AgentFailure, AgentOptions, Request, read_answer
    from gate.api import judge, load_record, render, run, run_async
    from gate.baselines.base import StoreOptions, StoreSettings
    from gate.baselines.blobs import BlobStore
    from gate.errors import (
        BaselineError,
        BaselineWriteError,
        ConfigError,
        ExitCode,
        GateError,
        MeasureError,
        PublishError,
        UntrustedError,
    )
    from gate.hosts.base import Done, Effect, Host, HostOptions, PostComment, WriteSummary
    from gate.metrics.base import (
        Composite,
        Context,
        Judged,
        Metric,
        NoOptions,
        Options,
        PerTurn,
        TrialOutput,
        TurnFinding,
    )
    from gate.model import (
        Case,
        CaseResult,
        CriterionResult,
        Direction,
        ErrorKind,
        Invocation,
        RecordedTrial,
        Result,
        Scale,
        Score,
        SuiteResult,
        ToolCall,
        Trial,
        Turn,
        Usage,
        Verdict,
    )
    from gate.model.strictness import DOWN, FEWER, FREE, MORE, OFF, ON, UP, steps
    from gate.records import Record
    from gate.suites.base import Contents, Document, Format

__version__ = "0.1.0"

_HOMES = {
    "gate.agents.base": ("Agent", "AgentFailure", "AgentOptions", "Request", "read_answer"),
    "gate.baselines.base": ("StoreOptions", "StoreSettings"),
    "gate.baselines.blobs": ("BlobStore",),
    "gate.errors": (
        "BaselineError",
        "BaselineWriteError",
        "ConfigError",
        "ExitCode",
        "GateError",
        "MeasureError",
        "PublishError",
        "UntrustedError",
    ),
    "gate.hosts.base": ("Done", "Effect", "Host", "HostOptions", "PostComment", "WriteSummary"),
    "gate.metrics.base": (
        "Composite",
        "Context",
        "TurnFinding",
        "Judged",
        "Metric",
        "NoOptions",
        "Options",
        "PerTurn",
        "TrialOutput",
    ),
    "gate.model": (
        "Case",
        "CaseResult",
        "CriterionResult",
        "Direction",
        "ErrorKind",
        "Invocation",
        "RecordedTrial",
        "Result",
        "Scale",
        "Score",
        "SuiteResult",
        "ToolCall",
        "Trial",
        "Turn",
        "Usage",
        "Verdict",
    ),
    "gate.model.strictness": ("DOWN", "FEWER", "FREE", "MORE", "OFF", "ON", "UP", "steps"),
    "gate.api": ("judge", "load_record", "render", "run", "run_async"),
    "gate.records": ("Record",),
    "gate.suites.base": ("Contents", "Document", "Format"),
}
"""Module → its public names, as in the imports for type checkers above."""

__all__ = [
    "DOWN",
    "FEWER",
    "FREE",
    "MORE",
    "OFF",
    "ON",
    "UP",
    "Agent",
    "AgentFailure",
    "AgentOptions",
    "BaselineError",
    "BaselineWriteError",
    "BlobStore",
    "Case",
    "CaseResult",
    "Composite",
    "ConfigError",
    "Contents",
    "Context",
    "CriterionResult",
    "Direction",
    "Document",
    "Done",
    "Effect",
    "ErrorKind",
    "ExitCode",
    "Format",
    "GateError",
    "Host",
    "HostOptions",
    "Invocation",
    "Judged",
    "MeasureError",
    "Metric",
    "NoOptions",
    "Options",
    "PerTurn",
    "PostComment",
    "PublishError",
    "Record",
    "RecordedTrial",
    "Request",
    "Result",
    "Scale",
    "Score",
    "StoreOptions",
    "StoreSettings",
    "SuiteResult",
    "ToolCall",
    "Trial",
    "TrialOutput",
    "Turn",
    "TurnFinding",
    "UntrustedError",
    "Usage",
    "Verdict",
    "WriteSummary",
    "judge",
    "load_record",
    "read_answer",
    "render",
    "run",
    "run_async",
    "steps",
]


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            found: object = getattr(import_module(module), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
