"""A change is held to the rules of its base commit: it may tighten them, and loosens them only once it is merged.

Rules are what the configuration and its criteria demand, quarantine and thresholds included; what is run (agent, suite,
setup) is the change's own. What cannot be told to be stricter counts as loosening.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel
from pydantic.alias_generators import to_snake

from gate.config import Config, File, Held, load_config
from gate.criteria import check_file, custom_path, is_users
from gate.errors import ConfigError, GateError
from gate.git import HINT_HISTORY, Git
from gate.limits import shorten
from gate.metrics import METRICS, load_metric
from gate.model import Case, Direction, Suite
from gate.plan import CALIBRATION_FILE, raw_criteria, read_suites

RULES = ("trials", "baseline", "gate", "judge", "budget", "select", "quarantine", "tool_categories", "custom_metrics")
"""Keys of the configuration that demand something or say how it is judged; ``criteria`` are held suite by suite."""
_HIGHER = {"alpha"}
"""Settings of which a larger number is stricter: a larger error rate is spent on finding more."""
_LOWER = {"max_error_rate", "pass_rate_margin", "max", "margin"}
_STRICTER_WORD = {("warn", "block"), ("warn", "fail"), (False, True)}
_STRICTER_TRUE = {"blocking"}
_STRICTER_FALSE = {"ratchet"}
_QUANTILE = re.compile(r"p\d{1,2}(\.\d+)?$")


class Rules(Struct, frozen=True):
    """What holds, and what of the change's own rules does not yet."""

    config: Config
    changes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    """Why nothing under these rules may pass: what it would have been held to is not known, or was left out."""


def hold(path: Path, overrides: Mapping[str, Any], base: Path) -> Rules:
    """The configuration at ``path`` under the rules of the one at ``base``, where that one is there and can be read.

    The folder of ``base`` has to stay for as long as the rules are used: checks are imported from there.
    """
    head = load_config(path, overrides)
    if not base.is_file():
        return Rules(head, ("the base commit has no such configuration: the change's own rules hold",))
    try:
        known = load_config(base, _of_base(overrides, path, base))
    except GateError as error:
        what = f"the base commit's configuration cannot be read: {error.what}"
        return Rules(replace(head, held_root=base.parent), (f"{what}; the change's own rules hold",), (what,))
    settings, changes = hold_settings(known.file, head.file)
    head = replace(load_config(path, {**overrides, **settings}), held_root=base.parent)
    suites, unread = _suites_of(known)
    held = {}
    for suite in read_suites(head):
        held[suite.id] = _hold_suite(suite, suites.get(suite.id), known, head, changes, is_known=not unread)
    changes += [unread] if unread else []
    gone = tuple(f"suite {name!r} of the base commit is no longer there" for name in suites if name not in held)
    changes += [*gone, *_edited(CALIBRATION_FILE, base.parent / CALIBRATION_FILE, head.root / CALIBRATION_FILE)]
    config = replace(head, held={name: suite for name, suite in held.items() if suite is not None})
    return Rules(config, tuple(dict.fromkeys(changes)), gone)


@contextmanager
def rules_of(revision: str, path: Path, overrides: Mapping[str, Any], git: Git) -> Iterator[Rules]:
    """The configuration at ``path`` under the rules of a commit, branch or tag; its work tree stays as long.

    Raises:
        ConfigError: there is no such commit here.
    """
    if git.resolve(revision) is None:
        raise ConfigError(f"there is no commit {revision!r} here", where=str(git.root), hint=HINT_HISTORY)
    with git.worktree(revision) as tree:
        yield hold(path, overrides, in_tree(git, tree, path))


def in_tree(git: Git, tree: Path, path: Path) -> Path:
    """Where a configuration of this repository lies in another work tree of it."""
    return tree / git.text("rev-parse", "--show-prefix") / path.name


def _of_base(overrides: Mapping[str, Any], path: Path, base: Path) -> dict[str, Any]:
    """The overrides that say something of the base too: not of its agent, nor of a store that the change took out."""
    now, before = (load_config(one).file.baseline.model_fields_set for one in (path, base))
    own = {"baseline.store"} if "store" in before - now else set()
    return {key: value for key, value in overrides.items() if key.partition(".")[0] != "agent" and key not in own}


