"""Whether trials pass: counted from the other scores by gate/decision/comparison.py when the suite is judged."""

from __future__ import annotations

from gate.metrics.base import NO_CONTENT, Metric, NoOptions, TrialOutput
from gate.model import Case, Scale, Score


class PassRate(Metric[NoOptions]):
    """Passed trials / measured trials: the share of trials that hold every other blocking criterion.

    The mean over cases of each case's own share, over full epochs. Range 0–1 (shown in percent), typically at least
    0.85. Gated by threshold; a drop against the baseline is metric 0's and blocks without this criterion, too. Source:
    pass rate = passed / total, as in the evaluation of agents.
    """

    scale = Scale.BINARY
    over_trials = True
    needs_others = True

    @property
    def reads(self) -> frozenset[str]:
        return NO_CONTENT

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return Score(None, reason="counted over the trials when the suite is judged")
