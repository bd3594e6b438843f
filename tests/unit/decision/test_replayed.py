"""What reports are told of recordings: only what the baseline holds counts as the same world."""

from __future__ import annotations

from msgspec.structs import replace

from gate.decision import Comparison, Settings, verdict_on
from gate.model import Case, Criterion, Replay, Scale, Score, SuiteResult, Trial, Usage
from gate.model.conversation import Invocation
from gate.model.course import LiveCase

CRITERION = Criterion("answer", "response_match_score", Scale.UNIT, pass_threshold=0.5)
CASES = [Case("refund", ()), Case("cancel", ()), Case("return", ())]


def stored() -> list[Trial]:
    return [
        Trial(
            case.id,
            number,
            scores={"answer": Score(1.0)},
            replay=Replay("", 0, 3, recording=f"base:{number}"),
            run="base",
            answer=f"{case.id} {number}",
        )
        for case in CASES
        for number in range(1, 6)
    ]


def now(case_id: str, replay: Replay | None) -> Trial:
    turn = Invocation(usage=Usage(cost_usd=0.01))
    return Trial(case_id, 1, scores={"answer": Score(1.0)}, invocations=(turn,), replay=replay)


def result_of(*trials: Trial) -> SuiteResult:
    return verdict_on(Comparison(CASES, [CRITERION], trials, stored(), Settings()))


SAME = Replay("base:1", 3, 0, recording="now:1")
CHANGED = Replay("base:1", 1, 4, "request 2 differs in messages[0].content", "now:1")


def test_cases_that_met_the_same_world_are_told_from_those_that_went_live() -> None:
    result = result_of(now("refund", SAME), now("cancel", CHANGED), now("return", SAME))
    found = result.replayed
    assert found is not None
    assert (found.cases, found.same, found.runs, found.calls, found.replayed) == (3, 2, 1, 4, 7)
    assert found.live == (LiveCase("cancel", 1, 4, "request 2 differs in messages[0].content"),)
    assert found.saved_usd == 0.02
    assert [case.same_world for case in result.cases] == [True, False, True]
    assert result.cases[1].difference == "request 2 differs in messages[0].content"


def test_a_recording_that_the_baseline_does_not_hold_shows_nothing() -> None:
    forged = replace(SAME, source="elsewhere:1")
    found = result_of(now("refund", forged), now("cancel", SAME), now("return", SAME)).replayed
    assert found is not None
    assert [case.case_id for case in found.live] == ["refund"]


def test_a_trial_that_left_out_a_recorded_request_did_not_ask_the_same() -> None:
    left_out = replace(SAME, difference="request 3 of the recording was not asked")
    found = result_of(now("refund", left_out), now("cancel", SAME), now("return", SAME)).replayed
    assert found is not None
    assert [case.case_id for case in found.live] == ["refund"]


def test_a_trial_of_which_nothing_is_known_counts_as_live() -> None:
    found = result_of(now("refund", None), now("cancel", SAME), now("return", SAME)).replayed
    assert found is not None
    assert found.live == (LiveCase("refund", 1, 0),)


def test_without_recordings_nothing_is_said() -> None:
    assert result_of(*(now(case.id, Replay("", 0, 3)) for case in CASES)).replayed is None
    assert result_of(*(now(case.id, None) for case in CASES)).replayed is None


def test_the_evidence_that_is_shown_of_a_pair_is_that_of_the_decision() -> None:
    broke = replace(now("refund", replace(SAME, live=1)), scores={"answer": Score(0.0)})
    free = replace(broke, replay=None)
    coupled, alone = (result_of(one, now("cancel", SAME), now("return", SAME)).cases[0] for one in (broke, free))
    assert coupled.e_value is not None
    assert alone.e_value is not None
    assert 1 < coupled.e_value < alone.e_value
