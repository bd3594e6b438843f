"""The kinds that speak a known protocol, against loopback servers that answer as those protocols say."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gate.agents.base import parse_options
from gate.errors import ConfigError
from gate.model import Case, ErrorKind, Trial, Turn
from tests.integration.agents.driving import case, drive, read_request, response, serving


def served(
    routes: dict[str, Any], agent: dict[str, Any], asked_case: Case, environment: dict[str, str] | None = None
) -> tuple[Trial, list[tuple[str, dict[str, str], Any]]]:
    """The trial, and what was asked. A list holds a route's answers in order; a status may stand before an answer."""
    asked: list[tuple[str, dict[str, str], Any]] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            line, headers, body = await read_request(reader)
            path = line.split()[1]
            asked.append((path, headers, json.loads(body or "null")))
            found = routes.get(path, ("404 Not Found", {"detail": "no such route"}))
            if isinstance(found, list):
                found = found.pop(0)
            status, value = found if isinstance(found, tuple) else ("200 OK", found)
            writer.write(response(json.dumps(value).encode(), status))
            await writer.drain()

    async def main() -> list[Trial]:
        async with serving(handler) as port:
            kind = next(iter(agent))
            settings = {**agent[kind], "url": f"http://127.0.0.1:{port}{agent[kind].get('url', '')}"}
            return await drive({kind: settings, "retries": 0}, [asked_case], Path(), environment=environment or {})

    (trial,) = asyncio.run(main())
    return trial, asked


# --- OpenAI ---


def test_chat_completions() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"order": 7}'}}
    first = {"choices": [{"message": {"role": "assistant", "content": "Which one?"}}], "usage": {"prompt_tokens": 9}}
    second = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}
    agent = {"openai": {"url": "/v1", "model": "m", "system": "Be kind."}}
    routes = {"/v1/chat/completions": [first, second]}
    trial, asked = served(routes, agent, case("a", "refund!", "7"), {"OPENAI_API_KEY": "k"})
    assert trial.error is None
    assert asked[1][1]["authorization"] == "Bearer k"
    assert asked[1][2]["model"] == "m"
    assert [m["content"] for m in asked[1][2]["messages"]] == ["Be kind.", "refund!", "Which one?", "7"]
    assert trial.invocations[0].usage is not None
    assert trial.invocations[0].usage.input_tokens == 9
    assert [(c.name, c.args) for c in trial.invocations[1].tool_calls] == [("refund", {"order": 7})]
    assert trial.duration is not None


def test_responses_show_the_tools_that_the_server_ran() -> None:
    output = [
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "found"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Here."}]},
    ]
    routes = {"/responses": {"output": output, "usage": {"input_tokens": 3, "output_tokens": 4}}}
    trial, asked = served(routes, {"openai": {"model": "m", "api": "responses"}}, case("a", "hi"))
    invocation = trial.invocations[0]
    assert (invocation.text, invocation.tool_calls[0].name, invocation.tool_calls[0].result) == (
        "Here.",
        "look",
        "found",
    )
    assert invocation.usage is not None
    assert invocation.usage.tokens == 7
    assert asked[0][2] == {"model": "m", "input": [{"role": "user", "content": "hi"}]}
    assert "authorization" not in asked[0][1]


