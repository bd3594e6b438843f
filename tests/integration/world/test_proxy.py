"""The proxy over real sockets: byte for byte, each trial its own answers, and no server that is not named."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from gate.model import Side, Trial
from gate.security.redact import Redactor
from gate.world.cassette import Cassette
from gate.world.options import WorldOptions, upstreams_of
from gate.world.proxy import serving
from gate.world.world import World
from tests.integration.world.provider import Provider, everything_in, providing

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def asynchronous(test: Callable[[Path], Coroutine[Any, Any, None]]) -> Callable[[Path], None]:
    def run(tmp_path: Path) -> None:
        asyncio.run(test(tmp_path))

    run.__name__ = test.__name__
    return run


@asynccontextmanager
async def world_of(folder: Path, provider: Provider, run: str, **options: Any) -> AsyncIterator[World]:
    made = WorldOptions.model_validate(options)
    upstreams = upstreams_of(made, {"OPENAI_BASE_URL": provider.url})
    async with serving(World(made, upstreams, folder, Redactor(), run)) as world:
        yield world


async def ask(world: World, token: str, body: Any = BODY, *, stream: bool = False) -> httpx.Response:
    url = world.environment(token)["OPENAI_BASE_URL"] + "/chat/completions"
    async with httpx.AsyncClient(timeout=60, verify=False) as client:
        return await client.post(url, json={**body, "stream": True} if stream else body)


async def trial(
    world: World, case: str, number: int, *, stream: bool = False, times: int = 1
) -> tuple[list[bytes], Trial]:
    session = f"session-{case}-{number}"
    world.open(session, case, number, Side.CANDIDATE)
    answers = [(await ask(world, session, stream=stream)).content for _ in range(times)]
    await world.close(session)
    replay = world.settle(case, number, Side.CANDIDATE, measured=True)
    return answers, Trial(case, number, replay=replay, run="recorded")


@asynchronous
async def test_streams_are_replayed_byte_for_byte(tmp_path: Path) -> None:
    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            first, recorded = await trial(world, "c", 1, stream=True, times=2)
        assert first[0] != first[1] and "–".encode() in first[0] and first[0].endswith(b"data: [DONE]\n\n")
        async with world_of(tmp_path, provider, "later") as world:
            world.couple([recorded])
            world.open("s", "c", 1, Side.CANDIDATE)
            again = await ask(world, "s", stream=True)
            assert (await ask(world, "s", stream=True)).content == first[1]
            assert again.content == first[0]
            assert again.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert provider.calls == 2


@pytest.mark.slow
@asynchronous
async def test_trials_at_once_share_no_answer(tmp_path: Path) -> None:
    async def all_of(world: World) -> list[tuple[list[bytes], Trial]]:
        return await asyncio.gather(*(trial(world, "c", number, times=4) for number in range(1, 17)))

    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            before = await all_of(world)
        assert len({answer for answers, _ in before for answer in answers}) == 16 * 4
        async with world_of(tmp_path, provider, "later") as world:
            world.couple([one for _, one in before])
            after = await all_of(world)
        assert [answers for answers, _ in after] == [answers for answers, _ in before]
        assert provider.calls == 16 * 4
        assert all(one.replay is not None and one.replay.whole for _, one in after)


@asynchronous
async def test_what_is_used_up_goes_live_and_a_later_run_replays_both(tmp_path: Path) -> None:
    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            first, recorded = await trial(world, "c", 1)
        async with world_of(tmp_path, provider, "second") as world:
            world.couple([recorded])
            longer, mixed = await trial(world, "c", 1, times=2)
        assert longer[0] == first[0] and provider.calls == 2
        assert mixed.replay is not None
        assert (mixed.replay.replayed, mixed.replay.live) == (1, 1)
        assert mixed.replay.difference == "request 2 is one more than the 1 that were recorded"
        async with world_of(tmp_path, provider, "third") as world:
            world.couple([mixed])
            assert (await trial(world, "c", 1, times=2))[0] == longer
        assert provider.calls == 2


ONE, TWO, THREE = (f"0b0a3a1e-6c1b-4a7e-9a3e-{number:012}" for number in (1, 2, 3))


def about(order: str) -> Any:
    return {**BODY, "messages": [{"role": "user", "content": f"look up {order}"}]}


async def asked(world: World, number: int, *bodies: Any) -> tuple[list[bytes], Trial]:
    session = f"session-{number}"
    world.open(session, "c", number, Side.CANDIDATE)
    answers = [(await ask(world, session, body)).content for body in bodies]
    await world.close(session)
    return answers, Trial("c", number, replay=world.settle("c", number, Side.CANDIDATE, measured=True), run="recorded")


@asynchronous
async def test_an_id_that_was_made_up_may_be_another_one(tmp_path: Path) -> None:
    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            first, recorded = await asked(world, 1, about(ONE), about(ONE))
        async with world_of(tmp_path, provider, "later") as world:
            world.couple([recorded])
            again, later = await asked(world, 1, about(TWO), about(TWO))
            assert again == first and later.replay is not None and later.replay.same
        async with world_of(tmp_path, provider, "mixed") as world:
            world.couple([recorded])
            _, later = await asked(world, 1, about(TWO), about(THREE))
            assert later.replay is not None and later.replay.live == 1


@asynchronous
async def test_an_id_of_the_case_or_of_the_code_is_content(tmp_path: Path) -> None:
    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            recorded = [(await asked(world, number, about(ONE)))[1] for number in (1, 2)]
        async with world_of(tmp_path, provider, "later") as world:
            world.couple(recorded)
            _, later = await asked(world, 1, about(TWO))
    assert later.replay is not None and (later.replay.replayed, later.replay.live) == (0, 1)
    assert "differs in messages[0].content" in later.replay.difference and TWO[-4:] in later.replay.difference


@asynchronous
async def test_an_id_that_the_case_gives_is_content_however_few_trials_there_are(tmp_path: Path) -> None:
    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            _, recorded = await asked(world, 1, about(ONE))
        async with world_of(tmp_path, provider, "later") as world:
            world.couple([recorded])
            world.open("s", "c", 1, Side.CANDIDATE, f"Where is {ONE}?")
            await ask(world, "s", about(TWO))
            assert provider.calls == 2


@asynchronous
async def test_two_ids_that_were_made_up_do_not_become_one(tmp_path: Path) -> None:
    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            _, recorded = await asked(world, 1, about(ONE), about(TWO))
        async with world_of(tmp_path, provider, "later") as world:
            world.couple([recorded])
            _, later = await asked(world, 1, about(THREE), about(THREE))
    assert later.replay is not None and (later.replay.replayed, later.replay.live) == (1, 1)


@asynchronous
async def test_a_stream_that_ends_in_an_error_is_not_recorded(tmp_path: Path) -> None:
    with providing() as provider:
        for spoilt in ("event: error\ndata: {}", 'data: {"error": {"message": "overloaded"}}'):
            provider.ends = f"{spoilt}\n\n".encode()
            async with world_of(tmp_path, provider, "recorded") as world:
                _, recorded = await trial(world, "c", 1, stream=True)
            assert recorded.replay is not None and recorded.replay.recording == "", spoilt


@asynchronous
async def test_an_id_out_of_an_answer_is_content(tmp_path: Path) -> None:
    with providing() as provider:
        provider.says = f" your order is {ONE}"
        async with world_of(tmp_path, provider, "recorded") as world:
            _, recorded = await asked(world, 1, BODY, about(ONE))
        async with world_of(tmp_path, provider, "later") as world:
            world.couple([recorded])
            _, later = await asked(world, 1, BODY, about(TWO))
    assert later.replay is not None and (later.replay.replayed, later.replay.live) == (1, 1)


@asynchronous
async def test_requests_that_differ_in_ids_alone_get_each_its_own_answer_in_any_order(tmp_path: Path) -> None:
    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            (first, second), recorded = await asked(world, 1, about(ONE), about(TWO))
        async with world_of(tmp_path, provider, "later") as world:
            world.couple([recorded])
            assert (await asked(world, 1, about(TWO), about(ONE)))[0] == [second, first]


@asynchronous
async def test_a_header_of_the_request_is_content_and_is_named(tmp_path: Path) -> None:
    async def one(world: World, tenant: str) -> Trial:
        world.open("s", "c", 1, Side.CANDIDATE)
        url = world.environment("s")["OPENAI_BASE_URL"] + "/chat/completions"
        async with httpx.AsyncClient(headers={"X-Tenant": tenant}, verify=False) as client:
            await client.post(url, json=BODY)
        await world.close("s")
        return Trial("c", 1, replay=world.settle("c", 1, Side.CANDIDATE, measured=True), run="recorded")

    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            recorded = await one(world, "one")
        async with world_of(tmp_path, provider, "later") as world:
            world.couple([recorded])
            other = await one(world, "two")
    assert other.replay is not None and other.replay.live == 1
    assert other.replay.difference == "request 1 differs in header x-tenant"


@asynchronous
async def test_a_websocket_is_refused(tmp_path: Path) -> None:
    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            world.open("s", "c", 1, Side.CANDIDATE)
            url = world.environment("s")["OPENAI_BASE_URL"] + "/realtime"
            async with httpx.AsyncClient(verify=False) as client:
                answer = await client.get(url, headers={"Connection": "Upgrade", "Upgrade": "websocket"})
            assert (answer.status_code, provider.calls) == (422, 0)


@asynchronous
async def test_fewer_requests_than_recorded_are_a_difference(tmp_path: Path) -> None:
    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            _, recorded = await trial(world, "c", 1, times=2)
        async with world_of(tmp_path, provider, "later") as world:
            world.couple([recorded])
            _, shorter = await trial(world, "c", 1)
    assert shorter.replay is not None
    assert shorter.replay.difference == "request 2 of the recording was not asked (POST /chat/completions)"


@asynchronous
async def test_an_address_is_of_one_trial_for_as_long_as_it_is_on(tmp_path: Path) -> None:
    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            world.open("mine", "c", 1, Side.CANDIDATE)
            assert (await ask(world, "guessed")).status_code == 404
            await world.close("mine")
            assert (await ask(world, "mine")).status_code == 404
            assert provider.calls == 0


@asynchronous
async def test_a_workers_address_is_of_the_trial_that_it_is_on(tmp_path: Path) -> None:
    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            address = world.place()
            url = address.environment["OPENAI_BASE_URL"] + "/chat/completions"
            async with httpx.AsyncClient(verify=False) as client:
                assert (await client.post(url, json=BODY)).status_code == 200
                assert world.outside == 1
                world.open("on", "c", 1, Side.CANDIDATE)
                address.session_id = "on"
                await client.post(url, json=BODY)
            await world.close("on")
            replay = world.settle("c", 1, Side.CANDIDATE, measured=True)
            assert replay is not None and replay.live == 1 and world.outside == 1


@asynchronous
async def test_a_header_names_the_trial_of_an_agent_that_the_gate_does_not_start(tmp_path: Path) -> None:
    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            world.open("theirs", "c", 1, Side.CANDIDATE)
            base = world.environment("x")["GATE_WORLD_URL"].removesuffix("/x")
            async with httpx.AsyncClient(headers={"X-Gate-Trial": "theirs"}, verify=False) as client:
                await client.post(f"{base}/openai/chat/completions", json=BODY)
            await world.close("theirs")
            assert "x-gate-trial" not in provider.headers[0]
            assert world.settle("c", 1, Side.CANDIDATE, measured=True) is not None


@asynchronous
async def test_no_other_server_is_reached(tmp_path: Path) -> None:
    with providing() as provider, providing() as other:
        async with world_of(tmp_path, provider, "recorded") as world:
            world.open("s", "c", 1, Side.CANDIDATE)
            base = world.environment("s")["GATE_WORLD_URL"]
            host = other.url.removeprefix("http://")
            targets = ["other/x", f"openai@{host}/x", "openai/../../x", "openai/%2e%2e/x", "openai/..%2fx"]
            for target in targets:
                reader, writer = await asyncio.open_connection("127.0.0.1", int(base.split(":")[2].split("/")[0]))
                writer.write(f"POST /s/{target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{{}}".encode())
                status = (await reader.readline()).split()[1]
                assert status in (b"404", b"400"), target
                writer.close()
            assert (provider.calls, other.calls) == (0, 0)


@asynchronous
async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    """The servers are those of the configuration, whatever one of them says; what signs in goes to it alone."""
    with providing() as provider, providing() as other:
        provider.status, provider.leads = 307, f"{other.url}/chat/completions"
        async with world_of(tmp_path, provider, "recorded") as world:
            world.open("s", "c", 1, Side.CANDIDATE)
            assert (await ask(world, "s")).status_code == 307
            assert (provider.calls, other.calls) == (1, 0)


@asynchronous
async def test_an_address_of_a_worker_is_128_random_bits(tmp_path: Path) -> None:
    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            tokens = [world.place().environment["GATE_WORLD_URL"].rpartition("/")[2] for _ in range(50)]
    assert len(set(tokens)) == 50
    assert all(re.fullmatch("[0-9a-f]{32}", token) for token in tokens)


@asynchronous
async def test_an_answer_that_holds_a_secret_is_passed_on_and_not_kept(tmp_path: Path) -> None:
    secret = "sk-proj-0123456789abcdefghijklmnop"
    with providing() as provider:
        provider.says = f" {secret}"
        async with world_of(tmp_path, provider, "recorded") as world:
            answers, made = await trial(world, "c", 1)
            assert world.notes == ["world: 1 calls are not recorded: an answer holds a secret"]
            provider.says = ""
            await asked(world, 2, about("something else"))
        assert secret.encode() in answers[0]
        assert made.replay is not None and made.replay.recording == ""
        kept = everything_in(tmp_path / "recorded.jsonl")
        assert b"something else" in kept
        assert secret.encode() not in kept


@asynchronous
async def test_what_the_configuration_calls_volatile_is_no_difference(tmp_path: Path) -> None:
    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded", normalise=["ticket {number}"]) as world:
            _, recorded = await asked(world, 1, about("ticket 17"), about("order 17"))
        async with world_of(tmp_path, provider, "later", normalise=["ticket {number}"]) as world:
            world.couple([recorded])
            _, later = await asked(world, 1, about("ticket 18"), about("order 18"))
    assert later.replay is not None and (later.replay.replayed, later.replay.live) == (1, 1)


@asynchronous
async def test_requests_are_kept_without_the_secrets_in_them_and_replayed_all_the_same(tmp_path: Path) -> None:
    secret = "sk-proj-0123456789abcdefghijklmnop"
    with providing() as provider:
        async with world_of(tmp_path, provider, "recorded") as world:
            _, recorded = await asked(world, 1, about(f"mine: {secret}"))
        cassette = Cassette(tmp_path / "recorded.jsonl")
        assert recorded.replay is not None
        tape = cassette.tape(recorded.replay.recording.rpartition(":")[2])
        assert tape is not None
        kept = [cassette.body(name) or b"" for one in tape.exchanges for name in (one.request, one.response)]
        assert b"look up mine" in kept[0] and secret.encode() not in b"".join(kept)
        async with world_of(tmp_path, provider, "later") as world:
            world.couple([recorded])
            _, later = await asked(world, 1, about(f"mine: {secret}"))
    assert later.replay is not None and later.replay.whole


@pytest.mark.slow
@asynchronous
async def test_beyond_its_bound_nothing_is_recorded_and_that_is_said(tmp_path: Path) -> None:
    with providing() as provider, pytest.MonkeyPatch.context() as patched:
        patched.setattr("gate.world.world.MOST_BYTES", 1_000_000)
        provider.says = "".join(map(chr, provider.random.choices(range(0x4E00, 0x9C20), k=700_000)))
        async with world_of(tmp_path, provider, "recorded") as world:
            answers, made = await trial(world, "c", 1)
            assert world.notes == ["world: 1 calls are not recorded: the recording is full"]
    assert len(answers[0]) > 1_000_000 and made.replay is not None and made.replay.recording == ""
    assert (tmp_path / "recorded.jsonl").stat().st_size <= 1_000_000


@asynchronous
async def test_an_unreachable_server_says_try_later(tmp_path: Path) -> None:
    with providing() as provider:
        pass
    async with world_of(tmp_path, provider, "recorded") as world:
        world.open("s", "c", 1, Side.CANDIDATE)
        answer = await ask(world, "s")
        await world.close("s")
    assert answer.status_code == 503
    assert "openai cannot be reached" in json.loads(answer.content)["error"]["message"]


class McpServer(BaseHTTPRequestHandler):
    """An MCP server over streamable HTTP: answers whole or as a stream, at random."""

    protocol_version = "HTTP/1.1"
    asked: list[str]
    about = "Finds an order."

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(message["method"])
        if "id" not in message:
            return self._send(202, "application/json", b"")
        results = {
            "initialize": {"protocolVersion": "2025-06-18"},
            "tools/list": {"tools": [{"description": self.about}]},
        }
        called = {"content": [{"type": "text", "text": str(len(self.asked))}]}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": results.get(message["method"], called)}
        data = json.dumps(answer).encode()
        if message["method"] == "tools/call":
            return self._send(200, "text/event-stream", b"event: message\r\ndata: " + data + b"\r\n\r\n")
        return self._send(200, "application/json", data)

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Mcp-Session-Id", "one")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving_tools(**attributes: Any) -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (McpServer,), {"asked": asked, **attributes}))
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def use_tools(world: World, *, first: int, arguments: Any) -> tuple[list[Any], Trial]:
    """A trial that opens a session, lists the tools and calls one; its messages are numbered from ``first``."""
    world.open("s", "c", 1, Side.CANDIDATE)
    said = []
    async with httpx.AsyncClient(timeout=60, verify=False) as client:
        url = world.environment("s")["TOOLS"]
        for number, method in enumerate(("initialize", "notifications/initialized", "tools/list", "tools/call"), first):
            message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
            message |= {} if method.startswith("notifications") else {"id": number}
            message |= {"params": {"name": "find", "arguments": arguments}} if method == "tools/call" else {}
            answer = await client.post(url, json=message)
            text = (
                answer.text.partition("data: ")[2] if "event-stream" in answer.headers["content-type"] else answer.text
            )
            said.append(json.loads(text) if text.strip() else None)
    await world.close("s")
    return said, Trial("c", 1, replay=world.settle("c", 1, Side.CANDIDATE, measured=True), run="recorded")


@pytest.mark.slow
@asynchronous
async def test_a_tool_of_an_mcp_server_is_called_once_and_its_list_read_anew(tmp_path: Path) -> None:
    def options(url: str, **more: Any) -> dict[str, Any]:
        return {"upstreams": {"tools": {"url": url, "kind": "mcp", "env": "TOOLS"}}, **more}

    with providing() as provider, serving_tools() as (url, asked):
        async with world_of(tmp_path, provider, "recorded", **options(url)) as world:
            before, recorded = await use_tools(world, first=1, arguments={"q": 1})
        async with world_of(tmp_path, provider, "later", **options(url)) as world:
            world.couple([recorded])
            after, again = await use_tools(world, first=11, arguments={"q": 1})
        assert asked.count("tools/call") == 1 and asked.count("tools/list") == 2
        assert after[3] == {**before[3], "id": 14}
        assert again.replay is not None and again.replay.whole and not again.replay.difference
        async with world_of(tmp_path, provider, "closed", **options(url, tools="replay")) as world:
            world.couple([recorded])
            assert (await use_tools(world, first=5, arguments={"q": 1}))[0][3] == {**before[3], "id": 8}
            refused, _ = await use_tools(world, first=5, arguments={"q": 2})
        assert "request 4 differs in params.arguments.q: 1 → 2" in refused[3]["error"]["message"]
        assert asked.count("tools/call") == 1 and asked.count("initialize") == 2
    with providing() as provider, serving_tools(about="Finds anything.") as (url, _):
        async with world_of(tmp_path, provider, "changed", **options(url)) as world:
            world.couple([recorded])
            _, changed = await use_tools(world, first=1, arguments={"q": 1})
        assert changed.replay is not None
        assert (changed.replay.replayed, changed.replay.live) == (3, 1)
        assert changed.replay.difference == (
            "tools/list of tools answers otherwise at result.tools[0].description: "
            '"Finds an order." → "Finds anything."'
        )
        told = 'tools: tools[0].description: "Finds an order." → "Finds anything."'
        assert changed.replay.tools_changed == (told,)
        assert recorded.replay is not None and again.replay is not None
        assert changed.replay.tools != recorded.replay.tools == again.replay.tools != ()
        async with world_of(tmp_path, provider, "live", **options(url, tools="live")) as world:
            world.couple([recorded])
            _, live = await use_tools(world, first=1, arguments={"q": 1})
        assert live.replay is not None and live.replay.tools_changed == (told,)
