"""`gate report`: renders a record's verdict in any report format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

import click

from gate.commands.common_options import (
    AGAINST,
    CONFIG,
    OUTPUTS,
    RECORD,
    STATEMENT,
    outputs_of,
    record_or_newest,
    with_options,
)
from gate.commands.groups import Once
from gate.commands.output import command_line, errors_in_reports, finish


@click.command(cls=Once)
@RECORD
@AGAINST
@CONFIG
@STATEMENT
@with_options(*OUTPUTS)
def report(record: Path | None, baseline: str | None, config_path: Path, **given: Any) -> NoReturn:
    """Render a record in any report format.

    Default for RECORD: the newest. Compares it with the baseline that its run would find, unless --against names
    another.
    """
    from gate.stored.judging import report_record

    if given["statement"] and baseline is not None:
        raise click.UsageError("--statement cannot be combined with --against")
    path, outputs = record_or_newest(record, config_path), outputs_of(given)
    with errors_in_reports(lambda: outputs):
        result = report_record(path, baseline, config_path, os.environ, outputs, command_line())
    if given["statement"]:
        from gate.config.load import load_config
        from gate.stored.evidence import rules_of_record, stated

        rules = rules_of_record(path, load_config(config_path))
        result = stated(result, given["statement"], outputs.paths.values(), rules)
    finish(result, given["quiet"], given["verbose"])
