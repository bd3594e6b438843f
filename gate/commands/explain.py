"""`gate explain`: the numbers behind a verdict."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gate.commands.common_options import AGAINST, CONFIG, RECORD, record_or_newest
from gate.commands.groups import Once
from gate.commands.output import show, width_of


@click.command(cls=Once)
@RECORD
@AGAINST
@CONFIG
@click.option("--case", "case_id", help="Show the trials of this case on both sides.")
def explain(record: Path | None, baseline: str | None, config_path: Path, case_id: str | None) -> None:
    """Explain a verdict.

    Shows estimates, intervals, tests, and how much of the error budget was spent. Default for RECORD: the newest.
    Compares with the baseline that the record's run would find, unless --against names another.
    """
    from gate.stored.explain import explain_record

    width, newest = width_of(os.environ), record_or_newest(record, config_path)
    show(explain_record(newest, baseline, config_path, os.environ, case_id, width), width)
