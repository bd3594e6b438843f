"""`gate init`: the files of a first project."""

from __future__ import annotations

from pathlib import Path

import click

from gate.commands.groups import Once


@click.command(cls=Once)
@click.argument("folder", default=".", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Write a first gate.yaml and a suite of two cases."""
    from gate.commands.texts.init import write_project

    for path in write_project(folder):
        click.echo(f"wrote {path}")
    click.echo("next: gate run; then, to keep a baseline: gate run --trials 5")
    click.echo("                                          gate baseline save")