def _suites_of(known: Config) -> tuple[dict[str, Suite], str]:
    """The base commit's suites by id, and what does not hold where they cannot be read, as when a step makes them."""
    try:
        return {suite.id: suite for suite in read_suites(known)}, ""
    except GateError as error:
        lost = "thresholds of single cases are" if known.file.criteria is not None else "criteria are"
        return {}, f"the base commit's suites cannot be read, so that {lost} the change's own: {error.what}"


def _hold_suite(
    suite: Suite, base: Suite | None, known: Config, head: Config, changes: list[str], *, is_known: bool
) -> Held | None:
    """What a suite is held to; None where the base commit says nothing of it."""
    if base is None:
        changes += [f"suite {suite.id!r} is not in the base commit"] if is_known else []
        if known.file.criteria is None:
            return None
    before, now = raw_criteria(known, base or suite), raw_criteria(head, suite)
    criteria, differences = hold_criteria(before.criteria, now.criteria)
    thresholds, lowered = hold_thresholds(base.cases if base else (), suite.cases)
    custom = {**now.custom, **before.custom}
    changes += [*differences, *lowered, *_edited_checks(head, criteria, custom)]
    return Held(criteria, custom, thresholds)


def _edited_checks(head: Config, criteria: Mapping[str, Any], custom: Mapping[str, Any]) -> list[str]:
    """The user's checks of which the base commit's code is used, because it has them and they are not the same here."""
    assert head.held_root is not None
    found = []
    for name, options in criteria.items():
        path = options.get("metric") or custom_path(name, custom, head.criteria_where) or name
        if is_users(path):
            beside = options.get("run_in") == "agent"
            before = check_file(path, str(head.held_root), head.paths, beside_agent=beside, hidden=str(head.root))
            now = check_file(path, str(head.root), head.paths, beside_agent=beside)
            found += _edited(f"check {path}", before, now)
    return found


def _edited(what: str, before: Path | None, now: Path | None) -> list[str]:
    """That a file of the base commit's is used instead of the change's, where they differ."""
    if before is None or not before.is_file():
        return []
    if now is None or not now.is_file():
        return [f"{what}: removed once it is merged"]
    return [] if before.read_bytes() == now.read_bytes() else [f"{what}: edited, holds once it is merged"]


# --- settings -------------------------------------------------------------------------------------


def hold_settings(base: File, head: File) -> tuple[dict[str, Any], list[str]]:
    """Overrides (dotted key → value) that undo what the change loosens, and the differences in words."""
    overrides: dict[str, Any] = {}
    changes: list[str] = []
    for key in RULES:
        before, now = getattr(base, key), getattr(head, key)
        if before == now:
            continue
        if key == "quarantine":
            kept = [entry for entry in now if entry in before]
            added = [entry.case for entry in now if entry not in before]
            if added:
                overrides[key] = [entry.model_dump() for entry in kept]
            changes += [f"quarantine of {case!r} holds once it is merged" for case in added]
        elif key in ("gate", "baseline"):
            for name in type(before).model_fields:
                _hold_value(f"{key}.{name}", getattr(before, name), getattr(now, name), overrides, changes)
        else:
            overrides[key] = _plain(before)
            changes.append(f"{key} of the base commit holds until the change is merged")
    return overrides, changes


def _hold_value(label: str, before: Any, now: Any, overrides: dict[str, Any], changes: list[str]) -> None:
    name = label.rpartition(".")[2]
    if before == now or name == "against":  # what is compared with what is the event's to say
        return
    if is_stricter(name, before, now):
        changes.append(f"{label}: {_text(before)} → {_text(now)}, stricter")
        return
    overrides[label] = before
    changes.append(f"{label}: {_text(before)} → {_text(now)} holds once it is merged")


def _plain(value: Any) -> Any:
    return value.model_dump(exclude_unset=True) if isinstance(value, BaseModel) else value


