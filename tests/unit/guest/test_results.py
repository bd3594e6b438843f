"""What frameworks return, by shape; the frameworks themselves are met in tests/connectors."""

from __future__ import annotations

import contextlib
import importlib.util
from pathlib import Path
from types import SimpleNamespace as Made
from typing import Any

import pytest

import gate.guest
from gate.agents.base import AgentFailure, read_answer
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


def test_a_failed_result_of_pydantic_ai_is_an_error() -> None:
    call = Made(part_kind="tool-call", tool_call_id="c", tool_name="lookup", args={})
    found = {}
    for outcome in ("success", "denied", "retried", "failed"):
        part = Made(part_kind="tool-return", tool_call_id="c", content="down", outcome=outcome)
        said = [Made(parts=[call], model_name="m"), Made(parts=[part])]
        answer = Made(output="x", new_messages=lambda said=said: said, all_messages=list, usage=Made)
        (one,) = to_invocation(results.told(answer), user="q").tool_calls
        found[outcome] = (one.result, one.error)
    assert found == {
        "success": ("down", None),
        "denied": ("down", None),
        "retried": (None, "down"),
        "failed": (None, "down"),
    }


def test_an_exception_that_the_agents_sdk_hides_is_the_error_of_its_call() -> None:
    items = [
        {"role": "user", "content": "q"},
        {"type": "function_call", "call_id": "c", "name": "refund", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": "An error occurred while running the tool. Please try again.",
        },
        {"type": "function_call", "call_id": "d", "name": "refund", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "d", "output": "refunded"},
        {"role": "assistant", "content": "Sorry."},
    ]
    answer = Made(final_output="Sorry.", to_input_list=lambda: items, new_items=[])
    calls = to_invocation(results.told(answer), user="q").tool_calls
    assert [call.error is None for call in calls] == [False, True]


def test_a_tool_that_the_provider_runs_is_a_call_of_pydantic_ai() -> None:
    call = Made(part_kind="builtin-tool-call", tool_call_id="c", tool_name="web_search", args={"query": "x"})
    gave = Made(part_kind="builtin-tool-return", tool_call_id="c", content="found")
    answer = Made(output="x", new_messages=lambda: [Made(parts=[call, gave])], all_messages=list, usage=dict)
    turn = to_invocation(results.told(answer), user="q")
    assert [(one.name, one.result) for one in turn.tool_calls] == [("web_search", "found")]


def chat(name: str, number: int) -> list[dict[str, Any]]:
    """A call and its result, as a crew keeps them."""
    call = {"id": f"c{number}", "function": {"name": name, "arguments": '{"order": "A1"}'}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "shipped"},
    ]


def task(*messages: dict[str, Any], failures: Any = ()) -> Any:
    said = [{"role": "user", "content": "Where is A1?"}, *messages, {"role": "assistant", "content": "done"}]
    return Made(messages=said, tool_failures=failures)


def crew(*tasks: Any, requests: int = 0) -> Any:
    usage = Made(prompt_tokens=3, completion_tokens=2, successful_requests=requests)
    return to_invocation(results.told(Made(raw="done", tasks_output=list(tasks), token_usage=usage)), user="q")


def test_a_crew_tells_the_calls_of_its_tasks_in_order() -> None:
    failed = Made(tool_name="refund", tool_args={"order": "A1"}, message="no money")
    turn = crew(task(*chat("lookup", 1)), task(*chat("refund", 2), failures=[failed]), requests=4)
    assert turn.text == "done"
    assert turn.shows_calls
    assert [(one.name, one.args, one.result, one.error) for one in turn.tool_calls] == [
        ("lookup", {"order": "A1"}, "shipped", None),
        ("refund", {"order": "A1"}, "shipped", "no money"),
    ]
    assert turn.usage is not None
    assert (turn.usage.tokens, turn.usage.model_calls) == (5, 4)


def test_one_agent_of_crewai_tells_the_same() -> None:
    said = task(*chat("lookup", 1)).messages
    answer = Made(raw="done", agent_role="support", usage_metrics={"prompt_tokens": 3}, messages=said)
    turn = to_invocation(results.told(answer), user="q")
    assert [one.name for one in turn.tool_calls] == ["lookup"]
    assert turn.usage is not None
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (3, None)


@pytest.mark.parametrize(
    ("tasks", "requests"),
    [
        ([], 0),
        ([Made(messages=[])], 0),
        ([task(*chat("lookup", 1))], 3),  # the model was asked once more than the messages show
        ([task({"role": "system", "content": "Thought: …\nAction Input: {}"})], 1),
        ([task(*chat("Delegate work to coworker", 1))], 2),
        ([task(*chat("ask_question_to_coworker", 1))], 0),
    ],
    ids=["no tasks", "no messages", "done again", "calls as text", "delegated", "asked"],
)
def test_a_crew_whose_calls_may_be_missing_says_nothing_of_calls(tasks: list[Any], requests: int) -> None:
    turn = crew(*tasks, requests=requests)
    assert turn.text == "done"
    assert not turn.shows_calls
    assert turn.tool_calls == ()
    assert turn.unseen == ("calls",)


