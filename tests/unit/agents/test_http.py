"""Paths into answers, and requests made from templates."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.agents.answer_paths import ResponsePaths
from gate.agents.base import AgentFailure
from gate.agents.http import render

PAYLOAD = {
    "messages": [{"role": "user", "content": 'say "hi"'}],
    "session_id": "s1",
    "state": {"user": {"id": 7}},
    "metadata": {},
    "trial": 2,
}


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text().filter(lambda text: "{{" not in text),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_template_without_fields_is_sent_as_it_is(template: Any) -> None:
    assert render(template, PAYLOAD) == template


@given(st.text())
def test_what_a_user_says_cannot_change_the_request(text: str) -> None:
    payload = {**PAYLOAD, "messages": [{"role": "user", "content": text}]}
    rendered = render({"q": "{{message}}", "in": "Q: {{ message }}!", "all": "{{messages}}"}, payload)
    assert json.loads(json.dumps(rendered)) == {"q": text, "in": f"Q: {text}!", "all": payload["messages"]}


def test_fields_keep_their_types_and_reach_into_the_case() -> None:
    template = {"n": "{{trial}}", "u": "{{state.user.id}}", "x": "{{metadata.none}}", "t": "t{{trial}} {{state}}"}
    assert render(template, PAYLOAD) == {"n": 2, "u": 7, "x": None, "t": 't2 {"user": {"id": 7}}'}


def test_parts_of_an_answer() -> None:
    paths = ResponsePaths(output="result.text", tool_calls="result.calls", usage="usage")
    body = {"result": {"text": "hi", "calls": [{"name": "t"}]}, "usage": {"input_tokens": 1}}
    assert paths.read(body) == {"output": "hi", "tool_calls": [{"name": "t"}], "usage": {"input_tokens": 1}}


def test_an_absent_part_differs_from_a_wrong_path() -> None:
    paths = ResponsePaths(output="text", tool_calls="steps.calls")
    with pytest.raises(AgentFailure, match=r"nothing at 'steps\.calls' \(tool_calls\); write steps\.calls\? if"):
        paths.read({"text": "hi", "steps": {}})
    assert paths.read({"text": "hi", "steps": {"calls": None}}) == {"output": "hi", "tool_calls": None}
    marked = ResponsePaths(output="text", tool_calls="steps.calls?")
    assert marked.read({"text": "hi", "steps": {}}) == {"output": "hi", "tool_calls": None}
    assert marked.read({"text": "hi", "steps": {"calls": []}}) == {"output": "hi", "tool_calls": []}
    with pytest.raises(AgentFailure, match=r"nothing at 'steps\.calls' \(tool_calls\); known: text$"):
        marked.read({"text": "hi"})
    with pytest.raises(AgentFailure, match=r"nothing at 'steps\.calls' \(tool_calls\)"):
        paths.read({"text": "hi"})
    with pytest.raises(AgentFailure, match=r"nothing at 'text' \(output\)"):
        paths.read({"steps": {"calls": []}})
