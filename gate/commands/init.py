"""`gate init`: examines a repository, writes the files of a first project, and runs one case."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from gate.commands.common_options import PATH
from gate.commands.groups import Once

if TYPE_CHECKING:
    from gate.commands.setup.first_files import First, FirstFiles
    from gate.commands.setup.found import FoundAgent, Survey

MOST_SHOWN = 10
MEASURED = (0, 1)
"""The exit codes of a first run that measured the agent: it passed, or missed a threshold."""
CORRECT = "fix the error above, then: gate run"


@click.command(cls=Once)
@click.argument("folder", default=".", type=PATH)
@click.option(
    "--url",
    metavar="ADDRESS",
    help="Address of the agent's server. Fetches its description (OpenAPI or agent card); without one, looks for its "
    "route in the code, or proposes the gate's own JSON.",
)
@click.option("--agent", "number", type=click.IntRange(min=1), help="Use this one of the listed agents.")
@click.option("--no-workflow", is_flag=True, help="Write no workflow for GitHub or GitLab.")
@click.option("--no-run", is_flag=True, help="Run no cases.")
@click.option("--force", is_flag=True, help="Replace files that you have edited.")
def init(folder: Path, url: str | None, number: int | None, no_workflow: bool, no_run: bool, force: bool) -> NoReturn:
    """Write a first gate.yaml for this repository.

    Looks for agents without importing or running anything in the repository; asks a server that it found, if it
    runs, for its description. Then runs one or two cases. Run it again when the cases or the agent have changed:
    it keeps files that you have edited. Ends with the exit code of the first run; with 2 if you have edited
    gate.yaml, and with 0 under --no-run.
    """
    from gate.commands.setup.first_files import check_replaceable, propose, run_first, write
    from gate.commands.setup.served import agent_at, as_it_describes_itself
    from gate.commands.setup.survey import survey
    from gate.system.signals import run as run_coroutine

    check_replaceable(folder, force=force)
    found = survey(folder)
    if url is not None:
        found.agents.insert(0, run_coroutine(agent_at(url, found.agents, os.environ)))
    _show(found)
    agent = chosen = _chosen(found, number)
    if agent is not None and agent.start and url is None:
        agent = run_coroutine(as_it_describes_itself(agent, os.environ))
    proposal = propose(found, agent, folder, workflow=not no_workflow)
    written, kept = write(folder, proposal, force=force)
    for name in written:
        click.echo(f"wrote {folder / name}")
    for name in kept:
        click.echo(f"kept {folder / name}: you wrote or changed it (--force replaces it)")
    first = None
    if not no_run:
        again = "gate init"
        if url is not None:
            again += f" --url {url}"
        elif chosen is not None and chosen != found.agents[0]:
            again += f" --agent {found.agents.index(chosen) + 1}"
        first = run_first(folder, os.environ, proposal, again)
        _show_first(first)
        if first.answers and proposal.own_cases:
            answered = propose(found, agent, folder, workflow=not no_workflow, answers=first.answers)
            write(folder, answered, force=force)
    _end(proposal, found, folder, [*written, *kept], first, workflow=not no_workflow)
    raise SystemExit(0 if first is None else int(first.code))


def _show(found: Survey) -> None:
    from gate.reports.formatting import count
    from gate.security.escape import console

    if not found.agents:
        click.echo("found no agent of a known kind: writing a sample for you to replace")
    for place, agent in enumerate(found.agents[:MOST_SHOWN], 1):
        click.echo(console(f"found {place}. {agent.framework} {agent.place}: {agent.why}", 300))
    if len(found.agents) > MOST_SHOWN:
        click.echo(f"      … and {len(found.agents) - MOST_SHOWN} more")
    for suite in found.suites[:MOST_SHOWN]:
        cases = sum(len(one.cases) for one in suite.suites)
        told = suite.problem or f"{count(cases, 'case')}, used in place"
        click.echo(console(f"found {suite.kind} in {suite.source}: {told}", 400))
    for note in found.notes:
        click.echo(console(f"found {note}", 300))


def _chosen(found: Survey, number: int | None) -> FoundAgent | None:
    """Return the agent with this number; without one, the first."""
    from gate.errors import ConfigError

    if number is not None and number > len(found.agents):
        raise ConfigError(f"--agent {number}: {len(found.agents)} found")
    if number is None and len(found.agents) > 1:
        click.echo("taking agent 1 (--agent N takes another)")
    return found.agents[(number or 1) - 1] if found.agents else None


def _show_first(first: First) -> None:
    from gate.security.escape import console

    click.echo("\nfirst run:")
    for line in first.lines:
        click.echo(f"  {console(line, 400)}")


def _end(
    proposal: FirstFiles, found: Survey, folder: Path, names: list[str], first: First | None, *, workflow: bool
) -> None:
    """Print the next steps: none that this command has already done, and after a failed first run only the remedy."""
    from gate.commands.setup.first_files import CASES, SAMPLE_FILE, is_from_init, is_untouched, mapping_of
    from gate.security.escape import console
    from gate.system.git import Git

    agent, made = proposal.agent, proposal.workflow
    if agent is not None:
        for note in agent.fill:
            click.echo(console(f"to fill in: {note}", 400))
        if agent.start:
            start = f"start the server:  {agent.start}\n" if first is None else ""
            click.echo(f"\n{start}called with:       {mapping_of(agent)}")
    if first is not None and first.code not in MEASURED:
        click.echo(f"\nto do: {console(first.remedy or CORRECT, 400)}")
        return
    cases = next((suite.source for suite in found.suites if not suite.problem), CASES)
    click.echo("\nnext:")
    if is_untouched(folder / SAMPLE_FILE):
        click.echo(f"  call your agent        {SAMPLE_FILE} is a sample: name yours in gate.yaml (gate help agent)")
    for suite in found.suites:
        if suite.conversion:
            click.echo(f"  convert your cases     {console(suite.conversion)}; gate init")
    click.echo(f"  write your own cases   {'evals/ (gate help cases)' if cases == CASES else console(cases)}")
    earlier = [name for name in (SAMPLE_FILE, ".gitignore") if is_from_init(folder / name)]
    if (folder / CASES).exists():
        earlier.append(CASES)
    adding = "git add " + " ".join(sorted({name.split("/")[0] for name in [*names, *earlier]}))
    if not Git(folder, environment=os.environ).is_repository():
        adding = "git init && git add ."
    click.echo(f"  commit                 {adding} && git commit -m 'Add Agent Gate'")
    if made.secrets:
        kind = "CI/CD variable" if made.path == ".gitlab-ci.yml" else "repository secret"
        click.echo(f"  give CI the key        {', '.join(made.secrets)}, as a {kind}")
    if made.path and agent is not None and agent.is_server and not agent.start:
        key = "before_script" if made.path == ".gitlab-ci.yml" else "with: {setup: …}"
        click.echo(f"  start it in CI         the server's command, under {key} in {made.path}")
    if made.path:
        click.echo("  push                   git push")
    else:
        click.echo("  store the baseline     gate baseline")
    click.echo("  change the agent       gate run")
    if workflow and not made.path:
        click.echo(
            "  run it in CI           gate help ci (no workflow: no .git with a remote on GitHub or GitLab here)"
        )
    if made.path:
        click.echo(f"\n{made.first_push}")
