"""The image's entrypoint: hides the environment from every other process, then starts the action.

The initial environment of a process stays readable in ``/proc`` while it lives, even after it deletes variables, and
the agent runs as the same user. So this process executes itself again with only the few variables that are not secret.
It stays the same process, so signals and the exit code need no forwarding. All variables are passed in a file in
memory, which is read and closed before anything else is loaded.
"""

from __future__ import annotations

import json
import os
import sys
from typing import NoReturn

from gate.security.environment import ALWAYS_ALLOWED, handed_on


def main() -> NoReturn:
    """Restart without the environment if there is no argument; otherwise read it from the file in the argument."""
    if len(sys.argv) == 1:
        _begin_again(dict(os.environ))
    environment = _take(int(sys.argv[1]))
    from gate.system.concealed import close_memory

    close_memory()
    from gate.action.main import main as act  # weight: must not be loaded twice

    act(environment)


def _begin_again(environment: dict[str, str]) -> NoReturn:
    handed = os.memfd_create("environment", 0)  # no flags: the file must stay open across the call below
    with open(handed, "wb", closefd=False) as file:
        file.write(json.dumps(environment).encode("ascii"))  # undecodable bytes are kept as escapes
    command = [sys.executable, *sys.orig_argv[1:], str(handed)]
    os.execve(sys.executable, command, handed_on(environment, ALWAYS_ALLOWED))  # noqa: S606


def _take(handed: int) -> dict[str, str]:
    os.lseek(handed, 0, os.SEEK_SET)
    with open(handed, "rb") as file:
        environment: dict[str, str] = json.load(file)
    return environment


if __name__ == "__main__":
    main()
