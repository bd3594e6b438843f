"""Situations whose records are written down trial by trial, because a run would meet them by chance alone.

Each function of `SITUATIONS` gives the suites of one; `write` makes files of them, as a watched run would have left.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gate.baselines.reference import Reference, reference_to
from gate.decision import Settings
from gate.model import (
    STORED,
    BaselineInfo,
    Criterion,
    ErrorKind,
    Invocation,
    Part,
    Scale,
    Score,
    Side,
    ToolCall,
    Trial,
    TrialError,
    Usage,
)
from gate.model.calibration import JudgeCalibration
from gate.model.scale import Direction
from gate.pipeline.terms import Terms
from gate.records import Footer, Header, PlannedCase, Record, footer_of, record_lines, strip

CALLS = Criterion(
    "tool_trajectory_avg_score",
    "tool_trajectory_avg_score",
    Scale.BINARY,
    pass_threshold=1.0,
    fingerprint="calls",
    reads_tools=True,
)
WORDS = Criterion(
    "response_match_score", "response_match_score", Scale.UNIT, threshold=0.5, pass_threshold=0.5, fingerprint="words"
)
ABSENCE = Criterion(
    "not_contains", "not_contains", Scale.BINARY, threshold=1.0, pass_threshold=1.0, fingerprint="absence", absence=True
)
FORBIDDEN = Criterion(
    "forbidden_tools",
    "forbidden_tools",
    Scale.BINARY,
    threshold=1.0,
    pass_threshold=1.0,
    hard=True,
    fingerprint="forbidden",
    reads_tools=True,
    absence=True,
)
JUDGED = Criterion(
    "final_response_match_v2",
    "final_response_match_v2",
    Scale.BINARY,
    threshold=0.8,
    pass_threshold=0.5,
    fingerprint="judge one",
)
RUBRIC = Criterion("quality", "rubric_quality", Scale.LIKERT, threshold=3.0, pass_threshold=3.0, fingerprint="rubric")
LATENCY = Criterion(
    "latency", "latency", Scale.SECONDS, Direction.LOWER, blocks_regression=False, fingerprint="latency"
)
COST = Criterion("cost", "cost", Scale.USD, Direction.LOWER, blocks_regression=False, fingerprint="cost")
ANSWER, CHANGED = "the order left the warehouse this morning", "something else entirely"
HEAD, BASE, ANCHOR = "a" * 40, "b" * 40, "c" * 40
ACCEPTED = "ada at 2026-01-02T10:00:00+00:00"
EXPIRED = f"the acceptance of {BASE[:12]} by ada ended on 2026-01-02"
ERRORS = {
    "crash": TrialError(ErrorKind.CRASH, "ValueError: the tool returned an unknown field"),
    "timeout": TrialError(ErrorKind.TIMEOUT, "no answer within 60 s"),
    "429": TrialError(ErrorKind.LIMIT, "429: rate limit exceeded, retry later"),
}
Told = float | str | Mapping[str, float | None]
"""A trial: what the first criterion finds, how it failed, or what each criterion finds."""
Side_ = Mapping[str, Sequence[Told]]


class Suite(Struct, frozen=True):
    """One suite of a situation."""

    record: Record
    references: tuple[Reference, ...] = ()
    accepted: str = ""
    expired: str = ""


# --- parts of a record ----------------------------------------------------------------------------


def with_threshold(criterion: Criterion, threshold: float | None, **others: Any) -> Criterion:
    return replace(criterion, threshold=threshold, **others)


def plan(cases: Iterable[str], *, edited: Iterable[str] = (), **thresholds: float) -> tuple[PlannedCase, ...]:
    """Cases by content; an edited one has another content under its id."""
    changed = set(edited)
    call = ToolCall("look_up", {"order": 1})
    return tuple(
        PlannedCase(
            case,
            f"content of {case}{' as edited' if case in changed else ''}",
            expected=((call,),),
            thresholds=thresholds,
        )
        for case in cases
    )


def named(number: int, first: int = 0) -> list[str]:
    return [f"case-{n:02}" for n in range(first, first + number)]


def always(cases: Iterable[str], trials: int, value: Told = 1.0) -> dict[str, list[Told]]:
    return {case: [value] * trials for case in cases}


def spread(cases: Sequence[str], trials: int, hits: int, seed: int = 1) -> dict[str, list[Told]]:
    """So many hits of all trials, anywhere."""
    values = [1.0] * hits + [0.0] * (len(cases) * trials - hits)
    Random(seed).shuffle(values)
    return {case: list(values[n * trials : (n + 1) * trials]) for n, case in enumerate(cases)}


def trial(case: str, number: int, told: Told, criteria: Sequence[Criterion], **others: Any) -> Trial:
    """One trial; an answer shows what its scores say."""
    if isinstance(told, str):
        return Trial(case, number, error=ERRORS[told], duration=0.2, **others)
    scores = told if isinstance(told, Mapping) else {criteria[0].name: told}
    met = scores.get(CALLS.name, 1.0) == 1.0
    said = ANSWER if scores.get(WORDS.name, 1.0) == 1.0 else f"{ANSWER}. Have a nice day!"
    if scores.get("silent"):
        said, met = "", False
    calls = (ToolCall("look_up", {"order": 1}),) if met and not scores.get("silent") else ()
    # What an agent says is worded anew each time, unless it says nothing.
    answer = hashlib.sha256(f"{case} {number} {others.get('side')} {others.get('started')}".encode()).hexdigest()[:16]
    said = f"{said} (ticket {answer[:6]})" if said else said
    cost = scores.get("cost")
    usage = Usage(cost_usd=cost) if cost is not None else None
    turn = Invocation("where is it?", (Part(said),) if said else (), calls, usage=usage, reports_calls=True)
    found = {criterion.name: Score(scores.get(criterion.name, 1.0)) for criterion in criteria}
    return Trial(case, number, invocations=(turn,), scores=found, duration=0.2, answer=answer, **others)


def trials(values: Side_, criteria: Sequence[Criterion], first: int = 1, **others: Any) -> list[Trial]:
    """Each case's trials in turn, an epoch a round."""
    longest = max(map(len, values.values()), default=0)
    return [
        trial(case, first + n, told[n], criteria, **{"round": first + n, **others})
        for n in range(longest)
        for case, told in values.items()
        if n < len(told)
    ]


