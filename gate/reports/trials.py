"""The trials behind a verdict, for the reports that show questions and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from gate.model import Case, Criterion, Trial


class SuiteTrials(Struct, frozen=True):
    """Questions and answers in one suite. Texts are as in the record, already redacted."""

    cases: Sequence[Case]
    """The planned cases; a record has only the calls of their expectations."""
    criteria: Sequence[Criterion]
    """The criteria that decide whether a trial passes."""
    read: Callable[[], Iterable[Trial]]
    """Reads the record's trials one at a time, so that records of any size fit in memory."""
    baseline: Sequence[Trial] = ()
    """The trials to compare with, under the present ids of their cases."""
