"""Custom metrics in a child process of this interpreter: they see neither the gate's objects nor its environment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, ClassVar
from weakref import finalize

from msgspec.structs import replace
from pydantic import ConfigDict, ValidationError, create_model
from pydantic_core import InitErrorDetails, PydanticCustomError

from gate.errors import ConfigError
from gate.metrics.base import Composite, Context, Metric, Options, TrialOutput
from gate.metrics.custom.metric import MetricUse, read_score
from gate.metrics.custom.source import searched, source_of
from gate.model import Case, Direction, Scale, Score
from gate.security.limits import MAX_ANSWER_BYTES, shorten
from gate.system.child import Descendants, Dialogue, LostError, module_command
from gate.system.serialize import pack
from gate.system.wire import REQUEST, Frame, Frames, frame

START_SECONDS = 120.0
"""Seconds to import a custom metric."""
SECONDS = 60.0
"""Seconds to score one trial."""
_MODULE = "gate.metrics.custom.child"
_NUMBERS = count()


def resolve_isolated(path: str, use: MetricUse) -> type[Metric[Any]]:
    """Return the metric that ``module:attribute`` names; a child process imports and computes it.

    Raises:
        ConfigError: there is no such module or attribute, or it is neither a metric nor a function of 2 or 4 arguments.
    """
    child = _child(path, use)
    try:
        told = child.ask(_describe(path, use), seconds=START_SECONDS)
    except LostError as error:
        raise ConfigError(f"metric {path!r} cannot be imported: its process {error}") from None
    if "refused" in told:
        what, hint = told["refused"]
        raise ConfigError(str(what), hint=str(hint))
    try:
        own = _attributes(told)
        base: type[Metric[Any]] = _IsolatedMetric
        if told["composite"]:
            base = _IsolatedComposite
    except (KeyError, TypeError, ValueError):
        raise ConfigError(f"metric {path!r} does not describe itself as a metric") from None
    return type("Isolated", (base,), {**own, "__module__": __name__, "path": path, "use": use})


def _describe(path: str, use: MetricUse) -> tuple[Any, ...]:
    return ("describe", path, _stripped(use))


def _stripped(use: MetricUse) -> MetricUse:
    return replace(use, environment={})


def _attributes(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the class attributes of a metric from the child's description of it."""
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
    if value is None:
        return None
    return float(value)


class _AnyOptions(Options):
    """Options as the user wrote them; the child validates them."""

    model_config = ConfigDict(extra="allow")


class _IsolatedMetric(Metric[Any]):
    """A metric that a child process computes."""

    path: ClassVar[str] = ""
    use: ClassVar[MetricUse] = MetricUse()

    def __init__(self, options: Any, context: Context | None = None) -> None:
        super().__init__(options, context)
        self._raw = options.model_dump(exclude_unset=True)
        self._number = next(_NUMBERS)
        self._process = _child(self.path, self.use)
        try:
            told = self._process.ask(self._made(), seconds=START_SECONDS)
        except LostError as error:
            raise ConfigError(f"metric {self.path!r}: its process {error}") from None
        if "refused" in told:
            raise ConfigError(str(told["refused"][0]), hint=str(told["refused"][1]))
        if "invalid" in told:
            raise _invalid(told["invalid"])
        self._missing, self._caveat = str(told.get("missing", "")), str(told.get("caveat", ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.path, self.use, self._raw, self.context)

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
            return read_score(self._process.ask((what, self._number, *given), first=self._made()))
        except LostError as error:
            return Score(None, error=f"the custom metric failed: its process {error}")


class _IsolatedComposite(_IsolatedMetric, Composite[Any]):
    """A metric that a child process computes from the scores of other criteria."""

    def combine(self, case: Case, scores: Mapping[str, Score]) -> Score:
        return self._ask("combine", replace(case, content=None), dict(scores))


def _rebuilt(path: str, use: MetricUse, raw: Mapping[str, Any], context: Context) -> Metric[Any]:
    metric_type = resolve_isolated(path, use)
    return metric_type(metric_type.options_type.model_validate(dict(raw)), context)


def _invalid(told: Any) -> ValidationError:
    """Return the child's validation problem in the form of a local validation error."""
    kind, place, message = (told[key] for key in ("type", "loc", "msg"))
    found: str | PydanticCustomError = "extra_forbidden"
    if kind != "extra_forbidden":
        found = PydanticCustomError("value_error", "{said}", {"said": shorten(str(message), 300)})
    details = InitErrorDetails(type=found, loc=tuple(map(str, place)), input=None)
    return ValidationError.from_exception_data("Options", [details])


# --- the process ----------------------------------------------------------------------------------


def _child(path: str, use: MetricUse) -> _Child:
    """Return the process for a custom metric, shared within its module; an edited module gets a new one."""
    places = tuple(searched(use.folder, use.hidden))
    found, content = source_of(path, places), b""
    if found is not None:
        content = found.read_bytes()
    return _child_for(content, places, use.folder, tuple(sorted(use.environment.items())))


@lru_cache(maxsize=8)
def _child_for(
    content: bytes,  # noqa: ARG001 - part of the cache key: an edited metric needs a new process
    places: tuple[str, ...],
    folder: str,
    environment: tuple[tuple[str, str], ...],
) -> _Child:
    return _Child(places, folder, dict(environment))


class _Child:
    """A process that is started on the first request, and again after it has ended."""

    def __init__(self, places: Sequence[str], folder: str, environment: Mapping[str, str]) -> None:
        self._places, self._folder, self._environment = places, folder or None, environment
        self._dialogue: Dialogue[Frame] | None = None
        self._descendants = Descendants()
        finalize(self, self._descendants.end)
        self._made: set[int] = set()
        self._requests = count(1)

    def ask(
        self, message: tuple[Any, ...], *, first: tuple[Any, ...] | None = None, seconds: float = SECONDS
    ) -> dict[str, Any]:
        """Return the answer, a JSON object; send ``first`` before the request if this process has not had it yet.

        Raises LostError if the process ends.
        """
        try:
            dialogue = self._dialogue or self._start()
            if first is not None and first[1] not in self._made:
                self._exchange(dialogue, first, START_SECONDS)
                self._made.add(first[1])
            answer = self._exchange(dialogue, message, seconds)
            if message[0] == "make":
                self._made.add(message[1])
            return answer
        except BaseException:
            self._stop()
            raise

    def _start(self) -> Dialogue[Frame]:
        self._made.clear()
        environment = self._descendants.marked(self._environment)
        argv, environment = module_command(_MODULE, environment=environment, path=self._places)
        self._descendants.watch()
        reading = Frames(MAX_ANSWER_BYTES)
        self._dialogue = Dialogue(argv, reading, environment=environment, cwd=self._folder, stderr=None)
        return self._dialogue

    def _stop(self) -> None:
        if self._dialogue is not None:
            self._dialogue.end()
        self._dialogue = None
        self._descendants.end()

    def _exchange(self, dialogue: Dialogue[Frame], message: tuple[Any, ...], seconds: float) -> dict[str, Any]:
        number = next(self._requests)
        found = dialogue.ask(frame(REQUEST, number, pack(message)), seconds)
        answer = None
        try:
            if found.number == number:
                answer = json.loads(found.data)
        except (ValueError, RecursionError):
            pass
        if not isinstance(answer, dict):
            raise LostError("wrote an invalid answer into its pipe to the gate")
        return answer