def test_tokens_of_earlier_questions_are_not_counted_for_a_crew() -> None:
    """CrewAI counts over all that a model object has been used for."""
    again = crew(task(*chat("lookup", 1)), requests=4)
    delegated = crew(task(*chat("Delegate work to coworker", 1)), requests=4)
    assert again.usage is None
    assert delegated.usage is not None
    assert delegated.usage.tokens == 5


def test_what_was_never_counted_is_not_zero() -> None:
    usage = Made(prompt_tokens=0, completion_tokens=0, successful_requests=0)
    answer = Made(raw="done", tasks_output=[], token_usage=usage)
    assert to_invocation(results.told(answer), user="q").usage is None
    assert results.usage_of(Made(input_tokens=0, output_tokens=0, requests=2)) == {"model_calls": 2}


def handed_over(*models: Any) -> Any:
    agents = [Made(model=model) for model in models]
    context = Made(usage=Made(input_tokens=3, output_tokens=2, requests=2))
    items = [Made(agent=agent) for agent in agents]
    said = [{"role": "assistant", "content": "done"}]
    run = Made(final_output="done", to_input_list=lambda: said, new_items=items, context_wrapper=context)
    run.last_agent = agents[-1]
    return to_invocation(results.told(run), user="q").usage


@pytest.mark.parametrize(("models", "named"), [(["m", "m"], "m"), (["m", "n"], None), ([None, "m"], None)])
def test_a_run_of_several_models_names_none_of_them(models: list[Any], named: str | None) -> None:
    """Its tokens would have the price of one."""
    usage = handed_over(*models)
    assert (usage.tokens, usage.model) == (5, named)


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


def ended(total: Any, session: Any = "s", **usage: int) -> list[Any]:
    tokens = {"input_tokens": 3, "output_tokens": 2, **usage}
    said = Made(content=[Made(text="done")], model="m")
    one = Made(total_cost_usd=total, num_turns=1, is_error=False, usage=tokens, result="done", subtype="success")
    one.session_id = session
    return [said, one]


def test_a_session_of_claude_costs_what_each_run_added_to_it() -> None:
    """Its result tells the cost of the session so far."""
    own = loaded()
    costs = [own.told(ended(*run))["cost_usd"] for run in ((0.5,), (0.75,), (0.25, "other"), (1.0,), (0.125,))]
    assert costs == [0.5, 0.25, 0.25, 0.25, 0.125]  # the last one began anew
    assert own.told(ended(None))["cost_usd"] is None
    assert own.told(ended(0.5, None))["cost_usd"] == 0.5


def test_few_sessions_of_claude_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    own = loaded()
    monkeypatch.setattr(own, "KNOWN_SESSIONS", 2)
    for session in "abc":
        own.told(ended(0.5, session))
    assert sorted(own.TOLD) == ["b", "c"]


def test_input_that_claude_has_cached_is_input() -> None:
    turn = to_invocation(
        results.told(ended(0.5, "k", cache_creation_input_tokens=100, cache_read_input_tokens=1_000)), user="q"
    )
    assert turn.usage is not None
    assert turn.usage.input_tokens == 1_103


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


def test_a_run_of_claude_whose_last_message_is_an_error_states_it() -> None:
    refused = Made(content=[Made(text="API Error")], model="m", error="rate_limit")
    assert results.told(claude(refused)) == {"error": "rate_limit"}
    again = Made(content=[Made(text="done")], model="m", error=None)
    assert to_invocation(results.told(claude(refused, again)), user="q").text.endswith("done")


def agents_sdk(**changes: Any) -> Any:
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "One moment."}]
    return Made(**{"final_output": None, "to_input_list": lambda: said, "new_items": [], **changes})


TRIPPED, HELD = (Made(output=Made(tripwire_triggered=tripped)) for tripped in (True, False))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"interruptions": [Made(name="send_money")]}, "waits for the approval of send_money"),
        ({"is_complete": False}, "not read to its end"),
        ({"is_complete": True, "run_loop_exception": RuntimeError("max turns")}, "RuntimeError: max turns"),
        ({"_stored_exception": RuntimeError("max turns")}, "RuntimeError: max turns"),
        ({"input_guardrail_results": [HELD, TRIPPED]}, "input guardrail was tripped"),
        ({"output_guardrail_results": [TRIPPED]}, "output guardrail was tripped"),
    ],
)
def test_a_run_of_the_agents_sdk_that_did_not_end_states_an_error(changes: dict[str, Any], why: str) -> None:
    assert why in results.told(agents_sdk(**changes))["error"]


def test_a_run_of_the_agents_sdk_that_ended_is_its_messages() -> None:
    ended = agents_sdk(interruptions=[], is_complete=True, input_guardrail_results=[HELD], _stored_exception=None)
    assert to_invocation(results.told(ended), user="q").text == "One moment."


