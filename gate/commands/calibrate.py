"""`gate calibrate`: compares a judge with human labels."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gate.commands.common_options import CONFIG, PATH
from gate.commands.groups import Once


@click.command(cls=Once)
@click.argument("labels", type=PATH)
@CONFIG
@click.option("--metric", required=True, help="The judged metric to calibrate.")
def calibrate(labels: Path, config_path: Path, metric: str) -> None:
    """Compare the judge with human labels.

    Shows accuracy, Cohen's kappa, sensitivity and
    specificity, with 95 % intervals.
    """
    from gate.config.load import load_config
    from gate.stored.calibrate import calibrate_judge
    from gate.system.signals import run as run_coroutine

    click.echo(run_coroutine(calibrate_judge(load_config(config_path), labels, metric, os.environ)))
