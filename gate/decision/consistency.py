"""Scores pairs of trials by whether the agent goes the same way twice, which no metric of a single trial can.

docs/dev/decisions/0007-strategy-consistency.md says why the pairs are disjoint, and why they never decide a regression.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby

from msgspec.structs import replace

from gate.model import FULL, Case, Criterion, Score, Side, Trial
from gate.security.limits import shorten

METRIC = "strategy_consistency"
MAX_SHOWN_CALLS = 12
TOO_FEW = "trials are compared with one another, and no case (or group of equivalent ones) was run twice"
NO_TOOLS = "the agent reports no tool calls, so there is no pattern to compare"

Pattern = tuple[tuple[str, ...], ...]
"""Names of the tools in order, turn by turn; the same tool several times in a row counts once."""


def group_of(case: Case) -> str:
    """The group of equivalent cases that the author put this one into (``metadata: {equivalent: name}``), or none."""
    return _name_in(case, "equivalent")


def cluster_of(case: Case) -> str:
    """The cluster that the author put this case into (``cluster: name``, or in its metadata), or none."""
    return case.cluster or _name_in(case, "cluster")


def clusters_of(cases: Iterable[Case]) -> dict[str, str]:
    """Return the cluster of each case that is in one, by its id."""
    found = {}
    for case in cases:
        cluster = cluster_of(case)
        if cluster:
            found[case.id] = cluster
    return found


def in_cluster(case: Case, cluster: str) -> Case:
    """The case in this cluster, whatever it states; empty: in none."""
    metadata = case.metadata
    if not cluster and "cluster" in metadata:
        metadata = {name: value for name, value in metadata.items() if name != "cluster"}
    return replace(case, cluster=cluster, metadata=metadata)


def _name_in(case: Case, key: str) -> str:
    stated = case.metadata.get(key)
    return str(stated) if isinstance(stated, str | int) and not isinstance(stated, bool) else ""


def compares_trials(criteria: Iterable[Criterion]) -> bool:
    """True if deciding needs the tool calls of every trial."""
    return any(criterion.metric == METRIC for criterion in criteria)


def pattern(trial: Trial) -> Pattern:
    return tuple(tuple(name for name, _ in groupby(call.name for call in i.tool_calls)) for i in trial.invocations)


def compared(
    cases: Sequence[Case], criteria: Iterable[Criterion], trials: Sequence[Trial], apart: Collection[str] = ()
) -> tuple[Trial, ...]:
    """The trials with the scores of `METRIC`, where a criterion asks for it; ``apart``: cases in no group.

    Of each side, the measured trials of epochs are taken in the order of passes and of cases, and cut into
    consecutive pairs of the same case or group. The second of a pair scores 1 where both have the same pattern, else 0;
    the first, and one that is left over, have none.
    """
    names = [criterion.name for criterion in criteria if criterion.metric == METRIC]
    if not names:
        return tuple(trials)
    scores: dict[int, Score] = {}
    for side in Side:
        chosen = [(n, t) for n, t in enumerate(trials) if t.side is side and t.answered and t.tag == FULL]
        scores |= _scores(_queues(cases, chosen, apart))
    return tuple(
        replace(trial, scores={**trial.scores, **dict.fromkeys(names, scores[n])}) if n in scores else trial
        for n, trial in enumerate(trials)
    )


def lacks_pairs(criteria: Iterable[Criterion], trials: Iterable[Trial]) -> bool:
    """True if a further epoch would let a blocking criterion of `METRIC` be measured."""
    names = [criterion.name for criterion in criteria if criterion.metric == METRIC and criterion.blocking]
    scores = [trial.scores[name] for trial in trials for name in names if name in trial.scores]
    return any(score.error == TOO_FEW for score in scores)


Queue = Sequence[tuple[int, Trial]]
"""Trials with their positions, in the order in which they are paired."""


def _queues(cases: Sequence[Case], trials: Queue, apart: Collection[str]) -> list[Queue]:
    by_case: dict[str, list[tuple[int, Trial]]] = {}
    for position, trial in sorted(trials, key=lambda item: (item[1].round, item[1].number)):
        by_case.setdefault(trial.case_id, []).append((position, trial))
    groups: dict[tuple[str, str], list[tuple[int, int, tuple[int, Trial]]]] = {}
    for order, case in enumerate(cases):
        group = "" if case.id in apart else group_of(case)
        key = (group, "" if group else case.id)
        for number, item in enumerate(by_case.get(case.id, ())):
            groups.setdefault(key, []).append((number, order, item))
    return [[item for _, _, item in sorted(queue, key=lambda one: one[:2])] for queue in groups.values()]


def _scores(queues: Sequence[Queue]) -> Mapping[int, Score]:
    problem = "" if any(call for queue in queues for _, t in queue for call in pattern(t) if call) else NO_TOOLS
    if not any(len(queue) > 1 for queue in queues):
        problem = TOO_FEW
    if problem:
        return {position: Score(None, error=problem) for queue in queues for position, _ in queue}
    scores = {}
    for queue in queues:
        for (_, first), (position, second) in zip(queue[::2], queue[1::2], strict=False):
            scores[position] = _compare(first, second)
    return scores


def _compare(first: Trial, second: Trial) -> Score:
    same = pattern(first) == pattern(second)
    other = f"trial {first.number}" + ("" if first.case_id == second.case_id else f" of {first.case_id}")
    if same:
        return Score(1.0, f"as {other}: {_words(pattern(second))}")
    return Score(0.0, f"{_words(pattern(second))}; {other}: {_words(pattern(first))}")


def _words(found: Pattern) -> str:
    names = [shorten(name if name.isprintable() else repr(name), 80) for turn in found for name in turn]
    more = [f"… {len(names) - MAX_SHOWN_CALLS} more"] if len(names) > MAX_SHOWN_CALLS else []
    return " → ".join(names[:MAX_SHOWN_CALLS] + more) or "no call"
