"""The list of rules over generated tables: what holds of every verdict, whatever was measured."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from msgspec import Struct
from msgspec.structs import replace

from gate.decision import Comparison, Settings, exit_code, verdict_on
from gate.decision.comparison import Incomparable
from gate.model import Case, Criterion, Scale, Score, SuiteResult, Trial, Verdict, accepted_by

QUICK, THOROUGH = 25, 400
"""Tables of one property before each commit, and in `make slow`: what one table in 100 breaks is missed once in 50."""
SETTINGS = Settings(confirm_after=None)
ROUNDING = 1e-9


class Drawn(Struct, frozen=True):
    """A generated table: what each case scored on both sides, and the threshold."""

    now: dict[str, list[float]]
    before: dict[str, list[float]]
    threshold: float | None
    edited: frozenset[str] = frozenset()


def drawn(rng: Random) -> Drawn:
    """Return a table of a few cases that are steady, flaky, broken or dead, with or without a baseline."""
    ids = [f"c{number:02}" for number in range(rng.randint(1, 12))]
    epochs, stored = rng.randint(1, 3), rng.choice([0, 1, 3, 5])
    before: dict[str, list[float]] = {}
    now: dict[str, list[float]] = {}
    for case_id in ids:
        rate = rng.choice([1.0, 1.0, 0.9, 0.5, 0.0])
        changed = rng.choice([rate, rate, rate, 0.0, 1.0])
        now[case_id] = [float(rng.random() < changed) for _ in range(epochs)]
        if stored and rng.random() < 0.9:
            before[case_id] = [float(rng.random() < rate) for _ in range(stored)]
    return Drawn(now, before, rng.choice([None, 0.5, 0.8, 1.0]))


def judged(table: Drawn) -> SuiteResult:
    """Return the verdict on a table, as a record of it would be judged."""
    criterion = Criterion("right", "right", Scale.BINARY, threshold=table.threshold, pass_threshold=1.0)
    cases = [Case(case_id, ()) for case_id in table.now]
    known = Comparison(
        cases,
        [criterion],
        trials(table.now),
        trials(table.before),
        SETTINGS,
        seed=1,
        not_comparable={(case_id, "right"): Incomparable.EDITED for case_id in table.edited},
    )
    return verdict_on(known)


def trials(sides: dict[str, list[float]]) -> Sequence[Trial]:
    return [
        Trial(case_id, number, scores={"right": Score(value)})
        for case_id, values in sides.items()
        for number, value in enumerate(values, start=1)
    ]


def code(result: SuiteResult) -> int:
    return int(exit_code([result], SETTINGS))


def mean_of(sides: dict[str, list[float]], ids: Sequence[str]) -> float:
    return sum(sum(sides[case_id]) / len(sides[case_id]) for case_id in ids) / len(ids)


def tables(seed: int, number: int) -> list[Drawn]:
    rng = Random(seed)
    return [drawn(rng) for _ in range(number)]


NUMBERS = [pytest.param(QUICK, id="quick"), pytest.param(THOROUGH, id="thorough", marks=pytest.mark.slow)]


@pytest.mark.parametrize("number", NUMBERS)
def test_exit_code_0_means_that_no_mean_misses_its_threshold_but_as_the_base_did(number: int) -> None:
    for table in tables(1, number):
        if table.threshold is None or code(judged(table)) != 0:
            continue
        if mean_of(table.now, list(table.now)) < table.threshold - ROUNDING:
            both = [case_id for case_id in table.now if case_id in table.before]
            assert both and mean_of(table.before, both) < table.threshold, table


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_a_miss_in_place_of_a_hit_never_makes_red_green(number: int) -> None:
    """But for a proof that stands at the edge: a permutation test of a case that also passes is a little weaker."""
    rng = Random(2)
    for table in tables(3, number):
        hits = [(c, at) for c, values in table.now.items() for at, value in enumerate(values) if value]
        found = judged(table)
        if not hits or code(found) == 0 or found.verdict is Verdict.REGRESSED:
            continue
        case_id, at = rng.choice(hits)
        worse = {**table.now, case_id: [*table.now[case_id][:at], 0.0, *table.now[case_id][at + 1 :]]}
        assert code(judged(replace(table, now=worse))) != 0, table


@pytest.mark.parametrize("number", NUMBERS)
def test_editing_or_removing_the_cases_that_miss_never_makes_red_green(number: int) -> None:
    for table in tables(4, number):
        missing = [c for c, values in table.now.items() if not any(values) and any(table.before.get(c, ()))]
        if not missing or code(judged(table)) == 0:
            continue
        edited = replace(table, edited=frozenset(missing))
        assert code(judged(edited)) != 0, table
        passed = [c for c, values in table.before.items() if 2 * sum(values) >= len(values)]
        gone = [c for c in missing if c in passed]
        if len(gone) >= 2 and 10 * len(gone) > len(passed) and len(missing) < len(table.now):
            left = {case_id: values for case_id, values in table.now.items() if case_id not in missing}
            assert code(judged(replace(table, now=left))) != 0, table


@pytest.mark.parametrize("number", NUMBERS)
def test_accepting_never_lifts_a_threshold(number: int) -> None:
    for table in tables(5, number):
        result = judged(table)
        accepted = accepted_by(result, "ada")
        if result.verdict is Verdict.BELOW_THRESHOLD or result.below:
            assert not accepted.accepted and code(accepted) == 1, table
        elif accepted.accepted:
            assert result.verdict in (Verdict.REGRESSED, Verdict.NOT_COMPARED), table


@pytest.mark.parametrize("number", NUMBERS)
def test_the_same_table_gives_the_same_verdict(number: int) -> None:
    for table in tables(6, number // 3):
        assert judged(table).verdict is judged(table).verdict, table
