"""`gate init`: looks at a repository, writes the files of a first project, and runs one case."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from gate.commands.groups import Once

if TYPE_CHECKING:
    from gate.commands.texts.init import FirstFiles
    from gate.commands.texts.survey import FoundAgent, Survey

MOST_SHOWN = 10


@click.command(cls=Once)
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option(
    "--url",
    metavar="ADDRESS",
    help="The agent is served here. Its description (OpenAPI, an agent's card) is asked for, by GET; without one, the "
    "gate's own JSON is proposed.",
)
@click.option("--agent", "number", type=click.IntRange(min=1), help="Take this one of the agents that are listed.")
@click.option("--no-workflow", is_flag=True, help="Write no workflow for GitHub or GitLab.")
@click.option("--no-run", is_flag=True, help="Run no case.")
@click.option("-y", "--yes", is_flag=True, help="Write without asking; asked is on a terminal alone, and not in CI.")
def init(folder: Path, url: str | None, number: int | None, no_workflow: bool, no_run: bool, yes: bool) -> NoReturn:
    """Write a first gate.yaml for this repository.

    Runs one case at the end. Nothing in the repository is imported or run while looking, and no existing file is
    changed. Ends with the exit code of the first case; with 2 if there is a gate.yaml, and with 0 under --no-run.
    """
    from gate.commands.texts.init import CONFIG, propose, write
    from gate.commands.texts.survey import survey
    from gate.errors import ConfigError

    if (folder / CONFIG).exists():
        raise ConfigError(f"{CONFIG} already exists", where=str(folder), hint="edit it, or name another folder")
    found = survey(folder)
    if url is not None:
        found.agents.insert(0, _served(url))
    asks = not yes and sys.stdin.isatty() and sys.stdout.isatty() and not os.environ.get("CI")
    _show(found)
    agent = _chosen(found, number, asks=asks)
    proposal = propose(found, agent, folder, workflow=not no_workflow)
    if asks and not click.confirm(f"write {', '.join(proposal.files)}?", default=True):
        raise SystemExit(0)
    written, kept = write(folder, proposal)
    for name in written:
        click.echo(f"wrote {folder / name}")
    for name in kept:
        click.echo(f"kept {folder / name}: it is there already")
    _end(folder, proposal, no_run=no_run)


def _served(url: str) -> FoundAgent:
    """The agent behind an address: as the server describes itself, else in the gate's own JSON."""
    from gate.commands.texts.served import ask_server
    from gate.commands.texts.survey import FoundAgent, served_agent
    from gate.system.signals import run as run_coroutine

    described, why = run_coroutine(ask_server(url, os.environ))
    if described is not None:
        return served_agent(described, url, rank=0)
    return FoundAgent("an HTTP server", url, f"--url; {why}", {"http": url})


def _show(found: Survey) -> None:
    from gate.reports.formatting import count
    from gate.security.escape import console

    if not found.agents:
        click.echo("found no agent that is known by its shape: writes a sample to replace")
    for place, agent in enumerate(found.agents[:MOST_SHOWN], 1):
        click.echo(console(f"found {place}. {agent.framework} in {agent.where}: {agent.why}", 300))
    if len(found.agents) > MOST_SHOWN:
        click.echo(f"      … and {len(found.agents) - MOST_SHOWN} more")
    for suite in found.suites[:MOST_SHOWN]:
        cases = sum(len(one.cases) for one in suite.suites)
        told = (
            f"cannot be read as they are: {suite.problem}"
            if suite.problem
            else f"{count(cases, 'case')}, used where they are"
        )
        click.echo(console(f"found {suite.kind} in {suite.source}: {told}", 400))
    for note in found.notes:
        click.echo(console(f"found {note}", 300))


def _chosen(found: Survey, number: int | None, *, asks: bool) -> FoundAgent | None:
    """The agent of this number; else the first, or the one that is asked for on a terminal."""
    from gate.errors import ConfigError

    if number is not None and number > len(found.agents):
        raise ConfigError(f"--agent {number}: {len(found.agents)} were found")
    if number is None and asks and len(found.agents) > 1:
        number = click.prompt("which agent", type=click.IntRange(1, len(found.agents)), default=1)
    return found.agents[(number or 1) - 1] if found.agents else None


def _end(folder: Path, proposal: FirstFiles, *, no_run: bool) -> NoReturn:
    from gate.security.escape import console

    for line in proposal.said:
        click.echo(line)
    code = 0
    if not no_run:
        from gate.commands.texts.init import run_first

        click.echo("\nthe first case, once:")
        first = run_first(folder, os.environ)
        for line in first.lines:
            click.echo(f"  {console(line, 400)}")
        code = int(first.code)
        click.echo("")
    click.echo("next: gate run; then, to keep a baseline: gate run --trials 5")
    click.echo("                                          gate baseline save")
    raise SystemExit(code)
