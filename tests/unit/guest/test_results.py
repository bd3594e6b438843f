"""What frameworks return, by shape; the frameworks themselves are met in tests/connectors."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace as Made
from typing import Any

import pytest

import gate.guest
from gate.formats.answers import to_invocation

PATH = Path(gate.guest.__file__).with_name("results.py")


def loaded() -> Any:
    """As worker.py loads it."""
    spec = importlib.util.spec_from_file_location("results_of_frameworks", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


results = loaded()


@pytest.mark.parametrize(
    "answer", ["text", None, 7, [], {}, {"messages": []}, {"output": "x"}, [1, 2], {"messages": 3}]
)
def test_anything_else_stays_as_it_is(answer: Any) -> None:
    assert results.told(answer) is answer
    assert results.form_of(answer) == ""


def test_an_object_of_a_known_shape_that_cannot_be_read_stays_as_it_is() -> None:
    def broken() -> None:
        raise RuntimeError("no")

    answer = Made(final_output="x", to_input_list=broken, new_items=[])
    assert results.told(answer) is answer


def test_a_refused_call_of_pydantic_ai_says_why() -> None:
    call = Made(part_kind="tool-call", tool_call_id="c", tool_name="lookup", args="no json")
    retry = Made(part_kind="retry-prompt", tool_call_id="c", content="order is missing")
    said = [Made(parts=[call], model_name="m"), Made(parts=[retry])]
    usage = Made(input_tokens=3, output_tokens=2, requests=1)
    answer = Made(output="x", new_messages=lambda: said, all_messages=list, usage=lambda: usage)
    turn = to_invocation(results.told(answer), user="q")
    assert [(one.args, one.error) for one in turn.tool_calls] == [("no json", "order is missing")]
    assert turn.usage is not None
    assert (turn.usage.input_tokens, turn.usage.model_calls, turn.usage.model) == (3, 1, "m")


def test_a_crew_tells_text_and_usage_and_nothing_of_calls() -> None:
    answer = Made(raw="done", tasks_output=[], token_usage=Made(prompt_tokens=3, completion_tokens=2))
    turn = to_invocation(results.told(answer), user="q")
    assert turn.text == "done"
    assert not turn.shows_calls
    assert turn.usage is not None
    assert turn.usage.tokens == 5


def claude(*messages: Any, error: bool = False) -> list[Any]:
    ended = Made(total_cost_usd=0.5, num_turns=1, is_error=error, usage={}, result="limit", subtype="error")
    return [*messages, ended]


def test_what_a_subagent_of_claude_says_is_not_said_to_the_user() -> None:
    inner = Made(content=[Made(text="inner")], model="m", parent_tool_use_id="t")
    call = Made(content=[Made(id="i", name="search", input={})], model="m", parent_tool_use_id="t")
    said = Made(content=[Made(text="outer")], model="m", parent_tool_use_id=None)
    turn = to_invocation(results.told(claude(inner, call, said)), user="q")
    assert (turn.text, turn.intermediate) == ("outer", ())
    assert [one.name for one in turn.tool_calls] == ["search"]


def test_a_failed_run_of_claude_states_an_error() -> None:
    assert results.told(claude(error=True)) == {"error": "limit"}


def test_a_failed_tool_of_claude_is_a_failed_call() -> None:
    call = Made(content=[Made(id="i", name="search", input={})], model="m")
    gave = Made(content=[Made(tool_use_id="i", content="no network", is_error=True)])
    turn = to_invocation(results.told(claude(call, gave)), user="q")
    assert turn.tool_calls[0].error == "no network"


def test_a_run_of_claude_that_ran_out_of_turns_states_an_error() -> None:
    """Its `is_error` may say otherwise."""
    ended = Made(total_cost_usd=0.5, num_turns=9, is_error=False, usage={}, result=None, subtype="error_max_turns")
    assert results.told([ended]) == {"error": "error_max_turns"}


@pytest.mark.parametrize("content", ["done", [{"type": "text", "text": "do"}, "ne"]])
def test_the_last_message_of_langchain_alone_says_nothing_of_the_calls_before_it(content: Any) -> None:
    said: dict[str, Any] = {"type": "ai", "content": content, "additional_kwargs": {}, "tool_calls": []}
    said |= {"usage_metadata": {"input_tokens": 3, "output_tokens": 2}, "response_metadata": {"model_name": "m"}}
    message = Made(**said, model_dump=lambda **_: {"role": "assistant", "content": content})
    turn = to_invocation(results.told(message), user="q")
    assert turn.text == "done"
    assert not turn.shows_calls
    assert turn.usage is not None
    assert (turn.usage.tokens, turn.usage.model) == (5, "m")
    assert to_invocation(results.told([message]), user="q").shows_calls
