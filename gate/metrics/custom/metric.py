"""Custom metrics: finds them by dotted path and keeps what they raise from ending a run.

`resolve` imports them, and only the child process of `isolated` calls it.
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct, field, to_builtins

from gate.errors import ConfigError
from gate.guest import custom_metric
from gate.metrics.base import MAX_REASON_CHARS, Metric, NoOptions, TrialOutput
from gate.metrics.custom.source import namesake, split
from gate.model import Case, Invocation, Score, Turn
from gate.security.limits import described, shorten

Function = Callable[[list[Invocation], list[Turn]], Score | float]
"""(what happened, what was expected), both turn by turn → a score."""
RunInAgent = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""(dotted path, request) → the meaning of its answer, from where the agent runs."""


class MetricUse(Struct, frozen=True):
    """The use that a criterion makes of a custom metric."""

    name: str = ""
    """The criterion's."""
    threshold: float | None = None
    folder: str = ""
    """The folder that the module is looked for in after everything that is installed: the configuration's."""
    hidden: str = ""
    """The folder that it is not to be taken from: the change's own, where it is the base commit's."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The environment that its process sees."""


def resolve(path: str, use: MetricUse | None = None) -> type[Metric[Any]]:
    """The metric named ``module:attribute``, or ``module.attribute`` as google-adk writes it.

    A subclass of `Metric` is used as it is. A function of two arguments (actual invocations, expected turns), or of
    google-adk's four, becomes a metric with values from 0 to 1. What any of them raises becomes `Score.error`.

    Raises:
        ConfigError: no such module or attribute, or neither a metric nor such a function.
    """
    use = use or MetricUse()
    module_name, attribute = split(path)
    found = _attribute(path, module_name, attribute, use.folder)
    if inspect.isclass(found) and issubclass(found, Metric):
        return type(found.__name__, (_Guarded, found), {"__doc__": found.__doc__, "__module__": found.__module__})
    if not inspect.isfunction(found) and not inspect.isbuiltin(found):
        raise ConfigError(f"metric {path!r} is neither a function nor a subclass of gate.Metric")
    own = {"__doc__": found.__doc__, "path": path, "use": use}
    if _has_adk_signature(path, found):
        return type(found.__name__, (_AdkFunction,), {**own, "function": staticmethod(custom_metric.adapted(found))})
    return type(found.__name__, (_Function,), {**own, "function": staticmethod(found)})


def resolve_in_agent(path: str, use: MetricUse) -> type[Metric[Any]]:
    """The metric of a function that is imported and called where the agent runs; nothing is imported here."""
    split(path)
    return type("InAgent", (InAgentMetric,), {"__doc__": f"The custom metric {path}.", "path": path, "use": use})


def _attribute(path: str, module_name: str, attribute: str, folder: str) -> Any:
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except AttributeError:
        raise ConfigError(f"metric {path!r}: module {module_name!r} has no {attribute!r}") from None
    except ImportError as error:
        raise _not_imported(path, module_name, error, folder) from error
    except Exception as error:
        raise ConfigError(f"metric {path!r} cannot be imported: {described(error)}") from error


def _not_imported(path: str, module_name: str, error: ImportError, folder: str) -> ConfigError:
    """Return the reason why a custom metric cannot be imported: a missing or a wrong module."""
    own = namesake(error.name or "", [Path(folder)] if folder else [])
    if own is not None:
        what = f"metric {path!r} cannot be imported: {described(error)}; Agent Gate's package `gate` hides {own}"
        return ConfigError(what, hint=f"rename {own.name}, or set `run_in: agent`, where it comes first")
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return ConfigError(f"metric {path!r} cannot be imported: {described(error)}")
    if f"{module_name}.".startswith(f"{error.name}."):
        return ConfigError(f"metric {path!r}: there is no module {error.name!r}", hint=_PATH_HINT)
    return ConfigError(f"metric {path!r} needs module {error.name!r}, which is not installed")


_PATH_HINT = "write module:attribute, importable from the project's root"


