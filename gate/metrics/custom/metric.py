"""Custom metrics: imports them by dotted path, and keeps their exceptions from ending a run.

Only the child process of `isolated` calls `resolve`, which imports them.
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct, field, to_builtins
from msgspec.structs import asdict, replace

from gate.errors import ConfigError
from gate.formats.shapes import as_mapping
from gate.guest import custom_metric
from gate.metrics.base import MAX_REASON_CHARS, Metric, NoOptions, TrialOutput
from gate.metrics.custom.source import namesake, split
from gate.model import Case, Invocation, Score, Turn
from gate.security.limits import described, shorten

Function = Callable[[list[Invocation], list[Turn]], Score | float]
"""(actual invocations, expected turns) → a score."""
RunInAgent = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""(dotted path, request) → the meaning of its answer; computed where the agent runs."""


FLAGS = ("hard", "over_trials", "reads_tools", "absence")
"""The attributes of a metric class that are true or false, as far as a custom metric may set them."""


class MetricUse(Struct, frozen=True):
    """A criterion's use of a custom metric."""

    name: str = ""
    """The criterion's name."""
    threshold: float | None = None
    folder: str = ""
    """The configuration's folder, searched after everything that is installed."""
    hidden: str = ""
    """A folder not to import from: the change's own, if the metric is the base commit's."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The environment of its process."""


def resolve(path: str, use: MetricUse | None = None) -> type[Metric[Any]]:
    """Return the metric named ``module:attribute``, or ``module.attribute`` as google-adk writes it.

    A subclass of `Metric` is used unchanged. A function of two arguments (actual invocations, expected turns), or of
    google-adk's four, becomes a metric with values from 0 to 1.

    Raises:
        ConfigError: there is no such module or attribute, or it is neither a metric nor such a function.
    """
    use = use or MetricUse()
    module_name, attribute = split(path)
    found = _attribute(path, module_name, attribute, use.folder)
    if inspect.isclass(found) and issubclass(found, Metric):
        return found
    if not inspect.isfunction(found) and not inspect.isbuiltin(found):
        raise ConfigError(f"metric {path!r} is neither a function nor a subclass of gate.Metric")
    own = {"__doc__": found.__doc__, "path": path, "use": use}
    if _has_adk_signature(path, found):
        return type(found.__name__, (_AdkFunction,), {**own, "function": staticmethod(custom_metric.adapted(found))})
    return type(found.__name__, (_Function,), {**own, "function": staticmethod(found)})


def resolve_in_agent(path: str, use: MetricUse) -> type[Metric[Any]]:
    """Return a metric whose function is imported and called where the agent runs; nothing is imported here."""
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
    """Return the error for a custom metric that cannot be imported: its module is missing, or another one was found."""
    folders = []
    if folder:
        folders.append(Path(folder))
    own = namesake(error.name or "", folders)
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


class _FromUser(Metric[NoOptions]):
    """Base of metrics made of a user's function."""

    path: ClassVar[str] = ""
    use: ClassVar[MetricUse] = MetricUse()

    def request(self, case: Case, performance: TrialOutput) -> dict[str, Any]:
        """Return the trial as JSON, the input of gate/guest/custom_metric.py."""
        return {
            "actual": [{**_plain(invocation), "text": invocation.text} for invocation in performance.invocations],
            "expected": [_plain(turn) for turn in case.turns],
            "metric": {"name": self.use.name or self.path, "threshold": self.use.threshold, "path": self.path},
        }


def _plain(value: Any) -> Any:
    """Return a value of the model as JSON values, with every field."""
    if isinstance(value, Struct):
        return {name: _plain(held) for name, held in asdict(value).items()}
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return to_builtins(value, enc_hook=str)


class _Function(_FromUser):
    """A function of two arguments, which are the gate's own objects."""

    function: ClassVar[Function]

    def score(self, case: Case, performance: TrialOutput) -> Score:
        answer = type(self).function(list(performance.invocations), list(case.turns))
        score = read_score(custom_metric.meaning(answer))
        if isinstance(answer, Score):
            return replace(score, per_turn=score.per_turn or answer.per_turn, details=answer.details)
        return score


class _AdkFunction(_FromUser):
    """A function with google-adk's signature."""

    function: ClassVar[Callable[[dict[str, Any]], Mapping[str, Any]]]

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return read_score(type(self).function(self.request(case, performance)))


class InAgentMetric(_FromUser):
    """A function in another process, called through ``run``."""

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return Score(None, error="this custom metric runs in the agent's interpreter, and no agent runs here")

    async def score_in_agent(self, case: Case, performance: TrialOutput, run: RunInAgent | None) -> Score:
        """Return the score of one trial; any failure in the agent's interpreter becomes its error."""
        if run is None:
            return self.score(case, performance)
        return read_score(await run(self.path, self.request(case, performance)))


def read_score(answer: Any) -> Score:
    """Return the score that a custom metric's process sent; not measured if it sent something else."""
    sent = as_mapping(answer)
    value, per_turn = sent.get("value"), sent.get("per_turn") or []
    if "value" not in sent or not _fits(value) or not isinstance(per_turn, list) or not all(map(_fits, per_turn)):
        return Score(None, error="the custom metric's process sent what is no score")
    error = sent.get("error")
    if error is not None:
        error = shorten(str(error), MAX_REASON_CHARS)
    reason = shorten(str(sent.get("reason") or ""), MAX_REASON_CHARS)
    return Score(value, reason, error, tuple(per_turn), as_mapping(sent.get("details")))


def _fits(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and math.isfinite(value))


def checked(answer: Any) -> Score:
    """Return the result of the user's code as a score; not measured unless it is a finite number or a `Score`."""
    if isinstance(answer, Score):
        if answer.value is None or math.isfinite(answer.value):
            return answer
        return Score(None, error=f"the metric returned {answer.value}")
    if isinstance(answer, int | float) and math.isfinite(answer):
        return Score(float(answer))
    return Score(None, error=f"the metric returned {shorten(repr(answer), 80)}, not a number")


def is_custom(value: Any) -> bool:
    """True for the class of a custom metric, as `resolve_isolated` makes it."""
    return inspect.isclass(value) and issubclass(value, Metric) and bool(getattr(value, "path", ""))
