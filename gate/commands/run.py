"""`gate run`: options, progress, and the note on a GitLab merge request; the run itself is `pipeline.flow`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gate.commands.common_options import (
    CASE,
    COMPLEXITY,
    CONDITION,
    CONFIG,
    OUTPUTS,
    STATEMENT,
    TAG,
    outputs_of,
    overrides_of,
    with_options,
)
from gate.commands.groups import Once
from gate.commands.output import command_line, finish, progress_of

if TYPE_CHECKING:
    from gate.config.base_policy import Rules
    from gate.model import Result
    from gate.pipeline.session import RunOptions


@click.command(cls=Once)
@CONFIG
@with_options(TAG, COMPLEXITY, CASE, CONDITION)
@click.option("--trials", help="`auto`, or exactly this many trials of every case.")
@click.option("--against", metavar="COMMIT", help="Measure against this commit, branch or tag.")
@click.option("--store", metavar="NAME", help="Where to look for baselines: file, git, none, or a plugin's store.")
@click.option(
    "--rules-from", metavar="REVISION", help="Judge the work tree by the rules of this commit, branch or tag."
)
@click.option(
    "--replay",
    metavar="FILE",
    multiple=True,
    help="Score the conversations in this file of traces instead of running the agent; may be repeated.",
)
@click.option("--release", metavar="TAG", default="", help="Judge as this release: against the last accepted one.")
@click.option(
    "--record",
    "record_path",
    type=click.Path(path_type=Path),
    help="Write the record here; an unfinished one is continued.",
)
@click.option("--resume", is_flag=True, help="Continue the newest unfinished record.")
@click.option("--shard", metavar="I/N", help="Run part I of N; `gate merge` joins the records.")
@click.option("--publish", metavar="HOST", multiple=True, help="Publish the result on this host; may be repeated.")
@click.option("--comment", is_flag=True, help="Post the result as a note on this pipeline's GitLab merge request.")
@STATEMENT
@with_options(*OUTPUTS)
def run(config_path: Path, **given: Any) -> NoReturn:
    """Run the suite, compare with the baseline, and give a verdict as exit code."""
    from gate.config.base_policy import Rules, rules_of
    from gate.config.load import load_config
    from gate.pipeline.flow import run_gate
    from gate.system.signals import run as run_coroutine

    if given["statement"] and given["shard"]:
        raise click.UsageError("a shard decides nothing that could be stated: --statement goes with the whole run")
    if given["statement"] and given["replay"]:
        raise click.UsageError("what was recorded before is no run of a commit: --statement does not go with --replay")
    overrides, revision = overrides_of(given), given["rules_from"]
    named = [*given["publish"], *(["gitlab"] if given["comment"] else [])]
    with ExitStack() as stack:
        if revision is None:
            rules = Rules(load_config(config_path, overrides))
        else:
            rules = stack.enter_context(rules_of(revision, config_path, overrides, os.environ))
        hosts = _hosts(named, rules, held=revision is not None)
        options = _run_options(given, rules)
        progress = progress_of(given["quiet"])
        result = run_coroutine(run_gate(rules.config, options, outputs_of(given), os.environ, progress))
    if given["statement"]:
        from gate.commands.texts.evidence import stated

        written = outputs_of(given).beside(rules.config.root, rules.config.file.reports)
        result = stated(result, given["statement"], written.paths.values(), rules.commit)
    if hosts:
        _publish(result, hosts)
    finish(result, given["quiet"], given["verbose"])


def _hosts(named: list[str], rules: Rules, *, held: bool) -> dict[str, Mapping[str, Any]]:
    """Where to publish, with options. Raises ConfigError before anything is run, if a host cannot read its own."""
    configured: Mapping[str, Mapping[str, Any]] = rules.config.file.publish
    if configured and held and rules.base is None:  # an address of the change's own, which nobody has reviewed
        click.echo("gate: publish takes effect once it is merged: the base commit does not have it", err=True)
        configured = {}
    hosts = {**{name: {} for name in named}, **configured}
    if not hosts:
        return {}
    from gate.hosts import read_host_options

    for name, options in hosts.items():
        read_host_options(name, options, "--publish" if name in named else str(rules.config.path))
    return hosts


def _run_options(given: dict[str, Any], rules: Rules) -> RunOptions:
    from gate.pipeline.session import RunOptions

    shard = _shard(given["shard"]) if given["shard"] else (1, 1)
    return RunOptions(
        record_path=given["record_path"],
        statement_path=given["statement"],
        resume=given["resume"],
        shard=shard,
        command=command_line(),
        release=given["release"],
        rules=rules,
        for_itself=any(given[name] for name in ("tags", "complexities", "ids", "conditions")),
    )


def _shard(text: str) -> tuple[int, int]:
    index, slash, total = text.partition("/")
    if not (slash and index.isdigit() and total.isdigit() and 1 <= int(index) <= int(total) <= 10_000):
        raise click.BadParameter(f"{text!r} is not of the form 2/5", param_hint="--shard")
    return int(index), int(total)


def _publish(result: Result, hosts: Mapping[str, Mapping[str, Any]]) -> None:
    """Publishes the result. A failure is printed and changes no verdict."""
    from gate.pipeline.publishing import publish_result
    from gate.security.escape import console

    done = publish_result(result, hosts, os.environ)
    for line in (*done.notes, *done.urls, *map(str, done.problems)):
        click.echo(f"gate: {console(line)}", err=True)
