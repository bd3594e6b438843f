"""The only parser of criteria: what a user wrote under a name → a parsed value to build and compare."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from math import isfinite
from typing import Annotated, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from gate.config.adk_criteria import snake_keys
from gate.errors import ConfigError, validated
from gate.metrics import METRICS, load_metric
from gate.metrics.base import Metric, Options
from gate.model import Direction
from gate.model.strict import StrictModel
from gate.model.strictness import DOWN, OFF, ON, UP, steps
from gate.security.limits import shorten

QUANTILE = re.compile(r"p(?!0+(?:\.0+)?$)(\d{1,2}(?:\.\d+)?)$")
"""The name of a limit on a quantile, such as ``p95``."""


class Common(StrictModel):
    """The options of every criterion, for any metric."""

    threshold: Annotated[float | None, UP] = None
    """The least acceptable mean over the suite; for metrics where lower is better, `max`. Default: the metric's."""
    max: Annotated[float | None, DOWN] = None
    """If lower is better: the most that a single trial may reach."""
    margin: Annotated[float | None, DOWN] = None
    """The loss that still counts as unchanged. Default: a tenth of the scale; 20 % of cost and counts, 30 % of time."""
    blocking: Annotated[bool, ON] = True
    """``false``: shown, never fails the gate."""
    regression: Annotated[Literal["block", "warn"] | None, steps("warn", "block")] = None
    """The effect of a proven loss against the baseline. Default: the metric's."""
    ratchet: Annotated[bool, OFF] = True
    """``false``: the threshold blocks even if the baseline missed it, too."""
    metric: str | None = None
    """The metric, if the criterion has a name of its own: a registered name, or `module:attribute`."""


class CriterionSpec(Struct, frozen=True, dict=True):
    """A criterion as written, but parsed: its text is never read again."""

    name: str
    """The key under ``criteria``."""
    metric: str
    """A registered name, or the path of the user's own metric."""
    common: Common
    """The options of every criterion; with the metric's defaults unless the metric is the user's own."""
    quantiles: tuple[tuple[float, float], ...] = ()
    """Limits by quantile, ascending: ((0.95, 3.0),)."""
    options: Mapping[str, Any] = {}
    """The metric's own options as written, with names in one spelling."""
    where: str = "criteria"
    """File and line."""

    @property
    def is_custom(self) -> bool:
        """True if the metric is the user's own code, which is not loaded to read the criterion."""
        return is_custom(self.metric)

    @cached_property
    def metric_type(self) -> type[Metric[Any]] | None:
        """The registered metric; None for a custom metric."""
        return None if self.is_custom else load_metric(self.metric)

    def under(self, metric_type: type[Metric[Any]]) -> CriterionSpec:
        """Return the entry with the metric's defaults for omitted options.

        If lower is better, ``threshold`` is the most that a trial may reach: another name for ``max``.

        Raises:
            ConfigError: both ``threshold`` and ``max`` are given.
        """
        common = self.common
        updates: dict[str, Any] = {}
        if metric_type.direction is Direction.LOWER:
            if common.threshold is not None and common.max is not None:
                what = "`threshold` and `max` both set an upper limit"
                raise ConfigError(what, where=f"{self.where}: {self.name}", hint="keep `max`")
            if common.threshold is not None:
                updates = {"threshold": None, "max": common.threshold}
        elif common.threshold is None:
            updates["threshold"] = metric_type.default_threshold
        if common.regression is None:
            only_warns = metric_type.scale.is_relative or metric_type.over_trials or metric_type.lexical
            updates["regression"] = "warn" if only_warns else "block"
        return replace(self, common=common.model_copy(update=updates))

    @cached_property
    def parsed_options(self) -> Mapping[str, Any]:
        """The metric's options by name, including defaults; as written if the metric is the user's own.

        Raises:
            ConfigError: an unknown option, or a value that the metric refuses.
        """
        if self.metric_type is None:
            return self.options
        found = read_options(self.metric_type.options_type, self.options, f"{self.where}: {self.name}")
        return {name: getattr(found, name) for name in type(found).model_fields}