def run(
    values: Side_,
    criteria: Sequence[Criterion] = (CALLS,),
    *,
    cases: tuple[PlannedCase, ...] | None = None,
    base_now: Side_ | None = None,
    more: Sequence[Trial] = (),
    settings: Settings | None = None,
    header: Mapping[str, Any] | None = None,
    stopped: str = "",
    **terms: Any,
) -> Record:
    """The closed record of a change's run, with its rules."""
    made = trials(values, criteria, started=2.0)
    made += trials(base_now or {}, criteria, side=Side.BASELINE, started=3.0)
    made += more
    told = Terms(tuple(criteria), settings or Settings(), **{"scheduled": True, **terms})
    footer = replace(footer_of(tuple(made)), duration=12.0, terms=told.plain(), stopped=stopped)
    own = {"commit": HEAD, "base_commit": BASE, "run_id": "run-now", "agent": "agent now", **(header or {})}
    kept = Header("support", cases or plan(values), tuple(criteria), created=2_000.0, definition="one", **own)
    return Record(kept, tuple(made), footer)


def stored(
    values: Side_,
    criteria: Sequence[Criterion] = (CALLS,),
    *,
    cases: tuple[PlannedCase, ...] | None = None,
    commit: str = BASE,
    **header: Any,
) -> Record:
    """The record that a baseline holds."""
    made = tuple(trials(values, criteria, started=1.0))
    own = {"commit": commit, "run_id": f"run-{commit[:4]}", "agent": f"agent {commit[:4]}", **header}
    kept = Header("support", cases or plan(values), tuple(criteria), created=1_000.0, definition="one", **own)
    return strip(Record(kept, made, Footer(len(made), 0, 1)))


def against(*records: Record, name: str = "baseline", distance: int = 0, of_change: bool = True) -> Reference:
    found = reference_to(records, distance=distance, source="the store")
    return replace(found, name=name, of_change=of_change)


def none(why: str = "no baseline of 'support' in the store") -> Reference:
    return Reference(BaselineInfo(None, missing=why, none_yet=True))


def alone(record: Record) -> list[Suite]:
    return [Suite(record, (none(),))]


def compared(record: Record, *records: Record, **others: Any) -> list[Suite]:
    return [Suite(record, (against(*records),), **others)]


# --- the situations -------------------------------------------------------------------------------

