"""Whatever was recorded is a trial: in no format does one without an answer go away, or pass for an empty answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gate.model import RecordedTrial, Suite
from gate.suites import FORMATS, load
from gate.suites.base import NO_ANSWER
from tests.properties import examples
from tests.unit.importers import test_inspect_logs, test_promptfoo
from tests.unit.suites import test_adk_results
from tests.unit.suites.files import TURN, write
from tests.unit.traces.spans import agent, chat, request, said, text

LIMITS = settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
Recording = Callable[[list[bool]], tuple[str, Any]]
"""Whether each trial was answered → the name and the content of a file that recorded them."""


def messages(answered: list[bool]) -> tuple[str, Any]:
    asked, told = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}
    return "r.json", [{"id": "a", "messages": [asked, told] if one else [asked]} for one in answered]


def lines_of_messages(answered: list[bool]) -> tuple[str, Any]:
    return "r.jsonl", "".join(json.dumps(row) + "\n" for row in messages(answered)[1])


def empty_texts(answered: list[bool]) -> tuple[str, Any]:
    name, rows = messages(answered)
    said_nothing = {"role": "assistant", "content": ""}
    return name, [{**row, "messages": [*row["messages"], said_nothing]} for row in rows]


def adk_without_turns(answered: list[bool]) -> tuple[str, Any]:
    empty = test_adk_results.result(status=2, eval_metric_result_per_invocation=[])
    results = [test_adk_results.result() if one else empty for one in answered]
    return "r.evalset_result.json", {"eval_set_id": "s", "eval_case_results": results}


def adk_without_a_response(answered: list[bool]) -> tuple[str, Any]:
    pair = {"actual_invocation": {"user_content": TURN["user_content"]}, "expected_invocation": TURN}
    silent = test_adk_results.result(eval_metric_result_per_invocation=[pair])
    results = [test_adk_results.result() if one else silent for one in answered]
    return "r.evalset_result.json", {"eval_set_id": "s", "eval_case_results": results}


def inspect_log(answered: list[bool]) -> tuple[str, Any]:
    silent = {"messages": [{"role": "user", "content": "Where is A100?"}]}
    samples = [test_inspect_logs.sample(epoch=n, **({} if one else silent)) for n, one in enumerate(answered, 1)]
    return "log.json", test_inspect_logs.log(*samples)


def promptfoo(answered: list[bool]) -> tuple[str, Any]:
    silent = {"response": {"output": None, "tokenUsage": {"total": 3}}}
    rows = [test_promptfoo.row(**({} if one else silent)) for one in answered]
    return "r.json", {"evalId": "e", "results": {"version": 3, "results": rows}}


def openai_evals(answered: list[bool]) -> tuple[str, Any]:
    rows = [{"item": {"input": "hi"}, "sample": {"output_text": "Hello." if one else None, "n": 1}} for one in answered]
    return "r.json", rows


def traces(answered: list[bool]) -> tuple[str, Any]:
    asked, told = said("user", text("hi")), said("assistant", text("Hello."))
    found = []
    for number, one in enumerate(answered, 1):
        own = {"trace": f"{number:032x}"}
        found.append(request(agent(1, **own), chat(2, read=[asked], **({"wrote": [told]} if one else {}), **own)))
    return "t.jsonl", "".join(json.dumps(one) + "\n" for one in found)


RECORDINGS: dict[Recording, str] = {
    messages: "messages",
    lines_of_messages: "messages",
    empty_texts: "messages",
    adk_without_turns: "adk-results",
    adk_without_a_response: "adk-results",
    inspect_log: "inspect",
    promptfoo: "promptfoo",
    openai_evals: "exports",
    traces: "traces",
}
"""Each with its format."""
RECORD_NOTHING = {"adk", "native", "evalview", "pydantic-evals", "python-tests"}
"""Formats that state cases alone; of a test in Python the files that it names are read."""


def suite_of(folder: Path, recording: Recording, answered: list[bool]) -> Suite:
    name, content = recording(answered)
    write(folder / name, content)
    (suite,) = load([folder / name], root=folder)
    return suite


def is_no_pass(trial: RecordedTrial) -> bool:
    """Whether it failed, or nothing that it says can be measured."""
    return trial.error is not None or all("response" in turn.unseen for turn in trial.invocations)


def test_every_format_is_asked_here() -> None:
    assert {*RECORDINGS.values()} | RECORD_NOTHING == {*FORMATS}


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.__name__)
@given(st.lists(st.booleans(), min_size=1, max_size=6).filter(any))
@LIMITS
def test_a_trial_without_an_answer_is_a_trial_that_failed(
    tmp_path: Path, recording: Recording, answered: list[bool]
) -> None:
    suite = suite_of(tmp_path, recording, answered)
    assert len(suite.recorded) == len(answered)
    numbers: dict[str, list[int]] = {}
    for trial in suite.recorded:
        numbers.setdefault(trial.case_id, []).append(trial.number)
    assert all(sorted(found) == list(range(1, len(found) + 1)) for found in numbers.values())
    assert sum(is_no_pass(trial) for trial in suite.recorded) == answered.count(False)


@pytest.mark.parametrize("recording", [messages, lines_of_messages, empty_texts], ids=lambda one: one.__name__)
def test_rows_that_were_never_answered_are_cases_to_run(tmp_path: Path, recording: Recording) -> None:
    suite = suite_of(tmp_path, recording, [False, False])
    assert ([case.id for case in suite.cases], suite.recorded) == (["a"], ())


def test_a_file_that_was_never_answered_failed_beside_one_that_was(tmp_path: Path) -> None:
    rows = messages([True, False])[1]
    for number, row in enumerate(rows):
        write(tmp_path / "rows" / f"{number}.json", [{**row, "id": f"case {number}"}])
    (suite,) = load([tmp_path / "rows"], root=tmp_path)
    assert {trial.case_id: trial.error for trial in suite.recorded} == {"case 0": None, "case 1": NO_ANSWER}
