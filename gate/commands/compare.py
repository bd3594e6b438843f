"""`gate compare`: the verdict on one record against another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

import click

from gate.commands.common_options import (
    DEFAULT_CONFIG,
    OUTPUTS,
    outputs_of,
    record_before_or,
    record_or_newest,
    with_options,
)
from gate.commands.groups import Once
from gate.commands.output import command_line, finish


@click.command(cls=Once)
@click.argument("candidate", required=False, type=click.Path(path_type=Path))
@click.argument("baseline", required=False, type=click.Path(path_type=Path))
@click.option(
    "-c",
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="Judge by these criteria instead of the record's own.",
)
@with_options(*OUTPUTS)
def compare(candidate: Path | None, baseline: Path | None, config_path: Path | None, **given: Any) -> NoReturn:
    """Give a verdict on one record against another; nothing is run.

    The record that is judged comes first. Without any, the newest is judged; without BASELINE, against the one before.
    """
    from gate.config.load import load_config
    from gate.pipeline.judge_stored import compare_records

    config = load_config(config_path) if config_path else None
    record = record_or_newest(candidate, config_path or DEFAULT_CONFIG)
    reference = record_before_or(baseline, record, config_path or DEFAULT_CONFIG)
    finish(compare_records(record, reference, config, os.environ, outputs_of(given), command_line()), given["quiet"])