def test_a_run_of_pydantic_ai_that_waits_for_its_tools_states_an_error() -> None:
    waits = Made(calls=[Made(tool_name="look")], approvals=[Made(tool_name="pay")])
    answer = Made(output=waits, new_messages=list, all_messages=list, usage=lambda: None)
    assert "waits for the results or the approval of look, pay" in results.told(answer)["error"]


def said_by_langchain() -> Any:
    said: dict[str, Any] = {"type": "ai", "content": "done", "additional_kwargs": {}, "tool_calls": []}
    return Made(**said, model_dump=lambda **_: {"role": "assistant", "content": "done"})


def test_an_interrupted_graph_states_an_error() -> None:
    state = {"messages": [said_by_langchain()], "__interrupt__": [Made(value="Send it?")]}
    assert results.told(state)["error"].endswith("it asks: Send it?")
    assert "error" not in results.told({**state, "__interrupt__": []})


def event_of_adk(text: str = "", **changes: Any) -> Any:
    parts = [Made(text=text)] if text else None
    made = Made(author="a", invocation_id="i", content=Made(parts=parts), is_final_response=bool)
    made.model_dump = lambda **_: {"author": "a", "content": {"parts": [{"text": text}] if text else []}, **changes}
    return made


def test_a_run_of_adk_whose_last_event_is_an_error_states_it() -> None:
    failed = event_of_adk(errorCode="MALFORMED_FUNCTION_CALL", errorMessage="no such tool")
    with pytest.raises(AgentFailure, match="MALFORMED_FUNCTION_CALL: no such tool") as raised:
        read_answer(results.told([event_of_adk("One moment."), failed]), user="q")
    assert raised.value.turn is not None and raised.value.turn.text == "One moment.", "what was said before is kept"
    for whole, said in (
        ([failed, event_of_adk("done")], "done"),
        ([event_of_adk("cut", errorCode="MAX_TOKENS")], "cut"),
    ):
        assert read_answer(results.told(whole), user="q").text == said


@pytest.mark.parametrize("content", ["done", [{"type": "text", "text": "do"}, "ne"]])
def test_the_last_message_of_langchain_alone_says_nothing_of_the_calls_before_it(content: Any) -> None:
    said: dict[str, Any] = {"type": "ai", "content": content, "additional_kwargs": {}, "tool_calls": []}
    said |= {"usage_metadata": {"input_tokens": 3, "output_tokens": 2}, "response_metadata": {"model_name": "m"}}
    message = Made(**said, model_dump=lambda **_: {"role": "assistant", "content": content})
    turn = to_invocation(results.told(message), user="q")
    assert turn.text == "done"
    assert not turn.shows_calls
    assert turn.usage is not None
    assert (turn.usage.tokens, turn.usage.model, turn.usage.cut_off) == (5, "m", False)
    assert to_invocation(results.told([message]), user="q").shows_calls
    message = Made(**{**said, "response_metadata": {"finish_reason": "length"}}, model_dump=message.model_dump)
    usage = to_invocation(results.told(message), user="q").usage
    assert usage is not None and usage.cut_off


def test_the_output_of_a_graph_is_the_state_that_it_holds() -> None:
    """As `invoke` gives it under `version="v2"`."""

    def output(value: Any, *interrupts: Any) -> Any:
        return type("GraphOutput", (), {"value": value, "interrupts": interrupts})()

    turn = to_invocation(results.told(output({"messages": [said_by_langchain()]})), user="q")
    assert (turn.text, turn.shows_calls) == (results.told([said_by_langchain()])["messages"][0]["content"], True)
    assert results.told(output({"output": "done"})) == {"output": "done"}
    asked = output({"messages": [said_by_langchain()]}, Made(value="Send it?"))
    assert results.told(asked)["error"].endswith("it asks: Send it?")


def made_in(module: str) -> Any:
    return type("Result", (), {"__module__": module})()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (made_in("langgraph.graph.state"), "this looks like LangGraph: return what invoke"),
        (made_in("agents.result"), "this looks like the OpenAI Agents SDK"),
        ([made_in("google.adk.events.event"), 3], "this looks like google-adk: return the list of events"),
        ({"state": made_in("strands.agent.agent_result")}, "this looks like Strands: return str(result)"),
        (made_in("agentstuff"), ""),
        (made_in("google.cloud"), ""),
        (object(), ""),
        ([], ""),
        ((piece for piece in "ab"), "as a whole, no generator"),
    ],
)
def test_an_object_that_is_no_answer_says_what_to_return(answer: Any, said: str) -> None:
    found = results.remedy(answer)
    assert said in found
    assert bool(found) == bool(said)


def test_a_generator_is_known_by_whose_code_it_runs() -> None:
    space: dict[str, Any] = {"__name__": "langgraph.pregel.main"}
    exec("def stream():\n    yield 1\nasync def astream():\n    yield 1", space)
    assert "LangGraph" in results.remedy(space["stream"]())
    assert "LangGraph" in results.remedy(space["astream"]())
    held = contextlib.asynccontextmanager(space["astream"])()
    assert "LangGraph" in results.remedy(held)
