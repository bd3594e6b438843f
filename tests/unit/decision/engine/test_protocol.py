"""`gate decide`: one state a line in, one answer a line out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gate.decision.engine.protocol import decide_lines

CASES = [f"c{i:04d}" for i in range(20)]
STATE: dict[str, Any] = {
    "protocol": 1,
    "id": "s17",
    "seed": 17,
    "config": {},
    "metrics": [
        {"name": "success", "kind": "binary", "direction": "higher", "margin": 0.1, "gating": True},
        {"name": "cost", "kind": "positive", "direction": "lower", "margin": 0.2, "gating": False},
    ],
    "baseline": {c: [[1, 0.5], [1, 0.4], [1, 0.5], [1, 0.6], [1, 0.5]] for c in CASES},
    "rounds": [],
}


def answer(**changes: Any) -> dict[str, Any]:
    [line] = decide_lines([json.dumps({**STATE, **changes})])
    result: dict[str, Any] = json.loads(line)
    return result


def screened(value: int = 1) -> list[dict[str, Any]]:
    return [{"tag": "full", "side": "candidate", "trials": {c: [[value, 0.5]] for c in CASES}}]


def test_an_undecided_state_is_answered_with_requests() -> None:
    found = answer()
    assert (found["id"], found["verdict"]) == ("s17", "CONTINUE")
    assert found["requests"] == [{"side": "candidate", "tag": "full", "cases": CASES, "n": 1}]


def test_a_decided_state_is_answered_with_verdict_cases_stage_and_report() -> None:
    found = answer(rounds=screened())
    assert (found["verdict"], found["cases"], found["stage"]) == ("PASS", [], "certified at pass 1")
    assert found["report"]["metrics"]["cost"]["gating"] is False
    broken = answer(rounds=screened(0))
    assert (broken["verdict"], broken["cases"]) == ("REGRESSION", [])


def test_it_is_stateless_and_answers_line_by_line() -> None:
    lines = [json.dumps(STATE), "", json.dumps({**STATE, "id": "b", "rounds": screened()}), json.dumps(STATE)]
    first, second, third = map(json.loads, decide_lines(lines))
    assert first == third
    assert second["id"] == "b"


def test_a_slope_divides_the_change_and_not_the_test() -> None:
    metrics = [{**STATE["metrics"][0], "slope": 0.5, "slope_error": 0.05}, STATE["metrics"][1]]
    rounds = [{"tag": "full", "side": "candidate", "trials": {c: [[int(c > CASES[1]), 0.5]] for c in CASES}}]
    config = {"can_run": False}
    plain, found = answer(rounds=rounds, config=config), answer(rounds=rounds, config=config, metrics=metrics)
    assert found["report"]["looks"] == plain["report"]["looks"]
    one, other = (said["report"]["metrics"]["success"] for said in (plain, found))
    assert other["change"] == pytest.approx(one["change"] / 0.5)
    assert other["low"] < one["low"]


def test_a_recorded_baseline_is_told_from_another() -> None:
    broken = {c: [[float(c != CASES[0]), 0.5]] for c in CASES}
    rounds = [{"tag": "full", "side": "candidate", "trials": broken}]
    rounds.append({"tag": "confirm", "side": "candidate", "trials": {CASES[0]: [[0, 0.5]] * 11}})
    verdicts = [answer(rounds=rounds, recorded=recorded)["verdict"] for recorded in (True, False)]
    assert verdicts == ["REGRESSION", "CONTINUE"]


def test_cases_of_a_cluster_are_one_unit() -> None:
    rounds = [{"tag": "full", "side": "candidate", "trials": {c: [[int(c > CASES[4]), 0.5]] for c in CASES}}]
    known: dict[str, Any] = {"rounds": rounds, "config": {"can_run": False}}
    shared = answer(**known, clusters={c: f"fixture {n // 5}" for n, c in enumerate(CASES)})
    assert (answer(**known)["verdict"], shared["verdict"]) == ("REGRESSION", "INCONCLUSIVE")


def test_an_agent_that_answers_alike_is_not_asked_again() -> None:
    broken = {c: [[float(c != CASES[0]), 0.5]] for c in CASES}
    rounds = [{"tag": "full", "side": "candidate", "trials": broken}]
    assert answer(rounds=rounds)["why"] == "asking the failing cases again"
    assert answer(rounds=rounds, frozen=True)["verdict"] == "INCONCLUSIVE"


def test_what_clusters_and_frozen_hold_is_checked() -> None:
    for changes, told in [
        ({"clusters": []}, "Expected `object`, got `array` - at `$.clusters`"),
        ({"clusters": {CASES[0]: 1}}, "Expected `str`, got `int` - at `$.clusters[...]`"),
        ({"frozen": 1}, "Expected `bool`, got `int` - at `$.frozen`"),
    ]:
        assert told in answer(**changes)["error"], (changes, told)


def test_what_the_newest_runs_show_already_is_not_blocked() -> None:
    baseline = {c: [*[[1, 0.5]] * 5, *[[n % 2, 0.5]] * 5] for n, c in enumerate(CASES)}
    rounds = [{"tag": "full", "side": "candidate", "trials": {c: [[n % 2, 0.5]] for n, c in enumerate(CASES)}}]
    known = {"baseline": baseline, "rounds": rounds, "config": {"can_run": False}}
    assert answer(**known)["verdict"] == "REGRESSION"
    found = answer(**known, newest={c: [5, 6, 7, 8, 9] for c in CASES})
    assert (found["verdict"], found["stage"]) == (
        "INCONCLUSIVE",
        "not confirmed against the baseline's newest runs",
    )


def test_null_is_a_value_that_was_not_measured() -> None:
    rounds = [{"tag": "full", "side": "candidate", "trials": {c: [[1, None]] for c in CASES}}]
    found = answer(rounds=rounds)
    assert found["verdict"] == "PASS"
    assert "cost" not in found["report"]["metrics"]


@pytest.mark.parametrize(
    ("trials", "requests"),
    [("auto", 1), ({"max": 1}, 1), (4, 4)],
)
def test_trials_are_written_as_in_the_configuration(trials: Any, requests: int) -> None:
    assert answer(config={"trials": trials})["requests"][0]["n"] == requests


def test_what_cannot_be_read_is_answered_with_what_is_wrong() -> None:
    for changes, words in [
        ({"protocol": 2}, "protocol must be 1"),
        ({"metrics": []}, "Expected `array` of length >= 1 - at `$.metrics`"),
        ({"metrics": [{"kind": "ordinal"}]}, "Invalid enum value 'ordinal' - at `$.metrics[0].kind`"),
        ({"metrics": [{"kind": "binary", "margin": -1}]}, "Expected `float` >= 0.0 - at `$.metrics[0].margin`"),
        ({"metrics": [{"kind": "binary", "slope": 0}]}, "at `$.metrics[0].slope`"),
        ({"metrics": [{"kind": "binary", "slope": 0.5, "slope_error": -1}]}, "at `$.metrics[0].slope_error`"),
        ({"baseline": {"a": [[1]]}}, "baseline['a'][0] must hold 2 values"),
        ({"baseline": {"a": [["x", 1]]}}, "Expected `float | null`, got `str` - at `$.baseline[...][0][0]`"),
        ({"baseline": []}, "Expected `object`, got `array` - at `$.baseline`"),
        ({"rounds": [{"tag": "again", "trials": {}}]}, "rounds[0].tag must be one of"),
        ({"config": {"alhpa": 0.1}}, "unknown config key 'alhpa'"),
        ({"config": {"alpha": 2}}, "Expected `float` < 1.0 - at `$.config.alpha`"),
        ({"config": {"trials": "many"}}, "config.trials must be"),
        ({"config": {"trials": 0}}, "at least 1"),
        ({"config": {"trials": {"max": 0}}}, "at least 1"),
        ({"config": {"rerun": "sometimes"}}, "Invalid enum value 'sometimes' - at `$.config.rerun`"),
        ({"config": {"runs_left": -1}}, "Expected `int` >= 0 - at `$.config.runs_left`"),
        ({"seed": "x"}, "Expected `int`, got `str` - at `$.seed`"),
        ({"recorded": 1}, "Expected `bool`, got `int` - at `$.recorded`"),
        ({"newest": []}, "Expected `object`, got `array` - at `$.newest`"),
        ({"newest": {"c0000": 1}}, "Expected `array`, got `int` - at `$.newest[...]`"),
        ({"newest": {"c0000": [99]}}, "newest['c0000'] must hold positions"),
        ({"newest": {"c0000": [-1]}}, "newest['c0000'] must hold positions"),
        ({"newest": {"another": [0]}}, "newest['another'] must hold positions of the case's 0 baseline trials"),
        (
            {"rounds": [{"tag": "full", "trials": {"c0000": [[1, 0.5]]}, "coupled": {"c0000": []}}]},
            "rounds[0].coupled['c0000'] must hold one entry for each trial",
        ),
    ]:
        found = answer(**changes)
        assert words in found["error"], (changes, words)
        assert "verdict" not in found, (changes, words)


def test_garbage_is_answered_not_raised() -> None:
    for line in ["{", "[]", "17", '"x"', "[" * 5000, '{"protocol":1}']:
        [found] = map(json.loads, decide_lines([line]))
        assert found["error"].startswith("line 1: "), line
