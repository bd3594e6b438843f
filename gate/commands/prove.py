"""`gate prove`: measures how often the gate would have blocked an unchanged agent."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gate.commands.common_options import CONFIG, JSON, PATH, RECORD
from gate.commands.groups import Once
from gate.commands.output import show, simulated, width_of


@click.command(cls=Once)
@RECORD
@CONFIG
@click.option("--changes", type=click.IntRange(20, 100_000), default=1000, show_default=True, help="Simulated changes.")
@click.option("--svg", "picture", type=PATH, help="Write a picture, for a README.")
@JSON
def prove(record: Path | None, config_path: Path, changes: int, picture: Path | None, as_json: bool) -> None:
    """Show how often the gate would block an unchanged agent.

    Runs no agent: draws both sides of each change from the trials of RECORD, or of each suite's stored baseline.
    """
    from gate.config.load import load_config
    from gate.insight.prove import picture_of
    from gate.insight.prove_text import proof_of_record, proofs_of_suites, told
    from gate.security import files

    if record is not None:
        found = [proof_of_record(record, changes, simulated)]
    else:
        found = proofs_of_suites(load_config(config_path), os.environ, changes, simulated)
    if picture is not None:
        files.write_text(picture, picture_of(found))
    width = None if as_json else width_of(os.environ)
    show(told(found, width, as_json=as_json), width)
