"""`gate score`: applies metrics to recorded pairs on standard input, without a gate."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from gate.commands.groups import Once


@click.command(cls=Once)
@click.option("--metric", required=True, help="A registered metric, or module:attribute.")
@click.option("--options", default="{}", show_default=True, help="The metric's options as JSON.")
def score(metric: str, options: str) -> None:
    """Score recorded answers with one metric.

    Reads JSON lines of {id, actual, expected} from standard input, and writes {id, score, per_turn, error}.
    """
    from gate.agents.base import allowed_environment
    from gate.formats.documents import parse_document
    from gate.metrics.recorded import score_lines

    parsed, seen = parse_document(options, "--options"), allowed_environment(os.environ, ())
    for line in score_lines(metric, parsed, sys.stdin, folder=str(Path.cwd()), environment=seen):
        click.echo(line)
