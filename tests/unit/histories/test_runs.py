"""Sums say of a run what its single values would have said."""

from __future__ import annotations

from io import BytesIO
from random import Random

import pytest

from gate.decision.estimates import estimate
from gate.decision.outcomes import PASS_RATE, passed
from gate.histories.runs import COST, DURATION, described, reduced
from gate.model import CONFIRM, Case, Criterion, Direction, ErrorKind, Scale, Score, Side, Trial, TrialError
from gate.records import Header, PlannedCase, Record, footer_of, record_lines
from gate.records.measured import MeasuredReader
from gate.statistics.intervals import mean
from gate.statistics.trend import Sums, together

from .drawn import QUALITY, in_numbers

OK = Criterion("ok", "contains", Scale.BINARY, threshold=1.0)


def sums_of(values: list[float]) -> Sums:
    return Sums(len(values), sum(values), sum(v * v for v in values), min(values), max(values))


@pytest.mark.parametrize("scale", [Scale.BINARY, Scale.UNIT, Scale.SECONDS])
@pytest.mark.parametrize("shape", [[1], [3], [2, 5, 3]])
def test_estimates_are_those_of_the_single_values(scale: Scale, shape: list[int]) -> None:
    rng = Random(len(shape))
    low, high = (0.0, 9.0) if scale is Scale.SECONDS else scale.range
    draw = (lambda: float(rng.random() < 0.7)) if scale is Scale.BINARY else (lambda: rng.uniform(low, high))
    groups = [[draw() for _ in range(n)] for n in shape]
    wanted = estimate([mean(g) for g in groups], [v for g in groups for v in g], scale)
    found, least, most = described([sums_of(g) for g in groups], scale)
    ends = [mean(g) for g in groups] if scale is Scale.BINARY else [value for g in groups for value in g]
    assert (least, most) == (min(ends), max(ends))
    assert wanted is not None
    for name in ("value", "low", "high", "n", "trials", "level"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), abs=1e-9), name
    if wanted.sd is not None and found.sd is not None:
        assert found.sd == pytest.approx(wanted.sd, abs=1e-7)


def test_reruns_and_the_base_are_left_out_of_the_values() -> None:
    trials = [
        Trial("a", 1, scores={"ok": Score(1.0)}),
        Trial("a", 2, tag=CONFIRM, scores={"ok": Score(0.0)}),
        Trial("a", 1, side=Side.BASELINE, scores={"ok": Score(0.0)}),
        Trial("b", 1, error=TrialError(ErrorKind.CRASH, "died")),
        Trial("b", 2, error=TrialError(ErrorKind.UNREACHABLE, "gone")),
    ]
    found = reduced(map(in_numbers, trials), (OK,), {"a": Case("a", ()), "b": Case("b", ())})
    assert (found.trials, found.failed, found.unmeasured) == (4, 1, 1)
    assert found.outcomes == {"a": (1, 2), "b": (0, 1)}
    assert found.values[PASS_RATE] == {"a": sums_of([1.0]), "b": sums_of([0.0])}
    assert found.values["ok"] == {"a": sums_of([1.0])}


def test_absurd_values_do_no_harm() -> None:
    trials = [Trial("a", n, scores={"cost": Score(1e308)}, duration=1e308) for n in range(1, 4)]
    cost = Criterion("cost", "cost", Scale.USD)
    found = reduced(map(in_numbers, trials), (cost,), {"a": Case("a", ())})
    assert COST not in found.values
    for name in ("cost", DURATION):
        assert described(list(found.values[name].values()), Scale.USD)[0].value <= 1e12


def test_runs_of_a_case_add_up() -> None:
    assert together([sums_of([1.0, 0.0]), sums_of([0.5])]) == sums_of([1.0, 0.0, 0.5])


def drawn_score(rng: Random) -> Score:
    kind = rng.randrange(6)
    return Score(None, error="down") if kind == 0 else Score(None) if kind == 1 else Score(rng.choice((0.0, 0.5, 1.0)))


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(200), marks=pytest.mark.slow)])
def test_a_trial_passes_here_as_it_does_where_it_is_judged(seeds: range) -> None:
    for seed in seeds:
        passes_alike(Random(seed))


def passes_alike(rng: Random) -> None:
    criteria = tuple(
        Criterion(
            name,
            name,
            Scale.UNIT,
            rng.choice((Direction.HIGHER, Direction.LOWER)),
            threshold=rng.choice((None, 0.5, 0.7)),
            blocking=rng.random() < 0.8,
            hard=rng.random() < 0.3,
        )
        for name in "xyz"[: rng.randrange(4)]
    )
    case = Case("a", (), thresholds=rng.choice(({}, {"x": 0.4}, {"z": 1.0})))
    errors = (None, None, None, TrialError(ErrorKind.CRASH, "died"), TrialError(ErrorKind.LIMIT, "quota"))
    trials = [
        Trial("a", n, scores={name: drawn_score(rng) for name in "xyz" if rng.random() < 0.9}, error=rng.choice(errors))
        for n in range(1, 12)
    ]
    wanted = [outcome for trial in trials if (outcome := passed(trial, case, criteria)) is not None]
    found = reduced(map(in_numbers, trials), criteria, {"a": case})
    assert found.outcomes.get("a", (0, 0)) == (sum(wanted), len(wanted))
    assert found.values.get(PASS_RATE, {}) == ({"a": sums_of([float(one) for one in wanted])} if wanted else {})


def test_the_models_that_shaped_the_scores_are_known() -> None:
    """Read from a record, in which a score with its judge is an object."""
    scores = {"quality": Score(0.9, judges=(("judge", "judge-1"),)), "plain": Score(1.0)}
    made = Trial("a", 1, scores=scores, users=(("player", "player-1"),))
    plain = Criterion("plain", "contains", Scale.BINARY)
    header = Header("s", (PlannedCase("a", "f"),), (QUALITY, plain))
    data = b"".join(record_lines(Record(header, (made,), footer_of((made,)))))
    read = list(MeasuredReader(BytesIO(data), where="r"))
    found = reduced(read, (QUALITY,), {"a": Case("a", ())}).models
    assert found == {"quality": {("judge", "judge-1"), ("player", "player-1")}, "plain": {("player", "player-1")}}
