"""`gate doctor`: checks the agent's reports and the needs of each criterion, the judge, the baselines and the job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import click

from gate.commands.common_options import CONFIG
from gate.commands.groups import Once


@click.command(cls=Once)
@CONFIG
@click.option("--no-ask", is_flag=True, help="Do not call the agent.")
def doctor(config_path: Path, no_ask: bool) -> NoReturn:
    """Check the agent, the criteria, the baseline and the CI job.

    Calls the agent: the suite's first case, and three requests on memory and sessions. Stores nothing. Ends
    with the exit code that a run would have: 0 without problems, 2 for the configuration, 3 if something cannot
    be measured, 4 for baselines.
    """
    from gate.commands.output import show, width_of
    from gate.commands.setup.doctor import examine, exit_code
    from gate.reports.formatting import count
    from gate.system.signals import run as run_coroutine

    found = run_coroutine(examine(config_path, os.environ, ask=not no_ask))
    code = exit_code(found)
    problems = sum(one.state == "problem" for one in found)
    said = count(problems, "problem") if problems else "no problems"
    lines = [*map(str, found), "", f"exit code {int(code)}: {said}"]
    show("\n".join(lines), width_of(os.environ))
    raise SystemExit(int(code))
