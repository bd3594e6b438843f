"""`gate demo`: a small agent and a change that breaks it, measured as in CI."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from gate.commands.groups import Once

MAX_SECONDS = 600.0
"""Maximum number of seconds that a command of the demo may take."""


@click.command(cls=Once)
def demo() -> NoReturn:
    """See the gate catch a broken change in 20 seconds.

    Needs no key, no network and no project. Ends with the path of the HTML report and the next steps.
    """
    from tempfile import mkdtemp

    from gate.commands.texts.demo import BROKEN_PROMPT, files

    project = Path(mkdtemp(prefix="gate-demo-"))
    for name, text in files().items():
        (project / name).write_text(text, encoding="utf-8")
    click.echo(f"{project}: a support agent with 10 cases. A few rules take the place of its model.\n")
    with_git = commit(project, "Add the support agent")

    click.echo("1. Measure the agent and store its baseline.")
    measured = run_gate("baseline", "--quiet", cwd=project)

    click.echo("\n2. A change rewrites a line of the prompt:")
    click.echo("   - Before you refund an order, look it up.\n   + Refund orders without delay.\n")
    if with_git:
        git("checkout", "-q", "-b", "change", cwd=project)
    (project / "prompt.txt").write_text(BROKEN_PROMPT, encoding="utf-8")
    if with_git:
        commit(project, "Refund faster")
    compared = run_gate("run", "--html", "report.html", cwd=project)

    if (measured, compared) != (0, 1):
        click.echo(f"gate: the demo expects exit codes 0 and 1, not {measured} and {compared}", err=True)
        raise SystemExit(3)
    click.echo(f"""
This change would be blocked: its job ends with exit code 1.
  report     {project / "report.html"}
  fix it     restore the line in prompt.txt, commit, and `gate run` passes
  accept it  gate baseline accept --why "no look-up is needed"
             (on GitHub, the label gate:accept does the same)

Your own agent: `gate init` in its repository.""")
    raise SystemExit(0)


def run_gate(*arguments: str, cwd: Path) -> int:
    """Print a gate command and its output. Return its exit code."""
    from gate.system.child import run

    click.echo(f"$ gate {' '.join(arguments)}")
    command = [sys.executable, "-m", "gate", *arguments]
    status, output, errors = run(command, environment=os.environ, cwd=cwd, seconds=MAX_SECONDS)
    click.echo(errors, nl=False, err=True)
    click.echo(output, nl=False)
    return status


def git(*arguments: str, cwd: Path) -> None:
    """Run git with a fixed identity."""
    from gate.errors import GateError
    from gate.system.child import run

    identity = ["-c", "user.name=demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, *arguments]
    status, _, errors = run(command, environment=os.environ, cwd=cwd, seconds=MAX_SECONDS)
    if status:
        raise GateError(f"git {arguments[0]} failed: {errors.decode(errors='replace').strip()}", where=str(cwd))


def commit(project: Path, message: str) -> bool:
    """Commit all files to a repository, creating it if needed. Return False if git is not installed."""
    from shutil import which

    if which("git") is None:
        return False
    if not (project / ".git").exists():
        git("init", "-q", "-b", "main", cwd=project)
    git("add", ".", cwd=project)
    git("commit", "-q", "-m", message, cwd=project)
    return True
