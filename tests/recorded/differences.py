"""How two results differ: path by path, and in a table of verdicts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from typing import Any

from msgspec import Struct

MOST_PATHS = 20
MOST_CHARACTERS = 160
GONE = "(none)"


class Change(Struct, frozen=True):
    """A situation whose result is another one now."""

    name: str
    before: Any
    now: Any


def outcome(report: Any) -> str:
    """Verdict and exit code, and the verdicts of the suites where there are several."""
    if not report:
        return "nothing"
    suites = [suite["verdict"] for suite in report.get("suites", ())]
    several = f" ({', '.join(suites)})" if len(suites) > 1 else ""
    return f"{report['verdict']}{several}, exit {report['exit_code']}"


def paths(before: Any, now: Any, path: str = "") -> Iterator[str]:
    """Each place in which they differ, as ``path: before → now``."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted(before.keys() | now.keys(), key=lambda key: ("." in key, key)):  # files of text are last
            yield from paths(before.get(key, GONE), now.get(key, GONE), f"{path}.{key}" if path else key)
    elif isinstance(before, list) and isinstance(now, list) and _is_keyed(before) and _is_keyed(now):
        yield from paths(_by_key(before), _by_key(now), path)
    elif _is_text(before) and _is_text(now):
        for line in list(unified_diff(before, now, n=0, lineterm=""))[2:]:
            if not line.startswith("@@"):
                yield f"{path}: {line[0]} {line[1 : MOST_CHARACTERS + 1]}"
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from paths(one, other, f"{path}[{number}]")
    elif before != now:
        yield f"{path}: {_shown(before)} → {_shown(now)}"


def _keys(value: Any) -> list[str]:
    """The names by which a list's object is known: those of cases, of a criterion or of a suite."""
    if not isinstance(value, dict):
        return []
    named = value.get("ids") or [value.get("suite_id") or value.get("criterion")]
    return [name for name in named if isinstance(name, str)]


def _is_keyed(values: Sequence[Any]) -> bool:
    keys = [_keys(value) for value in values]
    together = [key for own in keys for key in own]
    return all(keys) and len(set(together)) == len(together)


def _by_key(values: Sequence[Any]) -> dict[str, Any]:
    """Each object by its name, alone where several were written together."""
    found = {}
    for value in values:
        said = {name: told for name, told in value.items() if name != "ids"}
        found |= dict.fromkeys(_keys(value), said)
    return found


def _is_text(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


def _shown(value: Any) -> str:
    if value is GONE:
        return GONE
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + " …"


def told(changes: Sequence[Change], checked: int) -> Iterator[str]:
    """What differs and how, and a table of the verdicts that changed."""
    for change in changes:
        before, now = outcome(change.before), outcome(change.now)
        yield f"{change.name}: {before} → {now}" if before != now else f"{change.name}: {now}, as before"
        found = list(paths(change.before, change.now))
        yield from (f"    {line}" for line in found[:MOST_PATHS])
        if len(found) > MOST_PATHS:
            yield f"    … and {len(found) - MOST_PATHS} more"
    if changes:
        yield ""
        yield from table(changes)
    yield f"{checked} situations, {len(changes)} differ"


def table(changes: Iterable[Change]) -> Iterator[str]:
    """How many went from which outcome to which."""
    counts = Counter((outcome(change.before), outcome(change.now)) for change in changes)
    for (before, now), number in sorted(counts.items()):
        yield f"{number:4}  {before} → {now}" if before != now else f"{number:4}  {now}, as before"
    yield ""
