"""Agent Gate: the quality gate for AI agents in continuous integration.

The names in ``__all__`` are the whole public interface: other modules may change with any release.
docs/reference/python.md describes it. Each name is imported on first use.
"""

from __future__ import annotations

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
"""Module → its public names. Type checkers read `__init__.pyi`, since they import nothing."""

__all__ = [name for names in _HOMES.values() for name in names]


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
