"""The functions of the public interface: run, judge, load a record, render. Each is a command without its output."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gate.config import FILE_NAME
from gate.config.load import Config, config_from, load_config
from gate.model import Result
from gate.pipeline.flow import run_gate
from gate.pipeline.progress import Progress
from gate.pipeline.session import RunOptions
from gate.records import Record, read_record
from gate.reports import load_report
from gate.reports.console import render_line
from gate.reports.files import Outputs
from gate.reports.notebook import fragment
from gate.stored.judging import compare_records
from gate.system.signals import in_loop


class ShownResult(Result, frozen=True):
    """A result that a notebook shows as the comment instead of all of its fields."""

    @classmethod
    def of(cls, result: Result) -> ShownResult:
        return cls(*(getattr(result, name) for name in result.__struct_fields__))

    def _repr_html_(self) -> str:
        return fragment(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - IPython's signature
        printer.text(render_line(self))


Configuration = str | Path | Mapping[str, Any]
"""The path of a gate.yaml, or its content."""


def run(
    config: Configuration = FILE_NAME,
    *,
    root: str | Path = ".",
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    record: str | Path | None = None,
    reports: Mapping[str, str | Path] | None = None,
) -> Result:
    """Run the suite, compare it with the baseline and decide, as ``gate run`` does. Prints and publishes nothing, and
    runs nothing after the verdict.

    Args:
        config: the path of a configuration file, or its content as a mapping.
        root: the folder that relative paths start at if ``config`` is a mapping.
        overrides: dotted key → value, such as ``{"trials": 3, "baseline.store": "none"}``; they replace configured
            values.
        environment: the environment variables for the gate. Default: those of this process.
        record: the path of the record to write. Default: below the configuration's ``output``.
        reports: name of a report → the file to write it to.

    Returns:
        The result, which a notebook shows as a report. A failed gate returns a result too: see ``exit_code`` and
        ``verdict``.

    Raises:
        GateError: the run cannot give a verdict. Its ``exit_code`` is that of the command.
        RuntimeError: an event loop runs in this thread; use `run_async` there.
    """
    work = run_async(config, root=root, overrides=overrides, environment=environment, record=record, reports=reports)
    return in_loop(work)


async def run_async(
    config: Configuration = FILE_NAME,
    *,
    root: str | Path = ".",
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    record: str | Path | None = None,
    reports: Mapping[str, str | Path] | None = None,
) -> Result:
    """Do the same as `run` within a running event loop. If cancelled, end the agents that it started."""
    options = RunOptions(None if record is None else Path(record), command="gate.run", fills_baseline=False)
    outputs = Outputs({name: Path(path) for name, path in (reports or {}).items()})
    read = _read(config, root, overrides)
    return ShownResult.of(await run_gate(read, options, outputs, _seen(environment), Progress()))


def judge(
    record: str | Path | Record,
    baseline: str | Path | Record | None = None,
    config: Configuration | None = None,
    *,
    root: str | Path = ".",
    environment: Mapping[str, str] | None = None,
) -> Result:
    """Return the verdict on a finished record, as ``gate compare`` does. Runs no agent.

    Args:
        record: the record to judge: a file, or the result of `load_record`.
        baseline: the record to compare with; None: only thresholds decide.
        config: the criteria and settings to judge by. Default: those of the record.
        root: the folder that relative paths start at if ``config`` is a mapping.
        environment: the environment variables for the gate. Default: those of this process.

    Raises:
        MeasureError: the record is missing, unfinished or damaged.
        BaselineError: the baseline is missing, unfinished or damaged, is the same run, or belongs to another suite.
        ConfigError: the configuration cannot be read, or lacks the record's suite.
    """
    candidate, other = (Path(one) if isinstance(one, str) else one for one in (record, baseline))
    assert candidate is not None
    read_by = None if config is None else _read(config, root, None)
    return ShownResult.of(compare_records(candidate, other, read_by, _seen(environment), Outputs(), "gate.judge"))


def load_record(path: str | Path) -> Record:
    """Return a finished record from a file, after verifying its checksums.

    Raises:
        MeasureError: the record is missing, unfinished or damaged.
    """
    return read_record(Path(path))


def render(result: Result, report: str = "markdown") -> str:
    """Render a result as a report.

    Report names: ``console``, ``junit``, ``ctrf``, ``openmetrics``, ``html``, ``json``, ``markdown``, or that of a
    plugin.

    Raises:
        ConfigError: no report has this name.
    """
    return load_report(report)(result)


def _read(config: Configuration, root: str | Path, overrides: Mapping[str, Any] | None) -> Config:
    if isinstance(config, Mapping):
        return config_from(config, Path(root)).load(overrides)
    return load_config(Path(config), overrides)


def _seen(environment: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environment is None else environment
