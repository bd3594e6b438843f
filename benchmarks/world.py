"""The cost of recording and replaying the outside world: a replayed call, a live stream, the size of a recording.

    python benchmarks/world.py [--rounds 5] [--cases 100] [--calls 20] [--events 200] [--write PAGE]

Each figure is the median over rounds, with the smallest and the largest. The client is a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from gate.model import Side, Trial
from gate.security.redact import Redactor
from gate.world.options import WorldOptions, upstreams_of
from gate.world.proxy import serving
from gate.world.world import World

IN_FLIGHT = 64
TRIALS, TURNS = 5, 4
GAP = 0.01
MARK = "<!-- measured: world -->"
WORDS = [f"word{number * 7919 % 1009}" for number in range(3000)]
TOOLS = [
    {"type": "function", "function": {"name": f"tool_{n}", "description": " ".join(WORDS[n * 40 : n * 40 + 120])}}
    for n in range(12)
]
SYSTEM = " ".join(WORDS[:900])


def body(case: str, said: Sequence[str]) -> bytes:
    """A request of about 20 kB: instructions, tools, and the conversation so far."""
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"I am {case}: where is my order?"}]
    for text in said:
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "And then?"}]
    return json.dumps({"model": "m", "tools": TOOLS, "messages": messages}).encode()


def answer(seed: int) -> str:
    return " ".join(WORDS[(seed * 31 + n * n) % len(WORDS)] + str(seed * n % 97) for n in range(120))


async def request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, data: bytes) -> bytes:
    """One exchange on an open connection; understands a length and chunks."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    told = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b"transfer-encoding: chunked" not in told:
        return await reader.readexactly(int(told.partition(b"content-length:")[2].split()[0]))
    found = b""
    while size := int((await reader.readline()).strip(), 16):
        found += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return found


# --- a provider -----------------------------------------------------------------------------------


