"""Which requests ask the same, and which do not."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from gate.world.options import Kind
from gate.world.outbound import OutboundRequest, address, meant, path_without_keys, signed_query, whereabouts
from gate.world.volatile import Volatile


def key(body: Any, *, path: str = "/chat/completions", kind: Kind = "model", **headers: str) -> str:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return address(OutboundRequest("openai", kind, "POST", path, headers, data, 1_770_000_000.0), Volatile()).key


def test_the_order_of_keys_and_the_spelling_of_json_say_nothing() -> None:
    assert key({"a": 1, "b": "é"}) == key(b'{ "b": "\\u00e9",\n "a": 1 }')


def test_what_is_asked_and_of_whom_tells_requests_apart() -> None:
    body = {"messages": [{"role": "user", "content": "hello"}], "temperature": 0.5}
    others = [
        key({**body, "temperature": 0.6}),
        key({**body, "messages": [{"role": "user", "content": "hello "}]}),
        key(body, path="/responses"),
        key(body, **{"anthropic-beta": "new"}),
        key(b"not json"),
        key(b"\xff\xfe"),
    ]
    assert len({key(body), *others}) == len(others) + 1


def test_the_number_of_a_call_of_mcp_is_no_part_of_it() -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "find", "arguments": {"q": 1}}}
    progress = {**call, "id": 9, "params": {**call["params"], "_meta": {"progressToken": 3}}}
    assert key(call, kind="mcp") == key(progress, kind="mcp")
    assert key(call) != key({**call, "id": 2})
    assert key(call, kind="mcp") != key({**call, "params": {"name": "find", "arguments": {"q": 2}}}, kind="mcp")


def test_keys_are_no_part_of_what_is_asked() -> None:
    assert path_without_keys("/v1beta/models/m:streamGenerateContent?alt=sse&key=AIzaSecret") == (
        "/v1beta/models/m:streamGenerateContent?alt=sse"
    )
    assert path_without_keys("/models?key=x") == "/models"
    assert meant([(b"authorization", b"Bearer x"), (b"anthropic-version", b"2023-06-01"), (b"x-api-key", b"y")]) == {
        "header anthropic-version": "2023-06-01",
        "header authorization": "",
        "header x-api-key": "",
    }


def test_a_header_counts_unless_it_is_known_to_say_nothing_of_what_is_asked() -> None:
    def told(name: str, value: str) -> dict[str, str]:
        return meant([(name.encode(), value.encode())])

    for name in ("X-Tenant", "x-portkey-config", "api-version", "accept", "x-order-key", "mcp-protocol-version"):
        assert told(name, "one") != told(name, "two"), name
    for name in ("user-agent", "x-stainless-retry-count", "traceparent", "x-client-request-id", "mcp-session-id"):
        assert told(name, "one") == {}, name
    assert told("x-order-token", "0123456789abcdef") == told("x-order-token", "0123456789abcdefg") != {}
    boundary = "multipart/form-data; boundary="
    assert told("content-type", boundary + "a") == told("content-type", boundary + "b") != told("content-type", "a/b")


def test_a_key_may_be_content_in_the_query_of_a_tool() -> None:
    assert signed_query("/kv?key=limit&n=1") != signed_query("/kv?key=price&n=1")
    assert signed_query("/kv?n=1") == {}


def test_another_server_under_the_same_name_is_asked_something_else() -> None:
    assert (
        whereabouts("https://a.example/v1")
        != whereabouts("https://a.example/v2")
        != whereabouts("https://b.example/v2")
    )
    assert whereabouts("http://127.0.0.1:4000/x") == whereabouts("http://127.0.0.1:5000/x")
    assert "secret" not in str(whereabouts("https://me:secret@a.example"))


def test_a_tool_that_is_asked_for_the_local_date_is_asked_the_same_on_another_day() -> None:
    """For some hours of each day, it is not the date in UTC."""

    def asked(day: str, hour: int, kind: Kind) -> str:
        at = datetime(2026, 2, 2, hour, tzinfo=UTC).timestamp()
        data = json.dumps({"day": day}).encode()
        return address(OutboundRequest("weather", kind, "POST", f"/weather?day={day}", {}, data, at), Volatile()).key

    kinds: tuple[Kind, ...] = ("model", "tool", "mcp")
    for kind in kinds:
        in_new_york = [asked("2026-02-01", 3, kind), asked("2026-02-02", 15, kind)]
        in_tokyo = [asked("2026-02-02", 3, kind), asked("2026-02-03", 20, kind)]
        assert len({*in_new_york, *in_tokyo}) == 1, kind
        assert asked("2026-02-09", 3, kind) not in in_new_york, kind
