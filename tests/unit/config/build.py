"""Scorers from criteria as a file states them: the road that a suite's criteria take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gate.config.criteria import Setting, build_scorers
from gate.config.specs import read_specs
from gate.model import Case
from gate.scoring.score import Scorer


def scorers_of(
    raw: Mapping[str, Any], cases: Sequence[Case], setting: Setting, *, adk: bool = False
) -> tuple[Scorer, ...]:
    """One scorer per criterion, in the order written."""
    return build_scorers(read_specs(raw, setting.place.at, adk=adk), cases, setting)
