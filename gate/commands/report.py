"""`gate report`: a record's verdict again, in any format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

import click

from gate.commands.common_options import AGAINST, CONFIG, OUTPUTS, outputs_of, with_options
from gate.commands.groups import Once
from gate.commands.output import command_line, finish


@click.command(cls=Once)
@click.argument("record", type=click.Path(path_type=Path))
@AGAINST
@CONFIG
@with_options(*OUTPUTS)
def report(record: Path, baseline: str | None, config_path: Path, **given: Any) -> NoReturn:
    """Render a record's verdict again in any format, against the baseline that its run would find."""
    from gate.pipeline.judge_stored import report_record

    finish(report_record(record, baseline, config_path, os.environ, outputs_of(given), command_line()), given["quiet"])
