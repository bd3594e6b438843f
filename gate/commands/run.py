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
    CONDITION,
    CONFIG,
    DRY_RUN,
    OUTPUTS,
    PATH,
    STATEMENT,
    TAG,
    outputs_of,
    overrides_of,
    with_options,
)
from gate.commands.groups import Once
from gate.commands.output import command_line, errors_in_reports, finish, progress_of

if TYPE_CHECKING:
    from gate.config.base_policy import Rules
    from gate.model import Result
    from gate.pipeline.session import RunOptions
    from gate.reports.files import Outputs


SELECTIONS = ("tags", "ids", "conditions")
"""Options that select a part of the suite, which cannot be a baseline."""


@click.command(cls=Once)
@CONFIG
@with_options(TAG, CASE, CONDITION)
@click.option("--trials", help="`auto`, or exactly this many trials of every case.")
@click.option("--against", metavar="COMMIT", help="Compare with this commit, branch or tag.")
@click.option("--store", metavar="NAME", help="Where to look for baselines: file, git, none, or a plugin's store.")
@click.option(
    "--rules-from", metavar="REVISION", help="Judge the work tree by the rules of this commit, branch or tag."
)
@click.option(
    "--replay",
    metavar="FILE",
    multiple=True,
    help="Score the conversations in this file of traces instead of running the agent; repeatable.",
)
@click.option("--release", metavar="TAG", default="", help="Judge as this release, against the last accepted one.")
@click.option(
    "--record",
    "record_path",
    type=PATH,
    help="Write the record here; continues an unfinished one.",
)
@click.option("--resume", is_flag=True, help="Continue the newest unfinished record.")
@click.option("--shard", metavar="I/N", help="Run part I of N; `gate merge` joins the records.")
@click.option("--publish", metavar="HOST", multiple=True, help="Publish the result on this host; repeatable.")
@click.option("--comment", is_flag=True, help="Post the result as a note on this pipeline's GitLab merge request.")
@DRY_RUN
@STATEMENT
@with_options(*OUTPUTS)
def run(config_path: Path, **given: Any) -> NoReturn:
    """Run the suite and compare it with the baseline.

    Ends with the verdict's exit code.
    """
    if given["dry_run"]:
        _print_estimate(config_path, given)
    from gate.config.load import reports_named_in

    revision, asked, root = given["rules_from"], outputs_of(given), config_path.resolve().parent
    with ExitStack() as stack:
        with errors_in_reports(lambda: asked if revision else asked.beside(root, reports_named_in(config_path))):
            rules = _rules(config_path, given, stack)
            outputs = asked.beside(rules.config.root, rules.config.file.reports)
        with errors_in_reports(lambda: outputs):
            result = _run(rules, outputs, given)
    finish(result, given["quiet"], given["verbose"])


def _print_estimate(config_path: Path, given: dict[str, Any]) -> NoReturn:
    from gate.commands.plans import estimate
    from gate.config.load import load_config
    from gate.pipeline.identity import git_context
    from gate.pipeline.session import fills_baseline
    from gate.system.git import Git

    config = load_config(config_path, overrides_of(given))
    where = git_context(config, Git(config.root, environment=os.environ))
    click.echo(estimate(config, os.environ, fills_baseline=fills_baseline(config, where, os.environ)))
    raise SystemExit(0)


def _rules(config_path: Path, given: dict[str, Any], stack: ExitStack) -> Rules:
    """Return the rules of the run. Raises UsageError for contradictory options."""
    from gate.config.base_policy import rules_of

    if given["statement"] and given["shard"]:
        raise click.UsageError("a shard has no verdict: use --statement with the whole run")
    if given["statement"] and given["replay"]:
        raise click.UsageError("recorded trials are not a run of a commit: omit --statement")
    return stack.enter_context(rules_of(given["rules_from"], config_path, overrides_of(given), os.environ))


def _run(rules: Rules, outputs: Outputs, given: dict[str, Any]) -> Result:
    """Run the suite, write its reports, and state and publish the result if requested."""
    from gate.pipeline.flow import run_gate
    from gate.system.signals import run as run_coroutine

    named = [*given["publish"], *(["gitlab"] if given["comment"] else [])]
    hosts = _hosts(named, rules, held=given["rules_from"] is not None)
    options, progress = _run_options(given, rules), progress_of(given["quiet"])
    result = run_coroutine(run_gate(rules.config, options, outputs, os.environ, progress))
    if given["statement"]:
        from gate.stored.evidence import stated

        result = stated(result, given["statement"], outputs.paths.values(), rules.commit)
    if hosts:
        _publish(result, hosts)
    return result


def _hosts(named: list[str], rules: Rules, *, held: bool) -> dict[str, Mapping[str, Any]]:
    """Return the hosts to publish on, with their options. Raises ConfigError if these are invalid."""
    configured: Mapping[str, Mapping[str, Any]] = rules.config.file.publish
    if configured and held and rules.base is None:  # the address comes from the change, and nobody has reviewed it
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
    from gate.pipeline.session import RunOptions, parse_shard

    shard = (1, 1)
    if given["shard"]:
        shard = parse_shard(given["shard"], where="--shard")
    return RunOptions(
        record_path=given["record_path"],
        statement_path=given["statement"],
        resume=given["resume"],
        shard=shard,
        command=command_line(),
        release=given["release"],
        rules=rules,
        fills_baseline=False if any(given[name] for name in SELECTIONS) else None,
    )


def _publish(result: Result, hosts: Mapping[str, Mapping[str, Any]]) -> None:
    """Publish the result. A failure is printed and changes no verdict."""
    from gate.pipeline.flow import publish_result
    from gate.security.escape import console

    done = publish_result(result, hosts, os.environ)
    for line in (*done.notes, *done.urls, *map(str, done.problems)):
        click.echo(f"gate: {console(line)}", err=True)
