"""Which cases a shard runs, and that it never says more than it can know."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.baselines.reference import Reference
from gate.config.load import load_config
from gate.config.settings import settings_of
from gate.model import BaselineInfo, ErrorKind, Trial, TrialError, Verdict
from gate.pipeline.rounds import assigned_to_shards
from gate.pipeline.verdict import shard_result
from gate.records import Header, PlannedCase, Record
from gate.reports.view import View
from gate.system.clock import now

PLAN = tuple(PlannedCase(f"case-{n}", "fp") for n in range(10))


def config(tmp_path: Path, trials: str = "auto"):
    path = tmp_path / "gate.yaml"
    path.write_text(f"suite: s.yaml\nagent: {{command: a}}\ncriteria: {{safety_v1: 1}}\ntrials: {trials}\n")
    return load_config(path)


def reference(*trials: Trial) -> Reference:
    return Reference(BaselineInfo(None), (Record(Header("s", PLAN, ()), trials, None),))


def shard(index: int, total: int, *trials: Trial) -> Record:
    """A shard that has all cases of the plan."""
    plan = tuple(replace(case, shard=index) for case in PLAN)
    return Record(Header("s", plan, (), shard=(index, total), seed=4), trials, None)


@pytest.mark.parametrize(("trials", "passes"), [("auto", 3), ("{max: 5}", 5), ("2", 2)])
def test_passes(tmp_path: Path, trials: str, passes: int) -> None:
    assert settings_of(config(tmp_path, trials), now()).most_epochs == passes


def test_one_shard_is_the_plan_itself() -> None:
    assert assigned_to_shards(PLAN, reference(), 1) == PLAN


def test_slow_cases_are_kept_apart() -> None:
    known = reference(
        *(Trial(f"case-{n}", 1, duration=60.0 if n < 2 else 1.0) for n in range(10)),
        Trial("case-9", 2, duration=900.0, error=TrialError(ErrorKind.TIMEOUT, "")),
    )
    plan = assigned_to_shards(PLAN, known, 2)
    assert {plan[0].shard, plan[1].shard} == {1, 2}
    assert [case.hint for case in plan] == [60.0, 60.0, *[1.0] * 8]


@pytest.mark.parametrize(
    ("cases", "errors", "verdict"),
    [(10, 0, Verdict.INCONCLUSIVE), (10, 1, Verdict.INCONCLUSIVE), (10, 2, Verdict.ERROR), (9, 0, Verdict.ERROR)],
)
def test_what_a_shard_says(cases: int, errors: int, verdict: Verdict) -> None:
    failed = TrialError(ErrorKind.UNREACHABLE, "gone")
    trials = [Trial(f"case-{n}", 1, error=failed if n < errors else None) for n in range(cases)]
    result = shard_result(shard(2, 3, *trials), 0.1)
    assert (result.verdict, result.agent_runs, result.errors, result.seed) == (verdict, cases, errors, 4)
    assert (result.cause["shard"], result.cause["of"]) == (2, 3)


@pytest.mark.parametrize(("answers", "verdict"), [(0, Verdict.ERROR), (1, Verdict.INCONCLUSIVE)])
def test_a_shard_in_which_the_agent_fails_in_every_trial_measured_nothing(answers: int, verdict: Verdict) -> None:
    failed = TrialError(ErrorKind.CRASH, "no such module")
    trials = [Trial(f"case-{n}", 1, error=failed if n >= answers else None) for n in range(10)]
    result = shard_result(shard(1, 2, *trials), 0.1)
    assert result.verdict is verdict
    if not answers:
        assert "the agent failed in all 10 cases" in View(result).headline and "no such module" in View(result).headline


def test_a_shard_without_cases_has_measured() -> None:
    result = shard_result(Record(Header("s", (), (), shard=(9, 9)), (), None), 0.1)
    assert result.verdict is Verdict.INCONCLUSIVE
