"""`gate attest`: signs what a run states, or hands it to the CI's own attestation step."""

from __future__ import annotations

from pathlib import Path

import click

from gate.commands.common_options import PATH
from gate.commands.groups import Once


@click.command(cls=Once)
@click.argument("statement", type=PATH)
@click.option("--key", type=PATH, help="Private ed25519 key in PEM; the statement is signed with it.")
@click.option("--output", type=PATH, help="Where the signed statement goes. Default: STATEMENT with .dsse.json.")
@click.option("--predicate", type=PATH, help="Write the predicate here, for the CI's own attestation step.")
def attest(statement: Path, key: Path | None, output: Path | None, predicate: Path | None) -> None:
    """Sign the results of a run.

    STATEMENT is the file that `gate run --statement` wrote. With --key the envelope (DSSE) is what `gate verify`
    checks. With --predicate the subjects are printed as a list of checksums, as attestation steps take them.
    """
    from gate.stored.evidence import attested

    if key is None and predicate is None:
        raise click.UsageError("--key, or --predicate")
    click.echo(attested(statement, key, output, predicate))
