"""`gate promote`: a trace that did not pass becomes a case."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gate.commands.common_options import CONFIG, PATH
from gate.commands.groups import Once


@click.command(cls=Once)
@click.argument("trace")
@CONFIG
@click.option("--to", "target", type=PATH, help="The suite's file that the case is added to.")
@click.option("--state", type=PATH, help="File of the monitor's state.")
@click.option("--why", help="What is wrong with the answer, in your words; kept with the case.")
@click.option("--show", is_flag=True, help="Print the case, and write nothing.")
def promote(
    trace: str, config_path: Path, target: Path | None, state: Path | None, why: str | None, show: bool
) -> None:
    """Turn a failing production trace into a case.

    TRACE is one that `gate monitor` found to fail; the beginning of its id will do. The case is redacted, says
    where it comes from, and is added below what is in the file; by default to production.yaml in the suite's
    folder. A trace that is a case already is not added again.
    """
    from gate.config.load import load_config
    from gate.monitor.promotion import promote_trace

    click.echo(
        promote_trace(load_config(config_path), trace, os.environ, target=target, state=state, why=why, show=show)
    )
