"""Scores whether an agent takes the same steps twice. It needs several trials: gate/decision/consistency.py compares
them."""

from __future__ import annotations

from gate.metrics.base import NoOptions, OverTrials
from gate.model import Scale


class StrategyConsistency(OverTrials[NoOptions]):
    """1 if two trials of a case, or of cases marked as equivalent, used the same tools in the same order, else 0.

    The suite's mean is the probability that the agent takes the same steps twice (1 − Gini–Simpson index of its tool
    patterns). Range 0–1, typically at least 0.8. Only its threshold blocks; reports show a change against the
    baseline. Source: Simpson (1949), "Measurement of diversity".
    """

    reads_tools = True
    scale = Scale.BINARY
    told = "compared with other trials when the suite is judged"
