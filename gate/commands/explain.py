"""`gate explain`: the numbers behind a verdict."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gate.commands.common_options import AGAINST, CONFIG, RECORD, record_or_newest
from gate.commands.groups import Once
from gate.commands.output import encoding_of, show, width_of


@click.command(cls=Once)
@RECORD
@AGAINST
@CONFIG
@click.option("--case", "case_id", help="Show the trials of this case on both sides.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Show every figure and test, and how much of the error budget was spent."
)
def explain(record: Path | None, baseline: str | None, config_path: Path, case_id: str | None, verbose: bool) -> None:
    """Explain a verdict.

    Shows each criterion before and now, the loss that the trials leave possible, and how it was decided. Default for
    RECORD: the newest. Compares with the baseline that the record's run would find, unless --against names another.
    """
    from gate.reports.sparkline import encodable
    from gate.stored.explain import explain_record

    width, newest = width_of(os.environ), record_or_newest(record, config_path)
    text = explain_record(newest, baseline, config_path, os.environ, case_id, width, verbose=verbose)
    show(encodable(text, encoding_of(os.environ)), width)
