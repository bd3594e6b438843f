"""Metrics that users write: finds them by dotted path and keeps what they raise from ending a run.

`resolve` imports them, and only the child process of `apart` calls it.
"""

from __future__ import annotations

import importlib
import inspect
import math
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct, field, to_builtins

from gate.errors import ConfigError
from gate.guest import checks
from gate.metrics.base import MAX_REASON_CHARS, Metric, NoOptions, TrialOutput
from gate.model import Case, Invocation, Score, Turn
from gate.security.limits import shorten

Check = Callable[[list[Invocation], list[Turn]], Score | float]
"""(what happened, what was expected), both turn by turn → a score."""
RunCheck = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""(dotted path, request) → the meaning of its answer, from where the agent runs."""


class Use(Struct, frozen=True):
    """How a criterion uses a check."""

    name: str = ""
    """The criterion's."""
    threshold: float | None = None
    folder: str = ""
    """Where the check's module is looked for after everything that is installed: the configuration's folder."""
    hidden: str = ""
    """The folder that it is not to be taken from: the change's own, where it is the base commit's."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What its process sees of the environment."""


def resolve(path: str, use: Use | None = None) -> type[Metric[Any]]:
    """The metric named ``module:attribute``, or ``module.attribute`` as google-adk writes it.

    A subclass of `Metric` is used as it is. A function of two arguments (actual invocations, expected turns), or of
    google-adk's four, becomes a metric with values from 0 to 1. What any of them raises becomes `Score.error`.

    Raises:
        ConfigError: no such module or attribute, or neither a metric nor such a function.
    """
    use = use or Use()
    module_name, attribute = _split(path)
    found = _attribute(path, module_name, attribute)
    if inspect.isclass(found) and issubclass(found, Metric):
        return type(found.__name__, (_Guarded, found), {"__doc__": found.__doc__, "__module__": found.__module__})
    if not inspect.isfunction(found) and not inspect.isbuiltin(found):
        raise ConfigError(f"metric {path!r} is neither a function nor a subclass of gate.metrics.base.Metric")
    own = {"__doc__": found.__doc__, "path": path, "use": use}
    if _has_adk_signature(path, found):
        return type(found.__name__, (_AdkFunction,), {**own, "check": staticmethod(checks.adapted(found))})
    return type(found.__name__, (_Function,), {**own, "check": staticmethod(found)})


def resolve_elsewhere(path: str, use: Use) -> type[Metric[Any]]:
    """The metric of a function that is imported and called where the agent runs; nothing is imported here."""
    _split(path)
    return type("Elsewhere", (CheckedElsewhere,), {"__doc__": f"The check {path}.", "path": path, "use": use})


def searched(folder: str, hidden: str = "") -> list[str]:
    """Where a check is looked for: the user's folder last, so that nothing there stands in for a module of ours.

    ``hidden`` is left out, even where Python itself looks there, as it does in the folder that it is started in.
    """
    installed = [place for place in sys.path if place and not (hidden and Path(place).resolve() == Path(hidden))]
    return [*installed, folder] if folder and folder not in installed else installed


def source_of(path: str, places: Sequence[str]) -> Path | None:
    """The file of a check's module, found in these folders without importing anything; None where there is none."""
    importlib.invalidate_caches()
    found = None
    for name in _split(path)[0].split("."):
        found = PathFinder.find_spec(name, places)
        if found is None:
            return None
        places = list(found.submodule_search_locations or ())
    return Path(found.origin) if found is not None and found.has_location and found.origin else None


def _split(path: str) -> tuple[str, str]:
    module_name, _, attribute = path.partition(":") if ":" in path else path.rpartition(".")
    if not module_name or not attribute:
        raise ConfigError(f"{path!r} names no metric", hint="write module:attribute")
    return module_name, attribute


def _attribute(path: str, module_name: str, attribute: str) -> Any:
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise ConfigError(f"metric {path!r}: there is no module {error.name!r}", hint=_PATH_HINT) from None
        raise ConfigError(f"metric {path!r} needs module {error.name!r}, which is not installed") from None
    except AttributeError:
        raise ConfigError(f"metric {path!r}: module {module_name!r} has no {attribute!r}") from None
    except Exception as error:
        problem = shorten(f"{type(error).__name__}: {error}", 300)
        raise ConfigError(f"metric {path!r} cannot be imported: {problem}") from error


_PATH_HINT = "write module:attribute, importable from the project's root"


def _has_adk_signature(path: str, function: Callable[..., Any]) -> bool:
    if inspect.iscoroutinefunction(function):
        hint = "`run_in: agent` runs coroutine functions"
        raise ConfigError(f"metric {path!r} is a coroutine function; checks are plain ones here", hint=hint)
    try:
        return checks.takes_adk(function)
    except TypeError as error:
        raise ConfigError(f"metric {path!r}: {error}") from None


class _Guarded(Metric[Any]):
    """Turns whatever the user's code raises or returns into a score."""

    def score(self, case: Case, performance: TrialOutput) -> Score:
        try:
            score = super().score(case, performance)  # type: ignore[safe-super]  # the user's class comes next
        except Exception as error:  # noqa: BLE001  the user's code may raise anything
            return Score(None, error=f"the metric raised {shorten(f'{type(error).__name__}: {error}', 300)}")
        return checked(score)


class _FromUser(Metric[NoOptions]):
    """Base of the metrics that are a user's function."""

    path: ClassVar[str] = ""
    use: ClassVar[Use] = Use()

    def request(self, case: Case, performance: TrialOutput) -> dict[str, Any]:
        """The trial as JSON: what gate/guest/checks.py takes."""
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

    check: ClassVar[Check]

    def score(self, case: Case, performance: TrialOutput) -> Score:
        actual: list[Invocation] = list(performance.invocations)
        expected: Sequence[Turn] = case.turns
        try:
            answer = type(self).check(actual, list(expected))
            return told(checks.meaning(answer), answer)
        except Exception as error:  # noqa: BLE001  the user's code may raise anything
            return Score(None, error=f"the metric raised {shorten(f'{type(error).__name__}: {error}', 300)}")


class _AdkFunction(_FromUser):
    """A function with google-adk's signature."""

    check: ClassVar[Callable[[dict[str, Any]], Mapping[str, Any]]]

    def score(self, case: Case, performance: TrialOutput) -> Score:
        try:
            return told(type(self).check(self.request(case, performance)))
        except Exception as error:  # noqa: BLE001  the user's code may raise anything
            return Score(None, error=f"the metric raised {shorten(f'{type(error).__name__}: {error}', 300)}")


class CheckedElsewhere(_FromUser):
    """A function in another process, which is handed in as ``run``."""

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return Score(None, error="this check runs beside the agent, and no agent runs here")

    async def check_score(self, case: Case, performance: TrialOutput, run: RunCheck | None) -> Score:
        """The score of one trial; whatever happens there is an error of the score."""
        if run is None:
            return self.score(case, performance)
        return told(await run(self.path, self.request(case, performance)))


def told(meaning: Mapping[str, Any], given: Any = None) -> Score:
    """What gate/guest/checks.py made of an answer as a score; details only where a `Score` was returned."""
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
    """What the user's code returned as a score; anything but a finite number or a `Score` was not measured."""
    if isinstance(answer, Score):
        if answer.value is None or math.isfinite(answer.value):
            return answer
        return Score(None, error=f"the metric returned {answer.value}")
    if isinstance(answer, int | float) and math.isfinite(answer):
        return Score(float(answer))
    return Score(None, error=f"the metric returned {shorten(repr(answer), 80)}, not a number")
