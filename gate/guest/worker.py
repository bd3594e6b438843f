"""Runs the user's agent, or a custom metric, in the user's interpreter: JSON lines in and out over a socket.

Knows nothing of the gate. agents/python.py starts it as a script. Standard library only, Python 3.8 and later, because
the interpreter and its packages are the user's. Standard output and error belong to the agent.
"""

from __future__ import annotations

import os
import sys

# Python puts a script's folder first on the path, and this one has modules named like the standard library's.
if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):  # noqa: PTH120
    del sys.path[0]

import asyncio
import concurrent.futures
import contextvars
import dataclasses
import difflib
import importlib
import importlib.util
import inspect
import json
import signal
import socket
import time
import traceback
from typing import Any, Awaitable, Callable  # noqa: UP035 - Python 3.8

FIELDS = ("message", "messages", "session_id", "state", "metadata", "case_id", "trial", "turn")
LATER = (408, 425, 429, 503, 529)  # same as in agents/base.py, which explains it; a test compares them


LOG_CHARS = 16_000


class KeptOutput:
    """The end of what one request's code wrote to standard output and error, and its traceback."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, text: str) -> None:
        self.text = (self.text + text)[-LOG_CHARS:]


LOG: contextvars.ContextVar[KeptOutput] = contextvars.ContextVar("log")


class Tee:
    """A standard stream that also keeps its output for the request in whose context it is written."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> Any:
        written = self._stream.write(text)
        log = LOG.get(None)
        if log is not None and isinstance(text, str):
            log.add(text[-LOG_CHARS:])
        return written

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Any:
        return iter(self._stream)


def continue_trace(parent: Any) -> None:
    """Make the spans of this request's code part of the gate's trace, if OpenTelemetry is installed."""
    if not parent or importlib.util.find_spec("opentelemetry") is None:
        return
    try:
        context: Any = importlib.import_module("opentelemetry.context")
        propagation: Any = importlib.import_module("opentelemetry.trace.propagation.tracecontext")
    except ImportError:
        return
    context.attach(propagation.TraceContextTextMapPropagator().extract({"traceparent": parent}))


def load(target: str, paths: list[str]) -> Callable[..., Any]:
    """Return the function that ``module:attribute`` or ``module.attribute`` names."""
    sys.path[:0] = paths
    module, attribute = parts_of(target)
    found: Any = importlib.import_module(module)
    for name in attribute.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as error:
            message = str(error)
            near = difflib.get_close_matches(name, [one for one in dir(found) if not one.startswith("_")], 1)
            if near:
                message += f": did you mean {near[0]!r}?"
            raise AttributeError(message) from None
    if not callable(found):
        raise TypeError(f"{target} is not callable")
    function: Callable[..., Any] = found
    return function


def is_named(module: str, target: str) -> bool:
    """True if a module is the one that ``module:attribute`` names, or a package that contains it."""
    return (parts_of(target)[0] + ".").startswith(module + ".")


def parts_of(target: str) -> tuple[str, str]:
    """Return the module and the attribute that ``module:attribute`` or ``module.attribute`` names."""
    module, colon, attribute = target.partition(":")
    if not colon:
        module, _, attribute = target.rpartition(".")
    return module, attribute


