"""`gate decide`: only the decision rule, for simulators."""

from __future__ import annotations

import sys

import click

from gate.commands.groups import Once


@click.command(cls=Once)
@click.option("--jsonl", is_flag=True, help="One state per input line, one answer per output line; the only format.")
def decide(jsonl: bool) -> None:  # noqa: ARG001  (the only format; the option makes it explicit)
    """Run the decision rule on your own simulations.

    Reads states of the decision protocol from standard input and answers each.
    """
    from gate.decision.engine.protocol import decide_lines

    for line in decide_lines(sys.stdin):
        click.echo(line)
