"""Criteria as the user writes them → criteria as the gate judges them, all checked before anything runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel, to_snake

from gate.errors import ConfigError, unknown_key
from gate.fingerprint import of_criterion
from gate.formats.documents import Lines
from gate.metrics import METRICS, load_metric
from gate.metrics.base import Context, Metric
from gate.metrics.custom import Use, resolve_elsewhere, searched, source_of
from gate.metrics.weighted import WeightedScore
from gate.model import Case, Criterion, Direction, Scale
from gate.score import Scorer, build_scorer

ADK_DEFAULTS: Mapping[str, Any] = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
"""What google-adk checks where no criteria are given."""

RANGES = {
    Scale.BINARY: (0.0, 1.0),
    Scale.UNIT: (0.0, 1.0),
    Scale.LIKERT: (1.0, 5.0),
    Scale.PERCENT: (0.0, 100.0),
    Scale.SECONDS: (0.0, float("inf")),
    Scale.USD: (0.0, float("inf")),
    Scale.COUNT: (0.0, float("inf")),
}

_QUANTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)$")


class Common(BaseModel):
    """What every criterion understands, whatever its metric."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    threshold: float | None = None
    max: float | None = None
    margin: float | None = None
    blocking: bool = True
    regression: Literal["block", "warn"] | None = None
    strict: bool = False
    ratchet: bool = True
    metric: str | None = None


class Setting(Struct, frozen=True):
    """What the configuration gives to all criteria."""

    where: str = "criteria"
    lines: Lines | None = None
    """Of the file that they stand in, where it is one whose lines are known."""
    keys: tuple[str, ...] = ()
    """Where in it they stand."""
    context: Context = field(default_factory=Context)
    custom: Mapping[str, Any] = field(default_factory=dict)
    """ADK's ``custom_metrics``."""
    folder: str = ""
    """Where checks of the user's are imported from, besides what is installed."""
    held_folder: str = ""
    """The same at the base commit; a check that is there is taken from there."""
    paths: tuple[str, ...] = ()
    """Further folders of the agent's, relative to the former."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What a check sees of the environment."""
    judge: Callable[[], str] = str
    """Fingerprint of the judge of the run; asked only where a criterion needs one."""

    def at(self, *keys: str) -> str:
        """The place of a criterion, or of all of them, with its line where that is known."""
        line = self.lines.line(*self.keys, *keys) if self.lines is not None else None
        return f"{self.where}:{line}" if line is not None else self.where


def parse_criteria(raw: Mapping[str, Any], cases: Sequence[Case], setting: Setting) -> tuple[Scorer, ...]:
    """One scorer per criterion, in the order written.

    Raises:
        ConfigError: unknown metric or option, threshold out of range, settings of a case for an absent criterion.
    """
    if not raw:
        raise ConfigError("no criteria: nothing would be checked", where=setting.at(), hint="name at least one metric")
    scorers = tuple(_scorer(_canonical(name), value, cases, setting, setting.at(name)) for name, value in raw.items())
    names = [scorer.criterion.name for scorer in scorers]
    for name in {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"criterion {name!r} is given twice", where=setting.at())
    check_something_blocks(scorers, setting.at(), "leave `blocking: false` off one")
    _check_weights(scorers, setting.at())
    _check_cases(cases, scorers)
    _check_idle(cases, scorers, setting)
    return scorers


def check_something_blocks(scorers: Sequence[Scorer], where: str, hint: str) -> None:
    """Raises ConfigError where all criteria only report."""
    blocking = [scorer for scorer in scorers if scorer.criterion.blocking]
    if blocking and all(scorer.metric.needs_others for scorer in blocking):
        what = f"{blocking[0].criterion.name} counts the trials that hold the other criteria, and no other one blocks"
        raise ConfigError(what, where=where, hint="add a criterion that says when a trial passes")
    if not blocking:
        raise ConfigError("no criterion blocks: the gate could never fail", where=where, hint=hint)


