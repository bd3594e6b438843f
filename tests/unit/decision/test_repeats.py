"""Which trials are draws of their own: by what other runs answered, and by how often repeats differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.decision import More, Settings, Situation, next_step, verdict_on
from gate.decision.repeats import NONE, repeats
from gate.model import REPEAT, Case, Criterion, Scale, Score, Side, SuiteResult, Trial, Verdict
from gate.model.facts import RepeatsOnce
from tests.properties import examples

OK = Criterion("ok", "ok", Scale.BINARY, threshold=None, pass_threshold=1.0)
CASES = [f"c{n}" for n in range(20)]


def trial(case: str, n: int, answer: str, run: str = "", *, passed: bool = True, tag: str = "full") -> Trial:
    return Trial(case, n, n, tag, scores={"ok": Score(float(passed))}, answer=answer, run=run)


def trials(answer: Callable[[str, int], str], n: int, run: str = "", cases: Iterable[str] = CASES) -> list[Trial]:
    return [trial(case, number, answer(case, number), run) for number in range(1, n + 1) for case in cases]


def test_one_answer_a_run_that_no_other_run_gives_counts_once() -> None:
    stored = [t for run in ("r1", "r2") for t in trials(lambda c, n, run=run: f"{c} in {run}", 3, run)]  # type: ignore[misc]
    now = trials(lambda c, n: f"{c} now", 2)
    found = repeats(stored, now, lambda _: True)
    assert found.frozen
    assert len(found.dropped) == len(CASES) * (2 + 2 + 1)
    assert not any(id(t) in found.dropped for t in [*stored, *now] if t.number == 1)
    assert (len(found.cases), found.repeated) == (20, 20)


def test_a_deterministic_agent_is_proven_by_the_other_run_though_a_case_broke() -> None:
    stored = trials(lambda c, n: c, 5, "r1")
    now = trials(lambda c, n: "sorry" if c == "c3" else c, 3)
    assert repeats(stored, now, lambda _: True) == NONE


def test_two_stored_runs_prove_it_though_every_answer_changed() -> None:
    stored = [*trials(lambda c, n: c, 2, "r1"), *trials(lambda c, n: c, 2, "r2")]
    assert repeats(stored, trials(lambda c, n: f"new {c}", 3), lambda _: True) == NONE


def test_two_versions_of_one_run_prove_nothing() -> None:
    """Both sides of one job may share a cache."""
    stored = trials(lambda c, n: f"{c} then", 3, "r1")
    now = trials(lambda c, n: c, 2)
    base = [Trial(t.case_id, t.number, t.round, t.tag, Side.BASELINE, scores=t.scores, answer=t.answer) for t in now]
    assert repeats(stored, [*now, *base], lambda _: True).frozen


def test_a_broken_case_that_always_fails_with_the_same_words_counts_each_time() -> None:
    stored = trials(lambda c, n: f"{c} {n}", 5, "r1")
    now = [
        *trials(lambda c, n: f"{c} now", 1),
        *[trial("c3", n, "sorry", passed=False, tag="confirm") for n in range(2, 30)],
    ]
    found = repeats(stored, now, lambda t: t.scores["ok"].value == 1)
    assert not (found.dropped or found.frozen or found.untold)


def test_it_is_not_told_before_a_steady_case_was_repeated() -> None:
    stored = [t for run in ("r1", "r2") for t in trials(lambda c, n, run=run: f"{c} in {run}", 1, run)]  # type: ignore[misc]
    found = repeats(stored, trials(lambda c, n: f"{c} now", 1), lambda _: True)
    assert found.untold
    assert not found.dropped


def test_records_without_digests_count_as_they_did() -> None:
    stored, now = trials(lambda c, n: "", 3, "r1"), trials(lambda c, n: "same", 3)
    assert repeats(stored, now, lambda _: True) == NONE


def test_what_a_partial_cache_answers_counts_once_and_the_rest_counts() -> None:
    cached = set(CASES[:8])
    stored = trials(lambda c, n: f"{c} then" if c in cached else f"{c} {n}", 4, "r1")
    now = trials(lambda c, n: f"{c} now" if c in cached else f"{c} now {n}", 3)
    found = repeats(stored, now, lambda _: True)
    assert set(found.cases) == cached
    assert not found.frozen


@given(
    st.lists(
        st.tuples(st.sampled_from(CASES[:4]), st.sampled_from("ab"), st.sampled_from(["", "r1", "r2"])), max_size=40
    )
)
@settings(max_examples=examples(200))
def test_every_session_keeps_a_trial_of_each_of_its_cases(drawn: list[tuple[str, str, str]]) -> None:
    every = [trial(case, n, answer, run) for n, (case, answer, run) in enumerate(drawn, 1)]
    stored, now = [t for t in every if t.run], [t for t in every if not t.run]
    found = repeats(stored, now, lambda t: t.answer == "a")
    kept = [t for t in every if id(t) not in found.dropped]
    assert {(t.case_id, t.run, t.answer) for t in kept} == {(t.case_id, t.run, t.answer) for t in every}


# --- on the way to a verdict ----------------------------------------------------------------------


def decided(
    answer: Callable[[str, int], tuple[str, bool]], stored: list[Trial]
) -> tuple[SuiteResult, list[Trial], list[More]]:
    """The verdict with all trials and rounds that it took."""
    run: list[Trial] = []
    rounds: list[More] = []
    while isinstance(step := next_step(Situation([Case(c, ()) for c in CASES], [OK], run, stored, Settings())), More):
        rounds.append(step)
        for request in step.requests:
            for case in request.cases * request.n:
                number = sum(t.case_id == case for t in run) + 1
                text, passed = answer(case, number)
                run.append(
                    Trial(
                        case,
                        number,
                        step.round,
                        request.tag,
                        request.side,
                        scores={"ok": Score(float(passed))},
                        answer=text,
                    )
                )
    return step, run, rounds


@pytest.mark.parametrize("seed", range(3))
def test_a_frozen_agent_is_asked_no_more_than_it_takes_to_see_that_it_is(seed: int) -> None:
    rng = Random(seed)
    stored = [
        Trial(c, n, scores={"ok": Score(float(passed))}, answer=f"{c} then", run="r1")
        for c in CASES
        for passed in [rng.random() < 0.8]
        for n in range(1, 6)
    ]
    fails = {c for c in CASES if rng.random() < 0.2}
    step, run, rounds = decided(lambda c, n: (f"{c} now", c not in fails), stored)
    assert step.verdict is not Verdict.REGRESSED
    assert len(run) <= len(CASES) + 3
    assert [r.requests[0].tag for r in rounds[1:]] in ([], [REPEAT])
    assert (
        RepeatsOnce(20, 20)
        in verdict_on(Situation([Case(c, ()) for c in CASES], [OK], run, stored, Settings()), scheduled=True).warnings
    )


def test_a_deterministic_agent_with_a_broken_case_is_blocked_for_it() -> None:
    stored = trials(lambda c, n: c, 5, "r1")
    step, _, _ = decided(lambda c, n: ("sorry", False) if c == "c3" else (c, True), stored)
    assert step.verdict is Verdict.REGRESSED
    outcome = step.outcome
    assert outcome is not None
    assert outcome.cases == ("c3",)
