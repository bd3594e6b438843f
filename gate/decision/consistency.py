"""Scores pairs of trials by whether the agent proceeds the same way twice, which no metric of a single trial can do.

docs/dev/decisions/0007-strategy-consistency.md explains why the pairs are disjoint and never decide a regression.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, groupby, zip_longest

from msgspec.structs import replace

from gate.model import FULL, Case, Criterion, Score, Side, Trial
from gate.security.limits import shorten

METRIC = "strategy_consistency"
MAX_SHOWN_CALLS = 12
TOO_FEW = "trials are compared with one another, and no case (or group of equivalent ones) was run twice"
NO_TOOLS = "the agent reports no tool calls, so there is no pattern to compare"

Pattern = tuple[tuple[str, ...], ...]
"""Names of the tools in order, turn by turn; consecutive calls of the same tool count once."""


def group_of(case: Case) -> str:
    """Return the group of equivalent cases that the author put this one into (``metadata: {equivalent: name}``), if
    any."""
    return _name_in(case, "equivalent")


def cluster_of(case: Case) -> str:
    """Return the cluster that the author put this case into (``cluster: name``, or in its metadata), if any."""
    return case.cluster or _name_in(case, "cluster")


def clusters_of(cases: Iterable[Case]) -> dict[str, str]:
    """Return the clusters by case id, without cases that are in none."""
    found = {}
    for case in cases:
        cluster = cluster_of(case)
        if cluster:
            found[case.id] = cluster
    return found


def in_cluster(case: Case, cluster: str) -> Case:
    """Return the case in this cluster, whatever it states itself; an empty name means no cluster."""
    metadata = case.metadata
    if not cluster and "cluster" in metadata:
        metadata = {name: value for name, value in metadata.items() if name != "cluster"}
    return replace(case, cluster=cluster, metadata=metadata)


def _name_in(case: Case, key: str) -> str:
    stated = case.metadata.get(key)
    if isinstance(stated, bool) or not isinstance(stated, str | int):
        return ""
    return str(stated)


def compares_trials(criteria: Iterable[Criterion]) -> bool:
    """True if the decision needs the tool calls of every trial."""
    return any(criterion.metric == METRIC for criterion in criteria)


def pattern(trial: Trial) -> Pattern:
    """Return the pattern of the tools that a trial called."""
    found = []
    for turn in trial.invocations:
        names = [call.name for call in turn.tool_calls]
        found.append(tuple([name for name, _ in groupby(names)]))
    return tuple(found)


def compared(
    cases: Sequence[Case], criteria: Iterable[Criterion], trials: Sequence[Trial], apart: Collection[str] = ()
) -> tuple[Trial, ...]:
    """Return the trials with the scores of `METRIC` if a criterion uses it; ``apart``: cases in no group.

    On each side, the measured trials of epochs are ordered by epoch and case and split into consecutive pairs of the
    same case or group. The second of a pair scores 1 if both have the same pattern, else 0; the first of a pair and an
    unpaired last trial have no score.
    """
    names = [criterion.name for criterion in criteria if criterion.metric == METRIC]
    if not names:
        return tuple(trials)
    scores: dict[int, Score] = {}
    for side in Side:
        chosen: list[tuple[int, Trial]] = []
        for position, trial in enumerate(trials):
            if trial.side is side and trial.answered and trial.tag == FULL:
                chosen.append((position, trial))
        scores |= _scores(_queues(cases, chosen, apart))
    found = list(trials)
    for position, score in scores.items():
        trial = trials[position]
        found[position] = replace(trial, scores={**trial.scores, **dict.fromkeys(names, score)})
    return tuple(found)


Queue = Sequence[tuple[int, Trial]]
"""Trials with their positions, in pairing order."""


def _queues(cases: Sequence[Case], trials: Queue, apart: Collection[str]) -> list[Queue]:
    """Return the trials of each group, or of each ungrouped case, epoch by epoch in the order of the cases."""
    by_case: dict[str, list[tuple[int, Trial]]] = {}
    for position, trial in sorted(trials, key=lambda item: (item[1].round, item[1].number)):
        by_case.setdefault(trial.case_id, []).append((position, trial))
    groups: dict[tuple[str, str], list[Queue]] = {}
    for case in cases:
        key = ("", case.id)
        if case.id not in apart and group_of(case):
            key = (group_of(case), "")
        if case.id in by_case:
            groups.setdefault(key, []).append(by_case[case.id])
    queues: list[Queue] = []
    for members in groups.values():
        in_turn = chain.from_iterable(zip_longest(*members))
        queues.append([item for item in in_turn if item is not None])
    return queues


def _scores(queues: Sequence[Queue]) -> Mapping[int, Score]:
    problem = ""
    if not any(len(queue) > 1 for queue in queues):
        problem = TOO_FEW
    elif not any(any(pattern(trial)) for _, trial in chain.from_iterable(queues)):
        problem = NO_TOOLS
    scores = {}
    for queue in queues:
        if problem:
            for position, _ in queue:
                scores[position] = Score(None, error=problem)
            continue
        for (_, first), (position, second) in zip(queue[::2], queue[1::2], strict=False):
            scores[position] = _compare(first, second)
    return scores


def _compare(first: Trial, second: Trial) -> Score:
    other = f"trial {first.number}"
    if first.case_id != second.case_id:
        other += f" of {first.case_id}"
    before, now = pattern(first), pattern(second)
    if before == now:
        return Score(1.0, f"as {other}: {_words(now)}")
    return Score(0.0, f"{_words(now)}; {other}: {_words(before)}")


def _words(found: Pattern) -> str:
    words = []
    for name in chain.from_iterable(found):
        words.append(shorten(name if name.isprintable() else repr(name), 80))
    if len(words) > MAX_SHOWN_CALLS:
        words[MAX_SHOWN_CALLS:] = [f"… {len(words) - MAX_SHOWN_CALLS} more"]
    return " → ".join(words) or "no call"
