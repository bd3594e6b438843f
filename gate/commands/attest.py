"""`gate attest`: signs a run's statement, or prepares it for the CI's attestation step."""

from __future__ import annotations

from pathlib import Path

import click

from gate.commands.common_options import PATH
from gate.commands.groups import Once


@click.command(cls=Once)
@click.argument("statement", type=PATH)
@click.option("--key", type=PATH, help="Private ed25519 key in PEM, which signs the statement.")
@click.option("--predicate", type=PATH, help="Write the predicate here, for your CI's attestation step.")
def attest(statement: Path, key: Path | None, predicate: Path | None) -> None:
    """Sign a run's results.

    STATEMENT is the file written by `gate run --statement`. With --key, writes the DSSE envelope that `gate
    verify` checks. With --predicate, prints the subjects as a list of checksums for attestation steps.
    """
    from gate.stored.evidence import attested

    if key is None and predicate is None:
        raise click.UsageError("--key, or --predicate")
    click.echo(attested(statement, key, predicate))
