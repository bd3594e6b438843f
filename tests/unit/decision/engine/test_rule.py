"""The rule on numbers: what it asks for, when it answers, and what it may never do."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import permutations, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.decision.engine.evidence import ALONE_SHARES, CASES_SHARE, LOOK_SHARES, gather, look_shares
from gate.decision.engine.repeats import REPEATS_SHARES
from gate.decision.engine.rule import decide
from gate.decision.engine.schedule import NAMING_WAVES, WAVES
from gate.decision.engine.state import Config, Metric, More, Partner, Request, Rerun, Round, Row, State
from gate.model import Direction, Outcome, Side, Stage, StageKind
from tests.patience import steps
from tests.properties import examples
from tests.unit.decision.numbers import SUCCESS, bernoulli, confirm, drive, full, ids, rows, state

STEADY = {c: rows(1, 1, 1, 1, 1) for c in ids(40)}


def outcome(step: More | Outcome) -> Outcome:
    assert isinstance(step, Outcome), step
    return step


def asked(step: More | Outcome) -> tuple[Request, ...]:
    assert isinstance(step, More), step
    return step.requests


# --- screen, confirm, certify ---------------------------------------------------------------------


def test_a_failing_case_is_rerun_and_nothing_else() -> None:
    screened = full({c: rows(0 if c == "c0003" else 1) for c in STEADY})
    assert asked(decide(state(STEADY, screened))) == (Request(Side.CANDIDATE, "confirm", ("c0003",), 1),)
    once = confirm({"c0003": rows(0)})
    assert asked(decide(state(STEADY, screened, once))) == (Request(Side.CANDIDATE, "confirm", ("c0003",), 2),)


def test_a_case_that_recovers_is_let_go() -> None:
    screened = full({c: rows(0 if c == "c0003" else 1) for c in STEADY})
    answer = outcome(decide(state(STEADY, screened, confirm({"c0003": rows(1)}))))
    assert answer.verdict == "PASS"


def test_a_broken_case_is_proven_and_named() -> None:
    now = dict.fromkeys(STEADY, 1.0) | {"c0003": 0.0}
    answer, requests = drive(state(STEADY), bernoulli(Random(1), now, now))
    assert (answer.verdict, answer.cases) == ("REGRESSION", ("c0003",))
    assert sum(r.runs for r in requests) < 2 * 40
    assert answer.evidence.highest_e_value >= answer.evidence.e_threshold == pytest.approx(1 / (0.02 * CASES_SHARE))


def test_a_case_that_never_passed_is_not_rerun() -> None:
    baseline = {**STEADY, "c0000": rows(0, 0, 0, 0, 0), "c0001": rows(0, 0, 0, 1, 1)}
    screened = full({c: rows(0 if c in ("c0000", "c0001") else 1) for c in baseline})
    assert outcome(decide(state(baseline, screened))).verdict == "PASS"


def test_a_fall_of_everything_is_a_regression_without_a_name() -> None:
    baseline = {c: rows(1, 1, 0, 1, 1) for c in ids(200)}
    rng = Random(3)
    answer, _ = drive(state(baseline), lambda _side, _case: [float(rng.random() < 0.55)])
    assert (answer.verdict, answer.cases) == ("REGRESSION", ())
    assert answer.stage.kind is StageKind.SUITE_LOOK


def test_an_undecided_suite_ends_inconclusive_at_the_price_of_three_epochs() -> None:
    baseline = {c: rows(1, 0, 1, 0, 1) for c in ids(12)}
    turn = {c: i for i, c in enumerate(baseline)}

    def alternate(_side: Side, case: str) -> list[float]:
        turn[case] += 1
        return [float(turn[case] % 2)]

    answer, requests = drive(state(baseline), alternate)
    assert answer.verdict == "INCONCLUSIVE"
    assert [r.tag for r in requests] == ["full", "full", "narrow"]
    assert sum(r.runs for r in requests) == 3 * 12
    assert answer.evidence.metrics["success"].detectable > 0.1


# --- the last epoch: the cases that vary ----------------------------------------------------------

VARYING = {c: rows(1, 0, 1, 1, 0) if i < 8 else rows(1, 1, 1, 1, 1) for i, c in enumerate(ids(20))}
"""A suite of which eight cases vary."""


def failing(first: Collection[int], second: Collection[int]) -> tuple[Round, ...]:
    """Return two epochs in which the cases at these places fail."""
    return tuple(full({c: rows(int(i not in places)) for i, c in enumerate(VARYING)}) for places in (first, second))


TWO_EPOCHS = failing((0, 1, 2, 3), (3, 4, 5, 6))
"""Two epochs after which the interval reaches beyond the margin, while no test suggests a drop."""


def narrowing(*rounds: Round) -> tuple[Request, ...]:
    requests = asked(decide(state(VARYING, *rounds)))
    assert {r.tag for r in requests} == {"narrow"}
    return requests


def test_the_last_epoch_goes_to_the_cases_that_vary() -> None:
    requests = narrowing(*TWO_EPOCHS)
    assert sum(r.runs for r in requests) == 20
    shares = {c: r.n for r in requests for c in r.cases}
    varying, steady = ids(20)[:8], ids(20)[8:]
    assert min(shares[c] for c in varying) > max(shares.get(c, 0) for c in steady)


def test_only_stored_trials_decide_which_cases_vary() -> None:
    others = failing((4, 5, 6, 7), (0, 1, 2, 7))
    assert narrowing(*TWO_EPOCHS) == narrowing(*others)


def test_these_trials_narrow_the_interval_and_no_look_at_the_suite_sees_them() -> None:
    requests = narrowing(*TWO_EPOCHS)
    new = [Round(r.tag, r.side, {c: rows(*[1] * r.n) for c in r.cases}) for r in requests]
    before = gather(state(VARYING, *TWO_EPOCHS))
    after = gather(state(VARYING, *TWO_EPOCHS, *new))
    assert after.looks == before.looks
    assert (after.epochs, after.epochs_spent) == (2, 3)
    for evidence in (before, after):
        evidence.end()
    wide, narrow = before.bounds[0], after.bounds[0]
    assert wide is not None and narrow is not None and wide.low is not None and narrow.low is not None
    assert narrow.change - narrow.low < 0.8 * (wide.change - wide.low)
    assert outcome(decide(state(VARYING, *TWO_EPOCHS, *new))).verdict == "PASS"


@pytest.mark.parametrize(
    "why",
    [
        "a drop is suspected",
        "a case seems broken",
        "the baseline is thin",
        "the epoch is run anyway",
        "a case could not be measured",
        "more may follow",
    ],
)
def test_the_last_epoch_runs_every_case_if_it_may_tell_more(why: str) -> None:
    baseline, rounds, config = VARYING, TWO_EPOCHS, Config()
    if why == "a drop is suspected":
        rounds = failing(range(6), range(2, 8))
    elif why == "a case seems broken":
        rounds = failing((0, 9), (0, 9))
    elif why == "the baseline is thin":
        baseline = {c: stored[:2] for c, stored in VARYING.items()}
        rounds = failing(range(5), range(3, 8))
    elif why == "the epoch is run anyway":
        config = Config(kept_epochs=5)
    elif why == "a case could not be measured":
        rounds = tuple(replace(one, trials={**one.trials, "c0019": [[None]]}) for one in TWO_EPOCHS)
    else:
        config = Config(max_epochs=4)
    assert asked(decide(state(baseline, *rounds, config=config)))[0].tag in ("full", "confirm")


def test_the_last_epoch_runs_every_case_if_no_interval_is_open() -> None:
    """A low score of one metric alone keeps the suite from passing: which cases vary says nothing about it."""
    rng = Random(7)
    metrics = (SUCCESS, Metric("words"), Metric("style"))

    def trial(words: float, style: float) -> Row:
        return [float(rng.random() < 0.97), round(rng.gauss(words, 0.05), 3), round(rng.gauss(style, 0.05), 3)]

    stored = {c: [trial(0.8, 0.7) for _ in range(5)] for c in ids(40)}
    screened = full({c: [trial(0.79, 0.69)] for c in stored})
    current = state(stored, screened, metrics=metrics, config=Config(max_epochs=2))
    assert all(bound is not None and bound.holds for bound in gather(current).bounds)
    (request,) = asked(decide(current))
    assert (request.tag, len(request.cases), request.n) == ("full", 40, 1)


def test_a_case_that_answers_only_while_the_interval_is_narrowed_counts_from_then_on() -> None:
    unmeasured = [replace(one, trials={**one.trials, "c0019": [[None]]}) for one in TWO_EPOCHS]
    case = gather(state(VARYING, *unmeasured, Round("narrow", Side.CANDIDATE, {"c0019": rows(1, 0)}))).cases["c0019"]
    assert (case.newest_failed, case.passed, case.trials) == (True, 1, 2)


def test_a_trial_that_narrows_the_interval_is_compared_with_the_recording_that_answered_it() -> None:
    """The case failed in this recording, so failing again is neither new nor a change."""
    links = {"c0000": [Partner(1, whole=True)]}
    narrow = Round("narrow", Side.CANDIDATE, {"c0000": rows(0)}, links)
    case = gather(state(VARYING, *failing((), ()), narrow)).cases["c0000"]
    assert not case.newest_failed
    assert case.sample_links == [None, None, Partner(1, whole=True)]


def test_cases_of_different_clusters_stand_alone() -> None:
    """A cluster of which only one case has values adds no dependence."""
    rounds = failing((), ())
    clusters = {c: f"k{i}" for i, c in enumerate(VARYING)}
    plain = gather(state(VARYING, *rounds))
    clustered = gather(replace(state(VARYING, *rounds), clusters=clusters))
    for evidence in (plain, clustered):
        evidence.end()
    assert clustered.bounds == plain.bounds != gather(state(VARYING, *rounds)).bounds


def test_nothing_passes_if_no_look_saw_a_value() -> None:
    """All trials of the epochs with a look were lost; only an epoch for later changes was measured."""
    lost = [full({"c0000": [[None]]}) for _ in range(3)]
    current = state({"c0000": rows(1, 0)}, *lost, full({"c0000": rows(1)}), config=Config(kept_epochs=5, runs_left=0))
    assert outcome(decide(current)).verdict == "INCONCLUSIVE"


def test_a_case_that_fails_while_the_interval_is_narrowed_is_rerun() -> None:
    requests = narrowing(*TWO_EPOCHS)
    new = [Round(r.tag, r.side, {c: rows(*[int(c != "c0003")] * r.n) for c in r.cases}) for r in requests]
    assert asked(decide(state(VARYING, *TWO_EPOCHS, *new))) == (Request(Side.CANDIDATE, "confirm", ("c0003",), 1),)


def test_a_proven_regression_stands_whatever_is_run_afterwards() -> None:
    now = dict.fromkeys(STEADY, 1.0) | {"c0003": 0.0, "c0004": 0.0}
    current = state(STEADY)
    while isinstance(step := decide(current), More):
        new = (Round(r.tag, r.side, {c: [[now[c]]] * r.n for c in r.cases}) for r in step.requests)
        current = replace(current, rounds=(*current.rounds, *new))
    assert step.verdict == "REGRESSION"
    for _ in range(4):
        current = replace(current, rounds=(*current.rounds, full({c: rows(1) for c in STEADY})))
        assert outcome(decide(current)).verdict == "REGRESSION"


def test_the_answer_is_a_function_of_state_and_seed() -> None:
    rng = Random(5)
    baseline = {c: rows(*(rng.random() < 0.8 for _ in range(5))) for c in ids(60)}
    now = full({c: rows(rng.random() < 0.7) for c in baseline})
    assert decide(state(baseline, now)) == decide(state(baseline, now))


def test_a_case_that_would_have_to_be_named_forbids_pass() -> None:
    """Five failures of five, against five passes: named at 10 % false discovery, not proven at this error rate."""
    evidence = gather(
        state(
            STEADY,
            full({c: rows(0 if c == "c0003" else 1) for c in STEADY}),
            confirm({"c0003": rows(0, 0, 0, 0, 0, 0, 0)}),
        )
    )
    assert evidence.named == ("c0003",)
    assert not evidence.proof
    stopped = replace(evidence.state, config=Config(runs_left=0))
    assert outcome(decide(stopped)).verdict == "INCONCLUSIVE"


# --- designs --------------------------------------------------------------------------------------


def test_looks_repeats_and_cases_never_spend_more_than_the_budget() -> None:
    for config in [Config(), Config(max_epochs=1), Config(max_epochs=2), Config(max_epochs=7), Config(exact_epochs=5)]:
        for repeated in (True, False):
            shares = look_shares(config, repeated=repeated)
            repeats = sum(REPEATS_SHARES) if repeated and config.exact_epochs is None else 0.0
            assert sum(shares.values()) + repeats + CASES_SHARE == pytest.approx(0.90), config
            assert list(shares) == ([5] if config.exact_epochs else list(range(1, config.max_epochs + 1))), config


@pytest.mark.parametrize(("cases", "repeated"), [(49, False), (50, True)])
def test_where_a_small_suite_repeats_nothing_its_looks_have_the_share(cases: int, repeated: bool) -> None:
    """Seven cases fail that passed four times of five: asked again together, or looked at with a larger share."""
    stored = {c: rows(1, 1, 1, 1, i > 9) for i, c in enumerate(ids(cases))}
    screened = full({c: rows(i > 6) for i, c in enumerate(ids(cases))})
    evidence = gather(state(stored, screened, full(dict.fromkeys(stored, rows(1)))))
    assert bool(evidence.repeats.cases) is repeated
    spent = sum(look.spent for look in evidence.looks)
    assert spent == pytest.approx(sum((LOOK_SHARES if repeated else ALONE_SHARES)[:2]) * 0.02)


def test_an_exact_design_asks_once_and_looks_once() -> None:
    config = Config(exact_epochs=5)
    request = asked(decide(state(STEADY, config=config)))
    assert request == (Request(Side.CANDIDATE, "full", tuple(STEADY), 5),)
    early = full({c: rows(1, 1) for c in STEADY})
    assert asked(decide(state(STEADY, early, config=config)))[0].n == 3, "two passes are not looked at"
    answer = outcome(decide(state(STEADY, full({c: rows(1, 1, 0, 1, 1) for c in STEADY}), config=config)))
    assert len(answer.evidence.looks) == 1
    assert answer.evidence.looks[0].epochs == 5


def test_an_exact_design_cut_short_is_looked_at_once_where_it_ends() -> None:
    config = Config(exact_epochs=5, runs_left=0)
    answer = outcome(decide(state(STEADY, full({c: rows(1, 1) for c in STEADY}), config=config)))
    assert (answer.verdict, [look.epochs for look in answer.evidence.looks]) == ("PASS", [2])


def test_at_most_one_pass_where_one_is_the_most() -> None:
    rng = Random(2)
    baseline = {c: rows(1, 0, 1, 0, 1) for c in ids(12)}
    _, requests = drive(state(baseline, config=Config(max_epochs=1)), lambda _s, _c: [float(rng.random() < 0.5)])
    assert sum(r.tag == "full" for r in requests) == 1


def test_comparing_what_there_is_never_asks() -> None:
    config = Config(can_run=False)
    now = full({c: rows(0 if c < "c0010" else 1) for c in STEADY})
    answer = outcome(decide(state(STEADY, now, config=config)))
    assert answer.verdict == "REGRESSION"
    assert outcome(decide(state(STEADY, config=config))).verdict == "INCONCLUSIVE"


def test_the_budget_of_runs_is_never_exceeded() -> None:
    screened = full({c: rows(0 if c < "c0005" else 1) for c in STEADY})
    few = asked(decide(state(STEADY, screened, config=Config(runs_left=3))))
    assert [r.runs for r in few] == [3]
    assert isinstance(decide(state(STEADY, screened, config=Config(runs_left=0))), Outcome)
    assert outcome(decide(state(STEADY, config=Config(runs_left=39)))).verdict == "INCONCLUSIVE"


def test_epochs_that_are_run_anyway_come_before_reruns() -> None:
    """What a further epoch says of a suspicious case is stored for later changes; a rerun would be for it alone."""
    first = full({c: rows(0 if c == "c0003" else 1) for c in STEADY})
    kept = Config(kept_epochs=5)
    assert [r.tag for r in asked(decide(state(STEADY, first)))] == ["confirm"]
    assert asked(decide(state(STEADY, first, config=kept))) == (Request(Side.CANDIDATE, "full", tuple(STEADY), 1),)
    cleared = full({c: rows(1) for c in STEADY})
    assert outcome(decide(state(STEADY, first, cleared, config=kept))).verdict == "PASS"
    two = asked(decide(state(STEADY, first, first, config=kept)))
    assert two == (Request(Side.CANDIDATE, "full", tuple(STEADY), 1),), "more than a verdict alone would take, too"
    assert [r.tag for r in asked(decide(state(STEADY, first, first, config=replace(kept, kept_epochs=2))))] == [
        "confirm"
    ]
    steady = full({c: rows(1) for c in STEADY})
    assert outcome(decide(state(STEADY, steady, config=kept))).verdict == "PASS"


@pytest.mark.parametrize("rerun", ["match", "beside"])
def test_match_reruns_the_baseline_where_its_trials_are_fewer(rerun: Rerun) -> None:
    thin = {c: rows(1) for c in ids(40)}
    screened = full({c: rows(0 if c == "c0003" else 1) for c in thin})
    requests = asked(decide(state(thin, screened, config=Config(rerun=rerun))))
    assert requests == (
        Request(Side.CANDIDATE, "confirm", ("c0003",), 1),
        Request(Side.BASELINE, "confirm", ("c0003",), 1),
    )
    rates = dict.fromkeys(thin, 1.0)
    answer, _ = drive(state(thin, config=Config(rerun=rerun)), bernoulli(Random(1), rates | {"c0003": 0.0}, rates))
    assert (answer.verdict, answer.cases) == ("REGRESSION", ("c0003",))


def test_further_epochs_are_of_both_sides_while_the_stored_side_is_thinner() -> None:
    """Of the cases with fewer trials there than they will have here, which outcomes have no part in."""
    flaky = {c: rows(i % 2, *([1] * (i >= 30))) for i, c in enumerate(ids(40))}
    once = full({c: rows(1 - i % 2) for i, c in enumerate(flaky)})
    config = Config(rerun="match", runs_left=1000)
    waves = [confirm({c: rows(1, 1, 1) for c in list(flaky)[1::2]})]
    asked_next = asked(decide(state(flaky, once, *waves, config=config)))
    both = (
        Request(Side.BASELINE, "full", tuple(ids(30)), 1),
        Request(Side.CANDIDATE, "full", tuple(ids(40)), 1),
    )
    assert asked_next == both
    assert asked(decide(state(flaky, once, *waves, config=replace(config, runs_left=69)))) == both[1:]
    assert asked(decide(state(flaky, once, *waves, config=replace(config, rerun="never")))) == both[1:]


def test_epochs_of_the_baselines_agent_count_as_baseline_trials() -> None:
    thin = {c: rows(1) for c in ids(40)}
    beside = full({c: rows(0) for c in ids(20)}, Side.BASELINE)
    found = gather(state(thin, full({c: rows(1) for c in thin}), beside, full({c: rows(1) for c in thin})))
    assert [len(case.before) for case in found.cases.values()] == [2] * 20 + [1] * 20
    assert found.bounds[0].change == pytest.approx(0.25)
    assert (found.cases["c0003"].stored, found.cases["c0003"].stored_passed) == (2, 1)
    assert found.cases["c0003"].baseline_trials == 2


def test_a_wave_that_cannot_prove_does_not_start() -> None:
    """Against one stored trial a thousand failures are evidence of ten, and it takes hundreds."""
    one = {c: rows(1, *[0] * (c == "c0004")) for c in ids(40)}
    three = {c: rows(1, 1, 1) for c in ids(40)}
    screened = full({c: rows(0 if c in ("c0003", "c0004") else 1) for c in ids(40)})
    requests = asked(decide(state(one, screened)))
    assert requests[0].cases == ("c0003",), "whether it ever passes is worth to know"
    assert asked(decide(state(three, screened)))[0].cases == ("c0003", "c0004")


def test_a_suspect_far_behind_the_strongest_waits_until_that_one_comes_back() -> None:
    stored = {c: rows(1, 1, 1, 1, 1) for c in ids(40)}
    screened = full({c: rows(0 if c in ("c0003", "c0004") else 1) for c in ids(40)})
    assert asked(decide(state(stored, screened)))[0].cases == ("c0003", "c0004")
    failed = [confirm({"c0003": rows(0), "c0004": rows(0)})]
    stays = state(stored, screened, *failed, confirm({"c0003": rows(0, 0), "c0004": rows(1, 0)}))
    assert asked(decide(stays))[0].cases == ("c0003",)
    cleared = state(stored, screened, *failed, confirm({"c0003": rows(1, 0), "c0004": rows(1, 0)}))
    assert asked(decide(cleared))[0].cases == ("c0003", "c0004"), "no longer far ahead"


def test_a_case_that_waited_for_the_proof_of_another_is_named_after_it() -> None:
    """One that is rerun first is proof enough, and the other broke as well."""
    stored = {c: rows(1, 1, 1, 1, c != "c0004") for c in ids(20)}
    rates = dict.fromkeys(stored, 1.0)
    broken = ("c0003", "c0004")
    answer, requests = drive(state(stored), bernoulli(Random(1), rates | dict.fromkeys(broken, 0.0), rates))
    assert (answer.verdict, answer.cases) == ("REGRESSION", broken)
    confirming = [r.cases for r in requests if r.tag == "confirm"]
    assert confirming[0] == ("c0003",), "the other waits"
    assert confirming[-1] == ("c0004",)
    assert sum(r.runs for r in requests if r.cases == ("c0004",)) <= sum(WAVES[:NAMING_WAVES])


def test_a_case_that_never_passes_any_more_keeps_a_suite_from_pass_where_no_proof_is_possible() -> None:
    thin = {c: rows(1) for c in ids(40)}
    rates = dict.fromkeys(thin, 1.0)
    answer, requests = drive(state(thin), bernoulli(Random(1), rates | {"c0003": 0.0}, rates))
    assert (answer.verdict, answer.stage.kind) == ("INCONCLUSIVE", StageKind.UNPROVEN)
    assert answer.evidence.unproven == answer.evidence.unprovable == ("c0003",)
    assert sum(r.runs for r in requests) == 40 + 10, "it ends there: no further epoch would clear it"
    counts = answer.evidence.cases["c0003"]
    assert (counts.passed, counts.trials, counts.baseline_passed, counts.baseline_trials) == (0, 11, 1, 1)


# --- odd input ------------------------------------------------------------------------------------


def test_cases_on_one_side_only_are_left_out() -> None:
    baseline = {**STEADY, "gone": rows(1, 1, 1, 1, 1)}
    now = full({**{c: rows(1) for c in STEADY}, "new": rows(0)})
    answer = outcome(decide(state(baseline, now)))
    assert (answer.verdict, answer.evidence.paired) == ("PASS", 40)


def test_nothing_to_pair_is_never_a_pass() -> None:
    assert (
        outcome(decide(state({"a": rows(1)}, full({"b": rows(1)}), config=Config(can_run=False)))).verdict
        == "INCONCLUSIVE"
    )


def test_an_all_failing_suite_that_used_to_pass_is_regressed() -> None:
    answer, requests = drive(state(STEADY), lambda _side, _case: [0.0])
    assert (answer.verdict, answer.stage, answer.cases) == ("REGRESSION", Stage(StageKind.SUITE_LOOK, 1), ())
    assert len(requests) == 1, "nothing is spent on naming what is broken as a whole"


@pytest.mark.parametrize("cases", [1, 2])
@pytest.mark.parametrize("config", [Config(), Config(rerun="match"), Config(exact_epochs=3), Config(can_run=False)])
def test_a_collapse_of_few_cases_with_an_agent_that_repeats_itself_never_passes(cases: int, config: Config) -> None:
    """Success is not asked for; a criterion beside it fell from all to nothing, and no rerun says anything new."""
    metrics = (SUCCESS, Metric("trajectory", "bounded", margin=0.1))
    before: dict[str, list[Row]] = {c: [[1.0, 1.0]] for c in ids(cases)}
    fallen = full({c: [[1.0, 0.0]] for c in before})
    known = replace(state(before, fallen, config=config, metrics=metrics), frozen=True)
    step = decide(known)
    assert isinstance(step, More) or step.verdict == "INCONCLUSIVE"
    for more in ([[1.0, 0.0]], [[None, None]]):
        rounds = [full(dict.fromkeys(before, more)) for _ in range(2)]
        assert outcome(decide(replace(known, rounds=(fallen, *rounds)))).verdict != "PASS"
    assert gather(known).collapsed == ("trajectory",)


@pytest.mark.parametrize("cases", [1, 2, 5])
def test_a_collapse_is_run_on_until_it_is_proven(cases: int) -> None:
    answer, _ = drive(state({c: rows(1, 1, 1, 1, 1) for c in ids(cases)}), lambda _side, _case: [0.0])
    assert answer.verdict == "REGRESSION"


@pytest.mark.parametrize(
    ("before", "now", "metric", "found"),
    [
        ((1, 1, 0), (0,), SUCCESS, True),
        ((0, 0, 0), (0,), SUCCESS, False),  # it never passed
        ((0, 0, 1), (0,), SUCCESS, False),  # rarely, and one trial says little
        ((0, 1, 0, 1, 0), (0,) * 16, SUCCESS, True),  # rarely, but that is no chance
        ((1, 1, 1), (0, 1), SUCCESS, False),
        ((0.9, 0.8), (0.0,), Metric("rouge", "bounded"), True),
        ((0, 0), (1,), Metric("forbidden", "binary", Direction.LOWER), True),
        ((9, 9), (0,), Metric("steps", "positive"), False),
        ((1, 1), (0,), Metric("shown", "binary", blocks_regression=False), False),
    ],
)
def test_a_metric_collapses_where_every_value_is_the_worst_and_the_bases_were_not(
    before: Sequence[float], now: Sequence[float], metric: Metric, *, found: bool
) -> None:
    known = state({"only": rows(*before)}, full({"only": rows(*now)}), metrics=(metric,))
    assert bool(gather(known).collapsed) is found


def test_one_case_alone_can_break_and_pass() -> None:
    one = {"only": rows(1, 1, 1, 1, 1)}
    broken, requests = drive(state(one), lambda _side, _case: [0.0])
    assert (broken.verdict, broken.cases) == ("REGRESSION", ("only",))
    assert sum(r.runs for r in requests) <= 20
    assert drive(state(one), lambda _side, _case: [1.0])[0].verdict == "PASS"


def test_one_case_with_a_graded_metric_is_bounded_by_its_own_trials() -> None:
    metrics = (SUCCESS, Metric("rouge", "bounded", margin=0.05))
    before = {"only": [[1.0, 0.80], [1.0, 0.81], [1.0, 0.80], [1.0, 0.79], [1.0, 0.80]]}
    answer = outcome(decide(state(before, full({"only": [[1.0, 0.80]]}), metrics=metrics)))
    assert answer.verdict == "PASS"
    single = outcome(
        decide(
            state({"only": [[1.0, 0.8]]}, full({"only": [[1.0, 0.8]]}), metrics=metrics, config=Config(can_run=False))
        )
    )
    assert single.verdict == "INCONCLUSIVE", "one trial on each side bounds nothing"
    assert single.evidence.metrics["rouge"].low is None


def test_unmeasured_values_count_as_nothing() -> None:
    metrics = (SUCCESS, Metric("judge", "bounded", margin=0.4))
    before = {c: [[1.0, 4.0], [1.0, None], [1.0, 4.2], [1.0, 4.0], [1.0, 4.1]] for c in ids(20)}
    now = full({c: [[1.0, None if i % 2 else 4.1]] for i, c in enumerate(before)})
    answer = outcome(decide(state(before, now, metrics=metrics)))
    assert answer.verdict == "PASS"
    assert answer.evidence.metrics["judge"].cases == 10
    nan = full({c: [[1.0, float("nan")]] for c in before})
    assert "judge" not in outcome(decide(state(before, nan, metrics=metrics))).evidence.metrics


def test_a_trial_lost_to_infrastructure_is_run_but_not_seen() -> None:
    now = full({c: [[None]] if c == "c0003" else rows(1) for c in STEADY})
    answer = outcome(decide(state(STEADY, now)))
    assert answer.verdict == "PASS"
    assert answer.evidence.metrics["success"].cases == 39
    assert answer.evidence.runs["candidate"] == 40


def test_reruns_do_not_enter_looks_or_bounds() -> None:
    """Failing trials are rerun: to count them in the mean would bias it."""
    screened = full({c: rows(0 if c == "c0003" else 1) for c in STEADY})
    plain = gather(state(STEADY, screened))
    rerun = gather(
        state(STEADY, screened, confirm({"c0003": rows(1, 1, 1)}), confirm({"c0003": rows(1)}, Side.BASELINE))
    )
    assert rerun.looks == plain.looks
    assert rerun.bounds == plain.bounds
    assert rerun.cases["c0003"].trials == 4
    assert rerun.cases["c0003"].baseline_trials == 6


# --- several metrics ------------------------------------------------------------------------------

COST = Metric("cost", "positive", Direction.LOWER, 0.2)


def costly(factor: float, config: Config | None = None, *, blocking: bool = True) -> More | Outcome:
    rng = Random(4)
    level = {c: rng.uniform(0.01, 0.05) for c in STEADY}
    before = {c: [[1.0, level[c] * rng.uniform(0.9, 1.1)] for _ in range(5)] for c in STEADY}
    now = full({c: [[1.0, factor * level[c] * rng.uniform(0.9, 1.1)]] for c in STEADY})
    return decide(state(before, now, metrics=(SUCCESS, replace(COST, blocks_regression=blocking)), config=config))


def test_a_rise_of_cost_blocks_where_cost_gates() -> None:
    answer = outcome(costly(1.5))
    assert answer.verdict == "REGRESSION"
    assert answer.evidence.metrics["cost"].change == pytest.approx(-0.405, abs=0.05), "log 1.5, as a loss"
    assert (
        answer.evidence.looks[0].metrics["cost"].p_adjusted
        < 0.01
        < answer.evidence.looks[0].metrics["success"].p_adjusted
    )


def test_a_rise_of_cost_is_only_shown_where_it_does_not_gate() -> None:
    answer = outcome(costly(1.5, blocking=False))
    assert answer.verdict == "PASS"
    assert answer.evidence.metrics["cost"].blocks_regression is False
    assert "cost" not in answer.evidence.looks[0].metrics


@pytest.mark.slow
@pytest.mark.parametrize(("cases", "dear"), [(60, 1), (60, 2), (100, 2), (200, 3)])
def test_a_few_that_cost_where_nothing_did_are_no_pass(cases: int, dear: int) -> None:
    """A hundred dollars where all was free: twice half of a hundred would be a rise of one part in a hundred."""
    metrics = (SUCCESS, Metric("cost", "positive", Direction.LOWER, 0.2))
    baseline = {c: [(1.0, 0.0)] * 5 for c in ids(cases)}
    screened = full({c: [(1.0, 100.0 * (n < dear))] for n, c in enumerate(baseline)})
    found = decide(State(metrics, baseline, (screened,), Config()))
    assert isinstance(found, More) or found.verdict == "REGRESSION"
    whole = decide(State(metrics, baseline, (screened,), Config(can_run=False)))
    assert outcome(whole).verdict != "PASS"


def test_what_is_often_zero_is_compared_as_half_of_the_smallest() -> None:
    metrics = (SUCCESS, Metric("calls", "positive", Direction.LOWER, 0.2))
    baseline = {c: [(1.0, float(n % 2))] * 5 for n, c in enumerate(ids(20))}
    same = full({c: [(1.0, float(n % 2))] for n, c in enumerate(baseline)})
    evidence = gather(State(metrics, baseline, (same,), Config(can_run=False)))
    assert {math.exp(-case.full[0][1] or 0.0) for case in evidence.cases.values()} == {0.5, 1.0}


def test_a_fall_of_cost_passes() -> None:
    assert outcome(costly(0.5)).verdict == "PASS"


def test_zero_cost_is_a_value_not_an_error() -> None:
    before = {c: [[1.0, 0.0]] * 5 for c in STEADY}
    assert (
        outcome(decide(state(before, full({c: [[1.0, 0.0]] for c in STEADY}), metrics=(SUCCESS, COST)))).verdict
        == "PASS"
    )


@settings(max_examples=examples(30))
@given(seed=st.integers(0, 10**9), rerun=st.sampled_from(["never", "match"]), n=st.integers(1, 12))
def test_every_world_comes_to_an_answer_within_its_schedule(seed: int, rerun: str, n: int) -> None:
    rng = Random(seed)
    before = {c: rng.choice((0.0, 0.5, 0.9, 1.0)) for c in ids(n)}
    now = {c: rng.choice((rate, rate, 0.0, 1.0)) for c, rate in before.items()}
    stored = {c: [[float(rng.random() < rate)] for _ in range(rng.randint(1, 6))] for c, rate in before.items()}
    config = Config(rerun=rerun)  # type: ignore[arg-type]
    answer, requests = drive(state(stored, config=config), bernoulli(rng, now, before))
    assert answer.verdict in ("PASS", "REGRESSION", "INCONCLUSIVE")
    assert sum(r.tag == "full" and r.side is Side.CANDIDATE for r in requests) <= 3
    assert sum(r.tag == "full" and r.side is Side.BASELINE for r in requests) <= (0 if rerun == "never" else 2)
    assert set(answer.cases) <= set(stored)


# --- speed ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_decision_takes_work_in_proportion_to_the_cases() -> None:
    few, many = world(100), world(400)
    small, large = steps(lambda: decide(few)), steps(lambda: decide(many))
    assert small < 100 * 30_000
    assert large < 4.5 * small


def world(cases: int) -> State:
    """Cases of five metrics, with five trials on both sides."""
    rng = Random(6)
    metrics = (SUCCESS, *(Metric(f"m{i}", "bounded", margin=0.05) for i in range(4)))

    def trial(rate: float) -> list[float]:
        return [float(rng.random() < rate), *(rng.random() for _ in range(4))]

    rates = {c: rng.random() for c in ids(cases)}
    before = {c: [trial(rate) for _ in range(5)] for c, rate in rates.items()}
    return State(
        metrics,
        before,
        (full({c: [trial(rate) for _ in range(5)] for c, rate in rates.items()}),),
        Config(can_run=False),
        1,
    )


# --- the looks together ---------------------------------------------------------------------------


def reject_share(cases: Sequence[str], stored: int, alpha: float) -> float:
    """The share of all orders of the cases' trials at whose first or second look the suite is blocked."""
    laws = []
    for outcomes in cases:
        law: dict[tuple[str, ...], int] = {}
        for order in permutations(outcomes):
            before, now = "".join(sorted(order[:stored])), order[stored:]
            law[before, *now] = law.get((before, *now), 0) + 1
        laws.append(law)
    blocked = total = 0
    known: dict[tuple[object, ...], bool] = {}
    for way in product(*(law.items() for law in laws)):
        weight = math.prod(count for _, count in way)
        total += weight
        key = tuple(order for order, _ in way)
        if key not in known:
            ids = [f"c{i}" for i in range(len(cases))]
            baseline = {c: rows(*map(int, order[0])) for c, order in zip(ids, key, strict=True)}
            rounds = [full({c: rows(int(order[j])) for c, order in zip(ids, key, strict=True)}) for j in (1, 2)]
            found = gather(state(baseline, *rounds, config=Config(alpha=alpha, max_epochs=2)))
            known[key] = any(look.blocks for look in found.looks)
        blocked += weight * known[key]
    return blocked / total


