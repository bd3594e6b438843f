"""The models, systems of the provider and tools that trials name, on both sides. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from gate.model import Trial
from gate.model.finding import Finding
from gate.security.limits import cut

MOST_NAMES = 5
MOST_CHANGES = 20
MAX_NAME_CHARS = 80


def answered_by(now: Iterable[Trial], before: Iterable[Trial]) -> list[Finding]:
    """Return the models and systems that answer now and did not at the baseline; systems, which a provider mixes, only
    if none of the baseline's is known."""
    sides = [_named(now), _named(before)]
    found = []
    models, earlier = (side[0] for side in sides)
    if earlier and models - earlier:
        found.append(Finding.of("answered_by", what="model", now=_bounded(models - earlier), before=_bounded(earlier)))
    systems, former = (side[1] for side in sides)
    if former and systems and systems.isdisjoint(former):
        found.append(Finding.of("answered_by", what="system", now=_bounded(systems), before=_bounded(former)))
    return found


def tools_changed(now: Iterable[Trial], before: Iterable[Trial]) -> list[Finding]:
    """Return the MCP servers that list other tools than at the baseline, or describe them otherwise, and the
    differences."""
    trials = list(now)
    offered, former = _offered(trials), _offered(before)
    other = {name for name, lists in offered.items() if name in former and lists.isdisjoint(former[name])}
    told = dict.fromkeys(one for t in trials if t.replay is not None for one in t.replay.tools_changed)
    servers = sorted(other | {one.partition(": ")[0] for one in told})
    return (
        [Finding.of("tools_changed", servers=tuple(servers), changes=tuple(list(told)[:MOST_CHANGES]))]
        if servers
        else []
    )


def _offered(trials: Iterable[Trial]) -> dict[str, set[str]]:
    """Server → digests of the lists of tools that it told."""
    found: dict[str, set[str]] = {}
    for trial in trials:
        for one in trial.replay.tools if trial.replay is not None else ():
            server, _, digest = one.rpartition(" ")
            found.setdefault(server, set()).add(digest)
    return found


def _named(trials: Iterable[Trial]) -> tuple[frozenset[str], frozenset[str]]:
    usages = [turn.usage for trial in trials for turn in trial.invocations if turn.usage is not None]
    return frozenset(u.model for u in usages if u.model), frozenset(u.system for u in usages if u.system)


def _bounded(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(cut(" ".join(name.split()), MAX_NAME_CHARS) for name in sorted(names)[:MOST_NAMES])
