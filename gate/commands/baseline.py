"""`gate baseline`: the commands on stored baselines."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import click

from gate.commands.common_options import CONFIG, record_before_or, record_or_newest
from gate.commands.groups import OnceGroup
from gate.commands.output import show, width_of

KEY = click.option(
    "--key", type=click.Path(path_type=Path), help="Private ed25519 key in PEM; what is stored is signed with it."
)
RELEASE = click.option("--release", metavar="TAG", default="", help="The release tag of this commit.")


@click.group(cls=OnceGroup)
def baseline() -> None:
    """Save, accept, list, show and compare stored baselines."""


@baseline.command("save")
@click.argument("record", type=click.Path(path_type=Path), required=False)
@CONFIG
@RELEASE
@KEY
def baseline_save(record: Path | None, config_path: Path, release: str, key: Path | None) -> None:
    """Add a complete record to its commit's baseline; without one, the newest finished record of each suite."""
    from gate.commands.texts.evidence import read_key
    from gate.config.load import load_config
    from gate.pipeline.baseline_upkeep import save_baseline, save_newest

    config, private = load_config(config_path), read_key(key)
    if record is None:
        click.echo(save_newest(config, os.environ, release=release, key=private))
    else:
        click.echo(save_baseline(config, record, os.environ, release=release, key=private))


@baseline.command("accept")
@click.argument("commit", required=False)
@CONFIG
@click.option("--why", required=True, help="The reason; it is stored with the baseline.")
@click.option("--by", help="Who accepts it. Default: your name in git, or in CI.")
@click.option(
    "--until",
    metavar="DATE",
    type=click.DateTime(["%Y-%m-%d"]),
    help="The last day on which it counts, in UTC. Default: the last that `baseline.accept_days` allows.",
)
@KEY
def baseline_accept(
    commit: str | None, config_path: Path, why: str, by: str | None, until: datetime | None, key: Path | None
) -> None:
    """Make the stored record of COMMIT (HEAD) the anchor, which releases and the default branch are compared with."""
    from gate.commands.texts.evidence import read_key
    from gate.config.load import load_config
    from gate.pipeline.baseline_upkeep import accept_baseline

    config, private = load_config(config_path), read_key(key)
    day = None if until is None else until.date()
    click.echo(accept_baseline(config, os.environ, revision=commit, by=by, why=why, until=day, key=private))


@baseline.command("list")
@CONFIG
def baseline_list(config_path: Path) -> None:
    """List the stored baselines with their verdicts, and which of them is the anchor."""
    from gate.config.load import load_config
    from gate.pipeline.baseline_upkeep import list_baselines

    width = width_of(os.environ)
    show(list_baselines(load_config(config_path), os.environ, width), width)


@baseline.command("show")
@CONFIG
def baseline_show(config_path: Path) -> None:
    """Show the baseline that a run would be compared with, the anchor, and the verdicts on both."""
    from gate.config.load import load_config
    from gate.pipeline.baseline_upkeep import show_baseline

    width = width_of(os.environ)
    show(show_baseline(load_config(config_path), os.environ, width), width)


@baseline.command("diff")
@click.argument("record", required=False, type=click.Path(path_type=Path))
@click.argument("other", required=False, type=click.Path(path_type=Path))
@CONFIG
def baseline_diff(record: Path | None, other: Path | None, config_path: Path) -> None:
    """Show what RECORD changed against OTHER, case by case; without them, the newest record against the one before."""
    from gate.commands.texts.baseline_diff import diff_records

    new = record_or_newest(record, config_path)
    width = width_of(os.environ)
    show(diff_records(record_before_or(other, new, config_path), new, width), width)
