"""`gate baseline`: the commands on stored baselines."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import click

from gate.commands.common_options import (
    CONFIG,
    DRY_RUN,
    OUTPUTS,
    PATH,
    outputs_of,
    with_options,
)
from gate.commands.groups import OnceGroup, refuse_options_before_subcommand
from gate.commands.output import command_line, errors_in_reports, print_result, progress_of, show, width_of

KEY = click.option("--key", type=PATH, help="Private ed25519 key in PEM, which signs the stored record.")
RELEASE = click.option("--release", metavar="TAG", default="", help="The release tag of this commit.")


@click.group(cls=OnceGroup, invoke_without_command=True)
@CONFIG
@click.option("--record", "record_path", type=PATH, help="Write the record here, too.")
@RELEASE
@KEY
@DRY_RUN
@with_options(*OUTPUTS)
@click.pass_context
def baseline(context: click.Context, /, config_path: Path, release: str, key: Path | None, **given: Any) -> None:
    """Measure a baseline and store it.

    Runs each case until five trials are stored (`baseline.trials`); earlier trials of this commit count. Ends
    with the verdict's exit code, or with 6 if nothing could be stored.
    """
    if context.invoked_subcommand is None:
        _measure_and_store(config_path, release, key, given)
    refuse_options_before_subcommand(context)


def _measure_and_store(config_path: Path, release: str, key: Path | None, given: dict[str, Any]) -> NoReturn:
    from gate.commands.plans import estimate
    from gate.config.load import load_config
    from gate.errors import ExitCode
    from gate.pipeline.flow import run_gate
    from gate.pipeline.session import RunOptions
    from gate.stored.evidence import read_key
    from gate.stored.upkeep import check_can_store, save_baseline
    from gate.system.signals import run as run_coroutine

    if given["dry_run"]:
        click.echo(estimate(load_config(config_path), os.environ, fills_baseline=True))
        raise SystemExit(0)
    asked = outputs_of(given)
    with errors_in_reports(lambda: asked):
        config, private = load_config(config_path), read_key(key)
        check_can_store(config, os.environ)
        outputs = asked.beside(config.root, config.file.reports)
        options = RunOptions(
            record_path=given["record_path"], command=command_line(), release=release, fills_baseline=True
        )
        result = run_coroutine(run_gate(config, options, outputs, os.environ, progress_of(given["quiet"])))
    print_result(result, given["quiet"], given["verbose"])
    if result.exit_code is not ExitCode.NOT_MEASURED:
        for path in result.record_paths:
            click.echo(
                save_baseline(config, Path(path), os.environ, release=release, key=private, measured_for_it=True)
            )
    raise SystemExit(int(result.exit_code))


@baseline.command("save")
@click.argument("record", type=PATH, required=False)
@CONFIG
@RELEASE
@KEY
def baseline_save(record: Path | None, config_path: Path, release: str, key: Path | None) -> None:
    """Add a complete record to its commit's baseline; default: the newest finished record of each suite."""
    from gate.config.load import load_config
    from gate.stored.evidence import read_key
    from gate.stored.upkeep import save_baseline, save_newest

    config, private = load_config(config_path), read_key(key)
    if record is None:
        click.echo(save_newest(config, os.environ, release=release, key=private))
    else:
        click.echo(save_baseline(config, record, os.environ, release=release, key=private))


@baseline.command("accept")
@click.argument("commit", required=False)
@CONFIG
@click.option("--why", required=True, help="The reason, stored with the baseline.")
@click.option("--by", help="Your name. Default: from git or CI.")
@click.option(
    "--until",
    metavar="DATE",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Last valid day, in UTC. Default: the last day that `baseline.accept_days` allows.",
)
@KEY
def baseline_accept(
    commit: str | None, config_path: Path, why: str, by: str | None, until: datetime | None, key: Path | None
) -> None:
    """Make the stored record of COMMIT (default: HEAD) the long-term baseline, for the default branch and releases."""
    from gate.config.load import load_config
    from gate.stored.evidence import read_key
    from gate.stored.upkeep import accept_baseline

    config, private = load_config(config_path), read_key(key)
    day = None if until is None else until.date()
    click.echo(accept_baseline(config, os.environ, revision=commit, by=by, why=why, until=day, key=private))


@baseline.command("list")
@CONFIG
def baseline_list(config_path: Path) -> None:
    """List the stored baselines with their verdicts, and mark the long-term one."""
    from gate.config.load import load_config
    from gate.stored.upkeep import list_baselines

    width = width_of(os.environ)
    show(list_baselines(load_config(config_path), os.environ, width), width)


@baseline.command("show")
@CONFIG
def baseline_show(config_path: Path) -> None:
    """Show the baseline for a run of this commit, the long-term one, and the verdicts of both."""
    from gate.config.load import load_config
    from gate.stored.upkeep import show_baseline

    width = width_of(os.environ)
    show(show_baseline(load_config(config_path), os.environ, width), width)