def read_specs(
    raw: Mapping[str, Any],
    at: Callable[..., str],
    *,
    adk: bool = False,
) -> tuple[CriterionSpec, ...]:
    """Return the criteria in the order written.

    Args:
        raw: criteria by name, each a number or a mapping.
        at: returns the place of one criterion by its key, or of all of them, for errors.
        adk: the criteria come from an ADK file, in which true and false mean the thresholds 1 and 0, and options may be
            in camelCase.

    Raises:
        ConfigError: no criterion, a duplicate one, an unknown metric, or an unreadable value.
    """
    if not raw:
        raise ConfigError("no criteria: nothing would be checked", where=at(), hint="name at least one metric")
    specs = []
    for name, value in raw.items():
        spec = _spec(_canonical(name), value, at(name), adk=adk)
        if adk:
            model = spec.metric_type.options_type if spec.metric_type is not None else None
            spec = replace(spec, options=snake_keys(spec.options, model, at(name)))
        specs.append(spec)
    names = [spec.name for spec in specs]
    for name in {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"criterion {name!r} is given twice", where=at())
    return tuple(specs)


def _spec(name: str, value: Any, place: str, *, adk: bool) -> CriterionSpec:
    where = f"{place}: {name}"
    common, quantiles, options = _split(value, where, adk=adk)
    if adk and common.threshold == 0:  # every score reaches it: google-adk shows such a metric without deciding by it
        common = common.model_copy(update={"threshold": None, "blocking": False})
    spec = CriterionSpec(name, common.metric or name, common, quantiles, options, place)
    if spec.is_custom:
        _refuse_undecided(spec, where, adk=adk)
        return spec
    try:
        metric_type = load_metric(spec.metric)
    except ConfigError as error:
        raise ConfigError(error.what, where=place, hint=error.hint) from None
    if adk and metric_type.hard and common.threshold is not None and 0 < common.threshold < 1:
        common = common.model_copy(update={"threshold": None})  # in ADK a share of turns; here one violation fails
    spec = replace(spec, common=common).under(metric_type)
    _refuse_undecided(spec, where, adk=adk)
    return spec


def _refuse_undecided(spec: CriterionSpec, where: str, *, adk: bool) -> None:
    """Raise ConfigError for a blocking criterion of an ADK file without any limit; google-adk refuses it, too.

    google-adk has no metric for which lower is better, so such a limit may be left to the cases.
    """
    common, metric = spec.common, spec.metric_type
    if metric is not None and metric.direction is Direction.LOWER:
        return
    if adk and common.blocking and common.threshold is None and common.max is None and not spec.quantiles:
        raise ConfigError("threshold is missing", where=where, hint='as {"threshold": 0.6}')


def is_custom(metric: str) -> bool:
    """True if a metric's name is the path of user code."""
    return metric not in METRICS and ("." in metric or ":" in metric)


def _canonical(name: Any) -> str:
    """Return a metric's registered name; ADK-TS writes names in upper case."""
    text = str(name)
    return text.lower() if text not in METRICS and text.lower() in METRICS else text


def _split(value: Any, where: str, *, adk: bool) -> tuple[Common, tuple[tuple[float, float], ...], dict[str, Any]]:
    """Return the options of every criterion, the quantile limits, and the metric's own options."""
    if not isinstance(value, Mapping):
        return Common(threshold=_number(value, "threshold", where, adk=adk)), (), {}
    common: dict[str, Any] = {}
    quantiles: dict[float, float] = {}
    options: dict[str, Any] = {}
    for key, item in value.items():
        match = QUANTILE.match(str(key))
        if key in Common.model_fields:
            common[key] = item
        elif match:
            quantiles[float(match[1]) / 100] = _number(item, str(key), where, adk=adk)
        else:
            options[str(key)] = item
    for key in ("threshold", "max", "margin"):
        if common.get(key) is not None:
            common[key] = _number(common[key], key, where, adk=adk)
    return validated(Common, common, where), tuple(sorted(quantiles.items())), options


def _number(value: Any, label: str, where: str, *, adk: bool) -> float:
    """Return a threshold as ADK reads it: integers, floats, numeric strings; in an ADK file also true and false."""
    if isinstance(value, bool) and not adk:
        hint = f"write {float(value):g}" if label == "threshold" else ""
        raise ConfigError(f"{label}: expected a number, found {str(value).lower()}", where=where, hint=hint)
    try:
        number = float(value)
    except (TypeError, ValueError):
        found = "nothing" if value is None else shorten(repr(value), 60)
        what = f"{label}: expected a number, found {found}"
        plain = "write a number without a unit"
        hint = "write a number, as 0.6, or a mapping of options" if label == "threshold" else plain
        raise ConfigError(what, where=where, hint=hint) from None
    if not isfinite(number):
        raise ConfigError(f"{label}: {value!r} is not a finite number", where=where)
    return number


def read_options(options_type: type[Options], options: Mapping[str, Any], where: str) -> Options:
    """Return a metric's options, validated. Raises ConfigError for an unknown option, or a value out of range."""
    return validated(options_type, options, where, noun="option", also=tuple(Common.model_fields))
