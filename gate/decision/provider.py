"""What answered: the model and the provider's system that trials name, on both sides. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from gate.model import Trial
from gate.model.facts import AnsweredBy
from gate.security.limits import cut

MOST_NAMES = 5
MAX_NAME_CHARS = 80


def answered_by(now: Iterable[Trial], before: Iterable[Trial]) -> list[AnsweredBy]:
    """What answers now and did not at the baseline; of systems, which a provider mixes, only where none is known."""
    sides = [_named(now), _named(before)]
    found = []
    models, earlier = (side[0] for side in sides)
    if earlier and models - earlier:
        found.append(AnsweredBy("model", _bounded(models - earlier), _bounded(earlier)))
    systems, former = (side[1] for side in sides)
    if former and systems and systems.isdisjoint(former):
        found.append(AnsweredBy("system", _bounded(systems), _bounded(former)))
    return found


def _named(trials: Iterable[Trial]) -> tuple[frozenset[str], frozenset[str]]:
    usages = [turn.usage for trial in trials for turn in trial.invocations if turn.usage is not None]
    return frozenset(u.model for u in usages if u.model), frozenset(u.system for u in usages if u.system)


def _bounded(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(cut(" ".join(name.split()), MAX_NAME_CHARS) for name in sorted(names)[:MOST_NAMES])
