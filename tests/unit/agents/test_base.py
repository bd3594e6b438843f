"""Options, durations, the environment that is let through, and answers as bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from gate.agents import AGENTS
from gate.agents.base import (
    AgentFailure,
    AgentOptions,
    Stream,
    agent_class,
    allowed_environment,
    create,
    decode_answer,
    expand,
    naming_hidden,
    parse_options,
    read_answer,
    refuse_disguised,
)
from gate.errors import ConfigError
from gate.model import ErrorKind

LEAST: dict[str, dict[str, Any]] = {
    "python": {"python": "module:answer"},
    "command": {"command": "./agent"},
    "http": {"http": {"url": "http://localhost:8000/"}},
    "openai": {"openai": {"model": "m"}},
    "adk": {"adk": {"app": "shop"}},
    "agui": {"agui": "http://127.0.0.1:9"},
    "a2a": {"a2a": "http://127.0.0.1:9"},
    "mcp": {"mcp": {"url": "http://127.0.0.1:9", "tool": "ask"}},
    "langgraph": {"langgraph": {"assistant": "agent"}},
    "replay": {"replay": True},
}


@pytest.mark.parametrize("kind", AGENTS)
def test_every_kind_is_created_from_its_least_options(kind: str, tmp_path: Path) -> None:
    found, options = parse_options(LEAST[kind])
    assert found == kind
    assert (options.timeout, options.concurrency, options.retries, options.env) == (60.0, 16, 2, {})
    assert isinstance(create(kind, options, root=tmp_path, environment={}), agent_class(kind))


@pytest.mark.parametrize("kind", AGENTS)
def test_every_kind_is_in_the_guide(kind: str) -> None:
    guide = Path(__file__).parents[3] / "docs" / "reference" / "agents.md"
    assert f"## `{kind}:`" in guide.read_text()


def test_what_the_guide_of_servers_tells_to_write_is_read() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "how-to" / "connect-an-agent.md").read_text()
    servers = guide.partition("\n## A server\n")[2]
    written = [yaml.safe_load(block)["agent"] for block in re.findall(r"```yaml\n(.*?)```", servers, re.DOTALL)]
    kinds = {parse_options(agent)[0] for agent in written}
    assert kinds == {"langgraph", "adk", "a2a", "mcp", "agui"}


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("60s", 60), ("2m", 120), ("500ms", 0.5), ("1h", 3600), (" 1.5 s ", 1.5), ("7", 7), (7, 7), (0.5, 0.5)],
)
def test_durations(written: Any, seconds: float) -> None:
    assert parse_options({"command": "x", "timeout": written})[1].timeout == seconds


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no agent kind is set"),
        ({"pyhton": "a:b"}, "did you mean 'python'"),
        ({"python": "a:b", "command": "x"}, "more than one agent kind"),
        ({"python": "a:b", "retry": 3}, "agent.retry: unknown key 'retry' (did you mean 'retries'?)"),
        ({"python": "answer"}, "'answer' is not of the form module:function"),
        ({"python": "a:b:c"}, "not of the form"),
        ({"python": "a:b", "timeout": "soon"}, "agent.timeout: write a duration as"),
        ({"python": "a:b", "timeout": 0}, "agent.timeout"),
        ({"python": "a:b", "timeout": float("inf")}, "agent.timeout"),
        ({"python": "a:b", "concurrency": 0}, "agent.concurrency"),
        ({"command": ""}, "name a program"),
        ({"command": "node agent.js > out.txt"}, "agent.command: no shell reads '>': write [sh, -c, '…']"),
        ({"command": "node agent.js 2>/dev/null"}, "no shell reads '2>/dev/null'"),
        ({"command": "cat | node agent.js"}, "no shell reads '|'"),
        ({"command": "cd app; node agent.js"}, "no shell reads 'app;'"),
        ({"command": "cd app && node agent.js"}, "no shell reads '&&'"),
        ({"command": "node agent.js &"}, "no shell reads '&'"),
        ({"replay": False}, "agent.replay"),
        ({"http": {"url": "http://x", "request": {"q": "{{mesage}}"}}}, "unknown field {{mesage}}"),
        ({"http": {"url": "http://x", "response": {"output": "a..b"}}}, "'a..b' is not a path"),
        ({"http": {"url": "http://x", "response": {"usage": "u"}}}, "either output or messages"),
        ({"http": {"url": "http://x", "headers": {"Host": "y"}}}, "set by the client"),
        ({"http": {"url": "http://x", "header": {}}}, "agent.http.header: unknown key 'header'"),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_options(options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "cat | node agent.js"],
        "sh -c 'cd app && node agent.js'",
        "psql -c 'select 1;'",
        "curl http://localhost/ask?a=1&b=2",
        "agent '<system>' a->b",
    ],
)
def test_what_only_looks_like_a_shells(command: Any) -> None:
    assert parse_options({"command": command})[0] == "command"


def test_only_what_is_allowed_of_the_environment() -> None:
    outside = {"PATH": "/bin", "AWS_SECRET": "x", "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "u", "PYTHONHOME": "/p"}
    assert allowed_environment(outside, ()) == {"PATH": "/bin"}
    assert set(allowed_environment(outside, ("OPENAI_*",))) == {"PATH", "OPENAI_API_KEY", "OPENAI_BASE_URL"}


def test_expanding_names_what_is_missing() -> None:
    assert expand("Bearer ${TOKEN}", {"TOKEN": "t"}, where="x") == "Bearer t"
    assert expand("$TOKEN {x}", {}, where="x") == "$TOKEN {x}"
    for environment, state in (({}, "not set"), ({"TOKEN": ""}, "empty")):
        with pytest.raises(ConfigError, match=rf"agent\.headers: the environment variable TOKEN is {state}"):
            expand("${TOKEN}", environment, where="agent.headers")


@pytest.mark.parametrize(
    ("output", "value"),
    [(b" plain\n", "plain"), (b"[note] x", "[note] x"), (b'{"a": 1}', {"a": 1}), (b'[ {"a": 1}]', [{"a": 1}])],
)
def test_answers_as_bytes(output: bytes, value: Any) -> None:
    assert decode_answer(output) == value


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("output", [b'\xef\xbb\xbf{"tool_calls": []}', rb'"{\"tool_calls\": []}"'])
def test_calls_are_seen_behind_a_byte_order_mark_and_in_json_encoded_twice(output: bytes, strict: bool) -> None:
    assert decode_answer(output, must_be_json=strict) == {"tool_calls": []}


@pytest.mark.parametrize("text", ['"{x}" is a set', '"{"', '"{ a } and { b }"'])
def test_quoted_text_stays_text(text: str) -> None:
    assert decode_answer(text.encode()) == text


@pytest.mark.parametrize(
    "output", [b"", b" \n", b"\xff", b'{"a": ', b'[{"a"', b'{"a": NaN}', b'{"a": 1, "a": 2}', b"{" * 5000]
)
def test_answers_that_are_none(output: bytes) -> None:
    with pytest.raises(AgentFailure) as caught:
        decode_answer(output)
    assert caught.value.kind is ErrorKind.PROTOCOL
    assert not caught.value.transient


def test_an_answer_of_no_known_shape() -> None:
    with pytest.raises(AgentFailure, match="the answer cannot be read"):
        read_answer({"something": "else"}, user="hi")
    assert read_answer({"output": "yes"}, user="hi").text == "yes"


@pytest.mark.parametrize("printed", [b"null", b"[]", b'{"output": "", "error": "quota exceeded"}', b'{"messages": []}'])
def test_nothing_is_no_answer(printed: bytes) -> None:
    with pytest.raises(AgentFailure):
        read_answer(decode_answer(printed), user="hi")


@pytest.mark.parametrize("error", [None, False, "", {}])
def test_an_error_that_is_none(error: Any) -> None:
    assert read_answer({"output": "yes", "error": error}, user="hi").text == "yes"


STREAMED = [
    b'data: {"output": "a"}\n\ndata: [DONE]\n',
    b": ping\nevent: delta\nid: 1\ndata: hello\n\n",
    b'{"output": "a"}\n{"output": "b"}\n',
    b'{"delta": "a"}\r\n\r\n{"delta": "b"}',
]


@pytest.mark.parametrize("output", STREAMED)
def test_a_stream_is_known_by_its_form(output: bytes) -> None:
    assert isinstance(decode_answer(output), Stream)


@pytest.mark.parametrize("output", [output for output in STREAMED if output.startswith(b"{")])
def test_a_stream_is_refused_where_one_object_was_asked_for(output: bytes) -> None:
    with pytest.raises(AgentFailure, match="without streaming"):
        decode_answer(output, must_be_json=True)


def test_lines_that_are_several_answers_are_none() -> None:
    with pytest.raises(AgentFailure, match="several of its events are answers"):
        read_answer(Stream('{"output": "a"}\n{"output": "b"}'), user="")


@pytest.mark.parametrize("text", ["data: one\nand more", "id: 7", "event: party at 8"])
def test_text_that_is_no_stream_stays_text(text: str) -> None:
    assert decode_answer(text.encode()) == text


@pytest.mark.parametrize(
    "text",
    [
        'Starting agent 1.2\n{"output": "done", "tool_calls": [{"name": "delete_account"}]}',
        'Loading\n{\n  "output": "done",\n  "tool_calls": []\n}\n',
        'banner\n  {"messages": []}  ',
        'banner\n{"output": "x"}\nbye',
    ],
)
def test_an_answer_object_behind_a_banner_is_refused(text: str) -> None:
    with pytest.raises(AgentFailure, match="print the JSON alone"):
        refuse_disguised(text)


@pytest.mark.parametrize("text", ["plain", 'The JSON is\n{"price": 3}', "{not json\n", 'so: {"output": 1}', "", '{"'])
def test_text_that_holds_no_answer_object_is_an_answer(text: str) -> None:
    refuse_disguised(text)


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("MY_*", {"MY_KEY": "k"}),
        (["MY_KEY", "NOT_SET"], {"MY_KEY": "k"}),
        ({"MODE": "loud", "LEVEL": 3}, {"MODE": "loud", "LEVEL": "3"}),
        ({"MY_KEY": None, "OTHER": "${MY_KEY}!"}, {"MY_KEY": "k", "OTHER": "k!"}),
        ({"MY_KEY": "another"}, {"MY_KEY": "another"}),
    ],
)
def test_env_names_variables_or_sets_them(written: Any, seen: dict[str, str]) -> None:
    options = AgentOptions(env=written)
    assert allowed_environment({"MY_KEY": "k", "SECRET": "s"}, options.env) == seen


def test_a_list_of_names_is_dumped_as_it_was_before_there_were_values() -> None:
    """The agent's fingerprint is made of it."""
    assert AgentOptions(env=["A", "B_*"]).model_dump(mode="json")["env"] == ["A", "B_*"]
    assert AgentOptions(env={"A": "1"}).model_dump(mode="json")["env"] == {"A": "1"}


