"""The judge that a configuration names, with its cache, held to its budget: one road for all who ask it."""

from __future__ import annotations

from collections.abc import Mapping

from gate.config.load import Config
from gate.judges.client import Judge, open_judge
from gate.judges.meter import Budget
from gate.pipeline.budget import judge_budget


def judge_of(config: Config, environment: Mapping[str, str], budget: Budget | None = None) -> Judge:
    """The judge, for ``async with``. ``budget``: one that others draw from, too; None: the configuration's own.

    Raises:
        ConfigError: no key and no explicit endpoint; a cache that cannot be opened.
    """
    return open_judge(
        config.file.judge,
        environment=environment,
        cache_path=config.output / "judge.sqlite",
        budget=judge_budget(config.file.budget) if budget is None else budget,
    )
