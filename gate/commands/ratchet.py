"""`gate ratchet`: proposes higher thresholds that a record supports."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gate.commands.common_options import CONFIG, RECORD
from gate.commands.groups import Once
from gate.commands.output import show, width_of


@click.command(cls=Once)
@RECORD
@CONFIG
@click.option("--write", is_flag=True, help="Edit the file; comments and layout stay.")
def ratchet(record: Path | None, config_path: Path, write: bool) -> None:
    """Propose higher thresholds.

    Raises a threshold only if a record shows that the agent already reaches it; lowers none. Default for RECORD:
    the newest
    stored baseline of each suite.
    """
    from gate.config.load import load_config
    from gate.insight.ratchet import ratchet as propose

    show(propose(load_config(config_path), record, os.environ, write=write), width_of(os.environ))
