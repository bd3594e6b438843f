"""Trials in which the agent failed instead of answering: where, how often, and when a block may rest on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gate.decision.compare import Comparison
from gate.limits import cut
from gate.model import CrashFacts, Trial

MAX_MESSAGE_CHARS = 200


def crash_facts(comparison: Comparison) -> CrashFacts | None:
    """Of the candidate's judged cases; None where the agent failed in none."""
    fell = {case.id: n for case in comparison.judged if (n := _failed(comparison.measured(case.id)))}
    if not fell:
        return None
    ids = tuple(sorted(fell, key=lambda case_id: (-fell[case_id], case_id)))
    before = [t for case_id in ids if case_id in comparison.with_baseline for t in earlier(comparison, case_id)]
    return CrashFacts(
        ids,
        sum(fell.values()),
        sum(len(comparison.measured(case_id)) for case_id in ids),
        _failed(before),
        len(before),
        _commonest([t for case_id in ids for t in comparison.measured(case_id)]),
    )


def earlier(comparison: Comparison, case_id: str) -> tuple[Trial, ...]:
    """The measured trials of the base commit's agent: stored, and run now."""
    return (*comparison.baseline.get(case_id, ()), *comparison.reruns.get(case_id, ()))


def _failed(trials: Sequence[Trial]) -> int:
    return sum(trial.failed for trial in trials)


def _commonest(trials: Sequence[Trial]) -> str:
    counts = Counter(f"{t.error.kind.value}: {t.error.message}" for t in trials if t.error is not None and t.failed)
    text = min(counts, key=lambda text: (-counts[text], text))
    return cut(" ".join(text.split()), MAX_MESSAGE_CHARS)


def in_words(facts: CrashFacts) -> str:
    """``3 cases crash: 0/15 → 9/15``."""
    before = f"{facts.baseline_failed}/{facts.baseline_trials} → " if facts.baseline_trials else ""
    crash = "1 case crashes" if len(facts.cases) == 1 else f"{len(facts.cases)} cases crash"
    return f"{crash}: {before}{facts.failed}/{facts.trials}"
