"""`gate import`: converts a suite from any supported format to the gate's files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gate.commands.common_options import PATH
from gate.commands.groups import Once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gate.suites.base import Loss


@click.command("import", cls=Once)
@click.argument("sources", nargs=-1, required=True, type=PATH)
@click.option("--to", "path", required=True, type=PATH, help="The suite file to write, JSON.")
@click.option("--format", "form", metavar="NAME", help="The format of all files; plugins add more.")
@click.option("--allow-loss", is_flag=True, help="Write the suite even if checks are lost.")
def import_suite(sources: tuple[Path, ...], path: Path, form: str | None, allow_loss: bool) -> None:
    """Convert another tool's suite to the gate's format.

    Lists what it cannot carry over. If a check would be lost, writes nothing and exits with 2; --allow-loss
    writes the rest anyway.
    """
    from gate.errors import ConfigError
    from gate.importers.convert import convert
    from gate.suites import load

    if path.suffix != ".json":
        raise ConfigError("the suite is written as JSON", where=str(path), hint="name a file that ends in .json")
    found: list[Loss] = []
    suites = load(list(sources), root=Path.cwd(), format=form, losses=found)
    if len(suites) > 1:
        names = ", ".join(suite.id for suite in suites[:5])
        raise ConfigError(f"these are {len(suites)} suites: {names}", hint="import each separately")
    (suite,) = suites
    made = convert(suite)
    losses = [*found, *made.losses]
    _tell(losses, suite.notes)
    lost = sum(loss.check for loss in losses)
    if lost and not allow_loss:
        hint = "nothing is written; --allow-loss writes the rest"
        raise ConfigError(f"{lost} check{'s' if lost > 1 else ''} would be lost", where=suite.source, hint=hint)
    criteria = path.with_name(f"{path.stem}.criteria.json")
    for target, text in ((path, made.suite), (criteria, made.criteria)):
        if text:
            _write(target, text)
    click.echo(f"{path}: {made.cases} case{'s' if made.cases != 1 else ''}")
    if made.criteria:
        click.echo(f"{criteria}: its criteria\n\nname both in gate.yaml:\n  suite: {path}\n  criteria: {criteria}")


def _tell(losses: Sequence[Loss], notes: Sequence[str]) -> None:
    from gate.security.escape import console
    from gate.suites.base import by_kind

    for loss in by_kind(losses):
        kind = "lost check" if loss.check else "not carried over"
        click.echo(f"{kind}: {console(str(loss), 300)}")
    for note in notes:
        click.echo(f"note: {console(note, 300)}")


def _write(path: Path, text: str) -> None:
    """Write a new file. Raises `ConfigError` if it exists or cannot be written: an existing suite is never replaced."""
    from gate.errors import ConfigError
    from gate.security import files

    if path.exists():
        raise ConfigError("the file exists", where=str(path), hint="name another with --to")
    try:
        files.make_folder(path.parent)
        files.write_text(path, text)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", where=str(path)) from None
