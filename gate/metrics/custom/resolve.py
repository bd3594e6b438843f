"""A custom metric as a criterion states it → its class, imported from the right folder by the right interpreter."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from gate.errors import ConfigError
from gate.metrics.base import Metric
from gate.metrics.custom.isolated import resolve_isolated
from gate.metrics.custom.metric import MetricUse, resolve_in_agent
from gate.metrics.custom.source import Folders


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
