"""The changes since the baseline: cases, criteria, and the models and tools that the trials name."""

from __future__ import annotations

from collections.abc import Iterable

from gate.decision.comparison import Comparison, Incomparable
from gate.decision.gaps import edited_cases, incomparable_criteria, new_cases, removed_cases
from gate.model import CaseResult, Trial, Verdict
from gate.model.finding import Finding
from gate.security.limits import cut

MOST_NAMES = 5
MOST_CHANGES = 20
MAX_NAME_CHARS = 80


def changes(comparison: Comparison, cases: Iterable[CaseResult]) -> tuple[Finding, ...]:
    """Return the changes in models, tools, cases and criteria; empty without a baseline. ``cases``: their results."""
    if not comparison.stored:
        return ()
    found = [*answered_by(comparison.judged_trials, comparison.stored)]
    found += tools_changed(comparison.judged_trials, comparison.stored)
    new, edited, removed = new_cases(comparison), edited_cases(comparison), removed_cases(comparison)
    never_passed = {case.id for case in cases if case.trials and not case.passed}
    for how, names in (("new", new), ("edited", edited)):
        if names:
            failing = tuple([case_id for case_id in names if case_id in never_passed])
            found.append(Finding.of("cases_changed", how=how, cases=names, never_passed=failing))
    renamed = comparison.renamed
    if renamed:
        found.append(Finding.of("cases_changed", how="renamed", cases=tuple(renamed), before=tuple(renamed.values())))
    found += incomparable_criteria(comparison).values()
    for criterion in comparison.removed:
        found.append(Finding.of("not_compared", criterion=criterion.name, why="removed"))
    fresh = {name for (_, name), why in comparison.not_comparable.items() if why is Incomparable.NEW}
    for name in sorted(fresh):
        found.append(Finding.of("not_compared", Verdict.PASS, criterion=name, why="new"))
    if removed:
        found.append(Finding.of("cases_changed", how="removed", cases=removed))
    return tuple(found)


# --- who answered, with which tools ---------------------------------------------------------------


def answered_by(now: Iterable[Trial], before: Iterable[Trial]) -> list[Finding]:
    """Return the models and systems that answer now but did not at the baseline. Providers mix systems, so these count
    only if none of the baseline's is known."""
    models, systems = _named(now)
    models_before, systems_before = _named(before)
    found = []
    if models_before and models - models_before:
        others = _bounded(models - models_before)
        found.append(Finding.of("answered_by", what="model", now=others, before=_bounded(models_before)))
    if systems_before and systems and systems.isdisjoint(systems_before):
        found.append(Finding.of("answered_by", what="system", now=_bounded(systems), before=_bounded(systems_before)))
    return found


def _named(trials: Iterable[Trial]) -> tuple[set[str], set[str]]:
    """Return the models and the systems named in the trials."""
    models, systems = set(), set()
    for trial in trials:
        for turn in trial.invocations:
            if turn.usage is not None and turn.usage.model:
                models.add(turn.usage.model)
            if turn.usage is not None and turn.usage.system:
                systems.add(turn.usage.system)
    return models, systems


def _bounded(names: Iterable[str]) -> tuple[str, ...]:
    return tuple([cut(" ".join(name.split()), MAX_NAME_CHARS) for name in sorted(names)[:MOST_NAMES]])


def tools_changed(now: Iterable[Trial], before: Iterable[Trial]) -> list[Finding]:
    """Return the MCP servers whose tools or tool descriptions differ from the baseline's, with the differences."""
    trials = list(now)
    offered, offered_before = _tool_lists(trials), _tool_lists(before)
    servers = set()
    for server, lists in offered.items():
        if server in offered_before and lists.isdisjoint(offered_before[server]):
            servers.add(server)
    told: dict[str, None] = {}
    for trial in trials:
        if trial.replay is not None:
            told.update(dict.fromkeys(trial.replay.tools_changed))
    servers |= {text.partition(": ")[0] for text in told}
    if not servers:
        return []
    differences = tuple(list(told)[:MOST_CHANGES])
    return [Finding.of("tools_changed", servers=tuple(sorted(servers)), changes=differences)]


def _tool_lists(trials: Iterable[Trial]) -> dict[str, set[str]]:
    """Return each server's digests of the tool lists it reported."""
    found: dict[str, set[str]] = {}
    for trial in trials:
        for told in trial.replay.tools if trial.replay is not None else ():
            server, _, digest = told.rpartition(" ")
            found.setdefault(server, set()).add(digest)
    return found
