"""`gate diff-requests`: the effect of a change on the requests to the model and the tools."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gate.commands.common_options import DEFAULT_CONFIG, PATH
from gate.commands.groups import Once
from gate.commands.output import show, width_of


@click.command("diff-requests", cls=Once)
@click.argument("before", metavar="A", type=PATH)
@click.argument("now", metavar="B", type=PATH)
@click.option(
    "-c",
    "--config",
    "config_path",
    type=PATH,
    help="Configuration file, for its `world` section. Default: gate.yaml, if it exists.",
)
def diff_requests(before: Path, now: Path, config_path: Path | None) -> None:
    """Show which model and tool requests differ.

    Compares the trials of record B with those of record A, and names the first difference and its cases: a
    change's effect before any answer. For trials that were not replayed, compares the recordings in `world.store`
    until the model's answers differ. Calls no model.
    """
    from gate.insight.diff_requests import compare_requests

    config = config_path or (DEFAULT_CONFIG if DEFAULT_CONFIG.exists() else None)
    show(compare_requests(before, now, config, os.environ), width_of(os.environ))
