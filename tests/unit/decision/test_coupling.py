"""Which trials are pairs, and which repeat a draw that counts."""

from __future__ import annotations

from gate.decision.coupling import coupling
from gate.decision.engine.state import CONCURRENT, Partner
from gate.model import CONFIRM, Replay, Side, Trial


def recorded(number: int, run: str = "base", case: str = "a") -> Trial:
    return Trial(case, number, replay=Replay("", 0, 3, recording=f"{run}:{number}"))


def answered(number: int, source: str, *, replayed: int = 3, live: int = 0, case: str = "a", **more: object) -> Trial:
    replay = Replay(source, replayed, live, recording=f"now:{number}")
    return Trial(case, number, replay=replay, **more)  # type: ignore[arg-type]


STORED = [recorded(1), recorded(2), recorded(3)]


def test_a_source_that_is_stored_makes_a_pair() -> None:
    trials = [answered(1, "base:2"), answered(2, "base:1", live=1)]
    found = coupling(STORED, trials)
    assert found.links(trials, STORED) == (Partner(1, whole=True), Partner(0))
    assert not found.dropped


def test_a_trial_that_went_live_from_the_start_stands_for_itself() -> None:
    trials = [answered(1, "base:1", replayed=0, live=4)]
    found = coupling(STORED, trials)
    assert found.links(trials, STORED) == ()
    assert not found.dropped


def test_one_draw_counts_once_however_often_it_was_replayed() -> None:
    trials = [answered(2, "base:1", round=2, tag=CONFIRM), answered(1, "base:1")]
    found = coupling(STORED, trials)
    assert found.dropped == {id(trials[0])}
    assert found.links(trials, STORED) == (None, Partner(0, whole=True))


def test_a_source_that_is_not_stored_makes_no_pair_and_counts_once() -> None:
    trials = [answered(1, "elsewhere:1"), answered(2, "elsewhere:1"), answered(3, "elsewhere:2")]
    found = coupling(STORED, trials)
    assert found.links(trials, STORED) == ()
    assert found.dropped == {id(trials[1])}


def test_the_recording_of_another_case_is_no_source() -> None:
    trials = [answered(1, "base:1", case="b")]
    assert coupling(STORED, trials).links(trials, STORED) == ()


def test_replayed_calls_without_a_source_do_not_count() -> None:
    trials = [answered(1, "")]
    assert coupling(STORED, trials).dropped == {id(trials[0])}


def test_stored_trials_that_replay_one_another_are_one_draw() -> None:
    again = Trial("a", 4, replay=Replay("base:1", 3, 0, recording="later:1"))
    trials = [answered(1, "base:1")]
    found = coupling([*STORED, again], trials)
    assert found.dropped == {id(again)}
    assert found.links(trials, STORED) == (Partner(0, whole=True),)


def test_a_baseline_that_was_itself_replayed_is_known_by_what_it_replayed() -> None:
    stored = [Trial("a", 1, replay=Replay("older:1", 3, 0))]
    trials = [answered(1, "older:1")]
    assert coupling(stored, trials).links(trials, stored) == (Partner(0, whole=True),)


def test_what_was_replayed_says_nothing_of_what_is_the_case_now() -> None:
    now = [
        answered(1, "base:1", side=Side.BASELINE, tag=CONCURRENT),
        answered(2, "base:2", side=Side.BASELINE),
        answered(3, "base:3", tag=CONCURRENT),
    ]
    assert coupling(STORED, now).dropped == set(map(id, now))


def test_records_without_recordings_are_as_they_were() -> None:
    stored, trials = [Trial("a", 1)], [Trial("a", 1), Trial("a", 2)]
    found = coupling(stored, trials)
    assert not found.dropped
    assert found.links(trials, stored) == ()
