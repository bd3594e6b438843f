"""`gate` on the path of a script that a test runs: hands what it was started with to the process to fork from.

`tests.warm` starts the script and says how that process is reached. Run as a program; knows the standard library alone.
"""

from __future__ import annotations

import array
import json
import os
import socket
import sys
from pathlib import Path

LINE = "GATE_TESTS_LINE"


def main() -> int:
    script = str(Path(sys.executable).with_name("gate"))
    told = json.loads(os.environ.pop(LINE, "{}"))
    prefixes = tuple(told.get("prefixes", ()))
    if told.get("at_start") != {name: value for name, value in os.environ.items() if name.startswith(prefixes)}:
        os.execv(script, [script, *sys.argv[1:]])  # another interpreter, or of what the script itself has started
    answer, theirs = socket.socketpair()
    message = {"script": script, "arguments": sys.argv[1:], "cwd": str(Path.cwd()), "environment": dict(os.environ)}
    with socket.socket(fileno=told["line"]) as line:
        socket.send_fds(line, [json.dumps(message).encode()], [0, 1, 2, theirs.fileno()])
    theirs.close()
    _pid, code = number(answer), number(answer)
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


def number(told: socket.socket) -> int:
    return array.array("i", told.recv(4))[0]


if __name__ == "__main__":
    sys.exit(main())