SITUATIONS: dict[str, Callable[[], list[Suite]]] = {}


def situation(make: Callable[[], list[Suite]]) -> Callable[[], list[Suite]]:
    SITUATIONS[make.__name__.replace("_", "-")] = make
    return make


@situation
def mean_058_of_080_over_24_trials() -> list[Suite]:
    return alone(run(spread(named(8), 3, 14), [with_threshold(CALLS, 0.8)]))


@situation
def mean_0733_of_080_over_15_trials() -> list[Suite]:
    return alone(run(spread(named(5), 3, 11), [with_threshold(CALLS, 0.8)]))


@situation
def mean_exactly_at_the_threshold() -> list[Suite]:
    return alone(run(spread(named(10), 2, 16), [with_threshold(CALLS, 0.8)]))


@situation
def mean_far_below_the_threshold() -> list[Suite]:
    return alone(run(spread(named(20), 3, 12), [with_threshold(CALLS, 0.8)]))


@situation
def strict_threshold_narrowly_missed() -> list[Suite]:
    return alone(run(spread(named(20), 3, 47), [with_threshold(CALLS, 0.8, strict=True)]))


@situation
def one_case_collapses_without_a_threshold() -> list[Suite]:
    return compared(run(always(named(1), 5, 0.0)), stored(always(named(1), 5)))


@situation
def two_cases_collapse_without_a_threshold() -> list[Suite]:
    return compared(run(always(named(2), 5, 0.0)), stored(always(named(2), 5)))


@situation
def one_case_of_five_collapses_and_the_threshold_holds() -> list[Suite]:
    now = always(named(5), 3) | always(named(1), 3, 0.0)
    criteria = [with_threshold(CALLS, 0.8)]
    return compared(run(now, criteria), stored(always(named(5), 3), criteria))


@situation
def two_cases_of_two_collapse_on_a_rubric() -> list[Suite]:
    criteria = [with_threshold(RUBRIC, None)]
    return compared(
        run(always(named(2), 3, {"quality": 1.0}), criteria), stored(always(named(2), 3, {"quality": 5.0}), criteria)
    )


def _drifted(base_now: int) -> list[Suite]:
    cases = named(10)
    before = spread(cases, 5, 46, seed=3)
    now, beside = spread(cases, 5, 35, seed=4), spread(cases, 3, base_now, seed=5)
    settings = Settings(rerun="match", max_epochs=5)
    return compared(run(now, base_now=beside, settings=settings), stored(before))


@situation
def base_agrees_with_its_record_28_of_30() -> list[Suite]:
    return _drifted(28)


@situation
def base_fell_as_far_21_of_30() -> list[Suite]:
    return _drifted(21)


@situation
def base_fell_a_little_25_of_30() -> list[Suite]:
    return _drifted(25)


@situation
def base_run_beside_without_a_stored_record() -> list[Suite]:
    cases = named(12)
    record = run(spread(cases, 3, 20), base_now=spread(cases, 3, 35, seed=2), settings=Settings(rerun="match"))
    return alone(record)


@situation
def every_answer_is_empty_and_only_absence_is_asked() -> list[Suite]:
    record = run(always(named(12), 1, {"silent": 1.0}), [ABSENCE])
    empty = tuple(replace(one, answer="-") for one in record.trials)
    return alone(replace(record, trials=empty))


@situation
def a_closing_sentence_lowers_word_overlap() -> list[Suite]:
    criteria = [with_threshold(CALLS, 0.5), WORDS]
    before = always(named(8), 5, {WORDS.name: 0.99})
    now = always(named(8), 5, {WORDS.name: 0.79})
    return compared(run(now, criteria), stored(before, criteria))


@situation
def the_same_agent_passes_again() -> list[Suite]:
    cases = named(20)
    same = {"agent": "agent bbbb"}
    return compared(run(spread(cases, 2, 37), header=same), stored(spread(cases, 5, 93, seed=2)))


@situation
def the_same_agent_has_an_unlucky_draw() -> list[Suite]:
    cases = named(20)
    same = {"agent": "agent bbbb"}
    return compared(run(spread(cases, 3, 49), header=same), stored(spread(cases, 5, 93, seed=2)))


