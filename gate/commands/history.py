"""`gate history`: the development of suites over time."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gate.commands.common_options import CONFIG, SOURCES, SUITE
from gate.commands.groups import Once
from gate.commands.output import encoding_of, show, width_of


@click.command(cls=Once)
@SOURCES
@CONFIG
@SUITE
@click.option("--cases", is_flag=True, help="Show every case, not only flaky ones.")
@click.option("--tags", is_flag=True, help="Show every criterion by tag, not only the pass rate.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def history(
    sources: tuple[Path, ...], config_path: Path, suite_id: str | None, cases: bool, tags: bool, as_json: bool
) -> None:
    """Show how suites changed over time.

    Shows each criterion, tag, version and case, with moves, trends and early warnings. SOURCES are records, folders
    of records, or archives (zip) of them. Default: the configured baseline store, such as the branch
    gate-baselines, or else the records in the results folder. Lists and counts records that it cannot read.
    """
    from gate.insight.history import history_of
    from gate.insight.history_text import history_text
    from gate.reports.history_json import render

    found = history_of(sources, config_path, os.environ, suite_id=suite_id)
    if as_json:
        click.echo(render(found), nl=False)
        return
    encoding = encoding_of(os.environ).lower().replace("-", "")
    listed = cases or bool(sources and all(path.is_file() and path.suffix == ".jsonl" for path in sources))
    width, plain = width_of(os.environ), not encoding.startswith("utf")
    show(history_text(found, cases=listed, tags=tags, ascii_only=plain, width=width), width)