@pytest.mark.parametrize(
    "written", [{"A": True}, {"A": ["x"]}, {"INPUT_TOKEN": "x"}, {"GITHUB_ENV": "x"}, 7, [1], [{"A": 1}], [["A"]]]
)
def test_what_env_cannot_mean_is_refused(written: Any) -> None:
    with pytest.raises(ValidationError):
        AgentOptions(env=written)


def test_an_error_that_speaks_of_a_variable_that_is_hidden_names_the_line_to_add() -> None:
    outside = {"MY_API_KEY": "k", "SEEN_KEY": "s", "INPUT_TOKEN": "t"}
    said = naming_hidden("KeyError: 'MY_API_KEY'", outside, {"SEEN_KEY": None})
    assert said.endswith("(MY_API_KEY is set here; hand it on: agent.env: [MY_API_KEY])")
    for other in ("KeyError: 'SEEN_KEY'", "INPUT_TOKEN is missing", "no key"):
        assert naming_hidden(other, outside, {"SEEN_KEY": None}) == other


def test_a_key_that_is_not_set_is_named_with_what_hands_it_on() -> None:
    said = naming_hidden("set OPENAI_API_KEY", {"PATH": ""}, {})
    told = "(set OPENAI_API_KEY, and write agent.env: [OPENAI_API_KEY])"
    assert said == f"set OPENAI_API_KEY {told}"
    assert naming_hidden("set OPENAI_API_KEY", {}, {"OPENAI_*": None}).endswith("(set OPENAI_API_KEY)")
    assert naming_hidden("set OPENAI_API_KEY", {}, {"OPENAI_API_KEY": "sk"}) == "set OPENAI_API_KEY"
    assert naming_hidden("no MAX_TOKENS given", {}, {}) == "no MAX_TOKENS given"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["sh", "-c", "cd app && node x.js"], ("sh", "-c", "cd app && node x.js")),
        (["sh -c 'cd app; node x.js'"], ("sh", "-c", "cd app; node x.js")),
        ("sh -c '>log'", ("sh", "-c", ">log")),
        ("/bin/bash -e -lc 'true;'", ("/bin/bash", "-e", "-lc", "true;")),
        (["/opt/my tool/run"], ("/opt/my tool/run",)),
    ],
)
def test_a_command_may_call_a_shell_by_itself(command: Any, words: tuple[str, ...]) -> None:
    assert parse_options({"command": command})[1].command == words  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", ["node x.js > log", "cd app; node x.js", "sh x.sh | cat"])