def _check_idle(cases: Sequence[Case], scorers: Sequence[Scorer], setting: Setting) -> None:
    """A criterion that no case gives anything to check would be found out after a full run."""
    for scorer in (s for s in scorers if s.criterion.blocking and cases):
        name, missing = scorer.criterion.name, scorer.metric.missing
        if missing and all(scorer.for_case(case).missing for case in cases):
            what = f"{name} would check nothing: neither it nor any case gives {missing}"
            raise ConfigError(what, where=setting.at(name), hint=f"give it {missing}, or leave it out")


def _check_weights(scorers: Sequence[Scorer], where: str) -> None:
    """What compares trials has no score for a single one, and its weight would silently go to the others."""
    over_trials = {scorer.criterion.name for scorer in scorers if scorer.metric.over_trials}
    for scorer in scorers:
        for metric in (scorer.metric, *scorer.by_case.values()):
            for name in over_trials.intersection(metric.options.weights if isinstance(metric, WeightedScore) else ()):
                what = f"{scorer.criterion.name} weighs {name}, which says nothing of a single trial"
                raise ConfigError(what, where=where, hint="gate it by a threshold of its own")


def _canonical(name: Any) -> str:
    """ADK-TS writes names in upper case; a registered metric is meant by either spelling."""
    text = str(name)
    return text.lower() if text not in METRICS and text.lower() in METRICS else text


def _scorer(name: str, value: Any, cases: Sequence[Case], setting: Setting, place: str) -> Scorer:
    where = f"{place}: {name}"
    common, quantiles, options = _split(value, where)
    metric_name = common.metric or custom_path(name, setting.custom, where) or name
    metric_type, options, run_in = _metric_type(metric_name, options, Use(name, common.threshold), setting, where)
    positive = metric_type.scale in (Scale.SECONDS, Scale.USD, Scale.COUNT)
    lower = metric_type.direction is Direction.LOWER
    if lower and common.threshold is not None:
        common = common.model_copy(update={"threshold": None, "max": _one_of(common.threshold, common.max, where)})
    if not lower and (common.max is not None or quantiles):
        raise ConfigError(
            "`max` and quantile limits are for metrics where lower is better", where=where, hint="use `threshold`"
        )
    threshold = common.threshold if common.threshold is not None or lower else metric_type.default_threshold
    for label, limit in (("threshold", threshold), ("max", common.max), *((f"p{q * 100:g}", v) for q, v in quantiles)):
        _check_range(label, limit, metric_type.scale, where)
    if metric_type.hard and threshold != 1.0:
        raise ConfigError(f"threshold {threshold:g}: one occurrence fails the gate", where=where, hint="leave it out")
    if metric_type.over_trials and common.regression == "block":
        what = "it compares trials with one another, and a change of that cannot block"
        raise ConfigError(what, where=where, hint="give a `threshold`")
    if common.margin is not None and common.margin < 0:
        raise ConfigError(f"margin {common.margin:g} is below 0", where=where)
    criterion = Criterion(
        name=name,
        metric=metric_name,
        scale=metric_type.scale,
        direction=metric_type.direction,
        threshold=threshold,
        limit=common.max,
        quantiles=quantiles,
        margin=common.margin,
        pass_mark=threshold if threshold is not None else metric_type.pass_mark,
        blocking=common.blocking,
        gate_regression=common.blocking
        and not metric_type.over_trials
        and (common.regression or ("warn" if positive else "block")) == "block",
        strict=common.strict,
        ratchet=common.ratchet,
        hard=metric_type.hard,
    )
    scorer = build_scorer(criterion, metric_type, options, cases, setting.context, where=place)
    criterion = replace(criterion, reads_tools=scorer.needs_calls, absence=metric_type.absence, parts=scorer.parts)
    judge = setting.judge() if scorer.needs_judge else None
    measuring = {key: value for key, value in options.items() if key != "min_kappa"} | run_in
    # min_kappa decides what may block; where a check runs decides what it imports, and its code what it measures
    fingerprint = of_criterion(metric_name, metric_type.version, measuring, judge=judge)
    return replace(scorer, criterion=replace(criterion, fingerprint=fingerprint))


