"""A suite of one or two cases: nothing is beyond two cases' worth, so it passes by what chance would show."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace

from gate.decision import Settings, exit_code
from gate.decision.comparison import Comparison
from gate.decision.problems import collapsed
from gate.errors import ExitCode
from gate.model import Case, Criterion, Direction, Scale, Side, Verdict
from gate.model.finding import Finding

from .records import TRAJECTORY, cases, follow, judge, stored, trial


def verdicts(rates: list[float], runs: int) -> Counter[Verdict]:
    """Return how many runs end in each verdict, with five stored trials per case, which passes as often as before."""
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
def test_much_less_than_before_does_not_pass(n: int) -> None:
    suite = cases(n)
    before = stored(suite, trajectory=1.0)
    now = [trial(case.id, k, trajectory=float(k == 1)) for case in suite for k in (1, 2, 3)]
    result = judge(suite, [TRAJECTORY], now, before, settings=Settings(exact_epochs=3))
    assert result.verdict is not Verdict.PASS, "5/5 at the baseline, 1/3 now"


# --- everything at its worst ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "kept", "verdict"),
    [
        (1, 5, Verdict.REGRESSED),
        (2, 5, Verdict.REGRESSED),
        (5, 5, Verdict.REGRESSED),
        (2, 1, Verdict.REGRESSED),
        (1, 1, Verdict.ERROR),
    ],
)
def test_a_collapse_is_run_on_until_it_is_proven_or_cannot_be(n: int, kept: int, verdict: Verdict) -> None:
    suite = cases(n)
    before = stored(suite, kept, trajectory=1.0)
    result, trials = follow(suite, [TRAJECTORY], lambda _c, _s: {"trajectory": 0.0}, before)
    assert result.verdict is verdict
    assert len(trials) > n


def test_a_collapse_from_three_in_five_is_run_on_too() -> None:
    suite = cases(1)
    before = [trial(suite[0].id, number, trajectory=float(number % 2)) for number in range(1, 6)]
    _, trials = follow(suite, [TRAJECTORY], lambda _c, _s: {"trajectory": 0.0}, before)
    assert len(trials) > 1


@pytest.mark.parametrize("n", [1, 2])
def test_a_collapse_that_nothing_proves_is_an_error(n: int) -> None:
    suite = cases(n)
    now = [trial(case.id, trajectory=0.0) for case in suite]
    held = replace(TRAJECTORY, pass_threshold=None)
    for criterion, before in ((TRAJECTORY, 1.0), (held, 0.5)):
        result = judge(suite, [criterion], now, stored(suite, 1, trajectory=before))
        assert (result.verdict, result.cause) == (
            Verdict.ERROR,
            Finding.of("collapsed", criterion="trajectory", cases=n, trials=n, copies=False),
        )
        assert exit_code([result], Settings()) is ExitCode.NOT_MEASURED


def collapse(criterion: Criterion, now: list[float], before: list[float]) -> Finding | None:
    """Return what is found of one case with these values on both sides."""
    sides = [tuple(trial("c", n, **{criterion.name: v}) for n, v in enumerate(values, 1)) for values in (now, before)]
    return collapsed(Comparison((Case("c", ()),), (criterion,), sides[0], sides[1], Settings()))


@pytest.mark.parametrize(
    ("options", "now", "before", "found"),
    [
        ({}, [0.0], [1.0], True),
        ({}, [0.0] * 3, [1.0, 0.0], True),
        ({}, [0.0, 0.01], [1.0], False),
        ({}, [0.0], [0.0], False),
        ({}, [0.0], [0.2], False),
        ({}, [0.0] * 5, [1.0, 1.0, 0.0, 0.0, 0.0], False),
        ({}, [0.0] * 30, [1.0, 1.0, 0.0, 0.0, 0.0], True),
        ({"blocking": False}, [0.0], [1.0], False),
        ({"hard": True}, [0.0], [1.0], False),
        ({"scale": Scale.SECONDS}, [0.0], [1.0], False),
        ({"scale": Scale.COUNT}, [0.0], [1.0], False),
        ({"scale": Scale.LIKERT}, [1.0], [5.0], True),
        ({"scale": Scale.LIKERT}, [2.0], [5.0], False),
        ({"direction": Direction.LOWER}, [1.0], [0.0], True),
        ({"direction": Direction.LOWER}, [0.0], [1.0], False),
    ],
)
def test_what_is_a_collapse(options: dict[str, object], now: list[float], before: list[float], *, found: bool) -> None:
    """Every value at the worst end of its scale, and the base's not so by chance."""
    criterion = replace(TRAJECTORY, **{"pass_threshold": None, **options})
    seen = collapse(criterion, now, before)
    assert seen == (
        Finding.of("collapsed", criterion="trajectory", cases=1, trials=len(now), copies=False) if found else None
    )


MANY = pytest.mark.slow


@pytest.mark.parametrize(
    ("n", "runs"), [(1, 4), (2, 4), pytest.param(1, 60, marks=MANY), pytest.param(2, 60, marks=MANY)]
)
def test_an_unchanged_agent_passes(n: int, runs: int) -> None:
    assert verdicts([1.0] * n, runs=1) == verdicts([0.0] * n, runs=1) == {Verdict.PASS: 1}
    for rate in (0.9, 0.7):
        found = verdicts([rate] * n, runs)
        assert found[Verdict.PASS] >= 0.75 * runs
        assert found[Verdict.PASS] >= 0.9 * runs or runs < 60
    assert not verdicts([0.9] * n, runs)[Verdict.REGRESSED]