def test_a_command_without_a_shell_is_no_shell_line(command: str) -> None:
    with pytest.raises(ConfigError, match="no shell reads"):
        parse_options({"command": command})


SAID = {"author": "bot", "content": {"parts": [{"text": "Done."}]}}
"""One of google-adk's events."""


@pytest.mark.parametrize(
    ("answer", "fails"),
    [
        ({"output": "Done.", "error": "no database"}, True),
        ({"output": "Done.", "errors": ["no database"]}, True),
        ({"output": "Done.", "Error": "no database"}, True),
        ({"output": "Done.", "ERRORS": ["no database"], "error": None}, True),
        ({"output": "Done.", "Error": None}, False),
        ({"output": "Done.", "error": "", "errors": []}, False),
        ({"output": "Done.", "error": None, "errors": None}, False),
        ([SAID, {"author": "bot", "errorCode": "OTHER", "errorMessage": "no database"}], True),
        ([{"author": "bot", "error_code": "no database"}], True),
        ([{**SAID, "errorCode": "MAX_TOKENS"}], False),
        ([{"author": "bot", "errorCode": "no database"}, SAID], False),
    ],
)
def test_an_answer_that_states_an_error_is_a_failure(answer: Any, fails: bool) -> None:
    if fails:
        with pytest.raises(AgentFailure, match=r"the agent reports an error: .*no database"):
            read_answer(answer, user="hi")
    else:
        assert read_answer(answer, user="hi").text == "Done."
