"""The `gate` command as a process; `python -m gate` does the same."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):  # noqa: PTH120
    del sys.path[0]  # the current folder: imports from here on must not find modules in it

import gc
from contextlib import suppress
from typing import NoReturn

from gate.commands.main import main
from gate.errors import Cancelled, ExitCode
from gate.stopping import heed, heed_no_more
from gate.system.concealed import is_alone


def run() -> NoReturn:
    """Run the command and end the process with its exit code."""
    code = 1
    is_alone()
    try:
        heed()
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        heed_no_more()
    except Cancelled as stopped:  # while the command began, ended, or reported another signal
        heed_no_more()
        code = stopped.exit_code
    gc.freeze()  # the process ends: another collection of cycles would gain nothing
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # the reader left early: the interpreter must not try again, and exit with 120
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except (ValueError, AttributeError):  # the stream is closed, or there never was one
            continue
    if not code and getattr(sys.stdout, "was_lost", False):  # known only after everything has been written
        code = int(ExitCode.NOT_MEASURED)
    sys.exit(code)


if __name__ == "__main__":
    run()
