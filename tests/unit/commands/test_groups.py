"""The list of sub-commands: by section, whole sentences, and the same sections as in the reference."""

from __future__ import annotations

import re
from pathlib import Path

import click
from click.testing import CliRunner

from gate.commands.main import SECTIONS, cli

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"


def test_the_help_cuts_no_sentence_off() -> None:
    shown = CliRunner().invoke(cli, ["--help"], terminal_width=80).output
    lines = shown.partition("Every day:")[2].splitlines()
    assert all(re.match(r"  [a-z]|$|[A-Z].*:$", line) for line in lines), "each command is one line at 80 columns"
    assert "..." not in shown.partition("Options:")[2]
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        first = (command.help or "").partition("\n\n")[0]
        assert " ".join(first.split()).rstrip(".") in " ".join(shown.split()), name


def test_the_reference_has_the_sections_of_the_help() -> None:
    rows = re.findall(r"^\| ([A-Za-z ]+) \| (`gate .*) \|$", PAGE.read_text(), re.MULTILINE)
    told = {section: tuple(dict.fromkeys(re.findall(r"`gate ([a-z-]+)", commands))) for section, commands in rows}
    assert told == {section: tuple(names) for section, names in SECTIONS.items()}
