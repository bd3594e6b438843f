"""`gate baseline diff`: the differences between two records, case by case, in words.

Both are compared in their stripped form, and only trials of each record's own agent count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gate.decision.consistency import compared
from gate.decision.outcomes import RATE_METRIC, outcomes_by_case
from gate.model import Criterion, Scale, Side, ToolCall, Trial
from gate.records import Record, cases_of, read_record, strip
from gate.reports.formatting import NOT_MEASURED, count, figure
from gate.reports.labels import UNCOMMITTED
from gate.reports.table import table
from gate.reports.trajectory_diff import call_text
from gate.security.escape import console

NAMES = {
    "suite_id": "suite",
    "commit": "commit",
    "agent": "agent's version",
    "gate_version": "gate version",
    "dirty": "work tree",
}
"""The fields of a record's header that are compared, with their names."""
SHORT = 12
"""Characters shown of a commit or a fingerprint."""
MOST_SHOWN = 3
"""The most trajectories shown per case and side."""
STATUSES = {"same": "same case", "changed": "edited case", "added": "added case", "removed": "removed case"}
"""The change in the case itself; its results are listed separately."""
Mean = tuple[float | None, int]
"""A mean, or None without scores, and the number of its values."""
Trajectory = tuple[tuple[ToolCall, ...], ...]
"""The calls of each turn."""


class CaseDiff(Struct, frozen=True):
    """One case in both records, with its trials; a record without the case has no trials of it."""

    id: str
    status: str
    """``added``, ``removed``, ``changed`` (different content, so not comparable) or ``same``."""
    old: Sequence[Trial]
    new: Sequence[Trial]

    def means(self, criterion: str) -> tuple[Mean, Mean]:
        """Return the old and the new mean, without reruns, which were picked by outcome."""
        return _mean_of_scores(self.old, criterion), _mean_of_scores(self.new, criterion)

    def trajectories(self) -> tuple[list[tuple[Trajectory, int]], list[tuple[Trajectory, int]]]:
        """Return the trajectories found in the old record only, and in the new one only, each with its number of
        trials.

        The most frequent come first.
        """
        before, after = _trajectories(self.old), _trajectories(self.new)
        old_only = [way for key, way in before.items() if key not in after]
        new_only = [way for key, way in after.items() if key not in before]
        return old_only, new_only


# --- the differences ------------------------------------------------------------------------------


def own_part(record: Record) -> Record:
    """Return the record stripped, with only the trials of its own agent."""
    own = [trial for trial in record.trials if trial.side is Side.CANDIDATE]
    return strip(replace(record, trials=tuple(own)))


def header_differences(old: Record, new: Record) -> dict[str, tuple[Any, Any]]:
    """Return the fields of the header that differ, old and new."""
    found = {}
    for name in NAMES:
        before, after = getattr(old.header, name), getattr(new.header, name)
        if before != after:
            found[name] = (before, after)
    return found


def criterion_differences(old: Record, new: Record) -> dict[str, tuple[str, str]]:
    """Return the differences in each criterion, old and new, in words; an empty text if a record lacks it."""
    before = {criterion.name: criterion for criterion in old.header.criteria}
    after = {criterion.name: criterion for criterion in new.header.criteria}
    found = {}
    for name in criterion_names(old, new):
        if name not in before:
            found[name] = ("", after[name].metric)
        elif name not in after:
            found[name] = (before[name].metric, "")
        else:
            was, now = _words(before[name], after[name])
            if was != now:
                found[name] = (was, now)
    return found


def criterion_names(old: Record, new: Record) -> list[str]:
    """Return the criteria of both records, those of the new one first."""
    return list(dict.fromkeys(criterion.name for criterion in (*new.header.criteria, *old.header.criteria)))


def case_diffs(old: Record, new: Record) -> list[CaseDiff]:
    """Return the cases of the new record in its order, then those that were removed."""
    before = old.header.contents
    after = new.header.contents
    trials_before, trials_after = _by_case(old), _by_case(new)
    found = []
    for case_id in dict.fromkeys((*after, *before)):
        if case_id not in before:
            status = "added"
        elif case_id not in after:
            status = "removed"
        elif before[case_id] != after[case_id]:
            status = "changed"
        else:
            status = "same"
        found.append(CaseDiff(case_id, status, trials_before.get(case_id, []), trials_after.get(case_id, [])))
    return found


def means_over(cases: Iterable[CaseDiff], criterion: str) -> tuple[Mean, Mean]:
    """Return the old and the new mean over the unchanged cases, each case counting by its own mean."""
    old, new = [], []
    for case in cases:
        if case.status != "same":
            continue
        (before, _), (after, _) = case.means(criterion)
        if before is not None:
            old.append(before)
        if after is not None:
            new.append(after)
    return _mean(old), _mean(new)


