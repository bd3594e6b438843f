"""The place of the report that `gate open` shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gate.pipeline.journal import results_folder
from gate.reports.files import Outputs
from gate.stored.judging import report_record


def html_of(record: Path, baseline: str | None, config_path: Path, environment: Mapping[str, str]) -> Path:
    """The HTML report of a record, made anew; one file for each name of a record."""
    path = results_folder(config_path) / "reports" / f"{record.stem}.html"
    report_record(record, baseline, config_path, environment, Outputs({"html": path}), f"gate open {record}")
    return path
