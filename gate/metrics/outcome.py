"""Success and sameness of trials, counted over trials when the suite is judged; scores of the tool that ran them."""

from __future__ import annotations

from itertools import chain

from pydantic import Field

from gate.metrics.base import NO_CONTENT, Metric, NoOptions, Options, OverTrials, TrialOutput
from gate.model import Case, Scale, Score


class PassRate(OverTrials[NoOptions]):
    """Passed trials / measured trials: the share of trials that meet every other blocking criterion.

    The mean over cases of each case's own share, over full epochs. Range 0–1 (shown in percent), typically at least
    0.85. A drop against the baseline blocks even without this criterion. Source:
    pass rate = passed / total, as in the evaluation of agents.
    """

    scale = Scale.BINARY
    needs_others = True


class PassKOptions(Options):
    """The number of trials."""

    k: int = Field(default=3, ge=2, le=25)
    """Number of trials per case that must all pass."""


class PassK(OverTrials[PassKOptions]):
    """pass^k: the probability that k trials of a case all pass, that is, meet every other blocking criterion.

    C(s, k) / C(n, k) for a case in which s of n trials passed, over full epochs, which is unbiased; the mean over
    cases, with Student's interval over cases (Wilson's if each case is 0 or 1). Range 0–1, typically at least
    0.7. It needs at least k trials per case. Only its threshold blocks; reports show a change against the
    baseline. Source: Yao et al. 2024, τ-bench.
    """

    options_type = PassKOptions
    scale = Scale.SHARE
    needs_others = True


class StrategyConsistency(OverTrials[NoOptions]):
    """1 if two trials of a case, or of cases marked as equivalent, used the same tools in the same order, else 0.

    The suite's mean is the probability that the agent takes the same steps twice (1 − Gini–Simpson index of its tool
    patterns). Range 0–1, typically at least 0.8. Only its threshold blocks; reports show a change against the
    baseline. Source: Simpson (1949), "Measurement of diversity".
    """

    reads_tools = True
    scale = Scale.BINARY
    told = "compared with other trials when the suite is judged"


class RecordedOptions(Options):
    """The scorer whose scores are used."""

    scorer: str = ""
    """The scorer's name in the tool that recorded the trials."""


class RecordedScore(Metric[RecordedOptions]):
    """The score that another tool's scorer gave a recorded trial, with its reason; the gate does not rescore.

    Range 0–1, 1 for full credit; a trial passes with 1 unless a threshold says otherwise. It does not apply to a
    trial without this score. Files of Inspect, promptfoo and google-adk contain it; `criteria` in gate.yaml sets
    which scorers decide. Source: the scores in an Inspect log, and the verdicts in other tools' results.
    """

    options_type = RecordedOptions
    pass_threshold = 1.0
    needed_option = "scorer"
    reads = NO_CONTENT

    def score(self, case: Case, performance: TrialOutput) -> Score:
        scored = chain.from_iterable(turn.foreign for turn in performance.invocations)
        found = next((one for one in scored if one.scorer == self.options.scorer), None)
        if found is None:
            return Score(None, reason=f"{self.options.scorer} scored nothing in this trial")
        if found.value is None:
            return Score(None, error=found.reason or f"{self.options.scorer} gave no score")
        return Score(found.value, found.reason or f"{self.options.scorer}: {found.value:g}")
