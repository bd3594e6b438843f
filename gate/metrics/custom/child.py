"""The child process of `isolated`: imports custom metrics and computes their scores.

The parent packs the requests; answers are JSON, so the parent receives data only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

from msgspec.structs import asdict
from pydantic import ValidationError

from gate.errors import ConfigError, first_problem
from gate.metrics.base import Composite, Context, Judged, Metric, TrialOutput
from gate.metrics.custom.metric import MetricUse, checked, resolve
from gate.model import Case, Score
from gate.security.limits import described
from gate.system.child import leave_after_request
from gate.system.serialize import unpack
from gate.system.wire import DONE, Frame, ParentPipes

Answer = Mapping[str, Any]


class MetricServer:
    """Answers requests one by one."""

    def __init__(self) -> None:
        self._metrics: dict[int, Metric[Any]] = {}
        self._kinds: Mapping[str, Callable[..., Answer]] = {
            "describe": self.describe,
            "make": self.make,
            "score": self.score,
            "combine": self.combine,
        }

    def answer(self, kind: str, *given: Any) -> Answer:
        try:
            return self._kinds[kind](*given)
        except ConfigError as error:
            return {"refused": [error.what, error.hint]}

    def describe(self, path: str, use: MetricUse) -> Answer:
        """Return the class attributes that the criterion needs."""
        metric = _resolve(path, use)
        names = ("version", "default_threshold", "pass_threshold", "hard", "over_trials", "reads_tools", "absence")
        return {
            **{name: getattr(metric, name) for name in names},
            "doc": metric.__doc__ or "",
            "scale": metric.scale.value,
            "direction": metric.direction.value,
            "composite": issubclass(metric, Composite),
            "fields": list(metric.options_type.model_fields),
        }

    def make(self, number: int, path: str, use: MetricUse, options: Mapping[str, Any], context: Context) -> Answer:
        """Build the metric that later requests refer to by this number."""
        metric_type = _resolve(path, use)
        try:
            made = metric_type(metric_type.options_type.model_validate(dict(options)), context)
        except ValidationError as error:
            problem = first_problem(error, metric_type.options_type)
            kind: str = problem.kind
            if kind == "unknown":
                kind = "extra_forbidden"
            return {"invalid": {"type": kind, "loc": [str(at) for at in problem.path], "msg": problem.message}}
        self._metrics[number] = made
        return {"missing": made.missing, "caveat": made.caveat}

    def score(self, number: int, case: Case, performance: TrialOutput) -> Answer:
        return _measured(self._metrics[number].score, case, performance)

    def combine(self, number: int, case: Case, scores: Mapping[str, Score]) -> Answer:
        metric = self._metrics[number]
        assert isinstance(metric, Composite), "asked only of what described itself as one"
        return _measured(metric.combine, case, scores)


def _measured(measure: Callable[..., object], *given: object) -> Answer:
    """Return what the user's code measures; whatever it raises or returns becomes a score."""
    try:
        return asdict(checked(measure(*given)))
    except Exception as error:  # noqa: BLE001  the user's code may raise anything
        return asdict(Score(None, error=f"the metric raised {described(error)}"))


def _resolve(path: str, use: MetricUse) -> type[Metric[Any]]:
    metric = resolve(path, use)
    if issubclass(metric, Judged):
        what = f"metric {path!r} asks the judge of the run, which a custom metric cannot"
        raise ConfigError(what, hint="configure a rubric")
    return metric


def encode(answer: Answer) -> bytes:
    """Return an answer as JSON; one that cannot be encoded becomes a score with an error."""
    try:
        return json.dumps(answer, default=repr, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return json.dumps({"value": None, "error": f"the metric returned no score: {described(error)}"}).encode()


def main() -> None:
    """Serve requests until the pipe closes. Output of users' code goes to standard error."""
    pipes, requests = ParentPipes(), SimpleQueue[Frame | None]()
    pipes.listen(requests.put, lambda: leave_after_request(requests))
    desk = MetricServer()
    while (request := requests.get()) is not None:
        pipes.send(DONE, request.number, encode(desk.answer(*unpack(request.data))))


if __name__ == "__main__":
    main()