@situation
def imported_check_without_a_threshold_never_passes() -> list[Suite]:
    criterion = replace(JUDGED, name="hallucination", metric="hallucinations_v1", scale=Scale.UNIT, threshold=None)
    return alone(run(always(named(1), 5, {"hallucination": 0.1}), [criterion]))


@situation
def own_thresholds_hold_and_the_suites_mean_is_missed() -> list[Suite]:
    criteria = [with_threshold(WORDS, 0.8)]
    cases = plan(named(40), **{WORDS.name: 0.5})
    own = {case.id: {WORDS.name: 0.5} for case in cases}
    return alone(run(always(named(40), 1, {WORDS.name: 0.6}), criteria, cases=cases, thresholds=own))


@situation
def one_own_threshold_is_missed_in_every_trial() -> list[Suite]:
    criteria = [with_threshold(WORDS, 0.5)]
    cases = (*plan(named(1), **{WORDS.name: 0.9}), *plan(named(19, 1)))
    values = always(named(20), 3, {WORDS.name: 0.8})
    return alone(run(values, criteria, cases=cases, thresholds={"case-00": {WORDS.name: 0.9}}))


@situation
def failures_that_do_not_recur() -> list[Suite]:
    now: dict[str, list[Told]] = {case: ["crash", 1.0, 1.0] for case in named(7)}
    now |= always(named(13, 7), 3)
    later = [trial(case, 4, 1.0, [CALLS], round=4, tag="probe", started=9.0) for case in named(7)]
    return compared(run(now, more=later), stored(always(named(20), 5)))


@situation
def failures_that_recur() -> list[Suite]:
    now: dict[str, list[Told]] = {case: ["crash"] * 3 for case in named(5)}
    now |= always(named(15, 5), 3)
    later = [trial(case, 4, "crash", [CALLS], round=4, tag="probe", started=9.0) for case in named(5)]
    return compared(run(now, more=later), stored(always(named(20), 5)))


@situation
def a_provider_refused_and_three_trials_are_unmeasured() -> list[Suite]:
    now = always(named(20), 2)
    now |= {case: ["429", 1.0] for case in named(3)}
    return compared(run(now), stored(always(named(20), 5)))


@situation
def unmeasured_trials_could_turn_the_threshold() -> list[Suite]:
    now = spread(named(20), 1, 17)
    now |= {case: ["429"] for case in named(6)}
    return alone(run(now, [with_threshold(CALLS, 0.8)]))


@situation
def every_trial_times_out() -> list[Suite]:
    return compared(run(always(named(10), 1, "timeout")), stored(always(named(10), 5)))


@situation
def the_suite_is_renamed_and_half_of_it_breaks() -> list[Suite]:
    now = always(named(5), 3, 0.0) | always(named(5, 5), 3)
    return [Suite(run(now), (none("no baseline of 'support two' in the store"),))]


@situation
def the_failing_cases_are_edited() -> list[Suite]:
    now = always(named(10), 3) | always(named(3), 3, 0.0)
    return compared(run(now, cases=plan(named(10), edited=named(3))), stored(always(named(10), 5)))


@situation
def the_failing_half_of_the_cases_is_removed() -> list[Suite]:
    return compared(run(always(named(5, 5), 3)), stored(always(named(10), 5)))


@situation
def one_case_of_thirty_is_removed() -> list[Suite]:
    return compared(run(always(named(29), 3)), stored(always(named(30), 5)))


@situation
def cases_have_other_ids_and_the_same_content() -> list[Suite]:
    before = plan(named(10))
    renamed = tuple(replace(case, id=f"renamed-{case.id}") for case in before)
    return compared(run(always([case.id for case in renamed], 3), cases=renamed), stored(always(named(10), 5)))


@situation
def a_case_is_edited_under_another_id() -> list[Suite]:
    renamed = tuple(
        replace(case, id=f"new-{case.id}", fingerprint=f"other {n}") if n < 4 else case
        for n, case in enumerate(plan(named(10)))
    )
    now = {case.id: [0.0 if case.id.startswith("new") else 1.0] * 3 for case in renamed}
    return compared(run(now, cases=renamed), stored(always(named(10), 5)))


@situation
def a_judge_under_another_models_name() -> list[Suite]:
    other = replace(JUDGED, fingerprint="judge two")
    return compared(
        run(always(named(10), 3, {JUDGED.name: 1.0}), [other]),
        stored(always(named(10), 5, {JUDGED.name: 1.0}), [JUDGED]),
    )