def test_tool_calls_are_answered_from_the_case_or_the_configuration() -> None:
    def calling(key: str, name: str) -> dict[str, Any]:
        call = {"id": key, "type": "function", "function": {"name": name, "arguments": "{}"}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return {"choices": [{"message": message}], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}

    used = {"prompt_tokens": 9, "completion_tokens": 1}
    done = {"choices": [{"message": {"role": "assistant", "content": "All set."}}], "usage": used}
    tools = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("look", "pay")]
    agent = {
        "openai": {"model": "m", "tools": tools, "tool_results": {"look": {"n": 1}, "pay": "no"}, "body": {"seed": 7}}
    }
    asked_case = case("a", "go", metadata={"tool_results": {"pay": "paid"}})
    trial, asked = served({"/chat/completions": [calling("1", "look"), calling("2", "pay"), done]}, agent, asked_case)
    invocation = trial.invocations[0]
    assert invocation.text == "All set."
    assert [(c.name, c.result) for c in invocation.tool_calls] == [("look", '{"n": 1}'), ("pay", "paid")]
    assert invocation.reports_calls
    assert invocation.usage is not None
    assert (invocation.usage.input_tokens, invocation.usage.output_tokens) == (19, 3)
    half = {**done, "usage": {"prompt_tokens": 9}}
    trial, _ = served({"/chat/completions": [calling("1", "look"), calling("2", "pay"), half]}, agent, asked_case)
    usage = trial.invocations[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (19, None)
    without = {"choices": done["choices"]}
    trial, _ = served({"/chat/completions": [calling("1", "look"), calling("2", "pay"), without]}, agent, asked_case)
    assert trial.invocations[0].usage is None, "the usage of two requests of three would look cheap"
    assert asked[0][2] == {"seed": 7, "model": "m", "tools": tools, "messages": [{"role": "user", "content": "go"}]}
    assert asked[2][2]["messages"][-1] == {"role": "tool", "tool_call_id": "2", "content": "paid"}
    trial, asked = served({"/chat/completions": [calling("1", "other")]}, agent, asked_case)
    assert [c.name for c in trial.invocations[0].tool_calls] == ["other"], "without a result the call ends the turn"
    trial, _ = served({"/chat/completions": calling("1", "look")}, agent, asked_case)
    assert trial.error is not None
    assert "still calls tools after 20 rounds" in trial.error.message
    for told in ({"error": "busy"}, {"output": "try again later"}):
        busy = ("503 Service Unavailable", told)
        trial, _ = served({"/chat/completions": [calling("1", "pay"), busy]}, agent, asked_case)
        assert trial.error is not None
        assert [(turn.user, [c.name for c in turn.tool_calls]) for turn in trial.invocations] == [("go", ["pay"])]
        usage = trial.invocations[0].usage
        assert usage is not None
        assert (usage.input_tokens, usage.output_tokens) == (5, 1), "the first request was answered, and paid for"


def test_tool_calls_of_responses_are_answered() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Here."}]}
    agent = {"openai": {"model": "m", "api": "responses", "tool_results": {"look": "found"}}}
    trial, asked = served({"/responses": [{"output": [call]}, {"output": [text]}]}, agent, case("a", "hi"))
    assert (trial.invocations[0].text, trial.invocations[0].tool_calls[0].result) == ("Here.", "found")
    assert asked[1][2]["input"][-1] == {"type": "function_call_output", "call_id": "c", "output": "found"}


@pytest.mark.parametrize("key", ["model", "messages", "stream"])
def test_keys_of_a_request_that_are_not_free(key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key} is not set here"):
        parse_options({"openai": {"model": "m", "body": {key: 1}}})


# --- AG-UI ---


def test_agui() -> None:
    """Against a server that answers as the protocol says; a real one is asked in tests/connectors."""
    asked: list[dict[str, Any]] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            _, headers, body = await read_request(reader)
            asked.append({**json.loads(body), "accept": headers["accept"]})
            fails = asked[-1]["messages"][-1]["content"] == "fail"
            events = [
                {"type": "RUN_STARTED"},
                {"type": "TOOL_CALL_START", "toolCallId": "1", "toolCallName": "look"},
                {"type": "TOOL_CALL_ARGS", "toolCallId": "1", "delta": '{"q": 1}'},
                {"type": "TOOL_CALL_RESULT", "toolCallId": "1", "content": "found"},
                {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Here."},
                {"type": "RUN_ERROR", "message": "no model"} if fails else {"type": "RUN_FINISHED"},
            ]
            text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
            writer.write(response(text.encode(), kind="text/event-stream"))

    async def main() -> list[Trial]:
        async with serving(handler) as port:
            agent = {"agui": {"url": f"http://127.0.0.1:{port}/"}, "retries": 0}
            return await drive(agent, [case("a", "one", "two", "fail", state={"s": 1})], Path(), environment={})

    (trial,) = asyncio.run(main())
    found = ("Here.", {"q": 1}, "found")
    assert [(i.text, i.tool_calls[0].args, i.tool_calls[0].result) for i in trial.invocations] == [found] * 3
    assert trial.error is not None, "what the last run did before its error is kept, too"
    assert "reports an error: no model" in trial.error.message
    assert (asked[0]["accept"], asked[0]["state"]) == ("text/event-stream", {"s": 1})
    assert asked[0]["forwardedProps"] == {}
    history = [(message["id"], message["role"], message["content"]) for message in asked[1]["messages"]]
    assert history == [("m0", "user", "one"), ("m1", "assistant", "Here."), ("m2", "user", "two")]
    assert len({request["threadId"] for request in asked}) == 1
    assert len({request["runId"] for request in asked}) == 3


@pytest.mark.parametrize(
    ("api", "body"),
    [
        ("chat", {"choices": [{"message": {"role": "assistant", "content": "Once"}, "finish_reason": "length"}]}),
        (
            "responses",
            {
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
                "output": [{"type": "message", "role": "assistant", "content": "Once"}],
            },
        ),
    ],
)
def test_an_answer_that_was_cut_off_says_so(api: str, body: dict[str, Any]) -> None:
    path = "/chat/completions" if api == "chat" else "/responses"
    trial, _ = served({path: body}, {"openai": {"model": "m", "api": api}}, case("go"))
    usage = trial.invocations[0].usage
    assert usage is not None and usage.cut_off


@pytest.mark.parametrize("body", [{"choices": []}, [], "text", {"choices": [{"message": None}]}])
def test_a_completion_of_the_wrong_shape(body: Any) -> None:
    trial, _ = served({"/chat/completions": [body]}, {"openai": {"model": "m"}}, case("a"))
    assert trial.error is not None
    assert trial.error.kind is ErrorKind.PROTOCOL


HALF: dict[str, Any] = {"message": {"role": "assistant", "content": "half"}}
HALF_ITEM = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "half"}]}


