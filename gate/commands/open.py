"""`gate open`: a record's report in the browser."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gate.commands.common_options import AGAINST, CONFIG, record_or_newest
from gate.commands.groups import Once


@click.command("open", cls=Once)
@click.argument("record", required=False, type=click.Path(path_type=Path))
@AGAINST
@CONFIG
def open_report(record: Path | None, baseline: str | None, config_path: Path) -> None:
    """Open the HTML report in the browser.

    Without RECORD, that of the newest run. The report is made from the record, against the baseline that its run
    would find, and written to the results folder. Prints where it lies. The browser is the system's, or the command
    in $BROWSER.
    """
    from gate.commands.texts.open import html_of
    from gate.system.browser import open_in_browser

    path = html_of(record_or_newest(record, config_path), baseline, config_path, os.environ)
    click.echo(path)
    if not open_in_browser(path, os.environ):
        click.echo("gate: no browser could be started here: open the file yourself, or name one in $BROWSER", err=True)
