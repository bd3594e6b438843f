"""Custom metrics in a child process of this interpreter: they see neither the gate's objects nor its environment."""

from __future__ import annotations

import hashlib
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
from gate.metrics.custom.metric import FLAGS, MetricUse, read_score, resolve_in_agent
from gate.metrics.custom.source import Folders, searched, source_of
from gate.model import Case, Direction, Scale, Score
from gate.security.limits import MAX_ANSWER_BYTES, shorten
from gate.system.child import Descendants, Dialogue, LostError, module_command
from gate.system.serialize import pack
from gate.system.wire import REQUEST, Frame, Frames, frame

START_SECONDS = 120.0
"""Seconds to start the process, import a custom metric, and build it."""
SECONDS = 60.0
"""Seconds to score one trial."""
_MODULE = "gate.metrics.custom.child"


def resolve_custom(
    path: str, use: MetricUse, options: Mapping[str, Any], folders: Folders, where: str
) -> tuple[type[Metric[Any]], dict[str, Any], dict[str, Any]]:
    """Return a custom metric's class, its own options, and everything else that decides what it measures.

    Args:
        path: ``module:attribute``, or ``module.attribute``.
        use: how the criterion uses it; the folders are filled in here.
        options: the criterion's options, including ``run_in``.
        folders: where its module may be.
        where: the criterion's position, for errors.

    Raises:
        ConfigError: an unknown ``run_in``, or a path that names no metric.
    """
    run_in = options.get("run_in", "gate")
    if run_in not in ("gate", "agent"):
        raise ConfigError(f"run_in: expected `gate` or `agent`, found {run_in!r}", where=where)
    own = {key: value for key, value in options.items() if key != "run_in"}
    folder, source = folders.find(path, in_agent=run_in == "agent")
    use = replace(use, folder=folder, hidden=folders.hidden_from(folder))
    code = {}
    if source is not None:
        code["code"] = hashlib.sha256(source).hexdigest()
    if run_in == "agent":
        return resolve_in_agent(path, use), own, {"run_in": "agent", **code}
    return resolve_isolated(path, use), own, code


def resolve_isolated(path: str, use: MetricUse) -> type[Metric[Any]]:
    """Return the metric that ``module:attribute`` names; a child process imports and computes it.

    Raises:
        ConfigError: there is no such module or attribute, or it is neither a metric nor a function of 2 or 4 arguments.
    """
    told = _child(path, use).prepare(f"metric {path!r} cannot be imported", "describe", path, _stripped(use))
    try:
        fields: dict[str, Any] = {str(name): (Any, None) for name in told["fields"]}
        own = {
            "__doc__": str(told["doc"]),
            "version": int(told["version"]),
            "scale": Scale(told["scale"]),
            "direction": Direction(told["direction"]),
            "default_threshold": _number(told["default_threshold"]),
            "pass_threshold": _number(told["pass_threshold"]),
            "options_type": create_model("Options", __base__=_AnyOptions, **fields),
            **{name: told[name] is True for name in FLAGS},
        }
        base: type[Metric[Any]] = _IsolatedMetric
        if told["composite"]:
            base = _IsolatedComposite
    except (KeyError, TypeError, ValueError):
        raise ConfigError(f"metric {path!r} does not describe itself as a metric") from None
    return type("Isolated", (base,), {**own, "__module__": __name__, "path": path, "use": use})


def _stripped(use: MetricUse) -> MetricUse:
    return replace(use, environment={})


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
        self._build = pack((self.path, _stripped(self.use), self._raw, self.context))
        self._process = _child(self.path, self.use)
        told = self._process.prepare(f"metric {self.path!r}", "build", self._build)
        if "invalid" in told:
            raise _invalid(told["invalid"])
        self._missing, self._caveat = str(told.get("missing", "")), str(told.get("caveat", ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.path, self.use, self._raw, self.context)

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
            if not self._process.is_running:  # the import has time of its own
                self._process.ask("build", self._build, seconds=START_SECONDS)
            return read_score(self._process.ask(what, self._build, *given))
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
        self._requests = count(1)

    @property
    def is_running(self) -> bool:
        return self._dialogue is not None

    def prepare(self, what: str, *message: Any) -> dict[str, Any]:
        """Return the answer to a request that comes before any score.

        Raises ConfigError, which begins with ``what`` if the process ends.
        """
        try:
            told = self.ask(*message, seconds=START_SECONDS)
        except LostError as error:
            raise ConfigError(f"{what}: its process {error}") from None
        if "refused" in told:
            raise ConfigError(str(told["refused"][0]), hint=str(told["refused"][1]))
        return told

    def ask(self, *message: Any, seconds: float = SECONDS) -> dict[str, Any]:
        """Return the answer, a JSON object. Raises LostError if the process ends or takes longer than ``seconds``."""
        try:
            self._dialogue = self._dialogue or self._started()
            number = next(self._requests)
            found = self._dialogue.ask(frame(REQUEST, number, pack(message)), seconds)
            return _read(found, number)
        except BaseException:
            self._stop()
            raise

    def _started(self) -> Dialogue[Frame]:
        environment = self._descendants.marked(self._environment)
        argv, environment = module_command(_MODULE, environment=environment, path=self._places)
        self._descendants.watch()
        reading = Frames(MAX_ANSWER_BYTES)
        return Dialogue(argv, reading, environment=environment, cwd=self._folder, stderr=None)

    def _stop(self) -> None:
        if self._dialogue is not None:
            self._dialogue.end()
        self._dialogue = None
        self._descendants.end()


def _read(answer: Frame, number: int) -> dict[str, Any]:
    """Return the JSON object in an answer to this request. Raises LostError if the user's code wrote into the pipe."""
    try:
        if answer.number == number:
            read = json.loads(answer.data)
            if isinstance(read, dict):
                return read
    except (ValueError, RecursionError):
        pass
    raise LostError("wrote an invalid answer into its pipe to the gate")
