"""Records side by side: what is common, what is comparable, and what a reader is told."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gate.errors import ConfigError, MeasureError
from gate.insight.lineup import COST, LATENCY, Contender, check_contenders, line_up, worse_than_first
from gate.model import Criterion, ErrorKind, Invocation, Scale, Score, Side, Trial, TrialError, Usage
from gate.records import Header, PlannedCase, Record
from gate.records.model import footer_of

GOOD = Criterion("good", "contains", Scale.UNIT, threshold=0.5, fingerprint="one")
OTHER = Criterion("other", "contains", Scale.UNIT, threshold=0.5, fingerprint="two")
PLAN = tuple(PlannedCase(f"case {n}", f"content {n}") for n in range(12))


def trial(case: str, value: float, number: int = 1, cost: float | None = 0.01, **changes: object) -> Trial:
    usage = None if cost is None else Usage(cost_usd=cost)
    scores = {name: Score(value) for name in ("good", "other")}
    made = Trial(case, number, scores=scores, invocations=(Invocation(usage=usage),), duration=1.0, started=100.0)
    return replace(made, **changes)  # type: ignore[arg-type]


def contender(
    name: str,
    value: float = 1.0,
    *,
    plan: tuple[PlannedCase, ...] = PLAN,
    criteria: tuple[Criterion, ...] = (GOOD,),
    suite: str = "support",
    trials: tuple[Trial, ...] | None = None,
    cost: float | None = 0.01,
) -> Contender:
    held = tuple(trial(case.id, value, cost=cost) for case in plan) if trials is None else trials
    return Contender(name, Record(Header(suite, plan, criteria), held, footer_of(held)), f"{name}.jsonl")


def test_three_records_are_paired_case_by_case() -> None:
    found = line_up([contender("a"), contender("b", 0.0, cost=0.02), contender("c")])
    assert [one.name for one in found.measures] == ["pass rate", "good", COST, LATENCY]
    assert (found.cases, found.comparisons) == (12, 12)
    rate = found.measure("pass rate")
    assert rate is not None and rate.better(0, 1) and not rate.better(0, 2)
    assert [(one.entry, one.by, one.proven) for one in found.dominated] == [(1, 0, True)]
    assert worse_than_first(found) == ["b"]
    assert found.notes == ()


def test_cases_are_paired_by_content_and_the_rest_is_left_out_and_said() -> None:
    renamed = (PlannedCase("renamed", "content 0"), *PLAN[1:], PlannedCase("more", "more"))
    edited = (PlannedCase("case 0", "content 0"), PlannedCase("case 1", "edited"), *PLAN[2:])
    found = line_up([contender("a"), contender("b", plan=renamed), contender("c", plan=edited)])
    assert found.cases == 11
    notes = "\n".join(found.notes)
    assert "b: 2 cases left out" in notes
    assert "c: 1 case left out" in notes


def test_records_without_a_common_case_are_refused() -> None:
    with pytest.raises(MeasureError, match="no case in common"):
        line_up([contender("a"), contender("b", plan=(PlannedCase("x", "x"),))])


def test_records_of_several_suites_say_so() -> None:
    found = line_up([contender("a"), contender("b", suite="people")])
    assert any("2 suites" in note for note in found.notes)


def test_a_criterion_that_was_measured_in_another_way_is_left_out_for_that_entry() -> None:
    changed = replace(GOOD, fingerprint="another judge")
    found = line_up([contender("a", criteria=(GOOD, OTHER)), contender("b", criteria=(changed,))])
    row = found.measure("good")
    assert row is not None
    assert row.estimates[1] is None
    assert row.apart == ("", "measured in another way")
    assert row.differences == ()
    other = found.measure("other")
    assert other is not None and other.apart[1] == "not measured"
    assert any("good: measured in another way" in note for note in found.notes)


def test_what_another_model_judged_under_the_same_name_is_left_out_too() -> None:
    """The pass rate leaves it out as well."""

    def judged(name: str, model: str, value: float) -> Contender:
        scores = {"good": Score(value, judges=(("judge", model),)), "other": Score(1.0)}
        trials = tuple(replace(trial(case.id, value), scores=scores) for case in PLAN)
        return contender(name, criteria=(GOOD, OTHER), trials=trials)

    found = line_up([judged("a", "judge-1", 1.0), judged("b", "judge-2", 0.0)])
    row, rate = found.measure("good"), found.measure("pass rate")
    assert row is not None and row.apart == ("", "measured in another way")
    assert rate is not None and not rate.better(0, 1)
    assert worse_than_first(found) == []


def test_the_pass_rate_goes_by_what_all_measured_alike() -> None:
    strict = replace(OTHER, threshold=2.0)
    both = line_up([contender("a", criteria=(GOOD, strict)), contender("b", criteria=(GOOD, strict))])
    one = line_up([contender("a", criteria=(GOOD, strict)), contender("b", criteria=(GOOD,))])
    rates = [found.measure("pass rate") for found in (both, one)]
    assert [rate.estimates[0].value for rate in rates if rate and rate.estimates[0]] == [0.0, 1.0]


def test_a_failing_agent_fails_in_the_pass_rate_and_has_no_cost() -> None:
    down = TrialError(ErrorKind.CRASH, "it ended")
    lost = TrialError(ErrorKind.LIMIT, "later")
    trials = (trial("case 0", 1.0, error=down), trial("case 1", 1.0, error=lost), *(trial(c.id, 1.0) for c in PLAN[2:]))
    found = line_up([contender("a"), contender("b", trials=trials)])
    rate, cost = found.measure("pass rate"), found.measure(COST)
    assert rate is not None and rate.estimates[1] is not None and cost is not None and cost.estimates[1] is not None
    assert (rate.estimates[1].n, cost.estimates[1].n) == (11, 10)
    assert rate.estimates[1].value == pytest.approx(10 / 11)
    assert (found.entries[1].trials, found.entries[1].failed, found.entries[1].lost) == (11, 1, 1)


def test_reruns_and_the_baselines_trials_are_no_trials_of_an_agent() -> None:
    more = (trial("case 0", 0.0, 2, tag="confirm"), trial("case 0", 0.0, 3, side=Side.BASELINE))
    trials = tuple(trial(case.id, 1.0) for case in PLAN)
    found = line_up([contender("a"), contender("b", trials=(*trials, *more))])
    assert found.entries[1].trials == 12


def test_people_tell_no_cost_and_the_others_are_compared() -> None:
    found = line_up([contender("people", cost=None), contender("a"), contender("b", cost=0.02)])
    row = found.measure(COST)
    assert row is not None
    assert row.estimates[0] is None
    assert [(one.one, one.other) for one in row.differences] == [(2, 1)]


def test_runs_at_other_times_are_said_to_be_such() -> None:
    later = tuple(trial(case.id, 1.0, started=900.0) for case in PLAN)
    assert any("not run side by side" in note for note in line_up([contender("a"), contender("b", trials=later)]).notes)


def test_an_unknown_quality_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="good"):
        line_up([contender("a"), contender("b")], quality="goood")


@pytest.mark.parametrize(
    ("names", "why"), [(["a"], "two or more"), (["a", "a"], "'a'"), ([str(n) for n in range(27)], "27")]
)
def test_names_that_cannot_be_compared(names: list[str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_contenders(names)


def test_tokens_that_one_turn_lost_are_not_fewer() -> None:
    def of_turns(*usages: Usage | None) -> tuple[Trial, ...]:
        turns = tuple(Invocation(user="a", response=(), usage=usage) for usage in usages)
        return tuple(trial(case.id, 1.0, cost=None, invocations=turns) for case in PLAN)

    whole, half = Usage(input_tokens=5, output_tokens=1), Usage(output_tokens=1)
    held = [of_turns(whole, whole), of_turns(whole, None), of_turns(whole, half), of_turns(whole, whole)]
    found = line_up([contender(str(n), trials=trials) for n, trials in enumerate(held)]).measure("tokens of a trial")
    assert found is not None
    assert [one and one.value for one in found.estimates] == [12, None, None, 12]
