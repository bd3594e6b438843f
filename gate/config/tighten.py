"""A change may tighten its base's rules, but not loosen them: `tighten`, and the values that it is applied to.

Each key declares which way it tightens (`gate.model.strictness`). A key without a direction keeps the base's value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from gate.agents.base import AgentOptions
from gate.baselines import STORES
from gate.baselines.fingerprint import of_case
from gate.config.load import Config
from gate.config.schema import NO_STORE, BaselineSection, File
from gate.config.specs import QUANTILE, Common, CriterionSpec
from gate.decision.consistency import cluster_of
from gate.model import Case, Direction
from gate.model.strict import StrictModel
from gate.model.strictness import DOWN, FREE, NEVER, UP, Tightens, strictness_of
from gate.security.limits import shorten
from gate.security.redact import redact


class KeyChange(Struct, frozen=True):
    """A key whose value differs from the base's."""

    key: str
    before: Any
    now: Any
    holds: Any
    """The value in effect."""

    @property
    def is_stricter(self) -> bool:
        """True if the change's value is in effect."""
        return bool(self.holds == self.now)

    def __str__(self) -> str:
        text = f"{self.key}: {shown(self.before)} → {shown(self.now)}"
        return f"{text}, stricter" if self.is_stricter else f"{text} takes effect once it is merged"


def tighten(
    before: Mapping[str, Any], now: Mapping[str, Any], direction: Callable[[str], Tightens]
) -> dict[str, KeyChange]:
    """Return the changes by key.

    A value of the change takes effect if it is stricter in the key's direction; otherwise the base's stays. Keys
    without strictness (`FREE`) take the change's value and are not among them.
    """
    changes = {}
    for key in dict.fromkeys([*before, *now]):
        old, new, way = before.get(key), now.get(key), direction(key)
        if old != new and way is not FREE:
            changes[key] = KeyChange(key, old, new, way.strictest(old, new))
    return changes


def shown(value: Any) -> str:
    """Return a value as one short line without secrets."""
    if value is None:
        return "nothing"
    return shorten(redact(json.dumps(_plain(value), default=_plain)), 80)


def _plain(value: Any) -> Any:
    """Return a value as it would be written in a configuration."""
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_unset=True)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | dict | None) else str(value)


# --- settings -------------------------------------------------------------------------------------

_APART = ("criteria", "agent", "baseline")
"""Keys with separate rules."""
_DECIDING = ("store", "path", "require_provenance")
"""Baseline keys that have an effect if stated, even with their default value."""


def settings_under_base(base: Config, head: Config) -> tuple[dict[str, Any], list[str]]:
    """Return overrides (dotted key → value) that undo what the change loosens, and the differences in words.

    Criteria and the agent are not among them.
    """
    overrides: dict[str, Any] = {}
    texts: list[str] = []
    for key in File.model_fields:
        if key in _APART:
            continue
        old, new = getattr(base.file, key), getattr(head.file, key)
        if isinstance(old, StrictModel) and isinstance(new, StrictModel) and _has_directions(type(old)):
            directions = {f"{key}.{name}": strictness_of(type(old), name) for name in type(old).model_fields}
            before = {f"{key}.{name}": value for name, value in old}
            now = {f"{key}.{name}": value for name, value in new}
        else:
            directions, before, now = {key: strictness_of(File, key)}, {key: old}, {key: new}
        for path, change in tighten(before, now, directions.__getitem__).items():
            if not change.is_stricter:
                overrides[path] = _plain(change.holds)
            if path != "quarantine":
                texts.append(str(change))
                continue
            for entry in new:
                if entry not in old:
                    texts.append(f"quarantine of {entry.case!r} takes effect once it is merged")
    section, told = _baseline_under_base(base.file.baseline, head.file.baseline)
    if section != _plain(head.file.baseline):
        overrides["baseline"] = section
    return overrides, [*texts, *told]


def _has_directions(section: type[BaseModel]) -> bool:
    return any(strictness_of(section, name) is not NEVER for name in section.model_fields)


