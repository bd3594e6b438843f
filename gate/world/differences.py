"""Describes the first difference between two requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from os.path import commonprefix
from typing import Any

from gate.security.limits import shorten

MOST_CHARS = 400
_AROUND = 30
"""Characters of a long text that are shown before its first difference."""
_SHOWN = 70


def first_difference(before: Any, now: Any, path: str = "") -> str:
    """Return the first place where two JSON values differ, with both values; empty if they are equal."""
    if isinstance(before, dict) and isinstance(now, dict):
        return _of_members(before, now, lambda name: f"{path}.{name}" if path else str(name))
    if isinstance(before, list) and isinstance(now, list):
        return _of_lists(before, now, path)
    if type(before) is type(now) and before == now:
        return ""
    if isinstance(before, str) and isinstance(now, str):
        old, new = _windows(before, now)
        return f"{path or 'the body'}: {old} → {new}"
    return f"{path or 'the body'}: {_said(before)} → {_said(now)}"


def _of_members(before: dict[str, Any], now: dict[str, Any], placed: Callable[[str], str]) -> str:
    for name in before | now:
        place = placed(name)
        if name not in now:
            return f"{place}: {_said(before[name])} → not there"
        if name not in before:
            return f"{place}: not there → {_said(now[name])}"
        found = first_difference(before[name], now[name], place)
        if found:
            return found
    return ""


def _of_lists(before: list[Any], now: list[Any], path: str) -> str:
    old_named, new_named = by_name(before), by_name(now)
    if old_named is not None and new_named is not None:
        return _of_named(old_named, new_named, path)
    for number, (old, new) in enumerate(zip(before, now, strict=False)):
        found = first_difference(old, new, f"{path}[{number}]")
        if found:
            return found
    if len(before) == len(now):
        return ""
    shorter = min(len(before), len(now))
    place = f"{path}[{shorter}]"
    if len(now) > shorter:
        return f"{place}: not there → {_said(now[shorter])}"
    return f"{place}: {_said(before[shorter])} → not there"


def by_name(items: list[Any]) -> dict[str, Any] | None:
    """Return the items of a list by name, such as tools; None unless all have different names."""
    found: dict[str, Any] = {}
    for item in items:
        name = _name(item)
        if not isinstance(name, str) or name in found:
            return None
        found[name] = item
    return found or None


def _name(item: Any) -> Any:
    """Return the name of a tool, which may be in its ``function``; None if it has none."""
    if isinstance(item, dict) and "name" not in item:
        item = item.get("function")
    return item.get("name") if isinstance(item, dict) else None


def _of_named(before: dict[str, Any], now: dict[str, Any], path: str) -> str:
    """Return the first difference of named items, compared by name and then by order."""
    found = _of_members(before, now, lambda name: f"{path}[{shorten(name, _SHOWN)}]")
    if found or [*before] == [*now]:
        return found
    return f"the order of {path}: {_said([*before])} → {_said([*now])}"


def _windows(before: str, now: str) -> tuple[str, str]:
    """Return both texts, starting shortly before their first difference."""
    if len(before) <= _SHOWN and len(now) <= _SHOWN:
        return _said(before), _said(now)
    start = max(0, len(commonprefix([before, now])) - _AROUND)  # noqa: RUF071 - characters, no paths
    lead = "…" if start else ""
    return _said(lead + before[start:]), _said(lead + now[start:])


def _said(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False, default=repr), _SHOWN)
