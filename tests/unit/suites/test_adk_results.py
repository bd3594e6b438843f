"""google-adk's results: what was expected is the case, each run a trial, and what failed there is not green here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gate.errors import ConfigError
from gate.model import Suite
from gate.suites import load
from gate.suites.base import Loss
from tests.unit.suites.files import TURN, write

SAMPLE = Path(__file__).parent / "samples" / "adk" / "shop.evalset_result.json"
"""What `adk eval` 2.13 wrote of three cases of ours with a scripted model: one passes, one fails, one crashes."""


def result(
    name: str = "one", said: str = "On its way.", *metrics: Any, status: int = 1, **changes: Any
) -> dict[str, Any]:
    actual = {**TURN, "final_response": {"role": "model", "parts": [{"text": said}]}}
    pair = {"actual_invocation": actual, "expected_invocation": TURN, "eval_metric_results": []}
    return {
        "eval_id": name,
        "final_eval_status": status,
        "overall_eval_metric_results": list(metrics),
        "eval_metric_result_per_invocation": [pair],
        **changes,
    }


def metric(name: str, status: int = 1, **changes: Any) -> dict[str, Any]:
    return {"metric_name": name, "eval_status": status, "criterion": {"threshold": 0.5}, **changes}


def suite_of(folder: Path, *results: Any, losses: list[Loss] | None = None) -> Suite:
    write(folder / "r.evalset_result.json", {"eval_set_id": "s", "eval_case_results": list(results)})
    (suite,) = load([folder], root=folder, losses=losses)
    return suite


def test_what_adk_wrote_itself() -> None:
    (suite,) = load([SAMPLE], root=SAMPLE.parent)
    assert [case.id for case in suite.cases] == ["crash", "where", "wrong"]
    assert suite.brought == {
        "tool_trajectory_avg_score": {"threshold": 1.0},
        "response_match_score": {"threshold": 0.8},
    }
    third, first, second = suite.recorded
    (said,) = first.invocations
    assert [(call.name, call.args) for call in said.tool_calls] == [("find_order", {"id": "A100"})]
    assert (said.text, said.usage.tokens if said.usage else None) == ("Order A100 has shipped.", 30)
    assert second.error is None
    assert third.error == "google-adk records no answer"


def test_runs_of_one_case_are_its_trials(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, result(), result(said="Lost."), result("two"))
    assert [(trial.case_id, trial.number) for trial in suite.recorded] == [("one", 1), ("one", 2), ("two", 1)]
    assert suite.recorded[1].invocations[0].text == "Lost."


def test_a_run_without_an_answer_keeps_what_the_others_were_asked(tmp_path: Path) -> None:
    empty = result(status=2, eval_metric_result_per_invocation=[])
    suite = suite_of(tmp_path, empty, result())
    assert suite.cases[0].turns[0].user == "Where is A1?"
    assert [trial.error for trial in suite.recorded] == ["google-adk records no answer", None]


def foreign(suite: Suite) -> list[list[tuple[str, float]]]:
    assert all(trial.error is None and trial.invocations[0].text for trial in suite.recorded)
    return [[(one.scorer, one.value) for one in trial.invocations[-1].foreign] for trial in suite.recorded]


def test_what_a_metric_of_its_own_found_is_a_score_and_the_conversation_stays(tmp_path: Path) -> None:
    own = metric("polite", 2, custom_function_path="mine.polite", score=0.25)
    losses: list[Loss] = []
    suite = suite_of(tmp_path, result("one", "a", own, status=2), result("two", "b", metric("polite")), losses=losses)
    assert foreign(suite) == [[("google-adk:polite", 0.0)], [("google-adk:polite", 1.0)]]
    assert suite.recorded[0].invocations[-1].foreign[0].reason == "google-adk's metric polite failed (0.25)"
    recorded = {"metric": "recorded_score", "scorer": "google-adk:polite", "threshold": 1.0}
    assert suite.brought == {"google-adk:polite": recorded}
    assert [loss.what for loss in losses if loss.check] == ["metric polite"]
    known = result("one", "a", metric("response_match_score", 2), status=2)
    assert foreign(suite_of(tmp_path, known)) == [[]]  # it is measured here


@pytest.mark.parametrize("status", [2, "FAILED"])
def test_a_run_that_failed_by_a_metric_without_a_threshold_failed(tmp_path: Path, status: Any) -> None:
    """Without one it is no criterion here, and nothing would fail."""
    failed = metric("response_match_score", status, criterion=None, threshold=None)
    suite = suite_of(tmp_path, result("one", "a", failed, status=status))
    assert foreign(suite) == [[("google-adk:response_match_score", 0.0)]]
    assert foreign(suite_of(tmp_path, result("one", "a", status=status))) == [[("google-adk", 0.0)]]


def test_what_a_simulated_user_held_is_a_scenario_with_all_turns(tmp_path: Path) -> None:
    def held(*said: str) -> dict[str, Any]:
        pairs = [{"actual_invocation": {**TURN, "user_content": {"parts": [{"text": text}]}}} for text in said]
        return result(eval_metric_result_per_invocation=pairs)

    suite = suite_of(tmp_path, held("Hi", "A1"), held("Hi", "What?", "A1"))
    (case,) = suite.cases
    assert case.scenario is not None
    assert (case.scenario.start, [turn.user for turn in case.turns]) == ("Hi", ["Hi"])
    assert [[said.user for said in trial.invocations] for trial in suite.recorded] == [
        ["Hi", "A1"],
        ["Hi", "What?", "A1"],
    ]


def test_json_within_json_is_read(tmp_path: Path) -> None:
    inner = json.dumps({"eval_set_id": "s", "eval_case_results": [result()]})
    write(tmp_path / "r.json", json.dumps(inner))
    (suite,) = load([tmp_path], root=tmp_path)
    assert len(suite.recorded) == 1


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([7], "must be an object"),
        ([result("")], "no eval_id"),
        ([result("one", "a", {"eval_status": 3})], "no metric_name"),
        (
            [result(eval_metric_result_per_invocation=[{"expected_invocation": TURN, "actual_invocation": 7}])],
            "invocation",
        ),
        (
            [
                result(),
                result(
                    eval_metric_result_per_invocation=[
                        {
                            "actual_invocation": TURN,
                            "expected_invocation": {"user_content": {"parts": [{"text": "Hi"}]}},
                        }
                    ]
                ),
            ],
            "other expectations",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, results: list[Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        suite_of(tmp_path, *results)