@pytest.mark.parametrize(
    ("cases", "alpha"),
    [
        (["11100", "11000"], 0.6),
        *(pytest.param(["11100", "11000", "11110"], alpha, marks=pytest.mark.slow) for alpha in (0.1, 0.3, 0.6)),
    ],
)
def test_over_all_orders_of_the_trials_the_looks_block_at_most_what_they_spend(cases: list[str], alpha: float) -> None:
    """The promise itself, enumerated: three stored trials per case, two epochs, two looks."""
    assert reject_share(cases, 3, alpha) <= 0.8 * alpha + 0.005, "chance decides a tie at most"


def test_the_second_look_counts_the_first_and_not_twice() -> None:
    one = full({c: rows(1) for c in STEADY})
    two = full({c: rows(0 if i % 4 == 0 else 1) for i, c in enumerate(STEADY)})
    first, second = gather(state(STEADY, one, two)).looks
    assert first.spent + second.spent == pytest.approx(sum(ALONE_SHARES[:2]) * 0.02)
    assert first.threshold == first.spent
    assert second.threshold > second.spent, "what the first look would have rejected is not paid for again"
    assert second.p < first.p


def test_epochs_of_the_baseline_enter_the_look_after_them() -> None:
    """Both sides run: new baseline trials that pass speak for a drop as new failures do."""
    thin = {c: rows(1) for c in STEADY}
    failing = {c: rows(0 if i % 3 == 0 else 1) for i, c in enumerate(STEADY)}
    again = Round("full", Side.BASELINE, {c: rows(1) for c in STEADY})
    alone = gather(state(thin, full(failing), full(failing))).looks[-1]
    both = gather(state(thin, full(failing), again, full(failing))).looks[-1]
    assert both.p < alone.p
    passing = Round("full", Side.BASELINE, failing)
    assert gather(state(thin, full(failing), passing, full(failing))).looks[-1].p > both.p
