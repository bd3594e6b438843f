"""Turns the results of known agent frameworks into answers; recognises them by shape and imports nothing.

Loaded by worker.py. Standard library only, Python 3.8 and later.
"""

from __future__ import annotations

import json
from typing import Any


def told(answer: Any) -> Any:
    """Return the answer in a form that the gate reads if a framework made it; any other answer unchanged."""
    for fits, read in FORMS:
        try:
            if fits(answer):
                return read(answer)
        except Exception:  # noqa: BLE001, S112 - another product's object of the same shape
            continue
    return answer


def has(value: Any, *names: str) -> bool:
    return not isinstance(value, dict) and all(hasattr(value, name) for name in names)


def called(value: Any) -> Any:
    """Return a value that is a method in one version and an attribute in another."""
    if callable(value) and not hasattr(value, "input_tokens"):
        return value()
    return value


def usage_of(usage: Any) -> Any:
    """Return token counts, by the names that frameworks use; two counts of 0 mean that nothing was counted."""
    found = {}
    for ours, theirs in (
        ("input_tokens", ("input_tokens", "prompt_tokens", "request_tokens")),
        ("cache_creation_input_tokens", ("cache_creation_input_tokens",)),
        ("cache_read_input_tokens", ("cache_read_input_tokens",)),
        ("output_tokens", ("output_tokens", "completion_tokens", "response_tokens")),
        ("model_calls", ("requests", "successful_requests")),
    ):
        for name in theirs:
            value = part_of(usage, name)
            if isinstance(value, int):
                found[ours] = value
                break
    if found.get("input_tokens") or found.get("output_tokens"):
        return found
    if found.get("model_calls"):
        return {"model_calls": found["model_calls"]}
    return None


def part_of(value: Any, name: str) -> Any:
    """Return a value's part, from an object or a dictionary."""
    if isinstance(value, dict):
        return value.get(name)
    return getattr(value, name, None)


def only(names: Any) -> Any:
    """Return the name if there is exactly one; usage of several models has no single price."""
    known = {name for name in names if isinstance(name, str)}
    if len(known) != 1:
        return None
    return known.pop()


def endings(messages: Any, name: str) -> Any:
    """Return the reasons why the model's messages ended, from the attribute of this name."""
    reasons = [getattr(message, name, None) for message in messages]
    return [reason for reason in reasons if isinstance(reason, str)]


def plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return value


# --- OpenAI Agents SDK ----------------------------------------------------------------------------


def is_agents_sdk(answer: Any) -> bool:
    return has(answer, "final_output", "to_input_list", "new_items")


TOOL_RAISED = "An error occurred while running the tool"
"""The beginning of the result that the SDK gives the model in place of a tool's exception."""


def from_agents_sdk(answer: Any) -> Any:
    """Return the items of the run with its usage. A run that did not finish is an error."""
    unfinished = agents_sdk_failure(answer)
    if unfinished:
        return {"error": unfinished}
    usage = usage_of(getattr(getattr(answer, "context_wrapper", None), "usage", None)) or {}
    agents = [getattr(answer, "last_agent", None)] + [getattr(item, "agent", None) for item in answer.new_items]
    models = [getattr(agent, "model", None) for agent in agents if agent is not None]
    if usage and all(isinstance(model, str) for model in models) and only(models):
        usage["model"] = only(models)
    items = list(map(plain, answer.to_input_list()))
    for item in items:
        if item.get("type") == "function_call_output" and str(item.get("output")).startswith(TOOL_RAISED):
            item["is_error"] = True
    return {"messages": items, "usage": usage or None}


def agents_sdk_failure(answer: Any) -> str:
    """Return the reason why a run has no answer: an error or a guardrail ended it, a tool waits for approval, or a
    stream was not read."""
    raised = getattr(answer, "run_loop_exception", None) or getattr(answer, "_stored_exception", None)
    if isinstance(raised, BaseException):
        return type(raised).__name__ + ": " + str(raised)
    waiting = getattr(answer, "interruptions", None)
    if isinstance(waiting, list) and waiting:
        names = [str(getattr(one, "name", None) or "a tool") for one in waiting]
        return "the run waits for the approval of " + ", ".join(names) + ": approve it in the agent, and resume the run"
    for kind in ("input", "output"):
        for result in getattr(answer, kind + "_guardrail_results", None) or ():
            if getattr(getattr(result, "output", None), "tripwire_triggered", False) is True:
                return "an " + kind + " guardrail was tripped"
    if getattr(answer, "is_complete", True) is False:
        return "the streamed run was not read to its end: await all of result.stream_events() before it is returned"
    return ""


