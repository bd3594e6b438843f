"""google-adk's metric for simulated users, which our cases do without."""

from __future__ import annotations

from gate.metrics.base import Metric, TrialOutput
from gate.metrics.judged import AdkJudgeOptions
from gate.model import Case, Score


class UserSimulatorOptions(AdkJudgeOptions):
    stop_signal: str = "</finished>"


class UserSimulatorQuality(Metric[UserSimulatorOptions]):
    """Whether a simulated user kept to its scenario. Every case here states its user's turns, so it never applies."""

    options_type = UserSimulatorOptions

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return Score(None, reason="the user's turns are written in the case; no simulated user to judge")
