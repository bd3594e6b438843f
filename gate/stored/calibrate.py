"""`gate calibrate`: compares a judge with human labels, stores their agreement, and describes it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from gate.config.load import Config
from gate.config.people import mark_of
from gate.config.resolve import make_plans
from gate.errors import ConfigError
from gate.judges.calibration import calibrate, check_file, describe, read_labels, save
from gate.judges.options import CALIBRATION_FILE
from gate.metrics.base import TrialOutput
from gate.metrics.judged import JudgedMetric
from gate.pipeline.budget import judge_of
from gate.scoring.score import judged_score


async def calibrate_judge(config: Config, labels: Path, metric: str, environment: Mapping[str, str]) -> str:
    """Score labelled answers with a judged criterion, and store its agreement with people next to the configuration."""
    plans = make_plans(config, environment, calibrating=True)
    scorers = chain.from_iterable([plan.scorers for plan in plans])
    scorer = next((one for one in scorers if one.criterion.name == metric), None)
    if scorer is None or not isinstance(scorer.metric, JudgedMetric):
        what = f"{metric!r} is not a judged criterion of this configuration"
        raise ConfigError(what, where=str(config.path), hint="name it under `criteria`, with its threshold")
    judged, mark = scorer.metric, mark_of(scorer.criterion)
    if mark is None:
        raise ConfigError(f"{metric!r} has no threshold that separates pass from fail", where=str(config.path))
    path = config.root / CALIBRATION_FILE
    check_file(path)
    said = read_labels(labels, scorer.criterion.scale.range)
    async with judge_of(config, environment) as judge:
        found = await calibrate(
            said,
            lambda case, invocation: judged_score(judged, case, TrialOutput((invocation,)), judge),
            lambda value: value >= mark,
        )
    save(path, scorer.criterion.fingerprint, replace(found, threshold=mark), metric)
    return f"{describe(found)}\nkept in {path}"
