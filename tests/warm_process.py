"""The far side of `tests.warm`: has imported the package, and becomes each command in a fork of its own.

Run as a program. It knows the standard library and the package; the folder of the tests is not on its path.
"""

from __future__ import annotations

import array
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import socket
import ssl
import sys
import traceback
from typing import Any, NoReturn

ALSO = ("rich.padding", "rich.table", "httpx", "openai", "genai_prices", "jsonschema.validators", "markdown_it")
"""What commands import on their way, for its weight."""
PROGRAMS = ("__main__", "entrypoint", "guardian", "worker", "guest")
"""Modules that are started, not imported, and those of other interpreters."""


def main() -> NoReturn:
    line = socket.socket(fileno=int(sys.argv[1]))
    if not sys.flags.isolated:
        del sys.path[0]
    load()
    gc.collect()
    gc.freeze()  # else each fork copies the memory once it collects
    serve(line)
    sys.exit()


def prepare() -> None:
    """Does once what each command would do: compiles the pages' templates, and reads no authorities.

    No server of a test is signed by one of this machine; a test of TLS names its own certificate.
    """
    ssl.SSLContext.load_default_certs = lambda *_: None  # type: ignore[method-assign]
    environment = importlib.import_module("gate.reports.html.page").environment()
    for name in environment.list_templates(extensions=["html"]):
        environment.get_template(name)


def load() -> None:
    """Imports the package as a whole, and what it imports late."""
    prepare()
    package = importlib.import_module("gate")
    for found in pkgutil.walk_packages(package.__path__, "gate."):
        if not set(found.name.split(".")) & set(PROGRAMS):
            importlib.import_module(found.name)
    for name in ALSO:
        importlib.import_module(name)


def serve(line: socket.socket) -> None:
    """Forks once per message until the other side hangs up, and answers on the socket that came with it."""
    running: dict[int, tuple[int, socket.socket]] = {}
    with selectors.DefaultSelector() as waiting:
        waiting.register(line, selectors.EVENT_READ)
        while waiting.get_map():
            for key, _ in waiting.select():
                if key.fileobj is not line:
                    waiting.unregister(key.fd)
                    report(key.fd, *running.pop(key.fd))
                    continue
                message, files, _, _ = socket.recv_fds(line, 1 << 20, 4)
                if not message:
                    waiting.unregister(line)
                    continue
                pid, answer = fork(json.loads(message), files)
                ended = os.pidfd_open(pid)
                running[ended] = pid, answer
                waiting.register(ended, selectors.EVENT_READ)


def report(ended: int, pid: int, answer: socket.socket) -> None:
    """Tells the exit code, as subprocess has it."""
    os.close(ended)
    _, status = os.waitpid(pid, 0)
    send(answer, os.waitstatus_to_exitcode(status))
    answer.close()


def fork(message: dict[str, Any], files: list[int]) -> tuple[int, socket.socket]:
    *streams, answer = files
    pid = os.fork()
    if not pid:
        become(message, streams)
    for stream in streams:
        os.close(stream)
    told = socket.socket(fileno=answer)
    send(told, pid)
    return pid, told


def send(answer: socket.socket, number: int) -> None:
    try:
        answer.send(array.array("i", [number]).tobytes())
    except OSError:
        """Nobody waits for it any more."""


def become(message: dict[str, Any], streams: list[int]) -> NoReturn:
    """What an interpreter does at its start, without the imports."""
    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, 256)
        os.chdir(message["cwd"])
        os.environ.clear()
        os.environ.update(message["environment"])
        if not sys.flags.isolated:
            sys.path.insert(0, message["cwd"] if "module" in message else "")
        sys.argv[1:] = message["arguments"]
        if "module" in message:
            runpy.run_module(message["module"], run_name="__main__", alter_sys=True)
        else:
            exec(message["code"], {"__name__": "__main__"})
        code = 0
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
