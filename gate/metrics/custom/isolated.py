"""Checks that users write, in a child process of this interpreter: they see neither our objects nor our environment."""

from __future__ import annotations

import json
import math
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import count
from time import monotonic
from typing import Any, ClassVar
from weakref import finalize

from msgspec.structs import replace
from pydantic import ConfigDict, ValidationError, create_model
from pydantic_core import InitErrorDetails, PydanticCustomError

from gate.errors import ConfigError
from gate.metrics.base import MAX_REASON_CHARS, Composite, Context, Metric, Options, TrialOutput
from gate.metrics.custom.metric import Use, searched, source_of
from gate.model import Case, Direction, Scale, Score
from gate.security.limits import MAX_ANSWER_BYTES, shorten
from gate.system.serialize import pack

START_SECONDS = 120.0
"""How long importing a check may take."""
SECONDS = 60.0
"""How long a check may take over one trial."""
LEAVE_SECONDS = 1.0
"""For a process to leave by itself once nothing more is asked."""
_BEGIN = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from gate.metrics.custom.child import main; main()"
_NUMBERS = count()


def resolve_apart(path: str, use: Use) -> type[Metric[Any]]:
    """The metric that ``module:attribute`` names, imported and computed in a child process.

    Raises:
        ConfigError: no such module or attribute, or neither a metric nor a function of two or four arguments.
    """
    child = _child(path, use)
    try:
        told = child.ask(_describe(path, use), seconds=START_SECONDS)
    except _LostError as error:
        raise ConfigError(f"metric {path!r} cannot be imported: {error}") from None
    if "refused" in told:
        what, hint = told["refused"]
        raise ConfigError(str(what), hint=str(hint))
    try:
        own = _attributes(told)
        base: type[Metric[Any]] = _ApartComposite if told["composite"] else _ApartMetric
    except (KeyError, TypeError, ValueError):
        raise ConfigError(f"metric {path!r} says something else of itself than a metric does") from None
    return type("Apart", (base,), {**own, "path": path, "use": use})


def _describe(path: str, use: Use) -> tuple[Any, ...]:
    return ("describe", path, _stripped(use))


def _stripped(use: Use) -> Use:
    return replace(use, environment={})


