"""`gate promote`: turns a trace that did not pass into a case."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gate.commands.common_options import CONFIG, PATH
from gate.commands.groups import Once


@click.command(cls=Once)
@click.argument("trace")
@CONFIG
@click.option("--to", "target", type=PATH, help="The suite file to append the case to.")
@click.option("--state", type=PATH, help="File of the monitor's state. Default: monitor.sqlite beside the records.")
@click.option("--why", help="The reason why the answer is wrong, stored with the case.")
def promote(trace: str, config_path: Path, target: Path | None, state: Path | None, why: str | None) -> None:
    """Turn a failing production trace into a case.

    TRACE is a trace that failed under `gate monitor`; the beginning of its id is enough. Redacts the case, notes
    its origin, and appends it to a file; by default production.yaml in the suite's folder. Never adds a trace
    twice.
    """
    from gate.config.load import load_config
    from gate.monitor.promote import promote_trace

    click.echo(promote_trace(load_config(config_path), trace, os.environ, target=target, state=state, why=why))
