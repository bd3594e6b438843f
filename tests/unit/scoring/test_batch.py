"""Batches of recorded trials: the quick ways come to what the slow ones say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.metrics import METRICS, load_metric
from gate.metrics.response import ResponseMatch, ResponseMatchOptions
from gate.metrics.trajectory import ToolTrajectory, TrajectoryOptions
from gate.model import Case, Criterion, Invocation, Part, Scale, Score, ToolCall, Trial, Turn, Usage
from gate.records import redacted, to_record
from gate.records.lines import trial_line
from gate.records.transform import with_answer_digest
from gate.scoring.batch import (
    Batch,
    Recording,
    ScoringSetup,
    pack_batch,
    score_batch,
    score_packed,
)
from gate.scoring.score import Scorer
from gate.security.redact import Redactor
from gate.system.serialize import pack, unpack
from tests.properties import examples
from tests.unit.security.test_redact import FRAGMENTS

VALUES = ('corr"ect', "horse-battery", "stäple-stone")
texts = st.one_of(FRAGMENTS, st.text(max_size=8), st.sampled_from(VALUES).map(lambda value: f"it is {value}."))
keys = st.sampled_from(["note", "api_key", "cookie", "to_ken", "input_tokens", "n"])
values = st.recursive(
    texts | st.integers() | st.none() | st.floats(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2),
    max_leaves=4,
)
calls = st.builds(ToolCall, name=texts, args=values, result=values, error=st.none() | texts)
turns = st.builds(
    Invocation,
    user=texts,
    response=st.lists(st.builds(Part, texts), max_size=2).map(tuple),
    tool_calls=st.lists(calls, max_size=2).map(tuple),
    usage=st.none() | st.just(Usage(3, 4)),
)
scores = st.builds(Score, st.none() | st.floats(0, 1), texts, details=st.dictionaries(keys, values, max_size=2))
trials = st.builds(
    Trial,
    st.just("a"),
    st.just(1),
    invocations=st.lists(turns, max_size=2).map(tuple),
    scores=st.dictionaries(st.just("m"), scores, max_size=1),
)


@pytest.mark.slow
@given(trials, st.sets(st.sampled_from(VALUES)))
@settings(max_examples=examples(400))
def test_what_is_redacted_quickly_is_what_is_redacted_text_by_text(trial: Trial, secrets: set[str]) -> None:
    redactor = Redactor(secrets)
    kept, line = to_record(trial, redactor)
    assert line == trial_line(with_answer_digest(redacted(trial, redactor)))
    assert trial_line(kept) == line


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_found_in_what_is_sent_and_in_what_comes_back(value: str) -> None:
    redactor = Redactor([value])
    turn = Invocation("hi", (Part(f"it is {value}!"),), (ToolCall("t", {"x": json.dumps({"y": value})}),))
    assert redactor.holds_value(pack((turn,)))
    assert redactor.holds_value(trial_line(Trial("a", 1, invocations=(turn,))))
    assert not redactor.holds_value(pack((Invocation("hi", (Part("it is nothing"),)),)))


SCORERS = (
    Scorer(
        Criterion("calls", "tool_trajectory_avg_score", Scale.UNIT, threshold=0.9),
        ToolTrajectory(TrajectoryOptions()),
        {},
    ),
    Scorer(
        Criterion("words", "response_match_score", Scale.UNIT, threshold=0.5),
        ResponseMatch(ResponseMatchOptions()),
        {},
    ),
)


def test_a_packed_batch_has_the_answer_of_one_that_is_not() -> None:
    case = Case("a", (Turn("hi", (ToolCall("t", {"x": 1}),), (Part("so it is"),)),), content={"not": "sent"})
    said = [
        (Invocation("hi", (Part("so it is"),), (ToolCall("t", {"x": 1}),), usage=Usage(3, 4)),),
        (Invocation("hi", (Part("no"),), (ToolCall("u"),)),),
        (),
    ]
    recordings = [Recording(0, n, turns, None) for n, turns in enumerate(said, 1)] + [Recording(0, 4, (), "cut")]
    batch = Batch([case], recordings)
    there = unpack(score_packed(unpack(pack(ScoringSetup(SCORERS))), pack_batch(batch)))
    here = score_batch(ScoringSetup(SCORERS), batch, Redactor())
    assert [one.trial for one in there.scored] == [one.trial for one in here.scored]
    lines = [[{**json.loads(one.line), "started": 0} for one in answer.scored] for answer in (there, here)]
    assert lines[0] == lines[1]
    errors = [one.trial.error.message for one in here.scored if one.trial.error is not None]
    assert errors == ["turn 1 was not recorded; trial 3 has 0", "recorded as failed: cut"]


def test_every_metric_can_be_sent() -> None:
    for name in METRICS:
        metric_type = load_metric(name)
        options: dict[str, Any] = {"dimensions": {"depth": {"weight": 1.0}}} if name == "rubric" else {}
        metric = metric_type(metric_type.options_type.model_validate(options))
        sent = unpack(pack(metric))
        assert type(sent) is type(metric), name
        assert sent.options == metric.options, name
