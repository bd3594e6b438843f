"""The trials behind a verdict, for the reports that show what was asked and answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from gate.model import Case, Criterion, Trial


class SuiteTrials(Struct, frozen=True):
    """Questions and answers in one suite. Texts are as they are recorded: redacted when they were written."""

    cases: Sequence[Case]
    """The planned cases; of their expectations, a record holds only the calls."""
    criteria: Sequence[Criterion]
    """The criteria that decide whether a trial passes."""
    read: Callable[[], Iterable[Trial]]
    """Reads the record's trials, one at a time, so that any record fits."""
    baseline: Sequence[Trial] = ()
    """The trials that it is compared with, under the ids that their cases have now."""
