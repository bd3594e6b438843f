"""The labels of people about a judge, as counts that a correction is computed from; never the labels themselves."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

MAX_LABELS = 1_000_000
"""Nobody labels more by hand; it bounds what a file may claim."""
LabelCount = Annotated[int, Meta(ge=0, le=MAX_LABELS)]
_Points = Annotated[float, Meta(ge=-100, le=100)]
"""A difference of two scores on any bounded scale."""


class GradedLabels(Struct, frozen=True, forbid_unknown_fields=True):
    """Labels that are scores: how far people's lie from the judge's, on the metric's scale."""

    labels: Annotated[int, Meta(ge=2, le=MAX_LABELS)]
    bias: _Points
    """Mean of people's score minus the judge's."""
    sd: Annotated[float, Meta(ge=0, le=100)]
    """Standard deviation (n − 1) of these differences."""
    correlation: Annotated[float, Meta(ge=-1, le=1)] | None = None
    """Pearson's, of people's scores and the judge's; 0 where either are all alike. None: not kept, by an earlier
    version."""


class JudgeCalibration(Struct, frozen=True, forbid_unknown_fields=True):
    """A judge's verdicts beside people's on the same answers, for one criterion as it measures now."""

    both_pass: LabelCount
    both_fail: LabelCount
    only_judge: LabelCount
    """The judge passes what people fail: the costly kind."""
    only_people: LabelCount
    graded: GradedLabels | None = None
    """None: labels say pass or fail."""

    @property
    def labels(self) -> int:
        return self.both_pass + self.both_fail + self.only_judge + self.only_people

    @property
    def agreed(self) -> int:
        return self.both_pass + self.both_fail

    @property
    def passed(self) -> int:
        """Answers that people pass."""
        return self.both_pass + self.only_people

    @property
    def failed(self) -> int:
        """Answers that people fail."""
        return self.both_fail + self.only_judge