@situation
def a_criterion_is_gone() -> list[Suite]:
    before = stored(always(named(10), 5), [CALLS, WORDS])
    return compared(run(always(named(10), 3), [CALLS]), before)


@situation
def a_forbidden_tool_is_called_once() -> list[Suite]:
    criteria = [with_threshold(WORDS, 0.5), FORBIDDEN]
    now = always(named(10), 2)
    now["case-04"] = [{WORDS.name: 1.0, FORBIDDEN.name: 0.0}, 1.0]
    return compared(run(now, criteria), stored(always(named(10), 5), criteria))


@situation
def one_trial_is_over_its_limit() -> list[Suite]:
    criteria = [with_threshold(CALLS, 0.5), replace(COST, limit=0.1)]
    now = always(named(10), 2, {"cost": 0.02})
    now["case-04"] = [{"cost": 0.02}, {"cost": 0.3}]
    return compared(run(now, criteria), stored(always(named(10), 5, {"cost": 0.02}), criteria))


@situation
def a_95th_percentile_is_missed() -> list[Suite]:
    criteria = [CALLS, replace(LATENCY, quantiles=((0.95, 3.0),))]
    now: dict[str, list[Told]] = {
        case: [{"latency": 5.0 if n % 4 == 0 else 1.0}] * 3 for n, case in enumerate(named(20))
    }
    return compared(run(now, criteria), stored(always(named(20), 5, {"latency": 1.0}), criteria))


@situation
def cost_doubles_and_may_block() -> list[Suite]:
    criteria = [CALLS, replace(COST, blocks_regression=True, margin=0.1)]
    return compared(
        run(always(named(8), 3, {"cost": 0.04}), criteria), stored(always(named(8), 5, {"cost": 0.02}), criteria)
    )


@situation
def below_as_the_base_was() -> list[Suite]:
    criteria = [with_threshold(CALLS, 0.8)]
    cases = named(20)
    return compared(run(spread(cases, 3, 36), criteria), stored(spread(cases, 5, 60, seed=2), criteria))


@situation
def below_as_the_base_was_without_a_ratchet() -> list[Suite]:
    criteria = [with_threshold(CALLS, 0.8, ratchet=False)]
    cases = named(20)
    return compared(run(spread(cases, 3, 36), criteria), stored(spread(cases, 5, 60, seed=2), criteria))


@situation
def added_easy_cases_lift_the_mean_over_the_threshold() -> list[Suite]:
    criteria = [with_threshold(CALLS, 0.8)]
    now = spread(named(10), 3, 18) | always(named(30, 10), 3)
    return compared(run(now, criteria), stored(spread(named(10), 5, 46), criteria))


@situation
def more_cases_are_repaired() -> list[Suite]:
    before = always(named(20), 5) | always(named(6), 5, 0.0)
    return compared(run(always(named(20), 3)), stored(before))


@situation
def a_small_loss_on_few_cases() -> list[Suite]:
    cases = named(8)
    return compared(run(spread(cases, 3, 19), settings=Settings(on_inconclusive="block")), stored(spread(cases, 5, 37)))


@situation
def a_graded_score_falls() -> list[Suite]:
    criteria = [replace(WORDS, name="answer", metric="similarity", threshold=None, pass_threshold=None)]
    rng = Random(7)
    before = {case: [{"answer": min(1.0, rng.gauss(0.8, 0.05))} for _ in range(5)] for case in named(12)}
    now = {case: [{"answer": min(1.0, rng.gauss(0.7, 0.05))} for _ in range(3)] for case in named(12)}
    return compared(run(now, criteria), stored(before, criteria))


@situation
def a_graded_score_stays() -> list[Suite]:
    criteria = [replace(WORDS, name="answer", metric="similarity", threshold=None, pass_threshold=None, margin=0.05)]
    rng = Random(8)
    before = {case: [{"answer": min(1.0, rng.gauss(0.8, 0.05))} for _ in range(5)] for case in named(20)}
    now = {case: [{"answer": min(1.0, rng.gauss(0.8, 0.05))} for _ in range(3)] for case in named(20)}
    return compared(run(now, criteria), stored(before, criteria))


@situation
def quarantine_holds_the_broken_case() -> list[Suite]:
    now = always(named(20), 3) | always(named(1), 3, 0.0)
    settings = Settings(quarantine={"case-00": "known (me, until 2999-01-01)"})
    return compared(run(now, settings=settings), stored(always(named(20), 5)))


