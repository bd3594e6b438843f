"""`gate rescore`: applies the current criteria to a stored record."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gate.commands.common_options import CONFIG, PATH
from gate.commands.groups import Once


@click.command(cls=Once)
@click.argument("record", type=PATH)
@CONFIG
@click.option("-o", "--output", required=True, type=PATH, help="File for the new record.")
def rescore(record: Path, config_path: Path, output: Path) -> None:
    """Score a record again with the current criteria.

    Runs no agent.
    """
    from gate.config.load import load_config
    from gate.stored.judging import rescore_record
    from gate.system.signals import run as run_coroutine

    click.echo(run_coroutine(rescore_record(record, output, load_config(config_path), os.environ)))