@pytest.mark.parametrize(
    ("api", "body", "kind"),
    [
        ("chat", {"error": {"message": "Rate limit exceeded"}}, ErrorKind.LIMIT),
        ("chat", {"choices": [{**HALF, "finish_reason": "error"}]}, ErrorKind.CRASH),
        ("chat", {"choices": [{**HALF, "error": {"code": 502}}]}, ErrorKind.CRASH),
        ("responses", {"status": "failed", "error": {"code": "server_error"}, "output": [HALF_ITEM]}, ErrorKind.CRASH),
        ("responses", {"status": "cancelled", "error": None, "output": [HALF_ITEM]}, ErrorKind.CRASH),
    ],
)
def test_a_completion_with_an_error_is_no_answer_whatever_its_status(api: str, body: Any, kind: ErrorKind) -> None:
    routes = {"/chat/completions": [body], "/responses": [body]}
    trial, _ = served(routes, {"openai": {"model": "m", "api": api}}, case("a"))
    assert trial.error is not None
    assert trial.error.kind is kind


# --- ADK ---

SESSIONS = "/apps/shop/users/gate/sessions"


def event(*parts: Any, **fields: Any) -> dict[str, Any]:
    return {"author": "shop", "content": {"role": "model", "parts": list(parts)}, **fields}


def test_adk_creates_a_session_and_reads_events() -> None:
    events = [
        event({"functionCall": {"id": "f", "name": "refund", "args": {"order": 7}}}),
        event({"functionResponse": {"id": "f", "name": "refund", "response": {"ok": True}}}),
        event({"text": "Done."}, usageMetadata={"promptTokenCount": 5, "candidatesTokenCount": 2}),
    ]
    routes = {SESSIONS: {"id": "s-1"}, "/run": [events, [event({"text": "Bye."})]]}
    trial, asked = served(routes, {"adk": {"app": "shop"}}, case("a", "refund 7", "thanks", state={"vip": True}))
    assert [path for path, *_ in asked] == [SESSIONS, "/run", "/run"]
    assert asked[0][2]["state"] == {"vip": True}
    assert asked[2][2] == {
        "appName": "shop",
        "userId": "gate",
        "sessionId": "s-1",
        "newMessage": {"role": "user", "parts": [{"text": "thanks"}]},
    }
    first, second = trial.invocations
    assert (first.text, second.text) == ("Done.", "Bye.")
    assert (first.tool_calls[0].name, first.tool_calls[0].result) == ("refund", {"ok": True})
    assert first.usage is not None
    assert first.usage.tokens == 7


