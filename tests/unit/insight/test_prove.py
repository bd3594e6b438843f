"""The A/A test out of stored trials."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from gate.decision import Settings
from gate.insight.power import Share
from gate.insight.prove import Proof, in_words, picture_of, prove, source_of, threshold_of
from gate.model import Trial
from tests.unit.decision.records import FORBIDDEN, TRAJECTORY, cases, lost_trial, trial

SUITE = cases(8)


def recorded(failing: int, n: int = 5) -> list[Trial]:
    """Five trials per case; in the first cases every second one fails."""
    return [
        trial(case.id, number, trajectory=float(index >= failing or number % 2))
        for index, case in enumerate(SUITE)
        for number in range(1, n + 1)
    ]


def test_unchanged_changes_of_a_flaky_agent_are_blocked_by_one_run_and_hardly_by_the_rule() -> None:
    source = source_of(SUITE, [TRAJECTORY], recorded(3))
    found = prove("shop", source, Settings(), changes=20, seed=1)
    assert (found.cases, found.stored, found.changes) == (8, 5.0, 20)
    assert found.blocked.share <= 0.05
    assert found.single.share > 0.15
    assert found.threshold == 0.85
    assert 1 <= found.runs_per_case < 4
    few = [prove("shop", source, Settings(), changes=3, seed=1) for _ in range(2)]
    assert few[0] == few[1], "a seed gives the same answer again"


def test_a_threshold_at_the_agents_own_level_blocks_and_is_told_apart_from_regressions() -> None:
    near = replace(TRAJECTORY, threshold=0.75)
    found = prove("shop", source_of(SUITE, [near], recorded(5)), Settings(), changes=20)
    assert found.below_threshold.share > 0.05
    assert found.blocked.share == pytest.approx(found.below_threshold.share + found.regressed.share)


def test_trials_are_drawn_whole_and_a_failure_that_never_came_is_made() -> None:
    scored = [trial("case-00", n, trajectory=1.0, forbidden_tools=1.0) for n in range(1, 6)]
    source = source_of(SUITE, [TRAJECTORY, FORBIDDEN], scored)
    failed = source.draw(Random(1), 0, 0.0)
    assert {name: score.value for name, score in failed.scores.items()} == {"trajectory": 0.0, "forbidden_tools": 0.0}
    assert source.draw(Random(1), 0, 1.0).scores == scored[0].scores
    assert not failed.answer and not failed.invocations, "two draws of one trial are no sign of a cache"


def test_what_was_not_measured_is_not_drawn() -> None:
    source = source_of(SUITE, [TRAJECTORY], [*recorded(0)[:10], lost_trial("case-05"), lost_trial("case-00", 9)])
    assert [case.id for case in source.cases] == ["case-00", "case-01"]
    assert source.sizes == (5, 5)


@pytest.mark.parametrize(("rate", "written"), [(0.87, 0.85), (0.85, 0.85), (1.0, 1.0), (0.049, 0.0), (0.7, 0.7)])
def test_a_threshold_is_written_in_steps_of_five_points(rate: float, written: float) -> None:
    assert threshold_of(rate) == pytest.approx(written)


def test_the_sentence_and_the_picture_say_both_numbers_and_escape_names() -> None:
    def share(count: int) -> Share:
        return Share(count / 1000, count / 1200, count / 900, 1000)

    none = share(0)
    proof = Proof("<b>&", 10, 5.0, 1000, share(9), share(7), share(2), share(40), none, share(312), 0.85, 1.4)
    assert in_words(proof) == (
        "Of 1,000 unchanged changes your gate would have blocked 9; a single-sample threshold would have blocked 312."
    )
    drawn = picture_of([proof])
    assert "<b>" not in drawn and "&lt;b&gt;&amp;" in drawn
    assert ">9</text>" in drawn and ">312</text>" in drawn
    assert drawn.startswith("<svg ") and drawn.rstrip().endswith("</svg>")