async def provide(port_to: Any, events: int) -> None:
    """Answers with a stream of ``events`` with pauses, or at once if there are none."""
    count = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        while head := await reader.readuntil(b"\r\n\r\n"):
            await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split()[0]))
            count += 1
            if events:
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                )
                for number in range(events):
                    piece = f'data: {{"choices":[{{"delta":{{"content":"word {number} "}}}}]}}\n\n'.encode()
                    writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                    await writer.drain()
                    await asyncio.sleep(GAP)
                writer.write(b"0\r\n\r\n")
            else:
                said = json.dumps({"choices": [{"message": {"role": "assistant", "content": answer(count)}}]}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
                writer.write(f"content-length: {len(said)}\r\n\r\n".encode() + said)

    async def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(quiet, "127.0.0.1", 0, backlog=1024)
    port_to.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def run_provider(port_to: Any, events: int) -> None:
    asyncio.run(provide(port_to, events))


class Provided:
    """A provider in a process of its own."""

    def __init__(self, events: int = 0) -> None:
        here, there = multiprocessing.Pipe()
        self._process = multiprocessing.Process(target=run_provider, args=(there, events), daemon=True)
        self._process.start()
        self.port: int = here.recv()

    def __enter__(self) -> int:
        return self.port

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()


# --- what is measured -----------------------------------------------------------------------------


def serving_in(folder: Path, port: int, run: str) -> AbstractAsyncContextManager[World]:
    options = WorldOptions()
    told = {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}
    return serving(World(options, upstreams_of(options, told), folder, Redactor(), run))


def ask_all(told: Any, port: int, paths: Sequence[str], calls: int) -> None:
    """The client's process: one connection and trial each, all at once. Tells the seconds and each call's."""

    async def one(path: str, number: int, took: list[float]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for call in range(calls):
            start = time.perf_counter()
            await request(reader, writer, path, body(f"case {number}", [str(call)]))
            took.append(time.perf_counter() - start)
        writer.close()

    async def everything() -> None:
        took: list[float] = []
        start = time.perf_counter()
        await asyncio.gather(*(one(path, number, took) for number, path in enumerate(paths)))
        told.send((time.perf_counter() - start, took))

    asyncio.run(everything())


async def client(port: int, paths: Sequence[str], calls: int) -> tuple[float, list[float]]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=ask_all, args=(there, port, paths, calls))
    process.start()
    while not here.poll():
        await asyncio.sleep(0.005)
    found = here.recv()
    process.join()
    return found


async def trials(world: World, run: str, calls: int) -> tuple[float, list[float], list[Trial]]:
    """Trials at once; what they took, and they themselves."""
    names = [f"{run}-{number}" for number in range(IN_FLIGHT)]
    for number, name in enumerate(names):
        world.open(name, f"case {number}", 1, Side.CANDIDATE)
    base = world.environment("x")["GATE_WORLD_URL"]
    paths = [f"/{name}/openai/chat/completions" for name in names]
    took, each = await client(int(base.split(":")[2].split("/")[0]), paths, calls)
    made = []
    for number, name in enumerate(names):
        await world.close(name)
        replay = world.settle(f"case {number}", 1, Side.CANDIDATE, measured=True)
        made.append(Trial(f"case {number}", 1, run=run, replay=replay))
    return took, each, made


async def replayed(folder: Path, rounds: int, calls: int) -> tuple[list[float], list[float]]:
    """Milliseconds a replayed call with 64 in flight: the proxy's processor time, and all that passed."""
    with Provided() as port:
        async with serving_in(folder, port, "recorded") as world:
            _, _, recorded = await trials(world, "recorded", calls)
    worked, passed = [], []
    for number in range(rounds):
        async with serving_in(folder, port, f"later{number}") as world:
            world.couple(recorded)
            before = time.process_time()
            took, _, made = await trials(world, f"later{number}", calls)
            assert all(one.replay is not None and one.replay.whole for one in made)
            worked.append(1000 * (time.process_time() - before) / (IN_FLIGHT * calls))
            passed.append(1000 * took / (IN_FLIGHT * calls))
    return worked, passed


async def streamed(folder: Path, rounds: int, events: int) -> list[float]:
    """Return by how many per cent a live stream takes longer through the proxy; pairs in turn."""
    found = []
    with Provided(events) as port:
        async with serving_in(folder, port, "streams") as world:
            base = world.environment("s")["GATE_WORLD_URL"]
            for number in range(rounds * 2):
                direct, _ = await client(port, ["/v1/chat/completions"], 1)
                world.open("s", "case", number + 1, Side.CANDIDATE)
                through, _ = await client(int(base.split(":")[2].split("/")[0]), ["/s/openai/chat/completions"], 1)
                await world.close("s")
                found.append(100 * (through / direct - 1))
    return found


async def size(folder: Path, cases: int) -> float:
    """Megabytes of the recording of so many cases x 5 trials x 4 calls of about 20 kB."""
    from gate.world.cassette import CassetteWriter, RecordedExchange, tape_of

    path = folder / "size.jsonl"
    writer = CassetteWriter(path, 10**9)
    for case in range(cases):
        for trial in range(TRIALS):
            said: list[str] = []
            kept = []
            for turn in range(1, TURNS + 1):
                asked = writer.body(body(f"case {case}", said), "request")
                said.append(answer(case * 1000 + trial * 100 + turn))
                told = {"id": f"chatcmpl-{case}{trial}{turn}", "choices": [{"message": {"content": said[-1]}}]}
                got = writer.body(json.dumps(told).encode(), "response")
                exchange = RecordedExchange(turn, "openai", "POST", "/chat/completions", "k" * 40, asked, 200, got)
                writer.keep(exchange, f"{case} {trial}")
                kept.append(exchange)
            writer.end(f"case {case}", trial, tape_of(f"case {case}", trial, kept), TURNS, f"{case} {trial}")
    writer.close()
    return path.stat().st_size / 1e6


AGENT = """
import json, os, urllib.request
def answer(message):
    said = []
    for turn in range(2):
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": message}, *said]}).encode()
        asked = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
        with urllib.request.urlopen(asked) as got:
            said.append(json.load(got)["choices"][0]["message"])
    return said[-1]["content"]
"""


def whole_run(folder: Path, cases: int, rounds: int) -> tuple[list[float], list[float], list[int]]:
    """Seconds of `gate run` over so many cases after a change of a comment, those of the processor, and model calls."""
    (folder / "evals.jsonl").write_text(
        "".join(json.dumps({"id": f"c{n}", "input": f"item {n}", "response": "word1"}) + "\n" for n in range(cases))
    )
    (folder / "agent.py").write_text(AGENT)
    configuration = {
        "suite": "evals.jsonl",
        "agent": {"python": "agent:answer"},
        "criteria": {"latency": {"max": 60}},
    }
    (folder / "gate.yaml").write_text(json.dumps({**configuration, "world": {"store": str(folder) + "-store"}}))
    (folder / ".gitignore").write_text(".gate/\n__pycache__/\n")
    git = ["git", "-c", "user.name=b", "-c", "user.email=b@localhost"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "base"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    with Provided() as port:
        environment = {**os.environ, "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}

        def gate(*words: str) -> float:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-m", "gate", *words], cwd=folder, env=environment, check=True, stdout=-3)
            return time.perf_counter() - start

        gate("run", "-q", "--trials", str(TRIALS), "--record", ".gate/base.jsonl")
        gate("baseline", "save", ".gate/base.jsonl")
        took, worked, live = [], [], []
        for number in range(rounds):
            (folder / "agent.py").write_text(AGENT + f"# {number}\n")
            record = f".gate/change{number}.jsonl"
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            took.append(gate("run", "-q", "--record", record))
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            worked.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            lines = map(json.loads, (folder / record).read_text().splitlines())
            live.append(sum(line["replay"].get("live", 0) for line in lines if "replay" in line))
    return took, worked, live


def spread(found: Sequence[float], unit: str, digits: int = 2) -> str:
    middle, low, high = statistics.median(found), min(found), max(found)
    return f"{middle:.{digits}f} {unit} ({low:.{digits}f}–{high:.{digits}f}, n = {len(found)})"


def table(cases: int, rounds: int, calls: int, events: int) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        worked, passed = asyncio.run(replayed(folder, rounds, calls))
        streams = asyncio.run(streamed(folder, rounds, events))
        megabytes = asyncio.run(size(folder, cases))
        (folder / "project").mkdir()
        took, worked_whole, live = whole_run(folder / "project", cases, rounds)
    request = f"a replayed call, {IN_FLIGHT} in flight, requests of {len(body('case 1', ['1'])):,} bytes"
    rows: list[tuple[str, str, str]] = [
        (f"{request}: processor time of the proxy", spread(worked, "ms"), "≤ 1 ms"),
        ("the same, time that passes, with the client on the same cores", spread(passed, "ms"), ""),
        (f"a live stream of {events * GAP:g} s through the proxy, longer by", spread(streams, "%"), "≤ 3 %"),
        (f"the recording of {cases} cases × {TRIALS} trials × {TURNS} calls", f"{megabytes:.1f} MB", "≤ 20 MB"),
        (f"`gate run` of {cases} cases after a change of a comment", spread(took, "s", 1), "≤ 5 s"),
        ("the same: processor time", spread(worked_whole, "s", 1), ""),
        ("model calls in these runs", spread([float(one) for one in live], "calls", 0), "0"),
    ]
    load = os.getloadavg()[0]
    head = f"On {os.cpu_count()} cores, Python {sys.version.split()[0]}, at a load average of {load:.1f}.\n\n"
    lines = "".join(f"| {what} | {found} | {aim} |\n" for what, found, aim in rows)
    return f"{head}| what | measured: median (range) | aim |\n|---|---|---|\n{lines}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=20, help="Model calls of each trial.")
    parser.add_argument("--events", type=int, default=200, help="Events of a live stream.")
    parser.add_argument("--write", type=Path)
    chosen = parser.parse_args()
    found = table(chosen.cases, chosen.rounds, chosen.calls, chosen.events)
    print(found)
    if chosen.write is not None:
        before, _, rest = chosen.write.read_text(encoding="utf-8").partition(MARK)
        after = rest.partition("<!-- /measured -->")[2]
        chosen.write.write_text(f"{before}{MARK}\n{found}<!-- /measured -->{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
