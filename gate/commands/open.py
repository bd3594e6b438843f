"""`gate open`: shows a record's report in the browser."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gate.commands.common_options import AGAINST, CONFIG, RECORD, record_or_newest
from gate.commands.groups import Once


@click.command("open", cls=Once)
@RECORD
@AGAINST
@CONFIG
def open_report(record: Path | None, baseline: str | None, config_path: Path) -> None:
    """Open the HTML report in the browser.

    Default for RECORD: the newest. Makes the report from the record and the baseline that its run would find,
    writes it to the results folder, and prints its path. Uses the system's browser, or the command in $BROWSER.
    """
    from gate.reports.files import Outputs
    from gate.stored.judging import report_record
    from gate.stored.results import results_folder
    from gate.system.browser import open_in_browser

    record = record_or_newest(record, config_path)
    path = results_folder(config_path) / "reports" / f"{record.stem}.html"
    report_record(record, baseline, config_path, os.environ, Outputs({"html": path}), f"gate open {record}")
    click.echo(path)
    if not open_in_browser(path, os.environ):
        click.echo("gate: no browser could be started here: open the file yourself, or name one in $BROWSER", err=True)
