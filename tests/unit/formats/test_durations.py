"""One reader of durations, for agents and judges alike."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gate.agents.base import AgentOptions
from gate.judges.options import JudgeOptions


@pytest.mark.parametrize(
    ("written", "seconds"), [("500ms", 0.5), ("60s", 60), ("2m", 120), ("1h", 3600), ("1.5s", 1.5), ("7", 7), (3, 3)]
)
def test_agents_and_judges_read_durations_alike(written: Any, seconds: float) -> None:
    assert AgentOptions(timeout=written).timeout == JudgeOptions(timeout=written).timeout == seconds


@pytest.mark.parametrize("written", ["", "s", "5 minutes", "-1s", "0s", "nan", "1e3s", "٣s", 0, -1])
def test_what_is_no_duration_is_refused_by_both(written: Any) -> None:
    for options in (AgentOptions, JudgeOptions):
        with pytest.raises(ValidationError):
            options(timeout=written)
