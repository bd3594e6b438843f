"""The child process of `isolated`: imports custom metrics and computes their scores.

The parent packs the requests; answers are JSON, so the parent receives data only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from queue import SimpleQueue
from typing import Any

from msgspec.structs import asdict
from pydantic import ValidationError

from gate.errors import ConfigError, first_problem
from gate.metrics.base import Composite, Judged, Metric
from gate.metrics.custom.metric import FLAGS, MetricUse, checked, resolve
from gate.model import Score
from gate.security.limits import described
from gate.system.child import leave_after_request
from gate.system.serialize import unpack
from gate.system.wire import DONE, Frame, ParentPipes

Answer = Mapping[str, Any]


def answer(kind: str, *given: Any) -> Answer:
    """Return the answer to one request: ``describe`` a metric, ``build`` it, or ``score`` or ``combine`` with it."""
    try:
        if kind == "describe":
            return describe(_resolve(*given))
        build, *trial = given
        metric = _built(build)
    except ConfigError as error:
        return {"refused": [error.what, error.hint]}
    if not isinstance(metric, Metric):
        return metric
    if kind == "build":
        return {"missing": metric.missing, "caveat": metric.caveat}
    return _measured(getattr(metric, kind), *trial)


def describe(metric: type[Metric[Any]]) -> Answer:
    """Return the class attributes that the criterion needs."""
    return {
        **{name: getattr(metric, name) for name in ("version", "default_threshold", "pass_threshold", *FLAGS)},
        "doc": metric.__doc__ or "",
        "scale": metric.scale.value,
        "direction": metric.direction.value,
        "composite": issubclass(metric, Composite),
        "fields": list(metric.options_type.model_fields),
    }


@cache
def _built(build: bytes) -> Metric[Any] | Answer:
    """Return the metric of a packed path, use, options and context, the same one for every trial; or the account of an
    invalid option."""
    path, use, options, context = unpack(build)
    metric_type = _resolve(path, use)
    try:
        return metric_type(metric_type.options_type.model_validate(options), context)
    except ValidationError as error:
        problem = first_problem(error, metric_type.options_type)
        kind: str = problem.kind
        if kind == "unknown":
            kind = "extra_forbidden"
        return {"invalid": {"type": kind, "loc": [str(at) for at in problem.path], "msg": problem.message}}


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


def encode(told: Answer) -> bytes:
    """Return an answer as JSON; one that cannot be encoded becomes a score with an error."""
    try:
        return json.dumps(told, default=repr, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return json.dumps({"value": None, "error": f"the metric returned no score: {described(error)}"}).encode()


def main() -> None:
    """Serve requests until the pipe closes. Output of users' code goes to standard error."""
    pipes, requests = ParentPipes(), SimpleQueue[Frame | None]()
    pipes.listen(requests.put, lambda: leave_after_request(requests))
    while (request := requests.get()) is not None:
        pipes.send(DONE, request.number, encode(answer(*unpack(request.data))))


if __name__ == "__main__":
    main()