def _by_case(record: Record) -> dict[str, list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for trial in record.trials:
        found.setdefault(trial.case_id, []).append(trial)
    return found


def _mean_of_scores(trials: Iterable[Trial], criterion: str) -> Mean:
    values = []
    for trial in trials:
        score = trial.scores.get(criterion)
        if trial.is_of_epoch and score is not None and score.value is not None:
            values.append(score.value)
    return _mean(values)


def _mean(values: Sequence[float]) -> Mean:
    if not values:
        return None, 0
    return sum(values) / len(values), len(values)


def _trajectories(trials: Iterable[Trial]) -> dict[str, tuple[Trajectory, int]]:
    """Return the distinct trajectories of measured trials, most frequent first, each with its number of trials."""
    found: dict[str, tuple[Trajectory, int]] = {}
    for trial in trials:
        if trial.error is not None:
            continue
        turns = tuple(turn.tool_calls for turn in trial.invocations)
        made = []
        for calls in turns:
            made.append([(call.name, call.args) for call in calls])
        key = json.dumps(made, sort_keys=True)
        _, earlier = found.get(key, (turns, 0))
        found[key] = turns, earlier + 1
    return dict(sorted(found.items(), key=lambda item: -item[1][1]))


# --- as text --------------------------------------------------------------------------------------


def diff_records(old: Path, new: Path, width: int | None = None) -> str:
    """Return the differences between two records, case by case."""
    whole_before, whole_after = read_record(old), read_record(new)
    before, after = own_part(whole_before), own_part(whole_after)
    lines = []
    for name, (was, now) in header_differences(before, after).items():
        lines.append(f"{NAMES[name]}: {_plain_field(name, was)} → {_plain_field(name, now)}")
    for name, words in criterion_differences(before, after).items():
        lines.append(f"criterion {name}: {words[0] or 'absent'} → {words[1] or 'absent'}")
    shown = [console(line) for line in lines] or ["same plan and criteria"]
    cases = case_diffs(before, after)
    scales = {one.name: one.scale for one in (*before.header.criteria, *after.header.criteria)}
    rows = [("criterion", "old", "new")]
    for name in criterion_names(before, after):
        was, now = means_over(cases, name)
        rows.append((name, _mean_text(was, scales[name]), _mean_text(now, scales[name])))
    passed_before, passed_after = _passes(whole_before), _passes(whole_after)
    told = []
    for case in cases:
        told += _case_lines(case, passed_before.get(case.id, (0, 0)), passed_after.get(case.id, (0, 0)))
    return "\n".join([*shown, table(rows, width), *told])


def _plain_field(name: str, value: Any) -> str:
    if name == "dirty":
        return UNCOMMITTED if value else "clean"
    if name == "commit":
        return str(value or "no commit")[:SHORT]
    if name == "agent":
        return str(value or "unknown")[:SHORT]
    return str(value or "unknown")


def _words(one: Criterion, other: Criterion) -> tuple[str, str]:
    """Return the fields in which the two differ, spelled out for each."""
    old, new = [], []
    for name in Criterion.__struct_fields__:
        before, after = getattr(one, name), getattr(other, name)
        if before != after:
            label = name.replace("_", " ")
            old.append(f"{label} {_plain(before)}")
            new.append(f"{label} {_plain(after)}")
    return ", ".join(old), ", ".join(new)


def _plain(value: Any) -> str:
    """Return a value as people write it, not as Python does."""
    if isinstance(value, Enum):
        return str(value.value)
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, tuple | list):
        return " ".join(map(_plain, value)) or "none"
    return str(value) or "none"


def _mean_text(mean: Mean, scale: Scale) -> str:
    value, n = mean
    if value is None:
        return "–"
    return f"{figure(value, scale)} (n = {n})"


def _passes(record: Record) -> Mapping[str, tuple[int, int]]:
    """Return the numbers of passing and of decided trials by case, by the record's own demands."""
    cases = {case.id: case for case in cases_of(record.header)}
    criteria = [one for one in record.header.criteria if one.metric != RATE_METRIC]
    trials = compared(list(cases.values()), record.header.criteria, record.trials)
    outcomes = outcomes_by_case(trials, criteria, cases)
    return {case_id: (sum(passes), len(passes)) for case_id, passes in outcomes.items()}


def _case_lines(case: CaseDiff, before: tuple[int, int], after: tuple[int, int]) -> list[str]:
    """Return the lines on a case; none if nothing differs. ``before`` and ``after``: passing and decided trials."""
    old_only, new_only = case.trajectories()
    moved = before[0] * after[1] != after[0] * before[1]
    if case.status == "same" and not old_only and not new_only and not moved:
        return []
    trials = f"{len(case.old)} → {count(len(case.new), 'trial')}"
    passed = f"{_share(before)} → {_share(after)}"
    lines = [f"{console(case.id)}: {STATUSES[case.status]}, passed {passed}, {trials}"]
    for sign, ways in (("-", old_only), ("+", new_only)):
        for turns, number in ways[:MOST_SHOWN]:
            calls = []
            for turn in turns:
                calls.append(", ".join(map(call_text, turn)) or "(no call)")
            lines.append(f"  {sign} {number}× {' | '.join(calls)}")
    return lines


def _share(passes: tuple[int, int]) -> str:
    good, known = passes
    if not known:
        return NOT_MEASURED
    return f"{good}/{known}"