def beside(path: str) -> Any:
    """Return the module in one of the gate's files, under a name that no user module has."""
    spec = importlib.util.spec_from_file_location("_agent_gate_adapter", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parameters(function: Callable[..., Any]) -> dict[str, str]:
    """Return parameter name → request field. A single required parameter with another name gets the message."""
    fields: dict[str, str] = {}
    others: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in FIELDS or parameter.name == "request":
            fields[parameter.name] = parameter.name
        elif parameter.default is parameter.empty:
            others.append(parameter.name)
    if len(others) == 1 and not {"message", "messages", "request"} & set(fields):
        fields[others.pop()] = "message"
    if others:
        known = ", ".join(FIELDS[:4])
        raise TypeError(f"nothing fills {others[-1]!r}: give it a default (filled are {known} …)")
    return fields


def arguments(
    function: Callable[..., Any], fields: dict[str, str], request: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the request's fields as arguments for the function, including positional-only ones."""
    values = dict(request, request=request)
    if request.get("messages"):
        values["message"] = request["messages"][-1]["content"]
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in fields:
            value = values[fields[parameter.name]]
            if parameter.kind is parameter.POSITIONAL_ONLY:
                positional.append(value)
            else:
                named[parameter.name] = value
    return positional, named


def plain(value: Any) -> Any:
    """Return a model or dataclass as values that json can encode."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"the agent returned a value of type {type(value).__name__}, which is not JSON")


def refuse_large(answer: Any, limit: int) -> None:
    """Raise ValueError if the answer is larger, before it is copied. Each object counts as 1."""
    size, waiting, seen = 0, [answer], 0
    while waiting:
        value = waiting.pop()
        seen += 1
        if isinstance(value, (str, bytes, list, tuple, dict)):
            size += len(value)
        else:
            size += 1
        if size > limit or seen > limit:
            raise ValueError(f"an answer of more than {limit:,} bytes")
        if isinstance(value, dict):
            size += sum(len(key) for key in value if isinstance(key, str))
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple)):
            waiting.extend(value)


def place(error: BaseException) -> str:
    """Return the line of the user's code that raised an exception: the last one outside installed packages, if there is
    one."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({short(error.filename)}:{error.lineno})"
    ours = os.path.dirname(__file__)  # noqa: PTH120 - strings on both sides
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = frame.filename
        foreign = os.path.dirname(path) == ours or path.startswith("<frozen") or installed(path)  # noqa: PTH120
        if not foreign:
            return f" ({short(path)}:{frame.lineno})"
    return ""


def short(path: str) -> str:
    """Return a file's path as its user knows it: relative to the project, or just its name if it is outside."""
    relative = os.path.relpath(path)
    if relative.startswith(os.pardir):
        return os.path.basename(path)  # noqa: PTH119
    return relative


def installed(path: str) -> bool:
    library = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 - strings on both sides
    return "site-packages" in path or "dist-packages" in path or path.startswith(library)


def failure(error: BaseException) -> dict[str, Any]:
    """Return the error for an exception in user code: its own failure, unless a service refused a request."""
    message = f"{type(error).__name__}: {error}{place(error)}"
    if any(map(refused, causes(error))):
        return {"kind": "unreachable", "message": message, "transient": True}
    return {"kind": "crash", "message": message, "transient": False}


def traced(error: BaseException) -> str:
    """Return the traceback without the lines of the gate's own files; paths as their user knows them."""
    found = traceback.TracebackException.from_exception(error)
    part: Any = found
    known = 0
    while part is not None and known < 10:
        lines = []
        for frame in part.stack:
            if not is_ours(frame.filename):
                lines.append(traceback.FrameSummary(short(frame.filename), frame.lineno, frame.name, line=frame.line))
        part.stack = traceback.StackSummary.from_list(lines)
        part, known = cause_of(part), known + 1
    return "".join(found.format())


def is_ours(path: str) -> bool:
    """True if a file only runs the user's code: one of the gate's, or the standard library's threads."""
    folder = os.path.dirname(path)  # noqa: PTH120 - strings on both sides
    return folder == os.path.dirname(__file__) or folder == os.path.dirname(concurrent.futures.__file__)  # noqa: PTH120


def causes(error: BaseException) -> list[BaseException]:
    """Return the exception and its causes: clients wrap a refused connection in their own errors."""
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(found) < 10 and not any(cause is known for known in found):
        found.append(cause)
        cause = cause_of(cause)
    return found


def cause_of(error: Any) -> Any:
    """Return the exception from which another one was raised, or while it was handled; None if there is none."""
    if error.__suppress_context__:
        return error.__cause__
    return error.__cause__ or error.__context__


def refused(error: BaseException) -> bool:
    """True if a connection was refused, a host is unknown, or a provider accepts no requests now."""
    status = getattr(error, "status_code", getattr(getattr(error, "response", None), "status_code", None))
    return status in LATER or isinstance(error, (ConnectionRefusedError, socket.gaierror))


class Worker:
    """Answers requests concurrently: async functions on the loop, others on threads."""

    def __init__(self, function: Callable[..., Any], writer: asyncio.StreamWriter, threads: int, limit: int) -> None:
        self.function = function
        self.fields = parameters(function)
        self.asynchronous = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - whether the method is async, not whether there is one
        )
        self.writer = writer
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)
        self.limit = limit
        self.results: Any = None
        self.tasks: dict[str, asyncio.Future[None]] = {}
        self.cancelled: set[str] = set()

    def send(self, message: dict[str, Any]) -> None:
        self.writer.write(json.dumps(message).encode() + b"\n")

    async def serve(self, reader: asyncio.StreamReader) -> bool:
        """Serve until asked to end (True), or until the gate is gone (False)."""
        self.send({"ready": True, "asynchronous": self.asynchronous})
        while True:
            line = await reader.readline()
            if not line.endswith(b"\n"):
                return False
            message = json.loads(line)
            if "end" in message:
                return True
            if "cancel" in message:
                task = self.tasks.get(message["cancel"])
                if task:
                    self.cancelled.add(message["cancel"])
                    task.cancel()
                continue
            self.tasks[message["id"]] = asyncio.ensure_future(self.answer(message["id"], message["request"]))

    async def answer(self, number: str, request: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"id": number}
        log = KeptOutput()
        LOG.set(log)
        continue_trace(request.get("traceparent"))
        try:
            answer, reply["duration"] = await self.call(request)
            try:
                refuse_large(answer, self.limit)
                if self.results is not None:
                    answer = self.results.told(answer)
                reply["answer"] = json.loads(self.encode(answer))
            except (TypeError, ValueError, RecursionError) as error:
                message = str(error)
                if self.results is not None:
                    message += self.results.remedy(answer)
                reply["error"] = {"kind": "protocol", "message": message, "transient": False}
        except asyncio.CancelledError as error:
            reply["error"] = failure(error)  # the agent's own cancellation, unless the gate asked for it
            if number in self.cancelled:
                reply["error"] = {"kind": "cancelled", "message": "cancelled", "transient": False}
        except BaseException as error:  # noqa: BLE001 - the user's code, which may raise anything
            reply["error"] = failure(error)
            log.add(traced(error))
        finally:
            self.tasks.pop(number, None)
            self.cancelled.discard(number)
        if log.text:
            reply["log"] = log.text
        self.send(reply)

    def encode(self, answer: Any) -> str:
        def told(value: Any) -> Any:
            found = plain(value)
            refuse_large(found, self.limit)
            return found

        refuse_large(answer, self.limit)
        text = json.dumps(answer, default=told, allow_nan=False)
        if len(text) > self.limit:
            raise ValueError(f"an answer of more than {self.limit:,} bytes")
        return text

    async def call(self, request: dict[str, Any]) -> tuple[Any, float]:
        positional, named = arguments(self.function, self.fields, request)
        if self.asynchronous:
            start = time.perf_counter()
            return await self.function(*positional, **named), time.perf_counter() - start
        loop = asyncio.get_running_loop()

        def run() -> tuple[Any, float]:
            start = time.perf_counter()
            try:
                result = self.function(*positional, **named)
            except StopIteration as error:  # no future can hold it: the caller would wait for ever
                raise RuntimeError("StopIteration").with_traceback(error.__traceback__) from error
            if inspect.isawaitable(result):
                result = asyncio.run_coroutine_threadsafe(finish(result), loop).result()
            return result, time.perf_counter() - start

        return await loop.run_in_executor(self.pool, contextvars.copy_context().run, run)