def _has_adk_signature(path: str, function: Callable[..., Any]) -> bool:
    if inspect.iscoroutinefunction(function):
        hint = "`run_in: agent` runs coroutine functions"
        raise ConfigError(f"metric {path!r} is a coroutine function, but the gate calls only plain ones", hint=hint)
    try:
        return custom_metric.takes_adk(function)
    except TypeError as error:
        raise ConfigError(f"metric {path!r}: {error}") from None


class _Guarded(Metric[Any]):
    """Turns anything that the user's code raises or returns into a score."""

    def score(self, case: Case, performance: TrialOutput) -> Score:
        try:
            score = super().score(case, performance)  # type: ignore[safe-super]  # the user's class comes next
        except Exception as error:  # noqa: BLE001  the user's code may raise anything
            return Score(None, error=f"the metric raised {described(error)}")
        return checked(score)


class _FromUser(Metric[NoOptions]):
    """Base of the metrics that are a user's function."""

    path: ClassVar[str] = ""
    use: ClassVar[MetricUse] = MetricUse()

    def request(self, case: Case, performance: TrialOutput) -> dict[str, Any]:
        """The trial as JSON: what gate/guest/custom_metric.py takes."""
        return {
            "actual": [{**_plain(invocation), "text": invocation.text} for invocation in performance.invocations],
            "expected": [_plain(turn) for turn in case.turns],
            "metric": {"name": self.use.name or self.path, "threshold": self.use.threshold, "path": self.path},
        }


def _plain(noun: Struct) -> dict[str, Any]:
    plain: dict[str, Any] = to_builtins(noun, enc_hook=str)
    return plain


class _Function(_FromUser):
    """A function of two arguments, which are given as gate.model has them."""

    function: ClassVar[Function]

    def score(self, case: Case, performance: TrialOutput) -> Score:
        actual: list[Invocation] = list(performance.invocations)
        expected: Sequence[Turn] = case.turns
        try:
            answer = type(self).function(actual, list(expected))
            return told(custom_metric.meaning(answer), answer)
        except Exception as error:  # noqa: BLE001  the user's code may raise anything
            return Score(None, error=f"the metric raised {described(error)}")


class _AdkFunction(_FromUser):
    """A function with google-adk's signature."""

    function: ClassVar[Callable[[dict[str, Any]], Mapping[str, Any]]]

    def score(self, case: Case, performance: TrialOutput) -> Score:
        try:
            return told(type(self).function(self.request(case, performance)))
        except Exception as error:  # noqa: BLE001  the user's code may raise anything
            return Score(None, error=f"the metric raised {described(error)}")


class InAgentMetric(_FromUser):
    """A function in another process, which is handed in as ``run``."""

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return Score(None, error="this custom metric runs in the agent's interpreter, and no agent runs here")

    async def score_in_agent(self, case: Case, performance: TrialOutput, run: RunInAgent | None) -> Score:
        """The score of one trial; any failure in the agent's interpreter becomes the score's error."""
        if run is None:
            return self.score(case, performance)
        return told(await run(self.path, self.request(case, performance)))


def told(meaning: Mapping[str, Any], given: Any = None) -> Score:
    """Return the answer, as gate/guest/custom_metric.py has it, as a score; details only if a `Score` was returned."""
    details = given.details if isinstance(given, Score) else {}
    error = meaning.get("error")
    return Score(
        meaning.get("value"),
        shorten(str(meaning.get("reason") or ""), MAX_REASON_CHARS),
        None if error is None else shorten(str(error), MAX_REASON_CHARS),
        tuple(meaning.get("per_turn") or (given.per_turn if isinstance(given, Score) else ())),
        details,
    )


def checked(answer: Any) -> Score:
    """Return the result of the user's code as a score; anything but a finite number or a `Score` was not measured."""
    if isinstance(answer, Score):
        if answer.value is None or math.isfinite(answer.value):
            return answer
        return Score(None, error=f"the metric returned {answer.value}")
    if isinstance(answer, int | float) and math.isfinite(answer):
        return Score(float(answer))
    return Score(None, error=f"the metric returned {shorten(repr(answer), 80)}, not a number")


def is_custom(value: Any) -> bool:
    """True if this is the class of a custom metric, as `resolve_isolated` makes it."""
    return inspect.isclass(value) and issubclass(value, Metric) and bool(getattr(value, "path", ""))