def _metric_type(
    path: str, options: Mapping[str, Any], use: Use, setting: Setting, where: str
) -> tuple[type[Metric[Any]], dict[str, Any], dict[str, Any]]:
    """The metric, its own options, and what else decides what a check of the user's measures."""
    if not is_users(path):
        return _registered(path, where), dict(options), {}
    run_in = options.get("run_in", "gate")
    if run_in not in ("gate", "agent"):
        raise ConfigError(f"run_in: expected `gate` or `agent`, found {run_in!r}", where=where)
    own = {key: value for key, value in options.items() if key != "run_in"}
    folder, source = check_source(path, setting, beside_agent=run_in == "agent")
    use = replace(use, folder=folder, hidden=_hidden(folder, setting), environment=setting.environment)
    code = {"code": hashlib.sha256(source).hexdigest()} if source is not None else {}
    if run_in == "agent":
        return resolve_elsewhere(path, use), own, {"run_in": "agent", **code}
    from gate.metrics.apart import resolve_apart  # weight: only where there are checks

    return resolve_apart(path, use), own, code


def is_users(metric: str) -> bool:
    """Whether a metric is named by the path of a user's check."""
    return metric not in METRICS and ("." in metric or ":" in metric)


def check_source(path: str, setting: Setting, *, beside_agent: bool) -> tuple[str, bytes | None]:
    """The folder that a check is imported from, and its module's content; None where its file is not found there."""
    for folder in (setting.held_folder, setting.folder):
        hidden = _hidden(folder, setting)
        found = check_file(path, folder, setting.paths, beside_agent=beside_agent, hidden=hidden) if folder else None
        if found is not None:
            return folder, found.read_bytes()
    return setting.folder, None


def _hidden(folder: str, setting: Setting) -> str:
    """The change's own folder, where a check is taken from another."""
    return setting.folder if folder != setting.folder else ""


def check_file(path: str, folder: str, paths: Sequence[str], *, beside_agent: bool, hidden: str = "") -> Path | None:
    """The file of a check's module where it would be imported; ``paths`` are the agent's, relative to ``folder``."""
    beside = [folder, *(str(Path(folder) / inner) for inner in paths)]
    return source_of(path, beside if beside_agent else searched(folder, hidden))


def _registered(name: str, where: str) -> type[Metric[Any]]:
    try:
        return load_metric(name)
    except ConfigError as error:
        raise ConfigError(error.what, where=where.removesuffix(f": {name}"), hint=error.hint) from None


def _split(value: Any, where: str) -> tuple[Common, tuple[tuple[float, float], ...], dict[str, Any]]:
    """What every criterion understands, the quantile limits, and the metric's own options."""
    if not isinstance(value, Mapping):
        return Common(threshold=_number(value, "threshold", where)), (), {}
    common: dict[str, Any] = {}
    quantiles: list[tuple[float, float]] = []
    options: dict[str, Any] = {}
    for key, item in value.items():
        match = _QUANTILE.match(str(key))
        if to_snake(str(key)) in Common.model_fields:
            common[to_snake(str(key))] = item
        elif match:
            quantiles.append((float(match[1]) / 100, _number(item, str(key), where)))
        else:
            options[to_snake(str(key)) if to_camel(to_snake(str(key))) == key else str(key)] = item
    for key in ("threshold", "max", "margin"):
        if common.get(key) is not None:
            common[key] = _number(common[key], key, where)
    try:
        return Common.model_validate(common), tuple(sorted(quantiles)), options
    except ValidationError as error:
        problem = error.errors()[0]
        message = problem["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{problem['loc'][0]}: {message}", where=where) from None