# --- pydantic-ai ----------------------------------------------------------------------------------


def is_pydantic_ai(answer: Any) -> bool:
    return has(answer, "output", "new_messages", "all_messages", "usage")


def from_pydantic_ai(answer: Any) -> Any:
    """Return the output, with the calls and results of the run's own messages; a refused or failed call has the reason
    as its error."""
    if has(answer.output, "calls", "approvals"):
        names = [str(call.tool_name) for call in [*answer.output.calls, *answer.output.approvals]]
        return {"error": "the run waits for the results or the approval of " + ", ".join(names) + ": resume it"}
    calls = []
    by_id = {}
    usage = usage_of(called(answer.usage)) or {}
    said = answer.new_messages()
    model = only(getattr(message, "model_name", None) for message in said)
    if usage and model:
        usage["model"] = model
    for message in said:
        for part in message.parts:
            kind = getattr(part, "part_kind", "")
            if kind.endswith("tool-call"):  # also of tools that the provider runs
                call = {"id": part.tool_call_id, "name": part.tool_name, "arguments": arguments(part)}
                calls.append(call)
                by_id[part.tool_call_id] = call
            elif kind.endswith("tool-return") and part.tool_call_id in by_id:
                if getattr(part, "outcome", "success") in ("failed", "retried"):
                    by_id[part.tool_call_id]["error"] = str(plain(part.content))
                else:
                    by_id[part.tool_call_id]["result"] = plain(part.content)
            elif kind == "retry-prompt" and getattr(part, "tool_call_id", None) in by_id:  # of earlier versions
                by_id[part.tool_call_id]["error"] = str(part.content)
    ends = endings(said, "finish_reason")
    return {"output": plain(answer.output), "tool_calls": calls, "usage": usage or None, "finish_reason": ends}


def arguments(part: Any) -> Any:
    try:
        return part.args_as_dict()
    except Exception:  # noqa: BLE001 - the model's text need not be JSON
        return part.args


# --- LangChain and LangGraph ----------------------------------------------------------------------

TYPES = ("human", "ai", "system", "tool", "function", "AIMessageChunk")


def is_output(answer: Any) -> bool:
    """True for the result of a graph's `invoke` under `version="v2"`."""
    return type(answer).__name__ == "GraphOutput" and has(answer, "value", "interrupts")


def from_output(answer: Any) -> Any:
    """Return the state in the result, or an error if there are interrupts."""
    if answer.interrupts:
        return from_langchain({INTERRUPTS: answer.interrupts})
    if is_langchain(answer.value):
        return from_langchain(answer.value)
    return answer.value


INTERRUPTS = "__interrupt__"
WAITING = "the graph was interrupted and is not at its end: resume it, or return what it asks as a text"


def is_langchain_message(value: Any) -> bool:
    return has(value, "type", "content", "additional_kwargs", "model_dump") and value.type in TYPES


def is_langchain(answer: Any) -> bool:
    return bool(langchain_messages(answer))


def langchain_messages(answer: Any) -> Any:
    """Return a message, a list of them, or those in a graph's state as a list; empty for anything else."""
    found = answer
    if isinstance(answer, dict):
        found = answer.get("messages")
    if is_langchain_message(found):
        return [found]
    if isinstance(found, list) and all(map(is_langchain_message, found)):
        return found
    return []


def from_langchain(answer: Any) -> Any:
    if is_langchain_message(answer) and not getattr(answer, "tool_calls", None):
        return from_langchain_message(answer)
    if isinstance(answer, dict) and answer.get(INTERRUPTS):
        asked = [str(getattr(one, "value", one)) for one in answer[INTERRUPTS]]
        return {"error": WAITING + "; it asks: " + ", ".join(asked)[:500]}
    found = {"messages": list(map(plain, langchain_messages(answer)))}
    for key in ("usage", "cost_usd", "error"):
        if isinstance(answer, dict) and key in answer:
            found[key] = answer[key]
    return found


def from_langchain_message(message: Any) -> Any:
    """Return a single message's text without claiming anything about calls: earlier messages may have made some."""
    content = message.content
    if isinstance(content, list):
        texts = []
        for block in content:
            text = block
            if not isinstance(block, str):
                text = block.get("text")
            if isinstance(text, str):
                texts.append(text)
        content = "".join(texts)
    usage = usage_of(getattr(message, "usage_metadata", None) or {}) or {}
    told = getattr(message, "response_metadata", None) or {}
    if usage and isinstance(told.get("model_name"), str):
        usage["model"] = told["model_name"]
    found = {"output": content, "usage": usage or None}
    for key in ("finish_reason", "stop_reason", "stopReason", "done_reason", "incomplete_details"):
        if isinstance(told.get(key), (str, dict)):
            found[key] = told[key]
    return found