# --- criteria -------------------------------------------------------------------------------------


def hold_criteria(base: Mapping[str, Any], head: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The criteria that hold: none of the base's is missing, and none of their options is looser."""
    before = {_canonical(name): _normal(value, name) for name, value in base.items()}
    now = {_canonical(name): _normal(value, name) for name, value in head.items()}
    held: dict[str, Any] = {}
    changes: list[str] = []
    for name in [*before, *(name for name in now if name not in before)]:
        if name not in now:
            held[name] = before[name]
            changes.append(f"criterion {name} is removed once it is merged")
        elif name not in before:
            held[name] = now[name]
            changes.append(f"criterion {name} is new")
        else:
            held[name] = _hold_options(name, before[name], now[name], changes)
    return held, changes


def _hold_options(name: str, before: Mapping[str, Any], now: Mapping[str, Any], changes: list[str]) -> dict[str, Any]:
    held: dict[str, Any] = {}
    for key in [*before, *(key for key in now if key not in before)]:
        old, new = before.get(key), now.get(key)
        if old != new and not is_stricter(key, old, new, lower_is_better=_lower_is_better(name, now)):
            changes.append(f"{name}.{key}: {_text(old)} → {_text(new)} holds once it is merged")
            new = old
        elif old != new:
            changes.append(f"{name}.{key}: {_text(old)} → {_text(new)}, stricter")
        if new is not None:
            held[key] = new
    return held


def hold_thresholds(base: tuple[Case, ...], head: tuple[Case, ...]) -> tuple[dict[str, dict[str, float]], list[str]]:
    """By case: the thresholds of its own that hold. A case that the base does not have keeps what it states."""
    known = {case.id: case.thresholds for case in base}
    held: dict[str, dict[str, float]] = {}
    changes: list[str] = []
    for case in head:
        kept = dict(case.thresholds)
        for name, old in known.get(case.id, {}).items():
            new = kept.get(name)
            if new != old and not is_stricter("threshold", old, new, lower_is_better=_lower_is_better(name, {})):
                kept[name] = old
                changes.append(f"case {case.id!r}: {name} {_text(old)} → {_text(new)} holds once it is merged")
        if kept != dict(case.thresholds):
            held[case.id] = kept
    return held, changes


def is_stricter(key: str, before: Any, now: Any, *, lower_is_better: bool | None = False) -> bool:
    """Whether a change of this option can only make the gate fail more often. ``lower_is_better`` None: not known."""
    if key in _STRICTER_TRUE or key in _STRICTER_FALSE:
        return bool(now) is (key in _STRICTER_TRUE)
    if isinstance(before, str) or isinstance(now, str):
        return (before or "warn", now) in _STRICTER_WORD
    is_limit = key in _LOWER or _QUANTILE.match(key) is not None
    if not (is_limit or key == "threshold" or key in _HIGHER) or not _is_number(now):
        return False
    if before is None:
        return key != "margin"  # a limit where there was none; the margin had a default
    if not _is_number(before) or (key == "threshold" and lower_is_better is None):
        return False
    downwards = is_limit or (key == "threshold" and bool(lower_is_better))
    return bool(now < before) if downwards else bool(now > before)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _canonical(name: str) -> str:
    return name.lower() if name not in METRICS and name.lower() in METRICS else name


def _normal(value: Any, where: str) -> dict[str, Any]:
    """A number alone is a threshold; keys in one spelling."""
    if isinstance(value, Mapping):
        return {to_snake(str(key)): item for key, item in value.items()}
    try:
        return {"threshold": float(value)}
    except (TypeError, ValueError):
        raise ConfigError(f"expected a number or options, found {value!r}", where=where) from None


def _lower_is_better(name: str, options: Mapping[str, Any]) -> bool | None:
    metric = options.get("metric", name)
    if metric not in METRICS:
        return None  # the user's own code, which is not loaded to find out
    return load_metric(metric).direction is Direction.LOWER


def _text(value: Any) -> str:
    return shorten(json.dumps(_plain(value), default=str), 80) if value is not None else "nothing"