ATTACHED: tuple[dict[str, Any], ...] = (
    {"inline_data": {"mime_type": "image/png", "data": "aGk="}},
    {"file_data": {"mime_type": "application/pdf", "file_uri": "https://h/p.pdf", "display_name": "p.pdf"}},
)
WITH_FILES = Case("a", (Turn("What is this?", attached=ATTACHED),))


def test_files_of_a_question_are_put_to_adk() -> None:
    routes = {SESSIONS: {"id": "s-1"}, "/run": [[event({"text": "A cat."})]]}
    trial, asked = served(routes, {"adk": {"app": "shop"}}, WITH_FILES)
    assert trial.error is None
    assert asked[1][2]["newMessage"]["parts"] == [
        {"text": "What is this?"},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "https://h/p.pdf", "displayName": "p.pdf"}},
    ]


def test_files_of_a_question_are_put_to_openai() -> None:
    routes = {"/chat/completions": {"choices": [{"message": {"role": "assistant", "content": "A cat."}}]}}
    _, asked = served(routes, {"openai": {"model": "m"}}, WITH_FILES)
    assert asked[0][2]["messages"][0]["content"] == [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "file", "file": {"file_data": "https://h/p.pdf", "filename": "p.pdf"}},
    ]
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A cat."}]}]
    _, asked = served({"/responses": {"output": output}}, {"openai": {"model": "m", "api": "responses"}}, WITH_FILES)
    assert asked[0][2]["input"][0]["content"] == [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
        {"type": "input_file", "file_data": "https://h/p.pdf", "filename": "p.pdf"},
    ]


def test_adk_takes_app_and_user_from_the_case() -> None:
    path = "/apps/other%2Fapp/users/ann/sessions"
    routes = {path: {"id": "s"}, "/run": [[event({"text": "Hi."})]]}
    asked_case = case("a", app={"app_name": "other/app", "user_id": "ann"})
    trial, asked = served(routes, {"adk": {"app": "shop"}}, asked_case)
    assert trial.error is None
    assert (asked[1][2]["appName"], asked[1][2]["userId"]) == ("other/app", "ann")


@pytest.mark.parametrize(
    ("routes", "kind"),
    [
        ({}, ErrorKind.SETUP),
        ({SESSIONS: {"name": "no id"}}, ErrorKind.PROTOCOL),
        ({SESSIONS: {"id": "s"}, "/run": {"detail": "not events"}}, ErrorKind.PROTOCOL),
        ({SESSIONS: {"id": "s"}, "/run": [[{"author": "a", "errorCode": "SAFETY"}]]}, ErrorKind.CRASH),
        ({SESSIONS: {"id": "s"}, "/run": ("500 Internal Server Error", {"detail": "boom"})}, ErrorKind.CRASH),
    ],
)
def test_adk_failures(routes: dict[str, Any], kind: ErrorKind) -> None:
    trial, _ = served(routes, {"adk": {"app": "shop"}}, case("a"))
    assert trial.error is not None
    assert trial.error.kind is kind


def test_calls_that_adk_made_before_it_failed_are_kept() -> None:
    call = {"author": "a", "content": {"parts": [{"functionCall": {"id": "1", "name": "drop", "args": {}}}]}}
    events = [call, {"author": "a", "errorCode": "429", "errorMessage": "rate limit"}]
    trial, _ = served({SESSIONS: {"id": "s"}, "/run": [events]}, {"adk": {"app": "shop"}}, case("a"))
    assert trial.error is not None
    assert [call.name for turn in trial.invocations for call in turn.tool_calls] == ["drop"]


