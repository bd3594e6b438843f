"""The far side of `tests.warm`: has imported the package, and becomes each command in a fork of its own.

The commands fork, too, what they would start of the gate's own scripts: the worker of an agent in Python and the
guardian. Most of what these take is the start of an interpreter. Where a variable or a flag makes it another
interpreter, one is started.

Run as a program. It knows the standard library and the package; the folder of the tests is not on its path.
"""

from __future__ import annotations

import array
import asyncio
import atexit
import faulthandler
import gc
import importlib.util
import io
import json
import logging
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn

ALSO = ("rich.padding", "rich.table", "httpx", "openai", "genai_prices", "jsonschema.validators", "markdown_it")
"""What commands import on their way, for its weight."""
PROGRAMS = ("__main__", "entrypoint", "guardian", "worker", "guest")
"""Modules that are started, not imported, and those of other interpreters."""
SAMPLE = Path(__file__).parent / "golden/records/full-2.jsonl"
SCRIPTS = {"guest/worker.py": (), "system/guardian.py": ("-I", "-S")}
"""What is forked of what commands start, by its path in the package, with the flags that it is started with."""
AT_START = ("PYTHON", "LC_", "LANG", "TZ", "LD_")
"""As in `tests.warm`."""


def main() -> NoReturn:
    line = socket.socket(fileno=int(sys.argv[1]))
    if not sys.flags.isolated:
        del sys.path[0]
    if len(sys.orig_argv) == 3:  # of no flags
        fork_scripts()
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
    complete(importlib.import_module("pydantic").BaseModel)
    importlib.import_module("gate.records").read_record(SAMPLE)  # what reads records is made at the first one


def complete(model: Any) -> None:
    """Builds the models that the package has built at their first use."""
    for one in model.__subclasses__():
        if one.__module__.partition(".")[0] == "gate":
            with suppress(Exception):  # a model that is generic, or abstract
                one.model_rebuild()
        complete(one)


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
        try:
            become(message, streams)
        finally:  # a signal raised at its very end
            os._exit(1)
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
            sys.path.insert(0, folder_of(message))
        sys.argv[1:] = message["arguments"]
        faulthandler.enable()  # one that does not end says where it was before it is killed
        for number in message.get("heeds", ()):
            signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
        if "module" in message:
            runpy.run_module(message["module"], run_name="__main__", alter_sys=True)
        elif "script" in message:
            runpy.run_path(message["script"], run_name="__main__")
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


def folder_of(message: dict[str, Any]) -> str:
    """The folder that an interpreter puts first on its path."""
    if "script" in message:
        return str(Path(message["script"]).parent)
    return str(message["cwd"]) if "module" in message else ""


# --- what a command starts ------------------------------------------------------------------------


def fork_scripts() -> None:
    """From now on starting one of SCRIPTS forks. What they import themselves is imported here and stays theirs."""
    found = importlib.util.find_spec("gate")
    assert found is not None and found.origin is not None
    known: dict[tuple[str, ...], CodeType] = {}
    for name, flags in SCRIPTS.items():
        path = Path(found.origin).parent / name
        code = compile(path.read_text(encoding="utf-8"), path, "exec")
        exec(code, {"__name__": "_imported_by_a_script", "__file__": str(path)})
        known[(sys.executable, *flags, str(path))] = code
    own, path, finders = frozenset(sys.modules), list(sys.path), list(sys.meta_path)
    errors = sys.stdout.errors
    at_start = {name: value for name, value in os.environ.items() if name.startswith(AT_START)}
    at_start["PYTHONUNBUFFERED"] = "1"
    start: Callable[..., int] | None = getattr(subprocess, "_fork_exec", None)
    if start is None:  # in some later Python
        return
    # That is for other threads; those of a command hold no lock that a script needs.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)

    def start_or_fork(
        words: Sequence[str], programs: Any, close: bool, keep: tuple[int, ...], cwd: Any, environment: Any, *more: Any
    ) -> int:
        given, _, _, out, _, err, _, told, _, session, group, *_ = more
        words = [os.fsdecode(word) for word in words]
        code = next((known[key] for n in (2, 4) if (key := tuple(words[:n])) in known), None)
        others = dict(os.fsdecode(pair).split("=", 1) for pair in environment or ())
        steering = {name: value for name, value in others.items() if name.startswith(AT_START)}
        if code is None or environment is None or not ("-I" in words or steering == at_start):
            return start(words, programs, close, keep, cwd, environment, *more)
        if pid := os.fork():
            return pid
        try:
            for number, stream in enumerate((given, out, err)):
                if stream >= 0:
                    os.dup2(stream, number)
            for first, last in zip((2, *sorted({*keep})), (*sorted({*keep}), 4096), strict=True):
                os.closerange(first + 1, last)
            if session:
                os.setsid()
            elif group >= 0:
                os.setpgid(0, group)
            if cwd is not None:
                os.chdir(cwd)
        except OSError:
            os._exit(255)
        start_afresh(others, own, path, finders, errors)
        os.close(told)  # which is how the other side learns that it has started
        run_script(code, words)

    subprocess._fork_exec = start_or_fork  # type: ignore[attr-defined]


HELD: list[object] = []
"""What was there before a fork became a script: it must not be freed, since files would be closed by their numbers."""


def start_afresh(
    environment: Mapping[str, str], own: frozenset[str], path: list[str], finders: list[Any], errors: str | None
) -> None:
    """Leaves of what the process is nothing that a new interpreter would not have."""
    gc.freeze()
    faulthandler.disable()
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    asyncio._set_running_loop(None)
    HELD.extend((asyncio.get_event_loop_policy(), *logging.root.handlers, sys.stdin, sys.stdout, sys.stderr))
    HELD.extend((sys.__stdin__, sys.__stdout__, sys.__stderr__))
    asyncio.set_event_loop_policy(None)
    logging.root.handlers.clear()
    atexit._clear()
    atexit.register(logging.shutdown)
    HELD.extend(sys.modules.pop(name) for name in [*sys.modules] if name not in own)
    sys.path[:], sys.meta_path[:] = path, finders
    sys.path_importer_cache.clear()
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8", errors)
    out, err = (io.FileIO(number, "w", closefd=False) for number in (1, 2))
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(out, "utf-8", errors, write_through=True)  # type: ignore[type-var]
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(err, "utf-8", "backslashreplace", write_through=True)  # type: ignore[type-var]


def run_script(code: CodeType, words: Sequence[str]) -> NoReturn:
    """Runs the script as an interpreter does, its end included."""
    ended = 1
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.argv[:] = [code.co_filename, *words[words.index(code.co_filename) + 1 :]]
    module.__dict__["__file__"] = code.co_filename
    try:
        exec(code, module.__dict__)
        ended = 0
    except SystemExit as end:
        ended = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
        os._exit(ended)


if __name__ == "__main__":
    main()
