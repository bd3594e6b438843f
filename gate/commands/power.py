"""`gate power`: which drop a suite can detect."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gate.commands.common_options import CONFIG
from gate.commands.groups import Once


@click.command(cls=Once)
@click.argument("record", required=False, type=click.Path(path_type=Path))
@CONFIG
def power(record: Path | None, config_path: Path) -> None:
    """Show which drop a record's suite can detect, with how many cases and trials, at what cost.

    Without RECORD: for each suite of the configuration, by its stored baseline.
    """
    from gate.commands.texts.power import power_of_record, power_of_suites
    from gate.config.load import load_config

    click.echo(power_of_record(record) if record else power_of_suites(load_config(config_path), os.environ))