def test_adk_whose_sessions_are_in_a_file_says_what_helps() -> None:
    routes = {SESSIONS: ("500 Internal Server Error", {"detail": "database is locked"})}
    trial, _ = served(routes, {"adk": {"app": "shop"}}, case("a"))
    assert trial.error is not None
    assert trial.error.message.endswith(
        "--session_service_uri memory:// holds many sessions at once, or lower agent.concurrency"
    )


# --- LangGraph ---


def test_langgraph_reads_the_messages_of_this_turn() -> None:
    first = [
        {"type": "human", "content": "weather?"},
        {"type": "ai", "content": "", "tool_calls": [{"id": "t", "name": "weather", "args": {"city": "Oslo"}}]},
        {"type": "tool", "tool_call_id": "t", "content": "rain"},
        {"type": "ai", "content": "Rain.", "usage_metadata": {"input_tokens": 8, "output_tokens": 1}},
    ]
    second = [*first, {"type": "human", "content": "thanks"}, {"type": "ai", "content": "Bye."}]
    routes = {"/threads": {"thread_id": "t-1"}, "/threads/t-1/runs/wait": [{"messages": first}, {"messages": second}]}
    agent = {"langgraph": {"assistant": "agent"}}
    trial, asked = served(routes, agent, case("a", "weather?", "thanks", state={"unit": "C"}))
    assert trial.error is None
    assert [(i.text, len(i.tool_calls)) for i in trial.invocations] == [("Rain.", 1), ("Bye.", 0)]
    assert trial.invocations[0].tool_calls[0].result == "rain"
    said = {"messages": [{"role": "user", "content": "weather?"}]}
    assert asked[1][2] == {"assistant_id": "agent", "input": {"unit": "C", **said}}
    assert asked[2][2]["input"] == {"messages": [{"role": "user", "content": "thanks"}]}


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ({"__error__": {"error": "ValueError", "message": "boom"}}, ErrorKind.CRASH),
        ({"values": []}, ErrorKind.PROTOCOL),
        ({"messages": [{"content": "no role"}]}, ErrorKind.PROTOCOL),
    ],
)
def test_langgraph_failures(state: Any, kind: ErrorKind) -> None:
    routes = {"/threads": {"thread_id": "t"}, "/threads/t/runs/wait": state}
    trial, _ = served(routes, {"langgraph": {"assistant": "agent"}}, case("a"))
    assert trial.error is not None
    assert trial.error.kind is kind


WAIT = "/threads/t/runs/wait"


def waiting(*interrupts: Any) -> dict[str, Any]:
    said = [
        {"type": "human", "content": "go"},
        {"type": "ai", "content": "Hm.", "tool_calls": [{"id": "1", "name": "f", "args": {}}]},
    ]
    return {"messages": said, "__interrupt__": [{"id": f"i{n}", "value": value} for n, value in enumerate(interrupts)]}


DONE: dict[str, Any] = {"messages": [*waiting()["messages"], {"type": "ai", "content": "Done."}]}


def graph(states: list[Any], asked_case: Case, **options: Any) -> tuple[Trial, list[Any]]:
    routes = {"/threads": {"thread_id": "t"}, WAIT: states}
    trial, asked = served(routes, {"langgraph": {"assistant": "a", **options}}, asked_case)
    return trial, [body for path, _, body in asked if path == WAIT]


def test_langgraph_interrupts_at_once_are_answered_by_their_ids() -> None:
    asked_case = case("a", "go", metadata={"resume": [True]})
    trial, asked = graph(
        [waiting("one?", "two?"), waiting("three?"), DONE], asked_case, resume=["b", "{{metadata.resume}}"]
    )
    assert trial.error is None
    assert trial.invocations[0].text == "Done."
    assert [body["command"]["resume"] for body in asked[1:]] == [{"i0": True, "i1": "b"}, [True]]