def _baseline_under_base(before: BaselineSection, now: BaselineSection) -> tuple[dict[str, Any], list[str]]:
    """Return the section as the base states it, with the change's stricter values, and the differences in words.

    Keys that the base omits stay omitted: a stated ``store`` or ``path`` decides which store is read, even with its
    default value.
    """
    stated, own = _plain(before), _plain(now)
    section = dict(stated)

    def take(name: str) -> None:
        section.pop(name, None)
        if name in own:
            section[name] = own[name]

    if before.store != now.store and not {before.store, now.store} <= {*STORES, NO_STORE}:
        take("against")
        change = KeyChange("baseline.store", before.store, now.store, before.store)
        return section, [str(change)]  # one plugin's store cannot read another's options
    models: list[type[BaseModel]] = [BaselineSection, *dict.fromkeys([*before.models(), *now.models()])]
    directions = {}
    for model in models:
        for name in model.model_fields:
            directions[name] = strictness_of(model, name)
            if directions[name] is FREE:
                take(name)
    old, new = _with_store(before, models), _with_store(now, models)
    changes = tighten(old, new, directions.__getitem__)
    for name in _DECIDING:
        if name not in changes and (name in own) != (name in stated):
            changes[name] = KeyChange(name, stated.get(name), own.get(name), stated.get(name))
    texts = []
    for name, change in changes.items():
        if change.is_stricter:
            take(name)
        texts.append(f"baseline.{change}")
    return section, texts


def _with_store(section: BaselineSection, models: Sequence[type[BaseModel]]) -> dict[str, Any]:
    """Return all values of the section, with the options of stores as the stores parse them."""
    found = _fields_of(section, BaselineSection)
    for model in models[1:]:
        found |= dict(model.model_validate(section.options_of(model)))
    return found


def _fields_of(held: BaseModel, model: type[BaseModel]) -> dict[str, Any]:
    """Return the values of a model's own fields, without those of a subclass and extra keys."""
    return {name: getattr(held, name) for name in model.model_fields}


AGENT_DIFFERS = "the agent differs: agent."
"""The beginning of a note on a difference in the agent itself; the key and both values follow."""


def agent_under_base(base: Config, head: Config) -> tuple[dict[str, Any], list[str]]:
    """Return overrides that undo what the change loosens in the agent's rules, and the agent's differences in words.

    Options with a direction are rules; everything else about the agent is the change's own.
    """

    def direction(name: str) -> Tightens:
        stated = strictness_of(AgentOptions, name)
        return FREE if stated is NEVER else stated

    overrides = {}
    texts = []
    old, new = _fields_of(base.agent, AgentOptions), _fields_of(head.agent, AgentOptions)
    for name, change in tighten(old, new, direction).items():
        if not change.is_stricter:
            overrides[f"agent.{name}"] = _plain(change.holds)
            texts.append(f"agent.{change}")
    written, now_written = base.file.agent, head.file.agent
    for key in dict.fromkeys([*written, *now_written]):
        before, now = written.get(key), now_written.get(key)
        if before != now and f"agent.{key}" not in overrides:
            texts.append(f"{AGENT_DIFFERS}{key}: {shown(before)} → {shown(now)}")
    return overrides, texts


# --- criteria -------------------------------------------------------------------------------------


def criteria_under_base(
    base: Sequence[CriterionSpec], head: Sequence[CriterionSpec]
) -> tuple[tuple[CriterionSpec, ...], list[str]]:
    """Return the criteria in effect, and the differences in words: each of the base's is kept and not loosened."""
    now = {spec.name: spec for spec in head}
    effective: list[CriterionSpec] = []
    texts: list[str] = []
    for before in base:
        after = now.pop(before.name, None)
        if after is None:
            effective.append(before)
            texts.append(f"criterion {before.name} is removed once it is merged")
        elif before.metric != after.metric:
            effective.append(before)
            texts.append(f"{before.name}.metric: {before.metric} → {after.metric} takes effect once it is merged")
        else:
            changes = tighten(_values(before), _values(after), partial(_direction, before))
            effective.append(_with_changes(before, after, changes))
            texts += [f"{before.name}.{change}" for change in changes.values()]
    texts += [f"criterion {name} is new" for name in now]
    return (*effective, *now.values()), texts


