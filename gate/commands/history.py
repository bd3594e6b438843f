"""`gate history`: pass rates over several records."""

from __future__ import annotations

from pathlib import Path

import click

from gate.commands.groups import Once


@click.command(cls=Once)
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path))
def history(records: tuple[Path, ...]) -> None:
    """Show each case's pass rate over several records, flaky cases, and since when the agent scores otherwise."""
    from gate.commands.texts.history import history_of_records

    click.echo(history_of_records(records))
