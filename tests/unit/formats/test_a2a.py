"""Answers of A2A agents in both versions of the protocol: the text, the calls, and what belongs to the turn."""

from __future__ import annotations

from typing import Any

import pytest

from gate.formats.a2a import MOST_ARTIFACTS, Exchange, file_part, state_of, text_of_parts
from gate.formats.messages import FormatError


def message(*texts: str, role: str = "ROLE_AGENT", key: str = "x") -> dict[str, Any]:
    return {"messageId": key, "role": role, "parts": [{"text": text} for text in texts]}


def task(state: str = "TASK_STATE_COMPLETED", **more: Any) -> dict[str, Any]:
    said = more.pop("message", None)
    status = {"state": state} | ({"message": said} if said else {})
    return {"task": {"id": "t", "contextId": "c", "status": status, **more}}


def artifact(*texts: str, key: str = "a") -> dict[str, Any]:
    return {"artifactId": key, "parts": [{"text": text} for text in texts]}


def read(*results: Any, known: frozenset[str] = frozenset()) -> Exchange:
    exchange = Exchange("m1", known=known)
    for result in results:
        exchange.take(result)
    return exchange


def text(*results: Any) -> str:
    return read(*results).to_invocation(user="u").text


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([{"message": message("One.", "Two.")}], "One.\nTwo."),
        ([{**message("Hi."), "kind": "message"}], "Hi."),
        ([task(artifacts=[artifact("ship", "ped")])], "shipped"),
        ([task(artifacts=[artifact("A."), artifact("B.", key="b")])], "A.\nB."),
        ([task(message=message("Done."))], "Done."),
        ([task(artifacts=[artifact("It.")], message=message("Done."))], "It."),
        (
            [task("TASK_STATE_INPUT_REQUIRED", artifacts=[artifact("Draft.")], message=message("Right?"))],
            "Draft.\nRight?",
        ),
        ([task(history=[message("q", role="ROLE_USER", key="m1"), message("Working.")])], "Working."),
        ([{"kind": "task", "id": "t", "status": {"state": "completed"}, "artifacts": [artifact("Old.")]}], "Old."),
    ],
)
def test_what_is_the_answer(results: list[Any], expected: str) -> None:
    assert text(*results) == expected


def test_a_stream_adds_up_to_what_the_task_would_say() -> None:
    def update(state: str, said: dict[str, Any] | None = None) -> dict[str, Any]:
        status = {"state": state} | ({"message": said} if said else {})
        return {"statusUpdate": {"taskId": "t", "contextId": "c", "status": status}}

    def piece(words: str, *, append: bool) -> dict[str, Any]:
        return {"artifactUpdate": {"taskId": "t", "artifact": artifact(words), "append": append}}

    exchange = read(
        task("TASK_STATE_SUBMITTED"),
        update("TASK_STATE_WORKING", message("Looking.", key="w")),
        piece("ship", append=False),
        piece("ped", append=True),
        update("TASK_STATE_COMPLETED"),
    )
    found = exchange.to_invocation(user="u")
    assert (exchange.state, exchange.context_id, exchange.task_id) == ("completed", "c", "t")
    assert (found.text, [part.text for part in found.intermediate]) == ("shipped", ["Looking."])
    whole = read(task(artifacts=[artifact("ship", "ped")], history=[message("Looking.")]))
    assert whole.to_invocation(user="u") == found


def test_only_what_follows_the_message_belongs_to_the_turn() -> None:
    before, asked = message("Which?", key="w"), message("A1", role="ROLE_USER", key="m1")
    first = message("which", role="ROLE_USER", key="m0")
    told = task(
        history=[first, before, asked, message("Looking.", key="l")],
        artifacts=[artifact("Old."), artifact("New.", key="b")],
    )
    known = read(task(artifacts=[artifact("Old.")])).artifact_keys
    found = read(told, known=known).to_invocation(user="u")
    assert (found.text, [part.text for part in found.intermediate]) == ("New.", ["Looking."])