@situation
def the_base_holds_and_the_anchor_does_not() -> list[Suite]:
    cases = named(24)
    record = run(spread(cases, 3, 54), anchored=True, settings=Settings(comparisons=2))
    base, anchor = stored(spread(cases, 5, 91, seed=2)), stored(spread(cases, 5, 117, seed=3), commit=ANCHOR)
    held = (against(base), against(anchor, name="anchor", distance=7, of_change=False))
    return [Suite(record, held)]


@situation
def both_the_base_and_the_anchor_hold() -> list[Suite]:
    cases = named(10)
    record = run(always(cases, 3), anchored=True, settings=Settings(comparisons=2))
    base, anchor = stored(always(cases, 5)), stored(always(cases, 5), commit=ANCHOR)
    held = (against(base), against(anchor, name="anchor", distance=7, of_change=False))
    return [Suite(record, held)]


@situation
def the_change_tightens_a_threshold_that_it_misses() -> list[Suite]:
    criteria = [with_threshold(CALLS, 0.95, ratchet=False)]
    before = Terms((with_threshold(CALLS, 0.6),), Settings())
    values = spread(named(20), 3, 48)
    record = run(values, criteria, base=before, rules=BASE, changes=("criteria.tool_trajectory_avg_score",))
    return compared(record, stored(spread(named(20), 5, 81, seed=2), criteria))


@situation
def the_change_loosens_a_threshold_that_it_misses() -> list[Suite]:
    criteria = [with_threshold(CALLS, 0.2)]
    before = Terms((with_threshold(CALLS, 0.95),), Settings())
    record = run(spread(named(20), 3, 30), criteria, base=before, rules=BASE, changes=("a lower threshold",))
    return alone(record)


@situation
def a_loss_is_accepted() -> list[Suite]:
    now = always(named(10), 3) | always(named(4), 3, 0.0)
    return compared(run(now), stored(always(named(10), 5)), accepted=ACCEPTED)


@situation
def a_loss_and_a_missed_threshold_are_accepted() -> list[Suite]:
    criteria = [with_threshold(CALLS, 0.9)]
    now = always(named(10), 3) | always(named(5), 3, 0.0)
    suites = compared(run(now, criteria), stored(always(named(10), 5), criteria))
    return [replace(suites[0], accepted=ACCEPTED)]


@situation
def an_acceptance_has_ended() -> list[Suite]:
    now = always(named(10), 3) | always(named(4), 3, 0.0)
    return compared(run(now), stored(always(named(10), 5)), expired=EXPIRED)


CALIBRATION = JudgeCalibration(both_pass=60, both_fail=25, only_judge=12, only_people=3)


@situation
def a_calibrated_judge_passes_more_than_people_do() -> list[Suite]:
    criteria = [replace(JUDGED, calibration=CALIBRATION)]
    return alone(run(_judged(spread(named(40), 3, 102)), criteria))


@situation
def a_calibrated_judge_finds_a_loss() -> list[Suite]:
    criteria = [replace(JUDGED, threshold=None, calibration=CALIBRATION)]
    before, now = _judged(always(named(12), 5)), _judged(spread(named(12), 3, 20))
    return compared(run(now, criteria), stored(before, criteria))


def _judged(values: Side_) -> Side_:
    return {case: [{JUDGED.name: told} for told in one] for case, one in values.items()}  # type: ignore[dict-item]


@situation
def the_budget_ended_before_an_epoch() -> list[Suite]:
    now = always(named(7), 1)
    record = run(now, cases=plan(named(20)), stopped="budget.usd: 1.00 USD are spent", header={"run_id": "short"})
    return compared(record, stored(always(named(20), 5)))


@situation
def the_budget_ended_after_a_loss_was_proven() -> list[Suite]:
    now = always(named(20), 1) | always(named(8), 2, 0.0)
    return compared(run(now, stopped="budget.runs: 28 runs are made"), stored(always(named(20), 5)))


@situation
def a_selection_whose_cases_nobody_names() -> list[Suite]:
    header = {"selected": True, "scope": "case case-0*", "whole": 20}
    return compared(run(always(named(6), 3), header=header), stored(always(named(20), 5)))