def _number(value: Any, label: str, where: str) -> float:
    """A threshold as ADK reads it: ints, floats, numeric strings, true and false."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{label}: expected a number, found {value!r}", where=where) from None
    if not isfinite(number):
        raise ConfigError(f"{label}: {value!r} is not a finite number", where=where)
    return number


def _one_of(threshold: float, limit: float | None, where: str) -> float:
    if limit is not None:
        raise ConfigError("`threshold` and `max` both say the most a trial may reach", where=where, hint="keep `max`")
    return threshold


def _check_range(label: str, value: float | None, scale: Scale, where: str) -> None:
    low, high = RANGES[scale]
    if value is not None and not low <= value <= high:
        bounds = f"{low:g} to {high:g}" if high != float("inf") else f"{low:g} or more"
        hint = f"did you mean {value / 100:g}?" if scale is Scale.UNIT and 1 < value <= 100 else f"scores are {bounds}"
        raise ConfigError(f"{label} {value:g} is out of range", where=where, hint=hint)


def custom_path(name: str, custom: Mapping[str, Any], where: str) -> str | None:
    """The dotted path of an ADK ``custom_metrics`` entry of this name."""
    entry = custom.get(name)
    if entry is None:
        return None
    code = entry.get("code_config", entry.get("codeConfig")) if isinstance(entry, Mapping) else None
    path = code.get("name") if isinstance(code, Mapping) else None
    if not isinstance(path, str):
        raise ConfigError(
            "custom metric without code_config.name", where=where, hint='{code_config: {name: "module.function"}}'
        )
    return path


def _check_cases(cases: Sequence[Case], scorers: Sequence[Scorer]) -> None:
    """Per-case thresholds and options must name a criterion, or they would silently decide nothing."""
    by_name = {scorer.criterion.name: scorer.criterion for scorer in scorers}
    weighted = [scorer for scorer in scorers if isinstance(scorer.metric, WeightedScore)]
    for case in cases:
        where = str(case.location) if case.location else f"case {case.id!r}"
        for name in [*case.thresholds, *case.options]:
            if name in METRICS and name not in by_name:
                hint = f"add `{name}: {{}}` to the criteria"
                raise ConfigError(f"case {case.id!r} states {name}, which is no criterion", where=where, hint=hint)
            if name not in by_name:
                raise unknown_key(name, list(by_name), f"{where}: case {case.id!r}", noun="criterion")
        for name, threshold in case.thresholds.items():
            _check_range("threshold", threshold, by_name[name].scale, f"{where}: case {case.id!r}: {name}")
        for scorer in scorers:
            if scorer.metric.hard and case.thresholds.get(scorer.criterion.name, 1.0) != 1.0:
                what = f"case {case.id!r} has a threshold for {scorer.criterion.name}: one occurrence fails the gate"
                raise ConfigError(what, where=where, hint="leave it out")
            if scorer.metric.over_trials and scorer.criterion.name in case.thresholds:
                what = f"case {case.id!r} has a threshold for {scorer.criterion.name}, which is judged over the suite"
                raise ConfigError(what, where=where, hint="give the criterion a threshold")
        for scorer in weighted:
            if scorer.criterion.name in case.thresholds and not scorer.for_case(case).options.weights:
                what = f"case {case.id!r} demands a {scorer.criterion.name} (`min_score`) without weights"
                raise ConfigError(
                    what, where=where, hint="say what it scores: weights: {tool_accuracy: 0.6, contains: 0.4}"
                )


def both_spellings(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object whose keys may be snake_case or camelCase."""
    properties = schema.get("properties", {})
    schema["properties"] = {spelt: value for key, value in properties.items() for spelt in (key, to_camel(key))}
    if "required" in schema:
        schema["required"] = [key for key in schema["required"] if to_camel(key) == key]
    return schema


def criterion_schema(name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of one criterion, a number or an object; shared definitions go to ``definitions``."""
    metric = load_metric(name)
    options = metric.options_type.model_json_schema(by_alias=False)
    definitions.update({key: both_spellings(inner) for key, inner in options.pop("$defs", {}).items()})
    common = Common.model_json_schema()["properties"]
    summary = (metric.__doc__ or "").strip().splitlines()[0]
    return {
        "description": summary,
        "anyOf": [
            {"type": ["number", "string", "boolean"]},
            {
                **both_spellings({"type": "object", "properties": {**common, **options.get("properties", {})}}),
                "patternProperties": {_QUANTILE.pattern: {"type": "number"}},
                "additionalProperties": False,
            },
        ],
    }
