"""How one job divides its error budget over everything that it compares, and what a proof frees of it. Pure.

A user takes one decision per job. So ``alpha`` is divided over the job's comparisons (Bonferroni): each suite with each
of its references that has records. What has no baseline cannot be called regressed, and takes no part. Once suites are
proven, the others are judged by what is left (Holm): the job is blocked already, and the same trials may name more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from gate.baselines.pairing import Reference
from gate.decision import Settings
from gate.model import SuiteResult, Verdict


def comparisons_of(references: Sequence[Reference], *, rules: int = 1, beside: bool = False) -> int:
    """How many comparisons a suite makes; ``rules``: 2 where it is judged by its own and by those of its base.

    ``beside``: the base commit's agent takes the place of a stored baseline.
    """
    return rules * (beside + sum(bool(reference.records) for reference in references))


def shared(settings: Settings, suites: int, comparisons: int) -> Settings:
    """The settings of each suite of a job that makes so many comparisons in so many suites."""
    return replace(settings, suites=max(1, suites), comparisons=max(1, comparisons))


def at_least(settings: Settings, comparisons: int) -> Settings:
    """The settings, divided at least by what the suite itself compares: of a record that is judged alone."""
    return settings if settings.comparisons >= comparisons else replace(settings, comparisons=comparisons)


def after(settings: Settings, proven: int) -> Settings:
    """The settings of the others once so many suites are proven."""
    return replace(settings, comparisons=max(1, settings.comparisons - proven))


def step_down(found: Sequence[SuiteResult], again: Callable[[int, int], SuiteResult]) -> list[SuiteResult]:
    """The suites' results, with those proven that what the proven ones leave is enough to prove.

    ``again`` judges the suite with this number after so many proofs, from the trials that there are.
    """
    results, judged_after = list(found), 0
    while (proven := sum(one.verdict is Verdict.REGRESSED for one in results)) > judged_after:
        judged_after = proven
        for number, one in enumerate(results):
            if one.verdict is not Verdict.REGRESSED and (other := again(number, proven)).verdict is Verdict.REGRESSED:
                results[number] = other
    return results
