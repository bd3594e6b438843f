"""Which trials are draws of their own: by what other runs answered, and by how often repeats differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.decision import Comparison, More, Settings, verdict_on
from gate.decision.copies import NONE, copies_among
from gate.model import REPEAT, Case, Criterion, Scale, Score, Side, SuiteResult, Trial, Verdict
from gate.model.finding import CaseTally, Finding
from tests.properties import examples
from tests.unit.decision.records import step_of

OK = Criterion("ok", "ok", Scale.BINARY, threshold=None, pass_threshold=1.0)
CASES = [f"c{n}" for n in range(20)]


def trial(case: str, n: int, answer: str, run: str = "", *, passed: bool = True, tag: str = "full") -> Trial:
    return Trial(case, n, n, tag, scores={"ok": Score(float(passed))}, answer=answer, run=run)


def trials(answer: Callable[[str, int], str], n: int, run: str = "", cases: Iterable[str] = CASES) -> list[Trial]:
    return [trial(case, number, answer(case, number), run) for number in range(1, n + 1) for case in cases]


def test_one_answer_a_run_that_no_other_run_gives_counts_once() -> None:
    stored = [t for run in ("r1", "r2") for t in trials(lambda c, n, run=run: f"{c} in {run}", 3, run)]  # type: ignore[misc]
    now = trials(lambda c, n: f"{c} now", 2)
    found = copies_among(stored, now, lambda _: True)
    assert found.frozen
    assert len(found.dropped) == len(CASES) * (2 + 2 + 1)
    assert not any(id(t) in found.dropped for t in [*stored, *now] if t.number == 1)
    assert (len(found.cases), found.repeated) == (20, 20)


def test_a_deterministic_agent_is_proven_by_the_other_run_though_a_case_broke() -> None:
    stored = trials(lambda c, n: c, 5, "r1")
    now = trials(lambda c, n: "sorry" if c == "c3" else c, 3)
    assert copies_among(stored, now, lambda _: True) == NONE


def test_two_stored_runs_prove_it_though_every_answer_changed() -> None:
    stored = [*trials(lambda c, n: c, 2, "r1"), *trials(lambda c, n: c, 2, "r2")]
    assert copies_among(stored, trials(lambda c, n: f"new {c}", 3), lambda _: True) == NONE


def test_two_runs_that_nothing_is_stored_beside_tell_each_others_repeats() -> None:
    now = [t for run in ("r1", "r2") for t in trials(lambda c, n, run=run: f"{c} in {run}", 3, run)]  # type: ignore[misc]
    found = copies_among((), now, lambda _: True)
    assert {id(t) for t in now if t.number > 1} <= found.dropped
    assert copies_among((), trials(lambda c, n: c, 3, "r1"), lambda _: True) == NONE, (
        "nothing says what another would answer"
    )


def held(answered: Iterable[Trial], process: str) -> list[Trial]:
    """The trials with what they answered as drawn by this process, which keeps its answers."""
    return [replace(t, answer=f"{t.case_id} by {process}", process=process) for t in answered]


def test_each_process_of_a_run_is_one_draw_where_it_keeps_its_answers() -> None:
    asked = trials(lambda c, n: "", 5, "r1")
    stored = [*held([t for t in asked if t.number == 1], "a"), *held([t for t in asked if t.number > 1], "b")]
    first = held(trials(lambda c, n: "", 1), "c")
    found = copies_among(stored, first, lambda _: True)
    assert found.untold
    assert {id(t) for t in stored if t.number > 2} == found.dropped
    again = held([trial(c, 2, "", tag=REPEAT) for c in CASES[:3]], "c")
    found = copies_among(stored, [*first, *again], lambda _: True)
    assert found.frozen
    assert {id(t) for t in [*again, *(t for t in stored if t.number > 2)]} == found.dropped


def test_what_each_process_draws_anew_counts_each_time() -> None:
    stored = [replace(t, process="ab"[t.number > 1]) for t in trials(lambda c, n: f"{c} {n}", 5, "r1")]
    now = [replace(t, process="c") for t in trials(lambda c, n: f"{c} {-n}", 2)]
    found = copies_among(stored, now, lambda _: True)
    assert not (found.dropped or found.frozen or found.untold)


def test_processes_that_share_a_cache_are_one_draw() -> None:
    stored = [replace(t, process="ab"[t.number > 1]) for t in trials(lambda c, n: f"{c} then", 5, "r1")]
    now = [replace(t, process="c") for t in trials(lambda c, n: f"{c} now", 3)]
    assert len(copies_among(stored, now, lambda _: True).dropped) == len(CASES) * (4 + 2)


def test_processes_that_agree_are_a_deterministic_agent_where_another_run_agrees() -> None:
    stored = [replace(t, process="ab"[t.number > 1]) for t in trials(lambda c, n: c, 5, "r1")]
    now = [replace(t, process="c") for t in trials(lambda c, n: "sorry" if c == "c3" else c, 3)]
    assert copies_among(stored, now, lambda _: True) == NONE


def test_two_versions_of_one_run_prove_nothing() -> None:
    """Both sides of one job may share a cache."""
    stored = trials(lambda c, n: f"{c} then", 3, "r1")
    now = trials(lambda c, n: c, 2)
    base = [Trial(t.case_id, t.number, t.round, t.tag, Side.BASELINE, scores=t.scores, answer=t.answer) for t in now]
    assert copies_among(stored, [*now, *base], lambda _: True).frozen


def test_a_broken_case_that_always_fails_with_the_same_words_counts_each_time() -> None:
    stored = trials(lambda c, n: f"{c} {n}", 5, "r1")
    now = [
        *trials(lambda c, n: f"{c} now", 1),
        *[trial("c3", n, "sorry", passed=False, tag="confirm") for n in range(2, 30)],
    ]
    found = copies_among(stored, now, lambda t: t.scores["ok"].value == 1)
    assert not (found.dropped or found.frozen or found.untold)


def test_it_is_not_told_before_a_steady_case_was_repeated() -> None:
    stored = [t for run in ("r1", "r2") for t in trials(lambda c, n, run=run: f"{c} in {run}", 1, run)]  # type: ignore[misc]
    found = copies_among(stored, trials(lambda c, n: f"{c} now", 1), lambda _: True)
    assert found.untold
    assert not found.dropped


def test_records_without_digests_count_as_they_did() -> None:
    stored, now = trials(lambda c, n: "", 3, "r1"), trials(lambda c, n: "same", 3)
    assert copies_among(stored, now, lambda _: True) == NONE


def test_what_a_partial_cache_answers_counts_once_and_the_rest_counts() -> None:
    cached = set(CASES[:8])
    stored = trials(lambda c, n: f"{c} then" if c in cached else f"{c} {n}", 4, "r1")
    now = trials(lambda c, n: f"{c} now" if c in cached else f"{c} now {n}", 3)
    found = copies_among(stored, now, lambda _: True)
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
    found = copies_among(stored, now, lambda t: t.answer == "a")
    kept = [t for t in every if id(t) not in found.dropped]
    assert {(t.case_id, t.run, t.answer) for t in kept} == {(t.case_id, t.run, t.answer) for t in every}


# --- on the way to a verdict ----------------------------------------------------------------------


def decided(
    answer: Callable[[str, int], tuple[str, bool]], stored: list[Trial]
) -> tuple[SuiteResult, list[Trial], list[More]]:
    """The verdict with all trials and rounds that it took."""
    run: list[Trial] = []
    rounds: list[More] = []
    while isinstance(step := step_of(Comparison([Case(c, ()) for c in CASES], [OK], run, stored, Settings())), More):
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
        Finding.of("answers_say_little", cases=20, of=20, why="other_runs_differ")
        in verdict_on(Comparison([Case(c, ()) for c in CASES], [OK], run, stored, Settings()), scheduled=True).warnings
    )


def test_a_deterministic_agent_with_a_broken_case_is_blocked_for_it() -> None:
    stored = trials(lambda c, n: c, 5, "r1")
    step, _, _ = decided(lambda c, n: ("sorry", False) if c == "c3" else (c, True), stored)
    assert step.verdict is Verdict.REGRESSED
    outcome = step.outcome
    assert outcome is not None
    assert outcome.cases == ("c3",)


# --- what equal answers prove ---------------------------------------------------------------------


def yes_no(fails: set[str], run: str = "r1", n: int = 5) -> list[Trial]:
    """An agent of one word: what it answers says no more than whether it is right."""
    return [
        trial(c, number, "no" if c in fails else "yes", run, passed=c not in fails)
        for number in range(1, n + 1)
        for c in CASES
    ]


def passes(trial: Trial) -> bool:
    return trial.scores["ok"].value == 1


def test_one_word_that_two_runs_share_proves_no_deterministic_agent_where_outcomes_change_both_ways() -> None:
    stored = yes_no({"c1", "c2", "c3"})
    now = [
        trial(c, n, "no" if c in ("c7", "c8") else "yes", passed=c not in ("c7", "c8"))
        for n in (1, 2, 3)
        for c in CASES
    ]
    found = copies_among(stored, now, passes)
    assert found.frozen
    assert set(found.cases) == {"c1", "c2", "c3", "c7", "c8"}, "what both runs answered alike counts"


def test_two_stored_runs_that_disagree_on_a_word_are_no_deterministic_agent() -> None:
    stored = [*yes_no({"c1"}), *yes_no({"c2", "c4", "c5"}, "r2")]
    found = copies_among(stored, [trial(c, n, "yes") for n in (1, 2) for c in CASES], passes)
    assert found.frozen and found.lost == ()


def test_one_word_of_a_case_that_broke_counts_each_time_where_no_other_changed() -> None:
    stored = yes_no({"c1"})
    fails = {"c1", "c7"}
    now = [trial(c, n, "no" if c in fails else "yes", passed=c not in fails) for n in (1, 2, 3) for c in CASES]
    assert copies_among(stored, now, passes) == NONE


def test_one_word_that_is_drawn_anew_counts_each_time() -> None:
    rng = Random(4)

    def drawn(n: int, run: str = "") -> list[Trial]:
        outcomes = [(c, k, rng.random() < (0.6 if c in CASES[:8] else 1.0)) for k in range(1, n + 1) for c in CASES]
        return [trial(c, k, "yes" if right else "no", run, passed=right) for c, k, right in outcomes]

    assert not copies_among(drawn(5, "r1"), drawn(3), passes).dropped


def test_cases_of_one_word_that_vary_are_asked_before_it_is_said_what_their_repeats_are() -> None:
    stored = [t for n, run in enumerate(("r1", "r2", "r3")) for t in yes_no({f"c{n}"}, run, 1)]
    found = copies_among(stored, [trial(c, 1, "yes") for c in CASES], passes)
    assert found.untold and not found.frozen
    assert set(found.ask) == {"c0", "c1", "c2"}


def test_what_may_be_a_cache_or_a_broken_agent_that_was_reworded_is_inconclusive_with_what_would_tell() -> None:
    stored = trials(lambda c, n: c, 5, "r1")
    _, run, _ = decided(lambda c, n: (f"new {c}", c != "c3"), stored)
    assert len(run) <= len(CASES) + 3
    cases = [Case(c, ()) for c in CASES]
    tight = verdict_on(Comparison(cases, [OK], run, stored, Settings()), scheduled=True)
    assert (tight.verdict, tight.cause.kind == "cases_fail") == (Verdict.INCONCLUSIVE, False)
    assert Finding.of("answers_say_little", cases=20, of=20, why="other_runs_differ") in tight.warnings
    loose = Comparison(cases, [replace(OK, margin=0.5)], run, stored, Settings(pass_rate_margin=0.5))
    wide = verdict_on(loose, scheduled=True)
    assert (wide.verdict, wide.cause) == (
        Verdict.INCONCLUSIVE,
        Finding.of("cases_fail", cases=(CaseTally("c3", 0, 1, 5, 5),), why="copies"),
    ), "it would have passed"
    assert Finding.of("answers_say_little", cases=20, of=20, why="other_runs_differ") in wide.warnings


def test_a_cache_that_drew_better_and_worse_is_no_doubt() -> None:
    """Flips of a cache go both ways; those of a break do not."""
    stored = [trial(c, n, c, "r1", passed=c != "c9") for n in range(1, 6) for c in CASES]
    now = [trial(c, n, f"new {c}", passed=c != "c3") for n in (1, 2) for c in CASES]
    found = copies_among(stored, now, passes)
    assert found.frozen and found.lost == ()


def test_the_bases_agent_asked_in_this_job_proves_a_deterministic_agent_whose_change_rewords_everything() -> None:
    stored = trials(lambda c, n: c, 5, "r1")
    run: list[Trial] = []
    settings = Settings(rerun="match")
    asked = []
    while isinstance(step := step_of(Comparison([Case(c, ()) for c in CASES], [OK], run, stored, settings)), More):
        for request in step.requests:
            asked.append((request.side, request.tag))
            for case in request.cases * request.n:
                base = request.side is Side.BASELINE
                right = base or case != "c3"
                text = case if base else f"new {case}"
                made = Trial(
                    case, len(run) + 1, step.round, request.tag, request.side, scores={"ok": Score(float(right))}
                )
                run.append(replace(made, answer=text))
    assert step.verdict is Verdict.REGRESSED
    assert step.outcome is not None and step.outcome.cases == ("c3",)
    assert (Side.BASELINE, REPEAT) in asked
