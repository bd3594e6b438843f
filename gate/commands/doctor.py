"""`gate doctor`: what the agent reports, and what each criterion, the judge, the baselines and the job need."""

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


LEAST_ROWS = 2
"""Rows of an area that are shown with what was found; of more, only their names are."""


@click.command(cls=Once)
@CONFIG
@click.option("--no-ask", is_flag=True, help="Do not ask the agent.")
@click.option("--json", "to_json", is_flag=True, help="Print JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Show every row, with what was found.")
def doctor(config_path: Path, no_ask: bool, to_json: bool, verbose: bool) -> NoReturn:
    """Check the agent, the criteria and the CI setup.

    Asks the agent: the suite's first case twice, and three requests on memory and sessions. Nothing is stored. Ends
    with the exit code that a run would end with: 0 without problems, 2 for the configuration, 3 for what cannot be
    measured, 4 for baselines.
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
        show(f"{table}\n\n{_end(found)}", width_of(os.environ))
    raise SystemExit(int(code))


def _summary(found: Sequence[Checkup]) -> str:
    """Return a line for what is in order in each area, one for each note, and one for each problem with its remedy."""
    lines = []
    for area in dict.fromkeys(one.area for one in found):
        rows = [one for one in found if one.area == area]
        fine = [one for one in rows if one.state == "ok"]
        said = "; ".join(map(_short, fine)) if len(fine) <= LEAST_ROWS else ", ".join(one.name for one in fine)
        lines += [f"ok {area}: {said}"] if fine else []
        lines += [f"-- {area}: {_short(one)}" for one in rows if one.state == "note"]
        for one in rows:
            if one.state == "problem":
                lines.append(f"!! {area}: {_short(one)}" + (f" (to do: {one.remedy})" if one.remedy else ""))
    return "\n".join(map(_escaped, lines))


def _short(one: Checkup) -> str:
    return f"{one.name}: {one.found}"


def _escaped(line: str) -> str:
    from gate.security.escape import console

    return console(line, 800)


def _table(found: Sequence[Checkup]) -> str:
    from gate.security.escape import console

    lines, area = [], ""
    widest = min(max(len(console(one.name, 60)) for one in found), 40)
    for one in found:
        if one.area != area:
            lines += [*([""] if area else []), one.area]
            area = one.area
        remedy = f" (to do: {console(one.remedy, 300)})" if one.remedy and one.state != "ok" else ""
        lines.append(f"  {MARKS[one.state]} {console(one.name, 60).ljust(widest)}  {console(one.found, 500)}{remedy}")
    return "\n".join(lines)


def _end(found: Sequence[Checkup]) -> str:
    from gate.commands.setup.doctor import exit_code
    from gate.reports.formatting import count

    problems = sum(one.state == "problem" for one in found)
    said = count(problems, "problem") if problems else "no problems"
    notes = sum(one.state == "note" for one in found)
    more = "; `gate doctor -v` says what to do about the notes" if notes else ""
    return f"exit code {int(exit_code(found))}: {said}{more}"
