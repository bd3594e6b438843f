"""A suite of one or two cases: nothing is beyond two cases' worth, so it passes by what chance would show."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from gate.decision import Settings
from gate.model import Side, Verdict

from .records import TRAJECTORY, cases, follow, judge, stored, trial


def verdicts(rates: list[float], runs: int) -> Counter[Verdict]:
    """What comes of so many runs on five stored trials a case, each of which passes as often before and now."""
    suite, found = cases(len(rates)), Counter[Verdict]()
    for seed in range(runs):
        random = Random(seed)
        before = [
            trial(case.id, number, trajectory=float(random.random() < rate))
            for case, rate in zip(suite, rates, strict=True)
            for number in range(1, 6)
        ]
        chance = {case.id: rate for case, rate in zip(suite, rates, strict=True)}

        def agent(
            case_id: str, side: Side, random: Random = random, chance: dict[str, float] = chance
        ) -> dict[str, float]:
            return {"trajectory": float(random.random() < chance[case_id])}

        result, _ = follow(suite, [TRAJECTORY], agent, before, Settings(rerun="never"))
        found[result.verdict] += 1
    return found


@pytest.mark.parametrize("n", [1, 2])
def test_a_collapse_does_not_pass(n: int) -> None:
    suite = cases(n)
    before = stored(suite, trajectory=1.0)
    now = [trial(case.id, k, trajectory=float(k == 1)) for case in suite for k in (1, 2, 3)]
    result = judge(suite, [TRAJECTORY], now, before, settings=Settings(exact_epochs=3))
    assert result.verdict is not Verdict.PASS, "5/5 at the baseline, 1/3 now"


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("runs", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_an_unchanged_agent_passes(n: int, runs: int) -> None:
    assert verdicts([1.0] * n, runs=1) == verdicts([0.0] * n, runs=1) == {Verdict.PASS: 1}
    for rate in (0.9, 0.7):
        found = verdicts([rate] * n, runs)
        assert found[Verdict.PASS] >= 0.75 * runs
        assert found[Verdict.PASS] >= 0.9 * runs or runs < 60
    assert not verdicts([0.9] * n, runs)[Verdict.REGRESSED]
