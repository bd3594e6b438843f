"""`gate verify`: checks records and reports against a signed statement, and shows its content."""

from __future__ import annotations

from pathlib import Path

import click

from gate.commands.common_options import PATH
from gate.commands.groups import Once


@click.command(cls=Once)
@click.argument("files", nargs=-1, required=True, type=PATH)
@click.option("--statement", required=True, type=PATH, help="The signed statement, from `gate attest`.")
@click.option("--key", type=PATH, help="The signer's public ed25519 key in PEM.")
@click.option("--unsigned", is_flag=True, help="Accept an unsigned statement and trust its author.")
@click.option("--commit", help="The commit to deploy; the statement must be about it.")
@click.option("--allow-warned", is_flag=True, help="Also exit with 0 for an inconclusive run.")
def verify(
    files: tuple[Path, ...], statement: Path, key: Path | None, unsigned: bool, commit: str | None, allow_warned: bool
) -> None:
    """Check records and reports against a signed statement.

    FILES are a run's records and reports. Works offline. Exit code 7 if anything was changed or does not match, 1
    if everything matches but the run did not pass.
    """
    from gate.stored.evidence import verified

    if (key is None) is not unsigned:
        raise click.UsageError("--key, or --unsigned")
    code, text = verified(files, statement, key, commit, allow_warned=allow_warned)
    click.echo(text)
    raise SystemExit(int(code))
