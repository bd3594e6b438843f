"""Inspect's logs: epochs are trials, a log that did not end well is refused, scorers without a counterpart are said."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gate.errors import ConfigError, GateError
from gate.importers.eval_archive import read_eval_archive
from gate.metrics.base import TrialOutput
from gate.metrics.outcome import RecordedOptions, RecordedScore
from gate.model import Suite, Usage
from gate.suites import load
from gate.suites.base import Loss
from tests.properties import examples
from tests.unit.suites.files import SHARED, mutated, needs_shared, write

THOUGHT = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "One moment."}]
CALL = {"id": "c1", "function": "lookup_order", "arguments": {"order": "A100"}, "parse_error": None}


DECIDES = {"metric": "recorded_score"}


def sample(name: str = "where", epoch: int = 1, **changes: Any) -> dict[str, Any]:
    """As a log of Inspect 0.3 has it."""
    said = [
        {"role": "user", "content": "Where is A100?", "source": "input"},
        {"role": "assistant", "content": THOUGHT, "tool_calls": [CALL]},
        {"role": "tool", "content": "shipped", "tool_call_id": "c1", "function": "lookup_order"},
        {"role": "assistant", "content": f"{'attachment://abc' if epoch == 2 else 'It has shipped.'}"},
    ]  # fmt: skip
    usage = {"mockllm/model": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "total_cost": 0.25}}
    return {
        "id": name,
        "epoch": epoch,
        "input": "Where is A100?",
        "target": "shipped",
        "messages": said,
        "scores": {"includes": {"value": "C"}},
        "model_usage": usage,
        "working_time": 1.5,
        "attachments": {"abc": "A long text."},
        "metadata": {"team": "care"},
        **changes,
    }


def log(*samples: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": {"task": "orders"}, "samples": list(samples), **changes}


def suite_of(folder: Path, data: Any, losses: list[Loss] | None = None) -> Suite:
    write(folder / "log.json", data)
    (suite,) = load([folder], root=folder, losses=losses)
    return suite


def test_epochs_are_trials_of_a_case(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, log(sample(), sample(epoch=2), sample("other")))
    assert [case.id for case in suite.cases] == ["where", "other"]
    assert [(trial.case_id, trial.number) for trial in suite.recorded] == [("where", 1), ("where", 2), ("other", 1)]
    first, second = (trial.invocations[0] for trial in suite.recorded[:2])
    assert (first.user, first.text, second.text) == ("Where is A100?", "It has shipped.", "A long text.")
    assert [part.text for part in first.intermediate] == ["One moment."]
    (call,) = first.tool_calls
    assert (call.name, call.args, call.result, call.error) == ("lookup_order", {"order": "A100"}, "shipped", None)
    assert first.usage == Usage(10, 5, 0.25, model="mockllm/model")
    assert first.duration == 1.5
    assert suite.cases[0].metadata == {"team": "care", "target": ["shipped"]}


def test_the_target_of_includes_is_what_the_answer_must_contain(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, log(sample()))
    assert suite.cases[0].options == {"contains": {"values": ["shipped"], "ignore_case": True}}
    assert suite.brought == {"contains": {}, "inspect:includes": DECIDES | {"scorer": "includes"}}


def test_another_scorer_is_a_score_of_its_trials_and_a_lost_check_on_import(tmp_path: Path) -> None:
    data = log(sample(scores={"model_graded_qa": {"value": "C"}}), sample(epoch=2))
    data["samples"].pop()
    suite = suite_of(tmp_path, data)
    assert suite.brought == {"inspect:model_graded_qa": DECIDES | {"scorer": "model_graded_qa"}}
    (note,) = suite.notes
    assert "where: scorer model_graded_qa (other than in the verdict on recorded trials) is not carried over" in note
    losses: list[Loss] = []
    suite_of(tmp_path, data, losses)
    assert [(loss.what, loss.check) for loss in losses] == [("scorer model_graded_qa", True)]


@pytest.mark.parametrize(
    ("value", "credit"),
    [("I", 0), ("N", 0), ("P", 0.5), ("incorrect", 0), ("0", 0), (False, 0), (0, 0), (0.0, 0), (None, None), (-1, 0),
     ("NaN", None), ("C", 1), ("correct", 1), ("1", 1), (True, 1), (1, 1),
     (1.0000000000000002, 1), (0.9999999999999999, 1),
     ("wrong", 0), ("refused", 0), ("unsafe", 0)],
)  # fmt: skip
def test_a_verdict_of_a_scorer_is_a_score_that_decides(tmp_path: Path, value: Any, credit: float | None) -> None:
    scores = {"graded": {"value": value, "explanation": "It is rude."}}
    suite = suite_of(tmp_path, log(sample(scores=scores)))
    (trial,) = suite.recorded
    (given,) = trial.invocations[0].foreign
    assert (trial.error, given.scorer, given.value) == (None, "graded", credit)
    assert given.reason == f"graded: {value!r}, It is rude."
    assert suite.brought == {"inspect:graded": DECIDES | {"scorer": "graded"}}


def test_a_number_on_another_scale_is_no_verdict(tmp_path: Path) -> None:
    """7 may be of 10, or of 100: it is no full credit."""
    suite = suite_of(tmp_path, log(sample(scores={"graded": {"value": 7}}), sample(id="b", scores={"graded": 1})))
    assert [trial.invocations[0].foreign[0].value for trial in suite.recorded] == [None, 1]
    assert suite.brought == {"inspect:graded": {"metric": "recorded_score", "scorer": "graded", "blocking": False}}


@pytest.mark.parametrize("value", [0.7, {"toxic": 0, "kind": 1}, [1, 0]])
def test_a_share_and_the_parts_of_a_score_only_report(tmp_path: Path, value: Any) -> None:
    suite = suite_of(tmp_path, log(sample(scores={"graded": {"value": value}})))
    assert suite.recorded[0].error is None
    assert suite.brought
    assert all(criterion["blocking"] is False for criterion in suite.brought.values())


def test_several_targets_of_includes_are_a_lost_check(tmp_path: Path) -> None:
    losses: list[Loss] = []
    suite_of(tmp_path, log(sample(target=["shipped", "sent"])), losses)
    assert [(loss.what, loss.check) for loss in losses] == [("scorer includes", True)]


def test_a_sample_that_failed_is_a_failed_trial(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, log(sample(), sample(epoch=2, error={"message": "it crashed", "traceback": "…"})))
    assert [trial.error for trial in suite.recorded] == [None, "it crashed"]


def test_a_tool_that_failed_says_so(tmp_path: Path) -> None:
    spoken = sample()["messages"]
    spoken[2] = {**spoken[2], "error": {"type": "timeout", "message": "too slow"}}
    (trial,) = suite_of(tmp_path, log(sample(messages=spoken))).recorded
    assert trial.invocations[0].tool_calls[0].error == "too slow"


def test_a_chat_as_input(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
    assert suite_of(tmp_path, log(sample(input=chat))).cases[0].turns[0].user == "Hi"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (log(sample(), status="error"), "status is 'error'"),
        (log(sample(), status="cancelled"), "status is 'cancelled'"),
        (log(sample(), invalidated=True), "invalidated"),
        (log(), "no samples"),
        (log(sample(), sample()), "epoch 1 of sample 'where' occurs twice"),
        (log(sample(), sample(epoch=2, input="Why?")), "a different input"),
        (log(sample(epoch=0)), "epoch"),
        (log(sample(id=None)), "no id"),
        (log(sample(messages="hello")), "must be a list"),
        (log(sample(target=3)), "target"),
    ],
)
def test_what_is_no_whole_log_is_refused(tmp_path: Path, data: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        suite_of(tmp_path, data)


@settings(
    max_examples=examples(200, quick=40),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_mutants_are_suites_or_gate_errors(data: st.DataObject, tmp_path: Path) -> None:
    with suppress(GateError):
        suite_of(tmp_path, mutated(data, log(sample(), sample(epoch=2))))


ARCHIVE = Path(__file__).parent / "samples" / "inspect" / "orders.eval"
"""What Inspect 0.3.285 wrote of a task of ours: two samples, three epochs each, a scripted model that calls a tool."""


def test_the_scores_of_a_genuine_archive_are_those_of_its_trials() -> None:
    """Its answers hold the target of one sample, and none is what `match` asks for."""
    pytest.importorskip("zstandard")
    (suite,) = load([ARCHIVE], root=ARCHIVE.parent)
    assert len(suite.recorded) == 6
    given = [score for trial in suite.recorded for score in trial.invocations[0].foreign]
    assert {score.value for score in given if score.scorer == "match"} == {0.0}
    assert {score.value for score in given if score.scorer == "includes"} == {0.0, 1.0}


def test_a_genuine_archive_is_read_without_inspect(tmp_path: Path) -> None:
    pytest.importorskip("zstandard")
    data = read_eval_archive(ARCHIVE, "orders.eval")
    for one in data["samples"]:
        one["scores"]["match"]["value"] = "C"
    suite = suite_of(tmp_path, data)
    assert sorted(case.id for case in suite.cases) == ["two", "where"]
    assert sorted((trial.case_id, trial.number) for trial in suite.recorded) == [
        (name, epoch) for name in ("two", "where") for epoch in (1, 2, 3)
    ]
    said = suite.recorded[0].invocations[0]
    assert [(call.name, call.args, call.result) for call in said.tool_calls] == [
        ("lookup_order", {"order": "A100"}, "shipped")
    ]
    assert said.usage == Usage(20, 10, model="mockllm/model")


@needs_shared
def test_a_genuine_archive_of_another_task_is_read(tmp_path: Path) -> None:
    pytest.importorskip("zstandard")
    (found,) = (SHARED / "samples" / "inspect").glob("*.eval")
    (suite,) = load([found], root=found.parent)
    assert [(trial.case_id, trial.number) for trial in suite.recorded] == [
        ("where2", 1), ("where2", 2), ("where", 1), ("where", 2)
    ]  # fmt: skip


def test_a_log_that_lacks_samples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds 1 of 2 samples"):
        suite_of(tmp_path, log(sample(), results={"total_samples": 2}))


def test_what_a_scorer_could_not_score_is_not_measured(tmp_path: Path) -> None:
    """Inspect leaves it out of its metrics; it is neither right nor wrong."""
    suite = suite_of(tmp_path, log(sample(scores={"graded": {"value": float("nan"), "explanation": "No reply."}})))
    metric = RecordedScore(RecordedOptions(scorer="graded"))
    score = metric.score(suite.cases[0], TrialOutput(suite.recorded[0].invocations))
    assert (score.value, score.error) == (None, "graded: None, No reply.")


def test_a_number_that_python_alone_writes_is_refused_in_any_other_file(tmp_path: Path) -> None:
    for name, data in (("a.json", [{"id": "a", "input": "Hi", "metadata": {"x": float("nan")}}]),
                       ("b.json", log(sample(working_time=float("inf"))))):  # fmt: skip
        with pytest.raises(ConfigError, match="is not a JSON number"):
            load([write(tmp_path / name, data)], root=tmp_path)


def test_a_sample_that_was_invalidated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'where' was invalidated"):
        suite_of(tmp_path, log(sample(invalidation={"reason": "wrong tool"})))


def test_files_in_the_users_message_belong_to_the_question(tmp_path: Path) -> None:
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image", "image": "attachment://abc", "detail": "auto"},
        {"type": "audio", "audio": "data:audio/wav;base64,AAAA", "format": "wav"},
        {"type": "document", "document": "https://host/a.pdf", "filename": "a.pdf", "mime_type": "application/pdf"},
    ]
    held = sample(input=[{"role": "user", "content": parts}], attachments={"abc": "data:image/png;base64,BBBB"})
    losses: list[Loss] = []
    (case,) = suite_of(tmp_path, log(held), losses).cases
    assert (case.turns[0].user, [loss for loss in losses if loss.unread]) == ("What is it?", [])
    assert case.turns[0].attached == (
        {"inline_data": {"mime_type": "image/png", "data": "BBBB"}},
        {"inline_data": {"mime_type": "audio/wav", "data": "AAAA"}},
        {"file_data": {"file_uri": "https://host/a.pdf", "mime_type": "application/pdf", "display_name": "a.pdf"}},
    )
