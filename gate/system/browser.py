"""Shows a file in the user's browser. Starts programs, never a shell."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import webbrowser
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def open_in_browser(path: Path, environment: Mapping[str, str]) -> bool:
    """Show the file; return False if no browser could be started.

    ``$BROWSER`` lists commands, separated like paths; the first that starts is used. ``%s`` in a command is replaced by
    the address, which otherwise comes last.
    """
    address = path.resolve().as_uri()
    named = environment.get("BROWSER", "")
    if named:
        return any(_starts(command) for command in _commands(named, address))
    if sys.platform.startswith("linux") and not any(environment.get(name) for name in DISPLAYS):
        return False  # only terminal browsers would be found, and the terminal may be a log
    with suppress(webbrowser.Error, OSError):
        return webbrowser.open(address)
    return False


def _commands(named: str, address: str) -> Iterator[list[str]]:
    for text in filter(str.strip, named.split(os.pathsep)):
        with suppress(ValueError):  # an unclosed quotation mark
            words = shlex.split(text)
            filled = [word.replace("%s", address) for word in words]
            yield filled if filled != words else [*words, address]


def _starts(command: Iterable[str]) -> bool:
    quiet = subprocess.DEVNULL
    with suppress(OSError, ValueError):
        started = subprocess.Popen(  # noqa: S603 - a list, and no shell
            list(command), stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
        )
        started.returncode = 0  # it outlives this process on purpose; otherwise Python would warn
        return True
    return False