def test_calls_and_usage_of_google_adk() -> None:
    def part(kind: str, **data: Any) -> dict[str, Any]:
        return {"data": {"id": "1", "name": "look", **data}, "metadata": {"adk_type": kind}}

    def event(key: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        said = {"messageId": key, "role": "ROLE_AGENT", "parts": list(parts)}
        usage = {"promptTokenCount": 5.0, "candidatesTokenCount": 2.0}
        metadata = {"adk_app_name": "shop", "adk_event_id": key, "adk_usage_metadata": usage}
        return {
            "statusUpdate": {
                "taskId": "t",
                "status": {"state": "TASK_STATE_WORKING", "message": said},
                "metadata": metadata,
            }
        }

    ends = {"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_COMPLETED", "message": message("Done.")}}}
    called = event("a", part("function_call", args={"n": 1}), {"text": "hm", "metadata": {"adk_thought": True}})
    answered = event("b", part("function_response", response={"ok": True}))
    found = read(called, called, answered, ends).to_invocation(user="u")
    assert [(call.name, call.args, call.result) for call in found.tool_calls] == [("look", {"n": 1}, {"ok": True})]
    assert (found.text, found.intermediate, found.reports_calls) == ("Done.", (), True)
    assert found.usage is not None
    assert (found.usage.input_tokens, found.usage.output_tokens) == (10, 4), "of each event once"
    whole = read(task(metadata=called["statusUpdate"]["metadata"], message=message("Done.")))
    assert whole.to_invocation(user="u").usage is None, "a task holds what the last event alone consumed"
    for strange in (5, ["1"]):
        other = event("c", part("function_call", id=strange), part("function_response", id=strange, response=1))
        assert [call.result for call in read(other, ends).to_invocation(user="u").tool_calls] == [1], (
            "an id that is no text"
        )


@pytest.mark.parametrize(
    "result",
    [
        None,
        {},
        {"task": {"id": "t"}},
        {"task": {"id": "t", "status": {}}},
        {"artifactUpdate": {"taskId": "t"}},
        {"artifactUpdate": {"artifact": artifact("x"), "append": True}},
        {"kind": "something"},
    ],
)
def test_what_is_no_result(result: Any) -> None:
    with pytest.raises(FormatError):
        read(result)


def test_a_task_without_a_word_is_no_answer() -> None:
    with pytest.raises(FormatError, match="without an artifact and without a message"):
        text(task())


def test_artifacts_are_bounded() -> None:
    many = [artifact("x", key=str(number)) for number in range(MOST_ARTIFACTS + 1)]
    with pytest.raises(FormatError, match="more than 1,000 artifacts"):
        read(task(artifacts=many))


def test_parts_as_text() -> None:
    parts = [
        {"text": "T"},
        {"data": {"k": 1}},
        {"url": "http://x/y.png"},
        {"file": {"name": "f"}},
        {"raw": "AA="},
        {},
        7,
    ]
    assert text_of_parts(parts) == 'T\n{"k": 1}\n[file http://x/y.png]\n[file f]'


@pytest.mark.parametrize(
    ("written", "read_as"), [("TASK_STATE_INPUT_REQUIRED", "input-required"), ("auth-required", "auth-required")]
)
def test_states_of_both_versions(written: str, read_as: str) -> None:
    assert state_of(written) == read_as


def test_a_file_is_a_part_in_either_version() -> None:
    image = {"inline_data": {"mime_type": "image/png", "data": "aGk=", "display_name": "a.png"}}
    assert file_part(image, old=False) == {"mediaType": "image/png", "filename": "a.png", "raw": "aGk="}
    old = {"mimeType": "image/png", "name": "a.png", "bytes": "aGk="}
    assert file_part(image, old=True) == {"kind": "file", "file": old}
    assert file_part({"file_data": {"file_uri": "https://h/p"}}, old=False) == {"url": "https://h/p"}
