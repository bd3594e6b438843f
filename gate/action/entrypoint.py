"""The image's entrypoint: takes the environment out of every other process's reach, then starts the action.

The environment that a process was started with stays readable in ``/proc`` for as long as it lives, even after it
deletes variables, and the agent runs as the same user. So this process executes itself once more with the few variables
that everyone may see. It stays the same process, so signals and the exit code need no forwarding. All variables travel
in a file in memory, which is read and closed before anything else is loaded.
"""

from __future__ import annotations

import json
import os
import sys
from typing import NoReturn

from gate.security.environment import ALWAYS_ALLOWED, handed_on


def main() -> NoReturn:
    """Without an argument, the process as the runner starts it; with one, the file to take the environment from."""
    if len(sys.argv) == 1:
        _begin_again(dict(os.environ))
    environment = _take(int(sys.argv[1]))
    from gate.system.concealed import close_memory

    close_memory()
    from gate.action.main import main as act  # weight: not to be loaded twice

    act(environment)


def _begin_again(environment: dict[str, str]) -> NoReturn:
    handed = os.memfd_create("environment", 0)  # no flags: it is to outlive the call below
    with open(handed, "wb", closefd=False) as file:
        file.write(json.dumps(environment).encode("ascii"))  # undecodable bytes stay what they are, as escapes
    command = [sys.executable, *sys.orig_argv[1:], str(handed)]
    os.execve(sys.executable, command, handed_on(environment, ALWAYS_ALLOWED))  # noqa: S606


def _take(handed: int) -> dict[str, str]:
    os.lseek(handed, 0, os.SEEK_SET)
    with open(handed, "rb") as file:
        environment: dict[str, str] = json.load(file)
    return environment


if __name__ == "__main__":
    main()
