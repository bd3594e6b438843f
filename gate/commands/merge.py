"""`gate merge`: joins the records of all shards, and gives a verdict on request."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from gate.commands.common_options import OUTPUTS, PATH, STATEMENT, outputs_of, with_options
from gate.commands.groups import Once
from gate.commands.output import command_line, errors_in_reports, finish


@click.command(cls=Once)
@click.argument("records", nargs=-1, required=True, type=PATH)
@click.option("-o", "--output", required=True, type=PATH, help="File for the whole record.")
@click.option(
    "-c",
    "--config",
    "config_path",
    type=PATH,
    help="Also decide, by this configuration and its baseline, as a run over all shards would.",
)
@click.option(
    "--rules-from",
    metavar="REVISION",
    help="With -c: judge by the rules of this commit, branch or tag. Default: those that the shards ran under.",
)
@STATEMENT
@with_options(*OUTPUTS)
def merge(records: tuple[Path, ...], output: Path, config_path: Path | None, **given: Any) -> None:
    """Join the records of all shards.

    Refuses a missing, duplicate or truncated shard, and one from another run.
    """
    from gate.config.base_policy import rules_of
    from gate.stored.judging import decide_merged, merge_records, rules_of_run

    if config_path is None and any(given.values()):
        raise click.UsageError("reports need a verdict: name the configuration that decides (-c gate.yaml)")
    click.echo(merge_records(records, output), err=config_path is not None)
    if config_path is None:
        return
    with ExitStack() as stack:
        revision = given["rules_from"] or rules_of_run(output) or None
        rules = stack.enter_context(rules_of(revision, config_path, {}, os.environ))
        config = rules.config
        outputs = outputs_of(given).beside(config.root, config.file.reports)
        with errors_in_reports(lambda: outputs):
            result = decide_merged(output, config, os.environ, outputs, command_line(), rules)
    if given["statement"]:
        from gate.stored.evidence import rules_of_record, stated

        result = stated(result, given["statement"], outputs.paths.values(), rules_of_record(output, config))
    finish(result, given["quiet"], given["verbose"])
