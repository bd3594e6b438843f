"""The list of rules: their order, what each verdict exits with, and what earlier measurements and acceptance make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from gate.decision import Settings, exit_code
from gate.decision.comparison import Comparison
from gate.decision.rules import EXIT_CODES, RULES, Table, if_accepted, judge, place, regressed_ago
from gate.errors import ExitCode
from gate.model import SuiteResult, Trial, Verdict, worst
from gate.model.finding import Finding

from .records import TRAJECTORY, cases, once, stored
from .records import judge as judged

SUITE = cases(20)
BASELINE = stored(SUITE, trajectory=1.0)
HELD = replace(TRAJECTORY, threshold=0.8)
GOOD = once(SUITE, trajectory=1.0)
ONE_MISSES = once(SUITE, {"case-00": {"trajectory": 0.0}}, trajectory=1.0)
HALF_MISSES = once(SUITE, {c.id: {"trajectory": 0.0} for c in SUITE[:10]}, trajectory=1.0)
REGRESSED, INCONCLUSIVE, PASS = Verdict.REGRESSED, Verdict.INCONCLUSIVE, Verdict.PASS


def test_the_order_of_the_verdicts() -> None:
    assert [verdict for verdict, _ in RULES] == [
        Verdict.ERROR,
        Verdict.REGRESSED,
        Verdict.REGRESSED,
        Verdict.BELOW_THRESHOLD,
        Verdict.NOT_COMPARED,
        Verdict.ERROR,
        Verdict.INCONCLUSIVE,
    ]


# --- exit codes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "warns", "blocks"),
    [
        (Verdict.PASS, 0, 0),
        (Verdict.INCONCLUSIVE, 0, 1),
        (Verdict.ERROR, 3, 3),
        (Verdict.NOT_COMPARED, 1, 1),
        (Verdict.BELOW_THRESHOLD, 1, 1),
        (Verdict.REGRESSED, 1, 1),
    ],
)
def test_what_each_verdict_exits_with(verdict: Verdict, warns: int, blocks: int) -> None:
    suite = SuiteResult("s", verdict, Finding.of("not_run"), (), ())
    assert exit_code([suite], Settings()) == warns
    assert exit_code([suite], Settings(on_inconclusive="block")) == blocks


def test_every_verdict_has_an_exit_code() -> None:
    assert set(EXIT_CODES) == set(Verdict)


def test_of_several_suites_the_worst_decides() -> None:
    suites = {v: SuiteResult("s", v, Finding.of("not_run"), (), ()) for v in Verdict}
    assert exit_code([suites[Verdict.PASS], suites[Verdict.ERROR]], Settings()) is ExitCode.NOT_MEASURED
    assert exit_code([suites[Verdict.ERROR], suites[Verdict.NOT_COMPARED]], Settings()) is ExitCode.FAILED
    assert worst([Verdict.ERROR, Verdict.NOT_COMPARED, Verdict.INCONCLUSIVE]) is Verdict.NOT_COMPARED
    assert worst([Verdict.BELOW_THRESHOLD, Verdict.REGRESSED]) is Verdict.REGRESSED


# --- earlier measurements of this change ----------------------------------------------------------


@pytest.mark.parametrize(
    ("earlier", "ago"),
    [
        ((), 0),
        ((REGRESSED,), 1),
        ((INCONCLUSIVE, REGRESSED), 2),
        ((Verdict.ERROR, Verdict.BELOW_THRESHOLD, REGRESSED), 3),
        ((PASS, REGRESSED), 0),
        ((REGRESSED, PASS), 1),
        ((INCONCLUSIVE, PASS, REGRESSED), 0),
        ((INCONCLUSIVE, Verdict.BELOW_THRESHOLD), 0),
    ],
)
def test_how_long_ago_this_change_was_regressed_without_a_pass_since(earlier: tuple[Verdict, ...], ago: int) -> None:
    assert regressed_ago(earlier) == ago


def noisy() -> list[Trial]:
    """Return a base that passes half of its trials: one epoch proves nothing against it."""
    return [replace(t, number=n) for n in (1, 2) for t in once(SUITE, trajectory=float(n == 1))]


def test_a_change_that_was_regressed_stays_so_until_it_passes() -> None:
    known = (SUITE, [TRAJECTORY], once(SUITE, {c.id: {"trajectory": 0.0} for c in SUITE[:12]}, trajectory=1.0), noisy())
    first = judged(*known)
    assert first.verdict is Verdict.INCONCLUSIVE
    again = judged(*known, earlier=(REGRESSED,))
    assert (again.verdict, again.cause.kind, again.cause["measurements"]) == (Verdict.REGRESSED, "not_shown_fixed", 1)
    assert again.cause["now"].kind == first.cause.kind
    assert exit_code([again], Settings()) is ExitCode.FAILED
    assert again.is_acceptable
    twice = judged(*known, earlier=(INCONCLUSIVE, REGRESSED))
    assert twice.cause["measurements"] == 2
    assert judged(*known, earlier=(PASS, REGRESSED)).verdict is Verdict.INCONCLUSIVE


def test_a_measurement_that_passes_clears_it() -> None:
    assert judged(SUITE, [TRAJECTORY], GOOD, BASELINE, earlier=(REGRESSED,)).verdict is Verdict.PASS


def test_neither_an_error_nor_a_gap_nor_a_missed_threshold_clears_it() -> None:
    stopped = judged(
        SUITE, [TRAJECTORY], GOOD, BASELINE, earlier=(REGRESSED,), settings=Settings(exact_epochs=5), stopped="budget"
    )
    gap = judged(
        SUITE, [TRAJECTORY], GOOD, BASELINE, earlier=(REGRESSED,), gaps=(Finding.of("stated", text="a suite is gone"),)
    )
    held = judged(SUITE, [replace(TRAJECTORY, threshold=1.0)], ONE_MISSES, BASELINE, earlier=(REGRESSED,))
    for found, now in ((stopped, "not_run"), (gap, "incomplete"), (held, "criteria_decide")):
        assert (found.verdict, found.cause.kind) == (Verdict.REGRESSED, "not_shown_fixed")
        assert (found.cause["measurements"], found.cause["now"].kind) == (1, now)
    assert held.below == ("trajectory",)
    assert not held.is_acceptable


# --- what comes before what -----------------------------------------------------------------------


def test_a_proven_loss_comes_before_a_missed_threshold_and_a_gap() -> None:
    found = judged(SUITE, [HELD], HALF_MISSES, BASELINE, gaps=(Finding.of("stated", text="gone"),))
    assert (found.verdict, found.below) == (Verdict.REGRESSED, ("trajectory",))


def test_a_missed_threshold_comes_before_a_gap_and_an_error() -> None:
    found = judged(SUITE, [HELD], HALF_MISSES, gaps=(Finding.of("stated", text="gone"),), stopped="budget")
    assert (found.verdict, found.cause) == (
        Verdict.BELOW_THRESHOLD,
        Finding.of("criteria_decide", criteria=("trajectory",)),
    )


def test_a_gap_comes_before_an_error_and_is_not_settled_by_it() -> None:
    options = {"settings": Settings(exact_epochs=5), "stopped": "budget"}
    found = judged(SUITE, [TRAJECTORY], GOOD, BASELINE, gaps=(Finding.of("stated", text="gone"),), **options)
    assert (found.verdict, found.cause) == (
        Verdict.NOT_COMPARED,
        Finding.of("incomplete", gaps=(Finding.of("stated", text="gone"),)),
    )
    assert found.if_accepted is Verdict.ERROR


# --- nothing changed ------------------------------------------------------------------------------


def test_an_unchanged_agent_is_the_one_of_an_earlier_commit_and_every_threshold_holds_for_it() -> None:
    same = judged(SUITE, [HELD], GOOD, GOOD, same_as="5ed2264")
    assert (same.verdict, same.cause) == (Verdict.PASS, Finding.of("same_agent", commit="5ed2264"))
    assert not [found.kind for found in same.warnings if found.kind in ("same_agent", "thin_baseline")]
    low = judged(SUITE, [replace(HELD, ratchet=False)], HALF_MISSES, HALF_MISSES, same_as="5ed2264")
    assert (low.verdict, low.below) == (Verdict.BELOW_THRESHOLD, ("trajectory",))
    assert "same_agent" in [found.kind for found in low.warnings], "the cause does not tell it"
    gap = judged(SUITE, [HELD], GOOD, GOOD, same_as="5ed2264", gaps=(Finding.of("stated", text="gone"),))
    assert gap.verdict is Verdict.NOT_COMPARED


# --- the table itself -----------------------------------------------------------------------------


def table(*, gaps: Sequence[Finding] = (), earlier: Sequence[Verdict] = (), **options: Finding) -> Table:
    """Return a table of which nothing but these options decides."""
    made = Comparison(SUITE, (HELD,), GOOD, (), Settings(), gaps=gaps, earlier=earlier)
    return Table(made, None, (), **options)  # type: ignore[arg-type]


NOT_CONFIRMED = Finding.of("agent_fails", failed=7, why="nothing_rerun")


@pytest.mark.parametrize(
    ("options", "verdict", "cause", "left"),
    [
        (
            {"gaps": (Finding.of("stated", text="gone"),)},
            Verdict.NOT_COMPARED,
            Finding.of("incomplete", gaps=(Finding.of("stated", text="gone"),)),
            Verdict.PASS,
        ),
        (
            {"lost": Finding.of("trials_lost", lost=3, of=80, decide=True)},
            Verdict.ERROR,
            Finding.of("trials_lost", lost=3, of=80, decide=True),
            Verdict.ERROR,
        ),
        (
            {"not_confirmed": NOT_CONFIRMED},
            Verdict.ERROR,
            NOT_CONFIRMED,
            Verdict.ERROR,
        ),
        (
            {
                "gaps": (Finding.of("stated", text="gone"),),
                "lost": Finding.of("trials_lost", lost=3, of=80, decide=True),
            },
            Verdict.NOT_COMPARED,
            Finding.of("incomplete", gaps=(Finding.of("stated", text="gone"),)),
            Verdict.ERROR,
        ),
        (
            {"lost": Finding.of("trials_lost", lost=3, of=80, decide=True), "earlier": (REGRESSED,)},
            Verdict.REGRESSED,
            Finding.of("not_shown_fixed", measurements=1, now=Finding.of("trials_lost", lost=3, of=80, decide=True)),
            Verdict.ERROR,
        ),
    ],
)
def test_what_a_table_says_and_what_is_left_of_it_once_it_is_accepted(
    options: dict[str, Any], verdict: Verdict, cause: object, left: Verdict
) -> None:
    made = table(**options)
    assert (judge(made).verdict, judge(made)) == (verdict, cause)
    assert if_accepted(made) is left


def test_accepting_leaves_nothing_that_is_only_inconclusive() -> None:
    made = Table(Comparison(tuple(SUITE), (TRAJECTORY,), tuple(GOOD), (), Settings()), None, ())
    assert judge(made) == Finding.of("not_judged", Verdict.INCONCLUSIVE, why="nothing_yet")
    assert if_accepted(made) is Verdict.PASS


def test_the_first_rule_that_applies_anywhere_has_the_smallest_place() -> None:
    """An outage is first and any other error is fifth, though both are errors."""
    down = Finding.of("outage", cases=9, of=10, compared=True, error="x")
    order = [
        down,
        Finding.of("not_shown_fixed", measurements=1, now=Finding.of("not_run")),
        Finding.of("criteria_decide", criteria=("c",)),
        Finding.of("incomplete", gaps=()),
        Finding.of("not_run"),
        Finding.of("not_judged", Verdict.INCONCLUSIVE, why="nothing_yet"),
        Finding.of("same_agent", commit="a"),
    ]
    places = list(map(place, order))
    assert places == sorted(set(places))
    assert places[0] == 0
