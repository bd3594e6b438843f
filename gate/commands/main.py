"""The `gate` command: the group of sub-commands, and the only place that turns exceptions into exit codes."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from gate import __version__
from gate.commands.groups import LazyGroup
from gate.errors import Cancelled, ExitCode, GateError, closest, short_line
from gate.stopping import STOPPING
from gate.system.streams import keep_open

SECTIONS = {
    "Every day": ("init", "run", "explain", "open", "baseline", "compare", "doctor", "demo"),
    "Cases and settings": ("import", "suite", "schema", "calibrate", "help"),
    "More reports": ("report", "history", "site"),
    "CI and releases": ("merge", "attest", "verify"),
    "Production": ("monitor", "promote"),
    "Seldom needed": ("score", "decide", "diff-requests", "mcp-replay", "ratchet", "power", "prove", "rescore"),
}
"""The sub-commands by purpose, the daily ones first."""
NAMES = tuple(sorted(name for names in SECTIONS.values() for name in names))
"""The sub-commands. Each imports its dependencies only when it runs, so that `gate --help` and shell completion, which
import all of these files, load neither pydantic nor an HTTP client."""
PLACES = {"open": "open:open_report", "help": "help:help_on", "import": "import_suite:import_suite"}
"""The file and function of sub-commands whose names are taken in Python."""
REMOVED_OPTIONS = {
    **{f"{name} --ctrf": "write --report ctrf=PATH" for name in ("baseline", "compare", "merge", "report", "run")},
    "attest --output": "leave it out: the signed statement is beside the statement",
    "decide --jsonl": "leave it out, as there is only one format",
    "demo --folder": "leave it out: the demo is in a new temporary folder, which it names",
    **dict.fromkeys(("doctor --json", "doctor --verbose", "doctor -v"), "leave it out: every check is a line"),
    **dict.fromkeys(("init --yes", "init -y"), "leave it out: nothing is asked"),
    "monitor --receive": "set `monitor.receive` in gate.yaml",
    "monitor --prometheus": "set `monitor.prometheus` in gate.yaml",
    "power --stored": "leave it out: it counts the trials that a baseline has",
    "promote --show": "leave it out: the case is appended to a file, and git shows it",
    "run --complexity": "write --where complexity=VALUE",
    "schema --plugins": "leave it out: installed plugins are always included",
    "site --link": "leave it out: runs link to their commits",
    "suite --complexity": "write --where complexity=VALUE",
}
"""Options that earlier versions had, each with what to do instead."""
GARBAGE_THRESHOLD = 200_000
"""Allocations between two runs of the cyclic garbage collector. A run makes many lasting objects and few cycles: at
Python's default of 700, collection takes about 5 % of the time."""


def place_of(name: str) -> str:
    """Return the file and function of a sub-command."""
    plain = name.replace("-", "_")
    return PLACES.get(name, f"{plain}:{plain}")


@click.group(
    cls=LazyGroup,
    lazy={name: f"gate.commands.{place_of(name)}" for name in NAMES},
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="gate")
@click.option("--debug", is_flag=True, help="Show tracebacks; may be given anywhere.")
def cli(debug: bool) -> None:
    """The quality gate for AI agents: pass, regressed or inconclusive, at a stated error rate."""


def main() -> NoReturn:
    """The `gate` command. No traceback ever reaches a user; `--debug` shows it."""
    keep_open()
    gc.set_threshold(GARBAGE_THRESHOLD)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # faster: plugins need a search of all packages
    arguments = sys.argv[1:] or ["--help"]
    debug = "--debug" in arguments
    try:
        cli.main([word for word in arguments if word != "--debug"], prog_name="gate", standalone_mode=False)
    except GateError as error:
        _fail(error.whole, error.exit_code, debug)
    except click.exceptions.Exit as error:
        raise SystemExit(error.exit_code) from None
    except click.ClickException as error:
        _fail(_usage(error), ExitCode.CONFIGURATION, debug)
    except Cancelled as error:
        _fail(_stopped(), error.exit_code, debug)
    except (KeyboardInterrupt, click.Abort):
        _fail(_stopped(), ExitCode.INTERRUPTED, debug)
    except Exception as error:  # noqa: BLE001  (the one place: after any such error, nothing was measured)
        _fail(
            f"unexpected {type(error).__name__}: {error} (run again with --debug for the traceback)",
            ExitCode.NOT_MEASURED,
            debug,
        )
    raise SystemExit(0)


def _stopped() -> str:
    """Return the message after a signal."""
    if [word for word in sys.argv[1:] if word != "--debug"][:1] == ["run"]:
        return "stopped; what was measured so far is kept, and --resume continues it"
    return "stopped"


def _usage(error: click.ClickException) -> str:
    """Return a command-line problem as one line, like every other error."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and isinstance(error.ctx.command, click.Group):
        what = f"a command is missing: {', '.join(error.ctx.command.list_commands(error.ctx))}"
    elif isinstance(error, click.NoSuchOption):
        near = closest(error.option_name.lstrip("-"), [one.lstrip("-") for one in error.possibilities or ()])
        what = f"no such option {error.option_name!r}"
        advice = REMOVED_OPTIONS.get(f"{context.info_name} {error.option_name}") if context else None
        if advice:
            what = f"{error.option_name} was removed: {advice}"
        elif near:
            what += f": did you mean '--{near}'?"
    else:
        what = " ".join(error.format_message().split()).replace("a valid integer range", "a whole number in range")
    return what if context is None else f"{what} ({context.command_path} --help)"


def _fail(message: str, exit_code: int, debug: bool) -> NoReturn:
    if STOPPING.is_set:  # a stop signal outranks the error that it caused
        message, exit_code = _stopped(), 128 + STOPPING.number
    if debug:
        import traceback

        traceback.print_exc()
    from gate.security.escape import console

    click.echo(f"gate: {console(short_line(_from_here(message)))}", err=True)
    raise SystemExit(int(exit_code))


def _from_here(message: str) -> str:
    """Return the message with paths relative to the current folder."""
    try:
        here = str(Path.cwd())
    except OSError:  # it was deleted
        return message
    return message.replace(f"{here}/", "").replace(f"{here}:", "here:") if len(here) > 1 else message