@situation
def epochs_stored_for_later_count() -> list[Suite]:
    more = trials(always(named(10), 3, 0.0), [CALLS], first=3, tag=STORED, started=8.0)
    return compared(run(always(named(10), 2), more=more), stored(always(named(10), 5)))


@situation
def a_release_counts_every_epoch() -> list[Suite]:
    more = trials(spread(named(10), 3, 27), [CALLS], first=3, tag=STORED, started=8.0)
    record = run(always(named(10), 2), more=more, whole=True, release="v1.2.0", settings=Settings(alpha=0.01))
    return compared(record, stored(always(named(10), 5)))


@situation
def no_pass_is_believed() -> list[Suite]:
    record = run(always(named(10), 3), doubts=("the base commit has no configuration",))
    return compared(record, stored(always(named(10), 5)))


@situation
def one_of_two_suites_regressed() -> list[Suite]:
    broken = run(always(named(8), 3) | always(named(4), 3, 0.0), settings=Settings(comparisons=2, suites=2))
    fine = run(always(named(8), 3), settings=Settings(comparisons=2, suites=2))
    other = replace(fine, header=replace(fine.header, suite_id="billing", run_id="run-two"))
    base = stored(always(named(8), 5))
    base_two = replace(base, header=replace(base.header, suite_id="billing"))
    return [Suite(broken, (against(base),)), Suite(other, (against(base_two),))]


@situation
def a_hundred_cases_fall_by_five_points() -> list[Suite]:
    cases = named(100)
    return compared(run(spread(cases, 3, 264)), stored(spread(cases, 3, 279, seed=2)))


@situation
def every_trial_said_the_same() -> list[Suite]:
    record, base = run(always(named(3), 3, 0.0) | always(named(7, 3), 3)), stored(always(named(10), 5))
    same = tuple(
        replace(one, answer=f"answer {one.case_id}", invocations=record.trials[0].invocations) for one in record.trials
    )
    alike = tuple(replace(one, answer=f"old answer {one.case_id}") for one in base.trials)
    return compared(replace(record, trials=same), replace(base, trials=alike))


@situation
def a_stored_record_of_one_trial_a_case() -> list[Suite]:
    now = always(named(20), 3) | always(named(2), 3, 0.0)
    return compared(run(now), stored(always(named(20), 1)))


@situation
def two_stored_records_are_pooled() -> list[Suite]:
    now = always(named(10), 3) | always(named(3), 3, 0.0)
    one, two = stored(always(named(10), 2)), stored(always(named(10), 2), commit=ANCHOR, agent="agent bbbb")
    return compared(run(now), one, two)


# --- as files -------------------------------------------------------------------------------------


def write(name: str, folder: Path) -> Path:
    """The situation of this name in a new folder, as a watched run would have kept it."""
    return keep(SITUATIONS[name](), folder)


def write_pair(before: Sequence[Sequence[float]], now: Sequence[Sequence[float]], folder: Path) -> Path:
    """Recorded trials of every third task, which earned a reward or did not; the tasks are in the same order."""
    reward = Criterion("reward", "reward", Scale.BINARY, pass_threshold=0.5, fingerprint="reward")
    sides = [{f"task-{n:02}": list(values) for n, values in enumerate(side[::3])} for side in (now, before)]
    return keep(compared(run(sides[0], [reward]), stored(sides[1], [reward])), folder)


def keep(suites: Sequence[Suite], folder: Path) -> Path:
    folder.mkdir(parents=True)
    about = []
    for number, suite in enumerate(suites, 1):
        end = f"-{number}" if len(suites) > 1 else ""
        references = []
        for place, reference in enumerate(suite.references, 1):
            files = [f"base{end}-{place}-{n}.jsonl" for n in range(1, len(reference.records) + 1)]
            for file, record in zip(files, reference.records, strict=True):
                (folder / file).write_bytes(b"".join(record_lines(record)))
            info = msgspec.to_builtins(reference.info)
            told = {"name": reference.name, "info": info, "records": files, "of_change": reference.of_change}
            references.append(told)
        (folder / f"run{end}.jsonl").write_bytes(b"".join(record_lines(suite.record)))
        kept = {"record": f"run{end}.jsonl", "references": references}
        about.append({**kept, "accepted": suite.accepted, "expired": suite.expired})
    (folder / "kept.json").write_text(json.dumps({"suites": about}), encoding="utf-8")
    return folder