async def finish(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


async def main(options: dict[str, Any]) -> None:
    connection = socket.socket(fileno=options["fd"])
    os.set_inheritable(options["fd"], False)
    reader, writer = await asyncio.open_connection(sock=connection, limit=options["line_limit"])
    sys.stdout, sys.stderr = Tee(sys.stdout), Tee(sys.stderr)  # before the user's code, which may keep them
    try:
        function = load(options["target"], options["paths"])
        if options.get("adapter"):
            function = beside(options["adapter"]).adapted(function)
        worker = Worker(function, writer, options["threads"], options["limit"])
        if options.get("results"):
            worker.results = beside(options["results"])
    except BaseException as error:  # noqa: BLE001 - the user's module, which may raise anything
        said = str(error)
        if isinstance(error, SyntaxError):
            said = error.msg
        reply = {"fatal": f"{type(error).__name__}: {said}{place(error)}"}
        if isinstance(error, ImportError) and error.name:
            reply["needs"] = error.name
        if isinstance(error, ModuleNotFoundError) and error.name and is_named(error.name, options["target"]):
            reply["missing"] = error.name
        writer.write(json.dumps(reply).encode() + b"\n")
        await writer.drain()
        return
    if not await worker.serve(reader) and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # the gate is gone: neither this nor the agent's processes may outlive it


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
