"""What stays in memory of a trial whose record is on disk."""

from __future__ import annotations

from msgspec.structs import replace

from gate.config.resolve import Plan
from gate.model import Trial
from gate.pipeline.verdict import MAX_SHOWN_CHARS
from gate.records import from_digest
from gate.scoring.batch import ScoringSetup


class Memory:
    """What stays in memory of a trial that is on disk, so that a run of any length fits."""

    def __init__(self, plan: Plan) -> None:
        self._room = MAX_SHOWN_CHARS
        self._cases, self._setup = plan.cases, ScoringSetup(plan.scorers)

    def keep(self, trial: Trial) -> Trial:
        """What stays of a trial that was run or read here."""
        return self.fit(from_digest(trial, self._setup.digest(trial, self._cases.get(trial.case_id))))

    def fit(self, kept: Trial) -> Trial:
        """What stays of a trial that is a digest already: its answers only while there is room."""
        chars = sum(len(turn.text) for turn in kept.invocations)
        if chars and self._room <= 0:
            return replace(kept, invocations=tuple(replace(turn, response=()) for turn in kept.invocations))
        self._room -= chars
        return kept
