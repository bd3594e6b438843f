"""The stored records nearest to this commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gate.baselines.reference import Reference
from gate.config.load import Config
from gate.config.resolve import Plan
from gate.model import FULL, Trial
from gate.pipeline.identity import git_context
from gate.pipeline.references import nearest_stored
from gate.pipeline.store import store_of
from gate.system.git import Git


def nearest_by_suite(config: Config, plans: Sequence[Plan], environment: Mapping[str, str]) -> dict[str, Reference]:
    """Return the nearest stored record of each suite that has one; none if baselines are switched off."""
    store = store_of(config, environment)
    if store is None:
        return {}
    where = git_context(config, Git(config.root, environment=environment))
    found = {}
    with store:
        for plan in plans:
            stored = nearest_stored(store, plan.suite.id, where)
            if stored is not None:
                found[plan.suite.id] = stored
    return found


def trials_of_epochs(trials: Iterable[Trial]) -> list[Trial]:
    """Return the trials that were not picked by outcome."""
    return [trial for trial in trials if trial.tag == FULL]
