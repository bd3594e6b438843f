"""`gate power`: finds the losses that a suite can detect."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gate.commands.common_options import CONFIG, JSON, RECORD
from gate.commands.groups import Once
from gate.commands.output import show, simulated, width_of


@click.command(cls=Once)
@RECORD
@CONFIG
@click.option(
    "--drop",
    type=click.FloatRange(0, 1, min_open=True),
    help="Say how many cases it takes to find this drop (0.05: five points).",
)
@click.option(
    "--simulations", type=click.IntRange(10, 10_000), help="Simulated changes of each kind; more narrow the intervals."
)
@JSON
def power(
    record: Path | None,
    config_path: Path,
    drop: float | None,
    simulations: int | None,
    as_json: bool,
) -> None:
    """Show which losses a suite can find.

    Applies the decision rule to simulated trials of a record's own cases. Default for RECORD: the stored baseline
    of each suite in the configuration.
    """
    from gate.config.load import load_config
    from gate.insight.power_text import power_of_record, powers_of_suites, told

    if record is not None:
        found = [power_of_record(record, drop, simulations, simulated)]
    else:
        found = powers_of_suites(load_config(config_path), os.environ, drop, simulations, simulated)
    width = None if as_json else width_of(os.environ)
    show(told(found, width, as_json=as_json, of_record=record is not None), width)
