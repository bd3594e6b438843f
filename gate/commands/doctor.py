"""`gate doctor`: checks the agent's reports and the needs of each criterion, the judge, the baselines and the job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from gate.commands.common_options import CONFIG
from gate.commands.groups import Once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gate.commands.setup.checkup import Checkup

MARKS = {"ok": "ok", "note": "--", "problem": "!!"}


MOST_ROWS = 2
"""Maximum number of rows of an area to show with their findings; if there are more, only their names are shown."""


@click.command(cls=Once)
@CONFIG
@click.option("--no-ask", is_flag=True, help="Do not call the agent.")
@click.option("--json", "to_json", is_flag=True, help="Print JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Show every check with its result.")
def doctor(config_path: Path, no_ask: bool, to_json: bool, verbose: bool) -> NoReturn:
    """Check the agent, the criteria, the baseline and the CI job.

    Calls the agent: the suite's first case, and three requests on memory and sessions. Stores nothing. Ends
    with the exit code that a run would have: 0 without problems, 2 for the configuration, 3 if something cannot
    be measured, 4 for baselines.
    """
    from gate.commands.output import show, width_of
    from gate.commands.setup.doctor import as_json, examine, exit_code
    from gate.system.signals import run as run_coroutine

    found = run_coroutine(examine(config_path, os.environ, ask=not no_ask))
    code = exit_code(found)
    if to_json:
        show(as_json(found))
    else:
        table = _table(found) if verbose else _summary(found)
        show(f"{table}\n\n{_end(found, verbose=verbose)}", width_of(os.environ))
    raise SystemExit(int(code))


def _summary(found: Sequence[Checkup]) -> str:
    """Return one line per area with everything in order, one per note, and one per problem with its remedy."""
    lines = []
    for area in dict.fromkeys(one.area for one in found):
        rows = [one for one in found if one.area == area]
        fine = [one for one in rows if one.state == "ok"]
        if len(fine) > MOST_ROWS:
            lines.append(f"ok {area}: {', '.join(one.name for one in fine)}")
        elif fine:
            lines.append(f"ok {area}: {'; '.join(map(_short, fine))}")
        for state in ("note", "problem"):
            for one in rows:
                if one.state == state:
                    remedy = f" (to do: {one.remedy})" if one.remedy and state == "problem" else ""
                    lines.append(f"{MARKS[state]} {area}: {_short(one)}{remedy}")
    return "\n".join(map(_escaped, lines))


def _short(one: Checkup) -> str:
    return f"{one.name}: {one.found}"


def _escaped(line: str) -> str:
    from gate.security.escape import console

    return console(line, 800)


def _table(found: Sequence[Checkup]) -> str:
    from gate.security.escape import console

    lines: list[str] = []
    area = ""
    widest = min(max(len(console(one.name, 60)) for one in found), 40)
    for one in found:
        if one.area != area:
            if area:
                lines.append("")
            lines.append(one.area)
            area = one.area
        remedy = ""
        if one.remedy and one.state != "ok":
            remedy = f" (to do: {console(one.remedy, 300)})"
        lines.append(f"  {MARKS[one.state]} {console(one.name, 60).ljust(widest)}  {console(one.found, 500)}{remedy}")
    return "\n".join(lines)


def _end(found: Sequence[Checkup], *, verbose: bool) -> str:
    from gate.commands.setup.doctor import exit_code
    from gate.reports.formatting import count

    states = [one.state for one in found]
    said = "no problems"
    if "problem" in states:
        said = count(states.count("problem"), "problem")
    if "note" in states and not verbose:
        said += "; `gate doctor -v` says what to do about the notes"
    return f"exit code {int(exit_code(found))}: {said}"
