"""Which trials of an earlier session ran during an outage and must be run again."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from gate.baselines.beside import with_base
from gate.baselines.pairing import Reference, pair
from gate.config.resolve import Plan
from gate.decision import Situation, spoiled
from gate.model import APART, Trial
from gate.pipeline.session import Session
from gate.records import Header


class Spoiled(Struct, frozen=True):
    """Knows what of an earlier session was run in an outage."""

    session: Session
    plan: Plan
    references: Sequence[Reference]
    header: Header

    def among(self, trials: Sequence[Trial]) -> Sequence[Trial]:
        """The trials among these that are to be run again; never recordings, which cannot change."""
        plan, shard = self.plan, self.header.shard
        references = with_base(self.header, trials, self.references)
        trials = [trial for trial in trials if trial.tag not in APART]
        if not trials or self.session.config.agent_kind == "replay":
            return ()
        own = {case.id for case in self.header.plan if case.shard == shard[0]}
        cases = [case for case in plan.suite.cases if case.id in own]
        found = []
        for reference in references:
            paired = pair(plan.planned, plan.criteria, reference)
            before = paired.trials if shard[1] == 1 else ()  # few cases are no sample of the suite: all have to fail
            apart, settings = paired.not_comparable, self.session.settings
            found.append(spoiled(Situation(cases, plan.criteria, trials, before, settings, not_comparable=apart)))
        return min(found, key=len)  # what counts against one of them counts
