"""The trials behind a verdict, for the reports that show them: read again from the record, with its baseline's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gate.baselines.pairing import Reference, pair
from gate.errors import MeasureError
from gate.model import Trial
from gate.pipeline.verdict import Terms
from gate.records import Header, Record, cases_of, iter_trials
from gate.reports.trials import SuiteTrials


def shown_trials(source: Path | Record, header: Header, reference: Reference, terms: Terms) -> SuiteTrials:
    """What the record and the reference that it is compared with first hold of each case."""

    def read() -> Iterable[Trial]:
        return source.trials if isinstance(source, Record) else iter_trials(source, error=MeasureError)

    paired = pair(header.plan, terms.criteria, reference)
    return SuiteTrials(cases_of(header, terms.thresholds), terms.criteria, read, paired.trials)
