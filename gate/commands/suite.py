"""`gate suite`: lists the contents of a run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from gate.commands.common_options import CASE, CONDITION, CONFIG, TAG, overrides_of, with_options
from gate.commands.groups import Once
from gate.commands.output import show, width_of


@click.command(cls=Once)
@CONFIG
@with_options(TAG, CASE, CONDITION)
def suite(config_path: Path, **given: Any) -> None:
    """List what a run would measure.

    Shows cases, tags, complexity and criteria.
    """
    from gate.commands.plans import describe_suites
    from gate.config.load import load_config

    show(describe_suites(load_config(config_path, overrides_of(given)), os.environ), width_of(os.environ))