def _with_changes(before: CriterionSpec, now: CriterionSpec, changes: Mapping[str, KeyChange]) -> CriterionSpec:
    """Return the base's criterion with the values in effect."""
    common: dict[str, Any] = {}
    quantiles = dict(before.quantiles)
    options = dict(before.options)
    for name, change in changes.items():
        if change.holds == change.before:
            continue
        if name in Common.model_fields:
            common[name] = change.holds
        elif (limit := _quantile(name)) is not None:
            quantiles[limit] = change.holds
        else:
            options[name] = now.options.get(name, change.holds) if change.is_stricter else _plain(change.holds)
    return replace(
        before,
        common=before.common.model_copy(update=common),
        quantiles=tuple(sorted(quantiles.items())),
        options=options,
    )


def _values(spec: CriterionSpec) -> dict[str, Any]:
    """Return everything that a criterion demands, by name, including defaults."""
    common = _fields_of(spec.common, Common)
    del common["metric"]  # compared before
    limits = {f"p{quantile * 100:g}": limit for quantile, limit in spec.quantiles}
    return {**common, **limits, **spec.parsed_options}


def _quantile(name: str) -> float | None:
    match = QUANTILE.match(name)
    if match is None:
        return None
    return float(match[1]) / 100


def _direction(spec: CriterionSpec, name: str) -> Tightens:
    """Return which way a value of a criterion tightens; NEVER for what only a user's own metric knows: its code is not
    loaded."""
    metric = spec.metric_type
    if _quantile(name) is not None:
        return DOWN
    if name not in ("threshold", "margin") and name in Common.model_fields:
        return strictness_of(Common, name)
    if metric is None:
        return DOWN if name == "margin" and spec.common.margin is not None else NEVER
    if name == "threshold":  # without one, or with 0, the metric's default decides: a lower one lets more trials pass
        return UP if spec.common.threshold else Tightens("up", unset=metric.pass_threshold or 0.0)
    if name == "margin":
        return Tightens("down", unset=metric.scale.default_margin)
    return strictness_of(metric.options_type, name)


# --- cases ----------------------------------------------------------------------------------------


def thresholds_under_base(
    specs: Sequence[CriterionSpec], formerly: Mapping[str, Case], head: Sequence[Case]
) -> tuple[dict[str, dict[str, float]], list[str]]:
    """Return by case its own thresholds in effect, if they differ from those that it states.

    A threshold that the base commit does not state for a case must be at least as strict as the criterion's there.
    """
    by_name = {spec.name: spec for spec in specs}
    effective: dict[str, dict[str, float]] = {}
    texts: list[str] = []
    for case in head:
        known: Mapping[str, float] = {}
        if case.id in formerly:
            known = formerly[case.id].thresholds

        def direction(name: str, known: Mapping[str, float] = known) -> Tightens:
            return _case_direction(by_name.get(name), known.get(name))

        held: dict[str, float | None] = dict(case.thresholds)
        for name, change in tighten(known, case.thresholds, direction).items():
            if not change.is_stricter:
                texts.append(f"case {case.id!r}: {change}")
                held[name] = change.holds
        if held != dict(case.thresholds):
            effective[case.id] = {name: value for name, value in held.items() if value is not None}
    return effective, texts


def _case_direction(spec: CriterionSpec | None, before: float | None) -> Tightens:
    """Return which way a case's threshold tightens; FREE for a criterion that the base does not have."""
    if spec is None:
        return FREE
    metric = spec.metric_type
    if metric is None:
        return NEVER
    if metric.direction is Direction.LOWER:
        way, stated = DOWN, spec.common.max
    else:
        way, stated = UP, spec.common.threshold
    if before is not None:
        return way
    return replace(way, unset=metric.pass_threshold if stated is None else stated)


def clusters_under_base(formerly: Mapping[str, Case], head: Sequence[Case]) -> tuple[dict[str, str], list[str]]:
    """Return by case its cluster at the base commit, if the change assigns another; and a note on that.

    With all cases in one cluster, no drop of the suite could be proven. A case with different content is not compared,
    so it keeps the change's cluster.
    """
    held = {}
    for case in head:
        before = formerly.get(case.id)
        if before is None or of_case(before) != of_case(case):
            continue
        if cluster_of(before) != cluster_of(case):
            held[case.id] = cluster_of(before)
    if not held:
        return {}, []
    first, *more = held
    others = f" and {len(more):,} more" if more else ""
    return held, [f"the cluster of case {first!r}{others} takes effect once it is merged"]
