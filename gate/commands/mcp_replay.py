"""`gate mcp-replay`: records and replays an MCP server on standard input and output."""

from __future__ import annotations

import sys
from pathlib import PurePath

import click

from gate.commands.groups import Once


@click.command("mcp-replay", cls=Once, context_settings={"ignore_unknown_options": True})
@click.option("--name", help="The server's name in recordings. Default: its program's name.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def mcp_replay(name: str | None, command: tuple[str, ...]) -> None:
    """Record and replay an MCP server.

    Wraps the MCP server that COMMAND starts, on standard input and output. Within `gate run` with `world`,
    records calls and replays answers through GATE_WORLD_URL. Without that variable, it becomes the server.
    """
    from gate.guest.mcp_replay import main

    named = name or PurePath(command[0]).stem
    if not named.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise click.BadParameter(f"{named!r}: letters, digits, ., - and _ alone", param_hint="--name")
    sys.exit(main(named, list(command)))