def test_langgraph_interrupts_of_a_turn_that_nobody_answers() -> None:
    trial, _ = graph([waiting({"why": "ö"})], case("a", "go"))
    assert trial.error is not None
    assert [call.name for turn in trial.invocations for call in turn.tool_calls] == ["f"]
    assert trial.error.message.startswith(
        'nobody answers the graph\'s interrupt: {"why": "ö"}; metadata: {resume: […]}'
    )
    trial, asked = graph([waiting("sure?"), DONE], case("a", "go", "yes"), interrupts="ask")
    assert [invocation.text for invocation in trial.invocations] == ["sure?", "Done."]
    assert [len(invocation.tool_calls) for invocation in trial.invocations] == [1, 0]
    assert trial.invocations[0].intermediate[0].text == "Hm."
    assert asked[1] == {"assistant_id": "a", "command": {"resume": "yes"}}
    trial, _ = graph([waiting("again?") for _ in range(30)], case("a", "go"), resume=["x"] * 30)
    assert trial.error is not None
    assert "still interrupts after 20 answers" in trial.error.message


@pytest.mark.parametrize("thread", [None, 7, {}, ""])
def test_langgraph_whose_thread_has_no_id(thread: Any) -> None:
    """Written as text it would be one thread for all."""
    trial, asked = served({"/threads": {"thread_id": thread}}, {"langgraph": {"assistant": "a"}}, case("a", "go"))
    assert trial.error is not None
    assert "the new thread's id is none" in trial.error.message
    assert len(asked) == 1


def test_langgraph_stopped_at_a_breakpoint_has_not_answered() -> None:
    """Only what the server says of the thread tells it from a graph that ends with a call."""
    for following, refused in ((["tools"], True), ([], False)):
        routes = {"/threads": {"thread_id": "t"}, WAIT: [{"messages": waiting()["messages"]}]}
        routes["/threads/t/state"] = {"values": {}, "next": following}
        trial, _ = served(routes, {"langgraph": {"assistant": "a"}}, case("a", "go"))
        assert (trial.error is not None) is refused, trial.error
    for interrupts in ([7], {"value": "sure?"}, "sure?"):
        trial, _ = graph([{**DONE, "__interrupt__": interrupts}], case("a", "go"))
        assert trial.error is not None
        assert "by what cannot be read" in trial.error.message


def test_langgraph_with_a_state_of_its_own() -> None:
    options = {
        "input": {"question": "{{message}}"},
        "response": {"output": "reply"},
        "config": {"tags": ["{{case_id}}"]},
    }
    trial, asked = graph([{"reply": "Hi."}], case("a", "go"), **options)
    assert trial.error is None
    assert (trial.invocations[0].text, trial.invocations[0].reports_calls) == ("Hi.", False)
    assert asked == [{"assistant_id": "a", "input": {"question": "go"}, "config": {"tags": ["a"]}}]
    trial, _ = graph([{"mesages": []}], case("a", "go"))
    assert trial.error is not None
    assert "did you mean 'mesages'" in trial.error.message
    with pytest.raises(ConfigError, match="unknown key 'session_id'"):
        parse_options({"langgraph": {"assistant": "a", "response": {"session_id": "x"}}})


def test_langgraph_without_the_users_messages_in_its_state() -> None:
    """The calls and the answer of an earlier turn are not this turn's."""
    first = [
        {"type": "ai", "id": "1", "content": "", "tool_calls": [{"id": "c", "name": "look", "args": {}}]},
        {"type": "ai", "id": "2", "content": "One."},
    ]
    second = [*first, {"type": "ai", "id": "3", "content": "Two."}]
    asked_case = case("a", "one", "two", "three")
    for path in ({}, {"response": {"messages": "messages"}}):
        states = [{"messages": first}, {"messages": second}, {"messages": second}]
        trial, _ = graph(states, asked_case, input={"question": "{{message}}"}, **path)
        assert [(turn.text, len(turn.tool_calls)) for turn in trial.invocations] == [("One.", 1), ("Two.", 0)]
        assert trial.error is not None, "the third run said nothing new"


def test_langgraph_keeps_the_calls_at_their_path_before_a_failure() -> None:
    state = {"steps": [{"name": "wipe", "args": {}}], "__interrupt__": [{"id": "i", "value": "sure?"}]}
    trial, _ = graph([state], case("a", "go"), response={"output": "reply", "tool_calls": "steps"})
    assert trial.error is not None
    assert [call.name for turn in trial.invocations for call in turn.tool_calls] == ["wipe"]
