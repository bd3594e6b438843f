"""People's labels for a judge's answers, as the counts behind a correction; never the labels themselves."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gate.model.trial import Models

MAX_LABELS = 1_000_000
"""An upper bound on counts in a file: nobody labels more by hand."""
LabelCount = Annotated[int, Meta(ge=0, le=MAX_LABELS)]
_Points = Annotated[float, Meta(ge=-100, le=100)]
"""A difference between two scores on any bounded scale."""


class GradedLabels(Struct, frozen=True, forbid_unknown_fields=True):
    """The differences between people's scores and the judge's, on the metric's scale."""

    labels: Annotated[int, Meta(ge=2, le=MAX_LABELS)]
    bias: _Points
    """Mean of people's score minus the judge's."""
    sd: Annotated[float, Meta(ge=0, le=100)]
    """Standard deviation (n − 1) of these differences."""
    correlation: Annotated[float, Meta(ge=-1, le=1)]
    """Pearson's correlation of people's scores and the judge's; 0 if either are all equal."""


class JudgeCalibration(Struct, frozen=True, forbid_unknown_fields=True):
    """A judge's verdicts and people's on the same answers, for one criterion with its current options."""

    both_pass: LabelCount
    both_fail: LabelCount
    only_judge: LabelCount
    """Answers that the judge passes and people fail: the costly kind."""
    only_people: LabelCount
    graded: GradedLabels | None = None
    """None if the labels are pass or fail."""
    judges: Models = ()
    """The models that gave these verdicts."""

    @property
    def labels(self) -> int:
        return self.both_pass + self.both_fail + self.only_judge + self.only_people

    @property
    def agreed(self) -> int:
        return self.both_pass + self.both_fail

    @property
    def passed(self) -> int:
        """Return the number of answers that people pass."""
        return self.both_pass + self.only_people

    @property
    def failed(self) -> int:
        """Return the number of answers that people fail."""
        return self.both_fail + self.only_judge
