"""`gate verify`: whether records and reports are those that a signed statement is about, and what it says."""

from __future__ import annotations

from pathlib import Path

import click

from gate.commands.common_options import PATH
from gate.commands.groups import Once


@click.command(cls=Once)
@click.argument("files", nargs=-1, required=True, type=PATH)
@click.option("--statement", required=True, type=PATH, help="The signed statement, as `gate attest` wrote it.")
@click.option("--key", type=PATH, help="Public ed25519 key in PEM of whoever has to have signed it.")
@click.option("--unsigned", is_flag=True, help="Take a statement that nobody signed: whoever wrote it is believed.")
@click.option("--commit", help="The commit that is to be deployed: the statement has to be about it.")
@click.option("--allow-warned", is_flag=True, help="Exit with 0 for an inconclusive run, too.")
def verify(
    files: tuple[Path, ...], statement: Path, key: Path | None, unsigned: bool, commit: str | None, allow_warned: bool
) -> None:
    """Check records and reports against a signed statement.

    FILES are a run's records and reports. Works offline. Exit code 7 if anything was changed or does not belong
    together, 1 if it is all there and the run did not pass.
    """
    from gate.stored.evidence import verified

    if (key is None) is not unsigned:
        raise click.UsageError("--key, or --unsigned")
    code, text = verified(files, statement, key, commit, allow_warned=allow_warned)
    click.echo(text)
    raise SystemExit(int(code))
