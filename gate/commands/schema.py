"""`gate schema`: the JSON Schemas for editors and other programs."""

from __future__ import annotations

import click

from gate.commands.groups import Once


@click.command(cls=Once)
@click.option("--report", "of_report", is_flag=True, help="Print the schema of the JSON report instead.")
def schema(of_report: bool) -> None:
    """Print the JSON Schema of gate.yaml.

    With --report, that of the JSON report.
    """
    from gate.config.json_schema import in_lines, json_schema
    from gate.reports.json import schema as report_schema

    click.echo(in_lines(report_schema() if of_report else json_schema()))
