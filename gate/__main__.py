"""The `gate` command as a process of its own; `python -m gate` is the same."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):  # noqa: PTH120
    del sys.path[0]  # the folder that the gate is called in: what is imported from now on is not looked for there

import atexit
from contextlib import suppress
from typing import NoReturn

from gate.commands.main import main
from gate.errors import ExitCode
from gate.system.concealed import is_alone
from gate.system.stopping import heed


def run() -> NoReturn:
    """Runs the command and ends the process with its exit code.

    What was registered for the end is done; the memory is left to the system as a whole, since the interpreter would
    free it value by value, which takes longer than the reports of a large run.
    """
    code = 1
    is_alone()
    heed()
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    with suppress(Exception):  # what fails there is printed there, and the verdict stands
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # the reader left early, or there never was one
            stream.flush()
    if not code and getattr(sys.stdout, "was_lost", False):  # known only once everything is written
        code = int(ExitCode.NOT_MEASURED)
    os._exit(code)


if __name__ == "__main__":
    run()