# --- google-adk -----------------------------------------------------------------------------------


def is_adk(answer: Any) -> bool:
    if not isinstance(answer, list) or not answer:
        return False
    return all(has(event, "author", "invocation_id", "content", "is_final_response") for event in answer)


def from_adk(answer: Any) -> Any:
    return [event.model_dump(mode="json", by_alias=True, exclude_none=True) for event in answer]


# --- CrewAI ---------------------------------------------------------------------------------------

TO_COWORKERS = ("delegate_work_to_coworker", "ask_question_to_coworker")


def is_crewai(answer: Any) -> bool:
    """True for the output of a crew, or of one agent's own `kickoff`."""
    return has(answer, "raw", "tasks_output", "token_usage") or has(answer, "raw", "agent_role", "usage_metrics")


def from_crewai(answer: Any) -> Any:
    """Return the text, and the calls if the messages of the tasks show all of them.

    CrewAI counts tokens per model object, over all that it has been used for. So if it counts more answers than the
    messages show, the usage may be that of several questions: it is left out, unless a coworker's work explains it.
    """
    tasks = getattr(answer, "tasks_output", [answer])
    counted = getattr(answer, "token_usage", None) or getattr(answer, "usage_metrics", None)
    requests = part_of(counted, "successful_requests") or 0
    found: Any = {"output": answer.raw}
    if shows_answers(tasks, requests) or asks_coworkers(tasks):
        found["usage"] = usage_of(counted)
    if shows_answers(tasks, requests) and shows_calls(tasks):
        found["tool_calls"] = [call for task in tasks for call in calls_of(task)]
    else:
        found["unseen"] = ["calls"]
    return found


def shows_answers(tasks: Any, requests: int) -> bool:
    """True if the messages contain each counted answer of the model; after a repeated task, a summarised history or
    another question to the same model object, there are fewer."""
    answers = 0
    for task in tasks:
        for message in getattr(task, "messages", None) or ():
            answers += message.get("role") == "assistant"
    return bool(requests <= answers)


def shows_calls(tasks: Any) -> bool:
    """True if each task has its messages, with calls in structured form: a model without function calling writes them
    as text."""
    for task in tasks:
        if not getattr(task, "messages", None):
            return False
        for message in task.messages:
            if "Action Input:" in str(message.get("content")):
                return False
    return bool(tasks) and not asks_coworkers(tasks)


def asks_coworkers(tasks: Any) -> bool:
    """True if an agent had others work for it, whose messages are not shown."""
    for task in tasks:
        for call in calls_of(task):
            if call["name"].lower().replace(" ", "_") in TO_COWORKERS:
                return True
    return False


def calls_of(task: Any) -> Any:
    """Return the calls of a task with their results; a tool that reported a failure is a failed call."""
    calls = []
    by_id = {}
    failures = {}
    for failure in getattr(task, "tool_failures", ()):
        failures[failure.tool_name, repr(failure.tool_args)] = failure.message
    for message in getattr(task, "messages", None) or ():
        for made in message.get("tool_calls") or ():
            function = part_of(made, "function")
            call = {"id": part_of(made, "id"), "name": part_of(function, "name")}
            call["arguments"] = part_of(function, "arguments")
            calls.append(call)
            by_id[call["id"]] = call
        if message.get("role") == "tool" and message.get("tool_call_id") in by_id:
            by_id[message["tool_call_id"]]["result"] = message.get("content")
    for call in calls:
        failed = failures.get((call["name"], repr(read(call["arguments"]))))
        if failed is not None:
            call["error"] = failed
    return calls


