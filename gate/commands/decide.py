"""`gate decide`: only the decision rule, for simulators."""

from __future__ import annotations

import sys

import click

from gate.commands.groups import Once


@click.command(cls=Once)
def decide() -> None:
    """Run the decision rule on your own simulations.

    Reads states of the decision protocol from standard input, one per line, and answers each on one line.
    """
    from gate.decision.engine.protocol import decide_lines

    for line in decide_lines(sys.stdin):
        click.echo(line)