def _attributes(told: Mapping[str, Any]) -> dict[str, Any]:
    """The class attributes of a metric, out of what the child says of it."""
    names = [str(name) for name in told["fields"]]
    fields: dict[str, Any] = dict.fromkeys(names, (Any, None))
    return {
        "__doc__": str(told["doc"]),
        "version": int(told["version"]),
        "scale": Scale(told["scale"]),
        "direction": Direction(told["direction"]),
        "default_threshold": _number(told["default_threshold"]),
        "pass_threshold": _number(told["pass_threshold"]),
        "hard": told["hard"] is True,
        "over_trials": told["over_trials"] is True,
        "reads_tools": told["reads_tools"] is True,
        "absence": told["absence"] is True,
        "options_type": create_model("Options", __base__=_AnyOptions, **fields),
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


class _AnyOptions(Options):
    """Options as they are written; the child validates them."""

    model_config = ConfigDict(extra="allow")


class _ApartMetric(Metric[Any]):
    """A metric that a child process computes."""

    path: ClassVar[str] = ""
    use: ClassVar[Use] = Use()

    def __init__(self, options: Any, context: Context | None = None) -> None:
        super().__init__(options, context)
        self._raw = options.model_dump(exclude_unset=True)
        self._number = next(_NUMBERS)
        self._process = _child(self.path, self.use)
        try:
            told = self._process.ask(self._made(), seconds=START_SECONDS)
        except _LostError as error:
            raise ConfigError(f"metric {self.path!r}: {error}") from None
        if "refused" in told:
            raise ConfigError(str(told["refused"][0]), hint=str(told["refused"][1]))
        if "invalid" in told:
            raise _invalid(told["invalid"])
        self._missing, self._caveat = str(told.get("missing", "")), str(told.get("caveat", ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.path, self.use, self._raw, self.context)

    def _made(self) -> tuple[Any, ...]:
        return ("make", self._number, self.path, _stripped(self.use), self._raw, self.context)

    @property
    def missing(self) -> str:
        return self._missing

    @property
    def caveat(self) -> str:
        return self._caveat

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return self._ask("score", replace(case, content=None), performance)

    def _ask(self, what: str, *given: Any) -> Score:
        try:
            return _score(self._process.ask((what, self._number, *given), first=self._made()))
        except _LostError as error:
            return Score(None, error=f"the check failed: {error}")


class _ApartComposite(_ApartMetric, Composite[Any]):
    """A metric of the other criteria's scores that a child process computes."""

    def combine(self, case: Case, scores: Mapping[str, Score]) -> Score:
        return self._ask("combine", replace(case, content=None), dict(scores))


def _again(path: str, use: Use, raw: Mapping[str, Any], context: Context) -> Metric[Any]:
    metric_type = resolve_apart(path, use)
    return metric_type(metric_type.options_type.model_validate(dict(raw)), context)


def _invalid(told: Any) -> ValidationError:
    """What the child's validation found, as validation here would have found it."""
    kind, place, message = (told[key] for key in ("type", "loc", "msg"))
    custom = PydanticCustomError("value_error", "{said}", {"said": shorten(str(message), 300)})
    found = "extra_forbidden" if kind == "extra_forbidden" else custom
    details = InitErrorDetails(type=found, loc=tuple(map(str, place)), input=None)
    return ValidationError.from_exception_data("Options", [details])


def _score(told: Mapping[str, Any]) -> Score:
    """A score out of what the child sent; anything that is none was not measured."""
    value, error = told.get("value"), told.get("error")
    per_turn, details = told.get("per_turn") or [], told.get("details")
    if not _fits(value) or not isinstance(per_turn, list) or not all(map(_fits, per_turn)):
        return Score(None, error="the check's process sent what is no score")
    return Score(
        value,
        shorten(str(told.get("reason") or ""), MAX_REASON_CHARS),
        None if error is None else shorten(str(error), MAX_REASON_CHARS),
        tuple(per_turn),
        details if isinstance(details, dict) else {},
    )


def _fits(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and math.isfinite(value))


# --- the process ----------------------------------------------------------------------------------


class _LostError(Exception):
    """The process gave no answer; the message says why."""


def _child(path: str, use: Use) -> _Child:
    """The process for a check, shared with others of the same module; a new one where the module was edited."""
    places = tuple(searched(use.folder, use.hidden))
    found = source_of(path, places)
    content = found.read_bytes() if found is not None else b""
    return _child_for(content, places, use.folder, tuple(sorted(use.environment.items())))


@lru_cache(maxsize=8)
def _child_for(
    content: bytes,  # noqa: ARG001 - an edited check needs a new process
    places: tuple[str, ...],
    folder: str,
    environment: tuple[tuple[str, str], ...],
) -> _Child:
    return _Child(places, folder, dict(environment))


class _Child:
    """One process, started when it is first asked, and again when it has gone."""

    def __init__(self, places: Sequence[str], folder: str, environment: Mapping[str, str]) -> None:
        self._argv = [sys.executable, "-P", "-c", _BEGIN, json.dumps(places)]
        self._folder, self._environment = folder or None, dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._end: finalize[..., Any] | None = None
        self._made: set[int] = set()
        self._held = bytearray()

    def ask(
        self, message: tuple[Any, ...], *, first: tuple[Any, ...] | None = None, seconds: float = SECONDS
    ) -> dict[str, Any]:
        """The answer, a JSON object. ``first`` is said before, where this process has not heard it yet.

        Raises _LostError; the process is gone then.
        """
        try:
            if self._process is None:
                self._start()
            if first is not None and first[1] not in self._made:
                self._exchange(first, START_SECONDS)
                self._made.add(first[1])
            answer = self._exchange(message, seconds)
            if message[0] == "make":
                self._made.add(message[1])
            return answer
        except BaseException:
            self._stop()
            raise

    def _start(self) -> None:
        self._held.clear()
        self._made.clear()
        process = subprocess.Popen(  # noqa: S603 - this interpreter
            self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self._folder,
            env=self._environment,
            start_new_session=True,
        )
        self._process, self._end = process, finalize(self, _end, process)

    def _stop(self) -> None:
        if self._end is not None:
            self._end(0.0)
        self._process = self._end = None

    def _exchange(self, message: tuple[Any, ...], seconds: float) -> dict[str, Any]:
        process = self._process
        assert process is not None and process.stdin is not None
        data = pack(message)
        try:
            process.stdin.write(len(data).to_bytes(8, "big") + data)
            process.stdin.flush()
        except BrokenPipeError:
            raise _LostError(self._fate(process)) from None
        try:
            answer = json.loads(self._line(process, seconds))
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise _LostError("its process wrote into the line between it and the gate")
        return answer

    def _line(self, process: subprocess.Popen[bytes], seconds: float) -> bytes:
        assert process.stdout is not None
        deadline = monotonic() + seconds
        while (end := self._held.find(b"\n")) < 0:
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - monotonic()))
            if not ready:
                raise _LostError(f"no answer within {seconds:g} s")
            data = os.read(process.stdout.fileno(), 65_536)
            if not data:
                raise _LostError(self._fate(process))
            self._held += data
            if len(self._held) > MAX_ANSWER_BYTES:
                raise _LostError(f"an answer of more than {MAX_ANSWER_BYTES:,} bytes")
        line = bytes(self._held[:end])
        del self._held[: end + 1]
        return line

    @staticmethod
    def _fate(process: subprocess.Popen[bytes]) -> str:
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(LEAVE_SECONDS)
            if code < 0:
                return f"its process was ended by {signal.Signals(-code).name}"
            return f"its process exited with status {code}"
        return "its process closed the line between it and the gate"


def _end(process: subprocess.Popen[bytes], patience: float = LEAVE_SECONDS) -> None:
    """Lets a process leave, and after so many seconds ends it and what it started."""
    assert process.stdin is not None and process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