def read(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


# --- Claude Agent SDK -----------------------------------------------------------------------------

KNOWN_SESSIONS = 10_000
TOLD: Any = {}
"""Session → its cost after its last run here: a result gives the total of its session so far."""


def is_claude(answer: Any) -> bool:
    """True for a list of messages that includes the run's result."""
    return isinstance(answer, list) and any(map(is_result, answer))


def is_result(one: Any) -> bool:
    return has(one, "total_cost_usd", "num_turns", "is_error")


def from_claude(answer: Any) -> Any:
    messages = []
    found: Any = {}
    for one in answer:
        if is_result(one):
            if one.is_error or str(getattr(one, "subtype", "")).startswith("error_"):
                return {"error": one.result or one.subtype}
            found = {"usage": usage_of(one.usage), "cost_usd": cost_since(one)}
        elif isinstance(getattr(one, "content", None), list):
            messages += claude_messages(one)
    failed = None
    for one in answer:
        if has(one, "model", "content") and getattr(one, "parent_tool_use_id", None) is None:
            failed = getattr(one, "error", None)
    if failed:
        return {"error": str(failed)}
    if found.get("usage") is not None:
        found["usage"]["model"] = only(getattr(one, "model", None) for one in answer)
    own = [one for one in answer if getattr(one, "parent_tool_use_id", None) is None]
    return dict(found, messages=messages, stop_reason=endings(own, "stop_reason"))


def cost_since(result: Any) -> Any:
    """Return the cost of this run alone."""
    total, session = result.total_cost_usd, getattr(result, "session_id", None)
    if not isinstance(total, (int, float)) or not isinstance(session, str):
        return total
    before = TOLD.pop(session, 0)
    while len(TOLD) >= KNOWN_SESSIONS:
        TOLD.pop(next(iter(TOLD)))
    TOLD[session] = total
    if total < before:
        return total
    return total - before


def claude_messages(one: Any) -> Any:
    """Return a message's blocks as OpenAI messages; the text of an agent used as a tool is not for the user."""
    is_for_user = hasattr(one, "model") and getattr(one, "parent_tool_use_id", None) is None
    texts, calls, results = [], [], []
    for block in one.content:
        if has(block, "text"):
            texts.append(block.text)
        if has(block, "id", "name", "input"):
            calls.append({"id": block.id, "name": block.name, "arguments": block.input})
        if has(block, "tool_use_id", "content"):
            failed = bool(getattr(block, "is_error", False))
            result = {"role": "tool", "tool_call_id": block.tool_use_id, "content": block.content, "is_error": failed}
            results.append(result)
    said = None
    if is_for_user:
        said = "\n".join(texts)
    if calls or (texts and is_for_user):
        results.insert(0, {"role": "assistant", "content": said, "tool_calls": calls})
    return results


# --- what none of them is -------------------------------------------------------------------------

MADE_BY = (
    ("agents", "the OpenAI Agents SDK", "return what `await Runner.run(...)` gives"),
    ("pydantic_ai", "pydantic-ai", "return what `await agent.run(...)` gives"),
    ("langgraph", "LangGraph", "return what invoke or ainvoke gives"),
    ("langchain", "LangChain", "return what invoke or ainvoke gives"),
    ("langchain_core", "LangChain", "return what invoke or ainvoke gives"),
    ("google.adk", "google-adk", "return the list of events: [event async for event in runner.run_async(...)]"),
    ("crewai", "CrewAI", "return what kickoff() gives"),
    ("claude_agent_sdk", "the Claude Agent SDK", "return the list of messages: [one async for one in query(...)]"),
    (
        "strands",
        "Strands",
        "return str(result), export its spans (StrandsTelemetry), and set agent.traces: true for its calls",
    ),
    (
        "agent_framework",
        "Microsoft's Agent Framework",
        "return response.text, and set agent.traces: true for its calls",
    ),
)
"""The package of a type or of a generator's code, the name of its product, and what to return instead."""


def remedy(answer: Any) -> str:
    """Return a hint on what to return instead of an object that is not an answer; empty for an unknown framework."""
    values = [answer]
    if isinstance(answer, dict):
        values += list(answer.values())
    elif isinstance(answer, (list, tuple)):
        values += answer[:1]
    for value in values:
        module = module_of(value)
        for package, name, instead in MADE_BY:
            if (module + ".").startswith(package + "."):
                return "; this looks like " + name + ": " + instead
    if running(answer) is not None:
        return "; return the answer as a whole, no generator"
    return ""


def module_of(value: Any) -> str:
    """Return the module that defined a value's type, or the file of a generator's code."""
    frame = running(value)
    module: Any = type(value).__module__
    if frame is not None:
        module = frame.f_globals.get("__name__")
    if not isinstance(module, str):
        return ""
    return module


def running(value: Any) -> Any:
    """Return the frame of a generator, even inside a context manager; None for anything else."""
    held = value
    if type(value).__module__ == "contextlib":
        held = getattr(value, "gen", None)
    return getattr(held, "gi_frame", None) or getattr(held, "ag_frame", None)


FORMS: Any = [
    (is_agents_sdk, from_agents_sdk),
    (is_pydantic_ai, from_pydantic_ai),
    (is_langchain, from_langchain),
    (is_output, from_output),
    (is_adk, from_adk),
    (is_crewai, from_crewai),
    (is_claude, from_claude),
]
