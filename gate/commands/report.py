"""`gate report`: a record's verdict again, in any format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

import click

from gate.commands.common_options import AGAINST, CONFIG, OUTPUTS, outputs_of, record_or_newest, with_options
from gate.commands.groups import Once
from gate.commands.output import command_line, finish


@click.command(cls=Once)
@click.argument("record", required=False, type=click.Path(path_type=Path))
@AGAINST
@CONFIG
@with_options(*OUTPUTS)
def report(record: Path | None, baseline: str | None, config_path: Path, **given: Any) -> NoReturn:
    """Render a record's verdict again in any format; without RECORD, that of the newest one.

    It is compared with the baseline that its run would find, unless --against names another.
    """
    from gate.pipeline.judge_stored import report_record

    path, outputs = record_or_newest(record, config_path), outputs_of(given)
    finish(
        report_record(path, baseline, config_path, os.environ, outputs, command_line()),
        given["quiet"],
        given["verbose"],
    )
